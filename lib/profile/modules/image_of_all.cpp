#include <algorithm>
#include <elf.h>
#include <limits>
#include <numeric>

#include "modules/image_file.hpp"
#include "modules/image_order.hpp"

namespace perfmap {
namespace {

std::vector<OrderedCode> read_loads(const Jitdump& dump, ImageCode& code) {
  std::vector<OrderedCode> all;
  Diagnostics ignored(1);  // the timeline was made with these
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (const auto move = decode_move(record)) {
      code.lowest_move = std::min(code.lowest_move, move->range.begin);
      code.highest_move = std::max(code.highest_move, move->range.begin);
    }
    const auto load = decode_load(record);
    if (!load || load->range.size == 0) return;
    all.push_back({load->range, record.offset, load->code.size() >= load->range.size, 0});
  });
  return all;
}

Error too_large() {
  return {Errc::too_large, "more code than an ELF file has room to describe", 0, {}};
}

/// One piece for each function. `all` are by offset and have places. False where the names are too
/// long.
bool describe(const Jitdump& dump, const std::vector<OrderedCode>& all, ImageCode& code) {
  for (const OrderedCode& one : all) {
    ImageFunction function;
    function.load = function.placed = one.load;
    function.range = {one.place, one.range.size};
    function.at_load = one.range;
    function.has_code = one.has_code;
    function.first = static_cast<std::uint32_t>(code.functions.size());
    function.count = 1;
    const auto record = dump.record_at(one.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (load && !load->name.empty()) {
      if (code.names.size() + load->name.size() >= std::numeric_limits<std::uint32_t>::max()) {
        return false;
      }
      function.name = static_cast<std::uint32_t>(code.names.size());
      code.names.append(load->name).push_back('\0');
    }
    code.functions.push_back(function);
  }
  return true;
}

void make_pieces(ImageCode& code) {
  std::vector<std::uint32_t> order(code.functions.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return code.functions[a].range.begin < code.functions[b].range.begin;
  });
  code.by_function.resize(order.size());
  for (const std::uint32_t number : order) {
    code.by_function[number] = static_cast<std::uint32_t>(code.pieces.size());
    const ImageFunction& function = code.functions[number];
    code.pieces.push_back({function.range, number, function.has_code ? 0u : 1u});
  }
}

/// What has bytes, and what has none.
void make_two_clusters(const OrderedEnds& ends, ImageCode& code) {
  std::uint32_t with_code = 0;
  for (const ImagePiece& piece : code.pieces) with_code += piece.cluster == 0 ? 1 : 0;
  const auto count = static_cast<std::uint32_t>(code.pieces.size());
  ImageCluster bytes{{kFirstPlace, ends.code - kFirstPlace}, true, with_code != 0, 0, with_code};
  const Address begin = with_code == count ? ends.all : code.pieces[with_code].range.begin;
  const Address aligned = begin / kPlaceAlignment * kPlaceAlignment;
  ImageCluster none{
      {aligned, ends.all - aligned}, false, with_code != count, with_code, count - with_code};
  for (ImageCluster* const cluster : {&bytes, &none}) {
    cluster->alignment = kPlaceAlignment;
    cluster->offset = cluster->range.begin;
    code.clusters.push_back(*cluster);
  }
}

void count_functions(const ImageCode& code, std::size_t loads, ElfImageCounts& counts) {
  counts.functions = code.functions.size();
  counts.out_of_reach = loads - code.functions.size();
  for (const ImageFunction& function : code.functions) counts.without_code += !function.has_code;
}

}  // namespace

Result<ElfOfAllCode> write_elf_of_all_code(const Timeline& timeline, const JitDetails& details,
                                           std::optional<std::uint16_t> machine, OutputFile& out) {
  const Jitdump& dump = timeline.dump();
  const Target target = machine ? target_of(dump.header(), *machine) : target_of(dump.header());
  ImageCode code;
  std::vector<OrderedCode> all = read_loads(dump, code);
  const std::size_t loads = all.size();
  if (loads >= std::numeric_limits<std::uint32_t>::max()) return Failure(too_large());
  // Above, readers take the sum of an offset and an address of code to wrap.
  const Address last = target.is_64 ? Address{1} << 62 : UINT32_MAX;
  const OrderedEnds ends = order_code(all, last);
  std::erase_if(all, [](const OrderedCode& one) { return one.place == 0; });
  if (!describe(dump, all, code)) return Failure(too_large());
  make_pieces(code);
  make_two_clusters(ends, code);
  ElfOfAllCode made;
  count_functions(code, loads, made.counts);
  const Result<ImageBegin> begin =
      write_image_file(timeline, details, target, std::move(code), ET_DYN, made.counts, out);
  if (!begin) return Failure(begin.error());
  made.frames = begin->frames;
  made.frames_in_memory = begin->frames_in_memory;
  made.code.reserve(all.size());
  for (const OrderedCode& one : all) {
    made.code.push_back({one.load, one.place + begin->shift, one.range.size});
  }
  return made;
}

}  // namespace perfmap

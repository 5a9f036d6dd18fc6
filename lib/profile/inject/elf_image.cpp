// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <dwarf.h>
#include <elf.h>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/utf8.hpp"
#include "inject/elf_writer.hpp"
#include "inject/image_code.hpp"
#include "inject/image_dwarf.hpp"
#include "inject/image_frames.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/inject.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

namespace {

/// The begin of an ET_DYN file, before its code.
struct ImageBegin {
  AddressRange frames = {};      ///< .eh_frame_hdr and .eh_frame; empty: not to be mapped
  Address frames_in_memory = 0;  ///< the address at which to map them
  std::uint64_t shift = 0;       ///< how far all code is moved back in the file to make space for
                                 ///< them
};

/// The code of a LOAD record, and its place in an ELF file of all code.
struct OrderedCode {
  AddressRange range;  ///< where its LOAD put it
  std::uint64_t load = 0;
  bool has_code = false;
  Address place = 0;  ///< offset in the file, and its address there; 0: none
};

/// The end in the file of code with bytes; code without bytes follows it.
struct OrderedEnds {
  Address code = 0;
  Address all = 0;
};

/// Code begins at this offset or later: space for the headers.
inline constexpr Address kFirstPlace = 4096;
/// Places and code addresses are equal modulo this, so that the file can be mapped without padding.
inline constexpr std::uint64_t kPlaceAlignment = 64;

/// Longer gaps are not filled.
constexpr std::uint64_t kLongestFilling = std::uint64_t{1} << 20;
/// Filling that is allowed even in a small dump.
constexpr std::uint64_t kFreeFilling = std::uint64_t{16} << 20;

using Numbers = std::vector<std::uint32_t>;

/// Ranges that overlap none of the ranges added before.
class Layer {
 public:
  bool add(const AddressRange& range) {
    const auto after = taken_.lower_bound(range.begin);
    if (after != taken_.end() && after->first < range.end()) return false;
    if (after != taken_.begin() && std::prev(after)->second > range.begin) return false;
    taken_.emplace_hint(after, range.begin, range.end());
    return true;
  }

 private:
  std::map<Address, Address> taken_;
};

/// `layer` is sorted by address.
std::vector<bool> gaps_to_fill(const std::vector<OrderedCode>& all, const Numbers& layer) {
  std::vector<AddressRange> ranges;
  for (const std::uint32_t i : layer) ranges.push_back(all[i].range);
  return perfmap::gaps_to_fill(ranges, {kLongestFilling, kFreeFilling});
}

/// The first place from `at` on with the alignment of the address.
Address place_for(Address at, const OrderedCode& code) noexcept {
  return at + ((code.range.begin - at) & (kPlaceAlignment - 1));
}

/// Hands out consecutive places.
class Places {
 public:
  explicit Places(Address last) : last_(last) {}

  Address end() const noexcept { return end_; }
  void begin_at(Address end) noexcept { end_ = end; }
  void give(OrderedCode& code, Address place) noexcept {
    if (place < end_ || place > last_ || code.range.size > last_ - place) return;
    code.place = place;
    end_ = place + code.range.size;
  }
  void give_next(OrderedCode& code) noexcept { give(code, place_for(end_, code)); }

 private:
  Address last_;
  Address end_ = kFirstPlace;
};

/// Assigns places to code without overlaps. Code that is adjacent in memory is adjacent in the
/// file, with the same gaps, if the gaps together are not much longer than the code. Code that
/// overlaps earlier code in `all` gets a separate place. No place ends after `last`. O(n log n).
OrderedEnds order_code(std::vector<OrderedCode>& all, Address last) {
  Layer taken;
  Numbers layer;
  Numbers rest;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].has_code) (taken.add(all[i].range) ? layer : rest).push_back(i);
  }
  std::sort(layer.begin(), layer.end(), [&](std::uint32_t a, std::uint32_t b) {
    return all[a].range.begin < all[b].range.begin;
  });
  const std::vector<bool> filled = gaps_to_fill(all, layer);
  Places places(last);
  for (std::size_t i = 0; i < layer.size(); ++i) {
    const bool goes_on = i > 0 && filled[i - 1];
    OrderedCode& code = all[layer[i]];
    if (goes_on) {
      places.give(code, places.end() + (code.range.begin - all[layer[i - 1]].range.end()));
    } else {
      places.give_next(code);
    }
  }
  for (const std::uint32_t i : rest) places.give_next(all[i]);
  OrderedEnds ends;
  ends.code = places.end();
  places.begin_at((ends.code + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment);
  for (OrderedCode& code : all) {
    if (!code.has_code) places.give_next(code);
  }
  ends.all = places.end();
  return ends;
}

/// The inputs of all sections.
struct Image {
  const Timeline& timeline;
  Target target;
  ImageCode code;
  ImageLines lines;
  ImageFrames frames;
  ImageBegin begin = {};

  Image(const Timeline& of, const Target& for_target, ImageCode&& of_code,
        FrameAddresses frame_addresses)
      : timeline(of),
        target(for_target),
        code(std::move(of_code)),
        lines(target, code),
        frames(target, frame_addresses) {}
  Image(const Image&) = delete;  // lines and frames refer to the target
  Image& operator=(const Image&) = delete;
};

std::string_view frames_of(const Image& image, const JitDetails& details,
                           const ImageFunction& function) {
  const auto offset = function.is_stray ? std::nullopt : details.unwinding(function.load);
  const auto record = offset ? image.timeline.dump().record_at(*offset) : std::nullopt;
  const auto unwinding = record ? decode_unwinding(*record) : std::nullopt;
  return unwinding ? unwinding->eh_frame : std::string_view();
}

/// Adds frames by address in memory, for code at another distance from its place in the file: perf
/// looks up all frames by one distance. Omitted where the file has other code.
void add_frames_in_memory(Image& image, const JitDetails& details, std::uint64_t distance) {
  std::map<Address, Address> added;
  ElfImageCounts ignored;
  for (const ImageFunction& function : image.code.functions) {
    const std::uint64_t shift = distance_of(function) - distance;
    const std::string_view frames =
        shift == 0 ? std::string_view() : frames_of(image, details, function);
    const AddressRange range{function.range.begin + shift, function.range.size};
    if (frames.empty() || range.begin > UINT64_MAX - range.size) continue;
    const auto piece = std::ranges::partition_point(
        image.code.pieces, [&](const ImagePiece& p) { return p.range.end() <= range.begin; });
    if (piece != image.code.pieces.end() && piece->range.begin < range.end()) continue;
    const auto next = added.upper_bound(range.begin);
    if (next != added.end() && next->first < range.end()) continue;
    if (next != added.begin() && std::prev(next)->second > range.begin) continue;
    added.emplace_hint(next, range.begin, range.end());
    image.frames.add_moved(image.code, function, frames, shift, ignored);
  }
}

void collect_frames(Image& image, const JitDetails& details, FrameAddresses addresses,
                    ElfImageCounts& counts) {
  for (const ImageFunction& function : image.code.functions) {
    const std::string_view frames = frames_of(image, details, function);
    if (!frames.empty()) image.frames.add(image.code, function, frames, counts);
  }
  if (addresses == FrameAddresses::relative && counts.frames != 0) {
    image.begin.frames_in_memory = main_distance(image.code);
    add_frames_in_memory(image, details, image.begin.frames_in_memory);
  }
  image.frames.finish();
}

void collect_lines(Image& image, SourceLines& source, ElfImageCounts& counts) {
  for (const ImageFunction& function : image.code.functions) {
    if (function.is_stray) continue;
    const std::vector<CodeLine>& lines = source.of(function.load);
    if (lines.empty()) continue;
    image.lines.add(image.code, function, lines);
    ++counts.with_lines;
  }
  image.lines.finish();
}

Address end_of(const ImageCode& code) noexcept {
  Address end = 0;
  for (const ImageCluster& cluster : code.clusters) end = std::max(end, cluster.range.end());
  return end;
}

/// Offset of the frame table in a file with frames to be mapped: space for the headers before it.
constexpr Address kFrameTable = 4096;

/// Puts frames before all code, in the first segment of the file: perf takes the lowest mapped
/// address of a file for that of its first segment, and finds the frames from there.
void put_frames_first(Image& image) {
  constexpr std::uint64_t kAlignment = 4096;
  if (image.frames.bytes().empty() || image.code.clusters.empty()) return;
  const Address frames = (kFrameTable + image.frames.table_size() + 7) / 8 * 8;
  const Address end = frames + image.frames.bytes().size();
  const std::uint64_t shift = (end + kAlignment - 1) / kAlignment * kAlignment;
  const Address last = image.target.last_address();
  if (end > last || end_of(image.code) > last - shift) return;
  image.begin.frames = {0, end};
  image.begin.frames_in_memory -= shift;
  image.begin.shift = shift;
  image.frames.place(frames, shift);
  for (ImagePiece& piece : image.code.pieces) piece.range.begin += shift;
  for (ImageFunction& function : image.code.functions) function.range.begin += shift;
  for (ImageCluster& cluster : image.code.clusters) {
    cluster.range.begin += shift;
    cluster.offset += shift;
  }
}

/// The bytes of a piece; empty if the dump does not have them, or no longer.
std::string_view bytes_of(const Jitdump& dump, const ImageFunction& function,
                          const AddressRange& piece) {
  const auto record = function.has_code ? dump.record_at(function.load) : std::nullopt;
  const auto load = record ? decode_load(*record) : std::nullopt;
  if (!load || load->code.size() < function.range.size) return {};
  const std::uint64_t into = piece.begin - function.range.begin;
  return first_bytes(without_first(load->code, into), piece.size);
}

void write_cluster(const Image& image, const ImageCluster& cluster, ElfSink& sink) {
  Address at = cluster.range.begin;
  for (std::uint32_t i = cluster.first; i < cluster.first + cluster.count; ++i) {
    const ImagePiece& piece = image.code.pieces[i];
    sink.zeros(piece.range.begin - at);
    const std::string_view bytes =
        bytes_of(image.timeline.dump(), image.code.functions[piece.function], piece.range);
    sink.write(bytes);
    sink.zeros(piece.range.size - bytes.size());
    at = piece.range.end();
  }
}

/// Returns the section number of each cluster.
std::vector<std::uint16_t> add_code(ElfFile& file, const Image& image) {
  std::vector<std::uint16_t> numbers;
  std::uint32_t named = 0;
  for (const ImageCluster& cluster : image.code.clusters) {
    if (!cluster.has_section) {
      numbers.push_back(SHN_ABS);
      continue;
    }
    ElfSection section;
    section.name = named == 0 ? ".text" : ".text." + std::to_string(named);
    ++named;
    section.type = cluster.has_code ? SHT_PROGBITS : SHT_NOBITS;
    section.flags = SHF_ALLOC | SHF_EXECINSTR;
    section.address = cluster.range.begin;
    section.size = cluster.range.size;
    section.alignment = cluster.alignment;
    section.offset = cluster.offset;
    section.write = [&image, &cluster](ElfSink& sink) { write_cluster(image, cluster, sink); };
    numbers.push_back(static_cast<std::uint16_t>(file.add(std::move(section))));
  }
  return numbers;
}

void write_symbols(const Image& image, const std::vector<std::uint16_t>& sections, ElfSink& sink) {
  std::string bytes;
  append_symbol(bytes, image.target, {});
  for (const ImagePiece& piece : image.code.pieces) {
    Elf64_Sym symbol{};
    symbol.st_name = image.code.functions[piece.function].name;
    symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
    symbol.st_shndx = sections[piece.cluster];
    symbol.st_value = piece.range.begin;
    symbol.st_size = piece.range.size;
    append_symbol(bytes, image.target, symbol);
    if (bytes.size() < OutputFile::kRoom) continue;
    sink.write(bytes);
    bytes.clear();
  }
  sink.write(bytes);
}

void add_symbols(ElfFile& file, const Image& image, std::vector<std::uint16_t> sections) {
  const std::uint64_t count = image.code.pieces.size() + 1;
  ElfSection symbols;
  symbols.name = ".symtab";
  symbols.type = SHT_SYMTAB;
  symbols.entry_size = ElfSizes(image.target).symbol;
  symbols.size = count * symbols.entry_size;
  symbols.alignment = image.target.address_size();
  symbols.link = file.next() + 1;
  symbols.info = static_cast<std::uint32_t>(count);  // names may repeat, so all symbols are local
  symbols.write = [&image, numbers = std::move(sections)](ElfSink& sink) {
    write_symbols(image, numbers, sink);
  };
  file.add(std::move(symbols));
}

void add_bytes(ElfFile& file, const char* name, std::uint32_t type, std::string_view bytes,
               std::uint64_t alignment = 1, std::uint64_t flags = 0) {
  if (bytes.empty()) return;
  ElfSection section;
  section.flags = flags;
  section.entry_size = (flags & SHF_STRINGS) != 0 ? 1 : 0;
  section.name = name;
  section.type = type;
  section.size = bytes.size();
  section.alignment = alignment;
  section.write = [bytes](ElfSink& sink) { sink.write(bytes); };
  file.add(std::move(section));
}

void add_lines(ElfFile& file, const Image& image) {
  if (image.lines.size() == 0) return;
  ElfSection section;
  section.name = ".debug_line";
  section.type = SHT_PROGBITS;
  section.size = image.lines.size();
  section.write = [&image](ElfSink& sink) {
    for (const LineTable& table : image.lines.tables()) {
      sink.write(table.head());
      sink.write(table.program());
    }
  };
  file.add(std::move(section));
}

/// Offsets in these sections have 32 bits, and the highest values have other meanings.
bool is_too_large(const Image& image, const ImageDwarf& dwarf) noexcept {
  constexpr std::uint64_t kMax = 0xfffffff0;
  return image.lines.size() > kMax || image.frames.bytes().size() > kMax ||
         dwarf.info.size() > kMax || dwarf.ranges.size() > kMax;
}

/// Adds frames for perf to map.
void add_mapped_frames(ElfFile& file, const Image& image) {
  const Address end = image.begin.frames.size;
  file.map_begin(end);
  const auto add = [&](const char* name, std::string bytes, Address at, std::uint64_t alignment) {
    ElfSection section;
    section.name = name;
    section.type = SHT_PROGBITS;
    section.flags = SHF_ALLOC;
    section.address = section.offset = at;
    section.size = bytes.size();
    section.alignment = alignment;
    section.write = [kept = std::move(bytes)](ElfSink& sink) { sink.write(kept); };
    file.add(std::move(section));
  };
  add(".eh_frame_hdr", std::string(image.frames.table(kFrameTable).view()), kFrameTable, 4);
  const std::string_view frames = image.frames.bytes();
  add(".eh_frame", std::string(frames), end - frames.size(), 8);
}

/// Adds what is not mapped. The code keeps its place only if none of this is before it.
Result<void> write_sections(const Image& image, const ImageDwarf& dwarf, std::uint16_t type,
                            OutputFile& out) {
  ElfFile file(image.target, type);
  const bool is_mapped = image.begin.frames.size != 0;
  if (is_mapped) add_mapped_frames(file, image);
  add_symbols(file, image, add_code(file, image));
  add_bytes(file, ".strtab", SHT_STRTAB, image.code.names);
  // Without a table, perf's libunwind gives up; with a table that has no entry for an address, it
  // continues with frame pointers.
  const TargetBytes table = image.frames.table(0);
  if (!is_mapped && type == ET_DYN) add_bytes(file, ".eh_frame_hdr", SHT_PROGBITS, table.view(), 4);
  if (!is_mapped && !image.frames.is_relative()) {
    add_bytes(file, ".eh_frame", SHT_PROGBITS, image.frames.bytes(), image.target.address_size());
  }
  add_bytes(file, ".debug_abbrev", SHT_PROGBITS, dwarf.abbreviations.view());
  add_bytes(file, ".debug_info", SHT_PROGBITS, dwarf.info.view());
  add_lines(file, image);
  add_bytes(file, ".debug_str", SHT_PROGBITS, image.code.names, 1, SHF_MERGE | SHF_STRINGS);
  add_bytes(file, ".debug_ranges", SHT_PROGBITS, dwarf.ranges.view());
  add_bytes(file, ".debug_aranges", SHT_PROGBITS, dwarf.aranges.view());
  return file.write(out);
}

/// Writes an ELF file of that code, which is in clusters, with its symbols, frames and lines.
/// `type` is ET_EXEC, or ET_DYN if the addresses differ from those of the code in memory. Fails
/// with too_large.
Result<ImageBegin> write_image_file(const Timeline& timeline, const Target& target,
                                    ImageCode&& code, std::uint16_t type, ElfImageCounts& counts,
                                    OutputFile& out) {
  SourceLines lines(timeline.dump());
  const bool is_mapped = type == ET_DYN && is_within_reach(code);
  const auto addresses = is_mapped ? FrameAddresses::relative : FrameAddresses::absolute;
  Image image(timeline, target, std::move(code), addresses);
  collect_frames(image, lines.details(), addresses, counts);
  if (addresses == FrameAddresses::relative) put_frames_first(image);
  collect_lines(image, lines, counts);
  const ImageDwarf dwarf(image.target, image.code, image.lines);
  if (is_too_large(image, dwarf)) {
    return Failure(Error::too_large("more lines or frames than an ELF file can hold"));
  }
  const Result<void> written = write_sections(image, dwarf, type, out);
  if (!written) return failure(written);
  return image.begin;
}

std::vector<OrderedCode> read_loads(const Jitdump& dump, ImageCode& code) {
  std::vector<OrderedCode> all;
  Diagnostics ignored(1);  // reported when the timeline was made
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

Error too_large() { return Error::too_large("more code than an ELF file can describe"); }

/// Makes one piece per function. `all` is sorted by offset and has places. False if the names are
/// too long.
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

/// One cluster for code with bytes, and one for code without.
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

Result<ElfOfAllCode> write_elf_of_all_code(const Timeline& timeline,
                                           std::optional<std::uint16_t> machine, OutputFile& out) {
  const Jitdump& dump = timeline.dump();
  const Target target = machine ? target_of(dump.header(), *machine) : target_of(dump.header());
  ImageCode code;
  std::vector<OrderedCode> all = read_loads(dump, code);
  const std::size_t loads = all.size();
  if (loads >= std::numeric_limits<std::uint32_t>::max()) return Failure(too_large());
  // Above this, readers assume that offset plus code address wraps.
  const Address last = target.is_64 ? Address{1} << 62 : UINT32_MAX;
  const OrderedEnds ends = order_code(all, last);
  std::erase_if(all, [](const OrderedCode& one) { return one.place == 0; });
  if (!describe(dump, all, code)) return Failure(too_large());
  make_pieces(code);
  make_two_clusters(ends, code);
  ElfOfAllCode made;
  count_functions(code, loads, made.counts);
  const Result<ImageBegin> begin =
      write_image_file(timeline, target, std::move(code), ET_DYN, made.counts, out);
  if (!begin) return failure(begin);
  made.frames = begin->frames;
  made.frames_in_memory = begin->frames_in_memory;
  made.code.reserve(all.size());
  for (const OrderedCode& one : all) {
    made.code.push_back({one.load, one.place + begin->shift, one.range.size});
  }
  return made;
}

Result<ElfImageCounts> write_elf_image(const Timeline& timeline, std::uint64_t time,
                                       OutputFile& out) {
  ElfImageCounts counts;
  const Target target = target_of(timeline.dump().header());
  Result<ImageCode> code = collect_code(timeline, time, target, counts);
  if (!code) return failure(code);
  make_clusters(*code);
  const Result<ImageBegin> written =
      write_image_file(timeline, target, *std::move(code), ET_EXEC, counts, out);
  if (!written) return failure(written);
  return counts;
}

}  // namespace perfmap

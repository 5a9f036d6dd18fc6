// SPDX-License-Identifier: MIT
#include "inject/image_code.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace perfmap {

namespace {

/// A piece whose function has no number yet.
struct Placed {
  AddressRange range;
  std::uint64_t load;
  std::uint64_t placed;
  AddressRange function;
};

std::vector<Placed> placed_at(const Timeline& timeline, std::uint64_t time, const Target& target,
                              ElfImageCounts& counts) {
  std::vector<Placed> all;
  std::vector<std::uint64_t> beyond;
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const AddressRange range = AddressRange::clamped(placed.piece.begin, placed.piece.size);
    if (range.size == 0) return;
    if (range.end() > target.last_address()) {
      beyond.push_back(placed.code.load);
    } else {
      all.push_back({range, placed.code.load, placed.code.placed, placed.code.range});
    }
  });
  std::sort(beyond.begin(), beyond.end());
  counts.out_of_reach =
      static_cast<std::uint64_t>(std::unique(beyond.begin(), beyond.end()) - beyond.begin());
  return all;
}

Error too_large() { return Error::too_large("more code than an ELF file can describe"); }

/// Numbers the functions and lists their pieces.
void number_functions(const std::vector<Placed>& placed, ImageCode& code) {
  code.by_function.resize(placed.size());
  std::iota(code.by_function.begin(), code.by_function.end(), 0u);
  const auto key = [&](std::uint32_t i) { return std::pair(placed[i].load, placed[i].placed); };
  std::sort(code.by_function.begin(), code.by_function.end(),
            [&](std::uint32_t a, std::uint32_t b) {
              return std::tuple(key(a), a) < std::tuple(key(b), b);
            });
  code.pieces.resize(placed.size());
  for (std::uint32_t at = 0; at < placed.size(); ++at) {
    const std::uint32_t piece = code.by_function[at];
    if (at == 0 || key(code.by_function[at - 1]) != key(piece)) {
      ImageFunction function;
      std::tie(function.load, function.placed) = key(piece);
      function.range = placed[piece].function;
      function.first = at;
      code.functions.push_back(function);
    }
    ++code.functions.back().count;
    code.pieces[piece] = {placed[piece].range,
                          static_cast<std::uint32_t>(code.functions.size() - 1), 0};
  }
}

/// Reads names and other fields of the LOAD records. False if the names are too long.
bool read_loads(const Jitdump& dump, ImageCode& code) {
  ImageFunction* previous = nullptr;
  for (ImageFunction& function : code.functions) {
    const auto record = dump.record_at(function.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (load) {
      function.at_load = load->range;
      function.has_code = load->code.size() >= function.range.size && !load->code.empty();
    }
    if (previous != nullptr && previous->load == function.load) {
      previous->is_stray = true;
      function.name = previous->name;
    } else if (load && !load->name.empty()) {
      if (code.names.size() + load->name.size() >= std::numeric_limits<std::uint32_t>::max()) {
        return false;
      }
      function.name = static_cast<std::uint32_t>(code.names.size());
      code.names.append(load->name).push_back('\0');
    }
    previous = &function;
  }
  for (ImageFunction& function : code.functions) function.has_code &= !function.is_stray;
  return true;
}

void count_functions(const Timeline& timeline, std::uint64_t time, const ImageCode& code,
                     ElfImageCounts& counts) {
  std::uint64_t loaded = timeline.load_count();
  if (time != Timeline::kEnd) {
    loaded = 0;
    Diagnostics ignored(1);
    timeline.dump().for_each(ignored, [&](const JitRecord& record) {
      if (record.is(JitRecordKind::load) && timeline.time_of(record) <= time) ++loaded;
    });
  }
  counts.functions = code.functions.size();
  std::uint64_t strays = 0;
  for (const ImageFunction& function : code.functions) {
    std::uint64_t left = 0;
    for (std::uint32_t i = 0; i < function.count; ++i) left += code.piece(function, i).range.size;
    if (left < function.range.size) ++counts.cut;
    if (!function.has_code && function.range.size != 0) ++counts.without_code;
    if (function.is_stray) ++strays;
  }
  const std::uint64_t there = counts.functions - strays + counts.out_of_reach;
  counts.overlaid = loaded > there ? loaded - there : 0;
}

/// Longer gaps are not filled.
constexpr std::uint64_t kLongestFilling = std::uint64_t{64} << 10;
/// Filling that is allowed even in a small dump.
constexpr std::uint64_t kFreeFilling = std::uint64_t{1} << 20;
/// Readers search sections and segments linearly, and their count has 16 bits.
constexpr std::size_t kMaxSections = 4096;

std::vector<bool> gaps_to_fill(const ImageCode& code, const std::vector<std::uint32_t>& with_code) {
  std::vector<AddressRange> ranges;
  for (const std::uint32_t piece : with_code) ranges.push_back(code.pieces[piece].range);
  return perfmap::gaps_to_fill(ranges, {kLongestFilling, kFreeFilling});
}

void append(ImageCode& code, std::uint32_t piece, bool has_code, bool joins) {
  ImagePiece& added = code.pieces[piece];
  if (!joins) {
    code.clusters.push_back({added.range, has_code, true, piece, 0});
  }
  ImageCluster& cluster = code.clusters.back();
  cluster.range.size = added.range.end() - cluster.range.begin;
  ++cluster.count;
  added.cluster = static_cast<std::uint32_t>(code.clusters.size() - 1);
}

/// A piece without code joins the previous cluster if that has no code either and is near; inside a
/// filled gap, it is part of the filling.
void join_pieces(ImageCode& code, const std::vector<std::uint32_t>& with_code,
                 const std::vector<bool>& filled) {
  std::size_t next = 0;  // index in with_code
  for (std::uint32_t piece = 0; piece < code.pieces.size(); ++piece) {
    const bool in_filled_gap = next > 0 && filled[next - 1];
    if (next < with_code.size() && with_code[next] == piece) {
      append(code, piece, true, in_filled_gap);
      ++next;
      continue;
    }
    const bool near =
        !code.clusters.empty() && !code.clusters.back().has_code &&
        code.pieces[piece].range.begin - code.clusters.back().range.end() <= kLongestFilling;
    append(code, piece, false, in_filled_gap || near);
  }
}

void leave_out_smallest(std::vector<ImageCluster>& clusters) {
  if (clusters.size() <= kMaxSections) return;
  std::vector<std::uint32_t> order(clusters.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto worth = [&](std::uint32_t i) {
    return std::tuple(!clusters[i].has_code, ~clusters[i].range.size, i);
  };
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(kMaxSections);
  std::nth_element(order.begin(), last, order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return worth(a) < worth(b); });
  for (auto i = last; i != order.end(); ++i) clusters[*i].has_section = false;
}

}  // namespace

Result<ImageCode> collect_code(const Timeline& timeline, std::uint64_t time, const Target& target,
                               ElfImageCounts& counts) {
  const std::vector<Placed> placed = placed_at(timeline, time, target, counts);
  if (placed.size() >= std::numeric_limits<std::uint32_t>::max()) return Failure(too_large());
  ImageCode code;
  number_functions(placed, code);
  if (!read_loads(timeline.dump(), code)) return Failure(too_large());
  count_functions(timeline, time, code, counts);
  return code;
}

void make_clusters(ImageCode& code) {
  std::vector<std::uint32_t> with_code;
  for (std::uint32_t i = 0; i < code.pieces.size(); ++i) {
    if (code.functions[code.pieces[i].function].has_code) with_code.push_back(i);
  }
  join_pieces(code, with_code, gaps_to_fill(code, with_code));
  leave_out_smallest(code.clusters);
}

}  // namespace perfmap

#include "modules/image_frames.hpp"

#include <algorithm>
#include <dwarf.h>
#include <optional>

namespace perfmap {
namespace {

/// Of .eh_frame_hdr, before the entries.
constexpr std::size_t kTableHead = 12;

/// perf, CPython and V8 take frames to lie behind the code, at the next multiple of 8.
Address address_of_frames(const AddressRange& at_load) noexcept {
  return at_load.begin + (at_load.size + 7) / 8 * 8;
}

/// What is left of a frame, where its code lies now; nothing where its first byte is overlaid:
/// instructions count from there.
std::optional<AddressRange> range_now(const ImageCode& code, const ImageFunction& function,
                                      const AddressRange& at_load) noexcept {
  if (!function.at_load.contains(at_load.begin)) return std::nullopt;
  const std::uint64_t offset = at_load.begin - function.at_load.begin;
  if (offset >= function.range.size) return std::nullopt;
  const Address begin = function.range.begin + offset;
  const auto* const first = code.by_function.data() + function.first;
  const auto* const after = std::upper_bound(
      first, first + function.count, begin,
      [&](Address a, std::uint32_t piece) { return a < code.pieces[piece].range.begin; });
  if (after == first) return std::nullopt;
  const AddressRange& piece = code.pieces[*(after - 1)].range;
  if (!piece.contains(begin)) return std::nullopt;
  return AddressRange{begin, std::min(at_load.size, piece.end() - begin)};
}

}  // namespace

void ImageFrames::add_moved(const ImageCode& code, const ImageFunction& function,
                            std::string_view frames, std::uint64_t distance,
                            ElfImageCounts& counts) {
  std::unordered_map<std::uint64_t, std::size_t> known;  // CIEs of this function
  const Address address = address_of_frames(function.at_load);
  const auto take = [&](const FrameFde& frame) {
    const std::optional<AddressRange> range = range_now(code, function, frame.range);
    if (!range) {
      ++counts.dropped_frames;
      return;
    }
    const auto [at, is_new] = known.emplace(frame.cie_offset, 0);
    if (is_new) at->second = cie(*frame.cie);
    fde(at->second, {range->begin + distance, range->size}, frame.instructions);
    ++counts.frames;
  };
  const std::uint64_t unreadable = for_each_fde(frames, address, out_.target(), take);
  counts.dropped_frames += unreadable;
}

std::size_t ImageFrames::cie(const FrameCie& cie) {
  TargetBytes content(out_.target());
  content.u8(cie.version).raw("zR").raw(cie.is_signal_frame ? "S" : "");
  content.raw(cie.uses_b_key ? "B" : "").u8(0).raw(cie.factors);
  const bool is_relative = addresses_ == FrameAddresses::relative;
  content.uleb(1).u8(DW_EH_PE_absptr | (is_relative ? DW_EH_PE_pcrel : 0)).raw(cie.instructions);
  const auto [at, is_new] = cies_.emplace(content.view(), out_.size());
  if (is_new) {
    out_.u32(0).u32(0).raw(content.view());
    end_entry(at->second);
  }
  return at->second;
}

void ImageFrames::fde(std::size_t cie, const AddressRange& range, std::string_view instructions) {
  const std::size_t start = out_.size();
  if (addresses_ == FrameAddresses::relative) places_.push_back({start, range.begin});
  out_.u32(0).u32(start + 4 - cie);
  out_.address(range.begin).address(range.size).uleb(0).raw(instructions);
  end_entry(start);
}

void ImageFrames::end_entry(std::size_t start) {
  out_.align(out_.target().address_size());  // DW_CFA_nop is 0
  out_.patch_u32(start, out_.size() - start - 4);
}

void ImageFrames::finish() {
  if (out_.size() != 0) out_.u32(0);
}

void ImageFrames::place(Address at, std::uint64_t shift) {
  constexpr std::size_t kBeforeAddress = 8;  // length, and distance of the CIE
  at_ = at;
  for (Place& place : places_) {
    const std::size_t field = place.fde + kBeforeAddress;
    place.code += shift;
    out_.patch_address(field, place.code - (at + field));
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.code < b.code; });
}

// Some readers count entries from 1: for them there is one more.
std::size_t ImageFrames::table_size() const noexcept {
  return kTableHead + 8 * (places_.size() + 1);
}

TargetBytes ImageFrames::table(Address at) const {
  const auto is_near = [&](Address a) { return a - at + (Address{1} << 31) <= UINT32_MAX; };
  TargetBytes bytes(out_.target());
  bytes.u8(1).u8(DW_EH_PE_pcrel | DW_EH_PE_sdata4).u8(DW_EH_PE_udata4);
  bytes.u8(DW_EH_PE_datarel | DW_EH_PE_sdata4);
  const bool has_places = at_ != 0;
  bytes.u32(has_places ? at_ - (at + 4) : 0).u32(0);
  std::uint64_t count = 0;
  for (const Place& place : places_) {
    if (!has_places || !is_near(place.code) || !is_near(at_ + place.fde)) continue;
    bytes.u32(place.code - at).u32(at_ + place.fde - at);
    ++count;
  }
  bytes.patch_u32(8, count);
  while (bytes.size() < table_size()) bytes.u32(0);
  return bytes;
}

std::uint64_t distance_of(const ImageFunction& function) noexcept {
  return function.at_load.begin - function.range.begin;
}

bool is_within_reach(const ImageCode& code) noexcept {
  constexpr std::uint64_t kReach = std::uint64_t{1} << 30;
  Address lowest = UINT64_MAX;
  Address highest = code.highest_move;
  for (const ImageFunction& function : code.functions) {
    lowest = std::min(lowest, function.at_load.begin);
    highest = std::max(highest, function.at_load.begin);
  }
  if (code.functions.empty()) return true;
  return lowest <= code.lowest_move && highest - lowest < kReach;
}

std::uint64_t main_distance(const ImageCode& code) {
  const auto lowest = std::min_element(code.functions.begin(), code.functions.end(),
                                       [](const ImageFunction& a, const ImageFunction& b) {
                                         return a.at_load.begin < b.at_load.begin;
                                       });
  return lowest == code.functions.end() ? 0 : distance_of(*lowest);
}

}  // namespace perfmap

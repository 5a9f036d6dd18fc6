// SPDX-License-Identifier: MIT
#include "inject/image_frames.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <dwarf.h>
#include <optional>
#include <unordered_map>

#include "base/cursor.hpp"

namespace perfmap {

namespace {

/// Numbers of frames, read from a cursor.

inline std::uint8_t read_u8(Cursor& cursor) noexcept {
  const std::string_view byte = cursor.bytes(1);
  return byte.empty() ? 0 : static_cast<std::uint8_t>(byte.front());
}

inline std::uint16_t read_u16(Cursor& cursor, std::endian order) noexcept {
  const std::string_view bytes = cursor.bytes(2);
  std::uint16_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return order == std::endian::native ? value : __builtin_bswap16(value);
}

/// Bits beyond 64 are dropped.
inline std::uint64_t read_uleb(Cursor& cursor) noexcept {
  std::uint64_t value = 0;
  std::uint8_t byte = 0x80;
  for (unsigned shift = 0; (byte & 0x80) != 0 && cursor.ok(); shift += 7) {
    byte = read_u8(cursor);
    if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
  }
  return value;
}

/// The operands of an opcode: fixed bytes, LEB128 numbers (signed and unsigned have the same
/// length), a block.
struct Operands {
  std::uint8_t fixed = 0;
  std::uint8_t numbers = 0;
  bool block = false;
  bool known = true;
};

constexpr Operands kUnknown{0, 0, false, false};

/// Opcodes whose two high bits are clear. DW_CFA_set_loc counts as unknown: it contains an address,
/// and no compiler uses it.
constexpr std::array<Operands, 64> operands_by_opcode() {
  std::array<Operands, 64> all{};
  for (Operands& operands : all) operands = kUnknown;
  for (const unsigned none : {0x00u, 0x0au, 0x0bu, 0x2du}) all[none] = {};
  all[0x02] = {1, 0, false, true};  // advance_loc1, 2, 4, MIPS_advance_loc8
  all[0x03] = {2, 0, false, true};
  all[0x04] = {4, 0, false, true};
  all[0x1d] = {8, 0, false, true};
  for (const unsigned one : {0x06u, 0x07u, 0x08u, 0x0du, 0x0eu, 0x13u, 0x2eu}) {
    all[one] = {0, 1, false, true};
  }
  for (const unsigned two : {0x05u, 0x09u, 0x0cu, 0x11u, 0x12u, 0x14u, 0x15u, 0x2fu}) {
    all[two] = {0, 2, false, true};
  }
  all[0x0f] = {0, 0, true, true};  // def_cfa_expression
  all[0x10] = {0, 1, true, true};  // expression, val_expression
  all[0x16] = {0, 1, true, true};
  return all;
}

constexpr std::array<Operands, 64> kOperands = operands_by_opcode();

Operands operands_of(std::uint8_t opcode) noexcept {
  switch (opcode >> 6) {
    case 0: return kOperands[opcode];
    case 2: return {0, 1, false, true};  // DW_CFA_offset
    default: return {};                  // DW_CFA_advance_loc, DW_CFA_restore
  }
}

}  // namespace

bool can_be_moved(std::string_view instructions) noexcept {
  Cursor cursor(instructions, std::endian::native);
  while (!cursor.rest().empty()) {
    const Operands operands = operands_of(read_u8(cursor));
    if (!operands.known) return false;
    cursor.skip(operands.fixed);
    for (unsigned i = 0; i < operands.numbers; ++i) read_uleb(cursor);
    if (operands.block) cursor.skip(read_uleb(cursor));
    if (!cursor.ok()) return false;
  }
  return true;
}

namespace {

constexpr std::uint8_t kFormat = 0x0f;
constexpr std::uint8_t kBase = 0x70;

/// A pointer or, without its base, a size. Nothing for formats that a JIT does not need.
std::optional<std::uint64_t> read_number(Cursor& cursor, std::uint8_t encoding,
                                         const Target& target) noexcept {
  const auto with_sign = [](auto value) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  };
  switch (encoding & kFormat) {
    case DW_EH_PE_absptr: return target.is_64 ? cursor.u64() : cursor.u32();
    case DW_EH_PE_udata2: return read_u16(cursor, target.order);
    case DW_EH_PE_udata4: return cursor.u32();
    case DW_EH_PE_sdata2:
      return with_sign(static_cast<std::int16_t>(read_u16(cursor, target.order)));
    case DW_EH_PE_sdata4: return with_sign(cursor.i32());
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: return cursor.u64();
    default: return std::nullopt;
  }
}

std::optional<Address> read_pointer(Cursor& cursor, std::uint8_t encoding, Address field,
                                    const Target& target) noexcept {
  const std::uint8_t base = encoding & kBase;
  if ((encoding & DW_EH_PE_indirect) != 0 || (base != 0 && base != DW_EH_PE_pcrel)) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> value = read_number(cursor, encoding, target);
  if (value && base == DW_EH_PE_pcrel) *value += field;
  if (value && !target.is_64) *value &= UINT32_MAX;
  return value;
}

/// Reads the augmentation. Personality routines and language data are skipped: they are only used
/// to throw exceptions.
bool read_augmentation(std::string_view letters, Cursor& cursor, const Target& target,
                       FrameCie& cie) noexcept {
  if (letters.empty()) return true;
  if (letters.front() != 'z') return false;
  cie.has_size = true;
  Cursor data(cursor.bytes(read_uleb(cursor)), target.order);
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R': cie.encoding = read_u8(data); break;
      case 'L': read_u8(data); break;
      case 'P':
        if (!read_number(data, read_u8(data), target)) return false;
        break;
      case 'S': cie.is_signal_frame = true; break;
      case 'B': cie.uses_b_key = true; break;
      default: return false;
    }
  }
  return data.ok();
}

std::optional<FrameCie> read_cie(std::string_view body, const Target& target) noexcept {
  Cursor cursor(body, target.order);
  FrameCie cie;
  cie.version = read_u8(cursor);
  if (cie.version != 1 && cie.version != 3) return std::nullopt;
  const std::string_view letters = cursor.c_string();
  const std::size_t factors = cursor.position();
  read_uleb(cursor);
  read_uleb(cursor);
  if (cie.version == 1) {
    read_u8(cursor);
  } else {
    read_uleb(cursor);
  }
  cie.factors = body.substr(factors, cursor.position() - factors);
  if (!read_augmentation(letters, cursor, target, cie) || !cursor.ok()) return std::nullopt;
  cie.instructions = cursor.rest();
  if (!can_be_moved(cie.instructions)) return std::nullopt;
  return cie;
}

/// `address` is the address of the body.
std::optional<FrameFde> read_fde(std::string_view body, const FrameCie& cie, Address address,
                                 const Target& target) noexcept {
  Cursor cursor(body, target.order);
  const std::optional<Address> begin = read_pointer(cursor, cie.encoding, address, target);
  const std::optional<std::uint64_t> size = read_number(cursor, cie.encoding, target);
  if (!begin || !size || *size == 0) return std::nullopt;
  if (cie.has_size) cursor.skip(read_uleb(cursor));
  if (!cursor.ok() || !can_be_moved(cursor.rest())) return std::nullopt;
  FrameFde fde;
  fde.range = AddressRange::clamped(*begin, *size);
  fde.cie = &cie;
  fde.instructions = cursor.rest();
  return fde;
}

}  // namespace

std::uint64_t for_each_fde(std::string_view frames, Address address, const Target& target,
                           const std::function<void(const FrameFde&)>& visit) {
  std::unordered_map<std::uint64_t, FrameCie> cies;
  std::uint64_t dropped = 0;
  Cursor cursor(frames, target.order);
  while (cursor.rest().size() >= 4) {
    const std::uint32_t length = cursor.u32();
    if (length == 0) break;
    const std::size_t start = cursor.position();
    if (length < 4 || length > cursor.rest().size()) return dropped + 1;
    const std::uint32_t id = cursor.u32();
    const std::string_view body = cursor.bytes(length - 4);
    if (id == 0) {
      if (const auto cie = read_cie(body, target)) cies.emplace(start - 4, *cie);
      continue;
    }
    const auto cie = id <= start ? cies.find(start - id) : cies.end();
    std::optional<FrameFde> fde;
    if (cie != cies.end()) fde = read_fde(body, cie->second, address + start + 4, target);
    if (fde) {
      fde->cie_offset = cie->first;
      visit(*fde);
    } else {
      ++dropped;
    }
  }
  return dropped;
}

namespace {

/// Bytes of .eh_frame_hdr before its entries.
constexpr std::size_t kTableHead = 12;

/// perf, CPython and V8 expect the frames after the code, at the next multiple of 8.
Address address_of_frames(const AddressRange& at_load) noexcept {
  return at_load.begin + (at_load.size + 7) / 8 * 8;
}

/// The remaining range of a frame at the current address of its code. Nothing if its first byte is
/// overlaid, because the instructions count from there.
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
  out_.align(out_.target().address_size());  // DW_CFA_nop is 0, so zeros are valid padding
  out_.patch_u32(start, out_.size() - start - 4);
}

void ImageFrames::finish() {
  if (out_.size() != 0) out_.u32(0);
}

void ImageFrames::place(Address at, std::uint64_t shift) {
  constexpr std::size_t kBeforeAddress = 8;  // length and CIE pointer
  at_ = at;
  for (Place& place : places_) {
    const std::size_t field = place.fde + kBeforeAddress;
    place.code += shift;
    out_.patch_address(field, place.code - (at + field));
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.code < b.code; });
}

// Some readers count entries from 1, so there is one extra.
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

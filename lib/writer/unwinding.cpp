// SPDX-License-Identifier: MIT
#include "writer/unwinding.hpp"

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/cursor.hpp"
#include "base/utf8.hpp"

namespace perfmap {
namespace {

/// Appends bytes; after they did not fit, nothing more.
class Out {
 public:
  explicit Out(std::span<char> room) noexcept : room_(room) {}
  std::size_t at() const noexcept { return at_; }
  bool fits() const noexcept { return fits_; }
  void raw(std::string_view bytes) noexcept {
    if (bytes.size() > room_.size() - at_) fits_ = false;
    if (!fits_ || bytes.empty()) return;
    std::memcpy(room_.data() + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void u8(unsigned value) noexcept {
    const char byte = static_cast<char>(value);
    raw({&byte, 1});
  }
  void u32(std::uint64_t value) noexcept {
    const auto narrow = static_cast<std::uint32_t>(value);
    raw({reinterpret_cast<const char*>(&narrow), sizeof narrow});
  }
  void uleb(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) u8(static_cast<unsigned>(value & 0x7f) | 0x80);
    u8(static_cast<unsigned>(value));
  }
  void sleb(std::int64_t value) noexcept {
    for (;;) {
      const auto low = static_cast<unsigned>(value & 0x7f);
      value >>= 7;
      const bool is_last = value == ((low & 0x40) != 0 ? -1 : 0);
      u8(is_last ? low : low | 0x80);
      if (is_last) return;
    }
  }
  /// Ends the record that begins at `begin`, whose length is still missing: pads it with no-ops.
  void end_record(std::size_t begin) noexcept {
    while (fits_ && (at_ - begin) % 4 != 0) u8(0);
    const auto length = static_cast<std::uint32_t>(at_ - begin - 4);
    if (fits_) std::memcpy(room_.data() + begin, &length, sizeof length);
  }

 private:
  std::span<char> room_;
  std::size_t at_ = 0;
  bool fits_ = true;
};

/// A CIE whose FDEs have addresses of that encoding.
void write_cie(Out& out, const FrameRules& rules, unsigned char encoding) noexcept {
  out.u32(0);
  out.u32(0);
  out.u8(1);
  out.raw(rules.is_signal_frame ? std::string_view("zRS\0", 4) : std::string_view("zR\0", 3));
  out.uleb(rules.factors.code);
  out.sleb(rules.factors.data);
  out.uleb(rules.factors.return_register);
  out.uleb(1);
  out.u8(encoding);
  out.raw(rules.begin);
  out.end_record(0);
}

}  // namespace

UnwindingSizes write_unwinding(std::span<char> room, const FrameRules& rules,
                               std::uint64_t code_size, std::uint64_t covered) noexcept {
  const std::uint64_t before = frame_offset(code_size);  // from the code to the frame
  if (before > INT32_MAX) return {};
  Out out(room);
  write_cie(out, rules, kPcrelSdata4);
  const std::size_t fde = out.at();
  out.u32(0);
  out.u32(fde + 4);
  out.u32(0 - (before + fde + 8));  // to the code, from here
  out.u32(covered);
  out.u8(0);
  out.raw(rules.rest);
  out.end_record(fde);
  out.u32(0);  // ends .eh_frame

  const std::size_t header = out.at();
  constexpr char kHeader[] = {1, kPcrelSdata4, 0x03, 0x3b};
  out.raw({kHeader, sizeof kHeader});
  out.u32(0 - (header + 4));  // to the frame, from here
  out.u32(1);
  out.u32(0 - (before + header));
  out.u32(fde - header);
  return out.fits() ? UnwindingSizes{header, out.at() - header} : UnwindingSizes();
}

std::size_t write_exception_frame(std::span<char> room, const FrameRules& rules, const void* begin,
                                  std::size_t size) noexcept {
  constexpr unsigned char kAbsolute = 0;
  Out out(room);
  write_cie(out, rules, kAbsolute);
  const std::size_t fde = out.at();
  out.u32(0);
  out.u32(fde + 4);
  out.raw({reinterpret_cast<const char*>(&begin), sizeof begin});
  out.raw({reinterpret_cast<const char*>(&size), sizeof size});
  out.u8(0);
  out.raw(rules.rest);
  out.end_record(fde);
  out.u32(0);
  return out.fits() ? out.at() : 0;
}

namespace {

#if defined(__x86_64__) && defined(__LP64__)
constexpr FrameFactors kFactors{1, -8, 16};
constexpr unsigned char kSp = 7;
// The CFA is rbp + 16; rbp and the return address are below it.
constexpr char kFramePointer[] = {kDefCfa, 6, 16, char(kOffset | 6), 2, char(kOffset | 16), 1};
constexpr char kReturnAddress[] = {char(kOffset | 16), 1};
constexpr std::uint32_t kLeastDistance = 8, kAlignment = 8;
constexpr bool kIsKnown = true;
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
constexpr FrameFactors kFactors{4, -8, 30};
constexpr unsigned char kSp = 31;
// The CFA is x29 + 16; x29 and x30 are below it.
constexpr char kFramePointer[] = {kDefCfa, 29, 16, char(kOffset | 29), 2, char(kOffset | 30), 1};
constexpr std::string_view kReturnAddress;  // in x30
constexpr std::uint32_t kLeastDistance = 0, kAlignment = 16;
constexpr bool kIsKnown = true;
#else
constexpr FrameFactors kFactors{};
constexpr unsigned char kSp = 0;
constexpr std::string_view kFramePointer, kReturnAddress;
constexpr std::uint32_t kLeastDistance = 0, kAlignment = 1;
constexpr bool kIsKnown = false;
#endif

template <std::size_t kSize>
constexpr std::string_view text_of(const char (&bytes)[kSize]) noexcept {
  return {bytes, kSize};
}
[[maybe_unused]] constexpr std::string_view text_of(std::string_view bytes) noexcept {
  return bytes;
}

}  // namespace

int frame_pointer_rules(FrameRules& rules) noexcept {
  rules = {kFactors, false, text_of(kFramePointer), {}};
  return kIsKnown ? 0 : ENOTSUP;
}

int no_frame_rules(FrameRules& rules, std::span<char> room, std::uint32_t offset) noexcept {
  if (offset < kLeastDistance || offset % kAlignment != 0) return EINVAL;
  Out out(room);
  out.u8(kDefCfa);
  out.u8(kSp);
  out.uleb(offset);
  out.raw(text_of(kReturnAddress));
  rules = {kFactors, false, {room.data(), out.at()}, {}};
  return !kIsKnown ? ENOTSUP : out.fits() ? 0 : ENOBUFS;
}

namespace {

constexpr std::endian kOrder = std::endian::native;

std::uint64_t read_uleb(Cursor& cursor) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; cursor.ok(); shift += 7) {
    const std::uint64_t byte = cursor.u8();
    if (shift < 64) value |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::int64_t read_sleb(Cursor& cursor) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; cursor.ok();) {
    const std::uint64_t byte = cursor.u8();
    if (shift < 64) value |= (byte & 0x7f) << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    break;
  }
  return static_cast<std::int64_t>(value);
}

/// The size of a pointer in that DW_EH_PE_* encoding; 0: not fixed, or unknown.
std::size_t pointer_size(unsigned encoding) noexcept {
  switch (encoding & 0x0f) {
    case 0x00: return sizeof(void*);
    case 0x02:
    case 0x0a: return 2;
    case 0x03:
    case 0x0b: return 4;
    case 0x04:
    case 0x0c: return 8;
    default: return 0;
  }
}

/// The value of such a pointer at `cursor`, which lies at `address`.
std::uint64_t read_pointer(Cursor& cursor, unsigned encoding, std::uint64_t address) noexcept {
  std::uint64_t value = 0;
  switch (pointer_size(encoding)) {
    case 2: value = cursor.u16(); break;
    case 4: value = cursor.u32(); break;
    case 8: value = cursor.u64(); break;
    default: cursor.fail();
  }
  const bool is_signed = (encoding & 0x08) != 0;
  if (is_signed && pointer_size(encoding) == 2)
    value = static_cast<std::uint64_t>(static_cast<std::int16_t>(value));
  if (is_signed && pointer_size(encoding) == 4)
    value = static_cast<std::uint64_t>(static_cast<std::int32_t>(value));
  constexpr unsigned kRelative = 0x10;
  return (encoding & 0x70) == kRelative ? value + address : value;
}

/// The record at the start of `bytes`, with its length; empty at the end of a section, and if it is
/// damaged or in 64-bit DWARF, which no compiler writes here.
std::string_view record_at(std::string_view bytes) noexcept {
  Cursor cursor(bytes, kOrder);
  const std::uint64_t length = cursor.u32();
  const bool is_whole = cursor.ok() && length >= 4 && length < UINT32_MAX;
  return is_whole && length <= bytes.size() - 4 ? first_bytes(bytes, length + 4)
                                                : std::string_view();
}

struct Cie {
  FrameFactors factors;
  bool has_augmentation = false;  // the FDE has augmentation data
  bool is_signal_frame = false;
  unsigned encoding = 0;  // of the FDE's addresses
  std::string_view instructions;
};

int read_cie(std::string_view bytes, Cie& cie) noexcept {
  constexpr std::size_t kHead = 8;  // length and id
  Cursor cursor(record_at(bytes), kOrder);
  cursor.skip(kHead);
  const unsigned version = cursor.u8();
  std::string_view letters = cursor.c_string();
  cie.factors.code = read_uleb(cursor);
  cie.factors.data = read_sleb(cursor);
  cie.factors.return_register = version == 1 ? cursor.u8() : read_uleb(cursor);
  if (!cursor.ok() || (version != 1 && version != 3)) return EINVAL;
  if (!letters.empty()) {
    if (letters[0] != 'z') return ENOTSUP;
    cie.has_augmentation = true;
    Cursor data(cursor.bytes(read_uleb(cursor)), kOrder);
    letters.remove_prefix(1);
    for (const char letter : letters) {
      if (letter == 'R') {
        cie.encoding = data.u8();
      } else if (letter == 'P') {
        const unsigned encoding = data.u8();
        if (pointer_size(encoding) == 0) return ENOTSUP;
        data.skip(pointer_size(encoding));
      } else if (letter == 'L') {
        data.skip(1);
      } else if (letter == 'S') {
        cie.is_signal_frame = true;
      } else if (letter != 'B') {
        return ENOTSUP;
      }
    }
    if (!data.ok()) return EINVAL;
  }
  cie.instructions = cursor.rest();
  return cursor.ok() ? 0 : EINVAL;
}

/// What an FDE at `address` says.
struct Fde {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::string_view instructions;
};

int read_fde(std::string_view bytes, const Cie& cie, std::uint64_t address, Fde& fde) noexcept {
  Cursor cursor(record_at(bytes), kOrder);
  cursor.skip(8);
  fde.begin = read_pointer(cursor, cie.encoding, address + 8);
  fde.size = read_pointer(cursor, cie.encoding & 0x0f, 0);
  if (cie.has_augmentation) cursor.skip(read_uleb(cursor));
  fde.instructions = cursor.rest();
  return cursor.ok() ? 0 : EINVAL;
}

}  // namespace

int rules_of_fde(FrameRules& rules, std::string_view cie_bytes,
                 std::string_view fde_bytes) noexcept {
  Cie cie;
  Fde fde;
  if (const int error = read_cie(cie_bytes, cie); error != 0) return error;
  if (const int error = read_fde(fde_bytes, cie, 0, fde); error != 0) return error;
  rules = {cie.factors, cie.is_signal_frame, cie.instructions, fde.instructions};
  return 0;
}

int find_fde(std::string_view section, std::uint64_t address, std::uint64_t code,
             std::string_view& cie_bytes, std::string_view& fde_bytes) noexcept {
  constexpr std::size_t kId = 4;
  for (std::size_t at = 0; at < section.size();) {
    const std::string_view record = record_at(without_first(section, at));
    if (record.empty()) break;
    Cursor cursor(without_first(record, kId), kOrder);
    const std::uint32_t back = cursor.u32();  // from here to the CIE; 0: this is a CIE
    Cie cie;
    Fde fde;
    if (back != 0 && back <= at + kId) {
      cie_bytes = record_at(without_first(section, at + kId - back));
      if (read_cie(cie_bytes, cie) == 0 && read_fde(record, cie, address + at, fde) == 0 &&
          code - fde.begin < fde.size) {
        fde_bytes = record;
        return 0;
      }
    }
    at += record.size();
  }
  return ENOENT;
}

}  // namespace perfmap

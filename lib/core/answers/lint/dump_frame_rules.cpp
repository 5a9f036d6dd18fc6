#include <algorithm>
#include <vector>

#include "answers/lint/dump_rules.hpp"
#include "base/cursor.hpp"

namespace perfmap::lint_rules {
namespace {

// Source: Linux Standard Base, Core, "Exception Frames"; DWARF 4, section 6.4.

constexpr unsigned kOmitted = 0xff;
constexpr unsigned kPcRelative = 0x10;
constexpr unsigned kDataRelativeSdata4 = 0x3b;

/// Producers end a frame at the last instruction, and code at the next aligned address.
constexpr std::uint64_t kTail = 16;

/// Reads what Cursor does not have.
class FrameCursor {
 public:
  FrameCursor(std::string_view bytes, std::endian order, unsigned pointer_size) noexcept
      : cursor_(bytes, order), order_(order), pointer_size_(pointer_size) {}

  unsigned u8() noexcept {
    const std::string_view byte = cursor_.bytes(1);
    return byte.empty() ? 0 : static_cast<unsigned char>(byte[0]);
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; cursor_.ok(); shift += 7) {
      const unsigned byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  /// A pointer in this encoding, sign-extended; nothing for an encoding that is not known.
  std::optional<std::uint64_t> pointer(unsigned encoding) noexcept {
    switch (encoding & 0x0f) {
      case 0x0: return pointer_size_ == 4 ? cursor_.u32() : cursor_.u64();
      case 0x2: return u16();
      case 0x3: return cursor_.u32();
      case 0x4:
      case 0xc: return cursor_.u64();
      case 0xa: return static_cast<std::uint64_t>(static_cast<std::int16_t>(u16()));
      case 0xb: return static_cast<std::uint64_t>(std::int64_t{cursor_.i32()});
      default: return std::nullopt;
    }
  }
  std::uint32_t u32() noexcept { return cursor_.u32(); }
  std::string_view c_string() noexcept { return cursor_.c_string(); }
  void skip(std::uint64_t count) noexcept { cursor_.skip(count); }
  bool ok() const noexcept { return cursor_.ok(); }
  std::size_t position() const noexcept { return cursor_.position(); }

 private:
  std::uint16_t u16() noexcept {
    const unsigned first = u8();
    const unsigned second = u8();
    const bool little = order_ == std::endian::little;
    return static_cast<std::uint16_t>(little ? first | second << 8 : first << 8 | second);
  }

  Cursor cursor_;
  std::endian order_;
  unsigned pointer_size_;
};

/// How the FDEs of a CIE write addresses; nothing where the CIE makes no sense.
std::optional<unsigned> pointer_encoding(FrameCursor& cie) {
  const unsigned version = cie.u8();
  const std::string_view augmentation = cie.c_string();
  if (!cie.ok() || (version != 1 && version != 3 && version != 4)) return std::nullopt;
  if (version == 4) cie.skip(2);
  cie.uleb();  // code alignment
  cie.uleb();  // data alignment: signed, but as long
  if (version == 1) {
    cie.u8();
  } else {
    cie.uleb();
  }
  unsigned encoding = 0;
  if (augmentation.starts_with('z')) cie.uleb();
  for (const char letter : augmentation) {
    if (letter == 'R') encoding = cie.u8();
    if (letter == 'L') cie.u8();
    if (letter == 'P') {
      const unsigned personality = cie.u8();
      if (personality != kOmitted && !cie.pointer(personality)) return std::nullopt;
    }
  }
  return cie.ok() ? std::optional(encoding) : std::nullopt;
}

struct CieEncoding {
  std::size_t offset;  ///< of the CIE
  unsigned encoding;   ///< of addresses in its FDEs
};

class FrameCheck {
 public:
  FrameCheck(const UnwindingRecord& info, const LoadRecord& load, std::endian order,
             unsigned pointer_size)
      : info_(info), load_(load), order_(order), pointer_size_(pointer_size) {}

  std::optional<std::string> problem() {
    if (info_.header_first) return "its .eh_frame_hdr comes first: perf takes it from the end";
    if (auto header = problem_of_header()) return header;
    std::size_t at = 0;
    while (at + 4 <= info_.eh_frame.size()) {
      FrameCursor entry = cursor_at(at);
      const std::uint64_t length = entry.u32();
      if (length == 0) break;
      if (length < 4 || length > info_.eh_frame.size() - at - 4 || !read_entry(at, length)) {
        return "its .eh_frame does not parse at byte " + std::to_string(at);
      }
      at += 4 + length;
    }
    if (covers_) return std::nullopt;
    return outside_.empty() ? "its .eh_frame is about no function" : outside_;
  }

 private:
  FrameCursor cursor_at(std::size_t offset) const {
    return {info_.eh_frame.substr(offset), order_, pointer_size_};
  }

  std::optional<std::string> problem_of_header() const {
    const std::string_view header = info_.eh_frame_hdr;
    if (header.size() < 8) return "no .eh_frame_hdr, where unwinders begin";
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(header[i]); };
    if (byte(0) != 1) return "its .eh_frame_hdr is of version " + std::to_string(byte(0));
    if (byte(3) == kDataRelativeSdata4) return std::nullopt;
    return "the table of its .eh_frame_hdr has encoding " + hex_text(byte(3)) +
           ", and unwinders know 0x3b";
  }

  /// A CIE or FDE at `at`, of `length` bytes behind its length. Answers whether it makes sense.
  bool read_entry(std::size_t at, std::uint64_t length) {
    FrameCursor entry(info_.eh_frame.substr(at + 4, length), order_, pointer_size_);
    const std::uint32_t id = entry.u32();
    if (id == 0) {
      const auto encoding = pointer_encoding(entry);
      if (encoding) encodings_.push_back({at, *encoding});
      return encoding.has_value();
    }
    // The distance to the CIE from this very field.
    const auto cie = std::lower_bound(
        encodings_.begin(), encodings_.end(), at + 4 - id,
        [](const CieEncoding& known, std::size_t wanted) { return known.offset < wanted; });
    return id <= at + 4 && cie != encodings_.end() && cie->offset == at + 4 - id &&
           read_fde(entry, at + 8, cie->encoding);
  }

  bool read_fde(FrameCursor& entry, std::size_t field, unsigned encoding) {
    auto begin = entry.pointer(encoding);
    const auto size = entry.pointer(encoding & 0x0f);
    const bool relative = (encoding & 0x70) == kPcRelative;
    if (!begin || !size || !entry.ok() || (!relative && (encoding & 0x70) != 0)) return false;
    // perf puts .eh_frame behind the code, at the next multiple of 8.
    const std::uint64_t start =
        relative ? *begin + (load_.code_size + 7) / 8 * 8 + field : *begin - load_.range.begin;
    const bool covers =
        start == 0 && *size <= load_.code_size + kTail && *size + kTail > load_.code_size;
    covers_ = covers_ || covers;
    if (!covers && outside_.empty()) {
      outside_ = "its .eh_frame is about " + std::to_string(*size) + " bytes from " +
                 hex_text(load_.range.begin + start) + ", not about the " +
                 std::to_string(load_.code_size) + " of this function";
    }
    return true;
  }

  const UnwindingRecord& info_;
  const LoadRecord& load_;
  std::endian order_;
  unsigned pointer_size_;
  std::vector<CieEncoding> encodings_;  // ascending
  bool covers_ = false;
  std::string outside_;
};

}  // namespace

std::optional<std::string> problem_of_frame(const UnwindingRecord& info, const LoadRecord& load,
                                            std::endian order, unsigned pointer_size) {
  return FrameCheck(info, load, order, pointer_size).problem();
}

}  // namespace perfmap::lint_rules

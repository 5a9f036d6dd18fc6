// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>
#include <string>
#include <string_view>

#include "elf/target.hpp"

namespace perfmap::test {

inline constexpr Target kX86{std::endian::little, true, EM_X86_64, 0};
inline constexpr Target kX86_32{std::endian::little, false, EM_386, 0};
inline constexpr Target kArm{std::endian::little, true, EM_AARCH64, 0};
inline constexpr Target kBig{std::endian::big, true, EM_S390, 0};

/// A CIE as gcc writes it, except that addresses are absolute: the CFA is rsp + 8, the return
/// address at CFA - 8.
struct TestCie {
  unsigned version = 1;
  std::string letters = "zR";
  std::string augmentation = std::string(1, '\0');
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = -8;
  unsigned return_register = 16;
  std::string instructions = "\x0c\x07\x08\x90\x01";
};

/// Builds call frame information byte by byte: a CIE and FDEs that refer to it.
class CfiBytes {
 public:
  enum class Kind { eh_frame, debug_frame };
  explicit CfiBytes(const TestCie& cie = {}, const Target& target = kX86,
                    Kind kind = Kind::eh_frame, bool is_wide = false)
      : target_(target), has_size_(cie.letters.starts_with('z')), kind_(kind), is_wide_(is_wide) {
    TargetBytes body(target_);
    body.u8(cie.version).c_string(cie.letters);
    if (cie.version == 4) body.u8(target_.address_size()).u8(0);
    if (cie.letters.starts_with("eh")) body.address(0x1234);
    body.uleb(cie.code_factor).sleb(cie.data_factor);
    if (cie.version == 1) {
      body.u8(cie.return_register);
    } else {
      body.uleb(cie.return_register);
    }
    if (has_size_) body.uleb(cie.augmentation.size()).raw(cie.augmentation);
    body.raw(cie.instructions);
    entry(is_eh() ? 0 : UINT64_MAX, body.view());
  }

  /// Code at [begin, begin + size).
  CfiBytes& fde(std::uint64_t begin, std::uint64_t size, std::string_view instructions) {
    TargetBytes place(target_);
    place.address(begin).address(size);
    return fde_at(place.view(), instructions);
  }
  /// `place` is the encoded position of the code.
  CfiBytes& fde_at(std::string_view place, std::string_view instructions) {
    TargetBytes body(target_);
    body.raw(place);
    if (has_size_) body.uleb(0);
    body.raw(instructions);
    entry(is_eh() ? bytes_.size() + (is_wide_ ? 12 : 4) : 0, body.view());
    return *this;
  }
  CfiBytes& terminator() {
    bytes_.append(4, '\0');
    return *this;
  }
  /// The position of the next FDE.
  std::uint64_t next_place() const { return bytes_.size() + (is_wide_ ? 12 : 4) + id_size(); }
  const std::string& text() const { return bytes_; }

 private:
  bool is_eh() const { return kind_ == Kind::eh_frame; }
  std::size_t id_size() const { return is_wide_ && !is_eh() ? 8 : 4; }
  void entry(std::uint64_t id, std::string_view body) {
    TargetBytes bytes(target_);
    const std::uint64_t length = id_size() + body.size();
    if (is_wide_) {
      bytes.u32(UINT32_MAX).raw(long_number(length));
    } else {
      bytes.u32(length);
    }
    if (id_size() == 8) {
      bytes.raw(long_number(id));
    } else {
      bytes.u32(id);
    }
    bytes_ += bytes.raw(body).view();
  }
  std::string long_number(std::uint64_t value) const {
    const Target wide{target_.order, true, target_.machine, 0};
    TargetBytes bytes(wide);
    return std::string(bytes.address(value).view());
  }

  Target target_;
  bool has_size_;
  Kind kind_;
  bool is_wide_;
  std::string bytes_;
};

}  // namespace perfmap::test

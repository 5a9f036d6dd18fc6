#pragma once

#include <cstdint>
#include <string_view>

namespace perfmap {

/// Goes over the fields of a protobuf message, whatever the bytes are: never beyond them. Groups,
/// which nobody writes any more, are no fields.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) noexcept : rest_(message) {}

  /// False at the end, and at what is no field: see ok().
  bool next() noexcept {
    if (rest_.empty() || !ok_) return false;
    const std::string_view begin = rest_;
    const std::uint64_t tag = varint();
    field_ = static_cast<std::uint32_t>(tag >> 3);
    bytes_ = {};
    number_ = 0;
    switch (tag & 7) {
      case 0: number_ = varint(); break;
      case 1: take(8); break;
      case 2: take(varint()); break;
      case 5: take(4); break;
      default: ok_ = false;
    }
    is_bytes_ = (tag & 7) == 2;
    is_number_ = (tag & 7) == 0;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) ok_ = false;
    whole_ = begin.substr(0, begin.size() - rest_.size());
    return ok_;
  }

  bool ok() const noexcept { return ok_; }
  std::uint32_t field() const noexcept { return field_; }
  bool is_number() const noexcept { return is_number_; }  ///< a varint
  bool is_bytes() const noexcept { return is_bytes_; }    ///< a string, a message, packed numbers
  std::uint64_t number() const noexcept { return number_; }
  std::string_view bytes() const noexcept { return bytes_; }
  /// With its tag, as it stands in the message.
  std::string_view whole() const noexcept { return whole_; }

  /// Calls `visit(number)` for each number of a repeated field, packed or one by one.
  template <class Visit>
  void numbers(Visit visit) noexcept(noexcept(visit(0))) {
    if (is_number_) visit(number_);
    if (!is_bytes_) return;
    ProtoReader packed(bytes_);
    while (!packed.rest_.empty() && packed.ok_) {
      const std::uint64_t number = packed.varint();
      if (packed.ok_) visit(number);
    }
    ok_ = ok_ && packed.ok_;
  }

 private:
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift < 64) value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    ok_ = false;
    return 0;
  }
  void take(std::uint64_t size) noexcept {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return;
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  std::string_view bytes_;
  std::string_view whole_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  bool is_bytes_ = false;
  bool is_number_ = false;
  bool ok_ = true;
};

}  // namespace perfmap

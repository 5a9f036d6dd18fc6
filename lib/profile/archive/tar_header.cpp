// SPDX-License-Identifier: MIT
#include "archive/tar_header.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace perfmap {
namespace {

/// A field of a header block.
struct Field {
  std::size_t offset;
  std::size_t size;

  std::string_view in(std::string_view block) const noexcept { return block.substr(offset, size); }
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUser{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kMagic{257, 8};
constexpr Field kDeviceMajor{329, 8};
constexpr Field kDeviceMinor{337, 8};
constexpr Field kPrefix{345, 155};

constexpr std::string_view kPosixMagic{"ustar\0", 6};  // then a version
constexpr std::string_view kGnuMagic{"ustar  \0", 8};
constexpr std::int64_t kSecond = 1'000'000'000;
/// ustar's size has eleven octal digits.
constexpr std::uint64_t kMaxUstarSize = (std::uint64_t{1} << 33) - 1;

std::string_view text_of(std::string_view field) noexcept {
  return field.substr(0, field.find('\0'));
}

std::optional<std::uint64_t> octal_of(std::string_view field) noexcept {
  field = text_of(field);
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find(' '));
  std::uint64_t value = 0;
  for (const char c : field) {
    if (c < '0' || c > '7' || value > UINT64_MAX >> 3) return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

/// A number in octal digits or, as GNU writes numbers that do not fit, in binary, big endian.
/// Nothing for a negative one, and for more than 63 bits.
std::optional<std::uint64_t> number_of(std::string_view field) noexcept {
  constexpr unsigned kBinary = 0x80;
  if ((static_cast<unsigned char>(field.front()) & kBinary) == 0) return octal_of(field);
  std::uint64_t value = static_cast<unsigned char>(field.front()) & ~kBinary;
  for (const char c : field.substr(1)) {
    if (value > static_cast<std::uint64_t>(INT64_MAX) >> 8) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

std::uint64_t checksum_of(std::string_view block) noexcept {
  std::uint64_t sum = kChecksum.size * ' ';
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i - kChecksum.offset < kChecksum.size) continue;
    sum += static_cast<unsigned char>(block[i]);
  }
  return sum;
}

bool is_posix(std::string_view block) noexcept { return kMagic.in(block).starts_with(kPosixMagic); }

/// "12.5" as nanoseconds; further decimals are ignored. 0 for a negative time, and one beyond 2262.
std::optional<std::int64_t> time_of(std::string_view text) {
  if (text.starts_with('-')) return 0;
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc::result_out_of_range) return 0;
  if (error != std::errc() || (stop != end && *stop != '.')) return std::nullopt;
  if (seconds >= INT64_MAX / kSecond) return 0;
  std::int64_t ns = 0;
  std::int64_t unit = kSecond / 10;
  for (const char* at = stop == end ? end : stop + 1; at != end; ++at, unit /= 10) {
    if (*at < '0' || *at > '9') return std::nullopt;
    ns += unit * (*at - '0');
  }
  return seconds * kSecond + ns;
}

bool take_record(std::string_view key, std::string_view value, PaxRecords& records) {
  if (key == "path") {
    records.path = std::string(value);
  } else if (key == "size") {
    std::uint64_t size = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || stop != value.data() + value.size()) return false;
    records.size = size;
  } else if (key == "mtime") {
    records.mtime_ns = time_of(value);
    return records.mtime_ns.has_value();
  } else if (key.starts_with("GNU.sparse.")) {
    records.is_sparse = true;
  }
  return true;
}

void put_octal(std::string& block, Field field, std::uint64_t value) {
  for (std::size_t i = field.size - 1; i-- > 0; value >>= 3) {
    block[field.offset + i] = static_cast<char>('0' + (value & 7));
  }
}

/// A header whose name and size fit.
std::string ustar_block(const TarHeader& entry) {
  std::string block(kTarBlock, '\0');
  const std::uint64_t mode = entry.type == tar_type::kDirectory ? 0700 : 0600;
  entry.name.copy(block.data() + kName.offset, kName.size);
  put_octal(block, kMode, mode);
  put_octal(block, kUser, 0);
  put_octal(block, kGroup, 0);
  put_octal(block, kSize, std::min(entry.size, kMaxUstarSize));
  const auto seconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(entry.mtime_ns, 0) / kSecond);
  put_octal(block, kTime, std::min(seconds, kMaxUstarSize));
  block[kType.offset] = entry.type;
  block.replace(kMagic.offset, kMagic.size,
                std::string_view("ustar\0"
                                 "00",
                                 kMagic.size));
  put_octal(block, kDeviceMajor, 0);
  put_octal(block, kDeviceMinor, 0);
  const std::uint64_t sum = checksum_of(block);
  put_octal(block, {kChecksum.offset, kChecksum.size - 1}, sum);
  block[kChecksum.offset + kChecksum.size - 1] = ' ';
  return block;
}

/// "LENGTH KEY=VALUE\n", where the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = 1 + key.size() + 1 + value.size() + 1;
  std::size_t whole = rest + 1;
  while (std::to_string(whole).size() + rest != whole) ++whole;
  return std::to_string(whole).append(" ").append(key).append("=").append(value).append("\n");
}

std::string decimal_time(std::int64_t ns) {
  const std::string fraction = std::to_string(ns % kSecond);
  return std::to_string(ns / kSecond) + "." + std::string(9 - fraction.size(), '0') + fraction;
}

}  // namespace

bool begins_tar(std::string_view bytes) noexcept {
  if (bytes.size() < kTarBlock) return false;
  const std::string_view block = bytes.substr(0, kTarBlock);
  const bool has_magic = is_posix(block) || kMagic.in(block) == kGnuMagic;
  return has_magic && octal_of(kChecksum.in(block)) == checksum_of(block);
}

std::optional<TarHeader> parse_tar_header(std::string_view block) {
  if (!begins_tar(block)) return std::nullopt;
  const auto size = number_of(kSize.in(block));
  if (!size) return std::nullopt;
  TarHeader header;
  header.name = text_of(kName.in(block));
  // GNU has times in the place of the prefix.
  const std::string_view prefix = is_posix(block) ? text_of(kPrefix.in(block)) : "";
  if (!prefix.empty()) header.name = std::string(prefix) + "/" + header.name;
  header.type = block[kType.offset];
  header.size = *size;
  const std::uint64_t seconds = number_of(kTime.in(block)).value_or(0);
  constexpr auto kMaxSeconds = static_cast<std::uint64_t>(INT64_MAX / kSecond);
  if (seconds < kMaxSeconds) header.mtime_ns = static_cast<std::int64_t>(seconds) * kSecond;
  return header;
}

bool parse_pax(std::string_view text, PaxRecords& records) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(stop - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 4) return false;
    std::string_view record = text.substr(digits, length - digits);
    text.remove_prefix(length);
    if (record.front() != ' ' || record.back() != '\n') return false;
    record = record.substr(1, record.size() - 2);
    const std::size_t equals = record.find('=');
    if (equals == record.npos || equals == 0) return false;
    if (!take_record(record.substr(0, equals), record.substr(equals + 1), records)) return false;
  }
  return true;
}

std::string tar_blocks(const TarHeader& entry) {
  std::string records =
      pax_record("mtime", decimal_time(std::max<std::int64_t>(entry.mtime_ns, 0)));
  if (entry.name.size() > kName.size) records += pax_record("path", entry.name);
  if (entry.size > kMaxUstarSize) records += pax_record("size", std::to_string(entry.size));
  std::string blocks = ustar_block({"PaxHeader", tar_type::kPax, records.size(), entry.mtime_ns});
  blocks += records;
  blocks.append(tar_padding(records.size()), '\0');
  return blocks += ustar_block(entry);
}

std::size_t tar_padding(std::uint64_t size) noexcept {
  return static_cast<std::size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
}

}  // namespace perfmap

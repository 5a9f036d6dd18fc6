#include "formats/map_line.hpp"

#include <algorithm>
#include <array>

#include "base/filler.hpp"
#include "base/hex.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& rest) noexcept {
  std::size_t count = 0;
  while (count < rest.size() && is_blank(rest[count])) ++count;
  rest.remove_prefix(count);
}

/// Takes a number's characters off the front of `rest`, and what separates it from the next field:
/// blanks, or one comma.
std::string_view take_field(std::string_view& rest) noexcept {
  std::size_t length = 0;
  while (length < rest.size() && !is_blank(rest[length]) && rest[length] != ',') ++length;
  const std::string_view field = rest.substr(0, length);
  rest.remove_prefix(length);
  if (!rest.empty() && rest[0] == ',') {
    rest.remove_prefix(1);
  } else {
    skip_blanks(rest);
  }
  return field;
}

bool is_signed(std::string_view field) noexcept {
  return field.size() > 1 && (field[0] == '-' || field[0] == '+') && parse_hex(field.substr(1));
}

LineFault bad_number(std::string_view field, const Rule& rule, std::string_view message) noexcept {
  if (is_signed(field)) return {&rule::kSignedNumber, field, "a number here has no sign"};
  return {&rule, field, message};
}

constexpr std::array<std::int8_t, 256> digit_table() {
  std::array<std::int8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    table[static_cast<std::size_t>(c)] =
        static_cast<std::int8_t>(c < 128 ? hex_digit(static_cast<char>(c)) : -1);
  }
  return table;
}
constexpr std::array<std::int8_t, 256> kDigits = digit_table();

}  // namespace

std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept {
  if (text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit{kDigits[static_cast<unsigned char>(c)]};
    if (digit < 0 || value >> 60 != 0) return std::nullopt;
    value = value << 4 | static_cast<unsigned>(digit);
  }
  return value;
}

// Grammar: blanks? hex separator hex separator name CR?  Fields are split first and parsed as a
// whole, so that `face_book` is not half a number.
std::optional<Entry> read_map_line(std::string_view line, std::uint64_t offset,
                                   LineFault& fault) noexcept {
  std::string_view rest = line;
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  if (offset == 0 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  skip_blanks(rest);
  if (rest.empty() || rest[0] == '#' || is_filler(line)) return std::nullopt;

  const std::string_view begin_field = take_field(rest);
  const std::optional<Address> begin = parse_hex(begin_field);
  if (!begin) {
    fault = bad_number(begin_field, rule::kBadAddress, "expected a hexadecimal address");
    return std::nullopt;
  }
  const std::string_view size_field = take_field(rest);
  const std::optional<std::uint64_t> size = parse_hex(size_field);
  if (!size && !(size_field.empty() && rest.empty())) {
    fault = bad_number(size_field, rule::kBadSize, "expected a hexadecimal size in bytes");
    return std::nullopt;
  }
  skip_blanks(rest);
  if (rest.empty()) {
    fault = {&rule::kTooFewFields, rest, "expected address, size and name"};
    return std::nullopt;
  }
  const AddressRange range = AddressRange::within_space(*begin, *size);
  if (*size != range.size) {
    fault = {&rule::kAddressWrap, size_field, "address + size passes the end of the address space"};
  }
  return Entry{range, rest, offset};
}

std::uint64_t written_size(std::string_view line, const Entry& entry) noexcept {
  if (entry.range.last() != UINT64_MAX) return entry.range.size;
  std::string_view rest = line;
  if (entry.offset == 0 && rest.starts_with(kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  skip_blanks(rest);
  take_field(rest);
  return parse_hex(take_field(rest)).value_or(entry.range.size);
}

std::optional<Entry> parse_map_line(std::string_view line, const Location& at,
                                    Diagnostics& problems) {
  LineFault fault;
  const std::optional<Entry> entry = read_map_line(line, at.offset, fault);
  if (fault.rule != nullptr) {
    // The part is a view into the line, so it knows its own column.
    const auto skipped = static_cast<std::uint64_t>(fault.part.data() - line.data());
    problems.add(*fault.rule, {at.offset + skipped, at.line, at.column + skipped}, fault.message);
  }
  return entry;
}

}  // namespace perfmap

#include "query_reader.hpp"

#include <algorithm>
#include <perfmap/map.hpp>
#include <perfmap/seconds.hpp>

namespace perfmap::app {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0
}

std::string quoted(std::string_view part) { return "'" + std::string(part.substr(0, 80)) + "'"; }

}  // namespace

std::optional<Query> QueryReader::read(std::string_view line, std::string& why,
                                       std::size_t& column) const {
  why.clear();
  const std::string_view text = trimmed(line);
  if (text.empty()) return std::nullopt;
  const std::string_view address_text = text.substr(0, text.find_first_of(kBlanks));
  const std::string_view time_text = trimmed(text.substr(address_text.size()));
  const auto complain = [&](std::string_view part, std::string what) {
    column = static_cast<std::size_t>(part.data() - line.data()) + 1;
    why = std::move(what);
    return std::nullopt;
  };
  const auto address = parse_hex(address_text);
  if (!address) {
    return complain(address_text, quoted(address_text) + " is not a hexadecimal address");
  }
  if (time_text.empty()) return Query{*address, time_};
  const auto time = parse_seconds(time_text);
  if (!time) return complain(time_text, quoted(time_text) + " is no time in seconds");
  if (!times_count_) return complain(time_text, "a source has ticks of the processor for times");
  return Query{*address, *time};
}

}  // namespace perfmap::app

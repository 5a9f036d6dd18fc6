// SPDX-License-Identifier: MIT
#include "report/json_fields.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "perfmap/map.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

std::string quoted(const std::string& key) { return "\"" + key + "\""; }

std::optional<std::uint64_t> parse_time(const std::string& text) {
  if (text.find('.') != std::string::npos) return parse_seconds(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Stops nlohmann's parser, whose callbacks can only skip values.
struct TooLarge {
  std::string_view why;
};

/// Keeps an element of a list until it was taken.
class Description {
 public:
  using Json = nlohmann::json;
  using Take = std::function<void(const std::string& list, const Json& element)>;

  Description(std::span<const std::string_view> members, const Take& take)
      : members_(members), take_(take) {}

  /// Whether the parser keeps the value.
  bool see(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (depth > kMaxDepth) throw TooLarge{"its values are nested more than 8 deep"};
    if (event == Event::key && depth == 1) {
      member_ = value.get<std::string>();
      elements_ = 0;
      is_kept_ = std::ranges::find(members_, member_) != members_.end();
      return is_kept_;
    }
    if (!is_kept_) return true;
    if (++values_ > kMaxValues) throw TooLarge{"an element has more than 65536 values"};
    if (event == Event::array_start && depth == 1) is_list_ = true;
    if (event == Event::object_start && depth == 1) is_list_ = false;
    if (event != Event::object_end || depth != 2 || !is_list_) return true;
    if (++elements_ > kMaxElements) throw TooLarge{"a list has more than 65536 elements"};
    take_(member_, value);
    values_ = 0;
    return false;
  }

 private:
  static constexpr int kMaxDepth = 8;
  static constexpr std::uint64_t kMaxValues = 65'536;
  static constexpr std::uint64_t kMaxElements = 65'536;  // as many files as an archive has

  std::span<const std::string_view> members_;
  const Take& take_;
  std::string member_;
  bool is_kept_ = false;
  bool is_list_ = false;
  std::uint64_t values_ = 0;  // since the last element
  std::uint64_t elements_ = 0;
};

}  // namespace

Result<nlohmann::json> read_description(
    std::string_view text, std::string_view schema, std::span<const std::string_view> members,
    const std::function<void(const std::string& list, const nlohmann::json& element)>& take) {
  using Json = nlohmann::json;
  Description description(members, take);
  const auto see = [&](int depth, Json::parse_event_t event, const Json& value) {
    return description.see(depth, event, value);
  };
  Json document;
  try {
    document = Json::parse(text.begin(), text.end(), see, false);
  } catch (const TooLarge& limit) {
    return Failure(Error::too_large(std::string(limit.why)));
  }
  if (!document.is_object()) return Failure(Error::bad_format("it is not a JSON object"));
  const auto found = document.find("schema");
  if (found == document.end() || *found != schema) {
    return Failure(Error::unsupported("its schema is not " + std::string(schema)));
  }
  return document;
}

const nlohmann::json* Fields::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

std::uint64_t Fields::number(const char* key, std::uint64_t max) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return 0;
  const bool good = value->is_number_unsigned() && value->get<std::uint64_t>() <= max;
  if (good) return value->get<std::uint64_t>();
  fail(quoted(key) + " is not an unsigned number of " + (max == UINT32_MAX ? "32" : "64") +
       " bits");
  return 0;
}

std::int32_t Fields::integer(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return 0;
  const std::int64_t number = value->is_number_integer() ? value->get<std::int64_t>() : INT64_MAX;
  const bool good = number >= INT32_MIN && number <= INT32_MAX;
  if (!good) fail(quoted(key) + " is not a 32-bit number");
  return good ? static_cast<std::int32_t>(number) : 0;
}

std::uint64_t Fields::address(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr || !value->is_string()) return number(key);
  const auto parsed = parse_hex(value->get_ref<const std::string&>());
  if (!parsed) fail(quoted(key) + " is not a hexadecimal number");
  return parsed.value_or(0);
}

std::uint64_t Fields::time(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr || !value->is_string()) return number(key);
  const auto parsed = parse_time(value->get_ref<const std::string&>());
  if (!parsed) fail(quoted(key) + " is not a time in seconds");
  return parsed.value_or(0);
}

bool Fields::flag(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(quoted(key) + " is neither true nor false");
  return value->is_boolean() && value->get<bool>();
}

std::string Fields::text(const std::string& key) {
  if (const auto exact = bytes(key + "_bytes")) return *exact;
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  fail(quoted(key) + " is not a string");
  return "";
}

std::optional<std::string> Fields::bytes(const std::string& key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  auto decoded =
      value->is_string() ? from_base64(value->get_ref<const std::string&>()) : std::nullopt;
  if (!decoded) fail(quoted(key) + " is not base64");
  return decoded;
}

std::vector<nlohmann::json> Fields::objects(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  std::vector<nlohmann::json> objects;
  const bool is_array = value->is_array();
  if (is_array) objects.assign(value->begin(), value->end());
  const bool good = is_array && std::all_of(objects.begin(), objects.end(),
                                            [](const auto& one) { return one.is_object(); });
  if (!good) fail(quoted(key) + " is not an array of objects");
  return good ? objects : std::vector<nlohmann::json>();
}

}  // namespace perfmap

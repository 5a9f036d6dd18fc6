// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perfmap/input.hpp"
#include "perfmap/json.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Reads the members of a JSON object with the expected types. The first mismatch is stored as the
/// problem, and all later reads return empty values.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object) : object_(object) {}

  bool has(const char* key) const { return object_.contains(key); }
  /// An unsigned number of at most `max`; 0 if missing.
  std::uint64_t number(const char* key, std::uint64_t max = UINT64_MAX);
  std::uint32_t number32(const char* key) {
    return static_cast<std::uint32_t>(number(key, UINT32_MAX));
  }
  std::int32_t integer(const char* key);
  /// A number, or a hexadecimal string.
  std::uint64_t address(const char* key);
  /// "SECONDS.NANOSECONDS" in nanoseconds, or an unsigned number unchanged.
  std::uint64_t time(const char* key);
  bool flag(const char* key);
  /// KEY_bytes (base64) or KEY.
  std::string text(const std::string& key);
  /// Decoded from base64; nothing if missing.
  std::optional<std::string> bytes(const std::string& key);
  /// The objects of an array; empty if missing.
  std::vector<nlohmann::json> objects(const char* key);

  const std::string& problem() const noexcept { return problem_; }
  void fail(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

 private:
  const nlohmann::json* find(const std::string& key) const;

  const nlohmann::json& object_;
  std::string problem_;
};

/// Reads an object with lists of objects, as of recording.json, and passes each element of these
/// lists to `take`. The result has the members of `members` without those elements; others are
/// skipped. Whatever the text, it holds one element and some MiB: fails with too_large if an
/// element or the rest has too many values, a list too many elements, or if it is nested too
/// deeply. Fails with unsupported if "schema" is not `schema`.
Result<nlohmann::json> read_description(
    std::string_view text, std::string_view schema, std::span<const std::string_view> members,
    const std::function<void(const std::string& list, const nlohmann::json& element)>& take);

/// Converts `offset` in `text` to line and column.
inline Location locate(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {offset, lines + 1, offset - line_start + 1};
}

/// Counts the bytes that nlohmann's parser has read, because its events have no positions. The
/// parser may be one byte ahead.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  std::size_t* count_;
};

inline constexpr std::string_view kMapSchema = "perfmap.map/1";

/// The value of "source": the kind of an input.
void write_source_json(JsonWriter& json, const Input& input, std::string_view kind,
                       std::optional<std::uint64_t> pid, std::uint64_t bytes);

}  // namespace perfmap

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// The members of a JSON object, read as what they have to be. The first that is something else is
/// the problem, and everything read from then on is empty.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object) : object_(object) {}

  bool has(const char* key) const { return object_.contains(key); }
  /// An unsigned number below `end`, or 0 where there is none.
  std::uint64_t number(const char* key, std::uint64_t most = UINT64_MAX);
  std::uint32_t number32(const char* key) {
    return static_cast<std::uint32_t>(number(key, UINT32_MAX));
  }
  std::int32_t integer(const char* key);
  /// A number, or hexadecimal text.
  std::uint64_t address(const char* key);
  /// "SECONDS.NANOSECONDS" in nanoseconds, or any unsigned number as it is.
  std::uint64_t time(const char* key);
  bool flag(const char* key);
  /// KEY_bytes, or KEY as it is.
  std::string text(const std::string& key);
  /// base64; nothing where there is none.
  std::optional<std::string> bytes(const std::string& key);
  /// The objects of an array; none where there is none.
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

}  // namespace perfmap

#pragma once

#include <optional>
#include <perfmap/index.hpp>
#include <perfmap/json_writer.hpp>
#include <span>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// Prints the answers of `resolve`, one by one: perf's own frame shape, or JSON.
class AnswerWriter {
 public:
  AnswerWriter(const Console& console, const std::string& format);

  /// `entry` is the hit's; nothing where that is nobody's, or cannot be read any more.
  void write(Address address, Hit hit, std::span<const Map> maps,
             const std::optional<Entry>& entry);
  void finish();
  std::uint64_t misses() const noexcept { return misses_; }

 private:
  enum class Form { text, json, jsonl };
  void write_text(Address address, const Map& map, const Entry& entry);
  void write_json(Address address, const Map& map, const Entry& entry);
  void write_unknown(Address address, bool was_known);

  const Console& console_;
  Form form_;
  JsonWriter json_;
  std::uint64_t misses_ = 0;
};

}  // namespace perfmap::app

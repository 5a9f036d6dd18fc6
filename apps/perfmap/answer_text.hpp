#pragma once

#include <optional>
#include <perfmap/debug_index.hpp>
#include <perfmap/json_writer.hpp>
#include <perfmap/map.hpp>
#include <span>
#include <string>
#include <string_view>

#include "console.hpp"
#include "doubt_note.hpp"

namespace perfmap::app {

/// An answer of `resolve`, whoever gave it. Borrowed, until it is written.
struct Answer {
  struct Place {
    std::string_view file;
    std::uint64_t line = 0;
  };

  Address address = 0;
  std::optional<std::string_view> name;
  std::optional<std::string> demangled;  ///< the name of a map or dump, if it is another
  std::optional<AddressRange> range;     ///< of the function, where that is known
  std::string_view why;                  ///< there is no name
  std::string_view source;               ///< the file that has the name, or would have it
  const Map* map = nullptr;              ///< which has it in the line at `offset`
  std::optional<std::uint64_t> offset;   ///< of the line, or of a jitdump's record
  std::optional<Place> place;            ///< in the source
  bool with_inlined = false;
  std::span<const SourceFrame> inlined;  ///< the innermost first
  Doubts doubts;                         ///< of the name

  /// Of one that has a name.
  std::string_view shown_name() const { return demangled ? std::string_view(*demangled) : *name; }
};

/// Prints the answers of `resolve`, one by one: perf's own frame shape, or JSON.
class AnswerWriter {
 public:
  /// With `lines`, inlined frames have them, too.
  AnswerWriter(const Console& console, const std::string& format, bool lines = false);

  void write(const Answer& answer);
  void finish();
  std::uint64_t misses() const noexcept { return misses_; }
  const DoubtCounts& doubts() const noexcept { return doubts_; }

 private:
  enum class Form { text, json, jsonl };
  void write_text(const Answer& answer);
  void write_json(const Answer& answer);
  void write_range(Address address, const AddressRange& range);
  void write_origin(const Answer& answer);
  void write_inlined(const Answer& answer);
  void write_doubts(Doubts doubts);
  void write_place(std::string_view file, std::uint64_t line);
  void write_bytes(std::string_view bytes);

  const Console& console_;
  Form form_;
  bool lines_;
  JsonWriter json_;
  std::uint64_t misses_ = 0;
  DoubtCounts doubts_;
};

}  // namespace perfmap::app

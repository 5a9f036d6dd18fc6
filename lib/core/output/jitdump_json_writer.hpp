#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfmap/jit_details.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/json_writer.hpp"

namespace perfmap {

/// Writes the records of a dump as JSON objects; see jitdump_json.hpp. Borrows the dump.
class RecordWriter {
 public:
  RecordWriter(const Jitdump& dump, OutputFile& out, bool with_code)
      : json_(out), details_(dump), with_code_(with_code), ticks_(dump.has_tsc_times()) {}

  JsonWriter& json() noexcept { return json_; }

  /// A LOAD that decodes, as an entry.
  bool entry(const JitRecord& record);
  /// A record of another kind, or one that makes no sense.
  void other(const JitRecord& record);
  /// The members of an entry that say where, when and whose.
  void load_members(const JitRecord& record, const LoadRecord& load);

 private:
  void number(std::string_view key, std::uint64_t value) {
    json_.key(key);
    json_.number(value);
  }
  void address(std::string_view key, Address value) {
    json_.key(key);
    json_.address(value);
  }
  void bytes(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    json_.key(key);
    json_.base64(value);
  }
  void begin_line(Address where, std::int32_t line, std::int32_t column);
  void lines(const JitRecord& record);
  void raw_lines(const std::vector<LineRecord>& lines);
  void fields_of(const JitRecord& record);
  bool says_all(const JitRecord& record);
  void time(const JitRecord& record);

  JsonWriter json_;
  JitDetails details_;
  bool with_code_;
  bool ticks_;
  std::string again_;
};

}  // namespace perfmap

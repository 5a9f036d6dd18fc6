#include "stacks/code_class.hpp"
#include "stacks/firefox_categories.hpp"
#include "stacks/firefox_tables.hpp"

namespace perfmap {
namespace {

/// A table of columns: {"length": N, "name": […], …}.
class Columns {
 public:
  Columns(JsonWriter& json, std::string_view name, std::size_t length)
      : json_(json), length_(length) {
    json_.key(name);
    json_.begin_object();
    json_.key("length");
    json_.number(length);
  }
  ~Columns() { json_.end_object(); }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  /// A column of what `write(row)` writes.
  template <class Write>
  void each(std::string_view name, Write write) {
    json_.key(name);
    json_.begin_array();
    for (std::uint32_t row = 0; row < length_; ++row) write(row);
    json_.end_array();
  }
  /// A column of numbers: what `value(row)` answers.
  template <class Value>
  void numbers(std::string_view name, Value value) {
    each(name, [&](std::uint32_t row) { json_.integer(static_cast<std::int64_t>(value(row))); });
  }
  void nulls(std::string_view name) {
    each(name, [&](std::uint32_t) { json_.null(); });
  }

 private:
  JsonWriter& json_;
  const std::size_t length_;
};

void number_or_null(JsonWriter& json, std::uint64_t value, std::uint64_t nothing) {
  if (value == nothing) return json.null();
  json.number(value);
}

}  // namespace

void FirefoxTables::write_shared(JsonWriter& json) {
  write_stacks(json);
  write_frames(json);
  write_functions(json);
  write_symbols(json);
  write_resources(json);
  write_sources(json);
  // Last: the tables above have numbered what they mention.
  json.key("stringArray");
  json.begin_array();
  for (std::uint32_t i = 0; i < strings_.size(); ++i) json.string(strings_[i]);
  json.end_array();
}

void FirefoxTables::write_stacks(JsonWriter& json) const {
  Columns table(json, "stackTable", stacks_.size() - 1);
  table.numbers("prefixOffset", [&](std::uint32_t row) {
    const std::uint32_t parent = stacks_[row + 1].parent;
    return parent == 0 ? 0 : row + 1 - parent;
  });
  table.numbers("frame", [&](std::uint32_t row) { return stacks_[row + 1].frame; });
}

void FirefoxTables::write_frames(JsonWriter& json) {
  Columns table(json, "frameTable", frames_.size());
  const auto place = [&](std::uint32_t row) -> const FramePlace& {
    return table_.place(frames_[row].place);
  };
  const auto function = [&](std::uint32_t row) { return functions_.of_place(frames_[row].place); };
  table.numbers("func", function);
  table.numbers("category", [&](std::uint32_t row) {
    return static_cast<int>(code_class(functions_.function(function(row))));
  });
  table.numbers("subcategory", [&](std::uint32_t row) {
    return firefox_subcategory(functions_.function(function(row)));
  });
  table.each("line", [&](std::uint32_t row) { number_or_null(json, place(row).line, 0); });
  table.each("column", [&](std::uint32_t row) { number_or_null(json, place(row).column, 0); });
  // Doubles cannot tell addresses above 2^53 apart, and the kernel's are relative to nothing.
  table.numbers("address", [&](std::uint32_t row) {
    const Address address = place(row).vaddr - (frames_[row].is_return ? 1 : 0);
    return address >> 53 != 0 ? -1 : static_cast<std::int64_t>(address);
  });
  table.each("nativeSymbol",
             [&](std::uint32_t row) { number_or_null(json, symbols_of_frames_[row], kNone); });
  table.numbers("inlineDepth", [&](std::uint32_t row) { return frames_[row].depth; });
  table.numbers("innerWindowID", [](std::uint32_t) { return 0; });
  table.nulls("originalLocation");
}

void FirefoxTables::write_functions(JsonWriter& json) {
  Columns table(json, "funcTable", libs_of_functions_.size());
  table.numbers("name", [&](std::uint32_t row) {
    return strings_.add(shown_name(functions_.function(row)));
  });
  table.each("isJS", [&](std::uint32_t) { json.boolean(false); });
  table.each("relevantForJS", [&](std::uint32_t) { json.boolean(false); });
  table.numbers("resource", [&](std::uint32_t row) {
    const std::uint32_t lib = libs_of_functions_[row];
    return lib == kNone ? -1 : static_cast<std::int64_t>(lib);
  });
  table.each("source", [&](std::uint32_t row) {
    const std::string_view file = functions_.function(row).file;
    if (file.empty()) return json.null();
    json.number(sources_.add(strings_.add(file)));
  });
  table.nulls("lineNumber");
  table.nulls("columnNumber");
  table.nulls("originalLocation");
}

void FirefoxTables::write_symbols(JsonWriter& json) const {
  Columns table(json, "nativeSymbols", symbols_.size());
  table.numbers("address", [&](std::uint32_t row) { return symbols_[row].address; });
  table.nulls("functionSize");
  table.numbers("libIndex", [&](std::uint32_t row) { return symbols_[row].lib; });
  table.numbers("name", [&](std::uint32_t row) { return symbols_[row].name; });
}

void FirefoxTables::write_resources(JsonWriter& json) {
  constexpr int kLibrary = 1;
  Columns table(json, "resourceTable", libs_.size());
  table.numbers("lib", [](std::uint32_t row) { return row; });
  table.numbers("name", [&](std::uint32_t row) {
    return strings_.add(file_name_of(strings_[libs_[row].path]));
  });
  table.nulls("host");
  table.numbers("type", [](std::uint32_t) { return kLibrary; });
}

void FirefoxTables::write_sources(JsonWriter& json) const {
  {
    Columns table(json, "sources", sources_.size());
    table.nulls("id");
    table.numbers("filename", [&](std::uint32_t row) { return sources_[row]; });
    table.numbers("startLine", [](std::uint32_t) { return 1; });
    table.numbers("startColumn", [](std::uint32_t) { return 1; });
    table.nulls("sourceMapURL");
    table.nulls("content");
  }
  Columns locations(json, "sourceLocationTable", 0);
  for (const std::string_view column : {"source", "line", "column"}) locations.nulls(column);
}

}  // namespace perfmap

// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "stacks/code_class.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

struct Category {
  std::string_view name;
  std::string_view color;  // a colour known to the front end; one category must be grey
};
constexpr std::array<Category, kCodeClasses> kCategories{{
    {"Other", "grey"},
    {"Kernel", "orange"},
    {"Native", "blue"},
    {"Inlined", "lightblue"},
    {"Interpreter", "red"},
    {"JIT: baseline", "yellow"},
    {"JIT: middle tier", "magenta"},
    {"JIT: optimised", "green"},
    {"JIT: runtime's own", "purple"},
    {"JIT", "green"},
}};

/// The value of "categories": one per CodeClass, in its order, with tiers as subcategories.
void write_firefox_categories(JsonWriter& json) {
  json.begin_array();
  for (std::uint8_t i = 0; i < kCodeClasses; ++i) {
    json.begin_object();
    json.member("name", kCategories[i].name);
    json.member("color", kCategories[i].color);
    json.begin_array("subcategories");
    json.string("Other");
    for (const Tier& tier : tiers_of(static_cast<CodeClass>(i))) json.string(tier.name);
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

/// The subcategory of a function within the category of its class; 0: none.
std::uint32_t firefox_subcategory(const FrameFunction& function) noexcept {
  const std::span<const Tier> tiers = tiers_of(code_class(function));
  const auto found = std::ranges::find(tiers, function.tier, &Tier::name);
  return found == tiers.end() ? 0 : static_cast<std::uint32_t>(found - tiers.begin()) + 1;
}

/// Data that all threads of a Firefox profile share: stacks, frames, functions, native symbols,
/// libraries, sources and strings. Borrows the frame table.
class FirefoxTables {
 public:
  FirefoxTables(const FrameTable& table, bool merge_tiers)
      : table_(table), functions_(table, merge_tiers, false) {}

  /// The index of the stack `frames`, leaf first; nothing if it is empty.
  std::optional<std::uint32_t> stack_of(std::span<const StackFrame> frames);

  void write_libs(JsonWriter& json, std::string_view arch) const;
  /// The members of "shared".
  void write_shared(JsonWriter& json);

 private:
  struct Frame {
    std::uint32_t place;
    std::uint32_t holder;  // the frame that it is inlined into, or its own
    std::uint32_t depth;   // inline depth; 0: not inlined
    bool is_return;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct Symbol {
    std::uint32_t lib;
    std::uint32_t name;
    Address address;
    friend bool operator==(const Symbol&, const Symbol&) = default;
  };
  struct Lib {
    std::uint32_t path;      // string indexes
    std::uint32_t build_id;  // in hexadecimal
    friend bool operator==(const Lib&, const Lib&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Frame& frame) const noexcept {
      return Hash()
          .add(std::uint64_t{frame.place} << 32 | frame.holder)
          .add(std::uint64_t{frame.depth} << 1 | (frame.is_return ? 1 : 0))
          .value();
    }
    std::size_t operator()(const Symbol& symbol) const noexcept {
      return Hash().add(std::uint64_t{symbol.lib} << 32 | symbol.name).add(symbol.address).value();
    }
    std::size_t operator()(std::uint32_t number) const noexcept {
      return Hash().add(number).value();
    }
    std::size_t operator()(const Lib& lib) const noexcept {
      return Hash().add(std::uint64_t{lib.path} << 32 | lib.build_id).value();
    }
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t add_frame(const Frame& frame);
  void describe_frame(const Frame& frame);
  void describe_function(std::uint32_t function, const FramePlace& place);
  std::uint32_t lib_of(const FrameFunction& function, const FramePlace& place);

  void write_stacks(JsonWriter& json) const;
  void write_frames(JsonWriter& json);
  void write_functions(JsonWriter& json);
  void write_symbols(JsonWriter& json) const;
  void write_resources(JsonWriter& json);
  void write_sources(JsonWriter& json) const;

  const FrameTable& table_;
  ShownFrames functions_;
  StackTree stacks_;  // of frames
  InternTable<Frame, HashOf> frames_;
  std::vector<std::uint32_t> symbols_of_frames_;
  std::vector<std::uint32_t> libs_of_functions_;
  InternTable<Symbol, HashOf> symbols_;
  InternTable<Lib, HashOf> libs_;
  StringPool strings_;
  InternTable<std::uint32_t, HashOf> sources_;  // of strings
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789ABCDEF"[byte >> 4];
    text += "0123456789ABCDEF"[byte & 15];
  }
  return text;
}

/// A build id in Breakpad's format: sixteen bytes, with the first three GUID fields byte-swapped,
/// and an age of 0.
std::string breakpad_id(std::string_view build_id_hex) {
  std::string id(build_id_hex.substr(0, 32));
  id.resize(32, '0');
  constexpr std::string_view kFrom =
      "67452301"
      "AB89"
      "EFCD";
  std::string turned(id);
  for (std::size_t i = 0; i < kFrom.size(); ++i) {
    const char c = kFrom[i];
    turned[i] = id[static_cast<std::size_t>(c <= '9' ? c - '0' : c - 'A' + 10)];
  }
  return turned + "0";
}

std::optional<std::uint32_t> FirefoxTables::stack_of(std::span<const StackFrame> frames) {
  std::uint32_t node = 0;
  std::uint32_t holder = 0;
  std::uint32_t depth = 0;
  for (std::size_t i = frames.size(); i-- > 0;) {
    const std::uint32_t place = frames[i].place;
    const bool is_inlined = table_.function_of(place).kind == FrameKind::inlined;
    depth = is_inlined && i + 1 < frames.size() && frames[i + 1].ip == frames[i].ip ? depth + 1 : 0;
    if (depth == 0) holder = place;
    node = stacks_.child(node, add_frame({place, holder, depth, frames[i].is_return}));
  }
  if (node == 0) return std::nullopt;
  return node - 1;
}

std::uint32_t FirefoxTables::add_frame(const Frame& frame) {
  const std::uint32_t number = frames_.add(frame);
  if (number == symbols_of_frames_.size()) describe_frame(frame);
  return number;
}

void FirefoxTables::describe_frame(const Frame& frame) {
  const FramePlace& place = table_.place(frame.place);
  const std::uint32_t function = functions_.of_place(frame.place);
  if (function == libs_of_functions_.size()) describe_function(function, place);

  const FramePlace& holder = table_.place(frame.holder);
  const FrameFunction& symbol = table_.function(holder.function);
  const std::uint32_t lib = lib_of(symbol, holder);
  const bool is_double = holder.vaddr >> 53 == 0;  // readers store numbers as doubles
  if (symbol.name.empty() || lib == kNone || holder.offset > holder.vaddr || !is_double) {
    symbols_of_frames_.push_back(kNone);
    return;
  }
  symbols_of_frames_.push_back(
      symbols_.add({lib, strings_.add(symbol.name), holder.vaddr - holder.offset}));
}

void FirefoxTables::describe_function(std::uint32_t function, const FramePlace& place) {
  const FrameFunction& shown = functions_.function(function);
  libs_of_functions_.push_back(lib_of(shown, place));
  strings_.add(shown_name(shown));
  if (!shown.file.empty()) sources_.add(strings_.add(shown.file));
}

std::uint32_t FirefoxTables::lib_of(const FrameFunction& function, const FramePlace& place) {
  const FrameMapping& mapping = table_.mapping(place.mapping);
  const std::string_view path = function.module.empty() ? mapping.path : function.module;
  if (path.empty()) return kNone;
  const std::uint32_t number = strings_.add(path);
  strings_.add(base_name(path));
  return libs_.add({number, strings_.add(path == mapping.path ? hex(mapping.build_id) : "")});
}

void FirefoxTables::write_libs(JsonWriter& json, std::string_view arch) const {
  const auto text = [&](std::string_view key, std::string_view value) { json.member(key, value); };
  json.begin_array();
  for (std::uint32_t i = 0; i < libs_.size(); ++i) {
    const std::string_view path = strings_[libs_[i].path];
    const std::string_view build_id = strings_[libs_[i].build_id];
    json.begin_object();
    text("name", base_name(path));
    text("path", path);
    text("debugName", base_name(path));
    text("debugPath", path);
    text("breakpadId", breakpad_id(build_id));
    json.text_or_null("codeId", build_id);
    text("arch", arch);
    json.end_object();
  }
  json.end_array();
}

/// A table of columns: {"length": N, "name": […], …}.
class Columns {
 public:
  Columns(JsonWriter& json, std::string_view name, std::size_t length)
      : json_(json), length_(length) {
    json_.begin_object(name);
    json_.member("length", length);
  }
  ~Columns() { json_.end_object(); }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  /// A column whose values `write(row)` writes.
  template <class Write>
  void each(std::string_view name, Write write) {
    json_.begin_array(name);
    for (std::uint32_t row = 0; row < length_; ++row) write(row);
    json_.end_array();
  }
  /// A column of numbers, `value(row)`.
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

constexpr unsigned kMilliseconds = 6;  // decimals of nanoseconds in milliseconds
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kVersion = 66;

/// The processed profile format of profiler.firefox.com, version 66; later front ends upgrade it.
/// Source: firefox-devtools/profiler, src/types/profile.ts and docs-developer.
class FirefoxWriter : public StackWriter {
 public:
  explicit FirefoxWriter(WriterInput input)
      : input_(std::move(input)),
        tables_(input_.table, input_.options.merge_tiers),
        json_(input_.out) {}

  void add(const StackSample& sample) override {
    if (!has_samples_) first_time_ = sample.time;
    has_samples_ = true;
    ThreadProfile& thread = threads_.of(sample);
    thread.stacks.push_back(tables_.stack_of(sample.frames).value_or(kNoStack));
    thread.times.push_back(sample.time - first_time_);
    thread.periods.push_back(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(sample.period, UINT32_MAX)));
  }

  Result<void> finish() override {
    json_.begin_object();
    json_.key("meta");
    write_meta();
    json_.key("libs");
    tables_.write_libs(json_, input_.profile.arch);
    json_.begin_object("shared");
    tables_.write_shared(json_);
    json_.end_object();
    json_.begin_array("threads");
    for (const auto& [key, thread] : threads_) write_thread(thread);
    json_.end_array();
    empty_arrays({"pages", "profilerOverhead", "counters"});
    json_.end_object();
    json_.newline();
    return {};
  }

 private:
  static constexpr std::uint32_t kNoStack = UINT32_MAX;

  void milliseconds(std::string_view key, std::uint64_t ns) {
    json_.decimal(key, ns, kMilliseconds);
  }
  void boolean(std::string_view key, bool value) { json_.boolean(key, value); }
  void empty_arrays(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      json_.begin_array(key);
      json_.end_array();
    }
  }

  /// Nanoseconds between samples; one millisecond if unknown.
  std::uint64_t interval() const {
    if (input_.profile.events.empty()) return kMillion;
    const StackProfile::Event& event = input_.profile.events.front();
    if (event.period == 0) return kMillion;
    if (event.is_frequency) return 1000 * kMillion / event.period;
    return event.is_time ? event.period : kMillion;
  }

  void write_meta() {
    const StackProfile& profile = input_.profile;
    json_.begin_object();
    json_.key("categories");
    write_firefox_categories(json_);
    boolean("debug", false);
    json_.begin_object("extensions");
    json_.member("length", 0);
    empty_arrays({"baseURL", "id", "name"});
    json_.end_object();
    milliseconds("interval", interval());
    json_.member("preprocessedProfileVersion", kVersion);
    json_.member("processType", 0);
    json_.member("product", profile.command.empty() ? profile.title : profile.command);
    json_.member("oscpu", profile.os_release.empty()
                              ? profile.arch
                              : "Linux " + profile.os_release + " " + profile.arch);
    write_units();
    milliseconds("startTime",
                 profile.wall_ns == 0 ? 0 : profile.wall_ns + first_time_ - profile.clock_ns);
    json_.member("startTimeAsClockMonotonicNanosecondsSinceBoot", first_time_);
    boolean("symbolicated", true);
    empty_arrays({"pausedRanges"});
    json_.member("version", 24);
    boolean("usesOnlyOneStackType", true);
    boolean("sourceCodeIsNotOnSearchfox", true);
    empty_arrays({"markerSchema"});
    json_.member("importedFrom", profile.exporter);
    json_.end_object();
  }

  void write_units() {
    json_.begin_object("sampleUnits");
    json_.member("time", "ms");
    json_.member("eventDelay", "ms");
    json_.member("threadCPUDelta", "µs");
    json_.end_object();
  }

  void write_thread(const ThreadProfile& thread) {
    const bool has_event = thread.event < input_.profile.events.size();
    const std::string event = has_event ? input_.profile.events[thread.event].name : "";
    const bool is_first = thread.event == 0;  // further events of the same thread need their own
                                              // names
    const std::string tid = std::to_string(thread.tid);
    json_.begin_object();
    json_.member("name", is_first ? thread.comm : thread.comm + " (" + event + ")");
    boolean("isMainThread", thread.pid == thread.tid && is_first);
    empty_arrays({"pausedRanges"});
    json_.member("pid", std::to_string(thread.pid));
    json_.member("processName", thread.process_comm);
    json_.null("processShutdownTime");
    json_.member("processStartupTime", 0);
    json_.member("processType", "default");
    milliseconds("registerTime", thread.times.front());
    json_.member("tid", is_first ? tid : tid + "." + std::to_string(thread.event));
    json_.null("unregisterTime");
    boolean("showMarkersInTimeline", false);
    json_.key("samples");
    write_samples(thread, has_event && input_.profile.events[thread.event].is_time);
    json_.begin_object("markers");
    json_.member("length", 0);
    empty_arrays({"category", "data", "endTime", "name", "phase", "startTime"});
    json_.end_object();
    json_.end_object();
  }

  void write_samples(const ThreadProfile& thread, bool is_time) {
    json_.begin_object();
    json_.member("length", thread.stacks.size());
    json_.member("weightType", "samples");
    column("stack", thread.stacks, [&](std::uint32_t stack) {
      if (stack == kNoStack) return json_.null();
      json_.number(stack);
    });
    std::uint64_t before = 0;
    column("timeDeltas", thread.times, [&](std::uint64_t time) {
      json_.decimal(std::max(time, before) - before, kMilliseconds);
      before = std::max(time, before);
    });
    column("weight", thread.stacks, [&](std::uint32_t) { json_.number(1); });
    if (is_time) {  // the sample's weight is CPU time of the thread
      column("threadCPUDelta", thread.periods,
             [&](std::uint32_t period) { json_.number(period / 1000); });
    }
    json_.end_object();
  }

  template <class T, class Write>
  void column(std::string_view key, const std::vector<T>& values, Write write) {
    json_.list(key, values, [&](const T value) { write(value); });
  }

  WriterInput input_;
  FirefoxTables tables_;
  JsonWriter json_;
  ThreadProfiles threads_;
  bool has_samples_ = false;
  std::uint64_t first_time_ = 0;
};

}  // namespace

void FirefoxTables::write_shared(JsonWriter& json) {
  write_stacks(json);
  write_frames(json);
  write_functions(json);
  write_symbols(json);
  write_resources(json);
  write_sources(json);
  // Last, because the tables above add strings.
  json.begin_array("stringArray");
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
  // Doubles cannot represent all addresses above 2^53, and kernel addresses have no base.
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
    return strings_.add(base_name(strings_[libs_[row].path]));
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

std::unique_ptr<StackWriter> make_firefox_writer(WriterInput input) {
  return std::make_unique<FirefoxWriter>(std::move(input));
}

}  // namespace perfmap

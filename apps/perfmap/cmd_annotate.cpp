// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <perfmap/json.hpp>
#include <perfmap/profile/annotate.hpp>
#include <perfmap/profile/stacks.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "output.hpp"
#include "recorded_stacks.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct AnnotateOptions : RecordedStacksOptions {
  std::string function;
  std::optional<std::uint64_t> at;
  std::string at_text;  ///< as typed
  std::string format;
  std::string output = "-";
  bool only_asm = false;
  bool only_source = false;
  bool both = false;

  bool wants_asm() const noexcept { return !only_source; }
  bool wants_source() const noexcept { return !only_asm; }
};

/// Writes an annotation as text; on a terminal with colours.
class TextWriter {
 public:
  /// Source lines end at `width` columns; 0: unlimited.
  TextWriter(OutputFile& out, bool color, std::size_t width, SourceText& source)
      : out_(out), color_(color), width_(width), source_(source) {}

  void write(const Annotation& found, const AnnotateOptions& options) {
    for (std::size_t i = 0; i < found.versions.size(); ++i) {
      const CodeVersion& version = found.versions[i];
      if (i != 0) out_.write("\n");
      write_head(version, found.samples);
      if (options.wants_asm()) {
        write_code(version, found.disassemblers[i].get(), options.wants_source());
      } else {
        write_lines(version);
      }
    }
  }

 private:
  static constexpr const char* kBold = "\x1b[1m";
  static constexpr const char* kRed = "\x1b[31m";
  static constexpr const char* kGreen = "\x1b[32m";
  static constexpr const char* kCyan = "\x1b[36m";

  void paint(const char* color, const std::string& text) {
    out_.write(color_ && color != nullptr ? color + text + "\x1b[0m" : text);
  }

  void write_head(const CodeVersion& version, std::uint64_t all) {
    paint(kBold, printable(version.name));
    out_.write(": " + counted(version.self, "sample") + ", " + percent_text(version.self, all, 1) +
               " of all; " + std::to_string(version.total) + " with its callees\n");
    std::string where = version.tier.empty() ? "  " : "  " + printable(version.tier) + ", ";
    if (!version.inlined_into.empty())
      where += "inlined into " + printable(version.inlined_into) + ", ";
    where += printable(version.module) + ", 0x" + to_hex(version.range.begin);
    if (version.range.size != 0) where += ", " + counted(version.range.size, "byte");
    if (version.since) where += ", from " + seconds_text(*version.since) + " s";
    if (version.until) where += " until " + seconds_text(*version.until) + " s";
    out_.write(where + "\n");
    if (!version.no_code.empty()) out_.write("  no code: " + version.no_code + "\n");
  }

  /// The columns of numbers, empty for rows without samples.
  void write_counts(std::uint64_t self, std::uint64_t total, const CodeVersion& version) {
    const auto cell = [](std::string text, std::size_t width) {
      return text.insert(0, width - std::min(width, text.size()), ' ');
    };
    const auto number = [&](std::uint64_t count, std::size_t width) {
      return cell(count == 0 ? "" : std::to_string(count), width);
    };
    const std::uint64_t hundredths = scaled_ratio(self, version.self, 4);
    // Like perf annotate: red from 5 %, green from 0.5 %.
    const char* const color = hundredths >= 500 ? kRed : hundredths >= 50 ? kGreen : nullptr;
    paint(color, cell(self == 0 ? "" : percent_text(self, version.self, 1), 7));
    out_.write(number(self, 8) + number(total, 8) + " | ");
  }

  void write_code(const CodeVersion& version, const Disassembler* disassembler, bool with_source) {
    out_.write("PERCENT    SELF   TOTAL |  OFFSET  INSTRUCTION\n");
    const SourcePlace* last = nullptr;
    list_code(version, disassembler, [&](const ListingRow& row) {
      const bool is_new =
          row.place != nullptr &&
          (last == nullptr || last->file != row.place->file || last->line != row.place->line);
      if (with_source && is_new) write_source(version, *row.place);
      if (row.place != nullptr) last = row.place;
      write_counts(row.self, row.total, version);
      std::string offset = to_hex(row.offset);
      offset.insert(0, 7 - std::min<std::size_t>(7, offset.size()), ' ');
      out_.write(offset + "  " + text_of(row, version) + "\n");
    });
  }

  static std::string text_of(const ListingRow& row, const CodeVersion& version) {
    if (row.text.empty()) return "-";
    std::string text(row.text);
    if (row.target && version.range.contains(*row.target)) {
      text += " <+0x" + to_hex(*row.target - version.range.begin) + ">";
    }
    return text;
  }

  void write_source(const CodeVersion& version, const SourcePlace& place) {
    const std::string& file = version.files[place.file];
    out_.write(std::string(kCountColumns, ' ') + "| ");
    std::string text = printable(base_name(file)) + ":" + std::to_string(place.line);
    if (const auto line = source_.line_without_tabs(file, place.line))
      text += "  " + printable(*line);
    paint(kCyan, fitting(std::move(text), kCountColumns + 2));
    out_.write("\n");
  }

  /// The lines of each file, with those between them if they are few.
  void write_lines(const CodeVersion& version) {
    const std::vector<LineSamples> lines = list_lines(version, source_);
    if (lines.empty()) {
      out_.write("  no source lines\n");
      return;
    }
    out_.write("PERCENT    SELF   TOTAL |    LINE  SOURCE\n");
    constexpr std::uint32_t kGap = 4;
    const LineSamples* last = nullptr;
    for (const LineSamples& line : lines) {
      const bool is_new_file = last == nullptr || last->file != line.file;
      if (is_new_file) write_file(version.files[line.file]);
      const bool is_near = !is_new_file && line.line - last->line <= kGap;
      if (!is_new_file && !is_near) out_.write(std::string(kCountColumns, ' ') + "|     ...\n");
      for (std::uint32_t n = is_near ? last->line + 1 : line.line; n < line.line; ++n) {
        if (source_.line(version.files[line.file], n)) write_line({line.file, n, 0, 0}, version);
      }
      write_line(line, version);
      last = &line;
    }
    write_unknown(lines, version);
  }

  void write_file(const std::string& file) {
    out_.write(std::string(kCountColumns, ' ') + "| ");
    paint(kCyan, file.empty() ? "(unknown file)" : printable(file));
    out_.write("\n");
  }

  void write_line(const LineSamples& line, const CodeVersion& version) {
    write_counts(line.self, line.total, version);
    std::string number = std::to_string(line.line);
    number.insert(0, 7 - std::min<std::size_t>(7, number.size()), ' ');
    const auto text = source_.line_without_tabs(version.files[line.file], line.line);
    if (text && !text->empty()) number += "  " + printable(*text);
    out_.write(fitting(std::move(number), kCountColumns + 2) + "\n");
  }

  /// The text, or its beginning and "…" if it does not fit into a line after `used` columns.
  std::string fitting(std::string text, std::size_t used) const {
    constexpr std::size_t kLeast = 20;
    if (width_ < used + kLeast) return text;
    const std::size_t room = width_ - used;
    const auto is_inside = [&](std::size_t at) { return (text[at] & '\xc0') == '\x80'; };
    std::size_t columns = 0, end = 0;  // `end` is that of the columns but the last
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (is_inside(at)) continue;
      if (columns + 1 == room) end = at;
      if (columns++ == room) return text.substr(0, end) + "…";
    }
    return text;
  }

  /// Samples without a line.
  void write_unknown(const std::vector<LineSamples>& lines, const CodeVersion& version) {
    std::uint64_t known = 0;
    for (const LineSamples& line : lines) known += line.self;
    if (known == version.self) return;
    write_counts(version.self - known, 0, version);
    out_.write("      -  (no line)\n");
  }

  static constexpr std::size_t kCountColumns = 24;

  OutputFile& out_;
  bool color_;
  std::size_t width_;
  SourceText& source_;
};

/// docs/schema/perfmap.annotate-1.json.
class AnnotationJson {
 public:
  AnnotationJson(OutputFile& out, SourceText& source) : json_(out), source_(source) {}

  void write(const Annotation& found, const AnnotateOptions& options) {
    json_.begin_object();
    json_.member("schema", "perfmap.annotate/1");
    json_.text_members("function", found.function.name);
    json_.member("samples", found.samples);
    json_.begin_array("versions");
    for (std::size_t i = 0; i < found.versions.size(); ++i) {
      write_version(found.versions[i], found.disassemblers[i].get(), options);
    }
    json_.end_array();
    json_.end_object();
    json_.newline();
  }

 private:
  void write_version(const CodeVersion& version, const Disassembler* disassembler,
                     const AnnotateOptions& options) {
    json_.begin_object();
    json_.name_members(version.name);
    json_.member("kind", to_string(version.kind));
    json_.member("tier", version.tier);
    if (!version.inlined_into.empty()) json_.text_members("inlined_into", version.inlined_into);
    json_.text_members("module", version.module);
    json_.address("start", version.range.begin);
    json_.member("size", version.range.size);
    write_time("since", version.since);
    write_time("until", version.until);
    json_.member("self", version.self);
    json_.member("total", version.total);
    json_.member("no_code", version.no_code);
    write_files(version);
    if (options.wants_asm()) write_instructions(version, disassembler);
    if (options.wants_source()) write_lines(version);
    json_.end_object();
  }

  void write_time(std::string_view key, const std::optional<std::uint64_t>& time) {
    json_.key(key);
    if (time) {
      json_.string(seconds_text(*time));
    } else {
      json_.null();
    }
  }

  void write_files(const CodeVersion& version) {
    json_.begin_array("files");
    for (const std::string& file : version.files) {
      json_.begin_object();
      json_.text_members("path", file);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_instructions(const CodeVersion& version, const Disassembler* disassembler) {
    json_.begin_array("instructions");
    list_code(version, disassembler, [&](const ListingRow& row) {
      json_.begin_object();
      json_.member("offset", row.offset);
      json_.member("size", row.bytes.size());
      json_.member("text", row.text);
      json_.boolean("valid", row.is_valid && !row.text.empty());
      if (row.place != nullptr) {
        json_.member("file", row.place->file);
        json_.member("line", row.place->line);
      }
      json_.member("self", row.self);
      json_.member("total", row.total);
      json_.end_object();
    });
    json_.end_array();
  }

  void write_lines(const CodeVersion& version) {
    json_.list("lines", list_lines(version), [&](const LineSamples& line) {
      json_.begin_object();
      json_.member("file", line.file);
      json_.member("line", line.line);
      json_.key("text");
      if (const auto text = source_.line(version.files[line.file], line.line)) {
        json_.string(std::string(*text));  // its bytes may change meanwhile
      } else {
        json_.null();
      }
      json_.member("self", line.self);
      json_.member("total", line.total);
      json_.end_object();
    });
  }

  JsonWriter json_;
  SourceText& source_;
};

/// Prints functions with their samples, one a line.
void list_candidates(const std::vector<MatchedFunction>& matches, const Console& console) {
  constexpr std::size_t kMaxListed = 20;
  for (std::size_t i = 0; i < std::min(matches.size(), kMaxListed); ++i) {
    std::string count = std::to_string(matches[i].self);
    count.insert(0, 9 - std::min<std::size_t>(9, count.size()), ' ');
    console.line(count + "  " + one_line(matches[i].name, true));
  }
  if (matches.size() > kMaxListed) {
    console.line("           and " + std::to_string(matches.size() - kMaxListed) + " more");
  }
}

/// The only function whose name contains the query. It must have samples: a function with the name
/// may have been inlined, and this is another one.
Result<MatchedFunction> take_part(MatchedFunction&& match, const std::string& query,
                                  const Console& console) {
  const std::string name = "'" + one_line(match.name, true) + "'";
  if (match.self == 0) {
    return Failure(Error::not_found(
        "no function with samples is named '" + query +
        "'; it may have been inlined. The only name that contains this text is " + name +
        ", which has no samples of its own: give the whole name to see it"));
  }
  console.note("no function is named '" + query + "': this is " + name);
  return std::move(match);
}

/// The function that the query names. If several match, the only one with samples, or none: then
/// prints them.
Result<MatchedFunction> choose(std::vector<MatchedFunction> matches, const std::string& query,
                               const Console& console) {
  const bool one_has_samples =
      !matches.empty() && matches[0].self != 0 && (matches.size() == 1 || matches[1].self == 0);
  if (matches.size() == 1 || one_has_samples) {
    if (matches[0].is_part) return take_part(std::move(matches[0]), query, console);
    return std::move(matches.front());
  }
  if (matches.empty()) {
    return Failure(
        Error::not_found("no sample is in a function whose name contains '" + query +
                         "'; it may have been inlined ('perfmap stacks' prints all names)"));
  }
  list_candidates(matches, console);
  return invalid("'" + query + "' matches " + counted(matches.size(), "function") +
                 ": name one of them");
}

/// The versions that are printed: with --at those of that time.
Result<void> add_versions(const AnnotateOptions& options, const FunctionSamples& samples,
                          Reading& reading, Annotation& found) {
  for (const std::uint32_t number : found.function.versions) {
    CodeVersion version = samples.version(number, reading.reader().table(), reading.recording(),
                                          options.wants_source());
    if (!options.at || version.is_alive_at(*options.at))
      found.versions.push_back(std::move(version));
  }
  if (!found.versions.empty()) return {};
  return Failure(Error::not_found("no version of '" + found.function.name +
                                  "' with samples existed at " + options.at_text + " s"));
}

/// Opens a disassembler for each machine that versions have code of. If the user asked for --asm or
/// --both, it must be possible.
Result<void> add_disassemblers(const AnnotateOptions& options, Annotation& found,
                               const Console& console) {
  const bool must_be = options.only_asm || options.both;
  const bool has_code = std::ranges::any_of(
      found.versions, [](const CodeVersion& version) { return !version.code.empty(); });
  if (must_be && !has_code) {
    const CodeVersion& first = found.versions.front();
    const std::string advice =
        first.kind == FrameKind::jit
            ? reason_for_no_lines({.name = first.name, .kind = first.kind}, {})
            : "";
    return Failure(Error::not_found("the instructions of '" + found.function.name +
                                    "' are unknown: " + first.no_code +
                                    (advice.empty() ? "" : "; " + advice)));
  }
  std::string told;
  std::vector<std::pair<CodeMachine, std::shared_ptr<const Disassembler>>> machines;
  for (const CodeVersion& version : found.versions) {
    found.disassemblers.emplace_back();
    if (!options.wants_asm() || version.code.empty()) continue;
    const auto same =
        std::ranges::find(machines, version.machine, &decltype(machines)::value_type::first);
    if (same != machines.end()) {
      found.disassemblers.back() = same->second;
      continue;
    }
    Result<Disassembler> opened = Disassembler::open(version.machine);
    if (opened) {
      found.disassemblers.back() = std::make_shared<Disassembler>(*std::move(opened));
      machines.emplace_back(version.machine, found.disassemblers.back());
    } else if (must_be) {
      return failure(opened);
    } else if (std::exchange(told, opened.error().message()) != opened.error().message()) {
      warn_no_text(told, console);
    }
  }
  return {};
}

/// Prints that functions may be inlined that have no names.
void note_inlining(const Annotation& found, const Recording& recording, const Console& console) {
  for (const CodeVersion& version : found.versions) {
    const std::string note = note_of_inlining(
        {.name = version.name, .tier = version.tier, .kind = version.kind}, recording);
    if (note.empty() || version.self == 0) continue;
    return console.note(note);
  }
}

bool has_lines(const CodeVersion& version) {
  return std::ranges::any_of(version.places,
                             [](const SourcePlace& place) { return place.line != 0; });
}

/// Why a file that may have source lines has none of this code.
std::string lines_that_lack(const CodeVersion& version) {
  const std::string module = one_line(version.module, true);
  switch (version.kind) {
    case FrameKind::jit: return version.code.empty() ? "" : module + " has no lines of this code";
    case FrameKind::native:
    case FrameKind::inlined:
      return version.code.empty() ? ""
                                  : module +
                                        " has no debug information of this function (it may "
                                        "be from a library, or assembler: compile these "
                                        "with -g)";
    default: return "";
  }
}

/// Prints why there are no source lines, and what adds them.
void note_lines(const AnnotateOptions& options, const Annotation& found,
                std::span<const std::string> without_lines, const Console& console) {
  if (!options.wants_source()) return;
  const bool some_have_lines = std::ranges::any_of(found.versions, has_lines);
  std::set<std::string> told;
  for (const CodeVersion& version : found.versions) {
    if (has_lines(version)) continue;
    std::string why = reason_for_no_lines(
        {.name = version.name, .module = version.module, .kind = version.kind}, without_lines);
    if (why.empty() && !some_have_lines) why = lines_that_lack(version);
    if (!why.empty() && told.insert(why).second) console.note("no source lines: " + why);
  }
}

Result<void> write_all(const AnnotateOptions& options, const Annotation& found, SourceText& source,
                       const Console& console) {
  if (options.format == "text" && options.output == "-") {
    const std::size_t width = console.out_is_terminal() ? terminal_width(STDOUT_FILENO) : 0;
    console.with_colors([&](OutputFile& out, bool color) {
      TextWriter(out, color, width, source).write(found, options);
    });
    return {};
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return failure(out);
  if (options.format == "text") TextWriter(*out, false, 0, source).write(found, options);
  if (options.format == "json") AnnotationJson(*out, source).write(found, options);
  if (options.format == "html") {
    AnnotationPageOptions page{.recording = std::string(base_name(options.recording))};
    page.instructions = options.wants_asm();
    page.lines = options.wants_source();
    write_annotation_page(found, page, source, *out);
  }
  return out->commit();
}

/// Prints how the samples were read, and of several events that they are counted together.
void note_reading(Reading& reading, const AnnotateOptions& options,
                  const std::set<std::uint32_t>& events, const Diagnostics& problems,
                  const Console& console) {
  reading.warn(console);
  note_stacks(reading, options.stacks.filter, reading.reader().statistics(), problems, false,
              console);
  if (events.size() < 2) return;
  console.note("samples of " + counted(events.size(), "event") +
               " are counted together (--event NAME selects one)");
}

/// Reads the samples, and chooses what is printed.
Result<Annotation> find_annotation(const AnnotateOptions& options, const FunctionSamples& samples,
                                   Reading& reading, const Console& console) {
  Result<MatchedFunction> function =
      choose(samples.matches(reading.reader().table()), options.function, console);
  if (!function) return failure(function);
  Annotation found{*std::move(function), samples.samples(), {}, {}};
  const Step step(console, "reading the code of " + found.function.name);
  const Result<void> added = add_versions(options, samples, reading, found);
  if (!added) return failure(added);
  const Result<void> opened = add_disassemblers(options, found, console);
  if (!opened) return failure(opened);
  return found;
}

ExitCode annotate(const AnnotateOptions& given, const Console& console) {
  AnnotateOptions options = given;
  const Result<void> checked = check_recorded_options(options);
  if (!checked) return console.fail(checked.error());
  Result<Input> input = open_recorded_input(options.recording, console);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(options.output, *input);
  if (!other) return console.fail(other.error());
  FunctionSamples samples(options.function);
  options.watch = [&samples](StackOptions& stacks) { samples.watch(stacks); };
  Result<std::unique_ptr<Reading>> reading =
      Reading::open(*std::move(input), options, StackOptions::Names::inlines, console);
  if (!reading) return console.fail(reading.error());
  StackReader& reader = (*reading)->reader();
  Diagnostics problems(3);
  std::set<std::uint32_t> events;
  const auto add = [&](const StackSample& sample) {
    events.insert(sample.event);
    samples.add(sample, reader.table());
  };
  const ExitCode read = (*reading)->read(add, problems, console);
  if (read != ExitCode::ok) return read;
  note_reading(**reading, options, events, problems, console);
  const Result<Annotation> found = find_annotation(options, samples, **reading, console);
  if (!found) return console.fail(found.error());
  SourceText source(options.symfs, options.format == "html" && !options.private_sources);
  const Result<void> written = write_all(options, *found, source, console);
  if (!written) return console.fail(written.error());
  const std::int64_t recorded_ns = (*reading)->recording().input().facts().mtime_ns;
  for (const CodeVersion& version : found->versions) source.check_times(version, recorded_ns);
  warn_sources(source, console);
  note_inlining(*found, (*reading)->recording(), console);
  note_lines(options, *found, reader.without_lines(), console);
  return ExitCode::ok;
}

/// Maps and dumps that replace those of the recording's processes.
void add_given(CommandOptions& command, std::vector<Source>& sources) {
  const auto add = [&](const char* names, Source::As as, const char* help) {
    const auto take = [&sources, as](const std::string& text) { sources.push_back({text, as}); };
    command.values(names, take, kFile, help).in_order();
  };
  add("-m,--map", Source::As::path,
      "Use this perf map for all processes, such as /tmp/perf-42.map");
  add("-j,--jitdump", Source::As::dump,
      "Use this jitdump for all processes, such as /tmp/jit-42.dump");
}

constexpr std::array kSuffixes = {
    SuffixFormat{".txt", "text"},
    SuffixFormat{".json", "json"},
    SuffixFormat{".html", "html"},
};

Result<void> choose_format_of(AnnotateOptions& options, const Console& console) {
  return choose_format("--format", options.format, options.output, kSuffixes, "text", console);
}

}  // namespace

void declare_annotate(CommandOptions& command) {
  AnnotateOptions& options = command.runs(annotate, choose_format_of);
  options.stacks.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  command.positional("recording", options.recording, kFile, "A recording of perf record, or '-'")
      .required();
  command
      .positional("function", options.function, "FUNCTION",
                  "The name of a function, or a part of it")
      .check([](const std::string& text) { return text.empty() ? "a function needs a name" : ""; })
      .required();
  const Option only_asm =
      command.flag("--asm", options.only_asm, "Print instructions without source lines");
  const Option only_source =
      command.flag("--source", options.only_source, "Print source lines without instructions")
          .excludes(only_asm);
  command
      .flag("--both", options.both,
            "Print instructions below their source lines (the default if the code is known)")
      .excludes(only_asm)
      .excludes(only_source);
  const auto take_time = [&options](const std::string& text) {
    options.at = parse_seconds(text);
    options.at_text = text;
  };
  command
      .value("--at", take_time, "SECONDS",
             "Print only the versions of the code that existed at this time, in seconds of the "
             "recording's clock")
      .check([](const std::string& text) {
        return parse_seconds(text) ? "" : "'" + text + "' is not a time in seconds";
      });
  add_output_format(command, "--format", options.format, {"text", "json", "html"}, kSuffixes,
                    "text");
  add_private_sources(command, options);
  add_output(command, options.output);
  add_given(command, options.sources);
  add_filters(command, options);
  add_no_demangle(command, options.stacks.demangle);
  add_files(command, options);
}

}  // namespace perfmap::app

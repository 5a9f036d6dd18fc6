#include "json_stream.hpp"

#include <perfmap/json_writer.hpp>
#include <perfmap/map_json.hpp>
#include <perfmap/rules.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "line_input.hpp"
#include "portable.hpp"

namespace perfmap::app {
namespace {

/// Reads lines until the kind shows.
class LineStream {
 public:
  LineStream(OutputFile& out, const ConvertOptions& options, const Console& console)
      : out_(out),
        options_(options),
        console_(console),
        input_(STDIN_FILENO, [&out] { return out.flush().has_value(); }),
        json_(out) {}

  ExitCode run() {
    std::string_view line;
    while (input_.next(line)) {
      if (!is_known_) {
        if (!is_map(line)) return all_at_once(line);
        is_known_ = !is_blank(line);
        if (!is_known_) blank_.append(line).append("\n");
      }
      take(line);
    }
    if (input_.error() != 0) return cannot_read();
    const Result<void> written = out_.commit();
    if (!written) return console_.fail(written.error());
    say_problems(console_, problems_, "-");
    note_skipped(console_, problems_);
    return ExitCode::ok;
  }

 private:
  static bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
  }
  bool is_map(std::string_view line) const {
    if (!options_.opening.kind.empty()) return options_.opening.kind == "perf-map";
    return detect_kind(line) == SourceKind::perf_map;
  }
  ExitCode cannot_read() const {
    return console_.fail(system_error("cannot read standard input", input_.error()));
  }
  void take(std::string_view line) {
    const Location at{offset_, input_.line_number(), 1};
    offset_ += line.size() + (input_.ended_in_newline() ? 1 : 0);
    if (input_.is_cut()) {
      problems_.add(rule::kTooFewFields, at, "a line of more than 64 MiB");
      input_.skip_rest();
    } else if (const auto entry = parse_map_line(line, at, problems_)) {
      write_map_line_json(json_, line, *entry, at.line);
      json_.newline();
    }
  }
  ExitCode all_at_once(std::string_view line) {
    std::string text = std::move(blank_);
    do {
      text += line;
      if (input_.ended_in_newline()) text += '\n';
      if (text.size() > OpenPolicy().most_stream_bytes) {
        return console_.fail("standard input holds more than 1 GiB");
      }
    } while (input_.next(line));
    if (input_.error() != 0) return cannot_read();
    Result<OpenedInput> opened =
        as_opened(Input::from_text(std::move(text), "-"), options_.opening, false);
    if (!opened) return console_.fail(opened.error());
    std::vector<OpenedInput> one;
    one.push_back(*std::move(opened));
    return convert_inputs(options_, std::move(one), console_);
  }

  OutputFile& out_;
  const ConvertOptions& options_;
  const Console& console_;
  LineInput input_;
  JsonWriter json_;
  Diagnostics problems_{kMostProblemsSaid};
  std::string blank_;
  std::uint64_t offset_ = 0;
  bool is_known_ = false;
};

}  // namespace

bool may_stream(const ConvertOptions& options) {
  struct stat status {};
  return options.to == "jsonl" && !options.effective && options.source.text == "-" &&
         ::fstat(STDIN_FILENO, &status) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
}

ExitCode stream_jsonl(const ConvertOptions& options, const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  return LineStream(*out, options, console).run();
}

}  // namespace perfmap::app

#include <cerrno>
#include <perfmap/map_json.hpp>
#include <perfmap/written_name.hpp>
#include <unistd.h>

#include "appending.hpp"
#include "command.hpp"
#include "line_input.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::vector<std::string> words;
  AppendOptions append;
};

constexpr std::size_t kBuffer = std::size_t{64} << 10;
constexpr int kMostWords = 1000;  // more than make sense are told below

/// Entries of standard input, perf map lines or JSON lines, as they come.
class StreamWriter {
 public:
  StreamWriter(MapWriter& writer, bool strict, const Console& console)
      : writer_(writer), strict_(strict), console_(console) {}

  ExitCode run() {
    LineInput input(STDIN_FILENO, [this] { return check(writer_.flush()); });
    std::string_view line;
    while (!failed_ && input.next(line)) {
      number_ = input.line_number();
      if (input.is_cut()) {
        complain(1, "more than 64 MiB");
        input.skip_rest();
      } else {
        take(line);
      }
    }
    if (!failed_) check(writer_.close());
    if (input.error() != 0) {
      return console_.fail(system_error("cannot read standard input", input.error()));
    }
    note_changed_names(console_, changed_);
    return failed_ || bad_line_ ? ExitCode::failed : ExitCode::ok;
  }

 private:
  void take(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return;
    if (line[first] == '{') return take_json(line);
    Diagnostics problems(1);
    // Offset 1: a byte order mark is no business of a line behind the first.
    const auto entry = parse_map_line(line, {number_ == 1 ? 0u : 1u, number_, 1}, problems);
    for (const Diagnostic& problem : problems.items()) {
      if (!entry) complain(problem.where.column, problem.message);
      if (entry) console_.warn("-:" + std::to_string(number_) + ": " + problem.message);
    }
    if (entry) write(entry->range.begin, written_size(line, *entry), entry->name);
  }
  void take_json(std::string_view line) {
    const Result<JsonEntry> entry = entry_from_json(line);
    if (!entry) return complain(entry.error().where.column, entry.error().message);
    write(entry->start, entry->size, entry->name);
  }
  void write(Address start, std::uint64_t size, std::string_view name) {
    const bool as_is = is_written_as_is(name);
    if (!as_is && strict_) return complain(1, refusal(name));
    if (!as_is) ++changed_;
    check(writer_.write(start, size, name));
  }
  void complain(std::uint64_t column, std::string_view message) {
    bad_line_ = true;
    console_.line("-:" + std::to_string(number_) + ":" + std::to_string(column) + ": " +
                  std::string(message));
  }
  bool check(const Result<void>& result) {
    if (!result) console_.fail(result.error());
    failed_ = failed_ || !result;
    return !failed_;
  }

  MapWriter& writer_;
  bool strict_;
  const Console& console_;
  std::uint64_t number_ = 0;
  std::uint64_t changed_ = 0;
  bool bad_line_ = false;
  bool failed_ = false;
};

ExitCode write_one(const Options& options, const Console& console) {
  const auto start = parse_hex(options.words[0]);
  const auto size = parse_hex(options.words[1]);
  if (!start) return console.fail("'" + options.words[0] + "' is not a hexadecimal address");
  if (!size) return console.fail("'" + options.words[1] + "' is not a hexadecimal size");
  const std::string& name = options.words[2];
  const bool as_is = is_written_as_is(name);
  if (!as_is && options.append.strict) return console.fail(refusal(name));
  Result<MapWriter> writer = open_target(options.append, 0);
  if (!writer) return console.fail(writer.error());
  Result<void> written = writer->write(*start, *size, name);
  if (written) written = writer->close();
  if (!written) return console.fail(written.error());
  note_changed_names(console, as_is ? 0 : 1);
  return ExitCode::ok;
}

ExitCode run(const Options& options, const Console& console) {
  const auto& words = options.words;
  if (words.size() == 3) return write_one(options, console);
  if (words.size() > 1 || (words.size() == 1 && words[0] != "-")) {
    return console.fail(words.size() > 3 ? "expected ADDR SIZE NAME; quote a name with blanks"
                                         : "expected ADDR SIZE NAME, or entries on standard input");
  }
  Result<MapWriter> writer = open_target(options.append, kBuffer);
  if (!writer) return console.fail(writer.error());
  return StreamWriter(*writer, options.append.strict, console).run();
}

}  // namespace

void declare_write(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  command
      .add_option("entry", options->words,
                  "ADDR SIZE NAME, numbers in hexadecimal; or '-', the default: perf map lines "
                  "or JSON lines on stdin")
      ->type_name("WORD")
      ->expected(1, kMostWords);
  declare_appending(command, options->append);
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app

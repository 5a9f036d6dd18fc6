// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/text.hpp>
#include <perfmap/writer.hpp>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <variant>

#include "command_line.hpp"
#include "line_input.hpp"
#include "output.hpp"

namespace perfmap::app {
namespace {

/// The target of `write`: a map or a jitdump.
class WriteTarget {
 public:
  static Result<WriteTarget> open(const AppendOptions& options, bool jitdump, NameOf names_of,
                                  std::size_t buffer_bytes, const Console& console);

  Result<void> write(Address start, std::uint64_t size, std::string_view name,
                     std::string_view code = {});
  Result<void> flush();
  Result<void> close();

 private:
  template <class Writer>
  WriteTarget(AppendTarget target, Writer writer)
      : target_(std::move(target)), writer_(std::move(writer)) {}

  AppendTarget target_;
  std::variant<MapWriter, JitdumpWriter> writer_;
};

/// Another process runs the code, so a marker mapping in this one would be useless to perf.
Result<JitdumpWriter> open_jitdump(const AppendOptions& options, const AppendTarget& target,
                                   NameOf names_of) {
  JitdumpOptions jitdump;
  jitdump.marker = false;
  jitdump.wait = true;
  jitdump.close_record = false;  // the next call goes on
  jitdump.names_of = names_of;
  jitdump.names = options.strict ? NamePolicy::refuse : NamePolicy::escape;
  if (!target.place) return JitdumpWriter::to_descriptor(STDOUT_FILENO, "standard output", jitdump);
  jitdump.own_dump = !options.pid.empty();
  if (jitdump.own_dump) jitdump.pid = std::stoi(options.pid);
  // The writer would take the pid of a new dump from the path.
  const struct stat* const file = target.place->existing();
  const bool is_new = file == nullptr || file->st_size == 0;
  if (!jitdump.own_dump && is_new) {
    const std::uint64_t pid = kDumpName.pid_in(options.output).value_or(0);
    if (pid <= std::numeric_limits<pid_t>::max()) jitdump.pid = static_cast<pid_t>(pid);
  }
  return JitdumpWriter::open(target.path, jitdump);
}

Result<WriteTarget> WriteTarget::open(const AppendOptions& options, bool jitdump, NameOf names_of,
                                      std::size_t buffer_bytes, const Console& console) {
  if (jitdump && goes_to_terminal(options, console)) {
    return Failure(Error::refused("cannot write a jitdump to a terminal: name a file with -o"));
  }
  Result<AppendTarget> target = find_target(options, jitdump ? kDumpName : kMapName, console);
  if (!target) return failure(target);
  const auto hold = [&target](auto writer) {
    return WriteTarget(*std::move(target), std::move(writer));
  };
  if (!jitdump) return open_target(options, *target, names_of, buffer_bytes).map(hold);
  return open_jitdump(options, *target, names_of).map(hold);
}

Result<void> WriteTarget::write(Address start, std::uint64_t size, std::string_view name,
                                std::string_view code) {
  if (MapWriter* const map = std::get_if<MapWriter>(&writer_)) return map->write(start, size, name);
  const auto index = std::get<JitdumpWriter>(writer_).load(
      {.start = start, .size = size, .name = name, .code = code});
  return index ? Result<void>() : failure(index);
}

Result<void> WriteTarget::flush() {
  MapWriter* const map = std::get_if<MapWriter>(&writer_);
  return map != nullptr ? map->flush() : Result<void>();
}

Result<void> WriteTarget::close() {
  return std::visit([](auto& writer) { return writer.close(); }, writer_);
}

/// Why a jitdump cannot have such an entry; empty if it can.
std::string jitdump_refusal(Address start, std::uint64_t size, bool has_code) {
  if (size > UINT64_MAX - start) return "the code exceeds the address space";
  if (!has_code && size > JitdumpWriter::kMaxZeros) {
    return "the code is larger than 32 MiB, so it cannot be written as zeros: pass it with --code";
  }
  return {};
}

struct WriteOptions {
  std::vector<std::string> words;
  AppendOptions append;
  bool jitdump = false;
  std::string code;
};

constexpr std::size_t kBuffer = std::size_t{64} << 10;
constexpr int kMaxWords = 1000;  // more than make sense are told below

/// Writes entries from standard input, map lines or JSON lines, as they arrive.
class StreamWriter {
 public:
  StreamWriter(WriteTarget& writer, const WriteOptions& options, const Console& console)
      : writer_(writer),
        options_(options),
        console_(console),
        shows_(goes_to_terminal(options.append, console)) {}

  ExitCode run() {
    LineInput input(STDIN_FILENO, [this] { return check(writer_.flush()); });
    std::string_view line;
    while (!failed_ && input.next(line)) {
      number_ = input.line_number();
      if (input.is_cut()) {
        complain(1, "a line of more than 64 MiB");
        input.skip_rest();
      } else {
        take(line);
      }
    }
    if (!failed_) check(writer_.close());
    if (input.error() != 0) {
      return console_.fail(system_error("cannot read", "standard input", input.error()));
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
    // Offset 1 for later lines: only the first line may begin with a byte order mark.
    const auto entry = parse_map_line(line, {number_ == 1 ? 0u : 1u, number_, 1}, problems);
    for (const Diagnostic& problem : problems.items()) {
      if (!entry) complain(problem.where.column, problem.message);
      if (entry) console_.warn("-:" + std::to_string(number_) + ": " + problem.message);
    }
    if (entry) write(entry->range.begin, written_size(line, *entry), entry->name);
  }
  void take_json(std::string_view line) {
    const Result<JsonEntry> entry = entry_from_json(line);
    if (!entry) return complain(entry.error().where.column, entry.error().message());
    write(entry->start, entry->size, entry->name);
  }
  void write(Address start, std::uint64_t size, std::string_view name) {
    const bool as_is = writes_unchanged(name, NameOf::file);
    size = AddressRange::within_space(start, size).size;
    if (!as_is && options_.append.strict) return complain(1, refusal(name));
    const std::string refused = options_.jitdump ? jitdump_refusal(start, size, false) : "";
    if (!refused.empty()) return complain(1, refused);
    if (!as_is) changed_.add(name);
    std::string shown;
    if (shows_) name = shown = printable(name);
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

  WriteTarget& writer_;
  const WriteOptions& options_;
  const Console& console_;
  const bool shows_;
  std::uint64_t number_ = 0;
  ChangedNames changed_;
  bool bad_line_ = false;
  bool failed_ = false;
};

/// The bytes of --code; their number must be the size of the function.
Result<std::optional<Input>> read_code(const std::string& path, std::uint64_t size) {
  if (path.empty()) return std::nullopt;
  OpenPolicy policy;
  policy.max_stream_bytes = std::min(policy.max_stream_bytes, size);
  Result<Input> input = Input::open(path, policy);
  if (!input) return Failure(std::move(input).error());
  if (input->text().size() == size) return *std::move(input);
  return invalid(path + " has " + std::to_string(input->text().size()) + " bytes, but SIZE is " +
                 std::to_string(size));
}

ExitCode write_one(const WriteOptions& options, const Console& console) {
  const auto start = parse_hex(options.words[0]);
  const auto size = parse_hex(options.words[1]);
  if (!start) return console.fail("'" + options.words[0] + "' is not a hexadecimal address");
  if (!size) return console.fail("'" + options.words[1] + "' is not a hexadecimal size");
  const std::string& name = options.words[2];
  const bool as_is = writes_unchanged(name);
  if (!as_is && options.append.strict) return console.fail(refusal(name));
  const Result<std::optional<Input>> code = read_code(options.code, *size);
  if (!code) return console.fail(code.error());
  const std::string refused = options.jitdump ? jitdump_refusal(*start, *size, code->has_value())
                              : AddressRange::within_space(*start, *size).size != *size
                                  ? "the entry exceeds the address space"
                                  : "";
  if (!refused.empty()) return console.fail(refused);
  Result<WriteTarget> target =
      WriteTarget::open(options.append, options.jitdump, NameOf::runtime, 0, console);
  if (!target) return console.fail(target.error());
  const std::string_view bytes = *code ? (*code)->text() : std::string_view();
  const bool is_shown = goes_to_terminal(options.append, console);
  Result<void> written = target->write(*start, *size, is_shown ? printable(name) : name, bytes);
  if (written) written = target->close();
  if (!written) return console.fail(written.error());
  ChangedNames changed;
  if (!as_is) changed.add(name);
  note_changed_names(console, changed);
  return ExitCode::ok;
}

ExitCode run_write(const WriteOptions& options, const Console& console) {
  const auto& words = options.words;
  if (words.size() == 3) return write_one(options, console);
  if (words.size() > 1 || (words.size() == 1 && words[0] != "-")) {
    return console.fail(words.size() > 3 ? "expected ADDR SIZE NAME; quote a name with blanks"
                                         : "expected ADDR SIZE NAME, or entries on standard input");
  }
  if (!options.code.empty()) return console.fail("--code needs one entry: ADDR SIZE NAME");
  Result<WriteTarget> target =
      WriteTarget::open(options.append, options.jitdump, NameOf::file, kBuffer, console);
  if (!target) return console.fail(target.error());
  return StreamWriter(*target, options, console).run();
}

}  // namespace

void declare_write(CommandOptions& command) {
  WriteOptions& options = command.runs(run_write);
  command
      .positional("entry", options.words, "WORD",
                  "ADDR SIZE NAME, with hexadecimal numbers; or '-' (default): read perf map lines "
                  "or JSON lines from standard input")
      .count(1, kMaxWords);
  add_append_options(command, options.append);
  const Option jitdump =
      command.flag("--jitdump", options.jitdump,
                   "Append records with the present time to a jitdump, instead of lines to a map");
  command
      .value("--code", options.code, kFile,
             "Read the code of the entry from this file, which has SIZE bytes")
      .needs(jitdump);
}

}  // namespace perfmap::app

// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/utf8.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

namespace {

/// Where a script can have a position of V8: at the beginning of a token, or after a statement.
struct Script {
  std::vector<std::uint32_t> lines;  // where they begin; empty if the file cannot be used
  std::vector<bool> positions;       // by byte
};

bool is_in_word(char c) noexcept { return is_word(c) || c == '$'; }

Script read_script(std::string_view text) {
  Script script;
  script.lines.push_back(0);
  script.positions.reserve(text.size());
  char before = '\n';
  // V8 counts units of UTF-16, so that columns are bytes only up to the first other byte of a line.
  bool is_ascii = true;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\t';
    const bool is_between = is_blank && before != ';' && before != '}';
    is_ascii = (is_ascii || before == '\n') && static_cast<unsigned char>(c) < 0x80;
    script.positions.push_back(!is_ascii ||
                               (!is_between && !(is_in_word(before) && is_in_word(c))));
    before = c;
    if (c == '\n') script.lines.push_back(static_cast<std::uint32_t>(script.positions.size()));
    if (script.lines.size() > 4'000'000) return {};
  }
  return script;
}

/// Whether the file cannot have the line.
bool is_outside(const CodeLine& line, const Script& script) noexcept {
  if (script.lines.empty() || line.line <= 0) return false;
  const auto number = static_cast<std::size_t>(line.line);
  if (number > script.lines.size()) return true;
  const std::size_t begin = script.lines[number - 1];
  const auto next =
      number < script.lines.size() ? script.lines[number] : script.positions.size() + 1;
  if (line.column <= 0) return false;
  const std::size_t at = begin + static_cast<std::size_t>(line.column) - 1;
  return at >= next || (at + 1 < next && !script.positions[at]);
}

}  // namespace

struct SourceLines::State {
  explicit State(const Jitdump& of) : dump(&of), details(of) {}

  const Jitdump* dump;
  JitDetails details;
  std::vector<CodeLine> lines;  // of the LOAD that was asked for last
  std::uint64_t load = std::numeric_limits<std::uint64_t>::max();
  std::unordered_map<std::string, Script> files;
  std::uint64_t bytes = 0;  // of source files that were read

  /// The lines of a script that the dump, which may be hostile, names.
  const Script& read(std::string_view file) {
    static const Script kNone;
    constexpr std::string_view kUrl = "file://";  // of a module
    if (file.starts_with("file:///")) file.remove_prefix(kUrl.size());
    const bool is_script = file.ends_with("js") || file.ends_with("ts");
    if (!is_script || file.front() != '/' || file.find('\0') != file.npos) return kNone;
    const auto [known, is_new] = files.try_emplace(std::string(file));
    if (!is_new) return known->second;
    const OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
    const Result<Input> input = Input::open(known->first, policy);
    if (!input || input->facts().size > kMaxBytes - bytes) return kNone;
    bytes += input->facts().size;
    known->second = read_script(input->text());
    // In a newer file, such as that of a later checkout, only lengths are compared.
    const std::int64_t written = dump->input().facts().mtime_ns;
    const bool is_newer = written != 0 && input->facts().mtime_ns > written;
    if (is_newer) known->second.positions.assign(input->text().size(), true);
    return known->second;
  }

  void mark() {
    std::string_view file;
    const Script* script = &read(file);
    for (CodeLine& line : lines) {
      if (line.file != file) script = &read(file = line.file);
      if (is_outside(line, *script)) line.file = kInlinedFromAnotherFile;
    }
  }
};

SourceLines::SourceLines(const Jitdump& dump) : state_(std::make_unique<State>(dump)) {}
SourceLines::SourceLines(SourceLines&&) noexcept = default;
SourceLines& SourceLines::operator=(SourceLines&&) noexcept = default;
SourceLines::~SourceLines() = default;

const JitDetails& SourceLines::details() const noexcept { return state_->details; }

const std::vector<CodeLine>& SourceLines::of(std::uint64_t load_offset) {
  if (state_->load == load_offset) return state_->lines;
  state_->lines = state_->details.lines(state_->load = load_offset);
  if (state_->dump->is_v8()) state_->mark();
  return state_->lines;
}

}  // namespace perfmap

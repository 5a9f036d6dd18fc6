// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "perfmap/timeline.hpp"

namespace perfmap {

namespace {

/// The lengths of a file's lines in bytes, cut to what fits; empty if the file cannot be used.
using LineLengths = std::vector<std::uint16_t>;

constexpr std::size_t kLongest = std::numeric_limits<LineLengths::value_type>::max();

LineLengths lengths_of(std::string_view text) {
  LineLengths lengths;
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find('\n', begin);
    const std::size_t length = std::min(end, text.size()) - begin;
    lengths.push_back(static_cast<LineLengths::value_type>(std::min(length, kLongest)));
  }
  return lengths;
}

/// Whether the file cannot have the line. V8 counts columns in units of UTF-16, and a line of UTF-8
/// has at least as many bytes.
bool is_outside(const CodeLine& line, const LineLengths& lengths) noexcept {
  if (lengths.empty() || line.line <= 0) return false;
  const auto number = static_cast<std::size_t>(line.line);
  if (number > lengths.size()) return true;
  const std::size_t length = lengths[number - 1];
  return length < kLongest && line.column > static_cast<std::int64_t>(length) + 1;
}

}  // namespace

struct SourceLines::State {
  explicit State(const Jitdump& of) : dump(&of), details(of) {}

  const Jitdump* dump;
  JitDetails details;
  std::vector<CodeLine> lines;  // of the LOAD that was asked for last
  std::uint64_t load = std::numeric_limits<std::uint64_t>::max();
  std::unordered_map<std::string, LineLengths> files;
  std::uint64_t bytes = 0;  // of source files that were read

  /// The lines of a script that the dump, which may be hostile, names.
  const LineLengths& read(std::string_view file) {
    static const LineLengths kNone;
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
    return known->second = lengths_of(input->text());
  }

  void mark() {
    std::string_view file;
    const LineLengths* lengths = &read(file);
    for (CodeLine& line : lines) {
      if (line.file != file) lengths = &read(file = line.file);
      if (is_outside(line, *lengths)) line.file = kInlinedFromAnotherFile;
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

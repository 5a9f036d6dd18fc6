// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "perfmap/pypylog.hpp"

namespace perfmap {

/// A part of a log. Borrowed from the text fed to the reader.
struct PypylogEvent {
  enum class Kind : std::uint8_t {
    open,   ///< "[1a2b] {category"
    close,  ///< "[1a2c] category}"
    text,   ///< lines between section lines, each with its newline except at the end of the log
    whole,  ///< a section of at most one line: opened and closed at once, with its text
  };
  static constexpr std::uint32_t kNoCategory = UINT32_MAX;
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;
  static constexpr std::uint32_t kSlots = 8192;

  Kind kind = Kind::text;
  bool has_letter = false;  ///< the tick has a digit above 9, so it is hexadecimal
  bool closed_has_letter = false;
  std::uint32_t thread = CompiledLoop::kNoThread;
  PypylogTick tick = {};
  PypylogTick closed = {};  ///< whole: the tick of the closing line
  /// Categories are numbered from 0 in order of appearance; kNoCategory for text, and for
  /// categories after the first 65 536.
  std::uint32_t category = kNoCategory;
  std::string_view text = {};    ///< the category; or the lines, unchanged
  std::string_view inside = {};  ///< whole: the line inside, or empty
  std::uint64_t inside_offset = 0;
  /// The slot of `inside` in the reader's cache of recent short lines, so that the caller can cache
  /// its results by slot; kNoSlot for none. Until another text is new in the slot, all events with
  /// the slot have the same text.
  std::uint32_t inside_slot = kNoSlot;
  bool is_inside_new = false;
  std::uint64_t offset = 0;  ///< of the first line in the log
  std::uint64_t line = 0;    ///< line number, from 1
};

/// Splits a PyPy log into its section lines and the text between them:
///
///    [acc21dcd7d5] {jit-backend-addr
///    Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER) has address 0x7f6865c72a5b to 0x7f6865c72c40 …
///    [acc21ddafe7] jit-backend-addr}
///
/// Terminal colours (ESC [ … m) and carriage returns at the ends of section lines are dropped.
/// Sections are not matched here, because lines of several threads and processes may be mixed. A
/// line that begins like a section line but is not one counts as text.
///
/// A log is fed in chunks of whole lines, so its size does not matter: the reader holds only the
/// positions of possible section lines in the current chunk. Reads some GB/s.
/// Sources: PyPy, rpython/translator/c/src/debug_print.c and rpython/tool/logparser.py.
class PypylogReader {
 public:
  PypylogReader();
  ~PypylogReader();

  /// The next chunk, which follows all chunks before. Only the last of the log may end without
  /// newline. Borrowed until next() returns nullptr.
  void feed(std::string_view lines);
  /// The next event of the chunk, valid until the next call; nullptr if more input is needed. Text
  /// is returned only if `text` is true, and skipped otherwise.
  const PypylogEvent* next(bool text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `line` without colours, thread number and line end.
std::string_view plain_pypylog_line(std::string_view line) noexcept;

/// The number in the "N# " at the start of a line, or kNoThread.
std::uint32_t pypylog_thread(std::string_view line) noexcept;

/// Calls `take(line, offset)` for each line of the text, newline included.
template <class Take>
void for_each_line(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    take(text.substr(at, end - at), at);
    at = end;
  }
}

/// Calls `take` for each line of a loop's operations, in the form of plain_pypylog_line(),
/// including the title; see list_operations().
void for_each_operation_line(const CompiledLoop& loop, std::string_view log,
                             const std::function<void(std::string_view)>& take);

}  // namespace perfmap

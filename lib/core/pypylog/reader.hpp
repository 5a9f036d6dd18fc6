#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "perfmap/pypylog.hpp"

namespace perfmap {

/// What a log consists of. Borrowed from the text that the reader was fed.
struct PypylogEvent {
  enum class Kind : std::uint8_t {
    open,   ///< "[1a2b] {category"
    close,  ///< "[1a2c] category}"
    text,   ///< lines between them, each with its newline but for the last of all
    whole,  ///< a section of no more than one line: opened and closed, with its text, at once
  };
  static constexpr std::uint32_t kNoCategory = UINT32_MAX;
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;
  static constexpr std::uint32_t kSlots = 8192;

  Kind kind = Kind::text;
  bool has_letter = false;  ///< the tick has a digit that only a hexadecimal number has
  bool closed_has_letter = false;
  std::uint32_t thread = CompiledLoop::kNoThread;
  PypylogTick tick = {};
  PypylogTick closed = {};  ///< whole: when it was closed
  /// Numbers count up from 0 in the order in which a log's categories appear; kNoCategory for text,
  /// and for those behind the first 65 536.
  std::uint32_t category = kNoCategory;
  std::string_view text = {};    ///< the category; or the lines, as they stand in the log
  std::string_view inside = {};  ///< whole: the line in it, or nothing
  std::uint64_t inside_offset = 0;
  /// Which of the slots it has in which the reader keeps short lines that came lately, so that what
  /// is known of one need not be found out again; kNoSlot for none. Until another is new there,
  /// what comes with that slot is the same.
  std::uint32_t inside_slot = kNoSlot;
  bool is_inside_new = false;
  std::uint64_t offset = 0;  ///< in the log, of the first line
  std::uint64_t line = 0;    ///< its number, from 1
};

/// Splits a log of PyPy into its section lines and the text between them:
///
///     [acc21dcd7d5] {jit-backend-addr
///     Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER) has address 0x7f6865c72a5b to 0x7f6865c72c40 …
///     [acc21ddafe7] jit-backend-addr}
///
/// Colours of a terminal (ESC [ … m) and carriage returns at the ends of section lines are not part
/// of anything. Sections are not matched here: lines of several threads and processes may be mixed.
/// A line that begins like a section line and is none is text.
///
/// A log is fed in pieces of whole lines, so its size does not matter: nothing is held but the
/// positions of the present piece's lines that may be section lines. Goes over text at some GB/s.
/// Sources: PyPy, rpython/translator/c/src/debug_print.c and rpython/tool/logparser.py.
class PypylogReader {
 public:
  PypylogReader();
  ~PypylogReader();

  /// The next piece, behind all that was fed before. Only the log's last may end without newline.
  /// Borrowed until next() has nothing more.
  void feed(std::string_view lines);
  /// The next event of what was fed, until the next call; nullptr where it needs more. Text comes
  /// only where `text` is true: otherwise it is passed by.
  const PypylogEvent* next(bool text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `line` without the colours, the thread's number and the end of line that it may have.
std::string_view plain_pypylog_line(std::string_view line) noexcept;

/// The number in the "N# " that a line begins with, or kNoThread.
std::uint32_t pypylog_thread(std::string_view line) noexcept;

/// Calls `take(line, offset)` for each line of the text, with its newline.
template <class Take>
void for_each_line(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    take(text.substr(at, end - at), at);
    at = end;
  }
}

/// Calls `take` with each line of a loop's operations, as plain_pypylog_line() has it, and the
/// title; see list_operations().
void for_each_operation_line(const CompiledLoop& loop, std::string_view log,
                             const std::function<void(std::string_view)>& take);

}  // namespace perfmap

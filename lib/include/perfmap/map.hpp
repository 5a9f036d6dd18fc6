// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// One line of a perf map: "the code at `range` is called `name`".
///
///     7f3529fcf759 b py::bar:/run/t.py
///     `begin'      | `-- name: the rest of the line
///                  `---- size
///
/// Source: Linux, tools/perf/Documentation/jit-interface.txt.
struct Entry {
  /// Both fields are hexadecimal in the file. Some producers write size 0 for "extent unknown":
  /// such an entry covers its first byte only.
  AddressRange range;

  /// Raw bytes: may contain spaces, need not be UTF-8, never contains a newline or ends in CR.
  /// Borrowed from the input; Input says for how long.
  std::string_view name;

  /// Byte offset of its line in the input. Map::line_number() converts it to a line number.
  std::uint64_t offset = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// A perf map: the lines of an input. Stores no entries: they are parsed from the text on demand,
/// so a map costs its bytes and one number per 4 KiB of them.
///
/// Reads every dialect of the format in use: 0x prefixes and leading zeros (HotSpot, Erlang), upper
/// case (.NET), blanks or tabs or a comma between fields, CRLF, no final newline. A malformed line
/// is skipped and adds one diagnostic.
///
/// Several threads may use const members, except line_number(), which builds its table on first
/// use.
class PERFMAP_API Map {
 public:
  struct Options {
    /// The producer may still write: ignore a last line without a newline.
    bool growing = false;
    /// Called now and then by passes over the lines, in their thread, with the bytes that the pass
    /// has read and the size of the text; may be null.
    std::function<void(std::uint64_t part, std::uint64_t whole)> progress = nullptr;
  };

  explicit Map(Input input) : Map(std::move(input), Options()) {}
  Map(Input input, Options options);

  const Input& input() const noexcept { return input_; }
  /// The text that is read: the whole input, or, for a growing map, up to the last newline.
  /// Excludes the filler that a mapped writer keeps at the end of the file, or leaves there if it
  /// is killed; see WriterOptions::mapped.
  std::string_view text() const noexcept { return text_; }
  /// Whether a last line without a newline was left out.
  bool ends_in_part() const noexcept { return ends_in_part_; }
  /// For passes over the lines: see Options::progress.
  void note_progress(std::uint64_t part) const {
    if (options_.progress) options_.progress(part, text_.size());
  }

  /// Calls `visit(const Entry&)` for every entry, in file order. Malformed lines go to `problems`.
  /// O(bytes).
  template <class Visit>
  void for_each(Diagnostics& problems, Visit&& visit) const {
    LineReader reader(*this);
    while (const std::optional<Entry> entry = reader.next(problems)) visit(*entry);
  }

  /// The entry whose line starts at `offset`; none if that line is malformed or the input
  /// was_truncated(). O(line).
  std::optional<Entry> entry_at(std::uint64_t offset) const noexcept;

  /// The size as written in the line of this entry. `range.size` is less if the range would pass
  /// 2^64 - 1. O(1), except for such entries.
  std::uint64_t written_size(const Entry& entry) const noexcept;

  /// The line number, from 1, of the line that starts at `offset`. The first call is O(bytes),
  /// later calls are O(1).
  std::uint64_t line_number(std::uint64_t offset) const;

  /// Reads what was appended; see Input::refresh(). On Growth::appended, the new lines start where
  /// text() ended before.
  Result<Growth> refresh();

  /// Reads the entries of a map in order. Borrows the map.
  class PERFMAP_API LineReader {
   public:
    explicit LineReader(const Map& map, std::uint64_t offset = 0, std::uint64_t line = 1) noexcept
        : text_(map.text()), at_{offset, line, 1} {}
    /// The next entry; nothing at the end.
    std::optional<Entry> next(Diagnostics& problems);
    /// The line after the entry that next() returned last.
    const Location& position() const noexcept { return at_; }

   private:
    std::string_view text_;
    Location at_;
  };

 private:
  void settle_text() noexcept;

  Input input_;
  Options options_;
  std::string_view text_;
  bool ends_in_part_ = false;
  mutable std::vector<std::uint64_t> newlines_before_;  // of each kLineBlock bytes of text_
};

/// Parses one line, without its newline, that starts at `at`. A line is an entry, or adds one
/// diagnostic, or is blank, a comment or filler: those give neither.
PERFMAP_API std::optional<Entry> parse_map_line(std::string_view line, const Location& at,
                                                Diagnostics& problems);

/// Accepts a stream whose first lines have an entry of UTF-8 text without control bytes among them,
/// and stays undecided without one. For a stream that is read as a map whatever it looks like.
PERFMAP_API StreamCheck check_map_start();

/// The size as written in `line`, from which parse_map_line() made `entry`; see
/// Map::written_size().
PERFMAP_API std::uint64_t written_size(std::string_view line, const Entry& entry) noexcept;

/// A hexadecimal number of at most 64 bits, with or without 0x, in either case, with or without
/// leading zeros.
PERFMAP_API std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept;

/// Names that were changed because they could not be written as they were.
struct PERFMAP_API ChangedNames {
  static constexpr std::size_t kMaxListed = 1000;

  std::uint64_t count = 0;
  /// The first kMaxListed of them before the change, each at most kMaxPortableName + 1 bytes long.
  std::vector<std::string> first = {};

  void add(std::string_view name);
  void add(const ChangedNames& others);
};

/// The text of a perf map that was converted from another format, for Input::from_text().
struct MapText {
  std::string text;
  std::uint64_t entries = 0;
  ChangedNames changed = {};  ///< names that no perf map can hold; see escape_map_name()
};

/// Appends a line that reads back as this entry. The name is exact if a map can hold it. Other
/// names (empty, with a newline, with a leading blank) are escaped by escape_map_name() and
/// counted.
PERFMAP_API void append_entry(MapText& map, Address begin, std::uint64_t size,
                              std::string_view name);

}  // namespace perfmap

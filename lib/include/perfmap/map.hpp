#pragma once

#include <cstdint>
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
  /// Both fields are hexadecimal in the file. A size of 0 occurs in the wild and means
  /// "extent unknown": such an entry answers for its first byte alone.
  AddressRange range;

  /// Raw bytes: may hold spaces, need not be UTF-8, never holds a newline nor ends in CR.
  /// Borrowed from the input: see Input for how long.
  std::string_view name;

  /// Where its line starts in the input, in bytes. Map::line_number() makes a line of it.
  std::uint64_t offset = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// A perf map: an input, seen as lines. Holds no entry: entries are made from the text on demand,
/// so a map costs its bytes and one number per 4 KiB of them.
///
/// Reads every dialect of the format in use: 0x prefixes and leading zeros (HotSpot, Erlang), upper
/// case (.NET), blanks or tabs or a comma between fields, CRLF, no final newline. A line that makes
/// no sense costs that line and one diagnostic.
///
/// Const members may be used from several threads, but for line_number(), which builds its table on
/// first use.
class PERFMAP_API Map {
 public:
  struct Options {
    /// The producer may still write: a last line without newline is not there yet.
    bool growing = false;
  };

  explicit Map(Input input) : Map(std::move(input), Options()) {}
  Map(Input input, Options options);

  const Input& input() const noexcept { return input_; }
  /// What is read: all of the input, or all up to the last newline where the map is growing; but
  /// not the filler at its end that a mapped writer makes entries of, or has left when it was
  /// killed. See WriterOptions::mapped.
  std::string_view text() const noexcept { return text_; }
  /// Whether a last line without newline was left out.
  bool ends_in_part() const noexcept { return ends_in_part_; }

  /// Every entry, in file order; each line that makes no sense goes to `problems`. O(bytes).
  /// `visit` is called as visit(const Entry&).
  template <class Visit>
  void for_each(Diagnostics& problems, Visit&& visit) const {
    LineReader reader(*this);
    while (const std::optional<Entry> entry = reader.next(problems)) visit(*entry);
  }

  /// The entry whose line starts at `offset`; none where that line makes no sense, or the input
  /// was_truncated(). O(line).
  std::optional<Entry> entry_at(std::uint64_t offset) const noexcept;

  /// The size in the line of an entry of this map, where `range.size` may be less: a range ends at
  /// 2^64 - 1 at the latest. O(1) but for such entries.
  std::uint64_t written_size(const Entry& entry) const noexcept;

  /// The number, from 1, of the line that starts at `offset`. O(1) after a first O(bytes).
  std::uint64_t line_number(std::uint64_t offset) const;

  /// Takes in what was appended; see Input::refresh(). On Growth::appended, the new lines start at
  /// the end of what text() was before.
  Result<Growth> refresh();

  /// Reads the entries of a map one after the other. Borrows the map.
  class PERFMAP_API LineReader {
   public:
    explicit LineReader(const Map& map, std::uint64_t offset = 0, std::uint64_t line = 1) noexcept
        : text_(map.text()), at_{offset, line, 1} {}
    /// The next line that is an entry; nothing at the end.
    std::optional<Entry> next(Diagnostics& problems);
    /// The line after the one that next() answered with.
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

/// Parses one line without its newline, which starts at `at`. Total: every line is either an entry
/// or costs one diagnostic; blank lines, comments and filler are neither entry nor (here)
/// problem.
PERFMAP_API std::optional<Entry> parse_map_line(std::string_view line, const Location& at,
                                                Diagnostics& problems);

/// The size in `line`, of which parse_map_line() made `entry`; see Map::written_size().
PERFMAP_API std::uint64_t written_size(std::string_view line, const Entry& entry) noexcept;

/// A hexadecimal number with or without 0x, in either case, leading zeros allowed, at most 64 bits.
PERFMAP_API std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept;

/// A perf map that was made of something else: its text, for Input::from_text().
struct MapText {
  std::string text;
  std::uint64_t entries = 0;
  std::uint64_t changed_names = 0;  ///< that no perf map can hold; see escape_map_name()
};

/// Appends a line that reads back as this entry. The exact name where a map can hold it; others
/// (empty, with a newline, with a blank in front) are written as escape_map_name() says and
/// counted.
PERFMAP_API void append_entry(MapText& map, Address begin, std::uint64_t size,
                              std::string_view name);

}  // namespace perfmap

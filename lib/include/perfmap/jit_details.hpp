#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/input.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// Code from `address` up to the next line's, or to the end of the function, came from there.
struct CodeLine {
  Address address = 0;  ///< where the code was at its LOAD; corrected
  std::int32_t line = 0;
  std::int32_t column = 0;  ///< 0 where the producer has none
  std::string_view file;    ///< borrowed from the input; empty where nothing says which
  Address as_written = 0;   ///< what the record has for the address

  friend bool operator==(const CodeLine&, const CodeLine&) = default;
};

/// Which DEBUG_INFO and UNWINDING_INFO record of a jitdump belongs to which LOAD, and the source
/// lines of its code, with what producers are known to get wrong put right.
///
/// A DEBUG_INFO record belongs to the next LOAD at its code address, as the LOAD of another thread
/// may come between them (up to 256 of them, or it has lost its own); an UNWINDING_INFO record,
/// which has no address, to the next LOAD. Each belongs to one LOAD; of two for the same LOAD the
/// later counts. (perf gives both to the next LOAD, whatever its address.)
///
/// LOADs are named by the offsets of their records, as in CodeAt::load. Made in one pass over the
/// records, O(bytes) and O(n log n) for n records; holds 24 bytes for each LOAD that has either,
/// nothing for others. Borrows the dump, which must stay where it is. Damage is passed over: who
/// wants to hear of it reads the dump. Const members may be used from several threads.
class PERFMAP_API JitDetails {
 public:
  explicit JitDetails(const Jitdump& dump);
  JitDetails(JitDetails&&) noexcept;
  JitDetails& operator=(JitDetails&&) noexcept;
  ~JitDetails();

  /// The offset of the record that belongs to the LOAD at `load_offset`, if there is one. O(log n).
  std::optional<std::uint64_t> debug_info(std::uint64_t load_offset) const noexcept;
  std::optional<std::uint64_t> unwinding(std::uint64_t load_offset) const noexcept;

  /// The lines of a LOAD in the order of their addresses, all of them within its range; of several
  /// with the same address the last counts. None where it has none, where they run over the end of
  /// their record, or where the input was truncated since.
  ///
  /// Corrected are: V8's addresses, which are 0x40 too high; V8's file names with NULs in them,
  /// whose first 16 bytes are lost, by the path in the name of the function or else to nothing; and
  /// addresses shortly below the code, as Erlang writes them, to its beginning. What lies elsewhere
  /// outside the code covers nothing and is left out. O(lines · log lines).
  std::vector<CodeLine> lines(std::uint64_t load_offset) const;

  /// The line that covers an address, which is where the code was at its LOAD; nothing before the
  /// first line and outside the code. Reads all lines of the function: to ask for many addresses of
  /// one function, get lines() and search them with line_at() below.
  std::optional<CodeLine> line_at(std::uint64_t load_offset, Address address_at_load) const;

  /// Takes in what the dump took in: to be called after Jitdump::refresh(), with its answer.
  void refresh(Growth growth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The last of `lines`, as JitDetails::lines() gives them, at or before `address`; null before the
/// first. Does not know where the function ends. O(log lines).
PERFMAP_API const CodeLine* line_at(const std::vector<CodeLine>& lines, Address address) noexcept;

}  // namespace perfmap

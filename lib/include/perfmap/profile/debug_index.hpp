#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// One function of the source at an address: the one that the code was made for, or one that this
/// was inlined into. Names are bytes, as the compiler wrote them; each is cut at 64 KiB.
struct SourceFrame {
  std::string function;      ///< DW_AT_name, such as "push_back"; empty where nobody knows
  std::string linkage_name;  ///< mangled; empty where that is `function`, as in C
  std::string file;          ///< below the compiler's working directory if it was relative
  std::uint32_t line = 0;    ///< 0: code that belongs to no line
  std::uint32_t column = 0;  ///< 0: not known
  bool inlined = false;      ///< into the frame that follows

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

struct SourceLine {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// What .gnu_debugaltlink says about the file that dwz(1) moved common parts to.
struct AlternateLink {
  std::string path;      ///< absolute, or relative to the directory of the file itself
  std::string build_id;  ///< binary
};

struct DebugOptions {
  /// The file that alternate_link() speaks of. Without it, names from there are missing.
  std::optional<Input> alternate = std::nullopt;
  /// Opens the file of a split unit (-gsplit-dwarf) at a path that the ELF file made up: its author
  /// may well be hostile, so whoever opens it wants regular files only, below a root that can be
  /// trusted. Not called without need; several at once where find_all() has several threads.
  /// Without it no file is opened, and code of such units has lines but no functions.
  std::function<Result<Input>(const std::string& path)> open_split = {};
  /// Opens the package that may have all split units (PROGRAM.dwp), which is asked before their own
  /// files: called once, when the first of them is wanted. The same goes for whoever opens it.
  std::function<Result<Input>()> open_package = {};
  /// Of indexes that are held; those used least recently go first. A single unit that needs more
  /// is cut there.
  std::uint64_t max_bytes = std::uint64_t{256} << 20;
  /// Of debug sections, once decompressed; beyond it is too_large.
  std::uint64_t max_section_bytes = std::uint64_t{8} << 30;
};

struct DebugIndexStats {
  std::uint64_t units = 0;          ///< that have code
  std::uint64_t built = 0;          ///< indexes made so far, of lines or of functions
  std::uint64_t bytes = 0;          ///< of indexes held now
  std::uint64_t split_missing = 0;  ///< split units looked for whose file was not there
  std::uint64_t package_lacks = 0;  ///< of these, those that a package was asked for
  /// Why some debug sections cannot be decompressed; empty if all can.
  std::string damage = {};
};

/// Source files, lines and inlined calls of one ELF file, from its DWARF 2 to 5: of the executable
/// or of its separate debug file. Addresses are those of the file (ELF virtual addresses), not of a
/// process.
///
/// Opening goes over the heads of all units, O(units); where the lines and the functions of a unit
/// are is indexed when first asked for, in a time linear in its size but for a logarithm, and so is
/// what a single function or sequence of lines holds. A look-up in what is indexed is O(log n), and
/// reads the names from the mapped file.
///
/// Where a function's code is counts as the DWARF says it, DW_AT_ranges included, as far as the
/// file has executable segments there: linkers leave the DWARF of functions that they dropped, with
/// addresses such as 0. Of overlapping functions the one that comes later in its unit answers, of
/// overlapping units the first. .debug_aranges is not read: it says nothing that units do not.
/// Sections may be compressed by zlib or zstd, and split units may lie in a package (.dwp).
///
/// Hostile files: no number from the file is believed. No recursion; references in circles end
/// after 8 steps; an address has at most 256 frames; work on a unit is bounded by its bytes, and
/// what is held by max_bytes, besides about 60 bytes a unit, 16 MiB, and the sections themselves
/// where they are compressed. The parser is our own and not libdw: that is not thread-safe, frees
/// nothing before its end, and opens files (split units, alternate files) at whatever path the
/// input names, a FIFO included. No descriptor is held.
///
/// Copies share everything. Const members may be used from several threads. The bytes of the input
/// live as long as a copy does; a file that shrinks under its mapping is TruncationGuard's affair.
/// Sources: DWARF 5 (2017) and 4 (2010); "DebugFission", gcc wiki, for split DWARF 4.
class PERFMAP_API DebugIndex {
 public:
  /// Fails as Input::open() (regular files only) and from_input() do.
  static Result<DebugIndex> open(const std::string& path, DebugOptions options = {});
  /// Fails with bad_format (no ELF file; an alternate file with another build-id than the link's),
  /// unsupported (no DWARF; a relocatable file, but for .dwo) or too_large.
  static Result<DebugIndex> from_input(Input input, DebugOptions options = {});

  /// The functions at the address, the innermost first, each with the place in it: the last is the
  /// one that has the code, the others are inlined. A single frame without names where there is a
  /// line only; empty where there is nothing. For a return address, ask for the byte before it.
  std::vector<SourceFrame> find(Address vaddr) const;
  /// The file and line alone: does not index functions. What find() has in its first frame.
  std::optional<SourceLine> find_line(Address vaddr) const;
  /// find() for each address, in the order given, which may be any: each unit is indexed once, on
  /// up to `threads` threads, this one included. The answer does not depend on their number.
  std::vector<std::vector<SourceFrame>> find_all(std::span<const Address> vaddrs,
                                                 unsigned threads = 1) const;

  /// None where the file has no such link.
  std::optional<AlternateLink> alternate_link() const;
  DebugIndexStats stats() const;

 private:
  class Impl;
  explicit DebugIndex(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace perfmap

// SPDX-License-Identifier: MIT
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

/// A source function at an address: the one that contains the code, or one that was inlined there.
/// Names are bytes, as written by the compiler, truncated to 64 KiB.
struct SourceFrame {
  std::string function;      ///< DW_AT_name, such as "push_back"; empty if unknown
  std::string linkage_name;  ///< mangled; empty if equal to `function`, as in C
  std::string file;          ///< below the compiler's working directory if it was relative
  std::uint32_t line = 0;    ///< 0: the code belongs to no line
  std::uint32_t column = 0;  ///< 0: unknown
  bool inlined = false;      ///< into the next frame

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

struct SourceLine {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// The contents of .gnu_debugaltlink: the file to which dwz(1) moved common parts.
struct AlternateLink {
  std::string path;      ///< absolute, or relative to the directory of the file itself
  std::string build_id;  ///< binary
};

struct DebugOptions {
  /// The file of alternate_link(). Without it, the names in it are missing.
  std::optional<Input> alternate = std::nullopt;
  /// Opens the file of a split unit (-gsplit-dwarf). The path comes from the ELF file, which may be
  /// hostile: open regular files only, below a trusted root. Called only if needed; concurrently if
  /// find_all() uses several threads. Empty: no file is opened, and code of such units has lines
  /// but no functions.
  std::function<Result<Input>(const std::string& path)> open_split = {};
  /// Opens the package that may contain all split units (PROGRAM.dwp). It is used before the units'
  /// own files. Called once, when the first of them is needed. The same precautions apply.
  std::function<Result<Input>()> open_package = {};
  /// Limit for the indexes in memory; the least recently used are removed first. An index of a
  /// single unit is truncated at this size.
  std::uint64_t max_bytes = std::uint64_t{256} << 20;
  /// Limit for debug sections after decompression; more is too_large.
  std::uint64_t max_section_bytes = std::uint64_t{8} << 30;
};

struct DebugIndexStats {
  std::uint64_t units = 0;          ///< units with code
  std::uint64_t built = 0;          ///< indexes built so far, of lines or of functions
  std::uint64_t bytes = 0;          ///< size of the indexes in memory now
  std::uint64_t split_missing = 0;  ///< split units whose file was not found
  std::uint64_t package_lacks = 0;  ///< of these, those that a package should have had
  /// Why some debug sections cannot be decompressed; empty if all can.
  std::string damage = {};
  /// The path of alternate_link(), if DebugOptions::alternate was missing; else empty.
  std::string alternate_missing = {};
};

/// Source files, lines and inlined calls of one ELF file, from its DWARF 2 to 5: of the executable
/// or of its separate debug file. Addresses are those of the file (ELF virtual addresses), not of a
/// process.
///
/// Opening reads the headers of all units, O(units). The lines and the functions of a unit are
/// indexed at the first look-up, in time linear in its size times a logarithm; single functions and
/// sequences of lines likewise. A look-up in an index is O(log n), and reads the names from the
/// mapped file.
///
/// The code of a function is where its DWARF says, including DW_AT_ranges, if the file has
/// executable segments there: linkers keep the DWARF of removed functions, with addresses such as
/// 0. Of overlapping functions the later one in the unit wins; of overlapping units the first.
/// .debug_aranges is not read, because units contain the same. Sections may be compressed with zlib
/// or zstd, and split units may be in a package (.dwp).
///
/// Hostile files: no number from the file is trusted. There is no recursion; circular references
/// end after 8 steps; an address has at most 256 frames. Work on a unit is bounded by its size, and
/// memory by max_bytes, plus about 60 bytes per unit, 16 MiB, and the decompressed sections. This
/// is not libdw, because libdw is not thread-safe, frees nothing before its end, and opens files
/// (split units, alternate files) at any path in the input, including a FIFO. Holds no descriptor.
///
/// Copies share everything. Several threads may use const members. The bytes of the input live as
/// long as a copy; use TruncationGuard if the file may shrink while mapped. Sources: DWARF 5 (2017)
/// and 4 (2010); "DebugFission", gcc wiki, for split DWARF 4.
class PERFMAP_API DebugIndex {
 public:
  /// Fails like Input::open() (regular files only) and from_input().
  static Result<DebugIndex> open(const std::string& path, DebugOptions options = {});
  /// Fails with bad_format (not an ELF file; an alternate file with another build-id than the
  /// link's), unsupported (no DWARF; a relocatable file, except .dwo) or too_large.
  static Result<DebugIndex> from_input(Input input, DebugOptions options = {});

  /// The functions at the address, the innermost first, each with its place in the source: the last
  /// contains the code, the others are inlined. A single frame without names if there is only a
  /// line; empty if there is nothing. For a return address, pass the byte before it.
  std::vector<SourceFrame> find(Address vaddr) const;
  /// The file and line of find()'s first frame. Does not index functions.
  std::optional<SourceLine> find_line(Address vaddr) const;
  /// find() for each address, in any order. Each unit is indexed once, on up to `threads` threads,
  /// including the caller's. The result does not depend on their number.
  std::vector<std::vector<SourceFrame>> find_all(std::span<const Address> vaddrs,
                                                 unsigned threads = 1) const;

  /// None if the file has no such link.
  std::optional<AlternateLink> alternate_link() const;
  DebugIndexStats stats() const;

 private:
  class Impl;
  explicit DebugIndex(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace perfmap

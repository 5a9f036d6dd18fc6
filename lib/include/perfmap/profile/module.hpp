// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
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

/// A symbol's name in the language of its source: C++ (Itanium), Rust and OCaml. Nothing if it
/// is not mangled, if the mangling is unknown, or if the result would be unreasonably long. A
/// suffix after '@' (a version, "plt") does not change. Time and memory are bounded for any name.
/// From any thread.
PERFMAP_API std::optional<std::string> demangle(std::string_view name);

/// The same for a name that a runtime wrote to a perf map or a jitdump: LLVM's JIT, for example,
/// writes symbols. The whole name must be mangled; a note after it (" [tier1]", " (inlined)")
/// stays. Other names do not change.
PERFMAP_API std::optional<std::string> demangle_code(std::string_view name);

class CfiTable;
class DebugIndex;

/// A section as its header describes it. These values are unchecked; Module::bytes_of() checks
/// them.
struct ElfSectionFacts {
  std::string_view name;
  std::uint32_t type = 0;   ///< SHT_…
  std::uint64_t flags = 0;  ///< SHF_…; with SHF_COMPRESSED the bytes begin with an ElfN_Chdr
  Address address = 0;      ///< 0 if it is not loaded
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t entry_size = 0;
};

/// A PT_LOAD program header.
struct LoadSegment {
  std::uint64_t offset = 0;
  std::uint64_t file_size = 0;
  AddressRange range;  ///< in memory, before relocation
  bool is_executable = false;
  bool is_writable = false;
};

enum class SymbolKind : std::uint8_t {
  function,  ///< STT_FUNC
  indirect,  ///< STT_GNU_IFUNC: the code that chooses the function
  plt,       ///< a linkage table's entry, which is named FUNCTION@plt, or PLT0 before them
  label,     ///< no type, in executable memory: assembler code
};

/// The symbol that owns an address of a module.
struct Symbol {
  std::string_view name;  ///< as in the file; borrowed from the Module
  AddressRange range;     ///< addresses before relocation; estimated if the symbol has no size
  SymbolKind kind = SymbolKind::function;
  std::uint32_t id = 0;  ///< for Module::demangled()
};

/// Returns the path, on this machine, of a debug file by its build-id (raw bytes), such as
/// Debuginfod::find(). Must be callable from any thread.
using FetchDebugFile = std::function<std::optional<std::string>(std::string_view build_id)>;

/// Where to look for a module's files. The library itself knows no directory.
struct ModuleFiles {
  /// Directory that serves as "/" for paths, and no link leads out of it: /proc/PID/root, or a copy
  /// of another machine's tree. Empty: no restriction.
  std::string root = {};
  /// Directories with separate debug files, such as "/usr/lib/debug". Each is tried below `root`,
  /// and, if there is a root, also on the host. Empty: no debug file is searched.
  std::vector<std::string> debug_directories = {};
  /// Called if these have none for a file without DWARF. Empty: no fetching.
  FetchDebugFile fetch = {};
};

/// An ELF file: its segments, the function at an address, and the bytes of its sections. Of either
/// class and byte order.
///
/// Immutable and shared: several threads may use const members. Tables are built on first use, by
/// the first thread while others wait. Keeps the file mapped, without a descriptor (unless it was
/// opened with an Input that keeps one: OpenPolicy::keep_descriptor). Use TruncationGuard if files
/// may be truncated while mapped. All views live as long as the Module.
///
/// Trusts nothing in the file: what lies outside of it is empty, and invalid data is left out.
/// Addresses are those of the file, before relocation (`vaddr`).
///
/// Sources: System V ABI, gABI 4.1, "Object Files"; its x86-64 and aarch64 supplements; GDB manual,
/// "Debugging Information in Separate Files".
class PERFMAP_API Module {
 public:
  /// Opens a file; for links, FIFOs, devices and sizes see ModuleFiles::root and
  /// OpenPolicy::bounded. Fails like Input::open(), or with bad_format if it is not an ELF file.
  static Result<std::shared_ptr<const Module>> open(const std::string& path,
                                                    const ModuleFiles& files = {});
  /// Takes an open file, or bytes such as those of a vdso. The input's name is the path below the
  /// root; debug files are searched next to it, and by build-id.
  static Result<std::shared_ptr<const Module>> open(Input input, const ModuleFiles& files = {});

  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  /// The path as given, without the root.
  const std::string& path() const noexcept;
  const FileFacts& facts() const noexcept;
  /// The whole file.
  std::string_view bytes() const noexcept;

  std::uint16_t machine() const noexcept;  ///< EM_…
  std::uint16_t type() const noexcept;     ///< ET_…
  bool is_64() const noexcept;
  std::endian byte_order() const noexcept;
  Address entry() const noexcept;
  /// The bytes of the NT_GNU_BUILD_ID note, at most 64; empty if there is none.
  std::string_view build_id() const noexcept;

  /// In file order.
  std::span<const LoadSegment> segments() const noexcept;
  /// The address of a byte of the file, preferably in an executable segment that contains exactly
  /// this byte. A page may belong to several segments, a byte rarely does: so pass the offset of
  /// the sampled byte (pc - start of the mapping + its offset), never that of the mapping's first
  /// byte.
  std::optional<Address> file_offset_to_vaddr(std::uint64_t offset) const noexcept;
  /// Nothing for addresses without bytes in the file.
  std::optional<std::uint64_t> vaddr_to_file_offset(Address vaddr) const noexcept;
  /// Whether an executable segment contains the address.
  bool is_code(Address vaddr) const noexcept;

  /// For a file without section headers: .dynsym and .dynstr from PT_DYNAMIC, and .eh_frame_hdr
  /// from PT_GNU_EH_FRAME.
  std::span<const ElfSectionFacts> sections() const noexcept;
  /// The first section with that name, or null. O(sections).
  const ElfSectionFacts* find_section(std::string_view name) const noexcept;
  /// The section's bytes in this file, without decompression; empty if it has none, or if it is not
  /// completely within the file.
  std::string_view bytes_of(const ElfSectionFacts& section) const noexcept;
  /// find_section() and bytes_of(); empty if there is no such section.
  std::string_view section_bytes(std::string_view name) const noexcept;
  /// The loaded bytes from an address to the end of its segment in the file; empty if none.
  std::string_view bytes_at(Address vaddr) const noexcept;

  /// The separate debug file, or null. It is searched by build-id and by .gnu_debuglink, and its
  /// build-id (or its checksum, if this module has no build-id) is verified. Searched once, when
  /// first needed; if the module has a root of its own, at opening, because that root may
  /// disappear.
  const Module* debug_file() const;
  /// The file that .gnu_debugaltlink of this file (not of debug_file()) names, by the same rules,
  /// or null.
  const Module* alternate_file() const;

  /// The symbol that owns an address. Among all symbols that cover it, the one that begins last
  /// wins, so that inner symbols win. Among those with the same begin: global before weak before
  /// local, function before label, fewer underscores before more, then file order. Symbols without
  /// a size reach to the next symbol, and are used only if no symbol with a size covers the
  /// address. Uses .symtab, .dynsym, .gnu_debugdata, debug_file() and linkage tables (x86-64, i386,
  /// aarch64) together. Excludes data, mapping symbols ($x, $d) and assembler-local symbols (.L).
  ///
  /// The first call reads the symbols, O(n). For very many symbols it builds no table yet: look-ups
  /// compare symbols near the address, until they have cost as much time as the table. The table is
  /// then built in O(n log n), and from then on a look-up is O(log n) at worst, and allocates
  /// nothing. Object files (ET_REL) have no symbols here, because their addresses are not final.
  std::optional<Symbol> find_symbol(Address vaddr) const;
  /// Number of symbols that find_symbol() can return.
  std::size_t symbol_count() const;

  /// The name in the language of its source: C++ (Itanium) or Rust. Other names, and results that
  /// would be unreasonably long, stay as they are. Computed once per symbol. The symbol must be of
  /// this module.
  std::string_view demangled(const Symbol& symbol) const;

  /// Source files, lines and inlined calls, from the DWARF of this file or of debug_file(); or
  /// null. Built by the first call, O(units); see DebugIndex. Files of split units are searched
  /// below ModuleFiles::root, and so is their package: PATH.dwp, and the one next to debug_file().
  const DebugIndex* debug_index() const;
  /// Why debug_index() is null although there is DWARF; otherwise null.
  const Error* debug_failure() const;

  /// Its size: mapped bytes, debug files, and the tables built so far.
  std::uint64_t bytes_held() const noexcept;

 private:
  struct State;
  friend class ModuleOpener;
  friend const CfiTable& cfi_of(const Module& module);
  explicit Module(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct ModuleCacheOptions {
  /// Above this, the least recently used modules without other owners are removed.
  std::uint64_t max_bytes = std::uint64_t{2} << 30;
  /// See ModuleFiles.
  std::vector<std::string> debug_directories = {};
  FetchDebugFile fetch = {};
  /// Files with the same build-id are one module without further checks. If false, their bytes must
  /// be equal too, because anyone can write any build-id: they are compared once.
  bool trust_build_ids = false;
};

/// Identifies a file independently of its paths, by the result of stat(2).
struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;

  friend bool operator==(const FileKey&, const FileKey&) = default;
};

/// A cache of ELF files, each opened once for all processes and threads. The key is the build-id,
/// else device, inode, time and size. Several threads may use all members. Files are read without
/// holding the lock; a thread that needs a file that is being opened waits for it.
///
/// Files that are not ELF are remembered; missing files are tried again. Neither holds a
/// descriptor.
class PERFMAP_API ModuleCache {
 public:
  using Answer = Result<std::shared_ptr<const Module>>;

  explicit ModuleCache(ModuleCacheOptions options = {});
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  /// See Module::open(). Does not open known files. Debug files are searched below the root of the
  /// first caller.
  Answer open(const std::string& path, const std::string& root = {});
  /// The same for an open file, or for bytes.
  Answer open(Input input, const std::string& root = {});

  /// A module that is already in the cache, or null: accesses no file. By build-id (raw bytes): the
  /// most recently used module with it.
  std::shared_ptr<const Module> find(const FileKey& key);
  std::shared_ptr<const Module> find_build_id(std::string_view build_id);

  /// Removes modules without other owners until at most `bytes` are left. open() calls it when it
  /// adds a file.
  void trim(std::uint64_t bytes);

  struct Statistics {
    std::uint64_t opened = 0;  ///< files that were read, ELF or not
    std::uint64_t hits = 0;    ///< results without reading
    std::uint64_t shared = 0;  ///< of `opened`, those replaced by an equal module with another path
    std::uint64_t failures = 0;   ///< results that are errors, including remembered ones
    std::uint64_t evictions = 0;  ///< modules removed
    std::uint64_t modules = 0;    ///< in the cache now
    std::uint64_t bytes = 0;      ///< their size: see Module::bytes_held()
  };
  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Downloads debug files from debuginfod servers, with elfutils' libdebuginfod. open() loads that
/// library; without it this library never uses the network. libdebuginfod takes the servers'
/// addresses from the environment (DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT), and stores files below
/// DEBUGINFOD_CACHE_PATH or the user's cache directory.
///
/// Copies share everything; several threads may use const members, which run one at a time. Source:
/// debuginfod_find_debuginfo(3).
class PERFMAP_API Debuginfod {
 public:
  /// Fails with not_found if the library is not installed. Does not check whether servers are
  /// configured: find() does.
  static Result<Debuginfod> open();

  /// The path, on this machine, of the debug file with that build-id (raw bytes); nothing if no
  /// server has it. Takes as long as the servers do.
  std::optional<std::string> find(std::string_view build_id) const;
  /// Why the servers did not respond to the last find(); nothing if they did, also if they have no
  /// such file.
  std::optional<Error> failure() const;

 private:
  struct State;
  explicit Debuginfod(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Maximum size of an expanded file: the same as for input from a pipe.
inline constexpr std::uint64_t kMaxExpandedBytes = std::uint64_t{1} << 30;

/// Whether these bytes are in gzip, xz or zstd format.
PERFMAP_API bool is_expandable(std::string_view bytes) noexcept;

/// Expands an input in gzip, xz or zstd format, with all its members or frames, and keeps its name;
/// returns other inputs unchanged. The format is detected from the content. An expanded input has
/// no file of its own: it never grows, and its facts() are empty. Fails with too_large if it would
/// exceed `max` bytes, and with bad_format if it is damaged or truncated.
PERFMAP_API Result<Input> expanded(Input input, std::uint64_t max = kMaxExpandedBytes);

}  // namespace perfmap

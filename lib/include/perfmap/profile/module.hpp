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

/// A symbol's name in the language of its source: C++ (Itanium), Rust, D and OCaml. Nothing if it
/// is not mangled, or by rules that are not known here, or if the answer would be too long to be of
/// use. What follows an '@' (a version, "plt") stays as it is. Time and memory are bounded whatever
/// the name says. From any thread.
PERFMAP_API std::optional<std::string> demangle(std::string_view name);

/// The same for a name as a runtime writes it to a perf map or a jitdump, such as LLVM's JIT, which
/// writes symbols. The whole name must be mangled; a note behind it (" [tier1]", " (inlined)")
/// stays. Other names, of whatever runtime, are not changed.
PERFMAP_API std::optional<std::string> demangle_code(std::string_view name);

class CfiTable;
class DebugIndex;

/// A section as its header describes it. What the file claims is not checked here;
/// Module::bytes_of() does that.
struct ElfSectionFacts {
  std::string_view name;
  std::uint32_t type = 0;   ///< SHT_…
  std::uint64_t flags = 0;  ///< SHF_…; with SHF_COMPRESSED its bytes begin with an ElfN_Chdr
  Address address = 0;      ///< 0 where it is not loaded
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
  plt,       ///< a linkage table's entry, which we call FUNCTION@plt
  label,     ///< no type, in executable memory: assembler code
};

/// Who owns an address of a module.
struct Symbol {
  std::string_view name;  ///< as the file has it; borrowed from the Module
  AddressRange range;     ///< addresses before relocation; made up where the symbol has no size
  SymbolKind kind = SymbolKind::function;
  std::uint32_t id = 0;  ///< for Module::demangled()
};

/// The path, on this machine, of a debug file by its build-id (raw bytes), such as
/// Debuginfod::find(). From any thread.
using FetchDebugFile = std::function<std::optional<std::string>(std::string_view build_id)>;

/// Where a module's files may be looked for. The library itself knows no directory.
struct ModuleFiles {
  /// Paths are looked up below it as if it were "/", and no link leads out: /proc/PID/root, or a
  /// copy of another machine's tree. Empty: everywhere.
  std::string root = {};
  /// Directories that hold separate debug files, such as "/usr/lib/debug". Each is tried below
  /// `root` and, where there is a root, on the host, too. Empty: no debug file is looked for.
  std::vector<std::string> debug_directories = {};
  /// Asked where these have none for a file without DWARF. Empty: nobody is.
  FetchDebugFile fetch = {};
};

/// An ELF file: what of it is loaded where, which function owns an address, and the bytes of its
/// sections for those who read more. Of either class and byte order.
///
/// Immutable, and shared: const members may be used from several threads. Tables are made on first
/// use, by the thread that comes first while others wait. Holds the file mapped and no descriptor
/// (unless it was given an Input that does: OpenPolicy::keep_descriptor); TruncationGuard is for
/// programs that fear for their mappings. All views live as long as the
/// Module.
///
/// Nothing that the file says is believed: what lies outside of it is empty, and what makes no
/// sense is left out. Addresses are those of the file, before relocation (`vaddr`).
///
/// Sources: System V ABI, gABI 4.1, "Object Files"; its x86-64 and aarch64 supplements; GDB manual,
/// "Debugging Information in Separate Files".
class PERFMAP_API Module {
 public:
  /// Opens a file; of links, FIFOs, devices and sizes see ModuleFiles::root and
  /// OpenPolicy::bounded. Fails as Input::open() does, or with bad_format where it is no ELF file.
  static Result<std::shared_ptr<const Module>> open(const std::string& path,
                                                    const ModuleFiles& files = {});
  /// Takes a file that is open, or bytes such as those of a vdso. The input's name is the path
  /// below the root beside which debug files are looked for, besides those named by build-id.
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
  /// The NT_GNU_BUILD_ID note's bytes, at most 64 of them; empty where there is none.
  std::string_view build_id() const noexcept;

  /// In the order of the file.
  std::span<const LoadSegment> segments() const noexcept;
  /// The address of a byte of the file: of the executable segment that has exactly this byte, else
  /// of another one. A page may belong to several segments, a byte hardly ever does: so ask for the
  /// byte that was hit (pc - start of the mapping + its offset), never for the mapping's first.
  std::optional<Address> file_offset_to_vaddr(std::uint64_t offset) const noexcept;
  /// Nothing for addresses without bytes in the file.
  std::optional<std::uint64_t> vaddr_to_file_offset(Address vaddr) const noexcept;
  /// Whether an executable segment has it.
  bool is_code(Address vaddr) const noexcept;

  /// Of a file without section headers: .dynsym and .dynstr, as PT_DYNAMIC tells them, and
  /// .eh_frame_hdr, as PT_GNU_EH_FRAME does.
  std::span<const ElfSectionFacts> sections() const noexcept;
  /// The first of that name, or null. O(sections).
  const ElfSectionFacts* find_section(std::string_view name) const noexcept;
  /// Its bytes in this file, still compressed if they are; empty where it has none, or where it
  /// does not lie within the file as a whole.
  std::string_view bytes_of(const ElfSectionFacts& section) const noexcept;
  /// Both in one: empty where there is no such section.
  std::string_view section_bytes(std::string_view name) const noexcept;
  /// The loaded bytes from an address on, to the end of its segment in the file; empty if none.
  std::string_view bytes_at(Address vaddr) const noexcept;

  /// The separate debug file, or null. It was found by build-id or by .gnu_debuglink, and its
  /// build-id (or, where this module has none, its checksum) is right. Looked for once: when it is
  /// wanted first; below a root of its own, at opening, as that may go.
  const Module* debug_file() const;
  /// The file that .gnu_debugaltlink of this file (not of debug_file()) names, by the same rules,
  /// or null.
  const Module* alternate_file() const;

  /// Who owns an address: of all symbols that cover it the one that begins last, so that the inner
  /// one answers; of those that begin together a global before a weak before a local, a function
  /// before a label, fewer underscores before more, the first of the file. Symbols without size
  /// reach to the next symbol, and only where none with a size covers them. From .symtab, .dynsym,
  /// .gnu_debugdata, debug_file() and linkage tables (x86-64, i386, aarch64) together; data,
  /// mapping symbols ($x, $d) and assembler-local ones (.L) do not count.
  ///
  /// The first call reads the symbols, O(n). Of very many it makes no table yet: look-ups compare
  /// those near the address, until they have taken as long as the table would have. That is made in
  /// O(n log n), and from then on a look-up takes O(log n) at worst, and allocates nothing.
  /// Object files (ET_REL) have no symbols here, as their addresses mean nothing yet.
  std::optional<Symbol> find_symbol(Address vaddr) const;
  /// How many symbols may answer.
  std::size_t symbol_count() const;

  /// The name in the language of its source: C++ (Itanium), Rust; anything else, and what would be
  /// unreasonably long, as it is. Made once for each symbol. The symbol must be of this module.
  std::string_view demangled(const Symbol& symbol) const;

  /// Source files, lines and inlined calls, from this file's DWARF or from that of debug_file(); or
  /// null. Made by the first call, O(units); see DebugIndex. Files of split units are looked for
  /// below ModuleFiles::root, and so is their package: PATH.dwp, and that beside debug_file().
  const DebugIndex* debug_index() const;
  /// Why debug_index() is null although there is DWARF; null otherwise.
  const Error* debug_failure() const;

  /// What it takes: mapped bytes, debug files, tables as far as they are made.
  std::uint64_t bytes_held() const noexcept;

 private:
  struct State;
  friend class ModuleOpener;
  friend const CfiTable& cfi_of(const Module& module);
  explicit Module(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct ModuleCacheOptions {
  /// Beyond, what was used longest ago and is held by nobody else goes.
  std::uint64_t max_bytes = std::uint64_t{2} << 30;
  /// See ModuleFiles.
  std::vector<std::string> debug_directories = {};
  FetchDebugFile fetch = {};
  /// Files of the same build-id are one module, whoever wrote them. Otherwise only those whose
  /// bytes are the same, too, as anybody can write any build-id: they are compared once.
  bool trust_build_ids = false;
};

/// Which file it is, whatever its paths: what stat(2) says.
struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;

  friend bool operator==(const FileKey&, const FileKey&) = default;
};

/// ELF files, each opened once for however many processes and threads: known by build-id, else by
/// device, inode, time and size. May be used from several threads, all members. Files are read
/// outside of its lock; who asks for one that is being opened waits for that.
///
/// A file that is no ELF file is remembered as such; one that is not there is asked for again.
/// Neither holds a descriptor.
class PERFMAP_API ModuleCache {
 public:
  using Answer = Result<std::shared_ptr<const Module>>;

  explicit ModuleCache(ModuleCacheOptions options = {});
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  /// See Module::open(). A file that is known is looked up, and not opened. Debug files are looked
  /// for below the root of the one who came first.
  Answer open(const std::string& path, const std::string& root = {});
  /// The same for what is open, or for bytes.
  Answer open(Input input, const std::string& root = {});

  /// What is known already, or null: touches no file. By the bytes of a build-id: whatever has it
  /// and was used last.
  std::shared_ptr<const Module> find(const FileKey& key);
  std::shared_ptr<const Module> find_build_id(std::string_view build_id);

  /// Lets go of what nobody else holds until `bytes` are left at most. open() does it by itself
  /// when it takes in a file.
  void trim(std::uint64_t bytes);

  struct Statistics {
    std::uint64_t opened = 0;     ///< files that were read, ELF or not
    std::uint64_t hits = 0;       ///< answers without reading
    std::uint64_t shared = 0;     ///< of `opened`, those that another path's module stands for
    std::uint64_t failures = 0;   ///< answers that are errors, remembered ones included
    std::uint64_t evictions = 0;  ///< modules let go
    std::uint64_t modules = 0;    ///< now in it
    std::uint64_t bytes = 0;      ///< what these hold: see Module::bytes_held()
  };
  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Asks debuginfod servers for debug files, by elfutils' libdebuginfod, which is loaded when this
/// is opened and not before: nothing here reaches for the network by itself. That library takes the
/// servers' addresses from the environment (DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT), and keeps what it
/// got below DEBUGINFOD_CACHE_PATH or the user's cache directory.
///
/// Copies share everything; const members may be used from several threads, which take turns.
/// Source: debuginfod_find_debuginfo(3).
class PERFMAP_API Debuginfod {
 public:
  /// Fails with not_found where the library is not installed. That no server is named shows by
  /// find() alone.
  static Result<Debuginfod> open();

  /// The path of the debug file with that build-id (raw bytes) on this machine; nothing where no
  /// server has it. Takes as long as the servers do.
  std::optional<std::string> find(std::string_view build_id) const;
  /// What kept the servers from answering when find() was called last; nothing where they did, be
  /// it that they have no such file.
  std::optional<Error> failure() const;

 private:
  struct State;
  explicit Debuginfod(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// How large a compressed file may become: as large as what comes through a pipe.
inline constexpr std::uint64_t kMaxExpandedBytes = std::uint64_t{1} << 30;

/// Whether gzip, xz or zstd made these bytes.
PERFMAP_API bool is_expandable(std::string_view bytes) noexcept;

/// What gzip, xz or zstd made the input of, by the same name; an input that none of them made as it
/// is. Told by content, of which all members or frames count. What is expanded has no file of its
/// own: it never grows, and its facts() are empty. Fails with too_large where it would exceed
/// `most` bytes, and with bad_format where it is damaged or cut off.
PERFMAP_API Result<Input> expanded(Input input, std::uint64_t max = kMaxExpandedBytes);

}  // namespace perfmap

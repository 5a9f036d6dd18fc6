// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmap/output_file.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The machine that code is for.
struct CodeMachine {
  std::uint16_t elf = 0;  ///< EM_…
  bool is_64 = true;
  std::endian order = std::endian::little;

  friend bool operator==(const CodeMachine&, const CodeMachine&) = default;
};

/// One line of a disassembly. Borrowed from the code and from the Disassembler, until its next
/// line.
struct Instruction {
  std::uint64_t offset = 0;  ///< of its first byte, from the beginning of the code
  std::string_view bytes;    ///< at least one
  std::string_view text;     ///< in AT&T syntax on x86; ".byte 0x06" for bytes that are no code
  bool is_valid = true;      ///< false for such bytes
  /// Where a jump or a call with a fixed target leads.
  std::optional<Address> target = std::nullopt;
};

/// The samples at an offset in code.
struct CodeSamples {
  std::uint64_t offset = 0;
  std::uint64_t self = 0;   ///< samples whose instruction pointer was there
  std::uint64_t total = 0;  ///< samples with a frame there; a frame of a caller is in its call

  friend bool operator==(const CodeSamples&, const CodeSamples&) = default;
};

struct InstructionDecoder;

/// Disassembles code with Zydis (x86-64, i386) or Capstone (little-endian aarch64), which open()
/// loads: without that library, everything else here works.
///
/// Code may be any bytes. Every byte is in exactly one line, and the lines are in the order of the
/// bytes. An instruction with a VEX or EVEX prefix that the library does not know is one line,
/// unless another one begins in it; other bytes that are no instruction advance by the machine's
/// smallest instruction: one byte on x86, four on aarch64. Memory does not depend on the size of
/// the code.
///
/// One thread at a time.
class PERFMAP_API Disassembler {
 public:
  /// Whether open() supports the machine.
  static bool supports(const CodeMachine& machine) noexcept;
  /// Fails with not_found if the library is not installed, and with unsupported for other machines,
  /// or if the library has another interface.
  static Result<Disassembler> open(const CodeMachine& machine);
  Disassembler(Disassembler&&) noexcept;
  Disassembler& operator=(Disassembler&&) noexcept;
  ~Disassembler();

  /// Calls `visit` for each line of `code`, whose first byte is at `address`. O(bytes). An
  /// instruction begins at each of `samples`, where the processor was, and where one of up to 4096
  /// jumps ahead leads.
  void read(std::string_view code, Address address,
            const std::function<void(const Instruction&)>& visit,
            std::span<const CodeSamples> samples = {}) const;

 private:
  explicit Disassembler(std::unique_ptr<InstructionDecoder> decoder) noexcept;
  std::unique_ptr<InstructionDecoder> decoder_;
};

/// Samples that are in the totals of several offsets, because the function called itself.
struct SharedSamples {
  std::vector<std::uint64_t> offsets;  ///< ascending, at least two
  std::uint64_t count = 0;

  friend bool operator==(const SharedSamples&, const SharedSamples&) = default;
};

/// The source line of the code from `offset` to that of the next place, or to the end of the code.
struct SourcePlace {
  std::uint64_t offset = 0;
  std::uint32_t file = 0;  ///< position in CodeVersion::files
  std::uint32_t line = 0;  ///< 0: the code belongs to no line

  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

/// Samples in a function that was inlined where this line calls it, or in what that called.
struct InlinedCall {
  std::uint32_t file = 0;  ///< position in CodeVersion::files
  std::uint32_t line = 0;
  std::uint64_t total = 0;  ///< without those that are in the line's code, too

  friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
};

/// One version of a function: JIT code at one address since one compilation, or a function of one
/// ELF file, or one of the functions that it was inlined into. Functions that are inlined into a
/// function belong to its code.
struct CodeVersion {
  std::string name;    ///< as in stacks; raw bytes
  std::string tier;    ///< see DecodedName::tier
  std::string module;  ///< path of the ELF file, map or dump; raw bytes
  FrameKind kind = FrameKind::unknown;
  /// Of an inlined function: the function that contains its code, which `range` is of.
  std::string inlined_into = {};
  /// JIT code and the kernel: in memory. ELF files: in the file, before relocation.
  AddressRange range = {};
  /// The span in which JIT code of a dump was at this address, in nanoseconds of the recording's
  /// clock. Nothing if unknown, or if the clocks of dump and recording cannot be compared; until:
  /// also if the code was still there at the end.
  std::optional<std::uint64_t> since = std::nullopt, until = std::nullopt;
  std::uint64_t self = 0;            ///< samples in the code
  std::uint64_t total = 0;           ///< samples with a frame of the code
  std::vector<CodeSamples> samples;  ///< by offset; only those that are not 0
  std::vector<SharedSamples> shared;
  std::vector<InlinedCall> inlined_calls;  ///< by file and line; only with lines

  CodeMachine machine = {};
  std::string_view code;            ///< its bytes; borrowed from `owner`
  std::string no_code;              ///< why there are none: a clause; empty if there are
  std::vector<std::string> files;   ///< at most 64 MiB; lines of further files are unknown
  std::vector<SourcePlace> places;  ///< by offset
  std::int64_t built_ns = 0;        ///< last write of the ELF file; 0: it has none, or is unknown
  std::shared_ptr<const void> owner = nullptr;

  /// Whether it may have existed at that time: true if its span is unknown.
  bool is_alive_at(std::uint64_t time) const noexcept {
    return (!since || *since <= time) && (!until || time < *until);
  }
  /// The source line of the code at an offset, or null. O(log places).
  const SourcePlace* place_at(std::uint64_t offset) const noexcept;
};

/// A function that matches a query: all its versions.
struct MatchedFunction {
  std::string name;      ///< as in stacks; without the tier if several tiers match
  bool is_part = false;  ///< the query is only a part of the name
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> versions;  ///< for FunctionSamples::version()
};

/// Counts the samples of a recording at each address of the functions with a name. An empty name is
/// a part of all names.
///
///     FunctionSamples samples("fib");
///     StackOptions options = …;
///     samples.watch(options);  // before the reader is made
///     StackReader reader(recording, options);
///     reader.read([&](const StackSample& sample) { samples.add(sample, reader.table()); }, …);
///     for (const MatchedFunction& function : samples.matches(reader.table())) …
///
/// The code of a function may be compiled again, to other tiers, and moved: each is a version.
/// Counts samples of all events alike. Memory is proportional to the distinct addresses, the lines
/// of inlined calls, and the distinct sets of addresses of a recursive function in a stack, in
/// functions whose name contains the query. One thread at a time.
class PERFMAP_API FunctionSamples {
 public:
  explicit FunctionSamples(std::string query);
  FunctionSamples(FunctionSamples&&) noexcept;
  FunctionSamples& operator=(FunctionSamples&&) noexcept;
  ~FunctionSamples();

  /// Sets what this class needs to find code: StackOptions::versions, and functions around
  /// `open_module` and `find_jit`, which keep a reference to this object's state.
  void watch(StackOptions& options);
  /// Amortised O(frames).
  void add(const StackSample& sample, const FrameTable& table);
  /// All samples that were added.
  std::uint64_t samples() const noexcept;

  /// The functions that match best, those with the most samples first. A name that is equal to the
  /// query matches best; then names that are equal without their tier; then those of functions that
  /// a runtime calls so, without the file, or "(anonymous)"; then all that contain it; then those
  /// of which it is the row of a report, such as "name (file:1) [module]". Names may be as
  /// append_visible() prints them. Empty if none does.
  std::vector<MatchedFunction> matches(const FrameTable& table) const;
  /// A version with its code, and with source lines if `lines`. Reads ELF files and dumps that the
  /// reader opened, no others. The first version of a dump whose code was moved reads all records
  /// of the dump. With lines a look-up for each byte of a function of an ELF file, up to
  /// kMaxLineBytes of them.
  CodeVersion version(std::uint32_t number, const FrameTable& table, const Recording& recording,
                      bool lines) const;
  /// Of longer functions only addresses with samples have lines.
  static constexpr std::uint64_t kMaxLineBytes = std::uint64_t{1} << 20;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A row of a listing: an instruction, or an address with samples if there is no disassembly.
struct ListingRow {
  std::uint64_t offset = 0;
  std::string_view bytes;  ///< empty if the version has no code there
  std::string_view text;   ///< of the instruction; empty without a disassembler
  bool is_valid = true;    ///< false: bytes that are no instruction
  std::optional<Address> target = std::nullopt;  ///< of a jump or a call
  std::uint64_t self = 0, total = 0;
  const SourcePlace* place = nullptr;  ///< null: unknown
};

/// Calls `visit` for each instruction, and for each offset with samples that has no code. Without a
/// disassembler, or code, for each offset with samples. Each sample is in exactly one row.
/// O(bytes).
PERFMAP_API void list_code(const CodeVersion& version, const Disassembler* disassembler,
                           const std::function<void(const ListingRow&)>& visit);

/// The samples of a source line, by file and line.
struct LineSamples {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint64_t self = 0, total = 0;
};
/// All lines that have code, or call an inlined function, by file, in the order of their numbers.
/// Samples without a line are in none of them. O(n log n).
PERFMAP_API std::vector<LineSamples> list_lines(const CodeVersion& version);
class SourceText;
/// Those to show: without lines that have neither samples nor a text.
PERFMAP_API std::vector<LineSamples> list_lines(const CodeVersion& version, SourceText& source);

/// Reads lines of source files. Their paths come from debug information, which may be hostile, so a
/// file must be regular, at most kMaxBytes large, and readable by others or owned by this process's
/// user; it must have the suffix of a source file or be below /usr/include, and must not be a link.
/// All files together have at most kMaxTotal. One thread at a time.
class PERFMAP_API SourceText {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kMaxTotal = std::uint64_t{256} << 20;

  /// `root` serves as "/"; no link leads out of it. Empty: this machine. `is_shared`: what is read
  /// is for other users, so files that these cannot read are left out: those that are not readable
  /// by others, or are in a directory below `root` that others may not enter.
  explicit SourceText(std::string root = {}, bool is_shared = false)
      : root_(std::move(root)), is_shared_(is_shared) {}

  /// The line without its newline; lines count from 1. Nothing if there is no such line. Valid as
  /// long as this object. The first look-up in a file reads it.
  std::optional<std::string_view> line(const std::string& file, std::uint32_t line);
  /// The same for a listing: each tab becomes blanks up to the next column that is a multiple of 8.
  std::optional<std::string> line_without_tabs(const std::string& file, std::uint32_t line);
  /// Whether the file is left out because other users cannot read it.
  bool is_private(const std::string& file) { return open(file).is_private; }
  /// Compares the times of the files of a version that were read with that of its code, which is
  /// of an ELF file, or else of the recording, last written at `recorded_ns` (0: unknown).
  void check_times(const CodeVersion& version, std::int64_t recorded_ns);
  /// A file that was written after the code that it is shown for.
  struct Changed {
    std::string file;
    bool is_program = false;  ///< after the ELF file; else after the recording
  };
  /// Those that check_times() found, each once.
  std::span<const Changed> changed() const noexcept { return changed_; }
  /// Files that cannot be used, each once.
  std::span<const Error> failures() const noexcept { return failures_; }

 private:
  struct File {
    std::optional<Input> input;
    std::vector<std::size_t> begins;  // of lines
    bool is_changed = false;
    bool is_private = false;
  };
  const File& open(const std::string& file);

  std::string root_;
  bool is_shared_;
  std::map<std::string, File> files_;
  std::uint64_t left_ = kMaxTotal;
  std::vector<Error> failures_;
  std::vector<Changed> changed_;
};

/// What is printed of a function.
struct Annotation {
  MatchedFunction function;
  std::uint64_t samples = 0;  ///< of all functions
  std::vector<CodeVersion> versions;
  /// By version; those of one machine share one. Null: the version has none.
  std::vector<std::shared_ptr<const Disassembler>> disassemblers;
};

struct AnnotationPageOptions {
  std::string recording;  ///< what the page calls it
  bool instructions = true;
  bool lines = true;  ///< source lines
  /// Instructions without samples that the page has at most; code may be of any size. The page says
  /// how many are left out.
  std::uint64_t max_idle_rows = std::uint64_t{200} * 1000;
};

/// Writes one self-contained HTML page without scripts: for each version its source lines and
/// instructions with their samples. Names and source lines may be any bytes: they appear in the
/// form of append_visible(), and lines of more than 1000 bytes are cut. O(bytes of the code).
PERFMAP_API void write_annotation_page(const Annotation& found,
                                       const AnnotationPageOptions& options, SourceText& source,
                                       OutputFile& out);

/// The code in a page of StackFormat::html: bounds, so that browsers can open the page.
struct PageCodeOptions {
  std::size_t max_versions = 100;
  std::size_t max_bytes = std::size_t{4} << 20;
  /// Gets why instructions have no text, as the page says; not changed if all have. Borrowed.
  std::string* no_text = nullptr;
};

/// Makes a writer of StackFormat::html whose page also shows code: for the versions with most
/// samples the source lines, and the instructions near samples. `samples` has an empty name, and
/// watches the reader of `table`; the writer adds the samples. Borrows all references until
/// finish(). One thread at a time.
PERFMAP_API std::unique_ptr<StackWriter> make_code_page_writer(
    OutputFile& out, const FrameTable& table, StackProfile profile, StackWriter::Options writing,
    FunctionSamples& samples, const Recording& recording, SourceText& source,
    PageCodeOptions options = {});

}  // namespace perfmap

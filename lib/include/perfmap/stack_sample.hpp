#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/address.hpp"
#include "perfmap/doubt.hpp"
#include "perfmap/export.hpp"
#include "perfmap/unwound_frame.hpp"

namespace perfmap {

/// What kind of code a frame is.
enum class FrameKind : std::uint8_t {
  unknown,  ///< nothing is mapped there, or a file that cannot be read
  native,   ///< of an ELF file
  inlined,  ///< a function of the source that was inlined into the frame that follows
  jit,      ///< made by a runtime; what has no name in memory that only runtimes have, too
  kernel,
};
/// "unknown", "native", "inlined", "jit", "kernel".
PERFMAP_API std::string_view to_string(FrameKind kind) noexcept;

/// A function, whatever the address within it: what a flame graph has as a box. Equal ones are one
/// object with one number. Views live as long as the FrameTable.
struct FrameFunction {
  std::string_view name = {};  ///< empty: nobody knows
  /// As the linker has it; that of JIT code as its runtime wrote it.
  std::string_view system_name = {};
  /// Path of the ELF file, map or dump; "[kernel.kallsyms]", "[vdso]", "//anon".
  std::string_view module = {};
  std::string_view file = {};  ///< of the source
  std::string_view tier = {};  ///< of JIT code; see DecodedName::tier
  FrameKind kind = FrameKind::unknown;

  friend bool operator==(const FrameFunction&, const FrameFunction&) = default;
};

/// One place in a function: what is known about an address. Several frames of one address, the
/// innermost first, are inlined into each other. Offset and addresses are those of the frame's ip,
/// although the names of a caller are those of ip - 1.
struct FramePlace {
  std::uint32_t function = 0;  ///< for FrameTable::function()
  std::uint32_t mapping = 0;   ///< for FrameTable::mapping(); 0: none
  std::uint32_t line = 0;      ///< 0: not known
  std::uint32_t column = 0;
  std::uint64_t offset = 0;  ///< from where the function's code begins
  /// The address as perf script prints it: of a mapped file its offset there, otherwise as it is.
  Address map_address = 0;
  /// In the ELF file, before relocation; otherwise as it is.
  Address vaddr = 0;
  Doubts doubts = {};  ///< of its name

  friend bool operator==(const FramePlace&, const FramePlace&) = default;
};

/// What a part of a process's memory shows, as profiles list it.
struct FrameMapping {
  AddressRange range = {};
  std::uint64_t offset = 0;             ///< in the file
  std::string_view path = {};           ///< as FrameFunction::module
  std::string_view build_id = {};       ///< raw bytes
  FrameKind kind = FrameKind::unknown;  ///< native, jit or kernel, or unknown

  friend bool operator==(const FrameMapping&, const FrameMapping&) = default;
};

/// Functions, places and mappings, each once, by numbers that count from 1; number 0 is that of
/// nothing, which is empty. Grows, and never forgets. One thread at a time; what it handed out
/// stays as it is.
class PERFMAP_API FrameTable {
 public:
  FrameTable();
  FrameTable(FrameTable&&) noexcept;
  FrameTable& operator=(FrameTable&&) noexcept;
  ~FrameTable();

  /// The number of one that equals it, made where there is none. Strings are copied. O(1) on
  /// average.
  std::uint32_t add(const FrameFunction& function);
  std::uint32_t add(const FrameMapping& mapping);
  std::uint32_t add(const FramePlace& place);

  const FrameFunction& function(std::uint32_t number) const noexcept;
  const FrameMapping& mapping(std::uint32_t number) const noexcept;
  const FramePlace& place(std::uint32_t number) const noexcept;
  const FrameFunction& function_of(std::uint32_t place_number) const noexcept {
    return function(place(place_number).function);
  }

  std::size_t functions() const noexcept;  ///< one more than the highest number
  std::size_t mappings() const noexcept;
  std::size_t places() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A frame of a stack.
struct StackFrame {
  Address ip = 0;           ///< as sampled: a caller's is its return address
  std::uint32_t place = 0;  ///< for FrameTable::place(); never 0
  FrameSource source = FrameSource::initial;
  bool is_return = false;  ///< the names are those of ip - 1
};

/// Why a frame is in doubt: its name, and how it was found.
PERFMAP_API Doubts doubts_of(const StackFrame& frame, const FramePlace& place) noexcept;

/// A sample and its stack, with names. Borrowed from whoever made it, until the next one.
struct StackSample {
  std::uint64_t time = 0;  ///< nanoseconds of the recording's clock
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t cpu = UINT32_MAX;  ///< UINT32_MAX: not recorded
  std::uint64_t period = 1;
  std::uint32_t event = 0;             ///< position in StackProfile::events
  std::string_view comm = {};          ///< the thread's name at that time
  std::string_view process_comm = {};  ///< that of its process
  /// The first executable mapping of the process's main binary, for FrameTable::mapping(), whether
  /// or not a frame is there; 0: not known.
  std::uint32_t program = 0;
  StackEnd end = StackEnd::no_info;
  bool was_stitched = false;
  /// The leaf first. Inlined frames stand before the frame that holds them, with its ip.
  std::span<const StackFrame> frames = {};
};

}  // namespace perfmap

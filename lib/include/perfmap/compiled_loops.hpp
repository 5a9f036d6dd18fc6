#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Where PyPy says that it is in a program: "f;/tmp/t.py:8-10~#12 FOR_ITER", or, before PyPy 7.3,
/// "<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER". Views into that text.
struct PypyPlace {
  std::string_view function = {};  ///< all of the text where it is in no known form
  std::string_view file = {};
  std::uint32_t first_line = 0;  ///< where the function begins; 0: not said
  std::uint32_t line = 0;        ///< of the bytecode; where that is not said, first_line
  std::string_view opcode = {};  ///< "FOR_ITER"
};
/// O(text).
PERFMAP_API PypyPlace parse_pypy_place(std::string_view text) noexcept;

/// Some bytes of a log.
struct LogSpan {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool empty() const noexcept { return size == 0; }
};

/// A loop or bridge, as far as its log tells of it.
struct CompiledLoop {
  enum class Kind : std::uint8_t { loop, bridge };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Guard {
    Address address = 0;           ///< of its descriptor, by which everything names it
    std::string operation = {};    ///< "guard_true"
    std::uint32_t bridge = kNone;  ///< which of the loops() goes out of it
  };
  struct Label {
    std::uint64_t token = 0;                  ///< TargetToken(…)
    std::optional<std::uint64_t> count = {};  ///< times that it was passed
  };

  Kind kind = Kind::loop;
  std::uint64_t id = 0;  ///< the loop's number; the address of the bridge's guard; else 0
  /// As the log has it: "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", "bridge out of Guard 0x7f…".
  std::string name = {};
  std::string type = {};  ///< "loop", "entry bridge"; empty where the log has no operations of it
  std::string function = {}, file = {};  ///< of its first debug merge point, else of its name
  std::uint32_t first_line = 0, line = 0;
  /// All of its machine code: from where it is entered up to its end, failures' code included.
  /// Size 0: the log does not say.
  AddressRange code = {};
  /// Where the code of its operations ends and that of their failures begins. 0: the log does not
  /// say.
  Address operations_end = 0;
  std::uint64_t placed = 0;   ///< offset in the log of the line that tells its addresses
  PypylogTick compiled = {};  ///< when the section began that tells its addresses, or operations
  /// What its jit-log-opt section holds, without the section lines.
  LogSpan operations = {};
  std::uint32_t thread = PypylogEvent::kNoThread;
  std::vector<Guard> guards = {};
  std::vector<Label> labels = {};
  std::uint64_t jumps_to = 0;                 ///< the token that its last operation jumps to
  std::optional<std::uint64_t> entries = {};  ///< how often it was entered, by jit-backend-counts
  std::uint32_t owner = kNone;                ///< of a bridge: which loop or bridge has its guard
  std::uint32_t loop = kNone;  ///< of a bridge: the loop that it belongs to, over other bridges
  bool is_inner = false;       ///< a bridge that jumps back to its own loop

  /// Times that its labels were passed, by jit-backend-counts; without labels, its entries.
  PERFMAP_API std::optional<std::uint64_t> iterations() const noexcept;
};

/// What a jit-backend-dump section holds: bytes that were written to memory.
struct CodeBytes {
  Address address = 0;
  LogSpan hex = {};  ///< two digits a byte
  PypylogTick time = {};
};

/// All loops and bridges of a log, in the order in which it first mentions them.
///
/// Takes the text of sections as they come. Of two loops with the same number, as the logs of
/// processes that share one have them, and of two bridges out of guards with the same address, the
/// later is meant by what comes later. Memory is proportional to the loops, their guards and
/// labels. One thread at a time.
class PERFMAP_API CompiledLoops {
 public:
  explicit CompiledLoops(bool keep_code_bytes = false);
  CompiledLoops(CompiledLoops&&) noexcept;
  CompiledLoops& operator=(CompiledLoops&&) noexcept;
  ~CompiledLoops();

  /// Whether take() has a use for the text of such a section.
  bool wants(std::string_view category) const noexcept;
  /// Text in a section of that category that was opened at `opened`, whole lines of it; `text` is
  /// an event of kind text. begin() has to be called when a section that it wants() begins, end()
  /// when it ends. Sections of several threads may be open at once, one a thread.
  void begin(const PypylogEvent& opened);
  /// Answers whether there was a section for it.
  bool take(const PypylogEvent& text, Diagnostics& problems);
  void end(const PypylogEvent& closed);

  std::span<const CompiledLoop> all() const noexcept;
  /// Only where they are kept.
  std::span<const CodeBytes> code_bytes() const noexcept;

  /// The one that an event names, such as "Loop 1", "Loop 1 (f;…)", "bridge out of Guard 0x7f…",
  /// "bridge 139…" (as jit-backend-counts has it), or any other name; made where there is none.
  /// CompiledLoop::kNone for an empty name.
  std::uint32_t find_or_add(std::string_view name);
  /// The one that the line in a jit-profile section names: find_or_add() without its comment.
  std::uint32_t named_by(std::string_view line);
  /// The latest of those that are called as this one is.
  std::uint32_t latest(std::uint32_t loop) const noexcept;
  /// The one that a user names: as above, or only its number, address or function. CompiledLoop::
  /// kNone where there is none.
  std::uint32_t find(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap

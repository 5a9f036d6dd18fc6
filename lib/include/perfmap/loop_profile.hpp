#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A stretch of a thread's time in which nothing changed. Borrowed.
struct LoopSpan {
  std::uint32_t thread = PypylogEvent::kNoThread;
  std::uint64_t begin = 0;
  std::uint64_t ticks = 0;
  std::uint32_t loop = CompiledLoop::kNone;        ///< kNone: outside of any
  std::span<const std::uint32_t> categories = {};  ///< open sections, outermost first
};

/// The time that a log's sections and loops took, in ticks of the log.
///
/// A loop's time begins with the section line that opens a jit-profile-enter section naming it, and
/// ends where the next one, or a jit-profile-exit section, is opened: entering a loop leaves the
/// one before. An inner bridge is entered without leaving its loop, unless they are counted. Other
/// sections within, such as those of the garbage collector, are the loop's time.
///
/// A category's time is what its sections took without those inside them. Each thread is for
/// itself. A time that runs backwards counts as the latest before it. So of each thread, and of all
/// together, to the tick: loops + outside = categories + rest = last - first.
///
/// A section that does not end, ends with the one around it, or with the log. One that ends without
/// having begun is passed over: what the log does not say is not guessed.
///
/// Memory is proportional to the depth of sections, of which 4096 are followed, and to the numbers
/// of loops, categories and threads (65 536 each of the latter two; what is more counts as rest).
/// One thread at a time.
class PERFMAP_API LoopProfile {
 public:
  struct Options {
    TickBase base = TickBase::automatic;
    bool count_inner_bridges = false;
    std::optional<PypylogTick> from = {};  ///< time before counts nowhere
    std::optional<PypylogTick> to = {};
    bool keep_code_bytes = false;  ///< for loops().code_bytes()
    /// Called for each span that is not empty, of each thread in order. Needs a base: where that is
    /// automatic it is never called.
    std::function<void(const LoopSpan&)> visit = {};
  };

  /// Of one loop. Ticks have no meaning unless has_events().
  struct Times {
    std::uint64_t ticks = 0;
    std::uint64_t entered = 0;  ///< number of its jit-profile-enter events
  };
  struct Category {
    std::string name;
    std::uint64_t ticks = 0;     ///< without sections inside
    std::uint64_t sections = 0;  ///< that began
  };
  struct Thread {
    std::uint32_t number = PypylogEvent::kNoThread;
    std::uint64_t first = 0, last = 0;  ///< the latest, where times run backwards
    std::uint64_t outside = 0;          ///< of any loop
    std::uint64_t rest = 0;             ///< outside of any section
    std::uint64_t ticks() const noexcept { return last - first; }
  };

  explicit LoopProfile(Options options);
  LoopProfile(LoopProfile&&) noexcept;
  LoopProfile& operator=(LoopProfile&&) noexcept;
  ~LoopProfile();

  /// The log's next bytes, cut anywhere between lines. Only its last line may lack the newline:
  /// then it counts if it closes a section, and otherwise is not finished yet.
  void add(std::string_view lines);
  /// At the end of the log, once. Everything below is for afterwards.
  void finish();

  /// Whether inner bridges have times of their own.
  bool counts_inner_bridges() const noexcept;
  /// The base that times were read in: hex or dec.
  TickBase base() const noexcept;
  /// Whether there is a jit-profile-enter or -exit section, by which loops have times.
  bool has_events() const noexcept;
  const CompiledLoops& loops() const noexcept;
  /// As loops().all(), by the same numbers.
  std::span<const Times> times() const noexcept;
  std::span<const Category> categories() const noexcept;  ///< in order of appearance
  std::span<const Thread> threads() const noexcept;       ///< in order of appearance
  std::uint64_t ticks() const noexcept;                   ///< of all threads
  std::uint64_t outside() const noexcept;
  std::uint64_t rest() const noexcept;
  /// PL…
  const Diagnostics& problems() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Feeds a whole input, from the beginning to where it ends now. A regular file is read through its
/// descriptor, a window at a time.
PERFMAP_API void read_pypylog(const class Input& input, LoopProfile& profile);

}  // namespace perfmap

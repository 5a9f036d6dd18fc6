#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>

#include "base/mmap_vector.hpp"
#include "base/text.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap::lint_rules {

/// Behind what a record says lie at most this many bytes that align the next one.
inline constexpr std::uint64_t kMaxAlignment = 15;

/// A finding of a dump has a place among its bytes, and no line. `message` is called, without
/// arguments, only where it is kept.
template <class Message>
void report(Diagnostics& problems, const Rule& rule, std::uint64_t offset, Message&& message) {
  if (problems.count(rule)) problems.keep({&rule, {offset, 0, 0}, message()});
}

inline std::string hex_text(std::uint64_t value) { return "0x" + to_hex(value); }
inline std::string place_text(std::uint64_t offset) { return "+0x" + to_hex(offset); }

/// JD101-JD107, JD109, and JD108 for the file's name.
void check_header(const Jitdump& dump, std::span<const pid_t> namespace_pids,
                  Diagnostics& problems);

/// The pid in "…/jit-PID.dump"; nothing where the name is another.
std::optional<std::uint32_t> pid_of_dump_name(std::string_view path) noexcept;

/// JD203-JD207, JD305, JD307: each LOAD by itself.
class LoadRules {
 public:
  explicit LoadRules(Diagnostics& problems) : problems_(problems) {}
  void see(const JitRecord& record, const LoadRecord& load);
  void finish();

 private:
  Diagnostics& problems_;
  std::uint64_t loads_ = 0;
  std::uint64_t one_too_many_ = 0;  // where it is
};

/// JD306, and JD108 for the records: whose code it is.
class OwnerRules {
 public:
  OwnerRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}
  void see(const JitRecord& record, std::uint32_t pid, std::uint32_t tid);
  void finish();

 private:
  /// What is said once, with a count.
  struct Seen {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    void add(std::uint64_t offset) { first = count++ == 0 ? offset : first; }
  };
  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<std::uint32_t> pid_;
  std::uint32_t other_pid_ = 0;
  Seen others_;
  Seen no_thread_;
};

/// JD202, JD216, JD301, JD303: the records in their order.
class OrderRules {
 public:
  explicit OrderRules(Diagnostics& problems) : problems_(problems) {}
  void see(const JitRecord& record);
  void finish();

 private:
  void see_time(const JitRecord& record);

  Diagnostics& problems_;
  std::optional<std::uint64_t> close_;
  std::uint64_t behind_close_ = 0;
  std::uint64_t records_behind_close_ = 0;
  std::uint64_t last_time_ = 0;
  std::optional<JitRecord> first_load_;
  std::uint64_t loads_ = 0;
  bool times_differ_ = false;
};

/// JD210, JD211, JD215: source lines, which perf gives to the next LOAD, whatever its address.
class SourceLineRules {
 public:
  SourceLineRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}
  void see_lines(const JitRecord& record);
  void see_load(const JitRecord& record, const LoadRecord& load);
  void finish();

 private:
  void check(const JitRecord& record, const LoadRecord* load);
  std::optional<std::string> problem_of(const JitRecord& record, const LoadRecord* load) const;

  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<JitRecord> waiting_;
  std::uint64_t with_lines_ = 0;
  MmapVector<std::uint64_t> without_lines_;
};

/// JD212-JD214: unwinding information, which belongs to the next LOAD.
class UnwindingRules {
 public:
  UnwindingRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}
  void see_unwinding(const JitRecord& record);
  void see_load(const JitRecord& record, const LoadRecord& load);

 private:
  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<std::pair<std::uint64_t, UnwindingRecord>> waiting_;
};

/// Why no unwinder can make use of a function's frame description; nothing where one can.
std::optional<std::string> problem_of_frame(const UnwindingRecord& info, const LoadRecord& load,
                                            std::endian order, unsigned pointer_size);

/// JD208, JD209, JD304: code indices, moves, and code over other code.
void check_code(const Jitdump& dump, Diagnostics& problems);

}  // namespace perfmap::lint_rules

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfmap/stack_sample.hpp"
#include "stacks/numbered.hpp"

namespace perfmap {

/// The name, or "[libc.so.6]" where the module alone is known, or "[unknown]".
std::string shown_name(const FrameFunction& function);

/// What follows the last '/'.
std::string_view file_name_of(std::string_view path) noexcept;

/// Whether a process that runs that file has that name at first: the kernel keeps 15 bytes.
bool is_named_after(std::string_view comm, std::string_view path) noexcept;

/// Control bytes and what is not UTF-8 as \xNN, so that a name is one word of one line.
std::string escaped(std::string_view name);

/// The name of a thread in a list of many: "comm PID/TID", or "comm PID" of a process's first;
/// "comm" where the pid is negative: not known.
std::string thread_label(std::string_view comm, pid_t pid, pid_t tid);

/// Places as one sees them: by function, the tiers of one as one if so asked, and by line if so
/// asked. Numbers count from 0. Borrows the table.
class ShownFrames {
 public:
  ShownFrames(const FrameTable& table, bool merge_tiers, bool lines)
      : table_(table), merge_tiers_(merge_tiers), lines_(lines) {}

  std::uint32_t of_place(std::uint32_t place);
  const FrameFunction& function(std::uint32_t number) const noexcept {
    return (merge_tiers_ ? merged_ : table_).function(frames_[number].function);
  }
  std::uint32_t line(std::uint32_t number) const noexcept { return frames_[number].line; }
  std::size_t size() const noexcept { return frames_.size(); }

 private:
  struct Frame {
    std::uint32_t function;
    std::uint32_t line;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Frame& frame) const noexcept {
      return Hash().add(std::uint64_t{frame.function} << 32 | frame.line).value();
    }
  };

  std::uint32_t merged_function(std::uint32_t number);

  const FrameTable& table_;
  const bool merge_tiers_;
  const bool lines_;
  FrameTable merged_;
  std::vector<std::uint32_t> merged_numbers_;  // of functions in table_, plus one; 0: not yet
  std::vector<std::uint32_t> of_places_;       // plus one; 0: not yet
  Numbered<Frame, HashOf> frames_;
};

}  // namespace perfmap

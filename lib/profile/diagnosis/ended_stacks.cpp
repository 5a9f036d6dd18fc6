#include "diagnosis/ended_stacks.hpp"

#include <algorithm>

#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kCallchain = 1U << 5;   // PERF_SAMPLE_CALLCHAIN
constexpr std::uint64_t kUserStack = 1U << 13;  // PERF_SAMPLE_STACK_USER

/// Code with which a runtime that has stacks of its own calls its functions in C.
bool calls_c(const FrameFunction& function) noexcept {
  if (function.kind != FrameKind::jit) return false;
  return std::ranges::any_of(all_runtimes(), [&](const RuntimeInfo* one) {
    return std::ranges::any_of(one->stacks.own_stack_callers, [&](std::string_view begin) {
      return !begin.empty() && function.name.starts_with(begin);
    });
  });
}

/// Of a function without a name: whether the recording has no file and no code there.
bool is_unrecorded(const FrameFunction& function) noexcept {
  const std::string_view module = function.module;
  return function.kind == FrameKind::unknown && function.name.empty() &&
         (module.empty() || module.starts_with("//") || module == "[heap]" || module == "[stack]");
}

}  // namespace

/// Callers that a chain of frame pointers leads to may be no code at all; what a processor runs is.
void StackCounter::take(const StackSample& sample) {
  RecordedProcessState& process = processes[sample.pid];
  if (!sample.frames.empty() && is_unrecorded(table_.function_of(sample.frames.front().place))) {
    ++process.in_unrecorded_code;
  }
  for (const StackFrame& frame : sample.frames) {
    const FrameFunction& function = table_.function_of(frame.place);
    if (function.kind == FrameKind::native && function.name.empty()) {
      ++unnamed_[table_.place(frame.place).function];
    }
    if (function.kind != FrameKind::jit) continue;
    ++process.jit_frames;
    if (function.name.empty()) ++process.unnamed_jit;
  }
  if (!has_stack(sample)) return;
  if (ends_in_jit(sample)) ++process.ends_in_jit;
  take_end(sample);
}

bool StackCounter::has_stack(const StackSample& sample) const noexcept {
  return sample.event >= events_.size() ||
         (events_[sample.event].sample_type & (kCallchain | kUserStack)) != 0;
}

/// Threads begin in native code: whoever stops at a runtime's, or goes astray right behind it,
/// has lost the callers.
bool StackCounter::ends_in_jit(const StackSample& sample) const noexcept {
  constexpr std::size_t kKernelsMost = 127;  // frames, by default: longer chains are cut there
  switch (sample.end) {
    case StackEnd::no_info:
    case StackEnd::bad_memory: break;
    case StackEnd::callchain:
      if (sample.frames.size() >= kKernelsMost) return false;
      break;
    default: return false;
  }
  const auto kind = [this](const StackFrame& frame) {
    return table_.function_of(frame.place).kind;
  };
  const auto last =
      std::find_if(sample.frames.rbegin(), sample.frames.rend(),
                   [&](const StackFrame& f) { return kind(f) != FrameKind::unknown; });
  return last != sample.frames.rend() && kind(*last) == FrameKind::jit;
}

void StackCounter::take_end(const StackSample& sample) {
  const bool is_bad = sample.end == StackEnd::bad_memory;
  if (sample.frames.empty() || (!is_bad && sample.end != StackEnd::no_info)) return;
  const StackFrame& last = sample.frames.back();
  Ends& ends = ends_[{sample.pid, table_.place(last.place).function}];
  ++(is_bad ? ends.bad_memory : ends.no_info);
  const auto is_user = [this](const StackFrame& frame) {
    const FrameKind kind = table_.function_of(frame.place).kind;
    return kind != FrameKind::kernel && kind != FrameKind::inlined;
  };
  if (std::count_if(sample.frames.begin(), sample.frames.end(), is_user) == 1) ++ends.alone;
}

std::vector<EndedStacks> StackCounter::ended(pid_t pid) const {
  std::vector<EndedStacks> modules;
  std::vector<std::uint64_t> most;  // of the function that is named
  for (auto one = ends_.lower_bound({pid, 0}); one != ends_.end() && one->first.first == pid;
       ++one) {
    const FrameFunction& function = table_.function(one->first.second);
    const auto same = [&](const EndedStacks& other) {
      return other.module == function.module && other.kind == function.kind;
    };
    auto at = std::find_if(modules.begin(), modules.end(), same);
    if (at == modules.end()) {
      modules.push_back({std::string(function.module), {}, function.kind, 0, 0, 0, 0});
      most.push_back(0);
      at = std::prev(modules.end());
    }
    const Ends& ends = one->second;
    at->no_info += ends.no_info;
    at->bad_memory += ends.bad_memory;
    at->alone += ends.alone;
    if (calls_c(function)) at->in_calls_of_c += ends.no_info + ends.bad_memory;
    std::uint64_t& best = most[static_cast<std::size_t>(at - modules.begin())];
    if (ends.no_info + ends.bad_memory <= best) continue;
    best = ends.no_info + ends.bad_memory;
    at->function = function.name;
  }
  std::stable_sort(modules.begin(), modules.end(), [](const EndedStacks& a, const EndedStacks& b) {
    return a.count() > b.count();
  });
  return modules;
}

std::map<std::string_view, std::uint64_t> StackCounter::unnamed_files() const {
  std::map<std::string_view, std::uint64_t> files;
  for (const auto& [function, count] : unnamed_) files[table_.function(function).module] += count;
  return files;
}

}  // namespace perfmap

#include "diagnosis/stack_survey.hpp"

#include <algorithm>

#include "diagnosis/doctor_findings.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"

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

constexpr std::size_t kMaxFiles = 8;  // that are named one by one

bool has_symbol_table(const Module& module) {
  // Packed symbols have all functions, as .symtab does.
  return module.find_section(".symtab") != nullptr ||
         module.find_section(".gnu_debugdata") != nullptr;
}

bool is_stripped(const Module& module) {
  const Module* const debug = module.debug_file();
  return !has_symbol_table(module) && (debug == nullptr || !has_symbol_table(*debug));
}

/// "/usr/lib/libx.so (12), /usr/lib/liby.so (3) and 2 more"
std::string list_of(const std::vector<StrippedFile>& files) {
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kMaxFiles); ++i) {
    text += (i == 0 ? "" : ", ") + visible(files[i].path) + " (" +
            std::to_string(files[i].unnamed) + ")";
  }
  if (files.size() <= kMaxFiles) return text;
  return text + " and " + std::to_string(files.size() - kMaxFiles) + " more";
}

/// Servers that the reader has chosen stay.
std::string ask_servers(const RecordingContext& context) {
  return "DEBUGINFOD_URLS=\"${DEBUGINFOD_URLS:-https://debuginfod.elfutils.org/}\" "
         "perfmap stacks --debuginfod " +
         shell_word(context.path);
}

std::string install_packages(const RecordingContext& context,
                             const std::vector<StrippedFile>& files) {
  constexpr std::size_t kMaxText = 4000;
  const std::string sudo = context.options.reader == 0 ? "" : "sudo ";
  std::string line = sudo + "apt install debian-goodies && find-dbgsym-packages --install";
  for (const StrippedFile& file : files) {
    if (file.has_build_id) line += " " + shell_word(file.path);
    if (line.size() > kMaxText) return {};
  }
  return line;
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
  std::vector<std::uint64_t> max;  // of the function that is named
  for (auto one = ends_.lower_bound({pid, 0}); one != ends_.end() && one->first.first == pid;
       ++one) {
    const FrameFunction& function = table_.function(one->first.second);
    const auto same = [&](const EndedStacks& other) {
      return other.module == function.module && other.kind == function.kind;
    };
    auto at = std::find_if(modules.begin(), modules.end(), same);
    if (at == modules.end()) {
      modules.push_back({std::string(function.module), {}, function.kind, 0, 0, 0, 0});
      max.push_back(0);
      at = std::prev(modules.end());
    }
    const Ends& ends = one->second;
    at->no_info += ends.no_info;
    at->bad_memory += ends.bad_memory;
    at->alone += ends.alone;
    if (calls_c(function)) at->in_calls_of_c += ends.no_info + ends.bad_memory;
    std::uint64_t& best = max[static_cast<std::size_t>(at - modules.begin())];
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

ProcessTracker::OpenModule OpenedModules::watch(ProcessTracker::OpenModule open) {
  open_ = std::move(open);
  return [this](const Region& region, const ProcSource* process) {
    auto module = open_(region, process);
    if (module) regions_.try_emplace(region.file->name, region);
    return module;
  };
}

std::vector<StrippedFile> OpenedModules::stripped(const StackCounter& counter) const {
  std::vector<StrippedFile> found;
  for (const auto& [path, count] : counter.unnamed_files()) {
    const auto region = regions_.find(path);
    if (region == regions_.end()) continue;
    const auto module = open_(region->second, nullptr);
    if (!module || !is_stripped(**module)) continue;
    found.push_back({std::string(path), count, !(*module)->build_id().empty()});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.unnamed > b.unnamed; });
  return found;
}

void add_symbol_findings(const RecordingCase& facts, const std::vector<StrippedFile>& stripped,
                         RecordingAdvice& advice) {
  const RecordingContext& context = facts.context;
  std::uint64_t unnamed = 0;
  for (const StrippedFile& file : stripped) unnamed += file.unnamed;
  const StackCounts& total = facts.statistics.total;
  // Frames of the kernel are never in a file.
  const std::uint64_t frames =
      total.frames - total.sources[static_cast<std::size_t>(FrameSource::kernel)];
  if (!matters(unnamed, frames)) return;
  const std::string message =
      std::to_string(unnamed) + " of " + std::to_string(frames) + " frames outside the kernel (" +
      percent_text(unnamed, frames) +
      ") have no name, because the symbols of their files were stripped: " + list_of(stripped);
  const bool has_build_id =
      std::ranges::any_of(stripped, [](const StrippedFile& file) { return file.has_build_id; });
  const bool can_fetch = context.options.has_debuginfod && context.options.has_debuginfod();
  if (!has_build_id) {
    advice.add("no-symbols", Severity::warning,
               message +
                   "; without a build-id no debug file can be found for them: use files "
                   "that were not stripped");
  } else if (can_fetch) {
    advice.add("no-symbols", Severity::warning,
               message + "; servers of debuginfod have the symbols of most distributions' packages",
               ask_servers(context));
  } else {
    advice.add("no-symbols", Severity::warning,
               message +
                   "; on Debian, install their packages -dbgsym or -dbg, from the archive "
                   "debian-debug, which has to be among apt's sources",
               is_of_this_machine(context.samples) ? install_packages(context, stripped) : "");
  }
}

}  // namespace perfmap

#include <algorithm>

#include "diagnosis/process_advice.hpp"

namespace perfmap {

void ProcessAdvice::add_damage() {
  for (const LookedFor& file : process_.looked_for) {
    const bool is_told = file.inherited_from != 0 && recording_.views.contains(file.inherited_from);
    if (file.fate != FileFate::used || file.damage.empty() || is_told) continue;
    const bool is_harmless = process_.unnamed_jit == 0;
    if (file.is_cut_off && (is_harmless || &file == cut_buffer())) continue;
    advice_.add("damaged-dump", is_harmless ? Severity::info : Severity::warning,
                is_harmless ? visible(file.our_path) + " is damaged, but no frame lacks a name; " +
                                  visible(file.damage)
                            : damage_text(file),
                damage_fix(file), process_.counts.pid);
  }
}

void ProcessAdvice::add_unrecorded_code() {
  const std::uint64_t count = process_.in_unrecorded_code;
  if (count == 0 || began_unseen()) return;
  advice_.add("unrecorded-code",
              matters(count, process_.counts.samples) ? Severity::warning : Severity::info,
              std::to_string(count) + " of " + std::to_string(process_.counts.samples) +
                  " samples of " + process_title(process_) +
                  " have no name and lie where the recording has no code: the program moved code "
                  "there (perf does not record mremap), or perf lost the mapping; only a perf map "
                  "or jitdump of the process can name them",
              "", process_.counts.pid);
}

void ProcessAdvice::add_unknown_parent() {
  if (process_.knows_parents) return;
  advice_.add("unknown-parent", Severity::warning,
              process_title(process_) +
                  " was there before the recording began, and is gone: if it was forked from "
                  "another process, that one's perf map or jitdump may have the names; give it "
                  "with --map or --jitdump, or record again while the process lives",
              "", process_.counts.pid);
}

void ProcessAdvice::add_ignored() {
  const JitMemory& memory = process_.memory;
  // Code of a dump is named by 'perf inject', wherever it lies.
  if (memory.ignored_bytes == 0 || uses(true)) return;
  advice_.add("perf-ignores-region", Severity::info,
              process_title(process_) + ": " + ignored_text(memory) + "; perfmap does",
              "perfmap stacks --format perf-script " + facts_.subject, process_.counts.pid);
}

void ProcessAdvice::add_stack_finding() {
  if (process_.ends_in_jit == 0 || is_of_own_stack()) return;
  const Severity severity =
      matters(process_.ends_in_jit, process_.counts.samples) ? Severity::warning : Severity::info;
  const std::string message = std::to_string(process_.ends_in_jit) + " of " +
                              std::to_string(process_.counts.samples) + " stacks of " +
                              process_title(process_) + " end in code of " +
                              std::string(title_of(process_.runtime)) + std::string(end_text());
  add_start_fix("frame-pointers", severity, message);
}

std::string_view ProcessAdvice::end_text() const {
  const bool is_python = recorded_.found.runtime == HostRuntime::cpython;
  const bool has_dump = !facts_.asked.dump_by.empty();
  if (is_python && has_dump && has_stack_copies(recording_.context.samples)) {
    return ", whose unwinding information is missing or wrong there";
  }
  const Version version = parse_version(recorded_.found.version);
  return is_python && version < Version{3, 13}
             ? ", which kept no frame pointers there; Python 3.13 is the first that can write "
               "unwinding information for its code (-X perf_jit)"
             : ", which kept no frame pointers there";
}

void ProcessAdvice::add_start_fix(std::string_view id, Severity severity,
                                  const std::string& message) {
  const bool has_fix = wants_stacks_ && start_.can_keep_stacks();
  const StartAdvice::Wants wants{lacks_flags() && !is_too_old(facts_), true};
  if (const auto change = has_fix ? start_.change(wants) : std::nullopt) {
    advice_.add_change(id, severity, message, *change, process_.counts.pid);
    return;
  }
  const StackFlags flags = stack_flags(facts_);
  std::string fix;
  if (has_fix && recorded_.is_alive && recorded_.knows_arguments) {
    CommandText line = own_command(recorded_.view);
    line.inserted = flags.flags;
    if (flags.flags.empty()) line.environment = flags.variables;
    fix = line.text();
  } else if (has_fix) {
    fix = start_.exports({.stacks = true});
  }
  advice_.add(id, severity, message, fix, process_.counts.pid);
}

bool ProcessAdvice::is_of_own_stack() const {
  return recorded_.found.runtime == HostRuntime::erlang &&
         (has_stack_copies(recording_.context.samples) || is_any_used() ||
          !facts_.asked.map_by.empty());
}

void ProcessAdvice::add_interpreted_frames() {
  const bool is_known = recorded_.knows_arguments && is_any_used();
  if (recorded_.found.runtime != HostRuntime::node || !is_known) return;
  if (facts_.asked.interpreted_frames || facts_.asked.map_by.empty() || is_jitless()) return;
  const std::string message = process_title(process_) + ": " + std::string(kInterpretedFrames);
  if (const auto change = start_.change({.names = true, .stacks = wants_stacks_})) {
    advice_.add_change("interpreted-frames", Severity::info, message, *change, process_.counts.pid);
  } else {
    advice_.add("interpreted-frames", Severity::info, message, naming_command(facts_, true),
                process_.counts.pid);
  }
}

const LookedFor* ProcessAdvice::cut_buffer() const noexcept {
  if (recorded_.found.runtime != HostRuntime::cpython || !facts_.is_gone) return nullptr;
  for (const LookedFor& file : process_.looked_for) {
    if (!file.is_dump || file.inherited_from != 0) continue;
    const bool is_cut = file.fate == FileFate::used && file.is_cut_off;
    if (is_cut || (file.fate == FileFate::empty && !uses(false))) return &file;
  }
  return nullptr;
}

bool ProcessAdvice::explains_ends() const noexcept {
  return cut_buffer() != nullptr && process_.ends_in_jit <= process_.unnamed_jit;
}

}  // namespace perfmap

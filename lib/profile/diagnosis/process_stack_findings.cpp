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
                              std::string(title_of(process_.runtime)) + end_text();
  add_start_fix("frame-pointers", severity, message);
}

std::string ProcessAdvice::end_text() const {
  const UnwindingDump& dump = facts_.runtime().stacks.dump;
  const bool has_dump = !facts_.asked.dump_by.empty();
  if (dump.exists() && has_dump && has_stack_copies(recording_.context.samples)) {
    return ", whose unwinding information is missing or wrong there";
  }
  const bool is_too_old =
      parse_version(recorded_.found.version) < parse_version(dump.first_release);
  return ", which kept no frame pointers there" +
         (is_too_old ? "; " + std::string(dump.too_old) : "");
}

void ProcessAdvice::add_start_fix(std::string_view id, Severity severity,
                                  const std::string& message) {
  const bool has_fix = wants_stacks_ && start_.can_keep_stacks();
  const StartAdvice::Wants wants{lacks_flags() && !facts_.is_too_old(), true};
  if (const auto change = has_fix ? start_.change(wants) : std::nullopt) {
    advice_.add_change(id, severity, message, *change, process_.counts.pid);
    return;
  }
  const StackFlags flags = stack_flags(facts_);
  std::string fix;
  if (has_fix && recorded_.is_alive && recorded_.knows_arguments) {
    CommandLine line = own_command(recorded_.view);
    line.inserted = flags.flags;
    if (flags.flags.empty()) line.environment = flags.variables;
    fix = line.text();
  } else if (has_fix) {
    fix = start_.exports({.stacks = true});
  }
  advice_.add(id, severity, message, fix, process_.counts.pid);
}

bool ProcessAdvice::is_of_own_stack() const {
  return facts_.runtime().stacks.has_own_stacks() &&
         (has_stack_copies(recording_.context.samples) || is_any_used() ||
          !facts_.asked.map_by.empty());
}

void ProcessAdvice::add_interpreted_frames() {
  const bool is_known = recorded_.knows_arguments && is_any_used();
  const RuntimeStacks& stacks = facts_.runtime().stacks;
  if (!stacks.is_about_names || !is_known) return;
  const StartFlags& asked = facts_.asked;
  if (asked.has_stack_flag || asked.map_by.empty() || facts_.has_no_code()) return;
  const std::string message = process_title(process_) + ": " + std::string(stacks.message);
  if (const auto change = start_.change({.names = true, .stacks = wants_stacks_})) {
    advice_.add_change(stacks.finding, Severity::info, message, *change, process_.counts.pid);
  } else {
    advice_.add(stacks.finding, Severity::info, message, naming_command(facts_, true),
                process_.counts.pid);
  }
}

const LookedFor* ProcessAdvice::cut_buffer() const noexcept {
  if (facts_.runtime().stacks.dump.cut.empty() || !facts_.is_gone) return nullptr;
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

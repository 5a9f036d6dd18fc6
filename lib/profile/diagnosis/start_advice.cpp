#include "diagnosis/start_advice.hpp"

#include <algorithm>

namespace perfmap {
namespace {

constexpr const char* kCopies = "dwarf,16384";

/// Whether a workload, which may start others by the same flag, asks for this dump.
bool asks_for(const UnwindingDump& dump, const std::vector<std::string>& workload) {
  return std::ranges::find_first_of(workload, dump.words) != workload.end();
}

/// Sets what the words before the program (env NAME=VALUE) set, too, and answers with the rest.
std::vector<std::string> set_in_workload(const std::vector<std::string>& variables,
                                         std::size_t program, std::vector<std::string>& workload) {
  std::vector<std::string> rest;
  const auto end = workload.begin() + static_cast<std::ptrdiff_t>(program);
  for (const std::string& one : variables) {
    const std::string name = one.substr(0, one.find('=') + 1);
    const auto last = std::find_if(std::make_reverse_iterator(end), workload.rend(),
                                   [&](const std::string& word) { return word.starts_with(name); });
    if (last != workload.rend()) {
      *last = one;
    } else {
      rest.push_back(one);
    }
  }
  return rest;
}

std::string export_command(const std::vector<std::string>& variables) {
  std::string line;
  for (const std::string& one : variables) {
    const std::size_t value = one.find('=') + 1;
    line += (line.empty() ? "export " : " ") + one.substr(0, value) +
            shell_word(std::string_view(one).substr(value));
  }
  return line;
}

}  // namespace

bool StartAdvice::wants_copies(Wants wants) const {
  if (!wants.stacks || !facts_.runtime().stacks.dump.exists()) return false;
  const bool has_dump = !facts_.asked.dump_by.empty() || !stack_flags(facts_).flags.empty();
  return has_dump && !has_stack_copies(recording_.context.samples);
}

bool StartAdvice::can_keep_stacks() const {
  const StackFlags flags = stack_flags(facts_);
  return !flags.flags.empty() || !flags.variables.empty() || wants_copies({.stacks = true});
}

/// perf's environment, and changes of its workload, reach what it started.
bool StartAdvice::is_reached() const noexcept {
  const std::optional<RecordCommand>& command = recording_.context.command;
  if (!command || command->workload.empty()) return false;
  if (recorded_.workload_at) return true;
  const auto process = recording_.context.samples.processes.find(recorded_.view.pid);
  const bool was_started =
      process != recording_.context.samples.processes.end() && process->second.executed != 0;
  return was_started && !command->records_others();
}

std::vector<std::string> StartAdvice::variables(Wants wants) const {
  std::vector<std::string> variables;
  if (wants.names) variables = naming_variables(facts_);
  const std::optional<RecordCommand>& command = recording_.context.command;
  const UnwindingDump& dump = facts_.runtime().stacks.dump;
  // Children of multiprocessing's "spawn" do not inherit -X, but variables.
  const bool is_named = dump.exists() && !variables.empty();
  if (is_named && command && asks_for(dump, command->workload)) {
    variables = {std::string(dump.variable)};
  }
  if (!wants.stacks) return variables;
  for (const std::string& one : stack_flags(facts_).variables) {
    const bool is_there = std::find(variables.begin(), variables.end(), one) != variables.end();
    if (!is_there) variables.push_back(one);
  }
  return variables;
}

std::string StartAdvice::exports(Wants wants) const { return export_command(variables(wants)); }

CommandLine StartAdvice::command_line(Wants wants) const {
  const StackFlags flags = wants.stacks ? stack_flags(facts_) : StackFlags();
  CommandLine line =
      wants.names ? naming_command_line(facts_, has_jit_) : own_command(recorded_.view);
  // The dump has the names, too.
  if (facts_.runtime().stacks.dump.exists() && !flags.flags.empty()) line.inserted.clear();
  const auto& had = line.inserted;
  const bool is_there =
      std::search(had.begin(), had.end(), flags.flags.begin(), flags.flags.end()) != had.end();
  if (!is_there) {
    line.inserted.insert(line.inserted.end(), flags.flags.begin(), flags.flags.end());
  }
  if (flags.flags.empty()) {
    line.environment.insert(line.environment.end(), flags.variables.begin(), flags.variables.end());
  }
  return line;
}

std::optional<RecordingAdvice::Change> StartAdvice::change(Wants wants) const {
  const RuntimeInfo& runtime = facts_.runtime();
  if (!is_reached()) return std::nullopt;
  if (recorded_.is_alive && runtime.maps.is_live() && wants.names) return std::nullopt;
  std::vector<std::string> variables;
  std::vector<std::string> workload = recording_.context.command->workload;
  const bool is_started_itself = runtime.maps.command != nullptr && runtime.signs.launcher.empty();
  if (recorded_.workload_at && is_started_itself) {
    const CommandLine line = command_line(wants);
    workload.resize(*recorded_.workload_at);
    const std::vector<std::string> words = line.words();
    workload.insert(workload.end(), words.begin(), words.end());
    variables = set_in_workload(line.environment, *recorded_.workload_at, workload);
  } else {
    variables = this->variables(wants);
    if (wants.names && naming_variables(facts_).empty()) return std::nullopt;
  }
  const bool copies = wants_copies(wants);
  const bool makes_dump = copies || (wants.names && runtime.maps.writes_dump_too);
  return [variables, workload, copies, makes_dump](RecordCommand& command) {
    for (const std::string& one : variables) command.add_variable(one);
    command.workload = workload;
    if (copies) command.set_call_graph(kCopies);
    if (makes_dump) command.set(RecordCommand::kClock, "mono");
  };
}

}  // namespace perfmap

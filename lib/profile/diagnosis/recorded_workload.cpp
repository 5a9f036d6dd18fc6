#include "diagnosis/recorded_workload.hpp"

#include <algorithm>
#include <span>

namespace perfmap {
namespace {

/// Splits what `sh -c` gets: for looking, not for running.
std::vector<std::string> words_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& one : arguments) {
    std::string_view text = one;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(" \t\n;\"'"), text.size());
      if (end != 0) words.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(text.size(), end + 1));
    }
  }
  return words;
}

/// Where in the words the program is called; nothing where it is not.
std::optional<std::size_t> find_program(const std::vector<std::string>& words,
                                        const RecordedView& recorded, const std::string& comm) {
  // Links such as /usr/bin/java lead to the program; perf knows where they lead.
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base_name(words[i]);
    if (name.empty()) continue;
    if (name == base_name(recorded.view.executable) || name == comm) return i;
    if (recorded.found.runtime == Runtime::unknown) continue;
    const RuntimeInfo& runtime = runtime_info(recorded.found.runtime);
    // A launcher hands its options on: erl starts beam.smp.
    if (name == runtime.signs.launcher || runtime_of_program(words[i]) == &runtime) return i;
  }
  return std::nullopt;
}

/// A program that starts itself again gives other arguments to the others.
bool is_first_of_program(pid_t pid, const RecordedSamples& samples) {
  const RecordedProcess& process = samples.processes.at(pid);
  if (process.executed == 0) return false;
  return std::none_of(samples.processes.begin(), samples.processes.end(), [&](const auto& one) {
    const RecordedProcess& other = one.second;
    return other.executed != 0 && other.executed < process.executed &&
           other.program == process.program;
  });
}

bool is_assignment(std::string_view word) noexcept {
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const std::size_t name = std::min(word.find_first_not_of(kName), word.size());
  return name != 0 && name < word.size() && word[name] == '=' &&
         !(word[0] >= '0' && word[0] <= '9');
}

/// NAME=VALUE before the program, as env(1) and shells take it. The last one counts.
void take_variables(std::span<const std::string> before, ProcessView& view) {
  for (const std::string& word : before) {
    if (is_assignment(word)) view.environment.insert(view.environment.begin(), word);
  }
}

}  // namespace

void take_workload(const std::string& comm, const RecordingContext& context, RecordedView& into) {
  if (!context.command || !is_first_of_program(into.view.pid, context.samples)) return;
  const std::vector<std::string>& workload = context.command->workload;
  const auto found = find_program(workload, into, comm);
  if (found) {
    into.workload_at = found;
    take_variables(std::span(workload).first(*found), into.view);
    into.knows_arguments = true;
    into.view.arguments.assign(workload.begin() + static_cast<std::ptrdiff_t>(*found),
                               workload.end());
    return;
  }
  // What it was asked for may stand in a script, but that is no command line to be changed.
  std::vector<std::string> words = words_of(workload);
  const auto inner = find_program(words, into, comm);
  if (!inner) return;
  take_variables(std::span(words).first(*inner), into.view);
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(*inner));
  into.view.arguments = std::move(words);
}

}  // namespace perfmap

// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/profile/record.hpp"
#include "perfmap/text.hpp"
#include "record/launchers.hpp"

namespace perfmap {
namespace {

std::string_view value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view one : environment) {
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') {
      return one.substr(name.size() + 1);
    }
  }
  return {};
}

bool is_executable_file(const std::string& path) noexcept {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// The path with all links followed.
std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> real = {};
  return ::realpath(path.c_str(), real.data()) != nullptr ? std::string(real.data()) : path;
}

/// The interpreter of a script, as its first line names it: of "#!/usr/bin/env -S node --x" it is
/// "node". Empty for other files.
std::string interpreter_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<char, 256> begin = {};
  const ssize_t size = file.is_open() ? ::read(file.get(), begin.data(), begin.size()) : 0;
  if (size < 3) return {};
  std::string_view line(begin.data(), static_cast<std::size_t>(size));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  bool is_env = false;
  while (!line.empty()) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    const bool is_option = word.starts_with('-') || word.find('=') != std::string_view::npos;
    if (is_env && is_option) continue;
    if (base_name(word) != "env") return std::string(word);
    is_env = true;
  }
  return {};
}

/// The runtime whose programs, or whose launcher, has this name; null if there is none.
const RuntimeInfo* runtime_named(std::string_view path) noexcept {
  if (const RuntimeInfo* const row = runtime_of_program(path)) return row;
  const auto rows = all_runtimes();
  const std::string_view name = base_name(path);
  const auto found = std::ranges::find_if(rows, [name](const RuntimeInfo* row) {
    return !name.empty() && (row->signs.launcher == name || row->started.program == name);
  });
  return found == rows.end() ? nullptr : *found;
}

/// A program of a runtime, and its file.
struct Found {
  const RuntimeInfo* runtime = nullptr;
  std::string path;
};

/// Follows a command through scripts and programs that start others.
class CommandSearch {
 public:
  explicit CommandSearch(const NamingRequest& request) : request_(request) {
    std::string program = request.command.empty() ? std::string() : request.command.front();
    constexpr int kMaxSteps = 8;
    for (int i = 0; i < kMaxSteps && !program.empty(); ++i) program = step(program);
  }

  Found own;                             ///< the program of a runtime
  bool may_start_others = false;         ///< it is a script, or starts others
  bool is_launched = false;              ///< by another program, perhaps in another directory
  bool changes_user = false;             ///< one of these starts it as another user
  const Launcher* cleaned_by = nullptr;  ///< removes variables from the environment

 private:
  /// Returns the program to look at next.
  std::string step(const std::string& program);
  std::string after(const Launcher& launcher);
  bool is_executable(const std::string& word) const;
  bool leads_on(const std::string& word) const;

  const NamingRequest& request_;
  std::size_t at_ = 0;  // in the command
};

std::string CommandSearch::step(const std::string& program) {
  const std::string path = program_path(program, request_.environment);
  if (path.empty()) return {};
  const RuntimeInfo* row = runtime_named(path);
  if (row == nullptr) row = runtime_named(real_path(path));
  if (row != nullptr && (row->started.exists() || !row->started.why_not.empty())) {
    own = {row, path};
    return {};
  }
  if (const Launcher* const launcher = find_launcher(path)) return after(*launcher);
  std::string interpreter = interpreter_of(path);
  may_start_others = may_start_others || !interpreter.empty();
  return interpreter;
}

/// Whether a word may be the command of a launcher: its options have values, too.
bool CommandSearch::is_executable(const std::string& word) const {
  const bool is_other = word.starts_with('-') || word.find('=') != std::string::npos;
  return !is_other && !program_path(word, request_.environment).empty();
}

/// Whether such a word is a program of a runtime, a launcher, or a script.
bool CommandSearch::leads_on(const std::string& word) const {
  const std::string path = program_path(word, request_.environment);
  return runtime_named(path) != nullptr || find_launcher(path) != nullptr ||
         !interpreter_of(path).empty();
}

std::string CommandSearch::after(const Launcher& launcher) {
  may_start_others = is_launched = true;
  changes_user = changes_user || launcher.starts == Starts::user;
  bool keeps = launcher.cleans != "*";
  bool cleans = !keeps;
  const std::vector<std::string>& words = request_.command;
  std::string next;
  for (std::size_t i = at_ + 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    cleans = cleans || is_option_of(word, launcher.cleans);
    keeps = keeps || is_option_of(word, launcher.keeps);
    // A user may have the name of a program: "su node -c ...".
    if (launcher.starts != Starts::words || !is_executable(word)) continue;
    if (leads_on(word)) next = word;
    at_ = i;
    break;
  }
  if (cleans && (launcher.cleans != "*" || !keeps)) cleaned_by = &launcher;
  return next;
}

/// A program of that runtime in PATH.
Found program_of(const RuntimeInfo& runtime, const NamingRequest& request) {
  std::vector<std::string_view> names = {runtime.signs.launcher, runtime.started.program};
  names.insert(names.end(), runtime.signs.programs.begin(), runtime.signs.programs.end());
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    // Distributions have python3 and pypy3, but not always the name without a number.
    for (const std::string_view number : {"", "3"}) {
      std::string path = program_path(std::string(name) + std::string(number), request.environment);
      if (!path.empty()) return {&runtime, std::move(path)};
    }
  }
  return {&runtime, {}};
}

/// The first number with a point, or else the first number, in what a program prints.
Version version_in(std::string_view text) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t at = text.find_first_of(kDigits);
  return at == std::string_view::npos ? Version() : parse_version(text.substr(at));
}

std::string text_of(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

constexpr std::string_view kPlace = "{dir}";
constexpr std::string_view kWritten = "{dir}/written";

class Planner {
 public:
  Planner(const NamingRequest& request, const CommandSearch& search)
      : request_(request), search_(search) {}

  /// `was_asked_for`: it is the command's runtime, or one that the user named, so the reason why
  /// nothing is set matters.
  void add(const Found& found, bool was_asked_for);
  NamingPlan take() { return std::move(plan_); }
  void set_runtime(Runtime runtime) { plan_.runtime = runtime; }
  void note_cleaned(const Launcher& launcher) {
    plan_.notes.push_back("names are not turned on, because " + std::string(launcher.name) +
                          " removes variables from the environment (" +
                          std::string(launcher.advice) + ")");
  }

 private:
  std::optional<Version> version_of(const Found& found);
  std::span<const StartVariable> variables_for(const RuntimeInfo& row, const Version& version);
  std::string why_unknown(const Found& found) const;
  void set(const RuntimeInfo& row, const StartVariable& variable);
  void append_arguments(const RuntimeInfo& row);
  void note_interpreter(const RuntimeInfo& row);
  void note(const RuntimeInfo& row, const std::string& why) {
    if (!was_asked_for_) return;
    plan_.notes.push_back(std::string(row.guide.title) + ": names are not turned on, because " +
                          why);
  }

  const NamingRequest& request_;
  const CommandSearch& search_;
  NamingPlan plan_;
  bool was_asked_for_ = true;
};

std::string Planner::why_unknown(const Found& found) const {
  const RuntimeInfo& row = *found.runtime;
  const std::string_view program =
      row.signs.launcher.empty() ? row.signs.programs.front() : row.signs.launcher;
  if (found.path.empty()) return "there is no " + std::string(program) + " in PATH";
  std::string command = found.path;
  for (const std::string_view word : row.started.version_arguments)
    command += " " + shell_word(word);
  return "no version was printed by: " + command + " (releases without the option do not start)";
}

/// Nothing if a release that matters is unknown.
std::optional<Version> Planner::version_of(const Found& found) {
  const StartedNaming& started = found.runtime->started;
  if (started.first_release.empty()) return Version();
  if (found.path.empty() || !request_.run) return std::nullopt;
  const Version version = version_in(request_.run(found.path, started.version_arguments));
  return version == Version() ? std::nullopt : std::optional(version);
}

std::span<const StartVariable> Planner::variables_for(const RuntimeInfo& row,
                                                      const Version& version) {
  const StartedNaming& started = row.started;
  if (started.read_only_variables.empty()) return started.variables;
  const bool is_direct = row.runtime == plan_.runtime && !search_.is_launched;
  // V8 does not accept this option in a variable. It may name a file without a directory: "+".
  const bool has_own_log = std::ranges::any_of(request_.command, [](const std::string& word) {
    return word.find("--logfile=") != std::string::npos;
  });
  if (has_own_log || (is_direct && request_.can_write)) return started.variables;
  const std::string title(row.guide.title);
  const std::string why =
      "a log on standard output if it is started in a directory in which it cannot create files "
      "(record it without another program that starts it, in a directory that it can write to, or "
      "start it with the options --no-logfile-per-isolate --logfile=+)";
  if (started.first_with_file.empty() || version < parse_version(started.first_with_file)) {
    plan_.left_out.emplace_back(row.runtime, title +
                                                 ": regular expressions have no names, because "
                                                 "with the option for them it prints " +
                                                 why);
    return started.read_only_variables;
  }
  if (request_.can_write && !search_.changes_user) {
    plan_.notes.push_back(title + " prints " + why);
    return started.variables;
  }
  plan_.left_out.emplace_back(row.runtime,
                              title + ": names were not turned on, because it prints " + why);
  return {};
}

/// The text of a variable that a runtime would split inside of the directory's path.
bool splits_directory(const StartedNaming& started, const std::string& directory) {
  return std::ranges::any_of(started.variables, [&](const StartVariable& variable) {
    return variable.separator != '\0' && variable.value.find(kPlace) != std::string_view::npos &&
           directory.find(variable.separator) != std::string::npos;
  });
}

void Planner::set(const RuntimeInfo& row, const StartVariable& variable) {
  std::string value(variable.value);
  const bool is_written = value.find(kWritten) != std::string::npos;
  if (const std::size_t at = value.find(kPlace); at != std::string::npos) {
    value.replace(at, kPlace.size(), request_.directory);
  }
  const std::string_view users = value_of(request_.environment, variable.name);
  if (!users.empty()) {
    if (users.find(value) != std::string_view::npos) return;
    if (variable.separator == '\0') {
      plan_.notes.push_back(std::string(variable.name) + " keeps its value " + shell_word(users));
      return;
    }
    // A list such as ":DIR" begins with its separator.
    const bool has_separator = value.front() == variable.separator;
    value = std::string(users) + (has_separator ? "" : std::string(1, variable.separator)) + value;
  }
  plan_.variables.push_back({row.runtime, std::string(variable.name), std::move(value)});
  plan_.writes_to_directory = plan_.writes_to_directory || is_written;
}

void Planner::append_arguments(const RuntimeInfo& row) {
  if (row.runtime != plan_.runtime || row.started.arguments.empty()) return;
  const StartFlags users = start_flags(row.runtime, {{}, request_.command, request_.environment});
  if (!users.map_by.empty() || !users.dump_by.empty()) return;
  plan_.arguments.assign(row.started.arguments.begin(), row.started.arguments.end());
}

/// All files will be there, and nothing in them names the functions of the program.
void Planner::note_interpreter(const RuntimeInfo& row) {
  const StartFlags users = start_flags(row.runtime, {{}, request_.command, request_.environment});
  if (!was_asked_for_ || !users.only_interprets || row.doctor.only_interprets.empty()) return;
  plan_.notes.emplace_back(row.doctor.only_interprets);
}

void Planner::add(const Found& found, bool was_asked_for) {
  was_asked_for_ = was_asked_for;
  const RuntimeInfo& row = *found.runtime;
  if (!row.started.exists()) return note(row, std::string(row.started.why_not));
  // V8 aborts then, and so do PHP and others with the variables set.
  if (!request_.can_write_tmp) return note(row, "no file can be created in /tmp");
  if (splits_directory(row.started, request_.directory)) {
    return note(row, "it would split the path of the recording, " + shell_word(request_.directory));
  }
  if (row.started.needs_code_in_tmp && !request_.can_map_tmp) {
    return note(row, "it would abort: /tmp is mounted with noexec");
  }
  const std::optional<Version> version = version_of(found);
  if (!version) return note(row, why_unknown(found));
  if (*version < parse_version(row.started.first_release)) {
    return note(row, "version " + text_of(*version) + " cannot write them (" +
                         std::string(row.started.first_release) + " can)");
  }
  const std::size_t before = plan_.variables.size();
  for (const StartVariable& variable : variables_for(row, *version)) set(row, variable);
  append_arguments(row);
  note_interpreter(row);
  if (plan_.variables.size() == before) return;
  if (!row.started.ini.empty()) plan_.ini = row.started.ini;
  if (row.runtime == plan_.runtime) plan_.call_graph = row.started.call_graph;
  if (was_asked_for_ && !row.started.prints.empty()) {
    plan_.notes.push_back(std::string(row.guide.title) + " prints " +
                          std::string(row.started.prints));
  }
}

}  // namespace

std::string program_path(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return is_executable_file(program) ? program : "";
  std::string_view directories = value_of(environment, "PATH");
  while (!directories.empty()) {
    const std::string_view directory = directories.substr(0, directories.find(':'));
    directories.remove_prefix(std::min(directories.size(), directory.size() + 1));
    if (directory.empty()) continue;
    std::string path = std::string(directory) + "/" + program;
    if (is_executable_file(path)) return path;
  }
  return {};
}

NamingPlan plan_naming(const NamingRequest& request) {
  const CommandSearch search(request);
  const Found& own = search.own;
  Planner planner(request, search);
  if (own.runtime != nullptr) planner.set_runtime(own.runtime->runtime);
  if (search.cleaned_by != nullptr && !request.runtimes) {
    planner.note_cleaned(*search.cleaned_by);
    return planner.take();
  }
  for (const RuntimeInfo* const row : all_runtimes()) {
    const bool is_own = row == own.runtime;
    if (!row->started.exists() && !is_own) continue;
    if (request.runtimes) {
      if (std::ranges::find(*request.runtimes, row->runtime) == request.runtimes->end()) continue;
      planner.add(is_own ? own : program_of(*row, request), true);
    } else if (is_own) {
      planner.add(own, true);
    } else if (own.runtime == nullptr && search.may_start_others) {
      const Found found = program_of(*row, request);
      if (!found.path.empty()) planner.add(found, false);
    }
  }
  return planner.take();
}

std::vector<std::string> environment_with(std::vector<std::string> environment,
                                          const NamingPlan& plan) {
  for (const NamingVariable& variable : plan.variables) {
    const std::string begin = variable.name + "=";
    std::erase_if(environment, [&](const std::string& one) { return one.starts_with(begin); });
    environment.push_back(begin + variable.value);
  }
  return environment;
}

}  // namespace perfmap

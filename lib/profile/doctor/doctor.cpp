// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/findings.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/text.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {
namespace {

bool may_write_to(const std::string& directory, const struct stat& status, uid_t reader) noexcept {
  if (reader == ::geteuid()) {
    return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  }
  // The groups of another user are unknown, so group permissions are ignored.
  const mode_t wanted = status.st_uid == reader ? S_IWUSR | S_IXUSR : S_IWOTH | S_IXOTH;
  return (status.st_mode & wanted) == wanted;
}

/// The rule of unlink(2): in a directory with the sticky bit, such as /tmp, only the owner of the
/// file or the directory.
bool may_remove(const std::string& path, const struct stat& file, uid_t reader) noexcept {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return false;
  if (!may_write_to(directory, status, reader)) return false;
  // A directory of another user may contain files of that user.
  if (S_ISDIR(file.st_mode) && file.st_uid != reader) return false;
  const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
  return !is_sticky || file.st_uid == reader || status.st_uid == reader;
}

void warn(Diagnosis& diagnosis, std::string_view id, std::string message, std::string fix = {}) {
  diagnosis.findings.push_back({id, Severity::warning, std::move(message), std::move(fix)});
}

void note(Diagnosis& diagnosis, std::string_view id, std::string message, std::string fix) {
  diagnosis.findings.push_back({id, Severity::info, std::move(message), std::move(fix)});
}

bool has_finding(const Diagnosis& diagnosis, std::string_view id) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [id](const DoctorFinding& one) { return one.id == id; });
}

/// "sudo " if the reader is not root.
std::string sudo(const DoctorCase& facts) { return facts.options.reader == 0 ? "" : "sudo "; }

std::string subject_of(const DoctorCase& facts) {
  return facts.reading.empty() ? std::to_string(facts.view.pid) : facts.reading;
}

constexpr std::string_view kPlanted = "; another user may have put it there";

/// The finding for each FileFate.
struct FateRow {
  std::string_view name;
  std::string_view finding = {};  ///< empty: no finding
  Severity severity = Severity::warning;
  std::string_view of_map = {}, of_dump = {};  ///< end of the message
};
constexpr FateRow kFates[] = {
    {"used"},
    {"missing"},
    {"unreachable", "unreadable"},
    {"unreadable", "unreadable"},
    {"link", "not-a-file", Severity::error},
    {"not-regular", "not-a-file", Severity::error},
    {"foreign-owner", "foreign-owner", Severity::error, kPlanted, kPlanted},
    {"too-large", "too-large"},
    {"stale", "stale", Severity::warning, "; perf would use its names, which are wrong"},
    {"empty"},
    {"other-pid", "other-pid"},
    {"shadowed"},
};

const FateRow& row_of(FileFate fate) noexcept { return kFates[static_cast<std::size_t>(fate)]; }

/// For a file that exists but is not used.
void add_file_finding(const DoctorCase& facts, const LookedFor& file, Diagnosis& diagnosis) {
  const FateRow& row = row_of(file.fate);
  const bool is_closed = row.finding == "unreadable";
  // Reported once for all files.
  if (row.finding.empty() || (is_closed && has_finding(diagnosis, row.finding))) return;
  std::string fix;
  if (file.fate == FileFate::other_pid) {
    const std::string directory = file.our_path.substr(0, file.our_path.rfind('/') + 1);
    fix = concat(sudo(facts), "ln ", shell_word(file.our_path), " ",
                 shell_word(concat(directory, kMapName.of(facts.view.inner))));
  } else if (!is_closed) {
    fix = remove_command(file.our_path, facts.options.reader);
  } else if (facts.options.reader != 0) {
    fix = "sudo perfmap doctor " + subject_of(facts);
  }
  const std::string_view more = file.is_dump ? row.of_dump : row.of_map;
  diagnosis.findings.push_back(
      {row.finding, row.severity, concat(visible(file.our_path), ": ", file.why, more), fix});
}

/// Whether an existing file would be used if it were readable, or had the right name.
bool explains(const Diagnosis& diagnosis) {
  return has_finding(diagnosis, "unreadable") || has_finding(diagnosis, "other-pid") ||
         has_finding(diagnosis, "foreign-owner");
}

bool has_empty(const Diagnosis& diagnosis) {
  return std::any_of(diagnosis.looked_for.begin(), diagnosis.looked_for.end(),
                     [](const LookedFor& one) { return one.fate == FileFate::empty; });
}

/// The runtime was started to write a map, but no map is found.
void add_lost_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const StartFlags& asked = facts.asked;
  const std::string by = asked.map_by.empty() ? asked.dump_by : asked.map_by;
  if (by.empty()) {
    warn(diagnosis, "lost-map",
         facts.title() + " left an empty file: nothing was compiled yet, or the disk was full");
    return;
  }
  const std::string told = facts.title() + " was started with " + visible(by);
  if (!asked.directory.empty() && asked.directory != facts.options.roots.tmp) {
    const std::string root =
        facts.view.other_mounts ? concat("/proc/", facts.view.pid, "/root") : "";
    const std::string map = concat(root, asked.directory, "/", kMapName.of(facts.view.inner));
    const std::string tmp = concat(facts.options.roots.tmp, "/", kMapName.of(facts.view.pid));
    warn(diagnosis, "lost-map",
         told + ", but writes to " + visible(asked.directory) + ", where perf does not look",
         sudo(facts) + "cp " + shell_word(map) + " " + shell_word(tmp));
    return;
  }
  const std::string where =
      has_empty(diagnosis)
          ? ", but its file is empty: nothing was compiled yet, or the disk is full"
      : facts.is_gone && facts.runtime().lint.writes_map_at_once
          ? ", but its file does not exist: the process was killed before it could write the file "
            "at its exit (end it by Ctrl-C or SIGTERM), or the file was deleted"
          : ", but its file does not exist: it was deleted, or could not be written";
  warn(diagnosis, "lost-map", told + where, own_command(facts.view).text());
}

void add_too_old(const DoctorCase& facts, Diagnosis& diagnosis) {
  const MapSupport& maps = facts.runtime().maps;
  warn(diagnosis, "too-old",
       concat(maps.language, " ", facts.found.version, " cannot write a perf map; ",
              maps.first_release, " is the first release that can"),
       maps.newer_program.empty() ? "" : naming_command(facts, false));
}

/// The runtime was not started to name its code.
void add_no_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool has_jit = diagnosis.memory.regions != 0;
  const DoctorTexts& texts = facts.runtime().doctor;
  std::string message(texts.no_map);
  // A snapshot rarely contains the command line, and never the environment.
  if (facts.options.is_snapshot) {
    message = "the snapshot has no perf map or jitdump of " + facts.title() +
              std::string(texts.no_snapshot);
  } else if (!has_jit && !texts.no_jit.empty()) {
    message = texts.no_jit;
  } else if (message.empty() && facts.knows_arguments) {
    message =
        facts.title() + " is not configured to write a perf map, so its functions have no names";
  } else if (message.empty()) {
    message = "no perf map or jitdump was found, and " + facts.title() +
              " writes one only if it is configured to do so";
  }
  if (!facts.options.is_snapshot) message += texts.needs;
  warn(diagnosis, "no-map", message, naming_command(facts, has_jit));
}

void add_unknown_jit(Diagnosis& diagnosis) {
  warn(diagnosis, "unknown-jit",
       "the process has " + size_text(diagnosis.memory.bytes) +
           " of executable memory that belongs to no file, but no perf map or jitdump, and perfmap "
           "does not know the runtime",
       "");
}

void add_damage(Diagnosis& diagnosis) {
  for (const LookedFor& file : diagnosis.looked_for) {
    if (file.fate != FileFate::used || file.damage.empty()) continue;
    warn(diagnosis, "damaged-dump", damage_text(file), damage_fix(file));
  }
}

/// A file exists, but it names little of the process's code.
void add_misfit(const DoctorCase& facts, const LookedFor& file, Diagnosis& diagnosis) {
  const JitMemory& memory = diagnosis.memory;
  if (memory.regions == 0 || memory.named_bytes != 0) return;
  const std::string subject =
      !facts.recording.empty() ? "--recording " + facts.recording + " " + shell_word(file.our_path)
      : facts.options.is_snapshot ? shell_word(file.our_path)
                                  : std::to_string(facts.view.pid);
  const std::string lint = "perfmap lint " + subject;
  const std::string path = visible(file.our_path);
  if (file.entries == 0) {
    warn(diagnosis, "no-entries", path + ": it has no valid entry", lint);
  } else if (memory.executable_hits == 0) {
    warn(diagnosis, "nothing-fits",
         concat(path, ": none of its ", file.entries,
                " entries lies in executable memory of this process"),
         lint);
  } else {
    note(diagnosis, "nothing-fits",
         path + ": its entries name none of the " + size_text(memory.bytes) +
             " of memory that may be JIT code",
         lint);
  }
}

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kOldSnapshot = 60 * kSecond;

/// The path that perf reads on the host.
std::string host_map(const DoctorCase& facts) {
  return concat(facts.options.roots.tmp, "/", kMapName.of(facts.view.pid));
}

std::optional<int> kernel_setting(const DoctorCase& facts, const char* name) {
  const std::string path = facts.options.roots.proc + "/sys/kernel/" + name;
  const Result<ReadText> read = read_text_at(AT_FDCWD, path.c_str(), path, 64);
  if (!read) return std::nullopt;
  int value = 0;
  const char* const end = read->text.data() + read->text.size();
  return std::from_chars(read->text.data(), end, value).ec == std::errc() ? std::optional(value)
                                                                          : std::nullopt;
}

/// What an unprivileged user may record, and whether kernel symbols are readable.
void add_settings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool root = facts.options.reader == 0;
  const int paranoid = kernel_setting(facts, "perf_event_paranoid").value_or(0);
  const int restrict = kernel_setting(facts, "kptr_restrict").value_or(0);
  if (!root && paranoid > 2) {
    note(diagnosis, "perf-paranoid",
         "only root can record with perf on this machine: perf_event_paranoid is " +
             std::to_string(paranoid),
         "sudo sysctl kernel.perf_event_paranoid=1");
  }
  // From 2 on, other users than root cannot record the kernel anyway.
  if (root ? restrict >= 2 : restrict >= 1 && paranoid < 2) {
    note(diagnosis, "kptr-restrict",
         "perf cannot name the kernel's functions: kptr_restrict is " + std::to_string(restrict),
         "sudo sysctl kernel.kptr_restrict=0");
  }
}

void add_ignored(const DoctorCase& facts, Diagnosis& diagnosis) {
  const JitMemory& memory = diagnosis.memory;
  if (memory.ignored_bytes == 0) return;
  const std::string message = ignored_text(memory);
  CommandLine command = own_command(facts.view);
  if (const MapSupport& maps = facts.runtime().maps; maps.moves_code) {
    command.environment.assign(maps.naming_variables.begin(), maps.naming_variables.end());
    warn(diagnosis, "perf-ignores-region", message, command.text());
  } else if (memory.ignored_region.starts_with("[anon")) {
    // Only if perf attaches to the process: in the kernel's own mmap events the memory is //anon.
    warn(diagnosis, "perf-ignores-region",
         message + "; if perf starts the program, perf uses the map",
         "perf record -g -- " + command.text());
  } else {
    // Not 'resolve --perf-script': for such a file perf prints offsets in call chains.
    warn(diagnosis, "perf-ignores-region", message,
         concat("perf record -k mono -g -p ", facts.view.pid,
                " && perfmap stacks --format perf-script perf.data"));
  }
}

/// There is only a dump: perf uses it through its marker, its name, and perf inject.
void add_dump(const DoctorCase& facts, const LookedFor& dump, Diagnosis& diagnosis) {
  const std::string name = kDumpName.of(facts.view.inner);
  const std::string convert =
      concat("perfmap copy ", shell_word(dump.our_path), " --to-pid ", facts.view.pid);
  const std::string path = visible(dump.our_path);
  if (!dump.has_marker) {
    warn(diagnosis, "no-marker",
         path + ": the process has not mapped it with PROT_EXEC, so perf does not find it",
         convert);
  } else if (base_name(dump.our_path) != name) {
    warn(diagnosis, "dump-name", path + ": 'perf inject' uses only " + name + " for this process",
         convert);
  } else {
    // A runtime that writes unwinding information has no frame pointers.
    const bool unwinds = facts.runtime().stacks.dump.exists();
    const std::string unwinding = unwinds ? "--call-graph dwarf" : "-g";
    note(diagnosis, "perf-inject",
         "perf uses the names of a jitdump only after 'perf inject', with a recording made with -k "
         "mono",
         concat("perf record -k mono ", unwinding, " -p ", facts.view.pid,
                " && perf inject --jit -i perf.data -o perf.jit.data"));
  }
}

/// A snapshot never contains the environment, and rarely the command line.
std::string unless_set(const DoctorCase& facts, const std::string& flag) {
  if (!facts.options.is_snapshot) return {};
  if (facts.knows_arguments) {
    return ", unless " + flag + " was set in the environment, which a snapshot does not contain";
  }
  return ", unless it was started with " + flag +
         " (this snapshot has no command line; 'perfmap snapshot --with-command-line' keeps it)";
}

void add_interpreter(const DoctorCase& facts, Diagnosis& diagnosis) {
  const DoctorTexts& texts = facts.runtime().doctor;
  if (!facts.asked.only_interprets || texts.interprets_without_code) return;
  CommandLine command = own_command(facts.view);
  std::erase(command.arguments, texts.interpreter_flag);
  warn(diagnosis, "only-interpreted", std::string(texts.only_interprets),
       texts.interpreter_flag.empty() ? "" : command.text());
}

/// A runtime that writes its map only on request: the map may be old.
void add_old_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const std::int64_t age = file_clock_ns() - facts.map_time_ns;
  if (facts.options.is_snapshot || age <= kOldSnapshot) return;
  note(diagnosis, "snapshot",
       concat(facts.title(), "'s map is ", age / kSecond / 60, " min old, and ", facts.title(),
              " does not update it: methods that were compiled later have no names"),
       live_command(facts));
}

/// The flag that makes stacks of the runtime's code walkable, or names them.
void add_stack_flag(const DoctorCase& facts, bool has_map, Diagnosis& diagnosis) {
  const RuntimeStacks& stacks = facts.runtime().stacks;
  if (stacks.flag.empty() || facts.asked.has_stack_flag) return;
  if (stacks.is_about_names && (!has_map || facts.asked.only_interprets)) return;
  CommandLine command;
  if (stacks.is_about_names) {
    command = naming_command_line(facts, true);
  } else {
    command = own_command(facts.view);
    command.inserted.emplace_back(stacks.flag);
  }
  note(diagnosis, stacks.finding,
       std::string(stacks.message) + unless_set(facts, std::string(stacks.flag)),
       facts.knows_arguments ? command.text() : "");
}

/// The names are in a log of the runtime, or can only be there.
void add_log(const DoctorCase& facts, Diagnosis& diagnosis) {
  constexpr std::string_view kServes =
      " has the addresses and names of its loops, and 'perfmap stacks --map' reads it";
  const std::string writes_none = facts.title() + " writes no perf map";
  const std::string log = log_of(facts);
  if (log.empty()) {
    warn(diagnosis, "no-map", writes_none + "; its log" + std::string(kServes),
         naming_command(facts, true));
    return;
  }
  const Result<FileFacts> file = look_at_path(log);
  if (!file || !file->is_regular) {
    warn(diagnosis, "lost-map",
         facts.title() + " writes a log instead of a perf map, and the log " + visible(log) +
             " does not exist",
         own_command(facts.view).text());
    return;
  }
  const bool is_recorded = !facts.recording.empty();
  const std::string pid = std::to_string(facts.view.pid);
  warn(diagnosis, "no-map", writes_none + "; its log " + visible(log) + std::string(kServes),
       (is_recorded ? "" : "perf record -g -p " + pid + " -- sleep 10 && ") +
           "perfmap stacks --map " + shell_word(log) + " " +
           (is_recorded ? facts.reading : "perf.data"));
}

/// How the runtime's set-up can be improved.
void add_runtime_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool has_map = used_file(diagnosis, false) != nullptr;
  add_interpreter(facts, diagnosis);
  if (has_map && facts.runtime().maps.is_live()) add_old_map(facts, diagnosis);
  add_stack_flag(facts, has_map, diagnosis);
}

/// Why perf does not show existing names.
void add_perf_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  if (!diagnosis.concerns_jit()) return;
  const LookedFor* const map = used_file(diagnosis, false);
  const LookedFor* const dump = used_file(diagnosis, true);
  if (map != nullptr && !facts.perf_opens_map) {
    warn(
        diagnosis, "perf-path",
        "perf looks for " + visible(host_map(facts)) + ", but the map is " + visible(map->our_path),
        sudo(facts) + "ln -s " + shell_word(map->our_path) + " " + shell_word(host_map(facts)));
  }
  if (map != nullptr) add_ignored(facts, diagnosis);
  if (map == nullptr && dump != nullptr) add_dump(facts, *dump, diagnosis);
  add_settings(facts, diagnosis);
}

/// Memory inherited from ancestors keeps their names.
void search_parents(const ProcSource& process, DoctorCase& facts, Coverage& coverage,
                    Diagnosis& diagnosis) {
  for (const ProcSource& parent : living_parents(process, facts.options.roots)) {
    const Result<ProcessView> view =
        view_process(parent, facts.options.roots, facts.options.is_snapshot);
    if (!view) return;
    FoundFiles files = search_files(parent, *view, facts.options, coverage);
    const bool has_map = used_file(diagnosis, false) != nullptr;
    for (LookedFor& file : files.looked_for) {
      if (file.fate != FileFate::used) continue;
      file.inherited_from = parent.pid();
      diagnosis.looked_for.push_back(std::move(file));
    }
    if (has_map || used_file(diagnosis, false) == nullptr) continue;
    facts.map_time_ns = files.map_time_ns;
    facts.perf_opens_map = files.perf_opens_map;
  }
}

void search(const ProcSource& process, DoctorCase& facts, Diagnosis& diagnosis) {
  Coverage coverage(facts.view.memory);
  FoundFiles files = search_files(process, facts.view, facts.options, coverage);
  diagnosis.looked_for = std::move(files.looked_for);
  facts.map_time_ns = files.map_time_ns;
  facts.perf_opens_map = files.perf_opens_map;
  search_parents(process, facts, coverage, diagnosis);
  diagnosis.memory =
      coverage.result([&](const Region& region) { return shows_elf(process, region); });
}

}  // namespace

std::string_view to_string(FileFate fate) noexcept { return row_of(fate).name; }

std::string remove_command(const std::string& path, uid_t reader) {
  struct stat file {};
  const bool is_there = ::lstat(path.c_str(), &file) == 0;
  const bool may = reader == 0 || (is_there && may_remove(path, file, reader));
  const bool is_directory = is_there && S_ISDIR(file.st_mode);
  return std::string(may ? "" : "sudo ") + (is_directory ? "rm -r " : "rm ") + shell_word(path);
}

std::string live_command(const DoctorCase& facts) {
  const MapSupport& maps = facts.runtime().maps;
  if (!maps.is_live()) return {};
  const ProcessView& view = facts.view;
  const auto call = [&maps](pid_t pid) {
    return concat(maps.live_tool, " ", pid, " ", maps.live_command);
  };
  if (view.inner != view.pid || view.other_mounts) {
    return concat(sudo(facts), "nsenter --target ", view.pid, " --mount --pid -- ",
                  call(view.inner));
  }
  // A runtime accepts requests only from its own user.
  const bool own = view.status.uid == facts.options.reader;
  return (own ? "" : concat("sudo -u '#", view.status.uid, "' ")) + call(view.pid);
}

CommandLine naming_command_line(const DoctorCase& facts, bool has_jit) {
  const auto command = facts.runtime().maps.command;
  return command == nullptr ? CommandLine() : command(facts.process(has_jit));
}

std::string naming_command(const DoctorCase& facts, bool has_jit) {
  const MapSupport& maps = facts.runtime().maps;
  if (maps.is_live()) return live_command(facts);
  if (maps.command == nullptr) return std::string(maps.build_command);
  return naming_command_line(facts, has_jit).text();
}

std::vector<std::string> naming_variables(const DoctorCase& facts) {
  if (facts.is_too_old()) return {};
  const auto variables = facts.runtime().maps.naming_variables;
  return {variables.begin(), variables.end()};
}

StackFlags stack_flags(const DoctorCase& facts) {
  return stack_flags(facts.found.runtime, facts.process());
}

std::string visible(std::string_view bytes) {
  std::string text;
  append_visible(text, bytes);
  return text;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  if (bytes < (std::uint64_t{1} << 20)) return std::to_string((bytes + 512) >> 10) + " KiB";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

const LookedFor* used_file(const Diagnosis& diagnosis, bool is_dump) noexcept {
  for (const LookedFor& one : diagnosis.looked_for) {
    if (one.is_dump == is_dump && one.fate == FileFate::used) return &one;
  }
  return nullptr;
}

std::string damage_text(const LookedFor& file) {
  return visible(file.our_path) + " is damaged, so some code has no name; " + visible(file.damage);
}

std::string damage_fix(const LookedFor& file) {
  return "perfmap lint " + shell_word(file.our_path);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t percent = scaled_ratio(part, whole, 2);
  return part != 0 && percent == 0 ? "under 1 %" : concat(percent, " %");
}

std::string ignored_text(const JitMemory& memory) {
  return "perf does not use a map for code in " + visible(memory.ignored_region) + ", where " +
         size_text(memory.ignored_bytes) + " have names";
}

std::string log_of(const DoctorCase& facts) {
  std::string path = facts.asked.log;
  if (path.empty()) return path;
  if (const std::size_t number = path.find("%d"); number != std::string::npos) {
    path.replace(number, 2, std::to_string(facts.view.inner));
  }
  if (facts.is_gone) return path;
  const std::string process = concat(facts.options.roots.proc, "/", facts.view.pid);
  if (!path.starts_with('/')) return process + "/cwd/" + path;
  return facts.view.other_mounts ? process + "/root" + path : path;
}

void add_name_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const LookedFor* const map = used_file(diagnosis, false);
  const LookedFor* const dump = used_file(diagnosis, true);
  if (facts.recording.empty()) add_damage(diagnosis);
  if (facts.has_no_code()) {
    warn(diagnosis, "only-interpreted", std::string(facts.runtime().doctor.only_interprets),
         naming_command(facts, false));
    return;
  }
  if (map != nullptr || dump != nullptr) {
    add_misfit(facts, map != nullptr ? *map : *dump, diagnosis);
    return;
  }
  // An embedded runtime, such as Python in gdb, is not asked about.
  const bool known = facts.found.runtime != Runtime::unknown &&
                     (facts.found.is_the_program || diagnosis.memory.regions != 0);
  if (!known && diagnosis.memory.regions == 0) return;
  for (const LookedFor& file : diagnosis.looked_for) add_file_finding(facts, file, diagnosis);
  if (explains(diagnosis)) return;
  const bool asked = !facts.asked.map_by.empty() || !facts.asked.dump_by.empty() ||
                     (!facts.knows_arguments && has_empty(diagnosis));
  // A JVM writes its map on exit or on request.
  const MapSupport& maps = facts.runtime().maps;
  const bool writes = !maps.is_live() || facts.is_gone;
  if (!known) {
    // That finding already explains why there is no map.
    if (!has_finding(diagnosis, "not-a-file")) add_unknown_jit(diagnosis);
  } else if (facts.is_too_old()) {
    add_too_old(facts, diagnosis);
  } else if (!maps.log.empty()) {
    add_log(facts, diagnosis);
  } else if (asked && writes) {
    add_lost_map(facts, diagnosis);
  } else {
    add_no_map(facts, diagnosis);
  }
}

Result<Diagnosis> diagnose(pid_t pid, const DoctorOptions& options) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process) return failure(process);
  if (!*process) return Failure(no_process(pid));
  const Result<ProcessView> view = view_process(**process, options.roots, options.is_snapshot);
  if (!view) return failure(view);
  if (view->status.tgid != pid) {
    return Failure(Error::invalid(concat(pid, " is a thread of process ", view->status.tgid)));
  }
  DoctorCase facts{*view, options, find_runtime(**process, *view)};
  facts.asked = start_flags(facts.found.runtime, *view);
  facts.knows_arguments = !options.is_snapshot || !view->arguments.empty();
  Diagnosis diagnosis;
  diagnosis.pid = pid;
  diagnosis.comm = view->status.comm;
  diagnosis.uid = view->status.uid;
  diagnosis.runtime = facts.found.runtime;
  diagnosis.evidence = facts.found.evidence;
  diagnosis.runtime_version = facts.found.version;
  search(**process, facts, diagnosis);
  add_name_findings(facts, diagnosis);
  add_runtime_findings(facts, diagnosis);
  if (!options.is_snapshot) add_perf_findings(facts, diagnosis);
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const auto& a, const auto& b) { return a.severity > b.severity; });
  if (!(*process)->is_alive()) {
    return Failure(Error::of(Reason::no_process, concat("process ", pid)));
  }
  return diagnosis;
}

}  // namespace perfmap

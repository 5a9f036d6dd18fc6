#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <optional>

#include "diagnosis/doctor_advice.hpp"
#include "processes/safe_open.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kOldSnapshot = 60 * kSecond;

void add(Diagnosis& diagnosis, std::string_view id, Severity severity, std::string message,
         std::string fix) {
  diagnosis.findings.push_back({id, severity, std::move(message), std::move(fix)});
}

std::string pid_text(const DoctorCase& facts) { return std::to_string(facts.view.pid); }

/// Where perf looks on the host.
std::string host_map(const DoctorCase& facts) {
  return facts.options.roots.tmp + "/perf-" + pid_text(facts) + ".map";
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

/// What an unprivileged user may record, and whether the kernel's own functions have names.
void add_settings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool root = facts.options.reader == 0;
  const int paranoid = kernel_setting(facts, "perf_event_paranoid").value_or(0);
  const int restrict = kernel_setting(facts, "kptr_restrict").value_or(0);
  if (!root && paranoid > 2) {
    add(diagnosis, "perf-paranoid", Severity::info,
        "perf records for root alone here: perf_event_paranoid is " + std::to_string(paranoid),
        "sudo sysctl kernel.perf_event_paranoid=2");
  }
  // From 2 on, others than root see nothing of the kernel anyway.
  if (root ? restrict >= 2 : restrict >= 1 && paranoid < 2) {
    add(diagnosis, "kptr-restrict", Severity::info,
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
    add(diagnosis, "perf-ignores-region", Severity::warning, message, command.text());
  } else if (memory.ignored_region.starts_with("[anon")) {
    // Only when it attaches: the kernel's own event calls that memory //anon.
    add(diagnosis, "perf-ignores-region", Severity::warning,
        message + "; it does if it starts the program itself",
        "perf record -g -- " + command.text());
  } else {
    // Not 'resolve --perf-script': in call chains perf prints offsets in such a file.
    add(diagnosis, "perf-ignores-region", Severity::warning, message,
        "perf record -k mono -g -p " + pid_text(facts) +
            " && perfmap stacks --format perf-script perf.data");
  }
}

/// A dump is all there is: perf takes it in only by its marker, its name, and by inject.
void add_dump(const DoctorCase& facts, const LookedFor& dump, Diagnosis& diagnosis) {
  const std::string name = "jit-" + std::to_string(facts.view.inner) + ".dump";
  const std::string convert =
      "perfmap copy " + shell_word(dump.our_path) + " -p " + pid_text(facts);
  const std::string path = visible(dump.our_path);
  if (!dump.has_marker) {
    add(diagnosis, "no-marker", Severity::warning,
        path + ": the process has not mapped it executable, so perf never hears of it", convert);
  } else if (base_name(dump.our_path) != name) {
    add(diagnosis, "dump-name", Severity::warning,
        path + ": 'perf inject' takes only " + name + " of this process", convert);
  } else {
    // A runtime that writes unwinding information has no frame pointers.
    const bool unwinds = facts.runtime().stacks.dump.exists();
    const std::string unwinding = unwinds ? "--call-graph dwarf" : "-g";
    add(diagnosis, "perf-inject", Severity::info,
        "perf takes names from a jitdump only by 'perf inject', of a recording with -k mono",
        "perf record -k mono " + unwinding + " -p " + pid_text(facts) +
            " && perf inject --jit -i perf.data -o perf.jit.data");
  }
}

/// A snapshot never has the environment, and seldom the command line.
std::string unless_set(const DoctorCase& facts, const std::string& flag) {
  if (!facts.options.is_snapshot) return {};
  if (facts.knows_arguments) {
    return ", unless " + flag + " was set in the environment, which a snapshot does not have";
  }
  return ", unless it was started with " + flag +
         ", which this snapshot does not tell ('perfmap snapshot --with-command-line' keeps it)";
}

void add_interpreter(const DoctorCase& facts, Diagnosis& diagnosis) {
  const DoctorTexts& texts = facts.runtime().doctor;
  if (!facts.asked.only_interprets || texts.interprets_without_code) return;
  CommandLine command = own_command(facts.view);
  std::erase(command.arguments, texts.interpreter_flag);
  add(diagnosis, "only-interpreted", Severity::warning, std::string(texts.only_interprets),
      command.text());
}

/// A map that is written when the process is asked to.
void add_old_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const std::int64_t age = file_clock_ns() - facts.map_time_ns;
  if (facts.options.is_snapshot || age <= kOldSnapshot) return;
  add(diagnosis, "snapshot", Severity::info,
      facts.title() + "'s map is " + std::to_string(age / kSecond / 60) +
          " min old and does not grow: methods compiled since have no names",
      live_command(facts));
}

/// The flag by which stacks of the runtime's code are walked, or named.
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
  add(diagnosis, stacks.finding, Severity::info,
      std::string(stacks.message) + unless_set(facts, std::string(stacks.flag)),
      facts.knows_arguments ? command.text() : "");
}

}  // namespace

std::string ignored_text(const JitMemory& memory) {
  return "perf does not look into a map for code in " + visible(memory.ignored_region) +
         ", where " + size_text(memory.ignored_bytes) + " have names";
}

void add_runtime_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool has_map = used_file(diagnosis, false) != nullptr;
  add_interpreter(facts, diagnosis);
  if (has_map && facts.runtime().maps.is_live()) add_old_map(facts, diagnosis);
  add_stack_flag(facts, has_map, diagnosis);
}

void add_perf_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  if (!diagnosis.concerns_jit()) return;
  const LookedFor* const map = used_file(diagnosis, false);
  const LookedFor* const dump = used_file(diagnosis, true);
  if (map != nullptr && !facts.perf_opens_map) {
    add(diagnosis, "perf-path", Severity::warning,
        "perf looks for " + visible(host_map(facts)) + ", but the map is " + visible(map->our_path),
        sudo(facts) + "ln -s " + shell_word(map->our_path) + " " + shell_word(host_map(facts)));
  }
  if (map != nullptr) add_ignored(facts, diagnosis);
  if (map == nullptr && dump != nullptr) add_dump(facts, *dump, diagnosis);
  add_settings(facts, diagnosis);
}

}  // namespace perfmap

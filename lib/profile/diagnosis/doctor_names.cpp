#include <algorithm>
#include <cstdio>

#include "diagnosis/doctor_advice.hpp"
#include "diagnosis/remove_command.hpp"
#include "perfmap/visible.hpp"

namespace perfmap {
namespace {

std::string number(auto value) { return std::to_string(value); }

void add(Diagnosis& diagnosis, std::string_view id, Severity severity, std::string message,
         std::string fix) {
  diagnosis.findings.push_back({id, severity, std::move(message), std::move(fix)});
}

bool has_finding(const Diagnosis& diagnosis, std::string_view id) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [id](const DoctorFinding& one) { return one.id == id; });
}

std::string subject_of(const DoctorCase& facts) {
  return facts.subject.empty() ? number(facts.view.pid) : facts.subject;
}

/// Of a file that is there, and is not used.
void add_file_finding(const DoctorCase& facts, const LookedFor& file, Diagnosis& diagnosis) {
  const std::string path = shell_word(file.our_path);
  const std::string remove = remove_command(file.our_path, facts.options.reader);
  const std::string message = visible(file.our_path) + ": " + file.why;
  switch (file.fate) {
    case FileFate::link:
    case FileFate::not_regular:
      add(diagnosis, "not-a-file", Severity::error, message, remove);
      break;
    case FileFate::foreign_owner:
      add(diagnosis, "foreign-owner", Severity::error, message + "; somebody may have planted it",
          remove);
      break;
    case FileFate::stale:
      add(diagnosis, "stale", Severity::warning,
          message + (file.is_dump ? "" : "; perf would take names from it"), remove);
      break;
    case FileFate::too_large:
      add(diagnosis, "too-large", Severity::warning, message, remove);
      break;
    case FileFate::unreachable:
    case FileFate::unreadable:
      if (has_finding(diagnosis, "unreadable")) break;  // of all files it is the same
      add(diagnosis, "unreadable", Severity::warning, message,
          facts.options.reader == 0 ? "" : "sudo perfmap doctor " + subject_of(facts));
      break;
    case FileFate::other_pid: {
      const std::string directory = file.our_path.substr(0, file.our_path.rfind('/') + 1);
      add(diagnosis, "other-pid", Severity::warning, message,
          sudo(facts) + "ln " + path + " " +
              shell_word(directory + "perf-" + number(facts.view.inner) + ".map"));
      break;
    }
    case FileFate::used:
    case FileFate::missing:
    case FileFate::empty:
    case FileFate::shadowed: break;
  }
}

/// Whether what is there would do if it could be read, or had the right name.
bool explains(const Diagnosis& diagnosis) {
  return has_finding(diagnosis, "unreadable") || has_finding(diagnosis, "other-pid") ||
         has_finding(diagnosis, "foreign-owner");
}

bool has_empty(const Diagnosis& diagnosis) {
  return std::any_of(diagnosis.looked_for.begin(), diagnosis.looked_for.end(),
                     [](const LookedFor& one) { return one.fate == FileFate::empty; });
}

/// A runtime that was told to write a map, of which nothing is seen.
void add_lost_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const StartFlags& asked = facts.asked;
  const std::string by = asked.map_by.empty() ? asked.dump_by : asked.map_by;
  if (by.empty()) {
    add(diagnosis, "lost-map", Severity::warning,
        facts.title() + " left an empty file: nothing was compiled yet, or the disk was full", "");
    return;
  }
  const std::string told = facts.title() + " was started with " + visible(by);
  if (!asked.directory.empty() && asked.directory != facts.options.roots.tmp) {
    const std::string root =
        facts.view.other_mounts ? "/proc/" + number(facts.view.pid) + "/root" : "";
    const std::string map = root + asked.directory + "/perf-" + number(facts.view.inner) + ".map";
    const std::string tmp = facts.options.roots.tmp + "/perf-" + number(facts.view.pid) + ".map";
    add(diagnosis, "lost-map", Severity::warning,
        told + ", but writes to " + visible(asked.directory) + ", where perf does not look",
        sudo(facts) + "cp " + shell_word(map) + " " + shell_word(tmp));
    return;
  }
  const std::string where =
      has_empty(diagnosis)
          ? ", but its file is empty: nothing was compiled yet, or the disk is full"
          : ", but its file is gone: it was deleted, or could not be written";
  add(diagnosis, "lost-map", Severity::warning, told + where, own_command(facts.view).text());
}

void add_too_old(const DoctorCase& facts, Diagnosis& diagnosis) {
  const MapSupport& maps = facts.runtime().maps;
  add(diagnosis, "too-old", Severity::warning,
      std::string(maps.language) + " " + facts.found.version + " cannot write a perf map; " +
          std::string(maps.first_release) + " is the first that can",
      maps.newer_program.empty() ? "" : naming_command(facts, false));
}

/// A runtime that nobody told to name its code.
void add_no_map(const DoctorCase& facts, Diagnosis& diagnosis) {
  const bool has_jit = diagnosis.memory.regions != 0;
  const DoctorTexts& texts = facts.runtime().doctor;
  std::string message(texts.no_map);
  // A snapshot seldom has the command line, and never the environment.
  if (facts.options.is_snapshot) {
    message = "The snapshot has neither a perf map nor a jitdump of " +
              std::string(title_of(facts.found.runtime)) + std::string(texts.no_snapshot);
  } else if (!has_jit && !texts.no_jit.empty()) {
    message = texts.no_jit;
  } else if (message.empty() && facts.knows_arguments) {
    message = facts.title() + " was not told to write a perf map, so its functions have no names";
  } else if (message.empty()) {
    message = "no perf map or jitdump of it is here, and " + facts.title() +
              " writes one only when it is told to";
  }
  add(diagnosis, "no-map", Severity::warning, message, naming_command(facts, has_jit));
}

void add_unknown_jit(Diagnosis& diagnosis) {
  add(diagnosis, "unknown-jit", Severity::warning,
      size_text(diagnosis.memory.bytes) +
          " of executable memory belong to no file, the process has no perf map or jitdump, and "
          "perfmap does not know its runtime",
      "");
}

void add_damage(Diagnosis& diagnosis) {
  for (const LookedFor& file : diagnosis.looked_for) {
    if (file.fate != FileFate::used || file.damage.empty()) continue;
    add(diagnosis, "damaged-dump", Severity::warning, damage_text(file), damage_fix(file));
  }
}

/// There is a file, but what does it name?
void add_misfit(const DoctorCase& facts, const LookedFor& file, Diagnosis& diagnosis) {
  const JitMemory& memory = diagnosis.memory;
  if (memory.regions == 0 || memory.named_bytes != 0) return;
  const std::string subject = !facts.subject.empty()
                                  ? "--recording " + facts.subject + " " + shell_word(file.our_path)
                              : facts.options.is_snapshot ? shell_word(file.our_path)
                                                          : number(facts.view.pid);
  const std::string lint = "perfmap lint " + subject;
  const std::string path = visible(file.our_path);
  if (file.entries == 0) {
    add(diagnosis, "no-entries", Severity::warning, path + ": nothing in it makes sense", lint);
  } else if (memory.executable_hits == 0) {
    add(diagnosis, "nothing-fits", Severity::warning,
        path + ": none of its " + number(file.entries) +
            " entries lies in executable memory of this process",
        lint);
  } else {
    add(diagnosis, "nothing-fits", Severity::info,
        path + ": its entries name none of the " + size_text(memory.bytes) +
            " of memory that a JIT may own",
        lint);
  }
}

}  // namespace

std::string visible(std::string_view bytes) {
  std::string text;
  append_visible(text, bytes);
  return text;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return number(bytes) + " B";
  if (bytes < (std::uint64_t{1} << 20)) return number((bytes + 512) >> 10) + " KiB";
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
  return visible(file.our_path) + " is damaged, and what was there has no name; " +
         visible(file.damage);
}

std::string damage_fix(const LookedFor& file) {
  return "perfmap lint " + shell_word(file.our_path);
}

std::string DoctorCase::title() const {
  std::string name(title_of(found.runtime));
  if (name.starts_with('t')) name[0] = 'T';
  return name;
}

void add_name_findings(const DoctorCase& facts, Diagnosis& diagnosis) {
  const LookedFor* const map = used_file(diagnosis, false);
  const LookedFor* const dump = used_file(diagnosis, true);
  if (facts.subject.empty()) add_damage(diagnosis);
  if (facts.has_no_code()) {
    add(diagnosis, "only-interpreted", Severity::warning,
        std::string(facts.runtime().doctor.only_interprets), naming_command(facts, false));
    return;
  }
  if (map != nullptr || dump != nullptr) {
    add_misfit(facts, map != nullptr ? *map : *dump, diagnosis);
    return;
  }
  // Python in gdb, say, of whose functions nobody asks.
  const bool known = facts.found.runtime != Runtime::unknown &&
                     (facts.found.is_the_program || diagnosis.memory.regions != 0);
  if (!known && diagnosis.memory.regions == 0) return;
  for (const LookedFor& file : diagnosis.looked_for) add_file_finding(facts, file, diagnosis);
  if (explains(diagnosis)) return;
  const bool asked = !facts.asked.map_by.empty() || !facts.asked.dump_by.empty() ||
                     (!facts.knows_arguments && has_empty(diagnosis));
  // A JVM that lives writes its map when it ends, or is asked.
  const MapSupport& maps = facts.runtime().maps;
  const bool writes = !maps.is_live() || facts.is_gone;
  if (!known) {
    // That finding tells already why there is no map.
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

}  // namespace perfmap

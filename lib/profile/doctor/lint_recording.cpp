// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/machines.hpp"
#include "doctor/recording.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process_tracker.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kSecond = std::uint64_t{1000} * 1000 * 1000;
constexpr std::uint64_t kMachineAt = 12;  // in a dump's header

/// The pid in perf-PID.map and jit-PID.dump; 0 for other names.
pid_t pid_in_name(std::string_view path) noexcept {
  if (const auto pid = dump_pid_in(path)) return *pid <= INT32_MAX ? static_cast<pid_t>(*pid) : 0;
  std::string_view name = base_name(path);
  for (const std::string_view start : {kMapName.begin, kDumpName.begin}) {
    if (!name.starts_with(start)) continue;
    name.remove_prefix(start.size());
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    return pid;
  }
  return 0;
}

pid_t named_pid(const LintedFile& file) noexcept {
  const pid_t pid = pid_in_name(file.input().name());
  if (pid != 0 || file.dump == nullptr || !file.dump->header()) return pid;
  return static_cast<pid_t>(file.dump->header()->pid);
}

std::string seconds(std::uint64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%03llu s", static_cast<unsigned long long>(ns / kSecond),
                static_cast<unsigned long long>(ns % kSecond / 1000000));
  return text;
}

/// When the code of a dump was loaded.
struct LoadTimes {
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;

  explicit LoadTimes(const Jitdump& dump) {
    Diagnostics ignored(1);
    dump.for_each(ignored, [&](const JitRecord& record) {
      if (!record.is(JitRecordKind::load) || record.time == 0) return;
      first = std::min(first, record.time);
      last = std::max(last, record.time);
    });
  }
};

/// The files of one recording's processes.
class RecordingLint {
 public:
  RecordingLint(const Recording& recording, std::span<const LintedFile> files)
      : recording_(recording), files_(files) {
    for (const LintedFile& file : files) {
      const pid_t pid = named_pid(file);
      if (pid != 0) by_pid_[pid].push_back(&file);
    }
    for (const auto& [pid, own] : by_pid_) sources_.emplace(pid, sources_of(own));
  }

  void check() {
    samples_ = read_samples(recording_, [this](pid_t pid, Address address, std::uint64_t time) {
      return is_named(pid, address, time);
    });
    for (const LintedFile& file : files_) {
      if (file.dump != nullptr) check_dump(file);
      if (file.map != nullptr) check_age(file);
    }
    for (const auto& [pid, own] : by_pid_) check_coverage(pid, *own.front());
    for (const LintedFile& file : files_) file.problems->sort();
  }

  std::vector<std::size_t> files_of_others() const {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const bool is_recorded =
          samples_.pids.contains(named_pid(files_[i])) || marker_of(files_[i]) != nullptr;
      if (!is_recorded) others.push_back(i);
    }
    return others;
  }

 private:
  static JitSources sources_of(const std::vector<const LintedFile*>& files) {
    std::vector<Map> maps;
    std::vector<Jitdump> dumps;
    for (const LintedFile* const file : files) {
      if (file->map != nullptr) maps.emplace_back(file->map->input());
      if (file->dump != nullptr) dumps.emplace_back(*file->dump);
    }
    return {std::move(maps), std::move(dumps)};
  }

  /// At that time or, for a dump with another clock, at any time.
  bool is_named(pid_t pid, Address address, std::uint64_t time) const {
    const auto found = sources_.find(pid);
    if (found == sources_.end()) return false;
    return found->second.find({address, time}).found || found->second.find({address}).found;
  }

  const RecordedSamples::Marker* marker_of(const LintedFile& file) const noexcept {
    const std::string_view name = base_name(file.input().name());
    const auto found =
        std::find_if(samples_.markers.begin(), samples_.markers.end(),
                     [&](const auto& marker) { return base_name(marker.path) == name; });
    return found == samples_.markers.end() ? nullptr : &*found;
  }

  void check_dump(const LintedFile& file) {
    if (!file.dump->header()) return;
    check_machine(file);
    check_clock(file);
    const pid_t pid = named_pid(file);
    if (!samples_.pids.contains(pid) || marker_of(file) != nullptr) return;
    file.problems->add(
        rule::kNoMarker, file.whole(),
        concat("the recording has process ", pid, ", but this process did not map the dump"));
  }

  void check_machine(const LintedFile& file) {
    const std::uint32_t machine = file.dump->header()->elf_mach;
    const MachineInfo* const recorded = find_machine(samples_.facts.arch);
    if (recorded == nullptr || machine == 0 || runs(*recorded, machine)) return;
    file.problems->add(
        rule::kUnknownMachine, {kMachineAt, 0, 0},
        concat("machine ", machine, ", but the recording was made on ", samples_.facts.arch));
  }

  void check_clock(const LintedFile& file) {
    if (samples_.last == 0) return;
    const auto say = [&](const std::string& what) {
      file.problems->add(rule::kOtherClock, file.whole(), what);
    };
    if (file.dump->has_tsc_times()) {
      if (!samples_.facts.time_conversion) {
        say("times are ticks of the processor, and the recording has no conversion of them");
      }
      return;
    }
    const LoadTimes loads(*file.dump);
    if (loads.last == 0) return;
    const std::string times = "code was loaded from " + seconds(loads.first) + " to " +
                              seconds(loads.last) + ", samples are from " +
                              seconds(samples_.first) + " to " + seconds(samples_.last);
    if (!samples_.is_monotonic()) {
      say("the recording has another clock (record with -k mono): " + times);
      return;
    }
    const RecordedSamples::Marker* const marker = marker_of(file);
    const bool is_after = loads.first > samples_.last + kSecond;
    const bool is_before = marker != nullptr && loads.last + kSecond < marker->time;
    if (is_after || is_before)
      say("the times of the dump and of the recording do not match: " + times);
  }

  /// When the recording began, on the clock of files; 0 if unknown.
  std::int64_t began() const noexcept {
    const std::uint64_t wall = samples_.facts.wall_ns;
    if (wall != 0 && samples_.facts.clock_ns != 0) {
      return static_cast<std::int64_t>(wall + samples_.first - samples_.facts.clock_ns);
    }
    const std::int64_t written = recording_.input().facts().mtime_ns;
    return written == 0 ? 0 : written - static_cast<std::int64_t>(samples_.last - samples_.first);
  }

  void check_age(const LintedFile& file) {
    const std::int64_t changed = file.map->input().facts().mtime_ns;
    const std::int64_t begin = began();
    if (changed == 0 || begin <= 0 || samples_.last == 0) return;
    if (!samples_.pids.contains(named_pid(file))) return;
    if (changed + static_cast<std::int64_t>(kSecond) >= begin) return;
    file.problems->add(
        rule::kOlderThanRecording, file.whole(),
        "last changed " + seconds(static_cast<std::uint64_t>(begin - changed)) +
            " before the recording began: later code has no names, or the map belongs to another "
            "process");
  }

  void check_coverage(pid_t pid, const LintedFile& file) {
    const auto found = samples_.jit.find(pid);
    if (found == samples_.jit.end() || found->second.unnamed == 0) return;
    const JitSamples& jit = found->second;
    std::string text =
        concat(jit.unnamed, " of ", jit.count, " samples in code of the runtime of process ", pid,
               " have no name (", percent_text(jit.unnamed, jit.count), ")");
    const auto max =
        std::max_element(jit.pages.begin(), jit.pages.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (max != jit.pages.end()) {
      char page[80];
      std::snprintf(page, sizeof page, ", most of them, %llu, in the page at 0x%llx",
                    static_cast<unsigned long long>(max->second),
                    static_cast<unsigned long long>(max->first));
      text += page;
    }
    file.problems->add(rule::kUnnamedSamples, file.whole(), text);
  }

  const Recording& recording_;
  std::span<const LintedFile> files_;
  std::map<pid_t, std::vector<const LintedFile*>> by_pid_;
  std::map<pid_t, JitSources> sources_;
  RecordedSamples samples_;
};

}  // namespace

std::vector<std::size_t> lint_recording(const Recording& recording,
                                        std::span<const LintedFile> files) {
  if (files.empty()) return {};
  RecordingLint lint(recording, files);
  lint.check();
  return lint.files_of_others();
}

}  // namespace perfmap

#include "perfmap/inject.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sys/types.h>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "inject/injected_records.hpp"
#include "inject/rewritten_file.hpp"
#include "perfmap/module.hpp"
#include "perfmap/process_tracker.hpp"

namespace perfmap {

namespace {

/// Where the memory of recorded processes shows ELF files: readers of the recording have names from
/// there, and a mapping of a dump's code would hide that file. V8's builtins are such code: the
/// dump lists them, and they lie in the program's own file.
class ElfRegions {
 public:
  /// The tracker has had the recording's events. Where it opens no modules, every file counts.
  explicit ElfRegions(ProcessTracker tracker) : tracker_(std::move(tracker)) {}

  /// Cuts the mappings, which are in the order of time, to what lies before the first ELF file, and
  /// drops those that begin in one that has a symbol there. Answers how many pieces of code went.
  /// O(log n) for each, and O(n) whenever the process's memory has changed.
  std::uint64_t cut(std::vector<CodeMapping>& mappings, pid_t pid);
  /// Whether no ELF file has any of that place at that time. O(n).
  bool is_free(const CodeMapping& place, pid_t pid);

 private:
  struct Ranges {
    std::shared_ptr<const AddressSpace> space;
    std::vector<Region> elf;  // ascending
  };

  bool is_elf(pid_t pid, const Region& region);
  bool has_symbol(pid_t pid, const Region& region, Address address);
  void look(pid_t pid, std::uint64_t time, Ranges& ranges);
  /// The first file that has some of the place; nothing where none has.
  static const Region* first_in(const Ranges& ranges, const AddressRange& place) noexcept;

  ProcessTracker tracker_;
  std::unordered_map<std::shared_ptr<const MappedFile>, bool> known_;
};

/// As Symbolizer asks: an ELF file is the answer wherever it is mapped, and of a file that is none,
/// or that cannot be read, dumps are.
bool ElfRegions::is_elf(pid_t pid, const Region& region) {
  if (!region.file->is_file() && region.file->kind != RegionKind::vdso) return false;
  if (!tracker_.options().open_module) return true;
  const auto [place, is_new] = known_.try_emplace(region.file);
  if (is_new) place->second = tracker_.module_of(pid, region).has_value();
  return place->second;
}

/// Where the file has no name for its code, nothing is lost.
bool ElfRegions::has_symbol(pid_t pid, const Region& region, Address address) {
  if (!tracker_.options().open_module) return true;
  const auto module = tracker_.module_of(pid, region);
  if (!module) return false;
  const auto vaddr = (*module)->file_offset_to_vaddr(address - region.range.begin + region.offset);
  return vaddr && (*module)->find_symbol(*vaddr);
}

void ElfRegions::look(pid_t pid, std::uint64_t time, Ranges& ranges) {
  auto space = tracker_.at(pid, time);
  if (space == ranges.space) return;
  ranges.elf.clear();
  if (space != nullptr) {
    for (const Region& region : space->regions()) {
      if (is_elf(pid, region)) ranges.elf.push_back(region);
    }
  }
  ranges.space = std::move(space);
}

const Region* ElfRegions::first_in(const Ranges& ranges, const AddressRange& place) noexcept {
  const auto next = std::ranges::partition_point(
      ranges.elf, [&](const Region& elf) { return elf.range.end() <= place.begin; });
  return next == ranges.elf.end() || next->range.begin >= place.end() ? nullptr : &*next;
}

bool ElfRegions::is_free(const CodeMapping& place, pid_t pid) {
  Ranges ranges;
  look(pid, place.time, ranges);
  return first_in(ranges, place.range) == nullptr;
}

std::uint64_t ElfRegions::cut(std::vector<CodeMapping>& mappings, pid_t pid) {
  Ranges ranges;
  std::uint64_t dropped = 0;
  std::erase_if(mappings, [&](CodeMapping& mapping) {
    look(pid, mapping.time, ranges);
    AddressRange& code = mapping.range;
    const Region* const next = first_in(ranges, code);
    if (next == nullptr) return false;
    if (next->range.begin > code.begin) {
      code.size = next->range.begin - code.begin;
      return false;
    }
    if (!has_symbol(pid, *next, code.begin)) return false;
    if (mapping.offset != CodeMapping::kNothing) ++dropped;
    return true;
  });
  return dropped;
}

constexpr std::size_t kLargestRecord = 65535;
/// Each is a file to write, and a recording may name any number of them.
constexpr std::size_t kMostDumps = 1000;

std::string_view name_of(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

/// One run of inject_jit().
class Injection {
 public:
  Injection(const Recording& recording, const InjectOptions& options, RecordingSurvey survey)
      : recording_(recording),
        options_(options),
        survey_(std::move(survey)),
        elf_(std::move(survey_.processes)),
        records_(survey_.events, survey_.facts.is_swapped) {}

  Result<void> take_dumps() {
    if (!options_.dumps.empty()) return take_given();
    for (const DumpMarker& marker : survey_.markers) {
      Result<RecordedDump> dump = options_.open_dump(marker.pid, marker.time, marker.path);
      if (!dump) {
        report_.failures.push_back(std::move(dump.error()));
        continue;
      }
      const std::size_t before = report_.dumps.size();
      const Result<void> taken = take(std::move(dump->dump), marker.pid, marker.path, marker.time);
      if (!taken) return taken;
      if (report_.dumps.size() > before) report_.dumps.back().doubts = dump->doubts;
    }
    return {};
  }

  Result<InjectReport> write(OutputFile& out, Diagnostics& problems) {
    std::stable_sort(mappings_.begin(), mappings_.end(),
                     [](const CodeMapping& a, const CodeMapping& b) { return a.time < b.time; });
    hidden_ = hidden_records(survey_.changes, mappings_, pids_);
    const std::uint64_t size = size_of_records();
    const RewrittenFile file(recording_);
    file.write_begin(size, out);
    const std::uint64_t written = write_records(out, problems);
    if (written != size || recording_.input().was_truncated()) {
      return Failure({Errc::io, recording_.input().name() + " changed while it was read", 0, {}});
    }
    file.write_end(size, out);
    Result<void> done = out.flush();
    for (OutputFile& elf : elves_) {
      if (done) done = elf.commit();
    }
    if (!done) return Failure(done.error());
    report_.hidden = hidden_.size();
    report_.lost_bytes = survey_.lost_bytes;
    report_.out_of_order = survey_.out_of_order;
    return std::move(report_);
  }

 private:
  Result<void> take_given() {
    for (const Jitdump& dump : options_.dumps) {
      const std::string& path = dump.input().name();
      bool is_mapped = false;
      for (const DumpMarker& marker : survey_.markers) {
        if (name_of(marker.path) != name_of(path)) continue;
        is_mapped = true;
        const Result<void> taken = take(dump, marker.pid, path, marker.time);
        if (!taken) return taken;
      }
      if (is_mapped || !dump.header()) continue;
      const Result<void> taken =
          take(dump, static_cast<pid_t>(dump.header()->pid), path, survey_.first_time);
      if (!taken) return taken;
    }
    return {};
  }

  std::string elf_name(pid_t pid) {
    const std::string number = std::to_string(pid);
    std::string name = options_.elf_prefix + "jitted-" + number + ".so";
    for (int i = 2; !names_.insert(name).second; ++i) {
      name = options_.elf_prefix + "jitted-" + number + "." + std::to_string(i) + ".so";
    }
    return name;
  }

  Result<void> take(Jitdump dump, pid_t pid, const std::string& path, std::uint64_t mapped_at) {
    if (!dump.header()) {
      report_.failures.push_back({Errc::bad_format, path + " is no jitdump", 0, {}});
      return {};
    }
    const FileFacts& facts = dump.input().facts();
    if (facts.is_file && !known_.emplace(pid, facts.device, facts.inode).second) return {};
    if (pids_.size() == kMostDumps) {
      report_.failures.push_back({Errc::too_large, path + " is one dump too many", 0, {}});
      return {};
    }
    InjectedDump injected{.pid = pid, .path = path, .elf = elf_name(pid)};
    if (records_.size_of(injected.elf) > kLargestRecord) {
      return Failure({Errc::too_large, injected.elf + " is too long a name", 0, {}});
    }
    const bool has_ticks = dump.has_tsc_times();
    injected.is_timed =
        survey_.first_time != 0 &&
        (has_ticks ? survey_.facts.time_conversion.has_value() : survey_.is_monotonic());
    const auto machine = machine_recorded(dump, survey_.facts.arch);
    Diagnostics problems(1);  // reporting these is the business of lint
    const Timeline timeline(std::move(dump), problems,
                            has_ticks ? survey_.facts.time_conversion : std::nullopt);
    Result<OutputFile> elf = OutputFile::replace_itself(injected.elf);
    if (!elf) return Failure(std::move(elf.error()));
    const Result<ElfOfAllCode> made =
        write_elf_of_all_code(timeline, JitDetails(timeline.dump()), machine, *elf);
    if (!made) {
      report_.failures.push_back({made.error().code, path + ": " + made.error().message, 0, {}});
      return {};
    }
    std::vector<CodeMapping> mappings =
        code_mappings(timeline, made->code, injected.is_timed, mapped_at);
    injected.in_elf_files = elf_.cut(mappings, pid);
    map_frames(*made, pid, mappings);
    if (timeline.dump().input().was_truncated()) {
      return Failure({Errc::io, path + " was cut off while it was read", 0, {}});
    }
    for (CodeMapping& mapping : mappings) mapping.dump = static_cast<std::uint32_t>(pids_.size());
    mappings_.insert(mappings_.end(), mappings.begin(), mappings.end());
    injected.counts = made->counts;
    injected.mappings = mappings.size();
    report_.dumps.push_back(std::move(injected));
    pids_.push_back(pid);
    elves_.push_back(*std::move(elf));
    return {};
  }

  /// Where neither code nor a file of the process is.
  void map_frames(const ElfOfAllCode& elf, pid_t pid, std::vector<CodeMapping>& mappings) {
    const auto frames = frames_mapping(mappings, elf);
    if (frames && elf_.is_free(*frames, pid)) mappings.insert(mappings.begin(), *frames);
  }

  std::uint64_t size_of_records() {
    std::uint64_t size = survey_.bytes;
    for (const MemoryChange& change : survey_.changes) {
      if (hidden_.contains(change.number)) size -= change.size;
    }
    for (const CodeMapping& mapping : mappings_) size += make(mapping).size();
    return size;
  }

  std::string_view make(const CodeMapping& mapping) {
    return records_.make(pids_[mapping.dump], mapping, report_.dumps[mapping.dump].elf);
  }

  /// Answers with their bytes.
  std::uint64_t write_records(OutputFile& out, Diagnostics& problems) {
    std::uint64_t written = 0;
    const auto put = [&](std::string_view record) {
      out.write(record);
      written += record.size();
    };
    std::uint64_t number = 0;
    auto next = mappings_.begin();
    Recording::Reader reader(recording_);
    for (auto records = reader.next(problems); !records.empty(); records = reader.next(problems)) {
      for (const RecordView& record : records) {
        // What is about the recording, such as what its events are, comes first.
        const bool is_about = record.type >= RecordType::header_attr;
        for (; !is_about && next != mappings_.end() && next->time <= record.time; ++next) {
          put(make(*next));
        }
        if (!hidden_.contains(number++) && is_kept(record)) put(record.bytes);
      }
    }
    for (; next != mappings_.end(); ++next) put(make(*next));
    return written;
  }

  const Recording& recording_;
  const InjectOptions& options_;
  RecordingSurvey survey_;
  ElfRegions elf_;
  MmapRecords records_;
  std::vector<CodeMapping> mappings_;
  std::vector<pid_t> pids_;  // of dumps, as mappings number them
  std::unordered_set<std::uint64_t> hidden_;
  std::set<std::string> names_;
  std::set<std::tuple<pid_t, std::uint64_t, std::uint64_t>> known_;  // dumps, by their files
  std::vector<OutputFile> elves_;
  InjectReport report_;
};

}  // namespace

Result<InjectReport> inject_jit(const Recording& recording, const InjectOptions& options,
                                OutputFile& out, Diagnostics& problems) {
  Diagnostics ignored(1);  // the same is said when it is written
  Result<RecordingSurvey> surveyed = survey(recording, options.open_module, ignored);
  if (!surveyed) return Failure(std::move(surveyed.error()));
  Injection injection(recording, options, *std::move(surveyed));
  const Result<void> taken = injection.take_dumps();
  if (!taken) return Failure(taken.error());
  return injection.write(out, problems);
}

}  // namespace perfmap

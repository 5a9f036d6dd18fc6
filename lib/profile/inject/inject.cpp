// SPDX-License-Identifier: MIT
#include "perfmap/profile/inject.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/cursor.hpp"
#include "inject/injected_records.hpp"
#include "perfdata/file_header.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

namespace {

/// The parts of a recording's file before and after its records. They are copied to a new file with
/// different, uncompressed, consecutive records. For a recording written to a pipe, there is only
/// the header. Borrows the recording.
///
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt.
class RewrittenFile {
 public:
  explicit RewrittenFile(const Recording& recording);

  /// Writes what precedes `data_size` bytes of records.
  void write_begin(std::uint64_t data_size, OutputFile& out) const;
  /// Writes what follows them.
  void write_end(std::uint64_t data_size, OutputFile& out) const;

 private:
  struct Event {
    std::string_view attributes;
    std::string_view ids;
  };

  void read_header();
  void read_events(std::string_view section);
  void read_features(std::uint64_t table, std::string_view bitmap);
  /// Sections may refer to the same bytes any number of times; their total is limited to the file
  /// size.
  std::string_view take(std::string_view bytes) noexcept;
  std::uint64_t data_offset() const noexcept;
  void add_word(std::string& out, std::uint64_t word) const;

  std::string_view file_;
  std::uint64_t room_;
  bool swapped_;
  bool is_pipe_;
  bool was_killed_;
  std::uint64_t entry_size_ = 0;
  std::vector<Event> events_;
  std::array<std::uint64_t, 4> bitmap_ = {};
  std::vector<std::string_view> features_;  // one per bit
};

constexpr std::uint64_t kPipeSize = 16;
constexpr std::uint64_t kSizeWithoutFeatures = 72;
constexpr std::uint64_t kSize = 104;
constexpr unsigned kCompressed = 27;  // the feature

std::string_view section_bytes(std::string_view file, Cursor& cursor) noexcept {
  const std::uint64_t offset = cursor.u64();
  const std::uint64_t size = cursor.u64();
  if (!cursor.ok() || offset >= file.size()) return {};
  return file.substr(offset, size);
}

RewrittenFile::RewrittenFile(const Recording& recording)
    : file_(recording.input().text()),
      room_(file_.size()),
      swapped_(recording.facts().is_swapped),
      is_pipe_(recording.facts().is_pipe),
      was_killed_(recording.facts().was_killed) {
  if (!is_pipe_) read_header();
}

/// Recording::open() has already checked that there is a header.
void RewrittenFile::read_header() {
  const std::uint64_t size = read_word(file_.data() + 8, swapped_);
  Cursor cursor(file_.substr(kPipeSize), order_of(swapped_));
  entry_size_ = cursor.u64();
  read_events(section_bytes(file_, cursor));
  const std::uint64_t data_offset = cursor.u64();
  const std::uint64_t data_size = cursor.u64();
  const bool fits = data_offset <= file_.size() && data_size <= file_.size() - data_offset;
  if (was_killed_ || !fits || size != kSize) return;
  read_features(data_offset + data_size, file_.substr(kSizeWithoutFeatures, 32));
}

void RewrittenFile::read_events(std::string_view section) {
  const std::endian order = order_of(swapped_);
  while (!section.empty()) {
    const auto attributes = read_attributes(section, order);
    if (!attributes || section.size() < attributes->size + std::size_t{16}) return;
    Cursor tail(section.substr(attributes->size), order);
    events_.push_back({section.substr(0, attributes->size), take(section_bytes(file_, tail))});
    section.remove_prefix(attributes->size + std::size_t{16});
  }
}

void RewrittenFile::read_features(std::uint64_t table, std::string_view bitmap) {
  if (table >= file_.size()) return;
  Cursor cursor(file_.substr(table), order_of(swapped_));
  bitmap_ = read_bitmap(bitmap, swapped_);
  std::array<std::uint64_t, 4> kept = {};
  for (unsigned feature = 0; feature < 256; ++feature) {
    const std::uint64_t bit = std::uint64_t{1} << (feature % 64);
    if ((bitmap_.at(feature / 64) & bit) == 0) continue;
    const std::string_view bytes = section_bytes(file_, cursor);
    if (!cursor.ok()) break;
    if (feature == kCompressed) continue;
    kept.at(feature / 64) |= bit;
    features_.push_back(take(bytes));
  }
  bitmap_ = kept;
}

std::string_view RewrittenFile::take(std::string_view bytes) noexcept {
  const std::string_view taken = bytes.substr(0, room_);
  room_ -= taken.size();
  return taken;
}

void RewrittenFile::add_word(std::string& out, std::uint64_t word) const {
  if (swapped_) word = __builtin_bswap64(word);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::uint64_t RewrittenFile::data_offset() const noexcept {
  std::uint64_t offset = kSize;
  for (const Event& event : events_) offset += event.ids.size() + event.attributes.size() + 16;
  return offset;
}

void RewrittenFile::write_begin(std::uint64_t data_size, OutputFile& out) const {
  if (is_pipe_) return out.write(file_.substr(0, kPipeSize));
  std::uint64_t ids_size = 0;
  std::uint64_t attributes_size = 0;
  for (const Event& event : events_) {
    ids_size += event.ids.size();
    attributes_size += event.attributes.size() + 16;
  }
  std::string bytes(file_.substr(0, 8));
  for (const std::uint64_t word : {kSize, entry_size_, kSize + ids_size, attributes_size,
                                   data_offset(), data_size, std::uint64_t{0}, std::uint64_t{0}}) {
    add_word(bytes, word);
  }
  for (const std::uint64_t word : bitmap_) add_word(bytes, word);
  for (const Event& event : events_) bytes += event.ids;
  std::uint64_t ids = kSize;
  for (const Event& event : events_) {
    bytes += event.attributes;
    add_word(bytes, ids);
    add_word(bytes, event.ids.size());
    ids += event.ids.size();
  }
  out.write(bytes);
}

void RewrittenFile::write_end(std::uint64_t data_size, OutputFile& out) const {
  std::string table;
  std::uint64_t at = data_offset() + data_size + features_.size() * 16;
  for (const std::string_view feature : features_) {
    add_word(table, at);
    add_word(table, feature.size());
    at += feature.size();
  }
  out.write(table);
  for (const std::string_view feature : features_) out.write(feature);
}

/// Where ELF files are mapped in the recorded processes. Readers of the recording take names from
/// these files, and a mapping of dumped code would hide them. An example is V8's builtins: the dump
/// lists them, but they are in the program's own file.
class ElfRegions {
 public:
  /// The tracker has received all events of the recording. If it opens no modules, every file
  /// counts.
  explicit ElfRegions(ProcessTracker tracker) : tracker_(std::move(tracker)) {}

  /// Cuts the mappings, which are in time order, at the first ELF file in their range, and drops
  /// those that begin in an ELF file with a symbol there. Returns how many pieces of code were
  /// dropped. O(log n) each, and O(n) after each change of the process's memory.
  std::uint64_t cut(std::vector<CodeMapping>& mappings, pid_t pid);
  /// Whether no ELF file overlaps that place at that time. O(n).
  bool is_free(const CodeMapping& place, pid_t pid);

 private:
  struct Ranges {
    std::shared_ptr<const AddressSpace> space;
    std::vector<Region> elf;  // ascending
  };

  bool is_elf(pid_t pid, const Region& region);
  bool has_symbol(pid_t pid, const Region& region, Address address);
  void look(pid_t pid, std::uint64_t time, Ranges& ranges);
  /// The first file that overlaps the place; nothing if none does.
  static const Region* first_in(const Ranges& ranges, const AddressRange& place) noexcept;

  ProcessTracker tracker_;
  std::unordered_map<std::shared_ptr<const MappedFile>, bool> known_;
};

/// The same rule as in Symbolizer: an ELF file has priority wherever it is mapped; in other or
/// unreadable files, dumps are used.
bool ElfRegions::is_elf(pid_t pid, const Region& region) {
  if (!region.file->is_file() && region.file->kind != RegionKind::vdso) return false;
  if (!tracker_.options().open_module) return true;
  const auto [place, is_new] = known_.try_emplace(region.file);
  if (is_new) place->second = tracker_.module_of(pid, region).has_value();
  return place->second;
}

/// If the file has no name for its code, no name is lost by the mapping.
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
/// Each dump becomes a file, and a recording may name any number of them.
constexpr std::size_t kMaxDumps = 1000;

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
    const bool was_truncated = recording_.input().was_truncated();
    if (written != size || was_truncated) {
      const Reason reason = was_truncated ? Reason::truncated : Reason::changed;
      return Failure(Error::of(reason, recording_.input().name()));
    }
    file.write_end(size, out);
    Result<void> done = out.flush();
    for (OutputFile& elf : elves_) {
      if (done) done = elf.commit();
    }
    if (!done) return failure(done);
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
        if (base_name(marker.path) != base_name(path)) continue;
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
      report_.failures.push_back(Error::of(Reason::not_of_kind, path, "a jitdump"));
      return {};
    }
    const FileFacts& facts = dump.input().facts();
    if (facts.is_file && !known_.emplace(pid, facts.device, facts.inode).second) return {};
    if (pids_.size() == kMaxDumps) {
      report_.failures.push_back(
          Error::too_large(path + " is not used: the recording has too many jitdumps"));
      return {};
    }
    InjectedDump injected{.pid = pid, .path = path, .elf = elf_name(pid)};
    injected.is_recorded = survey_.pids.contains(pid);
    if (records_.size_of(injected.elf) > kLargestRecord) {
      return Failure(Error::too_large(injected.elf + " is too long for a path in a recording"));
    }
    const bool has_ticks = dump.has_tsc_times();
    injected.is_timed =
        survey_.first_time != 0 &&
        (has_ticks ? survey_.facts.time_conversion.has_value() : survey_.is_monotonic());
    const auto machine = machine_recorded(dump, survey_.facts.arch);
    Diagnostics problems(1);  // lint reports these
    const Timeline timeline(std::move(dump), problems,
                            has_ticks ? survey_.facts.time_conversion : std::nullopt);
    Result<OutputFile> elf = OutputFile::replace_itself(injected.elf);
    if (!elf) return failure(elf);
    const Result<ElfOfAllCode> made = write_elf_of_all_code(timeline, machine, *elf);
    if (!made) {
      report_.failures.push_back(Error(made.error()).prefix(path + ": "));
      return {};
    }
    std::vector<CodeMapping> mappings =
        code_mappings(timeline, made->code, injected.is_timed, mapped_at);
    injected.in_elf_files = elf_.cut(mappings, pid);
    map_frames(*made, pid, mappings);
    if (timeline.dump().input().was_truncated()) return Failure(Error::of(Reason::truncated, path));
    for (CodeMapping& mapping : mappings) mapping.dump = static_cast<std::uint32_t>(pids_.size());
    mappings_.insert(mappings_.end(), mappings.begin(), mappings.end());
    injected.counts = made->counts;
    injected.mappings = mappings.size();
    report_.dumps.push_back(std::move(injected));
    pids_.push_back(pid);
    elves_.push_back(*std::move(elf));
    return {};
  }

  /// Maps the frames at an address without code or files of the process.
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

  /// Returns the size of the records.
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
        // Metadata of the recording, such as its events, comes first.
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
  std::vector<pid_t> pids_;  // of dumps, in the numbering of mappings
  std::unordered_set<std::uint64_t> hidden_;
  std::set<std::string> names_;
  std::set<std::tuple<pid_t, std::uint64_t, std::uint64_t>> known_;  // dumps, by file
  std::vector<OutputFile> elves_;
  InjectReport report_;
};

}  // namespace

Result<InjectReport> inject_jit(const Recording& recording, const InjectOptions& options,
                                OutputFile& out, Diagnostics& problems) {
  Diagnostics ignored(1);  // reported when the dump is written
  Result<RecordingSurvey> surveyed = survey(recording, options.open_module, ignored);
  if (!surveyed) return failure(surveyed);
  Injection injection(recording, options, *std::move(surveyed));
  const Result<void> taken = injection.take_dumps();
  if (!taken) return failure(taken);
  return injection.write(out, problems);
}

}  // namespace perfmap

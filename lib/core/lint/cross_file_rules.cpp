// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "lint/checks.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

namespace lint_rules {

static std::optional<std::uint32_t> pid_in_name(const JitFileName& name, std::string_view path) {
  const auto pid = name.pid_in(path);
  return pid && *pid <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*pid)) : std::nullopt;
}

std::optional<std::uint32_t> pid_of_map_name(std::string_view path) noexcept {
  const auto pid = pid_in_name(kMapName, path);
  const bool is_plain = pid && kMapName.number_in(path) == std::to_string(*pid);
  return is_plain ? pid : std::nullopt;  // no leading zeros
}

std::optional<std::uint32_t> pid_of_dump_name(std::string_view path) noexcept {
  return pid_in_name(kDumpName, path);
}

}  // namespace lint_rules

namespace {

using namespace lint_rules;

constexpr std::uint64_t kNone = UINT64_MAX;

/// A range of addresses, and the offset of the line or LOAD that owns it.
struct Piece {
  std::uint64_t begin;
  std::uint64_t last;
  std::uint64_t owner;
};

/// How a line or a LOAD compares with the other file.
struct Verdict {
  std::uint64_t owner;
  std::uint64_t other;  ///< the line or LOAD with which it shares code; kNone
  bool agrees;          ///< the names match
};

std::vector<Piece> pieces_of(const Index& index) {
  std::vector<Piece> pieces;
  pieces.reserve(index.segment_count());
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    const Segment segment = index.segment(i);
    pieces.push_back({segment.range.begin, segment.range.last(), segment.owner.offset()});
  }
  return pieces;
}

std::vector<Piece> pieces_of(const Timeline& timeline) {
  std::vector<Piece> pieces;
  timeline.for_each_at(Timeline::kEnd, [&](const PlacedCode& placed) {
    pieces.push_back({placed.piece.begin, placed.piece.last(), placed.code.load});
  });
  return pieces;
}

/// Keeps one verdict per owner: the best of all its pieces. Verdicts with matching names come
/// first, then those that share code, in order of offset.
void keep_best(std::vector<Verdict>& verdicts) {
  std::sort(verdicts.begin(), verdicts.end(), [](const Verdict& a, const Verdict& b) {
    if (a.owner != b.owner) return a.owner < b.owner;
    return a.agrees != b.agrees ? a.agrees : a.other < b.other;
  });
  verdicts.erase(std::unique(verdicts.begin(), verdicts.end(),
                             [](const Verdict& a, const Verdict& b) { return a.owner == b.owner; }),
                 verdicts.end());
}

class Comparison {
 public:
  Comparison(const Map& map, const Jitdump& dump) : map_(map), dump_(dump) {
    Diagnostics ignored(1);
    std::vector<Map> maps;
    maps.push_back(map);
    Index index(std::move(maps), Overlap::last, ignored);
    index.compact();
    compare(pieces_of(index), pieces_of(Timeline(dump, ignored)));
    keep_best(of_map_);
    keep_best(of_dump_);
  }

  void report_map(Diagnostics& problems) const {
    for (const Verdict& one : of_map_) {
      if (one.agrees || (one.other == kNone && is_data(one.owner))) continue;
      const Rule& rule = one.other == kNone ? rule::kOnlyInOne : rule::kOtherName;
      if (!problems.count(rule)) continue;
      const Location where{one.owner, map_.line_number(one.owner), 1};
      problems.keep({&rule, where,
                     one.other == kNone ? "the dump has no code there"
                                        : "the dump names it " + quoted(load_name(one.other)) +
                                              " (LOAD at +" + hex_text(one.other) + ")"});
    }
  }
  void report_dump(Diagnostics& problems) const {
    for (const Verdict& one : of_dump_) {
      if (one.other != kNone) continue;
      report(problems, rule::kOnlyInOne, one.owner,
             "the map has no entry there: ", [&] { return quoted(load_name(one.owner)); });
    }
  }

 private:
  void compare(const std::vector<Piece>& map, const std::vector<Piece>& dump) {
    for (const Piece& piece : map) of_map_.push_back({piece.owner, kNone, false});
    for (const Piece& piece : dump) of_dump_.push_back({piece.owner, kNone, false});
    auto load = dump.begin();
    for (const Piece& line : map) {
      while (load != dump.end() && load->last < line.begin) ++load;
      // The last piece that overlaps this line may overlap the next line, too.
      for (auto at = load; at != dump.end() && at->begin <= line.last; ++at) {
        const bool agrees = is_same_name(line.owner, at->owner);
        of_map_.push_back({line.owner, at->owner, agrees});
        of_dump_.push_back({at->owner, line.owner, agrees});
      }
    }
  }

  /// Dumps have no data.
  bool is_data(std::uint64_t line) const {
    const auto entry = map_.entry_at(line);
    return entry && may_name_data(entry->name);
  }

  bool is_same_name(std::uint64_t line, std::uint64_t load) const {
    const auto entry = map_.entry_at(line);
    const std::string_view name = load_name(load);
    if (!entry || entry->name == name) return true;
    std::string in_map;
    std::string in_dump;
    append_portable_map_name(in_map, entry->name);
    append_portable_map_name(in_dump, name);
    return in_map == in_dump;
  }

  std::string_view load_name(std::uint64_t offset) const {
    const auto record = dump_.record_at(offset);
    const auto load = record ? decode_load(*record) : std::nullopt;
    return load ? load->name : std::string_view();
  }

  static std::string quoted(std::string_view name) {
    return "'" + std::string(shortened(name)) + "'";
  }

  const Map& map_;
  const Jitdump& dump_;
  std::vector<Verdict> of_map_;
  std::vector<Verdict> of_dump_;
};

bool wants_comparison(const Diagnostics& problems) {
  return !problems.ignores(rule::kOtherName) || !problems.ignores(rule::kOnlyInOne);
}

/// XF001, XF002: compares the final states of the map and the dump of one process.
void compare_code(const LintedFile& map, const LintedFile& dump) {
  if (!wants_comparison(*map.problems) && !wants_comparison(*dump.problems)) return;
  if (!dump.dump->header()) return;
  const Comparison comparison(*map.map, *dump.dump);
  comparison.report_map(*map.problems);
  comparison.report_dump(*dump.problems);
}

/// In a container a process has another pid, and its file is named after that.
std::optional<std::uint32_t> pid_of_root(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return std::nullopt;
  path.remove_prefix(kProc.size());
  std::uint32_t pid = 0;
  const auto [stop, error] = std::from_chars(path.data(), path.data() + path.size(), pid);
  path.remove_prefix(static_cast<std::size_t>(stop - path.data()));
  return error == std::errc() && path.starts_with("/root/") ? std::optional(pid) : std::nullopt;
}

std::optional<std::uint32_t> pid_in_name(const LintedFile& file) {
  const std::string& name = file.input().name();
  if (const auto pid = pid_of_root(name)) return pid;
  return file.map != nullptr ? pid_of_map_name(name) : pid_of_dump_name(name);
}

std::optional<std::uint32_t> process_of(const LintedFile& file) {
  const auto pid = pid_in_name(file);
  if (pid || file.dump == nullptr || !file.dump->header()) return pid;
  return file.dump->header()->pid;
}

bool is_same_file(const Input& a, const Input& b) {
  const bool known = a.facts().is_file && b.facts().is_file;
  return known ? a.facts().device == b.facts().device && a.facts().inode == b.facts().inode
               : a.name() == b.name();
}

/// The files of one process.
struct Process {
  std::vector<LintedFile> maps;
  std::vector<LintedFile> dumps;

  void add(const LintedFile& file) { (file.map != nullptr ? maps : dumps).push_back(file); }
};

/// XF003, reported at the later map.
void check_one_map(std::uint32_t pid, const std::vector<LintedFile>& maps) {
  for (std::size_t i = 1; i < maps.size(); ++i) {
    const Input& first = maps[0].map->input();
    if (is_same_file(first, maps[i].map->input())) continue;
    maps[i].problems->add(rule::kTwoMaps, maps[i].whole(),
                          "another map of process " + std::to_string(pid) + ": " + first.name() +
                              "; profilers use only one of them");
  }
}

/// Whether two files were given as a pair: with any names, unless the names contradict that.
bool is_a_pair(std::span<const LintedFile> files) {
  if (files.size() != 2 || (files[0].map == nullptr) == (files[1].map == nullptr)) return false;
  const auto one = pid_in_name(files[0]);
  const auto other = pid_in_name(files[1]);
  return !one || !other || *one == *other;
}

}  // namespace

void lint_together(std::span<const LintedFile> files) {
  std::map<std::uint32_t, Process> processes;
  if (is_a_pair(files)) {
    const std::size_t map = files[0].map != nullptr ? 0 : 1;
    compare_code(files[map], files[1 - map]);
  } else {
    for (const LintedFile& file : files) {
      if (const auto pid = process_of(file)) processes[*pid].add(file);
    }
  }
  for (const auto& [pid, process] : processes) {
    check_one_map(pid, process.maps);
    if (process.dumps.size() != 1 || process.maps.empty()) continue;
    compare_code(process.maps.front(), process.dumps.front());
  }
  for (const LintedFile& file : files) file.problems->sort();
}

}  // namespace perfmap

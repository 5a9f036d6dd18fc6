#include "answers/lint/together.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "answers/lint/dump_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

/// The number at the start of `text`, where `behind` follows it.
std::optional<std::uint32_t> number_before(std::string_view text, std::string_view behind) {
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || !text.substr(digits).starts_with(behind)) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> pid_of_map_name(std::string_view path) {
  constexpr std::string_view kStart = "perf-";
  constexpr std::string_view kEnd = ".map";
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return std::nullopt;
  const auto pid = number_before(name.substr(kStart.size()), kEnd);
  const bool whole =
      pid && name.size() == kStart.size() + std::to_string(*pid).size() + kEnd.size();
  return whole ? pid : std::nullopt;
}

/// In a container a process has another pid, and its file the name of that.
std::optional<std::uint32_t> pid_of_root(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return std::nullopt;
  return number_before(path.substr(kProc.size()), "/root/");
}

const Input& input_of(const LintedFile& file) {
  return file.map != nullptr ? file.map->input() : file.dump->input();
}

std::optional<std::uint32_t> pid_in_name(const LintedFile& file) {
  const std::string& name = input_of(file).name();
  if (const auto pid = pid_of_root(name)) return pid;
  return file.map != nullptr ? pid_of_map_name(name) : lint_rules::pid_of_dump_name(name);
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

/// XF003, at the later map.
void check_one_map(std::uint32_t pid, const std::vector<LintedFile>& maps) {
  for (std::size_t i = 1; i < maps.size(); ++i) {
    const Input& first = maps[0].map->input();
    if (is_same_file(first, maps[i].map->input())) continue;
    maps[i].problems->add(rule::kTwoMaps, {0, 1, 1},
                          "another map of process " + std::to_string(pid) + ": " + first.name() +
                              "; profilers take one of them");
  }
}

/// Two files that were named as a pair, whatever their names, unless these tell them apart.
bool is_a_pair(std::span<const LintedFile> files) {
  if (files.size() != 2 || (files[0].map == nullptr) == (files[1].map == nullptr)) return false;
  const auto one = pid_in_name(files[0]);
  const auto other = pid_in_name(files[1]);
  return !one || !other || *one == *other;
}

void sort_findings(const LintedFile& file) {
  auto& items = file.problems->items();
  std::stable_sort(items.begin(), items.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.where.offset < b.where.offset;
  });
}

}  // namespace

void lint_together(std::span<const LintedFile> files) {
  std::map<std::uint32_t, Process> processes;
  if (is_a_pair(files)) {
    const std::size_t map = files[0].map != nullptr ? 0 : 1;
    lint_rules::compare_code(files[map], files[1 - map]);
  } else {
    for (const LintedFile& file : files) {
      if (const auto pid = process_of(file)) processes[*pid].add(file);
    }
  }
  for (const auto& [pid, process] : processes) {
    check_one_map(pid, process.maps);
    if (process.dumps.size() != 1 || process.maps.empty()) continue;
    lint_rules::compare_code(process.maps.front(), process.dumps.front());
  }
  for (const LintedFile& file : files) sort_findings(file);
}

}  // namespace perfmap

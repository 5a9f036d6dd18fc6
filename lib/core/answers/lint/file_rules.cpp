#include "answers/lint/file_rules.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::uint64_t kHugeBytes = 50'000'000;
constexpr std::uint64_t kHugeEntries = 1'000'000;
constexpr Location kFile{0, 1, 1};

void check_access(const FileFacts& facts, Diagnostics& problems) {
  if (facts.was_link) problems.add(rule::kNotRegularFile, kFile, "a symbolic link");
  if (!facts.is_regular) {
    problems.add(rule::kNotRegularFile, kFile, "not a regular file");
    return;
  }
  if ((facts.mode & (S_IWGRP | S_IWOTH)) != 0) {
    problems.add(rule::kWritableByOthers, kFile,
                 (facts.mode & S_IWOTH) != 0 ? "everybody can change the names in this map"
                                             : "its group can change the names in this map");
  }
  if ((facts.mode & S_IROTH) == 0 && facts.uid != 0 && facts.uid != ::geteuid()) {
    problems.add(rule::kUnreadable, kFile, "only its owner's profilers, and root's, can read it");
  }
}

/// Readers look into /tmp alone, a process's own /tmp included.
void check_directory(const std::string& path, Diagnostics& problems) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(directory.c_str(), nullptr),
                                                         &std::free);
  const std::string_view found = real ? real.get() : "";
  if (found.ends_with("/tmp")) return;
  problems.add(rule::kOddDirectory, kFile, "readers look for maps in /tmp");
}

/// A pipe that was handed to us: how a map came here, not how readers find it.
bool is_stream(const Input& input) {
  const std::string& name = input.name();
  const bool handed = name == "-" || name == "/dev/stdin" || name.starts_with("/dev/fd/") ||
                      name.starts_with("/proc/self/fd/");
  return handed && !input.facts().is_regular;
}

void check_encoding(std::string_view text, Diagnostics& problems) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    problems.add(rule::kEncodedFile, kFile, "UTF-16 text");
  } else if (text.starts_with("\xef\xbb\xbf")) {
    problems.add(rule::kEncodedFile, kFile, "a byte order mark");
  }
}

void check_end(std::string_view text, Diagnostics& problems) {
  if (text.empty() || text.back() == '\n') return;
  const auto newlines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  problems.add(rule::kNoFinalNewline, {text.size(), newlines + 1, text.size() - line + 1},
               "the last line has no newline: perf cuts its last byte");
}

}  // namespace

void check_file(const Map& map, Diagnostics& problems) {
  const Input& input = map.input();
  if (input.facts().is_file && !is_stream(input)) {
    check_access(input.facts(), problems);
    if (input.facts().is_regular) check_directory(input.name(), problems);
  }
  if (map.text().empty()) problems.add(rule::kEmptyFile, kFile, "the map is empty");
  check_encoding(map.text(), problems);
  check_end(map.text(), problems);
}

void check_amount(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  if (map.text().size() > kHugeBytes || facts.entries.count() > kHugeEntries) {
    problems.add(rule::kHugeFile, kFile,
                 "entries: " + std::to_string(facts.entries.count()) +
                     ", megabytes: " + std::to_string(map.text().size() / 1'000'000));
  }
}

}  // namespace perfmap::lint_rules

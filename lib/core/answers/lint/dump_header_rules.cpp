#include <algorithm>
#include <array>
#include <charconv>

#include "answers/lint/dump_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

// Where the fields of the header lie.
constexpr std::uint64_t kVersionAt = 4;
constexpr std::uint64_t kSizeAt = 8;
constexpr std::uint64_t kMachineAt = 12;
constexpr std::uint64_t kPidAt = 20;
constexpr std::uint64_t kFlagsAt = 32;

/// EM_ numbers of machines that Linux runs on. Source: elf.h.
constexpr std::array<std::uint32_t, 18> kMachines = {2,  3,  4,  8,  15, 18,  20,  21,  22,
                                                     40, 42, 43, 50, 62, 183, 195, 243, 258};

void check_size(const Jitdump& dump, const JitdumpHeader& header, Diagnostics& problems) {
  const std::uint64_t size = header.total_size;
  if (size == JitdumpHeader::kSize) return;
  report(problems, rule::kBadHeaderSize, kSizeAt, [&] {
    const std::string text = "a header of " + std::to_string(size) + " bytes";
    if (size < JitdumpHeader::kSize) return text + ": it has 40";
    if (size > dump.bytes().size()) return text + ", beyond the end of the file";
    return text + ": perf takes those behind the first 40 for records, or fails";
  });
}

void check_flags(const JitdumpHeader& header, Diagnostics& problems) {
  if ((header.flags & ~JitdumpHeader::kArchTimestamp) != 0) {
    report(problems, rule::kReservedFlags, kFlagsAt, [&] {
      return "flags " + hex_text(header.flags) + ": perf inject fails for all but bit 0";
    });
  }
  if ((header.flags & JitdumpHeader::kArchTimestamp) != 0) {
    report(problems, rule::kTscTimes, kFlagsAt, [] {
      return std::string("times are ticks: only a recording knows how to convert them");
    });
  }
}

/// Both are pids of one process, in different pid namespaces.
bool are_of_one(std::uint32_t a, std::uint32_t b, std::span<const pid_t> namespace_pids) noexcept {
  const auto has = [&](std::uint32_t pid) {
    return std::find(namespace_pids.begin(), namespace_pids.end(), static_cast<pid_t>(pid)) !=
           namespace_pids.end();
  };
  return has(a) && has(b);
}

void check_name(const Jitdump& dump, const JitdumpHeader& header,
                std::span<const pid_t> namespace_pids, Diagnostics& problems) {
  const Input& input = dump.input();
  const std::optional<std::uint32_t> pid = pid_of_dump_name(input.name());
  if (!pid && input.facts().is_regular) {
    report(problems, rule::kOddDumpName, 0, [] {
      return std::string("perf inject takes no notice of files not named jit-PID.dump");
    });
  }
  if (pid && *pid != header.pid && !are_of_one(*pid, header.pid, namespace_pids)) {
    report(problems, rule::kForeignPid, kPidAt, [&] {
      return "process " + std::to_string(header.pid) + ", but " + std::to_string(*pid) +
             " in the file's name";
    });
  }
}

}  // namespace

std::optional<std::uint32_t> pid_of_dump_name(std::string_view path) noexcept {
  constexpr std::string_view kStart = "jit-";
  constexpr std::string_view kEnd = ".dump";
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return std::nullopt;
  const char* const first = name.data() + kStart.size();
  const char* const last = name.data() + name.size() - kEnd.size();
  if (first >= last || *first < '0' || *first > '9') return std::nullopt;
  std::uint32_t pid = 0;
  const auto [stop, error] = std::from_chars(first, last, pid);
  if (stop != last || error != std::errc()) return std::nullopt;
  return pid;
}

void check_header(const Jitdump& dump, std::span<const pid_t> namespace_pids,
                  Diagnostics& problems) {
  const auto& header = dump.header();
  if (!header) {
    if (dump.options().growing && dump.bytes().size() < JitdumpHeader::kSize) return;
    report(problems, rule::kNotJitdump, 0, [&] {
      const std::string_view start = dump.bytes().substr(0, 4);
      const bool cut = std::string_view("DTiJ").starts_with(start) ||
                       std::string_view("JiTD").starts_with(start);
      return std::string(cut ? "the file ends within its header: perf inject fails"
                             : "this does not begin as a jitdump does");
    });
    return;
  }
  if (header->order != std::endian::native) {
    report(problems, rule::kForeignOrder, 0,
           [] { return std::string("written on a machine of the other byte order"); });
  }
  if (header->version != 1) {
    report(problems, rule::kOddVersion, kVersionAt,
           [&] { return "version " + std::to_string(header->version) + ": there is only 1"; });
  }
  check_size(dump, *header, problems);
  check_flags(*header, problems);
  if (std::find(kMachines.begin(), kMachines.end(), header->elf_mach) == kMachines.end()) {
    report(problems, rule::kUnknownMachine, kMachineAt, [&] {
      return "no machine that Linux runs on has number " + std::to_string(header->elf_mach);
    });
  }
  check_name(dump, *header, namespace_pids, problems);
}

}  // namespace perfmap::lint_rules

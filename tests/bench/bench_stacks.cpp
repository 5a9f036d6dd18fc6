// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <malloc.h>
#include <optional>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/areas.hpp"
#include "bench/c_unwinder.hpp"
#include "bench/dwfl_unwinder.hpp"
#include "bench/measure.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"
#include "support/recorded_samples.hpp"

namespace perfmap::bench {
namespace {

const std::string kPlace = PERFMAP_STACKS_DIR;

std::string recording(const std::string& name) { return kPlace + "/" + name + ".data"; }
bool has(const std::string& name) { return std::filesystem::exists(recording(name)); }

using Command = std::vector<std::string>;

Command addresses(const Files& files, const std::string& data) {
  return {files.program, "stacks", data, "--addresses", "--format", "perf-script"};
}

/// Frames in perf's text format, and how many of them have names.
struct Frames {
  std::uint64_t all = 0;
  std::uint64_t named = 0;
};

/// A frame is "\t    7f5bf9fca65a name (file)", or the address alone. Where a copied stack ends,
/// perf adds a frame at an address that is none.
Frames frames_of(const Command& command) {
  std::istringstream text(output_of(command));
  Frames frames;
  for (std::string line; std::getline(text, line);) {
    const std::size_t at = line.find_first_not_of(" \t");
    if (at == 0 || at == std::string::npos || std::isxdigit(line[at]) == 0) continue;
    if (line.compare(at, 16, "ffffffffffffffff") == 0) continue;
    ++frames.all;
    const std::size_t name = line.find(' ', at);
    frames.named += name != std::string::npos && line.compare(name, 11, " [unknown] ") != 0;
  }
  return frames;
}

/// If perf has more frames, the row has no figure.
void expect_frames(const std::string& what, std::uint64_t ours, std::uint64_t theirs) {
  std::printf("  (%s: %" PRIu64 ", of perf %" PRIu64 ")\n", what.c_str(), ours, theirs);
  expect(ours > 0 && static_cast<double>(ours) >= 0.999 * static_cast<double>(theirs),
         "perf has more " + what);
}

/// Prints how many times as much CPU time the other commands take.
void print_times(const std::string& figure, int rounds, const Command& ours,
                 const std::vector<Command>& theirs, double reach) {
  const auto all = [&] {
    double total = 0;
    for (const Command& command : theirs) total += cpu_ms(command);
    return total;
  };
  const Paired found = compare_cpu(
      rounds, [&] { return cpu_ms(ours); }, all);
  print_row(figure, ms(found.ours_ms), ms(found.limit_ms), 1 / found.ratio, reach, false);
}

std::size_t unwind_all(const test::RecordedUsers& users, Unwinder& unwinder) {
  std::vector<UnwoundFrame> frames;
  std::size_t count = 0;
  for (const test::RecordedUser& user : users.samples()) {
    frames.clear();
    unwinder.unwind(user.sample(), *user.unwind, frames);
    count += frames.size();
  }
  return count;
}

/// Both know all mappings and files before. The first round, which does not count, unwinds for the
/// first time.
void bench_unwinding(const std::string& name, Machine machine = Machine::x86_64,
                     const std::string& symfs = "") {
  test::RecordedUsers users(recording(name), machine, symfs);
  Unwinder ours;
  DwflUnwinder theirs;
  for (const test::RecordedUser& user : users.samples()) {
    theirs.prepare(user, [&](const Region& region) { return users.module_of(user.pid, region); });
  }
  std::size_t our_frames = 0;
  std::size_t their_frames = 0;
  const auto ours_ms = [&] { return thread_ms([&] { our_frames = unwind_all(users, ours); }); };
  const auto theirs_ms = [&] {
    their_frames = 0;
    return thread_ms([&] {
      for (const test::RecordedUser& user : users.samples()) their_frames += theirs.unwind(user);
    });
  };
  const Paired found = compare_cpu(5, ours_ms, theirs_ms);
  const auto count = static_cast<double>(users.samples().size());
  print_row(name + ": unwinding a sample, libdwfl", ns_each(found.ours_ms, count),
            ns_each(found.limit_ms, count), 1 / found.ratio, 7, false);
  std::printf("  (%zu samples, %zu frames; libdwfl finds %zu)\n", users.samples().size(),
              our_frames, their_frames);
  CUnwinder in_c(recording(name), symfs);
  std::size_t c_frames = 0;
  const auto c_ms = [&] { return thread_ms([&] { c_frames = in_c.unwind_all(); }); };
  const Paired found_in_c = compare_cpu(5, c_ms, theirs_ms);
  print_row(name + ": unwinding a sample in C, libdwfl", ns_each(found_in_c.ours_ms, count),
            ns_each(found_in_c.limit_ms, count), 1 / found_in_c.ratio, 7, false);
  expect(in_c.samples() == users.samples().size() && c_frames == our_frames,
         "the C interface finds other frames");
}

/// Counts only samples whose copy of the stack is not full.
void print_rooted(const std::string& name) {
  const test::RecordedUsers users(recording(name));
  Unwinder unwinder;
  std::vector<UnwoundFrame> frames;
  double whole = 0;
  double rooted = 0;
  for (const test::RecordedUser& user : users.samples()) {
    frames.clear();
    const StackEnd end = unwinder.unwind(user.sample(), *user.unwind, frames);
    if (user.is_stack_full) continue;
    ++whole;
    rooted += end == StackEnd::root ? 1 : 0;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", whole);
  print_row(name + ": % of stacks that reach the root", text, "-", 100 * rooted / whole, 98, false);
}

struct Memory {
  double max_kb;
  double samples;
};

/// The maximum of memory that is neither bytes of the recording nor of ELF files, taken after each
/// round of records.
Memory memory_of_reading(const std::string& path) {
  ModuleCache cache;
  StackOptions options;
  options.names = StackOptions::Names::none;
  options.open_module = open_below(cache, "");
  const double before = status_kb("RssAnon:");
  Memory memory{0, 0};
  const Result<Recording> recorded = Recording::open(*Input::open(path));
  StackReader reader(*recorded, std::move(options));
  Diagnostics problems(1);
  const auto look = [&] {
    memory.max_kb = std::max(memory.max_kb, status_kb("RssAnon:") - before);
  };
  reader.read([&](const StackSample&) { ++memory.samples; }, problems,
              [&](std::uint64_t) { look(); });
  return memory;
}

void print_memory(const std::string& name) {
  // In a separate process, without memory that was freed before.
  ::malloc_trim(0);
  void* const shared =
      ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    *static_cast<Memory*>(shared) = memory_of_reading(recording(name));
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const Memory memory = *static_cast<Memory*>(shared);
  ::munmap(shared, sizeof(Memory));
  const double limit = 64 * 1024 + 16 * memory.samples / 1024;
  const auto mib = [](double kb) { return std::to_string(static_cast<int>(kb / 1024)) + " MiB"; };
  print_row(name + ": memory beyond the files", mib(memory.max_kb), mib(limit),
            memory.max_kb / limit, 1);
}

void bench_whole_runs(const Files& files) {
  struct Run {
    std::string name;
    double reach;
    int rounds;
  };
  for (const Run& one : {Run{"native", 6, 7}, Run{"small", 15, 15}, Run{"node", 15, 5},
                         Run{"java", 15, 5}, Run{"processes", 15, 5}}) {
    if (!has(one.name)) continue;
    const std::string data = recording(one.name);
    const Command theirs = {"perf", "script", "-i", data, "-F", "ip", "--no-inline"};
    attempt(one.name + ": addresses", [&] {
      print_times(one.name + ": addresses, perf script -F ip", one.rounds, addresses(files, data),
                  {theirs}, one.reach);
      expect_frames("frames", frames_of(addresses(files, data)).all, frames_of(theirs).all);
    });
  }
}

/// From the recording to stacks with names, including the jitdump.
void bench_names(const Files& files) {
  const std::string data = recording("node");
  const std::string injected = kPlace + "/injected.data";
  const Command ours = {files.program, "stacks", data, "--format", "perf-script"};
  const Command theirs = {"perf", "script", "-i", injected, "--no-inline"};
  print_times("node: names, perf inject --jit + script", 3, ours,
              {{"perf", "inject", "--jit", "-i", data, "-o", injected}, theirs}, 50);
  expect_frames("named frames", frames_of(ours).named, frames_of(theirs).named);
  std::filesystem::remove(injected);
}

bool is_installed(const char* program) {
  return std::system((std::string("command -v ") + program + " >/dev/null 2>&1").c_str()) == 0;
}

/// From the recording to the numbers of each function, and to those of each instruction of one.
void bench_reports(const Files& files) {
  const std::string data = recording("native");
  const Command report = {files.program, "report", data, "--no-kernel"};
  const Command children = {"perf", "report", "--stdio", "--children", "--no-inline",
                            "-g",   "none",   "-i",      data};
  print_times("native: report, perf report --children", 3, report, {children}, 7);
  // perf annotate counts no callees, for which perf has to unwind the stacks.
  print_times(
      "native: annotate, perf report --children + annotate", 3,
      {files.program, "annotate", data, "work"},
      {children, {"perf", "annotate", "--stdio", "-i", data, "-s", "(anonymous namespace)::work"}},
      7);
  if (!is_installed("go")) return;
  const std::string profile = kPlace + "/native.pb.gz";
  run({files.program, "stacks", data, "-o", profile});
  print_times("native: report of pprof, go tool pprof -top", 5, {files.program, "report", profile},
              {{"go", "tool", "pprof", "-symbolize=none", "-top", profile}}, 1);
  std::filesystem::remove(profile);
}

}  // namespace

void bench_stacks(const Files& files) {
  std::fflush(stdout);
  const std::string prepare = std::string("python3 ") + PERFMAP_PREPARE_STACKS + " " + kPlace;
  expect(std::system(prepare.c_str()) == 0, "cannot record");
  constexpr const char* kAll[] = {"native", "processes", "node", "java", "static"};
  for (const std::string name : {"native", "shallow", "processes", "node"}) {
    if (has(name)) bench_unwinding(name);
  }
  for (const auto& [name, machine] :
       {std::pair{"x86", Machine::x86}, std::pair{"aarch64", Machine::aarch64}}) {
    if (has(name)) bench_unwinding(name, machine, kPlace + "/" + name + ".root");
  }
  bench_whole_runs(files);
  if (has("node")) attempt("node: names", [&] { bench_names(files); });
  if (has("native")) attempt("native: reports", [&] { bench_reports(files); });
  for (const std::string name : kAll) {
    if (has(name)) print_rooted(name);
  }
  for (const std::string name : {"native", "processes", "node"}) {
    if (has(name)) print_memory(name);
  }
}

/// Work that threads speed up, and that perf leaves to addr2line in parallel.
void bench_stacks_threads(const Files& files) {
  if (!has("debug")) return;
  const std::string data = recording("debug");
  const Command ours = {files.program, "stacks", data, "--inlines", "--format", "perf-script"};
  // perf leaves the work to addr2line, whose CPU time is not counted as perf's.
  const Paired found = compare(
      3, [&] { run(ours); },
      [&] {
        run({"perf", "script", "-i", data});
      });
  print_row("debug: with inlines, perf script", ms(found.ours_ms), ms(found.limit_ms),
            1 / found.ratio, 40, false);
  expect_frames("named frames", frames_of(ours).named,
                frames_of({"perf", "script", "-i", data}).named);
}

}  // namespace perfmap::bench

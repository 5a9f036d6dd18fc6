// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "perfmap/profile/stack_writer.hpp"
#include "support/written.hpp"

namespace perfmap::test {

/// A synthetic profile: a process with two threads, two events, and code of every kind.
class Stacks {
 public:
  Stacks() {
    profile.events = {{.name = "cpu-clock", .is_time = true, .period = 100, .is_frequency = true},
                      {.name = "page-faults"}};
    profile.title = "perf.data";
    profile.command = "./app";
    profile.hostname = "host";
    profile.arch = "x86_64";
    profile.os_release = "6.1";
    profile.wall_ns = 1'700'000'000'000'000'000;
    profile.clock_ns = 1'000'000'000;
    profile.exporter = "perfmap 1.2.3";
  }

  /// A function and its place at `address`; functions in ELF files also get a mapping at 0x10000.
  std::uint32_t place(FrameFunction function, Address address, std::uint64_t offset,
                      std::uint32_t line = 0) {
    FramePlace made{.line = line, .offset = offset, .map_address = address, .vaddr = address};
    made.function = table.add(function);
    if (!function.module.empty() && function.kind != FrameKind::inlined) {
      made.mapping = table.add(FrameMapping{.range = {0x10000, 0x10000},
                                            .path = function.module,
                                            .build_id = "\x01\x23\x45\x67\x89",
                                            .kind = function.kind});
    }
    return table.add(made);
  }

  /// Frames, leaf first; all others are callers.
  std::vector<StackFrame> frames(std::vector<std::uint32_t> places,
                                 FrameSource source = FrameSource::eh_cfi) const {
    std::vector<StackFrame> made;
    for (const std::uint32_t number : places) {
      const Address ip = 0x10000 + table.place(number).map_address;
      made.push_back({.ip = ip, .place = number, .source = source, .is_return = !made.empty()});
    }
    return made;
  }

  void add(std::vector<StackFrame> frames, pid_t tid = 7, std::uint32_t event = 0,
           std::string comm = "app") {
    samples.push_back({std::move(frames), std::move(comm), tid, event});
  }

  /// The samples in a format. They are ten milliseconds apart.
  std::string in(StackFormat format, StackWriter::Options options = {}) const {
    return written([&](OutputFile& out) {
      const auto writer = StackWriter::make(format, out, table, profile, options);
      std::uint64_t time = 1'000'000'000;
      for (const Sample& one : samples) {
        StackSample sample{.time = time += 10'000'000, .pid = 7, .tid = one.tid};
        sample.period = one.event == 0 ? 10'101'010 : 1;
        sample.event = one.event;
        sample.comm = one.comm;
        sample.process_comm = "app";
        sample.program = program;
        sample.end = StackEnd::root;
        sample.frames = one.frames;
        writer->add(sample);
      }
      if (!writer->finish()) std::abort();
    });
  }

  struct Sample {
    std::vector<StackFrame> frames;
    std::string comm;
    pid_t tid;
    std::uint32_t event;
  };
  FrameTable table;
  StackProfile profile;
  std::vector<Sample> samples;
  std::uint32_t program = 0;  ///< mapping of the process's main binary
};

inline constexpr FrameFunction kMain{
    .name = "main", .module = "/bin/app", .file = "app.c", .kind = FrameKind::native};
inline constexpr FrameFunction kInner{
    .name = "inner", .file = "inner.h", .kind = FrameKind::inlined};
inline constexpr FrameFunction kSyscall{
    .name = "do_syscall_64", .module = "[kernel.kallsyms]", .kind = FrameKind::kernel};
inline constexpr FrameFunction kFast{.name = "JS:*foo /a.js:1:13",
                                     .system_name = "JS:*foo /a.js:1:13",
                                     .module = "/tmp/perf-7.map",
                                     .tier = "turbofan",
                                     .kind = FrameKind::jit};
inline constexpr FrameFunction kSlow{.name = "JS:~foo /a.js:1:13",
                                     .system_name = "JS:~foo /a.js:1:13",
                                     .module = "/tmp/perf-7.map",
                                     .tier = "interpreted",
                                     .kind = FrameKind::jit};
inline constexpr FrameFunction kLibc{.module = "/lib/libc.so.6", .kind = FrameKind::native};

/// Code of every kind, in samples of two threads and two events.
inline Stacks every_kind() {
  Stacks stacks;
  const std::uint32_t main = stacks.place(kMain, 0x124c, 0x4c, 12);
  const std::uint32_t inner = stacks.place(kInner, 0x124c, 0x4c, 3);
  const std::uint32_t call = stacks.place(kSyscall, 0xffffffff81000010, 0x10);
  const std::uint32_t fast = stacks.place(kFast, 0x7f0000001010, 0x10);
  const std::uint32_t slow = stacks.place(kSlow, 0x7f0000002020, 0x20);
  const std::uint32_t libc = stacks.place(kLibc, 0x27249, 0);
  const std::uint32_t unknown = stacks.place({}, 0x55, 0);

  std::vector<StackFrame> deep = stacks.frames({call, inner, main, libc});
  deep[0].source = FrameSource::kernel;
  stacks.add(deep);
  stacks.add(stacks.frames({fast, main}), 8, 0, "worker (a b)");
  stacks.add(stacks.frames({slow, main}), 8, 0, "worker (a b)");
  stacks.add(stacks.frames({libc, unknown}));
  stacks.add(stacks.frames({main}, FrameSource::callchain), 7, 1);
  stacks.add({});
  return stacks;
}

}  // namespace perfmap::test

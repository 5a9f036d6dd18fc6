// SPDX-License-Identifier: MIT
// Prints a table with one row per figure. Each has a ratio to a limit that is measured in the same
// run on the same bytes: bench PERFMAP [AREA…]. Takes about two minutes and 3 GB below /tmp. Exits
// with status 1 if a program fails or gives a wrong result; such a row has no figure.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sched.h>
#include <string_view>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "support/synthetic_map.hpp"

namespace {

using namespace perfmap;

void write_map(const std::string& path, const test::SyntheticMap& wishes) {
  std::ofstream(path, std::ios::binary) << test::synthetic_map(wishes);
}

void write_maps(const bench::Files& files) {
  write_map(files.plain, {.entries = 1'000'000, .seed = 1});
  write_map(files.reused, {.entries = 1'000'000, .reused_percent = 20, .seed = 2});
  write_map(files.large, {.entries = 10'000'000, .seed = 3});
}

struct Area {
  std::string_view name;
  void (*run)(const bench::Files& files);
  bool one_core = true;    // including its children; threads get all cores
  bool reads_maps = true;  // the maps of Files
};

constexpr std::array kAreas = {
    Area{"index", bench::bench_index},
    Area{"jitdump", bench::bench_jitdump},
    Area{"jitlog", bench::bench_jitlog, true, false},
    Area{"lines", bench::bench_lines},
    Area{"commands", bench::bench_commands},
    Area{"modules", bench::bench_modules},
    Area{"processes", bench::bench_processes},
    Area{"pypylog", bench::bench_pypylog, true, false},
    Area{"stacks", bench::bench_stacks, true, false},
    Area{"trampoline", bench::bench_trampoline},
    Area{"writer", bench::bench_writer},
    Area{"own-map", bench::bench_own_map},
    Area{"mapped", bench::bench_mapped_writer},
    Area{"lines", bench::bench_lines_threads, false},
    Area{"stacks", bench::bench_stacks_threads, false, false},
    Area{"writer", bench::bench_writer_threads, false},
    Area{"own-map", bench::bench_own_map_threads, false},
    Area{"mapped", bench::bench_mapped_writer_threads, false},
};

void use_cores(bool one) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ::sched_setaffinity(0, sizeof all, one ? &first : &all);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: bench PERFMAP [AREA...]\n";
    return 2;
  }
  char name[] = "/tmp/perfmap-bench-XXXXXX";
  if (::mkdtemp(name) == nullptr) return 1;
  const bench::Files files{arguments[1], std::string(name) + "/1m.map",
                           std::string(name) + "/reused.map", std::string(name) + "/10m.map",
                           std::string(name) + "/out"};
  const std::vector<std::string_view> names(arguments + 2, arguments + count);
  const auto is_wanted = [&](const Area& area) {
    return names.empty() || std::ranges::find(names, area.name) != names.end();
  };
  if (std::ranges::any_of(kAreas, [&](const Area& a) { return a.reads_maps && is_wanted(a); }))
    write_maps(files);
  bench::print_head();
  for (const Area& area : kAreas) {
    if (!is_wanted(area)) continue;
    use_cores(area.one_core);
    bench::attempt(std::string(area.name), [&] { area.run(files); });
  }
  std::filesystem::remove_all(name);
  return bench::print_sum();
}

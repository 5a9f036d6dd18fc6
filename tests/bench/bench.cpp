// Prints a table, one row a figure, each with its ratio to a limit that is measured in the same run
// on the same bytes: bench PERFMAP. Takes about two minutes and 3 GB below /tmp.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sched.h>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "support/synthetic_map.hpp"

namespace {

using namespace perfmap;

void write_map(const std::string& path, const test::SyntheticMap& wishes) {
  std::ofstream(path, std::ios::binary) << test::synthetic_map(wishes);
}

/// Figures are for one core, children included; two threads get two back.
void use_one_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: bench PERFMAP\n";
    return 2;
  }
  char name[] = "/tmp/perfmap-bench-XXXXXX";
  if (::mkdtemp(name) == nullptr) return 1;
  const bench::Files files{arguments[1], std::string(name) + "/1m.map",
                           std::string(name) + "/reused.map", std::string(name) + "/10m.map",
                           std::string(name) + "/out"};
  write_map(files.plain, {.entries = 1'000'000, .seed = 1});
  write_map(files.reused, {.entries = 1'000'000, .reused_percent = 20, .seed = 2});
  write_map(files.large, {.entries = 10'000'000, .seed = 3});
  cpu_set_t all;
  ::sched_getaffinity(0, sizeof all, &all);
  use_one_core();
  bench::print_head();
  bench::bench_index(files);
  bench::bench_jitdump(files);
  bench::bench_commands(files);
  bench::bench_trampoline(files);
  bench::bench_writer(files);
  bench::bench_own_map(files, {1});
  bench::bench_mapped_writer(files);
  ::sched_setaffinity(0, sizeof all, &all);
  bench::bench_writer_threads(files);
  bench::bench_own_map(files, {2, 8});
  bench::bench_mapped_writer_threads(files);
  std::filesystem::remove_all(name);
  return 0;
}

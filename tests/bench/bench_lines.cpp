#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/debug_index.hpp"

namespace perfmap::bench {
namespace {

const std::string kPlace = PERFMAP_LINES_DIR;
const std::string kProgram = kPlace + "/program";

std::string addresses(int count) { return kPlace + "/addresses_" + std::to_string(count); }

/// CPU time of a process with all that it does, its input a file; below 0 where it cannot be run.
double cpu_ms(std::vector<std::string> command, const std::string& input) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  rusage usage{};
  int status = 0;
  if (error != 0 || ::wait4(child, &status, 0, &usage) != child || status != 0) return -1;
  const auto in_ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return in_ms(usage.ru_utime) + in_ms(usage.ru_stime);
}

/// The ratio of the two programs' CPU times in one run, taken in turn; the median of `rounds`.
void print_cpu_row(const std::string& figure, int rounds, const std::function<double()>& ours,
                   const std::function<double()>& limit, double reach) {
  std::vector<std::array<double, 3>> runs;
  for (int round = 0; round <= rounds; ++round) {
    const double mine = ours();
    const double theirs = limit();
    if (theirs <= 0 || mine < 0) {
      std::printf("%s: a program is missing\n", figure.c_str());
      return;
    }
    if (round != 0) runs.push_back({mine / theirs, mine, theirs});
  }
  std::ranges::sort(runs);
  const auto& [ratio, mine, theirs] = runs[runs.size() / 2];
  print_row(figure, ms(mine), ms(theirs), ratio, reach);
}

std::vector<Address> read_addresses(int count) {
  std::ifstream file(addresses(count));
  std::vector<Address> read;
  for (std::string word; file >> word;) read.push_back(std::stoull(word, nullptr, 16));
  return read;
}

std::function<double()> ours(int count) {
  return [count] { return cpu_ms({PERFMAP_PRINT_FRAMES, kProgram}, addresses(count)); };
}

std::function<double()> llvm(int count) {
  return [count] {
    return cpu_ms({"llvm-symbolizer", "--no-demangle", "--inlines", "--obj=" + kProgram},
                  addresses(count));
  };
}

bool prepare() {
  static const bool prepared = [] {
    run({"python3", PERFMAP_PREPARE_LINES, kPlace});
    return std::filesystem::exists(addresses(1));
  }();
  if (!prepared) std::printf("no program for lines\n");
  return prepared;
}

}  // namespace

void bench_lines(const Files&) {
  if (!prepare()) return;
  print_cpu_row("10 000 addresses, CPU, against llvm-symbolizer", 5, ours(10000), llvm(10000), 1);
  print_cpu_row("one address, CPU, against llvm-symbolizer", 15, ours(1), llvm(1), 2);
  print_cpu_row(
      "10 000, against 100 x 100 of eu-addr2line -fi", 1, ours(10000),
      [] {
        return 100 * cpu_ms({"eu-addr2line", "-fi", "-e", kProgram}, addresses(100));
      },
      0.01);

  const auto index = DebugIndex::open(kProgram);
  if (!index) return;
  const std::vector<Address> asked = read_addresses(10000);
  const auto count = static_cast<double>(asked.size());
  (void)index->find_all(asked);
  std::size_t frames = 0;
  const double find = time_ms([&] {
    for (const Address vaddr : asked) frames += index->find(vaddr).size();
  });
  const double line = time_ms([&] {
    for (const Address vaddr : asked) frames += index->find_line(vaddr).has_value();
  });
  print_row("all frames of an address, warm, ns", ns_each(find, count), "-", find * 1e6 / count,
            20000);
  print_row("its line alone, warm, ns", ns_each(line, count), "-", line * 1e6 / count, 1000);
}

void bench_lines_threads(const Files&) {
  if (!prepare()) return;
  const std::vector<Address> asked = read_addresses(10000);
  const auto on = [&](unsigned threads) {
    return [&asked, threads] { (void)DebugIndex::open(kProgram)->find_all(asked, threads); };
  };
  const Paired two = compare(5, on(2), on(1));
  print_row("10 000 addresses on 2 threads, against 1", ms(two.ours_ms), ms(two.limit_ms),
            two.ratio, 0.75);
}

}  // namespace perfmap::bench

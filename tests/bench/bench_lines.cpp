// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/profile/debug_index.hpp"

namespace perfmap::bench {
namespace {

const std::string kPlace = PERFMAP_LINES_DIR;
const std::string kProgram = kPlace + "/program";

std::string addresses(int count) { return kPlace + "/addresses_" + std::to_string(count); }

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
  const Paired many = compare_cpu(5, ours(10000), llvm(10000));
  print_row("CPU of 10 000 addresses, against llvm-symbolizer", ms(many.ours_ms), ms(many.limit_ms),
            many.ratio, 1);
  const Paired one = compare_cpu(15, ours(1), llvm(1));
  print_row("of one, the whole process, against the same", ms(one.ours_ms), ms(one.limit_ms),
            one.ratio, 2);
  // Its start-up counts once: 10 000 addresses would take minutes.
  const Paired slow = compare_cpu(3, ours(10000), [] {
    const auto of = [](int count) {
      return cpu_ms({"eu-addr2line", "-fi", "-e", kProgram}, addresses(count));
    };
    const double hundred = of(100);
    return hundred + 99 * (of(200) - hundred);
  });
  print_row("times less than eu-addr2line -fi, 10 000", ms(slow.ours_ms), ms(slow.limit_ms),
            1 / slow.ratio, 100, false);

  const auto index = DebugIndex::open(kProgram);
  const std::vector<Address> asked = read_addresses(10000);
  expect(index && !index->find_all(asked).empty(), "no frames in the program");
  const auto each = [&](auto ask) { return [&asked, ask] { std::ranges::for_each(asked, ask); }; };
  const Paired line = compare(5, each([&](Address vaddr) { (void)index->find_line(vaddr); }),
                              each([&](Address vaddr) { (void)index->find(vaddr); }));
  const auto count = static_cast<double>(asked.size());
  print_row("a line alone, warm, against all frames", ns_each(line.ours_ms, count),
            ns_each(line.limit_ms, count), line.ratio, kNotAsked);
}

void bench_lines_threads(const Files&) {
  if (!prepare()) return;
  const std::vector<Address> asked = read_addresses(10000);
  const auto on = [&](unsigned threads) {
    return [&asked, threads] { (void)DebugIndex::open(kProgram)->find_all(asked, threads); };
  };
  const Paired two = compare(5, on(2), on(1));
  print_row("10 000 addresses on 2 threads, against 1", ms(two.ours_ms), ms(two.limit_ms),
            two.ratio, kNotAsked);
}

}  // namespace perfmap::bench

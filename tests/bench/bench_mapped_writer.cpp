// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "bench/stdio_map.hpp"
#include "perfmap/writer.hpp"

namespace perfmap::bench {
namespace {

constexpr int kEntries = 300'000;

void write_mapped(const std::string& path, int threads) {
  std::filesystem::remove(path);
  auto writer = MapWriter::open(path, {.mapped = true});
  if (!writer) std::abort();
  in_threads(threads, kEntries, [&writer](int count) {
    for (int i = 0; i < count; ++i) {
      if (!writer->write(kCode, kCodeSize, kCodeName)) std::abort();
    }
  });
}

void bench_mapped(const Files& files, int threads) {
  const Paired pair = compare(
      7, [&] { write_mapped(files.out, threads); },
      [&] { write_with_stdio(files.out, threads, kEntries); });
  const std::string figure =
      "write, mapped, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  const std::string ours = ns_each(pair.ours_ms, kEntries);
  print_row(figure + ", against fprintf, fflush", ours, ns_each(pair.limit_ms, kEntries),
            pair.ratio, 1.0 / 6);
  print_row(figure + ", nanoseconds", ours, "", pair.ours_ms * 1e6 / kEntries, 60);
}

}  // namespace

void bench_mapped_writer(const Files& files) { bench_mapped(files, 1); }
void bench_mapped_writer_threads(const Files& files) { bench_mapped(files, 2); }

}  // namespace perfmap::bench

// SPDX-License-Identifier: MIT
// One tracker and many processes that map the same libraries: files are opened once, and a process
// costs only its regions.

#include <fcntl.h>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "support/child.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::bench {
namespace {

constexpr std::size_t kProcesses = 100;
constexpr std::size_t kLibraries = 20;
constexpr std::size_t kFunctions = 4000;
constexpr double kKilobyte = 1000;

std::string library(std::size_t number) {
  std::vector<test::TestSymbol> symbols;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    symbols.push_back({"library_" + std::to_string(number) + "_function_" + std::to_string(i),
                       0x1000 + i * 0x20, 0x20});
  }
  test::ElfBytes elf({std::endian::little, true, EM_X86_64, 0}, 0x1000,
                     std::string(kFunctions * 0x20, '\x90'));
  elf.build_id("library " + std::to_string(number));
  return elf.symbols(symbols).text();
}

std::uint64_t map_all(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) return 0;
    const auto size = static_cast<std::size_t>(status.st_size);
    const void* const at = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return 0;
  }
  return 1;
}

double heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

struct Taken {
  double bytes = 0;            ///< heap, and the bytes held by the modules
  std::uint64_t opened = 0;    ///< by the cache
  std::uint64_t distinct = 0;  ///< executable files, and one vdso
};

/// Opens every executable file of every process and looks up a symbol in it.
Taken follow(const std::vector<pid_t>& pids) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;
  bool has_vdso = false;
  const double before = heap_bytes();
  ModuleCache cache;
  ProcessTracker::Options options;
  options.open_module = open_through(cache);
  ProcessTracker tracker(options);
  for (const pid_t pid : pids) {
    if (!tracker.import(pid)) std::abort();
    const auto space = tracker.at(pid);
    for (const Region& region : space->regions()) {
      if (!region.access.execute) continue;
      const auto module = tracker.module_of(pid, region);
      if (!module) continue;
      static_cast<void>((*module)->find_symbol((*module)->segments().front().range.begin));
      has_vdso = has_vdso || region.file->kind == RegionKind::vdso;
      if (region.file->is_file())
        files.emplace((*module)->facts().device, (*module)->facts().inode);
    }
  }
  const ModuleCache::Statistics statistics = cache.statistics();
  // Subtract the set above, which does not belong to the library.
  constexpr double kNode = 64;
  return {heap_bytes() - before - static_cast<double>(files.size()) * kNode +
              static_cast<double>(statistics.bytes),
          statistics.opened, files.size() + (has_vdso ? 1 : 0)};
}

std::string kilobytes(double bytes) {
  return std::to_string(static_cast<std::uint64_t>(bytes / kKilobyte)) + " kB";
}

}  // namespace

void bench_processes(const Files& files) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kLibraries; ++i) {
    paths.push_back(files.out + ".lib" + std::to_string(i) + ".so");
    std::ofstream(paths.back(), std::ios::binary) << library(i);
  }
  std::vector<std::unique_ptr<test::Child>> children;
  std::vector<pid_t> pids;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    children.push_back(std::make_unique<test::Child>([&] { return map_all(paths); }));
    if (children.back()->reported() == 0) std::abort();
    pids.push_back(children.back()->pid());
  }
  Taken one;
  Taken all;
  const double one_ms = time_ms([&] { one = follow({pids.front()}); });
  const double all_ms = time_ms([&] { all = follow(pids); });
  print_row("tracker, 100 processes x 20 libraries: file opens, against distinct files",
            std::to_string(all.opened), std::to_string(all.distinct),
            static_cast<double>(all.opened) / static_cast<double>(all.distinct), 1.0);
  constexpr double kEach = 100 * kKilobyte;
  const double limit = one.bytes * 1.3 + kEach * kProcesses;
  print_row("  memory, against 1.3 x one process and 100 kB each", kilobytes(all.bytes),
            kilobytes(limit), all.bytes / limit, 1.0);
  print_row("  memory of a further process, against 100 kB",
            kilobytes((all.bytes - one.bytes) / (kProcesses - 1)), kilobytes(kEach),
            (all.bytes - one.bytes) / (kProcesses - 1) / kEach, 1.0);
  print_row("  time of the first, with its symbol tables", ms(one_ms), "-", 1, kNotAsked);
  print_row("  time of a further process", ms((all_ms - one_ms) / (kProcesses - 1)), "-", 1,
            kNotAsked);
}

}  // namespace perfmap::bench

// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <perfmap.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "bench/stdio_map.hpp"

namespace perfmap::bench {
namespace {

constexpr int kEntries = 240'000;

/// The own map of one build of the library, in a separate directory.
class Build {
 public:
  Build(const char* library, std::string directory) : directory_(std::move(directory)) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) std::abort();
    get(handle, "perfmap_state_configure", configure_);
    get(handle, "perfmap_state_write_entry", write_);
    get(handle, "perfmap_state_fini", fini_);
    std::filesystem::create_directory(directory_);
  }

  void run(int threads, std::size_t buffer = 0) const {
    std::filesystem::remove(directory_ + "/perf-" + std::to_string(::getpid()) + ".map");
    perfmap_state_options options{};
    options.struct_size = sizeof options;
    options.directory = directory_.c_str();
    options.buffer_bytes = buffer;
    if (configure_(&options) != 0) std::abort();
    in_threads(threads, kEntries, [this](int count) {
      for (int i = 0; i < count; ++i) {
        if (write_(reinterpret_cast<void*>(kCode), kCodeSize, kCodeName) != 0) std::abort();
      }
    });
    fini_();
  }

 private:
  template <class Function>
  static void get(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    if (function == nullptr) std::abort();
  }

  std::string directory_;
  decltype(&perfmap_state_configure) configure_ = nullptr;
  decltype(&perfmap_state_write_entry) write_ = nullptr;
  decltype(&perfmap_state_fini) fini_ = nullptr;
};

void print_pair(const std::string& figure, const Paired& pair, double reach) {
  print_row(figure, ns_each(pair.ours_ms, kEntries), ns_each(pair.limit_ms, kEntries), pair.ratio,
            reach);
}

void bench_threads(const Files& files, const std::vector<int>& thread_counts) {
  static const Build with(PERFMAP_LIBRARY, files.out + "-with");
  static const Build without(PERFMAP_LIBRARY_WITHOUT_FORK_CHECK, files.out + "-without");
  for (const int threads : thread_counts) {
    const std::string many = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    print_pair("entry, fork check against none, " + many,
               compare(
                   21, [&] { with.run(threads); }, [&] { without.run(threads); }),
               1.02);
    print_pair(
        "entry, against lock, fprintf, fflush, " + many,
        compare(
            9, [&] { with.run(threads); }, [&] { write_with_stdio(files.out, threads, kEntries); }),
        threads == 1 ? 1 / 1.2 : 1.0);
    print_pair("the same, buffered, " + many,
               compare(
                   9, [&] { with.run(threads, 64 << 10); },
                   [&] { write_with_stdio(files.out, threads, kEntries); }),
               1.0 / 3);
  }
}

}  // namespace

void bench_own_map(const Files& files) { bench_threads(files, {1}); }
void bench_own_map_threads(const Files& files) { bench_threads(files, {2, 8}); }

}  // namespace perfmap::bench

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <perfmap.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"

namespace perfmap::bench {
namespace {

constexpr int kEntries = 240'000;
constexpr const char* kName = "py::handler_of_requests:/srv/app/server.py";
void* const kCode = reinterpret_cast<void*>(0x7f3529fcf759);

template <class Work>
void in_threads(int count, Work work) {
  std::vector<std::thread> others;
  for (int i = 1; i < count; ++i) others.emplace_back([&] { work(kEntries / count); });
  work(kEntries / count);
  for (std::thread& other : others) other.join();
}

/// The own map of a build of the library, in a directory of its own.
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
    in_threads(threads, [this](int count) {
      for (int i = 0; i < count; ++i) {
        if (write_(kCode, 0xb, kName) != 0) std::abort();
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

/// What CPython does for an entry: a lock, fprintf(3), fflush(3).
class StdioMap {
 public:
  explicit StdioMap(const std::string& path) {
    std::filesystem::remove(path);
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    file_ = ::fdopen(fd, "a");
    if (file_ == nullptr) std::abort();
  }
  ~StdioMap() { std::fclose(file_); }
  StdioMap(const StdioMap&) = delete;
  StdioMap& operator=(const StdioMap&) = delete;

  void write(const void* code, unsigned size, const char* name) {
    const std::lock_guard lock(mutex_);
    std::fprintf(file_, "%" PRIxPTR " %x %s\n", reinterpret_cast<std::uintptr_t>(code), size, name);
    std::fflush(file_);
  }

 private:
  std::mutex mutex_;
  std::FILE* file_;
};

void write_with_stdio(const std::string& path, int threads) {
  StdioMap map(path);
  in_threads(threads, [&map](int count) {
    for (int i = 0; i < count; ++i) map.write(kCode, 0xb, kName);
  });
}

void print_pair(const std::string& figure, const Paired& pair, double reach) {
  print_row(figure, ns_each(pair.ours_ms, kEntries), ns_each(pair.limit_ms, kEntries), pair.ratio,
            reach);
}

}  // namespace

void bench_own_map(const Files& files, const std::vector<int>& thread_counts) {
  static const Build with(PERFMAP_LIBRARY, files.out + "-with");
  static const Build without(PERFMAP_LIBRARY_WITHOUT_FORK_CHECK, files.out + "-without");
  for (const int threads : thread_counts) {
    const std::string many = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    print_pair("entry, fork check against none, " + many,
               compare(
                   21, [&] { with.run(threads); }, [&] { without.run(threads); }),
               1.02);
    print_pair("entry, against lock, fprintf, fflush, " + many,
               compare(
                   9, [&] { with.run(threads); }, [&] { write_with_stdio(files.out, threads); }),
               threads == 1 ? 1 / 1.2 : 1.0);
    print_pair(
        "the same, buffered, " + many,
        compare(
            9, [&] { with.run(threads, 64 << 10); }, [&] { write_with_stdio(files.out, threads); }),
        1.0 / 3);
  }
}

}  // namespace perfmap::bench

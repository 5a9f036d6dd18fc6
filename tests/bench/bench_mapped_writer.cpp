#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/writer.hpp"

namespace perfmap::bench {
namespace {

constexpr int kEntries = 300'000;
constexpr std::string_view kName = "py::handler_of_requests:/srv/app/server.py";

/// What CPython does for an entry: a lock, fprintf, fflush.
class FlushingWriter {
 public:
  explicit FlushingWriter(const std::string& path) {
    std::filesystem::remove(path);
    file_ = std::fopen(path.c_str(), "a");
    if (file_ == nullptr) std::abort();
  }
  ~FlushingWriter() { std::fclose(file_); }
  FlushingWriter(const FlushingWriter&) = delete;
  FlushingWriter& operator=(const FlushingWriter&) = delete;

  void write(const void* start, unsigned size, const char* name) {
    const std::lock_guard lock(mutex_);
    std::fprintf(file_, "%zx %x %s\n", reinterpret_cast<std::size_t>(start), size, name);
    std::fflush(file_);
  }

 private:
  std::FILE* file_ = nullptr;
  std::mutex mutex_;
};

void write_mapped(const std::string& path, int threads) {
  std::filesystem::remove(path);
  auto writer = MapWriter::open(path, {.mapped = true});
  if (!writer) std::abort();
  const auto work = [&] {
    for (int i = 0; i < kEntries / threads; ++i) {
      if (!writer->write(0x7f3529fcf759, 0xb, kName)) std::abort();
    }
  };
  std::thread other;
  if (threads == 2) other = std::thread(work);
  work();
  if (threads == 2) other.join();
}

void write_flushing(const std::string& path, int threads) {
  FlushingWriter writer(path);
  const auto work = [&] {
    for (int i = 0; i < kEntries / threads; ++i) {
      writer.write(reinterpret_cast<void*>(0x7f3529fcf759), 0xb, kName.data());
    }
  };
  std::thread other;
  if (threads == 2) other = std::thread(work);
  work();
  if (threads == 2) other.join();
}

void bench_mapped(const Files& files, int threads) {
  const Paired pair = compare(
      7, [&] { write_mapped(files.out, threads); }, [&] { write_flushing(files.out, threads); });
  const std::string figure =
      "write, mapped, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  const std::string ours = ns_each(pair.ours_ms, kEntries);
  print_row(figure + ", against fprintf, fflush", ours, ns_each(pair.limit_ms, kEntries),
            pair.ratio, 1.0 / 6);
  print_row(figure + ", nanoseconds", ours, "", pair.ours_ms * 1e6 / kEntries, 75);
}

}  // namespace

void bench_mapped_writer(const Files& files) { bench_mapped(files, 1); }
void bench_mapped_writer_threads(const Files& files) { bench_mapped(files, 2); }

}  // namespace perfmap::bench

// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/writer.hpp"

namespace perfmap::bench {
namespace {

constexpr int kEntries = 300'000;
constexpr std::string_view kName = "py::handler_of_requests:/srv/app/server.py";
constexpr std::string_view kLine = "7f3529fcf759 b py::handler_of_requests:/srv/app/server.py\n";

int open_plainly(const std::string& path) {
  std::filesystem::remove(path);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void write_plainly(int fd, int count) {
  for (int i = 0; i < count; ++i) {
    if (::write(fd, kLine.data(), kLine.size()) < 0) std::abort();
  }
}

MapWriter open_writer(const std::string& path, std::size_t buffer) {
  std::filesystem::remove(path);
  return *MapWriter::open(path, {.buffer_bytes = buffer});
}

void write_ours(MapWriter& writer, int count) {
  for (int i = 0; i < count; ++i) {
    if (!writer.write(0x7f3529fcf759, 0xb, kName)) std::abort();
  }
}

constexpr Address kStart = 0x7f3529fcf000;

/// A function of a dump: with V8's average code size, and a few lines.
struct Function {
  std::string code = std::string(352, '\xcc');
  std::vector<LineRecord> lines;
  JitFunction asked;

  explicit Function(bool with_lines) {
    for (unsigned i = 0; with_lines && i < 4; ++i) {
      lines.push_back({kStart + 16 * i, 10, 3, "/srv/app/server.py", false});
    }
    asked = {
        .start = 0x7f3529fcf000, .size = code.size(), .name = kName, .code = code, .lines = lines};
  }
  Function(const Function&) = delete;
};

void load_ours(const std::string& path, const Function& function) {
  std::filesystem::remove(path);
  auto writer = JitdumpWriter::open(path, {.pid = 42, .marker = false, .close_record = false});
  for (int i = 0; i < kEntries; ++i) {
    if (!writer->load(function.asked)) std::abort();
  }
}

/// The bytes of one call without the code.
std::string records_of(const std::string& path, const Function& function) {
  std::filesystem::remove(path);
  auto writer = JitdumpWriter::open(path, {.pid = 42, .marker = false, .close_record = false});
  if (!writer->load(function.asked)) std::abort();
  const Input file = *Input::open(path);
  return std::string(file.text().substr(
      JitdumpHeader::kSize, file.text().size() - JitdumpHeader::kSize - function.code.size()));
}

void load_plainly(const std::string& path, std::string& records, const Function& function) {
  const int fd = open_plainly(path);
  for (int i = 0; i < kEntries; ++i) {
    iovec parts[] = {{records.data(), records.size()},
                     {const_cast<char*>(function.code.data()), function.code.size()}};
    if (::writev(fd, parts, 2) < 0) std::abort();
  }
  ::close(fd);
}

void bench_jitdump_writer(const std::string& path, const char* figure, bool with_lines) {
  const Function function(with_lines);
  std::string records = records_of(path, function);
  const Paired pair = compare(
      7, [&] { load_ours(path, function); }, [&] { load_plainly(path, records, function); });
  print_row(figure, ns_each(pair.ours_ms, kEntries), ns_each(pair.limit_ms, kEntries), pair.ratio,
            1.12);
}

}  // namespace

void bench_writer(const Files& files) {
  const Paired one = compare(
      7,
      [&] {
        MapWriter writer = open_writer(files.out, 0);
        write_ours(writer, kEntries);
      },
      [&] {
        const int fd = open_plainly(files.out);
        write_plainly(fd, kEntries);
        ::close(fd);
      });
  print_row("write, 1 thread, against bare write(2)", ns_each(one.ours_ms, kEntries),
            ns_each(one.limit_ms, kEntries), one.ratio, 1.1);

  constexpr std::size_t kBuffer = 64 << 10;
  const Paired buffered = compare(
      7,
      [&] {
        MapWriter writer = open_writer(files.out, kBuffer);
        write_ours(writer, kEntries);
      },
      [&] {
        const int fd = open_plainly(files.out);
        std::vector<char> buffer(kBuffer);
        std::size_t used = 0;
        for (int i = 0; i < kEntries; ++i) {
          if (used + kLine.size() > kBuffer) {
            if (::write(fd, buffer.data(), used) < 0) std::abort();
            used = 0;
          }
          std::memcpy(buffer.data() + used, kLine.data(), kLine.size());
          used += kLine.size();
        }
        if (::write(fd, buffer.data(), used) < 0) std::abort();
        ::close(fd);
      });
  print_row("write, buffered, against memcpy and write", ns_each(buffered.ours_ms, kEntries),
            ns_each(buffered.limit_ms, kEntries), buffered.ratio, 4.0);

  bench_jitdump_writer(files.out, "jitdump record, against bare writev(2)", false);
  bench_jitdump_writer(files.out, "jitdump record and its lines, the same", true);
}

void bench_writer_threads(const Files& files) {
  const auto twice = [](auto work) {
    std::thread other(work);
    work();
    other.join();
  };
  const Paired two = compare(
      7,
      [&] {
        MapWriter writer = open_writer(files.out, 0);
        twice([&] { write_ours(writer, kEntries / 2); });
      },
      [&] {
        const int fd = open_plainly(files.out);
        twice([&] { write_plainly(fd, kEntries / 2); });
        ::close(fd);
      });
  print_row("write, 2 threads, against unlocked write(2)", ns_each(two.ours_ms, kEntries),
            ns_each(two.limit_ms, kEntries), two.ratio, 1.0);
}

}  // namespace perfmap::bench

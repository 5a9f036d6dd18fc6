#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/writer.hpp"

namespace perfmap::bench {
namespace {

/// An address in the middle of the file, so that no scan ends early.
std::string some_address(const std::string& map) {
  std::ifstream file(map);
  std::string line;
  for (int i = 0; i < 500'000; ++i) std::getline(file, line);
  return line.substr(0, line.find(' '));
}

/// Copies as CPython's PyUnstable_CopyPerfMapFile does: 4 KiB at a time.
void copy_plainly(const std::string& from, const std::string& to) {
  const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int target = ::open(to.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char block[4096];
  for (ssize_t got; (got = ::read(source, block, sizeof block)) > 0;) {
    if (::write(target, block, static_cast<std::size_t>(got)) != got) std::abort();
  }
  ::close(source);
  ::close(target);
}

}  // namespace

void bench_commands(const Files& files) {
  const auto fresh = [&](auto work) {
    return [&files, work] {
      std::filesystem::remove(files.out);
      work();
    };
  };
  const std::string address = some_address(files.plain);
  const Paired resolve = compare(
      15,
      [&] {
        run({files.program, "resolve", address, "--map", files.plain});
      },
      [&] {
        run({"wc", "-l", files.plain});
      });
  print_row("resolve one address, cold, against wc -l", ms(resolve.ours_ms), ms(resolve.limit_ms),
            resolve.ratio, 1.5);

  const auto sort_one = fresh([&] { run({"sort", "-k1,1", files.plain, "-o", files.out}, true); });
  const Paired merge =
      compare(3, fresh([&] {
                run({files.program, "merge", files.plain, files.reused, "-o", files.out});
              }),
              fresh([&] {
                run({"sort", "-k1,1", files.plain, files.reused, "-o", files.out}, true);
              }));
  print_row("merge of two 1 M maps, against sort", ms(merge.ours_ms), ms(merge.limit_ms),
            merge.ratio, 0.5);
  const Paired tidy = compare(5, fresh([&] {
                                run({files.program, "tidy", files.plain, "-o", files.out});
                              }),
                              sort_one);
  print_row("tidy of one, against sort", ms(tidy.ours_ms), ms(tidy.limit_ms), tidy.ratio, 0.5);
  const Paired lint = compare(
      5,
      [&] {
        run({files.program, "lint", files.plain});
      },
      sort_one);
  print_row("lint of one, against sort", ms(lint.ours_ms), ms(lint.limit_ms), lint.ratio, 0.5);

  const auto to_json = fresh([&] {
    run({files.program, "to-json", "--format", "jsonl", files.plain, "-o", files.out});
  });
  const Paired json = compare(5, to_json, fresh([&] { copy_plainly(files.plain, files.out); }));
  const double megabytes = double(std::filesystem::file_size(files.plain)) / 1e6;
  const double rate = megabytes / json.ours_ms * 1e3;
  print_row("to-json --format jsonl, MB/s of input", std::to_string(int(rate)), "-", rate, 300,
            false);

  const Paired copy =
      compare(7, fresh([&] { (void)MapWriter::open(files.out)->copy(files.plain); }),
              fresh([&] { copy_plainly(files.plain, files.out); }));
  print_row("copy, against a 4 KiB loop", ms(copy.ours_ms), ms(copy.limit_ms), copy.ratio, 0.7);
}

}  // namespace perfmap::bench

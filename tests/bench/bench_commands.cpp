// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/index.hpp"
#include "perfmap/writer.hpp"
#include "support/synthetic_map.hpp"

namespace perfmap::bench {
namespace {

constexpr std::uint64_t kEntries = 1'000'000;

struct Line {
  std::string address;
  std::string name;
};

/// A line in the middle of the file, so that no scan ends early.
Line some_line(const std::string& map) {
  std::ifstream file(map);
  std::string line;
  for (int i = 0; i < 500'000; ++i) std::getline(file, line);
  const std::size_t size = line.find(' ');
  return {line.substr(0, size), line.substr(line.find(' ', size + 1) + 1)};
}

Index index_of(const std::vector<std::string>& paths) {
  std::vector<Map> maps;
  for (const std::string& path : paths) {
    Result<Input> input = Input::open(path);
    expect(input.has_value(), "no " + path);
    maps.emplace_back(*std::move(input));
  }
  Diagnostics ignored(1);
  return {std::move(maps), Overlap::last, ignored};
}

std::string name_at(const Index& index, Address address) {
  const auto entry = index.find_entry(address);
  return entry ? std::string(entry->name) : std::string();
}

/// Expects that the map that a command wrote gives the same names as the maps that it read.
void expect_same_answers(const std::string& what, const std::string& written,
                         const std::vector<std::string>& read) {
  const Index made = index_of({written});
  const Index known = index_of(read);
  for (const std::string& path : read) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    for (const Address address : test::addresses_in(text.str(), 2000, 7))
      expect(name_at(made, address) == name_at(known, address), what + " answers wrongly");
  }
}

std::uint64_t lines_of(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.starts_with("{\"start\":");
  return count;
}

/// Copies like CPython's PyUnstable_CopyPerfMapFile: 4 KiB at a time.
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

using Work = std::function<void()>;

/// Removes the output of the previous round first.
Work fresh(const Files& files, Work work) {
  return [&files, work = std::move(work)] {
    std::filesystem::remove(files.out);
    work();
  };
}

void bench_resolve(const Files& files) {
  const Line line = some_line(files.plain);
  const std::vector<std::string> command = {files.program, "resolve", line.address, "--map",
                                            files.plain};
  expect(output_of(command).find(line.name) != std::string::npos, "resolve answers wrongly");
  const Paired resolve = compare(
      15, [&] { run(command); },
      [&] {
        run({"wc", "-l", files.plain});
      });
  print_row("resolve one address, cold, against wc -l", ms(resolve.ours_ms), ms(resolve.limit_ms),
            resolve.ratio, 1.5);
}

/// Compares a command that writes a map with sort.
void bench_writing(const Files& files, const std::string& command, const std::string& figure,
                   int rounds, const std::vector<std::string>& maps) {
  std::vector<std::string> ours = {files.program, command};
  std::vector<std::string> sort = {"sort", "-k1,1"};
  for (std::vector<std::string>* const words : {&ours, &sort}) {
    words->insert(words->end(), maps.begin(), maps.end());
    words->insert(words->end(), {"-o", files.out});
  }
  const Paired found =
      compare(rounds, fresh(files, [&] { run(ours); }), fresh(files, [&] { run(sort, true); }));
  fresh(files, [&] { run(ours); })();
  expect_same_answers(command, files.out, maps);
  print_row(figure, ms(found.ours_ms), ms(found.limit_ms), found.ratio, 0.5);
}

/// Neither side writes a file.
void bench_lint(const Files& files) {
  const std::vector<std::string> command = {files.program, "lint", files.plain};
  expect(output_of(command).find("0 errors") != std::string::npos, "lint answers wrongly");
  const Paired lint = compare(
      5, [&] { run(command); },
      [&] {
        run({"sort", "-k1,1", files.plain}, true);
      });
  print_row("lint of one, against sort", ms(lint.ours_ms), ms(lint.limit_ms), lint.ratio, 0.5);
}

void bench_to_json(const Files& files) {
  const Paired json = compare(
      5,
      fresh(files,
            [&] {
              run({files.program, "to-json", "--to", "jsonl", files.plain, "-o", files.out});
            }),
      [] {});
  expect(lines_of(files.out) == kEntries, "to-json answers wrongly");
  const double megabytes = double(std::filesystem::file_size(files.plain)) / 1e6;
  const double rate = megabytes / json.ours_ms * 1e3;
  print_row("to-json --to jsonl, MB/s of input", std::to_string(int(rate)), "-", rate, 300, false);
}

void bench_copy(const Files& files) {
  const auto copy_ours = [&] {
    auto writer = MapWriter::open(files.out);
    expect(writer && writer->copy(files.plain), "cannot copy");
  };
  const Paired copy = compare(7, fresh(files, copy_ours),
                              fresh(files, [&] { copy_plainly(files.plain, files.out); }));
  print_row("copy, against a 4 KiB loop", ms(copy.ours_ms), ms(copy.limit_ms), copy.ratio, 0.7);
}

}  // namespace

void bench_commands(const Files& files) {
  attempt("resolve", [&] { bench_resolve(files); });
  attempt("merge", [&] {
    bench_writing(files, "merge", "merge of two 1 M maps, against sort", 3,
                  {files.plain, files.reused});
  });
  attempt("tidy",
          [&] { bench_writing(files, "tidy", "tidy of one, against sort", 5, {files.plain}); });
  attempt("lint", [&] { bench_lint(files); });
  attempt("to-json", [&] { bench_to_json(files); });
  attempt("copy", [&] { bench_copy(files); });
}

}  // namespace perfmap::bench

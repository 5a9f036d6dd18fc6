// SPDX-License-Identifier: MIT
// PyPy logs: totals of a gigabyte, compared with counting its lines and with a script.

#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "support/synthetic_log.hpp"

namespace perfmap::bench {
namespace {

/// Peak memory of a run, in MB.
double peak_mb(const std::vector<std::string>& command) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  expect(::wait4(child, &status, 0, &usage) == child && status == 0, command[0] + " fails");
  return double(usage.ru_maxrss) / 1024;
}

void against_wc(const std::string& figure, const std::string& program, const std::string& log) {
  const Paired paired = compare(
      5,
      [&] {
        run({program, "pypylog", "--format", "json", log});
      },
      [&] {
        run({"wc", "-l", log});
      });
  const double gigabytes = double(std::filesystem::file_size(log)) / 1e9;
  char ours[64];
  std::snprintf(ours, sizeof ours, "%.0f ms, %.2f GB/s", paired.ours_ms,
                gigabytes / paired.ours_ms * 1e3);
  print_row(figure, ours, ms(paired.limit_ms), paired.ratio, 5);
}

/// Expects the same total ticks and ticks outside loops as the script computes.
void expect_totals(const std::string& program, const std::string& log) {
  const std::string json = output_of({program, "pypylog", "--format", "json", log});
  std::istringstream script(output_of({"python3", PERFMAP_READ_PYPYLOG, log}));
  std::string total;
  std::string outside;
  script >> total >> outside;
  expect(json.find("\"total_ticks\":" + total + ",") != std::string::npos &&
             json.find("\"outside_ticks\":" + outside + ",") != std::string::npos,
         "pypylog and the script disagree");
}

}  // namespace

void bench_pypylog(const Files& files) {
  const std::string place = std::filesystem::path(files.out).parent_path();
  const std::string large = place + "/large.pypylog";
  const std::string small = place + "/small.pypylog";
  test::write_synthetic_log(large, {.bytes = 1'000'000'000});
  test::write_synthetic_log(small, {.bytes = 300'000'000});
  against_wc("PYPYLOG of 1 GB, totals, against wc -l", files.program, large);

  expect_totals(files.program, small);
  const Paired script = compare(
      1,
      [&] {
        run({files.program, "pypylog", "--format", "json", small});
      },
      [&] {
        run({"python3", PERFMAP_READ_PYPYLOG, small});
      });
  print_row("PYPYLOG of 300 MB, times faster than a script", ms(script.ours_ms),
            ms(script.limit_ms), 1 / script.ratio, 50, false);

  const double max = peak_mb({files.program, "pypylog", large});
  const double less = peak_mb({files.program, "pypylog", small});
  print_row("peak memory for 1 GB, against 300 MB", std::to_string(int(max)) + " MB",
            std::to_string(int(less)) + " MB", max / less, 1.1);
  std::filesystem::remove(small);
  test::write_synthetic_log(large, {.bytes = 1'000'000'000, .compiled = false});
  against_wc("the same of jit-profile sections alone", files.program, large);
  std::filesystem::remove(large);
}

}  // namespace perfmap::bench

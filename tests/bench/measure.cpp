// SPDX-License-Identifier: MIT
#include "bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfmap::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int reached_rows = 0;
int missed_rows = 0;
int failed_rows = 0;

std::string text_of(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The wait4() status of a program after it has ended; its output goes to `out`.
int status_of(const std::vector<std::string>& command, const std::string& input,
              const std::string& out, bool c_locale, rusage& usage) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  char locale[] = "LC_ALL=C";
  char* c_environment[] = {locale, nullptr};
  pid_t child = 0;
  int status = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(),
                                   c_locale ? c_environment : environ);
  posix_spawn_file_actions_destroy(&actions);
  expect(error == 0, "cannot run " + command[0]);
  expect(::wait4(child, &status, 0, &usage) == child, "lost " + command[0]);
  return status;
}

void expect_status(const std::vector<std::string>& command, int status, int most_status) {
  expect(WIFEXITED(status) && WEXITSTATUS(status) <= most_status,
         text_of(command) + (WIFEXITED(status) ? ": exit " + std::to_string(WEXITSTATUS(status))
                                               : ": signal " + std::to_string(WTERMSIG(status))));
}

}  // namespace

void expect(bool holds, const std::string& why) {
  if (!holds) throw Failed{why};
}

void attempt(const std::string& figure, const std::function<void()>& measure) {
  try {
    measure();
  } catch (const Failed& failure) {
    ++failed_rows;
    std::printf("%-44s failed: %s\n", figure.c_str(), failure.why.c_str());
    std::fflush(stdout);
  }
}

double time_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

Paired compare(int rounds, const std::function<void()>& ours, const std::function<void()>& limit) {
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> ratios;
  for (int round = 0; round <= rounds; ++round) {
    const double mine = time_ms(ours);
    const double theirs = time_ms(limit);
    if (round == 0) continue;
    a.push_back(mine);
    b.push_back(theirs);
    ratios.push_back(mine / theirs);
  }
  return {median(a), median(b), median(ratios)};
}

double cpu_ms(std::vector<std::string> command, const std::string& input) {
  rusage usage{};
  expect_status(command, status_of(command, input, "/dev/null", false, usage), 0);
  const auto in_ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return in_ms(usage.ru_utime) + in_ms(usage.ru_stime);
}

double thread_ms(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  const double start = now();
  work();
  return now() - start;
}

Paired compare_cpu(int rounds, const std::function<double()>& ours,
                   const std::function<double()>& limit) {
  std::vector<Paired> runs;
  for (int round = 0; round <= rounds; ++round) {
    const double mine = ours();
    const double theirs = limit();
    if (round != 0) runs.push_back({mine, theirs, mine / theirs});
  }
  std::ranges::sort(runs, {}, &Paired::ratio);
  return runs[runs.size() / 2];
}

double status_kb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size()));
  }
  return 0;
}

void run(const std::vector<std::string>& command, bool c_locale, int most_status) {
  rusage usage{};
  expect_status(command, status_of(command, "/dev/null", "/dev/null", c_locale, usage),
                most_status);
}

std::string output_of(const std::vector<std::string>& command, int most_status) {
  char name[] = "/tmp/perfmap-bench-output-XXXXXX";
  const int fd = ::mkstemp(name);
  expect(fd >= 0, "no file below /tmp");
  ::close(fd);
  rusage usage{};
  const int status = status_of(command, "/dev/null", name, false, usage);
  std::ostringstream text;
  text << std::ifstream(name, std::ios::binary).rdbuf();
  ::unlink(name);
  expect_status(command, status, most_status);
  return text.str();
}

void print_head() {
  std::printf("%-44s %12s %12s %7s %7s\n", "figure", "perfmap", "limit", "ratio", "reach");
}

void print_row(const std::string& figure, const std::string& ours, const std::string& limit,
               double ratio, double reach, bool less_is_better) {
  std::printf("%-44s %12s %12s %7.2f", figure.c_str(), ours.c_str(), limit.c_str(), ratio);
  if (!std::isnan(reach)) {
    const bool reached = less_is_better ? ratio <= reach : ratio >= reach;
    ++(reached ? reached_rows : missed_rows);
    std::printf(" %s%6.2f%s", less_is_better ? "<" : ">", reach, reached ? "" : "  missed");
  }
  std::printf("\n");
  std::fflush(stdout);
}

int print_sum() {
  std::printf("%d targets reached, %d missed, %d rows failed\n", reached_rows, missed_rows,
              failed_rows);
  return failed_rows == 0 ? 0 : 1;
}

std::string ms(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", value);
  return text;
}

std::string ns_each(double total_ms, double count) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f ns", total_ms * 1e6 / count);
  return text;
}

}  // namespace perfmap::bench

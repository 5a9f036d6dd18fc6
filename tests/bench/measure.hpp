// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace perfmap::bench {

/// Milliseconds that `work` takes.
double time_ms(const std::function<void()>& work);

/// Measures two things in turn, A B A B …, after one round that does not count: their medians, and
/// the median of the ratios of neighbours, which is stable if the machine's speed drifts.
struct Paired {
  double ours_ms;
  double limit_ms;
  double ratio;
};
Paired compare(int rounds, const std::function<void()>& ours, const std::function<void()>& limit);

/// A row cannot be measured: a program failed or gave a wrong result.
struct Failed {
  std::string why;
};
void expect(bool holds, const std::string& why);
/// `measure` prints rows. If it throws Failed, that is a row of its own and makes the exit status
/// 1.
void attempt(const std::string& figure, const std::function<void()>& measure);

/// CPU time of a process and its children. Its input is a file, its output is discarded. Throws
/// Failed if it cannot be run, or fails.
double cpu_ms(std::vector<std::string> command, const std::string& input = "/dev/null");
/// CPU time that `work` takes in this thread.
double thread_ms(const std::function<void()>& work);
/// CPU times of the two in one run, taken in turn: the run with the median ratio.
Paired compare_cpu(int rounds, const std::function<double()>& ours,
                   const std::function<double()>& limit);

/// The kilobytes in a line such as "RssAnon:" of our /proc status.
double status_kb(const std::string& key);

/// Runs a program and discards its output. Throws Failed if it cannot be run, or if its exit status
/// is above `most_status`.
void run(const std::vector<std::string>& command, bool c_locale = false, int most_status = 0);
/// The same; returns the output on both channels.
std::string output_of(const std::vector<std::string>& command, int most_status = 0);

/// The target of a row without one.
constexpr double kNotAsked = std::numeric_limits<double>::quiet_NaN();
/// A line of the table. `reach` is the target of the ratio or, without a limit, of the value.
void print_row(const std::string& figure, const std::string& ours, const std::string& limit,
               double ratio, double reach, bool less_is_better = true);
void print_head();
/// Prints the number of rows. Returns the exit status: 1 if a row failed; a missed target is not a
/// failure.
int print_sum();

/// "12.3 ms"
std::string ms(double value);
/// A duration divided by a count: "123 ns".
std::string ns_each(double total_ms, double count);

}  // namespace perfmap::bench

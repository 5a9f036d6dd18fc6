#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace perfmap::bench {

/// Milliseconds that `work` takes.
double time_ms(const std::function<void()>& work);

/// Two things done in turn, A B A B …, after one round that does not count: their medians, and the
/// median of the ratios of neighbours, which holds when the machine's speed drifts.
struct Paired {
  double ours_ms;
  double limit_ms;
  double ratio;
};
Paired compare(int rounds, const std::function<void()>& ours, const std::function<void()>& limit);

/// A row cannot be measured: a program failed, or answered wrongly.
struct Failed {
  std::string why;
};
void expect(bool holds, const std::string& why);
/// `measure` prints rows; one that throws Failed is a row of its own, and spoils the exit status.
void attempt(const std::string& figure, const std::function<void()>& measure);

/// CPU time of a process and its children, its input a file, its output thrown away; throws Failed
/// where it cannot be run, or fails.
double cpu_ms(std::vector<std::string> command, const std::string& input = "/dev/null");
/// CPU time that `work` takes of this thread.
double thread_ms(const std::function<void()>& work);
/// CPU times of the two in one run, taken in turn, of the median ratio.
Paired compare_cpu(int rounds, const std::function<double()>& ours,
                   const std::function<double()>& limit);

/// Kilobytes of a line such as "RssAnon:" of our own status.
double status_kb(const std::string& key);

/// Runs a program to its end, its output thrown away; throws Failed where it cannot be run, or its
/// exit status is above `most_status`.
void run(const std::vector<std::string>& command, bool c_locale = false, int most_status = 0);
/// The same, and what it prints on both channels.
std::string output_of(const std::vector<std::string>& command, int most_status = 0);

/// The target of a row that nobody asked for.
constexpr double kNotAsked = std::numeric_limits<double>::quiet_NaN();
/// A line of the table. `reach` is what the ratio (or, without a limit, the value) should be.
void print_row(const std::string& figure, const std::string& ours, const std::string& limit,
               double ratio, double reach, bool less_is_better = true);
void print_head();
/// Counts the rows. The exit status: 1 where one failed; a target that is missed is none.
int print_sum();

/// "12.3 ms"
std::string ms(double value);
/// Of a duration over many things: "123 ns".
std::string ns_each(double total_ms, double count);

}  // namespace perfmap::bench

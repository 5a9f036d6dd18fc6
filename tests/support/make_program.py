#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a C++ program with debug information: make_program.py [--heavy] DIR UNITS [FLAG...]

The same compiler gives the same program at each run.

The program has UNITS compilation units that share templates and inline functions of one header
(COMDAT), calls inlined over several levels, functions in namespaces, lambdas and cold code. $CXX or
g++ compiles it with FLAG..., by default -O2 -g, to DIR/program. The objects are kept for split
DWARF. --heavy includes more of the standard library: about 1.2 MB of .debug_info per unit.
"""
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys

SHARED = """
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace shared {

template <int N>
struct Mixer {
  template <class T>
  static inline T step(T value) {
    if constexpr (N == 0) {
      return value * 3 + 1;
    } else {
      T mixed = Mixer<N - 1>::step(value ^ N);
      if (mixed % 7 == 3) mixed += Mixer<N - 1>::step(mixed);
      return mixed;
    }
  }
};

template <class T>
T sum_of_sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return std::accumulate(values.begin(), values.end(), T{});
}

inline unsigned long count_words(const std::string& text) {
  std::map<std::string, unsigned long> words;
  std::string word;
  for (char c : text) {
    if (c == ' ') {
      ++words[word];
      word.clear();
    } else {
      word += c;
    }
  }
  unsigned long most = 0;
  for (const auto& [name, count] : words) most = std::max(most, count + name.size());
  return most;
}

}  // namespace shared
"""
HEAVY = "".join(f"#include <{name}>\n" for name in (
    "deque", "functional", "future", "iostream", "list", "memory", "optional", "random", "regex",
    "set", "sstream", "thread", "unordered_map", "variant"))
HEAVY_CODE = """
bool looks_like_a_date_%(unit)d(const std::string& text) {
  static const std::regex form("([0-9]{%(digits)d})-([0-9]{2})-([0-9]{2})");
  return std::regex_match(text, form);
}
unsigned long kinds_%(unit)d(unsigned long n) {
  std::unordered_map<std::string, std::variant<long, std::string>> kinds;
  std::set<std::pair<long, Kind%(unit)d>> seen;
  std::ostringstream out;
  for (unsigned long i = 0; i < n; ++i) {
    kinds.emplace(std::to_string(i), i %% 2 ? std::variant<long, std::string>(long(i)) : "x");
    seen.insert({long(i), {int(i %% 3)}});
    out << i << ' ';
  }
  std::function<unsigned long(unsigned long)> f = [&](unsigned long x) { return x + kinds.size(); };
  return f(seen.size()) + out.str().size();
}
"""


def function(unit, number, pick):
    """A function that calls the shared ones; `pick` makes no two alike."""
    kind = pick.choice(["long", "unsigned", "short"])
    depth = pick.randint(0, 5)
    return f"""
static inline {kind} inner_{unit}_{number}({kind} x) {{
  if (x > {pick.randint(3, 99)}) return static_cast<{kind}>(shared::Mixer<{depth}>::step(x));
  return static_cast<{kind}>(x - {pick.randint(1, 9)});
}}
__attribute__((noinline)) {kind} outer_{number}({kind} x) {{
  std::vector<{kind}> values;
  for (int i = 0; i < {pick.randint(2, 20)}; ++i) values.push_back(inner_{unit}_{number}(x + i));
  auto twice = [&](auto by) {{ return inner_{unit}_{number}(static_cast<{kind}>(x * by)); }};
  if (values.size() > {pick.randint(100, 999)}) throw std::string("too many");
  return static_cast<{kind}>(shared::sum_of_sorted(values) + twice({pick.randint(2, 5)}));
}}
"""


def unit_source(unit, heavy):
    pick = random.Random(unit)
    functions = 20 if heavy else 6
    body = "".join(function(unit, number, pick) for number in range(functions))
    calls = "\n".join(f"  all += static_cast<long>(part_{unit}::outer_{number}(1));"
                      for number in range(functions))
    kind = (f"struct Kind{unit} {{\n  int of;\n"
            f"  bool operator<(Kind{unit} o) const {{ return of < o.of; }}\n}};")
    more = HEAVY_CODE % {"unit": unit, "digits": unit % 5 + 2} if heavy else ""
    used = f"  all += looks_like_a_date_{unit}(\"2000-01-01\") + kinds_{unit}(9);" if heavy else ""
    return f"""#include "shared.hpp"
{HEAVY if heavy else ""}
{kind}
namespace part_{unit} {{
{body}
}}
{more}
long unit_{unit}(int n) {{
  long all = static_cast<long>(shared::count_words(std::string(static_cast<unsigned>(n), 'x')));
{calls}
{used}
  return all;
}}
"""


def main():
    arguments = sys.argv[1:]
    heavy = "--heavy" in arguments
    if heavy:
        arguments.remove("--heavy")
    place, units = pathlib.Path(arguments[0]), int(arguments[1])
    flags = arguments[2:] or ["-O2", "-g"]
    place.mkdir(parents=True, exist_ok=True)
    (place / "shared.hpp").write_text(SHARED)
    for unit in range(units):
        (place / f"unit_{unit}.cpp").write_text(unit_source(unit, heavy))
    declared = "".join(f"long unit_{unit}(int n);\n" for unit in range(units))
    called = " + ".join(f"unit_{unit}(count)" for unit in range(units))
    body = f"int main(int count, char**) {{ return ({called}) == 0; }}\n"
    (place / "main.cpp").write_text(declared + body)
    compiler = os.environ.get("CXX", "g++")
    names = ["main"] + [f"unit_{unit}" for unit in range(units)]

    def compile_one(name):
        subprocess.run([compiler, "-std=c++20", *flags, "-c", f"{name}.cpp", "-o", f"{name}.o"],
                       cwd=place, check=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, names))
    subprocess.run([compiler, *flags, *[f"{name}.o" for name in names], "-o", "program"],
                   cwd=place, check=True)


main()

// SPDX-License-Identifier: MIT
#include <cstdint>
#include <cstdlib>
#include <string>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/writer.hpp"

namespace perfmap::bench {
namespace {

constexpr int kCalls = 20'000'000;

/// The minimal evaluator, so that only the call is measured.
[[gnu::noinline]] void* evaluate(void* first, void*, void*) { return first; }

template <class Call>
void call_often(Call call) {
  void* value = &value;
  for (int i = 0; i < kCalls; ++i) {
    value = call(value);
    asm volatile("" : "+r"(value));
  }
}

void print_overhead(const char* figure, const Paired& pair) {
  const double more = (pair.ours_ms - pair.limit_ms) * 1e6 / kCalls;
  print_row(figure, ns_each(pair.ours_ms, kCalls), ns_each(pair.limit_ms, kCalls), more, 2.5);
}

}  // namespace

void bench_trampoline(const Files& files) {
  const std::string directory = files.out.substr(0, files.out.rfind('/'));
  if (ProcessMap::configure({.directory = directory}) != 0) std::abort();
  auto arena = TrampolineArena::make({.prefix = "bench"});
  if (!arena || !arena->activate(TrampolineBackend::map)) std::abort();
  Trampoline trampoline = arena->add({"called"});
  if (!trampoline.compile()) std::abort();
  Evaluator evaluator = evaluate;
  asm volatile("" : "+r"(evaluator));

  const auto direct = [&] {
    call_often([&](void* value) { return evaluator(value, nullptr, nullptr); });
  };
  const TrampolineEntry entry = trampoline.entry();
  print_overhead(
      "frame of a trampoline: ns more than a call",
      compare(
          7,
          [&] {
            call_often([&](void* value) { return entry(value, nullptr, nullptr, evaluator); });
          },
          direct));
  const auto called = [&] {
    call_often([&](void* value) { return trampoline.call(value, nullptr, nullptr, evaluator); });
  };
  print_overhead("trampoline.call(): ns more than a call", compare(7, called, direct));
  arena->deactivate();
  print_overhead("trampoline.call(), not active: ns more", compare(7, called, direct));
  ProcessMap::fini();
}

}  // namespace perfmap::bench

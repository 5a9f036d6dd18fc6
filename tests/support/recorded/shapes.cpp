// Functions with every shape of frame, called from main: shapes ROUNDS
#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <time.h>

namespace {

volatile std::uint64_t sink;

}  // namespace

// Keeps functions separate and their names unchanged: no inlining, no cloning, no tail calls.
#define SHAPE extern "C" __attribute__((noinline, noclone, used))
#if defined(__clang__)
#undef SHAPE
#define SHAPE extern "C" __attribute__((noinline, used))
#endif

SHAPE std::uint64_t busy(std::uint64_t seed) {
  for (int i = 0; i < 20000; ++i) seed = seed * 6364136223846793005u + 1442695040888963407u;
  sink = seed;
  return seed;
}

SHAPE std::uint64_t in_frame_of_any_size(std::size_t size) {
  auto* const room = static_cast<volatile char*>(alloca(size));
  room[size - 1] = 1;
  const std::uint64_t found = busy(size);
  return found + static_cast<std::uint64_t>(room[size - 1]);
}

SHAPE std::uint64_t in_aligned_frame(std::uint64_t seed) {
  alignas(128) volatile char room[256];
  room[seed % 256] = 1;
  const std::uint64_t found = busy(seed) + in_frame_of_any_size(seed % 500 + 1);
  return found + static_cast<std::uint64_t>(room[seed % 256]);
}

SHAPE void in_handler(int) { sink = sink + busy(3); }

SHAPE std::uint64_t interrupted(std::uint64_t seed) {
  std::raise(SIGUSR1);
  return busy(seed) + 1;
}

SHAPE std::uint64_t in_vdso(std::uint64_t seed) {
  timespec now{};
  for (int i = 0; i < 300; ++i) ::clock_gettime(CLOCK_MONOTONIC, &now);
  return seed + static_cast<std::uint64_t>(now.tv_nsec);
}

SHAPE std::uint64_t thrower(std::uint64_t seed) {
  if (seed % 2 == 0) throw std::runtime_error("even");
  return busy(seed) + 1;
}

SHAPE std::uint64_t catcher(std::uint64_t seed) {
  std::uint64_t found = 0;
  for (int i = 0; i < 8; ++i) {
    try {
      found += thrower(seed + static_cast<std::uint64_t>(i));
    } catch (const std::runtime_error& error) {
      found += std::strlen(error.what());
    }
  }
  return found;
}

SHAPE int compare(const void* a, const void* b) {
  const auto left = *static_cast<const std::uint32_t*>(a);
  const auto right = *static_cast<const std::uint32_t*>(b);
  return left < right ? -1 : left > right;
}

SHAPE std::uint64_t called_back(std::uint64_t seed) {
  std::uint32_t numbers[600];
  for (auto& number : numbers) number = static_cast<std::uint32_t>(seed = seed * 25214903917u + 11);
  std::qsort(numbers, 600, sizeof numbers[0], compare);
  return numbers[0];
}

SHAPE std::uint64_t all_shapes(std::uint64_t seed) {
  std::uint64_t found = in_aligned_frame(seed) + interrupted(seed) + in_vdso(seed);
  found += catcher(seed) + called_back(seed);
  return found;
}

SHAPE std::uint64_t many(int rounds) {
  std::uint64_t found = 0;
  for (int i = 0; i < rounds; ++i) found += all_shapes(static_cast<std::uint64_t>(i));
  return found;
}

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 100;
  std::signal(SIGUSR1, in_handler);
  std::uint64_t of_thread = 0;
  std::thread other([&] { of_thread = many(rounds); });
  const std::uint64_t own = many(rounds);
  other.join();
  std::printf("%llu\n", static_cast<unsigned long long>(own + of_thread));
}

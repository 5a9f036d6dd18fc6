// SPDX-License-Identifier: MIT
#include "unwind/signal_return.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "support/unwind_world.hpp"

namespace perfmap::signal_return_test {
namespace {

using test::UnwindWorld;
using namespace std::string_literals;

constexpr Address kStack = UnwindWorld::kStack;
constexpr Target kI386 = {std::endian::little, false, EM_386, 0};

const std::vector<std::pair<Machine, std::string>>& trampolines() {
  static const std::vector<std::pair<Machine, std::string>> all = {
      {Machine::x86_64, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s},
      {Machine::x86_64, "\xb8\x0f\0\0\0\x0f\x05"s},
      {Machine::x86, "\xb8\xad\0\0\0\xcd\x80"s},
      {Machine::x86, "\x58\xb8\x77\0\0\0\xcd\x80"s},
      {Machine::aarch64, "\x68\x11\x80\xd2\x01\0\0\xd4"s},
      {Machine::riscv64, "\x93\x08\xb0\x08\x73\0\0\0"s},
      {Machine::arm, "\xad\x70\xa0\xe3\0\0\0\xef"s},
      {Machine::arm, "\x77\x70\xa0\xe3\0\0\0\xef"s},
      {Machine::arm, "\x4f\xf0\xad\x07\0\xdf"s},
      {Machine::arm, "\x4f\xf0\x77\x07\0\xdf"s},
      {Machine::arm, "\xad\x27\0\xdf"s},
      {Machine::arm, "\x77\x27\0\xdf"s}};
  return all;
}

}  // namespace

TEST_CASE("hostile: trampolines of signals that are empty or torn are not recognized",
          "[unwind][signal][hostile]") {
  for (const auto& [machine, code] : trampolines()) {
    CAPTURE(code);
    REQUIRE(is_signal_return(machine, code));
    CHECK_FALSE(find_signal_return(machine, "", ""));
    for (std::size_t size = 0; size < code.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(is_signal_return(machine, code.substr(0, size)));
      CHECK_FALSE(find_signal_return(machine, "", code.substr(0, size)));
      CHECK_FALSE(find_signal_return(machine, code.substr(0, size), ""));
      if (size > 0) CHECK_FALSE(find_signal_return(machine, code.substr(size), ""));
    }
  }
}

TEST_CASE("hostile: trampolines of signals with one other bit are not recognized",
          "[unwind][signal][hostile]") {
  for (const auto& [machine, code] : trampolines()) {
    for (std::size_t bit = 0; bit < code.size() * 8; ++bit) {
      std::string other = code;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
      CAPTURE(code, bit);
      CHECK_FALSE(is_signal_return(machine, other));
    }
  }
}

TEST_CASE("hostile: the contexts of all trampolines are among those of the machine",
          "[unwind][signal][hostile]") {
  for (const auto& [machine, code] : trampolines()) {
    const SavedContexts contexts = signal_contexts(machine);
    REQUIRE(contexts.count <= contexts.all.size());
    for (std::size_t done = 0; done <= code.size(); ++done) {
      const auto place = find_signal_return(machine, code.substr(0, done), code.substr(done));
      if (!place) continue;
      CHECK(std::find(contexts.begin(), contexts.end(), place->context) != contexts.end());
    }
  }
  CHECK(signal_contexts(Machine::s390x).count == 0);
}

TEST_CASE("hostile: a signal's saved registers that lead to themselves end",
          "[unwind][signal][hostile]") {
  constexpr std::size_t kRegisters = 312 / 8, kMagic = 592 / 8;
  UnwindWorld world({.target = test::kArm});
  std::vector<std::uint64_t> stack(100, 0);
  stack[kMagic] = 0x46508001;
  stack[kRegisters + 32] = UnwindWorld::kJit;
  for (const Address sp :
       {kStack, kStack - 8, kStack + 1, Address{0}, ~Address{0}, ~Address{311}}) {
    CAPTURE(sp);
    stack[kRegisters + 31] = sp;
    std::vector<UnwoundFrame> frames;
    Unwinder().unwind(world.thread(UnwindWorld::kJit, stack), world.space(), frames);
    CHECK(frames.size() <= 2);
  }
}

TEST_CASE("hostile: signals' saved registers that lead to each other end as a loop",
          "[unwind][signal][hostile]") {
  constexpr std::size_t kRegisters = 312 / 8, kMagic = 592 / 8, kOther = 80;
  UnwindWorld world({.target = test::kArm});
  std::vector<std::uint64_t> stack(200, 0);
  const auto lead = [&](std::size_t from, std::size_t to) {
    stack[from + kMagic] = 0x46508001;
    stack[from + kRegisters + 31] = kStack + to * 8;
    stack[from + kRegisters + 32] = UnwindWorld::kJit;
  };
  lead(0, kOther);
  lead(kOther, 0);
  CHECK(world.unwound(world.thread(UnwindWorld::kJit, stack)) ==
        "sampled 700000, signal 700000: loop");
  lead(kOther, kOther);
  CHECK(world.unwound(world.thread(UnwindWorld::kJit, stack)) ==
        "sampled 700000, signal 700000: loop");
}

TEST_CASE("hostile: a signal's saved registers that are torn are not used",
          "[unwind][signal][hostile]") {
  constexpr std::size_t kRegisters = 312 / 8, kMagic = 592 / 8;
  UnwindWorld world({.target = test::kArm});
  std::vector<std::uint64_t> stack(kMagic + 1, 0);
  stack[kMagic] = 0x46508001;
  stack[kRegisters + 31] = kStack + 90 * 8;
  stack[kRegisters + 32] = 0x401210;
  const auto has_signal = [&](std::size_t bytes) {
    UserSample sample = world.thread(UnwindWorld::kJit, stack);
    // On the heap with nothing after it, so that a sanitizer notices reads beyond it.
    const std::vector<char> copy(sample.stack.begin(),
                                 sample.stack.begin() + std::ptrdiff_t(bytes));
    sample.stack = {copy.data(), copy.size()};
    return world.unwound(sample).find("signal") != std::string::npos;
  };
  CHECK(has_signal(stack.size() * 8));
  for (std::size_t bytes = 0; bytes < kMagic * 8; ++bytes) {
    CAPTURE(bytes);
    CHECK_FALSE(has_signal(bytes));
  }
}

TEST_CASE("hostile: a pointer to a signal's context that leads out of the stack is not followed",
          "[unwind][signal][hostile]") {
  UnwindWorld world({.target = kI386});
  std::vector<std::uint64_t> stack(64, 0);
  for (const std::uint64_t pointer :
       {std::uint64_t{0}, std::uint64_t{0xffff'ffff}, std::uint64_t{0xffff'fff0},
        std::uint64_t{kStack + 63 * 4}, std::uint64_t{kStack}, std::uint64_t{kStack + 8}}) {
    CAPTURE(pointer);
    std::fill(stack.begin(), stack.end(), pointer);
    const std::string text = world.unwound(world.thread(UnwindWorld::kJit, stack));
    CHECK(text.find("signal") == std::string::npos);
  }
}

}  // namespace perfmap::signal_return_test

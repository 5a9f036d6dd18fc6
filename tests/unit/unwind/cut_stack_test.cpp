// SPDX-License-Identifier: MIT
// Truncated copies of stacks: no frame is invented, and no byte after the copy is read.

#include <random>
#include <sys/mman.h>
#include <unistd.h>

#include "support/unwind_world.hpp"

namespace perfmap::cut_stack_test {
namespace {

using test::UnwindWorld;

constexpr std::uint64_t kRoot = 0x401150;

/// Bytes that end directly before an unreadable page.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::string_view bytes) : size_(bytes.size()) {
    page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    room_ = (size_ + page_ - 1) / page_ * page_ + page_;
    void* const place =
        ::mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(place != MAP_FAILED);
    begin_ = static_cast<char*>(place);
    REQUIRE(::mprotect(begin_ + room_, page_, PROT_NONE) == 0);
    std::copy(bytes.begin(), bytes.end(), begin_ + room_ - size_);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { ::munmap(begin_, room_ + page_); }
  std::string_view text() const { return {begin_ + room_ - size_, size_}; }

 private:
  std::size_t size_, page_ = 0, room_ = 0;
  char* begin_ = nullptr;
};

std::vector<UnwoundFrame> frames_of(const UnwindWorld& world, const UserSample& sample,
                                    StackEnd& end, const Unwinder::Options& options = {}) {
  std::vector<UnwoundFrame> frames;
  end = Unwinder(options).unwind(sample, world.space(), frames);
  return frames;
}

}  // namespace

TEST_CASE("a truncated stack gives the first frames of the whole stack and no others", "[unwind]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds()});
  const auto at = UnwindWorld::kStack;
  // CFA rules of the frames: rsp + 32; rbp + 16; rsp + 8; a PLT entry; the root.
  const std::vector<std::uint64_t> stack = {1, at + 48, 3,        0x401088, 5,
                                            6, 0,       0x401010, 0x401112, kRoot};
  UserSample whole = world.thread(0x401048, stack);
  StackEnd end = StackEnd::loop;
  const auto truth = frames_of(world, whole, end);
  REQUIRE(end == StackEnd::root);
  REQUIRE(truth.size() == 5);
  for (std::size_t size = 0; size < whole.stack.size(); ++size) {
    CAPTURE(size);
    const GuardedBytes cut(whole.stack.substr(0, size));
    UserSample sample = whole;
    sample.stack = cut.text();
    sample.is_stack_full = true;
    const auto found = frames_of(world, sample, end);
    CHECK(end == StackEnd::truncated);
    REQUIRE(found.size() < truth.size());
    CHECK(std::equal(found.begin(), found.end(), truth.begin()));
    sample.is_stack_full = false;
    CHECK(frames_of(world, sample, end) == found);
    CHECK(end != StackEnd::truncated);
    CHECK(end != StackEnd::root);
  }
}

TEST_CASE("a copy that ends at a page boundary before the next frame is truncated", "[unwind]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds(), .map = "700000 1000 f\n"});
  constexpr Address kPage = 4096;
  // rsp + 32 is the first word of the next page.
  const auto cut_at = [&](Address end, Address rbp = 0) {
    UserSample sample = world.thread(0x401048, {1, 2, 3});
    sample.registers.values[test::kRsp] = end - sample.stack.size();
    if (rbp != 0) {
      sample.registers.values[test::kRip] = UnwindWorld::kJit + 0x80;
      sample.registers.values[test::kRbp] = rbp;
    }
    StackEnd found = StackEnd::loop;
    frames_of(world, sample, found);
    return to_string(found);
  };
  const Address page = UnwindWorld::kStack + kPage;
  CHECK(cut_at(page) == "truncated");
  CHECK(cut_at(page - 8) == "bad-memory");  // the kernel never truncates a copy there
  CHECK(cut_at(page + 8) == "bad-memory");
  // Frame pointers count only up to the maximum size of a frame.
  CHECK(cut_at(page, page - 8) == "truncated");
  CHECK(cut_at(page, page + 0x8000) == "truncated");
  CHECK(cut_at(page, page + 0x200000) == "no-info");
  CHECK(cut_at(page, page - 0x8000) == "no-info");
  CHECK(cut_at(page + 16, page + 0x8000) == "no-info");
  // No frame pointers: a misaligned address, and an address of code, as at the bottom of a fiber.
  CHECK(cut_at(page, page + 0x8004) == "no-info");
  CHECK(cut_at(UnwindWorld::kJit - kPage, UnwindWorld::kJit - 0x80) == "truncated");
  CHECK(cut_at(UnwindWorld::kJit - kPage, UnwindWorld::kJit + 0x88) == "no-info");
}

TEST_CASE("with random registers and stacks, frames are in code, ascend and end",
          "[unwind][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::string code(0x1000, '\0');
  for (char& byte : code)
    byte = static_cast<char>("\x55\x48\x89\xe5\xc3\x5d\xff\x25\xe8\x90"[random() % 10]);
  UnwindWorld world({.frames = test::frames_of_all_kinds(),
                     .code = code,
                     .symbols = {{"f", 0x1400, 0x300}, {"g", 0x1500, 0x100}},
                     .map = "700000 100 a\n700100 ff00 b\n"});
  const auto address = [&]() -> std::uint64_t {
    switch (random() % 8) {
      case 0: return random();
      case 1: return UnwindWorld::kJit + random() % 0x10010;
      case 2:
      case 3: return UnwindWorld::kStack + random() % 0x800;
      case 4: return UnwindWorld::kStack + random() % 0x100 * 8;
      default: return UnwindWorld::kCode - 8 + random() % 0x1010;
    }
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> words(random() % 200);
    for (auto& word : words) word = address();
    UserSample sample = world.thread(address(), words);
    const GuardedBytes stack(sample.stack.substr(0, random() % (sample.stack.size() + 1)));
    sample.stack = stack.text();
    sample.is_stack_full = random() % 2 == 0;
    for (const unsigned number : {0u, 1u, 2u, 3u, 6u, 20u, 21u})
      sample.registers.values[number] = address();
    if (random() % 4 == 0) sample.registers.mask &= random();
    const Unwinder::Options options{50, random() % 2 == 0, random() % 2 == 0};
    StackEnd end = StackEnd::root;
    const auto frames = frames_of(world, sample, end, options);
    REQUIRE(frames.size() <= 50);
    for (std::size_t i = 1; i < frames.size(); ++i) {
      const Address pc = frames[i].pc;
      const bool in_file = pc - UnwindWorld::kCode <= 0x1000;
      REQUIRE((in_file || pc - UnwindWorld::kJit <= 0x10000));
      // Not for code that a signal interrupted: it may have used another stack.
      if (frames[i].is_return) REQUIRE(frames[i].sp > frames[i - 1].sp);
      REQUIRE((frames[i].source != FrameSource::scan || options.scan));
    }
  }
}

}  // namespace perfmap::cut_stack_test

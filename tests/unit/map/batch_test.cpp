// SPDX-License-Identifier: MIT
// Batched look-ups.

#include <algorithm>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "perfmap/index.hpp"
#include "support/catch.hpp"

namespace perfmap::batch_test {
namespace {

/// Space for addresses between two inaccessible pages.
class Guarded {
 public:
  Guarded() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const made = ::mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(made != MAP_FAILED);
    all_ = static_cast<char*>(made);
    REQUIRE(::mprotect(all_ + page_, page_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Guarded() { ::munmap(all_, 3 * page_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::size_t max() const { return page_ / sizeof(Address); }
  Address* first() { return reinterpret_cast<Address*>(all_ + page_); }
  Address* last(std::size_t count) { return first() + max() - count; }

 private:
  std::size_t page_;
  char* all_ = nullptr;
};

}  // namespace

TEST_CASE("a batch reads no address outside its span, in order or not", "[index]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(1000 + 10 * i) + " 8 f\n";
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "test.map"));
  Diagnostics ignored(1);
  const Index index(std::move(maps), Overlap::last, ignored);
  Guarded room;
  for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{64}, room.max()}) {
    for (Address* const asked : {room.first(), room.last(count)}) {
      for (const bool is_sorted : {true, false}) {
        for (std::size_t i = 0; i < count; ++i) asked[i] = 0x1000 + i * 7 % 0x700;
        if (is_sorted) std::sort(asked, asked + count);
        std::vector<EntryRef> hits(count);
        index.find_all({asked, count}, hits);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const EntryRef alone = index.find(asked[i]);
          wrong += bool(alone) != bool(hits[i]) || (alone && alone.offset() != hits[i].offset());
        }
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace perfmap::batch_test

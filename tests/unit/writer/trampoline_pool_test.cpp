// SPDX-License-Identifier: MIT
// Memory of trampolines: executable, never writable at the same time, and reused as late as
// possible.

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/sanitizer.hpp"
#include "support/scratch.hpp"
#include "writer/trampoline.hpp"

namespace perfmap::trampoline_pool_test {
namespace {

constexpr std::size_t kPlaces = TrampolinePool::kArenaSize / kTrampolineStride;

const TrampolineImage& image() {
  static const TrampolineImage made = image_of(x86_64_trampoline());
  return made;
}

/// The permissions of the page at an address, such as "r-xp".
std::string permissions(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string what;
    fields >> std::hex >> begin >> dash >> end >> what;
    if (wanted >= begin && wanted < end) return what;
  }
  return "unmapped";
}

}  // namespace

TEST_CASE("trampolines are executable and not writable") {
  char* place = nullptr;
  {
    TrampolinePool pool(image(), 0, nullptr);
    CHECK(pool.mapped_bytes() == 0);
    place = pool.take();
    REQUIRE(place != nullptr);
    CHECK(permissions(place) == "r-xp");
    CHECK(pool.mapped_bytes() == 64 * 1024);
    CHECK(std::string(place, kTrampolineStride) ==
          std::string(image().bytes.data(), image().bytes.size()));
  }
  CHECK(permissions(place) != "r-xp");
}

TEST_CASE("every place is used once, and a second arena leaves the first one executable") {
  TrampolinePool pool(image(), 0, nullptr);
  std::set<char*> places;
  char* const first = pool.take();
  places.insert(first);
  while (places.size() < kPlaces + 1) places.insert(pool.take());
  CHECK(pool.mapped_bytes() == 2 * TrampolinePool::kArenaSize);
  CHECK(permissions(first) == "r-xp");
}

TEST_CASE("freed places are reused only when the arena is full, oldest first") {
  TrampolinePool pool(image(), 0, nullptr);
  std::vector<char*> places;
  for (std::size_t i = 0; i < 3; ++i) places.push_back(pool.take());
  pool.give_back(places[2]);
  pool.give_back(places[0]);
  for (std::size_t i = 3; i < kPlaces; ++i) {
    char* const place = pool.take();
    CHECK((place != places[0] && place != places[2]));
  }
  CHECK(pool.take() == places[2]);
  CHECK(pool.take() == places[0]);
  CHECK(pool.mapped_bytes() == TrampolinePool::kArenaSize);
}

TEST_CASE("take() fails with ENOMEM if there is no memory for an arena", "[limits]") {
  if (test::has_address_sanitizer()) return;  // its allocator aborts without memory
  const pid_t child = ::fork();
  if (child == 0) {
    image();
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    TrampolinePool pool(image(), 0, nullptr);
    errno = 0;
    ::_exit(pool.take() == nullptr && errno == ENOMEM ? 0 : 1);
  }
  CHECK(test::wait_for(child) == 0);
}

}  // namespace perfmap::trampoline_pool_test

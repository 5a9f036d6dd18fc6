// SPDX-License-Identifier: MIT
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::module_cache_test {
namespace {

namespace fs = std::filesystem;
using test::ElfBytes;
using test::Scratch;

std::string file_of(std::string_view build_id, const std::string& function = "f") {
  ElfBytes elf;
  if (!build_id.empty()) elf.build_id(build_id);
  return elf.symbols({{function, 0x1000, 0x10}}).text();
}

std::shared_ptr<const Module> take(ModuleCache::Answer answer) {
  REQUIRE(answer);
  return *std::move(answer);
}

}  // namespace

TEST_CASE("a file is opened once, even under several paths", "[module-cache]") {
  const Scratch scratch;
  const std::string path = scratch.write("a.so", file_of(""));
  fs::create_hard_link(path, scratch / "b.so");
  fs::create_symlink(path, scratch / "c.so");
  ModuleCache cache;
  const auto module = take(cache.open(path));
  CHECK(take(cache.open(scratch / "b.so")) == module);
  CHECK(take(cache.open(scratch / "c.so")) == module);
  CHECK(take(cache.open("/b.so", scratch.path())) == module);
  CHECK(take(cache.open(*Input::open(path))) == module);
  const FileFacts& facts = module->facts();
  CHECK(cache.find({facts.device, facts.inode, facts.mtime_ns, facts.size}) == module);
  CHECK(cache.find({facts.device, facts.inode, facts.mtime_ns + 1, facts.size}) == nullptr);
  CHECK(cache.statistics().opened == 1);
  CHECK(cache.statistics().hits == 5);
  CHECK(cache.statistics().modules == 1);
  CHECK(cache.statistics().bytes >= module->bytes_held());
}

TEST_CASE("a file that was replaced or modified is opened again", "[module-cache]") {
  const Scratch scratch;
  const std::string path = scratch.write("a.so", file_of("", "old"));
  ModuleCache cache;
  const auto old = take(cache.open(path));
  fs::rename(scratch.write("new", file_of("", "new")), path);
  const auto fresh = take(cache.open(path));
  CHECK(old->find_symbol(0x1000)->name == "old");
  CHECK(fresh->find_symbol(0x1000)->name == "new");
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1));
  CHECK(take(cache.open(path)) != fresh);
}

TEST_CASE(
    "copies with equal build ids share a module if their bytes are equal or build ids are trusted",
    "[module-cache]") {
  const Scratch scratch;
  const bool trust = GENERATE(false, true);
  ModuleCache cache(ModuleCacheOptions{.trust_build_ids = trust});
  const auto first = take(cache.open(scratch.write("1/libc.so", file_of("abc"))));
  CHECK(take(cache.open(scratch.write("2/libc.so", file_of("abc")))) == first);
  CHECK(take(cache.open(Input::from_text(file_of("abc"), "[vdso]"))) == first);
  CHECK(cache.statistics().shared == 2);
  const auto forged = take(cache.open(scratch.write("3/libc.so", file_of("abc", "forged"))));
  CHECK((forged == first) == trust);
  CHECK(take(cache.open(scratch / "3/libc.so")) == forged);
  CHECK(cache.find_build_id("abc") != nullptr);
  CHECK(cache.find_build_id("") == nullptr);
  CHECK(cache.find_build_id("abd") == nullptr);
}

TEST_CASE("a file that is not ELF is read once, a missing file is retried", "[module-cache]") {
  const Scratch scratch;
  const std::string path = scratch.write("a.txt", "text");
  ModuleCache cache;
  CHECK(cache.open(path).error().code == Errc::bad_format);
  CHECK(cache.open(path).error().code == Errc::bad_format);
  CHECK(cache.statistics().opened == 1);
  CHECK(cache.statistics().hits == 1);
  CHECK(cache.open(scratch / "b").error().code == Errc::not_found);
  CHECK(cache.statistics().failures == 3);
  scratch.write("b", file_of(""));
  CHECK(cache.open(scratch / "b"));
  CHECK(cache.statistics().modules == 1);
}

TEST_CASE("the least recently used module is evicted unless it is in use", "[module-cache]") {
  const Scratch scratch;
  const std::uint64_t each = [&] {
    ModuleCache one;
    take(one.open(scratch.write("size", file_of("")))).reset();
    return one.statistics().bytes;
  }();
  ModuleCache cache(ModuleCacheOptions{.max_bytes = 3 * each + each / 2});
  const auto path = [&](int i) { return scratch / ("f" + std::to_string(i)); };
  for (int i = 0; i < 6; ++i) scratch.write("f" + std::to_string(i), file_of(""));
  const auto held = take(cache.open(path(0)));
  take(cache.open(path(1)));
  take(cache.open(path(2)));
  take(cache.open(path(1)));
  take(cache.open(path(3)));
  CHECK(cache.statistics().evictions == 1);
  CHECK(cache.statistics().bytes <= 3 * each + each / 2);
  const std::uint64_t before = cache.statistics().opened;
  take(cache.open(path(0)));
  take(cache.open(path(1)));
  take(cache.open(path(3)));
  CHECK(cache.statistics().opened == before);
  take(cache.open(path(2)));
  CHECK(cache.statistics().opened == before + 1);

  cache.trim(0);
  CHECK(cache.statistics().modules == 1);
  CHECK(held->find_symbol(0x1000)->name == "f");
  CHECK(take(cache.open(path(0))) == held);
}

TEST_CASE("concurrent requests open each file once", "[module-cache]") {
  const Scratch scratch;
  constexpr int kFiles = 20;
  for (int i = 0; i < kFiles; ++i) {
    scratch.write("f" + std::to_string(i), file_of("id" + std::to_string(i)));
    scratch.write("copy" + std::to_string(i), file_of("id" + std::to_string(i)));
  }
  ModuleCache cache;
  std::atomic<int> wrong{0};
  const auto work = [&] {
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < kFiles; ++i) {
        const auto one = cache.open(scratch / ("f" + std::to_string(i)));
        const auto copy = cache.open(scratch / ("copy" + std::to_string(i)));
        if (!one || !copy || *one != *copy || (*one)->find_symbol(0x1001)->name != "f") ++wrong;
        if (one && (*one)->demangled(*(*one)->find_symbol(0x1001)) != "f") ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.statistics().opened == 2 * kFiles);
  CHECK(cache.statistics().modules == kFiles);
}

}  // namespace perfmap::module_cache_test

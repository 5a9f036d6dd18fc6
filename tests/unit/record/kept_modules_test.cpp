// SPDX-License-Identifier: MIT
// Copies of ELF files in a recording directory.

#include <filesystem>
#include <sys/stat.h>

#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::kept_modules_test {
namespace {

using test::ElfBytes;
using test::Scratch;

const auto kNobody = [](uid_t) { return false; };

/// A directory of a recording that began before the files were written, and files to copy.
struct World {
  World() : directory(RecordingDirectory::create(scratch / "rec").value()), keeper(directory, 0) {}

  std::shared_ptr<const Module> write(const std::string& name, const std::string& build_id,
                                      std::size_t padding = 0) {
    ElfBytes elf;
    if (!build_id.empty()) elf.build_id(build_id);
    scratch.write(name, elf.symbols({{"f", 0x1000, 0x10}}).text() + std::string(padding, 'x'));
    return Module::open(scratch / name).value();
  }
  /// `path` is where a process had mapped it.
  void add(const std::string& path, const std::shared_ptr<const Module>& module,
           std::uint64_t inode = 0) {
    MappedFile file = classify_mapping(path);
    file.inode = inode;
    keeper.add(file, module);
    keeper.mark(path, std::string(module->build_id()));
  }
  std::vector<std::string> copied() const {
    std::vector<std::string> paths;
    for (const RecordedModule& one : keeper.modules()) paths.push_back(one.source);
    return paths;
  }

  Scratch scratch;
  RecordingDirectory directory;
  ModuleKeeper keeper;
};

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("ELF files are copied once, by their build IDs", "[record]") {
  World world;
  const auto app = world.write("app", "0123456789");
  world.add("/home/app", app);
  world.add("/container/app", app);
  world.add("/home/plain", world.write("plain", ""));
  const auto unused = world.write("unused", "unused0000");
  world.keeper.add(classify_mapping("/home/unused"), unused);
  world.keeper.write({}, kNobody);
  const auto& modules = world.keeper.modules();
  REQUIRE(modules.size() == 2);
  CHECK(modules[0].source == "/home/plain");  // the smaller one
  CHECK(modules[0].path == "elf-unknown-0");
  CHECK(modules[1].path == "elf-30313233343536373839");
  CHECK(modules[1].build_id == "0123456789");
  CHECK(test::read_file(world.scratch / ("rec/" + modules[1].path)) == app->bytes());
}

TEST_CASE("files of the system come last, and large ones are left out", "[record]") {
  World world;
  const auto libc = world.write("libc", "libc000000");
  const std::uint64_t least = libc->bytes().size();
  world.add("/usr/lib/libc.so.6", libc);
  world.add("/lib64/libbig.so", world.write("libbig", "libbig0000", 5000));
  world.add("/usr/local/bin/tool", world.write("tool", "tool000000", 100));
  world.add("/home/app", world.write("app", "app0000000", 5000));
  world.add("/home/huge", world.write("huge", "huge000000", 50'000));
  world.keeper.write({.max_bytes = 3 * least + 5100, .max_system_file = least}, kNobody);
  CHECK(world.copied() == Paths{"/usr/local/bin/tool", "/home/app", "/usr/lib/libc.so.6"});
  REQUIRE(world.keeper.too_large().size() == 1);
  CHECK(world.keeper.too_large()[0].source == "/home/huge");
}

TEST_CASE("a file that was replaced while it was recorded is not copied", "[record]") {
  World world;
  const auto app = world.write("app", "0123456789");
  world.add("/home/app", app, app->facts().inode + 1);
  world.add("/home/other", world.write("other", "other00000"), 0);
  world.keeper.write({}, kNobody);
  CHECK(world.copied() == Paths{"/home/other"});
}

TEST_CASE("root copies no file that a recorded process could not read", "[record]") {
  if (::geteuid() != 0) return test::skip("only root can make files of other users");
  const uid_t owner = GENERATE(uid_t{0}, uid_t{65534});
  World world;
  const auto add = [&](const std::string& name, mode_t mode) {
    world.write(name, name + "00000000");
    REQUIRE(::chown((world.scratch / name).c_str(), owner, owner) == 0);
    REQUIRE(::chmod((world.scratch / name).c_str(), mode) == 0);
    world.add("/home/" + name, Module::open(world.scratch / name).value());
  };
  add("private", 0711);
  add("public", 0755);
  const bool ran_as_owner = GENERATE(false, true);
  world.keeper.write({}, [&](uid_t user) { return ran_as_owner && user == owner; });
  CHECK(world.copied().size() == (ran_as_owner ? 2 : 1));
}

}  // namespace perfmap::kept_modules_test

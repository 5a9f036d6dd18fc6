// SPDX-License-Identifier: MIT
#include <csignal>
#include <filesystem>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::debug_files_test {
namespace {

namespace fs = std::filesystem;
using test::ElfBytes;
using test::Scratch;

std::uint32_t checksum(const std::string& bytes) {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 0);
}

std::string stripped(std::string_view build_id) { return ElfBytes().build_id(build_id).text(); }

std::string debug_of(std::string_view build_id, const std::string& function = "hidden") {
  ElfBytes elf;
  if (!build_id.empty()) elf.build_id(build_id);
  return elf.symbols({{function, 0x1000, 0x10, STT_FUNC, STB_LOCAL}}).text();
}

std::shared_ptr<const Module> open(const std::string& path, const ModuleFiles& files) {
  auto module = Module::open(path, files);
  REQUIRE(module);
  return *module;
}

std::string name_of(const Module& module) {
  const auto symbol = module.find_symbol(0x1004);
  return symbol ? std::string(symbol->name) : "-";
}

constexpr char kIdPath[] = "/.build-id/61/6263.debug";  // of "abc"

}  // namespace

TEST_CASE("a debug file is found by build id and used only if it has the same one",
          "[debug-files]") {
  const Scratch scratch;
  const std::string path = scratch.write("bin/prog", stripped("abc"));
  CHECK(open(path, {"", {scratch / "debug"}})->debug_file() == nullptr);
  scratch.write("debug" + std::string(kIdPath), debug_of("abd"));
  CHECK(open(path, {"", {scratch / "debug"}})->debug_file() == nullptr);
  scratch.write("debug" + std::string(kIdPath), debug_of("abc"));
  const auto module = open(path, {"", {scratch / "none", scratch / "debug"}});
  REQUIRE(module->debug_file() != nullptr);
  CHECK(module->debug_file()->path() == scratch / "debug" + kIdPath);
  CHECK(name_of(*module) == "hidden");
  CHECK(name_of(*open(path, {})) == "-");
}

TEST_CASE("a debug link is searched next to the file, in .debug and in debug directories",
          "[debug-files]") {
  const std::string place = GENERATE("bin/prog.debug", "bin/.debug/prog.debug", "debug");
  CAPTURE(place);
  const Scratch scratch;
  const std::string debug = debug_of("");
  const std::string path =
      scratch.write("bin/prog", ElfBytes().debug_link("prog.debug", checksum(debug)).text());
  const std::string name = place == "debug" ? "debug" + scratch.path() + "/bin/prog.debug" : place;
  scratch.write(name, debug);
  const ModuleFiles files{"", {scratch / "debug"}};
  CHECK(name_of(*open(path, files)) == "hidden");
  scratch.write(name, debug_of("", "another"));
  CHECK(name_of(*open(path, files)) == "-");
}

TEST_CASE("the build id of a debug file overrides the checksum of the debug link",
          "[debug-files]") {
  const Scratch scratch;
  const std::string path =
      scratch.write("prog", ElfBytes().build_id("abc").debug_link("prog.debug", 1).text());
  const ModuleFiles files{"", {scratch / "debug"}};
  scratch.write("prog.debug", debug_of("abc"));
  CHECK(name_of(*open(path, files)) == "hidden");
  scratch.write("prog.debug", debug_of("xyz"));
  CHECK(name_of(*open(path, files)) == "-");
}

TEST_CASE("a debug link must be a plain file name other than the file's own", "[debug-files]") {
  const std::string link = GENERATE("../prog.debug", "/etc/passwd", "", ".", "..", "prog");
  CAPTURE(link);
  const Scratch scratch;
  const std::string path =
      scratch.write("bin/prog", ElfBytes().build_id("abc").debug_link(link, 0).text());
  scratch.write("prog.debug", debug_of("abc"));
  CHECK(open(path, {"", {scratch / "debug"}})->debug_file() == nullptr);
}

TEST_CASE("links do not lead out of the root", "[debug-files]") {
  const Scratch scratch;
  const std::string outside = scratch.write("outside/secret", debug_of("abc"));
  scratch.write("root/bin/prog", stripped("abc"));
  fs::create_directories(scratch / "root/usr/lib/debug/.build-id/61");
  fs::create_symlink(outside, scratch / ("root/usr/lib/debug" + std::string(kIdPath)));
  fs::create_symlink("../../outside/secret", scratch / "root/bin/link");
  const ModuleFiles files{scratch / "root", {"/usr/lib/debug-of-nobody", "/usr/lib/debug"}};
  CHECK(open("/bin/prog", files)->debug_file() == nullptr);
  CHECK_FALSE(Module::open("/bin/link", files));
  CHECK_FALSE(Module::open("/../outside/secret", files));

  // A link that stays below the root is followed.
  scratch.write("root/store/x", debug_of("abc"));
  fs::remove(scratch / ("root/usr/lib/debug" + std::string(kIdPath)));
  fs::create_symlink("/store/x", scratch / ("root/usr/lib/debug" + std::string(kIdPath)));
  const auto module = open("/bin/prog", files);
  CHECK(name_of(*module) == "hidden");
  CHECK(module->path() == "/bin/prog");
}

TEST_CASE("with a root, the host's debug directories are searched last", "[debug-files]") {
  const Scratch scratch;
  scratch.write("root/bin/prog", stripped("abc"));
  scratch.write("debug" + std::string(kIdPath), debug_of("abc"));
  const ModuleFiles files{scratch / "root", {scratch / "debug"}};
  CHECK(name_of(*open("/bin/prog", files)) == "hidden");
}

TEST_CASE("FIFOs and directories are refused without blocking", "[debug-files]") {
  const Scratch scratch;
  const std::string fifo = scratch / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  ::alarm(20);
  CHECK(Module::open(fifo).error().code == Errc::refused);
  CHECK(Module::open("/fifo", {scratch.path(), {}}).error().code == Errc::refused);
  CHECK_FALSE(Module::open(scratch.path()));
  CHECK(Module::open("/dev/null").error().code == Errc::refused);
  CHECK(Module::open("/null", {"/dev", {}}).error().code == Errc::refused);
  const std::string path = scratch.write("prog", stripped("abc"));
  fs::create_directories(scratch / "debug/.build-id/61");
  REQUIRE(::mkfifo((scratch / "debug" + kIdPath).c_str(), 0600) == 0);
  CHECK(open(path, {"", {scratch / "debug"}})->debug_file() == nullptr);
  ::alarm(0);
}

TEST_CASE("the alternate debug file is found by build id, then by path", "[debug-files]") {
  const Scratch scratch;
  TargetBytes link(Target{});
  link.c_string("../common/shared.debug").raw("abc");
  ElfBytes elf;
  elf.section({".gnu_debugaltlink", SHT_PROGBITS, 0, 0, std::string(link.view())});
  const std::string path = scratch.write("bin/prog", elf.text());
  const ModuleFiles files{"", {scratch / "debug"}};
  CHECK(open(path, files)->alternate_file() == nullptr);
  scratch.write("common/shared.debug", debug_of("abx"));
  CHECK(open(path, files)->alternate_file() == nullptr);
  scratch.write("common/shared.debug", debug_of("abc"));
  CHECK(open(path, files)->alternate_file() != nullptr);
  scratch.write("debug" + std::string(kIdPath), debug_of("abc"));
  CHECK(open(path, files)->alternate_file()->path() == scratch / "debug" + kIdPath);
}

TEST_CASE("symbols packed with xz are unpacked", "[debug-files]") {
  const std::string inner = debug_of("");
  std::string packed(inner.size() + 4096, '\0');
  std::size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr,
                                  reinterpret_cast<const std::uint8_t*>(inner.data()), inner.size(),
                                  reinterpret_cast<std::uint8_t*>(packed.data()), &size,
                                  packed.size()) == LZMA_OK);
  const bool cut = GENERATE(false, true);
  // Bytes after the stream are ignored.
  packed = cut ? packed.substr(0, size / 2) : packed.substr(0, size) + "behind";
  ElfBytes elf;
  elf.symbols({{"exported", 0x1020, 8}}, SHT_DYNSYM);
  elf.section({".gnu_debugdata", SHT_PROGBITS, 0, 0, packed});
  const auto module = *Module::open(Input::from_text(elf.text(), "x"));
  CHECK(name_of(*module) == (cut ? "-" : "hidden"));
  CHECK(module->find_symbol(0x1020)->name == "exported");
  CHECK(module->bytes_held() > module->bytes().size() + (cut ? 0 : inner.size()));
}

TEST_CASE("a module keeps no file descriptor open", "[debug-files]") {
  const auto count = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = count();
  std::vector<std::shared_ptr<const Module>> held;
  for (int i = 0; i < 20; ++i) held.push_back(open("/proc/self/exe", {"", {"/usr/lib/debug"}}));
  CHECK(held.back()->bytes().size() > 256 * 1024);
  CHECK(count() == before);
}

}  // namespace perfmap::debug_files_test

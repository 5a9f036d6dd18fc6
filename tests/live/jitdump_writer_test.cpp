// The writer of jitdumps: the bytes it makes, and what is in the file after it was killed, crowded,
// out of room, interrupted, forked.

#include "perfmap/jitdump_writer.hpp"

#include <atomic>
#include <cerrno>
#include <elf.h>
#include <fcntl.h>
#include <optional>
#include <set>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::DumpBytes;
using test::read_file;
using test::Scratch;
using test::wait_for;

/// A record and what it says, with bytes of its own.
struct Seen {
  JitRecordKind kind;
  std::uint64_t time;
  std::uint64_t index;
  std::uint32_t tid;
  std::string name;
  std::string code;
};

struct Contents {
  std::optional<JitdumpHeader> header;
  std::vector<Seen> records;
  std::uint64_t lost = 0;

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Seen& seen : records) {
      if (seen.kind == JitRecordKind::load) all.push_back(seen.name);
    }
    return all;
  }
};

Contents contents_of(const std::string& path) {
  Contents contents;
  const Jitdump dump(Input::from_text(read_file(path), path));
  contents.header = dump.header();
  Diagnostics problems(0);
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(problems)) {
    Seen seen{static_cast<JitRecordKind>(record->id), record->time, 0, 0, {}, {}};
    if (const auto load = decode_load(*record)) {
      seen.index = load->code_index;
      seen.tid = load->tid;
      seen.name = load->name;
      seen.code = load->code;
      CHECK(load->padding.empty());
    }
    contents.records.push_back(seen);
  }
  contents.lost = reader.lost_bytes();
  return contents;
}

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::string own_name(pid_t pid) { return "jit-" + std::to_string(pid) + ".dump"; }
std::string own_path(const Scratch& scratch) { return scratch / own_name(::getpid()); }

/// Options for a dump that no process runs by.
JitdumpOptions quiet() { return {.pid = 42, .marker = false, .close_record = false}; }

std::string name_of(int writer, int entry) {
  return "entry " + std::to_string(entry) + " of writer " + std::to_string(writer);
}
const std::string kCode(48, '\xc3');
JitFunction function_of(std::string_view name) {
  return {.start = 0x1000, .size = kCode.size(), .name = name, .code = kCode};
}

/// "…-r-xp … PATH" in /proc/self/maps.
bool is_mapped_for_execution(const std::string& path) {
  for (const std::string& line : test::lines_of(read_file("/proc/self/maps"))) {
    if (line.ends_with(path) && line.find(" r-xp ") != line.npos) return true;
  }
  return false;
}

void sets_time_back(const std::string& path) {
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("every record is the bytes that perf's structs say", "[live][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "jit-42.dump";
  const std::uint64_t before = now();
  const std::vector<LineRecord> lines = {{0x7f0000001000, 3, 7, "/src/a.js", false},
                                         {0x7f0000001004, 4, 0, "/src/a.js", false}};
  {
    auto writer = JitdumpWriter::open(path, {.marker = false});
    REQUIRE(writer);
    const auto first = writer->load({.start = 0x7f0000001000,
                                     .size = 6,
                                     .name = "first",
                                     .code = "abcdef",
                                     .lines = lines,
                                     .unwinding = {"frame", "header", 16},
                                     .time = 1000});
    REQUIRE(first);
    CHECK(*first == 1);
    CHECK(writer->load({.start = 8, .size = 0, .name = "empty", .time = 1001}).value() == 2);
    REQUIRE(writer->move(1, 0x7f0000001000, 0x7f0000002000, 6));
    REQUIRE(writer->close());
  }
  const std::string bytes = read_file(path);
  const Jitdump dump(Input::from_text(bytes, path));
  REQUIRE(dump.header());
  CHECK(dump.header()->timestamp >= before);
  CHECK(dump.header()->timestamp <= now());
#ifdef __x86_64__
  CHECK(dump.header()->elf_mach == EM_X86_64);
#endif
  const Contents contents = contents_of(path);
  REQUIRE(contents.records.size() == 6);
  const std::uint64_t moved = contents.records[4].time;
  const std::uint64_t closed = contents.records[5].time;
  CHECK(moved >= before);
  CHECK(closed >= moved);
  DumpBytes expected;
  expected.header({.elf_mach = dump.header()->elf_mach, .timestamp = dump.header()->timestamp});
  // Padded to 8, and the padding counted.
  expected.debug_info(1000, 0x7f0000001000,
                      {{0x7f0000001000, 3, 7, "/src/a.js"}, {0x7f0000001004, 4, 0, "/src/a.js"}},
                      4);
  expected.unwinding(1000, "frameheader", 6, 16, 5);
  expected.prefix(0, 56 + 6 + 6, 1000).u32(42).u32(42).u64(0x7f0000001000).u64(0x7f0000001000);
  expected.u64(6).u64(1).raw({"first\0abcdef", 12});
  expected.prefix(0, 56 + 6, 1001).u32(42).u32(42).u64(8).u64(8).u64(0).u64(2).raw({"empty\0", 6});
  expected.prefix(1, 64, moved).u32(42).u32(42).u64(0x7f0000002000).u64(0x7f0000001000);
  expected.u64(0x7f0000002000).u64(6).u64(1).close(closed);
  CHECK(bytes == expected.text());
}

TEST_CASE("a process's own dump is private, mapped for execution and named for perf",
          "[live][jitdump]") {
  const Scratch scratch;
  const std::string path = own_path(scratch);
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  CHECK(writer->path() == path);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(is_mapped_for_execution(path));
  const std::uint64_t before = now();
  REQUIRE(writer->load(function_of("function")));
  REQUIRE(writer->close());
  CHECK(!is_mapped_for_execution(path));
  CHECK(writer->load(function_of("late")).error().sys_errno == EBADF);
  const Contents contents = contents_of(path);
  CHECK(contents.header->pid == static_cast<std::uint32_t>(::getpid()));
  REQUIRE(contents.records.size() == 2);
  CHECK(contents.records[0].time >= before);
  CHECK(contents.records[0].tid == static_cast<std::uint32_t>(::gettid()));
  CHECK(contents.records[0].code == kCode);
  CHECK(contents.records[1].kind == JitRecordKind::close);
}

TEST_CASE("a descriptor of a dump is not inherited by programs", "[live][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  int found = 0;
  for (int fd = 3; fd < 64; ++fd) {
    char name[256] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), name, sizeof name - 1) < 0) continue;
    if (std::string_view(name) != writer->path()) continue;
    ++found;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(found == 1);
}

TEST_CASE("a process that opens its dump again goes on with it", "[live][jitdump]") {
  const Scratch scratch;
  for (int round = 1; round <= 3; ++round) {
    auto writer = JitdumpWriter::open_own(scratch.path());
    REQUIRE(writer);
    CHECK(writer->load(function_of("function")).value() == static_cast<std::uint64_t>(round));
  }
  const Contents contents = contents_of(own_path(scratch));
  CHECK(contents.lost == 0);
  REQUIRE(contents.records.size() == 4);  // one CLOSE, at the end
  CHECK(contents.records[3].kind == JitRecordKind::close);
}

TEST_CASE("the dump of a former process of the same pid is left to its readers",
          "[live][jitdump]") {
  const Scratch scratch;
  const std::string path = own_path(scratch);
  const auto stale = GENERATE(as<std::string>(), "", "no dump at all",
                              DumpBytes().header({.pid = 7}).load(1, 2, "old", "code").text());
  scratch.write(own_name(::getpid()), stale);
  sets_time_back(path);
  const int reader = ::open(path.c_str(), O_RDONLY);
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer);
  REQUIRE(writer->load(function_of("new")));
  CHECK(contents_of(path).names() == std::vector<std::string>{"new"});
  struct stat status {};
  REQUIRE(::fstat(reader, &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(stale.size()));
  ::close(reader);
}

TEST_CASE("a dump that another engine of this process writes is let alone", "[live][jitdump]") {
  const Scratch scratch;
  // As CPython leaves them: wall-clock microseconds, or nothing yet.
  const auto text = GENERATE(as<std::string>(), "", "DTiJ",
                             DumpBytes().header({.timestamp = 1'700'000'000'000'000}).text());
  const std::string path = scratch.write(own_name(::getpid()), text);
  const auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(!writer);
  CHECK(writer.error().sys_errno == EBUSY);
  CHECK(read_file(path) == text);
}

TEST_CASE("links, directories and files of others are refused in /tmp", "[live][jitdump]") {
  const Scratch scratch;
  const std::string victim = scratch.write("victim", "precious");
  const std::string path = own_path(scratch);
  REQUIRE(::symlink(victim.c_str(), path.c_str()) == 0);
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == ELOOP);
  CHECK(JitdumpWriter::open(path, {.own_dump = true}).error().sys_errno == ELOOP);
  CHECK(JitdumpWriter::open(path).error().code == Errc::bad_format);  // as typed
  CHECK(read_file(victim) == "precious");
  ::unlink(path.c_str());
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  CHECK(!JitdumpWriter::open_own(scratch.path()));
  ::rmdir(path.c_str());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == EINVAL);
  ::unlink(path.c_str());
  scratch.write(own_name(::getpid()), "theirs");
  if (::chown(path.c_str(), 12345, 12345) != 0) {
    WARN("skipped in part: this user cannot give files away");
    return;
  }
  CHECK(JitdumpWriter::open_own(scratch.path()).error().sys_errno == EPERM);
  CHECK(read_file(path) == "theirs");
}

TEST_CASE("a dump of a path is appended to, behind its last whole record", "[live][jitdump]") {
  const Scratch scratch;
  const std::string whole =
      DumpBytes().header().load(1, 0x1000, "one", "code", 7).move(2, 1, 2, 3, 9).text();
  const auto tail = GENERATE(as<std::string>(), "", DumpBytes().close(3).text(),
                             DumpBytes().load(3, 4, "torn", "code").text().substr(0, 60));
  const std::string path = scratch.write("any name", whole + tail);
  auto writer = JitdumpWriter::open(path, {.marker = false, .close_record = false});
  REQUIRE(writer);
  CHECK(writer->load(function_of("two")).value() == 10);
  const Contents contents = contents_of(path);
  CHECK(contents.lost == 0);
  CHECK(contents.names() == std::vector<std::string>{"one", "two"});
  CHECK(read_file(path).starts_with(whole));
}

TEST_CASE("what is no dump of ours is not appended to", "[live][jitdump]") {
  const Scratch scratch;
  const auto text = GENERATE(
      as<std::string>(), "1000 10 a perf map\n", "DTiJ", DumpBytes().header({.flags = 1}).text(),
      DumpBytes().header({.version = 2}).text(), DumpBytes().header({.total_size = 400}).text(),
      DumpBytes().header({.pid = 43}).text(), DumpBytes(std::endian::big).header().text());
  const std::string path = scratch.write("x", text);
  const auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(!writer);
  CHECK(writer.error().code == Errc::bad_format);
  CHECK(read_file(path) == text);
}

TEST_CASE("a function that makes no sense is refused, and nothing of it written",
          "[live][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "x.dump";
  auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(writer);
  const std::vector<LineRecord> before = {{0xfff, 1, 0, "f", false}};
  const std::vector<LineRecord> behind = {{0x1031, 1, 0, "f", false}};
  const std::vector<LineRecord> falling = {{0x1004, 1, 0, "f", false}, {0x1000, 2, 0, "f", false}};
  std::vector<JitFunction> wrong(6, function_of("name"));
  wrong[0].lines = before;
  wrong[1].lines = behind;
  wrong[2].lines = falling;
  wrong[3].size = 5;
  wrong[4].unwinding = {"frame", "header", 10};
  wrong[5].start = UINT64_MAX - 10;
  for (const JitFunction& function : wrong) {
    const auto result = writer->load(function);
    REQUIRE(!result);
    CHECK(result.error().code == Errc::invalid_argument);
  }
  CHECK(writer->load({.start = 0x1000, .size = 33u << 20, .name = "x"}).error().sys_errno ==
        EINVAL);
  CHECK(read_file(path).size() == JitdumpHeader::kSize);
}

TEST_CASE("names are written as maps have them, or refused", "[live][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer);
  REQUIRE(writer->load(function_of("two\nlines")));
  REQUIRE(writer->load(function_of("f")));
  REQUIRE(writer->load(function_of({"nul\0x", 5})));
  CHECK(contents_of(scratch / "x.dump").names() ==
        std::vector<std::string>{"two\\x0alines", "[f]", "nul\\x00x"});
  JitdumpOptions strict = quiet();
  strict.names = NamePolicy::refuse;
  auto other = JitdumpWriter::open(scratch / "y.dump", strict);
  CHECK(other->load(function_of("two\nlines")).error().sys_errno == EILSEQ);
}

TEST_CASE("code that is not given is zeros, so that perf finds as many bytes as it is told",
          "[live][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  for (const std::uint64_t size : {1u, 65536u, 65537u, 32u << 20}) {
    REQUIRE(writer->load({.start = 0x1000, .size = size, .name = "unknown"}));
  }
  const Contents contents = contents_of(scratch / "x.dump");
  REQUIRE(contents.records.size() == 4);
  CHECK(contents.records[2].code == std::string(65537, '\0'));
  CHECK(contents.records[3].code.size() == 32u << 20);
}

TEST_CASE("one call writes the record and the map's line", "[live][jitdump]") {
  const Scratch scratch;
  auto map = MapWriter::open(scratch / "x.map");
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer->load(function_of("both"), &*map));
  CHECK(read_file(scratch / "x.map") == "1000 30 both\n");
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"both"});
  REQUIRE(map->close());
  const auto half = writer->load(function_of("dump alone"), &*map);
  REQUIRE(!half);
  CHECK(half.error().message.find("x.map") != std::string::npos);
}

TEST_CASE("records of a function stay together among threads, in order of their times",
          "[live][jitdump][tsan]") {
  const Scratch scratch;
  constexpr int kThreads = 6;
  constexpr int kEach = 300;
  auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
  REQUIRE(writer);
  std::vector<std::thread> threads;
  std::atomic<bool> good{true};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string file = "file" + std::to_string(t);
      const std::vector<LineRecord> lines = {{0x1000, t, 0, file, false}};
      for (int i = 0; i < kEach; ++i) {
        const std::string name = name_of(t, i);
        JitFunction function = function_of(name);
        function.lines = lines;
        function.unwinding = {"frame", "header", 0};
        if (!writer->load(function)) good = false;
        if (i % 10 == 0 && !writer->move(1, 0x1000, 0x2000, 4)) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good);
  const Contents contents = contents_of(scratch / "x.dump");
  CHECK(contents.lost == 0);
  std::set<std::uint64_t> indexes;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < contents.records.size(); ++i) {
    const Seen& seen = contents.records[i];
    REQUIRE(seen.time >= last);
    last = seen.time;
    if (seen.kind != JitRecordKind::debug_info) continue;
    REQUIRE(contents.records.at(i + 1).kind == JitRecordKind::unwinding_info);
    REQUIRE(contents.records.at(i + 2).kind == JitRecordKind::load);
    CHECK(indexes.insert(contents.records[i + 2].index).second);
  }
  CHECK(indexes.size() == kThreads * kEach);
}

TEST_CASE("a function whose load returned survives SIGKILL", "[live][jitdump]") {
  const Scratch scratch;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = JitdumpWriter::open(scratch / "x.dump", quiet());
    for (int i = 0; writer && writer->load(function_of(name_of(0, i))); ++i) {
      if (::write(ends[1], &i, sizeof i) != sizeof i) break;
    }
    ::_exit(1);
  }
  ::close(ends[1]);
  int last = -1;
  for (int i = 0; i < 300; ++i) REQUIRE(::read(ends[0], &last, sizeof last) > 0);
  ::kill(child, SIGKILL);
  CHECK(WIFSIGNALED(wait_for(child)));
  while (::read(ends[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
  }
  ::close(ends[0]);
  const std::vector<std::string> names = contents_of(scratch / "x.dump").names();
  REQUIRE(names.size() > static_cast<std::size_t>(last));
  for (int i = 0; i <= last; ++i) {
    REQUIRE(names[static_cast<std::size_t>(i)] == name_of(0, i));
  }
}

namespace {

/// Writes until it fails; then, once `make_room` has, once more. How many were written.
template <class MakeRoom>
int fill(JitdumpWriter& writer, int error, MakeRoom make_room) {
  for (int written = 0; written < 10'000; ++written) {
    const std::string name = name_of(0, written);
    JitFunction function = function_of(name);
    const std::vector<LineRecord> lines = {{0x1000, 1, 0, "file", false}};
    function.lines = lines;
    const auto result = writer.load(function);
    if (result) continue;
    if (result.error().sys_errno != error) return -1;
    make_room();
    return writer.load(function) ? written + 1 : -2;
  }
  return -3;
}

/// Nothing is torn, nothing lost, and no DEBUG_INFO without its LOAD.
void check_filled(const std::string& path, int written) {
  const Contents contents = contents_of(path);
  CHECK(contents.lost == 0);
  REQUIRE(written > 3);
  REQUIRE(contents.records.size() == 2 * static_cast<std::size_t>(written));
  for (int i = 0; i < written; ++i) {
    const Seen& load = contents.records[2 * static_cast<std::size_t>(i) + 1];
    CHECK(load.name == name_of(0, i));
    CHECK(load.index == static_cast<std::uint64_t>(i) + 1);
  }
}

}  // namespace

TEST_CASE("at the file size limit a function fails whole, and the next one is not torn",
          "[live][jitdump]") {
  const Scratch scratch;
  for (const rlim_t limit : {2000u, 2033u, 2100u, 2177u, 2222u}) {
    const std::string path = scratch / ("limited" + std::to_string(limit));
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit low{limit, RLIM_INFINITY};
      const rlimit high{RLIM_INFINITY, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &low);
      auto writer = JitdumpWriter::open(path, quiet());
      if (!writer) ::_exit(255);
      ::_exit(fill(*writer, EFBIG, [&] { ::setrlimit(RLIMIT_FSIZE, &high); }));
    }
    const int status = wait_for(child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) < 100);
    check_filled(path, WEXITSTATUS(status));
  }
}

TEST_CASE("on a full disk a function fails whole, and the next one is not torn",
          "[live][jitdump]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    WARN("skipped: a small tmpfs cannot be mounted here; the file size limit is tested instead");
    return;
  }
  {
    const std::string room = scratch.write("disk/room", std::string(5000, 'x'));
    auto writer = JitdumpWriter::open(disk + "/x.dump", quiet());
    REQUIRE(writer);
    const int written = fill(*writer, ENOSPC, [&] { ::unlink(room.c_str()); });
    check_filled(disk + "/x.dump", written);
    const std::string rest = scratch.write("disk/rest", std::string(20000, 'x'));
    CHECK(JitdumpWriter::open(disk + "/y.dump", quiet()).error().sys_errno == ENOSPC);
    CHECK(::access((disk + "/y.dump").c_str(), F_OK) != 0);
  }
  ::umount(disk.c_str());
}

TEST_CASE("a device without room is reported", "[live][jitdump]") {
  const auto writer = JitdumpWriter::open("/dev/full", quiet());
  REQUIRE(!writer);
  CHECK(writer.error().sys_errno == ENOSPC);
  CHECK(writer.error().message.find("/dev/full") != std::string::npos);
}

TEST_CASE("code that cannot be read fails, and nothing of its record stays", "[live][jitdump]") {
  const Scratch scratch;
  const std::string path = scratch / "x.dump";
  auto* const pages =
      static_cast<char*>(::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(::mprotect(pages + 4096, 4096, PROT_NONE) == 0);
  auto writer = JitdumpWriter::open(path, quiet());
  REQUIRE(writer->load(function_of("good")));
  const auto failed =
      writer->load({.start = 0x1000, .size = 8192, .name = "bad", .code = {pages, 8192}});
  REQUIRE(!failed);
  CHECK(failed.error().sys_errno == EFAULT);
  REQUIRE(writer->load(function_of("good again")));
  CHECK(contents_of(path).names() == std::vector<std::string>{"good", "good again"});
  CHECK(contents_of(path).lost == 0);
  ::munmap(pages, 8192);
}

TEST_CASE("behind half a record that cannot be cut off nothing is written", "[live][jitdump]") {
  const int fd = ::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fd >= 0);
  REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = JitdumpWriter::open(path, quiet());
    if (!writer || !writer->load(function_of("good"))) ::_exit(1);
    const rlimit low{300, RLIM_INFINITY};
    const rlimit high{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &low);
    if (writer->load(function_of(std::string(200, 'n'))).error().sys_errno != EFBIG) ::_exit(2);
    ::setrlimit(RLIMIT_FSIZE, &high);
    const auto next = writer->load(function_of("next"));
    ::_exit(!next && next.error().sys_errno == EIO ? 0 : 3);
  }
  CHECK(wait_for(child) == 0);
  const Contents contents = contents_of(path);
  CHECK(contents.names() == std::vector<std::string>{"good"});
  CHECK(contents.lost != 0);
  ::close(fd);
}

TEST_CASE("signals in the middle of writing a dump lose nothing", "[live][jitdump]") {
  const Scratch scratch;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  // A pipe takes what it has room for, and a signal ends the wait for more.
  std::string read;
  std::thread reader([&] {
    // The signals are for the thread that writes.
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    char block[512];
    for (;;) {
      const ssize_t got = ::read(ends[0], block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      read.append(block, static_cast<std::size_t>(got));
    }
  });
  const itimerval often{{0, 200}, {0, 200}};
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  int written = 0;
  {
    auto writer = JitdumpWriter::to_descriptor(ends[1], "pipe", quiet());
    ::close(ends[1]);
    REQUIRE(writer);
    for (int i = 0; i < 2000; ++i) written += writer->load(function_of(name_of(1, i))) ? 1 : 0;
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  reader.join();
  ::close(ends[0]);
  CHECK(written == 2000);
  const Contents contents = contents_of(scratch.write("read.dump", read));
  CHECK(contents.names().size() == 2000);
  CHECK(contents.lost == 0);
}

TEST_CASE("a dump grows no further than its cap", "[live][jitdump]") {
  const Scratch scratch;
  JitdumpOptions options = quiet();
  options.most_bytes = 200;
  auto writer = JitdumpWriter::open(scratch / "x.dump", options);
  REQUIRE(writer->load(function_of("one")));
  CHECK(writer->load(function_of("two")).error().sys_errno == EFBIG);
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"one"});
}

TEST_CASE("a child writes a dump of its own, and its parent's is as it was", "[live][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path());
  REQUIRE(writer->load(function_of("parent")));
  const std::string before = read_file(own_path(scratch));
  const pid_t child = ::fork();
  if (child == 0) {
    if (!writer->load(function_of("child"))) ::_exit(1);
    if (is_mapped_for_execution(own_name(::getppid()))) ::_exit(2);
    if (!is_mapped_for_execution(own_name(::getpid()))) ::_exit(3);
    ::_exit(writer->close() ? 0 : 4);
  }
  const pid_t idle = ::fork();
  if (idle == 0) ::_exit(writer->close() ? 0 : 1);
  CHECK(wait_for(child) == 0);
  CHECK(wait_for(idle) == 0);
  CHECK(read_file(own_path(scratch)) == before);
  CHECK(::access((scratch / own_name(idle)).c_str(), F_OK) != 0);
  const Contents contents = contents_of(scratch / own_name(child));
  CHECK(contents.header->pid == static_cast<std::uint32_t>(child));
  CHECK(contents.names() == std::vector<std::string>{"child"});
  CHECK(contents.records[0].tid == static_cast<std::uint32_t>(child));
  CHECK(contents.records[0].index == 1);
  CHECK(writer->load(function_of("parent again")).value() == 2);
}

TEST_CASE("a child cannot write a dump that was opened by its path", "[live][jitdump]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open(scratch / "x.dump", {.pid = 42});
  const pid_t child = ::fork();
  if (child == 0) {
    const auto result = writer->load(function_of("child"));
    ::_exit(!result && result.error().sys_errno == EBADF && writer->close() ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  REQUIRE(writer->load(function_of("parent")));
  CHECK(contents_of(scratch / "x.dump").names() == std::vector<std::string>{"parent"});
}

}  // namespace perfmap

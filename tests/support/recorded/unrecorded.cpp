// Code made at run time in memory whose mapping a recording does not contain or misses in part:
// unrecorded MILLISECONDS SHAPE SOURCE. It calls a loop next to it, and `spin` of this program.
// SHAPE:
//   plain     anonymous memory
//   moved     moved by mremap() to an address where perf saw no mapping
//   late      the same, and made executable there
//   second    a second mapping of shared memory, made by mremap()
//   memfd     a memfd that is mapped twice, writable and executable
//   shm       a file below /dev/shm, mapped likewise
//   deleted   the same, with the file deleted afterwards
// SOURCE: what names it: `map`, `dump`, or `both`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t kSize = 8192;

std::uint64_t now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// push rbp; mov rbp, rsp; mov rax, rdi; 1: dec rax; jne 1b; pop rbp; ret
constexpr unsigned char kLoop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                   0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
/// push rbp; mov rbp, rsp; call rsi; nop; pop rbp; ret
constexpr unsigned char kCaller[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x90, 0x5d, 0xc3};
constexpr std::size_t kCallerAt = 4096 + 64;

using Loop = long (*)(long);
using Caller = long (*)(long, Loop);

unsigned char* map(std::size_t size, int access, int flags, int file) {
  void* const place = ::mmap(nullptr, size, access, flags, file, 0);
  if (place == MAP_FAILED) fail("mmap");
  return static_cast<unsigned char*>(place);
}

void write_code(unsigned char* place) {
  std::memcpy(place, kLoop, sizeof kLoop);
  std::memcpy(place + kCallerAt, kCaller, sizeof kCaller);
}

void protect(unsigned char* place, int access) {
  if (::mprotect(place, kSize, access) != 0) fail("mprotect");
}

/// In the middle of a large inaccessible region, far from other mappings.
unsigned char* free_place() {
  unsigned char* const place =
      map(std::size_t{1} << 24, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  return place + (std::size_t{1} << 23);
}

unsigned char* move(unsigned char* from, std::size_t size) {
  void* const to =
      ::mremap(from, size, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, static_cast<void*>(free_place()));
  if (to == MAP_FAILED) fail("mremap");
  return static_cast<unsigned char*>(to);
}

unsigned char* twice(int file) {
  if (file < 0 || ::ftruncate(file, kSize) != 0) fail("file");
  write_code(map(kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file));
  return map(kSize, PROT_READ | PROT_EXEC, MAP_SHARED, file);
}

unsigned char* in_anonymous(const std::string& shape) {
  const int kind = shape == "second" ? MAP_SHARED : MAP_PRIVATE;
  unsigned char* const place = map(kSize, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1);
  write_code(place);
  if (shape != "late") protect(place, PROT_READ | PROT_EXEC);
  if (shape == "plain") return place;
  unsigned char* const moved = move(place, shape == "second" ? 0 : kSize);
  if (shape == "late") protect(moved, PROT_READ | PROT_EXEC);
  return moved;
}

unsigned char* make_code(const std::string& shape) {
  if (shape == "memfd") return twice(::memfd_create("code", 0));
  if (shape != "shm" && shape != "deleted") return in_anonymous(shape);
  const std::string path = "/dev/shm/code-" + std::to_string(::getpid());
  unsigned char* const place = twice(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (shape == "deleted") ::unlink(path.c_str());
  return place;
}

class Dump {
 public:
  Dump() : file_(std::fopen(name().c_str(), "w+")) {
    if (file_ == nullptr) fail("dump");
    u32(0x4A695444), u32(1), u32(40), u32(62), u32(0);
    u32(static_cast<std::uint32_t>(::getpid())), u64(now()), u64(0);
    std::fflush(file_);
    map(4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, ::fileno(file_));
  }
  ~Dump() { std::fclose(file_); }
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;

  void load(const unsigned char* code, std::size_t size, const std::string& name) {
    const auto at = reinterpret_cast<std::uint64_t>(code);
    u32(0), u32(static_cast<std::uint32_t>(56 + name.size() + 1 + size)), u64(now());
    u32(static_cast<std::uint32_t>(::getpid())), u32(static_cast<std::uint32_t>(::getpid()));
    u64(at), u64(at), u64(size), u64(++index_);
    std::fwrite(name.c_str(), 1, name.size() + 1, file_);
    std::fwrite(code, 1, size, file_);
  }

 private:
  static std::string name() { return "jit-" + std::to_string(::getpid()) + ".dump"; }
  void u32(std::uint32_t value) { std::fwrite(&value, sizeof value, 1, file_); }
  void u64(std::uint64_t value) { std::fwrite(&value, sizeof value, 1, file_); }

  std::FILE* file_;
  std::uint64_t index_ = 0;
};

void write_map(const unsigned char* place) {
  std::FILE* const map =
      std::fopen(("/tmp/perf-" + std::to_string(::getpid()) + ".map").c_str(), "w");
  if (map == nullptr) fail("map");
  const auto at = reinterpret_cast<unsigned long>(place);
  std::fprintf(map, "%lx %zx made_loop\n", at, sizeof kLoop);
  std::fprintf(map, "%lx %zx made_caller\n", at + kCallerAt, sizeof kCaller);
  std::fclose(map);
}

}  // namespace

/// Has a frame pointer of its own.
extern "C" [[gnu::noinline]] long spin(long count) {
  for (long i = 0; i < count; ++i) asm volatile("" ::"r"(__builtin_frame_address(0)) : "memory");
  return count;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto duration = static_cast<std::uint64_t>(std::atoi(argv[1])) * 1000000U;
  const std::string source = argv[3];
  unsigned char* const place = make_code(argv[2]);
  if (source != "dump") write_map(place);
  if (source != "map") {
    Dump dump;
    dump.load(place, sizeof kLoop, "made_loop");
    dump.load(place + kCallerAt, sizeof kCaller, "made_caller");
  }
  const auto call = reinterpret_cast<Caller>(place + kCallerAt);
  while (now(CLOCK_PROCESS_CPUTIME_ID) < duration) {
    call(100000, reinterpret_cast<Loop>(place));
    call(100000, spin);
  }
  return 0;
}

// Code made at run time and called by a process and its descendants: prefork MILLISECONDS SHAPE.
//   child     the parent and a child call the code
//   silent    only a child calls it
//   chain     the parent and a great-grandchild call it
//   orphan    a child calls it after its parent has exited
//   executed  a child calls it after its parent has executed another program
//   own-map   a child calls it and also code of its own, with its own map
//   protect   a child makes it writable and executable again, and calls it
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

double duration = 0.1;

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// push rbp; mov rbp, rsp; mov rax, rdi; 1: dec rax; jne 1b; pop rbp; ret
constexpr unsigned char kLoop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                   0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};

using Code = long (*)(long);

Code make_code(const char* name) {
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::exit(1);
  std::memcpy(page, kLoop, sizeof kLoop);
  ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
  std::FILE* const map =
      std::fopen(("/tmp/perf-" + std::to_string(::getpid()) + ".map").c_str(), "a");
  if (map == nullptr) std::exit(1);
  std::fprintf(map, "%lx %zx %s\n", reinterpret_cast<unsigned long>(page), sizeof kLoop, name);
  std::fclose(map);
  return reinterpret_cast<Code>(page);
}

void call(Code code) {
  for (const double begin = now(); now() - begin < duration;) code(1000000);
}

void in_child(const std::function<void()>& what) {
  if (::fork() != 0) return;
  what();
  ::_exit(0);
}

/// Runs `what` in a child once this process no longer holds the pipe open, after exec or exit.
void in_child_later(const std::function<void()>& what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::exit(1);
  in_child([&] {
    ::close(ends[1]);
    char byte = 0;
    if (::read(ends[0], &byte, 1) == 0) what();
  });
}

void protect(Code code) {
  void* const page = reinterpret_cast<void*>(code);
  ::mprotect(page, 4096, PROT_READ | PROT_WRITE);
  ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  duration = std::atof(argv[1]) / 1000;
  const std::string shape = argv[2];
  const Code code = make_code("made_by_parent");
  if (shape == "child" || shape == "chain") call(code);
  if (shape == "child" || shape == "silent") in_child([&] { call(code); });
  if (shape == "chain") {
    in_child([&] {
      in_child([&] {
        in_child([&] { call(code); });
        ::wait(nullptr);
      });
      ::wait(nullptr);
    });
  }
  if (shape == "orphan" || shape == "executed") in_child_later([&] { call(code); });
  if (shape == "orphan") ::_exit(0);
  if (shape == "executed") ::execlp("sleep", "sleep", "1", nullptr);
  if (shape == "own-map") {
    in_child([&] {
      const Code own = make_code("made_by_child");
      call(code);
      call(own);
    });
  }
  if (shape == "protect") {
    in_child([&] {
      protect(code);
      call(code);
    });
  }
  ::wait(nullptr);
  return 0;
}

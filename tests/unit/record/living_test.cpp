// SPDX-License-Identifier: MIT
// Requests to living processes, which may be anything: fake JVMs and .NET processes.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"

namespace perfmap::living_test {
namespace {

using namespace std::chrono_literals;
using test::Child;

constexpr auto kHang = 60s;       // for an answer that comes, on a busy machine late
constexpr auto kMaxWait = 200ms;  // for one that does not come
constexpr auto kUsualWait = 10s;  // of the functions without that parameter

std::string jvm_socket(pid_t pid) { return "/tmp/.java_pid" + std::to_string(pid); }

std::string dotnet_socket(pid_t pid, const std::string& key = "123") {
  const std::string name = "dotnet-diagnostic-" + std::to_string(pid) + "-" + key + "-socket";
  return std::filesystem::temp_directory_path() / name;
}

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const bool is_bound =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return is_bound && ::listen(fd, 8) == 0 ? fd : -1;
}

enum class After { close, stay };

/// Answers each request with the same bytes.
void serve(int listener, const std::string& reply, After after) {
  std::thread([=] {
    for (;;) {
      const int client = ::accept(listener, nullptr, nullptr);
      char request[256];
      if (::read(client, request, sizeof request) < 0) return;
      for (std::size_t sent = 0; sent < reply.size();) {
        const ssize_t size = ::send(client, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
        if (size <= 0) break;
        sent += static_cast<std::size_t>(size);
      }
      if (after == After::close) ::close(client);
    }
  }).detach();
}

/// A process that listens on its socket, and the socket's path, which is removed at the end.
class FakeServer {
 public:
  FakeServer(std::function<std::string(pid_t)> path, std::string reply, After after = After::close)
      : child_([&] {
          const int listener = listen_at(path(::getpid()));
          serve(listener, reply, after);
          return std::uint64_t{listener >= 0};
        }),
        path_(path(child_.pid())) {
    REQUIRE(child_.reported() == 1);
  }
  ~FakeServer() { std::filesystem::remove(path_); }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  pid_t pid() const { return child_.pid(); }
  const std::string& path() const { return path_; }

 private:
  Child child_;
  std::string path_;
};

/// A process that does nothing.
class Sleeper : public Child {
 public:
  Sleeper() : Child([] { return std::uint64_t{1}; }) {}
};

std::string jvm_answer(pid_t pid, std::chrono::milliseconds max_wait = kHang) {
  const Result<void> asked = ask_jvm_for_map(pid, {}, max_wait);
  return asked ? "done" : asked.error().message();
}

std::string dotnet_answer(pid_t pid, bool on = true, std::chrono::milliseconds max_wait = kHang) {
  const Result<void> asked = switch_dotnet_names(pid, on, {}, max_wait);
  return asked ? "done" : asked.error().message();
}

/// The last bytes of a text, as many as in the expected end.
std::string end_of(const std::string& text, const std::string& expected) {
  return text.size() < expected.size() ? text : text.substr(text.size() - expected.size());
}

bool lives(pid_t pid) { return ::kill(pid, 0) == 0 && process_lives(pid); }

std::string dotnet_reply(unsigned char command, std::uint32_t code) {
  std::string reply("DOTNET_IPC_V1\0\x18\0\xff", 17);
  reply += static_cast<char>(command);
  reply.append(2, '\0');
  for (int shift = 0; shift < 32; shift += 8) reply += static_cast<char>(code >> shift);
  return reply;
}

}  // namespace

TEST_CASE("a JVM's answer is believed only if it is one", "[record]") {
  struct Case {
    std::string reply;
    std::string answer;
  };
  const auto c = GENERATE(values<Case>({
      {"0\n", "done"},
      {"0\nSome text", "done"},
      {"-1\njava.lang.IllegalArgumentException: Unknown diagnostic command\nmore",
       "it answers 'java.lang.IllegalArgumentException: Unknown diagnostic command'"},
      {"101\n", "it does not answer"},
      {"0", "it does not answer"},
      {"", "it does not answer"},
      {std::string(1 << 20, '0'), "it does not answer"},
      {std::string("0\0\n", 3), "it does not answer"},
  }));
  const FakeServer jvm(jvm_socket, c.reply);
  CHECK(end_of(jvm_answer(jvm.pid()), c.answer) == c.answer);
  // Such as with -Xrs: it has a socket, and SIGQUIT would end it.
  CHECK(lives(jvm.pid()));
}

TEST_CASE("a JVM that is silent is not waited for", "[record]") {
  const FakeServer jvm(jvm_socket, "", After::stay);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(end_of(jvm_answer(jvm.pid(), kMaxWait), "it does not answer") == "it does not answer");
  CHECK(std::chrono::steady_clock::now() - begin < kUsualWait);
}

TEST_CASE("a process that does not handle SIGQUIT gets none", "[record]") {
  const Sleeper sleeper;
  CHECK(end_of(jvm_answer(sleeper.pid()), "it does not handle SIGQUIT") ==
        "it does not handle SIGQUIT");
  CHECK(lives(sleeper.pid()));
}

TEST_CASE("a socket of another process is not used", "[record]") {
  const Sleeper sleeper;
  const std::string path = jvm_socket(sleeper.pid());
  const int listener = listen_at(path);
  REQUIRE(listener >= 0);
  CHECK(end_of(jvm_answer(sleeper.pid()), "another process answers at its socket") ==
        "another process answers at its socket");
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    CHECK(end_of(jvm_answer(sleeper.pid()), "it does not handle SIGQUIT") ==
          "it does not handle SIGQUIT");
  }
  ::close(listener);
  std::filesystem::remove(path);
}

TEST_CASE("a JVM is signaled only if its trigger file is ours", "[record]") {
  const test::Scratch scratch;
  const std::string victim = scratch.write("victim", "mine");
  const std::string ready = scratch / "ready";
  // A shell that handles SIGQUIT, and notes it.
  const auto shell = [&](const char* option) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (::chdir(scratch.path().c_str()) != 0) ::_exit(1);
      ::signal(SIGQUIT, SIG_DFL);  // sh cannot handle what was ignored, as in a background job
      ::execlp("sh", "sh", "-c", "trap ': > quit' QUIT; : > ready; while :; do sleep 0.05; done",
               option, nullptr);
      ::_exit(1);
    }
    while (!std::filesystem::exists(ready)) std::this_thread::sleep_for(5ms);
    std::filesystem::remove(ready);
    return pid;
  };
  const auto end = [](pid_t pid) {
    ::kill(pid, SIGKILL);
    test::wait_for(pid);
  };

  const pid_t forbidding = shell("-XX:+DisableAttachMechanism");
  CHECK(end_of(jvm_answer(forbidding), "it runs with -XX:+DisableAttachMechanism") ==
        "it runs with -XX:+DisableAttachMechanism");
  end(forbidding);

  const pid_t planted = shell("java");
  const std::string trigger = scratch / (".attach_pid" + std::to_string(planted));
  std::filesystem::create_symlink(victim, trigger);
  CHECK(jvm_answer(planted).find("its working directory and /tmp cannot be written") !=
        std::string::npos);
  CHECK(std::filesystem::is_symlink(trigger));
  CHECK(test::read_file(victim) == "mine");
  std::filesystem::remove(trigger);
  CHECK_FALSE(std::filesystem::exists(scratch / "quit"));

  // Without a planted file it is signaled, and the trigger is removed.
  CHECK(end_of(jvm_answer(planted, kMaxWait), "it does not answer") == "it does not answer");
  CHECK_FALSE(std::filesystem::exists(trigger));
  while (!std::filesystem::exists(scratch / "quit")) std::this_thread::sleep_for(5ms);
  end(planted);
}

TEST_CASE("a .NET process's answer is believed only if it is one", "[record]") {
  struct Case {
    std::string reply;
    std::string answer;
  };
  const std::string good = dotnet_reply(0, 0);
  std::string other_magic = good;
  other_magic[7] = 'X';
  std::string other_size = good;
  other_size[14] = 0x14;
  std::string other_set = good;
  other_set[16] = 4;
  const auto c = GENERATE_COPY(values<Case>({
      {good, "done"},
      {dotnet_reply(0, 0x80004005), "it answers with error 0x80004005"},
      {dotnet_reply(0xff, 1), "it answers with error 0x00000001"},
      {dotnet_reply(0xff, 0x80131385), ".NET 8 is the first release that can turn them on"},
      {good.substr(0, 10), "its answer is malformed"},
      {good.substr(0, 23), "its answer is malformed"},
      {good + "x", "its answer is malformed"},
      {std::string(1 << 20, 'D'), "its answer is malformed"},
      {other_magic, "its answer is malformed"},
      {other_size, "its answer is malformed"},
      {other_set, "its answer is malformed"},
      {dotnet_reply(7, 0), "its answer is malformed"},
      {"", "it does not answer"},
  }));
  const FakeServer server([](pid_t pid) { return dotnet_socket(pid); }, c.reply);
  CHECK(end_of(dotnet_answer(server.pid()), c.answer) == c.answer);
  CHECK(end_of(dotnet_answer(server.pid(), false), c.answer) == c.answer);
}

TEST_CASE("a .NET process that is silent is not waited for", "[record]") {
  const FakeServer server([](pid_t pid) { return dotnet_socket(pid); }, "", After::stay);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(end_of(dotnet_answer(server.pid(), true, kMaxWait), "it does not answer") ==
        "it does not answer");
  CHECK(std::chrono::steady_clock::now() - begin < kUsualWait);
}

TEST_CASE("only a socket of the process itself is a diagnostic socket", "[record]") {
  const FakeServer other([](pid_t pid) { return dotnet_socket(pid); }, dotnet_reply(0, 0));
  const Sleeper sleeper;
  constexpr const char* kNone =
      "it has no diagnostic socket, as with "
      "DOTNET_EnableDiagnostics=0 and before .NET 5";
  CHECK(end_of(dotnet_answer(sleeper.pid()), kNone) == kNone);
  const std::string path = dotnet_socket(sleeper.pid());
  std::filesystem::create_symlink(other.path(), path);
  CHECK(end_of(dotnet_answer(sleeper.pid()), kNone) == kNone);
  std::filesystem::remove(path);
  const int listener = listen_at(path);
  REQUIRE(listener >= 0);
  CHECK(end_of(dotnet_answer(sleeper.pid()), "another process answers at its socket") ==
        "another process answers at its socket");
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    CHECK(end_of(dotnet_answer(sleeper.pid()), kNone) == kNone);
  }
  ::close(listener);
  std::filesystem::remove(path);
  for (const char* const key : {"", "1x", "-1"}) {
    const std::string odd = dotnet_socket(sleeper.pid(), key);
    const int fd = listen_at(odd);
    CHECK(end_of(dotnet_answer(sleeper.pid()), kNone) == kNone);
    ::close(fd);
    std::filesystem::remove(odd);
  }
}

TEST_CASE("the newest of several diagnostic sockets counts", "[record]") {
  const FakeServer server([](pid_t pid) { return dotnet_socket(pid, "2"); }, dotnet_reply(0, 0));
  const std::string stale = dotnet_socket(server.pid(), "1");
  ::close(listen_at(stale));
  const timespec old[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, stale.c_str(), old, AT_SYMLINK_NOFOLLOW) == 0);
  CHECK(dotnet_answer(server.pid()) == "done");
  std::filesystem::remove(stale);
}

TEST_CASE("descendants are found through all threads, each once", "[record]") {
  const test::Scratch proc;
  const Roots roots{.proc = proc.path()};
  proc.write("10/task/10/children", "11 12 ");
  proc.write("10/task/99/children", "13 ");
  proc.write("13/task/13/children", "14 ");
  proc.write("14/task/14/children", "10 13 14 ");  // a cycle
  proc.write("11/task/11/children", "x -5 0 15 ");
  std::vector<pid_t> found = descendants_of({10}, roots);
  std::ranges::sort(found);
  CHECK(found == std::vector<pid_t>{11, 12, 13, 14});
  CHECK(descendants_of({77}, roots).empty());
  std::string many;
  for (int pid = 100; pid < 10000; ++pid) many += std::to_string(pid) + " ";
  proc.write("20/task/20/children", many);
  CHECK(descendants_of({20}, roots).size() == 4096);
}

TEST_CASE("a signal reaches orphans of the own process group, and no others", "[record]") {
  // In a process of its own, which adopts and signals only what it starts itself.
  const Child alone([] {
    ::setpgid(0, 0);
    OrphanAdopter adopter;
    pid_t orphan = 0, left = 0;
    int ends[2];
    if (::pipe(ends) != 0) return std::uint64_t{1};
    const pid_t parent = ::fork();
    if (parent == 0) {
      const auto start = [&ends](bool leaves) {
        const pid_t pid = ::fork();
        if (pid != 0) return pid;
        if (leaves) ::setsid();
        if (::write(ends[1], "", 1) != 1) ::_exit(1);
        for (;;) ::pause();
      };
      const std::array pids = {start(false), start(true)};
      if (::write(ends[1], pids.data(), sizeof pids) != sizeof pids) ::_exit(1);
      ::_exit(0);
    }
    std::string text;
    for (char c = 0; text.size() < 2 + 2 * sizeof(pid_t) && ::read(ends[0], &c, 1) == 1;) text += c;
    ::waitpid(parent, nullptr, 0);
    std::vector<pid_t> children = descendants_of({::getpid()});
    std::vector<pid_t> got = signal_descendants(SIGKILL, 0);
    if (children.size() != 2 || got.size() != 1) return std::uint64_t{2};
    orphan = got.front();
    left = children[0] == orphan ? children[1] : children[0];
    for (int i = 0; i < 6000 && process_lives(orphan); ++i) {
      adopter.reap(children);
      std::this_thread::sleep_for(10ms);
    }
    const bool is_right = !process_lives(orphan) && process_lives(left);
    ::kill(left, SIGKILL);
    ::waitpid(left, nullptr, 0);
    return is_right ? std::uint64_t{7} : std::uint64_t{3};
  });
  CHECK(alone.reported() == 7);
}

TEST_CASE("a spared process gets no signal", "[record]") {
  const Child alone([] {
    ::setpgid(0, 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    const bool is_spared = signal_descendants(SIGKILL, child).empty();
    const bool is_found = signal_descendants(SIGKILL, 0) == std::vector{child};
    ::waitpid(child, nullptr, 0);
    return std::uint64_t{is_spared && is_found};
  });
  CHECK(alone.reported() == 1);
}

TEST_CASE("a held process tells how it ended", "[record]") {
  for (const int signal : {SIGKILL, SIGUSR1}) {
    CAPTURE(signal);
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(1);
    }
    HeldProcess held(child);
    CHECK(held.pid() == child);
    CHECK(held.lives());
    CHECK_FALSE(held.end());
    ::kill(child, signal);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const HeldProcess moved(std::move(held));
    CHECK_FALSE(moved.lives());
    // Nothing before Linux 6.15.
    const std::optional<ProcessEnd> end = moved.end();
    if (end) CHECK(end->signal == process_end(status).signal);
    if (end) CHECK(end->status == process_end(status).status);
  }
  HeldProcess none(4194304);
  CHECK_FALSE(none.lives());
  CHECK_FALSE(none.end());
  constexpr int kExited = 3 << 8;  // as wait(2) tells it
  CHECK(process_end(kExited).status == 3);
  CHECK(process_end(kExited).signal == 0);
  CHECK(process_end(SIGSEGV).status == 128 + SIGSEGV);
  CHECK(process_end(SIGSEGV).signal == SIGSEGV);
}

TEST_CASE("perf fails because of its buffers, or for another reason", "[record]") {
  CHECK(is_about_buffers("Permission error mapping pages."));
  CHECK(is_about_buffers("failed to mmap with 12 (Cannot allocate memory)"));
  CHECK_FALSE(is_about_buffers("event syntax error: 'nosuch'"));
  CHECK_FALSE(is_about_buffers(""));
}

}  // namespace perfmap::living_test

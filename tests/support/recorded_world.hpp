// SPDX-License-Identifier: MIT
#pragma once

#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/planted_process.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::test {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
/// The user of the planted process.
inline constexpr uid_t kUser = 7;
inline constexpr pid_t kPid = PlantedProcess::kPid;

/// A time of the recording's clock, in seconds from now.
constexpr std::uint64_t at(int seconds) {
  return 1000 * kSecond + static_cast<std::uint64_t>(seconds + 100) * kSecond;
}

/// A process that was forked 30 s ago, and a recording of it that started 60 s ago. "Now" is when
/// the world was made, so that a slow test sees the same times. Files that a test writes are
/// younger; the recorded process lives long enough for them.
struct RecordedWorld {
  struct Shape {
    int exit = 600;         ///< seconds from now
    bool has_clock = true;  ///< the recording has the time of day
    int ahead_ms = 0;       ///< of that time; the clock was set later
    std::string hostname = {};
  };

  RecordedWorld() {
    std::filesystem::create_directories(tmp());
    start(-30);
  }

  std::string tmp() const { return planted.scratch() / "host"; }
  /// Sets the start of the running process to this many seconds from now.
  void start(int seconds) const {
    planted.scratch().write("proc/stat", "btime " + std::to_string(now + seconds - 10) + "\n");
    planted.start(1000);
  }
  Recording recording(const Shape& shape) const {
    const RecordingBytes b;
    const EventShape event{.sample_type = kIp | kTid | kTime};
    const auto born = [&](std::uint32_t type, std::uint64_t time) {
      Bytes body = b.bytes();
      body.u32(kPid).u32(1).u32(kPid).u32(1).u64(time);
      body.raw(b.trailer(event, {.time = time, .pid = kPid, .tid = kPid}));
      return b.record(type, body.text());
    };
    std::string data = born(7, at(-30));
    data += b.comm(kPid, "node", event, {.time = at(-29), .pid = kPid, .tid = kPid});
    data += born(4, at(shape.exit));
    RecordingBytes::Parts parts;
    if (shape.has_clock) {
      const auto begin = static_cast<std::uint64_t>((now - 60) * 1000 + shape.ahead_ms) * 1'000'000;
      parts.features[29] = b.bytes().u32(1).u32(1).u64(begin).u64(at(-60)).text();
    }
    if (!shape.hostname.empty()) parts.features[3] = b.bytes().string(shape.hostname).text();
    const std::string path = planted.scratch().write("perf.data", b.file({event}, data, parts));
    set_time(path, shape.exit);
    auto input = Input::open(path);
    REQUIRE(input);
    auto opened = Recording::open(*std::move(input));
    REQUIRE(opened);
    return *std::move(opened);
  }

  RecordedJitOptions options() const {
    RecordedJitOptions options;
    options.roots = {.proc = planted.scratch() / "proc", .tmp = tmp()};
    return options;
  }
  ProcessInfo process() const {
    ProcessInfo process;
    process.pid = kPid;
    process.began = ProcessBegin::forked;
    process.since = at(-30);
    process.comm = "node";
    return process;
  }
  std::shared_ptr<JitSources> find(const Recording& recording,
                                   const std::vector<std::string>& dumps = {}) {
    refused = {};
    return find_recorded_jit(recording, options(), refused)(process(), dumps);
  }
  /// A map in the host's /tmp with that owner.
  std::string put_map(uid_t owner, std::string_view text = "1000 10 from the map\n") const {
    return give(planted.scratch().write("host/perf-42.map", text), owner);
  }
  std::string put_dump(uid_t owner, std::uint32_t pid = kPid) const {
    DumpBytes dump;
    dump.header({.pid = pid}).load_of_size(5, 0x2000, 0x10, "loaded");
    return give(planted.scratch().write("host/jit-42.dump", dump.text()), owner);
  }
  static std::string give(const std::string& path, uid_t owner) {
    REQUIRE(::chown(path.c_str(), owner, owner) == 0);
    return path;
  }

  /// Sets the modification time to this many seconds from now.
  void set_time(const std::string& path, int seconds) const {
    const timespec times[2] = {{now + seconds, 0}, {now + seconds, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }

  const time_t now = ::time(nullptr);
  PlantedProcess planted;
  RecordedRefusals refused;
};

/// Only root can make files of other users.
inline bool may_give_away() {
  if (::geteuid() == 0) return true;
  WARN("skipped: only root can make files of other users");
  return false;
}

inline std::string name_at(const std::shared_ptr<JitSources>& sources, Address address) {
  if (sources == nullptr) return "none";
  const Resolution found = sources->find({address});
  if (!found.found) return "-";
  return std::string(found.found->name) + "|" + to_string(found.found->doubts);
}

}  // namespace perfmap::test

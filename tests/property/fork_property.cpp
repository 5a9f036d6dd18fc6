// SPDX-License-Identifier: MIT
// Names of inherited memory, compared with processes that copy all memory they begin with.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/process_events.hpp"

namespace perfmap::fork_property {
namespace {

constexpr Address kEnd = 48;
constexpr pid_t kPids = 4;

struct Event {
  enum Kind { map, unmap, fork, exec, exit, attach } kind;
  pid_t pid;
  pid_t other;
  std::uint64_t time;
  AddressRange range;
  std::string name;
};

/// Programs whose maps are searched, in this order.
struct Asked {
  int program;
  bool is_doubtful;
};
struct Byte {
  std::string file;
  std::vector<Asked> asked;
};
using Memory = std::map<Address, Byte>;
struct Process {
  int program = 0;
  Memory memory;
  Memory began_with;
  bool is_former = false;  ///< after an exec, before the first mapping
};

class World {
 public:
  void apply(const Event& event) {
    if (event.kind == Event::exit) {
      processes.erase(event.pid);
    } else if (event.kind == Event::fork) {
      fork(begun(event.other), event.pid);
    } else if (event.kind == Event::unmap) {
      if (processes.contains(event.pid)) unmap(processes[event.pid].memory, event.range);
    } else if (event.kind == Event::map) {
      map(begun(event.pid), event);
    } else if (event.kind == Event::exec) {
      Process& process = begun(event.pid);
      process.is_former = true;
      process.program = ++programs_;
    } else {
      maps[begun(event.pid).program] = {event.range, event.name};
    }
  }

  /// "-" if there is no name; with "?" if the name is doubtful.
  std::string name_at(const Process& process, Address address) const {
    const auto byte = process.memory.find(address);
    if (byte == process.memory.end()) return "-";
    for (const Asked& one : byte->second.asked) {
      const auto found = maps.find(one.program);
      if (found == maps.end() || !found->second.first.contains(address)) continue;
      return found->second.second + (one.is_doubtful ? "?" : "");
    }
    return "-";
  }

  std::map<pid_t, Process> processes;
  std::map<int, std::pair<AddressRange, std::string>> maps;  ///< ranges and names, by program

 private:
  Process& begun(pid_t pid) {
    const auto [place, is_new] = processes.try_emplace(pid);
    if (is_new) place->second.program = ++programs_;
    return place->second;
  }
  static void unmap(Memory& memory, const AddressRange& range) {
    for (Address i = range.begin; i < range.end(); ++i) memory.erase(i);
  }
  void fork(const Process& parent, pid_t pid) {
    Process child;
    child.program = ++programs_;
    child.began_with = parent.memory;
    child.memory = parent.memory;
    for (auto& [address, byte] : child.memory) {
      byte.asked.insert(byte.asked.begin(), {child.program, false});
    }
    processes[pid] = std::move(child);
  }
  static void map(Process& process, const Event& event) {
    if (process.is_former) {
      process.memory.clear();
      process.began_with.clear();
      process.is_former = false;
    }
    for (Address i = event.range.begin; i < event.range.end(); ++i) {
      Byte byte{event.name, {{process.program, false}}};
      const auto before = process.began_with.find(i);
      if (before != process.began_with.end() && before->second.file == event.name) {
        for (const Asked& one : before->second.asked) byte.asked.push_back({one.program, true});
      }
      process.memory[i] = std::move(byte);
    }
  }

  int programs_ = 0;
};

void feed(const Event& event, ProcessTracker& tracker) {
  switch (event.kind) {
    case Event::map: {
      MmapEvent mmap{};
      mmap.pid = event.pid;
      mmap.time = event.time;
      mmap.range = event.range;
      mmap.name = event.name;
      mmap.access = {true, false, true, false};
      return tracker.on_mmap(mmap);
    }
    case Event::unmap: return tracker.on_unmap({event.pid, event.time, event.range});
    case Event::fork: return tracker.on_fork({event.pid, event.pid, event.other, event.time});
    case Event::exec: return tracker.on_comm({event.pid, event.pid, event.time, "x", true});
    case Event::exit: return tracker.on_exit({event.pid, event.pid, event.time});
    case Event::attach: {
      std::string text;
      for (Address i = event.range.begin; i < event.range.end(); ++i) {
        text += std::to_string(i / 16) + "0123456789abcdef"[i % 16] + " 1 " + event.name + "\n";
      }
      return tracker.attach_jit(event.pid, test::map_sources(text));
    }
  }
}

std::vector<Event> random_events(std::mt19937& random, std::size_t count) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::vector<Event> events;
  std::uint64_t time = 1;
  for (std::size_t i = 0; i < count; ++i) {
    time += below(3);
    const unsigned what = below(100);
    Event event{what < 35   ? Event::map
                : what < 40 ? Event::unmap
                : what < 65 ? Event::fork
                : what < 72 ? Event::exec
                : what < 78 ? Event::exit
                            : Event::attach,
                static_cast<pid_t>(1 + below(kPids)),
                0,
                time,
                {below(kEnd), 0},
                {}};
    event.other = 1 + (event.pid + static_cast<pid_t>(below(kPids - 1))) % kPids;
    event.range.size = 1 + below(static_cast<unsigned>(kEnd - event.range.begin));
    event.name = below(3) != 0 ? "//anon" : "/memfd:jit (deleted)";
    if (event.kind == Event::attach) event.name = "name" + std::to_string(i);
    events.push_back(event);
  }
  return events;
}

std::string answer(ProcessTracker& tracker, pid_t pid, Address address, std::uint64_t time) {
  const auto code = tracker.find_jit_code(pid, address, time);
  return code ? std::string(code->name) + (code->doubts.any() ? "?" : "") : "-";
}

}  // namespace

TEST_CASE("inherited memory has the same names as a copy of it", "[tracker][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<Event> events = random_events(random, 80);
  ProcessTracker tracker;
  World world;
  std::vector<std::pair<std::uint64_t, std::map<pid_t, Process>>> history;
  for (std::size_t i = 0; i < events.size(); ++i) {
    feed(events[i], tracker);
    world.apply(events[i]);
    const bool is_last = i + 1 == events.size() || events[i + 1].time != events[i].time;
    if (is_last) history.emplace_back(events[i].time, world.processes);
  }
  std::size_t named = 0;
  for (const auto& [time, processes] : history) {
    for (pid_t pid = 1; pid <= kPids; ++pid) {
      const auto process = processes.find(pid);
      std::vector<std::string> expected(kEnd, "-");
      std::vector<std::string> found;
      for (Address address = 0; address < kEnd; ++address) {
        if (process != processes.end()) {
          expected[address] = world.name_at(process->second, address);
        }
        found.push_back(answer(tracker, pid, address, time));
        named += expected[address] == "-" ? 0 : 1;
      }
      if (found == expected) continue;  // most are equal, and checking each address takes long
      CAPTURE(time, pid);
      CHECK(found == expected);
    }
  }
  CHECK(named > 0);
}

}  // namespace perfmap::fork_property

// Address spaces over time, compared with a byte-by-byte replay of the events.

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"

namespace perfmap {
namespace {

/// For each address: the name of the mapped file and the offset of the byte.
struct Bytes : std::map<Address, std::pair<std::string, std::uint64_t>> {
  bool is_former = false;  ///< after an exec, before the first mapping
};

struct Event {
  enum Kind { map, unmap, fork, exec, exit } kind;
  pid_t pid;
  pid_t other;
  std::uint64_t time;
  AddressRange range;
  std::uint64_t offset;
  std::string name;
};

void apply(const Event& event, std::map<pid_t, std::optional<Bytes>>& world) {
  auto& process = world[event.pid];
  if (event.kind == Event::fork) {
    auto& parent = world[event.other];
    if (!parent) parent.emplace();
    process = parent;
    process->is_former = false;
    return;
  }
  if (event.kind == Event::exit) return process.reset();
  if (event.kind == Event::unmap && !process) return;
  if (!process) process.emplace();
  if (event.kind == Event::exec) {
    process->is_former = true;
    return;
  }
  if (process->is_former && event.kind == Event::map) process.emplace();
  for (Address i = 0; i < event.range.size; ++i) {
    if (event.kind == Event::unmap) {
      process->erase(event.range.begin + i);
    } else {
      (*process)[event.range.begin + i] = {event.name, event.offset + i};
    }
  }
}

void feed(const Event& event, ProcessTracker& tracker) {
  switch (event.kind) {
    case Event::map: {
      MmapEvent mmap{};
      mmap.pid = event.pid;
      mmap.time = event.time;
      mmap.range = event.range;
      mmap.offset = event.offset;
      mmap.name = event.name;
      return tracker.on_mmap(mmap);
    }
    case Event::unmap: return tracker.on_unmap({event.pid, event.time, event.range});
    case Event::fork: return tracker.on_fork({event.pid, event.pid, event.other, event.time});
    case Event::exec: return tracker.on_comm({event.pid, event.pid, event.time, "x", true});
    case Event::exit: return tracker.on_exit({event.pid, event.pid, event.time});
  }
}

void check(const std::optional<Bytes>& expected, const std::shared_ptr<const AddressSpace>& space) {
  REQUIRE(expected.has_value() == (space != nullptr));
  if (space == nullptr) return;
  for (Address address = 0; address < 64; ++address) {
    CAPTURE(address);
    const Region* const region = space->find(address);
    const auto byte = expected->find(address);
    REQUIRE((region != nullptr) == (byte != expected->end()));
    if (region == nullptr) continue;
    CHECK(region->file->name == byte->second.first);
    CHECK(region->offset + (address - region->range.begin) == byte->second.second);
  }
  Address end = 0;
  for (const Region& region : space->regions()) {
    CHECK(region.range.begin >= end);
    CHECK(region.range.size > 0);
    end = region.range.end();
  }
}

std::vector<Event> random_events(std::mt19937& random, std::size_t count) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::vector<Event> events;
  std::uint64_t time = 1;
  for (std::size_t i = 0; i < count; ++i) {
    time += below(3);
    const unsigned what = below(100);
    Event event{what < 60   ? Event::map
                : what < 80 ? Event::unmap
                : what < 90 ? Event::fork
                : what < 95 ? Event::exec
                            : Event::exit,
                static_cast<pid_t>(1 + below(3)),
                0,
                time,
                {below(60), 0},
                0,
                {}};
    event.other = 1 + (event.pid + static_cast<pid_t>(below(2))) % 3;
    event.range.size = below(static_cast<unsigned>(65 - event.range.begin));
    event.offset = below(1000);
    event.name = "/" + std::to_string(below(4));
    events.push_back(event);
  }
  return events;
}

}  // namespace

TEST_CASE("the tracker gives the same results as a byte-by-byte replay", "[tracker][property]") {
  const auto seed = GENERATE(range(0u, 150u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  // Some are long enough for the tracker to store intermediate address spaces.
  const std::vector<Event> events = random_events(random, seed % 5 == 0 ? 700 : 60);
  ProcessTracker tracker;
  for (const Event& event : events) feed(event, tracker);

  std::map<pid_t, std::optional<Bytes>> world;
  std::vector<std::pair<std::uint64_t, std::map<pid_t, std::optional<Bytes>>>> history;
  for (std::size_t i = 0; i < events.size(); ++i) {
    apply(events[i], world);
    const bool is_last = i + 1 == events.size() || events[i + 1].time != events[i].time;
    if (is_last && (events.size() < 100 || random() % 40 == 0)) {
      history.emplace_back(events[i].time, world);
    }
  }
  // In random order: earlier queries must not matter.
  std::shuffle(history.begin(), history.end(), random);
  for (const auto& [time, then] : history) {
    CAPTURE(time);
    for (const auto& [pid, bytes] : then) {
      CAPTURE(pid);
      check(bytes, tracker.at(pid, time));
    }
  }
  for (const auto& [pid, bytes] : world) check(bytes, tracker.at(pid));
}

}  // namespace perfmap

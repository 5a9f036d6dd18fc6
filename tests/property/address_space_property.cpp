// SPDX-License-Identifier: MIT
// Address spaces over time, compared with a byte-by-byte replay of the events.

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"

namespace perfmap::address_space_property {
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

void replay(const Event& event, std::map<pid_t, std::optional<Bytes>>& world) {
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

/// Both views of the regions: as a range, and by index.
void check_regions(const AddressSpace& space) {
  Address end = 0;
  std::size_t count = 0;
  for (const Region& region : space.regions()) {
    CHECK(region.range.begin >= end);
    CHECK(region.range.size > 0);
    end = region.range.end();
    CHECK(&space.regions()[count++] == &region);
  }
  CHECK(space.regions().size() == count);
  CHECK(space.regions().empty() == (count == 0));
  for (Address address = 0; address < 64; ++address) {
    const auto from = space.regions().from(address);
    const auto first = std::find_if(space.regions().begin(), space.regions().end(),
                                    [&](const Region& one) { return one.range.end() > address; });
    CHECK(from == first);
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
  check_regions(*space);
}

/// `pids`: processes that take turns; more of them make more forks.
std::vector<Event> random_events(std::mt19937& random, std::size_t count, unsigned pids = 3) {
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
                static_cast<pid_t>(1 + below(pids)),
                0,
                time,
                {below(60), 0},
                0,
                {}};
    event.other = 1 + (event.pid + static_cast<pid_t>(below(pids - 1))) % static_cast<pid_t>(pids);
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
    replay(events[i], world);
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

// Address spaces share their nodes: what was returned earlier must stay as it was, whatever happens
// to its process, its parents and its children.
TEST_CASE("an address space stays as it was between events of all processes",
          "[tracker][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const unsigned pids = 2 + seed % 7;
  const std::vector<Event> events = random_events(random, 120, pids);
  ProcessTracker tracker;
  std::map<pid_t, std::optional<Bytes>> world;
  struct Seen {
    std::optional<Bytes> bytes;
    std::shared_ptr<const AddressSpace> space;
  };
  std::vector<Seen> seen;
  for (const Event& event : events) {
    feed(event, tracker);
    replay(event, world);
    // Asks for some processes after some events, so that some nodes are shared and others not.
    for (const auto& [pid, bytes] : world) {
      if (random() % 3 != 0) continue;
      seen.push_back({bytes, tracker.at(pid)});
      if (random() % 2 == 0) check(bytes, seen.back().space);
    }
    if (random() % 8 == 0 && !seen.empty()) seen.erase(seen.begin() + random() % seen.size());
  }
  for (const auto& [bytes, space] : seen) check(bytes, space);
  tracker = ProcessTracker();
  for (const auto& [bytes, space] : seen) check(bytes, space);
}

TEST_CASE("a chain of forks has the memory of all its ancestors", "[tracker][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  ProcessTracker tracker;
  std::map<pid_t, std::optional<Bytes>> world;
  std::uint64_t time = 0;
  for (pid_t pid = 1; pid < 40; ++pid) {
    for (Event& event : random_events(random, 4)) {
      if (event.kind != Event::map && event.kind != Event::unmap) continue;
      event.time = ++time;
      // The ancestors go on changing theirs.
      event.pid = 1 + static_cast<pid_t>(random() % static_cast<unsigned>(pid));
      if (random() % 2 == 0) event.pid = pid;
      feed(event, tracker);
      replay(event, world);
    }
    const Event fork{Event::fork, pid + 1, pid, ++time, {}, 0, {}};
    feed(fork, tracker);
    replay(fork, world);
  }
  for (const auto& [pid, bytes] : world) {
    CAPTURE(pid);
    check(bytes, tracker.at(pid));
  }
}

TEST_CASE("changes of an address space are like those of a list of bytes",
          "[address-space][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  MappedFiles files;
  auto space = std::make_shared<const AddressSpace>();
  Bytes bytes;
  for (int round = 0; round < 40; ++round) {
    std::vector<Region> changes(below(4));
    for (Region& change : changes) {
      change.range = {below(60), 0};
      change.range.size = below(static_cast<unsigned>(65 - change.range.begin));
      change.offset = below(1000);
      const std::string name = "/" + std::to_string(below(4));
      const bool is_unmap = below(4) == 0;
      if (!is_unmap) change.file = files.intern(classify_mapping(name));
      for (Address i = 0; i < change.range.size; ++i) {
        bytes.erase(change.range.begin + i);
        if (!is_unmap) bytes[change.range.begin + i] = {name, change.offset + i};
      }
    }
    const auto before = space;
    const std::vector<Region> copy(before->regions().begin(), before->regions().end());
    space = AddressSpace::changed(space, changes);
    check(bytes, space);
    CHECK(std::equal(copy.begin(), copy.end(), before->regions().begin(), before->regions().end()));
    const std::vector<Region> all(space->regions().begin(), space->regions().end());
    CHECK(*AddressSpace::of(all) == *space);
  }
}

}  // namespace perfmap::address_space_property

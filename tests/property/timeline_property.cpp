// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::timeline_property {
namespace {

struct Event {
  std::uint64_t time;
  bool is_move;
  Address from;
  Address begin;
  std::uint64_t size;
  std::uint64_t index;
  std::uint64_t offset;
};

/// The address space as an array: the owner of each byte and the owner's start after the events up
/// to `time`. The documented behaviour in its simplest form.
struct Memory {
  struct Byte {
    int placement = -1;
    Address begin = 0;
  };
  std::vector<Byte> bytes;
  std::vector<int> put;              // at each address, the LOAD last put there, unless moved away
  std::vector<int> load_of;          // of each event, the LOAD that it placed, or -1
  std::vector<int> now;              // of each LOAD, the event that placed it last
  std::vector<std::uint64_t> sizes;  // of each event, the effective size

  Memory(const std::vector<Event>& sorted, std::uint64_t time, std::size_t span)
      : bytes(span + 64),
        put(span + 64, -1),
        load_of(sorted.size(), -1),
        now(sorted.size(), -1),
        sizes(sorted.size()) {
    for (std::size_t i = 0; i < sorted.size() && sorted[i].time <= time; ++i) {
      const Event& event = sorted[i];
      const int load = event.is_move ? moved_load(sorted, i) : static_cast<int>(i);
      sizes[i] = event.size;
      if (load < 0) continue;
      // If a MOVE contradicts its LOAD, the smaller size counts.
      sizes[i] = std::min(event.size, sorted[static_cast<std::size_t>(load)].size);
      if (event.is_move) {
        int& left =
            put[sorted[static_cast<std::size_t>(now[static_cast<std::size_t>(load)])].begin];
        if (left == load) left = -1;
      }
      put[event.begin] = load;
      for (Byte& byte : bytes) {
        if (event.is_move && byte.placement == now[static_cast<std::size_t>(load)]) byte = {};
      }
      load_of[i] = load;
      now[static_cast<std::size_t>(load)] = static_cast<int>(i);
      for (std::uint64_t k = 0; k < std::max<std::uint64_t>(sizes[i], 1); ++k) {
        bytes[event.begin + k] = {static_cast<int>(i), event.begin};
      }
    }
  }

  int moved_load(const std::vector<Event>& sorted, std::size_t move) const {
    const Address from = sorted[move].from;
    int last = -1;
    for (std::size_t i = 0; i < move; ++i) {
      if (load_of[i] >= 0 && sorted[i].index == sorted[move].index) last = load_of[i];
    }
    const auto place = [&](int load) {
      return sorted[static_cast<std::size_t>(now[static_cast<std::size_t>(load)])].begin;
    };
    if (last >= 0 && place(last) == from) return last;
    return put[from] >= 0 ? put[from] : last;
  }
};

}  // namespace

TEST_CASE("a timeline equals memory that is written in the order of time", "[timeline][property]") {
  const auto seed = GENERATE(range(0u, 400u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::size_t span = seed % 3 == 0 ? 200 : 40;
  // Distant or very large ranges take the wider representations. (Size 0 is one byte at any scale.)
  const std::uint64_t scale = std::array<std::uint64_t, 4>{1, 1, 7000, 1u << 28}[seed % 4];

  std::vector<Event> events(below(seed % 5 == 0 ? 120 : 14));
  test::DumpBytes bytes;
  bytes.header();
  for (Event& event : events) {
    event = {below(20), below(4) == 0, below(span), below(span), below(seed % 2 ? 20 : 50),
             below(6),  bytes.size()};
    if (scale != 1) event.size = std::max<std::uint64_t>(event.size, 1);
    if (event.is_move) {
      bytes.move(event.time, event.from * scale, event.begin * scale, event.size * scale,
                 event.index);
    } else {
      bytes.load_of_size(event.time, event.begin * scale, event.size * scale, "f", event.index);
    }
  }
  std::vector<Event> sorted = events;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });

  Diagnostics problems(1);
  const Timeline timeline(test::dump_of(bytes.text()), problems);
  CHECK(problems.total() == problems.count_of(rule::kOddMove));
  for (std::uint64_t time = 0; time <= 21; ++time) {
    CAPTURE(time);
    const Memory memory(sorted, time, span);
    std::vector<PlacedCode> there;
    timeline.for_each_at(time, [&](const PlacedCode& code) { there.push_back(code); });
    std::vector<AddressAtTime> asked;
    for (Address address = 0; address < memory.bytes.size(); ++address) {
      asked.push_back({address * scale, time});
    }
    std::vector<std::optional<CodeAt>> answers(asked.size());
    timeline.find_all(asked, answers);
    for (Address address = 0; address < memory.bytes.size(); ++address) {
      CAPTURE(address);
      const int owner = memory.bytes[address].placement;
      const auto code = timeline.find(address * scale + scale - 1, time);
      const auto listed = std::find_if(there.begin(), there.end(), [&](const PlacedCode& placed) {
        return placed.piece.contains(address * scale);
      });
      REQUIRE(code.has_value() == (owner >= 0));
      if (scale == 1) REQUIRE(answers[address] == code);
      REQUIRE((listed != there.end()) == (owner >= 0));
      if (owner < 0) continue;
      const Event& event = sorted[static_cast<std::size_t>(owner)];
      const int load = memory.load_of[static_cast<std::size_t>(owner)];
      REQUIRE(listed->code == *code);
      REQUIRE(code->placed == event.offset);
      REQUIRE(code->load == sorted[static_cast<std::size_t>(load)].offset);
      REQUIRE(code->range == AddressRange{event.begin * scale,
                                          memory.sizes[static_cast<std::size_t>(owner)] * scale});
      REQUIRE(code->since <= time);
      REQUIRE(time < code->until);
    }
  }
}

}  // namespace perfmap::timeline_property

// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/timeline.hpp"
#include "support/synthetic_dump.hpp"

namespace perfmap::bench {
namespace {

volatile std::uint64_t sink;

Jitdump open_dump(const std::string& path) {
  Result<Input> input = Input::open(path);
  return Jitdump(*std::move(input));
}

/// The minimal work of any reader: from record size to record size.
std::uint64_t walk_prefixes(std::string_view bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = JitdumpHeader::kSize; at < bytes.size();) {
    std::uint32_t size = 0;
    std::uint64_t time = 0;
    std::memcpy(&size, bytes.data() + at + 4, sizeof size);
    std::memcpy(&time, bytes.data() + at + 8, sizeof time);
    sum += time;
    at += size;
  }
  return sum;
}

std::uint64_t read_names(const Jitdump& dump) {
  std::uint64_t sum = 0;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (const auto load = decode_load(record)) sum += load->name.size() + load->range.begin;
  });
  return sum;
}

Timeline timeline_of(const std::string& path) {
  Diagnostics ignored(1);
  return {open_dump(path), ignored};
}

struct Load {
  AddressRange range;
  std::uint64_t time;
  std::uint64_t offset;
};

std::vector<Load> loads_of(const Jitdump& dump) {
  std::vector<Load> loads;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (const auto load = decode_load(record)) {
      loads.push_back({load->range, record.time, record.offset});
    }
  });
  return loads;
}

/// Addresses of random LOADs, at random times after them.
std::vector<AddressAtTime> questions(const std::vector<Load>& loads, std::size_t count) {
  std::mt19937_64 random(7);
  const std::uint64_t end = loads.back().time + 1000;
  std::vector<AddressAtTime> asked(count);
  for (AddressAtTime& question : asked) {
    const Load& load = loads[random() % loads.size()];
    question = {load.range.begin + random() % load.range.size,
                load.time + random() % (end - load.time)};
  }
  return asked;
}

void check(const Timeline& timeline, const std::vector<Load>& loads,
           const std::vector<AddressAtTime>& asked) {
  for (const AddressAtTime& question : asked) {
    const Load* last = nullptr;
    for (const Load& load : loads) {
      if (load.time > question.time) break;
      if (load.range.contains(question.address)) last = &load;
    }
    const auto code = timeline.find(question.address, question.time);
    if (!code || last == nullptr || code->load != last->offset || code->range != last->range) {
      throw Failed{"a timeline answers wrongly"};
    }
  }
}

/// Compares look-ups with a binary search in the same addresses without times.
Paired compare_finds(const Timeline& timeline, const std::vector<Load>& loads,
                     const std::vector<AddressAtTime>& asked) {
  std::vector<Address> begins;
  for (const Load& load : loads) begins.push_back(load.range.begin);
  std::sort(begins.begin(), begins.end());
  return compare(
      5,
      [&] {
        for (const AddressAtTime& question : asked) {
          sink = sink + timeline.find(question.address, question.time)->load;
        }
      },
      [&] {
        for (const AddressAtTime& question : asked) {
          sink = sink + *(std::upper_bound(begins.begin(), begins.end(), question.address) - 1);
        }
      });
}

/// Building and looking up. The targets are absolute; next to them is other work on this machine
/// for comparison.
void bench_timeline(const std::string& path, const std::string& what, double max_ms,
                    double max_bytes, double max_ns) {
  const Paired build = compare(
      5, [&] { timeline_of(path); }, [&] { sink = walk_prefixes(open_dump(path).bytes()); });
  print_row("timeline, " + what + ": build (and a walk)", ms(build.ours_ms), ms(build.limit_ms),
            build.ours_ms, max_ms);
  const double before_kb = status_kb("RssAnon:");
  const Timeline timeline = timeline_of(path);
  const double bytes = (status_kb("RssAnon:") - before_kb) * 1024;
  const std::vector<Load> loads = loads_of(timeline.dump());
  const double each = bytes / static_cast<double>(loads.size());
  print_row("  bytes a LOAD beyond the file", std::to_string(int(each)), "-", each, max_bytes);
  const std::vector<AddressAtTime> asked = questions(loads, 1'000'000);
  check(timeline, loads, {asked.begin(), asked.begin() + 300});
  const Paired find = compare_finds(timeline, loads, asked);
  print_row("  look-up, address and time (and upper_bound)", ns_each(find.ours_ms, 1e6),
            ns_each(find.limit_ms, 1e6), find.ours_ms, max_ns);
  std::vector<std::optional<CodeAt>> answers(asked.size());
  const Paired all = compare(
      5, [&] { timeline.find_all(asked, answers); },
      [&] {
        for (const AddressAtTime& question : asked) {
          sink = sink + timeline.find(question.address, question.time)->load;
        }
      });
  print_row("  look-up of many at once", ns_each(all.ours_ms, 1e6), ns_each(all.limit_ms, 1e6),
            all.ratio, kNotAsked);
}

}  // namespace

void bench_jitdump(const Files& files) {
  const std::string path = files.out + ".dump";
  const auto write = [&](const test::SyntheticDump& wishes) {
    std::ofstream(path, std::ios::binary) << test::synthetic_dump(wishes);
  };
  write({.reused_percent = 20, .seed = 4});
  {
    const Jitdump dump = open_dump(path);
    const Paired read = compare(
        9, [&] { sink = read_names(dump); }, [&] { sink = walk_prefixes(dump.bytes()); });
    print_row("read a jitdump with names, against a walk over sizes", ns_each(read.ours_ms, 1e6),
              ns_each(read.limit_ms, 1e6), read.ratio, 1.5);
  }
  bench_timeline(path, "1 M, a fifth reused", 1000, 64, 300);
  write({.one_page = true, .seed = 5});
  bench_timeline(path, "1 M over one page", kNotAsked, kNotAsked, kNotAsked);
  std::remove(path.c_str());
}

}  // namespace perfmap::bench

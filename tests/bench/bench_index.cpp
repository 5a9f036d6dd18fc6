// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/index.hpp"
#include "support/synthetic_map.hpp"

namespace perfmap::bench {
namespace {

Index load(const std::string& path) {
  Result<Input> input = Input::open(path);
  std::vector<Map> maps;
  maps.emplace_back(*std::move(input));
  Diagnostics ignored(1);
  return {std::move(maps), Overlap::last, ignored};
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

volatile std::uint64_t sink;

struct Lookups {
  double find_ms;
  double bound_ms;
};

/// blazesym's map of a process (its module perf_map, read in 2026-08): an array of names, addresses
/// and sizes, sorted by address; the last function that begins at or before an address, by binary
/// search, if it has the address.
class SortedFunctions {
 public:
  explicit SortedFunctions(const Index& index) {
    for (std::size_t i = 0; i < index.segment_count(); ++i) {
      const auto entry = index.entry(index.segment(i).owner);
      functions_.push_back({entry->name, entry->range.begin, entry->range.size});
    }
  }
  std::string_view name_at(Address address) const {
    const auto after =
        std::upper_bound(functions_.begin(), functions_.end(), address,
                         [](Address wanted, const Function& one) { return wanted < one.begin; });
    if (after == functions_.begin()) return {};
    const Function& found = *(after - 1);
    return address - found.begin < found.size ? found.name : std::string_view();
  }

 private:
  struct Function {
    std::string_view name;
    Address begin;
    std::uint64_t size;
  };
  std::vector<Function> functions_;
};

/// Uses a name as a reader does: its length and a byte.
void use(std::string_view name) {
  sink = sink + name.size() + (name.empty() ? 0 : static_cast<unsigned char>(name.front()));
}

/// From addresses in random order to their names, one by one and in batches of a thousand.
void bench_names(const Index& index, const std::vector<Address>& asked, const std::string& size) {
  const SortedFunctions model(index);
  for (const Address address : asked) {
    expect(index.find_entry(address)->name == model.name_at(address), "the model differs");
  }
  const auto ask_model = [&] {
    for (const Address address : asked) use(model.name_at(address));
  };
  const double count = static_cast<double>(asked.size());
  const Paired single = compare(
      9,
      [&] {
        for (const Address address : asked) use(index.find_entry(address)->name);
      },
      ask_model);
  print_row("name at an address, " + size + ", against blazesym's way",
            ns_each(single.ours_ms, count), ns_each(single.limit_ms, count), single.ratio, 1.0);
  const auto ask_batches = [&] {
    constexpr std::size_t kBatch = 1000;
    std::vector<EntryRef> hits(kBatch);
    std::vector<std::optional<Entry>> entries(kBatch);
    for (std::size_t done = 0; done + kBatch <= asked.size(); done += kBatch) {
      index.find_all({asked.data() + done, kBatch}, hits);
      index.entries(hits, entries);
      for (const std::optional<Entry>& entry : entries) use(entry->name);
    }
  };
  const Paired batch = compare(9, ask_batches, ask_model);
  print_row("  in batches of 1000", ns_each(batch.ours_ms, count), ns_each(batch.limit_ms, count),
            batch.ratio, 0.35);
}

Lookups bench_find(const std::string& path, const std::string& size, bool rows) {
  constexpr std::size_t kCount = 1'000'000;
  const Index index = load(path);
  std::vector<Address> asked = test::addresses_in(read_file(path), kCount, 7);
  std::vector<Address> begins;
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    begins.push_back(index.segment(i).range.begin);
  }
  const auto upper_bound = [&] {
    for (const Address address : asked) {
      sink = sink + static_cast<std::uint64_t>(
                        std::upper_bound(begins.begin(), begins.end(), address) - begins.begin());
    }
  };
  const auto find = [&] {
    for (const Address address : asked) sink = sink + index.find(address).line;
  };
  const Paired random = compare(5, find, upper_bound);
  print_row("look-up, random hit, " + size, ns_each(random.ours_ms, kCount),
            ns_each(random.limit_ms, kCount), random.ratio, 1.0);
  if (!rows) return {random.ours_ms, random.limit_ms};
  bench_names(index, asked, size);
  std::vector<EntryRef> hits(asked.size());
  std::sort(asked.begin(), asked.end());
  const Paired batch = compare(
      5, [&] { index.find_all(asked, hits); }, upper_bound);
  for (std::size_t i = 0; i < asked.size(); ++i)
    expect(hits[i].line == index.find(asked[i]).line, "a batch has another answer");
  print_row("look-up, sorted batch, " + size, ns_each(batch.ours_ms, kCount),
            ns_each(batch.limit_ms, kCount), batch.ratio, 0.5);
  return {random.ours_ms, random.limit_ms};
}

}  // namespace

void bench_index(const Files& files) {
  const auto count_lines = [](const std::string& path) {
    return [path] { run({"wc", "-l", path}); };
  };
  const Paired plain = compare(
      15, [&] { load(files.plain); }, count_lines(files.plain));
  print_row("load, 1 M entries, against wc -l", ms(plain.ours_ms), ms(plain.limit_ms), plain.ratio,
            3.0);
  const Paired reused = compare(
      15, [&] { load(files.reused); }, count_lines(files.reused));
  print_row("load, 1 M, a fifth reused, against wc -l", ms(reused.ours_ms), ms(reused.limit_ms),
            reused.ratio, 7.0);
  const Lookups small = bench_find(files.plain, "1 M", true);

  const double before_kb = status_kb("RssAnon:");
  {
    load(files.large);
    const Index index = load(files.large);
    const double bytes = (status_kb("RssAnon:") - before_kb) * 1024;
    print_row("memory beyond the file, bytes an entry, 10 M", std::to_string(int(bytes / 1e7)), "-",
              bytes / 1e7, 32);
  }
  const Paired grown = compare(
      5, [&] { load(files.large); }, [&] { load(files.plain); });
  print_row("growth 1 M to 10 M: load", ms(grown.ours_ms), ms(grown.limit_ms), grown.ratio, 11);
  const Lookups large = bench_find(files.large, "10 M", false);
  print_row("growth 1 M to 10 M: look-up", ns_each(large.find_ms, 1e6), ns_each(small.find_ms, 1e6),
            large.find_ms / small.find_ms, 3);
}

}  // namespace perfmap::bench

// SPDX-License-Identifier: MIT
#include <fstream>
#include <map>
#include <sstream>

#include "perfmap/profile/stacks.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/resolver.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::loop_samples_test {
namespace {

using test::Bytes;
using test::EventShape;
using test::RecordingBytes;

std::string profile_path(const std::string& name) {
  return test::tests_dir("/wild/pypy/profile/" + name);
}

Input open(const std::string& name) {
  Result<Input> input = Input::open(profile_path(name));
  REQUIRE(input);
  return *std::move(input);
}

LoopProfile read_log(const Input& log) {
  LoopProfile profile({.keep_code_bytes = true});
  read_pypylog(log, profile);
  profile.finish();
  return profile;
}

Recording recording() {
  Result<Recording> opened = Recording::open(open("perf.data"));
  REQUIRE(opened);
  return *std::move(opened);
}

/// A sampled address, its number of samples, and the name of its loop according to the log.
struct Known {
  Address ip = 0;
  std::uint64_t count = 0;
  std::string name;
};
std::vector<Known> known() {
  std::ifstream file(profile_path("loops.tsv"));
  std::string line;
  std::getline(file, line);
  std::vector<Known> all;
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    Known one;
    fields >> std::hex >> one.ip >> std::dec >> one.count;
    fields.ignore(1);
    std::getline(fields, one.name, '\t');
    all.push_back(one);
  }
  REQUIRE(all.size() == 169);
  return all;
}

void check_names(const Resolver& resolver) {
  for (const Known& one : known()) {
    const Resolution answer = resolver.find({one.ip});
    REQUIRE(answer.found);
    CHECK(std::string(answer.found->name) == one.name);
  }
}

/// Builds a recording of synthetic processes.
class RecordingBuilder {
 public:
  explicit RecordingBuilder(bool monotonic = false) {
    shape_.sample_type |= test::kCallchain;
    if (!monotonic) return;
    shape_.flags |= 1 << 25;
    shape_.clock = 1;
  }

  RecordingBuilder& sample(std::uint32_t pid, std::uint64_t time, Address ip) {
    data_ += bytes_.sample(shape_, {.ip = ip, .time = time, .pid = pid, .tid = pid});
    return *this;
  }
  RecordingBuilder& kernel_sample(std::uint32_t pid, std::uint64_t time,
                                  std::vector<std::uint64_t> chain) {
    data_ += bytes_.sample(
        shape_, {.ip = chain[1], .time = time, .pid = pid, .tid = pid, .callchain = chain}, 1);
    return *this;
  }
  RecordingBuilder& map(std::uint32_t pid, std::uint64_t time, AddressRange range,
                        const std::string& name) {
    Bytes body = bytes_.bytes();
    body.u32(pid).u32(pid).u64(range.begin).u64(range.size).u64(0).zeros(24).u32(5).u32(2);
    body.padded(name).raw(bytes_.trailer(shape_, {.time = time, .pid = pid, .tid = pid}));
    data_ += bytes_.record(10, body.text(), 2);
    return *this;
  }
  RecordingBuilder& fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time) {
    Bytes body = bytes_.bytes();
    body.u32(child).u32(parent).u32(child).u32(parent).u64(time);
    body.raw(bytes_.trailer(shape_, {.time = time, .pid = child, .tid = child}));
    data_ += bytes_.record(7, body.text());
    return *this;
  }
  /// Times are 1000 plus twice the ticks.
  RecordingBuilder& conversion() {
    data_ += bytes_.record(79, bytes_.bytes().u64(1).u64(4).u64(1000).text());
    return *this;
  }
  LoopSamples counted(const LoopProfile& profile, std::uint64_t last, pid_t pid = 0) const {
    RecordingBytes::Parts parts;
    parts.features[21] = bytes_.bytes().u64(1).u64(last).text();
    const auto recording = Recording::open(
        Input::from_text(bytes_.file({shape_}, data_ + bytes_.finished_round(), parts), "made"));
    REQUIRE(recording);
    Diagnostics problems(1);
    const auto samples =
        count_loop_samples(*recording, profile.loops(), TickBase::dec, problems, pid);
    REQUIRE(samples);
    CHECK(problems.total() == 0);
    return *samples;
  }

 private:
  RecordingBytes bytes_;
  EventShape shape_;
  std::string data_;
};

/// Loop 1 from tick 100, and from tick 200 loop 2 in the same place.
LoopProfile two_loops() {
  LoopProfile profile({.base = TickBase::dec});
  profile.add(
      "[100] {jit-backend-addr\nLoop 1 (f;/t.py:1-2~#0 X) has address 0x1000 to 0x1040\n"
      "[101] jit-backend-addr}\n"
      "[200] {jit-backend-addr\nLoop 2 (g;/t.py:5-6~#0 X) has address 0x1000 to 0x1020\n"
      "[201] jit-backend-addr}\n");
  profile.finish();
  return profile;
}

using Counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("the map of a log names every address that perf sampled in a loop", "[pypylog][wild]") {
  Result<MapText> text = map_of_loops(read_log(open("pypylog")).loops());
  REQUIRE(text);
  CHECK(text->changed.count == 0);
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(std::move(text->text), "map"));
  Diagnostics problems(1);
  check_names(Resolver(std::move(maps), {}, Overlap::last, problems, problems));
  CHECK(problems.total() == 0);
}

TEST_CASE("the dump of a log names every address that perf sampled in a loop", "[pypylog][wild]") {
  const Input log = open("pypylog");
  Result<JitdumpBytes> bytes = dump_of_loops(read_log(log).loops(), log.text(), {});
  REQUIRE(bytes);
  CHECK(bytes->without_code == 0);
  std::vector<Jitdump> dumps;
  dumps.emplace_back(Input::from_text(std::move(bytes->bytes), "dump"));
  Diagnostics problems(1);
  check_names(Resolver({}, std::move(dumps), Overlap::last, problems, problems));
  CHECK(problems.total() == 0);
}

TEST_CASE("samples of a forked child do not count for its parent, which wrote the log",
          "[pypylog]") {
  RecordingBuilder made;
  made.sample(7, 10, 0x1010).fork(8, 7, 20);
  for (std::uint64_t time = 30; time < 35; ++time) made.sample(8, time, 0x1030);
  const LoopProfile profile = two_loops();

  const LoopSamples parent = made.counted(profile, 40);
  CHECK(parent.pid == 7);
  CHECK(parent.by_loop == Counts{0, 1});
  CHECK(parent.others == 5);
  REQUIRE(parent.processes.size() == 2);
  CHECK(parent.processes[1].pid == 8);
  CHECK(parent.processes[1].in_loops == 5);

  const LoopSamples child = made.counted(profile, 40, 8);
  CHECK(child.pid == 8);
  CHECK(child.by_loop == Counts{5, 0});
  CHECK(made.counted(profile, 40, 9).pid == 0);
}

TEST_CASE("samples of a recording are counted for the loops that contain them", "[pypylog][wild]") {
  const LoopProfile profile = read_log(open("pypylog"));
  Diagnostics problems(1);
  const auto samples = count_loop_samples(recording(), profile.loops(), profile.base(), problems);
  REQUIRE(samples);
  CHECK(problems.total() == 0);
  CHECK(samples->pid == 5569);
  CHECK(samples->total == 635);
  CHECK(samples->others == 0);
  CHECK(samples->in_loops == 420);
  CHECK_FALSE(samples->by_time);
  std::map<std::string, std::uint64_t> wanted, counted;
  for (const Known& one : known()) wanted[one.name] += one.count;
  const auto loops = profile.loops().all();
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (samples->by_loop[i] != 0) counted[loops[i].name] += samples->by_loop[i];
  }
  CHECK(counted == wanted);
}

TEST_CASE("with comparable clocks, a sample counts for the loop that existed at its time",
          "[pypylog]") {
  RecordingBuilder made;
  made.conversion().sample(7, 1199, 0x1000).sample(7, 1200, 0x1000).sample(7, 1399, 0x1010);
  made.sample(7, 1400, 0x1010).sample(7, 1500, 0x1020).sample(7, 1500, 0x1040);
  const LoopSamples samples = made.counted(two_loops(), 1500);
  CHECK(samples.by_time);
  CHECK(samples.by_loop == Counts{3, 1});
  CHECK(samples.in_loops == 4);
  CHECK(samples.total == 6);
  REQUIRE(samples.conversion);
  CHECK(samples.conversion->zero == 1000);
}

TEST_CASE("without comparable clocks, samples count for the last loop at their address",
          "[pypylog]") {
  const auto with_samples = [](RecordingBuilder made) {
    return made.sample(7, 1200, 0x1000).sample(7, 1500, 0x1020);
  };
  // No conversion; a recording with a clock of its own; ticks of another counter.
  const LoopSamples unknown = with_samples(RecordingBuilder()).counted(two_loops(), 1500);
  const LoopSamples other_clock =
      with_samples(RecordingBuilder(true).conversion()).counted(two_loops(), 1500);
  const LoopSamples later =
      with_samples(RecordingBuilder().conversion()).counted(two_loops(), 1100);
  for (const LoopSamples& samples : {unknown, other_clock, later}) {
    CHECK_FALSE(samples.by_time);
    CHECK(samples.by_loop == Counts{1, 1});
  }
}

TEST_CASE("the process with the most samples in loops is selected", "[pypylog]") {
  RecordingBuilder made;
  made.sample(7, 1, 0x1000).sample(8, 2, 0x1000).sample(8, 3, 0x1021).sample(9, 4, 0x5000);
  const LoopSamples samples = made.counted(two_loops(), 4);
  CHECK(samples.pid == 8);
  CHECK(samples.by_loop == Counts{1, 1});
  CHECK(samples.total == 2);
  CHECK(samples.others == 2);
  const LoopSamples none = RecordingBuilder().sample(7, 1, 0x5000).counted(two_loops(), 4);
  CHECK(none.pid == 0);
  CHECK(none.in_loops == 0);
  CHECK(none.total == 0);
  CHECK(none.others == 1);
}

TEST_CASE("a kernel sample counts for a loop if its first user frame is in the loop", "[pypylog]") {
  constexpr auto kKernel = static_cast<std::uint64_t>(-128);
  constexpr auto kUser = static_cast<std::uint64_t>(-512);
  RecordingBuilder made;
  made.kernel_sample(7, 1, {kKernel, 0xffffffff81000000, kUser, 0x1004, 0x1030});
  made.kernel_sample(7, 2, {kKernel, 0xffffffff81000000, 0x1004});
  made.kernel_sample(7, 3, {kKernel, 0xffffffff81000000, kUser, 0x9999, 0x1004});
  const LoopSamples samples = made.counted(two_loops(), 4);
  CHECK(samples.in_loops == 1);
  CHECK(samples.total == 3);
}

TEST_CASE("samples in a mapped file do not count for a loop", "[pypylog]") {
  RecordingBuilder made;
  made.map(7, 1, {0x1000, 0x1000}, "/usr/lib/libx.so").sample(7, 2, 0x1000);
  made.map(7, 3, {0x1000, 0x1000}, "//anon").sample(7, 4, 0x1000);
  const LoopSamples samples = made.counted(two_loops(), 4);
  CHECK(samples.in_loops == 1);
  CHECK(samples.total == 2);
}

}  // namespace perfmap::loop_samples_test

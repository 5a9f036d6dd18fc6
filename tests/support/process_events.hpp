// SPDX-License-Identifier: MIT
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::test {

/// Sources with the given text, for StackOptions::find_jit.
inline std::shared_ptr<JitSources> map_sources(const std::string& text) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "map"));
  return std::make_shared<JitSources>(std::move(maps), std::vector<Jitdump>());
}
inline std::shared_ptr<JitSources> dump_sources(const std::string& text) {
  std::vector<Jitdump> dumps;
  dumps.emplace_back(Input::from_text(text, "dump"));
  return std::make_shared<JitSources>(std::vector<Map>(), std::move(dumps));
}

/// Builds a recording of processes, by default with CLOCK_MONOTONIC. Each record is ten nanoseconds
/// later than the one before.
class ProcessEvents {
 public:
  enum class Clock { monotonic, unknown };

  explicit ProcessEvents(Clock clock = Clock::monotonic) {
    shape_.sample_type |= kCallchain;
    if (clock == Clock::unknown) return;
    shape_.flags |= 1 << 25;
    shape_.clock = CLOCK_MONOTONIC;
  }

  std::uint64_t time() const { return time_; }
  int count() const { return count_; }  ///< number of samples

  /// `access`: PROT_…, by default of code; `flags`: MAP_SHARED or MAP_PRIVATE.
  ProcessEvents& map(pid_t pid, AddressRange range, const std::string& name = "//anon",
                     std::uint32_t access = 5, std::uint32_t flags = MAP_PRIVATE) {
    Bytes body = bytes_.bytes();
    body.u32(pid).u32(pid).u64(range.begin).u64(range.size).u64(0).zeros(24).u32(access).u32(flags);
    return add(10, body.padded(name), pid, 2);
  }
  ProcessEvents& fork(pid_t pid, pid_t parent) { return task(7, pid, parent); }
  /// perf found the process when it started.
  ProcessEvents& found(pid_t pid, pid_t parent) { return task(7, pid, parent, 1 << 13); }
  ProcessEvents& exit(pid_t pid) { return task(4, pid, pid); }
  ProcessEvents& exec(pid_t pid, const std::string& name = "other") {
    return add(3, bytes_.bytes().u32(pid).u32(pid).padded(name), pid, 1 << 13);
  }
  ProcessEvents& sample(pid_t pid, Address ip) {
    SampleValues values = trailer(pid);
    values.ip = ip;
    values.callchain = {kUser, ip};
    ++count_;
    data_ += bytes_.sample(shape_, values);
    return *this;
  }
  /// A sample in the kernel, called from `caller`.
  ProcessEvents& kernel_sample(pid_t pid, Address caller) {
    SampleValues values = trailer(pid);
    values.ip = 0xffffffff81000000;
    values.callchain = {kKernel, values.ip, kUser, caller};
    ++count_;
    data_ += bytes_.sample(shape_, values, 1);
    return *this;
  }
  /// Later records are read in another group.
  ProcessEvents& end_of_round() {
    data_ += bytes_.finished_round();
    return *this;
  }

  Recording recording() const {
    auto opened = Recording::open(Input::from_text(bytes_.file({shape_}, data_), "perf.data"));
    REQUIRE(opened);
    return *std::move(opened);
  }

  /// The name of each sample's frame in user space: "-" if it has none, with "?" after a doubtful
  /// name.
  std::vector<std::string> names(const StackOptions::FindJit& find_jit,
                                 const StackOptions::FindParents& find_parents = {},
                                 const ProcessTracker::OpenModule& open_module = {}) const {
    const Recording read = recording();
    StackOptions options;
    options.find_jit = find_jit;
    options.find_parents = find_parents;
    options.open_module = open_module;
    StackReader reader(read, std::move(options));
    std::vector<std::string> found;
    Diagnostics problems(1);
    reader.read(
        [&](const StackSample& one) {
          REQUIRE(!one.frames.empty());
          const std::uint32_t place = one.frames.back().place;
          std::string name(reader.table().function_of(place).name);
          if (reader.table().place(place).doubts.any()) name += "?";
          found.push_back(name.empty() ? "-" : name);
        },
        problems);
    return found;
  }

 private:
  static constexpr auto kKernel = static_cast<std::uint64_t>(-128);  // PERF_CONTEXT_KERNEL
  static constexpr auto kUser = static_cast<std::uint64_t>(-512);    // PERF_CONTEXT_USER

  SampleValues trailer(pid_t pid) {
    SampleValues values;
    values.pid = values.tid = static_cast<std::uint32_t>(pid);
    values.time = time_ += 10;
    return values;
  }
  ProcessEvents& task(std::uint32_t type, pid_t pid, pid_t parent, std::uint16_t misc = 0) {
    Bytes body = bytes_.bytes();
    body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time_ + 10);
    return add(type, body, pid, misc);
  }
  ProcessEvents& add(std::uint32_t type, Bytes& body, pid_t pid, std::uint16_t misc) {
    data_ += bytes_.record(type, body.raw(bytes_.trailer(shape_, trailer(pid))).text(), misc);
    return *this;
  }

  RecordingBytes bytes_;
  EventShape shape_;
  std::string data_;
  std::uint64_t time_ = 0;
  int count_ = 0;
};

}  // namespace perfmap::test

// SPDX-License-Identifier: MIT
#include "bench/c_unwinder.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace perfmap::bench {
namespace {

constexpr std::uint32_t kSampleRecord = 9;

void must(perfmap_status status) {
  if (status != PERFMAP_OK) std::abort();
}

}  // namespace

CUnwinder::CUnwinder(const std::string& path, const std::string& symfs) {
  must(perfmap_module_cache_begin(nullptr, &cache_, nullptr));
  perfmap_tracker_options options{};
  options.struct_size = sizeof options;
  options.modules = cache_;
  options.symfs = symfs.c_str();
  must(perfmap_tracker_begin(&options, &tracker_, nullptr));
  must(perfmap_unwinder_begin(nullptr, &unwinder_, nullptr));
  must(perfmap_recording_open(path.c_str(), &recording_, nullptr));
  must(perfmap_recording_read(recording_, take, this, nullptr));
}

CUnwinder::~CUnwinder() {
  for (perfmap_unwind_space* const space : spaces_) perfmap_unwind_detach(space);
  perfmap_recording_end(recording_);
  perfmap_unwinder_end(unwinder_);
  perfmap_tracker_end(tracker_);
  perfmap_module_cache_end(cache_);
}

int CUnwinder::take(const perfmap_record* record, void* self) {
  static_cast<CUnwinder*>(self)->take(*record);
  return 0;
}

void CUnwinder::take(const perfmap_record& record) {
  if (record.type != kSampleRecord) {
    must(perfmap_tracker_on_record(tracker_, &record, nullptr));
    // All records about processes begin with a pid.
    std::int32_t pid = 0;
    std::memcpy(&pid, static_cast<const char*>(record.bytes) + 8, sizeof pid);
    by_pid_.erase(pid);
    return;
  }
  perfmap_recorded_sample decoded{};
  decoded.struct_size = sizeof decoded;
  perfmap_sample sample{};
  sample.struct_size = sizeof sample;
  must(perfmap_recording_get_sample(recording_, &record, &decoded, &sample, nullptr));
  if (sample.machine == 0 || sample.stack_size == 0) return;
  perfmap_unwind_space*& space = by_pid_[decoded.pid];
  if (space == nullptr) {
    must(perfmap_unwind_attach(tracker_, decoded.pid, decoded.time, &space, nullptr));
    spaces_.push_back(space);
  }
  User& user = users_.emplace_back();
  std::copy_n(sample.registers, sample.register_count, user.registers.begin());
  user.stack.assign(static_cast<const char*>(sample.stack), sample.stack_size);
  user.sample = sample;
  user.sample.callchain = nullptr;
  user.sample.callchain_size = 0;
  user.space = space;
}

std::size_t CUnwinder::unwind_all() {
  std::size_t frames = 0;
  const auto count = [](const perfmap_frame*, void* counter) {
    ++*static_cast<std::size_t*>(counter);
    return 0;
  };
  for (const User& user : users_) {
    perfmap_sample sample = user.sample;
    sample.registers = user.registers.data();
    sample.stack = user.stack.data();
    std::int32_t end = 0;
    must(perfmap_unwind_sample(unwinder_, user.space, &sample, count, &frames, &end, nullptr));
  }
  return frames;
}

}  // namespace perfmap::bench

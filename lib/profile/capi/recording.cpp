// SPDX-License-Identifier: MIT
#include "capi/recording.hpp"

#include <array>

#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stacks.hpp"

using namespace perfmap::capi;

namespace {

perfmap::RecordView view_of(const perfmap_record& record) noexcept {
  perfmap::RecordView view;
  view.time = record.time;
  view.offset = record.offset;
  view.event = record.event;
  view.misc = static_cast<std::uint16_t>(record.misc);
  view.type = static_cast<perfmap::RecordType>(record.type);
  view.is_swapped = record.is_swapped != 0;
  view.bytes = {static_cast<const char*>(record.bytes), record.size};
  return view;
}

perfmap_record to_c(const perfmap::RecordView& view) noexcept {
  perfmap_record record{};
  record.struct_size = sizeof record;
  record.type = static_cast<uint32_t>(view.type);
  record.misc = view.misc;
  record.time = view.time;
  record.offset = view.offset;
  record.event = view.event;
  record.is_swapped = view.is_swapped ? 1 : 0;
  record.bytes = view.bytes.data();
  record.size = view.bytes.size();
  return record;
}

void copy_words(const perfmap::Words& words, std::vector<std::uint64_t>& out) {
  out.clear();
  for (size_t i = 0; i < words.size(); ++i) out.push_back(words[i]);
}

/// The sample as perfmap_unwind_sample() takes it; machine 0 if it is not known.
perfmap_sample unwindable(const perfmap_recording& recording,
                          const perfmap::RecordedSample& sample) {
  perfmap_sample out{};
  out.struct_size = sizeof out;
  const auto machine = perfmap::machine_of(recording.recording.facts().arch, sample.user);
  out.machine = machine ? static_cast<uint32_t>(*machine) : 0;
  out.time = sample.time;
  out.is_stack_full = sample.is_stack_full() ? 1 : 0;
  if (sample.user.abi != 0 && !sample.user_stack.empty()) {
    out.register_mask = sample.user.mask;
    lend(recording.registers, out.registers, out.register_count);
    lend(sample.user_stack, out.stack, out.stack_size);
  }
  lend(recording.callchain, out.callchain, out.callchain_size);
  return out;
}

perfmap_recorded_sample to_c(const perfmap::RecordedSample& sample) noexcept {
  perfmap_recorded_sample out{};
  out.time = sample.time;
  out.ip = sample.ip;
  out.pid = sample.pid;
  out.tid = sample.tid;
  out.cpu = sample.cpu;
  out.event = sample.event;
  out.period = sample.period;
  out.address = sample.address;
  out.mode = static_cast<int32_t>(sample.mode);
  out.user_abi = static_cast<uint32_t>(sample.user.abi);
  return out;
}

}  // namespace

perfmap_status perfmap_recording_open(const char* path, perfmap_recording** out,
                                      perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (path == nullptr) return perfmap::capi::invalid("path: NULL", error);
    auto opened = perfmap::open_recording(path);
    if (!opened) return report(opened.error(), error);
    *out = new perfmap_recording{*std::move(opened)};
    return PERFMAP_OK;
  });
}

void perfmap_recording_end(perfmap_recording* recording) { delete recording; }

void perfmap_recording_get_facts(const perfmap_recording* recording, perfmap_recording_facts* out) {
  if (!perfmap::capi::is_complete(out)) return;
  const perfmap::RecordingFacts& from = recording->recording.facts();
  perfmap_recording_facts facts{};
  facts.is_pipe = from.is_pipe ? 1 : 0;
  facts.was_killed = from.was_killed ? 1 : 0;
  facts.is_swapped = from.is_swapped ? 1 : 0;
  facts.cpus = from.cpus;
  lend(from.hostname, facts.hostname, facts.hostname_size);
  lend(from.os_release, facts.os_release, facts.os_release_size);
  lend(from.arch, facts.arch, facts.arch_size);
  facts.wall_ns = from.wall_ns;
  facts.clock_ns = from.clock_ns;
  facts.first_sample = from.first_sample;
  facts.last_sample = from.last_sample;
  facts.event_count = recording->events().size();
  copy_out(facts, out);
}

perfmap_status perfmap_recording_get_event(const perfmap_recording* recording, size_t index,
                                           perfmap_recorded_event* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const auto events = recording->events();
  if (index >= events.size()) return PERFMAP_E_NOT_FOUND;
  const perfmap::RecordedEvent& from = events[index];
  perfmap_recorded_event event{};
  lend(from.name, event.name, event.name_size);
  event.type = from.type;
  event.is_frequency = from.is_frequency ? 1 : 0;
  event.config = from.config;
  event.period = from.period;
  event.sample_type = from.sample_type;
  event.user_registers = from.user_registers;
  event.user_stack = from.user_stack;
  event.clock = from.clock.value_or(-1);
  copy_out(event, out);
  return PERFMAP_OK;
}

perfmap_status perfmap_recording_read(perfmap_recording* recording, perfmap_take_record take,
                                      void* context, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Recording::Reader reader(recording->recording);
    const perfmap_recording::Reading reading(*recording, reader);
    perfmap::Diagnostics problems(1);
    for (auto records = reader.next(problems); !records.empty(); records = reader.next(problems)) {
      for (const perfmap::RecordView& view : records) {
        const perfmap_record record = to_c(view);
        if (take(&record, context) != 0) return PERFMAP_OK;
      }
    }
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_recording_get_sample(perfmap_recording* recording,
                                            const perfmap_record* record,
                                            perfmap_recorded_sample* out, perfmap_sample* sample,
                                            perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_record given = copy_in(record);
        const auto events = recording->events();
        if (given.event >= events.size()) return PERFMAP_E_NOT_FOUND;
        const auto decoded = perfmap::decode_sample(view_of(given), events[given.event]);
        if (!decoded) return PERFMAP_E_NOT_FOUND;
        copy_words(decoded->user.values, recording->registers);
        copy_words(decoded->callchain, recording->callchain);
        if (sample != nullptr) copy_out(unwindable(*recording, *decoded), sample);
        copy_out(to_c(*decoded), out);
        return PERFMAP_OK;
      },
      record, out, sample);
}

perfmap_status perfmap_tracker_on_record(perfmap_tracker* tracker, const perfmap_record* record,
                                         perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        perfmap::pass_process_event(view_of(copy_in(record)), tracker->tracker);
        return PERFMAP_OK;
      },
      record);
}

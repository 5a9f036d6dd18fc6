// SPDX-License-Identifier: MIT
#include "perfmap/profile/stacks.hpp"

#include <optional>
#include <string>
#include <unistd.h>

#include "capi/recording.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stack_writer.hpp"

using namespace perfmap::capi;

struct perfmap_stacks {
  explicit perfmap_stacks(const perfmap_recording& read) : recording(read) {}

  const perfmap_recording& recording;
  std::optional<perfmap::ModuleCache> own_cache = {};
  perfmap::RecordedRefusals refused = {};
  perfmap::KernelSource kernel = {};
  std::optional<perfmap::StackReader> reader = {};
  bool has_lines = false;
  bool was_read = false;
  const perfmap::StackSample* sample = nullptr;  ///< the one that is visited
};

namespace {

using perfmap::Errc;

std::vector<pid_t> pids_of(const int32_t* pids, size_t count) { return {pids, pids + count}; }
std::vector<std::string> names_of(const char* const* names, size_t count) {
  return {names, names + count};
}
std::string text_of(const char* text) { return text != nullptr ? text : ""; }

perfmap::StackFilter filter_of(const perfmap_stacks_options& asked) {
  perfmap::StackFilter filter;
  filter.pids = pids_of(asked.pids, asked.pid_count);
  filter.tids = pids_of(asked.tids, asked.tid_count);
  filter.comms = names_of(asked.comms, asked.comm_count);
  filter.events = names_of(asked.events, asked.event_count);
  filter.from = asked.from;
  if (asked.to != 0) filter.to = asked.to;
  return filter;
}

perfmap::StackOptions::Names names_of(int32_t detail) noexcept {
  using Names = perfmap::StackOptions::Names;
  switch (detail) {
    case PERFMAP_DETAIL_LINES: return Names::lines;
    case PERFMAP_DETAIL_INLINES: return Names::inlines;
    case PERFMAP_DETAIL_ADDRESSES: return Names::none;
    default: return Names::symbols;
  }
}

perfmap::StackOptions options_of(const perfmap_stacks_options& asked) {
  perfmap::StackOptions options;
  options.filter = filter_of(asked);
  options.names = names_of(asked.detail);
  options.demangle = asked.mangled == 0;
  if (asked.threads != 0) options.threads = asked.threads;
  if (asked.most_frames != 0) options.unwind.max_frames = asked.most_frames;
  options.unwind.scan = asked.scan != 0;
  options.unwind.jit_cfi_first = asked.jit_cfi_first != 0;
  options.stitch = asked.stitch != 0;
  options.kernel = asked.no_kernel == 0;
  return options;
}

perfmap::ModuleCache& cache_of(const perfmap_stacks_options& asked, perfmap_stacks& stacks) {
  if (asked.modules != nullptr) return asked.modules->cache;
  perfmap::ModuleCacheOptions caching;
  caching.debug_directories = {"/usr/lib/debug"};
  return stacks.own_cache.emplace(std::move(caching));
}

/// Everything that `perfmap stacks` finds for a recording.
perfmap::Result<void> prepare(const perfmap_stacks_options& asked, perfmap_stacks& stacks) {
  const perfmap::Recording& recording = stacks.recording.recording;
  perfmap::RecordedJitOptions jit;
  if (asked.tmp != nullptr) jit.roots.tmp = asked.tmp;
  jit.symfs = text_of(asked.symfs);
  jit.any_owner = asked.any_owner != 0;
  auto known = perfmap::set_recorded_files(recording.input().name(), text_of(asked.map_dir), jit);
  if (known && asked.kallsyms != nullptr) known = stacks.kernel.open(asked.kallsyms);
  if (!known) return known;
  perfmap::StackOptions options = options_of(asked);
  stacks.has_lines = asked.detail == PERFMAP_DETAIL_LINES || asked.detail == PERFMAP_DETAIL_INLINES;
  options.open_module = perfmap::open_recorded_modules(cache_of(asked, stacks), recording, jit);
  if (asked.open != nullptr) {
    options.open_module =
        perfmap::capi::open_with(asked.open, asked.open_context, std::move(options.open_module));
  }
  options.find_parents = perfmap::find_recorded_parents(recording, jit);
  options.find_jit = perfmap::find_recorded_jit(recording, std::move(jit), stacks.refused);
  options.find_kallsyms = [&stacks](const perfmap::RecordedKernel& kernel) {
    return stacks.kernel.text_of(kernel);
  };
  stacks.reader.emplace(recording, std::move(options));
  return {};
}

/// A reader reads once.
perfmap_status begin_reading(perfmap_stacks& stacks, perfmap_error* error) {
  if (std::exchange(stacks.was_read, true)) return invalid("stacks: they were already read", error);
  return PERFMAP_OK;
}

/// "-" is standard output, as for the command.
perfmap::Result<perfmap::OutputFile> open_output(std::string_view path) {
  if (path != "-") return perfmap::OutputFile::replace(std::string(path));
  auto out = perfmap::OutputFile::to_descriptor(STDOUT_FILENO, "standard output");
  out.protect_terminal();
  return out;
}

perfmap_stack to_c(const perfmap::StackSample& sample) noexcept {
  perfmap_stack out{};
  out.struct_size = sizeof out;
  out.time = sample.time;
  out.pid = sample.pid;
  out.tid = sample.tid;
  out.cpu = sample.cpu;
  out.event = sample.event;
  out.period = sample.period;
  lend(sample.comm, out.comm, out.comm_size);
  lend(sample.process_comm, out.process_comm, out.process_comm_size);
  out.end = static_cast<int32_t>(sample.end);
  out.was_stitched = sample.was_stitched ? 1 : 0;
  out.frame_count = sample.frames.size();
  return out;
}

perfmap_stack_counts to_c(const perfmap::StackCounts& counts) noexcept {
  perfmap_stack_counts out{};
  out.pid = counts.pid;
  out.worst_source = static_cast<int32_t>(counts.worst_source());
  lend(counts.comm, out.comm, out.comm_size);
  out.samples = counts.samples;
  out.frames = counts.frames;
  out.full_copies = counts.full_copies;
  out.stitched = counts.stitched;
  out.not_unwound = counts.not_unwound;
  out.unnamed = counts.unnamed;
  out.unnamed_jit = counts.unnamed_jit;
  out.doubtful = counts.doubtful;
  lend(counts.ends, out.ends, out.end_count);
  lend(counts.sources, out.sources, out.source_count);
  return out;
}

}  // namespace

perfmap_status perfmap_stacks_begin(const perfmap_recording* recording,
                                    const perfmap_stacks_options* options, perfmap_stacks** out,
                                    perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_stacks_options asked = copy_in(options);
        if (asked.detail < PERFMAP_DETAIL_SYMBOLS || asked.detail > PERFMAP_DETAIL_ADDRESSES)
          return invalid("detail: no such detail", error);
        if (asked.to != 0 && asked.from > asked.to)
          return invalid("from: it is later than to", error);
        auto made = std::make_unique<perfmap_stacks>(*recording);
        const perfmap::Result<void> ready = prepare(asked, *made);
        if (!ready) return report(ready, error);
        *out = made.release();
        return PERFMAP_OK;
      },
      options);
}

void perfmap_stacks_end(perfmap_stacks* stacks) { delete stacks; }

perfmap_status perfmap_stacks_read(perfmap_stacks* stacks, perfmap_take_stack take, void* context,
                                   perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (const perfmap_status begun = begin_reading(*stacks, error)) return begun;
    perfmap::Diagnostics problems(1);
    const auto visit = [&](const perfmap::StackSample& sample) {
      stacks->sample = &sample;
      const perfmap_stack stack = to_c(sample);
      const int answer = take(&stack, context);
      stacks->sample = nullptr;
      if (answer != 0) stacks->reader->stop();
    };
    stacks->reader->read(visit, problems);
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_stacks_frame(const perfmap_stacks* stacks, size_t index,
                                    perfmap_stack_frame* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  if (stacks->sample == nullptr || index >= stacks->sample->frames.size())
    return PERFMAP_E_NOT_FOUND;
  const perfmap::FrameTable& table = stacks->reader->table();
  const perfmap::StackFrame& from = stacks->sample->frames[index];
  const perfmap::FramePlace& place = table.place(from.place);
  const perfmap::FrameFunction& function = table.function(place.function);
  perfmap_stack_frame frame{};
  frame.ip = from.ip;
  lend(function.name, frame.name, frame.name_size);
  lend(function.system_name, frame.system_name, frame.system_name_size);
  lend(function.module, frame.module, frame.module_size);
  lend(function.file, frame.file, frame.file_size);
  frame.line = place.line;
  frame.column = place.column;
  frame.offset = place.offset;
  frame.vaddr = place.vaddr;
  frame.place = from.place;
  frame.function = place.function;
  frame.kind = static_cast<int32_t>(function.kind);
  frame.source = static_cast<int32_t>(from.source);
  frame.is_return = from.is_return ? 1 : 0;
  frame.doubts = perfmap::doubts_of(from, place).bits;
  copy_out(frame, out);
  return PERFMAP_OK;
}

perfmap_status perfmap_stacks_write(perfmap_stacks* stacks, const char* format, const char* path,
                                    const perfmap_stacks_writing* options, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_stacks_writing asked = copy_in(options);
        if (format == nullptr) return invalid("format: NULL", error);
        if (path == nullptr) return invalid("path: NULL", error);
        const auto known = perfmap::stack_format(format);
        if (!known) return invalid("format: no such format", error);
        const perfmap::Result<void> other =
            perfmap::check_other_file(path, stacks->recording.recording.input());
        if (!other) return report(other, error);
        if (const perfmap_status begun = begin_reading(*stacks, error)) return begun;
        auto file = open_output(path);
        if (!file) return report(file.error(), error);
        perfmap::StackProfile profile = perfmap::profile_of(stacks->recording.recording);
        profile.exporter = std::string("perfmap ") + perfmap_version();
        perfmap::StackWriter::Options writing;
        writing.merge_tiers = asked.merge_tiers != 0;
        writing.marks = asked.no_marks == 0;
        writing.with_pid = asked.with_pid != 0;
        writing.lines = stacks->has_lines;
        const auto writer = perfmap::StackWriter::make(*known, *file, stacks->reader->table(),
                                                       std::move(profile), writing);
        perfmap::Diagnostics problems(1);
        stacks->reader->read([&](const perfmap::StackSample& sample) { writer->add(sample); },
                             problems);
        perfmap::Result<void> written = writer->finish();
        if (written) written = file->commit();
        return report(written, error);
      },
      options);
}

size_t perfmap_stacks_processes(const perfmap_stacks* stacks) {
  return stacks->reader->statistics().processes.size();
}

perfmap_status perfmap_stacks_get_counts(const perfmap_stacks* stacks, size_t index,
                                         perfmap_stack_counts* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const perfmap::StackStatistics& statistics = stacks->reader->statistics();
  if (index > statistics.processes.size()) return PERFMAP_E_NOT_FOUND;
  copy_out(
      to_c(index < statistics.processes.size() ? statistics.processes[index] : statistics.total),
      out);
  return PERFMAP_OK;
}

void perfmap_stacks_get_losses(const perfmap_stacks* stacks, perfmap_stack_losses* out) {
  if (!perfmap::capi::is_complete(out)) return;
  const perfmap::StackStatistics& statistics = stacks->reader->statistics();
  perfmap_stack_losses losses{};
  losses.filtered = statistics.filtered;
  losses.lost = statistics.lost;
  losses.out_of_order = statistics.out_of_order;
  losses.lost_bytes = statistics.lost_bytes;
  copy_out(losses, out);
}

perfmap_status perfmap_stacks_get_failure(const perfmap_stacks* stacks, size_t index,
                                          perfmap_error* out) {
  if (out == nullptr || !perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  size_t left = index;
  for (const auto& errors :
       {stacks->reader->failures(), std::span<const perfmap::Error>(stacks->refused.others)}) {
    if (left < errors.size()) {
      report(errors[left], out);
      return PERFMAP_OK;
    }
    left -= errors.size();
  }
  if (left < stacks->refused.foreign.size()) {
    report(perfmap::Error::refused(perfmap::to_string(stacks->refused.foreign[left])), out);
    return PERFMAP_OK;
  }
  return PERFMAP_E_NOT_FOUND;
}

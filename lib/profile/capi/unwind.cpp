// SPDX-License-Identifier: MIT
#include <array>
#include <bit>
#include <span>

#include "base/machines.hpp"
#include "capi/handles.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/profile/unwinder.hpp"

using namespace perfmap::capi;

struct perfmap_unwind_space {
  std::shared_ptr<const perfmap::UnwindSpace> space;
};

namespace {

/// perf's numbers by those of DWARF; -1: none.
using PerfNumbers = std::array<std::int8_t, 64>;

PerfNumbers perf_numbers(perfmap::Machine machine) {
  PerfNumbers numbers;
  for (unsigned i = 0; i < numbers.size(); ++i) {
    const auto number = perfmap::perf_register(machine, i);
    numbers[i] = static_cast<std::int8_t>(number ? static_cast<int>(*number) : -1);
  }
  return numbers;
}

}  // namespace

struct perfmap_unwinder {
  perfmap::Unwinder unwinder;
  bool keeps_registers = false;
  perfmap::ReturnSites return_sites = {};
  std::optional<perfmap::Machine> numbered = {};
  PerfNumbers numbers = {};  ///< of that machine
  // Reused for each sample.
  perfmap::UserSample sample = {};
  std::vector<perfmap::UnwoundFrame> frames = {};
  std::vector<perfmap::FrameRegisters> registers = {};
  std::uint64_t samples = 0;
  perfmap::capi::EndCounts ends = {};
  perfmap::capi::SourceCounts sources = {};
};

namespace {

void take_by_mask(const perfmap_sample& in, perfmap::UserRegisters& out) noexcept {
  size_t at = 0;
  for (uint64_t left = in.register_mask; left != 0 && at < in.register_count; left &= left - 1) {
    const auto number = static_cast<size_t>(std::countr_zero(left));
    out.values[number] = in.registers[at++];
    out.mask |= uint64_t{1} << number;
  }
}

void take_by_number(const perfmap_sample& in, perfmap_unwinder& unwinder) {
  perfmap::UserRegisters& out = unwinder.sample.registers;
  if (unwinder.numbered != out.machine) {
    unwinder.numbers = perf_numbers(out.machine);
    unwinder.numbered = out.machine;
  }
  for (size_t i = 0; i < in.register_count; ++i) {
    const int32_t dwarf = in.dwarf_numbers[i];
    if (dwarf < 0 || static_cast<size_t>(dwarf) >= unwinder.numbers.size()) continue;
    const int number = unwinder.numbers[static_cast<size_t>(dwarf)];
    if (number < 0) continue;
    out.values[static_cast<size_t>(number)] = in.registers[i];
    out.mask |= uint64_t{1} << number;
  }
}

bool has_registers(const perfmap_sample& in) noexcept {
  return in.register_count != 0 && (in.dwarf_numbers != nullptr || in.register_mask != 0);
}

/// The registers and the stack are rarely in a cache yet: both are fetched at once.
void prefetch(const perfmap_sample& in) noexcept {
  constexpr size_t kLine = 64, kFirst = 512;
  const size_t registers = in.register_count * sizeof *in.registers;
  for (size_t at = 0; at < registers; at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(in.registers) + at);
  for (size_t at = 0; at < std::min(in.stack_size, kFirst); at += kLine)
    __builtin_prefetch(static_cast<const char*>(in.stack) + at);
}

void take_sample(const perfmap_sample& in, perfmap::Machine machine, perfmap_unwinder& unwinder) {
  prefetch(in);
  perfmap::UserSample& sample = unwinder.sample;
  sample.registers.machine = machine;
  sample.registers.mask = 0;
  if (in.dwarf_numbers != nullptr) {
    take_by_number(in, unwinder);
  } else {
    take_by_mask(in, sample.registers);
  }
  sample.stack = {static_cast<const char*>(in.stack), in.stack_size};
  sample.is_stack_full = in.is_stack_full != 0;
  sample.time = in.time;
}

/// The kernel's frames and the user's, as the frames of a recording are made.
perfmap::StackEnd frames_of(const perfmap_sample& in, bool may_unwind, perfmap_unwinder& unwinder,
                            const perfmap::UnwindSpace& space) {
  unwinder.frames.clear();
  unwinder.registers.clear();
  const bool has_registers = unwinder.sample.registers.mask != 0;
  const bool takes_user = in.callchain_size != 0 && !(may_unwind && has_registers);
  if (in.callchain_size != 0) {
    const std::string_view bytes(reinterpret_cast<const char*>(in.callchain),
                                 in.callchain_size * sizeof *in.callchain);
    perfmap::add_callchain(perfmap::Words(bytes, false), perfmap::CpuMode::user,
                           {.kernel = true, .user = takes_user}, unwinder.frames);
  }
  if (takes_user && (!has_registers || !unwinder.frames.empty()))
    return perfmap::StackEnd::callchain;
  return unwinder.unwinder.unwind(unwinder.sample, space, unwinder.frames,
                                  unwinder.keeps_registers ? &unwinder.registers : nullptr);
}

/// Null if it is not known.
const perfmap::MachineInfo* machine_of(const perfmap_sample& in,
                                       const perfmap::UnwindSpace& space) noexcept {
  const auto of_files = static_cast<std::uint32_t>(space.machine().value_or(perfmap::Machine{}));
  return perfmap::find_machine(in.machine != 0 ? in.machine : of_files);
}

void pass_on(perfmap_unwinder& unwinder, const perfmap::UnwindSpace& space, std::uint64_t time,
             perfmap_take_frame take, void* context) {
  // The kernel's frames have no registers.
  const size_t without = unwinder.frames.size() - unwinder.registers.size();
  bool is_wanted = true;
  for (size_t i = 0; i < unwinder.frames.size(); ++i) {
    const perfmap::UnwoundFrame& frame = unwinder.frames[i];
    ++unwinder.sources[static_cast<size_t>(frame.source)];
    if (!is_wanted) continue;
    const bool is_return =
        frame.is_return && (frame.source == perfmap::FrameSource::kernel ||
                            unwinder.return_sites.is_return(space, frame.pc, time));
    perfmap_frame told;
    told.struct_size = sizeof told;
    told.pc = frame.pc;
    told.sp = frame.sp;
    told.source = static_cast<int32_t>(frame.source);
    told.is_return = is_return ? 1 : 0;
    const bool has_registers = unwinder.keeps_registers && i >= without;
    told.register_mask = has_registers ? unwinder.registers[i - without].known : 0;
    told.registers = has_registers ? unwinder.registers[i - without].values.data() : nullptr;
    is_wanted = take(&told, context) == 0;
  }
}

}  // namespace

perfmap_status perfmap_unwind_attach(perfmap_tracker* tracker, int32_t pid, uint64_t time,
                                     perfmap_unwind_space** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    auto space = perfmap::UnwindSpace::attach(tracker->tracker, pid, time);
    if (space == nullptr) return PERFMAP_E_NOT_FOUND;
    *out = new perfmap_unwind_space{std::move(space)};
    return PERFMAP_OK;
  });
}

void perfmap_unwind_detach(perfmap_unwind_space* space) { delete space; }

perfmap_status perfmap_unwinder_begin(const perfmap_unwinder_options* options,
                                      perfmap_unwinder** out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_unwinder_options asked = copy_in(options);
        perfmap::Unwinder::Options taken;
        if (asked.most_frames != 0) taken.max_frames = asked.most_frames;
        taken.scan = asked.scan != 0;
        taken.jit_cfi_first = asked.jit_cfi_first != 0;
        *out = new perfmap_unwinder{perfmap::Unwinder(taken), asked.with_registers != 0};
        return PERFMAP_OK;
      },
      options);
}

void perfmap_unwinder_end(perfmap_unwinder* unwinder) { delete unwinder; }

void perfmap_unwinder_get_statistics(const perfmap_unwinder* unwinder,
                                     perfmap_unwinder_statistics* out) {
  if (!perfmap::capi::is_complete(out)) return;
  perfmap_unwinder_statistics statistics{};
  statistics.samples = unwinder->samples;
  for (const std::uint64_t count : unwinder->sources) statistics.frames += count;
  statistics.rules = unwinder->unwinder.statistics().rules;
  lend(unwinder->ends, statistics.ends, statistics.end_count);
  lend(unwinder->sources, statistics.sources, statistics.source_count);
  copy_out(statistics, out);
}

perfmap_status perfmap_unwind_sample(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                                     const perfmap_sample* sample, perfmap_take_frame take,
                                     void* context, int32_t* end, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const bool is_whole = sample->struct_size >= sizeof *sample;
        const perfmap_sample copied = is_whole ? perfmap_sample() : copy_in(sample);
        const perfmap_sample& asked = is_whole ? *sample : copied;
        const perfmap::UnwindSpace& files = *space->space;
        const perfmap::MachineInfo* const machine = machine_of(asked, files);
        const bool is_needed = has_registers(asked);
        if (machine == nullptr && is_needed && asked.machine != 0) {
          return report(perfmap::Error::invalid("machine: no such machine"), error);
        }
        const bool is_unwound = machine != nullptr && machine->is_unwound && files.is_unwound();
        const auto number = machine != nullptr ? machine->elf : std::uint16_t{EM_NONE};
        take_sample(asked, static_cast<perfmap::Machine>(number), *unwinder);
        const perfmap::StackEnd ended = frames_of(asked, is_unwound, *unwinder, files);
        ++unwinder->samples;
        ++unwinder->ends[static_cast<size_t>(ended)];
        if (end != nullptr) *end = static_cast<int32_t>(ended);
        pass_on(*unwinder, files, asked.time, take, context);
        if (is_unwound || !is_needed) return PERFMAP_OK;
        return report(perfmap::Error::unsupported("stacks of that machine are not unwound"), error);
      },
      sample);
}

struct perfmap_stitcher {
  perfmap::StackStitcher stitcher;
  std::vector<perfmap::UnwoundFrame> frames = {};
};

namespace {

void take_frames(const perfmap_frame* frames, size_t count,
                 std::vector<perfmap::UnwoundFrame>& out) {
  out.clear();
  for (const perfmap_frame& frame : std::span(frames, count)) {
    out.push_back({frame.pc, frame.sp, static_cast<perfmap::FrameSource>(frame.source),
                   frame.is_return != 0});
  }
}

bool is_known(const perfmap_frame* frames, size_t count) noexcept {
  return std::all_of(frames, frames + count, [](const perfmap_frame& frame) {
    return frame.source >= 0 &&
           static_cast<size_t>(frame.source) < std::tuple_size_v<perfmap::capi::SourceCounts>;
  });
}

perfmap_status refuse_frames(perfmap_error* error) {
  return report(perfmap::Error::invalid("frames: a frame has an unknown source"), error);
}

}  // namespace

perfmap_status perfmap_stitcher_begin(const perfmap_stitcher_options* options,
                                      perfmap_stitcher** out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_stitcher_options asked = copy_in(options);
        perfmap::StackStitcher::Options taken;
        if (asked.max_distance != 0) taken.max_distance = asked.max_distance;
        if (asked.max_frames != 0) taken.max_frames = asked.max_frames;
        *out = new perfmap_stitcher{perfmap::StackStitcher(taken)};
        return PERFMAP_OK;
      },
      options);
}

void perfmap_stitcher_end(perfmap_stitcher* stitcher) { delete stitcher; }

perfmap_status perfmap_stitcher_learn(perfmap_stitcher* stitcher, uint64_t process, int32_t tid,
                                      uint64_t time, const perfmap_frame* frames, size_t count,
                                      int32_t end, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (!is_known(frames, count)) return refuse_frames(error);
    if (end < 0 || static_cast<size_t>(end) >= perfmap::kStackEnds)
      return perfmap::capi::invalid("end: no such end", error);
    take_frames(frames, count, stitcher->frames);
    stitcher->stitcher.learn(process, tid, time, stitcher->frames,
                             static_cast<perfmap::StackEnd>(end));
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_stitcher_repair(perfmap_stitcher* stitcher, uint64_t process, int32_t tid,
                                       uint64_t time, perfmap_frame* frames, size_t* count,
                                       size_t room, int32_t* end, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (!is_known(frames, *count)) return refuse_frames(error);
    take_frames(frames, *count, stitcher->frames);
    perfmap::StackEnd ended = stitcher->stitcher.repair(process, tid, time, stitcher->frames);
    const size_t made = stitcher->frames.size();
    if (made > room) ended = perfmap::StackEnd::limit;
    for (size_t i = *count; i < std::min(made, room); ++i) {
      const perfmap::UnwoundFrame& frame = stitcher->frames[i];
      frames[i] = {};
      frames[i].struct_size = sizeof *frames;
      frames[i].pc = frame.pc;
      frames[i].sp = frame.sp;
      frames[i].source = static_cast<int32_t>(frame.source);
      frames[i].is_return = frame.is_return ? 1 : 0;
    }
    *count = std::max(*count, std::min(made, room));
    if (end != nullptr) *end = static_cast<int32_t>(ended);
    return PERFMAP_OK;
  });
}

void perfmap_stitcher_forget_before(perfmap_stitcher* stitcher, uint64_t time) {
  stitcher->stitcher.forget_before(time);
}

const char* perfmap_frame_source_name(int32_t source) {
  if (source < 0 || static_cast<size_t>(source) >= perfmap::kFrameSources) return "unknown";
  return to_string(static_cast<perfmap::FrameSource>(source)).data();
}

const char* perfmap_stack_end_name(int32_t end) {
  if (end < 0 || static_cast<size_t>(end) >= perfmap::kStackEnds) return "unknown";
  return to_string(static_cast<perfmap::StackEnd>(end)).data();
}

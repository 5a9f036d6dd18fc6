#include <bit>

#include "capi/border.hpp"
#include "perfmap/profile/unwinder.hpp"

using perfmap::capi::copy_in;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_unwind_space {
  std::shared_ptr<const perfmap::UnwindSpace> space;
};

struct perfmap_unwinder {
  perfmap::Unwinder unwinder;
  std::vector<perfmap::UnwoundFrame> frames = {};
};

namespace {

perfmap::UserSample sample_of(const perfmap_sample& in, perfmap::Machine machine) noexcept {
  perfmap::UserSample sample;
  sample.registers.machine = machine;
  size_t at = 0;
  for (uint64_t left = in.register_mask; left != 0 && at < in.register_count; left &= left - 1) {
    const auto number = static_cast<size_t>(std::countr_zero(left));
    sample.registers.values[number] = in.registers[at++];
    sample.registers.mask |= uint64_t{1} << number;
  }
  sample.stack = {static_cast<const char*>(in.stack), in.stack_size};
  sample.is_stack_full = in.is_stack_full != 0;
  sample.time = in.time;
  return sample;
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
  return guard(error, [&]() -> perfmap_status {
    const perfmap_unwinder_options asked = copy_in(options);
    perfmap::Unwinder::Options taken;
    if (asked.most_frames != 0) taken.max_frames = asked.most_frames;
    taken.scan = asked.scan != 0;
    taken.jit_cfi_first = asked.jit_cfi_first != 0;
    *out = new perfmap_unwinder{perfmap::Unwinder(taken)};
    return PERFMAP_OK;
  });
}

void perfmap_unwinder_end(perfmap_unwinder* unwinder) { delete unwinder; }

perfmap_status perfmap_unwind_sample(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                                     const perfmap_sample* sample, perfmap_take_frame take,
                                     void* context, int32_t* end, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_sample asked = copy_in(sample);
    const auto machine = perfmap::machine_of(static_cast<uint16_t>(asked.machine));
    if (!machine || asked.machine > UINT16_MAX) {
      return report({perfmap::Errc::invalid_argument, "no machine that is known", 0, {}}, error);
    }
    unwinder->frames.clear();
    const perfmap::StackEnd ended =
        unwinder->unwinder.unwind(sample_of(asked, *machine), *space->space, unwinder->frames);
    if (end != nullptr) *end = static_cast<int32_t>(ended);
    for (const perfmap::UnwoundFrame& frame : unwinder->frames) {
      const bool is_return =
          frame.is_return && space->space->return_site(frame.pc, asked.time).is_return;
      const perfmap_frame told{sizeof told, frame.pc, frame.sp, static_cast<int32_t>(frame.source),
                               is_return ? 1 : 0};
      if (take(&told, context) != 0) break;
    }
    return PERFMAP_OK;
  });
}

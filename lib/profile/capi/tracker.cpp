#include "capi/border.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/process_modules.hpp"
#include "perfmap/registers.hpp"

using perfmap::profile_capi::copy_in;
using perfmap::profile_capi::copy_out;
using perfmap::profile_capi::guard;
using perfmap::profile_capi::report;
using perfmap::profile_capi::to_c;

perfmap_status perfmap_tracker_begin(const perfmap_tracker_options* options, perfmap_tracker** out,
                                     perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_tracker_options asked = copy_in(options);
    perfmap::ProcessTracker::Options taken;
    if (asked.proc != nullptr) taken.roots.proc = asked.proc;
    if (asked.tmp != nullptr) taken.roots.tmp = asked.tmp;
    taken.any_owner = asked.any_owner != 0;
    if (asked.modules != nullptr) taken.open_module = perfmap::open_through(asked.modules->cache);
    *out = new perfmap_tracker{perfmap::ProcessTracker(std::move(taken))};
    return PERFMAP_OK;
  });
}

void perfmap_tracker_end(perfmap_tracker* tracker) { delete tracker; }

perfmap_status perfmap_tracker_find_pid(perfmap_tracker* tracker, int32_t pid,
                                        perfmap_create_process create, void* context,
                                        perfmap_process* out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap_status refused = PERFMAP_OK;
    perfmap::ProcessTracker::Create call;
    if (create != nullptr) {
      call = [&](perfmap::ProcessTracker&, pid_t asked) -> perfmap::Result<void> {
        refused = create(tracker, asked, context);
        if (refused == PERFMAP_OK) return {};
        return perfmap::Failure(
            {static_cast<perfmap::Errc>(refused), "the process could not be created", 0, {}});
      };
    }
    const auto found = tracker->tracker.find_pid(pid, call);
    if (!found) return report(found.error(), error);
    if (*found == nullptr) return PERFMAP_E_NOT_FOUND;
    copy_out(to_c(**found), out);
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_import(perfmap_tracker* tracker, int32_t pid, uint64_t time,
                                      int32_t* imported, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto done =
        time == PERFMAP_NOW ? tracker->tracker.import(pid) : tracker->tracker.import(pid, time);
    if (!done) return report(done.error(), error);
    if (imported != nullptr) *imported = static_cast<int32_t>(*done);
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_tracker_refresh_jit(perfmap_tracker* tracker, int32_t pid,
                                           perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto sources = tracker->tracker.refresh_jit(pid);
    if (!sources) return report(sources.error(), error);
    return *sources != nullptr ? PERFMAP_OK : PERFMAP_E_NOT_FOUND;
  });
}

perfmap_status perfmap_tracker_find_jit(perfmap_tracker* tracker, int32_t pid, uint64_t address,
                                        uint64_t time, uint64_t source_time, perfmap_jit_code* out,
                                        perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto code = tracker->tracker.find_jit_code(pid, address, time, source_time);
    if (!code) return PERFMAP_E_NOT_FOUND;
    copy_out(
        perfmap_jit_code{0, code->range.begin, code->range.size, code->name.data(),
                         code->name.size(), static_cast<int32_t>(code->room), code->doubts.bits},
        out);
    return PERFMAP_OK;
  });
}

uint64_t perfmap_preferred_regs_mask(uint32_t machine) {
  if (machine > UINT16_MAX) return 0;
  const auto known = perfmap::machine_of(static_cast<std::uint16_t>(machine));
  return known ? perfmap::preferred_regs_mask(*known) : 0;
}

#include "capi/border.hpp"

using perfmap::profile_capi::copy_out;
using perfmap::profile_capi::guard;

namespace {

std::string_view source_of(const perfmap::AddressName& name) {
  if (name.entry) return name.sources->resolver().input(name.entry->source).name();
  return name.mapped != nullptr ? std::string_view(name.mapped->name) : std::string_view();
}

perfmap_source_frame to_c(const perfmap::SourceFrame& frame) noexcept {
  return {frame.function.data(),
          frame.function.size(),
          frame.file.data(),
          frame.file.size(),
          frame.line,
          frame.column};
}

constexpr auto bit(perfmap::Doubt one) { return static_cast<int>(one); }
static_assert(bit(perfmap::Doubt::damaged_record) == PERFMAP_DOUBT_DAMAGED_RECORD &&
              bit(perfmap::Doubt::clamped_range) == PERFMAP_DOUBT_CLAMPED_RANGE &&
              bit(perfmap::Doubt::reused_address) == PERFMAP_DOUBT_REUSED_ADDRESS &&
              bit(perfmap::Doubt::guessed_owner) == PERFMAP_DOUBT_GUESSED_OWNER &&
              bit(perfmap::Doubt::remapped_memory) == PERFMAP_DOUBT_REMAPPED_MEMORY &&
              bit(perfmap::Doubt::unrecorded_memory) == PERFMAP_DOUBT_UNRECORDED_MEMORY);

/// Views of what the tracker keeps for the caller.
perfmap_address_name to_c(const perfmap_tracker& tracker) {
  const perfmap::AddressName& from = tracker.named;
  const std::string_view source = source_of(from);
  perfmap_address_name out{};
  out.name = from.name.data();
  out.name_size = from.name.size();
  out.begin = from.range ? from.range->begin : 0;
  out.size = from.range ? from.range->size : 0;
  out.source = source.data();
  out.source_size = source.size();
  out.is_jit = from.entry ? 1 : 0;
  out.why = static_cast<int32_t>(from.why);
  out.frames = tracker.frames.data();
  out.frame_count = tracker.frames.size();
  out.doubts = from.doubts.bits;
  return out;
}

}  // namespace

perfmap_status perfmap_tracker_name(perfmap_tracker* tracker, int32_t pid, uint64_t address,
                                    uint64_t time, uint64_t source_time, int32_t detail,
                                    perfmap_address_name* out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (detail < PERFMAP_DETAIL_SYMBOLS || detail > PERFMAP_DETAIL_INLINES) {
      return perfmap::profile_capi::report(
          {perfmap::Errc::invalid_argument, "no such detail", 0, {}}, error);
    }
    perfmap::Symbolizer symbolizer(tracker->tracker,
                                   {static_cast<perfmap::Symbolizer::Detail>(detail), true, 1});
    tracker->named = symbolizer.find(pid, {address, source_time}, time);
    tracker->frames.clear();
    for (const perfmap::SourceFrame& frame : tracker->named.frames) {
      tracker->frames.push_back(to_c(frame));
    }
    copy_out(to_c(*tracker), out);
    return tracker->named.has_name() ? PERFMAP_OK : PERFMAP_E_NOT_FOUND;
  });
}

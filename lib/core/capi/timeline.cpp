#include "perfmap/timeline.hpp"

#include <optional>
#include <vector>

#include "capi/guard.hpp"
#include "perfmap/jit_details.hpp"
#include "perfmap/source_kind.hpp"

using perfmap::capi::copy_in;
using perfmap::capi::copy_out;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_timeline {
  perfmap::Timeline timeline;
  std::optional<perfmap::JitDetails> details;  // once lines were asked for
  std::vector<perfmap::CodeLine> lines;        // of the LOAD at `lines_of`
  std::uint64_t lines_of = UINT64_MAX;

  void forget() {
    details.reset();
    lines_of = UINT64_MAX;
  }
};

namespace {

std::optional<perfmap::LoadRecord> load_at(const perfmap::Timeline& timeline,
                                           std::uint64_t offset) noexcept {
  const auto record = timeline.dump().record_at(offset);
  return record ? perfmap::decode_load(*record) : std::nullopt;
}

perfmap_code to_c(const perfmap::CodeAt& code, const perfmap::LoadRecord& load) noexcept {
  perfmap_code out{};
  out.start = code.range.begin;
  out.size = code.range.size;
  out.name = load.name.data();
  out.name_size = load.name.size();
  out.since = code.since;
  out.until = code.until;
  out.offset = code.load;
  out.index = load.code_index;
  out.bytes = load.code.empty() ? nullptr : load.code.data();
  return out;
}

}  // namespace

perfmap_status perfmap_timeline_open(const char* path, perfmap_timeline** out,
                                     perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Result<perfmap::Input> input = perfmap::Input::open(path);
    if (!input) return report(input.error(), error);
    const perfmap::SourceKind kind = perfmap::detect_kind(input->text());
    if (!input->text().empty() && kind != perfmap::SourceKind::jitdump) {
      return report(perfmap::Error{perfmap::Errc::unsupported,
                                   input->name() + " is no jitdump, but looks like a " +
                                       std::string(to_string(kind)),
                                   0,
                                   {}},
                    error);
    }
    perfmap::Diagnostics ignored(1);
    perfmap::Jitdump dump(*std::move(input), {.growing = true});
    *out = new perfmap_timeline{perfmap::Timeline(std::move(dump), ignored), {}, {}};
    return PERFMAP_OK;
  });
}

void perfmap_timeline_free(perfmap_timeline* timeline) { delete timeline; }

perfmap_status perfmap_timeline_find(const perfmap_timeline* timeline, uint64_t address,
                                     uint64_t time, perfmap_code* out) {
  const auto code = timeline->timeline.find(address, time);
  const auto load = code ? load_at(timeline->timeline, code->load) : std::nullopt;
  if (!load) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*code, *load), out);
  return PERFMAP_OK;
}

perfmap_status perfmap_timeline_line(perfmap_timeline* timeline, const perfmap_code* code,
                                     uint64_t address, const char** file, size_t* file_size,
                                     int32_t* line, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_code asked = copy_in(code);
    const auto load = load_at(timeline->timeline, asked.offset);
    if (!load) return PERFMAP_E_NOT_FOUND;
    if (timeline->lines_of != asked.offset) {
      if (!timeline->details) timeline->details.emplace(timeline->timeline.dump());
      timeline->lines = timeline->details->lines(asked.offset);
      timeline->lines_of = asked.offset;
    }
    const perfmap::CodeLine* const found =
        perfmap::line_at(timeline->lines, load->range.begin + (address - asked.start));
    if (found == nullptr) return PERFMAP_E_NOT_FOUND;
    *file = found->file.data();
    *file_size = found->file.size();
    *line = found->line;
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_timeline_refresh(perfmap_timeline* timeline, int* changed,
                                        perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Diagnostics ignored(1);
    const perfmap::Result<perfmap::Growth> growth = timeline->timeline.refresh(ignored);
    if (!growth) return report(growth.error(), error);
    if (*growth != perfmap::Growth::unchanged) timeline->forget();
    *changed = static_cast<int>(*growth);
    return PERFMAP_OK;
  });
}

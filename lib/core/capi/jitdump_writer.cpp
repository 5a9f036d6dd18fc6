#include "perfmap/jitdump_writer.hpp"

#include <vector>

#include "capi/fork_policy.hpp"
#include "capi/guard.hpp"

using perfmap::JitdumpWriter;
using perfmap::capi::copy_in;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_jitdump {
  JitdumpWriter writer;
};

namespace {

perfmap::JitdumpOptions options_of(const perfmap_jitdump_options* options) {
  const perfmap_jitdump_options given = copy_in(options);
  return {.pid = given.pid,
          .marker = given.no_marker == 0,
          .close_record = given.no_close_record == 0,
          .own_dump = given.own_dump != 0,
          .names = given.names == PERFMAP_NAMES_REFUSE ? perfmap::NamePolicy::refuse
                                                       : perfmap::NamePolicy::escape,
          .process_map = given.state_map != 0,
          .max_bytes = given.most_bytes,
          .fork = perfmap::capi::fork_of(given.fork)};
}

perfmap_status hand_over(perfmap::Result<JitdumpWriter> writer, perfmap_jitdump** out,
                         perfmap_error* error) {
  if (!writer) return report(writer.error(), error);
  *out = new perfmap_jitdump{*std::move(writer)};
  return PERFMAP_OK;
}

std::string_view view_of(const void* bytes, std::size_t size) {
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

std::vector<perfmap::LineRecord> lines_of(const perfmap_jitdump_function& function) {
  std::vector<perfmap::LineRecord> lines;
  lines.reserve(function.line_count);
  for (std::size_t i = 0; i < function.line_count; ++i) {
    const perfmap_jitdump_line& line = function.lines[i];
    lines.push_back({.address = line.address,
                     .line = line.line,
                     .column = line.column,
                     .file = line.file == nullptr ? std::string_view() : line.file});
  }
  return lines;
}

}  // namespace

perfmap_status perfmap_jitdump_open_own(const char* directory,
                                        const perfmap_jitdump_options* options,
                                        perfmap_jitdump** out, perfmap_error* error) {
  return guard(error, [&] {
    const char* const where = directory == nullptr ? "/tmp" : directory;
    return hand_over(JitdumpWriter::open_own(where, options_of(options)), out, error);
  });
}

perfmap_status perfmap_jitdump_open(const char* path, const perfmap_jitdump_options* options,
                                    perfmap_jitdump** out, perfmap_error* error) {
  return guard(
      error, [&] { return hand_over(JitdumpWriter::open(path, options_of(options)), out, error); });
}

perfmap_status perfmap_jitdump_load(perfmap_jitdump* dump, const perfmap_jitdump_function* function,
                                    uint64_t* code_index, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_jitdump_function given = copy_in(function);
    const std::vector<perfmap::LineRecord> lines = lines_of(given);
    const auto index = dump->writer.load(
        {.start = given.start,
         .size = given.size,
         .name = view_of(given.name, given.name_size),
         .code = view_of(given.code, given.size),
         .lines = lines,
         .unwinding = {view_of(given.eh_frame, given.eh_frame_size),
                       view_of(given.eh_frame_hdr, given.eh_frame_hdr_size), given.mapped_size},
         .time = given.time});
    if (!index) return report(index.error(), error);
    if (code_index != nullptr) *code_index = *index;
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_jitdump_move(perfmap_jitdump* dump, uint64_t code_index, uint64_t from,
                                    uint64_t to, uint64_t size, perfmap_error* error) {
  return guard(error, [&] { return report(dump->writer.move(code_index, from, to, size), error); });
}

perfmap_status perfmap_jitdump_close(perfmap_jitdump* dump, perfmap_error* error) {
  return guard(error, [&] { return report(dump->writer.close(), error); });
}

void perfmap_jitdump_free(perfmap_jitdump* dump) { delete dump; }

// SPDX-License-Identifier: MIT
#include "base/layouts.hpp"

namespace {

// clang-format off
constexpr perfmap_layout kLayouts[] = {
    PERFMAP_LAYOUT(perfmap_error, struct_size, sys_errno, offset, message, reason, path)
    PERFMAP_LAYOUT(perfmap_layout, record, member, offset, size, kind)
    PERFMAP_LAYOUT(perfmap_state_options, struct_size, directory, fork, names, buffer_bytes,
                   flush_after_ns, most_bytes, keep_stale, on_full, on_full_context, mapped)
    PERFMAP_LAYOUT(perfmap_writer_options, struct_size, names, own_map, buffer_bytes,
                   flush_after_ns, most_bytes, on_full, on_full_context, mapped)
    PERFMAP_LAYOUT(perfmap_jitdump_options, struct_size, pid, names, own_dump, no_marker,
                   no_close_record, state_map, most_bytes, fork)
    PERFMAP_LAYOUT(perfmap_jitdump_line, address, line, column, file)
    PERFMAP_LAYOUT(perfmap_jitdump_function, struct_size, start, size, name, name_size, code,
                   lines, line_count, eh_frame, eh_frame_size, eh_frame_hdr, eh_frame_hdr_size,
                   mapped_size, time)
    PERFMAP_LAYOUT(perfmap_jitlog_options, struct_size, clock, names, own_log, one_thread,
                   buffer_events, fork)
    PERFMAP_LAYOUT(perfmap_trampoline_options, struct_size, prefix, jitdump_directory, exceptions)
    PERFMAP_LAYOUT(perfmap_code_description, struct_size, qualified_name, qualified_name_size, file,
                   file_size, first_line)
    PERFMAP_LAYOUT(perfmap_trampoline_state_info, struct_size, active, backend, compiled, failed,
                   last_errno, mapped_bytes)
};
// clang-format on

}  // namespace

const perfmap_layout* perfmap_writer_layouts(size_t* count) {
  *count = sizeof kLayouts / sizeof *kLayouts;
  return kLayouts;
}

// SPDX-License-Identifier: MIT
#include "base/layouts.hpp"

#include "perfmap_profile.h"

namespace {

// clang-format off
constexpr perfmap_layout kLayouts[] = {
    PERFMAP_LAYOUT(perfmap_tracker_options, struct_size, proc, tmp, any_owner, modules, symfs,
                   open, open_context)
    PERFMAP_LAYOUT(perfmap_process, struct_size, pid, generation, began, parent, since, until,
                   start_ticks, comm, comm_size)
    PERFMAP_LAYOUT(perfmap_mmap_event, struct_size, pid, access, time, begin, size, offset, name,
                   name_size, device_major, device_minor, inode, inode_generation, build_id,
                   build_id_size)
    PERFMAP_LAYOUT(perfmap_region, struct_size, begin, size, offset, access, kind, jit,
                   device_major, device_minor, inode, name, name_size, build_id, build_id_size)
    PERFMAP_LAYOUT(perfmap_jit_code, struct_size, begin, size, name, name_size, room, doubts)
    PERFMAP_LAYOUT(perfmap_module_cache_options, struct_size, most_bytes, debug_directories)
    PERFMAP_LAYOUT(perfmap_module_facts, struct_size, path, path_size, build_id, build_id_size,
                   bytes, bytes_size, machine, type)
    PERFMAP_LAYOUT(perfmap_symbol, struct_size, begin, size, name, name_size, demangled,
                   demangled_size)
    PERFMAP_LAYOUT(perfmap_source_frame, function, function_size, file, file_size, line, column)
    PERFMAP_LAYOUT(perfmap_address_name, struct_size, name, name_size, begin, size, source,
                   source_size, is_jit, why, frames, frame_count, doubts)
    PERFMAP_LAYOUT(perfmap_machine, struct_size, machine, compat, is_unwound, register_count,
                   register_mask, sp_register, pc_register, sp_dwarf_register)
    PERFMAP_LAYOUT(perfmap_unwinder_options, struct_size, most_frames, scan, jit_cfi_first,
                   with_registers)
    PERFMAP_LAYOUT(perfmap_sample, struct_size, machine, is_stack_full, time, register_mask,
                   registers, register_count, stack, stack_size, dwarf_numbers, callchain,
                   callchain_size)
    PERFMAP_LAYOUT(perfmap_frame, struct_size, pc, sp, source, is_return, register_mask, registers)
    PERFMAP_LAYOUT(perfmap_unwinder_statistics, struct_size, samples, frames, rules, ends,
                   end_count, sources, source_count)
    PERFMAP_LAYOUT(perfmap_stitcher_options, struct_size, max_distance, max_frames)
    PERFMAP_LAYOUT(perfmap_recording_facts, struct_size, is_pipe, was_killed, is_swapped, cpus,
                   hostname, hostname_size, os_release, os_release_size, arch, arch_size, wall_ns,
                   clock_ns, first_sample, last_sample, event_count)
    PERFMAP_LAYOUT(perfmap_recorded_event, struct_size, name, name_size, type, is_frequency, config,
                   period, sample_type, user_registers, user_stack, clock)
    PERFMAP_LAYOUT(perfmap_record, struct_size, type, misc, time, offset, event, is_swapped, bytes,
                   size)
    PERFMAP_LAYOUT(perfmap_recorded_sample, struct_size, time, ip, pid, tid, cpu, event, period,
                   address, mode, user_abi)
    PERFMAP_LAYOUT(perfmap_stacks_options, struct_size, detail, mangled, threads, most_frames, scan,
                   jit_cfi_first, stitch, no_kernel, any_owner, symfs, map_dir, tmp, kallsyms,
                   modules, open, open_context, pids, pid_count, tids, tid_count, comms, comm_count,
                   events, event_count, from, to)
    PERFMAP_LAYOUT(perfmap_stack, struct_size, time, pid, tid, cpu, event, period, comm, comm_size,
                   process_comm, process_comm_size, end, was_stitched, frame_count)
    PERFMAP_LAYOUT(perfmap_stack_frame, struct_size, ip, name, name_size, system_name,
                   system_name_size, module, module_size, file, file_size, line, column, offset,
                   vaddr, place, function, kind, source, is_return, doubts)
    PERFMAP_LAYOUT(perfmap_stacks_writing, struct_size, merge_tiers, no_marks, with_pid)
    PERFMAP_LAYOUT(perfmap_stack_counts, struct_size, pid, worst_source, comm, comm_size, samples,
                   frames, full_copies, stitched, not_unwound, unnamed, unnamed_jit, doubtful, ends, end_count,
                   sources, source_count)
    PERFMAP_LAYOUT(perfmap_stack_losses, struct_size, filtered, lost, out_of_order, lost_bytes)
};
// clang-format on

}  // namespace

const perfmap_layout* perfmap_profile_layouts(size_t* count) {
  *count = sizeof kLayouts / sizeof *kLayouts;
  return kLayouts;
}

// SPDX-License-Identifier: MIT
//! The C interface of libperfmap-profile, as `perfmap_profile.h` declares it.
use std::mem::{size_of, zeroed};
use std::os::raw::c_void;
use std::ptr::addr_of_mut;

use crate::{c_char, c_handles, c_int, c_structs, perfmap_error, perfmap_layout, perfmap_status};

pub type perfmap_open_module = Option<
    unsafe extern "C" fn(
        pid: i32,
        region: *const perfmap_region,
        out: *mut *mut perfmap_module,
        context: *mut c_void,
    ) -> perfmap_status,
>;
pub type perfmap_create_process = Option<
    unsafe extern "C" fn(
        tracker: *mut perfmap_tracker,
        pid: i32,
        context: *mut c_void,
    ) -> perfmap_status,
>;
pub type perfmap_take_frame =
    Option<unsafe extern "C" fn(frame: *const perfmap_frame, context: *mut c_void) -> c_int>;
pub type perfmap_take_record =
    Option<unsafe extern "C" fn(record: *const perfmap_record, context: *mut c_void) -> c_int>;
pub type perfmap_take_stack =
    Option<unsafe extern "C" fn(stack: *const perfmap_stack, context: *mut c_void) -> c_int>;

pub const PERFMAP_NOW: u64 = u64::MAX;
pub const PERFMAP_ACCESS_READ: u32 = 1;
pub const PERFMAP_ACCESS_WRITE: u32 = 2;
pub const PERFMAP_ACCESS_EXECUTE: u32 = 4;
pub const PERFMAP_ACCESS_SHARED: u32 = 8;

pub const PERFMAP_BEGAN_SEEN: i32 = 0;
pub const PERFMAP_BEGAN_FORKED: i32 = 1;
pub const PERFMAP_BEGAN_EXECUTED: i32 = 2;
pub const PERFMAP_BEGAN_IMPORTED: i32 = 3;
pub const PERFMAP_IMPORTED_VANISHED: i32 = 0;
pub const PERFMAP_IMPORTED_UNCHANGED: i32 = 1;
pub const PERFMAP_IMPORTED_CHANGED: i32 = 2;
pub const PERFMAP_IMPORTED_BEGAN: i32 = 3;
pub const PERFMAP_REGION_ANONYMOUS: i32 = 0;
pub const PERFMAP_REGION_NAMED_ANONYMOUS: i32 = 1;
pub const PERFMAP_REGION_HEAP: i32 = 2;
pub const PERFMAP_REGION_STACK: i32 = 3;
pub const PERFMAP_REGION_FILE: i32 = 4;
pub const PERFMAP_REGION_DELETED_FILE: i32 = 5;
pub const PERFMAP_REGION_MEMFD: i32 = 6;
pub const PERFMAP_REGION_HUGE_PAGES: i32 = 7;
pub const PERFMAP_REGION_SHARED_MEMORY: i32 = 8;
pub const PERFMAP_REGION_DEVICE: i32 = 9;
pub const PERFMAP_REGION_VDSO: i32 = 10;
pub const PERFMAP_REGION_SPECIAL: i32 = 11;
pub const PERFMAP_REGION_INODE: i32 = 12;
pub const PERFMAP_JIT_NONE: i32 = 0;
pub const PERFMAP_JIT_UNLESS_ELF: i32 = 1;
pub const PERFMAP_JIT_LIKELY: i32 = 2;
pub const PERFMAP_DOUBT_DAMAGED_RECORD: u32 = 1;
pub const PERFMAP_DOUBT_CLAMPED_RANGE: u32 = 2;
pub const PERFMAP_DOUBT_REUSED_ADDRESS: u32 = 4;
pub const PERFMAP_DOUBT_GUESSED_OWNER: u32 = 8;
pub const PERFMAP_DOUBT_GUESSED_CALL: u32 = 16;
pub const PERFMAP_DOUBT_SCANNED_FRAME: u32 = 32;
pub const PERFMAP_DOUBT_STITCHED_FRAME: u32 = 64;
pub const PERFMAP_DOUBT_REMAPPED_MEMORY: u32 = 128;
pub const PERFMAP_DOUBT_UNRECORDED_MEMORY: u32 = 256;
pub const PERFMAP_DETAIL_SYMBOLS: i32 = 0;
pub const PERFMAP_DETAIL_LINES: i32 = 1;
pub const PERFMAP_DETAIL_INLINES: i32 = 2;
pub const PERFMAP_DETAIL_ADDRESSES: i32 = 3;
pub const PERFMAP_NO_NAME_GONE: i32 = 0;
pub const PERFMAP_NO_NAME_UNMAPPED: i32 = 1;
pub const PERFMAP_NO_NAME_NO_SOURCE: i32 = 2;
pub const PERFMAP_NO_NAME_NOT_COVERED: i32 = 3;
pub const PERFMAP_NO_NAME_BEFORE_LOAD: i32 = 4;
pub const PERFMAP_NO_NAME_NO_SYMBOL: i32 = 5;
pub const PERFMAP_NO_NAME_UNREADABLE: i32 = 6;
pub const PERFMAP_FRAME_INITIAL: i32 = 0;
pub const PERFMAP_FRAME_LEAF: i32 = 1;
pub const PERFMAP_FRAME_EH_CFI: i32 = 2;
pub const PERFMAP_FRAME_DEBUG_FRAME: i32 = 3;
pub const PERFMAP_FRAME_JIT_CFI: i32 = 4;
pub const PERFMAP_FRAME_FRAME_POINTER: i32 = 5;
pub const PERFMAP_FRAME_PLT: i32 = 6;
pub const PERFMAP_FRAME_SCAN: i32 = 7;
pub const PERFMAP_FRAME_STITCHED: i32 = 8;
pub const PERFMAP_FRAME_CALLCHAIN: i32 = 9;
pub const PERFMAP_FRAME_KERNEL: i32 = 10;
pub const PERFMAP_FRAME_REPAIRED: i32 = 11;
pub const PERFMAP_FRAME_SIGNAL: i32 = 12;
pub const PERFMAP_STACK_ROOT: i32 = 0;
pub const PERFMAP_STACK_TRUNCATED: i32 = 1;
pub const PERFMAP_STACK_NO_INFO: i32 = 2;
pub const PERFMAP_STACK_BAD_MEMORY: i32 = 3;
pub const PERFMAP_STACK_LOOP: i32 = 4;
pub const PERFMAP_STACK_LIMIT: i32 = 5;
pub const PERFMAP_STACK_CALLCHAIN: i32 = 6;
pub const PERFMAP_CPU_UNKNOWN: i32 = 0;
pub const PERFMAP_CPU_KERNEL: i32 = 1;
pub const PERFMAP_CPU_USER: i32 = 2;
pub const PERFMAP_CPU_HYPERVISOR: i32 = 3;
pub const PERFMAP_CPU_GUEST_KERNEL: i32 = 4;
pub const PERFMAP_CPU_GUEST_USER: i32 = 5;
pub const PERFMAP_KIND_UNKNOWN: i32 = 0;
pub const PERFMAP_KIND_NATIVE: i32 = 1;
pub const PERFMAP_KIND_INLINED: i32 = 2;
pub const PERFMAP_KIND_JIT: i32 = 3;
pub const PERFMAP_KIND_KERNEL: i32 = 4;
pub const PERFMAP_STACK_OTHER: i32 = 7;

c_handles! {
    pub struct perfmap_kernel;
    pub struct perfmap_module;
    pub struct perfmap_module_cache;
    pub struct perfmap_recording;
    pub struct perfmap_space;
    pub struct perfmap_stacks;
    pub struct perfmap_stitcher;
    pub struct perfmap_tracker;
    pub struct perfmap_unwind_space;
    pub struct perfmap_unwinder;
}

c_structs! {
    pub struct perfmap_tracker_options {
        pub struct_size: usize,
        pub proc: *const c_char,
        pub tmp: *const c_char,
        pub any_owner: i32,
        pub modules: *mut perfmap_module_cache,
        pub symfs: *const c_char,
        pub open: perfmap_open_module,
        pub open_context: *mut c_void,
    }
    pub struct perfmap_process {
        pub struct_size: usize,
        pub pid: i32,
        pub generation: u32,
        pub began: i32,
        pub parent: i32,
        pub since: u64,
        pub until: u64,
        pub start_ticks: u64,
        pub comm: *const c_char,
        pub comm_size: usize,
    }
    pub struct perfmap_mmap_event {
        pub struct_size: usize,
        pub pid: i32,
        pub access: u32,
        pub time: u64,
        pub begin: u64,
        pub size: u64,
        pub offset: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub device_major: u32,
        pub device_minor: u32,
        pub inode: u64,
        pub inode_generation: u64,
        pub build_id: *const c_void,
        pub build_id_size: usize,
    }
    pub struct perfmap_region {
        pub struct_size: usize,
        pub begin: u64,
        pub size: u64,
        pub offset: u64,
        pub access: u32,
        pub kind: i32,
        pub jit: i32,
        pub device_major: u32,
        pub device_minor: u32,
        pub inode: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub build_id: *const c_void,
        pub build_id_size: usize,
    }
    pub struct perfmap_jit_code {
        pub struct_size: usize,
        pub begin: u64,
        pub size: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub room: i32,
        pub doubts: u32,
    }
    pub struct perfmap_module_cache_options {
        pub struct_size: usize,
        pub most_bytes: u64,
        pub debug_directories: *const c_char,
    }
    pub struct perfmap_module_facts {
        pub struct_size: usize,
        pub path: *const c_char,
        pub path_size: usize,
        pub build_id: *const c_void,
        pub build_id_size: usize,
        pub bytes: *const c_void,
        pub bytes_size: usize,
        pub machine: u32,
        pub r#type: u32,
    }
    pub struct perfmap_symbol {
        pub struct_size: usize,
        pub begin: u64,
        pub size: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub demangled: *const c_char,
        pub demangled_size: usize,
    }
    pub struct perfmap_source_frame {
        pub function: *const c_char,
        pub function_size: usize,
        pub file: *const c_char,
        pub file_size: usize,
        pub line: u32,
        pub column: u32,
    }
    pub struct perfmap_address_name {
        pub struct_size: usize,
        pub name: *const c_char,
        pub name_size: usize,
        pub begin: u64,
        pub size: u64,
        pub source: *const c_char,
        pub source_size: usize,
        pub is_jit: i32,
        pub why: i32,
        pub frames: *const perfmap_source_frame,
        pub frame_count: usize,
        pub doubts: u32,
    }
    pub struct perfmap_machine {
        pub struct_size: usize,
        pub machine: u32,
        pub compat: u32,
        pub is_unwound: i32,
        pub register_count: u32,
        pub register_mask: u64,
        pub sp_register: i32,
        pub pc_register: i32,
        pub sp_dwarf_register: i32,
    }
    pub struct perfmap_unwinder_options {
        pub struct_size: usize,
        pub most_frames: u32,
        pub scan: i32,
        pub jit_cfi_first: i32,
        pub with_registers: i32,
    }
    pub struct perfmap_sample {
        pub struct_size: usize,
        pub machine: u32,
        pub is_stack_full: i32,
        pub time: u64,
        pub register_mask: u64,
        pub registers: *const u64,
        pub register_count: usize,
        pub stack: *const c_void,
        pub stack_size: usize,
        pub dwarf_numbers: *const i32,
        pub callchain: *const u64,
        pub callchain_size: usize,
    }
    pub struct perfmap_frame {
        pub struct_size: usize,
        pub pc: u64,
        pub sp: u64,
        pub source: i32,
        pub is_return: i32,
        pub register_mask: u64,
        pub registers: *const u64,
    }
    pub struct perfmap_unwinder_statistics {
        pub struct_size: usize,
        pub samples: u64,
        pub frames: u64,
        pub rules: u64,
        pub ends: *const u64,
        pub end_count: usize,
        pub sources: *const u64,
        pub source_count: usize,
    }
    pub struct perfmap_stitcher_options {
        pub struct_size: usize,
        pub max_distance: u64,
        pub max_frames: u32,
    }
    pub struct perfmap_recording_facts {
        pub struct_size: usize,
        pub is_pipe: i32,
        pub was_killed: i32,
        pub is_swapped: i32,
        pub cpus: u32,
        pub hostname: *const c_char,
        pub hostname_size: usize,
        pub os_release: *const c_char,
        pub os_release_size: usize,
        pub arch: *const c_char,
        pub arch_size: usize,
        pub wall_ns: u64,
        pub clock_ns: u64,
        pub first_sample: u64,
        pub last_sample: u64,
        pub event_count: usize,
    }
    pub struct perfmap_recorded_event {
        pub struct_size: usize,
        pub name: *const c_char,
        pub name_size: usize,
        pub r#type: u32,
        pub is_frequency: i32,
        pub config: u64,
        pub period: u64,
        pub sample_type: u64,
        pub user_registers: u64,
        pub user_stack: u32,
        pub clock: i32,
    }
    pub struct perfmap_record {
        pub struct_size: usize,
        pub r#type: u32,
        pub misc: u32,
        pub time: u64,
        pub offset: u64,
        pub event: u32,
        pub is_swapped: i32,
        pub bytes: *const c_void,
        pub size: usize,
    }
    pub struct perfmap_recorded_sample {
        pub struct_size: usize,
        pub time: u64,
        pub ip: u64,
        pub pid: i32,
        pub tid: i32,
        pub cpu: u32,
        pub event: u32,
        pub period: u64,
        pub address: u64,
        pub mode: i32,
        pub user_abi: u32,
    }
    pub struct perfmap_stacks_options {
        pub struct_size: usize,
        pub detail: i32,
        pub mangled: i32,
        pub threads: u32,
        pub most_frames: u32,
        pub scan: i32,
        pub jit_cfi_first: i32,
        pub stitch: i32,
        pub no_kernel: i32,
        pub any_owner: i32,
        pub symfs: *const c_char,
        pub map_dir: *const c_char,
        pub tmp: *const c_char,
        pub kallsyms: *const c_char,
        pub modules: *mut perfmap_module_cache,
        pub open: perfmap_open_module,
        pub open_context: *mut c_void,
        pub pids: *const i32,
        pub pid_count: usize,
        pub tids: *const i32,
        pub tid_count: usize,
        pub comms: *const *const c_char,
        pub comm_count: usize,
        pub events: *const *const c_char,
        pub event_count: usize,
        pub from: u64,
        pub to: u64,
    }
    pub struct perfmap_stack {
        pub struct_size: usize,
        pub time: u64,
        pub pid: i32,
        pub tid: i32,
        pub cpu: u32,
        pub event: u32,
        pub period: u64,
        pub comm: *const c_char,
        pub comm_size: usize,
        pub process_comm: *const c_char,
        pub process_comm_size: usize,
        pub end: i32,
        pub was_stitched: i32,
        pub frame_count: usize,
    }
    pub struct perfmap_stack_frame {
        pub struct_size: usize,
        pub ip: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub system_name: *const c_char,
        pub system_name_size: usize,
        pub module: *const c_char,
        pub module_size: usize,
        pub file: *const c_char,
        pub file_size: usize,
        pub line: u32,
        pub column: u32,
        pub offset: u64,
        pub vaddr: u64,
        pub place: u32,
        pub function: u32,
        pub kind: i32,
        pub source: i32,
        pub is_return: i32,
        pub doubts: u32,
    }
    pub struct perfmap_stacks_writing {
        pub struct_size: usize,
        pub merge_tiers: i32,
        pub no_marks: i32,
        pub with_pid: i32,
    }
    pub struct perfmap_stack_counts {
        pub struct_size: usize,
        pub pid: i32,
        pub worst_source: i32,
        pub comm: *const c_char,
        pub comm_size: usize,
        pub samples: u64,
        pub frames: u64,
        pub full_copies: u64,
        pub stitched: u64,
        pub not_unwound: u64,
        pub unnamed: u64,
        pub unnamed_jit: u64,
        pub doubtful: u64,
        pub ends: *const u64,
        pub end_count: usize,
        pub sources: *const u64,
        pub source_count: usize,
    }
    pub struct perfmap_stack_losses {
        pub struct_size: usize,
        pub filtered: u64,
        pub lost: u64,
        pub out_of_order: u64,
        pub lost_bytes: u64,
    }
}

extern "C" {
    pub fn perfmap_profile_layouts(count: *mut usize) -> *const perfmap_layout;
    pub fn perfmap_tracker_begin(
        options: *const perfmap_tracker_options,
        out: *mut *mut perfmap_tracker,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_end(tracker: *mut perfmap_tracker);
    pub fn perfmap_tracker_find_pid(
        tracker: *mut perfmap_tracker,
        pid: i32,
        create: perfmap_create_process,
        context: *mut c_void,
        out: *mut perfmap_process,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_import(
        tracker: *mut perfmap_tracker,
        pid: i32,
        time: u64,
        imported: *mut i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_forget_before(
        tracker: *mut perfmap_tracker,
        time: u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_mmap(
        tracker: *mut perfmap_tracker,
        event: *const perfmap_mmap_event,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_unmap(
        tracker: *mut perfmap_tracker,
        pid: i32,
        time: u64,
        begin: u64,
        size: u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_fork(
        tracker: *mut perfmap_tracker,
        pid: i32,
        tid: i32,
        parent: i32,
        time: u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_comm(
        tracker: *mut perfmap_tracker,
        pid: i32,
        tid: i32,
        time: u64,
        comm: *const c_char,
        comm_size: usize,
        exec: i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_exit(
        tracker: *mut perfmap_tracker,
        pid: i32,
        tid: i32,
        time: u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_space_begin_with_tracker(
        tracker: *mut perfmap_tracker,
        pid: i32,
        time: u64,
        out: *mut *mut perfmap_space,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_space_end(space: *mut perfmap_space);
    pub fn perfmap_space_process(space: *const perfmap_space, out: *mut perfmap_process);
    pub fn perfmap_space_find(
        space: *const perfmap_space,
        address: u64,
        out: *mut perfmap_region,
    ) -> perfmap_status;
    pub fn perfmap_space_size(space: *const perfmap_space) -> usize;
    pub fn perfmap_space_region(
        space: *const perfmap_space,
        index: usize,
        out: *mut perfmap_region,
    );
    pub fn perfmap_tracker_refresh_jit(
        tracker: *mut perfmap_tracker,
        pid: i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_find_jit(
        tracker: *mut perfmap_tracker,
        pid: i32,
        address: u64,
        time: u64,
        source_time: u64,
        out: *mut perfmap_jit_code,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_cache_begin(
        options: *const perfmap_module_cache_options,
        out: *mut *mut perfmap_module_cache,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_cache_end(cache: *mut perfmap_module_cache);
    pub fn perfmap_module_cache_opened(cache: *const perfmap_module_cache) -> u64;
    pub fn perfmap_module_id(module: *const perfmap_module) -> u64;
    pub fn perfmap_module_copy(
        module: *const perfmap_module,
        out: *mut *mut perfmap_module,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_open(
        cache: *mut perfmap_module_cache,
        path: *const c_char,
        out: *mut *mut perfmap_module,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_open_descriptor(
        cache: *mut perfmap_module_cache,
        fd: c_int,
        name: *const c_char,
        out: *mut *mut perfmap_module,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_from_memory(
        cache: *mut perfmap_module_cache,
        bytes: *const c_void,
        size: usize,
        name: *const c_char,
        out: *mut *mut perfmap_module,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_find_build_id(
        cache: *mut perfmap_module_cache,
        build_id: *const c_void,
        size: usize,
        out: *mut *mut perfmap_module,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_find_elf(
        tracker: *mut perfmap_tracker,
        pid: i32,
        address: u64,
        time: u64,
        out: *mut *mut perfmap_module,
        vaddr: *mut u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_module_end(module: *mut perfmap_module);
    pub fn perfmap_module_get_facts(module: *const perfmap_module, out: *mut perfmap_module_facts);
    pub fn perfmap_module_find_symbol(
        module: *const perfmap_module,
        vaddr: u64,
        out: *mut perfmap_symbol,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_name(
        tracker: *mut perfmap_tracker,
        pid: i32,
        address: u64,
        time: u64,
        source_time: u64,
        detail: i32,
        out: *mut perfmap_address_name,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_kernel_begin(
        kallsyms: *const c_char,
        out: *mut *mut perfmap_kernel,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_kernel_name(
        kernel: *const perfmap_kernel,
        address: u64,
        out: *mut perfmap_address_name,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_kernel_end(kernel: *mut perfmap_kernel);
    pub fn perfmap_preferred_regs_mask(machine: u32) -> u64;
    pub fn perfmap_machine_get(machine: u32, out: *mut perfmap_machine) -> perfmap_status;
    pub fn perfmap_machine_from_uname(name: *const c_char) -> u32;
    pub fn perfmap_register_place(register_mask: u64, number: i32) -> i32;
    pub fn perfmap_unwind_attach(
        tracker: *mut perfmap_tracker,
        pid: i32,
        time: u64,
        out: *mut *mut perfmap_unwind_space,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_unwind_detach(space: *mut perfmap_unwind_space);
    pub fn perfmap_unwinder_begin(
        options: *const perfmap_unwinder_options,
        out: *mut *mut perfmap_unwinder,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_unwinder_end(unwinder: *mut perfmap_unwinder);
    pub fn perfmap_frame_source_name(source: i32) -> *const c_char;
    pub fn perfmap_stack_end_name(end: i32) -> *const c_char;
    pub fn perfmap_unwind_sample(
        unwinder: *mut perfmap_unwinder,
        space: *const perfmap_unwind_space,
        sample: *const perfmap_sample,
        take: perfmap_take_frame,
        context: *mut c_void,
        end: *mut i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_unwinder_get_statistics(
        unwinder: *const perfmap_unwinder,
        out: *mut perfmap_unwinder_statistics,
    );
    pub fn perfmap_stitcher_begin(
        options: *const perfmap_stitcher_options,
        out: *mut *mut perfmap_stitcher,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stitcher_end(stitcher: *mut perfmap_stitcher);
    pub fn perfmap_stitcher_learn(
        stitcher: *mut perfmap_stitcher,
        process: u64,
        tid: i32,
        time: u64,
        frames: *const perfmap_frame,
        count: usize,
        end: i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stitcher_repair(
        stitcher: *mut perfmap_stitcher,
        process: u64,
        tid: i32,
        time: u64,
        frames: *mut perfmap_frame,
        count: *mut usize,
        room: usize,
        end: *mut i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stitcher_forget_before(stitcher: *mut perfmap_stitcher, time: u64);
    pub fn perfmap_recording_open(
        path: *const c_char,
        out: *mut *mut perfmap_recording,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_recording_end(recording: *mut perfmap_recording);
    pub fn perfmap_recording_get_facts(
        recording: *const perfmap_recording,
        out: *mut perfmap_recording_facts,
    );
    pub fn perfmap_recording_get_event(
        recording: *const perfmap_recording,
        index: usize,
        out: *mut perfmap_recorded_event,
    ) -> perfmap_status;
    pub fn perfmap_recording_read(
        recording: *mut perfmap_recording,
        take: perfmap_take_record,
        context: *mut c_void,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_recording_get_sample(
        recording: *mut perfmap_recording,
        record: *const perfmap_record,
        out: *mut perfmap_recorded_sample,
        sample: *mut perfmap_sample,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_tracker_on_record(
        tracker: *mut perfmap_tracker,
        record: *const perfmap_record,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stacks_begin(
        recording: *const perfmap_recording,
        options: *const perfmap_stacks_options,
        out: *mut *mut perfmap_stacks,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stacks_end(stacks: *mut perfmap_stacks);
    pub fn perfmap_stacks_read(
        stacks: *mut perfmap_stacks,
        take: perfmap_take_stack,
        context: *mut c_void,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stacks_frame(
        stacks: *const perfmap_stacks,
        index: usize,
        out: *mut perfmap_stack_frame,
    ) -> perfmap_status;
    pub fn perfmap_stacks_write(
        stacks: *mut perfmap_stacks,
        format: *const c_char,
        path: *const c_char,
        options: *const perfmap_stacks_writing,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_stacks_processes(stacks: *const perfmap_stacks) -> usize;
    pub fn perfmap_stacks_get_counts(
        stacks: *const perfmap_stacks,
        index: usize,
        out: *mut perfmap_stack_counts,
    ) -> perfmap_status;
    pub fn perfmap_stacks_get_losses(stacks: *const perfmap_stacks, out: *mut perfmap_stack_losses);
    pub fn perfmap_stacks_get_failure(
        stacks: *const perfmap_stacks,
        index: usize,
        out: *mut perfmap_error,
    ) -> perfmap_status;
}

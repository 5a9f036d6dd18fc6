// SPDX-License-Identifier: MIT
//! The C interface of libperfmap, as `perfmap.h` declares it: that header documents all of it.
//!
//! With the feature `profile`, [`profile`] is that of libperfmap-profile. A test compares the
//! structs with the tables of the library, and another one the functions with the header.
#![allow(non_camel_case_types)]

use std::mem::{size_of, zeroed};
pub use std::os::raw::{c_char, c_int, c_void};
use std::ptr::addr_of_mut;

#[cfg(feature = "profile")]
pub mod profile;

pub type perfmap_status = c_int;

pub type perfmap_evaluator = Option<
    unsafe extern "C" fn(
        first: *mut c_void,
        second: *mut c_void,
        third: *mut c_void,
    ) -> *mut c_void,
>;
pub type perfmap_trampoline_entry = Option<
    unsafe extern "C" fn(
        first: *mut c_void,
        second: *mut c_void,
        third: *mut c_void,
        evaluator: perfmap_evaluator,
    ) -> *mut c_void,
>;

pub const PERFMAP_UNWIND_ROOM: usize = 96;
pub const PERFMAP_OK: i32 = 0;
pub const PERFMAP_E_IO: i32 = 1;
pub const PERFMAP_E_NOT_FOUND: i32 = 2;
pub const PERFMAP_E_BAD_FORMAT: i32 = 3;
pub const PERFMAP_E_UNSUPPORTED: i32 = 4;
pub const PERFMAP_E_INVALID_ARGUMENT: i32 = 5;
pub const PERFMAP_E_REFUSED: i32 = 6;
pub const PERFMAP_E_TOO_LARGE: i32 = 7;
pub const PERFMAP_E_NO_MEMORY: i32 = 8;
pub const PERFMAP_E_INTERNAL: i32 = 9;

pub const PERFMAP_REASON_OTHER: i32 = 0;
pub const PERFMAP_REASON_SYSTEM: i32 = 1;
pub const PERFMAP_REASON_NOT_REGULAR: i32 = 2;
pub const PERFMAP_REASON_SYMBOLIC_LINK: i32 = 3;
pub const PERFMAP_REASON_KERNEL_FILE: i32 = 4;
pub const PERFMAP_REASON_HARD_LINKS: i32 = 5;
pub const PERFMAP_REASON_FOREIGN_OWNER: i32 = 6;
pub const PERFMAP_REASON_OLDER_THAN_PROCESS: i32 = 7;
pub const PERFMAP_REASON_OTHER_PROCESS: i32 = 8;
pub const PERFMAP_REASON_OTHER_FILE: i32 = 9;
pub const PERFMAP_REASON_OTHER_BUILD: i32 = 10;
pub const PERFMAP_REASON_DELETED: i32 = 11;
pub const PERFMAP_REASON_PRIVATE: i32 = 12;
pub const PERFMAP_REASON_REPLACED: i32 = 13;
pub const PERFMAP_REASON_TRUNCATED: i32 = 14;
pub const PERFMAP_REASON_CHANGED: i32 = 15;
pub const PERFMAP_REASON_TOO_LARGE: i32 = 16;
pub const PERFMAP_REASON_TOO_MANY: i32 = 17;
pub const PERFMAP_REASON_EXISTS: i32 = 18;
pub const PERFMAP_REASON_IS_INPUT: i32 = 19;
pub const PERFMAP_REASON_NO_PROCESS: i32 = 20;
pub const PERFMAP_REASON_PROCESS_ENDED: i32 = 21;
pub const PERFMAP_REASON_OTHER_KIND: i32 = 22;
pub const PERFMAP_REASON_NOT_OF_KIND: i32 = 23;
pub const PERFMAP_REASON_NOT_INSTALLED: i32 = 24;
pub const PERFMAP_REASON_FORBIDDEN: i32 = 25;
pub const PERFMAP_REASON_HIDDEN_ADDRESSES: i32 = 26;
pub const PERFMAP_REASON_UNREACHABLE: i32 = 27;
pub const PERFMAP_REASON_UNSUITABLE: i32 = 28;
pub const PERFMAP_LAYOUT_STRUCT: i32 = 0;
pub const PERFMAP_LAYOUT_SIGNED: i32 = 1;
pub const PERFMAP_LAYOUT_UNSIGNED: i32 = 2;
pub const PERFMAP_LAYOUT_POINTER: i32 = 3;
pub const PERFMAP_LAYOUT_BYTES: i32 = 4;
pub const PERFMAP_FORK_FRESH: i32 = 0;
pub const PERFMAP_FORK_INHERIT: i32 = 1;
pub const PERFMAP_FORK_OFF: i32 = 2;
pub const PERFMAP_START_NONE: i32 = 0;
pub const PERFMAP_START_MADE: i32 = 1;
pub const PERFMAP_START_EMPTIED: i32 = 2;
pub const PERFMAP_START_INHERITED: i32 = 3;
pub const PERFMAP_START_APPENDED: i32 = 4;
pub const PERFMAP_START_APPENDED_KEPT: i32 = 5;
pub const PERFMAP_START_APPENDED_IN_USE: i32 = 6;
pub const PERFMAP_NAMES_ESCAPE: i32 = 0;
pub const PERFMAP_NAMES_REFUSE: i32 = 1;
pub const PERFMAP_JITLOG_COUNTER: i32 = 0;
pub const PERFMAP_JITLOG_MONOTONIC: i32 = 1;
pub const PERFMAP_TRAMPOLINES_MAP: i32 = 1;
pub const PERFMAP_TRAMPOLINES_JITDUMP: i32 = 2;
pub const PERFMAP_TRAMPOLINES_BOTH: i32 = 3;
pub const PERFMAP_OVERLAP_LAST: i32 = 0;
pub const PERFMAP_OVERLAP_FIRST: i32 = 1;
pub const PERFMAP_OVERLAP_INNER: i32 = 2;
pub const PERFMAP_OVERLAP_PERF: i32 = 3;

/// Structs of C whose `Default` is all zeros, but for `struct_size`.
macro_rules! c_structs {
    ($($(#[$about:meta])* pub struct $record:ident { $(pub $member:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $record { $(pub $member: $type,)* }

            impl Default for $record {
                fn default() -> Self {
                    // SAFETY: numbers, pointers and Option of functions may be zero.
                    let mut made: Self = unsafe { zeroed() };
                    $(if stringify!($member) == "struct_size" {
                        // SAFETY: a member of that name is a usize.
                        unsafe { *addr_of_mut!(made.$member).cast::<usize>() = size_of::<Self>() };
                    })*
                    made
                }
            }
        )*

        /// For tests: calls `row` with the struct, the member (that of perfmap_layout, "" first), its
        /// offset and its size.
        #[doc(hidden)]
        pub fn each_member(row: &mut dyn FnMut(&'static str, &'static str, usize, usize)) {
            fn size_of_pointee<T>(_: *const T) -> usize { size_of::<T>() }
            $(
                row(stringify!($record), "", 0, size_of::<$record>());
                let made = <$record>::default();
                let base = std::ptr::addr_of!(made);
                $({
                    let member = std::ptr::addr_of!(made.$member);
                    row(stringify!($record), stringify!($member), member as usize - base as usize,
                        size_of_pointee(member));
                })*
            )*
        }
    };
}
#[cfg(feature = "profile")]
pub(crate) use c_structs;

/// Handles: only pointers to them exist.
macro_rules! c_handles {
    ($(pub struct $handle:ident;)*) => {
        $(
            #[repr(C)]
            pub struct $handle {
                _private: [u8; 0],
                // Neither Send nor Sync, and no address to rely on.
                _marker: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
            }
        )*
    };
}
#[cfg(feature = "profile")]
pub(crate) use c_handles;

c_handles! {
    pub struct perfmap_index;
    pub struct perfmap_jitdump;
    pub struct perfmap_jitlog;
    pub struct perfmap_map;
    pub struct perfmap_timeline;
    pub struct perfmap_trampoline;
    pub struct perfmap_trampoline_arena;
    pub struct perfmap_truncation_guard;
    pub struct perfmap_writer;
}

c_structs! {
    pub struct perfmap_error {
        pub struct_size: usize,
        pub sys_errno: i32,
        pub offset: u64,
        pub message: [c_char; 256],
        pub reason: i32,
        pub path: [c_char; 256],
    }
    pub struct perfmap_layout {
        pub record: *const c_char,
        pub member: *const c_char,
        pub offset: usize,
        pub size: usize,
        pub kind: i32,
    }
    pub struct perfmap_state_options {
        pub struct_size: usize,
        pub directory: *const c_char,
        pub fork: i32,
        pub names: i32,
        pub buffer_bytes: usize,
        pub flush_after_ns: u64,
        pub most_bytes: u64,
        pub keep_stale: c_int,
        pub on_full: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
        pub on_full_context: *mut c_void,
        pub mapped: c_int,
    }
    pub struct perfmap_writer_options {
        pub struct_size: usize,
        pub names: i32,
        pub own_map: c_int,
        pub buffer_bytes: usize,
        pub flush_after_ns: u64,
        pub most_bytes: u64,
        pub on_full: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
        pub on_full_context: *mut c_void,
        pub mapped: c_int,
    }
    pub struct perfmap_jitdump_options {
        pub struct_size: usize,
        pub pid: i32,
        pub names: i32,
        pub own_dump: c_int,
        pub no_marker: c_int,
        pub no_close_record: c_int,
        pub state_map: c_int,
        pub most_bytes: u64,
        pub fork: i32,
    }
    pub struct perfmap_jitdump_line {
        pub address: u64,
        pub line: i32,
        pub column: i32,
        pub file: *const c_char,
    }
    pub struct perfmap_jitdump_function {
        pub struct_size: usize,
        pub start: u64,
        pub size: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub code: *const c_void,
        pub lines: *const perfmap_jitdump_line,
        pub line_count: usize,
        pub eh_frame: *const c_void,
        pub eh_frame_size: usize,
        pub eh_frame_hdr: *const c_void,
        pub eh_frame_hdr_size: usize,
        pub mapped_size: u64,
        pub time: u64,
    }
    pub struct perfmap_jitlog_options {
        pub struct_size: usize,
        pub clock: i32,
        pub names: i32,
        pub own_log: c_int,
        pub one_thread: c_int,
        pub buffer_events: u32,
        pub fork: i32,
    }
    pub struct perfmap_trampoline_options {
        pub struct_size: usize,
        pub prefix: *const c_char,
        pub jitdump_directory: *const c_char,
        pub exceptions: c_int,
    }
    pub struct perfmap_code_description {
        pub struct_size: usize,
        pub qualified_name: *const c_char,
        pub qualified_name_size: usize,
        pub file: *const c_char,
        pub file_size: usize,
        pub first_line: i32,
    }
    pub struct perfmap_trampoline_state_info {
        pub struct_size: usize,
        pub active: i32,
        pub backend: i32,
        pub compiled: u64,
        pub failed: u64,
        pub last_errno: i32,
        pub mapped_bytes: u64,
    }
    pub struct perfmap_entry {
        pub struct_size: usize,
        pub start: u64,
        pub size: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub offset: u64,
        pub map: usize,
    }
    pub struct perfmap_code {
        pub struct_size: usize,
        pub start: u64,
        pub size: u64,
        pub name: *const c_char,
        pub name_size: usize,
        pub since: u64,
        pub until: u64,
        pub offset: u64,
        pub index: u64,
        pub bytes: *const c_char,
    }
    pub struct perfmap_finding {
        pub struct_size: usize,
        pub rule: *const c_char,
        pub severity: i32,
        pub fixable: i32,
        pub line: u64,
        pub column: u64,
        pub offset: u64,
        pub message: *const c_char,
    }
    pub struct perfmap_name {
        pub struct_size: usize,
        pub runtime: *const c_char,
        pub tier: *const c_char,
        pub function: *const c_char,
        pub function_size: usize,
        pub file: *const c_char,
        pub file_size: usize,
        pub line: u64,
        pub column: u64,
    }
    pub struct perfmap_name_part {
        pub text: *const c_char,
        pub size: usize,
    }
}

extern "C" {
    pub fn perfmap_version() -> *const c_char;
    pub fn perfmap_status_text(status: perfmap_status) -> *const c_char;
    pub fn perfmap_writer_layouts(count: *mut usize) -> *const perfmap_layout;
    pub fn perfmap_layouts(count: *mut usize) -> *const perfmap_layout;
    pub fn perfmap_state_configure(options: *const perfmap_state_options) -> c_int;
    pub fn perfmap_state_set_fork(policy: i32) -> c_int;
    pub fn perfmap_state_init() -> c_int;
    pub fn perfmap_state_began_with() -> i32;
    pub fn perfmap_state_write_entry(
        code: *const c_void,
        size: usize,
        name: *const c_char,
    ) -> c_int;
    pub fn perfmap_state_copy_file(path: *const c_char) -> c_int;
    pub fn perfmap_state_flush() -> c_int;
    pub fn perfmap_state_fini() -> c_int;
    pub fn perfmap_state_path(out: *mut c_char, size: usize) -> usize;
    pub fn perfmap_state_last_error(out: *mut perfmap_error) -> perfmap_status;
    pub fn perfmap_writer_open(
        path: *const c_char,
        options: *const perfmap_writer_options,
        out: *mut *mut perfmap_writer,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_writer_write(
        writer: *mut perfmap_writer,
        start: u64,
        size: u64,
        name: *const c_char,
        name_size: usize,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_writer_copy(
        writer: *mut perfmap_writer,
        path: *const c_char,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_writer_flush(
        writer: *mut perfmap_writer,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_writer_close(
        writer: *mut perfmap_writer,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_writer_path(writer: *mut perfmap_writer, out: *mut c_char, size: usize) -> usize;
    pub fn perfmap_writer_free(writer: *mut perfmap_writer);
    pub fn perfmap_jitdump_open_own(
        directory: *const c_char,
        options: *const perfmap_jitdump_options,
        out: *mut *mut perfmap_jitdump,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitdump_open(
        path: *const c_char,
        options: *const perfmap_jitdump_options,
        out: *mut *mut perfmap_jitdump,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitdump_load(
        dump: *mut perfmap_jitdump,
        function: *const perfmap_jitdump_function,
        code_index: *mut u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitdump_move(
        dump: *mut perfmap_jitdump,
        code_index: u64,
        from: u64,
        to: u64,
        size: u64,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitdump_close(
        dump: *mut perfmap_jitdump,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_unwind_frame_pointer(
        function: *mut perfmap_jitdump_function,
        room: *mut c_void,
        room_size: usize,
    ) -> perfmap_status;
    pub fn perfmap_unwind_no_frame(
        function: *mut perfmap_jitdump_function,
        sp_offset: u32,
        room: *mut c_void,
        room_size: usize,
    ) -> perfmap_status;
    pub fn perfmap_unwind_from_fde(
        function: *mut perfmap_jitdump_function,
        cie: *const c_void,
        cie_size: usize,
        fde: *const c_void,
        fde_size: usize,
        room: *mut c_void,
        room_size: usize,
    ) -> perfmap_status;
    pub fn perfmap_unwind_from_eh_frame(
        function: *mut perfmap_jitdump_function,
        eh_frame: *const c_void,
        size: usize,
        address: u64,
        room: *mut c_void,
        room_size: usize,
    ) -> perfmap_status;
    pub fn perfmap_jitdump_path(dump: *mut perfmap_jitdump, out: *mut c_char, size: usize) -> usize;
    pub fn perfmap_jitdump_free(dump: *mut perfmap_jitdump);
    pub fn perfmap_jitlog_open(
        path: *const c_char,
        options: *const perfmap_jitlog_options,
        out: *mut *mut perfmap_jitlog,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitlog_loop(
        log: *mut perfmap_jitlog,
        name: *const c_char,
        name_size: usize,
        loop_number: *mut u32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitlog_enter(log: *mut perfmap_jitlog, loop_number: u32) -> perfmap_status;
    pub fn perfmap_jitlog_exit(log: *mut perfmap_jitlog, loop_number: u32) -> perfmap_status;
    pub fn perfmap_jitlog_flush(
        log: *mut perfmap_jitlog,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitlog_close(
        log: *mut perfmap_jitlog,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_jitlog_lost(log: *const perfmap_jitlog) -> u64;
    pub fn perfmap_jitlog_path(log: *mut perfmap_jitlog, out: *mut c_char, size: usize) -> usize;
    pub fn perfmap_jitlog_free(log: *mut perfmap_jitlog);
    pub fn perfmap_trampoline_arena_new(
        options: *const perfmap_trampoline_options,
        out: *mut *mut perfmap_trampoline_arena,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_trampoline_arena_free(arena: *mut perfmap_trampoline_arena);
    pub fn perfmap_trampoline_activate(
        arena: *mut perfmap_trampoline_arena,
        backend: i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_trampoline_deactivate(arena: *mut perfmap_trampoline_arena);
    pub fn perfmap_trampoline_state(
        arena: *const perfmap_trampoline_arena,
        out: *mut perfmap_trampoline_state_info,
    );
    pub fn perfmap_trampoline_new(
        arena: *mut perfmap_trampoline_arena,
        code: *const perfmap_code_description,
        out: *mut *mut perfmap_trampoline,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_trampoline_free(trampoline: *mut perfmap_trampoline);
    pub fn perfmap_trampoline_compile(
        trampoline: *mut perfmap_trampoline,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_trampoline_entry_of(
        trampoline: *mut perfmap_trampoline,
    ) -> perfmap_trampoline_entry;
    pub fn perfmap_trampoline_call(
        trampoline: *mut perfmap_trampoline,
        first: *mut c_void,
        second: *mut c_void,
        third: *mut c_void,
        evaluator: perfmap_evaluator,
    ) -> *mut c_void;
    pub fn perfmap_map_open(
        path: *const c_char,
        out: *mut *mut perfmap_map,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_map_open_pid(
        pid: i32,
        out: *mut *mut perfmap_map,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_map_from_memory(
        text: *const c_char,
        size: usize,
        out: *mut *mut perfmap_map,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_map_free(map: *mut perfmap_map);
    pub fn perfmap_map_next(
        map: *const perfmap_map,
        offset: *mut u64,
        out: *mut perfmap_entry,
    ) -> perfmap_status;
    pub fn perfmap_map_line_number(map: *const perfmap_map, offset: u64) -> u64;
    pub fn perfmap_map_was_truncated(map: *const perfmap_map) -> c_int;
    pub fn perfmap_truncation_guard_new(
        out: *mut *mut perfmap_truncation_guard,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_truncation_guard_free(guard: *mut perfmap_truncation_guard);
    pub fn perfmap_index_new(
        maps: *const *const perfmap_map,
        count: usize,
        overlap: i32,
        out: *mut *mut perfmap_index,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_index_free(index: *mut perfmap_index);
    pub fn perfmap_index_find(
        index: *const perfmap_index,
        address: u64,
        out: *mut perfmap_entry,
    ) -> perfmap_status;
    pub fn perfmap_index_find_batch(
        index: *const perfmap_index,
        addresses: *const u64,
        count: usize,
        out: *mut perfmap_entry,
    ) -> usize;
    pub fn perfmap_index_refresh(
        index: *mut perfmap_index,
        changed: *mut c_int,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_map_find_batch(
        map: *const perfmap_map,
        overlap: i32,
        addresses: *const u64,
        count: usize,
        out: *mut perfmap_entry,
        found: *mut usize,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_index_write(
        index: *mut perfmap_index,
        path: *const c_char,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_timeline_open(
        path: *const c_char,
        out: *mut *mut perfmap_timeline,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_timeline_free(timeline: *mut perfmap_timeline);
    pub fn perfmap_timeline_find(
        timeline: *const perfmap_timeline,
        address: u64,
        time: u64,
        out: *mut perfmap_code,
    ) -> perfmap_status;
    pub fn perfmap_timeline_line(
        timeline: *mut perfmap_timeline,
        code: *const perfmap_code,
        address: u64,
        file: *mut *const c_char,
        file_size: *mut usize,
        line: *mut i32,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_timeline_refresh(
        timeline: *mut perfmap_timeline,
        changed: *mut c_int,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_map_lint(
        map: *const perfmap_map,
        most_per_rule: usize,
        visit: Option<
            unsafe extern "C" fn(finding: *const perfmap_finding, context: *mut c_void) -> c_int,
        >,
        context: *mut c_void,
        error: *mut perfmap_error,
    ) -> perfmap_status;
    pub fn perfmap_name_decode(name: *const c_char, size: usize, out: *mut perfmap_name);
    pub fn perfmap_name_inline_chain(
        name: *const c_char,
        size: usize,
        parts: *mut perfmap_name_part,
        most: usize,
    ) -> usize;
}

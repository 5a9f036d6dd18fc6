// SPDX-License-Identifier: MIT
use std::ptr::NonNull;

use perfmap_sys::profile as sys;

use crate::error::{check, copied, found, made, Error, Result, Status};

/// How much a name says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The function.
    #[default]
    Symbols,
    /// And the place in the source.
    Lines,
    /// And the functions that were inlined there.
    Inlines,
}

/// Why an address has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum NoName {
    Gone,
    Unmapped,
    NoSource,
    NotCovered,
    BeforeLoad,
    NoSymbol,
    Unreadable,
    /// One that this release does not know.
    Other(i32),
}

impl NoName {
    fn of(why: i32) -> Self {
        match why {
            sys::PERFMAP_NO_NAME_GONE => NoName::Gone,
            sys::PERFMAP_NO_NAME_UNMAPPED => NoName::Unmapped,
            sys::PERFMAP_NO_NAME_NO_SOURCE => NoName::NoSource,
            sys::PERFMAP_NO_NAME_NOT_COVERED => NoName::NotCovered,
            sys::PERFMAP_NO_NAME_BEFORE_LOAD => NoName::BeforeLoad,
            sys::PERFMAP_NO_NAME_NO_SYMBOL => NoName::NoSymbol,
            sys::PERFMAP_NO_NAME_UNREADABLE => NoName::Unreadable,
            other => NoName::Other(other),
        }
    }
}

/// A place in the source: function, file, line and column; 0 and empty where they are not known.
pub type SourceFrame = (Vec<u8>, Vec<u8>, u32, u32);

/// What an address is called.
#[derive(Clone, Debug)]
pub struct AddressName {
    /// Demangled.
    pub name: std::result::Result<Vec<u8>, NoName>,
    /// Of the function; 0 where only debug information names it.
    pub begin: u64,
    /// In bytes.
    pub size: u64,
    /// The ELF file, map or dump that has the name, or would have it.
    pub source: Vec<u8>,
    /// The name is a map's or a dump's.
    pub is_jit: bool,
    /// Bits, `PERFMAP_DOUBT_...` of perfmap-sys.
    pub doubts: u32,
    /// The innermost first; the last is the function itself.
    pub frames: Vec<SourceFrame>,
}

/// Knows living processes.
pub struct Tracker {
    pointer: NonNull<sys::perfmap_tracker>,
    modules: NonNull<sys::perfmap_module_cache>,
}

// SAFETY: one thread at a time may use a handle: all functions take &mut.
unsafe impl Send for Tracker {}

impl Tracker {
    /// A tracker that knows no process, with debug files from `/usr/lib/debug`.
    pub fn new() -> Result<Self> {
        let given = sys::perfmap_module_cache_options {
            debug_directories: b"/usr/lib/debug\0".as_ptr().cast(),
            ..Default::default()
        };
        let none = || Error::new(Status::Internal, "no handle was made");
        // SAFETY: the options are only read during the call.
        let modules =
            made(|out, error| unsafe { sys::perfmap_module_cache_begin(&given, out, error) })?;
        let options = sys::perfmap_tracker_options { modules, ..Default::default() };
        // SAFETY: the cache ends after the tracker.
        let made = made(|out, error| unsafe { sys::perfmap_tracker_begin(&options, out, error) });
        match (made, NonNull::new(modules)) {
            (Ok(pointer), Some(modules)) => {
                Ok(Tracker { pointer: NonNull::new(pointer).ok_or_else(none)?, modules })
            }
            (answer, _) => {
                // SAFETY: no tracker has it.
                unsafe { sys::perfmap_module_cache_end(modules) };
                Err(answer.err().unwrap_or_else(none))
            }
        }
    }

    /// Reads what a living process has mapped, and its map and dumps. False: there is no such process.
    pub fn import(&mut self, pid: i32) -> Result<bool> {
        let mut imported = 0;
        let tracker = self.pointer.as_ptr();
        // SAFETY: the tracker lives.
        check(|error| unsafe {
            sys::perfmap_tracker_import(tracker, pid, sys::PERFMAP_NOW, &mut imported, error)
        })?;
        if imported == sys::PERFMAP_IMPORTED_VANISHED {
            return Ok(false);
        }
        // SAFETY: the tracker lives. NOT_FOUND: it has neither map nor dump.
        found(|error| unsafe { sys::perfmap_tracker_refresh_jit(tracker, pid, error) })?;
        Ok(true)
    }

    /// What an address in a process that was imported is called.
    pub fn name(&mut self, pid: i32, address: u64, detail: Detail) -> Result<AddressName> {
        let mut row = sys::perfmap_address_name::default();
        let detail = match detail {
            Detail::Symbols => sys::PERFMAP_DETAIL_SYMBOLS,
            Detail::Lines => sys::PERFMAP_DETAIL_LINES,
            Detail::Inlines => sys::PERFMAP_DETAIL_INLINES,
        };
        let now = sys::PERFMAP_NOW;
        // SAFETY: the tracker lives.
        let has_name = found(|error| unsafe {
            let tracker = self.pointer.as_ptr();
            sys::perfmap_tracker_name(tracker, pid, address, now, now, detail, &mut row, error)
        })?;
        // SAFETY: views of the tracker, which are valid until the next call with it.
        unsafe {
            let source = copied(row.source, row.source_size);
            let name = if has_name {
                Ok(copied(row.name, row.name_size))
            } else {
                Err(NoName::of(row.why))
            };
            let rows: &[sys::perfmap_source_frame] = if row.frame_count == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(row.frames, row.frame_count)
            };
            let frame = |row: &sys::perfmap_source_frame| {
                let function = copied(row.function, row.function_size);
                (function, copied(row.file, row.file_size), row.line, row.column)
            };
            let frames = rows.iter().map(frame).collect();
            let (begin, size, doubts) = (row.begin, row.size, row.doubts);
            Ok(AddressName { name, begin, size, source, is_jit: row.is_jit != 0, doubts, frames })
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        // SAFETY: no other code has the pointers, and the cache has to outlive the tracker.
        unsafe {
            sys::perfmap_tracker_end(self.pointer.as_ptr());
            sys::perfmap_module_cache_end(self.modules.as_ptr());
        }
    }
}

/// What addresses of a living process are called, in their order.
pub fn resolve(pid: i32, addresses: &[u64], detail: Detail) -> Result<Vec<AddressName>> {
    let mut tracker = Tracker::new()?;
    if !tracker.import(pid)? {
        return Err(Error::new(Status::NotFound, format!("no process {pid}")));
    }
    addresses.iter().map(|address| tracker.name(pid, *address, detail)).collect()
}

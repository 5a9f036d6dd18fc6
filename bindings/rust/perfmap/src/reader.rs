// SPDX-License-Identifier: MIT
use std::ffi::CStr;
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::NonNull;

use perfmap_sys as sys;

use crate::error::{c_path, check, copied, found, made, Error, Result, Status};

/// The end of all times of a [`Timeline`].
pub const TIME_END: u64 = u64::MAX;

/// Handles that may go to another thread, but of which "one thread at a time" is true.
struct Handle<T> {
    pointer: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
    _not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: "One thread at a time may use a handle; two handles may be used by two threads."
unsafe impl<T> Send for Handle<T> {}

impl<T> Handle<T> {
    fn new(pointer: *mut T, free: unsafe extern "C" fn(*mut T)) -> Result<Self> {
        let pointer = NonNull::new(pointer)
            .ok_or_else(|| Error::new(Status::Internal, "no handle was made"))?;
        Ok(Handle { pointer, free, _not_sync: PhantomData })
    }

    fn get(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: no other code has the pointer.
        unsafe { (self.free)(self.pointer.as_ptr()) }
    }
}

/// A line of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first address.
    pub start: u64,
    /// In bytes; 0: not known, the first byte counts.
    pub size: u64,
    /// Its name, which need not be UTF-8.
    pub name: Vec<u8>,
    /// Of the line in its map, in bytes.
    pub offset: u64,
    /// Which of an index's maps, from 0.
    pub map: usize,
}

impl Entry {
    /// # Safety
    /// The handle that the row came from lives, and was not refreshed.
    unsafe fn of(row: &sys::perfmap_entry) -> Self {
        // SAFETY: as the caller says.
        let name = unsafe { copied(row.name, row.name_size) };
        Entry { start: row.start, size: row.size, name, offset: row.offset, map: row.map }
    }

    /// The name, with replacement characters for what is not UTF-8.
    pub fn name_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// What a lint rule found.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Finding {
    pub rule: String,
    pub severity: Severity,
    pub fixable: bool,
    /// From 1.
    pub line: u64,
    /// In bytes, from 1.
    pub column: u64,
    pub offset: u64,
    pub message: String,
}

/// A perf map. A file that another process truncates raises SIGBUS in its reader: see `perfmap.h`.
pub struct Map {
    handle: Handle<sys::perfmap_map>,
}

impl Map {
    fn of(pointer: *mut sys::perfmap_map) -> Result<Self> {
        Ok(Map { handle: Handle::new(pointer, sys::perfmap_map_free)? })
    }

    /// Opens the map at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path ends with a NUL.
        Self::of(made(|out, error| unsafe { sys::perfmap_map_open(path.as_ptr(), out, error) })?)
    }

    /// The map of a process, also in a container.
    pub fn of_process(pid: i32) -> Result<Self> {
        // SAFETY: no pointers but the results.
        Self::of(made(|out, error| unsafe { sys::perfmap_map_open_pid(pid, out, error) })?)
    }

    /// A map in memory, which is copied.
    pub fn from_bytes(text: &[u8]) -> Result<Self> {
        let (data, size) = (text.as_ptr().cast(), text.len());
        // SAFETY: the library copies the bytes.
        Self::of(made(|out, error| unsafe {
            sys::perfmap_map_from_memory(data, size, out, error)
        })?)
    }

    /// The entries, in file order; malformed lines are skipped.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let mut row = sys::perfmap_entry::default();
            // SAFETY: the map lives, and the row is copied before the next call.
            unsafe {
                match sys::perfmap_map_next(self.handle.get(), &mut offset, &mut row) {
                    sys::PERFMAP_OK => Some(Entry::of(&row)),
                    _ => None,
                }
            }
        })
    }

    /// The number, from 1, of the line that begins at the offset.
    pub fn line_number(&self, offset: u64) -> u64 {
        // SAFETY: the map lives.
        unsafe { sys::perfmap_map_line_number(self.handle.get(), offset) }
    }

    /// The findings, in the order of their lines; at most that many of each rule (0: all).
    pub fn lint(&self, max_per_rule: usize) -> Result<Vec<Finding>> {
        unsafe extern "C" fn visit(
            finding: *const sys::perfmap_finding,
            context: *mut sys::c_void,
        ) -> sys::c_int {
            // SAFETY: the library's row is valid during the call; the context is the vector below.
            let (row, found) = unsafe { (&*finding, &mut *context.cast::<Vec<Finding>>()) };
            // SAFETY: NUL-terminated.
            let text = |text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
            let push = || {
                found.push(Finding {
                    rule: text(row.rule),
                    severity: match row.severity {
                        0 => Severity::Info,
                        1 => Severity::Warning,
                        _ => Severity::Error,
                    },
                    fixable: row.fixable != 0,
                    line: row.line,
                    column: row.column,
                    offset: row.offset,
                    message: text(row.message),
                })
            };
            // A panic must not reach C; it ends the findings.
            catch_unwind(AssertUnwindSafe(push)).map_or(1, |()| 0)
        }
        let mut findings = Vec::new();
        let context = (&mut findings as *mut Vec<Finding>).cast();
        // SAFETY: the vector lives longer than the call.
        check(|error| unsafe {
            sys::perfmap_map_lint(self.handle.get(), max_per_rule, Some(visit), context, error)
        })?;
        Ok(findings)
    }
}

/// Which entry wins where entries overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// The later line, and the later map.
    #[default]
    Last,
    /// The earlier one.
    First,
    /// The shortest.
    Inner,
    /// What perf 6 answers.
    Perf,
}

/// What a refresh found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Nothing.
    No,
    /// More entries.
    Appended,
    /// Another file: all was read again.
    Replaced,
}

impl Changed {
    fn of(changed: sys::c_int) -> Self {
        match changed {
            0 => Changed::No,
            1 => Changed::Appended,
            _ => Changed::Replaced,
        }
    }
}

/// Answers which entry covers an address.
pub struct Index {
    handle: Handle<sys::perfmap_index>,
}

impl Index {
    /// An index over maps, oldest first, which may be dropped afterwards.
    pub fn new(maps: &[&Map], overlap: Overlap) -> Result<Self> {
        let handles: Vec<*const sys::perfmap_map> =
            maps.iter().map(|map| map.handle.get() as *const _).collect();
        let overlap = match overlap {
            Overlap::Last => sys::PERFMAP_OVERLAP_LAST,
            Overlap::First => sys::PERFMAP_OVERLAP_FIRST,
            Overlap::Inner => sys::PERFMAP_OVERLAP_INNER,
            Overlap::Perf => sys::PERFMAP_OVERLAP_PERF,
        };
        // SAFETY: the maps live during the call; the index shares their bytes.
        let pointer = made(|out, error| unsafe {
            sys::perfmap_index_new(handles.as_ptr(), handles.len(), overlap, out, error)
        })?;
        Ok(Index { handle: Handle::new(pointer, sys::perfmap_index_free)? })
    }

    /// The entry that covers the address.
    pub fn find(&self, address: u64) -> Option<Entry> {
        let mut row = sys::perfmap_entry::default();
        // SAFETY: the index lives, and the row is copied at once.
        unsafe {
            match sys::perfmap_index_find(self.handle.get(), address, &mut row) {
                sys::PERFMAP_OK => Some(Entry::of(&row)),
                _ => None,
            }
        }
    }

    /// The entries of many addresses, in their order.
    pub fn find_all(&self, addresses: &[u64]) -> Vec<Option<Entry>> {
        let mut rows = vec![sys::perfmap_entry::default(); addresses.len()];
        // SAFETY: as many rows as addresses, which are copied at once.
        unsafe {
            let (data, count) = (addresses.as_ptr(), addresses.len());
            sys::perfmap_index_find_batch(self.handle.get(), data, count, rows.as_mut_ptr());
            rows.iter().map(|row| (!row.name.is_null()).then(|| Entry::of(row))).collect()
        }
    }

    /// Takes in what was appended to the files.
    pub fn refresh(&mut self) -> Result<Changed> {
        let mut changed = 0;
        // SAFETY: the index lives, and this has it for itself.
        check(|error| unsafe {
            sys::perfmap_index_refresh(self.handle.get(), &mut changed, error)
        })?;
        Ok(Changed::of(changed))
    }

    /// Writes a map without overlaps, replacing the file at once or not at all.
    pub fn write(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path ends with a NUL.
        check(|error| unsafe { sys::perfmap_index_write(self.handle.get(), path.as_ptr(), error) })
    }
}

/// Code of a jitdump, as it was at an address at a time.
#[derive(Clone, Debug)]
pub struct Code {
    /// Where it lay then.
    pub start: u64,
    /// In bytes.
    pub size: u64,
    /// Its name, which need not be UTF-8.
    pub name: Vec<u8>,
    /// The address belonged to it from this time on.
    pub since: u64,
    /// And no longer at this one; [`TIME_END`]: to the end.
    pub until: u64,
    /// Its number in the dump.
    pub index: u64,
    /// `None`: not in the dump.
    pub bytes: Option<Vec<u8>>,
}

/// What a jitdump had at an address at a time. Threads may share it for [`Timeline::find`].
pub struct Timeline {
    pointer: NonNull<sys::perfmap_timeline>,
}

// SAFETY: several threads may call perfmap_timeline_find() at once; the other functions take &mut.
unsafe impl Send for Timeline {}
unsafe impl Sync for Timeline {}

impl Timeline {
    /// Reads the jitdump at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path ends with a NUL.
        let pointer =
            made(|out, error| unsafe { sys::perfmap_timeline_open(path.as_ptr(), out, error) })?;
        NonNull::new(pointer)
            .map(|pointer| Timeline { pointer })
            .ok_or_else(|| Error::new(Status::Internal, "no handle was made"))
    }

    fn row(&self, address: u64, time: u64) -> Option<sys::perfmap_code> {
        let mut row = sys::perfmap_code::default();
        // SAFETY: the timeline lives.
        match unsafe { sys::perfmap_timeline_find(self.pointer.as_ptr(), address, time, &mut row) }
        {
            sys::PERFMAP_OK => Some(row),
            _ => None,
        }
    }

    /// Whose code was at the address at the time, which is the dump's: nanoseconds of
    /// CLOCK_MONOTONIC, or ticks.
    pub fn find(&self, address: u64, time: u64) -> Option<Code> {
        let row = self.row(address, time)?;
        let code_size = usize::try_from(row.size).unwrap_or(0);
        // SAFETY: valid until the timeline is refreshed, for which one needs it for oneself.
        let (name, bytes) = unsafe {
            let bytes = (!row.bytes.is_null()).then(|| copied(row.bytes, code_size));
            (copied(row.name, row.name_size), bytes)
        };
        let (start, size, since, until, index) =
            (row.start, row.size, row.since, row.until, row.index);
        Some(Code { start, size, name, since, until, index, bytes })
    }

    /// The file and the line of the code that was at the address at the time.
    pub fn line(&mut self, address: u64, time: u64) -> Result<Option<(Vec<u8>, i32)>> {
        let row = match self.row(address, time) {
            Some(row) => row,
            None => return Ok(None),
        };
        let (mut file, mut size, mut line) = (std::ptr::null(), 0, 0);
        // SAFETY: the row is of this timeline, which was not refreshed since.
        let has_line = found(|error| unsafe {
            let timeline = self.pointer.as_ptr();
            sys::perfmap_timeline_line(
                timeline, &row, address, &mut file, &mut size, &mut line, error,
            )
        })?;
        // SAFETY: as above.
        Ok(has_line.then(|| (unsafe { copied(file, size) }, line)))
    }

    /// Takes in what was appended to the file.
    pub fn refresh(&mut self) -> Result<Changed> {
        let mut changed = 0;
        // SAFETY: the timeline lives, and this has it for itself.
        check(|error| unsafe {
            sys::perfmap_timeline_refresh(self.pointer.as_ptr(), &mut changed, error)
        })?;
        Ok(Changed::of(changed))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // SAFETY: no other code has the pointer.
        unsafe { sys::perfmap_timeline_free(self.pointer.as_ptr()) }
    }
}

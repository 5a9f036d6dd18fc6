// SPDX-License-Identifier: MIT
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut, NonNull};

use perfmap_sys as sys;

use crate::callback::{resume_panic, Callback, OnFull};
use crate::error::{c_path, c_string, check, made, Error, Result, Status};
use crate::{ForkPolicy, NamePolicy};

fn handle<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| Error::new(Status::Internal, "no handle was made"))
}

/// Options of [`MapWriter`].
#[derive(Default)]
pub struct WriterOptions {
    /// What happens to names that readers would misread.
    pub names: NamePolicy,
    /// Refuses links and all but regular files.
    pub own_map: bool,
    /// 0: an entry whose write returned is in the file.
    pub buffer_bytes: usize,
    /// How old a buffered entry gets at most, checked at each write; 0: no limit.
    pub flush_after_ns: u64,
    /// The file grows no further; 0: no limit.
    pub max_bytes: u64,
    /// Called at `max_bytes`; makes room by truncating the file.
    pub on_full: Option<OnFull>,
    /// Stores entries into a mapping of the file, without a system call each.
    pub mapped: bool,
}

/// Appends entries to the map at a path; threads may share it. Dropping it writes what is buffered,
/// and cannot report a failure: [`MapWriter::close`] does.
pub struct MapWriter {
    pointer: NonNull<sys::perfmap_writer>,
    on_full: *mut Callback, // null, or ours
}

// SAFETY: "A writer may be used by several threads at once; freeing it wants it for itself", which
// Drop has.
unsafe impl Send for MapWriter {}
unsafe impl Sync for MapWriter {}

impl MapWriter {
    /// Opens the map at `path`.
    pub fn open(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        let mut given = sys::perfmap_writer_options {
            names: options.names.number(),
            own_map: options.own_map.into(),
            buffer_bytes: options.buffer_bytes,
            flush_after_ns: options.flush_after_ns,
            most_bytes: options.max_bytes,
            mapped: options.mapped.into(),
            ..Default::default()
        };
        let on_full =
            options.on_full.map_or(null_mut(), |on_full| Box::into_raw(Callback::new(on_full)));
        if !on_full.is_null() {
            given.on_full = Some(Callback::FUNCTION);
            given.on_full_context = on_full.cast();
        }
        // SAFETY: the library copies the options; the callback lives as long as the handle.
        let pointer = made(|out, error| unsafe {
            sys::perfmap_writer_open(path.as_ptr(), &given, out, error)
        });
        match pointer.and_then(handle) {
            Ok(pointer) => Ok(MapWriter { pointer, on_full }),
            Err(error) => {
                free_callback(on_full);
                Err(error)
            }
        }
    }

    fn call(
        &self,
        call: impl FnOnce(*mut sys::perfmap_writer, *mut sys::perfmap_error) -> sys::perfmap_status,
    ) -> Result<()> {
        let answer = check(|error| call(self.pointer.as_ptr(), error));
        resume_panic();
        answer
    }

    /// Writes one entry.
    pub fn write(&self, start: u64, size: u64, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        // SAFETY: the name is only read during the call.
        self.call(|writer, error| unsafe {
            sys::perfmap_writer_write(writer, start, size, name.as_ptr().cast(), name.len(), error)
        })
    }

    /// Appends the entries of another map.
    pub fn copy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path ends with a NUL.
        self.call(|writer, error| unsafe { sys::perfmap_writer_copy(writer, path.as_ptr(), error) })
    }

    /// Writes what is buffered.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the handle lives.
        self.call(|writer, error| unsafe { sys::perfmap_writer_flush(writer, error) })
    }

    /// Writes what is buffered and ends the writing.
    pub fn close(self) -> Result<()> {
        // SAFETY: the handle lives.
        self.call(|writer, error| unsafe { sys::perfmap_writer_close(writer, error) })
    }
}

impl Drop for MapWriter {
    fn drop(&mut self) {
        // SAFETY: no other code has the handle.
        unsafe { sys::perfmap_writer_free(self.pointer.as_ptr()) }
        free_callback(self.on_full);
    }
}

fn free_callback(callback: *mut Callback) {
    if !callback.is_null() {
        // SAFETY: from Box::into_raw(), and no handle has it any more.
        drop(unsafe { Box::from_raw(callback) });
    }
}

/// Options of [`Jitdump`].
#[derive(Clone, Debug, Default)]
pub struct JitdumpOptions {
    /// Whose code it is; 0: the calling process's.
    pub pid: i32,
    /// What happens to names that readers would misread.
    pub names: NamePolicy,
    /// Refuses links, all but regular files, and others' files.
    pub own_dump: bool,
    /// Maps nothing: recordings do not know of the dump.
    pub no_marker: bool,
    /// Ends the dump without a CLOSE record.
    pub no_close_record: bool,
    /// Each function becomes an entry of the process's own map, too.
    pub state_map: bool,
    /// The file grows no further; 0: no limit.
    pub max_bytes: u64,
    /// What a forked child's own dump begins with.
    pub fork: ForkPolicy,
}

/// The source of the code from `address` on, up to the next line or the end of the function.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Line<'a> {
    pub address: u64,
    pub line: i32,
    /// 0: not known.
    pub column: i32,
    pub file: &'a str,
}

/// A function's unwinding information, as perf lays it out: see `perfmap_jitdump_function`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Unwinding<'a> {
    pub eh_frame: &'a [u8],
    pub eh_frame_hdr: &'a [u8],
    pub mapped_size: u64,
}

/// Unwinding information that the library has made for one function.
///
/// ```
/// let made = perfmap::MadeUnwinding::frame_pointer(64)?;
/// let function = perfmap::Function { unwinding: Some(made.with_room(0)), ..Default::default() };
/// # let _ = function;
/// # Ok::<(), perfmap::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MadeUnwinding {
    bytes: Vec<u8>,
    eh_frame_size: usize,
    eh_frame_hdr_size: usize,
}

impl MadeUnwinding {
    /// Of code of `size` bytes that keeps a frame pointer.
    pub fn frame_pointer(size: u64) -> Result<Self> {
        Self::make(0, size, sys::PERFMAP_UNWIND_ROOM, |function, room, room_size| {
            // SAFETY: see make().
            unsafe { sys::perfmap_unwind_frame_pointer(function, room, room_size) }
        })
    }

    /// Of code that keeps its stack pointer `sp_offset` bytes below that of its caller before the call.
    pub fn no_frame(size: u64, sp_offset: u32) -> Result<Self> {
        Self::make(0, size, sys::PERFMAP_UNWIND_ROOM, |function, room, room_size| {
            // SAFETY: see make().
            unsafe { sys::perfmap_unwind_no_frame(function, sp_offset, room, room_size) }
        })
    }

    /// Of code whose compiler made a CIE and an FDE, each with its length.
    pub fn from_fde(size: u64, cie: &[u8], fde: &[u8]) -> Result<Self> {
        let most = cie.len() + fde.len() + sys::PERFMAP_UNWIND_ROOM;
        Self::make(0, size, most, |function, room, room_size| {
            // SAFETY: see make(); the slices live until the call returns.
            unsafe {
                sys::perfmap_unwind_from_fde(
                    function,
                    cie.as_ptr().cast(),
                    cie.len(),
                    fde.as_ptr().cast(),
                    fde.len(),
                    room,
                    room_size,
                )
            }
        })
    }

    /// Of code at `start`, out of a whole section that is meant to lie at `address`.
    pub fn from_eh_frame(start: u64, size: u64, section: &[u8], address: u64) -> Result<Self> {
        let most = section.len() + sys::PERFMAP_UNWIND_ROOM;
        Self::make(start, size, most, |function, room, room_size| {
            // SAFETY: see make(); the slice lives until the call returns.
            unsafe {
                sys::perfmap_unwind_from_eh_frame(
                    function,
                    section.as_ptr().cast(),
                    section.len(),
                    address,
                    room,
                    room_size,
                )
            }
        })
    }

    /// `mapped_size` bytes after the code are free in the process, which perf needs.
    pub fn with_room(&self, mapped_size: u64) -> Unwinding<'_> {
        let (eh_frame, rest) = self.bytes.split_at(self.eh_frame_size);
        Unwinding { eh_frame, eh_frame_hdr: &rest[..self.eh_frame_hdr_size], mapped_size }
    }

    /// `call` gets a function and room for its sections, which both live until it returns. The
    /// library writes the frame at the start of the room, and the header directly after it.
    fn make(
        start: u64,
        size: u64,
        most: usize,
        call: impl FnOnce(
            *mut sys::perfmap_jitdump_function,
            *mut sys::c_void,
            usize,
        ) -> sys::perfmap_status,
    ) -> Result<Self> {
        let mut bytes = vec![0; most];
        let mut function = sys::perfmap_jitdump_function { start, size, ..Default::default() };
        match call(&mut function, bytes.as_mut_ptr().cast(), bytes.len()) {
            sys::PERFMAP_OK => Ok(MadeUnwinding {
                bytes,
                eh_frame_size: function.eh_frame_size,
                eh_frame_hdr_size: function.eh_frame_hdr_size,
            }),
            status => Err(Error::new(Status::of(status), "cannot make unwinding information")),
        }
    }
}

/// A function for [`Jitdump::load`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Function<'a> {
    /// Its address.
    pub start: u64,
    /// Its name, which need not be UTF-8.
    pub name: &'a [u8],
    /// Its machine code.
    pub code: &'a [u8],
    /// By ascending address, within the function.
    pub lines: &'a [Line<'a>],
    /// `None`: none.
    pub unwinding: Option<Unwinding<'a>>,
    /// CLOCK_MONOTONIC nanoseconds; 0: now.
    pub time: u64,
}

/// The number of a function in its dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeIndex(u64);

/// Writes a jitdump; threads may share it.
pub struct Jitdump {
    pointer: NonNull<sys::perfmap_jitdump>,
}

// SAFETY: "A dump may be used by several threads at once"; Drop has it for itself.
unsafe impl Send for Jitdump {}
unsafe impl Sync for Jitdump {}

impl Jitdump {
    /// Opens the calling process's own dump, `jit-PID.dump` in the directory, which is `/tmp` for most
    /// readers.
    pub fn open_own(directory: impl AsRef<Path>, options: &JitdumpOptions) -> Result<Self> {
        Self::open_by(sys::perfmap_jitdump_open_own, directory.as_ref(), options)
    }

    /// Opens the dump at any path.
    pub fn open(path: impl AsRef<Path>, options: &JitdumpOptions) -> Result<Self> {
        Self::open_by(sys::perfmap_jitdump_open, path.as_ref(), options)
    }

    fn open_by(
        open: unsafe extern "C" fn(
            *const sys::c_char,
            *const sys::perfmap_jitdump_options,
            *mut *mut sys::perfmap_jitdump,
            *mut sys::perfmap_error,
        ) -> sys::perfmap_status,
        place: &Path,
        options: &JitdumpOptions,
    ) -> Result<Self> {
        let place = c_path(place)?;
        let given = sys::perfmap_jitdump_options {
            pid: options.pid,
            names: options.names.number(),
            own_dump: options.own_dump.into(),
            no_marker: options.no_marker.into(),
            no_close_record: options.no_close_record.into(),
            state_map: options.state_map.into(),
            most_bytes: options.max_bytes,
            fork: options.fork.number(),
            ..Default::default()
        };
        // SAFETY: the library copies the options and the path.
        let pointer = made(|out, error| unsafe { open(place.as_ptr(), &given, out, error) })?;
        Ok(Jitdump { pointer: handle(pointer)? })
    }

    /// Writes a function, with its lines, its unwinding information and its code.
    pub fn load(&self, function: &Function<'_>) -> Result<CodeIndex> {
        let files = function
            .lines
            .iter()
            .map(|line| c_string(line.file.as_bytes()))
            .collect::<Result<Vec<CString>>>()?;
        let lines: Vec<_> = function
            .lines
            .iter()
            .zip(&files)
            .map(|(line, file)| sys::perfmap_jitdump_line {
                address: line.address,
                line: line.line,
                column: line.column,
                file: file.as_ptr(),
            })
            .collect();
        let mut given = sys::perfmap_jitdump_function {
            start: function.start,
            size: function.code.len() as u64,
            name: function.name.as_ptr().cast(),
            name_size: function.name.len(),
            code: function.code.as_ptr().cast(),
            lines: if lines.is_empty() { null() } else { lines.as_ptr() },
            line_count: lines.len(),
            time: function.time,
            ..Default::default()
        };
        if let Some(unwinding) = &function.unwinding {
            given.eh_frame = unwinding.eh_frame.as_ptr().cast();
            given.eh_frame_size = unwinding.eh_frame.len();
            given.eh_frame_hdr = unwinding.eh_frame_hdr.as_ptr().cast();
            given.eh_frame_hdr_size = unwinding.eh_frame_hdr.len();
            given.mapped_size = unwinding.mapped_size;
        }
        let mut index = 0;
        // SAFETY: all that the struct points to lives until the call returns.
        let answer = check(|error| unsafe {
            sys::perfmap_jitdump_load(self.pointer.as_ptr(), &given, &mut index, error)
        });
        resume_panic(); // of the process's own map
        answer.map(|()| CodeIndex(index))
    }

    /// The function's code has moved, now.
    pub fn move_code(&self, index: CodeIndex, from: u64, to: u64, size: u64) -> Result<()> {
        // SAFETY: the handle lives.
        check(|error| unsafe {
            sys::perfmap_jitdump_move(self.pointer.as_ptr(), index.0, from, to, size, error)
        })
    }

    /// Ends the dump.
    pub fn close(self) -> Result<()> {
        // SAFETY: the handle lives.
        check(|error| unsafe { sys::perfmap_jitdump_close(self.pointer.as_ptr(), error) })
    }
}

impl Drop for Jitdump {
    fn drop(&mut self) {
        // SAFETY: no other code has the handle.
        unsafe { sys::perfmap_jitdump_free(self.pointer.as_ptr()) }
    }
}

/// The clock of a log of loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The processor's counter.
    #[default]
    Counter,
    /// CLOCK_MONOTONIC nanoseconds.
    Monotonic,
}

/// Options of [`Jitlog`].
#[derive(Clone, Debug, Default)]
pub struct JitlogOptions {
    /// The clock of the log.
    pub clock: Clock,
    /// What happens to names that readers would misread.
    pub names: NamePolicy,
    /// Refuses links, all but regular files with one name, and others' files.
    pub own_log: bool,
    /// No thread numbers; a second thread's events are refused.
    pub one_thread: bool,
    /// Of each thread; 0: 4096.
    pub buffer_events: u32,
    /// What a forked child's log begins with.
    pub fork: ForkPolicy,
}

/// The number of a loop in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop(u32);

/// Writes a log of the loops that a tracing JIT runs; threads may share it.
pub struct Jitlog {
    pointer: NonNull<sys::perfmap_jitlog>,
}

// SAFETY: "Any thread may call any of these at any time, but for freeing", and Drop has it for itself.
unsafe impl Send for Jitlog {}
unsafe impl Sync for Jitlog {}

impl Jitlog {
    /// Begins the log at `path`, in which each "%d" is the pid.
    pub fn open(path: impl AsRef<Path>, options: &JitlogOptions) -> Result<Self> {
        let path = c_path(path.as_ref())?;
        let given = sys::perfmap_jitlog_options {
            clock: match options.clock {
                Clock::Counter => sys::PERFMAP_JITLOG_COUNTER,
                Clock::Monotonic => sys::PERFMAP_JITLOG_MONOTONIC,
            },
            names: options.names.number(),
            own_log: options.own_log.into(),
            one_thread: options.one_thread.into(),
            buffer_events: options.buffer_events,
            fork: options.fork.number(),
            ..Default::default()
        };
        // SAFETY: the library copies the options and the path.
        let pointer = made(|out, error| unsafe {
            sys::perfmap_jitlog_open(path.as_ptr(), &given, out, error)
        })?;
        Ok(Jitlog { pointer: handle(pointer)? })
    }

    /// The number of the loop of that name; the same for the same name.
    pub fn loop_of(&self, name: impl AsRef<[u8]>) -> Result<Loop> {
        let name = name.as_ref();
        let mut number = 0;
        // SAFETY: the name is only read during the call.
        check(|error| unsafe {
            let log = self.pointer.as_ptr();
            sys::perfmap_jitlog_loop(log, name.as_ptr().cast(), name.len(), &mut number, error)
        })?;
        Ok(Loop(number))
    }

    /// The calling thread has entered the loop.
    pub fn enter(&self, entered: Loop) -> Result<()> {
        // SAFETY: the handle lives; a number of another log is refused.
        check(|_| unsafe { sys::perfmap_jitlog_enter(self.pointer.as_ptr(), entered.0) })
    }

    /// The calling thread has left the loop for the interpreter.
    pub fn exit(&self, left: Loop) -> Result<()> {
        // SAFETY: as above.
        check(|_| unsafe { sys::perfmap_jitlog_exit(self.pointer.as_ptr(), left.0) })
    }

    /// Writes what all threads have recorded.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the handle lives.
        check(|error| unsafe { sys::perfmap_jitlog_flush(self.pointer.as_ptr(), error) })
    }

    /// How many events could not be written.
    pub fn lost(&self) -> u64 {
        // SAFETY: the handle lives.
        unsafe { sys::perfmap_jitlog_lost(self.pointer.as_ptr()) }
    }

    /// Writes what all threads have recorded, and ends the log.
    pub fn close(self) -> Result<()> {
        // SAFETY: the handle lives.
        check(|error| unsafe { sys::perfmap_jitlog_close(self.pointer.as_ptr(), error) })
    }
}

impl Drop for Jitlog {
    fn drop(&mut self) {
        // SAFETY: no other code has the handle.
        unsafe { sys::perfmap_jitlog_free(self.pointer.as_ptr()) }
    }
}

// SPDX-License-Identifier: MIT
//! The calling process's own map, `/tmp/perf-PID.map`: one for each process, for all threads.
//!
//! ```no_run
//! # fn main() -> perfmap::Result<()> {
//! use perfmap::process_map;
//! process_map::configure(process_map::Options { buffer_bytes: 65536, ..Default::default() })?;
//! process_map::write(0x7f00_0000_1000, 64, "jit::add")?;
//! # Ok(())
//! # }
//! ```
//!
//! What is buffered is written by [`flush`], by [`close`] and at exit; it is lost by `_exit`, exec and
//! signals that kill.
use std::path::{Path, PathBuf};

use perfmap_sys as sys;

use crate::callback::{resume_panic, Callback, OnFull};
use crate::error::{c_path, c_string, Error, Result};
use crate::{ForkPolicy, NamePolicy};

/// What [`configure`] sets; the default is CPython's behaviour.
#[derive(Default)]
pub struct Options {
    /// Where the map is; `None`: `/tmp`, where readers look.
    pub directory: Option<PathBuf>,
    /// What a forked child's begins with.
    pub fork: ForkPolicy,
    /// What happens to names that readers would misread.
    pub names: NamePolicy,
    /// 0: an entry whose write returned is in the file.
    pub buffer_bytes: usize,
    /// How old a buffered entry gets at most, checked at each write; 0: no limit.
    pub flush_after_ns: u64,
    /// The file grows no further; 0: no limit.
    pub max_bytes: u64,
    /// Appends to what an earlier process of this pid left.
    pub keep_stale: bool,
    /// Called at `max_bytes`. It is kept until the process ends.
    pub on_full: Option<OnFull>,
    /// Stores entries into a mapping of the file, without a system call each.
    pub mapped: bool,
}

fn done(answer: sys::c_int) -> Result<()> {
    let done = if answer == 0 { Ok(()) } else { Err(Error::last_of_state()) };
    resume_panic();
    done
}

/// Sets the options, before the first entry or after [`close`]: else `EBUSY`.
pub fn configure(options: Options) -> Result<()> {
    let directory = options.directory.as_deref().map(c_path).transpose()?;
    let mut given = sys::perfmap_state_options {
        directory: directory.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
        fork: options.fork.number(),
        names: options.names.number(),
        buffer_bytes: options.buffer_bytes,
        flush_after_ns: options.flush_after_ns,
        most_bytes: options.max_bytes,
        keep_stale: options.keep_stale.into(),
        mapped: options.mapped.into(),
        ..Default::default()
    };
    let callback = options.on_full.map(Callback::new).map(Box::into_raw);
    if let Some(callback) = callback {
        given.on_full = Some(Callback::FUNCTION);
        given.on_full_context = callback.cast();
    }
    // SAFETY: the library copies the struct and the directory, and the callback stays.
    let answer = done(unsafe { sys::perfmap_state_configure(&given) });
    if let (Err(_), Some(callback)) = (&answer, callback) {
        // SAFETY: the library has not taken it.
        drop(unsafe { Box::from_raw(callback) });
    }
    answer
}

/// Changes the policy for children to come.
pub fn set_fork_policy(policy: ForkPolicy) -> Result<()> {
    // SAFETY: no pointers.
    done(unsafe { sys::perfmap_state_set_fork(policy.number()) })
}

/// Opens the map unless it is open; [`write`] does so by itself.
pub fn open() -> Result<()> {
    // SAFETY: no pointers.
    done(unsafe { sys::perfmap_state_init() })
}

/// What the map that is open began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// No map is open.
    None,
    /// Nothing: there was no file, or an empty one.
    Made,
    /// Nothing: an earlier process's entries are gone.
    Emptied,
    /// The parent's entries.
    Inherited,
    /// Entries that stay, for the reason that `perfmap_state_start` has.
    Appended(i32),
}

/// What the map that is open began with.
pub fn began_with() -> Start {
    // SAFETY: no pointers.
    match unsafe { sys::perfmap_state_began_with() } {
        sys::PERFMAP_START_NONE => Start::None,
        sys::PERFMAP_START_MADE => Start::Made,
        sys::PERFMAP_START_EMPTIED => Start::Emptied,
        sys::PERFMAP_START_INHERITED => Start::Inherited,
        other => Start::Appended(other),
    }
}

/// Writes one entry.
pub fn write(address: u64, size: usize, name: impl AsRef<[u8]>) -> Result<()> {
    let name = c_string(name.as_ref())?;
    // SAFETY: the address is only printed, and the name ends with a NUL.
    done(unsafe { sys::perfmap_state_write_entry(address as *const _, size, name.as_ptr()) })
}

/// Appends the entries that another process's map holds now.
pub fn copy(path: impl AsRef<Path>) -> Result<()> {
    let path = c_path(path.as_ref())?;
    // SAFETY: the path ends with a NUL.
    done(unsafe { sys::perfmap_state_copy_file(path.as_ptr()) })
}

/// Writes what is buffered.
pub fn flush() -> Result<()> {
    // SAFETY: no pointers.
    done(unsafe { sys::perfmap_state_flush() })
}

/// Writes what is buffered and closes the map; the next entry opens it again.
pub fn close() -> Result<()> {
    // SAFETY: no pointers.
    done(unsafe { sys::perfmap_state_fini() })
}

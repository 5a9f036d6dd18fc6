// SPDX-License-Identifier: MIT
//! Writes, reads and queries perf maps (`/tmp/perf-PID.map`) and jitdumps, by libperfmap.
//!
//! * [`process_map`]: the calling process's own map, for a JIT.
//! * [`MapWriter`], [`Jitdump`], [`Jitlog`]: writers at any path, which threads may share.
//! * [`Map`], [`Index`], [`Timeline`], [`decode_name`]: readers.
//! * `Tracker` and `resolve` (feature `profile`): names of addresses in living processes.
//!
//! What is "nothing there" in C is `None`; every other failure is an [`Error`]. Names are bytes, which
//! need not be UTF-8. What a reader returns is copied: it stands in a file that other processes
//! write to, of which Rust may not have a reference.
//!
//! Writers are `Sync`. A map and an index may go to another thread, but two threads may not share one:
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<perfmap::Index>();
//! ```
//!
//! A forked child may go on with any writer; `perfmap.h` says what becomes of the file.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod callback;
mod error;
mod name;
pub mod process_map;
mod reader;
mod writer;

#[cfg(feature = "profile")]
mod process;

pub use callback::OnFull;
pub use error::{Error, Reason, Result, Status};
pub use name::{decode_name, DecodedName};
#[cfg(feature = "profile")]
pub use process::{resolve, AddressName, Detail, NoName, SourceFrame, Tracker};
pub use reader::{
    Changed, Code, Entry, Finding, Index, Map, Overlap, Severity, Timeline, TIME_END,
};
pub use writer::{
    Clock, CodeIndex, Function, Jitdump, JitdumpOptions, Jitlog, JitlogOptions, Line, Loop,
    MadeUnwinding, MapWriter, Unwinding, WriterOptions,
};

/// What becomes of a file in a forked child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// The child's is empty at first.
    #[default]
    Fresh,
    /// It begins with the parent's entries.
    Inherit,
    /// Children write nothing, successfully.
    Off,
}

impl ForkPolicy {
    pub(crate) fn number(self) -> i32 {
        match self {
            ForkPolicy::Fresh => perfmap_sys::PERFMAP_FORK_FRESH,
            ForkPolicy::Inherit => perfmap_sys::PERFMAP_FORK_INHERIT,
            ForkPolicy::Off => perfmap_sys::PERFMAP_FORK_OFF,
        }
    }
}

/// What happens to a name that readers would misread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamePolicy {
    /// Its bytes become `\xNN`.
    #[default]
    Escape,
    /// The call fails, and nothing is written.
    Refuse,
}

impl NamePolicy {
    pub(crate) fn number(self) -> i32 {
        match self {
            NamePolicy::Escape => perfmap_sys::PERFMAP_NAMES_ESCAPE,
            NamePolicy::Refuse => perfmap_sys::PERFMAP_NAMES_REFUSE,
        }
    }
}

/// The version of the library, such as "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: a static string.
    unsafe { std::ffi::CStr::from_ptr(perfmap_sys::perfmap_version()) }.to_str().unwrap_or("")
}

// SPDX-License-Identifier: MIT
use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use perfmap_sys as sys;

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Status {
    Io,
    NotFound,
    BadFormat,
    Unsupported,
    InvalidArgument,
    Refused,
    TooLarge,
    NoMemory,
    Internal,
}

impl Status {
    pub(crate) fn of(status: sys::perfmap_status) -> Self {
        match status {
            sys::PERFMAP_E_IO => Status::Io,
            sys::PERFMAP_E_NOT_FOUND => Status::NotFound,
            sys::PERFMAP_E_BAD_FORMAT => Status::BadFormat,
            sys::PERFMAP_E_UNSUPPORTED => Status::Unsupported,
            sys::PERFMAP_E_INVALID_ARGUMENT => Status::InvalidArgument,
            sys::PERFMAP_E_REFUSED => Status::Refused,
            sys::PERFMAP_E_TOO_LARGE => Status::TooLarge,
            sys::PERFMAP_E_NO_MEMORY => Status::NoMemory,
            _ => Status::Internal,
        }
    }
}

/// What exactly failed; `perfmap_reason` in `perfmap_writer.h` has the meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Reason {
    Other,
    System,
    NotRegular,
    SymbolicLink,
    KernelFile,
    HardLinks,
    ForeignOwner,
    OlderThanProcess,
    OtherProcess,
    OtherFile,
    OtherBuild,
    Deleted,
    Private,
    Replaced,
    Truncated,
    Changed,
    TooLarge,
    TooMany,
    Exists,
    IsInput,
    NoProcess,
    ProcessEnded,
    OtherKind,
    NotOfKind,
    NotInstalled,
    Forbidden,
    HiddenAddresses,
    Unreachable,
    Unsuitable,
}

impl Reason {
    /// In the order of their numbers.
    const ALL: [Reason; 29] = [
        Reason::Other,
        Reason::System,
        Reason::NotRegular,
        Reason::SymbolicLink,
        Reason::KernelFile,
        Reason::HardLinks,
        Reason::ForeignOwner,
        Reason::OlderThanProcess,
        Reason::OtherProcess,
        Reason::OtherFile,
        Reason::OtherBuild,
        Reason::Deleted,
        Reason::Private,
        Reason::Replaced,
        Reason::Truncated,
        Reason::Changed,
        Reason::TooLarge,
        Reason::TooMany,
        Reason::Exists,
        Reason::IsInput,
        Reason::NoProcess,
        Reason::ProcessEnded,
        Reason::OtherKind,
        Reason::NotOfKind,
        Reason::NotInstalled,
        Reason::Forbidden,
        Reason::HiddenAddresses,
        Reason::Unreachable,
        Reason::Unsuitable,
    ];

    pub(crate) fn of(reason: i32) -> Self {
        let known = usize::try_from(reason).ok().and_then(|number| Self::ALL.get(number));
        known.copied().unwrap_or(Reason::Other)
    }
}

/// A function of the library failed.
#[derive(Clone, Debug)]
pub struct Error {
    status: Status,
    errno: i32,
    offset: u64,
    message: String,
    reason: Reason,
    path: PathBuf,
}

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What kind of failure it was.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The number of the system call's error, or 0.
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// Where in the input, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What exactly failed.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The file that the error is about; empty if none.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into();
        Error { status, errno: 0, offset: 0, message, reason: Reason::Other, path: PathBuf::new() }
    }

    fn of(status: sys::perfmap_status, error: &sys::perfmap_error) -> Self {
        // SAFETY: the library ends both texts with a NUL; without a call they are zeros.
        let text = |chars: &[std::ffi::c_char; 256]| unsafe { CStr::from_ptr(chars.as_ptr()) };
        Error {
            status: Status::of(status),
            errno: error.sys_errno,
            offset: error.offset,
            message: text(&error.message).to_string_lossy().into_owned(),
            reason: Reason::of(error.reason),
            path: PathBuf::from(OsStr::from_bytes(text(&error.path).to_bytes())),
        }
    }

    /// Of the last function of the process's map that failed in this thread.
    pub(crate) fn last_of_state() -> Self {
        let system = io::Error::last_os_error(); // before anything else changes errno
        let mut error = sys::perfmap_error::default();
        // SAFETY: the struct has its size.
        match unsafe { sys::perfmap_state_last_error(&mut error) } {
            sys::PERFMAP_OK => Error {
                errno: system.raw_os_error().unwrap_or(0),
                ..Error::new(Status::Io, system.to_string())
            },
            status => Error::of(status, &error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error.errno {
            0 => io::Error::new(io::ErrorKind::Other, error),
            errno => io::Error::new(io::Error::from_raw_os_error(errno).kind(), error),
        }
    }
}

/// Calls a function whose last parameter is a `perfmap_error`.
pub(crate) fn check(
    call: impl FnOnce(*mut sys::perfmap_error) -> sys::perfmap_status,
) -> Result<()> {
    let mut error = sys::perfmap_error::default();
    match call(&mut error) {
        sys::PERFMAP_OK => Ok(()),
        status => Err(Error::of(status, &error)),
    }
}

/// The same, where NOT_FOUND is an answer: false.
pub(crate) fn found(
    call: impl FnOnce(*mut sys::perfmap_error) -> sys::perfmap_status,
) -> Result<bool> {
    match check(call) {
        Ok(()) => Ok(true),
        Err(error) if error.status == Status::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calls a function that makes a handle.
pub(crate) fn made<T>(
    call: impl FnOnce(*mut *mut T, *mut sys::perfmap_error) -> sys::perfmap_status,
) -> Result<*mut T> {
    let mut out = std::ptr::null_mut();
    check(|error| call(&mut out, error))?;
    Ok(out)
}

pub(crate) fn c_string(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes)
        .map_err(|_| Error::new(Status::InvalidArgument, "a NUL in a name or a path"))
}

pub(crate) fn c_path(path: &Path) -> Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Copies bytes of the library.
///
/// # Safety
/// `size` bytes at `data`, which may be null if `size` is 0.
pub(crate) unsafe fn copied(data: *const sys::c_char, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    if !data.is_null() {
        // SAFETY: the caller says so. A copy, not a slice: another process may write to the file.
        unsafe {
            std::ptr::copy_nonoverlapping(data.cast::<u8>(), bytes.as_mut_ptr(), size);
            bytes.set_len(size);
        }
    }
    bytes
}

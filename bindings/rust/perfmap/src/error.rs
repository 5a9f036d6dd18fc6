// SPDX-License-Identifier: MIT
use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// A function of the library failed.
#[derive(Clone, Debug)]
pub struct Error {
    status: Status,
    errno: i32,
    offset: u64,
    message: String,
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

    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, errno: 0, offset: 0, message: message.into() }
    }

    /// Of a function that fails with errno.
    pub(crate) fn last_os_error() -> Self {
        let error = io::Error::last_os_error();
        Error {
            status: Status::Io,
            errno: error.raw_os_error().unwrap_or(0),
            offset: 0,
            message: error.to_string(),
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
        status => {
            // SAFETY: the library ends the message with a NUL; without a call it is zeros.
            let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
            Err(Error {
                status: Status::of(status),
                errno: error.sys_errno,
                offset: error.offset,
                message: message.to_string_lossy().into_owned(),
            })
        }
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

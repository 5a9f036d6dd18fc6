// SPDX-License-Identifier: MIT
use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use perfmap_sys::{c_int, c_void};

/// Makes room in a file that has reached its maximum: true means that there is room now.
///
/// It is called within the call that writes, in that thread, and other threads may be in it at the same
/// time. A panic counts as false, and goes on when the library has returned.
pub type OnFull = Box<dyn Fn() -> bool + Send + Sync>;

/// What C gets a pointer to: a pointer to a trait object does not fit into one.
pub(crate) struct Callback(OnFull);

thread_local! {
    static PANIC: RefCell<Option<Box<dyn Any + Send>>> = RefCell::new(None);
}

impl Callback {
    pub(crate) fn new(on_full: OnFull) -> Box<Self> {
        Box::new(Callback(on_full))
    }

    pub(crate) const FUNCTION: unsafe extern "C" fn(*mut c_void) -> c_int = call;
}

unsafe extern "C" fn call(context: *mut c_void) -> c_int {
    // SAFETY: the writer that registers it keeps the Callback as long as the library may call it.
    let callback = unsafe { &*context.cast::<Callback>() };
    match catch_unwind(AssertUnwindSafe(|| (callback.0)())) {
        Ok(has_room) => c_int::from(has_room),
        Err(panic) => {
            PANIC.with(|pending| *pending.borrow_mut() = Some(panic));
            0
        }
    }
}

/// Continues a panic of a callback in this thread, outside of the library.
pub(crate) fn resume_panic() {
    if let Some(panic) = PANIC.with(|pending| pending.borrow_mut().take()) {
        resume_unwind(panic);
    }
}

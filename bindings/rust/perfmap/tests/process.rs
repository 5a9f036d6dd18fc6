#![cfg(feature = "profile")]
// SPDX-License-Identifier: MIT

use perfmap::{resolve, Detail, NoName, Status, Tracker};

#[inline(never)]
#[no_mangle]
extern "C" fn a_function_with_a_name() -> u32 {
    std::process::id()
}

#[test]
fn addresses_of_a_living_process_have_names() {
    let pid = a_function_with_a_name() as i32;
    let address = a_function_with_a_name as *const () as u64;
    let names = resolve(pid, &[address, 16], Detail::Inlines).unwrap();
    assert_eq!(names[0].name.as_deref(), Ok(&b"a_function_with_a_name"[..]));
    assert_eq!((names[0].begin, names[0].is_jit), (address, false));
    assert_eq!(names[0].frames.last().unwrap().0, b"a_function_with_a_name");
    assert_eq!(names[1].name, Err(NoName::Unmapped));
}

#[test]
fn a_process_that_is_not_there_is_not_found() {
    assert_eq!(resolve(i32::MAX, &[], Detail::Symbols).unwrap_err().status(), Status::NotFound);
    assert!(!Tracker::new().unwrap().import(i32::MAX).unwrap());
}

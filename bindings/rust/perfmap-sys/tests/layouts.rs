// SPDX-License-Identifier: MIT
//! The structs are laid out as the library says.
use std::ffi::CStr;

use perfmap_sys::{c_char, perfmap_layout};

type Row = (String, String, usize, usize);
type Layouts = unsafe extern "C" fn(*mut usize) -> *const perfmap_layout;
type EachMember = fn(&mut dyn FnMut(&'static str, &'static str, usize, usize));

fn rows_of_library(getters: &[Layouts]) -> Vec<Row> {
    let text =
        |pointer: *const c_char| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_string();
    let mut found = Vec::new();
    for layouts in getters {
        let mut count = 0;
        let rows = unsafe { std::slice::from_raw_parts(layouts(&mut count), count) };
        found.extend(
            rows.iter().map(|row| (text(row.record), text(row.member), row.offset, row.size)),
        );
    }
    found.sort();
    found
}

fn rows_of_rust(each_member: EachMember) -> Vec<Row> {
    let mut rows = Vec::new();
    each_member(&mut |record, member, offset, size| {
        rows.push((record.to_string(), member.replace("r#", ""), offset, size));
    });
    rows.sort();
    rows
}

#[test]
fn structs_of_perfmap_h() {
    let rows = rows_of_rust(perfmap_sys::each_member);
    assert!(rows.len() > 100);
    assert_eq!(
        rows,
        rows_of_library(&[perfmap_sys::perfmap_writer_layouts, perfmap_sys::perfmap_layouts])
    );
}

#[cfg(feature = "profile")]
#[test]
fn structs_of_perfmap_profile_h() {
    use perfmap_sys::profile;
    let rows = rows_of_rust(profile::each_member);
    assert!(rows.len() > 80);
    assert_eq!(rows, rows_of_library(&[profile::perfmap_profile_layouts]));
}

#[test]
fn a_struct_starts_with_its_size_and_zeros() {
    let options = perfmap_sys::perfmap_state_options::default();
    assert_eq!(options.struct_size, std::mem::size_of_val(&options));
    assert!(options.directory.is_null() && options.on_full.is_none() && options.mapped == 0);
    assert!(perfmap_sys::perfmap_jitdump_line::default().file.is_null());
}

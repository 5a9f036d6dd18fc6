// SPDX-License-Identifier: MIT
use std::ffi::CStr;

use perfmap_sys as sys;

/// What the name of an entry says. The parts are slices of the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedName<'a> {
    /// "v8", "hotspot", …; "" if not known.
    pub runtime: &'static str,
    /// "turbofan", …; "" if not known.
    pub tier: &'static str,
    /// Empty: an anonymous function.
    pub function: &'a [u8],
    /// `None`: the name has none.
    pub file: Option<&'a [u8]>,
    /// 0: the name has none.
    pub line: u64,
    /// 0: the name has none.
    pub column: u64,
    /// The functions inlined into each other, outermost first, if the name is such a chain.
    pub inlined: Vec<&'a [u8]>,
}

/// Takes a raw name apart; at worst the function is the whole name.
pub fn decode_name(name: &[u8]) -> DecodedName<'_> {
    let mut row = sys::perfmap_name::default();
    let mut parts = Vec::new();
    // SAFETY: the name is only read during the calls, and `parts` has as many as it says.
    unsafe {
        sys::perfmap_name_decode(name.as_ptr().cast(), name.len(), &mut row);
        let chain = |parts: &mut [sys::perfmap_name_part]| {
            let (data, size) = (name.as_ptr().cast(), name.len());
            sys::perfmap_name_inline_chain(data, size, parts.as_mut_ptr(), parts.len())
        };
        parts.resize(chain(&mut []), sys::perfmap_name_part::default());
        let count = chain(&mut parts);
        parts.truncate(count);
    }
    DecodedName {
        runtime: static_text(row.runtime),
        tier: static_text(row.tier),
        function: part_of(name, row.function, row.function_size),
        file: (!row.file.is_null()).then(|| part_of(name, row.file, row.file_size)),
        line: row.line,
        column: row.column,
        inlined: parts.iter().map(|part| part_of(name, part.text, part.size)).collect(),
    }
}

fn static_text(text: *const sys::c_char) -> &'static str {
    // SAFETY: static and NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// The part of `name` that a view of the library is.
fn part_of(name: &[u8], data: *const sys::c_char, size: usize) -> &[u8] {
    let begin = (data as usize).wrapping_sub(name.as_ptr() as usize);
    begin.checked_add(size).and_then(|end| name.get(begin..end)).unwrap_or(&[])
}

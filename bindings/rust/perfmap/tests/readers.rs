// SPDX-License-Identifier: MIT
mod support;

use std::io::Write;

use perfmap::{decode_name, Changed, Index, Map, Overlap, Severity, Status, Timeline};
use support::Scratch;

const TEXT: &[u8] = b"1000 10 foo\nnonsense\n1008 10 bar\n2000 8 \xff name\n";

#[test]
fn entries_are_in_file_order() {
    let map = Map::from_bytes(TEXT).unwrap();
    let entries: Vec<_> = map.entries().collect();
    let starts: Vec<_> = entries.iter().map(|entry| entry.start).collect();
    assert_eq!(starts, [0x1000, 0x1008, 0x2000]);
    assert_eq!(entries[2].name, b"\xff name");
    assert_eq!(entries[2].name_text(), "\u{fffd} name");
    assert_eq!(map.line_number(entries[1].offset), 3);
}

#[test]
fn findings_are_those_of_lint() {
    let findings = Map::from_bytes(TEXT).unwrap().lint(1).unwrap();
    let bad = findings.iter().find(|finding| finding.rule == "PM002").unwrap();
    assert_eq!((bad.line, bad.severity), (2, Severity::Error));
    assert_eq!(bad.message, "expected a hexadecimal address");
}

#[test]
fn an_index_outlives_its_maps_and_follows_overlaps() {
    let index = Index::new(&[&Map::from_bytes(TEXT).unwrap()], Overlap::Last).unwrap();
    assert_eq!(index.find(0x1009).unwrap().name, b"bar");
    assert_eq!(index.find(0x500), None);
    let first = Index::new(&[&Map::from_bytes(TEXT).unwrap()], Overlap::First).unwrap();
    assert_eq!(first.find(0x1009).unwrap().name, b"foo");
    let all = index.find_all(&[0x1000, 0x500, 0x1017]);
    let names: Vec<_> =
        all.iter().map(|entry| entry.as_ref().map(|entry| &entry.name[..])).collect();
    assert_eq!(names, [Some(&b"foo"[..]), None, Some(&b"bar"[..])]);
    std::thread::spawn(move || assert!(index.find(0x1000).is_some())).join().unwrap();
}

#[test]
fn appended_entries_are_taken_in() {
    let scratch = Scratch::new("refresh");
    let path = scratch.file("a.map");
    std::fs::write(&path, "1000 10 foo\n").unwrap();
    let mut index = Index::new(&[&Map::open(&path).unwrap()], Overlap::Last).unwrap();
    assert_eq!(index.refresh().unwrap(), Changed::No);
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"2000 10 bar\n").unwrap();
    assert_eq!(index.find(0x2000), None);
    assert_eq!(index.refresh().unwrap(), Changed::Appended);
    assert_eq!(index.find(0x2000).unwrap().name, b"bar");
    index.write(scratch.file("out.map")).unwrap();
    assert_eq!(scratch.text("out.map"), "1000 10 foo\n2000 10 bar\n");
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let status = |result: perfmap::Result<Map>| result.err().unwrap().status();
    assert_eq!(status(Map::open("/nonexistent")), Status::NotFound);
    assert_eq!(status(Map::of_process(std::process::id() as i32)), Status::NotFound);
    assert_eq!(status(Map::of_process(-1)), Status::InvalidArgument);
    assert_eq!(status(Map::open("a\0b")), Status::InvalidArgument);
    assert!(Timeline::open("/nonexistent").is_err());
}

#[test]
fn a_name_is_taken_apart() {
    let name = decode_name(b"JS:*sieve /tmp/w.js:6:15");
    assert_eq!((name.runtime, name.tier, name.function), ("v8", "turbofan", &b"sieve"[..]));
    assert_eq!((name.file, name.line, name.column), (Some(&b"/tmp/w.js"[..]), 6, 15));
    assert!(name.inlined.is_empty());
    let chain = decode_name(b"Lfoo;::outer->Lbar;::inner");
    assert_eq!(chain.inlined, [&b"Lfoo;::outer"[..], &b"Lbar;::inner"[..]]);
    assert_eq!(decode_name(b"").function, b"");
}

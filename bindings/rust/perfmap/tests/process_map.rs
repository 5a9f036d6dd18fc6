// SPDX-License-Identifier: MIT
//! One test: there is one map in each process.
mod support;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use perfmap::process_map::{self, Options, Start};
use perfmap::{ForkPolicy, NamePolicy, Reason, Status};

const EBUSY: i32 = 16;
const EFBIG: i32 = 27;
const EILSEQ: i32 = 84;

#[test]
fn the_process_s_own_map() {
    let scratch = support::Scratch::new("process-map");
    let directory = Some(scratch.0.clone());
    let name = format!("perf-{}.map", std::process::id());

    // An entry whose write returned is in the file.
    process_map::configure(Options { directory: directory.clone(), ..Default::default() }).unwrap();
    process_map::write(0x7f00_0000_1000, 64, "jit::add").unwrap();
    assert_eq!(scratch.text(&name), "7f0000001000 40 jit::add\n");
    assert_eq!(process_map::began_with(), Start::Made);
    let busy = process_map::configure(Options::default()).unwrap_err();
    assert_eq!((busy.errno(), busy.status()), (EBUSY, Status::Io));
    let gone = process_map::copy("/nonexistent.map").unwrap_err();
    assert_eq!((gone.status(), gone.reason()), (Status::NotFound, Reason::System));
    assert_eq!(gone.path(), std::path::Path::new("/nonexistent.map"), "{gone}");
    assert_eq!(process_map::write(1, 1, "a\0b").unwrap_err().status(), Status::InvalidArgument);
    process_map::set_fork_policy(ForkPolicy::Off).unwrap();

    // Entries of another map.
    std::fs::write(scratch.file("other.map"), "1000 10 foo\n").unwrap();
    process_map::copy(scratch.file("other.map")).unwrap();
    process_map::close().unwrap();
    assert!(scratch.text(&name).ends_with("\n1000 10 foo\n"));

    // Buffered; names may be refused.
    let options = Options {
        directory: directory.clone(),
        names: NamePolicy::Refuse,
        buffer_bytes: 65536,
        ..Default::default()
    };
    process_map::configure(options).unwrap();
    let before = scratch.text(&name).len();
    process_map::open().unwrap();
    process_map::write(0x2000, 1, "buffered").unwrap();
    assert_eq!(scratch.text(&name).len(), before);
    assert_eq!(process_map::write(0x2000, 1, "a\nb").unwrap_err().errno(), EILSEQ);
    process_map::flush().unwrap();
    assert!(scratch.text(&name).ends_with("2000 1 buffered\n"));
    process_map::close().unwrap();

    // on_full makes room by moving the map away, and is called in the writing thread.
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, map, moved) = (calls.clone(), scratch.file(&name), scratch.file("old.map"));
    let options = Options {
        directory: directory.clone(),
        max_bytes: scratch.text(&name).len() as u64 + 20,
        on_full: Some(Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            process_map::close().is_ok() && std::fs::rename(&map, &moved).is_ok()
        })),
        ..Default::default()
    };
    process_map::configure(options).unwrap();
    for i in 0..3 {
        process_map::write(0x3000 + i, 1, format!("entry {i}")).unwrap();
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(scratch.text(&name), "3001 1 entry 1\n3002 1 entry 2\n");
    process_map::close().unwrap();

    // A panic in on_full comes out of the call that writes.
    let options = Options {
        directory,
        max_bytes: 1,
        on_full: Some(Box::new(|| panic!("from on_full"))),
        ..Default::default()
    };
    process_map::configure(options).unwrap();
    let panic = catch_unwind(|| process_map::write(0x4000, 1, "entry")).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"from on_full"));
    assert_eq!(process_map::write(0x4000, 1, "entry").unwrap_err().errno(), EFBIG);
}

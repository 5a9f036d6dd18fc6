// SPDX-License-Identifier: MIT
mod support;

use std::panic::{catch_unwind, AssertUnwindSafe};

use perfmap::{
    Clock, Function, Jitdump, JitdumpOptions, Jitlog, JitlogOptions, Line, MadeUnwinding,
    MapWriter, Status, Timeline, Unwinding, WriterOptions, TIME_END,
};
use support::Scratch;

#[test]
fn threads_share_a_map_writer() {
    let scratch = Scratch::new("threads");
    let options = WriterOptions { buffer_bytes: 512, ..Default::default() };
    let writer = MapWriter::open(scratch.file("a.map"), options).unwrap();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let writer = &writer;
            scope.spawn(move || {
                for i in 0..200 {
                    writer.write(i, 1, format!("{name} {i}")).unwrap();
                }
            });
        }
    });
    writer.close().unwrap();
    let text = scratch.text("a.map");
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 600);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 600);
}

#[test]
fn a_dropped_writer_has_written_what_was_buffered() {
    let scratch = Scratch::new("dropped");
    let options = WriterOptions { buffer_bytes: 512, ..Default::default() };
    let writer = MapWriter::open(scratch.file("a.map"), options).unwrap();
    writer.write(0x1000, 16, "foo").unwrap();
    assert_eq!(scratch.text("a.map"), "");
    writer.flush().unwrap();
    writer.write(0x1010, 16, b"not \xff UTF-8").unwrap();
    drop(writer);
    assert_eq!(scratch.text("a.map"), "1000 10 foo\n1010 10 not \\xff UTF-8\n");
}

#[test]
fn a_panic_in_on_full_comes_out_of_the_call() {
    let scratch = Scratch::new("panic");
    let options = WriterOptions {
        max_bytes: 1,
        on_full: Some(Box::new(|| panic!("from on_full"))),
        ..Default::default()
    };
    let writer = MapWriter::open(scratch.file("a.map"), options).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| writer.write(1, 1, "abc"))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"from on_full"));
}

#[test]
fn a_mapped_writer_leaves_entries_only() {
    let scratch = Scratch::new("mapped");
    let options = WriterOptions { mapped: true, ..Default::default() };
    let writer = MapWriter::open(scratch.file("a.map"), options).unwrap();
    writer.write(0x1000, 16, "foo").unwrap();
    writer.close().unwrap();
    assert_eq!(scratch.text("a.map"), "1000 10 foo\n");
}

#[test]
fn failures_are_errors_with_errno() {
    let error = match MapWriter::open("/nonexistent/a.map", WriterOptions::default()) {
        Err(error) => error,
        Ok(_) => panic!("opened"),
    };
    assert_eq!((error.status(), error.errno()), (Status::NotFound, 2));
    assert!(error.to_string().contains("/nonexistent/a.map"), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_function_is_read_back_from_a_dump() {
    let scratch = Scratch::new("dump");
    let path = scratch.file("jit-7.dump");
    let dump = Jitdump::open(&path, &JitdumpOptions::default()).unwrap();
    let line = |address, line, file| Line { address, line, column: 0, file };
    let index = dump
        .load(&Function {
            start: 0x1000,
            name: b"foo",
            code: &[0x90; 16],
            lines: &[line(0x1000, 3, "a.rs"), line(0x1008, 4, "b.rs")],
            unwinding: Some(Unwinding {
                eh_frame: b"eh_frame",
                eh_frame_hdr: b"hdr.",
                mapped_size: 64,
            }),
            time: 10,
        })
        .unwrap();
    dump.load(&Function { start: 0x2000, name: b"bar", code: &[0xc3; 8], ..Default::default() })
        .unwrap();
    dump.move_code(index, 0x1000, 0x3000, 16).unwrap();
    let wrong = Function {
        start: 0x1000,
        code: &[0],
        lines: &[line(0x2000, 1, "a")],
        ..Default::default()
    };
    assert_eq!(dump.load(&wrong).unwrap_err().status(), Status::InvalidArgument);
    dump.close().unwrap();

    let mut timeline = Timeline::open(&path).unwrap();
    let code = timeline.find(0x1004, 15).unwrap();
    assert_eq!((&code.name[..], code.start, code.size), (&b"foo"[..], 0x1000, 16));
    assert_eq!(code.bytes.as_deref(), Some(&[0x90; 16][..]));
    assert_eq!(timeline.line(0x1009, 15).unwrap(), Some((b"b.rs".to_vec(), 4)));
    assert_eq!(timeline.line(0x2000, TIME_END).unwrap(), None);
    assert!(timeline.find(0x1004, TIME_END).is_none());
    assert_eq!(timeline.find(0x3004, TIME_END).unwrap().name, b"foo");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(timeline.find(0x2000, TIME_END).is_some()));
        }
    });
}

#[test]
fn events_of_loops_are_sections() {
    let scratch = Scratch::new("loops");
    let options = JitlogOptions { clock: Clock::Monotonic, one_thread: true, ..Default::default() };
    let log = Jitlog::open(scratch.file("log"), &options).unwrap();
    let number = log.loop_of("loop1").unwrap();
    assert_eq!(log.loop_of("loop1").unwrap(), number);
    log.enter(number).unwrap();
    log.exit(number).unwrap();
    assert_eq!(log.lost(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(log.enter(number).unwrap_err().status(), Status::Refused));
    });
    log.flush().unwrap();
    log.close().unwrap();
    let text = scratch.text("log");
    assert!(text.contains("{jit-profile-enter\nloop1\n"), "{text}");
    assert!(text.contains("{jit-profile-exit\nloop1\n"), "{text}");
}

#[test]
fn unwinding_is_made_for_a_function() {
    let scratch = Scratch::new("unwinding");
    let path = scratch.file("a.dump");
    let frame = MadeUnwinding::frame_pointer(4).unwrap();
    let none = MadeUnwinding::no_frame(4, 8).unwrap();
    assert!(frame.with_room(0).eh_frame.len() > 40);
    assert_eq!(frame.with_room(0).eh_frame_hdr[..4], [1, 0x1b, 3, 0x3b]);
    assert_ne!(frame.with_room(0).eh_frame, none.with_room(0).eh_frame);
    let section = none.with_room(0).eh_frame;
    let cie = &section[..4 + u32::from_ne_bytes(section[..4].try_into().unwrap()) as usize];
    let fde = &section[cie.len()..];
    let again = MadeUnwinding::from_fde(4, cie, fde).unwrap();
    assert_eq!(again.with_room(0).eh_frame_hdr.len(), none.with_room(0).eh_frame_hdr.len());
    let missing = MadeUnwinding::from_eh_frame(0x1000, 4, &[0; 4], 0x2000);
    assert_eq!(missing.unwrap_err().status(), Status::NotFound);
    let dump = Jitdump::open(&path, &JitdumpOptions::default()).unwrap();
    let function = Function {
        start: 0x1000,
        name: b"foo",
        code: &[0x90; 4],
        unwinding: Some(frame.with_room(200)),
        ..Default::default()
    };
    dump.load(&function).unwrap();
    dump.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let made = frame.with_room(200).eh_frame;
    assert!(bytes.windows(made.len()).any(|part| part == made));
}

// SPDX-License-Identifier: MIT
//! A JIT whose functions perf names (x86-64): jit SECONDS [DIRECTORY]
//!
//! Writes the map of the process, or, with a directory, a jitdump.
use std::os::raw::{c_int, c_void};
use std::time::{Duration, Instant};

use perfmap::{process_map, Function, Jitdump, JitdumpOptions, Line};

extern "C" {
    fn mmap(
        at: *mut c_void,
        size: usize,
        access: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut u8;
}

/// Puts machine code into memory and names it.
struct Jit {
    memory: &'static mut [u8],
    used: usize,
    dump: Option<Jitdump>,
}

impl Jit {
    fn new(directory: Option<String>) -> perfmap::Result<Self> {
        // PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS
        let memory = unsafe { mmap(std::ptr::null_mut(), 65536, 7, 0x22, -1, 0) };
        assert_ne!(memory as isize, -1, "no memory for code");
        let dump = directory.map(|place| Jitdump::open_own(place, &JitdumpOptions::default()));
        let memory = unsafe { std::slice::from_raw_parts_mut(memory, 65536) };
        Ok(Jit { memory, used: 0, dump: dump.transpose()? })
    }

    fn compile(&mut self, name: &str, code: &[u8], line: i32) -> perfmap::Result<u64> {
        let place = &mut self.memory[self.used..][..code.len()];
        place.copy_from_slice(code);
        self.used += (code.len() + 15) / 16 * 16;
        let start = place.as_ptr() as u64;
        match &self.dump {
            None => process_map::write(start, code.len(), name)?,
            Some(dump) => {
                let lines = &[Line { address: start, line, column: 0, file: file!() }];
                dump.load(&Function {
                    start,
                    name: name.as_bytes(),
                    code,
                    lines,
                    ..Default::default()
                })?;
            }
        }
        Ok(start)
    }
}

// Both keep a frame pointer.
const LOOP: &[u8] = b"\x55\x48\x89\xe5\x48\x89\xf8\x48\x83\xe8\x01\x75\xfa\x5d\xc3"; // counts n down
const CALL: &[u8] = b"\x55\x48\x89\xe5\x48\x89\xf8\x48\x89\xf7\xff\xd0\x5d\xc3"; // calls function(n)

fn main() -> perfmap::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(1.0);
    let mut jit = Jit::new(arguments.next())?;
    let count_down = jit.compile("rs::loop", LOOP, 1)?;
    let call = jit.compile("rs::call", CALL, 2)?;
    // SAFETY: the code of `call` is a function of that type.
    let call: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(call) };
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        call(count_down, 1_000_000);
    }
    Ok(())
}

//! The program that sends every frame of a device to our socket, through bpf(2) with no compiler.
//!
//! Structures and numbers are those of `linux/bpf.h`; the bytes not named here are zero.
#![allow(unsafe_code)]

use crate::sys::errno;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Attach in the driver, or behind it on ordinary socket buffers (`linux/if_link.h`).
pub(crate) const GENERIC: u32 = 1 << 1;
pub(crate) const NATIVE: u32 = 1 << 2;

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn instruction(code: u8, registers: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers, offset, immediate }
}

/// `return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)`: to the socket of the frame's
/// queue, or on to the kernel if there is none.
fn redirect(map: i32) -> [Instruction; 6] {
    [
        instruction(0x61, 0x12, 16, 0), // r2 = *(u32 *)(r1 + 16): xdp_md.rx_queue_index
        instruction(0x18, 0x11, 0, map), // r1 = map, by its descriptor (64-bit load, two slots)
        instruction(0, 0, 0, 0),
        instruction(0xb7, 0x03, 0, 2), // r3 = XDP_PASS
        instruction(0x85, 0, 0, 51),   // call bpf_redirect_map
        instruction(0x95, 0, 0, 0),    // exit
    ]
}

fn bpf<T>(command: i32, attributes: &T) -> Result<i64, i32> {
    let pointer = std::ptr::from_ref(attributes);
    // SAFETY: the kernel reads the structure for its own size, and what it points to, which the callers
    // below keep alive for the call; it writes nothing for these commands.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn descriptor<T>(command: i32, attributes: &T) -> Result<OwnedFd, i32> {
    let fd = bpf(command, attributes)?;
    // SAFETY: these commands return a new descriptor, which is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A map from queue to socket, with the socket of queue 0 in it.
pub(crate) fn create_map() -> Result<OwnedFd, i32> {
    descriptor(MAP_CREATE, &MapCreate { kind: XSKMAP, key_size: 4, value_size: 4, entries: 1 })
}

/// Puts the socket into the map, for queue 0.
pub(crate) fn insert(map: &OwnedFd, socket: i32) -> Result<(), i32> {
    let (key, value) = (0u32, socket);
    let attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        ..MapUpdate::default()
    };
    bpf(MAP_UPDATE, &attributes).map(drop)
}

/// Loads the program.
pub(crate) fn load(map: &OwnedFd) -> Result<OwnedFd, i32> {
    let instructions = redirect(map.as_raw_fd());
    let mut name = [0; 16];
    name[..9].copy_from_slice(b"trunkline");
    let attributes = ProgramLoad {
        kind: PROGRAM_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
        name,
        attach_type: ATTACH_XDP,
        ..ProgramLoad::default()
    };
    descriptor(PROGRAM_LOAD, &attributes)
}

/// Attaches the program; it is detached when the returned link is closed, however we end.
pub(crate) fn attach(program: &OwnedFd, device: i32, mode: u32) -> Result<OwnedFd, i32> {
    let program = program.as_raw_fd() as u32;
    let attributes =
        LinkCreate { program, device: device as u32, attach_type: ATTACH_XDP, flags: mode };
    descriptor(LINK_CREATE, &attributes)
}

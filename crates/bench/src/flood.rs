//! Frames in great numbers: a raw socket that sends prepared frames with sendmmsg(2).
//!
//! Not a `Port`, because a port also receives, and what it received would cost time.
#![allow(unsafe_code)]

use anyhow::{Context, Result};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use trunkline_netns::Namespace;

/// Frames in one system call.
pub const BATCH: usize = 64;
const BUFFER: libc::c_int = 16 << 20;
/// The number of times that a busy device is asked again before the rest of a burst is given up.
const RETRIES: u32 = 1000;

/// A device to flood, and the frames to do it with: UDP over IPv4, of as many flows as there are frames.
pub struct Flood {
    socket: OwnedFd,
    messages: Vec<libc::mmsghdr>,
    /// What the messages point to.
    _vectors: Vec<libc::iovec>,
    _frames: Vec<Vec<u8>>,
}

// SAFETY: the pointers lead into the value's own vectors, whose contents do not move with it.
unsafe impl Send for Flood {}

impl Flood {
    /// On the device `name` of `namespace`, with frames of `bytes` bytes.
    ///
    /// # Errors
    /// Without the right to open raw sockets, or if there is no such device.
    pub fn new(namespace: &Namespace, name: &str, bytes: usize) -> Result<Flood> {
        let index = namespace.link(name)?.index;
        let socket = namespace.run(|| open(index))?.context("open a raw packet socket")?;
        let mut frames: Vec<Vec<u8>> = (0..BATCH).map(|flow| frame(bytes, flow as u8)).collect();
        let mut vectors: Vec<libc::iovec> = frames.iter_mut().map(vector).collect();
        let messages = vectors.iter_mut().map(message).collect();
        Ok(Flood { socket, messages, _vectors: vectors, _frames: frames })
    }

    /// Sends `count` frames, less what a busy device refuses; returns how many it took.
    pub fn burst(&mut self, count: usize) -> usize {
        let (mut sent, mut retries) = (0, 0);
        while sent < count && retries < RETRIES {
            let now = (count - sent).min(BATCH);
            // SAFETY: `now` messages are valid; they, their vectors and the frames live in `self`.
            let taken = unsafe {
                libc::sendmmsg(self.socket.as_raw_fd(), self.messages.as_mut_ptr(), now as u32, 0)
            };
            match usize::try_from(taken) {
                Ok(taken) => sent += taken,
                Err(_) => retries += 1,
            }
        }
        sent
    }
}

/// A socket that sends through the device of this index, receives nothing and queues nowhere.
fn open(index: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    // An ordinary user has to do with less.
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER);
    // SAFETY: a structure of integers.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is readable for its length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

fn set(socket: &OwnedFd, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is readable for its length.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn vector(frame: &mut Vec<u8>) -> libc::iovec {
    libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() }
}

fn message(vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: a C structure in which zeros and null pointers are valid.
    let mut message: libc::mmsghdr = unsafe { zeroed() };
    message.msg_hdr.msg_iov = std::ptr::from_mut(vector);
    message.msg_hdr.msg_iovlen = 1;
    message
}

/// A frame from and to Ethernet addresses that nobody has: every stack that sees it lets it go at once.
pub fn frame(bytes: usize, flow: u8) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0xaa, 0x02, 0, 0, 0, 0, 0xbb, 0x08, 0x00];
    let length = ((bytes - frame.len()) as u16).to_be_bytes();
    frame.extend([0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 77, 0, 2, 10, 77, 0, 1]);
    frame.extend([0x10, flow, 0x20, 0x00]);
    frame.resize(bytes, 0x5a);
    frame
}

//! Frames over Ethernet, without IP: one packet socket, a frame of the message layer in each.
//!
//! Behind the Ethernet header stand two octets, big-endian, with the number of octets that follow: Ethernet fills frames up
//! to 60 octets. A frame for all nodes is sent once, to a multicast address. The socket takes no other protocol's frames,
//! so its memory is the careful layer's own pool of buffers (TR 94-14 §4.1: the condition for other traffic beside it).

use crate::NodesError;
use crate::address::Address;
use crate::memory::{Blocks, frame_memory};
use crate::wire::{Wire, wait_to_send};
use bytes::Bytes;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use trunkline_netns::Mac;
use trunkline_port::{LINK_HEADER, OwnFrames};
use trunkline_transport::cstar::Frame;

/// The protocol of the frames: IEEE 802's first for local experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// The address of all nodes: multicast, locally administered.
const ALL: Mac = Mac([0x03, b't', b'c', b's', 0, 0]);
/// Octets before a frame of the message layer: the link header and the length.
const HEADER: usize = LINK_HEADER + 2;
/// How long the device's queue may stay full before that is an error (a choice).
const FULL: Duration = Duration::from_secs(1);

/// A node's device, and the addresses of its peers.
#[derive(Debug)]
pub(crate) struct Ethernet {
    socket: OwnFrames,
    device: String,
    peers: Vec<Mac>,
    /// The same, to be found in.
    known: BTreeSet<Mac>,
    buffer: Vec<u8>,
    blocks: Blocks,
    out: Vec<u8>,
}

impl Ethernet {
    /// A socket on `device` whose receive buffer holds `buffers` frames of `payload` bytes each.
    ///
    /// # Errors
    /// If the device cannot be opened, its MTU is too small, or the kernel gives less memory than that.
    pub fn open(device: &str, buffers: u32, payload: u32) -> Result<Ethernet, NodesError> {
        let needed = buffers as usize * frame_memory(payload);
        let mut socket = OwnFrames::open(device, ETHERTYPE, needed)?;
        let (needs, mtu) = (payload + Frame::HEADER + 2, socket.mtu());
        if needs > mtu {
            let most = mtu.saturating_sub(Frame::HEADER + 2);
            return Err(NodesError::Mtu { device: device.into(), mtu, payload, needs, most });
        }
        let granted = socket.memory();
        if granted < needed {
            let at = device.to_owned();
            return Err(NodesError::Buffer { at, granted, needed, buffers });
        }
        socket.join(ALL.0)?;
        let longest = HEADER + mtu as usize;
        let (peers, known) = (Vec::new(), BTreeSet::new());
        let (buffer, out) = (vec![0; longest], Vec::with_capacity(longest));
        let (device, blocks) = (device.into(), Blocks::default());
        Ok(Ethernet { socket, device, peers, known, buffer, blocks, out })
    }

    #[inline(never)]
    fn send_frame(&mut self, to: Mac, parts: [&[u8]; 2]) -> Result<(), NodesError> {
        write(&mut self.out, to, Mac(self.socket.mac()), parts);
        let begin = Instant::now();
        loop {
            let Err(source) = self.socket.send(&self.out) else { return Ok(()) };
            match Errno::from_io_error(&source) {
                Some(Errno::INTR) => {}
                Some(Errno::AGAIN) if begin.elapsed() < FULL => {
                    wait_to_send(&self.socket.poll_fd());
                }
                // The device's queue is full; it tells nobody when it has drained.
                Some(Errno::NOBUFS) if begin.elapsed() < FULL => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                _ => {
                    let what = format!("send on {}", self.device);
                    return Err(NodesError::System { what, source });
                }
            }
        }
    }
}

/// Writes a frame.
fn write(out: &mut Vec<u8>, to: Mac, from: Mac, parts: [&[u8]; 2]) {
    out.clear();
    out.extend_from_slice(&to.0);
    out.extend_from_slice(&from.0);
    out.extend_from_slice(&ETHERTYPE.to_be_bytes());
    // No frame is longer than an MTU, and no MTU longer than this.
    let length = parts[0].len() + parts[1].len();
    out.extend_from_slice(&(length as u16).to_be_bytes());
    parts.into_iter().for_each(|part| out.extend_from_slice(part));
}

/// Who sent a frame, and the octets in it without what Ethernet filled it up with. `None` if they are not all there.
fn read(frame: &[u8]) -> Option<(Mac, &[u8])> {
    let from = frame.get(6..12)?.try_into().ok().map(Mac)?;
    let length = frame.get(LINK_HEADER..HEADER)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    Some((from, frame.get(HEADER..HEADER + length)?))
}

impl Wire for Ethernet {
    fn address(&self) -> Result<Address, NodesError> {
        Ok(Address::Ethernet(Mac(self.socket.mac())))
    }

    /// Whose frames those are that wait is seen when they are taken.
    fn meet(&mut self, peers: &[Address]) -> Result<Bytes, NodesError> {
        let of = |peer: &Address| match *peer {
            Address::Ethernet(mac) => Ok(mac),
            Address::Udp(address) => Err(NodesError::Address {
                peer: address.to_string(),
                wanted: "an Ethernet address like 02:74:00:00:00:01",
            }),
        };
        self.peers = peers.iter().map(of).collect::<Result<_, _>>()?;
        self.known = self.peers.iter().copied().collect();
        Ok(Bytes::new())
    }

    fn send(&mut self, to: usize, parts: [&[u8]; 2]) -> Result<(), NodesError> {
        self.send_frame(self.peers[to], parts)
    }

    fn send_to_all(&mut self, _me: usize, parts: [&[u8]; 2]) -> Result<u64, NodesError> {
        self.send_frame(ALL, parts)?;
        Ok(1)
    }

    #[inline(never)]
    fn receive(&mut self) -> Result<Option<Bytes>, NodesError> {
        loop {
            let what = || NodesError::system(format!("receive on {}", self.device));
            let got = self.socket.receive(&mut self.buffer).map_err(what())?;
            let Some(length) = got else { return Ok(None) };
            match read(&self.buffer[..length]) {
                // Another cluster on the same wire sends to the same group.
                Some((from, octets)) if self.known.is_empty() || self.known.contains(&from) => {
                    return Ok(Some(self.blocks.copy(octets)));
                }
                _ => {}
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.poll_fd()
    }

    fn dropped(&mut self) -> Option<u64> {
        Some(self.socket.drops())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_without_what_fills_it_up() {
        let (to, from) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let mut frame = Vec::new();
        write(&mut frame, to, from, [b"wo", b"rd"]);
        assert_eq!((frame.len(), &frame[..6], &frame[12..14]), (20, &to.0[..], &[0x88, 0xb5][..]));
        frame.resize(60, 0);
        assert_eq!(read(&frame), Some((from, &b"word"[..])));
        for length in 0..20 {
            assert_eq!(read(&frame[..length]), None, "{length}");
        }
    }
}

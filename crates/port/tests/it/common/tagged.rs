//! Super-frames with a VLAN tag, sent by hand as a kernel with VLAN devices and segmentation offload sends them.

use super::{Space, check, index, wait};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use trunkline_port::Port;

/// Ethernet with a tag, IPv4 and TCP, both without options.
const HEADERS: usize = 18 + 20 + 20;
const SEGMENT: usize = 1448;
const TAG: [u8; 4] = [0x81, 0, 0x60, 5];

/// Sends `count` super-frames from `device` and checks what `port`, at the other end, makes of them: tagged frames
/// of a wire, with valid checksums and all of the bytes.
pub fn check_tagged(space: &Space, device: &str, port: &mut dyn Port, count: usize) {
    let sent: Vec<Vec<u8>> = (0..count).map(|number| payload(number, 20_000 + number)).collect();
    let mut sequence = 1;
    for payload in &sent {
        space.run(|| send(device, &frame(sequence, payload)));
        sequence += payload.len() as u32;
    }
    let total: usize = sent.iter().map(Vec::len).sum();
    let (mut got, mut frames, mut idle) = (Vec::new(), 0, 0);
    while got.len() < total && idle < 50 {
        let mut sink = |received: trunkline_port::Received<'_>| {
            // IPv6 of the devices' own passes, too.
            if received.bytes.get(12..16) == Some(&TAG) {
                got.extend(check_frame(received.bytes, 1 + got.len() as u32));
                frames += 1;
            }
        };
        if port.receive(64, &mut sink).expect("receive") == 0 {
            wait(port.poll_fd(), 20);
            idle += 1;
        }
    }
    assert!(got == sent.concat(), "{} of {total} bytes", got.len());
    let pieces: usize = sent.iter().map(|payload| payload.len().div_ceil(SEGMENT)).sum();
    assert_eq!(frames, pieces);
    assert_eq!(port.refusals().total(), 0);
}

fn payload(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at + number).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// The sum of RFC 1071, folded: 0xffff over what holds a valid checksum.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut total: u64 = bytes.chunks(2).map(word).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Addresses, protocol and length: what TCP's checksum covers besides the segment (RFC 9293 §3.1).
fn pseudo_header(ip: &[u8], segment: usize) -> Vec<u8> {
    let length = (segment as u16).to_be_bytes();
    [&ip[12..20], &[0, 6], &length].concat()
}

/// A super-frame whose TCP checksum is left to the device: the sum of the pseudo-header.
fn frame(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 9, 0x40, 0, 64, 6, 0, 0, 10, 78, 0, 1, 10, 78, 0, 2]);
    let checksum = (!sum(&[&ip])).to_be_bytes();
    ip[10..12].copy_from_slice(&checksum);
    let mut tcp = vec![0x12, 0x34, 0x56, 0x78];
    tcp.extend(sequence.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, 0x10, 0x20, 0]);
    tcp.extend(sum(&[&pseudo_header(&ip, 20 + payload.len())]).to_be_bytes());
    tcp.extend([0, 0]);
    let ethernet = [2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 0xbb];
    [&ethernet[..], &TAG, &[8, 0], &ip, &tcp, payload].concat()
}

/// The payload of a wire frame that continues at `sequence`.
fn check_frame(frame: &[u8], sequence: u32) -> Vec<u8> {
    assert!(frame.len() <= HEADERS + SEGMENT, "{} bytes", frame.len());
    let (ip, tcp) = (&frame[18..38], &frame[38..]);
    assert_eq!(frame[16..18], [8, 0]);
    assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), 20 + tcp.len());
    assert_eq!(sum(&[ip]), 0xffff, "IPv4's checksum");
    assert_eq!(sum(&[&pseudo_header(ip, tcp.len()), tcp]), 0xffff, "TCP's checksum");
    assert_eq!(u32::from_be_bytes(tcp[4..8].try_into().unwrap()), sequence);
    tcp[20..].to_vec()
}

/// Sends a frame with a `virtio_net_hdr` before it, which asks for TCP segmentation and a checksum
/// (`linux/virtio_net.h`; packet(7), PACKET_VNET_HDR).
fn send(device: &str, frame: &[u8]) {
    let mut message = vec![1, 1]; // NEEDS_CSUM, GSO_TCPV4
    for field in [HEADERS, SEGMENT, HEADERS - 20, 16] {
        message.extend((field as u16).to_ne_bytes());
    }
    message.extend(frame);
    // SAFETY: a descriptor of our own, an integer and an address of their own lengths, and a buffer with its length.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        check(fd).expect("packet socket");
        let fd = OwnedFd::from_raw_fd(fd);
        let one = 1i32;
        let (value, length) = ((&raw const one).cast(), size_of::<i32>() as libc::socklen_t);
        let name = libc::PACKET_VNET_HDR;
        check(libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, name, value, length))
            .expect("option");
        let mut to: libc::sockaddr_ll = zeroed();
        (to.sll_family, to.sll_ifindex) = (libc::AF_PACKET as u16, index(device));
        let (address, length) = ((&raw const to).cast(), size_of_val(&to) as libc::socklen_t);
        let (bytes, count) = (message.as_ptr().cast(), message.len());
        let sent = libc::sendto(fd.as_raw_fd(), bytes, count, 0, address, length);
        check(sent as i32).expect("send");
        assert_eq!(sent as usize, count);
    }
}

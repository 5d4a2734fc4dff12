//! Unmodified kernel TCP and UDP, all offloads on, through two ports that forward between two pairs.

use crate::common::tagged::check_tagged;
use crate::common::{Space, cut_datagrams, wait};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use trunkline_port::{Backend, Port, PortError, SendOutcome, open};

const V4: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const V6: [&str; 2] = ["fd77::1", "fd77::2"];
const TUNNELLED: [&str; 2] = ["10.79.0.1", "10.79.0.2"];
const TUNNELLED6: [&str; 2] = ["fd79::1", "fd79::2"];
const TAGGED: [&str; 2] = ["10.78.0.1", "10.78.0.2"];
/// Of every transfer.
const BYTES: usize = 48 << 20;

/// Client – middle – server.
struct Path {
    client: Space,
    middle: Space,
    server: Space,
}

impl Path {
    fn new(mtu: u32) -> Option<Path> {
        let path = Path { client: Space::new()?, middle: Space::new()?, server: Space::new()? };
        path.client.veth("tlc", &path.middle, "tlm1", mtu);
        path.server.veth("tls", &path.middle, "tlm2", mtu);
        for (space, device, side) in [(&path.client, "tlc", 0), (&path.server, "tls", 1)] {
            space.address(device, V4[side].parse().unwrap(), 24);
            space.address(device, V6[side].parse().unwrap(), 64);
        }
        Some(path)
    }

    /// Adds VLAN devices; false if the kernel has none.
    fn tagged(&self) -> bool {
        [(&self.client, "tlc", 0), (&self.server, "tls", 1)].into_iter().all(
            |(space, device, side)| {
                let made = space.vlan("tlv", device, 5);
                if made {
                    space.address("tlv", TAGGED[side].parse().unwrap(), 24);
                }
                made
            },
        )
    }

    /// Adds VXLAN devices over IPv4 or IPv6; false, with a message, if the kernel has none.
    fn tunnelled(&self, v6: bool, checksum: bool) -> bool {
        let outer = if v6 { V6 } else { V4 };
        [(&self.client, "tlc", 0), (&self.server, "tls", 1)].into_iter().all(
            |(space, device, side)| {
                let ends = [outer[side], outer[1 - side]].map(|text| text.parse().unwrap());
                let made = space.vxlan("tlx", device, ends, checksum);
                if made {
                    space.address("tlx", TUNNELLED[side].parse().unwrap(), 24);
                    space.address("tlx", TUNNELLED6[side].parse().unwrap(), 64);
                }
                made
            },
        )
    }

    /// Runs `work` while two packet ports forward; returns what they saw.
    fn forwarding(&self, work: impl FnOnce() + Send) -> Seen {
        let port = |device| self.middle.run(|| open(device, Backend::Packet)).expect(device);
        forwarding(port("tlm1"), port("tlm2"), work)
    }
}

/// Runs `work` while two ports forward; returns what they saw.
fn forwarding(mut a: Box<dyn Port>, mut b: Box<dyn Port>, work: impl FnOnce() + Send) -> Seen {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(&mut *a, &mut *b, &done));
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Release);
        let seen = forwarder.join().expect("forwarder");
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        seen
    })
}

#[derive(Debug, Default)]
struct Seen {
    frames: usize,
    largest: usize,
    refused: u64,
    drops: u64,
    /// Frames received in one go with one stamp: pieces of a super-frame.
    same_stamp: usize,
}

fn forward(a: &mut dyn Port, b: &mut dyn Port, done: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut store = Vec::new();
    while !done.load(Ordering::Acquire) {
        let moved = pass(a, b, &mut store, &mut seen) + pass(b, a, &mut store, &mut seen);
        if moved == 0 {
            wait(a.poll_fd(), 0);
            thread::sleep(Duration::from_micros(20));
        }
    }
    seen.refused = a.refusals().total() + b.refusals().total();
    seen.drops = a.kernel_drops() + b.kernel_drops();
    seen
}

fn pass(
    from: &mut dyn Port,
    to: &mut dyn Port,
    store: &mut Vec<Vec<u8>>,
    seen: &mut Seen,
) -> usize {
    store.clear();
    let mut last = None;
    let mut keep = |got: trunkline_port::Received<'_>| {
        seen.same_stamp += usize::from(got.stamp.is_some() && got.stamp == last);
        last = got.stamp;
        seen.largest = seen.largest.max(got.bytes.len());
        store.push(got.bytes.to_vec());
    };
    let count = from.receive(64, &mut keep).expect("receive");
    seen.frames += count;
    to.send(&mut store.iter().map(Vec::as_slice), &mut |_, outcome| {
        assert_ne!(outcome, SendOutcome::TooBig);
    })
    .expect("send");
    count
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Sends BYTES from the client to the server and compares each of them.
fn transfer(path: &Path, to: &str) {
    let address = SocketAddr::new(to.parse::<IpAddr>().unwrap(), 7777);
    let listener = path.server.run(|| TcpListener::bind(address)).expect("listen");
    thread::scope(|scope| {
        scope.spawn(|| {
            let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
            let mut stream = path.client.run(connect).expect("connect");
            stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
            let data: Vec<u8> = (0..BYTES).map(byte).collect();
            stream.write_all(&data).expect("write");
        });
        let (mut stream, _) = listener.accept().expect("accept");
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut data = Vec::with_capacity(BYTES);
        stream.read_to_end(&mut data).expect("read");
        assert_eq!(data.len(), BYTES);
        assert!(data.iter().enumerate().all(|(at, &found)| found == byte(at)));
    });
}

fn check_transfer(mtu: u32, to: &str, header: usize) {
    if let Some(path) = Path::new(mtu) {
        check_transfer_over(&path, mtu, to, header);
    }
}

fn check_transfer_over(path: &Path, mtu: u32, to: &str, header: usize) {
    let seen = path.forwarding(|| transfer(path, to));
    println!("{to}, MTU {mtu}: {seen:?}");
    assert_eq!(seen.refused, 0);
    assert_eq!(seen.largest, mtu as usize + header);
    // Segmentation offload was at work, or the test shows nothing.
    assert!(seen.same_stamp > 1000, "{seen:?}");
}

#[test]
fn tcp_over_ipv4() {
    check_transfer(1500, V4[1], 14);
}

#[test]
fn tcp_over_ipv6() {
    check_transfer(1500, V6[1], 14);
}

#[test]
fn tcp_over_a_vlan() {
    let Some(path) = Path::new(1500) else { return };
    if path.tagged() {
        check_transfer_over(&path, 1500, TAGGED[1], 18);
    } else {
        // A kernel without VLAN devices: the same super-frames, sent by hand.
        let mut port = path.middle.run(|| open("tlm1", Backend::Packet)).expect("tlm1");
        check_tagged(&path.client, "tlc", &mut *port, 16);
    }
}

#[test]
fn tagged_super_frames_become_tagged_frames() {
    let Some(path) = Path::new(1500) else { return };
    let mut port = path.middle.run(|| open("tlm1", Backend::Packet)).expect("tlm1");
    check_tagged(&path.client, "tlc", &mut *port, 8);
}

#[test]
fn tcp_over_jumbo_frames() {
    check_transfer(9000, V4[1], 14);
}

#[test]
fn tcp_over_xdp_with_complete_frames() {
    let Some(path) = Path::new(1500) else { return };
    let port = |device| match path.middle.run(|| open(device, Backend::Xdp)) {
        Err(error @ PortError::Permission { .. }) => {
            trunkline_skip::skipped(error);
            None
        }
        other => Some(other.expect(device)),
    };
    let (Some(a), Some(b)) = (port("tlm1"), port("tlm2")) else { return };
    path.client.complete_frames("tlc");
    path.server.complete_frames("tls");
    let seen = forwarding(a, b, || transfer(&path, V4[1]));
    println!("{seen:?}");
    assert!(seen.frames > BYTES / 1448);
    assert_eq!((seen.refused, seen.largest), (0, 1514));
}

#[test]
fn udp_plain_and_in_super_frames() {
    let Some(path) = Path::new(1500) else { return };
    for (from, to) in [(V4[0], V4[1]), (V6[0], V6[1])] {
        let seen = path.forwarding(|| datagrams(&path, from, to));
        assert_eq!(seen.refused, 0, "{to}");
        assert!(seen.same_stamp >= 7, "{to}: {seen:?}");
    }
}

fn datagrams(path: &Path, from: &str, to: &str) {
    let bind = |space: &Space, at: &str| {
        let address = SocketAddr::new(at.parse().unwrap(), 5555);
        space.run(|| UdpSocket::bind(address)).expect("bind")
    };
    let (client, server) = (bind(&path.client, from), bind(&path.server, to));
    server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    let data: Vec<u8> = (0..7777).map(byte).collect();
    let mut buffer = vec![0; 70_000];
    client.send(&data[..333]).expect("send");
    let got = server.recv(&mut buffer).expect("a plain datagram");
    assert_eq!(buffer[..got], data[..333]);
    cut_datagrams(client.as_raw_fd(), 1000);
    client.send(&data).expect("send");
    for sent in data.chunks(1000) {
        let got = server.recv(&mut buffer).expect("a datagram of a super-frame");
        assert_eq!(&buffer[..got], sent);
    }
}

/// Over each of the four kinds of outer header; TCP and UDP in super-frames, over both inner protocols.
#[test]
fn everything_through_vxlan() {
    for (v6, checksum) in [(false, false), (false, true), (true, false), (true, true)] {
        let Some(path) = Path::new(1500) else { return };
        if !path.tunnelled(v6, checksum) {
            return;
        }
        let what = format!("outer IPv6 {v6}, outer checksum {checksum}");
        for to in [TUNNELLED[1], TUNNELLED6[1]] {
            let seen = path.forwarding(|| transfer(&path, to));
            println!("{what}, TCP to {to}: {seen:?}");
            assert_eq!((seen.refused, seen.largest), (0, 1514), "{what}: {seen:?}");
            assert!(seen.same_stamp > 1000, "{what}: {seen:?}");
        }
        for (from, to) in [(TUNNELLED[0], TUNNELLED[1]), (TUNNELLED6[0], TUNNELLED6[1])] {
            let seen = path.forwarding(|| datagrams(&path, from, to));
            println!("{what}, UDP to {to}: {seen:?}");
            assert_eq!(seen.refused, 0, "{what}: {seen:?}");
            assert!(seen.same_stamp >= 7, "{what}: {seen:?}");
        }
    }
}

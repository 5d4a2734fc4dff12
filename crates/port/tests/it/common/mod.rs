//! Network namespaces and devices for the tests, over a minimum of hand-written rtnetlink.
#![allow(unsafe_code, dead_code)]

pub mod tagged;

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_port::{Port, Received, SendOutcome};
use trunkline_skip::skipped;

/// A network namespace of our own. It ends, with its devices, when the last handle and the last socket
/// in it are closed: nothing to clean up, whatever happens.
pub struct Space(File);

impl Space {
    /// A new, empty namespace; or `None`, with a message, if we may not make one.
    pub fn new() -> Option<Space> {
        let made = thread::spawn(|| {
            // SAFETY: takes no pointers, and concerns this short-lived thread alone.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            File::open("/proc/thread-self/ns/net")
        });
        match made.join().expect("the thread does not panic") {
            Ok(file) => Some(Space(file)),
            Err(error) => {
                skipped(format_args!("cannot make a network namespace ({error}); run as root"));
                None
            }
        }
    }

    /// Runs `work` on a thread inside the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into the namespace.
    pub fn enter(&self) {
        // SAFETY: takes no pointers.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).expect("setns");
    }

    /// A veth pair: `name` here, `peer` in `other`; both up, and carrying frames.
    pub fn veth(&self, name: &str, other: &Space, peer: &str, mtu: u32) {
        self.run(|| {
            let end = Message::link(libc::RTM_NEWLINK, 0).name(peer).mtu(mtu);
            let end = end.word(libc::IFLA_NET_NS_FD, other.0.as_raw_fd() as u32);
            let data = nest(1, &end.0[16..]); // VETH_INFO_PEER: an ifinfomsg and attributes
            Message::link(libc::RTM_NEWLINK, 0).name(name).mtu(mtu).kind("veth", &data).make();
        });
        self.set_up(name, true);
        other.set_up(peer, true);
        self.wait_running(name);
        other.wait_running(peer);
    }

    /// A VLAN device `name` on `lower`, up; or false if the kernel has none.
    pub fn vlan(&self, name: &str, lower: &str, id: u16) -> bool {
        let answer = self.run(|| {
            let message = Message::link(libc::RTM_NEWLINK, 0).name(name);
            let message = message.word(libc::IFLA_LINK, index(lower) as u32);
            let message = message.kind("vlan", &nest(1, &id.to_ne_bytes())); // IFLA_VLAN_ID
            message.ask(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        });
        if answer == libc::EOPNOTSUPP {
            return false;
        }
        assert_eq!(answer, 0, "netlink: {}", io::Error::from_raw_os_error(answer));
        self.set_up(name, true);
        true
    }

    /// A VXLAN device `name` over `lower`, up, to `remote`; its outer UDP has checksums if `checksum` says so.
    /// False, with a message, if the kernel has none.
    pub fn vxlan(&self, name: &str, lower: &str, ends: [IpAddr; 2], checksum: bool) -> bool {
        // The numbers are those of IFLA_VXLAN_… in linux/if_link.h.
        let [id, link, port, v4_sums, no_v6_sums_sent, no_v6_sums_taken] = [1, 3, 15, 18, 19, 20];
        let answer = self.run(|| {
            let mut data = nest(id, &77u32.to_ne_bytes());
            data.extend(nest(link, &(index(lower) as u32).to_ne_bytes()));
            data.extend(nest(port, &4789u16.to_be_bytes()));
            data.extend(nest(v4_sums, &[u8::from(checksum)]));
            data.extend(nest(no_v6_sums_sent, &[u8::from(!checksum)]));
            data.extend(nest(no_v6_sums_taken, &[u8::from(!checksum)]));
            for (address, (v4, v6)) in ends.into_iter().zip([(4, 17), (2, 16)]) {
                data.extend(match address {
                    IpAddr::V4(address) => nest(v4, &address.octets()),
                    IpAddr::V6(address) => nest(v6, &address.octets()),
                });
            }
            let message = Message::link(libc::RTM_NEWLINK, 0).name(name).kind("vxlan", &data);
            message.ask(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        });
        if answer == libc::EOPNOTSUPP {
            skipped("this kernel has no VXLAN devices");
            return false;
        }
        assert_eq!(answer, 0, "netlink: {}", io::Error::from_raw_os_error(answer));
        self.set_up(name, true);
        true
    }

    /// Sets a device up or down.
    pub fn set_up(&self, name: &str, up: bool) {
        self.run(|| {
            let mut message = Message::link(libc::RTM_NEWLINK, index(name));
            message.0[24..28].copy_from_slice(&u32::from(up).to_ne_bytes()); // ifi_flags: IFF_UP
            message.0[28..32].copy_from_slice(&1u32.to_ne_bytes()); // ifi_change
            message.send(0);
        });
    }

    /// Waits until a device that is up carries frames. The kernel gives it its queue some time after both ends of
    /// a pair are up, by a work of its own; until then frames vanish, and nobody counts them.
    pub fn wait_running(&self, name: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        while !self.run(|| Message::link(libc::RTM_GETLINK, index(name)).runs()) {
            assert!(Instant::now() < until, "{name} does not run");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Removes a device.
    pub fn remove(&self, name: &str) {
        self.run(|| Message::link(libc::RTM_DELLINK, index(name)).send(0));
    }

    /// Has the kernel finish checksums and frames itself before they leave through `name`: no checksum
    /// offload, and with it no segmentation offload.
    pub fn complete_frames(&self, name: &str) {
        // `struct ethtool_value` for ETHTOOL_STXCSUM and ETHTOOL_SGSO (linux/ethtool.h), set to 0.
        for command in [0x17u32, 0x24] {
            let mut value = [command, 0];
            self.run(move || {
                // SAFETY: a socket of our own, and a request that points at a value of the right size.
                unsafe {
                    let fd = libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
                    check(fd).expect("control socket");
                    let fd = OwnedFd::from_raw_fd(fd);
                    let mut request: libc::ifreq = zeroed();
                    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
                        *to = from as libc::c_char;
                    }
                    request.ifr_ifru.ifru_data = (&raw mut value).cast();
                    let done = libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request);
                    check(done).expect("ethtool");
                }
            });
        }
    }

    /// Gives a device an address.
    pub fn address(&self, name: &str, address: IpAddr, prefix: u8) {
        use IpAddr::{V4, V6};
        let (family, bytes) = match address {
            V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
            V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
        };
        self.run(|| {
            let mut message = Message::new(libc::RTM_NEWADDR);
            message.0.extend([family as u8, prefix, 0x02 /* no DAD */, 0]);
            message.0.extend((index(name) as u32).to_ne_bytes());
            let message = message.bytes(libc::IFA_LOCAL, &bytes).bytes(libc::IFA_ADDRESS, &bytes);
            message.send(libc::NLM_F_CREATE);
        });
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn index(name: &str) -> i32 {
    let name = std::ffi::CString::new(name).expect("no zero in names");
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "{name:?}: {}", io::Error::last_os_error());
    index as i32
}

fn nest(kind: u16, bytes: &[u8]) -> Vec<u8> {
    let mut out = ((bytes.len() + 4) as u16).to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// An rtnetlink request under construction.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16) -> Message {
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        Message(bytes)
    }
    /// With an ifinfomsg.
    fn link(kind: u16, index: i32) -> Message {
        let mut message = Message::new(kind);
        message.0.resize(32, 0);
        message.0[20..24].copy_from_slice(&index.to_ne_bytes());
        message
    }
    fn bytes(mut self, kind: u16, bytes: &[u8]) -> Message {
        self.0.extend(nest(kind, bytes));
        self
    }
    fn word(self, kind: u16, word: u32) -> Message {
        self.bytes(kind, &word.to_ne_bytes())
    }
    fn name(self, name: &str) -> Message {
        self.bytes(libc::IFLA_IFNAME, format!("{name}\0").as_bytes())
    }
    fn mtu(self, mtu: u32) -> Message {
        self.word(libc::IFLA_MTU, mtu)
    }
    fn kind(self, kind: &str, data: &[u8]) -> Message {
        let info = [nest(1, kind.as_bytes()), nest(2, data)].concat(); // INFO_KIND, INFO_DATA
        self.bytes(libc::IFLA_LINKINFO, &info)
    }
    fn make(self) {
        self.send(libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    }

    /// Sends it; it must succeed.
    fn send(self, flags: i32) {
        let answer = self.ask(flags);
        assert_eq!(answer, 0, "netlink: {}", io::Error::from_raw_os_error(answer));
    }

    /// Sends it and waits for the kernel's answer, an error number or 0.
    fn ask(self, flags: i32) -> i32 {
        -i32::from_ne_bytes(
            self.exchange(flags | libc::NLM_F_ACK)[16..20].try_into().expect("four bytes"),
        )
    }

    /// Asks for a device: whether it runs. The kernel answers under the lock under which it gives a device its queue.
    fn runs(self) -> bool {
        let answer = self.exchange(0);
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        assert_eq!(kind, libc::RTM_NEWLINK, "no answer about a device");
        u32::from_ne_bytes(answer[24..28].try_into().expect("four bytes"))
            & libc::IFF_RUNNING as u32
            != 0
    }

    /// Sends it and waits for the first message of the kernel's answer.
    fn exchange(mut self, flags: i32) -> [u8; 4096] {
        let length = self.0.len() as u32;
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        let mut answer = [0u8; 4096];
        // SAFETY: a new descriptor, and buffers with their own lengths.
        unsafe {
            let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            check(fd).expect("netlink socket");
            let fd = OwnedFd::from_raw_fd(fd);
            let sent = libc::send(fd.as_raw_fd(), self.0.as_ptr().cast(), self.0.len(), 0);
            check(sent as i32).expect("netlink send");
            let got = libc::recv(fd.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0);
            check(got as i32).expect("netlink receive");
        }
        answer
    }
}

/// Waits up to `millis` for a frame on the descriptor.
pub fn wait(fd: std::os::fd::BorrowedFd<'_>, millis: i32) {
    // SAFETY: one valid pollfd.
    unsafe {
        let mut poll: libc::pollfd = zeroed();
        (poll.fd, poll.events) = (fd.as_raw_fd(), libc::POLLIN);
        libc::poll(&raw mut poll, 1, millis);
    }
}

/// Lets a UDP socket hand over many datagrams of `size` bytes in one (UDP_SEGMENT).
pub fn cut_datagrams(fd: i32, size: i32) {
    const UDP_SEGMENT: i32 = 103; // linux/udp.h
    let (value, length) = ((&raw const size).cast(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: an integer of its own length.
    check(unsafe { libc::setsockopt(fd, libc::SOL_UDP, UDP_SEGMENT, value, length) }).expect("GSO");
}

/// An experimental ethertype (IEEE 802): no kernel answers or sends it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// A frame of `length` bytes with the given tags before its type.
pub fn frame(length: usize, tags: &[[u8; 4]], seed: u8) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0xaa, 0x02, 0, 0, 0, 0, 0xbb];
    frame.extend(tags.concat());
    frame.extend(ETHERTYPE);
    frame
        .extend((0..).map(|i: usize| (i as u8).wrapping_mul(31) ^ seed).take(length - frame.len()));
    frame
}

pub fn send(port: &mut dyn Port, frames: &[Vec<u8>]) -> Vec<SendOutcome> {
    let mut outcomes = Vec::new();
    let mut slices = frames.iter().map(Vec::as_slice);
    let _ = port.send(&mut slices, &mut |index, outcome| {
        assert_eq!(index, outcomes.len());
        outcomes.push(outcome);
    });
    outcomes
}

/// Our frames among what arrives, until `count` came or nothing more does for a while.
pub fn receive(port: &mut dyn Port, count: usize) -> Vec<(Vec<u8>, Option<u64>)> {
    let mut frames = Vec::new();
    let mut idle = 0;
    while frames.len() < count && idle < 10 {
        let mut sink = |got: Received<'_>| {
            let ours = got.bytes.windows(2).take(24).any(|pair| pair == ETHERTYPE);
            if ours {
                frames.push((got.bytes.to_vec(), got.stamp));
            }
        };
        if port.receive(64, &mut sink).expect("receive") == 0 {
            wait(port.poll_fd(), 20);
            idle += 1;
        }
    }
    frames
}

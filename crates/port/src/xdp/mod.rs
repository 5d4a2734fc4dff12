//! AF_XDP in copy mode on one queue.

mod bpf;
mod queue;
mod send;

use crate::device::Device;
use crate::sys::Socket;
use crate::{Backend, Port, PortError, Received, Refusals, SendOutcome};
use queue::{Frames, Queue};
use send::Sender;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

/// Frames in the shared memory: one half to receive into, the other to send from.
const FRAMES: usize = 16384;
/// Entries of the receive and send rings.
const RING: u32 = 4096;
/// Entries of the fill and completion rings: each holds its half of the frames.
const HALF: u32 = (FRAMES / 2) as u32;
/// The kernel keeps this much of each chunk free before the frame (XDP_PACKET_HEADROOM).
const HEADROOM: usize = 256;
/// Link header and one VLAN tag.
const LINK: usize = 18;
/// Frames that one system call may send; 32 unless asked for (`linux/if_xdp.h`, socket option 9).
const BUDGET: (i32, i32) = (9, 256);
/// Socket buffer: the kernel copies each frame into one of its own to send it.
const BUFFER: i32 = 16 << 20;
/// A queue stays busy for some milliseconds after its previous user has left: the kernel takes it back when it gets to that,
/// on a busy machine a tenth of a second later and more.
const TRIES: (u32, Duration) = (200, Duration::from_millis(5));

/// A device on AF_XDP. Fields drop in this order: the program is detached first.
pub(crate) struct XdpPort {
    _link: OwnedFd,
    native: bool,
    device: Device,
    receive: Queue<libc::xdp_desc>,
    fill: Queue<u64>,
    sender: Sender,
    frames: Frames,
    socket: Socket,
    refusals: Refusals,
    drops: u64,
}

impl XdpPort {
    pub(crate) fn open(name: &str) -> Result<XdpPort, PortError> {
        let device = Device::find(name)?;
        suits(&device)?;
        let fail = |action| move |errno| PortError::opening(name, Backend::Xdp, action, errno);
        let map = bpf::create_map().map_err(fail("create a BPF map"))?;
        let program = bpf::load(&map).map_err(fail("load a BPF program"))?;
        let socket = Socket::new(libc::AF_XDP, libc::SOCK_RAW, 0);
        let socket = socket.map_err(fail("open an AF_XDP socket"))?;
        let (frames, receive, fill, sender) =
            prepare(&socket).map_err(fail("set up the AF_XDP rings"))?;
        let bind = || socket.bind(&address(device.index));
        patiently(bind).map_err(fail("bind the AF_XDP socket"))?;
        bpf::insert(&map, socket.fd()).map_err(fail("register the AF_XDP socket"))?;
        let (link, native) =
            attach(&program, device.index).map_err(fail("attach the XDP program"))?;
        let refusals = Refusals::default();
        let port = XdpPort {
            _link: link,
            native,
            device,
            receive,
            fill,
            sender,
            frames,
            socket,
            refusals,
            drops: 0,
        };
        tracing::debug!(device = name, backend = port.backend_name(), "opened");
        Ok(port)
    }
}

/// Refuses devices that would lose frames on this backend.
fn suits(device: &Device) -> Result<(), PortError> {
    let largest = Frames::CHUNK - HEADROOM - LINK;
    if device.mtu as usize > largest {
        let mtu = device.mtu;
        let why = format!(
            "its MTU is {mtu} and a frame must fit {largest} bytes: lower the MTU or use the packet backend"
        );
        return Err(PortError::unsupported(&device.name, Backend::Xdp, why));
    }
    match device.receive_queues() {
        0 | 1 => Ok(()),
        count => {
            let why = format!(
                "it has {count} receive queues and only one is read: set one with `ethtool -L`, or use the packet backend"
            );
            Err(PortError::unsupported(&device.name, Backend::Xdp, why))
        }
    }
}

fn address(index: i32) -> libc::sockaddr_xdp {
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index as u32,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    }
}

type Parts = (Frames, Queue<libc::xdp_desc>, Queue<u64>, Sender);

fn prepare(socket: &Socket) -> Result<Parts, i32> {
    let frames = Frames::new(socket, FRAMES)?;
    let offsets: libc::xdp_mmap_offsets = socket.get(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    let (filling, completing) =
        (libc::XDP_UMEM_PGOFF_FILL_RING as i64, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64);
    let mut fill = Queue::new(socket, libc::XDP_UMEM_FILL_RING, HALF, filling, offsets.fr)?;
    let option = libc::XDP_UMEM_COMPLETION_RING;
    let completion = Queue::new(socket, option, HALF, completing, offsets.cr)?;
    let (receiving, sending) = (libc::XDP_PGOFF_RX_RING, libc::XDP_PGOFF_TX_RING);
    let receive = Queue::new(socket, libc::XDP_RX_RING, RING, receiving, offsets.rx)?;
    let send = Queue::new(socket, libc::XDP_TX_RING, RING, sending, offsets.tx)?;
    (0..u64::from(HALF)).for_each(|frame| fill.write(frame * Frames::CHUNK as u64));
    fill.publish();
    socket.set(libc::SOL_XDP, BUDGET.0, &BUDGET.1)?;
    socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER)?;
    let free = (u64::from(HALF)..FRAMES as u64).map(|frame| frame * Frames::CHUNK as u64).collect();
    Ok((frames, receive, fill, Sender::new(send, completion, free)))
}

/// Tries again while the device is still busy with its previous user.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, i32>) -> Result<T, i32> {
    for _ in 0..TRIES.0 {
        match attempt() {
            Err(libc::EBUSY) => sleep(TRIES.1),
            other => return other,
        }
    }
    attempt()
}

/// Attaches the program in the driver if it can, otherwise behind it; says which.
fn attach(program: &OwnedFd, index: i32) -> Result<(OwnedFd, bool), i32> {
    match patiently(|| bpf::attach(program, index, bpf::NATIVE)) {
        // EOPNOTSUPP from drivers without XDP, ERANGE and EINVAL from those that cannot at this MTU.
        Err(libc::EOPNOTSUPP | libc::ERANGE | libc::EINVAL) => {
            patiently(|| bpf::attach(program, index, bpf::GENERIC)).map(|link| (link, false))
        }
        other => other.map(|link| (link, true)),
    }
}

impl Port for XdpPort {
    fn receive(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let (mut taken, mut count) = (0, 0);
        while taken < budget
            && let Some(got) = self.receive.read()
        {
            taken += 1;
            match self.frames.frame(got.addr, got.len as usize) {
                Some(bytes) => {
                    count += 1;
                    sink(Received { bytes, stamp: None });
                }
                None => self.refusals.truncated += 1,
            }
            self.fill.write(got.addr - got.addr % Frames::CHUNK as u64);
        }
        if taken > 0 {
            self.receive.release();
            self.fill.publish();
        }
        Ok(count)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        let largest = self.device.mtu as usize + LINK;
        let sent = self.sender.send(&self.socket, &mut self.frames, largest, frames, outcome);
        sent.map_err(|errno| self.device.error("send", errno))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.lend()
    }

    fn check(&mut self) -> Result<(), PortError> {
        // The kernel leaves ENETDOWN here when the device goes away; the socket then stays unbound.
        match self.socket.get::<i32>(libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => self.device.check(),
            _ => Err(self.device.lose()),
        }
    }

    fn kernel_drops(&mut self) -> u64 {
        let read = self.socket.get::<libc::xdp_statistics>(libc::SOL_XDP, libc::XDP_STATISTICS);
        // An empty fill ring is counted in `rx_dropped` too.
        self.drops = read.map_or(self.drops, |s| s.rx_dropped + s.rx_ring_full);
        self.drops
    }

    fn refusals(&self) -> Refusals {
        self.refusals
    }

    fn device(&self) -> &str {
        &self.device.name
    }

    fn mtu(&self) -> u32 {
        self.device.mtu
    }

    fn backend_name(&self) -> &'static str {
        if self.native { "xdp (native)" } else { "xdp (generic)" }
    }
}

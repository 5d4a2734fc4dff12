//! AF_PACKET: a TPACKET_V2 ring to receive, a second socket to send.

use crate::device::Device;
use crate::intake::{Intake, Raw};
use crate::offload::LENGTH;
use crate::ring::{Ring, Shape, Slot};
use crate::sys::Socket;
use crate::transmit::Batch;
use crate::{Backend, Port, PortError, Received, Refusals, SendOutcome};
use std::os::fd::BorrowedFd;

/// Socket buffer sizes asked for; the system may grant less to an ordinary user.
const BUFFER: i32 = 16 << 20;
/// Room before the frame in the buffer for whole super-frames: virtio header and a VLAN tag.
const HEADROOM: usize = 16;
/// The largest super-frame: the largest IP packet with link header and tags (gso_max_size is at most
/// 64 KiB unless BIG TCP is switched on).
const LARGEST: usize = 65536 + 64;

/// A device on AF_PACKET.
pub(crate) struct PacketPort {
    device: Device,
    receiver: Socket,
    sender: Socket,
    ring: Ring,
    intake: Intake,
    whole: Box<[u8]>,
    batch: Batch,
    drops: u64,
}

impl PacketPort {
    pub(crate) fn open(name: &str) -> Result<PacketPort, PortError> {
        let device = Device::find(name)?;
        let fail = |action| move |errno| PortError::opening(name, Backend::Packet, action, errno);
        let receiver = packet_socket().map_err(fail("open a packet socket"))?;
        let ring = prepare_receiver(&receiver, &device).map_err(fail("set up the receive ring"))?;
        // Only now, so that no frame of another device gets into the ring.
        receiver
            .bind(&address(device.index, libc::ETH_P_ALL as u16))
            .map_err(fail("bind the receiving packet socket"))?;
        let sender = packet_socket().map_err(fail("open a packet socket"))?;
        prepare_sender(&sender, &device).map_err(fail("set up the sending packet socket"))?;
        let whole = vec![0; HEADROOM + LARGEST].into_boxed_slice();
        let (intake, batch) = (Intake::default(), Batch::new());
        Ok(PacketPort { device, receiver, sender, ring, intake, whole, batch, drops: 0 })
    }
}

/// A raw socket that as yet receives nothing.
fn packet_socket() -> Result<Socket, i32> {
    Socket::new(libc::AF_PACKET, libc::SOCK_RAW, 0)
}

pub(crate) fn address(index: i32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

fn prepare_receiver(socket: &Socket, device: &Device) -> Result<Ring, i32> {
    let packet = libc::SOL_PACKET;
    socket.set(packet, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
    // Before the ring: the kernel refuses it afterwards.
    socket.set(packet, libc::PACKET_VNET_HDR, &1)?;
    socket.set(packet, libc::PACKET_IGNORE_OUTGOING, &1)?;
    // Frames larger than a slot are also queued whole, as far as the socket's buffer reaches.
    socket.set(packet, libc::PACKET_COPY_THRESH, &1)?;
    enlarge(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
    // Without it the kernel stamps frames only when it copies them into the ring, some µs later.
    let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &(stamps as i32))?;
    let promiscuous = libc::packet_mreq {
        mr_ifindex: device.index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    socket.set(packet, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
    Ring::new(socket, Shape::for_mtu(device.mtu))
}

fn prepare_sender(socket: &Socket, device: &Device) -> Result<(), i32> {
    socket.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
    enlarge(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
    // Protocol 0: it receives nothing.
    socket.bind(&address(device.index, 0))
}

/// Asks for a large buffer, beyond the system's limit if we may. An ordinary user may not, and has
/// room for a handful of super-frames only; what does not fit is counted as truncated.
fn enlarge(socket: &Socket, force: i32, ordinary: i32) -> Result<(), i32> {
    let set = |name| socket.set(libc::SOL_SOCKET, name, &BUFFER);
    set(force).or_else(|_| set(ordinary))
}

/// Nanoseconds of CLOCK_REALTIME, unless the kernel left the stamp empty.
fn stamp(slot: &Slot<'_>) -> Option<u64> {
    let (seconds, nanos) = (u64::from(slot.header.tp_sec), u64::from(slot.header.tp_nsec));
    (seconds != 0).then(|| seconds * 1_000_000_000 + nanos)
}

/// The VLAN tag that the kernel took out of the frame: protocol and control information.
fn tag(slot: &Slot<'_>) -> Option<(u16, u16)> {
    /// IEEE 802.1Q, if the kernel does not say which.
    const CUSTOMER: u16 = 0x8100;
    let said = slot.has(libc::TP_STATUS_VLAN_TPID_VALID);
    let protocol = if said { slot.header.tp_vlan_tpid } else { CUSTOMER };
    slot.has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, slot.header.tp_vlan_tci))
}

/// Takes the whole of a frame of which a slot holds only the beginning. Returns its end.
fn take_whole(socket: &Socket, whole: &mut [u8]) -> Option<usize> {
    loop {
        match socket.receive(&mut whole[HEADROOM - LENGTH..]) {
            Ok(length) => {
                let end = HEADROOM - LENGTH + length;
                return (end <= whole.len() && length >= LENGTH).then_some(end);
            }
            // A pending ENETDOWN is told first, and must not leave the frame in the queue: the next
            // large frame would be mistaken for it.
            Err(libc::EINTR | libc::ENETDOWN) => {}
            Err(_) => return None,
        }
    }
}

impl Port for PacketPort {
    fn receive(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let mut count = 0;
        while count < budget {
            let Some(slot) = self.ring.waiting() else { break };
            let (stamp, tag, (start, end)) = (stamp(&slot), tag(&slot), slot.frame());
            let raw = if slot.has(libc::TP_STATUS_COPY) {
                take_whole(&self.receiver, &mut self.whole).map(|end| Raw {
                    buffer: &mut self.whole[..end],
                    start: HEADROOM,
                    tag,
                    stamp,
                })
            } else {
                let complete = slot.header.tp_len <= slot.header.tp_snaplen;
                complete.then(|| Raw { buffer: &mut slot.bytes[..end], start, tag, stamp })
            };
            match raw {
                Some(raw) => count += self.intake.deliver(raw, sink),
                None => self.intake.refusals.truncated += 1,
            }
            self.ring.release();
        }
        Ok(count)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        let sent = self.batch.send(&self.sender, frames, outcome);
        sent.map_err(|errno| self.device.error("send", errno))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.receiver.lend()
    }

    fn check(&mut self) -> Result<(), PortError> {
        // Reading the pending error clears it, and with it POLLERR.
        let ask = self.receiver.get::<i32>(libc::SOL_SOCKET, libc::SO_ERROR);
        ask.map_err(|errno| self.device.error("ask for errors", errno))?;
        // Once the device has left the namespace the socket is bound to none, for ever, even if the
        // device comes back under its old index.
        let bound = self.receiver.name::<libc::sockaddr_ll>();
        let bound = bound.map_err(|errno| self.device.error("ask for its address", errno))?;
        if bound.sll_ifindex != self.device.index {
            return Err(self.device.lose());
        }
        self.device.check()
    }

    fn kernel_drops(&mut self) -> u64 {
        // Reading resets the kernel's own count. A failure to read leaves what was counted before.
        let read =
            self.receiver.get::<libc::tpacket_stats>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        self.drops += read.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.drops
    }

    fn refusals(&self) -> Refusals {
        self.intake.refusals
    }

    fn device(&self) -> &str {
        &self.device.name
    }

    fn mtu(&self) -> u32 {
        self.device.mtu
    }

    fn backend_name(&self) -> &'static str {
        Backend::Packet.name()
    }
}

//! A packet socket for the frames of one protocol: others' frames take nothing of its memory.

use crate::device::Device;
use crate::packet::address;
use crate::sys::Socket;
use crate::{Backend, PortError};
use std::io;
use std::os::fd::BorrowedFd;

/// Octets of an Ethernet header: destination, source, protocol.
pub const LINK_HEADER: usize = 14;

/// A socket on one device that receives the frames of one EtherType and no others. Its receive memory is its own: frames
/// of other protocols on the same device cannot fill it. Frames whose destination is another host's are passed over.
pub struct OwnFrames {
    device: Device,
    socket: Socket,
    mac: [u8; 6],
    groups: Vec<[u8; 6]>,
    drops: u64,
}

impl OwnFrames {
    /// Opens `device`, of the calling thread's network namespace, for frames of `protocol` (an EtherType, from 0x0600 on).
    /// The kernel is asked for `memory` bytes for frames that wait to be received, as setsockopt(2) counts them (with what
    /// it keeps beside each), and may give an ordinary user less: see [`OwnFrames::memory`].
    ///
    /// # Errors
    /// If there is no such device, or no right to open it (CAP_NET_RAW).
    pub fn open(device: &str, protocol: u16, memory: usize) -> Result<OwnFrames, PortError> {
        let device = Device::find(device)?;
        let name = device.name.clone();
        let fail = |action| {
            let name = name.clone();
            move |errno| PortError::opening(&name, Backend::Packet, action, errno)
        };
        let socket = Socket::new(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(fail("open a packet socket"))?;
        let ignore = socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1);
        ignore.map_err(fail("set up the packet socket"))?;
        // The kernel doubles what it is asked for.
        let asked = i32::try_from(memory.div_ceil(2)).unwrap_or(i32::MAX);
        if socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &asked).is_err() {
            let set = socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &asked);
            set.map_err(fail("set the receive buffer of the packet socket"))?;
        }
        // Only now, so that what comes finds the memory.
        socket.bind(&address(device.index, protocol)).map_err(fail("bind the packet socket"))?;
        let bound: libc::sockaddr_ll = socket.name().map_err(fail("ask for its address"))?;
        let mut mac = [0; 6];
        mac.copy_from_slice(&bound.sll_addr[..6]);
        Ok(OwnFrames { device, socket, mac, groups: Vec::new(), drops: 0 })
    }

    /// The device's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The largest network-layer packet of the device, in bytes.
    pub fn mtu(&self) -> u32 {
        self.device.mtu
    }

    /// Bytes for frames that wait to be received, as the kernel counts them.
    pub fn memory(&self) -> usize {
        let granted = self.socket.get::<i32>(libc::SOL_SOCKET, libc::SO_RCVBUF).unwrap_or(0);
        usize::try_from(granted).unwrap_or(0)
    }

    /// Receives frames for the multicast address `group` too.
    ///
    /// # Errors
    /// If the device cannot.
    pub fn join(&mut self, group: [u8; 6]) -> Result<(), PortError> {
        let mut membership = libc::packet_mreq {
            mr_ifindex: self.device.index,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: [0; 8],
        };
        membership.mr_address[..6].copy_from_slice(&group);
        let joined = self.socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership);
        joined.map_err(|errno| self.device.error("join a multicast group", errno))?;
        self.groups.push(group);
        Ok(())
    }

    /// Sends a whole frame, link header included.
    ///
    /// # Errors
    /// What the kernel says: `ENOBUFS` if the device's queue is full and did not take it.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(drop).map_err(io::Error::from_raw_os_error)
    }

    /// The next frame that waits, its length in `buffer`, link header included; `None` if there is none. One that is longer
    /// than the buffer comes cut.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.socket.receive(buffer) {
                Ok(length) if self.is_ours(&buffer[..length.min(buffer.len())]) => {
                    return Ok(Some(length.min(buffer.len())));
                }
                Ok(_) | Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => return Ok(None),
                Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }

    /// Whether a frame is for this device, or a group that was joined: a switch that does not know yet where a host is
    /// sends its frames everywhere.
    fn is_ours(&self, frame: &[u8]) -> bool {
        frame.len() >= LINK_HEADER
            && (frame[..6] == self.mac || self.groups.iter().any(|group| frame[..6] == group[..]))
    }

    /// Frames that the kernel dropped because the memory was full, since the socket was opened.
    pub fn drops(&mut self) -> u64 {
        // Reading resets the kernel's own count. A failure to read leaves what was counted before.
        let read =
            self.socket.get::<libc::tpacket_stats>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        self.drops += read.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.drops
    }

    /// The descriptor that poll(2) reports readable when frames wait.
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.lend()
    }
}

impl std::fmt::Debug for OwnFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnFrames").field("device", &self.device.name).finish_non_exhaustive()
    }
}

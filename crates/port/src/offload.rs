//! The virtio-net header with which the kernel tells what a sender left undone.
//!
//! The layout and the numbers are those of `linux/virtio_net.h` (virtio 1.2 §5.1.6). The fields have the
//! machine's byte order on a packet socket.

/// Bytes of the header before each frame.
pub const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
/// The congestion window reduced flag is set and means what RFC 3168 has it mean: only the first piece may carry it.
const GSO_ECN: u8 = 0x80;

/// The work left before a frame is what a wire would have carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// The checksum to be finished: the start of the covered part, and the field's offset from there.
    pub checksum: Option<(u16, u16)>,
    /// The frame is a super-frame, to be cut.
    pub gso: Option<Gso>,
}

/// The kind of super-frame, and how it is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gso {
    /// The protocols.
    pub kind: OffloadKind,
    /// Transport payload bytes in each piece but the last.
    pub size: u16,
    /// Whether the first piece alone carries CWR, as RFC 3168 §6.1.2 has it. If the kernel does not say so, the flag is
    /// one bit of a count that every piece repeats (AccECN, RFC 9768 §3.2.2).
    pub cwr_once: bool,
}

/// Kinds of super-frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffloadKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// Datagrams of one UDP flow, over IPv4 or IPv6.
    Udp,
    /// Another, by its number: IP fragments to be (3), tunnels.
    Other(u8),
}

impl Offload {
    /// Reads the header.
    pub fn read(header: &[u8; LENGTH]) -> Offload {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let kind = match header[1] & !GSO_ECN {
            GSO_NONE => None,
            1 => Some(OffloadKind::TcpV4),
            4 => Some(OffloadKind::TcpV6),
            5 => Some(OffloadKind::Udp),
            other => Some(OffloadKind::Other(other)),
        };
        let cwr_once = header[1] & GSO_ECN != 0;
        Offload {
            checksum: (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8))),
            gso: kind.map(|kind| Gso { kind, size: word(4), cwr_once }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(Offload::read(&[0; LENGTH]), Offload::default());
        let mut header = [0; LENGTH];
        header[0] = NEEDS_CHECKSUM;
        header[1] = 4 | GSO_ECN;
        header[4..6].copy_from_slice(&1428u16.to_ne_bytes());
        header[6..8].copy_from_slice(&54u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let offload = Offload::read(&header);
        assert_eq!(offload.checksum, Some((54, 16)));
        assert_eq!(offload.gso, Some(Gso { kind: OffloadKind::TcpV6, size: 1428, cwr_once: true }));
        header[1] = 1;
        let gso = Offload::read(&header).gso;
        assert_eq!(gso, Some(Gso { kind: OffloadKind::TcpV4, size: 1428, cwr_once: false }));
    }
}

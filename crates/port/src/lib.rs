//! Raw frame ports: whole Ethernet frames in, with the kernel's arrival stamps, and out.
//!
//! A [`Port`] is one network device, opened with [`open`] in the network namespace that the calling
//! thread is in at that moment; afterwards it may be used from any thread in any namespace. Two
//! backends stand behind the trait:
//!
//! - [`Backend::Packet`]: AF_PACKET. On any device, also inside an unprivileged user namespace. Frames
//!   carry kernel stamps; unfinished checksums are finished, hardware-stripped VLAN tags put back and
//!   super-frames (GSO, GRO) cut into wire frames, so what comes out is what a wire would have carried.
//! - [`Backend::Xdp`]: AF_XDP in copy mode. Faster, but root only, and with conditions on the device:
//!   see [`Backend::Xdp`].
//!
//! On AF_PACKET the kernel's own stack sees the frames too: give the device no addresses, or it answers.
//!
//! Nothing is lost in silence: what the kernel dropped is in [`Port::kernel_drops`], what this crate
//! could not turn into wire frames in [`Port::refusals`], and each frame sent gets a [`SendOutcome`].

pub mod checksum;
mod device;
mod error;
mod intake;
pub mod offload;
mod own;
mod packet;
mod ring;
pub mod segment;
mod sources;
mod sys;
mod transmit;
mod xdp;

pub use error::PortError;
pub use own::{LINK_HEADER, OwnFrames};
pub use sources::take_only_from;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;

/// A frame as received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The frame from the Ethernet header on, VLAN tags included, without the frame check sequence.
    pub bytes: &'a [u8],
    /// The time at which the kernel took it from the device, in nanoseconds of CLOCK_REALTIME (mind steps of that
    /// clock); `None` if the kernel gave no stamp. All pieces of a super-frame carry the
    /// super-frame's stamp: the arrival of each of them is not known. The first frames after
    /// opening (some 40) are stamped when they are copied, a few microseconds later than the others,
    /// because the kernel switches stamping on by deferred work.
    pub stamp: Option<u64>,
}

/// The fate of one frame handed to [`Port::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// The device took it.
    Sent,
    /// Larger than the device's MTU (with link header and one VLAN tag) allows.
    TooBig,
    /// Not taken, with the system's error number: ENOBUFS or EAGAIN if the device stayed busy or has
    /// no carrier, ENETDOWN if it is down, EINVAL if the frame is shorter than a link header.
    Refused(i32),
}

/// Frames that arrived but could not be handed on as wire frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals {
    /// Larger than a slot, and the kernel had no memory to keep the rest.
    pub truncated: u64,
    /// Super-frames that this crate cannot cut, and frames whose checksum could not be finished.
    pub unsegmentable: u64,
    /// The reason why the latest of them was refused.
    pub reason: Option<segment::Unsegmentable>,
}

impl Refusals {
    /// The number of frames refused in all.
    pub fn total(&self) -> u64 {
        self.truncated + self.unsegmentable
    }
}

/// One network device, as a source and a sink of whole frames.
pub trait Port: Send {
    /// Hands the waiting frames to `sink`, oldest first, and returns their number; does not wait. It stops
    /// after `budget` frames; if a super-frame is cut, after its last piece, hence up to 64 KiB later.
    ///
    /// # Errors
    /// Only if receiving itself fails. An idle or dead device looks the same here: see
    /// [`Port::check`].
    fn receive(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError>;

    /// Sends the frames in order without waiting for the device (retries take some microseconds) and
    /// without allocating, and tells `outcome` once for each frame, in order, its index and fate.
    ///
    /// # Errors
    /// [`PortError::Down`] and [`PortError::Gone`]; every frame still had its outcome.
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError>;

    /// The descriptor that poll(2) reports readable when frames wait. On POLLERR call [`Port::check`],
    /// which also clears the condition.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Asks the kernel for the state of the device (a handful of cheap system calls; some times a
    /// second is fine) and refreshes [`Port::mtu`].
    ///
    /// # Errors
    /// [`PortError::Down`] until the device is up again, [`PortError::Gone`] for ever.
    fn check(&mut self) -> Result<(), PortError>;

    /// Frames that the kernel dropped because nobody took them in time, since the port was opened.
    fn kernel_drops(&mut self) -> u64;

    /// Frames that arrived but could not be handed on, since the port was opened.
    fn refusals(&self) -> Refusals;

    /// The name under which the device was opened.
    fn device(&self) -> &str;

    /// The largest network-layer packet of the device, in bytes, as of the last [`Port::check`].
    fn mtu(&self) -> u32;

    /// The backend in words, with its mode: `packet`, `xdp (native)`, `xdp (generic)`.
    fn backend_name(&self) -> &'static str;
}

/// A way to exchange frames with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// AF_PACKET: the default, on every device, with kernel stamps.
    #[default]
    Packet,
    /// AF_XDP in copy mode, in the driver if it can, otherwise behind it: faster, without stamps
    /// (use your own clock), and it takes the frames away from the kernel's own stack.
    ///
    /// Only for devices whose frames are complete on arrival: nothing tells here that a checksum is
    /// unfinished, a VLAN tag set aside or a frame a super-frame. A physical interface with `gro off
    /// rxvlan off` is safe. On a virtual pair switch `tx off tso off gso off txvlan off` on the *peer*
    /// (and `gro off` on both), or the receiver discards what passes; this crate cannot see the peer and
    /// does not check. Refused for MTUs above 3822 bytes, for several receive queues, and if maps may
    /// not be created (ordinary users).
    Xdp,
}

impl Backend {
    /// Every backend.
    pub const ALL: [Backend; 2] = [Backend::Packet, Backend::Xdp];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Packet => "packet",
            Backend::Xdp => "xdp",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of a backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a backend: expected packet or xdp")]
pub struct UnknownBackend(pub String);

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Backend, UnknownBackend> {
        let found = Backend::ALL.into_iter().find(|backend| backend.name() == text.trim());
        found.ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// Opens `device` of the calling thread's network namespace.
///
/// # Errors
/// [`PortError::NoSuchDevice`], [`PortError::Permission`], [`PortError::Down`] never (a port may be
/// opened on a device that is down), [`PortError::Unsupported`] if the backend cannot serve it.
pub fn open(device: &str, backend: Backend) -> Result<Box<dyn Port>, PortError> {
    match backend {
        Backend::Packet => Ok(Box::new(packet::PacketPort::open(device)?)),
        Backend::Xdp => Ok(Box::new(xdp::XdpPort::open(device)?)),
    }
}

//! Ways for octets between nodes: what a carrier asks of datagrams and of Ethernet, and how both wait.

use crate::NodesError;
use crate::address::Address;
use crate::ethernet::Ethernet;
use crate::udp::Udp;
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};
use trunkline_core::Span;

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Longest sleep: so soon a stop is noticed.
pub(crate) const NAP: Span = Span::from_millis(20);

/// A way for octets between nodes, which are numbered.
pub(crate) trait Wire: fmt::Debug + Send {
    /// Where this node is, as its peers have to know it.
    fn address(&self) -> Result<Address, NodesError>;

    /// Tells where all nodes are. Returns the octets of theirs that it had to take out of what has come already.
    fn meet(&mut self, peers: &[Address]) -> Result<Bytes, NodesError>;

    /// Sends octets to a node, in two parts that it puts together.
    fn send(&mut self, to: usize, parts: [&[u8]; 2]) -> Result<(), NodesError>;

    /// Sends frames of one size to a node, the last of which may be shorter.
    fn send_train(&mut self, to: usize, train: &[[&[u8]; 2]]) -> Result<(), NodesError> {
        train.iter().try_for_each(|&parts| self.send(to, parts))
    }

    /// Whether there is a multicast group of which it is not known who hears it.
    fn has_group(&self) -> bool {
        false
    }

    /// Sends octets to the group, if there is one.
    fn send_to_group(&mut self, _octets: &[u8]) -> Result<(), NodesError> {
        Ok(())
    }

    /// Tells whether all others hear the group: else what is for all goes to each.
    fn settle_group(&mut self, _heard: bool) {}

    /// Sends octets to all nodes but this one. Returns how often they were sent.
    fn send_to_all(&mut self, me: usize, parts: [&[u8]; 2]) -> Result<u64, NodesError>;

    /// The next octets that have come: of a frame or a word, or of several behind each other; `None` if there are none now.
    fn receive(&mut self) -> Result<Option<Bytes>, NodesError>;

    /// The next octets that have come, or come within a [`NAP`].
    fn await_next(&mut self) -> Result<Option<Bytes>, NodesError> {
        if becomes_readable(&self.descriptor(), NAP)? { self.receive() } else { Ok(None) }
    }

    /// What poll(2) reports readable when something has come.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Whether a node's host says that nobody listens there.
    fn refuses(&self, _to: usize) -> bool {
        false
    }

    /// What the kernel dropped because the receive memory was full; `None` if it does not tell.
    fn dropped(&mut self) -> Option<u64>;
}

/// One of the wires. What is called for each frame is called of its own type, so that it can be inlined.
#[derive(Debug)]
pub(crate) enum AnyWire {
    Udp(Udp),
    Ethernet(Ethernet),
}

impl AnyWire {
    #[inline]
    pub fn send(&mut self, to: usize, parts: [&[u8]; 2]) -> Result<(), NodesError> {
        match self {
            AnyWire::Udp(wire) => wire.send(to, parts),
            AnyWire::Ethernet(wire) => wire.send(to, parts),
        }
    }

    #[inline]
    pub fn receive(&mut self) -> Result<Option<Bytes>, NodesError> {
        match self {
            AnyWire::Udp(wire) => wire.receive(),
            AnyWire::Ethernet(wire) => wire.receive(),
        }
    }

    #[inline]
    pub fn await_next(&mut self) -> Result<Option<Bytes>, NodesError> {
        match self {
            AnyWire::Udp(wire) => wire.await_next(),
            AnyWire::Ethernet(wire) => wire.await_next(),
        }
    }
}

impl Deref for AnyWire {
    type Target = dyn Wire;

    fn deref(&self) -> &Self::Target {
        match self {
            AnyWire::Udp(wire) => wire,
            AnyWire::Ethernet(wire) => wire,
        }
    }
}

impl DerefMut for AnyWire {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            AnyWire::Udp(wire) => wire,
            AnyWire::Ethernet(wire) => wire,
        }
    }
}

/// Whether something to be read comes within `wait`.
#[inline(never)]
pub(crate) fn becomes_readable(
    descriptor: &BorrowedFd<'_>,
    wait: Span,
) -> Result<bool, NodesError> {
    let mut sockets = [PollFd::new(descriptor, PollFlags::IN)];
    let nanos = wait.as_nanos();
    let (tv_sec, tv_nsec) = ((nanos / SECOND) as i64, (nanos % SECOND) as i64);
    match poll(&mut sockets, Some(&Timespec { tv_sec, tv_nsec })) {
        Ok(0) | Err(Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(NodesError::system("wait for a frame")(error.into())),
    }
}

/// Waits until more can be sent, a second at most.
pub(crate) fn wait_to_send(socket: &impl AsFd) {
    let mut sockets = [PollFd::new(socket, PollFlags::OUT)];
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    let _ = poll(&mut sockets, Some(&second));
}

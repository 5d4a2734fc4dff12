//! What carries a node's frames to its peers and theirs to it.

use crate::address::{Address, Place};
use crate::ethernet::Ethernet;
use crate::udp::Udp;
use crate::wire::{AnyWire, becomes_readable};
use crate::words::extent;
use crate::{NodesError, Terms};
use bytes::{Bytes, BytesMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trunkline_core::Span;
use trunkline_transport::cstar::{Destination, Frame, NodeId};

/// Most frames that are sent as one (choices: what is within the kernel's limits, 64 segments of 65,507 octets).
const MOST_OF_TRAIN: usize = 64;
const LONGEST_TRAIN: usize = 65_000;

/// A node's way to its peers.
#[derive(Debug)]
pub struct Carrier {
    wire: AnyWire,
    me: NodeId,
    peers: Vec<Address>,
    out: BytesMut,
    /// What came behind the last frame or word.
    rest: Bytes,
    /// Whose words have come by the multicast group.
    by_group: Vec<bool>,
    /// Frames for which it has memory, and most bytes of one's payload.
    buffers: u32,
    payload: u32,
    /// When this process began, and those that were heard, as they say: 0 if they were not.
    began: u64,
    begun: Vec<u64>,
    /// What all nodes must have alike.
    terms: Terms,
    /// Whether a group was asked for, and whether not all hear it.
    grouped: bool,
    unheard: bool,
    /// Frames and greetings sent.
    pub sent: u64,
    /// Frames and greetings received.
    pub received: u64,
}

impl Carrier {
    /// A carrier at `place` whose receive memory holds `buffers` frames of `payload` bytes each.
    ///
    /// # Errors
    /// If the place cannot be had, or the kernel gives less memory than that. A careful node must not start then: frames
    /// would be dropped there that it has promised to take.
    pub fn bind(place: &Place, buffers: u32, payload: u32) -> Result<Carrier, NodesError> {
        let wire = match place {
            Place::Udp(address) => AnyWire::Udp(Udp::bind(*address, buffers, payload)?),
            Place::Group(address, group) => {
                AnyWire::Udp(Udp::with_group(*address, *group, buffers, payload)?)
            }
            Place::Device(device) => AnyWire::Ethernet(Ethernet::open(device, buffers, payload)?),
        };
        let (me, peers, out, by_group) = (NodeId(0), Vec::new(), BytesMut::new(), Vec::new());
        let grouped = matches!(place, Place::Group(..));
        Ok(Carrier {
            wire,
            me,
            peers,
            out,
            rest: Bytes::new(),
            by_group,
            buffers,
            payload,
            began: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |it| it.as_nanos() as u64),
            begun: Vec::new(),
            terms: Terms::default(),
            grouped,
            unheard: false,
            sent: 0,
            received: 0,
        })
    }

    /// Where it is, as its peers have to know it.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn address(&self) -> Result<Address, NodesError> {
        self.wire.address()
    }

    /// Most bytes of a frame's payload.
    pub fn payload(&self) -> u32 {
        self.payload
    }

    /// Tells where all nodes are, by their numbers, and which of them this one is. What others than they have sent till now is
    /// dropped.
    ///
    /// # Errors
    /// If an address is of another kind than the carrier's, or the kernel refuses to hand over what has come.
    pub fn meet(&mut self, me: NodeId, peers: Vec<Address>) -> Result<(), NodesError> {
        self.rest = self.wire.meet(&peers)?;
        self.by_group = vec![false; peers.len()];
        self.begun = vec![0; peers.len()];
        (self.me, self.peers) = (me, peers);
        Ok(())
    }

    /// Tells what all nodes must have alike. They do not begin with one that has told something else.
    pub fn agree(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// What all nodes must have alike.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The same, with what the message layer demands besides.
    pub(crate) fn agree_also(&mut self, layer: Vec<(&'static str, String)>) {
        self.terms.add(layer);
    }

    /// Which node it is told that this one is.
    pub(crate) fn me(&self) -> NodeId {
        self.me
    }

    /// Whether there is such a node, and it is another one.
    #[inline]
    fn is_peer(&self, node: NodeId) -> bool {
        usize::from(node.0) < self.peers.len() && node != self.me
    }

    /// Sees that frames can go to a node, or come from it.
    ///
    /// # Errors
    /// If there is no such peer.
    #[inline]
    pub(crate) fn check_peer(&self, node: NodeId) -> Result<(), NodesError> {
        if self.is_peer(node) {
            return Ok(());
        }
        Err(NodesError::Stranger { node, me: self.me, nodes: self.peers.len() })
    }

    /// Sees that so many bytes fit in a frame: its receiver has memory for no more.
    #[inline]
    fn check_length(&self, bytes: usize) -> Result<(), NodesError> {
        if bytes <= self.payload as usize {
            return Ok(());
        }
        Err(NodesError::Long { bytes, most: self.payload })
    }

    /// Frames for which it has memory.
    pub(crate) fn buffers(&self) -> u32 {
        self.buffers
    }

    /// When this process began, in nanoseconds of the system's clock.
    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// A node says when its process began. Whether another process of its number was heard first.
    pub(crate) fn is_another(&mut self, NodeId(node): NodeId, began: u64) -> bool {
        let Some(known) = self.begun.get_mut(usize::from(node)) else { return false };
        if *known == 0 {
            *known = began;
        }
        *known != began
    }

    /// Of the processes of this number the one that began then is the node.
    pub(crate) fn hears_anew(&mut self, NodeId(node): NodeId, began: u64) {
        if let Some(known) = self.begun.get_mut(usize::from(node)) {
            *known = began;
        }
    }

    /// Whether a node's host says that nobody listens there; it may take some milliseconds to hear that.
    pub(crate) fn refuses(&self, NodeId(node): NodeId) -> bool {
        self.wire.refuses(node.into())
    }

    /// Where all nodes are.
    pub fn peers(&self) -> &[Address] {
        &self.peers
    }

    /// Whether there is a multicast group of which it is not known who hears it.
    pub(crate) fn has_group(&self) -> bool {
        self.wire.has_group()
    }

    /// Sends octets to the group.
    pub(crate) fn send_to_group(&mut self, octets: &[u8]) -> Result<(), NodesError> {
        self.wire.send_to_group(octets)
    }

    /// Tells whether all others hear the group: else what is for all goes to each.
    pub(crate) fn settle_group(&mut self, heard: bool) {
        self.wire.settle_group(heard);
        self.unheard = self.grouped && !(heard && self.wire.has_group());
    }

    /// Whether there should be a group, and not all hear it.
    pub(crate) fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// Notes that a node's word has come by the group.
    pub(crate) fn hears_by_group(&mut self, NodeId(from): NodeId) {
        if let Some(it) = self.by_group.get_mut(usize::from(from)) {
            *it = true;
        }
    }

    /// Whether a node's words come by the group.
    pub(crate) fn hears_group_of(&self, NodeId(node): NodeId) -> bool {
        self.by_group.get(usize::from(node)).copied().unwrap_or(false)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If there is no such peer, a fragment is longer than a frame, or the kernel refuses it for another reason than that
    /// nobody listens there, which a dead peer's death explains.
    pub fn send(&mut self, frame: &Frame) -> Result<(), NodesError> {
        if frame.list.is_empty() {
            return self.send_parts(frame.to, [&frame.header(), &frame.data]);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        frame.encode(&mut out);
        let sent = self.send_parts(frame.to, [&out, &[]]);
        self.out = out;
        sent
    }

    /// Sends the octets of a frame, in two parts.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    #[inline]
    pub(crate) fn send_parts(
        &mut self,
        to: Destination,
        parts: [&[u8]; 2],
    ) -> Result<(), NodesError> {
        self.check_length(parts[1].len())?;
        match to {
            Destination::Node(node) => {
                self.check_peer(node)?;
                self.wire.send(node.0.into(), parts)?;
                self.sent += 1;
            }
            Destination::All => self.sent += self.wire.send_to_all(self.me.0.into(), parts)?,
        }
        Ok(())
    }

    /// Whether a frame can be sent behind others as one train: to the same node, and as long as all of them or, as the last,
    /// shorter.
    pub(crate) fn fits(train: &[Frame], frame: &Frame) -> bool {
        let (Some(first), Some(last)) = (train.first(), train.last()) else { return true };
        let size = first.size();
        matches!(frame.to, Destination::Node(_))
            && frame.to == first.to
            && first.list.is_empty()
            && frame.list.is_empty()
            && last.size() == size
            && frame.size() <= size
            && train.len() < MOST_OF_TRAIN
            && size as usize * (train.len() + 1) <= LONGEST_TRAIN
    }

    /// Sends frames that [fit](Carrier::fits) together.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn send_train(&mut self, train: &[Frame]) -> Result<(), NodesError> {
        let to = match train {
            [] => return Ok(()),
            [one] => return self.send(one),
            [Frame { to: Destination::Node(to), data, .. }, ..] => {
                self.check_peer(*to)?;
                // The others are no longer.
                self.check_length(data.len())?;
                usize::from(to.0)
            }
            all => return all.iter().try_for_each(|frame| self.send(frame)),
        };
        let headers: Vec<_> = train.iter().map(Frame::header).collect();
        let parts = headers.iter().zip(train).map(|(header, it)| [&header[..], &it.data[..]]);
        self.wire.send_train(to, &parts.collect::<Vec<_>>())?;
        self.sent += train.len() as u64;
        Ok(())
    }

    /// Sends octets to a node.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub fn send_to(&mut self, NodeId(to): NodeId, octets: &[u8]) -> Result<(), NodesError> {
        if usize::from(to) < self.peers.len() {
            self.wire.send(to.into(), [octets, &[]])?;
            self.sent += 1;
        }
        Ok(())
    }

    /// The octets of the next frame or word that has come, or comes within `wait`; at once with no time. Several lie
    /// together in blocks of 8 to 64 KiB: copy what is kept for long.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Bytes>, NodesError> {
        let wait = Span::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        if self.is_there(wait)? { self.look() } else { Ok(None) }
    }

    /// Whether something may have come, now with no time, else within `wait`.
    pub(crate) fn is_there(&self, wait: Span) -> Result<bool, NodesError> {
        if wait.is_zero() || !self.rest.is_empty() {
            return Ok(true);
        }
        becomes_readable(&self.wire.descriptor(), wait)
    }

    /// The octets of the next frame or word that has come, or comes within 20 ms. Where the system can, waiting and taking is
    /// one call.
    ///
    /// # Errors
    /// If the kernel refuses.
    #[inline]
    pub fn await_next(&mut self) -> Result<Option<Bytes>, NodesError> {
        if !self.rest.is_empty() {
            return Ok(self.first_of_rest());
        }
        let came = self.wire.await_next()?;
        Ok(came.and_then(|came| self.first_of(came)))
    }

    /// The octets of the next frame or word that has come.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<Option<Bytes>, NodesError> {
        if !self.rest.is_empty() {
            return Ok(self.first_of_rest());
        }
        let came = self.wire.receive()?;
        Ok(came.and_then(|came| self.first_of(came)))
    }

    /// The first of the frames or words in what has come.
    #[inline]
    fn first_of(&mut self, came: Bytes) -> Option<Bytes> {
        if extent(&came) < came.len() {
            self.rest = came;
            return self.first_of_rest();
        }
        self.received += 1;
        Some(came)
    }

    #[inline(never)]
    fn first_of_rest(&mut self) -> Option<Bytes> {
        self.received += 1;
        let extent = extent(&self.rest);
        Some(self.rest.split_to(extent))
    }

    /// Frames that the kernel dropped because the receive memory was full, or that were damaged; `None` if it does not tell.
    pub fn dropped(&mut self) -> Option<u64> {
        self.wire.dropped()
    }
}

#[cfg(test)]
mod tests;

//! URP on a wire: each network packet as packed envelopes.

use super::{Delivered, Departure, Wired, octets};
use bytes::Bytes;
use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_transport::envelope::{self, Envelope, Reader, packed};
use trunkline_transport::protocol::Unit;
use trunkline_transport::urp::{
    Block, Characters, Mode, Part, Segment, Settings, SettingsError, Urp,
};
use trunkline_transport::{Endpoint, Extent, Payload};

/// An end that speaks URP over an open channel.
#[derive(Debug)]
pub struct UrpWire {
    urp: Urp<Bytes>,
    reader: Reader,
    /// Envelopes of a packet; 0 for whole blocks.
    packet: u32,
    /// Packets of the segment under way, and what it ends.
    parts: VecDeque<Part<Bytes>>,
    unit: Option<Unit>,
    data: Extent,
    /// Blocks and bytes sent at least once.
    blocks: u64,
    bytes: u64,
    /// Of what the other end has sent: blocks and bytes accepted.
    heard: u64,
    accepted: u64,
    inbox: VecDeque<Delivered>,
    /// Whether octets have been left out for want of room, so that they cannot be told.
    incomplete: bool,
    /// Whether the other end repairs nothing, so that the place of what comes is not known.
    lossy: bool,
    envelopes: Vec<Envelope>,
}

impl UrpWire {
    /// An end of a channel that is open at `now`, whose packets have at most so many envelopes; 0 for whole blocks.
    ///
    /// # Errors
    /// If the settings are not possible.
    pub fn new(now: Time, settings: Settings, packet: u32) -> Result<UrpWire, SettingsError> {
        Ok(UrpWire {
            reader: Reader::new(settings.check),
            urp: Urp::connected(now, settings)?,
            packet,
            parts: VecDeque::new(),
            unit: None,
            data: Extent::default(),
            blocks: 0,
            bytes: 0,
            heard: 0,
            accepted: 0,
            inbox: VecDeque::new(),
            incomplete: false,
            lossy: !settings.mode.has_trailers(),
            envelopes: Vec::new(),
        })
    }

    /// The same end, whose peer sends in `theirs`.
    pub fn hearing(self, theirs: Mode) -> UrpWire {
        UrpWire { urp: self.urp.hearing(theirs), lossy: !theirs.has_trailers(), ..self }
    }

    /// The protocol itself.
    pub fn urp(&self) -> &Urp<Bytes> {
        &self.urp
    }

    /// Cuts the next segment into packets; `None` if there is none.
    fn next_segment(&mut self, now: Time) -> Option<()> {
        let segment = self.urp.transmit(now)?;
        (self.unit, self.data) = match &segment {
            Segment::Block(block) => self.count(block),
            Segment::Characters(characters) => self.count_characters(characters),
            Segment::Control(_) => (None, Extent::default()),
        };
        self.parts.extend(segment.parts(self.packet));
        Some(())
    }

    /// The unit that a block is, and its stretch of the stream if it goes out for the first time.
    fn count(&mut self, block: &Block<Bytes>) -> (Option<Unit>, Extent) {
        let mut data = Extent::default();
        if block.first_sent.is_none() {
            data = self.next_stretch(&block.data);
            self.blocks += 1;
        }
        let number = block.number_among(self.blocks);
        let Block { eligible, first_sent, .. } = *block;
        (Some(Unit { number, end: block.ends_message(), eligible, first_sent }), data)
    }

    /// The request that characters complete is the unit.
    fn count_characters(&mut self, characters: &Characters<Bytes>) -> (Option<Unit>, Extent) {
        let Characters { eligible, request, .. } = *characters;
        let end = characters.ends_message();
        let unit = request.map(|number| Unit { number, end, eligible, first_sent: None });
        (unit, self.next_stretch(&characters.data))
    }

    fn next_stretch(&mut self, data: &Bytes) -> Extent {
        let stretch = Extent::new(self.bytes, Payload::len(data));
        self.bytes += u64::from(stretch.len);
        stretch
    }

    fn accept(&mut self) -> Option<u64> {
        let mut last = None;
        while let Some(delivery) = self.urp.take() {
            let (number, bytes) = (self.heard, Payload::len(&delivery.data));
            let untold = self.incomplete || self.lossy;
            let right = untold || octets::are(&delivery.data, self.accepted);
            self.inbox.push_back(Delivered { number, bytes, end: delivery.end, right });
            self.heard += 1;
            self.accepted += u64::from(bytes);
            last = Some(number);
        }
        last
    }
}

impl Wired for UrpWire {
    fn end(&self) -> &dyn Endpoint {
        &self.urp
    }

    fn end_mut(&mut self) -> &mut dyn Endpoint {
        &mut self.urp
    }

    fn offer(&mut self, now: Time, data: Extent, end: bool) {
        self.urp.offer(now, octets::from(data.offset, data.len), end);
    }

    fn depart(&mut self, now: Time, room: usize, out: &mut Vec<u8>) -> Option<Departure> {
        if self.parts.is_empty() {
            self.next_segment(now)?;
        }
        let part = self.parts.pop_front()?;
        self.envelopes.clear();
        envelope::write(&part, &mut self.envelopes);
        let cut = packed::write(&self.envelopes, room, out) > 0;
        let (size, controls) = (part.envelopes(), part.controls() as u16);
        let (mut unit, mut data) = (None, Extent::default());
        if !self.parts.iter().any(Part::brings_data) {
            (unit, data) = (self.unit.take(), std::mem::take(&mut self.data));
        }
        Some(Departure { size, controls, cut, data, unit, filler: 0 })
    }

    /// A packet ends one block at most, and a block is accepted with its last packet or never.
    fn arrive(&mut self, now: Time, octets: &[u8], _size: u32) -> Option<u64> {
        self.envelopes.clear();
        self.incomplete |= packed::read(octets, &mut self.envelopes)? > 0;
        let mut last = None;
        for part in self.reader.read(&self.envelopes) {
            let Part { data, control, trailer } = part;
            self.urp.receive(now, Part { data: data.into(), control, trailer });
            last = self.accept().or(last);
        }
        last
    }

    fn take(&mut self) -> Option<Delivered> {
        self.inbox.pop_front()
    }
}

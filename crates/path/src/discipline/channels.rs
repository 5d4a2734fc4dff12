//! The channels that hold data: what round-robin, two-lists, drr and fq-codel have in common.

use super::links::{Links, List};
use super::longest::Longest;
use super::packets::Packets;
use super::tally::Tally;
use super::{Backlog, Drops, Service};
use crate::Limit;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use trunkline_core::{Channel, DropCause, Metered, Time};

/// One of the two lists in which channels wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turns {
    /// The list that a channel joins when it becomes active, and the only list of most disciplines.
    First = 0,
    /// The old list of fq-codel, the low list of two-lists.
    Second = 1,
}

/// From which end of the longest channel packets are shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The oldest packet.
    Head,
    /// The newest.
    Tail,
}

/// Queues by channel, the order of their turns, and the longest of them. Every operation takes
/// constant time however many channels there are.
///
/// A channel has state only while it holds data ("a channel is active only when it has data in the
/// board's memory", Hawley 1989 §1.2), unless the discipline keeps it for longer.
#[derive(Debug)]
pub(super) struct Channels<P, S> {
    packets: Packets<P>,
    flows: Vec<Flow<S>>,
    free: Vec<u32>,
    by_key: Index,
    turns: [List; 2],
    links: Links,
    longest: Longest,
    tally: Tally,
    limit: Limit,
    keeps_idle: bool,
}

/// Which flow has the state of a channel.
#[derive(Debug)]
enum Index {
    /// Of any channel.
    Any(HashMap<Channel, u32, BuildHasherDefault<KeyHasher>>),
    /// Of channels numbered from zero: their flows, or [`NOBODY`].
    Few(Vec<u32>),
}

/// No flow at all.
const NOBODY: u32 = u32::MAX;

impl Index {
    /// The entry of the flow of channel `key`.
    #[inline(always)]
    fn entry(&mut self, key: Channel) -> &mut u32 {
        match self {
            Index::Any(flows) => flows.entry(key).or_insert(NOBODY),
            Index::Few(flows) => &mut flows[key.0 as usize],
        }
    }

    fn remove(&mut self, key: Channel) {
        match self {
            Index::Any(flows) => {
                flows.remove(&key);
            }
            Index::Few(flows) => flows[key.0 as usize] = NOBODY,
        }
    }
}

/// One channel.
#[derive(Debug)]
struct Flow<S> {
    key: Channel,
    queue: List,
    /// Bytes that it has still to send, and those of its first packet that have left already.
    bytes: u64,
    sent: u32,
    listed: Option<Turns>,
    state: S,
}

impl<P: Metered, S: Default> Channels<P, S> {
    /// No channels, and at most `limit` in all of them together. With `keeps_idle` a channel that
    /// shedding has emptied stays in its list until the discipline itself takes it out.
    pub fn new(limit: Limit, keeps_idle: bool) -> Channels<P, S> {
        Channels {
            packets: Packets::default(),
            flows: Vec::new(),
            free: Vec::new(),
            by_key: Index::Any(HashMap::default()),
            turns: [List::EMPTY; 2],
            links: Links::default(),
            longest: Longest::default(),
            tally: Tally::default(),
            limit,
            keeps_idle,
        }
    }

    /// No channels, which are all numbered below `count`.
    pub fn numbered(count: u32, limit: Limit, keeps_idle: bool) -> Channels<P, S> {
        let by_key = Index::Few(vec![NOBODY; count as usize]);
        Channels { by_key, ..Channels::new(limit, keeps_idle) }
    }

    /// Takes in `packet` of channel `key`, giving up what the limit has no room for. A channel that was in no
    /// list joins the first, and `activate` prepares its state.
    ///
    /// Packets of the longest channel give way, from its `end`. What waits since before the limit was
    /// lowered stays: then only as much gives way as the arrival brings.
    #[inline]
    pub fn enqueue(
        &mut self,
        now: Time,
        key: Channel,
        packet: P,
        end: End,
        drops: &mut Drops<P>,
        activate: impl FnOnce(&mut S),
    ) {
        if self.tally.is_hopeless(packet.size(), self.limit) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        let ceiling = self.tally.ceiling(self.limit);
        let id = self.put(now, key, packet, activate);
        while self.tally.exceeds(self.limit, ceiling) {
            self.shed(id, end, drops);
        }
    }

    /// Takes in `packet`, which came at `came`, whatever the limit says.
    #[inline(always)]
    pub fn put(
        &mut self,
        came: Time,
        key: Channel,
        packet: P,
        activate: impl FnOnce(&mut S),
    ) -> u32 {
        let id = self.push(came, key, packet);
        if self.flows[id as usize].listed.is_none() {
            activate(&mut self.flows[id as usize].state);
            self.list(id, Turns::First);
        }
        id
    }

    #[inline(always)]
    fn push(&mut self, now: Time, key: Channel, packet: P) -> u32 {
        let id = self.find_or_open(key);
        let size = packet.size();
        self.tally.add(size);
        let flow = &mut self.flows[id as usize];
        let (was_idle, old) = (flow.queue.is_empty(), flow.bytes);
        flow.bytes += u64::from(size);
        self.packets.push_back(&mut flow.queue, now, packet);
        match was_idle {
            true => self.longest.insert(id, flow.bytes),
            false => self.longest.change(id, old, flow.bytes),
        }
        id
    }

    #[inline]
    fn find_or_open(&mut self, key: Channel) -> u32 {
        let entry = self.by_key.entry(key);
        if *entry == NOBODY {
            *entry = open(&mut self.flows, &mut self.free, key);
        }
        *entry
    }

    /// Gives up one packet of the longest channel, or the packet that has just arrived on `arrival` if
    /// the longest channel's only packet has been partly sent.
    fn shed(&mut self, arrival: u32, end: End, drops: &mut Drops<P>) {
        let longest = self.longest.longest().unwrap_or(arrival);
        let flow = &self.flows[longest as usize];
        let untouchable = flow.sent > 0 && flow.queue.is_single();
        let victim = if untouchable { arrival } else { longest };
        if let Some(packet) = self.remove(victim, end) {
            drops.push(packet, DropCause::QueueLimit);
        }
        if self.is_idle(victim) && !self.keeps_idle {
            self.forget(victim);
        }
    }

    fn remove(&mut self, id: u32, end: End) -> Option<P> {
        if end == End::Head {
            return self.pop(id).map(|(_, packet)| packet);
        }
        let packet = self.packets.pop_back(&mut self.flows[id as usize].queue)?;
        self.tally.remove(packet.size());
        self.shrink(id, packet.size());
        Some(packet)
    }

    /// Takes the first packet of `id` out whole, with the time at which it came.
    #[inline(always)]
    pub fn pop(&mut self, id: u32) -> Option<(Time, P)> {
        let (came, packet) = self.packets.pop_front(&mut self.flows[id as usize].queue)?;
        self.tally.remove(packet.size());
        self.shrink(id, packet.size());
        Some((came, packet))
    }

    /// Cuts a piece of at most `most` bytes off the first packet of `id`. It counts as waiting until
    /// it is [released](Channels::release).
    pub fn cut(&mut self, id: u32, most: u32) -> Option<Service<P>> {
        let flow = &mut self.flows[id as usize];
        let packet = self.packets.front(flow.queue)?;
        let left = packet.size() - flow.sent;
        if left > most {
            flow.sent += most;
            let channel = packet.channel();
            self.shrink(id, most);
            return Some(Service { channel, bytes: most, controls: 0, packet: None });
        }
        flow.sent = 0;
        let (_, packet) = self.packets.pop_front(&mut flow.queue)?;
        self.shrink(id, left);
        Some(Service { bytes: left, ..Service::whole(packet) })
    }

    /// A piece cut before leaves the discipline.
    pub fn release(&mut self, piece: &Service<P>) {
        self.tally.release(piece);
    }

    /// The backlog of `id` has shrunk by `bytes`, after its queue has.
    #[inline(always)]
    fn shrink(&mut self, id: u32, bytes: u32) {
        let flow = &mut self.flows[id as usize];
        let old = flow.bytes;
        flow.bytes -= u64::from(bytes);
        match flow.queue.is_empty() {
            true => self.longest.remove(id),
            false => self.longest.change(id, old, flow.bytes),
        }
    }

    /// The channel whose turn is next in `turns`.
    #[inline]
    pub fn first(&self, turns: Turns) -> Option<u32> {
        self.turns[turns as usize].first()
    }

    /// Whether any channel is in a list.
    pub fn any_listed(&self) -> bool {
        self.turns.iter().any(|list| !list.is_empty())
    }

    /// Puts `id` at the end of `turns`, wherever it was before.
    #[inline]
    pub fn list(&mut self, id: u32, turns: Turns) {
        self.unlist(id);
        self.links.push_back(&mut self.turns[turns as usize], id);
        self.flows[id as usize].listed = Some(turns);
    }

    /// Takes `id` out of the list that it is in. Its state stays.
    #[inline]
    pub fn unlist(&mut self, id: u32) {
        if let Some(turns) = self.flows[id as usize].listed.take() {
            self.links.remove(&mut self.turns[turns as usize], id);
        }
    }

    /// Forgets the idle channel `id`.
    pub fn forget(&mut self, id: u32) {
        self.unlist(id);
        self.by_key.remove(self.flows[id as usize].key);
        self.free.push(id);
    }

    /// Whether `id` holds no data.
    pub fn is_idle(&self, id: u32) -> bool {
        self.flows[id as usize].queue.is_empty()
    }

    /// The size of the first packet of `id`, sent bytes included.
    pub fn front_size(&self, id: u32) -> Option<u32> {
        self.packets.front(self.flows[id as usize].queue).map(Metered::size)
    }

    /// Bytes that `id` has still to send.
    #[inline]
    pub fn bytes(&self, id: u32) -> u64 {
        self.flows[id as usize].bytes
    }

    /// The discipline's own state of `id`, to look at.
    #[inline]
    pub fn look(&self, id: u32) -> &S {
        &self.flows[id as usize].state
    }

    /// The discipline's own state of `id`.
    #[inline]
    pub fn state(&mut self, id: u32) -> &mut S {
        &mut self.flows[id as usize].state
    }

    /// Gives up one packet from the `end` of the longest channel.
    pub fn shed_longest(&mut self, end: End, drops: &mut Drops<P>) {
        if let Some(longest) = self.longest.longest() {
            self.shed(longest, end, drops);
        }
    }

    /// What is held.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.tally.backlog()
    }

    /// Changes the limit.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}

/// Makes the state of channel `key`, if one was forgotten before if there is any.
fn open<S: Default>(flows: &mut Vec<Flow<S>>, free: &mut Vec<u32>, key: Channel) -> u32 {
    let (queue, state) = (List::EMPTY, S::default());
    let flow = Flow { key, queue, bytes: 0, sent: 0, listed: None, state };
    if let Some(id) = free.pop() {
        flows[id as usize] = flow;
        return id;
    }
    flows.push(flow);
    (flows.len() - 1) as u32
}

/// Spreads 64 bits over 64 bits: the two halves of a product with an odd constant (the golden
/// ratio's fraction), folded. The same on every machine and in every run.
pub(super) fn spread(key: u64) -> u64 {
    let wide = u128::from(key ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// Hashes the one `u64` of a [`Channel`]. Nothing ever iterates over the map, so its order cannot matter.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, key: u64) {
        self.0 = spread(self.0 ^ key);
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

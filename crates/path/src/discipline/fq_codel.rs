//! Flow queueing with CoDel (RFC 8290).

use super::channels::{Channels, End, Turns, spread};
use super::codel::{Control, Law, NEVER, Source};
use super::{Backlog, Discipline, Drops, Service};
use crate::Limit;
use trunkline_core::{Channel, Metered, Span, Time};

/// Flow queueing with CoDel (RFC 8290): channels are hashed into queues, each with a CoDel of its own;
/// queues that have become active go before those that keep holding data.
///
/// Where the RFC leaves a choice or its text and Linux differ:
/// * The hash is the same in every run: it takes no random perturbation (§4.1 salts it against attackers).
/// * A queue's turn ends when its credits are zero or less ("has already dequeued at least a quantum of
///   bytes", §4.2), as in Linux.
/// * Over the limit, packets go one by one from the head of the fattest queue until the rest fits
///   (§5.2.3). §4.1 takes half of that queue, up to 64 packets, to save searches; here a search costs nothing.
///   "Fattest" is within 5.9 %.
/// * A queue is never dropped from by CoDel while at most `mtu` bytes wait *in that queue* (RFC 8289 §5.6,
///   applied to each queue); Linux compares the bytes of all queues.
///
/// A queue's CoDel variables outlive its packets, as its re-entry rule needs; there are as many as
/// queues ever used.
#[derive(Debug)]
pub struct FqCodel<P> {
    queues: Channels<P, Queue>,
    flows: u32,
    quantum: u32,
    law: Law,
}

#[derive(Debug, Default)]
struct Queue {
    /// Bytes that it may send before its turn ends.
    credits: i64,
    control: Control,
}

/// The parameters of flow queueing with CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodelSettings {
    /// How much may wait in all.
    pub limit: Limit,
    /// How many queues the channels are hashed into, at least 1.
    pub flows: u32,
    /// Bytes of credit for each turn, at least 1.
    pub quantum: u32,
    /// The standing delay that is acceptable.
    pub target: Span,
    /// How long it may be exceeded before the first drop.
    pub interval: Span,
    /// Bytes in a queue up to which CoDel does not drop.
    pub mtu: u32,
    /// Are packets marked, that can be, instead of dropped (§5.2.6)?
    pub ecn: bool,
    /// The delay above which every packet is marked that can be (§5.2.7).
    pub ce_threshold: Option<Span>,
}

/// The list of queues that have become active.
const NEW: Turns = Turns::First;
/// The list of the others.
const OLD: Turns = Turns::Second;

/// One queue, as CoDel sees it.
struct One<'a, P> {
    queues: &'a mut Channels<P, Queue>,
    id: u32,
}

impl<P: Metered> Source<P> for One<'_, P> {
    fn pop(&mut self) -> Option<(Time, P)> {
        self.queues.pop(self.id)
    }
    fn bytes(&self) -> u64 {
        self.queues.bytes(self.id)
    }
}

impl<P: Metered> FqCodel<P> {
    /// Empty queues as `settings` say.
    pub fn new(settings: FqCodelSettings) -> FqCodel<P> {
        let FqCodelSettings { limit, flows, quantum, target, interval, mtu, ecn, .. } = settings;
        let ce_threshold = settings.ce_threshold.unwrap_or(NEVER);
        FqCodel {
            queues: Channels::numbered(flows.max(1), limit, true),
            flows: flows.max(1),
            quantum: quantum.max(1),
            law: Law { target, interval, mtu, ecn, ce_threshold },
        }
    }

    /// The queue that `channel` is hashed into.
    #[inline]
    fn queue_of(&self, channel: Channel) -> Channel {
        Channel(((u128::from(spread(channel.0)) * u128::from(self.flows)) >> 64) as u64)
    }

    /// What CoDel lets through of queue `id`.
    #[inline]
    fn pull(&mut self, id: u32, now: Time, drops: &mut Drops<P>) -> Option<P> {
        let mut control = self.queues.state(id).control;
        let mut one = One { queues: &mut self.queues, id };
        let packet = control.dequeue(&self.law, now, &mut one, drops);
        self.queues.state(id).control = control;
        packet
    }

    /// The queue whose turn it is, and the list it is in. Queues without credits get a quantum and go to the
    /// end of the old list on the way.
    #[inline]
    fn select(&mut self) -> Option<(u32, Turns)> {
        loop {
            let new = self.queues.first(NEW).map(|id| (id, NEW));
            let (id, list) = new.or_else(|| self.queues.first(OLD).map(|id| (id, OLD)))?;
            let queue = self.queues.state(id);
            if queue.credits > 0 {
                return Some((id, list));
            }
            queue.credits += i64::from(self.quantum);
            self.queues.list(id, OLD);
        }
    }
}

impl<P: Metered> Discipline<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let key = self.queue_of(packet.channel());
        let quantum = i64::from(self.quantum);
        self.queues.enqueue(now, key, packet, End::Head, drops, |queue| queue.credits = quantum);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        loop {
            let (id, list) = self.select()?;
            if let Some(packet) = self.pull(id, now, drops) {
                self.queues.state(id).credits -= i64::from(packet.size());
                return Some(Service::whole(packet));
            }
            // An emptied new queue waits in the old list, lest it starve the others (§4.2).
            match list {
                NEW => self.queues.list(id, OLD),
                OLD => self.queues.unlist(id),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.queues.set_limit(limit);
    }
}

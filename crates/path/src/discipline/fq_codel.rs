//! Flow queueing with CoDel (RFC 8290).

use super::channels::{Channels, End, Turns, spread};
use super::codel::{CODEL, Control, INTERVAL, INTERVAL_MAX, Law, NEVER, Source, TARGET};
use super::settings::settings;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, MTU, PACKET_QUANTUM, QUANTA, Service,
    Settings, Standing, TARGETS, TEN_SECONDS,
};
use crate::Limit;
use trunkline_core::{Channel, Metered, Span, Time};

settings! {
    /// Flow queueing with controlled delay (RFC 8290).
    pub struct FqCodelSettings {
        /// How much may wait in all; the fattest flow gives way (§5.2.3).
        limit: Limit = Limit::Packets(10_240);
        /// How many queues the flows are hashed into (§5.2.5).
        flows: u32 = 1024, "the number of flow queues" in 1..=1 << 20;
        /// Bytes of credit for each turn (§5.2.4).
        quantum: u32 as Bytes = PACKET_QUANTUM, "the quantum in bytes" in QUANTA;
        /// The standing delay that is acceptable.
        target: Span = TARGET, "the target" in TARGETS;
        /// How long it may be exceeded before the first drop.
        interval: Span = INTERVAL, "the interval" in target..=INTERVAL_MAX;
        /// Bytes in a queue up to which nothing is dropped from it: one maximal packet.
        #[serde(default = "default_mtu")]
        mtu: u32 as Bytes = MTU;
        /// Whether packets that can be marked are marked instead of dropped (§5.2.6).
        #[serde(default = "marks")]
        ecn: bool = true;
        /// The delay above which every packet that can be marked is, whatever CoDel says (§5.2.7).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold: Option<Span> = None, "the marking threshold ce_threshold" in Span::ZERO..=TEN_SECONDS;
    }
}

/// Kept descriptions from before it could be set.
fn default_mtu() -> u32 {
    MTU
}

/// Kept descriptions from before it could be turned off.
fn marks() -> bool {
    true
}

impl Settings for FqCodelSettings {
    type Queue<P: Metered> = FqCodel<P>;

    const ALIASES: &'static [&'static str] = &["fq", "cake"];

    const TRIALS: &'static [&'static str] = &[
        "flows=64,quantum=300,target=5ms,interval=20ms,mtu=100,limit=12p",
        "flows=2,target=1ms,interval=2ms,mtu=0,limit=5kB",
        "flows=2,target=1ms,interval=2ms,mtu=0,ecn=false,ce_threshold=0s,limit=5kB",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> FqCodel<P> {
        FqCodel::new(self)
    }

    fn assumptions(&self) -> Assumptions {
        let standing = Standing::Delay(self.target);
        Assumptions { early: Some(CODEL), standing, ..Assumptions::turns(self.quantum) }
    }
}

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

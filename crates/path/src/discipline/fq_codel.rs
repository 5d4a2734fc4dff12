//! Flow queueing with CoDel (RFC 8290), on demand by host and then by flow.

use super::channels::{Channels, End, Turns, spread};
use super::codel::{
    CODEL, Control, INTERVAL, INTERVAL_MAX, Law, NEVER, Source, TARGET, never_acts,
};
use super::links::{Links, List};
use super::longest::Longest;
use super::settings::{choice, settings};
use super::tally::Tally;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, MTU, PACKET_QUANTUM, QUANTA, Service,
    Settings, Sharing, Standing, TARGETS, TEN_SECONDS,
};
use crate::Limit;
use std::collections::HashMap;
use trunkline_core::{Channel, DropCause, Hosts, Metered, Span, Time};

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
        /// Whose equal shares come first, before those of flows: hosts that send, hosts that receive, or pairs of both
        /// (CAKE).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosts: Option<HostKey> = None;
    }
}

choice! {
    /// What counts as a host.
    pub enum HostKey {
        /// Where packets come from.
        Source = "source",
        /// Where they go.
        Destination = "destination",
        /// Each pair of both.
        Both = "both",
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
        "flows=64,quantum=300,target=5ms,interval=20ms,mtu=100,hosts=source,limit=12p",
        "flows=2,target=1ms,interval=2ms,mtu=0,hosts=both,limit=5kB",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> FqCodel<P> {
        FqCodel::new(self)
    }

    fn assumptions(&self) -> Assumptions {
        let standing = Standing::Delay(self.target);
        let idle = never_acts(self.limit, self.mtu);
        let (early, marks) = (Some(CODEL), self.ce_threshold);
        let by_flow =
            Assumptions { early, marks, standing, idle, ..Assumptions::turns(self.quantum) };
        match self.hosts {
            None => by_flow,
            Some(_) => Assumptions { sharing: Sharing::Unknown, ..by_flow },
        }
    }
}

/// Flow queueing with CoDel (RFC 8290): channels are hashed into queues, each with a CoDel of its own;
/// queues that have become active go before those that keep holding data.
///
/// The choices that the RFC leaves or in which its text and Linux differ:
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
struct Flows<P> {
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

impl<P: Metered> Flows<P> {
    /// Empty queues as `settings` say.
    fn new(settings: FqCodelSettings) -> Flows<P> {
        let FqCodelSettings { limit, flows, quantum, target, interval, mtu, ecn, .. } = settings;
        let ce_threshold = settings.ce_threshold.unwrap_or(NEVER);
        Flows {
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

impl<P: Metered> Discipline<P> for Flows<P> {
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

/// Flow queueing with CoDel, by flow alone or by host and then by flow.
#[derive(Debug)]
pub struct FqCodel<P>(Sharers<P>);

#[expect(clippy::large_enum_variant, reason = "the usual one is reached without a pointer")]
#[derive(Debug)]
enum Sharers<P> {
    ByFlow(Flows<P>),
    ByHost(Box<ByHost<P>>),
}

macro_rules! sharers {
    ($discipline:expr, $it:ident => $body:expr) => {
        match $discipline {
            FqCodel(Sharers::ByFlow($it)) => $body,
            FqCodel(Sharers::ByHost($it)) => $body,
        }
    };
}

impl<P: Metered> FqCodel<P> {
    /// Empty queues as `settings` say.
    pub fn new(settings: FqCodelSettings) -> FqCodel<P> {
        FqCodel(match settings.hosts {
            None => Sharers::ByFlow(Flows::new(settings)),
            Some(key) => Sharers::ByHost(Box::new(ByHost::new(settings, key))),
        })
    }
}

impl<P: Metered> Discipline<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        sharers!(self, it => it.enqueue(now, packet, drops));
    }
    #[inline]
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        sharers!(self, it => it.dequeue(now, drops))
    }
    fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        sharers!(self, it => it.introduce(channel, hosts));
    }
    fn backlog(&self) -> Backlog {
        sharers!(self, it => it.backlog())
    }
    fn set_limit(&mut self, limit: Limit) {
        sharers!(self, it => it.set_limit(limit));
    }
}

/// How many places hosts are hashed into.
const PLACES: u32 = 1024;

/// Deficit round robin over hosts, each of which shares its turns among its flows by FQ-CoDel.
///
/// CAKE (Høiland-Jørgensen, Täht and Morton 2018, §III.B) divides a flow's quantum by the number of its host's flows
/// instead, which gives the same shares and takes as many rounds for a packet as the host has flows. Here a packet
/// costs the same however many there are. When all is over the limit, the host with most bytes loses from its fattest
/// flow.
#[derive(Debug)]
struct ByHost<P> {
    settings: FqCodelSettings,
    key: HostKey,
    /// The hosts of channels whose packets do not tell.
    known: HashMap<Channel, Hosts>,
    places: Vec<Option<Box<Place<P>>>>,
    active: List,
    links: Links,
    longest: Longest,
    tally: Tally,
}

/// One host, or those that share a place.
#[derive(Debug)]
struct Place<P> {
    flows: Flows<P>,
    credits: i64,
    listed: bool,
}

impl<P: Metered> ByHost<P> {
    fn new(settings: FqCodelSettings, key: HostKey) -> ByHost<P> {
        ByHost {
            settings,
            key,
            known: HashMap::new(),
            places: (0..PLACES).map(|_| None).collect(),
            active: List::EMPTY,
            links: Links::default(),
            longest: Longest::default(),
            tally: Tally::default(),
        }
    }

    /// The place of the host that `packet` belongs to. A channel of unknown hosts counts as a host of its own.
    fn place_of(&self, packet: &P) -> u32 {
        let hosts = packet.hosts().or_else(|| self.known.get(&packet.channel()).copied());
        let number = match (hosts, self.key) {
            (None, _) => !packet.channel().0,
            (Some(hosts), HostKey::Source) => u64::from(hosts.source),
            (Some(hosts), HostKey::Destination) => u64::from(hosts.destination),
            (Some(hosts), HostKey::Both) => {
                u64::from(hosts.source) << 32 | u64::from(hosts.destination)
            }
        };
        (spread(number) >> 32) as u32 % PLACES
    }

    /// Does `work` on the flows of place `id`, and keeps the books of what that changes.
    fn at<R>(&mut self, id: u32, work: impl FnOnce(&mut Place<P>) -> R) -> Option<R> {
        let place = self.places[id as usize].as_mut()?;
        let before = place.flows.queues.tally();
        let result = work(place);
        let after = place.flows.queues.tally();
        self.tally.replace(before, after);
        let [was, is] = [before, after].map(|tally| tally.backlog());
        match (was.packets, is.packets) {
            (0, 0) => {}
            (0, _) => self.longest.insert(id, is.bytes),
            (_, 0) => self.longest.remove(id),
            _ => self.longest.change(id, was.bytes, is.bytes),
        }
        Some(result)
    }

    fn unlist(&mut self, id: u32) {
        self.links.remove(&mut self.active, id);
        if let Some(place) = &mut self.places[id as usize] {
            place.listed = false;
        }
    }
}

impl<P: Metered> Discipline<P> for ByHost<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.tally.is_hopeless(packet.size(), self.settings.limit) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        let (limit, ceiling) = (self.settings.limit, self.tally.ceiling(self.settings.limit));
        let id = self.place_of(&packet);
        let settings = FqCodelSettings { limit: Limit::Packets(u64::MAX), ..self.settings };
        let place = self.places[id as usize].get_or_insert_with(|| {
            Box::new(Place { flows: Flows::new(settings), credits: 0, listed: false })
        });
        if !place.listed {
            (place.listed, place.credits) = (true, i64::from(settings.quantum));
            self.links.push_back(&mut self.active, id);
        }
        self.at(id, |place| place.flows.enqueue(now, packet, drops));
        while self.tally.exceeds(limit, ceiling)
            && let Some(longest) = self.longest.longest()
        {
            self.at(longest, |place| place.flows.queues.shed_longest(End::Head, drops));
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        loop {
            let id = self.active.first()?;
            let place = self.places[id as usize].as_mut()?;
            if place.credits <= 0 {
                place.credits += i64::from(self.settings.quantum);
                self.links.remove(&mut self.active, id);
                self.links.push_back(&mut self.active, id);
                continue;
            }
            match self.at(id, |place| place.flows.dequeue(now, drops)).flatten() {
                None => self.unlist(id),
                Some(service) => {
                    self.at(id, |place| place.credits -= i64::from(service.bytes));
                    return Some(service);
                }
            }
        }
    }

    fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        self.known.insert(channel, hosts);
    }

    fn backlog(&self) -> Backlog {
        self.tally.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.settings.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Keys;
    use proptest::prelude::*;
    use trunkline_core::Packet;

    /// Bytes served of each flow, `flows[h]` of them at host h, all of which always hold data.
    fn shares(key: Option<HostKey>, flows: &[u64], sizes: &[u32], told: bool) -> Vec<Vec<u64>> {
        let long = Span::from_secs(10);
        let (target, interval, limit) = (long, long, Limit::Packets(1 << 20));
        let mut queue = FqCodel::new(FqCodelSettings {
            hosts: key,
            target,
            interval,
            flows: 1 << 16,
            limit,
            ..FqCodelSettings::with_limit(limit)
        });
        let (mut drops, mut served) = (Drops::default(), Vec::new());
        let hosts = |host: usize| Hosts { source: host as u32, destination: 99 };
        let send = |queue: &mut FqCodel<_>, host: usize, flow: u64, drops: &mut Drops<_>| {
            let size = sizes[(host + flow as usize) % sizes.len()];
            let mut packet =
                Packet::new(Channel(host as u64 * 1000 + flow), size, Time::ZERO, (host, flow));
            packet.hosts = told.then(|| hosts(host));
            queue.enqueue(Time::ZERO, packet, drops);
        };
        for (host, &count) in flows.iter().enumerate() {
            served.push(vec![0; count as usize]);
            for flow in 0..count {
                queue.introduce(Channel(host as u64 * 1000 + flow), hosts(host));
                (0..4).for_each(|_| send(&mut queue, host, flow, &mut drops));
            }
        }
        for _ in 0..40_000 {
            let packet = queue.dequeue(Time::ZERO, &mut drops).unwrap().packet.unwrap();
            let (host, flow) = packet.body;
            served[host][flow as usize] += u64::from(packet.size);
            send(&mut queue, host, flow, &mut drops);
        }
        assert!(drops.is_empty());
        served
    }

    #[test]
    fn a_host_with_one_flow_has_as_much_as_one_with_eight() {
        for told in [true, false] {
            let by_host = shares(Some(HostKey::Source), &[1, 8], &[1500], told);
            let [one, eight] = [0, 1].map(|host| by_host[host].iter().sum::<u64>());
            assert!(one.abs_diff(eight) <= 2 * 3014, "{by_host:?}");
            let (least, most) =
                (by_host[1].iter().min().unwrap(), by_host[1].iter().max().unwrap());
            assert!(most - least <= 2 * 3014, "{by_host:?}");
            let one_destination = shares(Some(HostKey::Destination), &[1, 8], &[1500], told);
            assert!(one_destination[0][0].abs_diff(one_destination[1][0]) <= 2 * 3014);
        }
        let by_flow = shares(None, &[1, 8], &[1500], true);
        assert!(by_flow[0][0].abs_diff(by_flow[1][0]) <= 2 * 3014, "{by_flow:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// Whatever the sizes and numbers: hosts alike within a quantum and two packets, and the flows of each too.
        #[test]
        fn hosts_then_flows_share_alike(
            flows in prop::collection::vec(1u64..12, 1..6), sizes in prop::collection::vec(40u32..1500, 1..5),
        ) {
            let served = shares(Some(HostKey::Both), &flows, &sizes, true);
            let sums: Vec<u64> = served.iter().map(|flows| flows.iter().sum()).collect();
            for group in served.iter().chain([&sums]) {
                let spread = group.iter().max().unwrap() - group.iter().min().unwrap();
                prop_assert!(spread <= 2 * 1514 + 2 * 1500, "{:?}", served);
            }
        }
    }
}

//! Connections before one line with a queue: what losses by chance leave of it, and what the saw-tooth of its
//! overflows does.
//!
//! If losses keep the windows small, the line takes what comes, and a queue builds up as far as the windows'
//! sum swings above what the path holds. If they do not, the buffer overflows, and the sum of the windows makes a
//! saw-tooth. Whichever leaves less decides, so that one passes into the other without a step.

use super::connection::Law as Algorithm;
use super::flow::Greedy;
use super::share::{Regime, Share};
use crate::formula::chance::Sway;
use crate::formula::sawtooth::{Sawtooth, share_hit, tooth};
use crate::formula::tcp;
use crate::group::stage_name;
use crate::throughput::Throughput;
use crate::way::Resource;
use trunkline_core::Span;
use trunkline_scenario::Network;

/// The probability of loss above which congestion avoidance hardly happens: a window of four segments.
const MOST_LOSS: f64 = 0.1;
/// Standard normal deviates at the middles of sixteen equal chances, the upper half.
const DEVIATES: [f64; 8] =
    [0.078_41, 0.237_20, 0.402_25, 0.579_13, 0.776_42, 1.009_99, 1.318_01, 1.862_73];
/// Steps by which a queue is found, each halving its interval.
const HALVINGS: usize = 18;

/// The saw-tooth of a line that overflows, for the terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Saw {
    /// Segments that the path holds, and for which the buffer has room.
    pub pipe: f64,
    pub buffer: f64,
    /// The share of the connections that an overflow hits.
    pub hit: f64,
    /// The share of the line that is used.
    pub used: f64,
    /// The mean wait.
    pub queue: Span,
    /// From overflow to overflow.
    pub lasts: Span,
    /// The delay that a discipline keeps the queue to.
    pub kept: Option<Span>,
}

/// Users that are alike, by the first of them.
#[derive(Debug, Clone, Copy)]
struct Class {
    first: usize,
    count: f64,
}

/// The rates that losses by chance allow.
struct ByChance {
    /// Each class's segments in a round trip, at the queue.
    sways: Vec<Sway>,
    queue: Span,
    /// User bytes per second that are sent, swings taken off.
    sent: f64,
}

/// A line and its users.
pub(crate) struct Crowd<'f, 'a> {
    users: Vec<&'f Greedy<'a>>,
    classes: Vec<Class>,
    /// For each user its class.
    class_of: Vec<usize>,
    resource: Resource,
    /// User bytes per second.
    capacity: Throughput,
    /// The longest wait that the buffer has room for.
    drain: Span,
    /// The queue that a discipline keeps.
    target: Option<Span>,
}

impl<'f, 'a> Crowd<'f, 'a> {
    /// Before a queue of `bytes` on the line.
    pub fn new(
        flows: &'f [Greedy<'a>],
        users: &[usize],
        resource: Resource,
        bytes: u64,
    ) -> Crowd<'f, 'a> {
        let users: Vec<&Greedy<'_>> = users.iter().map(|&user| &flows[user]).collect();
        let capacity = users.iter().map(|user| user.capacity(resource)).min();
        let capacity = capacity.unwrap_or(Throughput::UNLIMITED);
        // A limit may be any number of 64 bits.
        let share = |user: &&Greedy<'_>| {
            let (payload, header) = (user.tcp.payload, user.tcp.header);
            (u128::from(bytes) * u128::from(payload) / u128::from(payload + header)) as u64
        };
        let buffer = users.first().map_or(0, share);
        let (classes, class_of) = classes(&users);
        Crowd {
            users,
            classes,
            class_of,
            resource,
            capacity,
            drain: capacity.time_for(buffer),
            target: None,
        }
    }

    /// Before a queue that is kept to `target`.
    pub fn managed(
        flows: &'f [Greedy<'a>],
        users: &[usize],
        resource: Resource,
        target: Span,
    ) -> Crowd<'f, 'a> {
        let crowd = Crowd::new(flows, users, resource, 0);
        Crowd { drain: target, target: Some(target), ..crowd }
    }

    /// The share of each user.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn shares(&self, network: &Network<'_>) -> Result<Vec<Share>, String> {
        if self.users.iter().any(|user| user.tcp.law == Algorithm::Bbr) {
            return self.bbr(network);
        }
        if let Some(shares) = self.standing() {
            return Ok(shares);
        }
        let (chance, saw) = (self.by_chance(), self.saw());
        let most = saw.used * self.rate();
        let queue = chance.queue.min(saw.queue);
        let overflows = chance.sent >= most || chance.queue >= saw.queue;
        if !overflows {
            return Ok(self.divided(&chance.sways, queue, chance.sent, Regime::Loss));
        }
        self.overflowing(network, &chance, saw, chance.sent.min(most))
    }

    /// The line's user bytes per second.
    fn rate(&self) -> f64 {
        self.capacity.millibytes_per_second() as f64 / 1e3
    }

    fn windows(&self) -> Vec<(u64, Span)> {
        self.users.iter().map(|user| (user.tcp.window, user.round_trip)).collect()
    }

    /// Windows that fit into path and buffer, and that nothing shrinks.
    fn standing(&self) -> Option<Vec<Share>> {
        let queue = tcp::window_queue(&self.windows(), self.capacity);
        let fits = self.target.is_none() && queue <= self.drain;
        if !fits || self.users.iter().any(|user| user.loss > 0.0) {
            return None;
        }
        let alone = self.users.len() == 1 && queue.is_zero();
        let regime =
            if alone { Regime::Stage(self.resource) } else { Regime::Standing(self.resource) };
        let share = |user: &&Greedy<'_>| {
            let rate = tcp::window_limit(user.tcp.window, user.round_trip, queue);
            let rate = rate.min(self.capacity);
            Share { rate, regime, queue, users: self.users.len(), saw: None }
        };
        Some(self.users.iter().map(share).collect())
    }

    /// Windows by chance, at the queue that they make.
    fn by_chance(&self) -> ByChance {
        let ends = (self.sways(Span::ZERO, 0.0), self.sways(self.drain, 0.0));
        let between = |queue: Span| self.between(&ends, queue);
        let queue = self.queue_of(|queue| self.sent(&between(queue), queue));
        let sways = between(queue);
        let swing = self.swing(&sways, queue);
        let (mut sent, mut waits) = (0.0, 0.0);
        let both = DEVIATES.iter().flat_map(|&deviate| [deviate, -deviate]);
        for deviate in both {
            let factor = (1.0 + deviate * swing).max(0.0);
            let of = |queue: Span| factor * self.sent(&sways, queue);
            sent += of(Span::ZERO).min(self.rate()) / 16.0;
            waits += self.queue_of(of).as_secs_f64() / 16.0;
        }
        ByChance { sways, queue: Span::from_nanos((waits * 1e9) as u64), sent }
    }

    /// The queue at which the line carries what is sent; none if less is sent, the whole buffer if more is sent
    /// even then.
    fn queue_of(&self, sent: impl Fn(Span) -> f64) -> Span {
        if sent(Span::ZERO) <= self.rate() {
            return Span::ZERO;
        }
        if sent(self.drain) >= self.rate() {
            return self.drain;
        }
        let (mut low, mut high) = (Span::ZERO, self.drain);
        for _ in 0..HALVINGS {
            let middle = low + (high - low).scaled(1, 2);
            if sent(middle) > self.rate() { low = middle } else { high = middle }
        }
        high
    }

    /// Windows at a queue between none and the whole buffer, a power of the round trip, as the laws have it.
    fn between(&self, ends: &(Vec<Sway>, Vec<Sway>), queue: Span) -> Vec<Sway> {
        let each = self.classes.iter().zip(ends.0.iter().zip(&ends.1));
        let way = |(class, (empty, full)): (&Class, (&Sway, &Sway))| {
            let round_trip = self.users[class.first].round_trip;
            let stretched = |queue: Span| {
                libm::log((round_trip + queue).as_secs_f64() / round_trip.as_secs_f64().max(1e-9))
            };
            let share = stretched(queue) / stretched(self.drain).max(1e-12);
            Sway {
                mean: empty.mean * libm::pow(full.mean / empty.mean.max(1e-12), share),
                swing: empty.swing + share * (full.swing - empty.swing),
            }
        };
        each.map(way).collect()
    }

    fn sways(&self, queue: Span, congestion: f64) -> Vec<Sway> {
        self.classes.iter().map(|class| self.users[class.first].sway(queue, congestion)).collect()
    }

    /// User bytes per second that a user of `class` sends.
    fn sent_by(&self, class: usize, sway: &Sway, queue: Span) -> f64 {
        let user = self.users[self.classes[class].first];
        let round = (user.round_trip + queue).as_secs_f64().max(1e-9);
        sway.mean * f64::from(user.tcp.payload) / round
    }

    /// All together.
    fn sent(&self, sways: &[Sway], queue: Span) -> f64 {
        let each = sways.iter().enumerate();
        each.map(|(class, sway)| self.classes[class].count * self.sent_by(class, sway, queue)).sum()
    }

    /// The standard deviation of the sum of independent windows, over the sum.
    fn swing(&self, sways: &[Sway], queue: Span) -> f64 {
        let each = sways.iter().enumerate().map(|(class, sway)| {
            let swings = sway.swing * self.sent_by(class, sway, queue);
            self.classes[class].count * swings * swings
        });
        libm::sqrt(each.sum::<f64>()) / self.sent(sways, queue).max(1e-9)
    }

    /// The saw-tooth of all, at their mean round trip.
    fn saw(&self) -> Saw {
        let count = self.users.len() as f64;
        let first = self.users[0];
        let round =
            self.users.iter().map(|user| user.round_trip.as_secs_f64()).sum::<f64>() / count;
        let payload = f64::from(first.tcp.payload);
        let (pipe, buffer) =
            (self.rate() * round / payload, self.rate() * self.drain.as_secs_f64() / payload);
        let flows = self.users.len() as u32;
        let law = first.law(Span::from_nanos((round * 1e9) as u64));
        let windows: f64 = self.users.iter().map(|user| user.tcp.segments()).sum();
        let standing = tcp::window_queue(&self.windows(), self.capacity);
        let mut saw = Saw {
            pipe,
            buffer,
            hit: share_hit(flows),
            used: 1.0,
            queue: standing,
            lasts: Span::MAX,
            kept: self.target,
        };
        let Some(law) = law.filter(|_| windows > pipe + buffer || self.target.is_some()) else {
            return saw;
        };
        let tooth = tooth(&Sawtooth { law, flows, pipe, buffer, round });
        let seconds = |seconds: f64| Span::from_nanos((seconds * 1e9) as u64);
        saw.used = tooth.used;
        saw.queue = self.target.unwrap_or(seconds(tooth.queue * payload / self.rate()));
        saw.lasts = seconds(tooth.lasts);
        saw
    }

    /// `sent` user bytes per second divided as `sways` have it; what is lost on the path is taken off.
    fn divided(&self, sways: &[Sway], queue: Span, sent: f64, regime: Regime) -> Vec<Share> {
        let sum = self.sent(sways, queue).max(1e-9);
        let share = |(user, &class): (&&Greedy<'_>, &usize)| {
            let own = sent * self.sent_by(class, &sways[class], queue) / sum;
            let most = tcp::window_limit(user.tcp.window, user.round_trip, Span::ZERO);
            let arrived = own * (1.0 - user.loss) * 1e3;
            let rate =
                Throughput::from_millibytes_per_second(libm::floor(arrived) as u64).min(most);
            Share { rate, regime, queue, users: self.users.len(), saw: None }
        };
        self.users.iter().zip(&self.class_of).map(share).collect()
    }

    /// Everybody loses with one probability besides the path's, the one at which together they send what the
    /// saw-tooth leaves of the line; each by its own law, at its round trip with the queue.
    fn overflowing(
        &self,
        network: &Network<'_>,
        chance: &ByChance,
        saw: Saw,
        sent: f64,
    ) -> Result<Vec<Share>, String> {
        let queue = chance.queue.min(saw.queue);
        let alike = self.classes.len() == 1;
        let too_much = |loss| self.sent(&self.sways(queue, loss), queue) > sent;
        let loss = if alike { None } else { Some(balance(too_much)) };
        if loss.is_some_and(|loss| loss > MOST_LOSS) {
            let name = stage_name(network, self.resource);
            return Err(format!("windows of so few segments that time-outs decide, at {name}"));
        }
        let sways = loss.map_or_else(|| chance.sways.clone(), |loss| self.sways(queue, loss));
        let shares = self.divided(&sways, queue, sent, Regime::Overflow(self.resource, loss));
        Ok(shares.into_iter().map(|share| Share { saw: Some(saw), ..share }).collect())
    }

    /// BBR beside BBR with the same round trip has an equal share; anything else has no closed formula.
    fn bbr(&self, network: &Network<'_>) -> Result<Vec<Share>, String> {
        let first = self.users[0];
        if first.tcp.law != Algorithm::Bbr || self.classes.len() > 1 {
            let name = stage_name(network, self.resource);
            return Err(format!("BBR beside other connections, or other round trips, at {name}"));
        }
        let flows = self.users.len();
        let used = if flows == 1 { tcp::BBR_UTILISATION } else { 1.0 };
        let bytes = self.rate() / flows as f64 * used * (1.0 - first.loss);
        let line = Throughput::from_millibytes_per_second((bytes * 1e3) as u64);
        let own = tcp::window_limit(first.tcp.window, first.round_trip, Span::ZERO);
        let queue = self.bbr_queue();
        let regime = Regime::Stage(self.resource);
        let share = Share { rate: line.min(own), regime, queue, users: flows, saw: None };
        Ok(vec![share; flows])
    }

    /// Alone: an eighth of the time a quarter of the pipe, and three bursts always. Beside others, who never see an
    /// empty queue together: two pipes are in flight, so that one of them waits, and everybody's bursts.
    fn bbr_queue(&self) -> Span {
        let first = self.users[0];
        let flows = self.users.len() as u64;
        let each =
            Throughput::from_millibytes_per_second(self.capacity.millibytes_per_second() / flows);
        let burst = tcp::bbr_burst(each, first.tcp.payload);
        let bursts = self.capacity.time_for(3 * burst * flows);
        let queue = match flows {
            1 => first.round_trip.scaled(1, 32) + bursts,
            _ => first.round_trip + bursts,
        };
        queue.min(self.drain)
    }
}

/// Users that are alike get alike.
fn classes(users: &[&Greedy<'_>]) -> (Vec<Class>, Vec<usize>) {
    let mut classes: Vec<Class> = Vec::new();
    let mut class_of = Vec::with_capacity(users.len());
    for (index, user) in users.iter().enumerate() {
        let alike = |class: &Class| {
            let first = users[class.first];
            user.tcp == first.tcp
                && user.round_trip == first.round_trip
                && (user.loss, user.unheard) == (first.loss, first.unheard)
        };
        let class = classes.iter().position(alike).unwrap_or_else(|| {
            classes.push(Class { first: index, count: 0.0 });
            classes.len() - 1
        });
        classes[class].count += 1.0;
        class_of.push(class);
    }
    (classes, class_of)
}

/// The smallest probability, to a part in 10⁴, at which it is no longer too much, by halving the interval of
/// exponents between 2⁻⁴⁰ and 1.
fn balance(too_much: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-40.0f64, -0.01f64);
    for _ in 0..18 {
        let middle = (low + high) / 2.0;
        if too_much(libm::exp2(middle)) { low = middle } else { high = middle }
    }
    libm::exp2(high)
}

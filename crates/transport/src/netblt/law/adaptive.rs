//! A law that finds the rate of a path from what its receiver sees.
//!
//! The receiver offers a rate. From the packet on that acknowledges the offer, packets come at that rate: a *stretch*, in
//! which it measures at what rate they come through, how many are missing, and how much longer the round trip is than the
//! shortest. At its end it makes the next offer. So a decision takes a round trip and the time of a few packets, and
//! rests on what one rate alone has done.
//!
//! - **Start**: each stretch doubles what came through, until that stays behind.
//! - **Cruise**: the rate that came through, a little less while there is a queue; every few stretches an eighth more, to see
//!   whether there is more, and then less to let the queue go.
//! - **Contest**: somebody else keeps a queue that does not go when this law sends less. Then it counts a window as CUBIC does
//!   (RFC 9438) and offers that window for each round trip, so that the other gets as much.
//!
//! Loss is no congestion as long as it is the same when less is sent: the share that is lost below the rate, while there is no
//! queue, is the path's own. The packets of that share have used the path too, so that what came through is counted with
//! them.

use super::contest::Contest;
use super::window::{Least, MOST_RATE, OwnLoss, PARTS, Window};
use super::{Arrival, Law, on_path};
use crate::netblt::wire::{Burst, Dialect, Terms};
use trunkline_core::{Span, Time};

/// Percent of what came through that is offered next in the beginning.
const DOUBLE: u64 = 200;
/// Percent of an offer that has to come through in the beginning for more to be tried.
const ENOUGH: u64 = 75;
/// Percent of an offer that came through if all did.
const THROUGH: u64 = 97;
/// Percent of the rate when more is tried, and when the queue is let go.
const MORE: u64 = 112;
const LESS: u64 = 92;
/// Stretches at the rate itself between two trials.
const HOLD: u32 = 3;
/// Stretches with a queue that does not go, although less is sent, after which it is somebody else's.
const STANDS: u32 = 6;
/// Packets that a stretch has at least.
const PACKETS: u64 = 24;
/// Percent of the rate below which what is lost is the path's own loss.
const BELOW_RATE: u64 = 95;
/// Packets of the first train that are looked at.
const TRAIN: u64 = 12;
/// The interval of an offer at least, so that whole milliseconds are exact enough.
const INTERVAL: u64 = 100;
/// The slowest offer: two packets in this time.
const SLOWEST: Span = Span::from_secs(2);
/// From packet to packet as long as nothing is known (a choice: slower than any sender begins).
const UNKNOWN: Span = Span::from_millis(100);
/// For how long the shortest round trip is remembered, at least.
const MEMORY: Span = Span::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    /// Lets the queue go that was built.
    Drain,
    Hold(u32),
    /// Tries so many percent of the rate.
    More(u64),
    /// Somebody else keeps a queue.
    Contest,
    /// Sends two thirds for a while, to see whether the queue goes: first until that can show.
    Breathe(bool),
}

/// The law.
#[derive(Debug)]
pub struct Adaptive {
    /// Bytes of a full packet on the path.
    packet: u64,
    most: u16,
    phase: Phase,
    /// The rate that the path is taken to have for us, in bytes per second with headers.
    rate: u64,
    /// The highest that it has been: how long a packet takes at least.
    highest: u64,
    /// The rate that is offered; 0 before the first offer.
    offered: u64,
    is_new: bool,
    /// Whether the offer in force is the newest.
    in_force: bool,
    window: Window,
    /// All packets since the last decision.
    since: Window,
    /// The latest round trip, and the shortest of late.
    latest: Option<Span>,
    shortest: Least<Span>,
    turned: Time,
    /// The path's own loss, as it was while less than the rate was sent.
    own_loss: OwnLoss,
    /// The window of a contest.
    contest: Option<Contest>,
    /// Stretches in a row with a queue although this law sends less, and the rate before.
    standing: (u32, u64),
    /// Stretches in a row in which less than offered came through.
    behind: u32,
}

impl Adaptive {
    /// The law for a connection on these terms.
    pub fn new(terms: &Terms, dialect: Dialect) -> Adaptive {
        Adaptive {
            packet: on_path(terms.packet, dialect).into(),
            most: terms.burst.size,
            phase: Phase::Start,
            rate: 0,
            highest: 0,
            offered: 0,
            is_new: false,
            in_force: true,
            window: Window::default(),
            since: Window::default(),
            latest: None,
            shortest: Least::default(),
            turned: Time::ZERO,
            own_loss: OwnLoss::default(),
            contest: None,
            standing: (0, 0),
            behind: 0,
        }
    }

    /// How much longer the round trip is than the shortest.
    fn queue(&self) -> Span {
        match (self.latest, self.shortest.get()) {
            (Some(latest), Some(shortest)) => latest.saturating_sub(shortest),
            _ => Span::ZERO,
        }
    }

    fn base(&self) -> Span {
        self.shortest.get().unwrap_or(Span::from_millis(10))
    }

    /// A queue that is none: a sixteenth of the round trip, or the time of four packets at the highest rate, or of two at the
    /// rate that is offered, because an acknowledgement travels with the next packet.
    fn tolerated(&self) -> Span {
        let time = |packets: u64, rate: u64| {
            Span::from_nanos(packets * self.packet * 1_000_000_000 / rate.max(1))
        };
        let packets = time(4, self.highest).max(time(2, self.offered.max(self.highest / 1000)));
        self.base().scaled(1, 16).max(packets).max(Span::from_millis(1))
    }

    /// Whether the stretch has lasted long enough.
    fn is_over(&self) -> bool {
        let least = self.base().scaled(1, 3);
        self.window.count() > PACKETS && self.window.span() >= least
    }

    /// Ends a stretch: what it says, and the next offer.
    fn decide(&mut self, now: Time) {
        let window = std::mem::take(&mut self.window);
        let through = window.rate();
        if self.offered == 0 {
            // The packets of the first train follow each other as the narrowest link lets them.
            self.rate = through;
            return self.make_offer(through / 2);
        }
        let losses = window.losses();
        let all = std::mem::take(&mut self.since).losses();
        let is_excess = match self.contest {
            Some(_) => self.own_loss.is_more(all),
            None => self.own_loss.is_exceeded(losses),
        };
        // Below the rate, and without a queue, nothing is lost for want of room. In the beginning neither is known: beside
        // somebody who fills the line, his queue is in the first round trips, and what is lost in it is not the path's loss.
        let is_unsure = self.phase == Phase::Start && is_excess;
        let is_idle = self.contest.is_none() && !is_unsure && self.queue() <= self.tolerated();
        if is_idle && self.offered * 100 <= self.rate * BELOW_RATE {
            self.own_loss.take(losses);
        }
        let counted = through * PARTS / (PARTS - self.own_loss.share());
        self.next(now, counted, is_excess);
    }

    fn next(&mut self, now: Time, counted: u64, is_excess: bool) {
        self.highest = self.highest.max(self.rate);
        let queue = self.queue();
        if self.stands(queue) {
            return self.enter(now);
        }
        match self.phase {
            Phase::Contest => self.contend(now, is_excess),
            Phase::Breathe(false) => {
                self.phase = Phase::Breathe(true);
                self.make_offer(self.rate * 2 / 3);
            }
            // What would not make it enter does not keep it.
            Phase::Breathe(true) if queue <= self.tolerated().scaled(2, 1) => {
                self.contest = None;
                self.phase = Phase::Hold(0);
                self.rate = self.rate.min(counted * 2);
                self.make_offer(self.rate);
            }
            Phase::Breathe(true) => {
                self.phase = Phase::Contest;
                self.contend(now, false);
            }
            Phase::Start if counted < self.offered * ENOUGH / 100 => {
                self.rate = counted.min(self.rate);
                self.phase = Phase::Drain;
                self.make_offer(self.rate * LESS / 100);
            }
            Phase::Start if self.offered < self.rate => {
                self.make_offer((self.offered * DOUBLE / 100).min(self.rate));
            }
            Phase::Start => self.try_more(MORE),
            Phase::More(gain) if counted >= self.offered * THROUGH / 100 && !is_excess => {
                self.rate = self.rate.max(self.offered);
                self.try_more((gain * 2 - 100).min(DOUBLE));
            }
            Phase::More(_) => {
                let least = self.rate * LESS / 100;
                self.rate = if is_excess {
                    least.max(self.rate.min(counted))
                } else {
                    self.rate.max(counted)
                };
                self.phase = Phase::Drain;
                self.make_offer(self.drained(queue).min(self.rate * LESS / 100));
            }
            Phase::Drain => {
                self.phase = Phase::Hold(0);
                self.turn(now);
                self.hold(counted, is_excess, queue);
            }
            Phase::Hold(count) if count >= HOLD && queue <= self.tolerated() => {
                self.try_more(MORE);
            }
            Phase::Hold(count) => {
                self.phase = Phase::Hold(count + 1);
                self.hold(counted, is_excess, queue);
            }
        }
    }

    /// Whether a queue stands that does not go.
    fn stands(&mut self, queue: Span) -> bool {
        let is_holding = matches!(self.phase, Phase::Hold(_) | Phase::Drain);
        if !is_holding {
            return false;
        }
        if queue <= self.tolerated().scaled(2, 1) {
            self.standing.0 = 0;
            return false;
        }
        if self.standing.0 == 0 {
            self.standing.1 = self.rate;
        }
        self.standing.0 += 1;
        self.standing.0 >= STANDS
    }

    /// Somebody else keeps the queue: from now on a window counts, at first what was in flight before.
    fn enter(&mut self, now: Time) {
        let round = self.latest.unwrap_or(self.base());
        let window = bytes_in(self.standing.1, round);
        self.contest = Some(Contest::new(now, window, self.packet));
        self.standing.0 = 0;
        self.phase = Phase::Contest;
        self.make_offer(self.standing.1);
    }

    fn contend(&mut self, now: Time, is_excess: bool) {
        let round = self.latest.unwrap_or(self.base());
        let Some(contest) = &mut self.contest else { return };
        let window = if is_excess { contest.shrink(now) } else { contest.grow(now) };
        self.rate = per_second(window, round).min(MOST_RATE);
        if is_excess {
            self.phase = Phase::Breathe(false);
            return self.make_offer(self.rate * 2 / 3);
        }
        self.make_offer(self.rate);
    }

    fn try_more(&mut self, gain: u64) {
        self.phase = Phase::More(gain);
        self.make_offer(self.rate * gain / 100);
    }

    /// Holds the rate, or what is left of it.
    fn hold(&mut self, counted: u64, is_excess: bool, queue: Span) {
        let stays_behind = counted < self.offered * 95 / 100;
        self.behind = if stays_behind && (is_excess || queue > self.tolerated()) {
            self.behind + 1
        } else {
            0
        };
        if self.behind >= 2 || queue > self.base().scaled(1, 2) && stays_behind {
            self.rate = counted.min(self.rate);
            self.behind = 0;
        } else if queue > self.tolerated() {
            // What chance made of the rate is taken back little by little.
            self.rate = self.rate.min((self.rate * 7 + counted) / 8);
        }
        self.make_offer(self.drained(queue));
    }

    /// The rate at which the queue goes within two round trips.
    fn drained(&self, queue: Span) -> u64 {
        let over = queue.saturating_sub(self.tolerated().scaled(1, 2)).as_nanos();
        let part = (over / (self.base().as_nanos() / 50).max(1)).min(40);
        self.rate * (100 - part) / 100
    }

    fn turn(&mut self, now: Time) {
        if now.since(self.turned) >= MEMORY.max(self.base().scaled(20, 1)) {
            self.turned = now;
            self.shortest.turn();
        }
    }

    fn make_offer(&mut self, rate: u64) {
        self.offered = rate.clamp(per_second(2 * self.packet, SLOWEST), MOST_RATE);
        self.is_new = true;
        self.in_force = false;
    }
}

impl Law for Adaptive {
    fn arrived(&mut self, arrival: &Arrival) {
        self.since.take(arrival);
        if !self.in_force {
            return;
        }
        self.window.take(arrival);
        let first = self.offered == 0 && self.window.count() >= TRAIN;
        if first || self.offered > 0 && self.is_over() {
            self.decide(arrival.at);
        }
    }

    fn round(&mut self, round: Span) {
        self.latest = Some(round);
        self.shortest.take(round);
    }

    fn taken_up(&mut self) {
        self.in_force = true;
        self.window = Window::default();
    }

    fn offer(&self) -> Burst {
        burst(self.offered, self.packet, self.most)
    }

    fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    fn quantum(&self) -> Span {
        if self.offered == 0 {
            return UNKNOWN;
        }
        let Burst { size, interval } = self.offer();
        Span::from_nanos(u64::from(interval) * 1_000_000 / u64::from(size.max(1)))
    }
}

/// Bytes in so much time.
fn bytes_in(rate: u64, span: Span) -> u64 {
    (u128::from(rate) * u128::from(span.as_nanos()) / 1_000_000_000) as u64
}

/// The rate of so many bytes in so much time.
fn per_second(bytes: u64, span: Span) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1))) as u64
}

/// The burst that comes nearest to `rate`, of packets of so many bytes.
fn burst(rate: u64, packet: u64, most: u16) -> Burst {
    if rate == 0 {
        return Burst::default();
    }
    let per_second = |size: u64| size * packet * 1000;
    let size = (rate * INTERVAL).div_ceil(packet * 1000).clamp(1, most.max(1).into());
    let interval = (per_second(size) + rate / 2) / rate;
    Burst { size: size as u16, interval: interval.clamp(1, u16::MAX.into()) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_comes_near_to_its_rate() {
        for rate in [2_000, 12_500, 125_000, 1_250_000, 37_500_000, 1_250_000_000u64] {
            let Burst { size, interval } = burst(rate, 1500, u16::MAX);
            let got = u64::from(size) * 1500 * 1000 / u64::from(interval);
            assert!(got.abs_diff(rate) * 100 <= rate, "{rate}: {size} in {interval} ms");
        }
        assert_eq!(burst(10_000_000, 1000, 20), Burst { size: 20, interval: 2 });
    }
}

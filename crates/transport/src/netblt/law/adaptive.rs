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
//! queue, is the path's own. Those packets have used the path too, so that what came through is counted with the packets that
//! the same stretch has lost, as many as that share makes likely. What is lost without leaving its time empty is lost in a
//! full queue, whatever the share.

mod delay;
mod stretch;
mod train;

use super::contest::Contest;
use super::full::{Came, Full};
use super::jitter::Jitter;
use super::order::Order;
use super::rates::{burst, bytes_in, per_second, rate_of};
use super::window::{Least, Losses, MOST_RATE, OwnLoss, Window};
use super::{Arrival, Law, on_path};
use crate::netblt::habits::first_burst;
use crate::netblt::wire::{Burst, Dialect, Terms};
use trunkline_core::{Span, Time};

/// Percent of what came through that is offered next in the beginning.
const DOUBLE: u64 = 200;
/// Percent of it that are offered at most in a contest, whose window grows by half at most.
const HALF_MORE: u64 = 150;
/// Percent of the first estimate that is offered.
const FIRST: u64 = 75;
/// Percent of an offer that has to come through in the beginning for more to be tried, if packets were lost.
const ENOUGH: u64 = 75;
/// Percent of an offer that came through if all did. What is less without a loss stands in a queue: that rate is the line's.
const THROUGH: u64 = 97;
/// Percent of the rate when the queue is let go.
const LESS: u64 = 92;
/// Stretches at the rate itself between two trials.
const HOLD: u32 = 3;
/// Stretches with a queue that does not go, although less is sent, after which it is somebody else's.
const STANDS: u32 = 6;
/// The same soon after a contest (a choice, as are the three that follow).
const STANDS_AGAIN: u32 = 3;
/// The time from one breath to the next, at least, unless thirty round trips are longer.
const BREATH: Span = Span::from_secs(5);
/// Stretches of a breath at most, behind the first.
const BREATHS: u32 = 6;
/// Percent of what was sent that came, or was lost with as much of what came: what is less stands in a queue, and fills it (a choice).
const CARRIED: u64 = 95;
/// The slowest offer: two packets in this time.
const SLOWEST: Span = Span::from_secs(2);
/// What part of its packets a stretch has to lose for its losses to be doubted in the beginning, and for a trial to count behind which only
/// about as much came (a choice).
const MUCH: u64 = 8;
/// From packet to packet as long as nothing is known (a choice: slower than any sender begins).
const UNKNOWN: Span = Span::from_millis(100);
/// For how long the shortest round trip is remembered, at least, and the end of a contest.
const MEMORY: Span = Span::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    /// Lets the queue go that was built.
    Drain,
    Hold(u32),
    /// Tries so much more than the rate, in bytes per second.
    More(u64),
    /// Somebody else keeps a queue.
    Contest,
    /// Sends little for a while, to see whether the queue goes: after so many stretches.
    Breathe(u32),
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
    /// The rate at which packets come: the offer in force, or less if the sender keeps to a cap of its own.
    sent: u64,
    is_new: bool,
    /// Whether the offer in force is the newest.
    in_force: bool,
    window: Window,
    /// The longest time from one packet to the next in the stretch before.
    longest: Span,
    /// The place of the first packet since the last decision.
    since: Option<u64>,
    order: Order,
    /// The latest round trip, and the shortest of late.
    latest: Option<Span>,
    shortest: Least<Span>,
    /// What it turns by while the rate is held, or little changed.
    jitter: Jitter,
    turned: Time,
    /// The path's own loss, as it was while less than the rate was sent.
    own_loss: OwnLoss,
    /// The rate of the latest stretch, if it told what the path loses.
    told_at: Option<u64>,
    /// The window of a contest, and when it was last interrupted to see whether the queue goes.
    contest: Option<Contest>,
    breathed: Option<Time>,
    /// When the latest contest ended.
    left: Option<Time>,
    /// The round trip before that, and at the latest look.
    before: (Span, Span),
    /// Stretches in a row with a queue although this law sends less, and the rate before.
    standing: (u32, u64),
    /// Stretches in a row in which less than offered came through.
    behind: u32,
    full: Full,
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
            sent: 0,
            is_new: false,
            in_force: true,
            window: Window::default(),
            longest: Span::ZERO,
            since: None,
            order: Order::default(),
            latest: None,
            shortest: Least::default(),
            jitter: Jitter::default(),
            turned: Time::ZERO,
            own_loss: OwnLoss::default(),
            told_at: None,
            contest: None,
            breathed: None,
            left: None,
            before: (Span::ZERO, Span::ZERO),
            standing: (0, 0),
            behind: 0,
            full: Full::default(),
        }
    }

    /// Ends a stretch: what it says, and the next offer.
    fn decide(&mut self, now: Time) {
        let window = std::mem::take(&mut self.window);
        self.longest = window.longest();
        let through = window.rate();
        if self.offered == 0 {
            // The packets of the first train follow each other as the narrowest link lets them.
            self.rate = train::sent_at(&window);
            return self.make_offer(self.rate * FIRST / 100);
        }
        let losses = self.losses(now, window.from());
        let all = self.losses(now, self.since);
        self.order.forget(now, self.since.take().unwrap_or(0), self.usual_round());
        let is_solid = self.is_solid(&window, losses);
        let excess = self.excess(losses, all, is_solid);
        // Below the rate, and without a queue, nothing is lost for want of room. In the beginning neither is known: beside
        // somebody who fills the line, his queue is in the first round trips, and what is lost in it, which is much, is not the path's loss.
        let is_much = |losses: Losses| losses.lost * MUCH >= losses.sent;
        let is_unsure = self.phase == Phase::Start && excess > 0 && is_much(all);
        let is_idle = self.contest.is_none() && !is_unsure && self.queue() <= self.tolerated();
        let is_carried = losses.sent_at(through) * 100 >= self.sent * CARRIED;
        let came = self.full.take(self.sent, through);
        let is_full = came == Came::AsMuch && losses.lost > 0;
        if self.phase == Phase::Drain {
            let is_about = came == Came::About && is_much(losses);
            self.full.tried((is_full || is_about) && is_idle);
        }
        self.learn(losses, all, is_idle && !is_solid, (is_carried && !is_full).then_some(came));
        let own = if is_solid { Losses::default() } else { self.own_loss.likely(losses) };
        let counted = self.fairly(own.sent_at(through), window.span());
        self.next(now, counted, all, excess);
    }

    fn next(&mut self, now: Time, counted: u64, all: Losses, excess: u64) {
        self.highest = self.highest.max(self.rate);
        let (queue, is_excess) = (self.queue(), excess > 0);
        let is_holding = matches!(self.phase, Phase::Hold(_) | Phase::Drain);
        if is_holding && self.stands(now, queue, is_excess) {
            return self.enter(now);
        }
        let is_doubted = is_excess || self.full.is_certain();
        if is_holding && is_doubted && queue <= self.tolerated() && self.may_breathe(now) {
            self.full = Full::default();
            return self.breathe(now);
        }
        let is_free =
            counted * 100 >= self.sent * THROUGH && !is_excess && queue <= self.tolerated();
        if self.is_capped() && is_free {
            return self.keep_to_cap();
        }
        match self.phase {
            Phase::Contest => self.contend(now, counted, (all.sent, excess)),
            Phase::Breathe(count) => self.breathed(now, count, (counted, all, is_excess)),
            Phase::Start | Phase::More(_) => {
                let enough = if all.lost == 0 { THROUGH } else { ENOUGH };
                self.search((counted, enough), is_excess, queue);
            }
            Phase::Drain => {
                self.phase = Phase::Hold(0);
                self.turn(now);
                self.hold(counted, is_excess, queue);
            }
            Phase::Hold(count) if count >= HOLD && queue <= self.tolerated() => {
                self.try_more(self.step());
            }
            Phase::Hold(count) => {
                self.phase = Phase::Hold(count + 1);
                self.hold(counted, is_excess, queue);
            }
        }
    }

    /// Whether the sender keeps to a cap of its own, in the beginning or at a trial.
    fn is_capped(&self) -> bool {
        matches!(self.phase, Phase::Start | Phase::More(_)) && self.sent < self.offered
    }

    /// All that a cap lets go comes through. A little more stays offered, so that the cap decides, and as much as any sender begins with:
    /// more is not known of the path, and not offered if the cap is lifted.
    fn keep_to_cap(&mut self) {
        self.rate = self.sent;
        let begins = rate_of(first_burst(self.latest), self.packet);
        self.try_more(self.step().max(begins.saturating_sub(self.rate)));
    }

    /// A stretch of the beginning, or of a trial, ends.
    fn search(&mut self, (counted, enough): (u64, u64), is_excess: bool, queue: Span) {
        match self.phase {
            Phase::Start if counted < self.sent * enough / 100 => {
                // What a single stretch shows without a loss is believed for three quarters (a choice).
                let is_far = counted < self.sent * ENOUGH / 100;
                let found = if is_far { counted } else { (self.rate + 3 * counted) / 4 };
                self.rate = found.min(self.rate);
                self.phase = Phase::Drain;
                self.make_offer(self.rate * LESS / 100);
            }
            Phase::Start if self.offered < self.rate => {
                self.make_offer((self.offered * DOUBLE / 100).min(self.rate));
            }
            Phase::More(step) if counted >= self.sent * THROUGH / 100 && !is_excess => {
                self.rate = self.rate.max(self.sent);
                self.try_more((2 * step).min(self.rate));
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
            _ => self.try_more(self.step()),
        }
    }

    /// Whether a queue stands that does not go although less is sent. If packets are lost in it, less of it tells.
    fn stands(&mut self, now: Time, queue: Span, is_excess: bool) -> bool {
        let least = self.tolerated().scaled(if is_excess { 1 } else { 2 }, 1);
        if queue <= least {
            self.standing.0 = 0;
            return false;
        }
        if self.standing.0 == 0 {
            self.standing.1 = self.rate;
        }
        self.standing.0 += 1;
        let was_there = self.left.is_some_and(|at| now.since(at) < MEMORY);
        self.standing.0 >= if was_there { STANDS_AGAIN } else { STANDS }
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

    fn contend(&mut self, now: Time, counted: u64, losses: (u64, u64)) {
        let round = self.latest.unwrap_or(self.base());
        let Some(contest) = &mut self.contest else { return };
        let shrinks = contest.is_to_shrink(now, round, losses);
        match shrinks {
            true => contest.shrink(now),
            false => contest.grow(now, round),
        }
        // One round trip that jitter has made short says nothing of what the line carries.
        self.rate = per_second(contest.window(), round).min(counted * HALF_MORE / 100);
        match self.may_breathe(now) && (shrinks || self.breathed.is_some()) {
            true => self.breathe(now),
            false => self.make_offer(self.rate),
        }
    }

    fn may_breathe(&self, now: Time) -> bool {
        let pause = BREATH.max(self.base().scaled(30, 1));
        self.breathed.is_none_or(|at| now.since(at) > pause)
    }

    /// Sends little for a while: half, or a third if no queue is seen, so that even one that is in every round trip shows.
    fn breathe(&mut self, now: Time) {
        let round = self.latest.unwrap_or(self.base());
        (self.breathed, self.before) = (Some(now), (round, round));
        self.phase = Phase::Breathe(0);
        self.make_offer(self.breath());
    }

    fn breath(&self) -> u64 {
        self.rate / if self.contest.is_some() { 2 } else { 3 }
    }

    /// A stretch of a breath ends. As long as the round trip becomes shorter it goes on. If the queue has gone, the contest is
    /// over; what would not make it begin does not keep it. What is lost without a queue is the path's own.
    fn breathed(&mut self, now: Time, count: u32, stretch: (u64, Losses, bool)) {
        let (counted, losses, is_excess) = stretch;
        let latest = self.latest.unwrap_or(self.base());
        let is_shorter = |than: Span| latest + self.tolerated() < than;
        let (goes, went) = (is_shorter(self.before.1), is_shorter(self.before.0));
        let is_gone = self.queue() <= self.tolerated().scaled(2, 1);
        if count == 0 || goes && !is_gone && count < BREATHS {
            self.before.1 = latest;
            self.phase = Phase::Breathe(count + 1);
            return self.make_offer(self.breath());
        }
        if self.contest.is_none() && (went || is_excess && !is_gone) {
            self.standing.1 = self.rate;
            return self.enter(now);
        }
        if !is_gone && (went || is_excess) {
            self.phase = Phase::Contest;
            return self.contend(now, counted, (0, 0));
        }
        if !is_gone && self.contest.is_some() {
            // A round trip that stays as long although half is sent has no queue in it: the path has become longer. Outside a contest
            // somebody else may keep a queue, which does not go with what little this law sends less.
            self.shortest.restart(latest);
        }
        self.left = self.contest.take().map(|_| now).or(self.left);
        self.own_loss.correct(losses);
        self.phase = Phase::Hold(0);
        self.rate = self.rate.min(counted * 4);
        self.make_offer(self.rate);
    }

    /// An eighth of the rate, or a quarter of what it is below the highest that it has been, but not more than the rate itself: who has
    /// little tries more, so that rates come together.
    fn step(&self) -> u64 {
        let below = self.highest.saturating_sub(self.rate);
        (self.rate / 8).max(below / 4).min(self.rate)
    }

    fn try_more(&mut self, step: u64) {
        self.phase = Phase::More(step);
        self.make_offer(self.rate + step);
    }

    /// Holds the rate, or what is left of it.
    fn hold(&mut self, counted: u64, is_excess: bool, queue: Span) {
        let stays_behind = counted < self.sent * 95 / 100;
        self.behind = if stays_behind && (is_excess || queue > self.tolerated()) {
            self.behind + 1
        } else {
            0
        };
        if self.behind >= 2 || queue > self.usual_round().scaled(1, 2) && stays_behind {
            self.rate = counted.min(self.rate);
            self.behind = 0;
        } else if queue > self.tolerated() {
            // What others have come to have, or chance has made of the rate, is taken back before a queue is taken for somebody's who
            // keeps it.
            self.rate = self.rate.min((self.rate * 3 + counted) / 4);
        }
        self.make_offer(self.drained(queue));
    }

    fn turn(&mut self, now: Time) {
        if now.since(self.turned) >= MEMORY.max(self.base().scaled(20, 1)) {
            self.turned = now;
            self.shortest.turn();
            self.jitter.turn();
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
        if let Some(place) = arrival.place {
            self.since.get_or_insert(place);
            // Only what others have overtaken is held against it.
            let most = if self.order.has_passed(place) { self.usual_round() } else { Span::ZERO };
            self.order.take(arrival.at, place, most);
        }
        if self.in_force && self.offered == 0 {
            self.of_train(arrival);
        } else if self.in_force {
            if let Some(gap) = self.stood_still(arrival.at) {
                (self.window, self.longest) = (Window::default(), gap);
            }
            self.window.take(arrival);
            if self.is_over() {
                self.decide(arrival.at);
            }
        }
    }

    fn ended(&mut self, now: Time) {
        // Of a train that lost many packets the others still followed each other as the narrowest link lets them.
        if self.tells() && self.window.from().is_some() {
            self.decide(now);
        }
    }

    fn round(&mut self, round: Span) {
        self.latest = Some(round);
        self.shortest.take(round);
        match self.phase {
            Phase::Hold(1..) => {
                self.jitter.take(round);
                self.jitter.keep();
            }
            // Beside others round trips turn about for their sake too, for a while.
            Phase::Contest => self.jitter.take(round),
            _ => self.jitter.interrupt(),
        }
    }

    fn taken_up(&mut self, told: Option<Burst>) {
        self.in_force = true;
        self.window = Window::default();
        let own = told.filter(|&it| it.size > 0 && it != self.offer());
        self.sent = own.map_or(self.offered, |it| rate_of(it, self.packet).min(self.offered));
    }

    /// A stretch of packets from before and from now on would tell nothing.
    fn capped_anew(&mut self, told: Burst) {
        if self.in_force {
            self.taken_up(Some(told));
        }
    }

    fn offer(&self) -> Burst {
        burst(self.offered, self.packet, self.most)
    }

    fn late(&self) -> Span {
        self.order.late().min(self.usual_round())
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

#[cfg(test)]
mod tests;

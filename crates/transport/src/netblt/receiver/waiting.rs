//! How long a receiver waits for the packets of its buffers, and for answers.

use super::super::habits::RateLaw;
use super::super::incoming::{Incoming, Phase};
use super::super::timers::Arrivals;
use super::super::wire::Burst;
use super::{Receiver, apart, spacing};
use trunkline_core::{Span, Time};

/// A packet comes now and then that is this many times as far behind the one before as the offer has it, and as a sixteenth of a
/// round trip (a choice).
const SELDOM: u64 = 4;
/// The tick of the timers, of which a data timer has two at least.
const TICK: Span = Span::from_millis(1);

impl Receiver {
    /// Nothing new has been heard there. A sender that has not heard even the first message misses it.
    pub(super) fn is_missed(&mut self, now: Time, high: u16) {
        if high == 0 && !self.log.is_empty() && self.control.missed(now) {
            self.log.repeat();
            self.control_due = Some(now + self.control.value());
        }
    }

    /// A data packet has come. A sender that hears nothing sends one now and then, to see whether it is heard: what nobody has answered
    /// is said again with it, and not ever more seldom, as without any sign of the sender.
    pub(super) fn is_probed(&mut self, now: Time) {
        let gap = now.since(std::mem::replace(&mut self.came, now));
        let is_known = self.control.measured().is_some() && self.law.offer() != Burst::default();
        let often = self.quantum().max(self.control.round().scaled(1, 16));
        let is_seldom = is_known && gap >= often.scaled(SELDOM, 1);
        if let (true, Some(due)) = (is_seldom, self.control.unstretched()) {
            self.control_due = self.control_due.map(|at| at.min(due));
        }
    }

    /// The timer of a buffer whose message has been acknowledged.
    pub(super) fn start_timer(&mut self, now: Time, index: usize, by_null_ack: bool) {
        let number = self.base.wrapping_add(index as u32);
        if number < self.untouched || self.buffers[index].is_touched() {
            self.buffers[index].phase = Phase::Receiving;
            return self.set_timer(now, index);
        }
        // Versions 4 and 5 say what has been touched; without that the time of all packets before is waited for.
        if self.dialect.is_classic() {
            let before = self.buffers.range(..=index).map(Incoming::missing);
            let mut patience = self.patience(before.sum());
            if by_null_ack {
                patience = patience.max(self.keepalive);
            }
            self.arm(now + patience, index);
        }
    }

    /// The sender tells its pace in each packet and acknowledgement. As long as the law has offered none, that is what packets
    /// come at.
    pub(super) fn hear_pace(&mut self, burst: Burst) {
        let has_offered = self.law.offer() != Burst::default();
        let tells = burst.interval > 0;
        let is_other = self.told.map(apart) != Some(apart(burst));
        if is_other && tells && !has_offered {
            (self.told, self.arrivals) = (Some(burst), Arrivals::new(apart(burst)));
        }
    }

    /// The sender keeps to another pace although nothing else was offered: the cap of its own has become another one. A packet that others have overtaken tells the pace of before, and was sent when less had been heard.
    pub(super) fn is_capped_anew(&mut self, high: u16, told: Burst) {
        let Some((burst, heard)) = &mut self.kept else { return };
        let is_newest = high.wrapping_sub(*heard) < 1 << 15;
        if self.offered.is_some() || !is_newest {
            return;
        }
        *heard = high;
        if std::mem::replace(burst, told) != told {
            self.law.capped_anew(told);
        }
    }

    /// Data packets of RFC 998 tell no pace. As long as nothing is known of it, a sender begins with a train in each round trip, which takes
    /// no longer than until the first packet comes if nothing tells more of it.
    pub(super) fn guess_pace(&mut self, round: Span) {
        if self.dialect.is_classic() && self.told.is_none() {
            self.hear_pace(RateLaw::Adaptive.start(&self.terms, Some(round)).burst);
        }
    }

    /// The time within which the next packet comes if the sender has one.
    fn quantum(&self) -> Span {
        let has_offered = self.law.offer() != Burst::default();
        self.told.filter(|_| !has_offered).map_or_else(|| self.law.quantum(), apart)
    }

    /// The least of a data timer.
    pub(super) fn least(&self) -> Span {
        self.quantum().max(TICK.scaled(2, 1)).max(self.control.deviation())
    }

    /// How long so many packets more are waited for, the last of which may be as late as others were.
    pub(super) fn patience(&self, packets: u32) -> Span {
        let patience = self.arrivals.patience(packets, spacing(&*self.law)) + self.law.late();
        patience.max(self.least())
    }

    /// Sets the timer of a buffer of which packets come.
    pub(super) fn set_timer(&mut self, now: Time, index: usize) {
        let ahead = self.buffers[index].ahead();
        let at = now + self.patience(ahead + self.requested);
        let known = self.comes_by(index).filter(|_| ahead > 0 && self.requested == 0);
        self.arm(known.map_or(at, |it| it.min(at)), index);
    }

    /// Sets timers earlier that were set when packets came more slowly than they do now.
    pub(super) fn review(&mut self, now: Time) {
        if now.since(self.reviewed) < self.control.value() {
            return;
        }
        self.reviewed = now;
        for index in 0..self.buffers.len() {
            let buffer = &self.buffers[index];
            let Some(at) = buffer.timer.filter(|_| buffer.phase == Phase::Receiving) else {
                continue;
            };
            let ahead = buffer.ahead() + self.requested;
            let patience = self.patience(ahead);
            if now + patience < at {
                self.arm(now + patience, index);
            }
        }
    }

    pub(super) fn arm(&mut self, at: Time, index: usize) {
        self.unset_timer(index);
        self.buffers[index].timer = Some(at);
        self.timers.insert((at, self.base.wrapping_add(index as u32)));
    }

    pub(super) fn unset_timer(&mut self, index: usize) {
        if let Some(at) = self.buffers[index].timer.take() {
            self.timers.remove(&(at, self.base.wrapping_add(index as u32)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::law::Law;
    use crate::netblt::wire::{Data, Dialect, NullAck, Terms};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A receiver of eight packets that has said so, and when it is heard.
    fn waiting() -> (Receiver, Time) {
        let terms = Terms { buffer: 8000, packet: 1000, outstanding: 4, ..Terms::default() };
        let mut receiver =
            Receiver::new(Dialect::V5, &terms, RateLaw::Adaptive, Span::from_secs(8));
        receiver.expect(Span::from_millis(100));
        receiver.provide(1);
        assert_eq!(receiver.transmit(Time::ZERO).unwrap().len(), 1);
        (receiver, Time::ZERO + Span::from_millis(100))
    }

    /// When a receiver of eight packets, of which these come within some milliseconds at the pace that they tell, looks for the
    /// others. Nothing is known of the path but that a round trip takes 100 ms.
    fn looks(came: &[u16], burst: Burst) -> Span {
        let (mut receiver, mut now) = waiting();
        for &packet in came {
            now += Span::from_millis(1);
            let ends_buffer = packet == 7;
            let data = Data {
                ends_buffer,
                buffer: 1,
                touched: 1,
                ack: 1,
                packet,
                burst,
                bytes: 1000,
                ..Data::default()
            };
            assert!(receiver.receive(now, &data, true).is_some());
        }
        receiver.deadline().unwrap().since(now)
    }

    /// Before anything is offered a receiver waits by the pace that its sender tells, and not by a guess: of a short transfer
    /// nothing else is ever known.
    #[test]
    fn what_is_missing_is_waited_for_by_the_pace_that_the_sender_tells() {
        let train = Burst { size: 16, interval: 100 };
        let passed = looks(&[0, 1, 2, 4, 5, 6, 7], train);
        assert!(passed <= Span::from_millis(30), "{passed:?}");
        let capped = looks(&[0], Burst { size: 1, interval: 1000 });
        assert!(capped >= Span::from_secs(7), "{capped:?}");
    }

    /// If all that was sent is lost, the sender's pace is known by what it says of it alone.
    #[test]
    fn what_is_lost_wholly_is_waited_for_by_that_pace_too() {
        let (mut receiver, now) = waiting();
        let burst = Burst { size: 16, interval: 100 };
        // Who sends without a limit tells no pace.
        let unlimited = Burst { size: 1, interval: 0 };
        receiver.hear(now, &NullAck { burst: unlimited, ..NullAck::default() });
        assert_eq!(receiver.told, None);
        receiver.hear(now, &NullAck { touched: 1, ack: 1, burst, last: true });
        let looks = receiver.deadline().unwrap().since(now);
        assert!(looks <= Span::from_millis(100), "{looks:?}");
    }

    /// Packets that a receiver sends within ten seconds in which nobody hears it, if one comes after each `pause`. Before, a train of
    /// a buffer and a half has told it the rate.
    fn says(pause: Span) -> usize {
        let (mut receiver, start) = waiting();
        receiver.provide(1);
        let mut now = start;
        let send = |now: Time, receiver: &mut Receiver, count: u32| {
            let (buffer, packet) = (1 + count / 8, (count % 8) as u16);
            let data =
                Data { buffer, touched: buffer, ack: 1, packet, bytes: 1000, ..Data::default() };
            receiver.receive(now, &data, true);
        };
        for count in 0..12 {
            now += Span::from_millis(1);
            send(now, &mut receiver, count);
        }
        let (end, mut next, mut said) = (now + Span::from_secs(10), now + pause, 0);
        while let Some(at) = receiver.deadline().into_iter().chain([next]).min()
            && at <= end
        {
            if at == next {
                send(at, &mut receiver, 12);
                next = at + pause;
            }
            receiver.expire(at);
            while receiver.transmit(at).is_some() {
                said += 1;
            }
        }
        said
    }

    /// A sender that hears nothing sends a packet four times a second. Each is answered, and not one every two seconds, as is right as
    /// long as nothing comes.
    #[test]
    fn a_packet_now_and_then_is_answered() {
        let (alone, probed) = (says(Span::from_secs(20)), says(Span::from_millis(250)));
        assert!(alone <= 16, "{alone}");
        assert!((36..=60).contains(&probed), "{probed}");
    }

    /// Counts how often a law hears that a cap has become another one.
    #[derive(Debug)]
    struct Hears(Arc<AtomicU32>);

    impl Law for Hears {
        fn capped_anew(&mut self, _told: Burst) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn offer(&self) -> Burst {
            Burst { size: 9, interval: 10 }
        }
        fn quantum(&self) -> Span {
            TICK
        }
    }

    /// What overtaken packets tell is of before, and what is told while an offer is on its way is answered by that.
    #[test]
    fn a_cap_that_becomes_another_one_is_heard_once() {
        let (mut receiver, _) = waiting();
        let heard = Arc::new(AtomicU32::new(0));
        receiver.law = Box::new(Hears(Arc::clone(&heard)));
        let [slow, fast, faster] = [1, 5, 9].map(|size| Burst { size, interval: 10 });
        let hears = |receiver: &mut Receiver, high, told| {
            receiver.is_capped_anew(high, told);
            heard.load(Ordering::Relaxed)
        };
        // Nothing has been taken up.
        assert_eq!(hears(&mut receiver, 5, fast), 0);
        receiver.kept = Some((slow, 5));
        assert_eq!(hears(&mut receiver, 5, slow), 0);
        assert_eq!(hears(&mut receiver, 6, fast), 1);
        assert_eq!(hears(&mut receiver, 6, fast), 1);
        assert_eq!(hears(&mut receiver, 5, slow), 1);
        receiver.offered = Some(7);
        assert_eq!(hears(&mut receiver, 6, faster), 1);
        receiver.offered = None;
        assert_eq!(hears(&mut receiver, 7, faster), 2);
    }
}

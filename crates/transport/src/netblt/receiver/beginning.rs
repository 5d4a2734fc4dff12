//! What a receiver can miss of a sender that has not taken up any offer yet.
//!
//! Such a sender keeps to a burst of its own, whose packets go at once; those behind it follow at the pace that it tells, the first of them
//! a whole interval later. A packet whose time has not come cannot be missing, however fast the others came.

use super::{Receiver, apart};
use trunkline_core::{Span, Time};

/// Spacings of packets that came, after which the next one does not come by itself (a choice).
const CUT: u64 = 3;

/// The packets that have come of such a sender.
#[derive(Debug, Clone, Default)]
pub(super) struct Beginning {
    /// Whether an offer has been taken up.
    is_over: bool,
    /// When the sender was first let send.
    since: Option<Time>,
    /// When the first packet came and when the newest did, and their places among all.
    came: Option<[(Time, u64); 2]>,
}

impl Beginning {
    /// The sender is let send.
    pub fn begins(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// The time since the sender was first let send.
    pub fn lasts(&self, now: Time) -> Span {
        now.since(self.since.unwrap_or(now))
    }

    /// A packet has come that was not asked for again.
    pub fn came(&mut self, now: Time, place: u64) {
        if self.is_over {
            return;
        }
        let [_, newest] = self.came.get_or_insert([(now, place); 2]);
        if place > newest.1 {
            *newest = (now, place);
        }
    }

    /// The sender keeps to an offer from now on.
    pub fn ends(&mut self) {
        (self.is_over, self.came) = (true, None);
    }
}

impl Receiver {
    /// When a packet of the buffer at `index` is missing at the soonest that has neither come nor been passed by others, if the sender begins.
    pub(super) fn missing_from(&self, index: usize, packet: u16) -> Option<Time> {
        let (burst, [first, newest]) = (self.told?, self.beginning.came?);
        let place = self.place(self.done + index as u64, packet);
        let is_at_once = place < u64::from(burst.size);
        // A packet behind the burst leaves so many gaps behind the first one, or behind one that was not in the burst either.
        let (base, from) = match newest.1 < u64::from(burst.size) {
            true => (first.0, 0),
            false => newest,
        };
        let paced = if is_at_once { 0 } else { place.saturating_sub(from) };
        let due = base + apart(burst).scaled(paced, 1);
        // As long as others come, it may be behind them. A single packet tells no spacing, which is less than what that packet itself took.
        let spacing = match newest.1 - first.1 {
            0 => first.0.since(self.beginning.since.unwrap_or(first.0)),
            places => newest.0.since(first.0).scaled(1, places),
        };
        Some((due + self.patience(1)).max(newest.0 + spacing.scaled(CUT, 1)))
    }

    /// The packets of the buffer at `index` that can be asked for again: those that have not come although the sender has had the time.
    pub(super) fn overdue(&self, now: Time, index: usize) -> Vec<u16> {
        let buffer = &self.buffers[index];
        let can_miss = |packet: &u16| {
            let is_sent = buffer.is_behind(*packet);
            is_sent || self.missing_from(index, *packet).is_none_or(|at| at <= now)
        };
        buffer.absent().take_while(can_miss).collect()
    }

    /// When all of the buffer at `index` has come or is missing, if the sender begins.
    pub(super) fn comes_by(&self, index: usize) -> Option<Time> {
        self.missing_from(index, self.buffers[index].end())
    }

    /// Nothing of the buffer at `index` is overdue: its timer runs until all of it may be.
    pub(super) fn wait_on(&mut self, now: Time, index: usize) {
        self.arm(self.comes_by(index).unwrap_or(now + self.patience(1)), index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::RateLaw;
    use crate::netblt::wire::{Burst, Data, Dialect, Message, Said, Terms};

    /// What a receiver asks for, and when, if of the sixteen packets that a sender begins with these come, a millisecond apart, and nothing
    /// behind them. Buffers have 17 packets, and a round trip takes 100 ms.
    fn asks(comes: impl Fn(u16) -> bool) -> Vec<(u64, Vec<u16>)> {
        let terms = Terms { buffer: 17_000, packet: 1000, outstanding: 4, ..Terms::default() };
        let terms = Terms { burst: Burst { size: 1000, interval: 1 }, ..terms };
        let mut receiver =
            Receiver::new(Dialect::V5, &terms, RateLaw::Adaptive, Span::from_secs(8));
        receiver.provide(2);
        assert_eq!(receiver.transmit(Time::ZERO).unwrap().len(), 2);
        let mut now = Time::ZERO + Span::from_millis(100);
        for packet in 0..16 {
            let burst = Burst { size: 16, interval: 100 };
            let data = Data { buffer: 1, touched: 1, ack: 2, packet, burst, ..Data::default() };
            if comes(packet) {
                receiver.receive(now, &Data { bytes: 1000, ..data }, true);
            }
            now += Span::from_millis(1);
        }
        let mut asked = Vec::new();
        while let Some(due) = receiver.deadline().filter(|_| asked.is_empty()) {
            now = now.max(due);
            receiver.expire(now);
            let said: Vec<Message> = receiver.transmit(now).into_iter().flatten().collect();
            asked.extend(said.into_iter().filter_map(|it| match it.said {
                Said::Resend { missing, .. } if !missing.is_empty() => Some((it.buffer, missing)),
                _ => None,
            }));
        }
        let millis = now.since(Time::ZERO).as_nanos() / 1_000_000 - 100;
        asked.into_iter().map(|(_, missing)| (millis, missing)).collect()
    }

    /// The seventeenth packet leaves a round trip after the first, and is not missed before; what is lost of the sixteen is asked for as
    /// soon as by the pace that the sender tells.
    #[test]
    fn what_cannot_have_been_sent_is_not_missed() {
        let [(millis, missing)] = &asks(|_| true)[..] else { panic!("one request") };
        assert!((101..=150).contains(millis) && *missing == [16], "{missing:?} after {millis} ms");
        for (lost, most) in [(5..6, 50), (15..16, 50), (0..3, 50), (8..16, 100), (2..16, 125)] {
            let [(millis, missing)] = &asks(|it| !lost.contains(&it))[..] else {
                panic!("{lost:?}")
            };
            let is_right = missing.iter().copied().eq(lost);
            assert!(*millis <= most && is_right, "{missing:?} after {millis} ms");
        }
    }

    /// A slow line keeps the sixteen back: as long as they come, none is missed.
    #[test]
    fn what_is_still_on_its_way_is_not_missed() {
        let mut beginning = Beginning::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        (0..3).for_each(|place| beginning.came(at(100 * place), place));
        beginning.came(at(250), 1);
        assert_eq!(beginning.came, Some([(at(0), 0), (at(200), 2)]));
        beginning.ends();
        beginning.came(at(300), 3);
        assert_eq!(beginning.came, None);
    }
}

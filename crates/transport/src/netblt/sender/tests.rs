//! What a sender sends, in which order, and what it keeps.

use super::*;
use crate::netblt::pace::Spacing;
use crate::netblt::wire::{Message, Said};

/// When the receiver's word comes of what was sent in the beginning.
const ROUND: Time = Time::from_nanos(100_000_000);
const BURST: Burst = Burst { size: 100, interval: 10 };

/// Two buffers of three packets each may be outstanding.
fn terms() -> Terms {
    Terms {
        buffer: 300,
        packet: 100,
        burst: BURST,
        outstanding: 2,
        write: true,
        ..Terms::default()
    }
}

/// A sender of buffers of three packets that has been allowed the first two.
fn sender(dialect: Dialect) -> Sender {
    let start = Start { spacing: Spacing::Bursts, burst: BURST, train: 0 };
    let mut sender = Sender::new(dialect, &terms(), start, Burst { size: 1, interval: 0 });
    let first = dialect.first_buffer();
    let go = [0, 1].map(|at| message(1 + at as u16, first + at, Said::Go));
    sender.receive(Time::ZERO, &go);
    sender
}

fn message(sequence: u16, buffer: u32, said: Said) -> Message {
    Message { sequence, buffer, said }
}

fn said(sender: &mut Sender, now: Time) -> Vec<(u64, u16, bool)> {
    let sent = std::iter::from_fn(|| sender.transmit(now));
    sent.map(|it| (it.buffer, it.header.packet, it.again)).collect()
}

/// Buffers are counted: those confirmed behind a hole make room, up to twice as far as may be outstanding.
#[test]
fn a_buffer_that_recovers_does_not_stop_the_others() {
    let mut sender = sender(Dialect::Classic);
    let ok = |number: u32, sequence: u16| {
        message(sequence, number, Said::Ok { offer: Burst::default(), timer: 100 })
    };
    (0..2).for_each(|_| sender.fill(300, false));
    said(&mut sender, Time::ZERO);
    assert_eq!(sender.wants(), None, "two are under way");
    for number in [1, 2] {
        let go = message(1 + 2 * number as u16, number + 1, Said::Go);
        sender.receive(Time::ZERO, &[ok(number, 2 + 2 * number as u16), go]);
        assert_eq!(sender.released(), Some(u64::from(number)));
        assert_eq!(sender.wants(), Some(u64::from(number) + 1));
        sender.fill(300, false);
        said(&mut sender, Time::ZERO);
    }
    sender.receive(Time::ZERO, &[ok(3, 20)]);
    assert_eq!(sender.wants(), None, "four lie between the first and the next");
    sender.receive(Time::ZERO, &[ok(0, 21)]);
    assert_eq!(sender.wants(), Some(4));
}

#[test]
fn what_is_asked_for_again_goes_before_what_is_new() {
    let mut sender = sender(Dialect::Classic);
    sender.fill(300, false);
    assert_eq!(said(&mut sender, Time::ZERO), [(0, 0, false), (0, 1, false), (0, 2, false)]);
    sender.fill(300, false);
    assert_eq!(sender.wants(), None, "two are under way");
    let resend = Said::Resend { offer: Burst::default(), missing: vec![2, 0] };
    sender.receive(Time::ZERO, &[message(3, 0, resend)]);
    let sent = said(&mut sender, Time::ZERO);
    assert_eq!(sent[..3], [(0, 0, true), (0, 2, true), (1, 0, false)]);
    assert_eq!((sender.unsent(), sender.unanswered()), (0, 600));
}

/// The receiver may not know where a short last buffer ends, and asks for what it might have had (C25 of the
/// choices that the reference sheet numbers).
#[test]
fn the_end_of_a_short_buffer_is_sent_for_any_number_behind_it() {
    let mut sender = sender(Dialect::Classic);
    sender.fill(150, true);
    assert_eq!(said(&mut sender, Time::ZERO), [(0, 0, false), (0, 1, false)]);
    let resend = Said::Resend { offer: Burst::default(), missing: vec![2] };
    sender.receive(Time::ZERO, &[message(3, 0, resend)]);
    assert_eq!(said(&mut sender, Time::ZERO), [(0, 1, true)]);
}

#[test]
fn an_older_offer_does_not_replace_a_newer_one() {
    let mut sender = sender(Dialect::V5);
    let offer = |size| Said::Resend { offer: Burst { size, interval: 10 }, missing: vec![] };
    sender.receive(Time::ZERO, &[message(5, 1, offer(50))]);
    sender.receive(Time::ZERO, &[message(4, 1, offer(20))]);
    assert_eq!(sender.ack().burst, Burst { size: 50, interval: 10 });
    sender.receive(Time::ZERO, &[message(6, 1, offer(200))]);
    assert_eq!(sender.ack().burst, BURST, "no more than was agreed on");
}

/// Of evenly spaced packets that are far apart none is waited for: a law would take the wait for a queue.
#[test]
fn slow_packets_carry_no_acknowledgement() {
    for (interval, at_once) in [(10, false), (1000, true)] {
        let burst = Burst { size: 100, interval };
        let terms = Terms {
            buffer: 300,
            packet: 100,
            burst: Burst { size: 100, interval: 1 },
            outstanding: 2,
            write: true,
            ..Terms::default()
        };
        let start = Start { spacing: Spacing::Even, burst, train: 0 };
        let mut sender = Sender::new(Dialect::V5, &terms, start, Burst { size: 1, interval: 0 });
        (0..2).for_each(|_| sender.fill(300, false));
        sender.receive(Time::ZERO, &[message(1, 1, Said::Go)]);
        sender.take_ack(Time::ZERO);
        sender.receive(Time::ZERO, &[message(2, 2, Said::Go)]);
        assert_eq!(sender.take_ack(Time::ZERO).is_some(), at_once, "{interval} ms");
    }
}

/// In versions 4 and 5 the receiver learns at once that something was sent, even if that is lost.
#[test]
fn what_was_touched_is_told_again_soon() {
    for (dialect, reminds) in [(Dialect::Classic, false), (Dialect::V5, true)] {
        let mut sender = sender(dialect);
        sender.fill(50, true);
        assert_eq!(said(&mut sender, Time::ZERO).len(), 1);
        let due = sender.deadline();
        assert_eq!(due, reminds.then(|| Time::ZERO + PROMPT));
        let ack = due.and_then(|due| sender.take_ack(due));
        assert_eq!(ack.map(|it| (it.touched, it.last)), reminds.then_some((1, true)));
        assert!(!reminds || sender.deadline() == Some(Time::ZERO + PROMPT.scaled(3, 1)));
    }
}

/// What has not been answered may wait for a slow line, which reminders would fill: they follow the pace, and become ever more seldom.
#[test]
fn a_slow_line_is_not_filled_with_reminders() {
    for (interval, first, most) in [(12_000, 750, [4, 13]), (10, 10, [15, 28])] {
        let burst = Burst { size: 1, interval };
        let start = Start { spacing: Spacing::Bursts, burst, train: 0 };
        let terms = Terms { burst, ..terms() };
        let mut sender = Sender::new(Dialect::V5, &terms, start, Burst { size: 1, interval: 0 });
        sender.receive(Time::ZERO, &[message(1, 1, Said::Go)]);
        sender.fill(50, true);
        let start = Time::ZERO + Span::from_secs(1000);
        assert_eq!(said(&mut sender, start).len(), 1);
        let mut times = Vec::new();
        while times.last().is_none_or(|it| *it < Span::from_secs(200)) {
            let due = sender.deadline().expect("a reminder");
            assert!(sender.take_ack(due).is_some());
            times.push(due.since(start));
        }
        assert_eq!(times[0], Span::from_millis(first));
        let within = |seconds| times.iter().filter(|it| **it <= Span::from_secs(seconds)).count();
        assert!(within(12) <= most[0] && within(200) <= most[1], "{interval} ms: {times:?}");
        // An outage is noticed to be over after a quarter of it.
        let late = |two: &[Span]| two[1].saturating_sub(two[0]) > two[0].scaled(2, 5);
        assert!(!times.windows(2).skip(8).any(late), "{times:?}");
    }
}

/// Of a line whose pace an offer has told, an outage is noticed to be over within a second, however long it was.
#[test]
fn a_fast_line_is_reminded_each_second() {
    let start = Start { spacing: Spacing::Bursts, burst: BURST, train: 0 };
    let mut sender = Sender::new(Dialect::V5, &terms(), start, Burst { size: 1, interval: 0 });
    let offer = Said::Resend { offer: Burst { size: 50, interval: 10 }, missing: vec![] };
    sender.receive(Time::ZERO, &[message(1, 1, Said::Go), message(2, 1, offer)]);
    sender.fill(300, true);
    let start = Time::ZERO + Span::from_secs(1000);
    assert_eq!(said(&mut sender, start).len(), 3);
    let mut last = start;
    while last.since(start) < Span::from_secs(60) {
        let due = sender.deadline().expect("a reminder");
        assert!(due.since(last) <= Span::from_secs(1), "{}", due.since(start));
        assert!(sender.take_ack(due).is_some());
        last = due;
    }
}

/// At the end, what was asked for goes twice, the second time behind all others; what is confirmed meanwhile does not.
#[test]
fn the_last_repairs_go_twice() {
    let start = Start { spacing: Spacing::Even, burst: BURST, train: 0 };
    let mut sender = Sender::new(Dialect::V5, &terms(), start, Burst { size: 1, interval: 0 });
    sender.receive(Time::ZERO, &[message(1, 1, Said::Go), message(2, 2, Said::Go)]);
    sender.fill(300, false);
    let mut now = Time::ZERO;
    let mut all = |sender: &mut Sender| {
        now += Span::from_secs(1);
        sender.receive(now, &[]);
        said(sender, now)
    };
    all(&mut sender);
    let resend = |sequence, buffer, missing| {
        let offer = BURST;
        message(sequence, buffer, Said::Resend { offer, missing })
    };
    sender.receive(Time::ZERO + Span::from_millis(1500), &[resend(3, 1, vec![1])]);
    assert_eq!(all(&mut sender), [(0, 1, true)], "more may follow");
    sender.fill(300, true);
    all(&mut sender);
    sender.receive(
        Time::ZERO + Span::from_millis(3500),
        &[resend(4, 1, vec![1]), resend(5, 2, vec![0, 2])],
    );
    let (one, others) = ((0, 1, true), [(1, 0, true), (1, 2, true)]);
    assert_eq!(all(&mut sender), [one, others[0], others[1], one, others[0], others[1]]);
    sender.receive(
        Time::ZERO + Span::from_millis(4500),
        &[resend(6, 1, vec![1]), resend(7, 2, vec![0])],
    );
    let ok = Said::Ok { offer: Burst::default(), timer: 100 };
    sender.receive(Time::ZERO, &[message(8, 1, ok)]);
    assert_eq!(all(&mut sender), [others[0], others[0]], "the other is confirmed");
}

/// After the end the newest packets go once more, newest first, if something has been lost; of a confirmed buffer none does, and
/// those of a fixed burst do not.
#[test]
fn the_tail_goes_twice() {
    for (spacing, dialect, loses) in [
        (Spacing::Even, Dialect::V5, true),
        (Spacing::Even, Dialect::V5, false),
        (Spacing::Even, Dialect::Classic, true),
        (Spacing::Bursts, Dialect::V5, true),
    ] {
        // Fifty milliseconds are half a round trip: five packets.
        let start = Start { spacing, burst: Burst { size: 1, interval: 10 }, train: 0 };
        let mut sender = Sender::new(dialect, &terms(), start, Burst { size: 1, interval: 0 });
        let first = dialect.first_buffer();
        let go = [0, 1].map(|at| message(1 + at as u16, first + at, Said::Go));
        sender.receive(Time::ZERO, &go);
        (0..2).for_each(|index| sender.fill(300, index == 1));
        let mut now = Time::ZERO;
        let mut next = |sender: &mut Sender| {
            now += Span::from_millis(10);
            sender.transmit(now).map(|it| (it.buffer, it.header.packet))
        };
        next(&mut sender);
        if loses {
            let resend = Said::Resend { offer: Burst::default(), missing: vec![0] };
            sender.receive(ROUND, &[message(3, first, resend)]);
        }
        let sent = std::iter::from_fn(|| next(&mut sender)).take(8 + usize::from(loses));
        let sent: Vec<_> = sent.collect();
        let new = 5 + usize::from(loses);
        let is_ours = loses && spacing == Spacing::Even && dialect == Dialect::V5;
        let tail: &[_] = if is_ours { &[(1, 2), (1, 1), (1, 0)] } else { &[] };
        assert_eq!(&sent[new..], tail, "{spacing:?} {dialect:?} {loses}");
        let ok = Said::Ok { offer: Burst::default(), timer: 100 };
        sender.receive(Time::ZERO, &[message(4, first, ok)]);
        assert_eq!(next(&mut sender), None, "the others are confirmed");
    }
}

/// A packet that is asked for just after it was sent was asked for before: nothing shows that the path loses any. It goes once more, and
/// the newest do not.
#[test]
fn what_is_asked_for_too_early_is_no_loss() {
    let tail = vec![(0, 0), (0, 0), (0, 2), (0, 1), (0, 0)];
    for (asked, again) in [(0, vec![(0, 0)]), (30, tail)] {
        let burst = Burst { size: 10, interval: 40 };
        let start = Start { spacing: Spacing::Even, burst, train: 3 };
        let mut sender = Sender::new(Dialect::V5, &terms(), start, Burst { size: 1, interval: 0 });
        sender.receive(Time::ZERO, &[message(1, 1, Said::Go)]);
        sender.fill(300, true);
        assert_eq!(said(&mut sender, Time::ZERO).len(), 3);
        let asked = Time::ZERO + Span::from_millis(asked);
        let resend = Said::Resend { offer: Burst::default(), missing: vec![0] };
        sender.receive(asked, &[message(2, 1, resend)]);
        let later = (1..9).map(|pause| asked + Span::from_millis(100 * pause));
        let sent = later.filter_map(|now| sender.transmit(now));
        let sent: Vec<_> = sent.map(|it| (it.buffer, it.header.packet)).collect();
        assert_eq!(sent, again);
    }
}

/// If that was agreed on, rows of parity follow the end in place of copies, one of each buffer in turn.
#[test]
fn parity_follows_the_end() {
    let start = Start { spacing: Spacing::Even, burst: Burst { size: 1, interval: 10 }, train: 0 };
    let terms = Terms { parity: true, ..terms() };
    let mut sender = Sender::new(Dialect::V5, &terms, start, Burst { size: 1, interval: 0 });
    sender.receive(Time::ZERO, &[message(1, 1, Said::Go), message(2, 2, Said::Go)]);
    sender.fill(300, false);
    sender.fill(120, true);
    let mut now = Time::ZERO;
    let mut rows = |sender: &mut Sender, count| -> Vec<_> {
        let all = (0..count).filter_map(|_| {
            now += Span::from_millis(10);
            _ = sender.transmit(now);
            sender.parity(now).map(|(it, at)| (at, it.row, it.packets, it.tail, it.last))
        });
        all.collect()
    };
    assert_eq!(rows(&mut sender, 1), []);
    let resend = Said::Resend { offer: Burst::default(), missing: vec![0] };
    sender.receive(ROUND, &[message(3, 1, resend)]);
    // A timer of 100 ms: five packets behind the end at most, in the time in which the line is free.
    let (one, other) = ((0, 0, 3, 100, false), (1, 0, 2, 20, true));
    let all = rows(&mut sender, 20);
    assert_eq!(all, [other, one, (1, 1, 2, 20, true), (0, 1, 3, 100, false)]);
    let ok = Said::Ok { offer: Burst::default(), timer: 100 };
    sender.receive(Time::ZERO, &[message(4, 1, ok)]);
    assert_eq!(rows(&mut sender, 20), [], "as many as were to go have gone");
}

/// As long as nothing is offered, requests alone tell what the path carries: of sixteen packets four came, so that the next go at a quarter
/// of the pace.
#[test]
fn without_an_offer_the_pace_follows_what_came() {
    for dialect in Dialect::ALL {
        let burst = Burst { size: 16, interval: 160 };
        let start = Start { spacing: Spacing::Even, burst, train: 16 };
        let terms = Terms { buffer: 6400, ..terms() };
        let mut sender = Sender::new(dialect, &terms, start, Burst { size: 1, interval: 0 });
        let number = dialect.first_buffer();
        sender.receive(Time::ZERO, &[message(1, number, Said::Go)]);
        sender.fill(6400, true);
        assert_eq!(said(&mut sender, Time::ZERO).len(), 16);
        let asks = |sequence, missing: std::ops::Range<u16>, offer| {
            message(sequence, number, Said::Resend { offer, missing: missing.collect() })
        };
        sender.receive(Time::ZERO, &[asks(2, 4..64, Burst::default())]);
        assert_eq!(sender.pace.gap(), Span::from_millis(40), "{dialect:?}");
        // The same request again says nothing new, and an offer counts more.
        sender.receive(Time::ZERO, &[asks(3, 4..64, Burst::default())]);
        assert_eq!(sender.pace.gap(), Span::from_millis(40), "{dialect:?}");
        if !dialect.is_classic() {
            sender.receive(Time::ZERO, &[asks(4, 0..0, Burst { size: 5, interval: 10 })]);
            assert_eq!(sender.pace.gap(), Span::from_millis(2));
        }
    }
}

/// All that told a receiver of RFC 998 what was sent may be lost. An acknowledgement does not tell it, so the end of the buffer goes again.
#[test]
fn a_repeated_go_of_what_was_sent_is_answered_with_its_end() {
    let start = Start { spacing: Spacing::Even, burst: BURST, train: 16 };
    let mut sender = Sender::new(Dialect::Classic, &terms(), start, Burst { size: 1, interval: 0 });
    sender.receive(Time::ZERO, &[message(1, 0, Said::Go), message(2, 1, Said::Go)]);
    sender.fill(300, false);
    assert_eq!(said(&mut sender, Time::ZERO).len(), 3);
    sender.receive(Time::ZERO, &[message(1, 0, Said::Go), message(2, 1, Said::Go)]);
    assert_eq!(said(&mut sender, Time::ZERO), [(0, 2, true)]);
}

use super::super::super::pace::{Spacing, Start};
use super::super::super::wire::{Burst, Dialect, Message, Said, Terms};
use super::super::Sender;
use trunkline_core::{Span, Time};

/// A packet each millisecond.
const PACE: Burst = Burst { size: 10, interval: 10 };

/// A sender under way, and what its receiver says.
struct Under {
    sender: Sender,
    now: Time,
    said: u16,
}

impl Under {
    fn new() -> Under {
        let most = Burst { size: u16::MAX, interval: 1 };
        let terms = Terms {
            buffer: 1_000_000,
            packet: 100,
            burst: most,
            outstanding: 2,
            write: true,
            ..Terms::default()
        };
        let start = Start { spacing: Spacing::Even, burst: PACE, train: 0 };
        let free = Burst { size: 1, interval: 0 };
        let sender = Sender::new(Dialect::V5, &terms, start, free);
        let mut it = Under { sender, now: Time::ZERO + Span::from_secs(9), said: 0 };
        it.say(1, Said::Go);
        it.sender.fill(1_000_000, false);
        it
    }

    fn say(&mut self, buffer: u32, said: Said) {
        self.said += 1;
        self.sender.receive(self.now, &[Message { sequence: self.said, buffer, said }]);
    }

    /// Lets so many milliseconds go by, in which the receiver, 50 ms away, speaks every `word` milliseconds. Answers the packets sent.
    fn goes(&mut self, millis: u64, word: u64) -> u64 {
        let mut sent = 0;
        for at in 1..=millis {
            self.now += Span::from_millis(1);
            if at % word == 0 {
                self.say(1, Said::Ok { offer: PACE, timer: 50 });
            }
            sent += std::iter::from_fn(|| self.sender.transmit(self.now)).count() as u64;
        }
        sent
    }
}

/// How long it goes on follows from how often the receiver spoke, within limits.
#[test]
fn it_stops_after_a_silence_that_is_long_for_this_receiver() {
    for (word, least, most) in [(1, 20, 60), (20, 80, 130), (100, 400, 520), (400, 1000, 1100)] {
        let mut it = Under::new();
        assert!(it.goes(4000, word) >= 3995, "{word}: at its pace while it hears something");
        let sent = it.goes(3000, u64::MAX);
        assert!((least..=most).contains(&sent), "{word}: {sent} packets in silence");
        it.goes(1, 1);
        assert!(it.goes(1000, word) >= 995, "{word}: heard again");
    }
}

/// Whoever says that the receiver has gone is believed until the next word.
#[test]
fn a_doubt_lasts_until_the_next_word() {
    let mut it = Under::new();
    it.goes(4000, 10);
    it.sender.doubt(it.now);
    let sent = it.goes(15, u64::MAX);
    assert!(sent <= 2, "{sent} packets");
    it.goes(1, 1);
    assert!(it.goes(1000, 10) >= 995);
}

/// As long as it is not known how often it speaks, a second is borne.
#[test]
fn a_receiver_that_is_not_known_yet_is_borne() {
    let mut it = Under::new();
    it.goes(200, 10);
    let sent = it.goes(3000, u64::MAX);
    assert!((1000..1050).contains(&sent), "{sent} packets");
}

/// In an outage a packet goes now and then, so that the end of it is found out.
#[test]
fn it_asks_ever_more_seldom_but_never_stops() {
    let mut it = Under::new();
    it.goes(4000, 10);
    it.goes(30_000, u64::MAX);
    let sent = it.goes(10_000, u64::MAX);
    assert!((38..=42).contains(&sent), "{sent} packets in ten seconds");
}

/// A receiver that got nothing has nothing to say: after a pause of the client a round trip is waited for more.
#[test]
fn what_nothing_was_sent_for_is_no_silence() {
    let mut it = Under::new();
    it.goes(4000, 10);
    let terms = it.sender.terms.clone();
    it.say(2, Said::Go);
    // All that was filled has been sent, and the client fills nothing.
    it.goes(6100, 10);
    assert_eq!(it.goes(3000, u64::MAX), 0);
    it.sender.fill(terms.buffer, false);
    let sent = it.goes(60, u64::MAX);
    assert!(sent >= 59, "{sent} packets");
    assert!(it.goes(1000, u64::MAX) < 60);
}

/// What is waited for in a silence is a word, from the moment on at which one was overdue to the next one.
#[test]
fn a_word_is_overdue_until_it_comes() {
    let mut it = Under::new();
    it.goes(4000, 20);
    assert_eq!(it.sender.overdue(it.now), None, "at its pace");
    let heard = it.now;
    it.goes(3000, u64::MAX);
    let overdue = it.sender.overdue(it.now).expect("it is silent");
    let patience = overdue.since(heard);
    assert!((80.0..=130.0).contains(&patience.as_millis_f64()), "{patience}");
    it.goes(1, 1);
    assert_eq!(it.sender.overdue(it.now), None, "heard again");
}

/// If nothing may be sent, the receiver's disk may be what keeps it.
#[test]
fn who_waits_for_room_bears_a_longer_silence() {
    let mut it = Under::new();
    it.goes(4000, 10);
    it.goes(6100, 10);
    assert!(!it.sender.is_needed());
    assert_eq!(it.sender.overdue(it.now + Span::from_millis(900)), None);
    assert!(it.sender.overdue(it.now + Span::from_millis(1100)).is_some());
}

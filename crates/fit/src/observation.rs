//! The data that a probe hands over: exchanges with their time stamps, and losses.

use serde::{Deserialize, Serialize};

/// A reading of one host's clock, in nanoseconds since whatever that clock counts from. Readings of two
/// hosts cannot be compared before [`crate::Clock`] has related them.
pub type Stamp = i64;

/// A way through the path, seen from the host that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the asking host to the answering one.
    Out,
    /// From the answering host back.
    Back,
}

/// A message and its answer, seen by both hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The asker's number for it, counted from 0 in the order of sending.
    pub sequence: u64,
    /// User bytes of the message.
    pub size: u32,
    /// User bytes of the answer.
    pub reply: u32,
    /// When it was meant to be sent; the asker's clock.
    pub intended: Stamp,
    /// When it was sent; the asker's clock.
    pub sent: Stamp,
    /// The answering host's part of it; `None` if it says nothing (a plain echo service).
    pub far: Option<Far>,
    /// When the answer had arrived in full; the asker's clock.
    pub received: Stamp,
}

/// The answering host's part of an [`Exchange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Far {
    /// When the message had arrived in full; the far clock.
    pub received: Stamp,
    /// When the answer was sent; the far clock.
    pub sent: Stamp,
    /// The number of messages of this session that had arrived before it: its place in the order of arrival.
    pub order: u64,
}

impl Exchange {
    /// From sending to the answer, in nanoseconds; contains the far host's time.
    pub fn round_trip(&self) -> i64 {
        self.received.saturating_sub(self.sent)
    }

    /// From the intended sending time to the answer, in nanoseconds: what a user who keeps to the schedule
    /// waits, however late the program was. Leaving it out is "coordinated omission".
    pub fn response(&self) -> i64 {
        self.received.saturating_sub(self.intended)
    }

    /// The time that the far host spent between arrival and answer, in nanoseconds.
    pub fn turnaround(&self) -> Option<i64> {
        self.far.map(|far| far.sent.saturating_sub(far.received))
    }

    /// The round trip without the far host's time, in nanoseconds (RFC 5905 §8, `delta`); the round trip
    /// if the far host says nothing.
    pub fn on_the_path(&self) -> i64 {
        self.round_trip().saturating_sub(self.turnaround().unwrap_or(0))
    }
}

/// A message that no answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The asker's number for it.
    pub sequence: u64,
    /// User bytes of the message.
    pub size: u32,
    /// When it was sent; the asker's clock.
    pub sent: Stamp,
    /// The way on which it, or its answer, was lost; `None` if nobody can tell.
    pub way: Option<Way>,
}

/// Everything one probing session observed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Observations {
    /// Answered messages, in the order in which the answers came; the first copy of each.
    pub exchanges: Vec<Exchange>,
    /// Messages without an answer, in order of number.
    pub lost: Vec<Lost>,
    /// Second and further copies of messages that reached the far host.
    pub duplicates_out: u64,
    /// Second and further copies of answers that reached the asker.
    pub duplicates_back: u64,
}

impl Observations {
    /// Messages sent.
    pub fn sent(&self) -> u64 {
        (self.exchanges.len() + self.lost.len()) as u64
    }

    /// Round trips in milliseconds, in the order of sending, each beside its exchange's size.
    pub fn round_trips(&self) -> Vec<(u32, f64)> {
        self.in_order_of_sending()
            .iter()
            .map(|exchange| (exchange.size, exchange.round_trip() as f64 / 1e6))
            .collect()
    }

    /// The exchanges by the asker's numbers.
    pub fn in_order_of_sending(&self) -> Vec<Exchange> {
        let mut sorted = self.exchanges.clone();
        sorted.sort_by_key(|exchange| exchange.sequence);
        sorted
    }

    /// The exchanges in the order in which their messages reached the far host; those of which it says
    /// nothing are left out.
    pub fn in_order_of_arrival(&self) -> Vec<Exchange> {
        let mut known: Vec<(u64, Exchange)> = self
            .exchanges
            .iter()
            .filter_map(|exchange| Some((exchange.far?.order, *exchange)))
            .collect();
        known.sort_by_key(|&(order, _)| order);
        known.into_iter().map(|(_, exchange)| exchange).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(sequence: u64, order: u64) -> Exchange {
        let far = Some(Far { received: 9_000, sent: 9_300, order });
        Exchange { sequence, size: 5, reply: 5, intended: 50, sent: 100, far, received: 1_600 }
    }

    #[test]
    fn the_far_hosts_time_is_no_time_on_the_path() {
        let one = exchange(0, 0);
        assert_eq!(
            (one.round_trip(), one.turnaround(), one.on_the_path()),
            (1_500, Some(300), 1_200)
        );
        assert_eq!(one.response(), 1_550);
        let mute = Exchange { far: None, ..one };
        assert_eq!((mute.turnaround(), mute.on_the_path()), (None, 1_500));
    }

    #[test]
    fn each_order_is_its_own() {
        let mute = Exchange { far: None, ..exchange(2, 0) };
        let all = Observations {
            exchanges: vec![exchange(1, 0), mute, exchange(0, 1)],
            lost: vec![Lost { sequence: 3, size: 5, sent: 0, way: None }],
            ..Observations::default()
        };
        let numbers = |list: Vec<Exchange>| list.iter().map(|one| one.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(all.in_order_of_sending()), [0, 1, 2]);
        assert_eq!(numbers(all.in_order_of_arrival()), [1, 0]);
        assert_eq!((all.sent(), all.round_trips()[0]), (4, (5, 0.0015)));
    }
}

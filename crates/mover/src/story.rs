//! What the receiver's user is told: phases, the result, and the account behind them.

use crate::Cut;
use crate::link::Link;
use crate::words::Offer;
use serde::Serialize;
use std::net::SocketAddr;
use trunkline_core::{Span, Time};
use trunkline_transfer::Finished;

/// From one word about progress to the next.
const TELL: Span = Span::from_millis(100);

/// A phase of a transfer, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum Receiving {
    /// It waits for a sender at this address.
    Listen {
        /// Address and port.
        address: SocketAddr,
    },
    /// A sender is there.
    Connect {
        /// The sender's address.
        from: SocketAddr,
        /// The name of the first thing that it sends, if that is known yet.
        name: String,
        /// Octets that are there already.
        had: u64,
        /// Octets of the whole transfer.
        bytes: u64,
    },
    /// It receives. What counts is on the disk and in the journal.
    Receive {
        /// Octets confirmed, in this and earlier sessions.
        confirmed: u64,
        /// Octets of the whole transfer.
        bytes: u64,
        /// Octets in this session.
        moved: u64,
        /// Seconds since the sender opened.
        seconds: f64,
    },
    /// The sender has gone; what has come is kept, and it is waited for.
    Away,
    /// It puts things in place.
    Place {
        /// Entries in place.
        done: u64,
        /// All of them.
        entries: u64,
    },
}

/// A transfer that ended well.
#[derive(Debug, Clone, Serialize)]
pub struct Got {
    /// The name of the first thing received.
    pub name: String,
    /// Files.
    pub files: u64,
    /// Octets of their data.
    pub bytes: u64,
    /// Files and directories of another user, which were there and have kept their mode and time.
    pub kept: u64,
    /// Octets of them that this run received.
    pub moved: u64,
    /// Seconds from the sender's first word to the end.
    pub seconds: f64,
    /// Datagrams that found the socket's buffer full.
    pub overrun: u64,
    /// Octets of that buffer.
    pub buffer: u64,
    /// The part of the time in which no chunk was asked for because the memory was full of what the disk had not taken.
    pub disk: f64,
}

/// What is known of the transfer at work.
#[derive(Debug, Default)]
pub(crate) struct Story {
    offer: Option<Offer>,
    name: String,
    had: u64,
    /// Octets of all chunks, once the manifest is known.
    pub bytes: u64,
    moved: u64,
    began: Option<Time>,
    told: Time,
    starved: Span,
    since: Time,
}

impl Story {
    /// A sender has asked for something.
    pub fn begins(&mut self, now: Time) {
        self.began.get_or_insert(now);
    }

    /// Whether a sender has asked for something.
    pub fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    /// The transfer is this one, whose offer `came` then.
    pub fn is_of(&mut self, came: Time, offer: Offer) {
        if self.offer != Some(offer) {
            let (began, since) = (Some(came), self.since);
            *self = Story { offer: Some(offer), began, since, ..Story::default() };
        }
    }

    /// Whether the transfer at work is this one.
    pub fn is_about(&self, identity: &[u8; 32]) -> bool {
        self.offer.is_some_and(|offer| offer.identity == *identity)
    }

    /// How its data are cut, once a transfer is known.
    pub fn cut(&self) -> Option<Cut> {
        self.offer.map(|offer| offer.cut)
    }

    /// The manifest is known. What was there when it became known first counts as there before.
    pub fn known(&mut self, had: u64, bytes: u64, name: &str) {
        if self.bytes == 0 {
            (self.had, self.bytes, self.name) = (had, bytes, name.into());
        }
    }

    /// The disk has taken so many octets. Of a transfer that was all there it throws away what its sender sent before it knew.
    pub fn wrote(&mut self, octets: u64) {
        if self.had < self.bytes {
            self.moved += octets;
        }
    }

    /// What is to be told now, if a connection is at work; it may be starved for want of room.
    pub fn progress(&mut self, now: Time, is_at_work: bool, is_starved: bool) -> Option<Receiving> {
        if is_starved {
            self.starved += now.since(self.since);
        }
        self.since = now;
        if !is_at_work || self.bytes == 0 || now < self.told + TELL {
            return None;
        }
        self.told = now;
        let seconds = self.spent(now).as_secs_f64();
        let confirmed = (self.had + self.moved).min(self.bytes);
        Some(Receiving::Receive { confirmed, bytes: self.bytes, moved: self.moved, seconds })
    }

    fn spent(&self, now: Time) -> Span {
        self.began.map_or(Span::ZERO, |began| now.since(began))
    }

    /// The result.
    pub fn got(&self, now: Time, finished: &Finished, link: &Link) -> Got {
        let seconds = self.spent(now).as_secs_f64();
        Got {
            name: self.name.clone(),
            files: finished.files,
            bytes: self.bytes,
            kept: finished.kept,
            moved: self.moved,
            seconds,
            overrun: link.overrun(),
            buffer: link.buffer(),
            disk: self.starved.as_secs_f64() / seconds.max(1e-9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that stopped and one that comes later with something else: the time of the second is its own.
    #[test]
    fn each_transfer_has_its_own_time() {
        let cut = Cut { chunk: 8, each: 1 };
        let offer = |number| Offer { identity: [number; 32], manifest: 1, cut, unfilled: true };
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut story = Story::default();
        for (came, number) in [(1, 1), (2, 1), (50, 2), (51, 2)] {
            story.begins(at(came));
            story.is_of(at(came), offer(number));
        }
        assert_eq!(story.spent(at(60)), Span::from_secs(10));
    }
}

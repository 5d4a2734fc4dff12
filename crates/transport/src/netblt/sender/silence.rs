//! How long a sender goes on while it hears nothing.
//!
//! A receiver at work says something every few packets: which buffer is whole, what is missing, how fast it may go on. If it is silent for
//! much longer than it was before between two words, it or the path has gone, and whatever is sent then is lost. So the sender stops, and
//! sends a packet now and then until it hears something. What the spans between words are it learns from those of the last round trips.

use super::Sender;
use trunkline_core::{Span, Time};

/// The least time without a word that counts as an outage before it is known how often the receiver speaks (a choice).
const UNKNOWN: Span = Span::from_secs(1);
/// The least once that is known (a choice): either end may have to wait so long for its processor.
const SHORTEST: Span = Span::from_millis(20);
/// Control timers of a watch (a choice): the spans between words in this watch and the one before count.
const WATCH: u64 = 8;
/// Spans as long as the longest that was seen (a choice): a line that falls to a third of its rate carries a third of the words.
const SPANS: u64 = 4;
/// Runs of lost packets that a run of lost words may be as long as (a choice).
const RUNS: u64 = 5;

/// How often the receiver spoke: in time, and in data packets sent meanwhile, since either may be what its words depend on.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    words: u64,
    all: (Span, u64),
    longest: (Span, u64),
}

impl Watch {
    fn take(&mut self, span: Span, packets: u64) {
        self.words += 1;
        self.all = (self.all.0 + span, self.all.1 + packets);
        self.longest = (self.longest.0.max(span), self.longest.1.max(packets));
    }
}

/// The spans between the receiver's words, and how long the present one is.
#[derive(Debug, Clone, Default)]
pub(super) struct Silence {
    /// When it was last heard, and data packets sent since then.
    heard: Time,
    packets: u64,
    /// When data were last sent, and since when they have been without a pause.
    sent: Time,
    since: Time,
    /// When somebody said that the receiver has gone, if nothing has been heard since.
    doubted: Option<Time>,
    /// When this watch began, the first with the first word; what it has seen, and the one before, if there is one.
    turned: Option<Time>,
    watch: Watch,
    before: Option<Watch>,
}

impl Silence {
    /// The receiver says something; its control timer is `timer`.
    pub(super) fn ends(&mut self, now: Time, timer: Span) {
        // Of what is sent after a pause nothing is heard for a round trip.
        let span = now.since(self.heard.max(self.since + timer));
        let packets = std::mem::take(&mut self.packets);
        (self.heard, self.doubted) = (now, None);
        let turned = *self.turned.get_or_insert(now);
        if turned == now || packets == 0 {
            return;
        }
        self.watch.take(span, packets);
        if now >= turned + timer.scaled(WATCH, 1) {
            self.before = Some(std::mem::take(&mut self.watch));
            self.turned = Some(now);
        }
    }

    /// Some of the longest spans between two words, or as long as words are lost in a run, if one watch is over. `lost` are packets that
    /// were lost, and runs of them.
    fn learned(&self, gap: Span, lost: (u64, u64)) -> Option<Span> {
        let before = self.before?;
        let today = |(span, packets): (Span, u64)| span.max(gap.scaled(packets, 1));
        let longest = today(before.longest).max(today(self.watch.longest));
        let run = today(before.all).scaled(RUNS * lost.0, lost.1.max(1) * before.words);
        Some(longest.scaled(SPANS, 1).max(run).max(SHORTEST))
    }
}

impl Sender {
    /// Somebody says that the receiver has gone. Anybody could say it: until the next word a packet goes now and then, and no more comes of it.
    pub fn doubt(&mut self, now: Time) {
        self.silence.doubted.get_or_insert(now);
    }

    /// How long the receiver may be silent: as it was before, or, if that is not known, for some round trips and packets.
    fn patience(&self) -> (Span, Span) {
        let gap = self.pace.gap();
        // A law's receiver says something at each stretch of packets that it looks at.
        let most = UNKNOWN.max(self.timer.scaled(4, 1)).max(gap.scaled(128, 1));
        (self.silence.learned(gap, self.lost).map_or(most, |it| it.min(most)), most)
    }

    /// When its patience ends. After a pause the receiver has something to say a round trip later.
    fn end_of(&self, patience: Span) -> Time {
        let first = self.silence.since + self.timer;
        let end = self.silence.heard.max(first) + patience;
        self.silence.doubted.map_or(end, |at| end.min(at))
    }

    /// When its patience ended, if the next packet is to be sent later.
    fn silent_since(&self, patience: Span) -> Option<Time> {
        let end = self.end_of(patience);
        (self.pace.next().max(self.silence.sent) > end).then_some(end)
    }

    /// Since when a word of the receiver has been overdue, if one is: it or the path has gone, or one of them stands still. Of a client that
    /// fills no buffer nothing is due.
    pub fn overdue(&self, now: Time) -> Option<Time> {
        // Before its first word it is not known how long one takes.
        self.silence.turned?;
        let (learned, most) = self.patience();
        // Who may send nothing, or waits for word of the end, may wait for the receiver's disk.
        let end = self.end_of(if self.is_needed() { learned } else { most });
        (end < now).then_some(end)
    }

    /// When the next data packet may be sent.
    pub(super) fn next_data(&self) -> Time {
        let (next, (patience, most)) = (self.pace.next(), self.patience());
        let Some(end) = self.silent_since(patience).filter(|_| self.pace.is_even()) else {
            return next;
        };
        // Ever more seldom: what is asked in an outage is lost.
        let pause = self.timer.scaled(1, 2).max(self.silence.sent.since(end).scaled(1, 4));
        next.max(self.silence.sent + pause.max(SHORTEST).min(most.scaled(1, 4)))
    }

    /// A data packet is sent.
    pub(super) fn is_heard_next(&mut self, now: Time) {
        let patience = self.patience().0;
        if now > self.silence.sent + patience && self.silent_since(patience).is_none() {
            self.silence.since = now;
        }
        self.silence.sent = now;
        self.silence.packets += 1;
    }
}

#[cfg(test)]
mod tests;

//! How an OPEN leads a transfer, and what becomes of it and its answer.

use super::super::habits::{RateLaw, TRAIN};
use super::super::serial::WINDOW;
use super::super::wire::{Message, Packet, Said, Terms};
use super::{Connection, Ending, State, first_pause};
use trunkline_core::{Span, Time};

/// From one answer to the copies of an OPEN to the next at least (a choice).
const ANSWERS: Span = Span::from_millis(5);

impl Connection {
    /// The same end, whose first OPEN goes several times at once, each copy as long as a data packet (the driver's to fill up), so
    /// that a law at the other end sees at what rate they come through. For a transfer that is long beside that.
    #[must_use]
    pub fn leading(mut self) -> Connection {
        self.copies = if self.habits.rate == RateLaw::Adaptive { TRAIN - 1 } else { 0 };
        self
    }

    /// The same end, which knows already how long a round trip takes: an OPEN without an answer is said again that much sooner. Only
    /// before anything is sent.
    #[must_use]
    pub fn expecting(mut self, round: Span) -> Connection {
        self.expected = round;
        self.receiver().into_iter().for_each(|it| it.expect(round));
        self
    }

    /// The same end, whose OPEN was answered before it was known that the other end is there, and no timer ran. It is there, and a
    /// round trip takes so long at most.
    #[must_use]
    pub fn met(mut self, now: Time, round: Span) -> Connection {
        self.heard = now;
        self.receiver().into_iter().for_each(|it| it.met(now, round));
        self
    }

    /// The OPEN, or a copy of it, came at this time; it may be one of several that were sent at once.
    pub fn knocked(&mut self, now: Time, proposed: &Terms) {
        if let Some(receiver) = self.receiver() {
            receiver.knocked(now, proposed.packet);
        }
    }

    pub(super) fn opened_again(&mut self, now: Time, terms: &Terms) {
        let Some(response) = &self.response else { return };
        let is_same = terms.uid == response.uid;
        // Not by when anything was sent: GOs that are repeated with each OPEN would be taken for the answer.
        if is_same && now.since(self.responded) < ANSWERS {
            return self.knocked(now, terms);
        }
        let again = match is_same {
            true => Packet::Response(response.clone()),
            // An ABORT bears no number, and would end the connection that there is.
            false => Packet::Refused(b"these ports are in use".to_vec()),
        };
        if is_same {
            self.responded = now;
        }
        self.reply(again);
        self.knocked(now, terms);
    }

    /// Answers at once, unless an answer still waits: a peer that asks often is not answered more often than packets leave.
    pub(super) fn reply(&mut self, packet: Packet) {
        if self.urgent.is_empty() {
            self.urgent.push(packet);
        }
    }

    /// The other end lets something be sent although its answer has not come: that is lost, or comes behind. It is asked for once at once,
    /// and from then on as often as a round trip suggests. What is said is heard when the answer has come; nothing can have been missed.
    pub(super) fn came_early(&mut self, now: Time, messages: &[Message]) {
        let State::Opening { since, due, tries } = &mut self.state else { return };
        if !self.habits.rate.is_ours() {
            return;
        }
        if self.early.is_empty() && *tries < first_pause(self.expected).1 {
            *due = now;
            if self.expected == Span::ZERO && *tries == 1 {
                self.expected = now.since(*since);
            }
        }
        let room = usize::from(WINDOW).saturating_sub(self.early.len());
        let is_kept = |it: &&Message| !matches!(&it.said, Said::Resend { missing, .. } if !missing.is_empty());
        self.early.extend(messages.iter().filter(is_kept).take(room).cloned());
    }

    pub(super) fn answered(&mut self, now: Time, terms: &Terms) {
        let State::Opening { since, tries, .. } = self.state else { return };
        if terms.uid != self.terms.uid {
            return;
        }
        if !self.terms.allows(terms) {
            self.urgent.push(Packet::Abort(b"the answer widens the terms".to_vec()));
            self.state = State::Closed(Ending::Broken("its answer widens the terms"));
            return;
        }
        // Of repeated OPENs it is not known which was answered.
        let round = (tries == 1).then(|| now.since(since)).or(self.round());
        self.expected = round.unwrap_or_default();
        self.other_death = terms.death;
        let (death, sends) = (self.terms.death, self.terms.write);
        self.terms = Terms { death, ..terms.clone() };
        (self.state, self.heard) = (State::Open, now);
        self.start(sends, round);
        let (early, patience) = (std::mem::take(&mut self.early), now.since(self.spoke));
        if let Some(sender) = self.sender().filter(|it| it.is_even()) {
            sender.receive(now, &early);
            sender.misses_after(now, patience);
        }
    }
}

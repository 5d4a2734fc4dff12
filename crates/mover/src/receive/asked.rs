//! What senders ask for as they open connections, and what they are answered.

use super::{End, Failed, MOST_COPIES, MOST_MANIFEST, MOST_PAST, Pending, REREAD, SOON};
use crate::desk::Task;
use crate::incoming::{Current, Stream};
use crate::story::Receiving;
use crate::words::{Answer, Ask, Offer, UNKNOWN, reason};
use crate::{CHUNK, Cut, PACKET};
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{Burst, Dialect, Packet, Ports, Terms};
use trunkline_transport::netblt::{Connection, Habits, Limits, RateLaw};

impl End {
    pub(super) fn opened(
        &mut self,
        now: Time,
        guest: u64,
        terms: Terms,
        ports: Ports,
        tell: &mut dyn FnMut(&Receiving),
    ) {
        if let Some((whom, uid, ports, packet)) = self.said.clone()
            && (whom, uid) == (guest, terms.uid)
        {
            return self.tell_guest(whom, ports, &packet, &[]);
        }
        if let Some(pending) = self.pending.as_mut().filter(|it| it.terms.uid == terms.uid) {
            if pending.came.len() < MOST_COPIES {
                pending.came.push(now);
            }
            return;
        }
        if self.past.contains(&terms.uid) {
            return;
        }
        let ask = Ask::read(&terms.text);
        if self.begins_another(guest, ask.as_ref()) {
            // It says so again, when the one that has ended is forgotten.
            self.finished.iter_mut().for_each(|it| it.1 = now);
            self.failed.iter_mut().for_each(|it| it.until = now);
            return;
        }
        self.past.push_back(terms.uid);
        if self.past.len() > MOST_PAST {
            self.past.pop_front();
        }
        if let Some(Failed { why, until, .. }) = &mut self.failed {
            // The sender knows; it may ask once more if this gets lost.
            *until = (*until).min(now + SOON);
            let why = reason(&why.to_string());
            self.past.pop_back();
            return self.tell_guest(guest, ports, &Packet::Refused(why), &[]);
        }
        self.story.begins(now);
        let Some(ask) = ask else {
            let refusal = Packet::Refused(UNKNOWN.into());
            return self.tell_guest(guest, ports, &refusal, &[]);
        };
        let pending = Pending { guest, terms, ports, offer: None, came: vec![now] };
        self.asked(now, pending, &ask, tell);
    }

    /// Whether a receiver that goes on, with a transfer that has ended in hand, is offered another, or the one that failed anew. That
    /// is anew in a session that began after the failure: in an earlier one the word of the failure may be lost.
    fn begins_another(&self, guest: u64, ask: Option<&Ask>) -> bool {
        let has_ended = self.finished.is_some() || self.failed.is_some();
        let is_anew = self.failed.as_ref().is_some_and(|it| guest >= it.next);
        let is_new = |ask: &Ask| match ask {
            Ask::Offer(offer) => is_anew || !self.story.is_about(&offer.identity),
            _ => false,
        };
        self.is_kept && has_ended && ask.is_some_and(is_new)
    }

    /// Does what a sender asks for.
    fn asked(
        &mut self,
        now: Time,
        mut pending: Pending,
        ask: &Ask,
        tell: &mut dyn FnMut(&Receiving),
    ) {
        match *ask {
            Ask::Offer(offer)
                if self.finished.is_some() && self.story.is_about(&offer.identity) =>
            {
                // Its sender was gone when the end came. It reads what it has sent, for the root.
                self.finished.iter_mut().for_each(|it| it.1 = now + REREAD);
                self.answer(&pending, &Answer::Whole);
            }
            Ask::Offer(_) if self.finished.is_some() => {
                let why = b"it has just received a transfer: run `trunkline receive` again";
                self.refuse(&pending, why);
            }
            Ask::Offer(offer) if !is_fit(&offer, &pending.terms) => {
                let why = b"its list of files is too large, or its buffers are none of ours";
                self.refuse(&pending, why);
            }
            Ask::Offer(offer) => {
                // Whoever proves to know the secret later is the same user, who has begun again.
                self.push_aside(pending.guest);
                pending.offer = Some(offer);
                self.pending = Some(pending);
                self.desk.give(Task::Offer(offer));
            }
            // Another transfer has taken its place: it is to be offered again.
            Ask::Finish { identity, .. } if !self.story.is_about(&identity) => {
                self.answer(&pending, &Answer::All);
            }
            Ask::Hashes { identity } if !self.story.is_about(&identity) => {
                self.refuse(&pending, b"it has another transfer in hand: try again");
            }
            Ask::Hashes { .. } => {
                let Some(cut) = self.story.cut() else { return };
                let length = self.story.bytes.div_ceil(cut.chunk.into()) * 32;
                let stream = Stream::octets(cut, length, Task::Hashes);
                self.accept(now, &pending, &Answer::All, stream);
            }
            Ask::Finish { root, .. } => self.asked_to_finish(pending, root, tell),
        }
    }

    /// Ends the connection at work for another guest's. Whoever is still there at its other end is told why it is not served.
    fn push_aside(&mut self, guest: u64) {
        let Some(current) = self.current.take_if(|it| it.guest != guest) else {
            return self.current = None;
        };
        let why = b"another sender has come; what came is kept: run it again later";
        let ports = current.connection.ports();
        self.tell_guest(current.guest, ports, &Packet::Quit(why.to_vec()), &[]);
    }

    /// Checks all against `root` and gives it its names, or says how far that is.
    fn asked_to_finish(
        &mut self,
        pending: Pending,
        root: [u8; 32],
        tell: &mut dyn FnMut(&Receiving),
    ) {
        match (&self.finished, self.placing) {
            (Some(_), _) if self.root == Some(root) => self.answer(&pending, &Answer::Done),
            (Some(_), _) => {
                self.refuse(&pending, b"it has just received other data under these names");
            }
            (None, Some((done, all))) => {
                self.answer(&pending, &Answer::Placing { done, all });
                tell(&Receiving::Place { done, entries: all });
            }
            (None, None) => {
                self.pending = Some(pending);
                if !self.finishing {
                    (self.finishing, self.root) = (true, Some(root));
                    self.desk.give(Task::Finish(root));
                }
            }
        }
    }

    fn refuse(&mut self, pending: &Pending, why: &[u8]) {
        let refusal = Packet::Refused(why.to_vec());
        self.tell_guest(pending.guest, pending.ports, &refusal, &[]);
    }

    /// Answers an OPEN and lets it open nothing here.
    pub(super) fn answer(&mut self, pending: &Pending, answer: &Answer) {
        let narrowed = pending.terms.narrowed(&Limits::default()).unwrap_or_default();
        let packet = Packet::Response(Terms { text: answer.text(), ..narrowed });
        self.said = Some((pending.guest, pending.terms.uid, pending.ports, packet.clone()));
        self.tell_guest(pending.guest, pending.ports, &packet, &[]);
    }

    /// Accepts an OPEN, whose connection brings `stream`.
    pub(super) fn accept(&mut self, now: Time, pending: &Pending, answer: &Answer, stream: Stream) {
        let made = connection(now, &pending.terms, pending.ports, answer);
        let Some(mut connection) = made else {
            return self.refuse(pending, b"its terms are none of ours");
        };
        let guest = self.sessions.iter().find(|it| it.number == pending.guest);
        let round = guest.and_then(|it| it.round);
        if let Some(round) = round {
            connection = connection.expecting(round);
        }
        if *answer == Answer::Unfilled {
            shorten(&mut connection, pending.offer.and_then(|it| it.short()));
        }
        pending.came.iter().for_each(|&at| connection.knocked(at, &pending.terms));
        let room = (self.memory / u64::from(pending.terms.buffer)).max(1);
        let room = (room.saturating_sub(self.writing), round.unwrap_or(Span::ZERO));
        let whose = (pending.guest, pending.terms.uid);
        self.current = Some(Current::new(whose, connection, stream, 0, room));
    }
}

/// Whether an offer is one that this end takes. A buffer of many tiny chunks would cost more memory than its octets.
pub(super) fn is_fit(offer: &Offer, terms: &Terms) -> bool {
    let Cut { chunk, each } = offer.cut;
    let (buffer, is_cut_small) = (offer.cut.buffer(), each > 1 && chunk < u32::from(PACKET));
    offer.manifest <= MOST_MANIFEST && !is_cut_small && buffer <= CHUNK && buffer == terms.buffer
}

/// A connection that answers an OPEN, or none if its terms are none of ours.
pub(super) fn connection(
    now: Time,
    terms: &Terms,
    ports: Ports,
    answer: &Answer,
) -> Option<Connection> {
    let habits = Habits {
        dialect: Dialect::V5,
        rate: RateLaw::Adaptive,
        cap: Burst { size: 1, interval: 0 },
    };
    let limits = Limits { buffer: CHUNK, parity: true, ..Limits::default() };
    let made = Connection::accept(now, terms, ports, habits, &limits);
    made.ok().map(|connection| connection.answering(&answer.text()))
}

/// Tells a connection which of its buffers is shorter than the others.
pub(super) fn shorten(connection: &mut Connection, short: Option<(u64, u32)>) {
    if let (Some((buffer, octets)), Some(half)) = (short, connection.receiver()) {
        half.shorten(buffer, octets);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReceiveOptions, Secret};
    use super::*;
    use crate::Manner;

    #[test]
    fn an_offer_of_tiny_chunks_is_not_taken() {
        let packet = u32::from(PACKET);
        for (chunk, each, is) in [(packet, 8, true), (100, 1, true), (1, 10_000, false)] {
            let cut = Cut { chunk, each };
            let offer = Offer { identity: [0; 32], manifest: 100, cut, unfilled: false };
            let terms = Terms { buffer: cut.buffer(), ..Terms::default() };
            assert_eq!(is_fit(&offer, &terms), is, "{cut}");
        }
    }

    /// A sender whose transfer was taken with its first words asks for the end before the disk has answered: it is no other one.
    #[test]
    fn a_slow_disk_lets_nothing_be_offered_again() {
        let dir = tempfile::tempdir().unwrap();
        let options = ReceiveOptions {
            directory: dir.path().into(),
            listen: ([127, 0, 0, 1], 0).into(),
            secret: Secret::None,
            manner: Manner::default(),
            memory: 1 << 20,
            replace: false,
        };
        let mut end = End::start(options, &mut |_| {}).unwrap();
        let identity = [1; 32];
        let cut = Cut { chunk: CHUNK, each: 1 };
        end.begun(Time::ZERO, 1, Offer { identity, manifest: 100, cut, unfilled: false });
        let (terms, ports) = (Terms::default(), Ports { local: 1, foreign: 2 });
        let pending = Pending { guest: 0, terms, ports, offer: None, came: Vec::new() };
        end.asked(Time::ZERO, pending, &Ask::Finish { identity, root: [2; 32] }, &mut |_| {});
        let answer = end.said.map(|(.., packet)| packet);
        assert!(end.pending.is_some() && answer.is_none(), "{answer:?}");
    }
}

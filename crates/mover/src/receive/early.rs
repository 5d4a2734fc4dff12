//! An OPEN that comes with first words: what it opens is ready when its sender shows that it is there.
//!
//! First words can be old ones that somebody says again. Until something sealed has come, an OPEN that came with them makes the disk
//! look whether its transfer is a new one, and makes a connection that answers with no more octets than have come. Nothing is
//! written, no transfer at work is disturbed, and the room for what is to come is not taken. A transfer that has begun before,
//! and a receiver that has something in hand, take the OPEN of a sender that is known.

use super::{End, Guest, MOST_COPIES, MOST_PAST, News};
use crate::HEADER;
use crate::desk::{Task, Wanted};
use crate::incoming::{Current, Stream};
use crate::session::{ADDED, Arrived, TELLING};
use crate::story::Receiving;
use crate::words::{Answer, Ask, Offer};
use std::net::SocketAddr;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{Packet, Ports, Read, Terms};
use trunkline_transport::netblt::{Connection, Out};

/// From one answer to first words to the next at least: they come several times at once (a choice).
const ANSWERS: Span = Span::from_millis(5);
/// Octets of the longest datagram that a connection says which lets no more than [`FIRST`] buffers come.
const LONGEST: usize = 800;
/// How often a first offer is said again (a choice): if it is lost, a timer says it a round trip and a half later.
const REPEATS: u32 = 2;
/// Buffers that it lets come.
const FIRST: u64 = 32;
const _: () = assert!(ADDED + HEADER + FIRST as usize * 8 + 100 < LONGEST);

/// First words with an OPEN, of a guest of whom nothing sealed has come.
pub(super) struct Early {
    /// The words, as far as they tell, and their answers, by whether the OPEN is answered too.
    words: Vec<u8>,
    answers: [Vec<u8>; 2],
    terms: Terms,
    ports: Ports,
    /// When copies of the words came, and octets that came in them and were not answered.
    came: Vec<Time>,
    octets: usize,
    answered: Time,
    /// Buffers that there is memory for, and those that the connection lets come.
    room: u64,
    come: u64,
    /// How often what the connection has said is still to be said again.
    repeats: u32,
    stage: Stage,
}

enum Stage {
    /// The disk is asked whether it is a new transfer.
    Looking(Offer),
    /// It wants another OPEN.
    Declined,
    /// It is answered.
    Taken(Offer, Box<Connection>),
}

impl Early {
    fn new(at: Time, datagram: &[u8], arrived: &Arrived, stage: Stage) -> Early {
        Early {
            words: telling(datagram).to_vec(),
            answers: [arrived.answer(false), arrived.answer(true)],
            terms: arrived.terms.clone(),
            ports: arrived.ports,
            came: vec![at],
            octets: datagram.len(),
            answered: at,
            room: 0,
            come: 0,
            repeats: REPEATS,
            stage,
        }
    }

    /// Lets the connection begin that it has opened, now that something sealed has come from its guest, whose number and round
    /// trip are `known`. If another is at work or this end is not free, the sender is to begin again.
    pub fn begin(
        self,
        now: Time,
        (guest, round): (u64, Span),
        read: &Read,
        (current, is_free): (&mut Option<Current>, bool),
    ) -> Option<News> {
        let is_its = read.ports == self.ports.turned();
        let Stage::Taken(offer, connection) = self.stage else { return None };
        if !is_its {
            return None;
        }
        if !is_free || current.is_some() {
            return Some(News::Late(guest));
        }
        let (uid, stream) = (self.terms.uid, Stream::everything(offer.cut, offer.manifest));
        let (connection, room) = (connection.met(now, round), (self.room, round));
        *current = Some(Current::new((guest, uid), connection, stream, self.come, room));
        Some(News::Begun(self.came[0], uid, offer))
    }
}

/// What tells first words from others.
fn telling(datagram: &[u8]) -> &[u8] {
    &datagram[..datagram.len().min(TELLING)]
}

impl Guest {
    /// Whether these are its first words once more.
    fn is_again(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let is_same = |it: &Early| it.words == telling(datagram);
        self.at == from && self.early.as_deref().is_some_and(is_same)
    }
}

impl End {
    /// First words with an OPEN have come.
    pub(super) fn arrived(
        &mut self,
        from: SocketAddr,
        at: Time,
        datagram: &[u8],
        arrived: Arrived,
    ) {
        let least = ADDED + HEADER + usize::from(arrived.terms.packet);
        let offer = match Ask::read(&arrived.terms.text) {
            // If it comes in a datagram as long as its data will be, the path takes them.
            Some(Ask::Offer(offer)) if datagram.len() >= least => Some(offer),
            _ => None,
        };
        let is_fit = |it: &Offer| super::asked::is_fit(it, &arrived.terms);
        let offer = offer.filter(is_fit).filter(|_| self.is_idle() && self.looking.is_none());
        let stage = offer.map_or(Stage::Declined, Stage::Looking);
        let early = Early::new(at, datagram, &arrived, stage);
        let number = self.admit(from, arrived.session, Some(Box::new(early)));
        match offer {
            None => self.answer_early(number, at),
            Some(offer) => {
                self.looking = Some(number);
                self.desk.give(Task::Look(offer));
            }
        }
    }

    /// Takes in a datagram if it is a copy of first words with an OPEN. Answers whether it is.
    pub(super) fn is_copy(&mut self, from: SocketAddr, at: Time, datagram: &[u8]) -> bool {
        let again = self.sessions.iter_mut().find(|it| it.is_again(from, datagram));
        let Some(Guest { number, early: Some(early), .. }) = again else { return false };
        early.octets = early.octets.saturating_add(datagram.len());
        let (number, is_soon) = (*number, at.since(early.answered) < ANSWERS);
        match &mut early.stage {
            Stage::Looking(_) if early.came.len() < MOST_COPIES => early.came.push(at),
            Stage::Looking(_) => {}
            Stage::Declined if is_soon => {}
            Stage::Declined => self.answer_early(number, at),
            Stage::Taken(_, connection) => {
                connection.receive(at, &Packet::Open(early.terms.clone()), true);
                if !is_soon {
                    self.answer_early(number, at);
                }
            }
        }
        true
    }

    /// Answers a guest's first words.
    fn answer_early(&mut self, number: u64, now: Time) {
        let guest = self.sessions.iter_mut().find(|it| it.number == number);
        let Some(Guest { at, early: Some(early), .. }) = guest else { return };
        let answer = &early.answers[usize::from(matches!(early.stage, Stage::Taken(..)))];
        early.answered = now;
        if let Some(left) = early.octets.checked_sub(answer.len()) {
            early.octets = left;
            self.link.put(*at, |out| out.extend(answer));
        }
    }

    /// The disk has looked whether the transfer is new that is offered with first words.
    pub(super) fn looked(&mut self, now: Time, is_new: bool) {
        let Some(number) = self.looking.take() else { return };
        let (is_idle, memory) = (self.is_idle(), self.memory);
        let guest = self.sessions.iter_mut().find(|it| it.number == number);
        let Some(Guest { early: Some(early), .. }) = guest else { return };
        let Stage::Looking(offer) = early.stage else { return };
        let answer = offer.welcome();
        let made = super::asked::connection(now, &early.terms, early.ports, &answer);
        early.stage = match made {
            Some(mut connection) if is_new && is_idle => {
                early.room = (memory / u64::from(early.terms.buffer)).max(1);
                let buffers = Stream::head(offer.cut, offer.manifest) + early.room;
                early.come = buffers.min(FIRST);
                super::asked::shorten(&mut connection, offer.short());
                connection.provide(early.come);
                early.came.iter().for_each(|&at| connection.knocked(at, &early.terms));
                Stage::Taken(offer, Box::new(connection))
            }
            _ => Stage::Declined,
        };
        self.answer_early(number, now);
    }

    /// Says what connections have to say whose senders have sealed nothing yet. Timers wait until they have.
    pub(super) fn say_early(&mut self, now: Time) {
        let End { link, sessions, .. } = self;
        for Guest { session, at, early, .. } in sessions {
            let Some(early) = early.as_deref_mut() else { continue };
            let Early { octets, repeats, stage, .. } = early;
            let Stage::Taken(_, connection) = stage else { continue };
            if *repeats > 0 && connection.receiver().is_some_and(|it| it.repeat()) {
                *repeats -= 1;
            }
            while *octets >= LONGEST
                && let Some(Out::Packet(packet)) = connection.transmit(now)
            {
                let said = session.say(link, *at, connection.ports(), &packet, &[]);
                *octets = octets.saturating_sub(said);
            }
        }
        link.flush();
    }

    /// Whether nothing is in hand, so that a transfer that is offered disturbs none.
    pub(super) fn is_idle(&self) -> bool {
        let has_ended = self.finished.is_some() || self.failed.is_some();
        let is_at_work = self.current.is_some() || self.pending.is_some();
        let is_at_disk = self.promised.is_some() || self.finishing || self.placing.is_some();
        !has_ended && !is_at_work && !is_at_disk && self.writing == 0
    }

    /// The sender of a connection that was opened with its first words is there.
    pub(super) fn begun(&mut self, came: Time, uid: u32, offer: Offer) {
        self.promised = Some(offer);
        // The disk has not answered; who asks for this transfer's end asks for no other's.
        self.story.is_of(came, offer);
        self.past.push_back(uid);
        if self.past.len() > MOST_PAST {
            self.past.pop_front();
        }
        self.story.begins(came);
    }

    /// The disk has said what it wants of the transfer of such a connection, which was promised to take all of it.
    pub(super) fn kept(&mut self, now: Time, wanted: Wanted, tell: &mut dyn FnMut(&Receiving)) {
        let Wanted { offer, answer, had, bytes, name } = wanted;
        let guest = self.current.as_ref().map(|it| it.guest);
        self.story.is_of(now, offer);
        self.story.known(had, bytes, &name);
        let from = self.sessions.iter().find(|it| Some(it.number) == guest).map(|it| it.at);
        if let Some(from) = from {
            tell(&Receiving::Connect { from, name, had, bytes });
        }
        if answer != Answer::All
            && let Some(guest) = guest
        {
            // Somebody else has begun it meanwhile.
            self.forget(guest);
        }
    }

    /// Forgets a guest, who is told so when it says something, and begins again.
    pub(super) fn forget(&mut self, guest: u64) {
        self.sessions.retain(|it| it.number != guest);
        self.current.take_if(|it| it.guest == guest);
    }
}

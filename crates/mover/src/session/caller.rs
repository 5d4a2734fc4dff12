//! The calling end's first words, and an OPEN that goes with them.

use super::{
    ANSWER, CLEAR, CODE, CODE_ANSWER, EARLY, EARLY_ANSWER, HELLO, MOVE, NAME, Secret, Session,
    padded,
};
use crate::MoverError;
use trunkline_core::{Span, Time};
use trunkline_handshake::hello::{Initiator, Refusal, Unfit};
use trunkline_handshake::{Cipher, Exchange, Key, Side, random};

/// From one try to say first words to the next: at first, if no round trip is known, and at most.
const AGAIN: (Span, Span) = (Span::from_millis(500), Span::from_secs(4));
/// The least, if one is known (a choice).
const SOONEST: Span = Span::from_millis(20);
/// The longest round trip that is taken for the path's if it is not known which words were answered, unless the latest words were said so
/// long ago: NETBLT says an OPEN again after one and a half of it.
const UNSURE: Span = Span::from_millis(667);

/// An OPEN that goes with the first words, if there is a key that seals it.
#[derive(Debug, Clone)]
pub struct Early {
    /// The packet.
    pub packet: Vec<u8>,
    /// Octets of the datagrams that bear it, and how many go at once.
    pub length: usize,
    /// See `length`.
    pub copies: usize,
}

/// A session that has come about.
#[derive(Debug)]
pub struct Met {
    /// The session.
    pub session: Session,
    /// When the OPEN was said that the receiver answers without another, if it does.
    pub opened: Option<Time>,
    /// How long the answer took. If it is not known which words it answers, it took no more than four times as long.
    pub round: Span,
}

/// A sender that says its first words until it is answered.
#[derive(Debug)]
pub struct Caller {
    step: Step,
    is_clear: bool,
    name: [u8; NAME],
    /// The OPEN that is to go with first words, and first words that bear it.
    early: Option<Early>,
    ahead: Option<Ahead>,
    /// What is said, when again, and after how long then.
    words: Vec<u8>,
    due: Time,
    again: Span,
    /// The first such pause at one address, and when these words were said first and last, those with an OPEN not counted.
    pause: Span,
    said: Option<(Time, Time)>,
    /// Addresses among which they are shared.
    places: u64,
}

#[derive(Debug)]
enum Step {
    Code(Option<Exchange>),
    Hello(Option<Box<Initiator>>),
}

/// First words with an OPEN. They are said once: a path that does not take long datagrams, or a receiver of an earlier version,
/// answers those without.
#[derive(Debug)]
struct Ahead {
    initiator: Option<Box<Initiator>>,
    words: Vec<u8>,
    copies: usize,
    said: Option<Time>,
}

impl Ahead {
    fn new(
        early: &Early,
        key: &Key,
        is_clear: bool,
        name: &[u8; NAME],
    ) -> Result<Ahead, MoverError> {
        let (purpose, packet) = (purpose(is_clear), &early.packet);
        let begun = Initiator::begin_saying(Cipher::faster(), key, purpose, name, packet);
        let (initiator, words) = begun.map_err(MoverError::unfit)?;
        let length = (packet.len() as u16).to_be_bytes();
        let mut words = [&[EARLY], &length[..], &words].concat();
        words.resize(words.len().max(early.length), 0);
        let initiator = Some(Box::new(initiator));
        Ok(Ahead { initiator, words, copies: early.copies, said: None })
    }
}

fn purpose(is_clear: bool) -> trunkline_handshake::Purpose {
    if is_clear { CLEAR } else { MOVE }
}

impl Caller {
    /// Begins with this secret, and wants what follows to be in the clear or not. An OPEN may go with the first words.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn begin(
        secret: &Secret,
        is_clear: bool,
        early: Option<Early>,
        now: Time,
    ) -> Result<Caller, MoverError> {
        let name = random().map_err(MoverError::system("no random numbers"))?;
        let (due, again) = (now, AGAIN.0);
        let (step, words, ahead) = (Step::Code(None), Vec::new(), None);
        let (places, pause, said) = (1, AGAIN.0, None);
        let mut caller =
            Caller { step, is_clear, name, early, ahead, words, due, again, pause, said, places };
        match secret {
            Secret::None => caller.hello(None, now, None)?,
            Secret::Key(key) => caller.hello(Some(key), now, None)?,
            Secret::Code(code) => {
                let begun = Exchange::begin(code, Side::First);
                let (exchange, word) = begun.map_err(MoverError::system("no random numbers"))?;
                caller.step = Step::Code(Some(exchange));
                caller.words = padded([&[CODE], &name[..], &word].concat());
            }
        }
        Ok(caller)
    }

    /// Turns to the words of the handshake, over a path whose round trip may be known.
    fn hello(
        &mut self,
        key: Option<&Key>,
        now: Time,
        round: Option<Span>,
    ) -> Result<(), MoverError> {
        let purpose = purpose(self.is_clear);
        let begun = Initiator::begin_with(Cipher::faster(), key, purpose, &self.name);
        let begun = begun.map_err(MoverError::unfit)?;
        self.step = Step::Hello(Some(Box::new(begun.0)));
        self.words = padded([&[HELLO], &begun.1[..]].concat());
        if let (Some(early), Some(key)) = (self.early.take(), key) {
            self.ahead = Some(Ahead::new(&early, key, self.is_clear, &self.name)?);
        }
        self.pause = round.map_or(AGAIN.0, |it| it.scaled(3, 2).max(SOONEST));
        (self.due, self.again) = (now, self.pause.scaled(1, self.places));
        self.said = None;
        Ok(())
    }

    /// How long the answer took that has come now. Of words that were said more than once it is not known which were answered: what waits
    /// one and a half of a quarter of all that time, and then twice as long, is said once too often at most.
    fn round(&self, now: Time) -> Span {
        let (first, last) = self.said.unwrap_or((now, now));
        let quarter = now.since(first).scaled(1, 4).min(UNSURE);
        now.since(last).max(quarter)
    }

    /// What is to be said now, and how many times at once, if anything is.
    pub fn say(&mut self, now: Time) -> Option<(&[u8], usize)> {
        if self.due > now {
            return None;
        }
        self.due = now + self.again;
        if let Some(ahead) = self.ahead.as_mut().filter(|it| it.said.is_none()) {
            ahead.said = Some(now);
            return Some((&ahead.words, ahead.copies));
        }
        self.said = Some((self.said.map_or(now, |(first, _)| first), now));
        self.again = self.again.scaled(2, 1).min(AGAIN.1.scaled(1, self.places));
        Some((&self.words, 1))
    }

    /// What was said could not leave: what comes next is said at once.
    pub fn hurry(&mut self, now: Time) {
        self.due = now;
    }

    /// Shares its words among so many addresses, each of which gets them as often as one alone.
    pub fn share(&mut self, places: usize) {
        self.places = places.max(1) as u64;
        self.again = self.pause.scaled(1, self.places);
    }

    /// Whether there are others to call.
    pub fn is_shared(&self) -> bool {
        self.places > 1
    }

    /// Whether it has said the words of this step.
    pub fn has_called(&self) -> bool {
        self.said.is_some() || self.ahead.as_ref().is_some_and(|it| it.said.is_some())
    }

    /// When it says its words again.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Takes a datagram in. Answers the session when it has come about.
    ///
    /// # Errors
    /// If the receiver sends this end away.
    pub fn hear(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Met>, MoverError> {
        let round = self.round(now);
        match (&mut self.step, datagram.split_first()) {
            (Step::Code(exchange), Some((&CODE_ANSWER, rest))) => {
                let Some(word) = rest.strip_prefix(&self.name) else { return Ok(None) };
                if let [why] = *word {
                    return Err(MoverError::unfit(
                        Refusal::of(why).map_or(Unfit::Foreign, Unfit::Refused),
                    ));
                }
                let Some(exchange) = exchange.take() else { return Ok(None) };
                let key = exchange.finish(word).ok_or(MoverError::Broken("no word of SPAKE2"))?;
                self.hello(Some(&key), now, Some(round))?;
                Ok(None)
            }
            (Step::Hello(initiator), Some((&ANSWER, rest))) => {
                let session = met(initiator, rest, self.is_clear)?;
                Ok(session.map(|session| Met { session, opened: None, round }))
            }
            (_, Some((&EARLY_ANSWER, rest))) => {
                let (Some(ahead), Some((is_taken, rest))) = (&mut self.ahead, rest.split_first())
                else {
                    return Ok(None);
                };
                let opened = ahead.said.filter(|_| *is_taken == 1);
                let round = ahead.said.map_or(round, |said| now.since(said));
                let session = met(&mut ahead.initiator, rest, self.is_clear)?;
                Ok(session.map(|session| Met { session, opened, round }))
            }
            _ => Ok(None),
        }
    }
}

/// The session that an answer to first words makes.
fn met(
    initiator: &mut Option<Box<Initiator>>,
    answer: &[u8],
    is_clear: bool,
) -> Result<Option<Session>, MoverError> {
    let whole = answer.get(..Initiator::expected(answer));
    let (Some(words), Some(initiator)) = (whole, initiator.take()) else { return Ok(None) };
    let channel = initiator.finish(words).map_err(MoverError::unfit)?;
    Session::over(channel, is_clear).map(Some)
}

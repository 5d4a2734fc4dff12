//! Who is at the other end: first words in datagrams, and what is sealed after them.
//!
//! ```text
//! 1 hello      first words (crate `handshake`), zeros up to 64 octets
//! 2 answer     the answer to them
//! 3 code       a name 8, the sender's word of SPAKE2 33, zeros up to 64 octets
//! 4 its answer the same name, the receiver's word
//! 5 sealed     session 4, number 8, a packet of NETBLT with its data, tag 16; or in the clear with a token for a tag
//! 6 unknown    session 4: what was sealed is of no session that there is
//! ```
//!
//! The first octet is the number in front. No answer is longer than what it answers, and before something sealed has come
//! from an address nothing but answers goes there. An unknown session is only a hint: the sender says its first words again.

use crate::link::Link;
use crate::{HEADER, MoverError};
use std::net::SocketAddr;
use trunkline_core::{Span, Time};
use trunkline_handshake::hello::{Initiator, Purpose, Refusal, Unfit};
use trunkline_handshake::{
    Channel, Cipher, Datagrams, Exchange, Hello, Key, SEALING, ShortCode, Side, WORD, random,
};
use trunkline_transport::netblt::wire::{Dialect, Packet, Ports, Read, decode, encode};

/// The purpose of first words, and that of a sender that wants to send in the clear.
const MOVE: Purpose = Purpose(3);
const CLEAR: Purpose = Purpose(4);
/// Octets of first words at least, so that no answer is longer.
const PADDED: usize = 64;
/// Octets of the name of an exchange, and of a session.
const NAME: usize = 8;
const ID: usize = 4;
/// Octets that a session adds to a packet of NETBLT.
pub(crate) const ADDED: usize = 1 + ID + SEALING;
/// Exchanges of codes that are kept at most.
const MOST_EXCHANGES: usize = 16;
/// Wrong codes after which a code is worth nothing.
const TRIES: u32 = 3;
/// From one try to say first words to the next: at first, and at most.
const AGAIN: (Span, Span) = (Span::from_millis(500), Span::from_secs(4));

const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const CODE: u8 = 3;
const CODE_ANSWER: u8 = 4;
const SEALED: u8 = 5;
const UNKNOWN: u8 = 6;

/// What the ends know that others do not.
#[derive(Debug, Clone)]
pub enum Secret {
    /// Nothing: who listens learns nothing, but nobody knows who the other end is.
    None,
    /// A key.
    Key(Key),
    /// A code for one transfer.
    Code(ShortCode),
}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    id: [u8; ID],
    seal: Datagrams,
    scratch: Vec<u8>,
    open: Vec<u8>,
}

impl Session {
    fn over(channel: Channel, is_clear: bool) -> Result<Session, MoverError> {
        let mut id = [0; ID];
        id.copy_from_slice(&channel.transcript()[..ID]);
        let (scratch, open) = (Vec::new(), Vec::new());
        let seal = match is_clear {
            false => channel.into_datagrams(),
            true => channel
                .into_clear_datagrams()
                .map_err(|_| MoverError::Broken("a connection without a token"))?,
        };
        Ok(Session { id, seal, scratch, open })
    }

    /// Sends a packet with its data.
    pub(crate) fn say(
        &mut self,
        link: &mut Link,
        to: SocketAddr,
        ports: Ports,
        packet: &Packet,
        data: &[u8],
    ) {
        self.scratch.clear();
        encode(Dialect::V5, ports, packet, &mut self.scratch);
        self.scratch.extend_from_slice(data);
        // An OPEN is as long as the data packets that it proposes: its answer shows that the path takes them.
        if let Packet::Open(terms) = packet {
            let least = HEADER + usize::from(terms.packet);
            self.scratch.resize(self.scratch.len().max(least), 0);
        }
        link.put(to, |out| {
            out.push(SEALED);
            out.extend(self.id);
            self.seal.seal(&self.scratch, out);
        });
    }

    /// The packet in a datagram, with its data, if the other end of this session sealed it.
    pub fn hear(&mut self, datagram: &[u8]) -> Option<(Read, &[u8])> {
        let sealed = datagram.strip_prefix(&[SEALED])?.strip_prefix(&self.id)?;
        self.seal.open(sealed, &mut self.open).ok()?;
        let read = decode(&self.open).ok()?;
        let data = &self.open[read.header..];
        Some((read, data))
    }

    /// Whether a datagram says that the other end does not know this session.
    pub fn is_unknown(&self, datagram: &[u8]) -> bool {
        datagram.strip_prefix(&[UNKNOWN]) == Some(&self.id)
    }

    /// Whether a datagram claims to be of this session.
    pub fn is_meant(&self, datagram: &[u8]) -> bool {
        datagram.first() == Some(&SEALED) && datagram[1..].starts_with(&self.id)
    }
}

/// The answer to what is sealed for a session that there is not. What is too short to be sealed has none.
pub fn unknown(datagram: &[u8]) -> Option<Vec<u8>> {
    if datagram.len() < ADDED {
        return None;
    }
    let id = datagram.strip_prefix(&[SEALED])?.first_chunk::<ID>()?;
    Some([&[UNKNOWN], &id[..]].concat())
}

fn padded(mut words: Vec<u8>) -> Vec<u8> {
    words.resize(words.len().max(PADDED), 0);
    words
}

/// A sender that says its first words until it is answered.
#[derive(Debug)]
pub struct Caller {
    step: Step,
    is_clear: bool,
    name: [u8; NAME],
    /// What is said, when again, and after how long then.
    words: Vec<u8>,
    due: Time,
    again: Span,
    /// When they were said last, and the time before.
    said: (Time, Time),
}

#[derive(Debug)]
enum Step {
    Code(Option<Exchange>),
    Hello(Option<Box<Initiator>>),
}

impl Caller {
    /// Begins with this secret, and wants what follows to be in the clear or not.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn begin(secret: &Secret, is_clear: bool, now: Time) -> Result<Caller, MoverError> {
        let name = random().map_err(MoverError::system("no random numbers"))?;
        let (due, again) = (now, AGAIN.0);
        let (step, words, said) = (Step::Code(None), Vec::new(), (now, now));
        let mut caller = Caller { step, is_clear, name, words, due, again, said };
        match secret {
            Secret::None => caller.hello(None, now)?,
            Secret::Key(key) => caller.hello(Some(key), now)?,
            Secret::Code(code) => {
                let begun = Exchange::begin(code, Side::First);
                let (exchange, word) = begun.map_err(MoverError::system("no random numbers"))?;
                caller.step = Step::Code(Some(exchange));
                caller.words = padded([&[CODE], &name[..], &word].concat());
            }
        }
        Ok(caller)
    }

    fn hello(&mut self, key: Option<&Key>, now: Time) -> Result<(), MoverError> {
        let purpose = if self.is_clear { CLEAR } else { MOVE };
        let begun = Initiator::begin_with(Cipher::faster(), key, purpose, &self.name);
        let begun = begun.map_err(MoverError::unfit)?;
        self.step = Step::Hello(Some(Box::new(begun.0)));
        self.words = padded([&[HELLO], &begun.1[..]].concat());
        (self.due, self.again, self.said) = (now, AGAIN.0, (now, now));
        Ok(())
    }

    /// What is to be said now, if anything is.
    pub fn say(&mut self, now: Time) -> Option<&[u8]> {
        if self.due > now {
            return None;
        }
        self.said = (now, self.said.0);
        self.due = now + self.again;
        self.again = self.again.scaled(2, 1).min(AGAIN.1);
        Some(&self.words)
    }

    /// How long an answer that comes now has taken at most, if it answers one of the last two tries.
    pub fn round(&self, now: Time) -> Span {
        now.since(self.said.1)
    }

    /// When it says its words again.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Takes a datagram in. Answers the session when it has come about.
    ///
    /// # Errors
    /// If the receiver sends this end away.
    pub fn hear(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Session>, MoverError> {
        match (&mut self.step, datagram.split_first()) {
            (Step::Code(exchange), Some((&CODE_ANSWER, rest))) => {
                let Some(word) = rest.strip_prefix(&self.name) else { return Ok(None) };
                let Some(exchange) = exchange.take() else { return Ok(None) };
                let key = exchange.finish(word).ok_or(MoverError::Broken("no word of SPAKE2"))?;
                self.hello(Some(&key), now)?;
                Ok(None)
            }
            (Step::Hello(initiator), Some((&ANSWER, rest))) => {
                let whole = rest.get(..Initiator::expected(rest));
                let (Some(words), Some(initiator)) = (whole, initiator.take()) else {
                    return Ok(None);
                };
                let channel = initiator.finish(words).map_err(MoverError::unfit)?;
                Session::over(channel, self.is_clear).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The receiver's door: who may come in.
#[derive(Debug)]
pub struct Door {
    secret: Secret,
    /// Whether senders may send in the clear.
    lets_clear: bool,
    /// The keys that codes have made, with this end's words, the newest last.
    exchanges: Vec<Made>,
    wrong: u32,
}

#[derive(Debug)]
struct Made {
    name: [u8; NAME],
    asked: Vec<u8>,
    key: Key,
    word: Vec<u8>,
}

/// What becomes of first words.
#[derive(Debug)]
pub enum Knock {
    /// They are none.
    Nothing,
    /// They are answered, no more.
    Answer(Vec<u8>),
    /// They are answered, and there is a session.
    Session(Vec<u8>, Box<Session>),
}

impl Door {
    /// A door that opens to this secret, and to who wants to send in the clear or not.
    pub fn new(secret: Secret, lets_clear: bool) -> Door {
        Door { secret, lets_clear, exchanges: Vec::new(), wrong: 0 }
    }

    /// Takes first words in.
    ///
    /// # Errors
    /// If too many wrong codes have been tried.
    pub fn knock(&mut self, datagram: &[u8]) -> Result<Knock, MoverError> {
        Ok(match datagram.split_first() {
            _ if datagram.len() < PADDED => Knock::Nothing,
            Some((&CODE, rest)) => self.exchange(rest).map_or(Knock::Nothing, Knock::Answer),
            Some((&HELLO, rest)) => self.hello(rest)?,
            _ => Knock::Nothing,
        })
    }

    fn exchange(&mut self, rest: &[u8]) -> Option<Vec<u8>> {
        let Secret::Code(code) = &self.secret else { return None };
        let (name, rest) = rest.split_first_chunk::<NAME>()?;
        let asked = rest.get(..WORD)?;
        let answer = |made: &Made| [&[CODE_ANSWER], &name[..], &made.word].concat();
        if let Some(made) = self.exchanges.iter().find(|it| it.name == *name) {
            return (made.asked == asked).then(|| answer(made));
        }
        let (exchange, word) = Exchange::begin(code, Side::Second).ok()?;
        let made = Made { name: *name, asked: asked.into(), key: exchange.finish(asked)?, word };
        let answer = answer(&made);
        if self.exchanges.len() == MOST_EXCHANGES {
            self.exchanges.remove(0);
        }
        self.exchanges.push(made);
        Some(answer)
    }

    fn hello(&mut self, rest: &[u8]) -> Result<Knock, MoverError> {
        let Ok(Some((hello, _))) = Hello::read(rest) else { return Ok(Knock::Nothing) };
        let is_clear = match hello.purpose() {
            MOVE => false,
            CLEAR if self.lets_clear => true,
            CLEAR => return Ok(Knock::Answer(vec![ANSWER, Refusal::Clear as u8])),
            _ => return Ok(Knock::Nothing),
        };
        let made = self.exchanges.iter().position(|it| it.name[..] == *hello.context());
        let key = match (&self.secret, made) {
            (Secret::None, _) => None,
            (Secret::Key(key), _) => Some(key),
            (Secret::Code(_), Some(at)) => Some(&self.exchanges[at].key),
            (Secret::Code(_), None) => {
                return Ok(Knock::Answer(vec![ANSWER, Refusal::KeyWanted as u8]));
            }
        };
        match (hello.accept(key), made) {
            (Ok((channel, words)), _) => {
                let words = [&[ANSWER], &words[..]].concat();
                Ok(Knock::Session(words, Box::new(Session::over(channel, is_clear)?)))
            }
            (Err(Unfit::Refused(why)), made) => {
                if let (Secret::Code(_), Some(at), Refusal::WrongKey) = (&self.secret, made, why) {
                    self.exchanges.remove(at);
                    self.wrong += 1;
                    if self.wrong >= TRIES {
                        return Err(MoverError::Guessed(self.wrong));
                    }
                }
                Ok(Knock::Answer(vec![ANSWER, why as u8]))
            }
            (Err(_), _) => Ok(Knock::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PORTS: Ports = Ports { local: 1, foreign: 2 };

    fn code(text: &str) -> Secret {
        Secret::Code(text.parse().unwrap())
    }

    /// Both ends' sessions, or why there are none. No answer is longer than what was asked.
    fn meet(near: &Secret, door: &mut Door) -> Result<(Session, Session), MoverError> {
        meet_as(near, false, door)
    }

    fn meet_as(
        near: &Secret,
        is_clear: bool,
        door: &mut Door,
    ) -> Result<(Session, Session), MoverError> {
        let mut caller = Caller::begin(near, is_clear, Time::ZERO).unwrap();
        let mut there = None;
        for _ in 0..4 {
            let words = caller.say(Time::NEVER.before(Span::from_secs(60))).unwrap().to_vec();
            let answer = match door.knock(&words)? {
                Knock::Nothing => panic!("no answer"),
                Knock::Answer(answer) => answer,
                Knock::Session(answer, session) => {
                    there = Some(*session);
                    answer
                }
            };
            assert!(answer.len() <= words.len());
            if let Some(session) = caller.hear(Time::ZERO, &answer)? {
                return Ok((session, there.unwrap()));
            }
        }
        panic!("no end")
    }

    #[test]
    fn who_knows_the_same_meets() {
        let key = || Secret::Key(Key::new([7; 32]));
        let secrets = [Secret::None, key(), code("abc-234")];
        let cases = secrets.map(|secret| [(secret.clone(), false), (secret, true)]);
        for (secret, is_clear) in cases.as_flattened() {
            let door = &mut Door::new(secret.clone(), true);
            let (mut near, mut there) = meet_as(secret, *is_clear, door).unwrap();
            let mut link = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
            let mut other = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
            near.say(&mut link, other.address().unwrap(), PORTS, &Packet::Done, b"");
            link.flush();
            other.wait(other.now() + Span::from_secs(1));
            let mut heard = 0;
            other
                .receive(|_, _, datagram| {
                    assert!(there.is_meant(datagram));
                    assert_eq!(there.hear(datagram).unwrap().0.packet, Packet::Done);
                    assert!(there.hear(datagram).is_none(), "a copy");
                    assert!(near.is_unknown(&unknown(datagram).unwrap()));
                    heard += 1;
                })
                .unwrap();
            assert_eq!(heard, 1);
        }
    }

    #[test]
    fn who_does_not_is_told() {
        let wrong = |near: &Secret, there: Secret| {
            meet(near, &mut Door::new(there, false)).unwrap_err().to_string()
        };
        let key = |octet| Secret::Key(Key::new([octet; 32]));
        assert!(wrong(&key(1), key(2)).contains("wrong code or key"));
        assert!(wrong(&Secret::None, key(2)).contains("asks for a code or a key"));
        assert!(wrong(&key(1), Secret::None).contains("--no-key"));
        assert!(wrong(&key(1), code("abc-234")).contains("asks for a code"));
    }

    /// In the clear only if both ends want it.
    #[test]
    fn one_end_alone_gets_nothing_in_the_clear() {
        let door = &mut Door::new(Secret::None, false);
        let refused = meet_as(&Secret::None, true, door).unwrap_err().to_string();
        assert!(refused.contains("--plaintext"), "{refused}");
        let (mut near, _) = meet(&Secret::None, &mut Door::new(Secret::None, true)).unwrap();
        let mut link = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
        let to = link.address().unwrap();
        near.say(&mut link, to, PORTS, &Packet::Text(b"nobody reads this".into()), b"");
        link.flush();
        link.wait(link.now() + Span::from_secs(1));
        let is_there = |all: &[u8]| all.windows(6).any(|it| it == b"nobody");
        link.receive(|_, _, datagram| assert!(!is_there(datagram))).unwrap();
    }

    /// A code dies after three wrong tries, and right ones before do not count.
    #[test]
    fn a_code_dies() {
        let mut door = Door::new(code("abc-234"), false);
        for wrong in ["abc-235", "abc-236"] {
            assert!(meet(&code(wrong), &mut door).unwrap_err().to_string().contains("wrong code"));
            meet(&code("abc-234"), &mut door).unwrap();
        }
        assert!(matches!(meet(&code("abc-237"), &mut door), Err(MoverError::Guessed(3))));
    }

    /// Words said again are answered with the same key's words: an answer may be lost.
    #[test]
    fn words_may_be_said_twice() {
        let mut door = Door::new(code("abc-234"), false);
        let mut caller = Caller::begin(&code("abc-234"), false, Time::ZERO).unwrap();
        let words = caller.say(Time::ZERO).unwrap().to_vec();
        let Knock::Answer(first) = door.knock(&words).unwrap() else { panic!("no answer") };
        let Knock::Answer(second) = door.knock(&words).unwrap() else { panic!("no answer") };
        assert_eq!(first, second);
        caller.hear(Time::ZERO, &first).unwrap();
        let words = caller.say(Time::ZERO).unwrap().to_vec();
        let Knock::Session(..) = door.knock(&words).unwrap() else { panic!("no session") };
        let Knock::Session(answer, _) = door.knock(&words).unwrap() else { panic!("no session") };
        assert!(caller.hear(Time::ZERO, &answer).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn whatever_knocks_is_answered_with_less(words in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..7) {
            let mut door = Door::new(code("abc-234"), false);
            let words = [&[kind], &words[..]].concat();
            if let Knock::Answer(answer) = door.knock(&words).unwrap() {
                prop_assert!(answer.len() <= words.len());
            }
            let mut caller = Caller::begin(&code("abc-234"), false, Time::ZERO).unwrap();
            let _ = caller.hear(Time::ZERO, &words);
        }
    }
}

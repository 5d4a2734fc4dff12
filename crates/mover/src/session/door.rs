//! The receiver's door: what becomes of first words.

use super::{
    ANSWER, CLEAR, CODE, CODE_ANSWER, EARLY, EARLY_ANSWER, HELLO, MOVE, NAME, PADDED, Secret,
    Session,
};
use crate::MoverError;
use trunkline_handshake::hello::{MOST_CONTEXT, MOST_SAID, Refusal, Unfit};
use trunkline_handshake::{Channel, Exchange, Hello, Key, Side, WORD};
use trunkline_transport::netblt::wire::{Packet, Ports, Terms, decode};

/// Exchanges of codes that are kept at most.
const MOST_EXCHANGES: usize = 16;
/// Wrong codes after which a code is worth nothing.
const TRIES: u32 = 3;
/// Octets of a datagram in which all first words are: two of such datagrams that are alike so far say the same.
pub(crate) const TELLING: usize = 128 + MOST_CONTEXT + MOST_SAID;

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
    /// There is a session, and an OPEN came with them. They are not answered yet.
    Early(Box<Arrived>),
}

/// First words with an OPEN. They may be old ones that somebody says again; only something sealed shows that they are not.
#[derive(Debug)]
pub struct Arrived {
    /// The session.
    pub session: Session,
    /// The OPEN, and the ports of the end that it came to.
    pub terms: Terms,
    /// See `terms`.
    pub ports: Ports,
    answer: Vec<u8>,
}

impl Arrived {
    /// The answer, which says whether the OPEN is answered too, without another.
    pub fn answer(&self, is_taken: bool) -> Vec<u8> {
        early_answer(is_taken, &self.answer)
    }
}

fn early_answer(is_taken: bool, answer: &[u8]) -> Vec<u8> {
    [&[EARLY_ANSWER, u8::from(is_taken)], answer].concat()
}

impl Door {
    /// A door that opens to this secret, and to who wants to send in the clear or not.
    pub fn new(secret: Secret, lets_clear: bool) -> Door {
        Door { secret, lets_clear, exchanges: Vec::new(), wrong: 0 }
    }

    /// Whether so many wrong codes have been tried that the code is worth nothing any more.
    ///
    /// # Errors
    /// If they have.
    pub fn is_guessed(&self) -> Result<(), MoverError> {
        if self.wrong >= TRIES { Err(MoverError::Guessed(self.wrong)) } else { Ok(()) }
    }

    /// Takes first words in.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn knock(&mut self, datagram: &[u8]) -> Result<Knock, MoverError> {
        Ok(match datagram.split_first() {
            _ if datagram.len() < PADDED || self.is_guessed().is_err() => Knock::Nothing,
            Some((&CODE, rest)) => self.exchange(rest).map_or(Knock::Nothing, Knock::Answer),
            Some((&HELLO, rest)) => self.hello(rest)?,
            Some((&EARLY, rest)) => self.early(rest)?,
            _ => Knock::Nothing,
        })
    }

    fn exchange(&mut self, rest: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = rest.split_first_chunk::<NAME>()?;
        let refusal = |why: Refusal| Some([&[CODE_ANSWER], &name[..], &[why as u8]].concat());
        let code = match &self.secret {
            Secret::Code(code) => code,
            Secret::Key(_) => return refusal(Refusal::WrongKey),
            Secret::None => return refusal(Refusal::Keyless),
        };
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
        Ok(match self.admit(&hello)? {
            Admitted::Not => Knock::Nothing,
            Admitted::Refused(why) => Knock::Answer(vec![ANSWER, why as u8]),
            Admitted::Yes { channel, answer, is_clear, .. } => {
                let session = Box::new(Session::over(*channel, is_clear)?);
                Knock::Session([&[ANSWER], &answer[..]].concat(), session)
            }
        })
    }

    fn early(&mut self, rest: &[u8]) -> Result<Knock, MoverError> {
        let Some((said, rest)) = rest.split_first_chunk() else { return Ok(Knock::Nothing) };
        let said = usize::from(u16::from_be_bytes(*said));
        let Ok(Some((hello, _))) = Hello::read_saying(rest, said) else {
            return Ok(Knock::Nothing);
        };
        let (channel, answer, is_clear, said) = match self.admit(&hello)? {
            Admitted::Not => return Ok(Knock::Nothing),
            Admitted::Refused(why) => {
                return Ok(Knock::Answer(early_answer(false, &[why as u8])));
            }
            Admitted::Yes { channel, answer, is_clear, said } => (channel, answer, is_clear, said),
        };
        let Ok(read) = decode(&said) else { return Ok(Knock::Nothing) };
        let Packet::Open(terms) = read.packet else { return Ok(Knock::Nothing) };
        let session = Session::over(*channel, is_clear)?;
        let ports = read.ports.turned();
        Ok(Knock::Early(Box::new(Arrived { session, terms, ports, answer })))
    }

    /// Whether who says this knows the secret.
    fn admit(&mut self, hello: &Hello) -> Result<Admitted, MoverError> {
        let is_clear = match hello.purpose() {
            MOVE => false,
            CLEAR if self.lets_clear => true,
            CLEAR => return Ok(Admitted::Refused(Refusal::Clear)),
            _ => return Ok(Admitted::Not),
        };
        let made = self.exchanges.iter().position(|it| it.name[..] == *hello.context());
        let key = match (&self.secret, made) {
            (Secret::None, _) => None,
            (Secret::Key(key), _) => Some(key),
            (Secret::Code(_), Some(at)) => Some(&self.exchanges[at].key),
            (Secret::Code(_), None) => return Ok(Admitted::Refused(Refusal::KeyWanted)),
        };
        match (hello.hear(key), made) {
            (Ok((channel, answer, said)), _) => {
                Ok(Admitted::Yes { channel: Box::new(channel), answer, is_clear, said })
            }
            (Err(Unfit::Refused(why)), made) => {
                if let (Secret::Code(_), Some(at), Refusal::WrongKey) = (&self.secret, made, why) {
                    self.exchanges.remove(at);
                    self.wrong += 1;
                }
                Ok(Admitted::Refused(why))
            }
            (Err(_), _) => Ok(Admitted::Not),
        }
    }
}

/// What is found of first words.
enum Admitted {
    Not,
    Refused(Refusal),
    Yes { channel: Box<Channel>, answer: Vec<u8>, is_clear: bool, said: Vec<u8> },
}

//! Who is at the other end: first words in datagrams, and what is sealed after them.
//!
//! ```text
//! 1 hello      first words (crate `handshake`), zeros up to 64 octets
//! 2 answer     the answer to them
//! 3 code       a name 8, the sender's word of SPAKE2 33, zeros up to 64 octets
//! 4 its answer the same name, the receiver's word
//! 5 sealed     session 4, number 8, a packet of NETBLT with its data, tag 16; or in the clear with a token for a tag
//! 6 unknown    session 4: what was sealed is of no session that there is
//! 7 early      length of an OPEN 2, first words that say it, zeros up to the length of the data packets that it proposes
//! 8 its answer 1 if the OPEN is answered without another, otherwise 0; the answer to the words
//! ```
//!
//! The first octet is the number in front. No answer is longer than what it answers, and before something sealed has come
//! from an address nothing but answers goes there. To the words of a sender of which nothing sealed has come yet belong, as their
//! answer, what the connection that they open has to say, as long as all of it together is not longer than they. An unknown session is only a hint: the sender says its first words again.

mod caller;
mod door;

pub use caller::{Caller, Early, Met};
pub(crate) use door::TELLING;
pub use door::{Arrived, Door, Knock};

use crate::link::Link;
use crate::{HEADER, MoverError};
use std::net::SocketAddr;
use trunkline_handshake::{Channel, Datagrams, Key, Purpose, SEALING, ShortCode};
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

const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const CODE: u8 = 3;
const CODE_ANSWER: u8 = 4;
const SEALED: u8 = 5;
const UNKNOWN: u8 = 6;
const EARLY: u8 = 7;
const EARLY_ANSWER: u8 = 8;

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

    /// Sends a packet with its data. Answers the octets of the datagram.
    pub(crate) fn say(
        &mut self,
        link: &mut Link,
        to: SocketAddr,
        ports: Ports,
        packet: &Packet,
        data: &[u8],
    ) -> usize {
        self.scratch.clear();
        encode(Dialect::V5, ports, packet, &mut self.scratch);
        self.scratch.extend_from_slice(data);
        // An OPEN is as long as the data packets that it proposes: its answer shows that the path takes them.
        if let Packet::Open(terms) = packet {
            let least = HEADER + usize::from(terms.packet);
            self.scratch.resize(self.scratch.len().max(least), 0);
        }
        let open = std::mem::take(&mut self.scratch);
        link.put(to, |out| self.seal(&open, out));
        self.scratch = open;
        ADDED + self.scratch.len()
    }

    /// Appends the datagram that carries these octets to `out`.
    pub fn seal(&mut self, open: &[u8], out: &mut Vec<u8>) {
        out.push(SEALED);
        out.extend(self.id);
        self.seal.seal(open, out);
    }

    /// The packet in a datagram, with its data, if the other end of this session sealed it and the data are as many as it says. What is
    /// behind them only makes the datagram longer.
    pub fn hear(&mut self, datagram: &[u8]) -> Option<(Read, &[u8])> {
        let sealed = datagram.strip_prefix(&[SEALED])?.strip_prefix(&self.id)?;
        self.seal.open(sealed, &mut self.open).ok()?;
        let read = decode(&self.open).ok()?;
        let bytes = match &read.packet {
            Packet::Data(head) => head.bytes,
            Packet::Parity(head) => head.bytes,
            _ => 0,
        };
        let data = self.open[read.header..].get(..bytes.into())?;
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

#[cfg(test)]
pub(crate) mod tests;

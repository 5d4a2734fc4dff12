//! The messages of a receiver, of which a CONTROL packet carries several.
//!
//! ```text
//! 0 type 1, padding 1, sequence number 2, buffer 4
//! OK      8 offered size 2, offered interval 2, control timer 2, padding 2
//! RESEND  8 number of missing 2, [offered size 2, offered interval 2: versions 4, 5,] padding 2, packets 2 each, padding to 4
//! ```

use super::{Burst, Dialect};

/// A numbered message. It keeps its number when it is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number; the first of a connection has 1.
    pub sequence: u16,
    /// The buffer concerned.
    pub buffer: u32,
    /// The message.
    pub said: Said,
}

/// The kinds of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The buffer may be sent.
    Go,
    /// All of the buffer has come.
    Ok {
        /// The burst that the receiver would like.
        offer: Burst,
        /// The value of the receiver's control timer in milliseconds.
        timer: u16,
    },
    /// Packets are missing.
    Resend {
        /// The burst that the receiver would like; versions 4 and 5.
        offer: Burst,
        /// Their numbers. None at all is an offer and no more.
        missing: Vec<u16>,
    },
}

const GO: u8 = 0;
const OK: u8 = 1;
const RESEND: u8 = 2;
const HEAD: usize = 8;

impl Message {
    /// Octets that it takes.
    pub fn size(&self, dialect: Dialect) -> usize {
        match &self.said {
            Said::Go => HEAD,
            Said::Ok { .. } => HEAD + 8,
            Said::Resend { missing, .. } => {
                resend_head(dialect) + missing.len().next_multiple_of(2) * 2
            }
        }
    }

    pub(super) fn encode(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let kind = match self.said {
            Said::Go => GO,
            Said::Ok { .. } => OK,
            Said::Resend { .. } => RESEND,
        };
        out.extend([kind, 0]);
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.buffer.to_be_bytes());
        let mut put = |word: u16| out.extend(word.to_be_bytes());
        match &self.said {
            Said::Go => {}
            Said::Ok { offer, timer } => {
                [offer.size, offer.interval, *timer, 0].into_iter().for_each(put);
            }
            Said::Resend { offer, missing } => {
                put(missing.len() as u16);
                if !dialect.is_classic() {
                    put(offer.size);
                    put(offer.interval);
                }
                put(0);
                missing.iter().for_each(|&number| put(number));
                if missing.len() % 2 == 1 {
                    put(0);
                }
            }
        }
    }

    /// Reads the first message of `octets`. Answers it and what follows.
    pub(super) fn decode(octets: &[u8], dialect: Dialect) -> Option<(Message, &[u8])> {
        let (head, rest) = octets.split_at_checked(HEAD)?;
        let word = |at: usize| Some(u16::from_be_bytes(*rest.get(at..at + 2)?.first_chunk()?));
        let (said, length) = match head[0] {
            GO => (Said::Go, 0),
            OK => {
                let offer = Burst { size: word(0)?, interval: word(2)? };
                (Said::Ok { offer, timer: word(4)? }, 8)
            }
            RESEND => {
                let count = usize::from(word(0)?);
                let offer = match dialect.is_classic() {
                    true => Burst::default(),
                    false => Burst { size: word(2)?, interval: word(4)? },
                };
                let from = resend_head(dialect) - HEAD;
                let numbers = rest.get(from..from + count * 2)?.chunks_exact(2);
                let missing = numbers.map(|it| u16::from_be_bytes([it[0], it[1]])).collect();
                (Said::Resend { offer, missing }, from + count.next_multiple_of(2) * 2)
            }
            _ => return None,
        };
        let sequence = u16::from_be_bytes([head[2], head[3]]);
        let buffer = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        Some((Message { sequence, buffer, said }, rest.get(length..)?))
    }
}

/// Octets of a RESEND in front of the packets' numbers.
pub(crate) fn resend_head(dialect: Dialect) -> usize {
    if dialect.is_classic() { HEAD + 4 } else { HEAD + 8 }
}

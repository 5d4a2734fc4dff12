//! The first words of a connection, one message each way.
//!
//! ```text
//! client   magic 4, version 1, how 1, purpose 1, length of the context 1, context, message of Noise
//! server   0, message of Noise; or a refusal in one octet, and the end
//! ```
//!
//! Of *how*, bit 0 says that there is a key, and bit 1 that the cipher is AES-GCM instead of ChaCha20-Poly1305.
//! All but Noise's message is its prologue, so that both ends have read the same. With a key the client's
//! message already shows that it has the key, before the server has worked for it; it may be one that was
//! overheard, which the first sealed message then tells.
//!
//! A client with a key may say something with its first words, inside Noise's message (§7.3, 10.2): nobody without the key reads or
//! changes it, but who learns the key later does, and whoever overheard it can say it again. How long it is the two ends
//! agree on elsewhere.

use crate::{Channel, Key};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use std::fmt;

/// The first octets.
pub const MAGIC: [u8; 4] = *b"TLNK";
/// The version that both ends must speak. Version 1 had no magic.
pub const VERSION: u8 = 2;
/// Octets before the context.
const FIXED: usize = 8;
/// The bits of the octet that says how: a key, and AES-GCM.
const KEYED: u8 = 1;
const AES: u8 = 2;
/// Most octets of the context.
pub const MOST_CONTEXT: usize = 64;
/// Octets of a public key (Noise §12.1); those of the tag of what is encrypted follow (§12.3).
const POINT: usize = 32;
/// See [`POINT`].
const TAG: usize = 16;
/// Octets of the server's answer.
pub const ANSWER: usize = 1 + POINT + TAG;
/// Most octets of what a client says with its first words.
pub const MOST_SAID: usize = 512;
/// The longest first words of a client that says nothing with them.
pub const LONGEST: usize = FIXED + MOST_CONTEXT + POINT + TAG;

/// The purpose of a connection. First words for one purpose are worth nothing for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose(pub u8);

/// The cipher of a connection (Noise §12.3, §12.4), which the client chooses. Under AES-GCM no connection may carry more than
/// 2^56 octets (Noise §14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// ChaCha20-Poly1305: fast on any processor.
    ChaChaPoly,
    /// AES-256-GCM: several times faster on a processor with instructions for it, and several times slower without.
    AesGcm,
}

impl Cipher {
    /// The faster one on this processor.
    pub fn faster() -> Cipher {
        #[cfg(target_arch = "x86_64")]
        let has_aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let has_aes = std::arch::is_aarch64_feature_detected!("aes");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let has_aes = false;
        if has_aes { Cipher::AesGcm } else { Cipher::ChaChaPoly }
    }
}

/// The reason why a client is sent away. It is one octet: this end has a text of its own for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// It speaks another version.
    Version = 1,
    /// It has no key, and needs one.
    KeyWanted = 2,
    /// It has a key, and the server has none.
    Keyless = 3,
    /// Its key is another.
    WrongKey = 4,
    /// It may not come from there.
    Address = 5,
    /// What it names is not there, or no more.
    Unknown = 6,
    /// There is no room.
    Busy = 7,
    /// It wants to send in the clear.
    Clear = 8,
}

impl Refusal {
    const ALL: [Refusal; 8] = [
        Refusal::Version,
        Refusal::KeyWanted,
        Refusal::Keyless,
        Refusal::WrongKey,
        Refusal::Address,
        Refusal::Unknown,
        Refusal::Busy,
        Refusal::Clear,
    ];

    /// The refusal that an octet stands for, if it does.
    pub fn of(octet: u8) -> Option<Refusal> {
        Refusal::ALL.into_iter().find(|one| *one as u8 == octet)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Version => "it speaks another version of the protocol: use the same trunkline",
            Refusal::KeyWanted => {
                "the server asks for a key: give its own with --key-file or TRUNKLINE_KEY"
            }
            Refusal::Keyless => {
                "the server has no key, so that it cannot prove who it is; leave --key-file and \
                 TRUNKLINE_KEY out if you trust it all the same"
            }
            Refusal::WrongKey => "wrong key: use the server's with --key-file or TRUNKLINE_KEY",
            Refusal::Address => "this address is not on its list of clients (--allow)",
            Refusal::Unknown => "no such session or flow, or its connection is there already",
            Refusal::Busy => "it has no room; try again later",
            Refusal::Clear => "it takes nothing in the clear",
        })
    }
}

/// The reason why first words are of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// They are something else.
    Foreign,
    /// The server refuses.
    Refused(Refusal),
    /// The server does not have the client's key, or its answer was changed on the way.
    Unproved,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Foreign => f.write_str("its first words are something else"),
            Unfit::Refused(refusal) => refusal.fmt(f),
            Unfit::Unproved => f.write_str("the server does not have our key"),
        }
    }
}

impl std::error::Error for Unfit {}

/// A client's first words, as a server reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    prologue: Vec<u8>,
    message: Vec<u8>,
}

impl Hello {
    /// The first words in `octets` and their length; `None` if some are missing.
    ///
    /// # Errors
    /// If no more octets would make first words of these.
    pub fn read(octets: &[u8]) -> Result<Option<(Hello, usize)>, Unfit> {
        Hello::read_saying(octets, 0)
    }

    /// The same of a client that says so many octets with them, [`MOST_SAID`] at most.
    ///
    /// # Errors
    /// As those of [`read`](Hello::read).
    pub fn read_saying(octets: &[u8], said: usize) -> Result<Option<(Hello, usize)>, Unfit> {
        if octets.iter().zip(MAGIC).any(|(&octet, right)| octet != right) {
            return Err(Unfit::Foreign);
        }
        let Some(fixed) = octets.first_chunk::<FIXED>() else { return Ok(None) };
        if fixed[4] != VERSION {
            return Err(Unfit::Refused(Refusal::Version));
        }
        let context = usize::from(fixed[7]);
        let is_keyed = fixed[5] & KEYED != 0;
        let is_told = said > MOST_SAID || said > 0 && !is_keyed;
        if fixed[5] > KEYED | AES || context > MOST_CONTEXT || is_told {
            return Err(Unfit::Foreign);
        }
        let length = FIXED + context + message_length(is_keyed) + said;
        let Some(all) = octets.get(..length) else { return Ok(None) };
        let (prologue, message) = all.split_at(FIXED + context);
        Ok(Some((Hello { prologue: prologue.into(), message: message.into() }, length)))
    }

    /// The purpose of the connection.
    pub fn purpose(&self) -> Purpose {
        Purpose(self.prologue[6])
    }

    /// The name of what is asked for, in the clear.
    pub fn context(&self) -> &[u8] {
        &self.prologue[FIXED..]
    }

    /// Answers a client that must have this key: the channel, and the octets for it.
    ///
    /// # Errors
    /// If it has not, or has one although none is asked for.
    pub fn accept(&self, key: Option<&Key>) -> Result<(Channel, Vec<u8>), Unfit> {
        self.hear(key).map(|(channel, answer, _)| (channel, answer))
    }

    /// The same, and what the client says with its first words. It may be an old client's, said again by somebody else.
    ///
    /// # Errors
    /// As those of [`accept`](Hello::accept).
    pub fn hear(&self, key: Option<&Key>) -> Result<(Channel, Vec<u8>, Vec<u8>), Unfit> {
        let how = self.prologue[5];
        match (key.is_some(), how & KEYED != 0) {
            (true, false) => return Err(Unfit::Refused(Refusal::KeyWanted)),
            (false, true) => return Err(Unfit::Refused(Refusal::Keyless)),
            _ => {}
        }
        let cipher = if how & AES != 0 { Cipher::AesGcm } else { Cipher::ChaChaPoly };
        let mut state = build(key, cipher, &self.prologue, |builder| builder.build_responder())?;
        let refusal =
            if key.is_some() { Unfit::Refused(Refusal::WrongKey) } else { Unfit::Foreign };
        let mut said = vec![0; self.message.len()];
        let length = state.read_message(&self.message, &mut said).map_err(|_| refusal)?;
        said.truncate(length);
        let answer = [vec![0], write(&mut state, &[])?].concat();
        Ok((Channel::over(state).ok_or(Unfit::Foreign)?, answer, said))
    }
}

/// A client that has said its first words.
pub struct Initiator {
    state: HandshakeState,
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Initiator(…)")
    }
}

impl Initiator {
    /// The first words with this key and ChaCha20-Poly1305, and who awaits the answer to them. Of the context the first
    /// [`MOST_CONTEXT`] octets count.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn begin(
        key: Option<&Key>,
        purpose: Purpose,
        context: &[u8],
    ) -> Result<(Initiator, Vec<u8>), Unfit> {
        Initiator::begin_with(Cipher::ChaChaPoly, key, purpose, context)
    }

    /// The same with this cipher.
    ///
    /// # Errors
    /// As those of [`begin`](Initiator::begin).
    pub fn begin_with(
        cipher: Cipher,
        key: Option<&Key>,
        purpose: Purpose,
        context: &[u8],
    ) -> Result<(Initiator, Vec<u8>), Unfit> {
        Initiator::begin_keyed(cipher, key, (purpose, context), &[])
    }

    /// The same with a key, saying something that only who has the key can read. Of it the first [`MOST_SAID`] octets count.
    ///
    /// # Errors
    /// As those of [`begin`](Initiator::begin).
    pub fn begin_saying(
        cipher: Cipher,
        key: &Key,
        purpose: Purpose,
        context: &[u8],
        said: &[u8],
    ) -> Result<(Initiator, Vec<u8>), Unfit> {
        let said = &said[..said.len().min(MOST_SAID)];
        Initiator::begin_keyed(cipher, Some(key), (purpose, context), said)
    }

    fn begin_keyed(
        cipher: Cipher,
        key: Option<&Key>,
        (purpose, context): (Purpose, &[u8]),
        said: &[u8],
    ) -> Result<(Initiator, Vec<u8>), Unfit> {
        let context = &context[..context.len().min(MOST_CONTEXT)];
        let mut words = MAGIC.to_vec();
        let keyed = if key.is_some() { KEYED } else { 0 };
        let aes = if cipher == Cipher::AesGcm { AES } else { 0 };
        words.extend([VERSION, keyed | aes, purpose.0, context.len() as u8]);
        words.extend(context);
        let mut state = build(key, cipher, &words, |builder| builder.build_initiator())?;
        words.extend(write(&mut state, said)?);
        Ok((Initiator { state }, words))
    }

    /// Octets of the answer that begins with these: one of a refusal, else [`ANSWER`].
    pub fn expected(answer: &[u8]) -> usize {
        if answer.first().is_none_or(|&status| status == 0) { ANSWER } else { 1 }
    }

    /// Takes the server's answer in, all [`expected`](Initiator::expected) octets of it.
    ///
    /// # Errors
    /// If it refuses, or has another key.
    pub fn finish(mut self, answer: &[u8]) -> Result<Channel, Unfit> {
        let (&status, message) = answer.split_first().ok_or(Unfit::Foreign)?;
        if status != 0 {
            return Err(Refusal::of(status).map_or(Unfit::Foreign, Unfit::Refused));
        }
        let read = self.state.read_message(message, &mut [0; LONGEST]);
        read.map_err(|_| Unfit::Unproved)?;
        Channel::over(self.state).ok_or(Unfit::Foreign)
    }
}

/// Octets of the client's message of Noise: a public key, and with a key the tag of nothing.
const fn message_length(keyed: bool) -> usize {
    if keyed { POINT + TAG } else { POINT }
}

/// The next message of Noise, which carries `said`.
fn write(state: &mut HandshakeState, said: &[u8]) -> Result<Vec<u8>, Unfit> {
    let mut message = vec![0; LONGEST + said.len()];
    // Fails only if the other end's point is one that no honest end draws.
    let length = state.write_message(said, &mut message).map_err(|_| Unfit::Foreign)?;
    message.truncate(length);
    Ok(message)
}

type Build = fn(Builder<'_>) -> Result<HandshakeState, snow::Error>;

fn build(
    key: Option<&Key>,
    cipher: Cipher,
    prologue: &[u8],
    end: Build,
) -> Result<HandshakeState, Unfit> {
    let name = match (key, cipher) {
        (Some(_), Cipher::ChaChaPoly) => "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s",
        (None, Cipher::ChaChaPoly) => "Noise_NN_25519_ChaChaPoly_BLAKE2s",
        (Some(_), Cipher::AesGcm) => "Noise_NNpsk0_25519_AESGCM_BLAKE2s",
        (None, Cipher::AesGcm) => "Noise_NN_25519_AESGCM_BLAKE2s",
    };
    let params: NoiseParams = name.parse().map_err(|_| Unfit::Foreign)?;
    let builder = Builder::new(params).prologue(prologue);
    let keyed = match key {
        Some(key) => builder.and_then(|builder| builder.psk(0, key.octets())),
        None => builder,
    };
    keyed.and_then(end).map_err(|_| Unfit::Foreign)
}

#[cfg(test)]
mod tests;

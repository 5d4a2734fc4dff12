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
/// The longest first words of a client.
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

    fn of(octet: u8) -> Option<Refusal> {
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
        if octets.iter().zip(MAGIC).any(|(&octet, right)| octet != right) {
            return Err(Unfit::Foreign);
        }
        let Some(fixed) = octets.first_chunk::<FIXED>() else { return Ok(None) };
        if fixed[4] != VERSION {
            return Err(Unfit::Refused(Refusal::Version));
        }
        let context = usize::from(fixed[7]);
        if fixed[5] > KEYED | AES || context > MOST_CONTEXT {
            return Err(Unfit::Foreign);
        }
        let length = FIXED + context + message_length(fixed[5] & KEYED != 0);
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
        state.read_message(&self.message, &mut [0; LONGEST]).map_err(|_| refusal)?;
        let answer = [vec![0], write(&mut state)?].concat();
        Ok((Channel::over(state).ok_or(Unfit::Foreign)?, answer))
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
        let context = &context[..context.len().min(MOST_CONTEXT)];
        let mut words = MAGIC.to_vec();
        let keyed = if key.is_some() { KEYED } else { 0 };
        let aes = if cipher == Cipher::AesGcm { AES } else { 0 };
        words.extend([VERSION, keyed | aes, purpose.0, context.len() as u8]);
        words.extend(context);
        let mut state = build(key, cipher, &words, |builder| builder.build_initiator())?;
        words.extend(write(&mut state)?);
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

/// The next message of Noise, which carries nothing of ours.
fn write(state: &mut HandshakeState) -> Result<Vec<u8>, Unfit> {
    let mut message = vec![0; LONGEST];
    // Fails only if the other end's point is one that no honest end draws.
    let length = state.write_message(&[], &mut message).map_err(|_| Unfit::Foreign)?;
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PURPOSE: Purpose = Purpose(9);

    fn key(octet: u8) -> Key {
        Key::new([octet; 32])
    }

    /// Both ends' channels, or why there are none.
    fn meet(client: Option<&Key>, server: Option<&Key>) -> Result<(Channel, Channel), Unfit> {
        meet_with(Cipher::ChaChaPoly, client, server)
    }

    fn meet_with(
        cipher: Cipher,
        client: Option<&Key>,
        server: Option<&Key>,
    ) -> Result<(Channel, Channel), Unfit> {
        let begun = Initiator::begin_with(cipher, client, PURPOSE, b"context");
        let (initiator, words) = begun.unwrap();
        let (hello, length) = Hello::read(&words)?.unwrap();
        assert_eq!(
            (length, hello.purpose(), hello.context()),
            (words.len(), PURPOSE, &b"context"[..])
        );
        let (there, answer) = hello.accept(server)?;
        assert_eq!(Initiator::expected(&answer[..1]), answer.len());
        Ok((initiator.finish(&answer)?, there))
    }

    #[test]
    fn who_has_the_same_key_meets_and_nobody_else() {
        let ciphers = [Cipher::ChaChaPoly, Cipher::AesGcm];
        let cases = ciphers.map(|cipher| [(cipher, None), (cipher, Some(key(1)))]);
        for (cipher, key) in cases.as_flattened() {
            let (mut near, mut there) = meet_with(*cipher, key.as_ref(), key.as_ref()).unwrap();
            assert_eq!(near.transcript(), there.transcript());
            let sealed = near.seal(b"a message");
            there.take(&sealed);
            assert_eq!(there.open(), Ok(Some(b"a message".to_vec())));
        }
        let refused =
            |client: Option<&Key>, server: Option<&Key>| meet(client, server).unwrap_err();
        assert_eq!(refused(Some(&key(1)), Some(&key(2))), Unfit::Refused(Refusal::WrongKey));
        assert_eq!(refused(None, Some(&key(2))), Unfit::Refused(Refusal::KeyWanted));
        assert_eq!(refused(Some(&key(1)), None), Unfit::Refused(Refusal::Keyless));
    }

    #[test]
    fn a_server_without_the_key_cannot_answer() {
        let (initiator, words) = Initiator::begin(Some(&key(1)), PURPOSE, b"").unwrap();
        // It can only make up an answer: here another client's.
        let (_, other) = Initiator::begin(Some(&key(2)), PURPOSE, b"").unwrap();
        let answer = Hello::read(&other).unwrap().unwrap().0.accept(Some(&key(2))).unwrap().1;
        assert_eq!(initiator.finish(&answer).unwrap_err(), Unfit::Unproved);
        assert!(Hello::read(&words).unwrap().unwrap().0.accept(Some(&key(2))).is_err());
    }

    /// Words that were overheard make a channel of which only the server's end has the keys.
    #[test]
    fn overheard_words_open_nothing() {
        let (_, words) = Initiator::begin(Some(&key(1)), PURPOSE, b"").unwrap();
        let (hello, _) = Hello::read(&words).unwrap().unwrap();
        let (mut first, _) = hello.accept(Some(&key(1))).unwrap();
        let (mut second, _) = hello.accept(Some(&key(1))).unwrap();
        assert_ne!(first.transcript(), second.transcript());
        second.take(&first.seal(b"for one of them"));
        assert!(second.open().is_err());
    }

    #[test]
    fn every_refusal_is_one_octet_that_reads_back() {
        for refusal in Refusal::ALL {
            let (initiator, _) = Initiator::begin(None, PURPOSE, b"").unwrap();
            let answer = [refusal as u8];
            assert_eq!(Initiator::expected(&answer), 1);
            assert_eq!(initiator.finish(&answer).unwrap_err(), Unfit::Refused(refusal));
            assert!(!refusal.to_string().contains('\n'));
        }
    }

    #[test]
    fn another_version_and_another_protocol_are_told_apart() {
        let (_, mut words) = Initiator::begin(None, PURPOSE, b"").unwrap();
        words[4] = 3;
        assert_eq!(Hello::read(&words).unwrap_err(), Unfit::Refused(Refusal::Version));
        assert_eq!(Hello::read(b"GET / HTTP/1.1").unwrap_err(), Unfit::Foreign);
        assert_eq!(Hello::read(b"TL"), Ok(None));
    }

    proptest! {
        #[test]
        fn changed_words_are_refused(at: prop::sample::Index, change in 1u8..) {
            let (_, mut words) = Initiator::begin(Some(&key(1)), PURPOSE, b"context").unwrap();
            let at = at.index(words.len());
            words[at] ^= change;
            let met = Hello::read(&words).map(|found| {
                // A longer context than there are octets: the rest is waited for.
                found.is_some_and(|(hello, _)| hello.accept(Some(&key(1))).is_ok())
            });
            prop_assert!(matches!(met, Err(_) | Ok(false)));
        }

        #[test]
        fn a_changed_answer_is_refused(at in 0..ANSWER, change in 1u8.., keyed: bool) {
            let key = keyed.then(|| key(1));
            let (initiator, words) = Initiator::begin(key.as_ref(), PURPOSE, b"").unwrap();
            let (hello, _) = Hello::read(&words).unwrap().unwrap();
            let mut answer = hello.accept(key.as_ref()).unwrap().1;
            answer[at] ^= change;
            prop_assert!(initiator.finish(&answer).is_err());
        }

        #[test]
        fn whatever_comes_is_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let words = [&MAGIC[..], &[VERSION], &octets].concat();
            for octets in [&octets[..], &words] {
                if let Ok(Some((hello, length))) = Hello::read(octets) {
                    prop_assert!(length <= octets.len());
                    prop_assert!(hello.accept(Some(&key(1))).is_err());
                }
            }
        }
    }
}

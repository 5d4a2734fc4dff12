//! A short code that two people tell each other, and the key that two ends make of it.
//!
//! SPAKE2 (RFC 9382, in the form of the crate `spake2`) gives both ends the same key if they know the same code. Who does
//! not know it learns nothing by listening, and can try one code for each exchange: the end that shows the code counts
//! wrong tries, and a code of six letters (31^6, 2^29.7) with three tries is guessed once in 300 million times.

use crate::{Key, random};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Letters and digits that nobody takes for others.
const LETTERS: &[u8; 31] = b"abcdefghjkmnpqrstuvwxyz23456789";
/// Letters of a code.
const LENGTH: usize = 6;
/// Octets of what each end says to the other.
pub const WORD: usize = 33;

/// A short code, in two groups of three letters.
#[derive(Clone, PartialEq, Eq)]
pub struct ShortCode([u8; LENGTH]);

impl fmt::Debug for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShortCode(…)")
    }
}

impl fmt::Display for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(LENGTH / 2);
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        write!(f, "{}-{}", text(first), text(second))
    }
}

/// A text that is no short code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no code: it has six letters or digits, such as abc-234, as `trunkline receive` prints it"
)]
pub struct NoCode(String);

impl FromStr for ShortCode {
    type Err = NoCode;

    /// Reads a code, in small or capital letters, with or without hyphens.
    fn from_str(text: &str) -> Result<ShortCode, NoCode> {
        let letters: Vec<u8> =
            text.trim().to_ascii_lowercase().bytes().filter(|&it| it != b'-').collect();
        let code = <[u8; LENGTH]>::try_from(letters).ok();
        let code = code.filter(|code| code.iter().all(|letter| LETTERS.contains(letter)));
        code.map(ShortCode).ok_or_else(|| NoCode(text.to_owned()))
    }
}

impl ShortCode {
    /// A code that nobody can foretell.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn draw() -> std::io::Result<ShortCode> {
        // Octets from 248 on would make the first letters likelier than the others.
        let even = 256 / LETTERS.len() * LETTERS.len();
        let mut code = Vec::new();
        while code.len() < LENGTH {
            let [octet] = random()?;
            if usize::from(octet) < even {
                code.push(LETTERS[usize::from(octet) % LETTERS.len()]);
            }
        }
        Ok(ShortCode(code.try_into().unwrap_or([LETTERS[0]; LENGTH])))
    }
}

/// The end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It begins.
    First,
    /// It answers.
    Second,
}

/// An end that has said its word and waits for the other's.
pub struct Exchange(Spake2<Ed25519Group>);

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange(…)")
    }
}

impl Exchange {
    /// Begins with this code. Answers what the other end is to be told.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn begin(code: &ShortCode, side: Side) -> std::io::Result<(Exchange, Vec<u8>)> {
        let (first, second) =
            (Identity::new(b"trunkline send"), Identity::new(b"trunkline receive"));
        let password = Password::new(code.0);
        // The crate draws from the system and panics if it cannot.
        random::<1>()?;
        let (state, word) = match side {
            Side::First => Spake2::start_a(&password, &first, &second),
            Side::Second => Spake2::start_b(&password, &first, &second),
        };
        Ok((Exchange(state), word))
    }

    /// The key, from the other end's word. `None` if that is none. Whether the other end has the same key, the handshake
    /// with it shows.
    pub fn finish(self, word: &[u8]) -> Option<Key> {
        let secret = self.0.finish(word).ok()?;
        Some(Key::new(secret.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(first: &str, second: &str) -> (Key, Key) {
        let begin = |code: &str, side| Exchange::begin(&code.parse().unwrap(), side).unwrap();
        let (one, other) = (begin(first, Side::First), begin(second, Side::Second));
        assert_eq!((one.1.len(), other.1.len()), (WORD, WORD));
        (one.0.finish(&other.1).unwrap(), other.0.finish(&one.1).unwrap())
    }

    #[test]
    fn the_same_code_makes_the_same_key_and_another_does_not() {
        let (one, other) = keys("abc-234", "ABC234");
        assert_eq!(one.octets(), other.octets());
        let (again, _) = keys("abc-234", "abc-234");
        assert_ne!(one.octets(), again.octets());
        let (one, other) = keys("abc-234", "abc-235");
        assert_ne!(one.octets(), other.octets());
    }

    #[test]
    fn foreign_words_make_no_key() {
        let begin = || Exchange::begin(&"abc-234".parse().unwrap(), Side::First).unwrap();
        let (_, own) = begin();
        for word in [&b""[..], &[0; 5], &[0xff; WORD], &own] {
            assert!(begin().0.finish(word).is_none());
        }
    }

    #[test]
    fn codes_read_back_and_use_all_letters() {
        let mut seen = [0; 31];
        for _ in 0..500 {
            let code = ShortCode::draw().unwrap();
            assert_eq!(code.to_string().parse(), Ok(code.clone()));
            for letter in code.0 {
                seen[LETTERS.iter().position(|&it| it == letter).unwrap()] += 1;
            }
        }
        assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
        for wrong in ["", "abc-23", "abc-2345", "abc-il0", "äbc-234"] {
            assert!(wrong.parse::<ShortCode>().is_err(), "{wrong}");
        }
    }
}

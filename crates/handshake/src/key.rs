//! The key that two ends share: its sources, and its derivation from a passphrase.

use crate::SECRET;
use argon2::{Algorithm, Argon2, Params, Version};
use rustix::fs::Mode;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use thiserror::Error;

/// The environment variable that may hold the key.
pub const VARIABLE: &str = "TRUNKLINE_KEY";
/// Fewest octets of a passphrase.
const SHORTEST: usize = 8;
/// Most octets that are read of a key file.
const LONGEST: u64 = 4096;
/// Memory, passes and lanes of Argon2id: the second recommended choice of RFC 9106 §4.
const STRETCH: (u32, u32, u32) = (64 * 1024, 3, 4);
/// Both ends stretch before they have spoken, so that the salt is the same everywhere.
const SALT: &[u8] = b"trunkline shared key 1";

/// A key that cannot be used.
#[derive(Debug, Error)]
#[error("{origin}: {reason}")]
pub struct KeyError {
    /// The file or the variable, with the word for it.
    pub origin: String,
    /// Cause and remedy.
    pub reason: String,
}

/// A secret of 256 bits that both ends know. It is never sent; its octets are never printed.
#[derive(Clone)]
pub struct Key([u8; SECRET]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A key of these octets, which nobody can foretell.
    pub fn new(octets: [u8; SECRET]) -> Key {
        Key(octets)
    }

    /// A key as a user gives it; leading and trailing white space does not count. Sixty-four hexadecimal
    /// digits are taken as they are. Anything else may be a passphrase, and is stretched by Argon2id, which
    /// takes some tenths of a second. `origin` says in an error where the key is from.
    ///
    /// # Errors
    /// If it is shorter than eight octets.
    pub fn from_text(text: &[u8], origin: &str) -> Result<Key, KeyError> {
        let text = text.trim_ascii();
        if text.len() < SHORTEST {
            let reason = format!(
                "a key of {} octets can be guessed; write at least {SHORTEST}, \
                 for instance with `head -c 24 /dev/urandom | base64`",
                text.len()
            );
            return Err(KeyError { origin: origin.into(), reason });
        }
        match from_digits(text) {
            Some(octets) => Ok(Key(octets)),
            None => stretched(text)
                .map_err(|reason| KeyError { origin: origin.into(), reason: reason.to_string() }),
        }
    }

    /// Reads a key file, which only its owner may read or write.
    ///
    /// # Errors
    /// If it cannot be read, others than its owner can read it, or the key is too short.
    pub fn from_file(path: &Path) -> Result<Key, KeyError> {
        let name = path.display().to_string();
        let origin = format!("key file {name}");
        let fail = |reason: String| KeyError { origin: origin.clone(), reason };
        let file = File::open(path).map_err(|cause| fail(cause.to_string()))?;
        let data = file.metadata().map_err(|cause| fail(cause.to_string()))?;
        let others = Mode::RWXG | Mode::RWXO;
        if Mode::from_bits_truncate(data.mode()).intersects(others) {
            return Err(fail(format!(
                "others than its owner may use it (mode {:o}): chmod 600 {name}",
                data.mode() & 0o777
            )));
        }
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).map_err(|cause| fail(cause.to_string()))?;
        Key::from_text(&text, &origin)
    }

    /// The key of the file, else of the environment variable [`VARIABLE`], if either is there.
    ///
    /// # Errors
    /// If the one that is there cannot be used.
    pub fn find(file: Option<&Path>) -> Result<Option<Key>, KeyError> {
        match (file, std::env::var_os(VARIABLE)) {
            (Some(path), _) => Key::from_file(path).map(Some),
            (None, Some(text)) => from_variable(&text).map(Some),
            (None, None) => Ok(None),
        }
    }

    pub(crate) fn octets(&self) -> &[u8; SECRET] {
        &self.0
    }
}

fn stretched(text: &[u8]) -> Result<Key, argon2::Error> {
    let (memory, passes, lanes) = STRETCH;
    let params = Params::new(memory, passes, lanes, Some(SECRET))?;
    let mut octets = [0; SECRET];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
        text,
        SALT,
        &mut octets,
    )?;
    Ok(Key(octets))
}

/// The key that the environment variable holds.
fn from_variable(text: &OsStr) -> Result<Key, KeyError> {
    Key::from_text(text.as_encoded_bytes(), &format!("the variable {VARIABLE}"))
}

/// The octets of sixty-four hexadecimal digits.
fn from_digits(text: &[u8]) -> Option<[u8; SECRET]> {
    let text = std::str::from_utf8(text).ok()?;
    if text.len() != 2 * SECRET || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut octets = [0; SECRET];
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn digits_are_a_key_and_words_are_stretched() {
        let digits = "00112233445566778899aAbBcCdDeEfF".repeat(2);
        let key = Key::from_text(format!(" {digits}\n").as_bytes(), "x").unwrap();
        assert_eq!(key.0[..4], [0, 0x11, 0x22, 0x33]);
        assert_eq!(from_digits(&digits.as_bytes()[1..]), None);
        assert_eq!(from_digits("é".repeat(32).as_bytes()), None);
        assert_eq!(from_digits("+1".repeat(32).as_bytes()), None);
        let words = |text: &str| Key::from_text(text.as_bytes(), "x").unwrap().0;
        let first = words("a good passphrase");
        assert_eq!(first, words("a good passphrase\n"));
        assert_ne!(first, words("a good passphrase."));
        assert!(!format!("{:?}", Key(first)).contains(&format!("{}", first[0])));
    }

    #[test]
    fn a_key_file_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let complaint = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Key::from_file(&path).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(complaint("a good long key\n", 0o600), Ok(()));
        assert!(complaint("a good long key\n", 0o640).unwrap_err().contains("chmod 600"));
        let short = complaint("short \n", 0o600).unwrap_err();
        assert!(short.starts_with("key file /") && short.contains("5 octets"), "{short}");
        let variable = from_variable("x".as_ref()).unwrap_err().to_string();
        assert!(variable.starts_with("the variable TRUNKLINE_KEY: a key of 1 "), "{variable}");
        let missing = Key::from_file(&dir.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("No such file") && !missing.contains('\n'));
    }
}

//! The shared key: where it comes from, and the authentication codes that are made with it.

use crate::ProbeError;
use hmac::{Hmac, Mac};
use rustix::fs::Mode;
use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use subtle::ConstantTimeEq;

/// The environment variable that may hold the key.
pub const VARIABLE: &str = "TRUNKLINE_KEY";
/// Octets of a nonce and of a full authentication code.
pub const CODE: usize = 32;
/// Fewest octets of a key: shorter ones can be tried out.
const SHORTEST: usize = 8;
/// Most octets that are read of a key file.
const LONGEST: u64 = 4096;

/// What a client without the right key is told.
pub const WRONG: &str = "wrong key: use the server's with --key-file or TRUNKLINE_KEY";

/// A nonce or a code (HMAC-SHA256, RFC 2104).
pub type Code = [u8; CODE];

/// A secret that both ends know. It is never sent; its text is never printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A key of these octets, however many.
    pub fn new(octets: &[u8]) -> Key {
        Key(Hmac::new_from_slice(octets).expect("HMAC takes keys of every length"))
    }

    /// A key as a user gives it: leading and trailing white space does not count.
    ///
    /// # Errors
    /// Where it is shorter than eight octets.
    pub fn from_text(text: &[u8], source: &str) -> Result<Key, ProbeError> {
        let text = text.trim_ascii();
        if text.len() < SHORTEST {
            let reason = format!(
                "a key of {} octets can be guessed; write at least {SHORTEST}, \
                 for instance with `head -c 24 /dev/urandom | base64`",
                text.len()
            );
            return Err(ProbeError::Key { path: source.into(), reason });
        }
        Ok(Key::new(text))
    }

    /// Reads a key file, which only its owner may read or write.
    ///
    /// # Errors
    /// Where it cannot be read, others than its owner can, or the key is too short.
    pub fn from_file(path: &Path) -> Result<Key, ProbeError> {
        let name = path.display().to_string();
        let fail = |reason: String| ProbeError::Key { path: name.clone(), reason };
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
        Key::from_text(&text, &name)
    }

    /// The key of the file, else of the environment variable [`VARIABLE`], if either is there.
    ///
    /// # Errors
    /// Where the one that is there cannot be used.
    pub fn find(file: Option<&Path>) -> Result<Option<Key>, ProbeError> {
        match (file, std::env::var_os(VARIABLE)) {
            (Some(path), _) => Key::from_file(path).map(Some),
            (None, Some(text)) => Key::from_text(text.as_encoded_bytes(), VARIABLE).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The code over `purpose` and `parts`, each with its length, so that no two lists of parts make the
    /// same octets.
    pub fn code(&self, purpose: &str, parts: &[&[u8]]) -> Code {
        let mut mac = self.0.clone();
        for part in [purpose.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The key of the session of which these are the nonces.
    pub fn session(&self, nonces: &[&[u8]; 2]) -> Key {
        Key::new(&self.code("session", nonces))
    }

    /// The code by which a data connection shows that it belongs to a session with this key.
    pub fn join_code(&self, cookie: u64, flow: u16, stream: u16) -> Code {
        self.code("join", &[&cookie.to_be_bytes(), &flow.to_be_bytes(), &stream.to_be_bytes()])
    }

    /// The first eight octets of the plain HMAC of `octets`: what protects a datagram.
    pub fn tag(&self, octets: &[u8]) -> [u8; 8] {
        let mut mac = self.0.clone();
        mac.update(octets);
        let full: Code = mac.finalize().into_bytes().into();
        let mut tag = [0; 8];
        tag.copy_from_slice(&full[..8]);
        tag
    }
}

/// Are the two equal? Takes the same time whichever octet differs.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Octets that nobody can foretell.
///
/// # Errors
/// Where the system has no source of them.
pub fn random<const N: usize>() -> Result<[u8; N], ProbeError> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| ProbeError::System {
        what: "draw random numbers",
        cause: std::io::Error::other(error.to_string()),
    })?;
    Ok(octets)
}

/// Octets as two hexadecimal digits each.
pub fn to_hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A code from its hexadecimal digits.
pub fn from_hex(text: &str) -> Option<Code> {
    let mut code = [0; CODE];
    if text.len() != 2 * CODE || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (octet, at) in code.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// RFC 4231, test case 2.
    #[test]
    fn codes_are_those_of_the_standard() {
        let key = Key::new(b"Jefe");
        assert_eq!(to_hex(&key.tag(b"what do ya want for nothing?")), "5bdcc146bf60754e");
    }

    #[test]
    fn codes_differ_by_key_purpose_and_division() {
        let key = Key::new(b"one key of many");
        let codes = [
            key.code("a", &[b"bc", b"d"]),
            key.code("a", &[b"b", b"cd"]),
            key.code("ab", &[b"c", b"d"]),
            Key::new(b"another").code("a", &[b"bc", b"d"]),
        ];
        for (index, code) in codes.iter().enumerate() {
            assert!(codes[..index].iter().all(|other| !same(code, other)));
        }
    }

    #[test]
    fn hexadecimal_digits_read_back_and_others_do_not() {
        let code: Code = random().unwrap();
        assert_eq!(from_hex(&to_hex(&code)), Some(code));
        assert_eq!(from_hex(&to_hex(&code)[1..]), None);
        assert_eq!(from_hex(&"é".repeat(32)), None);
        assert_eq!(from_hex(&"zz".repeat(32)), None);
        assert_eq!(from_hex(&"+1".repeat(32)), None);
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
        assert!(complaint("short \n", 0o600).unwrap_err().contains("5 octets"));
        let missing = Key::from_file(&dir.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("No such file") && !missing.contains('\n'));
    }
}

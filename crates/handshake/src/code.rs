//! Authentication codes of what is not encrypted: datagrams, and the records of a stream.
//!
//! The code is BLAKE3 with a key, a pseudorandom function: a number that comes twice weakens nothing, as it
//! would with codes that need a nonce. Each direction and each use has a key of its own, derived from the
//! secret of a session.

use crate::{Key, SECRET};
use blake3::Hasher;
use std::fmt;
use subtle::ConstantTimeEq;

/// Octets of the code of a record.
pub const CODE: usize = 16;
/// Octets of the code of a datagram.
pub const TAG: usize = 8;

/// A key for one use.
#[derive(Clone)]
pub struct CodeKey([u8; SECRET]);

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeKey(…)")
    }
}

impl CodeKey {
    /// The key for `purpose`, a constant of the program, and these particulars, from a secret.
    pub fn derive(secret: &[u8; SECRET], purpose: &str, particulars: &[&[u8]]) -> CodeKey {
        let mut hasher = Hasher::new_derive_key(purpose);
        hasher.update(secret);
        for part in particulars {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        CodeKey(hasher.finalize().into())
    }

    /// The same octets as a key of a handshake.
    pub fn into_key(self) -> Key {
        Key::new(self.0)
    }

    /// The code of a datagram that consists of these parts, whose lengths are fixed but the last's.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        let mut hasher = Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(part);
        }
        let mut tag = [0; TAG];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG]);
        tag
    }
}

/// The codes of the records of one direction of a stream, one after the other: a record that is left out,
/// repeated or moved has a wrong code.
#[derive(Debug, Clone)]
pub struct Codes {
    key: CodeKey,
    count: u64,
}

impl Codes {
    /// Codes from the first record on.
    pub fn new(key: CodeKey) -> Codes {
        Codes { key, count: 0 }
    }

    /// The code of the next record, of which nothing is known yet.
    pub fn begin(&mut self) -> Code {
        let mut hasher = Hasher::new_keyed(&self.key.0);
        hasher.update(&self.count.to_be_bytes());
        self.count += 1;
        Code(Box::new(hasher))
    }
}

/// The code of a record in the making.
#[derive(Debug, Clone)]
pub struct Code(Box<Hasher>);

impl Code {
    /// Takes in more of the record.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// The code of all that was taken in.
    pub fn finish(&self) -> [u8; CODE] {
        let mut code = [0; CODE];
        code.copy_from_slice(&self.0.finalize().as_bytes()[..CODE]);
        code
    }
}

/// Whether the two are equal. Takes the same time whichever octet differs.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_by_key_purpose_particulars_and_place() {
        let (one, other) = ([1; SECRET], [2; SECRET]);
        let keys = [
            CodeKey::derive(&one, "a", &[b"bc", b"d"]),
            CodeKey::derive(&one, "a", &[b"b", b"cd"]),
            CodeKey::derive(&one, "ab", &[b"c", b"d"]),
            CodeKey::derive(&other, "a", &[b"bc", b"d"]),
        ];
        let tags = keys.clone().map(|key| key.tag(&[b"octets"]));
        for (index, tag) in tags.iter().enumerate() {
            assert!(tags[..index].iter().all(|earlier| !same(tag, earlier)));
        }
        let mut codes = Codes::new(keys[0].clone());
        let [first, second] = [(); 2].map(|()| {
            let mut code = codes.begin();
            code.update(b"oct");
            code.update(b"ets");
            code.finish()
        });
        assert!(!same(&first, &second));
        let mut again = Codes::new(keys[0].clone()).begin();
        again.update(b"octets");
        assert!(same(&again.finish(), &first));
    }

    /// The keyed hash of 1024 octets of the official test vectors (`test_vectors.json`), its first octets.
    #[test]
    fn the_code_is_that_of_the_standard() {
        let key = CodeKey(*b"whats the Elvish word for friend");
        let octets: Vec<u8> = (0..1024u32).map(|at| (at % 251) as u8).collect();
        assert_eq!(
            key.tag(&[&octets[..7], &octets[7..]]),
            [0x75, 0xc4, 0x6f, 0x6f, 0x3d, 0x9e, 0xb4, 0xf5]
        );
    }
}

//! A proof of who is at the other end, and that what comes is theirs.
//!
//! Two ends that share a [`Key`] prove it to each other by a handshake of the Noise protocol framework
//! (revision 34, pattern `NNpsk0`), which also gives a secret that nobody can find out afterwards, not even
//! with the key. Without a key the pattern is `NN`: nobody proves anything, but who only listens learns
//! nothing. The first words are a [`hello`]; a [`Channel`] seals messages in order; [`Codes`]
//! authenticate what is not encrypted. Nothing here does I/O or reads a clock.

mod channel;
mod code;
mod datagrams;
pub mod hello;
mod key;
mod password;

pub use channel::{Broken, Channel};
pub use code::{CODE, Code, CodeKey, Codes, TAG, same};
pub use datagrams::{Datagrams, SEALING};
pub use hello::{Cipher, Hello, Initiator, Purpose, Refusal, Unfit};
pub use key::{Key, KeyError, VARIABLE};
pub use password::{Exchange, NoCode, ShortCode, Side, WORD};

/// Octets of a secret.
pub const SECRET: usize = 32;

/// Octets that nobody can foretell.
///
/// # Errors
/// If the system has no source of them.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(octets)
}

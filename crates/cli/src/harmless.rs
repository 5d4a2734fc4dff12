//! Text that cannot steer a terminal.
//!
//! A name, a message or a warning of another host may hold escape sequences, which a terminal obeys: they move the
//! cursor, rename the window, hide what was printed. Characters that do so are written as numbers (`\u001b`), which is
//! also how JSON writes them, so that the same filter serves both.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a terminal obeys this character, or shows what follows in another order: controls (C0 without line end and
/// tabulator, DEL, C1) and Unicode's marks of direction (UAX #9 §2).
fn steers(c: char) -> bool {
    let direction = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The text with such characters as numbers.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            // Writing to a string cannot fail. All of these characters have four digits at most.
            let _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// A writer that makes all that passes through it harmless.
pub struct Harmless<W: Write> {
    inner: W,
    /// The beginning of a character whose end has not come yet.
    rest: Vec<u8>,
}

impl<W: Write> Harmless<W> {
    /// Returns a writer that passes what it is given on to `inner`.
    pub fn new(inner: W) -> Harmless<W> {
        Harmless { inner, rest: Vec::new() }
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            // A character that has begun; anything else is no text and shown with replacements.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.rest.len(),
        };
        let text = String::from_utf8_lossy(&self.rest[..whole]);
        self.inner.write_all(harmless(&text).as_bytes())?;
        self.rest.drain(..whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_a_number() {
        let hostile = "a\x1b]0;owned\x07b\x1b[2J\u{9b}31m\u{7f}\r\u{202e}c";
        let shown = "a\\u001b]0;owned\\u0007b\\u001b[2J\\u009b31m\\u007f\\u000d\\u202ec";
        assert_eq!(harmless(hostile), shown);
        let plain = "ä 2.3 ±0.1 ms\n│ ─\ttab 🚂";
        assert!(matches!(harmless(plain), Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "\u{9b}31m\u{1b}\u{202e}ä";
        let value = serde_json::to_string(text).unwrap();
        assert_eq!(serde_json::from_str::<String>(&harmless(&value)).unwrap(), text);
    }

    #[test]
    fn characters_may_come_in_pieces() {
        let text = "ä\u{9b}1m│🚂\x1b";
        let mut out = Harmless::new(Vec::new());
        for byte in text.as_bytes() {
            out.write_all(&[*byte]).unwrap();
        }
        assert_eq!(String::from_utf8(out.inner).unwrap(), harmless(text));
        let mut out = Harmless::new(Vec::new());
        out.write_all(b"\xff\x1bx").unwrap();
        assert_eq!(String::from_utf8(out.inner).unwrap(), "\u{fffd}\\u001bx");
    }
}

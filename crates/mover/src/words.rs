//! What the two ends say about a transfer, in the client strings of OPEN, RESPONSE and REFUSED (RFC 998 §5.1).
//!
//! Each connection carries one stream: a transfer's manifest, or chunks that are missing. The sender offers the transfer, and
//! the receiver answers what it wants of it. When nothing is missing the sender tells the root of all chunks, and the receiver
//! answers how far it is with putting things in place. All of it is text, `key=value` after a verb, and short.

use crate::Cut;
use std::ops::Range;
use trunkline_transport::netblt::wire::MOST_TEXT as MOST;

/// What is said when the receiver's user stops it.
pub const STOPPED: &str = "the receiver was stopped; it can go on later";
/// What a receiver answers to words of a later version.
pub const UNKNOWN: &str = "it says what this end does not know";
/// Octets of a reason's beginning that are said if all of it is too long (a choice).
const BEGINNING: usize = 60;

/// A reason as it is said to the other end. One that is too long, as of a long path, lacks some of its middle: the cause and what to do
/// stand at its end.
pub fn reason(why: &str) -> Vec<u8> {
    if why.len() <= MOST {
        return why.into();
    }
    let is_between = |at: &usize| why.is_char_boundary(*at);
    let end = (0..=BEGINNING).rev().find(is_between).unwrap_or_default();
    let least = why.len() + end + "…".len() - MOST;
    let start = (least..why.len()).find(is_between).unwrap_or(why.len());
    format!("{}…{}", &why[..end], &why[start..]).into_bytes()
}

/// What a sender says as it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// It has this transfer.
    Offer(Offer),
    /// These are the hashes of its chunks, because the root differs.
    Hashes {
        /// The transfer.
        identity: [u8; 32],
    },
    /// All chunks have been confirmed; this is their root.
    Finish {
        /// The transfer.
        identity: [u8; 32],
        /// The root of its chunks.
        root: [u8; 32],
    },
}

/// A transfer, as it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The hash of its manifest.
    pub identity: [u8; 32],
    /// Octets of its manifest.
    pub manifest: u64,
    /// How its data are cut.
    pub cut: Cut,
    /// Whether nothing need fill up the manifest's last buffer.
    pub unfilled: bool,
}

impl Offer {
    /// The manifest's last buffer, and the octets of the manifest in it, if nothing fills it up.
    pub fn short(&self) -> Option<(u64, u32)> {
        let buffer = u64::from(self.cut.buffer());
        let before = self.manifest.checked_sub(1)? / buffer;
        let octets = self.manifest - before * buffer;
        self.unfilled.then_some((before, octets as u32))
    }

    /// The answer to it of a receiver that has nothing of the transfer.
    pub fn welcome(&self) -> Answer {
        if self.short().is_some() { Answer::Unfilled } else { Answer::All }
    }
}

/// What a receiver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It wants what was asked whether it wants it: the manifest, or the hashes.
    All,
    /// The same of an offer, and nothing is to fill up its manifest's last buffer.
    Unfilled,
    /// It wants these chunks next, of so many that are missing.
    Want {
        /// Chunks in order; as many ranges as there was room for.
        ranges: Vec<Range<u64>>,
        /// All that are missing.
        missing: u64,
        /// Octets of all others. Earlier versions do not say that.
        had: Option<u64>,
    },
    /// It has all chunks and waits for the root.
    Whole,
    /// It puts things in place.
    Placing {
        /// Entries done.
        done: u64,
        /// All of them.
        all: u64,
    },
    /// The root differs. The sender is to tell the hashes.
    Differs,
    /// Everything is in its place.
    Done,
    /// The receiver's user has stopped it before the end.
    Stopped,
}

impl Ask {
    /// The text.
    pub fn text(&self) -> Vec<u8> {
        match self {
            Ask::Offer(offer) => {
                let Offer { identity, manifest, cut, unfilled } = offer;
                let unfilled = if *unfilled { " unfilled=1" } else { "" };
                format!("offer id={} manifest={manifest} chunk={cut}{unfilled}", hex(identity))
            }
            Ask::Hashes { identity } => format!("hashes id={}", hex(identity)),
            Ask::Finish { identity, root } => {
                format!("finish id={} root={}", hex(identity), hex(root))
            }
        }
        .into_bytes()
    }

    /// Reads a text. `None` if it is none of ours.
    pub fn read(text: &[u8]) -> Option<Ask> {
        let words = Words::of(text)?;
        match words.verb {
            "offer" => Some(Ask::Offer(Offer {
                identity: unhex(words.value("id")?)?,
                manifest: words.number("manifest")?,
                cut: Cut::read(words.value("chunk")?)?,
                unfilled: words.number("unfilled") == Some(1),
            })),
            "hashes" => Some(Ask::Hashes { identity: unhex(words.value("id")?)? }),
            "finish" => Some(Ask::Finish {
                identity: unhex(words.value("id")?)?,
                root: unhex(words.value("root")?)?,
            }),
            _ => None,
        }
    }
}

impl Answer {
    /// The text. Of ranges as many as there is room for.
    pub fn text(&self) -> Vec<u8> {
        match self {
            Answer::All => "all".into(),
            Answer::Unfilled => "unfilled".into(),
            Answer::Want { ranges, missing, had } => {
                let had = had.map_or_else(String::new, |had| format!(" had={had}"));
                let mut text = format!("want missing={missing}{had} chunks=");
                for (at, range) in ranges.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    let part = format!("{comma}{}-{}", range.start, range.end);
                    if text.len() + part.len() > MOST {
                        break;
                    }
                    text += &part;
                }
                text
            }
            Answer::Whole => "whole".into(),
            Answer::Placing { done, all } => format!("placing done={done} all={all}"),
            Answer::Differs => "differs".into(),
            Answer::Done => "done".into(),
            Answer::Stopped => "stopped".into(),
        }
        .into_bytes()
    }

    /// Reads a text. `None` if it is none of ours, or its ranges are empty or out of order.
    pub fn read(text: &[u8]) -> Option<Answer> {
        let words = Words::of(text)?;
        Some(match words.verb {
            "all" => Answer::All,
            "unfilled" => Answer::Unfilled,
            "want" => Answer::Want {
                ranges: ranges(words.value("chunks")?)?,
                missing: words.number("missing")?,
                had: words.number("had"),
            },
            "whole" => Answer::Whole,
            "placing" => Answer::Placing { done: words.number("done")?, all: words.number("all")? },
            "differs" => Answer::Differs,
            "done" => Answer::Done,
            "stopped" => Answer::Stopped,
            _ => return None,
        })
    }
}

/// Ranges, each after the one before it.
fn ranges(text: &str) -> Option<Vec<Range<u64>>> {
    let mut least = 0;
    let ranges: Option<Vec<Range<u64>>> = text
        .split(',')
        .map(|part| {
            let (start, end) = part.split_once('-')?;
            let range: Range<u64> = start.parse().ok()?..end.parse().ok()?;
            let is_next = range.start >= least && !range.is_empty();
            least = range.end;
            is_next.then_some(range)
        })
        .collect();
    ranges.filter(|it| !it.is_empty())
}

/// A verb and its values.
struct Words<'a> {
    verb: &'a str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn of(text: &'a [u8]) -> Option<Words<'a>> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let verb = words.next()?;
        let values = words.map(|word| word.split_once('=')).collect::<Option<_>>()?;
        Some(Words { verb, values })
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.values.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }
}

fn hex(octets: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*octets).to_hex().to_string()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_said_is_read() {
        let cut = Cut { chunk: u32::MAX, each: u32::MAX };
        let offer = Offer { identity: [1; 32], manifest: u64::MAX, cut, unfilled: false };
        let identity = [1; 32];
        for ask in [
            Ask::Offer(offer),
            Ask::Offer(Offer { unfilled: true, ..offer }),
            Ask::Hashes { identity },
            Ask::Finish { identity: [1; 32], root: [0xfe; 32] },
        ] {
            let text = ask.text();
            assert!(text.len() <= MOST, "{}", text.len());
            assert_eq!(Ask::read(&text), Some(ask));
        }
        for answer in [
            Answer::All,
            Answer::Unfilled,
            Answer::Want { ranges: vec![0..1, 7..900], missing: 894, had: None },
            Answer::Want { ranges: vec![0..1, 7..900], missing: 894, had: Some(u64::MAX) },
            Answer::Whole,
            Answer::Placing { done: 3, all: u64::MAX },
            Answer::Differs,
            Answer::Done,
            Answer::Stopped,
        ] {
            assert_eq!(Answer::read(&answer.text()), Some(answer));
        }
    }

    #[test]
    fn the_end_of_a_list_is_found() {
        let cut = Cut { chunk: 50, each: 2 };
        let short = |manifest| Offer { identity: [0; 32], manifest, cut, unfilled: true }.short();
        let found = [0, 1, 100, 101, 250].map(short);
        assert_eq!(found, [None, Some((0, 1)), Some((0, 100)), Some((1, 1)), Some((2, 50))]);
    }

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        assert_eq!(reason("a disk is full"), b"a disk is full");
        assert_eq!(reason(&"x".repeat(MOST)), "x".repeat(MOST).as_bytes());
        for name in ["n", "é", "€"] {
            let path = name.repeat(MOST);
            let said = reason(&format!("inbox/{path} exists: move it away"));
            let said = String::from_utf8(said).unwrap();
            assert!(said.len() <= MOST && said.len() > MOST - 6, "{}", said.len());
            assert!(said.starts_with("inbox/") && said.contains('…'), "{said}");
            assert!(said.ends_with(" exists: move it away"), "{said}");
        }
    }

    #[test]
    fn as_many_ranges_are_said_as_there_is_room_for() {
        let ranges: Vec<Range<u64>> = (0..1000).map(|n| n * 1000..n * 1000 + 7).collect();
        let text = Answer::Want { ranges: ranges.clone(), missing: 7000, had: Some(9) }.text();
        assert!(text.len() <= MOST);
        let Some(Answer::Want { ranges: read, missing: 7000, .. }) = Answer::read(&text) else {
            panic!("{text:?}")
        };
        assert!(read.len() > 10 && ranges.starts_with(&read));
    }

    #[test]
    fn what_is_wrong_is_not_read() {
        for wrong in [
            "",
            "want",
            "want missing=1 chunks=",
            "want missing=1 chunks=5-5",
            "want missing=1 chunks=5-7,6-8",
            "want missing=1 chunks=7-5",
            "placing done=1",
        ] {
            assert_eq!(Answer::read(wrong.as_bytes()), None, "{wrong}");
        }
        let id = "0".repeat(64);
        for chunk in ["0", "8*0", "0*8", "8*", "8*8*8"] {
            let offer = format!("offer id={id} manifest=1 chunk={chunk}");
            assert_eq!(Ask::read(offer.as_bytes()), None, "{chunk}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_not(text in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (Ask::read(&text), Answer::read(&text));
        }
    }
}

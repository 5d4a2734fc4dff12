//! What nodes say to each other beside frames: who is there, and who cannot go on.
//!
//! A hello tells what all nodes must have alike, and how far its node has come; it also asks a node whether it is still
//! there. A node that cannot go on says so to all. These words are told from a frame by their first octet, which is no
//! version of frames.

use crate::meeting::Said;
use crate::terms::{BEGINNINGS, MOST};
use crate::{Carrier, NodesError, Terms};
use trunkline_transport::cstar::{Frame, NodeId};

/// The first octet of a word.
const WORD: u8 = 0;
/// The fourth: what is said. The first two are those of version 1, whose nodes so read at least the versions.
const ASKS: u8 = 0;
const ALL: u8 = 1;
const GONE: u8 = 2;
/// Said by the group.
const GROUP: u8 = 3;
/// Added to a hello: it has heard whom it greets by the group.
const HEARS: u8 = 4;
const THERE: u8 = 8;
const BEGUN: u8 = 9;
/// Most octets of the instant at which a node began, and of the end of its line.
const BEGAN: usize = 21;
/// A word that says nothing: of a node that there is never, by the group.
pub(crate) const NOTHING: [u8; 4] = [WORD, u8::MAX, u8::MAX, GROUP];
/// Octets before a reason.
const HEADER: usize = 4;
/// Most octets of a reason.
const REASON: usize = 400;
/// How often a node says that it cannot go on: nobody acknowledges it.
const TIMES: usize = 3;
/// What a node has heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Something else: a frame.
    Frame,
    /// A node is there.
    Hello {
        /// Which.
        from: NodeId,
        /// How far it has come, or that it asks.
        said: Said,
        /// Whether it has heard this node by the group.
        hears: bool,
        /// When its process began, by its own clock: another one of the same number began at another instant.
        began: u64,
        /// What all must have alike.
        terms: String,
    },
    /// A node is there, by the group.
    Group {
        /// Which.
        from: NodeId,
    },
    /// A node cannot go on.
    Gone {
        /// Which.
        from: NodeId,
        /// Why.
        reason: String,
    },
}

fn hello(me: NodeId, said: Said, hears: bool, began: u64, terms: &Terms) -> Vec<u8> {
    let [high, low] = me.0.to_be_bytes();
    let said = match said {
        Said::Asks => ASKS,
        Said::All => ALL,
        Said::There => THERE,
        Said::Begun => BEGUN,
    };
    let said = said | if hears { HEARS } else { 0 };
    [&[WORD, high, low, said], format!("{began}\n{}", terms.text()).as_bytes()].concat()
}

/// What a hello says.
fn said(octet: u8) -> Option<Said> {
    match octet & !HEARS {
        ASKS => Some(Said::Asks),
        ALL => Some(Said::All),
        THERE => Some(Said::There),
        BEGUN => Some(Said::Begun),
        _ => None,
    }
}

/// Says hello to one node.
pub(crate) fn greet(
    carrier: &mut Carrier,
    me: NodeId,
    to: NodeId,
    said: Said,
) -> Result<(), NodesError> {
    let hears = carrier.hears_group_of(to);
    let hello = hello(me, said, hears, carrier.began(), carrier.terms());
    carrier.send_to(to, &hello)
}

pub(crate) fn gone(me: NodeId, reason: &str) -> Vec<u8> {
    let [high, low] = me.0.to_be_bytes();
    // What follows a word begins so.
    let reason = reason.replace(|it: char| u32::from(it) <= BEGINNINGS.into(), " ");
    let mut end = reason.len().min(REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    [&[WORD, high, low, GONE], &reason.as_bytes()[..end]].concat()
}

/// Whether octets may be a word; else they are a frame.
#[inline]
pub(crate) fn is_word(octets: &[u8]) -> bool {
    octets.first() == Some(&WORD)
}

/// Octets of the first of several words and frames that stand behind each other: a system may join datagrams.
#[inline]
pub(crate) fn extent(octets: &[u8]) -> usize {
    if is_word(octets) { extent_of_word(octets) } else { Frame::extent(octets) }
}

/// Behind a header stands at most a text, and none of its octets is one with which something begins.
fn extent_of_word(octets: &[u8]) -> usize {
    let has_text = octets.get(HEADER - 1).is_some_and(|&said| said != GROUP);
    let text = if has_text { &octets[HEADER..] } else { &[] };
    let length = text.iter().position(|&octet| octet <= BEGINNINGS).unwrap_or(text.len());
    octets.len().min(HEADER + length)
}

/// Reads what may be a word.
pub(crate) fn read(octets: &[u8]) -> Heard {
    let from = |high: u8, low: u8| NodeId(u16::from_be_bytes([high, low]));
    match *octets {
        [WORD, high, low, GROUP] => Heard::Group { from: from(high, low) },
        [WORD, high, low, octet, ref terms @ ..]
            if let Some(said) = said(octet)
                && is_text(terms, MOST + BEGAN) =>
        {
            // Control characters are no part of a line.
            let within = |it: char| it.is_control() && it != '\n';
            let text = String::from_utf8_lossy(terms).replace(within, " ");
            let began = text.split_once('\n').and_then(|it| Some((it.0.parse().ok()?, it.1)));
            let (began, terms) = began.unwrap_or((0, &text));
            let hears = octet & HEARS != 0;
            Heard::Hello { from: from(high, low), said, hears, began, terms: terms.into() }
        }
        [WORD, high, low, GONE, ref reason @ ..] if is_text(reason, REASON) => {
            // Control characters are no part of a line.
            let text = String::from_utf8_lossy(reason).replace(char::is_control, " ");
            Heard::Gone { from: from(high, low), reason: text }
        }
        _ => Heard::Frame,
    }
}

/// Whether octets may be a text of a word, of so many at most.
fn is_text(octets: &[u8], most: usize) -> bool {
    octets.len() <= most && octets.iter().all(|&octet| octet > BEGINNINGS)
}

/// Says by the group that this node is there.
pub(crate) fn greet_group(carrier: &mut Carrier, NodeId(me): NodeId) -> Result<(), NodesError> {
    let [high, low] = me.to_be_bytes();
    carrier.send_to_group(&[WORD, high, low, GROUP])
}

/// Tells all others that this node cannot go on.
pub(crate) fn part(carrier: &mut Carrier, me: NodeId, reason: &str) -> Result<(), NodesError> {
    let words = gone(me, reason);
    let count = carrier.peers().len() as u16;
    for to in (0..TIMES).flat_map(|_| 0..count).map(NodeId) {
        if to != me {
            carrier.send_to(to, &words)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some_terms() -> Terms {
        Terms::new([("--test".into(), "flood".into())])
    }

    #[test]
    fn words_are_read_as_they_are_said() {
        let me = NodeId(0x0203);
        for terms in [Terms::default(), some_terms()] {
            for said in [Said::Asks, Said::There, Said::All, Said::Begun] {
                let told =
                    |hears| Heard::Hello { from: me, said, hears, began: 7, terms: terms.text() };
                assert_eq!(read(&hello(me, said, false, 7, &terms)), told(false));
                assert_eq!(read(&hello(me, said, true, 7, &terms)), told(true));
            }
        }
        assert_eq!(read(&[0, 2, 3, 3]), Heard::Group { from: me });
        let told = [&hello(me, Said::Asks, false, u64::MAX, &some_terms())[..], b"\nname=\x1b[2J"]
            .concat();
        let Heard::Hello { terms, .. } = read(&told) else { panic!() };
        assert!(terms.ends_with("\nname= [2J"), "{terms:?}");
        let reason = "lost\nframe";
        let said = Heard::Gone { from: me, reason: "lost frame".into() };
        assert_eq!(read(&gone(me, reason)), said);
        let long = "ä".repeat(400);
        let Heard::Gone { reason, .. } = read(&gone(me, &long)) else { panic!("it is said") };
        assert_eq!(reason, "ä".repeat(200));
    }

    /// Words that a system joined are told apart, whatever the reason.
    #[test]
    fn words_behind_each_other_are_found() {
        let me = NodeId(0x0003);
        let words = [
            hello(me, Said::Asks, true, 0, &Terms::default()),
            hello(me, Said::There, true, 1, &some_terms()),
            gone(me, "lost\0frame"),
            gone(me, ""),
            vec![0, 0, 3, GROUP],
            hello(me, Said::All, false, 2, &some_terms()),
            vec![1, 4, 0, 0],
        ];
        let joined = words.concat();
        let mut rest = &joined[..];
        for word in &words {
            let (first, behind) = rest.split_at(extent(rest));
            assert_eq!(first, word);
            rest = behind;
        }
        assert!(rest.is_empty());
        for octets in [&[0][..], &[0, 0, 0], &[0, 0, 0, 9, 7]] {
            assert!((1..=octets.len()).contains(&extent(octets)));
        }
    }

    #[test]
    fn what_is_no_word_is_a_frame() {
        for octets in [&[][..], &[0], &[0, 0, 0], &[0, 0, 0, 6], &[0, 0, 0, 0, 0], &[1, 0, 0, 0]] {
            assert_eq!(read(octets), Heard::Frame, "{octets:?}");
        }
        assert_eq!(read(&[&[0, 0, 0, 2], &[b'x'; 401][..]].concat()), Heard::Frame);
    }

    /// Octets like those of words and frames.
    fn octets() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![0..8u8, any::<u8>()];
        prop::collection::vec(octet, 0..600)
    }

    proptest! {
        /// Whatever comes is taken apart, each part being one octet at least, and a part is a word or a frame.
        #[test]
        fn whatever_comes_is_taken_apart(octets in octets()) {
            let mut rest = &octets[..];
            while !rest.is_empty() {
                let (first, behind) = rest.split_at(extent(rest));
                prop_assert!(!first.is_empty());
                prop_assert!(is_word(first) || read(first) == Heard::Frame);
                rest = behind;
            }
        }

        /// A word is read as it was said, whatever stands behind it that begins as a word or a frame does.
        #[test]
        fn a_word_is_told_from_what_follows(
            (me, began, hears) in any::<(u16, u64, bool)>(),
            said in prop::sample::select(vec![Said::Asks, Said::There, Said::All, Said::Begun]),
            reason in ".{0,300}",
            (beginning, behind) in (0..=BEGINNINGS, octets()),
        ) {
            let (me, terms) = (NodeId(me), some_terms());
            let told = Heard::Hello { from: me, said, hears, began, terms: terms.text() };
            for word in [hello(me, said, hears, began, &terms), gone(me, &reason)] {
                let joined = [&word[..], &[beginning], &behind].concat();
                prop_assert_eq!(&joined[..extent(&joined)], &word[..]);
            }
            prop_assert_eq!(read(&hello(me, said, hears, began, &terms)), told);
            let is_gone = matches!(read(&gone(me, &reason)), Heard::Gone { from, .. } if from == me);
            prop_assert!(is_gone);
        }
    }
}

//! What nodes say to each other beside frames: who is there, and who cannot go on.
//!
//! At the beginning each node says hello to all others until all have said that they have heard everybody: nobody sends a
//! frame before. Later a hello asks a node whether it is still there. A node that cannot go on says so to all. These words
//! are told from a frame by their first octet, which is no version of frames.

use crate::{Carrier, NodesError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_transport::cstar::NodeId;

/// The first octet of a word.
const WORD: u8 = 0;
/// The fourth: what is said.
const HELLO: u8 = 0;
const ALL_HEARD: u8 = 1;
const GONE: u8 = 2;
/// Octets before a reason.
const HEADER: usize = 4;
/// Most octets of a reason.
const REASON: usize = 400;
/// How often hello is said at the beginning.
const EVERY: Duration = Duration::from_millis(20);
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
        /// Whether it has heard everybody.
        all: bool,
    },
    /// A node cannot go on.
    Gone {
        /// Which.
        from: NodeId,
        /// Why.
        reason: String,
    },
}

fn hello(me: NodeId, all: bool) -> [u8; HEADER] {
    let [high, low] = me.0.to_be_bytes();
    [WORD, high, low, if all { ALL_HEARD } else { HELLO }]
}

fn gone(me: NodeId, reason: &str) -> Vec<u8> {
    let [high, low] = me.0.to_be_bytes();
    let mut end = reason.len().min(REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    [&[WORD, high, low, GONE], &reason.as_bytes()[..end]].concat()
}

/// Reads what may be a word.
pub(crate) fn read(octets: &[u8]) -> Heard {
    let from = |high: u8, low: u8| NodeId(u16::from_be_bytes([high, low]));
    match *octets {
        [WORD, high, low, said @ (HELLO | ALL_HEARD)] => {
            Heard::Hello { from: from(high, low), all: said == ALL_HEARD }
        }
        [WORD, high, low, GONE, ref reason @ ..] if reason.len() <= REASON => {
            // Control characters are no part of a line.
            let text = String::from_utf8_lossy(reason).replace(char::is_control, " ");
            Heard::Gone { from: from(high, low), reason: text }
        }
        _ => Heard::Frame,
    }
}

/// Says that this node is there, as an answer.
pub(crate) fn answer(carrier: &mut Carrier, me: NodeId, to: NodeId) -> Result<(), NodesError> {
    carrier.send_to(to, &hello(me, true))
}

/// Asks a node whether it is there.
pub(crate) fn ask(carrier: &mut Carrier, me: NodeId, to: NodeId) -> Result<(), NodesError> {
    carrier.send_to(to, &hello(me, false))
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

/// Waits until all nodes are there and know it. Answers the first frames of those that began a little sooner.
///
/// # Errors
/// If one is not heard within `most`, or `stop` is set.
pub(crate) fn meet(
    carrier: &mut Carrier,
    me: NodeId,
    most: Duration,
    stop: &AtomicBool,
) -> Result<Vec<bytes::Bytes>, NodesError> {
    let (begin, count) = (Instant::now(), carrier.peers().len());
    let mut heard = vec![(false, false); count];
    heard[usize::from(me.0)] = (true, true);
    let (mut early, mut next) = (Vec::new(), begin);
    while !heard.iter().all(|it| it.1) {
        if stop.load(Ordering::Relaxed) {
            return Err(NodesError::Stopped);
        }
        let now = Instant::now();
        if now >= next {
            let all = heard.iter().all(|it| it.0);
            for to in (0..count as u16).map(NodeId).filter(|&to| to != me) {
                carrier.send_to(to, &hello(me, all))?;
            }
            next = now + EVERY;
        }
        if let Some(peer) = heard.iter().position(|it| !it.1)
            && now.duration_since(begin) > most
        {
            let address = carrier.peers()[peer];
            let (peer, seconds) = (NodeId(peer as u16), most.as_secs());
            return Err(NodesError::Silent { peer, address, seconds });
        }
        let wait = next.saturating_duration_since(now).max(Duration::from_micros(100));
        let Some(octets) = carrier.receive(wait)? else { continue };
        match read(&octets) {
            Heard::Hello { from, all } => {
                if let Some(it) = heard.get_mut(usize::from(from.0)) {
                    *it = (true, it.1 || all);
                }
            }
            Heard::Gone { from, reason } => return Err(NodesError::Gone { node: from, reason }),
            // Who sends frames has heard everybody.
            Heard::Frame => early.push(octets),
        }
        let senders = early.iter().filter_map(|octets| octets.get(4..6));
        for from in senders.map(|it| usize::from(u16::from_be_bytes([it[0], it[1]]))) {
            if let Some(it) = heard.get_mut(from) {
                *it = (true, true);
            }
        }
    }
    // Whoever has not heard this node's last word asks again, and is answered.
    for to in (0..count as u16).map(NodeId).filter(|&to| to != me) {
        carrier.send_to(to, &hello(me, true))?;
    }
    Ok(early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_said() {
        let me = NodeId(0x0203);
        assert_eq!(read(&hello(me, false)), Heard::Hello { from: me, all: false });
        assert_eq!(read(&hello(me, true)), Heard::Hello { from: me, all: true });
        let reason = "lost\nframe";
        let said = Heard::Gone { from: me, reason: "lost frame".into() };
        assert_eq!(read(&gone(me, reason)), said);
        let long = "ä".repeat(400);
        let Heard::Gone { reason, .. } = read(&gone(me, &long)) else { panic!("it is said") };
        assert_eq!(reason, "ä".repeat(200));
    }

    #[test]
    fn what_is_no_word_is_a_frame() {
        for octets in [&[][..], &[0], &[0, 0, 0], &[0, 0, 0, 3], &[0, 0, 0, 0, 0], &[1, 0, 0, 0]] {
            assert_eq!(read(octets), Heard::Frame, "{octets:?}");
        }
        assert_eq!(read(&[&[0, 0, 0, 2], &[b'x'; 401][..]].concat()), Heard::Frame);
    }
}

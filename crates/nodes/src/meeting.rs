//! The beginning: nobody sends a frame before all are there.
//!
//! Each node says hello to all others until all have said that they have heard everybody. A hello is told from a frame by
//! its first octet, which is no version of frames.

use crate::{Carrier, NodesError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_transport::cstar::NodeId;

/// The first octet of a hello.
const HELLO: u8 = 0;
/// How often it is said.
const EVERY: Duration = Duration::from_millis(20);

/// What nodes say before they begin: who they are, and whether they have heard everybody.
fn hello(me: NodeId, all: bool) -> [u8; 4] {
    let [high, low] = me.0.to_be_bytes();
    [HELLO, high, low, u8::from(all)]
}

/// Reads a hello.
fn read(octets: &[u8]) -> Option<(NodeId, bool)> {
    match *octets {
        [HELLO, high, low, all] => Some((NodeId(u16::from_be_bytes([high, low])), all == 1)),
        _ => None,
    }
}

/// Answers a late hello; whether the octets were one.
///
/// # Errors
/// If it cannot be sent.
pub(crate) fn answer(carrier: &mut Carrier, me: NodeId, octets: &[u8]) -> Result<bool, NodesError> {
    let Some((from, all)) = read(octets) else { return Ok(false) };
    if !all {
        carrier.send_to(from, &hello(me, true))?;
    }
    Ok(true)
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
            Some((from, all)) if usize::from(from.0) < count => {
                let it = &mut heard[usize::from(from.0)];
                *it = (true, it.1 || all);
            }
            Some(_) => {}
            // Who sends frames has heard everybody.
            None => early.push(octets),
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

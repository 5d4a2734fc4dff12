//! A node meets the others by its carrier.

use crate::meeting::{Meeting, Next, Said};
use crate::wire::NAP;
use crate::words::{Heard, gone, greet, greet_group, read};
use crate::{Address, Carrier, NodesError};
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{Frame, NodeId};

/// Behind so long without anything new it is told who is missing (a choice).
const TOLD: Span = Span::from_secs(1);
/// Of so many at most (a choice: each may take some milliseconds to find out about).
const MOST_TOLD: usize = 8;

/// A node that was not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub node: NodeId,
    /// Where it should be.
    pub address: Address,
    /// Whether its host says that nobody listens there.
    pub refuses: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { node, address, refuses } = self;
        write!(f, "{node} at {address}")?;
        if *refuses { f.write_str(" (nobody listens there)") } else { Ok(()) }
    }
}

/// Those that were not heard, the first of them if there are many.
#[derive(Debug)]
pub struct Unheard<'a> {
    carrier: &'a Carrier,
    nodes: Vec<NodeId>,
}

impl Unheard<'_> {
    /// Who they are. Their hosts are asked whether anybody listens there, which takes some milliseconds each; one that only
    /// is slow counts the question among what its kernel dropped.
    pub fn found(&self) -> Vec<Missing> {
        let of = |&node: &NodeId| {
            let address = self.carrier.peers()[usize::from(node.0)];
            Missing { node, address, refuses: self.carrier.refuses(node) }
        };
        self.nodes.iter().map(of).collect()
    }
}

/// A meeting and the carrier by which its words go.
struct Meets<'a> {
    carrier: &'a mut Carrier,
    me: NodeId,
    meeting: Meeting,
    /// Frames of those that began a little sooner.
    early: Vec<Bytes>,
    begin: Instant,
    /// Whether it was told who is missing.
    told: bool,
}

/// Waits until all nodes are there and know it, and a little longer for a multicast group. Answers the first frames of those
/// that began a little sooner. `missing` is called once, when nothing new was heard for a second.
///
/// # Errors
/// If nothing new is heard for `most` while one is missing, or `stop` is set.
pub(crate) fn meet(
    carrier: &mut Carrier,
    me: NodeId,
    most: Duration,
    stop: &AtomicBool,
    missing: &mut dyn FnMut(&Unheard<'_>),
) -> Result<Vec<Bytes>, NodesError> {
    let meeting = Meeting::new(me, carrier.peers().len(), carrier.has_group());
    let (early, begin) = (Vec::new(), Instant::now());
    let mut meets = Meets { carrier, me, meeting, early, begin, told: false };
    loop {
        let now = meets.now();
        match meets.meeting.next(now) {
            Next::Group => greet_group(meets.carrier, me)?,
            Next::Say(to, said) => greet(meets.carrier, me, to, said)?,
            Next::Hear(until) => {
                meets.hears(until.max(now).since(now).min(NAP))?;
                meets.sees_to(most, missing)?;
                if stop.load(Ordering::Relaxed) {
                    return Err(NodesError::Stopped);
                }
            }
            Next::Over => break,
        }
    }
    meets.carrier.settle_group(meets.meeting.is_heard_by_group());
    Ok(meets.early)
}

impl Meets<'_> {
    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// Tells who is missing when nothing new was heard for a while, and waits no longer than `most` for it.
    fn sees_to(
        &mut self,
        most: Duration,
        missing: &mut dyn FnMut(&Unheard<'_>),
    ) -> Result<(), NodesError> {
        let Some(waits) = self.meeting.waits(self.now()) else { return Ok(()) };
        if waits > TOLD && !std::mem::replace(&mut self.told, true) {
            missing(&self.unheard());
        }
        if Duration::from_nanos(waits.as_nanos()) > most {
            return Err(self.silent(most.as_secs()));
        }
        Ok(())
    }

    fn unheard(&self) -> Unheard<'_> {
        Unheard { carrier: self.carrier, nodes: self.meeting.missing().take(MOST_TOLD).collect() }
    }

    /// Why this node waits no longer.
    fn silent(&self, seconds: u64) -> NodesError {
        if let Some(missing) = self.unheard().found().into_iter().next() {
            return NodesError::Silent { missing, seconds };
        }
        NodesError::Alone { peer: self.meeting.alone().unwrap_or(NodeId(0)), seconds }
    }

    /// Takes in what has come, or comes within `wait`.
    fn hears(&mut self, wait: Span) -> Result<(), NodesError> {
        let Some(octets) = self.carrier.receive(Duration::from_nanos(wait.as_nanos()))? else {
            self.meeting.hears_nothing();
            return Ok(());
        };
        self.meeting.takes_in();
        let now = self.now();
        match read(&octets) {
            Heard::Hello { from, said, hears, began, terms } => {
                if from == self.me {
                    // The other one listens where this one should.
                    let error = NodesError::Number { me: from };
                    self.carrier.send_to(from, &gone(from, &error.to_string()))?;
                    return Err(error);
                }
                if let Err(unlike) = self.carrier.terms().compare(from, &terms) {
                    // The other one finds it too.
                    greet(self.carrier, self.me, from, Said::Asks)?;
                    return Err(unlike);
                }
                if self.carrier.is_another(from, began) {
                    self.carrier.hears_anew(from, began);
                    self.meeting.forget(from);
                }
                self.meeting.hears(now, from, said, hears);
            }
            Heard::Group { from } => self.carrier.hears_by_group(from),
            Heard::Gone { from, reason } if usize::from(from.0) < self.carrier.peers().len() => {
                return Err(NodesError::Gone { node: from, reason });
            }
            Heard::Gone { .. } => {}
            // Who sends frames has begun. More than there are buffers for are as if they were lost.
            Heard::Frame => {
                let Ok(frame) = Frame::decode(octets.clone()) else { return Ok(()) };
                self.meeting.hears(now, frame.from, Said::Begun, false);
                if self.early.len() < self.carrier.buffers() as usize {
                    self.early.push(octets);
                }
            }
        }
        Ok(())
    }
}

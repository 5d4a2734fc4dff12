//! A message layer over a carrier, for a program that sends and receives by calls of its own.

use crate::line::Line;
use crate::still::Still;
use crate::{Carrier, NodesError, Plan};
use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use std::thread::panicking;
use std::time::Instant;
use trunkline_cluster::{Message, Parts, fragments};
use trunkline_transport::cstar::{
    BufferId, Delivery, Destination, EventId, Fragment, Layer, Source,
};

/// A node's end of a message layer among real nodes.
///
/// Its program sends and receives whole messages, or, with [`send`](Endpoint::send) and [`receive`](Endpoint::receive), their
/// fragments. These calls look for frames themselves; there is no thread behind them. So a node answers its peers only
/// within them; a call that finds what it wants, or may send at once, takes in one datagram at most, so that a program which
/// computes for long between many such calls is silent for as long. The rules for programs are those of
/// [`trunkline_cluster`]: all nodes take the same events in the same order, and receive in ascending order.
#[derive(Debug)]
pub struct Endpoint<'a, L: Layer> {
    layer: L,
    line: Line<'a>,
    /// The buffer of the last delivery, while the program looks at it.
    held: Option<BufferId>,
    /// Fragments that were queued and are not sent.
    queued: u32,
    /// What has come of messages that are not whole.
    parts: Parts,
    /// What there was when something last passed while the program waited.
    still: Option<Still>,
}

/// Most fragments that wait to be sent (a choice: what is sent as one costs little more than one).
const MOST_QUEUED: u32 = 16;

impl<'a, L: Layer> Endpoint<'a, L> {
    /// Waits until all nodes are there.
    ///
    /// # Errors
    /// If plan, layer and carrier are not of one node and cluster, a peer has another layer or does not come, the system refuses
    /// something, or `stop` is set.
    pub fn meet(
        plan: &Plan,
        mut layer: L,
        carrier: Carrier,
        stop: &'a AtomicBool,
    ) -> Result<Endpoint<'a, L>, NodesError> {
        let line = Line::meet(plan, &mut layer, carrier, stop, Instant::now, &mut |_| {})?;
        Ok(Endpoint { layer, line, held: None, queued: 0, parts: Parts::default(), still: None })
    }

    /// Sends a message to one node, which receives from no other under this event, or to all, none of which sends under it.
    /// It is cut into as many fragments as it needs. Waits while a resource is short.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_message(
        &mut self,
        to: impl Into<Destination>,
        event: EventId,
        data: impl Into<Bytes>,
    ) -> Result<(), NodesError> {
        self.send_whole(to.into(), event, false, data.into())
    }

    /// The same under an event for which every node sends: to the one node that receives from all, or to all.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_in_crowd(
        &mut self,
        to: impl Into<Destination>,
        event: EventId,
        data: impl Into<Bytes>,
    ) -> Result<(), NodesError> {
        self.send_whole(to.into(), event, true, data.into())
    }

    fn send_whole(
        &mut self,
        to: Destination,
        event: EventId,
        crowd: bool,
        data: Bytes,
    ) -> Result<(), NodesError> {
        let payload = self.line.carrier.payload();
        fragments(to, event, crowd, data, payload).try_for_each(|it| self.send(&it))
    }

    /// The next whole message of an event from `from`; waits until it is there. From any node it is the first that is whole.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn receive_message(
        &mut self,
        from: impl Into<Source>,
        event: EventId,
    ) -> Result<Message, NodesError> {
        let from = from.into();
        loop {
            let delivery = self.receive(from, event)?;
            if let Some(message) = self.parts.take(delivery) {
                return Ok(message);
            }
        }
    }

    /// Sends a fragment, or queues it if [others follow](Fragment::following) it in its message; waits while a resource is
    /// short. What was received before is done with. Octets are copied, or shared if they cannot go at once.
    ///
    /// # Errors
    /// If there is no such peer, the fragment is longer than a frame, the message layer or a peer cannot go on, `stop` is
    /// set, or nothing has passed for ten times the plan's [`silence`](Plan::silence) (five minutes) while fragments were
    /// refused for want of buffers and sent again: a livelock of the traditional layer. The others are told.
    #[inline]
    pub fn send(&mut self, fragment: &Fragment) -> Result<(), NodesError> {
        self.let_go();
        if fragment.following == 0
            && self.queued == 0
            && let Some(header) = self.layer.post(fragment)
        {
            self.line.goes_on();
            let sent = self.line.post(&mut self.layer, &header, fragment);
            return sent.map_err(|error| self.parts(Some(error)));
        }
        self.send_behind(fragment)
    }

    /// Sends a fragment behind others, or when there is room for it.
    #[inline(never)]
    fn send_behind(&mut self, fragment: &Fragment) -> Result<(), NodesError> {
        self.queue(fragment.clone())?;
        if fragment.following == 0 { self.flush() } else { Ok(()) }
    }

    /// Takes a fragment that may wait to be sent until there are several, the program sends another, or it receives. Several
    /// to one node cost little more than one.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    #[inline]
    pub fn queue(&mut self, fragment: Fragment) -> Result<(), NodesError> {
        self.let_go();
        let mut refused = self.layer.send(self.line.now, fragment);
        while let Err(blocked) = refused {
            if !self.poll()? {
                self.wait()?;
            }
            refused = self.layer.send(self.line.now, blocked.into_fragment());
        }
        self.line.goes_on();
        self.queued += 1;
        if self.queued >= MOST_QUEUED { self.flush() } else { Ok(()) }
    }

    /// Sends what is queued.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    #[inline]
    pub fn flush(&mut self) -> Result<(), NodesError> {
        let sent = self.flush_queue();
        sent.map_err(|error| self.parts(Some(error)))
    }

    #[inline]
    fn flush_queue(&mut self) -> Result<(), NodesError> {
        self.queued = 0;
        self.line.flush(&mut self.layer)
    }

    /// The next fragment of an event from `from`; waits until one is there. What was received before is done with.
    /// Several lie together in blocks of 8 to 64 KiB: copy the octets of one that is kept for long.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn receive(&mut self, from: Source, event: EventId) -> Result<Delivery, NodesError> {
        self.let_go();
        if self.queued > 0 {
            self.flush()?;
        }
        if self.layer.has_fragments()
            && let Some(delivery) = self.taken_before(from, event)
        {
            return Ok(delivery);
        }
        // What became due since goes before this node sleeps.
        self.line.flush(&mut self.layer)?;
        let came = self.line.naps(&mut self.layer);
        if matches!(came, Ok(true))
            && let Some(delivery) = self.taken(from, event)
        {
            return Ok(delivery);
        }
        self.checked(came)?;
        self.awaited(from, event)
    }

    /// The next fragment, if it is there.
    #[inline]
    fn taken(&mut self, from: Source, event: EventId) -> Option<Delivery> {
        let delivery = self.layer.take(from, event)?;
        self.held = delivery.buffer;
        self.line.goes_on();
        Some(delivery)
    }

    /// The next fragment, if it is one of those that came before they were asked for.
    #[inline(never)]
    fn taken_before(&mut self, from: Source, event: EventId) -> Option<Delivery> {
        self.taken(from, event)
    }

    /// The next fragment, which is not there yet: the layer is told that it is waited for.
    #[inline(never)]
    fn awaited(&mut self, from: Source, event: EventId) -> Result<Delivery, NodesError> {
        if let Source::Node(node) = from {
            let checked = self.line.carrier.check_peer(node);
            self.checked(checked)?;
        }
        loop {
            if !self.poll()? {
                self.layer.wait(self.line.now, from, event);
                self.wait()?;
            }
            if let Some(delivery) = self.taken(from, event) {
                return Ok(delivery);
            }
        }
    }

    /// Tells the others that this node's program cannot go on, and why: their calls end with that. Returns the error to end with.
    pub fn give_up(&mut self, reason: impl Into<String>) -> NodesError {
        self.line.parts(NodesError::Program(reason.into()))
    }

    /// Answers the others until `stop` is set: some may still miss what this node has sent.
    ///
    /// # Errors
    /// If the message layer or a peer cannot go on.
    pub fn answer(mut self) -> Result<(), NodesError> {
        self.let_go();
        self.flush()?;
        self.line.goes_on();
        loop {
            match self.line.idle(&mut self.layer) {
                Err(NodesError::Stopped) => return Ok(()),
                other => self.checked(other)?,
            }
        }
    }

    /// The message layer, for what it counts.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// Frames and words sent and received.
    pub fn carried(&self) -> (u64, u64) {
        (self.line.carrier.sent, self.line.carrier.received)
    }

    /// Releases the buffer that the program has looked at. If an update is due then, the next call sends it.
    #[inline]
    fn let_go(&mut self) {
        if let Some(buffer) = self.held.take() {
            self.layer.release(self.line.now, buffer);
        }
    }

    /// Takes in a frame if one is there. Whether one was.
    #[inline]
    fn poll(&mut self) -> Result<bool, NodesError> {
        let came = self.line.poll(&mut self.layer);
        self.checked(came)
    }

    /// Waits for a frame, or for what is due.
    #[inline]
    fn wait(&mut self) -> Result<(), NodesError> {
        let since = self.line.waits();
        let waited = self.flush_queue();
        let waited = waited.and_then(|()| self.line.idle(&mut self.layer));
        self.checked(waited)?;
        let (now, silence) = (self.line.now, self.line.silence());
        let noted = Still::note(self.still, &self.layer, now, since, silence);
        self.still = Some(self.checked(noted)?);
        Ok(())
    }

    /// What was found, unless this node cannot go on: then the others are told why.
    #[inline]
    fn checked<T>(&mut self, found: Result<T, NodesError>) -> Result<T, NodesError> {
        if found.is_ok() && !self.line.has_broken(&self.layer) {
            return found;
        }
        Err(self.parts(found.err()))
    }

    /// Tells the others why this node cannot go on: for this reason, or what its line or layer says. Returns that.
    #[cold]
    pub(crate) fn parts(&mut self, error: Option<NodesError>) -> NodesError {
        let broken = || self.line.reason(&self.layer);
        let error = error.or_else(broken).unwrap_or(NodesError::Stopped);
        self.line.parts(error)
    }
}

impl<L: Layer> Drop for Endpoint<'_, L> {
    /// What is queued goes, and the last update. The others hear of a panic: they would wait for this node till they took it
    /// for dead.
    fn drop(&mut self) {
        if panicking() {
            let _ = self.line.tells("its program has panicked");
        } else if !self.line.has_broken(&self.layer) {
            self.let_go();
            let _ = self.flush_queue();
        }
    }
}

#[cfg(test)]
mod tests;

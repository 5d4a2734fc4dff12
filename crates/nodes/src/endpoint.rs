//! A message layer over a carrier, for a program that sends and receives by calls of its own.

use crate::line::Line;
use crate::{Carrier, NodesError, Plan};
use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use trunkline_cluster::{Message, Parts, fragments};
use trunkline_transport::cstar::{
    BufferId, Delivery, Destination, EventId, Fragment, Layer, Source,
};

/// A node's end of a message layer among real nodes.
///
/// Its program sends and receives whole messages, or, with [`send`](Endpoint::send) and [`receive`](Endpoint::receive), their
/// fragments. These calls look for frames themselves; there is no thread behind them. So a node answers its peers only
/// within them. The rules for programs are those of [`trunkline_cluster`]: all nodes take the same events in the same order.
#[derive(Debug)]
pub struct Endpoint<'a, L> {
    layer: L,
    line: Line<'a>,
    /// The buffer of the last delivery, while the program looks at it.
    held: Option<BufferId>,
    /// Fragments that were queued and are not sent.
    queued: u32,
    /// What has come of messages that are not whole.
    parts: Parts,
}

/// Most fragments that wait to be sent (a choice: what is sent as one costs little more than one).
const MOST_QUEUED: u32 = 16;

impl<'a, L: Layer> Endpoint<'a, L> {
    /// Waits until all nodes are there.
    ///
    /// # Errors
    /// If a peer does not come, the system refuses something, or `stop` is set.
    pub fn meet(
        plan: &Plan,
        mut layer: L,
        carrier: Carrier,
        stop: &'a AtomicBool,
    ) -> Result<Endpoint<'a, L>, NodesError> {
        let line = Line::meet(plan, &mut layer, carrier, stop, Instant::now, &mut |_| {})?;
        Ok(Endpoint { layer, line, held: None, queued: 0, parts: Parts::default() })
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
    /// If the message layer or a peer cannot go on, which the others are told, or `stop` is set.
    #[inline]
    pub fn send(&mut self, fragment: &Fragment) -> Result<(), NodesError> {
        self.let_go();
        if fragment.following == 0
            && self.queued == 0
            && let Some(header) = self.layer.post(fragment)
        {
            self.line.goes_on();
            return self.line.post(&mut self.layer, &header, fragment);
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
        self.line.waits();
        let waited = self.flush();
        let waited = waited.and_then(|()| self.line.idle(&mut self.layer));
        self.checked(waited)
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
    fn parts(&mut self, error: Option<NodesError>) -> NodesError {
        let broken = || self.line.reason(&self.layer);
        let error = error.or_else(broken).unwrap_or(NodesError::Stopped);
        self.line.parts(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_threads;
    use crate::threads::each_in_threads;
    use std::time::Duration;
    use trunkline_core::{Probability, Seed, Span};
    use trunkline_transport::cstar::{
        Careful, CarefulSettings, Cluster, Flags, NodeId, Status, Traditional, TraditionalSettings,
    };

    const CLUSTER: Cluster =
        Cluster { nodes: 2, receive_buffers: 16, send_buffers: 16, frame: 1000 };
    const ROUNDS: u32 = 300;

    /// What a node says under an event: three fragments, and nobody says the same.
    fn said(NodeId(me): NodeId, event: u32) -> [Bytes; 3] {
        [0, 1, 2].map(|part| Bytes::from(format!("{me} {event} {part}").repeat(50)))
    }

    fn says<L: Layer>(end: &mut Endpoint<'_, L>, me: NodeId, event: u32) -> Result<(), NodesError> {
        let to = Destination::Node(NodeId(1 - me.0));
        for (data, following) in said(me, event).into_iter().zip((0..3).rev()) {
            let flags = Flags { last: following == 0, crowd: false, large: true };
            end.send(&Fragment { to, event: EventId(event), flags, following, data })?;
        }
        Ok(())
    }

    fn hears<L: Layer>(
        end: &mut Endpoint<'_, L>,
        me: NodeId,
        event: u32,
    ) -> Result<(), NodesError> {
        let from = NodeId(1 - me.0);
        loop {
            let came = end.receive(Source::Node(from), EventId(event))?;
            assert_eq!(came.data, said(from, event)[came.fragment as usize]);
            if came.status != Status::More {
                return Ok(());
            }
        }
    }

    /// Node 0 asks and node 1 answers; each is four messages ahead at first, more than there are buffers for in one window.
    fn talk<L: Layer>(end: &mut Endpoint<'_, L>, me: NodeId) -> Result<(), NodesError> {
        let ahead = 4;
        for event in 0..ROUNDS + ahead {
            if event < ROUNDS {
                says(end, me, event)?;
            }
            if let Some(earlier) = event.checked_sub(ahead) {
                hears(end, me, earlier)?;
            }
        }
        Ok(())
    }

    /// Runs both ends; each says how it ended. They answer each other until both have heard all.
    fn both<L: Layer>(drop: f64, layer: impl Fn(NodeId) -> L) -> Vec<Result<(), String>> {
        let drop = Probability::new(drop).unwrap();
        let patience = Duration::from_secs(30);
        let plan = |me| Plan { drop, seed: Seed(7), patience, ..Plan::new(me) };
        let ended = each_in_threads(&CLUSTER, plan, |me| Ok(layer(me)), |me, end| talk(end, me));
        ended.unwrap().into_iter().map(|it| it.map_err(|why| why.to_string())).collect()
    }

    /// Times of audits: an end waits with the clock for the shorter, and for the longer it naps first.
    const AUDITS: [u64; 2] = [20, 200];

    fn careful(millis: u64) -> impl Fn(NodeId) -> Careful {
        let audit = Some(Span::from_millis(millis));
        let settings = CarefulSettings { audit, ..CarefulSettings::default() };
        move |me| Careful::new(me, &CLUSTER, &settings).unwrap()
    }

    fn traditional(me: NodeId) -> Traditional {
        Traditional::new(me, &CLUSTER, &TraditionalSettings::default()).unwrap()
    }

    #[test]
    fn what_one_end_sends_the_other_receives() {
        for millis in AUDITS {
            assert_eq!(both(0.0, careful(millis)), [Ok(()), Ok(())]);
        }
        assert_eq!(both(0.0, traditional), [Ok(()), Ok(())]);
    }

    /// Messages of no fragment's bytes, of one and of many, from one node and from all at once, come whole.
    #[test]
    fn whole_messages_come_whole() {
        let cluster = Cluster { nodes: 3, receive_buffers: 24, send_buffers: 24, ..CLUSTER };
        let said = |from: u16, bytes: usize| vec![from as u8; bytes];
        let run = |NodeId(me): NodeId, end: &mut Endpoint<'_, Careful>| {
            let (left, right) = ((me + 2) % 3, (me + 1) % 3);
            for (event, bytes) in (0..).step_by(2).zip([0, 1, 1000, 1001, 6500]) {
                let (ring, crowd) = (EventId(event), EventId(event + 1));
                end.send_message(NodeId(right), ring, said(me, bytes))?;
                assert_eq!(end.receive_message(NodeId(left), ring)?.data, said(left, bytes));
                end.send_in_crowd(Destination::All, crowd, said(me, bytes))?;
                let mut heard = [NodeId(0); 2];
                for from in &mut heard {
                    let message = end.receive_message(Source::Any, crowd)?;
                    assert_eq!(message.data, said(message.from.0, bytes));
                    *from = message.from;
                }
                heard.sort();
                let others = (0..3).map(NodeId).filter(|it| it.0 != me);
                assert!(others.eq(heard), "{heard:?}");
            }
            Ok(())
        };
        let layer = |me| Careful::new(me, &cluster, &CarefulSettings::default());
        assert_eq!(in_threads(&cluster, layer, run).unwrap().len(), 3);
    }

    /// The traditional layer mends a loss; the careful one ends both nodes, and says whose frame of which event was lost.
    #[test]
    fn a_loss_is_mended_or_told_to_both() {
        assert_eq!(both(0.05, traditional), [Ok(()), Ok(())]);
        for millis in AUDITS {
            let ended = both(0.05, careful(millis)).into_iter().map(Result::unwrap_err);
            let told: Vec<bool> = ended
                .map(|why| {
                    assert!(why.contains("reliability violated") && why.contains("event"), "{why}");
                    why.contains("has failed")
                })
                .collect();
            assert!(told.contains(&false), "nobody found it");
        }
    }
}

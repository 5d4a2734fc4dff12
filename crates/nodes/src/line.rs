//! What stands between a message layer and its carrier: the clock, words among nodes, and who has been heard.

use crate::meet::{Unheard, meet};
use crate::meeting::Said;
use crate::wire::NAP;
use crate::words::{Heard, greet, is_word, part, read};
use crate::{Carrier, NodesError, Plan};
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use trunkline_core::{Span, Stream, Time};
use trunkline_transport::cstar::{Cluster, Fragment, Frame, Layer, NodeId};

/// A node that waits asks those that it has not heard for so long, and so often at most (a choice).
const ASKS: Span = Span::from_secs(1);
/// It asks so much more seldom for each node, but so often within the silence that counts as death (choices: many nodes may
/// share a processor, and all of them may wait and ask all others).
const EACH: Span = Span::from_millis(30);
const TIMES: u64 = 4;
/// So many questions of the layer in a row are lost to a peer that answers words: then no frame passes (a choice; of a network
/// that loses none at all, one were enough).
const VAIN: u32 = 3;
const PASSES_NOTHING: &str = "cannot be reached: it is there and answers greetings, but no frame passes between it and this node";
/// Shortest sleep.
const WINK: Span = Span::from_micros(1);
/// Behind so many datagrams that were there at once it is seen what is due (a choice: some datagrams' time).
const OFTEN: u32 = 16;

/// A node's line to its peers.
///
/// A datagram that is there is taken in by [`poll`](Line::poll), which reads no clock. Only if there is none a node is
/// [idle](Line::idle), which does.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    plan: Plan,
    stop: &'a AtomicBool,
    pub carrier: Carrier,
    /// What decides which datagrams are dropped on purpose.
    chance: Stream,
    begin: Instant,
    /// For so long it looks for datagrams without sleeping.
    awake: Span,
    /// When its clock was last read.
    pub now: Time,
    /// Datagrams that were there at once since it was last seen what is due.
    polled: u32,
    /// When each node was last heard.
    heard: Vec<Time>,
    /// Since when the program waits.
    waits: Option<Time>,
    /// When silent nodes were last asked whether they are there.
    asked: Time,
    gone: Option<Lost>,
    /// Datagrams dropped on purpose.
    pub dropped: u64,
    /// Datagrams that were words.
    words: u64,
    /// Frames that are sent as one: empty between calls, and its memory is used again.
    train: Vec<Frame>,
}

/// A peer that is lost to the run.
#[derive(Debug)]
pub(crate) struct Lost {
    node: NodeId,
    /// Why, or what is the matter with it.
    reason: String,
    /// Whether it said so itself, to all.
    told: bool,
}

impl Lost {
    /// Whether it said so itself, to all.
    pub fn is_told(&self) -> bool {
        self.told
    }

    fn error(&self) -> NodesError {
        let Lost { node, reason, told } = self;
        match told {
            true => NodesError::Gone { node: *node, reason: reason.clone() },
            false => NodesError::Died { node: *node, what: reason.clone() },
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl<'a> Line<'a> {
    /// Waits until all nodes are there, then asks for the instant at which its time begins, and hands the layer the frames
    /// that came meanwhile.
    pub fn meet<L: Layer + ?Sized>(
        plan: &Plan,
        layer: &mut L,
        mut carrier: Carrier,
        stop: &'a AtomicBool,
        begin: impl FnOnce() -> Instant,
        missing: &mut dyn FnMut(&Unheard<'_>),
    ) -> Result<Line<'a>, NodesError> {
        check(plan, layer, &carrier)?;
        carrier.agree_also(layer.terms());
        let chance = plan.seed.stream(&format!("node {} drops", plan.me.0));
        let count = carrier.peers().len();
        let mut line = Line {
            plan: *plan,
            stop,
            carrier,
            chance,
            begin: Instant::now(),
            awake: Span::from_nanos(plan.poll.as_nanos() as u64),
            now: Time::ZERO,
            polled: 0,
            heard: vec![Time::ZERO; count],
            waits: None,
            asked: Time::ZERO,
            gone: None,
            dropped: 0,
            words: 0,
            train: Vec::new(),
        };
        match meet(&mut line.carrier, plan.me, plan.patience, stop, missing) {
            Ok(early) => {
                line.begin = begin();
                line.words = line.carrier.received - early.len() as u64;
                early.into_iter().try_for_each(|octets| line.arrives(layer, octets))?;
                Ok(line)
            }
            Err(error) => Err(line.parts(error)),
        }
    }

    pub fn read_clock(&mut self) {
        self.now = Time::from_nanos(self.begin.elapsed().as_nanos() as u64);
    }

    /// Takes in a datagram if one is there; else reads the clock. Whether one was.
    #[inline]
    pub fn poll<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<bool, NodesError> {
        let Some(octets) = self.carrier.look()? else {
            self.read_clock();
            return Ok(false);
        };
        self.takes_in(layer, octets).map(|()| true)
    }

    /// Takes in a datagram that has come, or comes within a nap, without a look at the clock. Whether one did; not if this node
    /// looks for datagrams without sleeping, or its layer's timers would run late.
    #[inline]
    pub fn naps<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<bool, NodesError> {
        if !self.awake.is_zero() || !layer.bears(NAP) {
            return Ok(false);
        }
        let Some(octets) = self.carrier.await_next()? else { return Ok(false) };
        self.takes_in(layer, octets).map(|()| true)
    }

    /// Takes in a datagram that was there at once, and sees to what is due if there were many.
    #[inline]
    fn takes_in<L: Layer + ?Sized>(
        &mut self,
        layer: &mut L,
        octets: Bytes,
    ) -> Result<(), NodesError> {
        self.arrives(layer, octets)?;
        self.polled += 1;
        if self.polled < OFTEN {
            return Ok(());
        }
        self.read_clock();
        self.sees_to(layer)
    }

    /// The program goes on: it waits no more.
    #[inline]
    pub fn goes_on(&mut self) {
        self.waits = None;
    }

    /// The program waits: silent nodes are asked whether they are there. Returns since when it does.
    pub fn waits(&mut self) -> Time {
        *self.waits.get_or_insert(self.now)
    }

    /// How long a node may be silent while this one waits.
    pub fn silence(&self) -> Span {
        Span::from_nanos(self.plan.silence.as_nanos() as u64)
    }

    /// Takes in a datagram that comes before the message layer has something to do, as far as it is worth sleeping.
    pub fn idle<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<(), NodesError> {
        let due = layer.deadline().map(|at| at.since(self.now));
        let most = due.map_or(NAP, |due| due.clamp(WINK, NAP));
        match self.look(most)? {
            Some(octets) => self.takes_in(layer, octets)?,
            None => return self.sees_to(layer),
        }
        if self.is_stopped() { Err(NodesError::Stopped) } else { Ok(()) }
    }

    /// The next datagram, looked for without sleeping at first.
    fn look(&mut self, most: Span) -> Result<Option<Bytes>, NodesError> {
        let awake = self.awake.min(most);
        let sleeps = self.now + awake;
        while self.now < sleeps {
            let found = self.carrier.look()?;
            if found.is_some() {
                return Ok(found);
            }
            self.read_clock();
        }
        if awake == most {
            return Ok(None);
        }
        let there = self.carrier.is_there(most - awake)?;
        self.read_clock();
        if there { self.carrier.look() } else { Ok(None) }
    }

    /// Does what is due: asks silent nodes, lets the layer's time run out, and ends if it was told to.
    pub fn sees_to<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<(), NodesError> {
        self.polled = 0;
        self.listen()?;
        if layer.deadline().is_some_and(|deadline| deadline <= self.now) {
            layer.expire(self.now);
            self.flush(layer)?;
        }
        if self.is_stopped() { Err(NodesError::Stopped) } else { Ok(()) }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    #[inline]
    fn arrives<L: Layer + ?Sized>(
        &mut self,
        layer: &mut L,
        octets: Bytes,
    ) -> Result<(), NodesError> {
        if is_word(&octets) && self.word(layer, &octets)? {
            return Ok(());
        }
        if self.chance.happens(self.plan.drop) {
            self.dropped += 1;
            return Ok(());
        }
        match layer.hear(self.now, octets) {
            Ok(from) => self.hears(from),
            Err(_) => layer.damaged(self.now),
        }
        self.flush(layer)
    }

    /// Takes in a word of another node. Whether it was one.
    #[cold]
    fn word<L: Layer + ?Sized>(&mut self, layer: &L, octets: &[u8]) -> Result<bool, NodesError> {
        let (count, me) = (self.heard.len(), self.plan.me);
        let is_peer = |from: NodeId| usize::from(from.0) < count && from != me;
        match read(octets) {
            Heard::Frame => return Ok(false),
            Heard::Group { from } => self.carrier.hears_by_group(from),
            Heard::Hello { from, began, .. } if self.carrier.is_another(from, began) => {
                self.lost(from, "is gone: it was started again".into());
            }
            Heard::Hello { from, said, .. } => {
                self.hears(from);
                if said == Said::Asks {
                    greet(&mut self.carrier, me, from, Said::Begun)?;
                }
                // A node that has not begun keeps the frames that come, and answers none.
                if said == Said::Begun && self.waits.is_some() && layer.unanswered(from) >= VAIN {
                    self.lost(from, PASSES_NOTHING.into());
                }
            }
            Heard::Gone { from, reason } if is_peer(from) => {
                self.gone.get_or_insert(Lost { node: from, reason, told: true });
            }
            Heard::Gone { .. } => {}
        }
        self.words += 1;
        Ok(true)
    }

    /// A peer is lost to the run, and does not say so itself.
    fn lost(&mut self, node: NodeId, reason: String) {
        self.gone.get_or_insert(Lost { node, reason, told: false });
    }

    #[inline]
    fn hears(&mut self, NodeId(from): NodeId) {
        if let Some(heard) = self.heard.get_mut(usize::from(from)) {
            *heard = self.now;
        }
    }

    /// A node that waits asks those that it has not heard for long whether they are there.
    fn listen(&mut self) -> Result<(), NodesError> {
        let Some(since) = self.waits else { return Ok(()) };
        let now = self.now;
        let silence = self.silence();
        let pause = pause(self.heard.len(), silence);
        if now.since(since.max(self.asked)) < pause || self.gone.is_some() {
            return Ok(());
        }
        self.asked = now;
        let me = usize::from(self.plan.me.0);
        for peer in (0..self.heard.len()).filter(|&it| it != me) {
            let silent = now.since(self.heard[peer].max(since));
            let node = NodeId(peer as u16);
            if silent > silence {
                self.lost(node, format!("is gone: it has not answered for {silence}"));
            } else if silent >= ASKS {
                greet(&mut self.carrier, self.plan.me, node, Said::Asks)?;
            }
        }
        Ok(())
    }

    /// Sends what the layer has to send.
    #[inline]
    pub fn flush<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<(), NodesError> {
        if layer.has_frames() { self.flush_some(layer) } else { Ok(()) }
    }

    fn flush_some<L: Layer + ?Sized>(&mut self, layer: &mut L) -> Result<(), NodesError> {
        let Some(first) = layer.transmit(self.now) else { return Ok(()) };
        match layer.transmit(self.now) {
            None => self.carrier.send(&first),
            Some(second) => self.flush_many(layer, [first, second]),
        }
    }

    /// Sends a frame whose header the layer has [given](Layer::post), then what else it has to send.
    #[inline]
    pub fn post<L: Layer + ?Sized>(
        &mut self,
        layer: &mut L,
        header: &[u8],
        fragment: &Fragment,
    ) -> Result<(), NodesError> {
        self.carrier.send_parts(fragment.to, [header, &fragment.data])?;
        self.flush(layer)
    }

    /// Sends several frames, those that fit together as one.
    fn flush_many<L: Layer + ?Sized>(
        &mut self,
        layer: &mut L,
        first: [Frame; 2],
    ) -> Result<(), NodesError> {
        let rest = std::iter::from_fn(|| layer.transmit(self.now));
        for frame in first.into_iter().chain(rest) {
            if !Carrier::fits(&self.train, &frame) {
                self.carrier.send_train(&self.train)?;
                self.train.clear();
            }
            self.train.push(frame);
        }
        let sent = self.carrier.send_train(&self.train);
        self.train.clear();
        sent
    }

    /// Frames that have come to the layer.
    pub fn frames(&self) -> u64 {
        self.carrier.received - self.words - self.dropped
    }

    /// The peer that is lost to the run, if one is.
    pub fn gone(&self) -> Option<&Lost> {
        self.gone.as_ref()
    }

    /// Whether the program cannot go on.
    #[inline]
    pub fn has_broken<L: Layer + ?Sized>(&self, layer: &L) -> bool {
        layer.failure().is_some() || self.gone.is_some()
    }

    /// Why the program cannot go on, if it cannot.
    pub fn reason<L: Layer + ?Sized>(&self, layer: &L) -> Option<NodesError> {
        let failure = layer.failure().map(|failure| failure.clone().into());
        failure.or_else(|| self.gone.as_ref().map(Lost::error))
    }

    /// Why this node cannot go on, unless another has told all of it already.
    pub fn own_failure<L: Layer + ?Sized>(&self, layer: &L) -> Option<String> {
        let untold = self.gone.as_ref().filter(|it| !it.told);
        layer.failure().map(ToString::to_string).or_else(|| untold.map(Lost::to_string))
    }

    /// Tells all others that this node cannot go on.
    pub fn tells(&mut self, reason: &str) -> Result<(), NodesError> {
        part(&mut self.carrier, self.plan.me, reason)
    }

    /// Tells all others why this node ends before its time, if it is its own reason. Returns that.
    #[cold]
    pub fn parts(&mut self, error: NodesError) -> NodesError {
        let reason = match &error {
            NodesError::Gone { .. } => return error,
            NodesError::Stopped => "it was stopped".into(),
            other => other.to_string(),
        };
        match self.tells(&reason) {
            Ok(()) => error,
            Err(other) => other,
        }
    }
}

/// How long a node that waits leaves so many nodes in peace before it asks them again whether they are there.
fn pause(nodes: usize, silence: Span) -> Span {
    EACH.scaled(nodes as u64, 1).min(silence.scaled(1, TIMES)).max(ASKS)
}

/// Sees that a plan, a message layer and a carrier are of one node.
fn check<L: Layer + ?Sized>(plan: &Plan, layer: &L, carrier: &Carrier) -> Result<(), NodesError> {
    let (me, to_layer, to_carrier) = (plan.me, layer.node(), carrier.me());
    if me != to_layer || me != to_carrier {
        return Err(NodesError::Numbers { plan: me, layer: to_layer, carrier: to_carrier });
    }
    let &Cluster { nodes, receive_buffers, frame, .. } = layer.cluster();
    let pairs = [
        ("nodes:", nodes.into(), carrier.peers().len() as u32),
        ("receive buffers:", receive_buffers, carrier.buffers()),
        ("bytes of a frame:", frame, carrier.payload()),
    ];
    match pairs.into_iter().find(|it| it.1 != it.2) {
        Some((what, layer, carrier)) => Err(NodesError::Unfit { what, layer, carrier }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

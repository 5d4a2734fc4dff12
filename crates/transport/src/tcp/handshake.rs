//! The beginning of a connection: three ways of it, a refusal, and the state after.

use super::agreed::{Agreed, Notice, first_count, greeting};
use super::congestion::{Controller, Marks};
use super::half::{Half, Offered};
use super::receiver::Receiver;
use super::segment::{Flags, Rare, Segment, Timestamps};
use super::sender::Sender;
use super::seq::Seq;
use super::settings::{MOST_UNSCALED, Settings, SettingsError};
use super::{Tcp, clock_stamp};
use crate::Payload;
use std::sync::Arc;
use trunkline_core::{Ecn, Time};

/// The state of the handshake (RFC 9293 §3.3.2). What follows it is known from the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for a SYN.
    Listen,
    /// A SYN is to be sent.
    Connect,
    /// A SYN has been sent.
    SynSent,
    /// A SYN has come, and one is to be sent.
    Answer,
    /// A SYN has come and one has been sent.
    SynReceived,
    /// Both have been acknowledged.
    Open,
    /// It refuses whatever comes.
    Refusing,
    /// The other end has refused.
    Refused,
}

impl<B: Payload> Tcp<B> {
    /// A segment that refuses, with an acknowledgement if what it answers had none (RFC 9293 §3.5.2).
    pub(super) fn refusal(&self, now: Time, seq: Seq, ack: Option<Seq>) -> Segment<B> {
        let flags = Flags::RST.with(Flags::ACK, ack.is_some());
        let segment = Segment::new(seq, ack.unwrap_or_default(), flags, 0, B::default(), now);
        Segment { ecn: self.codepoint_of_syn(), ..segment }
    }

    /// The codepoint of SYN and RST: whose marks are told of one by one, is carried everywhere (RFC 8257 §3.6).
    fn codepoint_of_syn(&self) -> Ecn {
        match self.settings.marks() {
            Some(Marks::Each) => Marks::Each.codepoint(),
            _ => Ecn::NotEct,
        }
    }

    fn at(
        state: State,
        settings: impl Into<Arc<Settings>>,
        first: Seq,
    ) -> Result<Self, SettingsError> {
        let mut settings = settings.into();
        let checked = settings.checked()?;
        if checked != *settings {
            settings = Arc::new(checked);
        }
        let agreed = Agreed::alone(&settings);
        Ok(Tcp {
            agreed,
            state,
            first,
            sender: match state {
                State::Open => Half::Idle(Offered::default()),
                _ => Half::Active(Box::new(Sender::new(0, agreed.mss, &settings))),
            },
            receiver: Receiver::new(Seq::default(), &settings),
            reset: None,
            requests: 0,
            settings,
        })
    }

    /// An end that opens a connection, its SYN numbered `first`.
    pub fn connect(settings: impl Into<Arc<Settings>>, first: Seq) -> Result<Self, SettingsError> {
        Tcp::at(State::Connect, settings, first)
    }

    /// An end that waits for one, its own SYN to be numbered `first`.
    pub fn listen(settings: impl Into<Arc<Settings>>, first: Seq) -> Result<Self, SettingsError> {
        Tcp::at(State::Listen, settings, first)
    }

    /// An end that answers everything with RST.
    pub fn refuse(settings: impl Into<Arc<Settings>>) -> Result<Self, SettingsError> {
        Tcp::at(State::Refusing, settings, Seq::default())
    }

    /// An end whose handshake with an end of `peer`'s settings is over. No round trip has been measured.
    /// Ends of the same settings may share them.
    pub fn connected(
        settings: impl Into<Arc<Settings>>,
        peer: &Settings,
    ) -> Result<Self, SettingsError> {
        let peer = peer.checked()?;
        let mut tcp = Tcp::at(State::Open, settings, Seq::default())?;
        let offer = Agreed::offer(&peer);
        let notice = Notice::of(&peer);
        tcp.agree(Agreed::between(&tcp.settings, offer, peer.timestamps, notice));
        let window = peer.receive_buffer.min(MOST_UNSCALED << tcp.agreed.send_scale);
        let window = window >> tcp.agreed.send_scale << tcp.agreed.send_scale;
        tcp.sender = Half::Idle(Offered::from(1, window));
        tcp.receiver.offer_all(&tcp.agreed, &tcp.settings);
        Ok(tcp)
    }

    /// This end of a [connected](Tcp::connected) pair with other numbers: of its own SYN and of the other
    /// end's.
    #[must_use]
    pub fn numbered(mut self, own: Seq, other: Seq) -> Self {
        self.first = own;
        self.receiver.set_first(other);
        self
    }

    fn agree(&mut self, agreed: Agreed) {
        self.agreed = agreed;
        if let Some(sender) = self.sender.get_mut() {
            sender.control = Controller::new(&self.settings.controller(agreed.mss));
        }
    }

    /// Whether a SYN has come.
    pub(super) fn knows_peer(&self) -> bool {
        matches!(self.state, State::Open | State::SynReceived)
    }

    /// The SYN that is to be sent, if one is.
    pub(super) fn opening(&mut self, now: Time) -> Option<Segment<B>> {
        self.state = match self.state {
            State::Connect => State::SynSent,
            State::Answer => State::SynReceived,
            _ => return None,
        };
        let syn = self.sender.get_mut()?.send_syn(now, &self.settings);
        Some(self.segment(now, syn))
    }

    /// The options of a SYN: all that the settings offer, or what has been agreed upon; with an
    /// acknowledgement if the other end's SYN has come.
    pub(super) fn finish_syn(&mut self, now: Time, mut segment: Segment<B>) -> Segment<B> {
        let mut offer = Agreed::offer(&self.settings);
        let mut timestamps = self.settings.timestamps;
        segment.window = self.settings.receive_buffer.min(MOST_UNSCALED) as u16;
        if self.knows_peer() {
            self.receiver.tell(&mut segment, &self.agreed, &self.settings);
            offer.sack = self.agreed.sack;
            offer.scale = offer.scale.filter(|_| self.scales());
            timestamps = self.agreed.timestamps;
            segment.flags = match self.agreed.ecn {
                Some(Marks::Counted) => segment.flags.with_ace(greeting(self.agreed.syn)),
                marks => segment.flags.with(Flags::ECE, marks.is_some()),
            };
        } else {
            let marks = self.settings.marks();
            segment.flags = segment.flags.with(Flags::ECE | Flags::CWR, marks.is_some());
            segment.flags = segment.flags.with(Flags::AE, marks == Some(Marks::Counted));
        }
        segment.ecn = self.codepoint_of_syn();
        if timestamps {
            let echo = self.receiver.echo_of_stamp();
            segment.timestamps = Some(Timestamps { value: clock_stamp(now), echo });
        }
        segment.rare = Some(Box::new(Rare::Offer(offer)));
        segment
    }

    fn scales(&self) -> bool {
        self.agreed.scales
    }

    /// Takes in a segment before the handshake is over.
    pub(super) fn receive_opening(&mut self, now: Time, segment: Segment<B>) {
        let flags = segment.flags;
        match self.state {
            State::Refusing => self.reject(&segment),
            State::Listen if flags.has(Flags::ACK) => self.reject(&segment),
            State::Listen if flags.has(Flags::SYN) && !flags.has(Flags::RST) => {
                self.meet(&segment, Notice::asked(flags));
                self.state = State::Answer;
            }
            State::SynSent => self.answered(now, &segment),
            State::SynReceived => self.confirmed(now, segment),
            _ => {}
        }
    }

    /// Answers with RST, unless to one (RFC 9293 §3.5.2).
    fn reject(&mut self, segment: &Segment<B>) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.reset = Some(match segment.flags.has(Flags::ACK) {
            true => (segment.ack, None),
            false => (Seq::default(), Some(segment.seq.plus(segment.span()))),
        });
    }

    /// The other end offers a window for the first time.
    fn hears_window(&mut self, start: u64, octets: u64) {
        if let Some(sender) = self.sender.get_mut() {
            sender.offered = Offered::from(start, octets);
        }
    }
    fn repeat_syn(&mut self) {
        if let Some(sender) = self.sender.get_mut() {
            sender.board.lose(0);
        }
    }
    fn give_up(&mut self) {
        if let Some(sender) = self.sender.get_mut() {
            sender.abandon();
        }
    }

    /// The other end's SYN.
    fn meet(&mut self, syn: &Segment<B>, notice: Notice) {
        self.receiver = Receiver::new(syn.seq, &self.settings);
        self.receiver.met(syn.ecn);
        let stamps = syn.timestamps.is_some();
        self.agree(Agreed::between(&self.settings, syn.offer(), stamps, notice));
        self.agreed.syn = syn.ecn;
        if let Some(stamp) = syn.timestamps {
            self.receiver.stamped(stamp, 0);
        }
        self.hears_window(0, u64::from(syn.window));
    }

    /// Something comes after the SYN has been sent (RFC 9293 §3.10.7.3).
    fn answered(&mut self, now: Time, segment: &Segment<B>) {
        let flags = segment.flags;
        let acks = flags.has(Flags::ACK);
        if acks && segment.ack != self.first.plus(1) {
            return self.reject(segment);
        }
        if flags.has(Flags::RST) {
            if acks {
                self.state = State::Refused;
                self.give_up();
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        let notice = match acks {
            true => Notice::answered(Notice::of(&self.settings), flags),
            false => Notice::asked(flags),
        };
        self.meet(segment, notice);
        if acks {
            self.receiver.greet(segment.ecn);
            self.expects(first_count(flags.ace()));
            self.receiver.acknowledge_now();
            self.enter(now, segment);
        } else {
            // Both opened at once: the SYN goes again, with an acknowledgement.
            self.state = State::SynReceived;
            self.repeat_syn();
        }
    }

    /// Something comes after both SYNs have been sent.
    fn confirmed(&mut self, now: Time, segment: Segment<B>) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            self.state = State::Refused;
            return self.give_up();
        }
        if !flags.has(Flags::ACK) {
            if flags.has(Flags::SYN) {
                // The answer tells which SYN it answers (RFC 7323 §4.3).
                segment.timestamps.into_iter().for_each(|stamp| {
                    self.receiver.stamped(stamp, 0);
                });
                self.repeat_syn();
            }
            return;
        }
        if segment.ack.since(self.first) < 1 {
            return;
        }
        self.enter(now, &segment);
        if segment.flags.has(Flags::SYN) {
            return self.receiver.acknowledge_now();
        }
        // Without data it greets, and the count begins after it (RFC 9768 §3.2.2.1).
        let greets = (segment.span() == 0).then(|| segment.flags.ace());
        greets.into_iter().for_each(|ace| self.expects(ace));
        self.receive_open(now, segment);
        greets.into_iter().for_each(|ace| self.expects(first_count(ace)));
    }

    /// The other end's count of marks, as far as this one knows.
    fn expects(&mut self, count: u8) {
        if let Some(sender) = self.sender.get_mut() {
            sender.marks = count & 7;
        }
    }

    /// The handshake is over: the acknowledgement of the SYN is no data's.
    fn enter(&mut self, now: Time, segment: &Segment<B>) {
        self.state = State::Open;
        let stamp = segment.timestamps.filter(|_| self.agreed.timestamps);
        if let Some(sender) = self.sender.get_mut() {
            let echo = stamp.map(|stamp| stamp.echo);
            sender.opened(now, echo, self.agreed.mss, &self.settings);
        }
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.agreed.send_scale };
        let window = u64::from(segment.window) << scale;
        self.hears_window(1, window);
    }
}

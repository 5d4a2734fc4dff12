//! TCP: a stream of octets in both directions.
//!
//! A [`Tcp`] is one end of a connection. It begins by a handshake ([`Tcp::connect`], [`Tcp::listen`]) or
//! after it ([`Tcp::connected`]). What it does beyond RFC 9293 is chosen by [`Settings`]: windows above
//! 64 KiB and time stamps (RFC 7323), SACK (RFC 2018, 2883, 6675), fast recovery (RFC 5681, 6582, 6937, 9937),
//! limited transmit (RFC 3042), loss by time (RFC 8985), time-outs (RFC 6298) on fine clocks or on the coarse ones of
//! 4.4BSD, delayed acknowledgements, ECN (RFC 3168), and the controllers of [`congestion`].
//!
//! # What is left out
//!
//! A connection is never reset in its middle: RST only refuses. There are no urgent data, no keep-alives
//! and no TIME-WAIT: an end that is [closed](Tcp::closed) still answers a repeated FIN for as long as the
//! driver keeps it. A window that stays closed is probed for ever. Round trips are taken from the
//! sender's own records (each segment but those sent twice), time stamps serving for the latter. Segments
//! beyond the window offered are refused whole. A needless time-out is found out by time stamps, by duplicate SACK
//! or by F-RTO (RFC 5682), the first one of a segment only. With SACK but without [`Settings::rack`] nothing is sent
//! again that is not known to be lost (rules 3 and 4 of NextSeg, RFC 6675 §4): a lost tail waits for the timer.

mod acknowledge;
mod agreed;
mod buffer;
mod burst;
mod clock;
pub mod congestion;
mod counters;
mod endpoint;
mod frto;
mod half;
mod handshake;
mod interactive;
mod marks;
mod profile;
mod prr;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sending;
mod seq;
mod settings;
mod stream;
mod undo;
mod usage;
pub mod wire;

pub use counters::{Counters, Receiving, Sending};
pub use profile::{Profile, UnknownProfile};
pub use segment::{Flags, IP_HEADER, Offer, Rare, Sack, Segment, TCP_HEADER, Timestamps};
pub use seq::Seq;
pub use settings::{
    LEAST_MSS, LEAST_RTO, LONGEST_OPENING, MOST_BUFFER, MOST_UNSCALED, Recovery, Settings,
    SettingsError,
};

use crate::Payload;
use acknowledge::Heard;
use agreed::Agreed;
use congestion::{Congestion, Controller};
use half::Half;
use handshake::State;
use interactive::Pulse;
use reassembly::Range;
use receiver::Receiver;
use sender::{Phase, Sender};
use sending::Outgoing;
use std::sync::Arc;
use trunkline_core::{Rate, Span, Time};

/// One end of a connection. The order of calls is that of [`Endpoint`](crate::Endpoint).
#[derive(Debug, Clone)]
pub struct Tcp<B> {
    settings: Arc<Settings>,
    agreed: Agreed,
    state: State,
    /// The number of this end's SYN.
    first: Seq,
    sender: Half<B>,
    receiver: Receiver<B>,
    /// A refusal to be sent.
    reset: Option<(Seq, Option<Seq>)>,
    /// How often data have been handed over.
    requests: u64,
}

/// The reason why the sender is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// The handshake is not over.
    Handshake,
    /// The congestion window, or what recovery lets go out.
    Congestion,
    /// The other end's window.
    Receiver,
    /// The send buffer: too much is unacknowledged.
    SendBuffer,
    /// Pacing: the next instant to send has not come.
    Pacing,
    /// A small segment waits for company (Nagle, silly window avoidance).
    Small,
}

/// The time stamp of an instant: milliseconds, modulo 2³².
fn clock_stamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The time since the instant of a time stamp.
fn since_stamp(now: Time, stamp: u32) -> Span {
    Span::from_millis(u64::from(clock_stamp(now).wrapping_sub(stamp)))
}

impl<B: Payload> Tcp<B> {
    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Hands over data to be sent. Ignored once [closed](Tcp::close). All of it is taken;
    /// [`room`](Tcp::room) says how much the send buffer would.
    pub fn offer(&mut self, now: Time, data: B) {
        self.requests += 1;
        let sender = self.sender.active(&self.agreed, &self.settings);
        if !sender.closing {
            sender.stream.offer(now, data);
        }
    }

    /// Octets that the send buffer has room for.
    pub fn room(&self) -> u64 {
        let held = self.unsent() + self.outstanding();
        self.settings.send_buffer.saturating_sub(held)
    }

    /// There will be no more data: a FIN follows those offered.
    pub fn close(&mut self, _now: Time) {
        self.sender.active(&self.agreed, &self.settings).closing = true;
    }

    /// Data that have come, in order. They fill the receive buffer until they are
    /// [consumed](Tcp::consumed).
    pub fn take(&mut self) -> Option<B> {
        self.receiver.take()
    }
    /// The number of pieces that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.receiver.waiting()
    }
    /// The application is done with `octets` more of what it took.
    pub fn consumed(&mut self, _now: Time, octets: u64) {
        self.receiver.consumed(octets, &self.agreed, &self.settings);
    }

    /// Octets offered and not sent.
    pub fn unsent(&self) -> u64 {
        self.sender.get().map_or(0, Sender::unsent)
    }
    /// Octets in flight: sent, and neither known to have arrived nor found lost. If the profile counts segments, each is as
    /// many as a full one.
    pub fn in_flight(&self) -> u64 {
        let (mss, settings) = (self.agreed.mss, &self.settings);
        self.sender.get().map_or(0, |sender| sender.in_flight(mss, settings))
    }
    /// Octets sent and not acknowledged, a SYN or FIN counting as one.
    pub fn outstanding(&self) -> u64 {
        self.sender.get().map_or(0, |sender| sender.board.outstanding())
    }
    /// Octets of the other end's stream that have come, each once: those in order and those behind a gap.
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived()
    }
    /// Octets of the other end's stream that have come in order.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }
    /// Whether the handshake is over.
    pub fn established(&self) -> bool {
        self.state == State::Open
    }
    /// Whether the other end has said that there will be no more data, and all have come.
    pub fn ended(&self) -> bool {
        self.receiver.ended()
    }
    /// Whether both ends have said so, and this one knows that the other one knows.
    pub fn closed(&self) -> bool {
        self.receiver.ended() && self.sender.get().is_some_and(Sender::finish_acked)
    }
    /// Whether the other end has refused.
    pub fn refused(&self) -> bool {
        self.state == State::Refused
    }
    /// Whether the other end has left [`Settings::most_timeouts`] time-outs in a row unanswered, or refused. In the
    /// former case an acknowledgement that comes all the same brings it back to life.
    pub fn dead(&self) -> bool {
        self.sender.get().is_some_and(|sender| sender.dead) || self.refused()
    }
    /// Whether a loss is being repaired.
    pub fn recovering(&self) -> bool {
        self.sender.get().is_some_and(|sender| sender.phase != Phase::Open)
    }
    /// The reason why data that are there cannot be sent at `now`.
    pub fn blocked(&self, now: Time) -> Option<Blocked> {
        match self.state {
            State::Open => self.sender.get()?.blocked(now, &self.agreed, &self.settings),
            _ => Some(Blocked::Handshake).filter(|_| self.unsent() > 0),
        }
    }
    /// Octets that the send buffer has room for by now, sent or not, as long as they are not acknowledged.
    pub fn send_buffer(&self) -> u64 {
        let first = self.settings.initial_window;
        let segments = self.sender.get().map_or(first, |sender| sender.provided);
        self.settings.send_buffer_with(segments.into(), self.agreed.mss)
    }
    /// A writer waits for room in the send buffer, which may grow thereby.
    pub fn provide_room(&mut self) {
        if let Some(sender) = self.sender.get_mut() {
            sender.provide(&self.agreed, &self.settings);
        }
    }
    /// The congestion window in octets.
    pub fn window(&self) -> u64 {
        match self.sender.get() {
            Some(sender) => sender.control.window(),
            None => Controller::new(&self.settings.controller(self.agreed.mss)).window(),
        }
    }
    /// The slow start threshold in octets; `u64::MAX` before the first congestion.
    pub fn slow_start_threshold(&self) -> u64 {
        let control = self.sender.get().map(|sender| &sender.control);
        control.map_or(u64::MAX, |control| control.slow_start_threshold())
    }
    /// The rate of pacing, if there is one.
    pub fn pacing(&self) -> Option<Rate> {
        self.sender.get()?.control.pacing()
    }
    /// Octets that the other end's window has room for.
    pub fn peer_window(&self) -> u64 {
        let edge = match &self.sender {
            Half::Idle(offered) => offered.edge,
            Half::Active(sender) => sender.offered.edge,
        };
        edge.saturating_sub(self.sender.next())
    }
    /// The smoothed round trip; zero before the first sample.
    pub fn smoothed_rtt(&self) -> Span {
        self.sender.get().map_or(Span::ZERO, |sender| sender.rtt.smoothed())
    }
    /// The time-out in force.
    pub fn timeout(&self) -> Span {
        let sender = self.sender.get();
        sender.map_or(self.settings.initial_rto, |sender| sender.rtt.timeout(&self.settings))
    }
    /// Octets of data in a full segment, as agreed upon.
    pub fn segment_size(&self) -> u32 {
        self.agreed.mss
    }
    /// This end's knowledge of the round trip; one that never sent knows the shortest time-out.
    fn pulse(&self) -> Pulse {
        let smoothed = self.smoothed_rtt();
        let timeout = if smoothed.is_zero() { self.settings.min_rto } else { self.timeout() };
        Pulse { smoothed, timeout }
    }
    /// Counts of what has happened so far.
    pub fn counters(&self) -> Counters {
        let sending = self.sender.get().map(|sender| sender.counters).unwrap_or_default();
        Counters { sending, receiving: self.receiver.counters }
    }

    /// Takes in a segment.
    #[inline]
    pub fn receive(&mut self, now: Time, segment: Segment<B>) {
        match self.state {
            State::Open => self.receive_open(now, segment),
            _ => self.receive_opening(now, segment),
        }
    }

    fn receive_open(&mut self, now: Time, segment: Segment<B>) {
        let flags = segment.flags;
        let Some(position) = self.receiver.position(segment.seq) else { return };
        if flags.has(Flags::RST) || !flags.has(Flags::ACK) {
            return;
        }
        let stamp = segment.timestamps.filter(|_| self.agreed.timestamps);
        let current = stamp.is_none_or(|stamp| self.receiver.stamped(stamp, position));
        if !current && segment.span() > 0 {
            return self.receiver.refuse();
        }
        if let Some(marks) = self.agreed.ecn {
            self.receiver.marks(marks, segment.ecn, flags, segment.span() == 0);
        }
        if current && !self.hear(now, &segment, position, stamp) {
            return self.receiver.acknowledge_now();
        }
        if segment.span() == 0 {
            self.receiver.probed(position);
        } else if flags.has(Flags::SYN) {
            // The acknowledgement of the handshake was lost.
            self.receiver.acknowledge_now();
        } else {
            let fin = flags.has(Flags::FIN);
            self.receiver.pushed(flags);
            let pulse = self.pulse();
            self.receiver.data(now, position, (segment.data, fin), pulse, &self.settings);
        }
    }

    /// Hands a segment's acknowledgement to the sending half; false if it acknowledges what was never
    /// sent.
    fn hear(
        &mut self,
        now: Time,
        segment: &Segment<B>,
        seq: u64,
        stamp: Option<Timestamps>,
    ) -> bool {
        let una = self.sender.una();
        let position = |number: Seq| number.position(self.first, una);
        let Some(ack) = position(segment.ack) else { return true };
        let mut runs = [Range { start: 0, end: 0 }; Sack::MOST];
        let mut count = 0;
        for &(start, end) in segment.sack().iter().filter(|_| self.agreed.sack) {
            if let (Some(start), Some(end)) = (position(start), position(end)) {
                runs[count] = Range { start, end };
                count += 1;
            }
        }
        let syn = segment.flags.has(Flags::SYN);
        let scale = if syn { 0 } else { self.agreed.send_scale };
        let heard = Heard {
            ack,
            seq,
            window: u64::from(segment.window) << scale,
            bare: segment.span() == 0,
            runs: &runs[..count],
            echo: stamp.map(|stamp| stamp.echo),
            marked: segment.flags.has(Flags::ECE) && !syn,
            ace: segment.flags.ace(),
        };
        self.sender.acknowledge(now, &heard, &self.agreed, &self.settings)
    }

    /// The next segment to send: acknowledgements that count as duplicates, then what was lost, then what
    /// is new, then an acknowledgement that nothing has carried.
    pub fn transmit(&mut self, now: Time) -> Option<Segment<B>> {
        if let Some((seq, ack)) = self.reset.take() {
            return Some(self.refusal(now, seq, ack));
        }
        if let Some(syn) = self.opening(now) {
            return Some(syn);
        }
        let knows = self.knows_peer();
        if knows && self.receiver.owes() {
            return Some(self.acknowledgement(now));
        }
        let sender = self.sender.get_mut();
        let out = sender.and_then(|sender| sender.transmit(now, &self.agreed, &self.settings));
        if let Some(out) = out {
            return Some(self.segment(now, out));
        }
        (knows && self.receiver.pending()).then(|| self.acknowledgement(now))
    }

    /// A segment without data.
    fn acknowledgement(&mut self, now: Time) -> Segment<B> {
        self.receiver.counters.acks += 1;
        let seq = self.first.plus(self.sender.next());
        let none = B::default();
        let mut segment = Segment::new(seq, Seq::default(), Flags::NONE, 0, none, now);
        segment.ecn = self.agreed.codepoint(false);
        self.finish(now, &mut segment, self.agreed.mss);
        segment
    }

    /// The header of what goes out.
    #[inline]
    fn segment(&mut self, now: Time, out: Outgoing<B>) -> Segment<B> {
        let flags = Flags::NONE
            .with(Flags::SYN, out.syn)
            .with(Flags::FIN, out.fin)
            .with(Flags::PSH, out.push && !out.data.is_empty())
            .with(Flags::CWR, out.cwr);
        let seq = self.first.plus(out.start);
        let spare = self.agreed.mss.saturating_sub(out.data.len());
        if !out.data.is_empty() {
            self.receiver.answered(now);
        }
        let mut segment = Segment::new(seq, Seq::default(), flags, 0, out.data, out.eligible);
        segment.first_sent = out.first_sent;
        if out.syn {
            return self.finish_syn(now, segment);
        }
        segment.ecn = self.agreed.codepoint(out.fresh);
        self.finish(now, &mut segment, spare);
        segment
    }

    /// Fills in acknowledgement, window and options; SACK if `spare` octets are enough for it.
    #[inline]
    fn finish(&mut self, now: Time, segment: &mut Segment<B>, spare: u32) {
        self.receiver.tell(segment, &self.agreed, &self.settings);
        if self.agreed.timestamps {
            let echo = self.receiver.echo_of_stamp();
            segment.timestamps = Some(Timestamps { value: clock_stamp(now), echo });
        }
        let most = match self.agreed.timestamps {
            true => Sack::MOST_WITH_TIMESTAMPS,
            false => Sack::MOST,
        };
        if self.agreed.sack && spare >= 4 + 8 * most as u32 {
            segment.rare = self.receiver.sack(most).map(|sack| Box::new(Rare::Sack(sack)));
        }
    }

    /// When [`expire`](Tcp::expire) is to be called.
    pub fn deadline(&self) -> Option<Time> {
        let sender = self.sender.get();
        let sender = sender.map(|sender| sender.deadline(&self.agreed, &self.settings));
        let sender = sender.unwrap_or(Time::NEVER);
        Some(sender.min(self.receiver.deadline())).filter(|&due| due != Time::NEVER)
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Time) {
        let pulse = self.pulse();
        self.receiver.expire(now, pulse);
        if let Some(sender) = self.sender.get_mut() {
            sender.expire(now, &self.agreed, &self.settings);
        }
    }
}

//! The receiving side: stage one collects a block behind a barrier and judges it by its trailer, stage
//! two hands the data on and returns the ECHO (Fraser, Marshall, Riddle, US 4,852,127, abstract).

use super::control::{Control, User};
use super::counters::Receiving;
use super::crc::Crc;
use super::segment::Trailer;
use super::seq::Seq;
use super::settings::{Check, Echo, Profile, Settings};
use super::{Delivery, TrailerKind};
use crate::Payload;
use std::collections::VecDeque;

/// Data behind the barrier: a block whose trailer has not come.
#[derive(Debug, Clone)]
struct Behind<P> {
    /// Pieces that a user control ended.
    pieces: Vec<Delivery<P>>,
    /// Data since.
    data: P,
    /// Octets and user controls in all.
    count: u64,
}

impl<P: Payload> Behind<P> {
    fn new() -> Behind<P> {
        Behind { pieces: Vec::new(), data: P::default(), count: 0 }
    }

    fn add_data(&mut self, data: P) {
        self.count += u64::from(data.len());
        self.data.append(data);
    }

    fn add_user(&mut self, user: User) {
        self.count += 1;
        let data = std::mem::take(&mut self.data);
        self.pieces.push(Delivery { data, user: Some(user), end: false });
    }

    fn clear(&mut self) {
        *self = Behind::new();
    }

    fn crc(&self, trailer: &Trailer) -> u32 {
        let mut crc = Crc::new();
        for piece in &self.pieces {
            crc.payload(&piece.data);
            piece.user.into_iter().for_each(|user| crc.control(user.octet()));
        }
        crc.payload(&self.data);
        crc.finish(trailer.kind, trailer.seq)
    }

    /// Releases everything, the last piece with the message's end; nothing if there is neither.
    fn release(&mut self, end: bool) -> Vec<Delivery<P>> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let data = std::mem::take(&mut self.data);
        self.count = 0;
        if !data.is_empty() || (end && pieces.is_empty()) {
            pieces.push(Delivery { data, user: None, end: false });
        }
        pieces.last_mut().into_iter().for_each(|last| last.end = end);
        pieces
    }
}

/// An answer that waits until the consumer has taken what came before it.
#[derive(Debug, Clone, Copy)]
struct Token {
    /// The octets that the consumer must have taken.
    at: u64,
    answer: Control,
}

/// The worth of a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    BadTrailer,
    BadCount,
    BadSequence,
    BadCrc,
    Duplicate,
}

/// The way in which the other end's transmitter has initialised a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// It has not.
    Unknown,
    /// INIT1.
    Blocks,
    /// INIT0.
    Characters,
}

#[derive(Debug, Clone)]
pub(super) struct Receiver<P> {
    settings: Settings,
    framing: Framing,
    /// The last good number.
    good: Seq,
    /// The last ECHO or REJ sent.
    last_answer: Control,
    behind: Behind<P>,
    accepted: u64,
    consumed: u64,
    tokens: VecDeque<Token>,
    deliveries: VecDeque<Delivery<P>>,
    /// Whether a REJ has been sent for the present spell of errors.
    rejected: bool,
    pub counters: Receiving,
}

type Out<'a> = &'a mut VecDeque<Control>;

impl<P: Payload> Receiver<P> {
    pub fn new(settings: Settings, framing: Framing) -> Receiver<P> {
        Receiver {
            settings,
            framing,
            good: Seq::NONE,
            last_answer: Control::Echo(Seq::NONE),
            behind: Behind::new(),
            accepted: 0,
            consumed: 0,
            tokens: VecDeque::new(),
            deliveries: VecDeque::new(),
            rejected: false,
            counters: Receiving::default(),
        }
    }

    pub fn take(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    pub fn waiting(&self) -> usize {
        self.deliveries.len()
    }

    /// Forgets what the other end's transmitter was doing, until it initialises.
    pub fn forget(&mut self) {
        self.reset(Framing::Unknown);
    }

    fn reset(&mut self, framing: Framing) {
        self.framing = framing;
        self.good = Seq::NONE;
        self.last_answer = Control::Echo(Seq::NONE);
        self.rejected = false;
        self.behind.clear();
        // Answers under the old numbers would be read under the new.
        self.tokens.clear();
    }

    pub fn initialise(&mut self, framing: Framing, out: Out<'_>) {
        self.reset(framing);
        out.push_back(Control::Ainit);
    }

    pub fn discard_partial(&mut self) {
        self.behind.clear();
    }

    pub fn data(&mut self, data: P) {
        if data.is_empty() {
            return;
        }
        match self.framing {
            Framing::Blocks => self.behind.add_data(data),
            Framing::Characters => self.deliver([Delivery { data, user: None, end: false }]),
            Framing::Unknown => {}
        }
    }

    pub fn user(&mut self, user: User) {
        match self.framing {
            Framing::Blocks => self.behind.add_user(user),
            Framing::Characters if user == User::EOT && self.settings.eot => self.end_message(),
            Framing::Characters => {
                let data = P::default();
                self.deliver([Delivery { data, user: Some(user), end: false }]);
            }
            Framing::Unknown => {}
        }
    }

    /// A message ends behind what has come, or is empty. Data that wait to be taken take the end along.
    fn end_message(&mut self) {
        match self.deliveries.back_mut().filter(|last| !last.end) {
            Some(last) => last.end = true,
            None => self.deliver([Delivery { data: P::default(), user: None, end: true }]),
        }
    }

    fn deliver(&mut self, pieces: impl IntoIterator<Item = Delivery<P>>) {
        for piece in pieces {
            self.accepted += u64::from(piece.len());
            self.deliveries.push_back(piece);
        }
    }

    /// A number without a trailer.
    pub fn bare_seq(&mut self, seq: Seq, out: Out<'_>) {
        match self.framing {
            Framing::Characters => {
                self.good = seq;
                self.answer(Control::Echo(seq), out);
            }
            Framing::Blocks => self.refuse(Verdict::BadTrailer, None, seq, out),
            Framing::Unknown => out.push_back(Control::InitReq),
        }
    }

    pub fn trailer(&mut self, trailer: Trailer, out: Out<'_>) {
        if self.framing != Framing::Blocks {
            return self.bare_trailer(trailer, out);
        }
        match self.judge(&trailer) {
            Verdict::Good => self.accept(trailer, out),
            verdict => self.refuse(verdict, Some(trailer.kind), trailer.seq, out),
        }
    }

    /// A trailer came when none was expected: its number asks for an echo all the same.
    fn bare_trailer(&mut self, trailer: Trailer, out: Out<'_>) {
        if self.framing == Framing::Characters {
            self.bare_seq(trailer.seq, out);
        }
    }

    fn judge(&self, trailer: &Trailer) -> Verdict {
        let Some(length) = trailer.length else { return Verdict::BadTrailer };
        let check = if trailer.crc.is_some() { Trailer::CRC_LENGTH } else { 0 };
        if u64::from(length) != self.behind.count + u64::from(check) {
            return Verdict::BadCount;
        }
        if self.settings.check == Check::Crc && trailer.crc != Some(self.behind.crc(trailer)) {
            return Verdict::BadCrc;
        }
        match trailer.seq.since(self.good.next()) {
            0 => Verdict::Good,
            ahead if self.is_behind(ahead) => Verdict::Duplicate,
            _ => Verdict::BadSequence,
        }
    }

    /// Whether a number `ahead` of the expected one must be an old one. With a window of `w` blocks a block after
    /// a gap is at most `w - 1` ahead; what is further ahead modulo 8 has been accepted before. Only the
    /// default profile makes this distinction: a REJ for a duplicate has the sender go back for nothing,
    /// and the duplicates of that bring the next REJ.
    fn is_behind(&self, ahead: usize) -> bool {
        self.settings.profile == Profile::Trunkline && ahead >= self.settings.outstanding.into()
    }

    fn accept(&mut self, trailer: Trailer, out: Out<'_>) {
        self.counters.blocks += 1;
        self.good = trailer.seq;
        self.rejected = false;
        let pieces = self.behind.release(trailer.kind.ends_message());
        self.deliver(pieces);
        self.answer(Control::Echo(trailer.seq), out);
    }

    fn refuse(&mut self, verdict: Verdict, kind: Option<TrailerKind>, seq: Seq, out: Out<'_>) {
        self.count(verdict);
        self.behind.clear();
        let resynchronise =
            kind == Some(TrailerKind::Bots) && self.settings.profile != Profile::Plan9;
        if resynchronise {
            self.good = seq;
        }
        match (verdict, resynchronise, self.settings.profile) {
            (_, true, Profile::Trunkline | Profile::Kmc) => self.answer(Control::Echo(seq), out),
            (Verdict::Duplicate, ..) => {}
            _ => self.reject(out),
        }
    }

    fn count(&mut self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Good => &mut self.counters.blocks,
            Verdict::BadTrailer => &mut self.counters.bad_trailer,
            Verdict::BadCount => &mut self.counters.bad_count,
            Verdict::BadSequence => &mut self.counters.bad_sequence,
            Verdict::BadCrc => &mut self.counters.bad_crc,
            Verdict::Duplicate => &mut self.counters.duplicates,
        };
        *counter += 1;
    }

    fn reject(&mut self, out: Out<'_>) {
        let each = matches!(self.settings.profile, Profile::V10 | Profile::Kmc);
        if self.rejected && !each {
            return;
        }
        self.rejected = true;
        self.counters.rejects += 1;
        let reject = Control::Rej(self.good);
        match self.settings.profile {
            // Read as an ECHO of the same number, it makes those that wait void.
            Profile::Plan9 => {
                self.tokens.clear();
                self.send(reject, out);
            }
            _ => self.answer(reject, out),
        }
    }

    /// Queues an ECHO or REJ behind the data that came before it.
    fn answer(&mut self, answer: Control, out: Out<'_>) {
        self.tokens.push_back(Token { at: self.accepted, answer });
        self.release_answers(out);
    }

    fn release_answers(&mut self, out: Out<'_>) {
        let free = self.settings.echo == Echo::Acceptance;
        while let Some(&Token { at, answer }) = self.tokens.front() {
            if !free && at > self.consumed {
                break;
            }
            self.tokens.pop_front();
            self.send(answer, out);
        }
    }

    fn send(&mut self, answer: Control, out: Out<'_>) {
        self.last_answer = answer;
        out.push_back(answer);
    }

    pub fn consumed(&mut self, octets: u64, out: Out<'_>) {
        self.consumed = self.consumed.saturating_add(octets).min(self.accepted);
        self.release_answers(out);
    }

    pub fn enquiry(&mut self, out: Out<'_>) {
        if self.framing == Framing::Unknown {
            return out.push_back(Control::InitReq);
        }
        self.counters.enquiries += 1;
        self.behind.clear();
        // What is resent after the answer may be damaged again, and then deserves a REJ of its own.
        if self.settings.profile == Profile::Trunkline {
            self.rejected = false;
        }
        out.extend([self.last_answer, Control::Ack(self.good)]);
    }

    pub fn check(&mut self, out: Out<'_>) {
        if self.framing == Framing::Unknown {
            return out.push_back(Control::InitReq);
        }
        self.counters.enquiries += 1;
        if self.settings.profile != Profile::Plan9 {
            self.behind.clear();
        }
        out.push_back(Control::Ack(self.good));
    }
}

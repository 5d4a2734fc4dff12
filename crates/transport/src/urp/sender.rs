//! The sending side: a window of blocks that moves on ECHO, and go-back-N.

use super::control::{Control, TrailerKind, User};
use super::counters::Sending;
use super::segment::{Block, Characters, Segment};
use super::seq::Seq;
use super::settings::{Check, Mode, Profile, Settings};
use crate::Payload;
use std::collections::VecDeque;
use trunkline_core::{Span, Time};

/// Character mode repeats an unechoed number after ten ticks of a 60 Hz clock (8th and 10th edition).
const REPEAT: Span = Span::from_nanos(10 * 1_000_000_000 / 60);

/// The data that the application handed over in one go.
#[derive(Debug, Clone)]
struct Request<P> {
    data: P,
    user: Option<User>,
    end: bool,
    offered: Time,
}

/// A block that has been sent and not been echoed. Its data go once it is acknowledged.
#[derive(Debug, Clone)]
struct Sent<P> {
    /// As it is to be sent again.
    block: Block<P>,
    len: u32,
    resent: bool,
    /// Units that its ECHO answers for: itself, or the request that ends with a number of character mode.
    units: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not initialised.
    Idle,
    /// Initialised, and not yet accepted.
    Opening,
    Open,
}

#[derive(Debug, Clone)]
pub(super) struct Sender<P> {
    settings: Settings,
    state: State,
    /// The number of blocks that may be outstanding.
    limit: usize,
    requests: VecDeque<Request<P>>,
    unsent: u64,
    /// From the first unechoed block (WS of the 10th edition) to the last sent (WNX - 1).
    window: VecDeque<Sent<P>>,
    /// The number of blocks of the window that are acknowledged (WACK - WS).
    acked: usize,
    /// The number of the next new block (WNX).
    next: Seq,
    /// For each further block that the window allows: since when.
    permits: VecDeque<Time>,
    /// The next block of the window to be sent again.
    resend: Option<usize>,
    /// Whether the present spell of errors has been answered by going back.
    rejecting: bool,
    /// The number of blocks of the window that were sent before the unanswered enquiry, and not since.
    asked: usize,
    /// Whether an enquiry is unanswered.
    enquiring: bool,
    /// Whether a new block has been sent since the last enquiry.
    fresh: bool,
    /// Enquiries in a row without an answer.
    unanswered: u8,
    /// When the timer runs out.
    due: Option<Time>,
    /// Character mode: octets since the last number.
    since_seq: u32,
    pub counters: Sending,
}

type Out<'a> = &'a mut VecDeque<Control>;

impl<P: Payload> Sender<P> {
    pub fn new(settings: Settings) -> Sender<P> {
        Sender {
            settings,
            state: State::Idle,
            limit: if settings.mode.has_trailers() { settings.outstanding.into() } else { 1 },
            requests: VecDeque::new(),
            unsent: 0,
            window: VecDeque::new(),
            acked: 0,
            next: Seq::FIRST,
            permits: VecDeque::new(),
            resend: None,
            rejecting: false,
            asked: 0,
            enquiring: false,
            fresh: false,
            unanswered: 0,
            due: None,
            since_seq: 0,
            counters: Sending::default(),
        }
    }

    pub fn unsent(&self) -> u64 {
        self.unsent
    }
    pub fn unechoed(&self) -> u64 {
        self.window.iter().map(|sent| u64::from(sent.len)).sum()
    }
    /// Units sent and answered for: blocks, or requests where there are none.
    pub fn answered_units(&self) -> u64 {
        self.counters.blocks - self.window.iter().map(|sent| sent.units).sum::<u64>()
    }
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.window.is_empty()
    }
    pub fn is_blocked(&self) -> bool {
        !self.requests.is_empty() && (self.state != State::Open || self.permits.is_empty())
    }
    pub fn is_recovering(&self) -> bool {
        self.resend.is_some()
            || self.enquiring
            || self.window.iter().skip(self.acked).any(|sent| sent.resent)
    }
    pub fn is_dead(&self) -> bool {
        self.unanswered >= self.settings.enquiries && self.due.is_none()
    }
    pub fn state(&self) -> State {
        self.state
    }
    pub fn outstanding(&self) -> usize {
        self.window.len()
    }
    pub fn deadline(&self) -> Option<Time> {
        self.due
    }

    pub fn offer(&mut self, now: Time, data: P, user: Option<User>, end: bool) {
        if data.is_empty() && user.is_none() && !end {
            return;
        }
        self.unsent += u64::from(data.len()) + u64::from(user.is_some());
        self.requests.push_back(Request { data, user, end, offered: now });
    }

    /// Opens without asking the other end.
    pub fn open(&mut self, now: Time) {
        self.state = State::Open;
        self.due = None;
        self.unanswered = 0;
        self.permits.clear();
        self.refill(now);
    }

    /// Starts afresh; what is outstanding is released as if echoed.
    pub fn initialise(&mut self, now: Time, out: Out<'_>) {
        self.abandon_window();
        self.next = Seq::FIRST;
        self.unanswered = 0;
        self.since_seq = 0;
        self.counters.initialisations += 1;
        if self.settings.mode.has_trailers() {
            self.state = State::Opening;
            self.permits.clear();
            out.push_back(Control::Init1);
            self.start_timer(now);
        } else {
            // The 10th edition does not wait for AINIT in character mode.
            out.push_back(Control::Init0);
            self.open(now);
        }
    }

    fn abandon_window(&mut self) {
        self.counters.abandoned += self.unechoed();
        self.window.clear();
        self.forget_errors();
        self.acked = 0;
        self.due = None;
    }

    fn forget_errors(&mut self) {
        self.resend = None;
        self.rejecting = false;
        self.asked = 0;
        self.enquiring = false;
    }

    /// Gives up everything that is not echoed.
    pub fn abandon(&mut self) {
        self.abandon_window();
        self.counters.abandoned += self.unsent;
        self.requests.clear();
        self.unsent = 0;
    }

    /// Takes in AINIT. True if it was waited for.
    pub fn accepted(&mut self, now: Time) -> bool {
        let opens = self.state == State::Opening;
        if opens {
            self.open(now);
        }
        opens
    }

    /// Sets how many blocks may be outstanding; in character mode it stays one number.
    pub fn limit_window(&mut self, blocks: usize) {
        if !self.settings.mode.has_trailers() {
            return;
        }
        self.limit = blocks;
        self.permits.truncate(self.limit.saturating_sub(self.window.len()));
    }

    fn refill(&mut self, now: Time) {
        while self.permits.len() + self.window.len() < self.limit {
            self.permits.push_back(now);
        }
    }

    pub fn transmit(&mut self, now: Time) -> Option<Segment<P>> {
        if self.state != State::Open {
            return None;
        }
        if let Some(block) = self.next_resend(now) {
            return Some(Segment::Block(block));
        }
        match self.settings.mode {
            Mode::Block | Mode::Detection => self.next_block(now).map(Segment::Block),
            Mode::Character | Mode::Raw => self.next_characters(now).map(Segment::Characters),
        }
    }

    fn next_resend(&mut self, now: Time) -> Option<Block<P>> {
        let index = self.resend?;
        let sent = self.window.get_mut(index)?;
        sent.resent = true;
        let block = sent.block.clone();
        self.resend = Some(index + 1).filter(|&next| next < self.window.len());
        self.counters.resent += 1;
        self.start_timer(now);
        Some(block)
    }

    fn next_block(&mut self, now: Time) -> Option<Block<P>> {
        let request = self.requests.front()?;
        let since = self.permits.pop_front()?;
        let eligible = since.max(request.offered);
        let (data, user, last) = self.cut(self.settings.block.into())?;
        let kind = match (self.settings.mode, last) {
            (Mode::Detection, _) => TrailerKind::Bots,
            (_, Some(true)) => TrailerKind::Bot,
            _ => TrailerKind::Botm,
        };
        let seq = self.next;
        let mut block = Block { data, user, seq, kind, crc: None, eligible, first_sent: None };
        if self.settings.check == Check::Crc {
            block = block.with_crc();
        }
        self.sent(now, block.clone(), 1);
        self.counters.blocks += 1;
        Some(block)
    }

    fn sent(&mut self, now: Time, mut block: Block<P>, units: u64) {
        let len = block.len();
        block.first_sent = Some(now);
        self.window.push_back(Sent { block, len, resent: false, units });
        self.next = self.next.next();
        self.fresh = true;
        self.start_timer(now);
    }

    /// Up to `most` octets of the first request, its user control if it is reached, and, if that was
    /// all of the request, whether a message ends there.
    fn cut(&mut self, most: u32) -> Option<(P, Option<User>, Option<bool>)> {
        let request = self.requests.front_mut()?;
        let data = request.data.take_front(most);
        let whole = request.data.is_empty();
        let user = request.user.take_if(|_| whole);
        let end = request.end;
        self.unsent -= u64::from(data.len()) + u64::from(user.is_some());
        if whole {
            self.requests.pop_front();
        }
        Some((data, user, whole.then_some(end)))
    }

    fn next_characters(&mut self, now: Time) -> Option<Characters<P>> {
        let since = *self.permits.front()?;
        let room = u32::from(self.settings.block) - self.since_seq;
        if room == 0 {
            // A user control stood in the number's place.
            let control = Some(Control::Seq(self.mark(now, since, None)));
            return Some(Characters {
                data: P::default(),
                control,
                eligible: since,
                request: None,
            });
        }
        let eligible = since.max(self.requests.front()?.offered);
        let (data, user, last) = self.cut(room)?;
        let request = last.map(|_| self.counters.blocks);
        self.counters.blocks += u64::from(request.is_some());
        let eot = last == Some(true) && self.settings.eot;
        let mut control = user.or(eot.then_some(User::EOT)).map(Control::User);
        if self.settings.mode == Mode::Character {
            self.since_seq += data.len();
            if self.since_seq >= u32::from(self.settings.block) && control.is_none() {
                control = Some(Control::Seq(self.mark(now, eligible, request)));
            }
        }
        if data.is_empty() && control.is_none() {
            // The end of a message, which is not carried.
            return self.next_characters(now);
        }
        Some(Characters { data, control, eligible, request })
    }

    /// Books a number that waits for its echo, perhaps that of a request's last data.
    fn mark(&mut self, now: Time, eligible: Time, request: Option<u64>) -> Seq {
        let (seq, kind, data) = (self.next, TrailerKind::Botm, P::default());
        let block = Block { data, user: None, seq, kind, crc: None, eligible, first_sent: None };
        self.permits.pop_front();
        self.sent(now, block, request.iter().len() as u64);
        if let Some(mark) = self.window.back_mut() {
            mark.len = std::mem::take(&mut self.since_seq);
        }
        seq
    }

    /// The number of blocks of the window that `seq` covers; `None` if it is stale.
    fn covered(&self, seq: Seq) -> Option<usize> {
        let before_window = self.next.minus(self.window.len() + 1);
        Some(seq.since(before_window)).filter(|&covered| covered <= self.window.len())
    }

    /// Moves the window. True if it moved.
    fn advance(&mut self, now: Time, seq: Seq) -> bool {
        let Some(covered @ 1..) = self.covered(seq) else { return false };
        self.window.drain(..covered);
        self.acked = self.acked.saturating_sub(covered);
        self.asked = self.asked.saturating_sub(covered);
        self.resend = self.resend.map(|at| at.saturating_sub(covered));
        self.resend = self.resend.filter(|&at| at < self.window.len());
        self.rejecting = false;
        self.refill(now);
        self.start_timer(now);
        true
    }

    fn acknowledge(&mut self, covered: usize) {
        self.acked = self.acked.max(covered);
        for sent in self.window.iter_mut().take(self.acked) {
            sent.block.data = P::default();
        }
        self.resend = self.resend.map(|at| at.max(self.acked));
        self.resend = self.resend.filter(|&at| at < self.window.len());
    }

    fn go_back(&mut self) {
        self.asked = 0;
        if self.acked < self.window.len() && self.settings.mode == Mode::Block {
            self.resend = Some(self.acked);
            self.counters.went_back += 1;
        }
    }

    /// The other end lives.
    fn answered(&mut self, now: Time) {
        let dead = self.is_dead();
        self.unanswered = 0;
        if dead {
            self.start_timer(now);
        }
    }

    pub fn echo(&mut self, now: Time, seq: Seq) {
        self.answered(now);
        if self.state == State::Open {
            self.advance(now, seq);
        }
    }

    pub fn ack(&mut self, now: Time, seq: Seq) {
        self.answered(now);
        self.enquiring = false;
        match (self.state, self.settings.mode, self.covered(seq)) {
            (State::Open, Mode::Detection, covered) => self.give_up(now, covered.unwrap_or(0)),
            (State::Open, _, Some(covered)) => self.ack_current(covered),
            _ => {}
        }
    }

    fn ack_current(&mut self, covered: usize) {
        let before = self.acked;
        self.acknowledge(covered);
        let back = match self.settings.profile {
            Profile::Trunkline => covered == self.acked && self.acked < self.asked,
            Profile::V10 => true,
            Profile::Plan9 => covered == 0 && !self.rejecting,
            Profile::Kmc => covered == before && !self.fresh && !self.rejecting,
        };
        if self.settings.profile == Profile::Trunkline {
            self.rejecting = false;
        }
        if back {
            self.go_back();
        }
        self.asked = 0;
    }

    /// Detection mode: what was sent before an enquiry and is not acknowledged by the answer is lost, and
    /// stays so; blocks that wait for their ECHO are let wait first. The answer's number may lie before
    /// the window, what it names having been given up.
    fn give_up(&mut self, now: Time, covered: usize) {
        self.acknowledge(covered);
        let lost = std::mem::take(&mut self.asked);
        if self.acked == 0 && lost > 0 {
            let octets = self.window.iter().take(lost).map(|sent| u64::from(sent.len));
            self.counters.abandoned += octets.sum::<u64>();
            let first = self.next.minus(self.window.len());
            self.advance(now, first.plus(lost - 1));
        }
    }

    pub fn reject(&mut self, now: Time, seq: Seq) {
        self.answered(now);
        self.counters.rejects += 1;
        let heeds = self.settings.profile != Profile::Kmc || self.enquiring;
        if self.state != State::Open || !heeds || self.covered(seq).is_none() {
            return;
        }
        // In detection mode nothing comes again: a REJ is as good as an ECHO.
        if self.settings.profile != Profile::V10 || self.settings.mode == Mode::Detection {
            self.advance(now, seq);
        }
        let current = self.covered(seq) == Some(self.acked);
        let repeats = self.settings.profile == Profile::Kmc;
        if current && (repeats || !self.rejecting) {
            self.rejecting = true;
            self.go_back();
        }
    }

    fn waits(&self) -> bool {
        self.state == State::Opening || !self.window.is_empty()
    }

    fn start_timer(&mut self, now: Time) {
        let Settings { profile, timeout, mode, .. } = self.settings;
        self.due = match (self.waits(), mode) {
            (false, _) => None,
            (true, Mode::Character) => Some(now + REPEAT),
            (true, _) => Some(profile.due(now, timeout)),
        };
    }

    pub fn expire(&mut self, now: Time, out: Out<'_>) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.counters.timeouts += 1;
        if self.unanswered >= self.settings.enquiries {
            self.due = None;
            return;
        }
        self.unanswered += 1;
        self.ask(out);
        self.start_timer(now);
    }

    fn ask(&mut self, out: Out<'_>) {
        if self.state == State::Opening {
            return out.push_back(Control::Init1);
        }
        self.counters.enquiries += 1;
        if self.settings.mode == Mode::Character {
            return out.extend(self.window.front().map(|mark| Control::Seq(mark.block.seq)));
        }
        self.enquiring = true;
        self.fresh = false;
        self.asked = self.window.len();
        if matches!(self.settings.profile, Profile::Trunkline | Profile::Plan9) {
            self.rejecting = false;
        }
        out.push_back(Control::Enq);
    }
}

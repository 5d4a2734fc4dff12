//! The Universal Receiver Protocol of Datakit.
//!
//! A [`Urp`] is one end of a channel, both directions. The transmitter chooses the grade of service
//! ([`Mode`]); the receiver follows. In block mode data go in blocks, each with a trailer that states its
//! length and its number modulo 8; the window moves when the receiver *echoes* a block, that is, has
//! passed it on; a damaged block is answered by REJ with the number of the last good one, and the sender
//! goes back to the block after that. A sender that hears nothing asks (ENQ).
//!
//! Sources: Hawley 1989 §1.1; Vande Water 1988 §2.5, §3.7.2; the receiver's two stages from the abstract
//! of US 4,852,127; the characters, and what the implementations disagree about ([`Profile`]), from the
//! published behaviour of the 8th and 10th editions of Research Unix, of Plan 9 and of the KMC11 board.
//!
//! # What is guaranteed
//!
//! The network must keep the order of a channel, as Datakit does; it may lose and double what it carries.
//! A block is known by its octet count and by a number modulo 8; an envelope whose parity is bad vanishes.
//!
//! * Blocks lost or doubled *whole*, octets of data lost while the trailers arrive, or trailers lost while
//!   the data arrive: every octet is delivered once, in order, with the ends of messages in their places,
//!   in every profile and with every window of 1 to 7 blocks.
//! * Any other mixture can deceive the count, because between two trailers as much may come too much as
//!   is missing: an envelope or packet doubled and another lost; or, with losses alone, the rest of a
//!   block whose trailer was lost, followed by the next block short of as many octets. Wrong octets are
//!   then delivered, without notice; their number is right.
//! * With [`Check::Crc`] at both ends, an extension that no historical end has, all of this holds for every
//!   mixture, but for one damaged block in 2³².
//! * When the network works again, one time-out brings the sender back to the first block missing; in the
//!   Plan 9 and KMC profiles two. One state has no way out: in the 10th edition's profile, when the last
//!   ECHO was lost and the receiver has rejected a duplicate since, the window stays closed until somebody
//!   [initialises](Urp::initialise) the channel; all that was sent has arrived then.
//! * In the Plan 9 profile a REJ opens the window although the consumer has not taken what came before, so
//!   that more may wait at the receiver than a window. A Plan 9 receiver takes [`Mode::Detection`] for
//!   [`Mode::Block`] and never accepts a block after the first one lost.
//! * [`Mode::Detection`] delivers whole blocks in order and leaves out the damaged ones, and the one after a
//!   gap; [`Mode::Character`] notices no damage. Neither gets stuck.
//! * Initialising a channel releases what is outstanding, delivered or not.
//!
//! The receiver has room for whatever the window admits. The drops of full queues of the 10th edition and
//! of Plan 9 belong to a host's interface, not here.

mod control;
mod counters;
mod crc;
mod receiver;
mod segment;
mod sender;
mod seq;
mod settings;

pub(crate) use control::octet;
pub use control::{Control, TrailerKind, User};
pub use counters::{Counters, Receiving, Sending};
pub use segment::{Block, Characters, Part, Parts, Segment, Trailer};
pub use seq::Seq;
pub use settings::{
    Check, Echo, MOST_BLOCK, MOST_OUTSTANDING, Mode, Profile, Settings, SettingsError,
    UnknownProfile,
};

use crate::{Endpoint, Held, Payload};
use receiver::{Framing, Receiver};
use sender::{Sender, State};
use std::collections::VecDeque;
use trunkline_core::Time;

/// Accepted data, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<P> {
    /// User data, perhaps none.
    pub data: P,
    /// A user control after them.
    pub user: Option<User>,
    /// Whether a message ends here.
    pub end: bool,
}

impl<P: Payload> Delivery<P> {
    /// Octets, a user control being one: what [`Urp::consumed`] counts.
    pub fn len(&self) -> u32 {
        self.data.len() + u32::from(self.user.is_some())
    }
    /// Whether it is only the end of a message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One end of a channel. The order of calls is that of [`Endpoint`].
#[derive(Debug, Clone)]
pub struct Urp<P> {
    settings: Settings,
    sender: Sender<P>,
    receiver: Receiver<P>,
    /// Controls to be sent, before any block.
    out: VecDeque<Control>,
    express: VecDeque<[u8; 2]>,
    /// Until when a closing end waits.
    linger: Option<Time>,
    closed: bool,
    /// When INITREQ is sent again, and how often it may be.
    request: Option<(Time, u8)>,
}

impl<P: Payload> Urp<P> {
    /// An end that initialises its transmitter with the first data offered to it.
    pub fn new(settings: Settings) -> Result<Urp<P>, SettingsError> {
        let settings = settings.checked()?;
        Ok(Urp {
            settings,
            sender: Sender::new(settings),
            receiver: Receiver::new(settings, Framing::Unknown),
            out: VecDeque::new(),
            express: VecDeque::new(),
            linger: None,
            closed: false,
            request: None,
        })
    }

    /// An end of a channel whose set-up is over: both directions initialised at `now`, and the other
    /// end's transmitter in this one's mode.
    pub fn connected(now: Time, settings: Settings) -> Result<Urp<P>, SettingsError> {
        let mut urp = Urp::new(settings)?.hearing(settings.mode);
        urp.sender.open(now);
        Ok(urp)
    }

    /// The same end, whose peer's transmitter was initialised in `theirs`.
    pub fn hearing(mut self, theirs: Mode) -> Urp<P> {
        let framing = if theirs.has_trailers() { Framing::Blocks } else { Framing::Characters };
        self.receiver = Receiver::new(self.settings, framing);
        self
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Hands over one request: user data, after which a message ends if `end` says so. A block never
    /// holds data of two requests (the KMC takes one request at a time, Vande Water 1988 §3.7.2). No data
    /// with `end` are an empty message; without, nothing. Ignored once closed.
    pub fn offer(&mut self, now: Time, data: P, end: bool) {
        self.request(now, data, None, end);
    }

    /// Hands over a user control, as a block of its own.
    pub fn offer_user(&mut self, now: Time, user: User) {
        self.request(now, P::default(), Some(user), false);
    }

    fn request(&mut self, now: Time, data: P, user: Option<User>, end: bool) {
        if self.closed || self.linger.is_some() {
            return;
        }
        self.sender.offer(now, data, user, end);
        if self.sender.state() == State::Idle && !self.sender.is_idle() {
            self.initialise(now);
        }
    }

    /// Sends two octets past everything else: outside sequence, window and error control.
    pub fn send_express(&mut self, octets: [u8; 2]) {
        self.out.push_back(Control::Express(octets));
    }

    /// Initialises the transmitter. What is outstanding is released as if echoed, so that data may be
    /// lost.
    pub fn initialise(&mut self, now: Time) {
        self.sender.initialise(now, &mut self.out);
    }

    /// Forgets the receiver's state and asks the other end to initialise its transmitter, again after
    /// each time-out until it does.
    pub fn restart(&mut self, now: Time) {
        self.receiver.forget();
        self.ask_initialisation(now, self.settings.enquiries);
    }

    fn ask_initialisation(&mut self, now: Time, most: u8) {
        self.out.push_back(Control::InitReq);
        let due = self.settings.profile.due(now, self.settings.timeout);
        self.request = Some((due, most)).filter(|_| most > 0);
    }

    /// Takes no more data, and gives up what is not echoed after a while: 15 s, in Plan 9 two minutes.
    pub fn close(&mut self, now: Time) {
        if !self.closed && self.linger.is_none() {
            self.linger = Some(now + self.settings.profile.linger());
        }
        self.settle();
    }

    /// Whether it is closed, with nothing outstanding.
    pub fn closed(&self) -> bool {
        self.closed
    }

    fn settle(&mut self) {
        if self.linger.is_some() && self.sender.is_idle() {
            self.linger = None;
            self.closed = true;
        }
    }

    /// Takes in what came in one packet.
    pub fn receive(&mut self, now: Time, part: Part<P>) {
        self.receiver.data(part.data);
        if let Some(control) = part.control {
            self.receive_control(now, control);
        }
        if let Some(trailer) = part.trailer {
            self.receiver.trailer(trailer, &mut self.out);
        }
        self.settle();
    }

    fn receive_control(&mut self, now: Time, control: Control) {
        match control {
            Control::Seq(seq) => self.receiver.bare_seq(seq, &mut self.out),
            Control::Echo(seq) => self.sender.echo(now, seq),
            Control::Rej(seq) => self.sender.reject(now, seq),
            Control::Ack(seq) => self.sender.ack(now, seq),
            Control::Enq => self.receiver.enquiry(&mut self.out),
            Control::Check => self.receiver.check(&mut self.out),
            Control::InitReq => self.initialise(now),
            Control::Init0 => self.peer_initialises(Framing::Characters),
            Control::Init1 => self.peer_initialises(Framing::Blocks),
            Control::Ainit if self.sender.accepted(now) => self.receiver.discard_partial(),
            Control::Ainit => {}
            Control::Express(octets) => self.express.push_back(octets),
            Control::User(user) => self.receiver.user(user),
        }
    }

    fn peer_initialises(&mut self, framing: Framing) {
        self.request = None;
        self.receiver.initialise(framing, &mut self.out);
        if self.settings.profile == Profile::V10 && framing == Framing::Blocks {
            // So that a window set before this is lost, as there.
            self.sender.limit_window(3);
        }
    }

    /// The next segment to send: controls, then blocks again, then new ones.
    pub fn transmit(&mut self, now: Time) -> Option<Segment<P>> {
        match self.out.pop_front() {
            Some(control) => Some(Segment::Control(control)),
            None => self.sender.transmit(now),
        }
    }

    /// When [`expire`](Urp::expire) is to be called.
    pub fn deadline(&self) -> Option<Time> {
        let request = self.request.map(|(due, _)| due);
        [self.sender.deadline(), self.linger, request].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Time) {
        self.sender.expire(now, &mut self.out);
        if let Some((_, most)) = self.request.filter(|&(due, _)| due <= now) {
            self.ask_initialisation(now, most - 1);
        }
        if self.linger.is_some_and(|until| until <= now) {
            self.sender.abandon();
            self.settle();
        }
    }

    /// Accepted data, in order, one block (or in character mode one part) at a time.
    pub fn take(&mut self) -> Option<Delivery<P>> {
        self.receiver.take()
    }

    /// Express data that have come.
    pub fn take_express(&mut self) -> Option<[u8; 2]> {
        self.express.pop_front()
    }

    /// The number of deliveries that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.receiver.waiting()
    }

    /// The consumer is done with `octets` more ([`Delivery::len`]): under [`Echo::Consumption`] the blocks
    /// that are done with entirely are echoed. A block without octets is done with as soon as all before
    /// it is.
    pub fn consumed(&mut self, _now: Time, octets: u64) {
        self.receiver.consumed(octets, &mut self.out);
    }

    /// User octets offered and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }
    /// User octets sent and not yet echoed.
    pub fn unechoed(&self) -> u64 {
        self.sender.unechoed()
    }
    /// Blocks sent and not yet echoed.
    pub fn outstanding(&self) -> usize {
        self.sender.outstanding()
    }
    /// Whether everything offered is echoed. Only then does a KMC report its request done.
    pub fn idle(&self) -> bool {
        self.sender.is_idle()
    }
    /// Whether there are data that may not be sent, because the window is closed or the channel not yet open.
    pub fn blocked(&self) -> bool {
        self.sender.is_blocked()
    }
    /// Whether something is sent again, or asked for.
    pub fn recovering(&self) -> bool {
        self.sender.is_recovering()
    }
    /// Whether the other end has left [`Settings::enquiries`] enquiries in a row without an answer. This end asks no
    /// more then; an answer that comes all the same brings it back to life.
    pub fn dead(&self) -> bool {
        self.sender.is_dead()
    }
    /// Counts of what has happened so far.
    pub fn counters(&self) -> Counters {
        Counters { sending: self.sender.counters, receiving: self.receiver.counters }
    }
}

impl<P: Payload> Endpoint for Urp<P> {
    /// Blocks, all full but the last. Without trailers a request is a unit.
    fn units_of(&self, bytes: u32, end: bool) -> u64 {
        match (bytes, self.settings.mode.has_trailers()) {
            (0, _) => end.into(),
            (_, true) => bytes.div_ceil(self.settings.block.into()).into(),
            (_, false) => 1,
        }
    }

    fn consumed(&mut self, now: Time, bytes: u64) {
        Urp::consumed(self, now, bytes);
    }

    fn deadline(&self) -> Option<Time> {
        Urp::deadline(self)
    }

    fn expire(&mut self, now: Time) {
        Urp::expire(self, now);
    }

    fn unsent(&self) -> u64 {
        Urp::unsent(self)
    }

    fn unanswered(&self) -> u64 {
        self.unechoed()
    }

    fn held(&self, _now: Time) -> Option<Held> {
        if self.recovering() {
            return Some(Held::Recovery);
        }
        self.blocked().then_some(Held::Window)
    }

    fn dead(&self) -> bool {
        Urp::dead(self)
    }

    fn answered(&self) -> u64 {
        self.sender.answered_units()
    }

    fn counters(&self) -> crate::Counters {
        let sending = self.sender.counters;
        crate::Counters {
            units: sending.blocks,
            answered: self.answered(),
            resent: sending.resent,
            timeouts: sending.timeouts,
        }
    }
}

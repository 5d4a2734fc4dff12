//! A connection: how it is opened, kept alive and closed, around the half that sends or receives.
//!
//! Whichever end opens it, either may send the data. The end that receives is the one that makes sure: it asks again, says
//! when all has come, and sends a DONE that may be lost; the sender then waits a while for its like.

mod opening;

use super::habits::Habits;
use super::receiver::{Placed, Receiver};
use super::sender::{Sender, Sending};
use super::terms::Limits;
use super::wire::{Dialect, Message, Packet, Parity, Ports, Terms};
use trunkline_core::{Span, Time};

/// The OPEN timer: its first value, its greatest, and how often an OPEN is sent.
const OPEN: (Span, Span, u32) = (Span::from_secs(1), Span::from_secs(8), 6);
/// Its least first value if a round trip is known (a choice): the other end may have to look at its disk.
const SOONEST: Span = Span::from_millis(20);
/// From one sign of life to the next, towards an end that never holds this one for dead.
const IDLE: Span = Span::from_secs(30);
/// The least time for which an end that is done stays to answer.
const DALLY: Span = Span::from_millis(200);

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Everything has come.
    Done,
    /// The other end refused it, for this reason.
    Refused(Vec<u8>),
    /// Nobody answered.
    Unanswered,
    /// The other end has been silent for too long.
    Dead,
    /// The other end gave up, for this reason.
    Quit(Vec<u8>),
    /// The other end broke it off, for this reason.
    Aborted(Vec<u8>),
    /// This end gave up.
    Left,
    /// The other end broke the protocol.
    Broken(&'static str),
}

#[derive(Debug)]
enum State {
    Opening {
        tries: u32,
        due: Time,
        since: Time,
    },
    Open,
    /// All is confirmed, or the other end gave up: repeats are answered until then.
    Dally {
        until: Time,
        ending: Ending,
    },
    /// This end has given up and asks the other to know it.
    Quitting {
        reason: Vec<u8>,
        due: Time,
    },
    Closed(Ending),
}

/// The half of a connection that this end has.
#[derive(Debug)]
pub enum Half {
    /// It sends the data.
    Sender(Box<Sender>),
    /// It gets them.
    Receiver(Box<Receiver>),
}

/// What a connection wants to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// A packet without user data.
    Packet(Packet),
    /// A data packet, whose data the driver adds.
    Data(Sending),
    /// Parity of a buffer, counted from 0, whose row the driver adds.
    Parity(Parity, u64),
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    habits: Habits,
    ports: Ports,
    /// What this end proposed, or both have agreed on.
    terms: Terms,
    /// What a passive end answers to a repeated OPEN, and when it did last.
    response: Option<Terms>,
    responded: Time,
    /// Seconds after which the other end holds this one for dead.
    other_death: u16,
    state: State,
    /// Copies of the OPEN that are still to go at once behind the first.
    copies: u16,
    /// How long a round trip takes, if that is known from before.
    expected: Span,
    half: Option<Half>,
    /// Buffers that the client has provided before it was open.
    provided: u64,
    /// Messages that came before the answer to the OPEN.
    early: Vec<Message>,
    /// Packets to be sent before anything else.
    urgent: Vec<Packet>,
    heard: Time,
    spoke: Time,
}

impl Connection {
    /// The active end, which proposes `terms`.
    pub fn open(now: Time, terms: Terms, ports: Ports, habits: Habits) -> Connection {
        let state = State::Opening { tries: 0, due: now, since: now };
        Connection::new(now, habits, ports, terms, state)
    }

    /// The passive end, which has got an OPEN with these terms and answers it. `ports` are those of its own packets.
    ///
    /// # Errors
    /// The reason why it refuses.
    pub fn accept(
        now: Time,
        proposed: &Terms,
        ports: Ports,
        habits: Habits,
        limits: &Limits,
    ) -> Result<Connection, &'static str> {
        let terms = proposed.narrowed(limits)?;
        let mut connection = Connection::new(now, habits, ports, terms.clone(), State::Open);
        connection.other_death = proposed.death;
        connection.urgent.push(Packet::Response(terms.clone()));
        connection.response = Some(terms);
        connection.start(!proposed.write, None);
        Ok(connection)
    }

    /// The same end, whose answer to the OPEN bears its client's text. Only before anything is sent.
    #[must_use]
    pub fn answering(mut self, text: &[u8]) -> Connection {
        if let Some(response) = &mut self.response {
            response.text = text.to_vec();
            self.urgent = vec![Packet::Response(response.clone())];
        }
        self
    }

    fn new(now: Time, habits: Habits, ports: Ports, terms: Terms, state: State) -> Connection {
        Connection {
            habits,
            ports,
            terms,
            response: None,
            responded: now,
            other_death: 0,
            state,
            copies: 0,
            expected: Span::ZERO,
            half: None,
            provided: 0,
            early: Vec::new(),
            urgent: Vec::new(),
            heard: now,
            spoke: now,
        }
    }

    /// Makes the half that this end has, once the terms are settled.
    fn start(&mut self, sends: bool, round: Option<Span>) {
        let Habits { dialect, rate, cap } = self.habits;
        self.half = Some(match sends {
            true => {
                let start = rate.start(&self.terms, round);
                Half::Sender(Box::new(Sender::new(dialect, &self.terms, start, cap)))
            }
            false => {
                let keepalive = self.keepalive(7);
                let mut receiver = Receiver::new(dialect, &self.terms, rate, keepalive);
                receiver.provide(self.provided);
                Half::Receiver(Box::new(receiver))
            }
        });
    }

    /// The ports of the packets that this end sends.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The layout of the packets that it sends.
    pub fn dialect(&self) -> Dialect {
        self.habits.dialect
    }

    /// What the ends have agreed on; before that, what this one proposed.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Its sending half, if it is open and has one.
    pub fn sender(&mut self) -> Option<&mut Sender> {
        match &mut self.half {
            Some(Half::Sender(sender)) => Some(sender),
            _ => None,
        }
    }

    /// Its half, once it is open.
    pub fn half(&self) -> Option<&Half> {
        self.half.as_ref()
    }

    /// Its receiving half, if it is open and has one.
    pub fn receiver(&mut self) -> Option<&mut Receiver> {
        match &mut self.half {
            Some(Half::Receiver(receiver)) => Some(receiver),
            _ => None,
        }
    }

    /// The client can take so many buffers more.
    pub fn provide(&mut self, buffers: u64) {
        match self.receiver() {
            Some(receiver) => receiver.provide(buffers),
            None => self.provided += buffers,
        }
    }

    /// How long a round trip takes, if that is known.
    pub fn round(&self) -> Option<Span> {
        let measured = match &self.half {
            Some(Half::Receiver(receiver)) => receiver.measured(),
            _ => None,
        };
        measured.or((self.expected > Span::ZERO).then_some(self.expected))
    }

    /// How it ended, if it is closed.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.state {
            State::Closed(ending) => Some(ending),
            _ => None,
        }
    }

    /// Whether it is still to be opened.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening { .. })
    }

    /// The client gives up, for a reason that the other end is told.
    pub fn quit(&mut self, now: Time, reason: &[u8]) {
        self.state = match self.state {
            State::Open => State::Quitting { reason: reason.to_vec(), due: now },
            State::Opening { .. } => State::Closed(Ending::Left),
            _ => return,
        };
    }

    /// The interval at which this end gives a sign of life: a part of the time after which the other holds it for dead.
    fn keepalive(&self, part: u64) -> Span {
        match self.other_death {
            0 => IDLE,
            seconds => Span::from_nanos(u64::from(seconds) * 1_000_000_000 / part),
        }
    }

    fn death(&self) -> Option<Time> {
        let seconds = u64::from(self.terms.death);
        (seconds > 0).then(|| self.heard + Span::from_secs(seconds))
    }

    /// A packet of this connection has come; the data of a data packet are right if `is_right`. Answers where they
    /// belong, if they are new.
    pub fn receive(&mut self, now: Time, packet: &Packet, is_right: bool) -> Option<Placed> {
        if matches!(self.state, State::Closed(_)) {
            return None;
        }
        if !self.is_opening() {
            self.heard = now;
        }
        match packet {
            Packet::Open(terms) => self.opened_again(now, terms),
            Packet::Response(terms) => self.answered(now, terms),
            Packet::Refused(reason) if self.is_opening() => {
                self.state = State::Closed(Ending::Refused(reason.clone()));
            }
            Packet::Quit(reason) if !self.is_opening() => {
                self.reply(Packet::QuitAck);
                self.dally(now, Ending::Quit(reason.clone()));
            }
            Packet::QuitAck if matches!(self.state, State::Quitting { .. }) => {
                self.state = State::Closed(Ending::Left);
            }
            Packet::Abort(reason) => self.state = State::Closed(Ending::Aborted(reason.clone())),
            Packet::Data(data) => {
                return self.receiver().and_then(|half| half.receive(now, data, is_right));
            }
            Packet::NullAck(ack) => {
                if let Some(receiver) = self.receiver() {
                    receiver.hear(now, ack);
                }
            }
            Packet::Control(messages) => self.controlled(now, messages),
            Packet::Done => self.is_done(),
            Packet::Refused(_)
            | Packet::Quit(_)
            | Packet::QuitAck
            | Packet::Keepalive
            | Packet::Parity(_)
            | Packet::Text(_) => {}
        }
        None
    }

    /// A row of parity of this connection has come, which is as it was sent if `is_right`. Answers the number of its buffer, counted
    /// from 0, if the row may be of use to that.
    pub fn receive_parity(&mut self, now: Time, parity: &Parity, is_right: bool) -> Option<u64> {
        if matches!(self.state, State::Closed(_) | State::Opening { .. }) {
            return None;
        }
        self.heard = now;
        self.receiver()?.parity(now, parity, is_right)
    }

    fn controlled(&mut self, now: Time, messages: &[Message]) {
        let Some(Half::Sender(sender)) = &mut self.half else {
            return self.came_early(now, messages);
        };
        sender.receive(now, messages);
        if sender.is_finished() && matches!(self.state, State::Open | State::Dally { .. }) {
            self.dally(now, Ending::Done);
        }
    }

    /// Stays for a while to answer repeats.
    fn dally(&mut self, now: Time, ending: Ending) {
        let timer = match &self.half {
            Some(Half::Sender(sender)) => sender.control_timer(),
            _ => DALLY,
        };
        self.state = State::Dally { until: now + timer.scaled(2, 1).max(DALLY), ending };
    }

    fn is_done(&mut self) {
        let Some(Half::Sender(sender)) = &self.half else { return };
        if sender.is_finished() {
            self.state = State::Closed(Ending::Done);
        }
    }

    /// What is to be sent next, if anything is.
    pub fn transmit(&mut self, now: Time) -> Option<Out> {
        let out = self.next_out(now)?;
        self.spoke = now;
        Some(out)
    }

    fn next_out(&mut self, now: Time) -> Option<Out> {
        if !self.urgent.is_empty() {
            return Some(Out::Packet(self.urgent.remove(0)));
        }
        match &mut self.state {
            State::Closed(_) => return None,
            State::Opening { tries: 1, .. } if self.copies > 0 => {
                self.copies -= 1;
                return Some(Out::Packet(Packet::Open(self.terms.clone())));
            }
            State::Opening { tries, due, since } => {
                let (first, most) = first_pause(self.expected);
                if *due > now || *tries == most {
                    return None;
                }
                let again = first.scaled(1 << *tries, 1).min(OPEN.1);
                *due = now + again.max(self.expected.scaled(3, 2));
                *tries += 1;
                if *tries == most {
                    // The other end may be far: what makes an open connection dead is waited for here too.
                    *due = (*due).max(*since + Span::from_secs(self.terms.death.into()));
                }
                return Some(Out::Packet(Packet::Open(self.terms.clone())));
            }
            State::Quitting { reason, due } => {
                if *due > now {
                    return None;
                }
                *due = now + OPEN.0;
                return Some(Out::Packet(Packet::Quit(reason.clone())));
            }
            State::Open | State::Dally { .. } => {}
        }
        self.next_of_half(now).or_else(|| self.sign_of_life(now))
    }

    fn next_of_half(&mut self, now: Time) -> Option<Out> {
        match self.half.as_mut()? {
            Half::Sender(sender) => {
                let data = sender.transmit(now).map(Out::Data);
                let parity =
                    |it: &mut Sender| it.parity(now).map(|(head, at)| Out::Parity(head, at));
                let data = data.or_else(|| parity(sender));
                data.or_else(|| sender.take_ack(now).map(|ack| Out::Packet(Packet::NullAck(ack))))
            }
            Half::Receiver(receiver) => {
                if let Some(messages) = receiver.transmit(now) {
                    return Some(Out::Packet(Packet::Control(messages)));
                }
                receiver.is_finished().then(|| {
                    self.state = State::Closed(Ending::Done);
                    Out::Packet(Packet::Done)
                })
            }
        }
    }

    fn sign_of_life(&mut self, now: Time) -> Option<Out> {
        if now < self.sign_due()? {
            return None;
        }
        Some(Out::Packet(match &self.half {
            Some(Half::Sender(sender)) if !self.habits.dialect.is_classic() => {
                Packet::NullAck(sender.ack())
            }
            _ => Packet::Keepalive,
        }))
    }

    /// When a sign of life is due if nothing else is sent.
    fn sign_due(&self) -> Option<Time> {
        let part = if matches!(self.half, Some(Half::Sender(_))) { 8 } else { 7 };
        matches!(self.state, State::Open).then(|| self.spoke + self.keepalive(part))
    }

    /// When [`expire`](Connection::expire) is to be called, if nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        let state = match &self.state {
            State::Closed(_) => return None,
            State::Opening { due, .. } => return Some(*due),
            State::Quitting { due, .. } => Some(*due),
            State::Dally { until, .. } => Some(*until),
            State::Open => self.sign_due(),
        };
        let half = match &self.half {
            Some(Half::Sender(sender)) => sender.deadline(),
            Some(Half::Receiver(receiver)) => receiver.deadline(),
            None => None,
        };
        let half = half.filter(|_| !matches!(self.state, State::Quitting { .. }));
        state.into_iter().chain(half).chain(self.death()).min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Time) {
        match &self.state {
            State::Closed(_) => return,
            State::Opening { tries, due, .. } => {
                if *tries == first_pause(self.expected).1 && *due <= now {
                    self.state = State::Closed(Ending::Unanswered);
                }
                return;
            }
            State::Dally { until, ending } if *until <= now => {
                self.state = State::Closed(ending.clone());
                return;
            }
            State::Quitting { .. } if self.death().is_some_and(|at| at <= now) => {
                self.state = State::Closed(Ending::Left);
                return;
            }
            _ => {}
        }
        if self.death().is_some_and(|at| at <= now) {
            self.state = State::Closed(Ending::Dead);
            return;
        }
        if let Some(Half::Receiver(receiver)) = &mut self.half {
            receiver.expire(now);
        }
    }
}

/// After how long an OPEN is sent again for the first time, and how often it is sent: whoever knows the round trip sends it more often
/// within the same time.
fn first_pause(expected: Span) -> (Span, u32) {
    if expected == Span::ZERO {
        return (OPEN.0, OPEN.2);
    }
    let first = expected.scaled(3, 2).max(SOONEST).min(OPEN.0);
    let sooner = (0..).take_while(|&it| first.scaled(1 << it, 1) < OPEN.0).count();
    (first, OPEN.2 + sooner as u32)
}

//! One connection of a client from its first octet on: octets in, octets out. Sockets and threads are others'.

use super::one_more;
use super::registry::{Joined, Registry};
use super::session::Session;
use crate::counters;
use crate::wire::frame::{self, REQUEST};
use crate::wire::keys::{CONTROL, DATA};
use crate::wire::message::{Answer, FlowReport, Request};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trunkline_core::Span;
use trunkline_handshake::hello::LONGEST;
use trunkline_handshake::{Channel, Hello, Refusal, Unfit};

/// The time for which connections that are being closed are waited for.
const MOMENT: Span = Span::from_secs(1);

/// The result of some octets: what is to be sent, and what has happened.
#[derive(Debug)]
pub struct Step {
    /// Octets for the client.
    pub answer: Vec<u8>,
    /// The event.
    pub event: Event,
}

/// The possible events.
#[derive(Debug)]
pub enum Event {
    /// Nothing: more is waited for.
    Waiting,
    /// The client has said its first words, and has the key, or had it when somebody overheard it.
    Greeted,
    /// It has opened a session.
    Opened(Arc<Session>),
    /// It is a data connection, on which records follow.
    Joined(Box<Joined>),
    /// Nothing more is heard or said.
    Over,
}

impl Step {
    fn waiting(answer: Vec<u8>) -> Step {
        Step { answer, event: Event::Waiting }
    }
    fn over(answer: Vec<u8>) -> Step {
        Step { answer, event: Event::Over }
    }
}

#[derive(Debug)]
enum State {
    Greeting(Vec<u8>),
    Opening(Channel),
    Open(Channel, Arc<Session>),
    Over,
}

/// The dialogue on one connection.
#[derive(Debug)]
pub struct Dialogue {
    peer: IpAddr,
    state: State,
}

impl Dialogue {
    /// With a client at this address, of which nothing is known yet.
    pub fn new(peer: IpAddr) -> Dialogue {
        Dialogue { peer, state: State::Greeting(Vec::new()) }
    }

    /// Takes octets in.
    pub fn receive(&mut self, registry: &Registry, octets: &[u8]) -> Step {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Greeting(mut seen) => {
                seen.extend_from_slice(octets);
                self.greet(registry, seen)
            }
            State::Opening(mut channel) => {
                channel.take(octets);
                self.open(registry, channel)
            }
            State::Open(mut channel, session) => {
                channel.take(octets);
                self.answer_all(registry, channel, session, Vec::new())
            }
            State::Over => Step::over(Vec::new()),
        }
    }

    /// Whether a message has begun and not ended.
    pub fn is_torn(&self) -> bool {
        match &self.state {
            State::Greeting(seen) => !seen.is_empty(),
            State::Opening(channel) | State::Open(channel, _) => channel.is_torn(),
            State::Over => false,
        }
    }

    /// Pieces of messages that have come whole.
    pub fn pieces(&self) -> u64 {
        match &self.state {
            State::Opening(channel) | State::Open(channel, _) => channel.pieces(),
            _ => 0,
        }
    }

    /// The last words to a client with a session.
    pub fn dismiss(&mut self, reason: String) -> Vec<u8> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Open(mut channel, _) => refusal(&mut channel, reason),
            _ => Vec::new(),
        }
    }

    fn greet(&mut self, registry: &Registry, seen: Vec<u8>) -> Step {
        let (hello, length) = match Hello::read(&seen) {
            Ok(Some(found)) => found,
            Ok(None) if seen.len() <= LONGEST => {
                self.state = State::Greeting(seen);
                return Step::waiting(Vec::new());
            }
            Ok(None) => return refuse(registry, Unfit::Foreign),
            Err(unfit) => return refuse(registry, unfit),
        };
        // A client has nothing more to say before it is answered.
        let done = match (hello.purpose(), seen.len() == length) {
            (CONTROL, true) => self.admit(registry, &hello),
            (DATA, true) => registry
                .join(self.peer, &hello)
                .map(|(joined, answer)| Step { answer, event: Event::Joined(Box::new(joined)) }),
            _ => Err(Unfit::Foreign),
        };
        done.unwrap_or_else(|unfit| refuse(registry, unfit))
    }

    fn admit(&mut self, registry: &Registry, hello: &Hello) -> Result<Step, Unfit> {
        let (mut channel, answer) = hello.accept(registry.options.key.as_ref())?;
        channel.allow(REQUEST);
        self.state = State::Opening(channel);
        Ok(Step { answer, event: Event::Greeted })
    }

    fn open(&mut self, registry: &Registry, mut channel: Channel) -> Step {
        match channel.open().map(|message| message.map(|text| frame::decode(&text))) {
            Ok(None) => {
                self.state = State::Opening(channel);
                Step::waiting(Vec::new())
            }
            Ok(Some(Ok(Request::Open))) => match registry.open(self.peer) {
                Ok(Some(session)) => self.welcome(registry, channel, session),
                _ => {
                    let full =
                        "it has as many sessions as it may (--max-sessions); try again later";
                    Step::over(refusal(&mut channel, full.into()))
                }
            },
            _ => foreign(registry, Vec::new()),
        }
    }

    fn welcome(
        &mut self,
        registry: &Registry,
        mut channel: Channel,
        session: Arc<Session>,
    ) -> Step {
        let (secret, cookie, limits) = (session.keys.secret(), session.cookie, session.limits);
        let answer = say(&mut channel, &Answer::Welcome { secret, cookie, limits });
        let Step { answer, event } =
            self.answer_all(registry, channel, Arc::clone(&session), answer);
        match event {
            Event::Waiting => Step { answer, event: Event::Opened(session) },
            event => {
                registry.close(&session);
                Step { answer, event }
            }
        }
    }

    fn answer_all(
        &mut self,
        registry: &Registry,
        mut channel: Channel,
        session: Arc<Session>,
        mut said: Vec<u8>,
    ) -> Step {
        loop {
            let request = match channel.open() {
                Ok(None) => break,
                Ok(Some(text)) => frame::decode(&text),
                Err(_) => return foreign(registry, said),
            };
            match request.map(|request| answer(registry, &session, request)) {
                Ok(Some(answer)) => said.extend(say(&mut channel, &answer)),
                Ok(None) => return Step::over(said),
                Err(_) => return foreign(registry, said),
            }
        }
        self.state = State::Open(channel, session);
        Step::waiting(said)
    }
}

fn say(channel: &mut Channel, answer: &Answer) -> Vec<u8> {
    // Every answer can be written as JSON; one that could not would be missed, and the session given up.
    frame::encode(answer).map_or(Vec::new(), |text| channel.seal(&text))
}

fn refusal(channel: &mut Channel, reason: String) -> Vec<u8> {
    say(channel, &Answer::Refused { reason })
}

fn foreign(registry: &Registry, said: Vec<u8>) -> Step {
    one_more(&registry.counts.foreign);
    Step::over(said)
}

fn refuse(registry: &Registry, unfit: Unfit) -> Step {
    let Unfit::Refused(refusal) = unfit else { return foreign(registry, Vec::new()) };
    match refusal {
        Refusal::WrongKey | Refusal::KeyWanted | Refusal::Keyless => {
            one_more(&registry.counts.refused_keys);
        }
        _ => one_more(&registry.counts.foreign),
    }
    Step::over(vec![refusal as u8])
}

/// The answer to a request; `None` to the last.
fn answer(registry: &Registry, session: &Session, request: Request) -> Option<Answer> {
    Some(match request {
        Request::Alive => Answer::Alive,
        Request::Host => Answer::Host(Box::new(counters::read())),
        Request::Flow { flow, mut spec } => {
            spec.urp = spec.urp.map(|asked| registry.options.decide(asked));
            let urp = spec.urp;
            match session.open(flow, spec) {
                Ok(()) => Answer::Ready { urp },
                Err(reason) => Answer::Refused { reason },
            }
        }
        Request::Collect { flow } => match collect(session, flow) {
            Some(report) => Answer::Report(Box::new(report)),
            None => Answer::Refused { reason: format!("there is no flow {flow}") },
        },
        Request::Open => Answer::Refused { reason: "the session is open already".into() },
        Request::Bye => return None,
    })
}

/// Ends a flow, once its connections have noticed that it ends.
fn collect(session: &Session, number: u16) -> Option<FlowReport> {
    let flow = session.flow(number)?;
    flow.done.store(true, Ordering::Relaxed);
    let until = crate::clock::now() + MOMENT;
    while flow.running.load(Ordering::Relaxed) > 0 && crate::clock::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    session.collect(number)
}

//! The protocols of the textbooks: automatic repeat request by stop-and-wait, go-back-n and selective repeat.
//!
//! They cut the user's data into frames, number these, and send again what is not answered in time. They differ in
//! how many frames may be without an answer, in what a receiver does with a frame behind a gap, and in what is
//! sent again; that is their [`Rule`].

mod formula;
mod go_back_n;
mod header;
mod receiver;
mod restraints;
mod selective_repeat;
mod sender;
mod stop_and_wait;
mod timeout;

pub use go_back_n::GO_BACK_N;
pub use selective_repeat::SELECTIVE_REPEAT;
pub use stop_and_wait::STOP_AND_WAIT;

use crate::protocol::{Delivery, Frame, Outgoing, Protocol, ProtocolKey};
use crate::protocol::{Shape, Takes, Values};
use crate::{Counters, Endpoint, Extent, Held};
use header::{HEADER, MOST_DATA, Says, decode};
use receiver::Receiver;
use sender::Sender;
use trunkline_core::{Rate, Span, Time};

/// The rule for what is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Everything from the lost frame on: the receiver keeps nothing behind a gap.
    GoBack,
    /// The lost frame alone: the receiver keeps what comes behind a gap.
    Selective,
}

/// The settings, checked.
#[derive(Debug, Clone, Copy)]
struct Settings {
    /// User bytes of a frame.
    frame: u32,
    /// Frames that may be without an answer.
    frames: usize,
    /// Frames that a receiver can hold, from the first that is missing on.
    buffer: usize,
    /// The time-out; measured if there is none.
    timeout: Option<Span>,
    /// The rate of the sender's line.
    rate: Option<Rate>,
}

impl Settings {
    fn of(values: &Values) -> Settings {
        let frames = values.number("frames").max(1) as usize;
        Settings {
            frame: values.number("frame").max(1) as u32,
            frames,
            buffer: (values.number("buffer") as usize).max(frames),
            timeout: values.time("timeout"),
            rate: values.rate("rate"),
        }
    }
}

const FRAME: ProtocolKey = ProtocolKey {
    name: "frame",
    takes: Takes::Bytes(1, MOST_DATA),
    default: Some("1024"),
    help: "User bytes of a frame; 8 bytes of header come in front",
};

const TIMEOUT: ProtocolKey = ProtocolKey {
    name: "timeout",
    takes: Takes::Time(Span::from_nanos(1), Span::from_secs(3600)),
    default: None,
    help: "After how long without an answer a frame is sent again; measured, as TCP does, if left out",
};

const RATE: ProtocolKey = ProtocolKey {
    name: "rate",
    takes: Takes::Rate,
    default: None,
    help: "The sender's own line: frames follow each other at this rate, so that the time-out runs from a frame's \
           turn on the line, as in textbooks; as fast as the window allows if left out",
};

fn shape(values: &Values) -> Shape {
    let settings = Settings::of(values);
    Shape {
        unit: settings.frame,
        header: HEADER,
        answer: HEADER,
        window: Some(settings.frames as u32),
        opening: [0; 2],
    }
}

/// One end.
#[derive(Debug)]
struct Arq {
    frame: u32,
    sender: Sender,
    receiver: Receiver,
}

impl Arq {
    fn boxed(rule: Rule, settings: &Settings) -> Box<dyn Protocol> {
        Box::new(Arq {
            frame: settings.frame,
            sender: Sender::new(rule, settings),
            receiver: Receiver::new(rule, settings.buffer as u64),
        })
    }
}

impl Endpoint for Arq {
    fn units_of(&self, bytes: u32, end: bool) -> u64 {
        if bytes == 0 { u64::from(end) } else { u64::from(bytes.div_ceil(self.frame)) }
    }

    fn deadline(&self) -> Option<Time> {
        self.sender.deadline()
    }

    fn expire(&mut self, now: Time) {
        self.sender.expire(now);
    }

    fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    fn unanswered(&self) -> u64 {
        self.sender.unanswered()
    }

    fn held(&self, _now: Time) -> Option<Held> {
        self.sender.held()
    }

    fn dead(&self) -> bool {
        self.sender.dead()
    }

    fn counters(&self) -> Counters {
        self.sender.counters
    }
}

impl Protocol for Arq {
    fn offer(&mut self, now: Time, data: Extent, end: bool) {
        self.sender.offer(now, data, end);
    }

    fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        let answer = self.receiver.next_answer().map(|frame| Outgoing { frame, unit: None });
        answer.or_else(|| self.sender.transmit(now))
    }

    fn receive(&mut self, now: Time, frame: &Frame) -> Option<u64> {
        match decode(&frame.header) {
            Some(Says::Data { number, octets, end, sending })
                if u32::from(octets) == frame.data.len =>
            {
                self.receiver.data((number, sending), frame.data, end)
            }
            Some(Says::Answer { number, sending }) => {
                self.sender.answer(now, number, sending);
                None
            }
            _ => None,
        }
    }

    fn take(&mut self) -> Option<Delivery> {
        self.receiver.take()
    }
}

//! Protocols by name: what a host needs to know of one, and the list of all that are chosen that way.
//!
//! A host drives a [`Protocol`] between an application and whatever carries its [`Frame`]s: the simulator's
//! path or a socket. It knows the protocol by this trait alone. What a protocol is called, which keys it takes,
//! how it is built and what its textbook formula says stand in its [`ProtocolEntry`], beside its code; files,
//! schema, help, simulator, emulator, formulas and property tests take them from [`PROTOCOLS`].
//!
//! To add a protocol, write a folder of this crate with its entry and add the entry to [`PROTOCOLS`].

use crate::restraint::Restraint;
use crate::{Endpoint, Extent, arq, netblt};
use std::fmt;
use std::sync::Arc;
use trunkline_core::{Rate, Span, Time};

/// Every protocol that is chosen by name and speaks in frames. URP, TCP and datagrams are [`Endpoint`]s too; their segments are
/// their own.
pub const PROTOCOLS: &[&ProtocolEntry] =
    &[&arq::STOP_AND_WAIT, &arq::GO_BACK_N, &arq::SELECTIVE_REPEAT, &netblt::NETBLT];

/// A protocol without I/O that exchanges [`Frame`]s, from its one end; driven as any [`Endpoint`].
///
/// Units are numbered from 0 in the order of the stream.
pub trait Protocol: Endpoint + fmt::Debug + Send {
    /// Takes user data over, the next of the stream. A message ends behind them if `end`; what ends none may wait for more.
    fn offer(&mut self, now: Time, data: Extent, end: bool);
    /// The next frame to send, or `None` if there is nothing for now.
    fn transmit(&mut self, now: Time) -> Option<Outgoing>;
    /// Takes in a frame. Answers the number of its unit if that is new and kept, to be [taken](Protocol::take) now
    /// or later.
    fn receive(&mut self, now: Time, frame: &Frame) -> Option<u64>;
    /// The next data in the order of the stream.
    fn take(&mut self) -> Option<Delivery>;
}

/// Octets of a header at most.
pub const MOST_HEADER: usize = u16::MAX as usize;
/// Octets of a header that need no memory of their own.
const SHORT: usize = 32;

/// The header that a protocol puts in front of its data, encoded as on a wire; a packet without data is a header.
#[derive(Clone, PartialEq, Eq)]
pub struct Header(Octets);

#[derive(Clone, PartialEq, Eq)]
enum Octets {
    Short([u8; SHORT], u8),
    Long(Arc<[u8]>),
}

impl Header {
    /// The header of these octets, at most [`MOST_HEADER`]; what is more is left out.
    pub fn new(octets: &[u8]) -> Header {
        let octets = &octets[..octets.len().min(MOST_HEADER)];
        let mut short = [0; SHORT];
        Header(match short.get_mut(..octets.len()) {
            Some(place) => {
                place.copy_from_slice(octets);
                Octets::Short(short, octets.len() as u8)
            }
            None => Octets::Long(octets.into()),
        })
    }

    /// Its octets.
    pub fn octets(&self) -> &[u8] {
        match &self.0 {
            Octets::Short(octets, len) => &octets[..usize::from(*len)],
            Octets::Long(octets) => octets,
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({:02x?})", self.octets())
    }
}

/// The frame that two ends exchange: a header, and a stretch of the sender's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The protocol's own.
    pub header: Header,
    /// The user's data behind it. A real wire tells their number only: their place is then unknown, 0.
    pub data: Extent,
}

impl Frame {
    /// Bytes on the path.
    pub fn size(&self) -> u32 {
        self.header.octets().len() as u32 + self.data.len
    }
}

/// A frame to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The frame.
    pub frame: Frame,
    /// The unit that it carries; `None` for a control.
    pub unit: Option<Unit>,
}

/// A unit that is sent, as far as its sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its number.
    pub number: u64,
    /// Whether a message ends behind it.
    pub end: bool,
    /// Since when it could be sent: its data were there and the window was open.
    pub eligible: Time,
    /// When it was first sent, if it was sent before.
    pub first_sent: Option<Time>,
}

/// The part of a unit that the application at the other end gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The number of the unit.
    pub number: u64,
    /// The stretch of the stream.
    pub data: Extent,
    /// Whether a message ends behind it.
    pub end: bool,
}

/// A protocol's name, its keys, how it is built, and its formula.
#[derive(Debug)]
pub struct ProtocolEntry {
    /// Its name in files.
    pub name: &'static str,
    /// A description in one sentence, with its source.
    pub help: &'static str,
    /// The keys that a file may give it.
    pub keys: &'static [ProtocolKey],
    /// One end with settings that fit the keys' ranges.
    ///
    /// # Errors
    /// Which key does not go with the others, and what does.
    pub build: fn(&Values) -> Result<Box<dyn Protocol>, Unfit>,
    /// Whether each message opens a connection of its own, so that one more, though it is empty, takes round trips.
    pub connects_for_each: bool,
    /// The way in which it cuts the user's data.
    pub shape: fn(&Values) -> Shape,
    /// Its throughput on an empty path, by its textbook formula.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub formula: fn(&Values, &Circumstances) -> Result<Formula, String>,
    /// The settings that hold a sender back, if so many bytes under way are enough for its path.
    pub restraints: fn(&Values, u64) -> Vec<Restraint>,
}

/// The reason why a key's value, though in its range, cannot be had, or not with those of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The key.
    pub key: &'static str,
    /// What is wrong with its value, and what to give.
    pub why: String,
}

impl Unfit {
    /// Of the value of `key`.
    pub fn new(key: &'static str, why: impl Into<String>) -> Unfit {
        Unfit { key, why: why.into() }
    }
}

/// The key, and what is wrong with its value.
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

impl PartialEq for ProtocolEntry {
    fn eq(&self, other: &ProtocolEntry) -> bool {
        self.name == other.name
    }
}

impl Eq for ProtocolEntry {}

/// A key of a protocol.
#[derive(Debug)]
pub struct ProtocolKey {
    /// Its name.
    pub name: &'static str,
    /// The value that it takes.
    pub takes: Takes,
    /// The value if it is left out; `None` if the help text says that.
    pub default: Option<&'static str>,
    /// The meaning, with the unit.
    pub help: &'static str,
}

/// The values that a key takes, with the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Bytes.
    Bytes(u64, u64),
    /// A whole number.
    Count(u64, u64),
    /// A length of time.
    Time(Span, Span),
    /// Bits per second.
    Rate,
    /// `true` or `false`.
    Flag,
}

/// The value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Bytes or a whole number.
    Number(u64),
    /// A length of time.
    Time(Span),
    /// Bits per second.
    Rate(Rate),
    /// Yes or no.
    Flag(bool),
}

/// The values of a protocol's keys, in the order of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// The values of `keys` that are all left out.
    pub fn defaults(keys: &[ProtocolKey]) -> Values {
        let mut values = Values::default();
        for key in keys {
            if let Some(value) = key.default.and_then(|text| key.takes.read(text)) {
                values.set(key.name, value);
            }
        }
        values
    }

    /// A name and the text of its keys, of `NAME` or `NAME:key=value,…`.
    ///
    /// # Errors
    /// A colon with nothing behind it.
    pub fn named(text: &str) -> Result<(&str, &str), String> {
        match text.split_once(':') {
            Some((name, "")) => Err(format!(
                "nothing follows '{text}': leave the colon out, or write {name}:key=value"
            )),
            Some(both) => Ok(both),
            None => Ok((text, "")),
        }
    }

    /// The values that a text `key=value,…` gives to `keys` of `what`; the others have their defaults.
    ///
    /// # Errors
    /// What was found, and what there is.
    pub fn parse(what: &str, keys: &'static [ProtocolKey], pairs: &str) -> Result<Values, String> {
        let mut values = Values::defaults(keys);
        let mut given = Vec::new();
        for pair in pairs.split_terminator(',') {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| format!("'{pair}' is no key=value"))?;
            let key = keys.iter().find(|known| known.name == key).ok_or_else(|| {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                format!("{what} has no key '{key}': use {}", names.join(", "))
            })?;
            if given.contains(&key.name) {
                return Err(format!("{} is given twice: leave one out", key.name));
            }
            given.push(key.name);
            let read = key.takes.read(value);
            let read = read.ok_or_else(|| format!("{} = {value}: give {}", key.name, key.takes))?;
            values.set(key.name, read);
        }
        Ok(values)
    }

    /// Sets the value of `key`.
    pub fn set(&mut self, key: &'static str, value: Value) {
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some(known) => known.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Leaves `key` out.
    pub fn clear(&mut self, key: &str) {
        self.0.retain(|(name, _)| *name != key);
    }

    /// The value of `key`, if it was given or has a default.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.iter().find(|(name, _)| *name == key).map(|it| it.1)
    }

    /// All keys with their values, by name.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs: Vec<_> =
            self.0.iter().map(|(key, value)| (*key, value.to_string())).collect();
        pairs.sort_unstable();
        pairs
    }

    /// A number; 0 if there is none.
    pub fn number(&self, key: &str) -> u64 {
        match self.get(key) {
            Some(Value::Number(number)) => number,
            _ => 0,
        }
    }

    /// A length of time, if there is one.
    pub fn time(&self, key: &str) -> Option<Span> {
        match self.get(key) {
            Some(Value::Time(span)) => Some(span),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some(Value::Flag(true))
    }

    /// A rate, if there is one.
    pub fn rate(&self, key: &str) -> Option<Rate> {
        match self.get(key) {
            Some(Value::Rate(rate)) => Some(rate),
            _ => None,
        }
    }
}

/// The keys with their values: `frame 1000, frames 7`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Time(span) => span.fmt(f),
            Value::Rate(rate) => rate.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
        }
    }
}

/// The way in which a protocol cuts the user's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// User bytes of a unit at most.
    pub unit: u32,
    /// Bytes of header in front of them.
    pub header: u32,
    /// Bytes of an answer.
    pub answer: u32,
    /// Units that may be without an answer, if each has one of its own.
    pub window: Option<u32>,
    /// Bytes of the packet that opens a connection, which is answered by as many, and of what follows that answer before data may go; 0 if
    /// nothing is opened.
    pub opening: [u32; 2],
}

/// The properties of a path that a formula has to know and nobody else uses, for units of full size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circumstances {
    /// The time for which a unit keeps the slowest stage of the path busy, in nanoseconds; its answer too, if each has one.
    pub spacing: f64,
    /// From the sending of a unit to the coming of its answer.
    pub answered: Span,
    /// The probability that a unit is lost.
    pub loss: f64,
    /// The probability that an answer is lost.
    pub answer_loss: f64,
    /// Units of a transfer. `u64::MAX` if it goes on without end.
    pub units: u64,
}

/// The answer of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// From one unit that is accepted to the next, in the mean of the long run, in nanoseconds.
    pub interval: f64,
    /// Units that may be in front of the slowest stage together, that in service included.
    pub together: u64,
    /// Units that go together, with a pause behind them: 1 if they go evenly.
    pub burst: u64,
    /// From one unit of a burst to the next, in nanoseconds.
    pub within: f64,
    /// Units that may have been sent at the end of a test, beyond those that have come by the interval.
    pub ahead: u64,
    /// How much longer a transfer may take whose last units are lost and sent again, in nanoseconds, if the interval leaves
    /// that out.
    pub late: f64,
    /// What it leaves out, if that may be seen.
    pub assumes: Option<&'static str>,
    /// The formula.
    pub text: &'static str,
    /// The formula with the numbers put in.
    pub numbers: String,
    /// The source of the formula.
    pub source: &'static str,
}

/// The entry called `name`.
pub fn named(name: &str) -> Option<&'static ProtocolEntry> {
    PROTOCOLS.iter().copied().find(|entry| entry.name == name)
}

impl ProtocolEntry {
    /// The settings of an entry whose keys are all left out.
    pub fn defaults(&self) -> Values {
        Values::defaults(self.keys)
    }
}

/// What is allowed: `a whole number from 1 to 7`.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Bytes(least, most) => write!(f, "bytes from {least} to {most}"),
            Takes::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Takes::Time(least, most) => write!(f, "a time from {least} to {most}"),
            Takes::Rate => f.write_str("a rate such as 10Mbit/s"),
            Takes::Flag => f.write_str("true or false"),
        }
    }
}

impl Takes {
    /// A value within the range, from its text.
    pub fn read(self, text: &str) -> Option<Value> {
        match self {
            Takes::Bytes(least, most) | Takes::Count(least, most) => {
                let number = text.parse().ok()?;
                (least..=most).contains(&number).then_some(Value::Number(number))
            }
            Takes::Time(least, most) => {
                let span = text.parse().ok()?;
                (least..=most).contains(&span).then_some(Value::Time(span))
            }
            Takes::Rate => text.parse().ok().map(Value::Rate),
            Takes::Flag => text.parse().ok().map(Value::Flag),
        }
    }
}

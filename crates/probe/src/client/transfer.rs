//! One bulk transfer in one direction.

use super::carried::{open_channel, urp_spec};
use super::udp_carrier::Datagrams;
use super::{Connection, streams};
use crate::bins::Bins;
use crate::pacer::Pacer;
use crate::tcp::TcpReading;
use crate::tracker::Tracker;
use crate::wire::datagram::{DatagramKind, HEAD, MOST_USER};
use crate::wire::message::{FlowReport, FlowSpec, Role, Transport, UrpReading, UrpSpec};
use crate::{ProbeError, clock};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::thread;
use trunkline_core::{Rate, Span, Time};

/// The time that a server may take to begin to send, and a path to deliver what is under way.
const PATIENCE: Span = Span::from_secs(3);
/// The time between datagrams that ask for what is to come, until something comes.
const KNOCK: Span = Span::from_millis(200);
/// The time between looks at the stop signs.
const LOOK: Span = Span::from_millis(50);
/// User octets that a URP sender keeps ready.
const READY: u64 = 64 * 1024;

/// The direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the server.
    Up,
    /// From the server.
    Down,
}

impl Direction {
    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ways {
    /// To the server.
    Up,
    /// From the server.
    Down,
    /// Both at once.
    Both,
}

impl Ways {
    /// The directions.
    pub const fn list(self) -> &'static [Direction] {
        match self {
            Ways::Up => &[Direction::Up],
            Ways::Down => &[Direction::Down],
            Ways::Both => &[Direction::Up, Direction::Down],
        }
    }
}

impl FromStr for Ways {
    type Err = String;

    fn from_str(text: &str) -> Result<Ways, String> {
        match text {
            "up" => Ok(Ways::Up),
            "down" => Ok(Ways::Down),
            "both" => Ok(Ways::Both),
            _ => Err(format!("'{text}' is no direction: write up, down or both")),
        }
    }
}

/// The transfer to be made.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// The carrier.
    pub transport: Transport,
    /// TCP: parallel connections.
    pub streams: u16,
    /// User octets of a datagram, or of a URP message; `None` for what fits.
    pub size: Option<u32>,
    /// Bits of UDP payload, or of TCP's user octets, per second; UDP needs one.
    pub rate: Option<Rate>,
    /// The time for which is sent.
    pub duration: Span,
    /// The intervals of the result.
    pub interval: Span,
    /// TCP: the congestion control of the sender.
    pub congestion: Option<String>,
    /// URP: octets of a block, and blocks outstanding.
    pub window: (u16, u8),
}

/// The result of a transfer in one direction.
#[derive(Debug, Clone)]
pub struct Transferred {
    /// The direction.
    pub direction: Direction,
    /// The time for which it was meant to be sent.
    pub duration: Span,
    /// The time for which it went on: less than `duration` if the user or the server ended it.
    pub lasted: Span,
    /// The intervals.
    pub interval: Span,
    /// For each stream: user octets that the *receiver* got in each interval from its first on.
    pub bins: Vec<Vec<u64>>,
    /// For each stream: what the sender's kernel said of it.
    pub tcp: Vec<Vec<TcpReading>>,
    /// The sender's congestion control.
    pub congestion: Option<String>,
    /// Datagrams; `None` for TCP.
    pub datagrams: Option<Datagrammed>,
    /// Both ends of URP: sender, receiver.
    pub urp: Option<(UrpReading, UrpReading)>,
}

impl Transferred {
    /// Whether it lasted as long as it was meant to.
    pub fn is_whole(&self) -> bool {
        self.lasted >= self.duration
    }
}

/// Counts of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Datagrammed {
    /// Sent.
    pub sent: u64,
    /// Received, copies left out.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Received after a later one.
    pub reordered: u64,
    /// Dropped by the server because they came faster than it allows.
    pub over_rate: u64,
    /// Interarrival jitter.
    pub jitter_ns: Option<u64>,
}

impl Datagrammed {
    /// Sent and not received, what the server dropped by its own rule left out.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received + self.over_rate)
    }
}

/// Does a transfer in one direction. If the server goes or the user stops, the part done until then is given back as
/// far as it is known here.
///
/// # Errors
/// If it could not be begun, or the receiver's figures are lost with the server.
pub fn transfer(
    connection: &Connection,
    plan: &Transfer,
    direction: Direction,
) -> Result<Transferred, ProbeError> {
    let size = check(plan)?;
    let spec = FlowSpec {
        transport: plan.transport,
        role: if direction == Direction::Up { Role::Up } else { Role::Down },
        streams: if plan.transport == Transport::Tcp { plan.streams } else { 1 },
        size,
        rate: plan.rate.map(Rate::bits_per_second),
        duration_ns: plan.duration.as_nanos(),
        interval_ns: plan.interval.as_nanos(),
        congestion: plan.congestion.clone(),
        urp: None,
    };
    match (plan.transport, direction) {
        (Transport::Tcp, _) => streams::transfer(connection, plan, direction, spec),
        (Transport::Udp, Direction::Up) => udp_up(connection, plan, spec),
        (Transport::Udp, Direction::Down) => udp_down(connection, plan, spec),
        (Transport::Urp, _) => urp(connection, plan, direction, spec),
    }
}

/// User octets of a datagram if nothing is said: with IPv6's heads they fit Ethernet's packets.
const SIZE: u32 = 1400;

fn check(plan: &Transfer) -> Result<u32, ProbeError> {
    let wrong = |text: String| Err(ProbeError::WrongUse(text));
    let size = plan.size.unwrap_or(SIZE);
    if plan.transport == Transport::Udp && plan.rate.is_none() {
        return wrong(
            "a transfer by udp needs --rate: datagrams know no limit of their own".into(),
        );
    }
    if plan.transport == Transport::Urp && plan.rate.is_some() {
        return wrong("a transfer by urp has no --rate: its window limits it".into());
    }
    if plan.transport != Transport::Tcp && plan.streams > 1 {
        return wrong(format!(
            "a transfer by {} is one stream; leave --streams out",
            plan.transport
        ));
    }
    if plan.transport == Transport::Udp && size > MOST_USER {
        return wrong(format!("a datagram has at most {MOST_USER} user octets, not {size}"));
    }
    Ok(size)
}

fn udp_up(
    connection: &Connection,
    plan: &Transfer,
    spec: FlowSpec,
) -> Result<Transferred, ProbeError> {
    let size = spec.size;
    let flow = connection.flow(spec)?;
    let mut datagrams = Datagrams::open(connection, flow)?;
    clock::wake_exactly();
    let began = clock::now();
    let mut pacer = Pacer::at_rate(began, plan.rate, HEAD + size as usize);
    let (mut number, mut sent) = (0u32, 0u64);
    let ended = loop {
        pacer.skip_to(clock::now());
        let due = pacer.next();
        if due >= began + plan.duration {
            break due;
        }
        if connection.is_over() {
            break clock::now();
        }
        thread::sleep(due.since(clock::now()).to_duration());
        // What the system does not take is one lost.
        let _ = datagrams.send_filled(DatagramKind::Data, number, size);
        number = number.wrapping_add(1);
        sent += 1;
    };
    let took = ended.since(began);
    settle(connection);
    let report = connection.collect(flow)?;
    let counted = Datagrammed {
        sent,
        received: report.received,
        duplicates: report.duplicates,
        reordered: report.reordered,
        over_rate: report.over_rate,
        jitter_ns: report.jitter_ns,
    };
    Ok(Transferred { datagrams: Some(counted), ..received_far(connection, plan, took, report) })
}

/// Lets what is under way arrive.
fn settle(connection: &Connection) {
    let until = clock::now() + Span::from_millis(500);
    while clock::now() < until && !connection.is_over() {
        thread::sleep(LOOK.to_duration());
    }
}

/// What comes to its end by so much too early did so because the path delayed its beginning more.
const SLACK: Span = Span::from_millis(100);

/// The time that a transfer lasted which took so long here: what was planned, unless the user or the server ended it.
fn lasted(connection: &Connection, plan: &Transfer, took: Span) -> Span {
    let early = connection.is_over() || took + SLACK < plan.duration;
    if early { plan.duration.min(took) } else { plan.duration }
}

/// A transfer of which the server is the receiver, and to which was sent for so long.
pub fn received_far(
    connection: &Connection,
    plan: &Transfer,
    took: Span,
    report: FlowReport,
) -> Transferred {
    Transferred {
        direction: Direction::Up,
        duration: plan.duration,
        lasted: lasted(connection, plan, took),
        interval: plan.interval,
        bins: report.bins,
        tcp: Vec::new(),
        congestion: None,
        datagrams: None,
        urp: None,
    }
}

/// A transfer of which this end is the receiver, which listened between two instants. If the server is gone, nobody knows
/// how long it had been when the last octets had come: what came later is not told to be nothing.
pub fn received_near(
    connection: &Connection,
    plan: &Transfer,
    (began, ended): (Time, Time),
    bins: &[Bins],
    report: &FlowReport,
) -> Transferred {
    let began = bins.iter().filter_map(Bins::began).min().unwrap_or(began);
    let heard = bins.iter().filter_map(Bins::last).max().unwrap_or(began);
    let ended = if connection.is_gone() { heard } else { ended };
    Transferred {
        direction: Direction::Down,
        duration: plan.duration,
        lasted: lasted(connection, plan, ended.since(began)),
        interval: plan.interval,
        bins: bins.iter().map(|bins| bins.octets().to_vec()).collect(),
        tcp: report.tcp.clone(),
        congestion: report.congestion.clone(),
        datagrams: None,
        urp: None,
    }
}

fn udp_down(
    connection: &Connection,
    plan: &Transfer,
    spec: FlowSpec,
) -> Result<Transferred, ProbeError> {
    let flow = connection.flow(spec)?;
    let mut datagrams = Datagrams::open(connection, flow)?;
    let (mut tracker, mut bins) = (Tracker::default(), Bins::new(plan.interval));
    let mut door = Door::new(plan);
    while door.is_open(connection, bins.began()) {
        door.knock(&mut datagrams, bins.began());
        let found = datagrams.receive(clock::now() + LOOK);
        let Ok(Some((head, user, at))) = found else { continue };
        if head.kind == DatagramKind::Data && tracker.note(head.number) {
            bins.add(at, user.len() as u64);
            tracker.note_transit(head.stamp, at);
        }
    }
    let listened = (door.began, clock::now());
    let report = connection.collect(flow).unwrap_or_default();
    let counted = Datagrammed {
        sent: report.sent.max(tracker.received()),
        received: tracker.received(),
        duplicates: tracker.duplicates(),
        reordered: tracker.reordered(),
        over_rate: report.over_rate,
        jitter_ns: tracker.jitter(),
    };
    let received = received_near(connection, plan, listened, &[bins], &report);
    Ok(Transferred { datagrams: Some(counted), ..received })
}

/// When to ask for what is to come, and when all of it has.
struct Door {
    began: Time,
    duration: Span,
    next: Time,
    number: u32,
}

impl Door {
    fn new(plan: &Transfer) -> Door {
        let now = clock::now();
        Door { began: now, duration: plan.duration, next: now, number: 0 }
    }

    fn knock(&mut self, datagrams: &mut Datagrams, came: Option<Time>) {
        if came.is_none() && clock::now() >= self.next {
            self.next = clock::now() + KNOCK;
            // Another follows.
            let _ = datagrams.send_filled(DatagramKind::Request, self.number, 0);
            self.number += 1;
        }
    }

    /// From the first arrival for the transfer's time and half a second; without one, the time and some
    /// seconds.
    fn is_open(&self, connection: &Connection, came: Option<Time>) -> bool {
        let until = match came {
            Some(first) => first + self.duration + Span::from_millis(500),
            None => self.began + self.duration + PATIENCE,
        };
        clock::now() < until && !connection.is_over()
    }
}

fn urp(
    connection: &Connection,
    plan: &Transfer,
    direction: Direction,
    spec: FlowSpec,
) -> Result<Transferred, ProbeError> {
    let settings = urp_spec(connection, plan.window)?;
    let size = plan.size.unwrap_or(u32::from(settings.block));
    let flow = connection.flow(FlowSpec { urp: Some(settings), size, ..spec })?;
    let mut end = UrpEnd::open(connection, flow, &settings)?;
    let began = clock::now();
    Ok(match direction {
        Direction::Up => {
            end.send(connection, plan, size);
            let took = clock::now().since(began);
            let report = connection.collect(flow)?;
            let urp = Some((end.channel.reading(), report.urp.unwrap_or_default()));
            Transferred { urp, ..received_far(connection, plan, took, report) }
        }
        Direction::Down => {
            let bins = end.receive(connection, plan);
            let listened = (began, clock::now());
            let report = connection.collect(flow).unwrap_or_default();
            let urp = Some((report.urp.unwrap_or_default(), end.channel.reading()));
            Transferred { urp, ..received_near(connection, plan, listened, &[bins], &report) }
        }
    })
}

/// This end of a URP transfer.
struct UrpEnd {
    datagrams: Datagrams,
    channel: crate::channel::Channel,
}

impl UrpEnd {
    fn open(connection: &Connection, flow: u16, settings: &UrpSpec) -> Result<UrpEnd, ProbeError> {
        clock::wake_exactly();
        Ok(UrpEnd {
            datagrams: Datagrams::open(connection, flow)?,
            channel: open_channel(settings)?,
        })
    }

    fn send(&mut self, connection: &Connection, plan: &Transfer, size: u32) {
        let until = clock::now() + plan.duration;
        let mut none = Bins::new(plan.interval);
        while clock::now() < until && !connection.is_over() {
            while self.channel.waiting() < READY {
                self.channel.offer(clock::now(), size.max(1));
            }
            self.turn(until, &mut none);
        }
    }

    fn receive(&mut self, connection: &Connection, plan: &Transfer) -> Bins {
        let (mut bins, mut door) = (Bins::new(plan.interval), Door::new(plan));
        while door.is_open(connection, bins.began()) {
            door.knock(&mut self.datagrams, bins.began());
            self.turn(Time::NEVER, &mut bins);
        }
        bins
    }

    /// Sends what is due and takes what comes, but not for long.
    fn turn(&mut self, until: Time, bins: &mut Bins) {
        let now = clock::now();
        if self.channel.deadline().is_some_and(|due| due <= now) {
            self.channel.expire(now);
        }
        while let Some((number, octets)) = self.channel.depart(clock::now()) {
            // What the system does not take is one lost, which the protocol repairs.
            let _ = self.datagrams.send(DatagramKind::Urp, number, &octets);
        }
        let due = self.channel.deadline().unwrap_or(Time::NEVER);
        let until = until.min(due).min(now + LOOK);
        if let Ok(Some((head, octets, at))) = self.datagrams.receive(until)
            && head.kind == DatagramKind::Urp
        {
            self.channel.arrive(at, head.number, octets);
            while let Some((count, _)) = self.channel.take(at) {
                bins.add(at, u64::from(count));
            }
        }
    }
}

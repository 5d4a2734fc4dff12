//! A bulk transfer over parallel connections of the kernel's TCP.

use super::connection::DataStream;
use super::transfer::{Direction, Transfer, Transferred, received_far, received_near};
use super::{Connection, TcpEnd};
use crate::bins::Bins;
use crate::bucket::Bucket;
use crate::error::Naming;
use crate::limited::is_silence;
use crate::readings::{Readings, chunk};
use crate::tcp::{self, TcpReading};
use crate::wire::message::{FlowReport, FlowSpec};
use crate::wire::record::Record;
use crate::{ProbeError, clock};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use trunkline_core::{Rate, Span, Time};

/// The time that a read or a write waits until the stop signs are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Octets that are read at once.
const CHUNK: usize = 128 * 1024;
/// The time for which a transfer may go on after its end: the data under way have to arrive.
const AFTER: Span = Span::from_secs(1);

/// Transfers.
pub fn transfer(
    connection: &Connection,
    plan: &Transfer,
    direction: Direction,
    spec: FlowSpec,
) -> Result<Transferred, ProbeError> {
    let flow = connection.flow(spec)?;
    let mut streams = join_all(connection, plan, flow)?;
    let began = clock::now();
    // In one direction only the sender's choice matters; it is made at both ends.
    let congestion = streams.first().and_then(|one| tcp::congestion(&one.stream));
    match direction {
        Direction::Up => {
            let tcp = send_all(connection, plan, &mut streams);
            let took = clock::now().since(began);
            // What has not been sent yet is of no use: the kernel is not to go on with it.
            let now = Some(Duration::ZERO);
            let abort = |one: &DataStream| set_socket_linger(&one.stream, now);
            streams.iter().try_for_each(abort).naming("close a connection")?;
            drop(streams);
            let report = connection.collect(flow)?;
            check(&report)?;
            Ok(Transferred { tcp, congestion, ..received_far(connection, plan, took, report) })
        }
        Direction::Down => {
            let bins = receive_all(connection, plan, &mut streams)?;
            let listened = (began, clock::now());
            drop(streams);
            let report = connection.collect(flow).unwrap_or_default();
            check(&report)?;
            Ok(received_near(connection, plan, listened, &bins, &report))
        }
    }
}

fn join_all(
    connection: &Connection,
    plan: &Transfer,
    flow: u16,
) -> Result<Vec<DataStream>, ProbeError> {
    let end = TcpEnd { congestion: plan.congestion.clone(), window: None };
    let streams = connection.join_all(flow, plan.streams, &end)?;
    let limit = |one: &DataStream| {
        one.stream
            .set_read_timeout(Some(LOOK))
            .and_then(|()| one.stream.set_write_timeout(Some(LOOK)))
    };
    streams.iter().try_for_each(limit).naming("use a data connection")?;
    Ok(streams)
}

fn send_all(
    connection: &Connection,
    plan: &Transfer,
    streams: &mut [DataStream],
) -> Vec<Vec<TcpReading>> {
    // Each stream has its share of the rate.
    let share =
        |rate: Rate| Rate::from_bits_per_second(rate.bits_per_second() / u64::from(plan.streams));
    let (rate, began) = (plan.rate.map(share), clock::now());
    thread::scope(|scope| {
        let sender = |stream| scope.spawn(move || send(connection, plan, stream, rate, began));
        let senders: Vec<_> = streams.iter_mut().map(sender).collect();
        senders.into_iter().map(|sender| sender.join().unwrap_or_default()).collect()
    })
}

fn send(
    connection: &Connection,
    plan: &Transfer,
    to: &mut DataStream,
    rate: Option<Rate>,
    began: Time,
) -> Vec<TcpReading> {
    let DataStream { stream, writer, .. } = to;
    let (mut octets, mut at) = (writer.filled(Record::default(), chunk(rate)), 0);
    let (mut bucket, mut found) = (Bucket::of_records(rate, octets.len()), Vec::new());
    let mut readings = Readings::new(began, plan.interval);
    let until = began + plan.duration;
    while clock::now() < until && !connection.is_over() {
        if at == octets.len() {
            writer.write(Record::default(), &mut octets);
            at = 0;
        }
        match stream.write(&octets[at..]) {
            Ok(count) => {
                at += count;
                let wait = bucket.take(clock::now(), count as u64);
                thread::sleep(wait.min(until.since(clock::now())).to_duration());
            }
            Err(error) if is_again(&error) => {}
            Err(_) => break,
        }
        if let Some(at) = readings.due() {
            found.extend(tcp::read(stream, at));
        }
    }
    found
}

fn receive_all(
    connection: &Connection,
    plan: &Transfer,
    streams: &mut [DataStream],
) -> Result<Vec<Bins>, ProbeError> {
    let began = OnceLock::new();
    let began = &began;
    thread::scope(|scope| {
        let receiver = |stream| scope.spawn(move || receive(connection, plan, stream, began));
        let receivers: Vec<_> = streams.iter_mut().map(receiver).collect();
        let gone = || Err(ProbeError::Gone("a connection could not be read".into()));
        receivers.into_iter().map(|receiver| receiver.join().unwrap_or_else(|_| gone())).collect()
    })
}

/// Receives; all streams' intervals begin with the first octets on any.
fn receive(
    connection: &Connection,
    plan: &Transfer,
    from: &mut DataStream,
    began: &OnceLock<Time>,
) -> Result<Bins, ProbeError> {
    let DataStream { stream, reader, writer } = from;
    let mut bins: Option<Bins> = None;
    let mut buffer = vec![0; CHUNK];
    let until = clock::now() + plan.duration + AFTER;
    // The server sends when it has seen a record that only this client can write.
    stream.write_all(&writer.filled(Record::default(), 0)).naming("ask for a transfer")?;
    while clock::now() < until && !connection.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let now = clock::now();
                let first = *began.get_or_init(|| now);
                let bins = bins.get_or_insert_with(|| Bins::from(first, plan.interval));
                let (mut octets, mut user) = (&buffer[..count], 0);
                while !octets.is_empty() {
                    user += reader.take(&mut octets).map_err(|_| ProbeError::forged())?.user;
                }
                bins.add(now, user as u64);
            }
            Err(error) if is_again(&error) => {}
            Err(_) => break,
        }
    }
    Ok(bins.unwrap_or_default())
}

/// Fails if the server found octets that this client did not send.
fn check(report: &FlowReport) -> Result<(), ProbeError> {
    if report.forged == 0 { Ok(()) } else { Err(ProbeError::forged()) }
}

fn is_again(error: &io::Error) -> bool {
    is_silence(error) || error.kind() == io::ErrorKind::Interrupted
}

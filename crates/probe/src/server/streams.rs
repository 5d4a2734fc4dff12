//! The server's end of a data connection.

use super::registry::Joined;
use super::session::{Flow, MOST_READINGS, Session, lock};
use super::{Shared, one_more};
use crate::bucket::Bucket;
use crate::limited::is_silence;
use crate::readings::{Readings, chunk};
use crate::wire::keys::Way;
use crate::wire::message::Role;
use crate::wire::record::{HEAD, MOST_USER, Reader, Record, Writer};
use crate::{clock, tcp};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use trunkline_core::{Rate, Span, Time};

/// The time that a read or a write waits until the stop signs are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Serves a connection of a flow to its end.
pub fn serve(shared: &Shared, stream: &TcpStream, joined: &Joined) {
    let Joined { session, flow, place, transcript } = joined;
    let key = |way| session.keys.stream(way, *place, transcript);
    let most = if flow.spec.role == Role::Echo { flow.spec.size } else { MOST_USER };
    let (reader, writer) = (Reader::new(key(Way::Up), most), Writer::new(key(Way::Down)));
    let chunk = chunk(session.limits.rate.map(Rate::from_bits_per_second));
    let send_queue = SendQueue { shared, stream, session, flow, number: place.stream, chunk };
    match send_queue.serve(reader, writer) {
        Err(error) if is_silence(&error) => one_more(&shared.registry.counts.silent),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            flow.forged.fetch_add(1, Ordering::Relaxed);
            one_more(&shared.registry.counts.foreign);
        }
        _ => {}
    }
    flow.leave();
    // What has not been sent yet is of no use: without this the kernel would go on sending it.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

struct SendQueue<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    session: &'a Session,
    flow: &'a Flow,
    number: u16,
    /// Octets that are read or written at once: few if the session has a rate to keep to.
    chunk: usize,
}

impl SendQueue<'_> {
    fn serve(&self, reader: Reader, writer: Writer) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        let asked = self.flow.spec.congestion.as_ref().or(self.shared.congestion.as_ref());
        if let Some(name) = asked {
            tcp::set_congestion(self.stream, name).map_err(io::Error::other)?;
        }
        self.stream.set_read_timeout(Some(LOOK))?;
        self.stream.set_write_timeout(Some(LOOK))?;
        let congestion = tcp::congestion(self.stream);
        self.flow.with_stream(self.number, |stream| stream.congestion = congestion);
        match self.flow.spec.role {
            Role::Echo => self.echo(reader, writer),
            Role::Up => self.sink(reader),
            Role::Down => self.source(reader, writer),
        }
    }

    fn is_over(&self) -> bool {
        self.flow.is_done() || self.session.is_over() || self.shared.stopped()
    }

    /// Keeps to the session's rate.
    fn spend(&self, octets: usize) {
        let now = clock::now();
        let until = now + lock(&self.session.bucket).take(now, octets as u64);
        while clock::now() < until && !self.is_over() {
            thread::sleep(until.since(clock::now()).to_duration().min(LOOK));
        }
    }

    /// Reads some octets; `None` at the end, and when all is over.
    fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let since = clock::now();
        while !self.is_over() {
            match (&mut &*self.stream).read(buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    if let Some(octets) = self.shared.registry.options.tcp_window {
                        tcp::hold_window(self.stream, octets)?;
                    }
                    self.spend(count);
                    return Ok(Some(count));
                }
                Err(error) if is_silence(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if clock::now().since(since) > self.shared.registry.options.idle {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(None)
    }

    /// Writes all octets; `false` when all is over before.
    fn write(&self, mut octets: &[u8]) -> io::Result<bool> {
        let since = clock::now();
        while !octets.is_empty() {
            if self.is_over() {
                return Ok(false);
            }
            match (&mut &*self.stream).write(octets) {
                Ok(count) => {
                    octets = &octets[count..];
                    self.spend(count);
                }
                Err(error) if is_silence(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if clock::now().since(since) > self.shared.registry.options.idle {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(true)
    }

    fn sink(&self, mut reader: Reader) -> io::Result<()> {
        let mut buffer = vec![0; self.chunk];
        while let Some(count) = self.read(&mut buffer)? {
            let (mut octets, now) = (&buffer[..count], clock::now());
            while !octets.is_empty() {
                let taken = reader.take(&mut octets)?;
                self.flow.count(self.number, now, taken.user as u64);
            }
        }
        Ok(())
    }

    /// Waits for the client's first record: who only repeats its first words gets no stream.
    fn await_client(&self, reader: &mut Reader) -> io::Result<bool> {
        let mut buffer = [0; HEAD];
        while let Some(count) = self.read(&mut buffer)? {
            if reader.take(&mut &buffer[..count])?.whole.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn source(&self, mut reader: Reader, mut writer: Writer) -> io::Result<()> {
        if !self.await_client(&mut reader)? {
            return Ok(());
        }
        let began = clock::now();
        let spec = &self.flow.spec;
        let until = began + Span::from_nanos(spec.duration_ns);
        // Each connection has its share.
        let share = |rate: u64| Rate::from_bits_per_second(rate / u64::from(spec.streams));
        let rate = spec.rate.map(share);
        let mut record = writer.filled(Record::default(), chunk(rate).min(self.chunk));
        let mut bucket = Bucket::of_records(rate, record.len());
        let mut at = 0;
        let mut readings = Readings::new(began, Span::from_nanos(spec.interval_ns));
        while clock::now() < until && !self.is_over() {
            if at == record.len() {
                writer.write(Record::default(), &mut record);
                at = 0;
            }
            match (&mut &*self.stream).write(&record[at..]) {
                Ok(count) => {
                    at += count;
                    self.spend(count);
                    let wait = bucket.take(clock::now(), count as u64);
                    thread::sleep(wait.to_duration().min(LOOK));
                }
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(error),
            }
            self.note(&mut readings);
        }
        Ok(())
    }

    fn note(&self, readings: &mut Readings) {
        if let Some(at) = readings.due()
            && let Some(reading) = tcp::read(self.stream, at)
        {
            self.flow.with_stream(self.number, |stream| {
                if stream.readings.len() < MOST_READINGS {
                    stream.readings.push(reading);
                }
            });
        }
    }

    /// Answers each message when it has come in full. Its octets are not kept: those of the answer are
    /// others.
    fn echo(&self, mut reader: Reader, mut writer: Writer) -> io::Result<()> {
        let mut buffer = vec![0; self.chunk];
        let mut order = 0u32;
        while let Some(count) = self.read(&mut buffer)? {
            let at = clock::now();
            let mut octets = &buffer[..count];
            while !octets.is_empty() {
                let Some(request) = reader.take(&mut octets)?.whole else { continue };
                if !self.answer(&mut writer, request, at, order)? {
                    return Ok(());
                }
                order = order.wrapping_add(1);
            }
        }
        Ok(())
    }

    fn answer(
        &self,
        writer: &mut Writer,
        request: Record,
        at: Time,
        order: u32,
    ) -> io::Result<bool> {
        let mut octets = vec![0x55; HEAD + request.size as usize];
        // The time that the code takes is the server's, as all until the sending.
        let span = u32::try_from(clock::now().since(at).as_nanos()).unwrap_or(u32::MAX);
        writer.write(Record { stamp: at.as_nanos(), span, order, ..request }, &mut octets);
        self.flow.with_stream(self.number, |stream| {
            stream.received += 1;
            stream.sent += 1;
        });
        self.flow.count(self.number, at, u64::from(request.size));
        self.write(&octets)
    }
}

//! The server's end of a data connection.

use super::Shared;
use super::session::{Flow, MOST_READINGS, Session, lock};
use crate::bucket::Bucket;
use crate::limited::is_silence;
use crate::readings::{Readings, chunk};
use crate::wire::frame;
use crate::wire::message::{Answer, Role, Transport};
use crate::wire::record::{HEAD, Record};
use crate::{clock, tcp};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use trunkline_core::{Rate, Span, Time};

/// How long a read or a write waits until the stop signs are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Serves connection `number` of a flow to its end.
///
/// # Errors
/// What the connection says; `TimedOut` where nothing came for too long.
pub fn serve(
    shared: &Shared,
    stream: &TcpStream,
    session: &Session,
    flow: &Flow,
    number: u16,
) -> io::Result<()> {
    let chunk = chunk(session.limits.rate.map(Rate::from_bits_per_second));
    let place = Place { shared, stream, session, flow, number, chunk };
    let result = place.serve();
    flow.running.fetch_sub(1, Ordering::Relaxed);
    // What has not been sent yet is of no use: without this the kernel would go on sending it.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    result
}

struct Place<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    session: &'a Session,
    flow: &'a Flow,
    number: u16,
    /// Octets that are read or written at once: few where the session has a rate to keep to.
    chunk: usize,
}

impl Place<'_> {
    fn serve(&self) -> io::Result<()> {
        let asked = self.flow.spec.congestion.as_ref().or(self.shared.congestion.as_ref());
        if let Some(name) = asked
            && let Err(reason) = tcp::set_congestion(self.stream, name)
        {
            return frame::send(&mut &*self.stream, &Answer::Refused { reason });
        }
        if self.flow.spec.transport != Transport::Tcp {
            let reason = "this flow has no connections".into();
            return frame::send(&mut &*self.stream, &Answer::Refused { reason });
        }
        frame::send(&mut &*self.stream, &Answer::Ready { urp: None })?;
        self.stream.set_read_timeout(Some(LOOK))?;
        self.stream.set_write_timeout(Some(LOOK))?;
        let congestion = tcp::congestion(self.stream);
        self.flow.with_stream(self.number, |stream| stream.congestion = congestion);
        match self.flow.spec.role {
            Role::Echo => self.echo(),
            Role::Up => self.sink(),
            Role::Down => self.source(),
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
                    if let Some(octets) = self.shared.options.tcp_window {
                        tcp::hold_window(self.stream, octets)?;
                    }
                    self.spend(count);
                    return Ok(Some(count));
                }
                Err(error) if is_silence(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if clock::now().since(since) > self.shared.options.idle {
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
            if clock::now().since(since) > self.shared.options.idle {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(true)
    }

    fn sink(&self) -> io::Result<()> {
        let mut buffer = vec![0; self.chunk];
        while let Some(count) = self.read(&mut buffer)? {
            self.flow.count(self.number, clock::now(), count as u64);
        }
        Ok(())
    }

    fn source(&self) -> io::Result<()> {
        let began = clock::now();
        let spec = &self.flow.spec;
        let until = began + Span::from_nanos(spec.duration_ns);
        // Each connection has its share.
        let share = |rate: u64| Rate::from_bits_per_second(rate / u64::from(spec.streams));
        let rate = spec.rate.map(share);
        let mut bucket = Bucket::new(rate);
        let chunk = vec![0x55; chunk(rate).min(self.chunk)];
        let mut readings = Readings::new(began, Span::from_nanos(spec.interval_ns));
        while clock::now() < until && !self.is_over() {
            match (&mut &*self.stream).write(&chunk) {
                Ok(count) => {
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
    fn echo(&self) -> io::Result<()> {
        let mut buffer = vec![0; self.chunk];
        let mut head = Vec::with_capacity(HEAD);
        let (mut left, mut order) = (0usize, 0u32);
        let mut request: Option<Record> = None;
        while let Some(count) = self.read(&mut buffer)? {
            let at = clock::now();
            let mut rest = &buffer[..count];
            while !rest.is_empty() || (left == 0 && request.is_some()) {
                if request.is_none() {
                    let (part, more) = rest.split_at(rest.len().min(HEAD - head.len()));
                    head.extend_from_slice(part);
                    rest = more;
                    if head.len() < HEAD {
                        break;
                    }
                    let record = Record::read(&head).filter(|one| one.size <= self.flow.spec.size);
                    let record = record.ok_or(io::ErrorKind::InvalidData)?;
                    head.clear();
                    (request, left) = (Some(record), record.size as usize);
                }
                let taken = rest.len().min(left);
                (left, rest) = (left - taken, &rest[taken..]);
                if left == 0
                    && let Some(record) = request.take()
                {
                    if !self.answer(record, at, order)? {
                        return Ok(());
                    }
                    order = order.wrapping_add(1);
                }
            }
        }
        Ok(())
    }

    fn answer(&self, request: Record, at: Time, order: u32) -> io::Result<bool> {
        let span = u32::try_from(clock::now().since(at).as_nanos()).unwrap_or(u32::MAX);
        let record = Record { stamp: at.as_nanos(), span, order, ..request };
        let mut octets = record.write().to_vec();
        octets.resize(HEAD + request.size as usize, 0x55);
        self.flow.with_stream(self.number, |stream| {
            stream.received += 1;
            stream.sent += 1;
        });
        self.flow.count(self.number, at, u64::from(request.size));
        self.write(&octets)
    }
}

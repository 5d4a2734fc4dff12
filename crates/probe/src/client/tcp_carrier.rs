//! Messages over a connection of the kernel's TCP.

use super::carrier::{Carrier, Reply};
use super::connection::DataStream;
use crate::limited::is_silence;
use crate::wire::record::{HEAD, Reader, Record, Writer};
use crate::{clock, stamp, tcp};
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use trunkline_core::{Span, Time};
use trunkline_fit::Far;

/// Octets that are read at once.
const CHUNK: usize = 64 * 1024;
/// Octets that may wait to be taken by the kernel.
const MOST_WAITING: usize = 16 << 20;
/// Octets of TCP (with time stamps) and IPv4 headers.
const HEADERS: u32 = 52;

/// Messages over a connection, on which Nagle's rule is off.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    out: VecDeque<u8>,
    reader: Reader,
    writer: Writer,
    forged: bool,
    ready: VecDeque<Reply>,
    began: Time,
    /// Octets of the largest window that this end offers.
    window: Option<u32>,
}

impl Tcp {
    /// Over a connection that has joined its flow, whose window was bounded to so many octets.
    ///
    /// # Errors
    /// If it cannot be made not to block.
    pub fn over(joined: DataStream, window: Option<u32>) -> io::Result<Tcp> {
        let DataStream { stream, reader, writer } = joined;
        stream.set_nonblocking(true)?;
        Ok(Tcp {
            stream,
            out: VecDeque::new(),
            reader,
            writer,
            forged: false,
            ready: VecDeque::new(),
            began: clock::now(),
            window,
        })
    }

    /// Hands over to the kernel what it takes.
    fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            let (front, _) = self.out.as_slices();
            match (&self.stream).write(front) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_silence(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; CHUNK];
        loop {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.take(&buffer[..count], clock::now())?;
                    if let Some(octets) = self.window {
                        tcp::hold_window(&self.stream, octets)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_silence(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, mut octets: &[u8], at: Time) -> io::Result<()> {
        while !octets.is_empty() {
            let taken = self.reader.take(&mut octets);
            self.forged |= taken.is_err();
            let Some(record) = taken?.whole else { continue };
            let received = record.stamp as i64;
            let sent = received.wrapping_add(i64::from(record.span));
            let far = Some(Far { received, sent, order: u64::from(record.order) });
            self.ready.push_back(Reply { number: record.number, at, far, size: record.size });
        }
        Ok(())
    }
}

impl Carrier for Tcp {
    fn send(&mut self, number: u32, size: u32) -> io::Result<Time> {
        if self.out.len() > MOST_WAITING {
            return Err(ErrorKind::WouldBlock.into());
        }
        let record = Record { number, ..Record::default() };
        self.out.extend(self.writer.filled(record, size as usize));
        let at = clock::now();
        self.flush()?;
        Ok(at)
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Reply>> {
        loop {
            self.flush()?;
            self.read()?;
            if let Some(reply) = self.ready.pop_front() {
                return Ok(Some(reply));
            }
            let out = if self.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            if clock::now() >= until || !stamp::wait(&self.stream, PollFlags::IN | out, until)? {
                return Ok(None);
            }
        }
    }

    fn is_reliable(&self) -> bool {
        true
    }
    fn overhead(&self) -> u32 {
        HEADERS + HEAD as u32
    }
    fn is_stamped(&self) -> bool {
        false
    }
    fn is_forged(&self) -> bool {
        self.forged
    }
    fn reading(&self) -> serde_json::Value {
        let reading = tcp::read(&self.stream, clock::now().since(self.began));
        serde_json::json!({ "congestion": tcp::congestion(&self.stream), "kernel": reading })
    }
}

/// The largest segment that the connection sends, in octets of user data.
pub fn segment(stream: &TcpStream) -> Option<u32> {
    tcp::read(stream, Span::ZERO).map(|reading| reading.mss_octets)
}

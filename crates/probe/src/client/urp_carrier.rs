//! Messages over URP, whose blocks travel in datagrams.

use super::carrier::{Carrier, Reply};
use super::udp_carrier::Datagrams;
use crate::channel::{Channel, MOST_WAITING};
use crate::clock;
use crate::wire::datagram::DatagramKind;
use std::collections::VecDeque;
use std::io;
use trunkline_core::Time;

/// Messages over a channel. URP's messages have no number: they come in the order in which they went.
#[derive(Debug)]
pub struct UrpOver {
    datagrams: Datagrams,
    channel: Channel,
    /// Numbers of the messages that are not answered, the oldest first.
    outstanding: VecDeque<u32>,
    ready: VecDeque<Reply>,
}

impl UrpOver {
    /// A channel that has been opened, and its datagrams.
    pub fn new(datagrams: Datagrams, channel: Channel) -> UrpOver {
        UrpOver { datagrams, channel, outstanding: VecDeque::new(), ready: VecDeque::new() }
    }

    fn flush(&mut self) {
        while let Some((number, octets)) = self.channel.depart(clock::now()) {
            // What the system does not take is one lost, which the protocol repairs.
            let _ = self.datagrams.send(DatagramKind::Urp, number, &octets);
        }
    }

    fn take(&mut self, at: Time) {
        while let Some((_, whole)) = self.channel.take(at) {
            if let Some((size, number)) = whole.zip(self.outstanding.front().copied()) {
                self.outstanding.pop_front();
                self.ready.push_back(Reply { number, at, far: None, size });
            }
        }
    }
}

impl Carrier for UrpOver {
    fn send(&mut self, number: u32, size: u32) -> io::Result<Time> {
        if self.channel.waiting() > MOST_WAITING {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let at = clock::now();
        self.channel.offer(at, size);
        self.outstanding.push_back(number);
        self.flush();
        Ok(at)
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Reply>> {
        loop {
            if let Some(reply) = self.ready.pop_front() {
                return Ok(Some(reply));
            }
            let now = clock::now();
            if now >= until {
                return Ok(None);
            }
            let due = self.channel.deadline().unwrap_or(Time::NEVER);
            if due <= now {
                self.channel.expire(now);
                self.flush();
            }
            let due = self.channel.deadline().unwrap_or(Time::NEVER);
            if let Some((head, octets, at)) = self.datagrams.receive(until.min(due))?
                && head.kind == DatagramKind::Urp
            {
                self.channel.arrive(at, head.number, octets);
                self.take(at);
                self.flush();
            }
        }
    }

    fn is_reliable(&self) -> bool {
        true
    }
    fn overhead(&self) -> u32 {
        0
    }
    fn is_stamped(&self) -> bool {
        self.datagrams.is_stamped()
    }
    fn reading(&self) -> serde_json::Value {
        serde_json::json!({ "urp": self.channel.reading(), "mtu_octets": self.datagrams.mtu() })
    }
}

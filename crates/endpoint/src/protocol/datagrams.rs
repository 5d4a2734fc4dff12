//! Datagrams: no protocol, each a message of its own.

use super::{Taken, WAITING_BYTES, Write, wire_notes};
use crate::clock;
use crate::context::Context;
use crate::run::ProtocolReport;
use crate::shared::{Carried, Flying};
use crate::wire::{Body, Wire};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_measure::{Step, Trail};

/// Packets that are taken off the socket in one go.
const BATCH: usize = 64;

/// An end that sends datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    wire: Wire,
    /// Bytes of header that the path counts: before what this end sends, and what the other does.
    own_header: u32,
    other_header: u32,
    waiting: VecDeque<Outgoing>,
    waiting_bytes: u64,
    inbox: VecDeque<Taken>,
    blocks: Vec<Step>,
    block_count: u64,
}

#[derive(Debug)]
struct Outgoing {
    bytes: u32,
    ready: Time,
    carried: Carried,
}

impl Datagrams {
    pub fn new(wire: Wire, own_header: u32, other_header: u32) -> Datagrams {
        Datagrams {
            wire,
            own_header,
            other_header,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            inbox: VecDeque::new(),
            blocks: Vec::new(),
            block_count: 0,
        }
    }

    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        let Write { bytes, carried, .. } = write;
        self.waiting.push_back(Outgoing { bytes, ready: now, carried });
        self.waiting_bytes += u64::from(bytes);
        self.flush(context);
    }

    pub fn written(&self) -> bool {
        self.waiting.is_empty() || self.waiting_bytes <= WAITING_BYTES
    }

    pub fn blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn pump(&mut self, context: &Context) {
        self.flush(context);
        self.receive(context);
    }

    fn flush(&mut self, context: &Context) {
        while let Some(Outgoing { bytes, ready, carried }) = self.waiting.pop_front() {
            let (now, number) = (clock::now(), self.wire.next());
            let mut flying = Flying { block: Trail::new(ready), message: Some(carried) };
            flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
            // The records first: the reader may be faster than this thread.
            let way = context.outward();
            way.keep(number, flying);
            way.sent.fetch_add(1, Ordering::AcqRel);
            let size = bytes.saturating_add(self.own_header);
            if self.wire.send(now, size, 0, Body::Filler(bytes)) {
                self.waiting_bytes -= u64::from(bytes);
                continue;
            }
            way.sent.fetch_sub(1, Ordering::AcqRel);
            if let Some(carried) = way.fetch(number).and_then(|flying| flying.message) {
                self.waiting.push_front(Outgoing { bytes, ready, carried });
            }
            return;
        }
    }

    fn receive(&mut self, context: &Context) {
        for _ in 0..BATCH {
            let Some(view) = self.wire.receive() else { return };
            let bytes = view.header.path_size.saturating_sub(self.other_header);
            let now = clock::now();
            let flying = context.landed(view.header.number, &view.record, now);
            let carried = flying.and_then(|mut flying| {
                flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
                self.block_count += 1;
                add(&mut self.blocks, flying.block.steps());
                flying.message
            });
            self.inbox.push_back(Taken { bytes, end: true, since: None, carried });
        }
    }

    pub fn take(&mut self, context: &Context) -> Option<Taken> {
        let taken = self.inbox.pop_front()?;
        // A copy is not one of those that were sent.
        let first = u64::from(taken.carried.is_some());
        context.inward().taken.fetch_add(first, Ordering::AcqRel);
        Some(taken)
    }

    pub fn report(&self) -> ProtocolReport {
        ProtocolReport {
            packets_sent: self.wire.sent,
            packets_received: self.wire.received,
            blocks: self.blocks.clone(),
            block_count: self.block_count,
            notes: wire_notes(&self.wire),
            ..ProtocolReport::default()
        }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// Adds steps to sums by place and cause.
pub(super) fn add(sums: &mut Vec<Step>, steps: &[Step]) {
    for step in steps {
        let same = |sum: &&mut Step| sum.place == step.place && sum.cause == step.cause;
        match sums.iter_mut().find(same) {
            Some(sum) => sum.span += step.span,
            None => sums.push(*step),
        }
    }
}

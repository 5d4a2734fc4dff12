//! One direction of a conversation: two hosts, what they speak, and the way between them.

use crate::speech::{Packet, Speech};
use crate::way::{Resource, Way};
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_scenario::{Cost, Echo, Host, HostPlace, ProtocolPlace};

/// Segments or units whose demands are told together: nanoseconds are too coarse for one on a fast line.
pub(crate) const TOGETHER: u64 = 64;

/// A sender's talk to its peer.
#[derive(Debug, Clone)]
pub(crate) struct Talk<'a> {
    /// The sender's host and its place in the order of names.
    pub from: (&'a Host, usize),
    /// The receiver's.
    pub to: (&'a Host, usize),
    pub speech: Speech,
    /// To the receiver.
    pub way: Way,
    /// On which the answers come back.
    pub back: Way,
}

/// The costs of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTimes {
    /// From its start at the sender to the opening of the window by its answer.
    pub answered: Span,
    /// From its start to that of the next: what its slowest stage takes.
    pub spacing: Span,
    /// That stage.
    pub slowest: Resource,
    /// The same before answers come back, which take the sender's time and that of the lines to it.
    pub unanswered: Span,
}

impl Talk<'_> {
    /// The processor's part of sending a block of `data` user bytes.
    pub fn host_send(&self, data: u32) -> Span {
        block_cost(self.from.0, self.from.0.processor.send_block, self.speech.envelopes(data))
    }

    /// The board's.
    pub fn board_send(&self, data: u32) -> Span {
        self.from.0.interface.send_block.of(self.speech.envelopes(data))
    }

    /// The receiving processor's part of the protocol for a block.
    pub fn host_receive(&self, data: u32) -> Span {
        block_cost(self.to.0, self.to.0.processor.receive_block, self.speech.envelopes(data))
    }

    /// The interrupts by which a block comes to the receiving processor: one for each receive buffer
    /// filled and one for what is left, or one for the block.
    pub fn interrupts(&self, data: u32) -> Span {
        let host = self.to.0;
        let buffer = host.interface.receive_buffer.filter(|_| !self.speech.of_host);
        let buffer = buffer.unwrap_or(u32::MAX).max(1);
        let count = u64::from(data.div_ceil(buffer).max(1));
        let cost = host.processor.interrupt;
        cost.fixed.scaled(count, 1) + cost.per_byte.scaled(u64::from(data), 1)
    }

    /// The system read that takes a block.
    pub fn read(&self, data: u32) -> Span {
        self.to.0.processor.read.of(u64::from(data))
    }

    /// The interrupt that says that a request is done.
    pub fn done(&self) -> Span {
        let host = self.from.0;
        // Without a limit nobody waits for it, and the interface does not say it.
        host.interface.requests.map_or(Span::ZERO, |_| host.processor.interrupt.of(0))
    }

    /// Processor and board time between a message's last answer of the protocol and the answer of the
    /// application, `write` and `sending` being what that takes: how far the one is ahead of the other.
    pub fn lead(&self, last: u32, write: Span, sending: Span) -> Span {
        let host = self.to.0;
        let before = match (host.interface.protocol, self.consumes()) {
            // The processor makes the answer when it has written what it answers the data with.
            (ProtocolPlace::Host, true) => Span::ZERO,
            (ProtocolPlace::Board, true) => write,
            // An interface interrupts its host for a block before that answers; a host's own protocol answers first.
            (ProtocolPlace::Host, false) if !self.speech.of_host => self.read(last) + write,
            (_, false) => self.interrupts(last) + self.read(last) + write,
        };
        (before + sending).saturating_sub(host.interface.control)
    }

    /// Handing a request of so many user bytes to the interface.
    pub fn request(&self, bytes: u32) -> Span {
        self.from.0.processor.request.of(u64::from(bytes))
    }

    /// The time that the receiver spends on an answer before it is on its way.
    pub fn answering(&self) -> Span {
        self.speech.answer.map_or(Span::ZERO, |answer| controls(self.to.0, answer.bytes))
    }

    /// The cost of an acknowledgement to the hosts at its two ends.
    pub fn acknowledging(&self) -> Span {
        let bytes = self.speech.answer.map_or(1, |answer| answer.bytes);
        controls(self.to.0, bytes) + controls(self.from.0, bytes)
    }

    /// The part of [`answering`](Talk::answering) that keeps the receiver's processor from the data.
    pub fn answering_first(&self) -> Span {
        let cost = |answer: Packet| control_on_processor(self.to.0, answer.bytes.into());
        self.speech.answer.map_or(Span::ZERO, cost)
    }

    /// What taking a block in and reading it keeps the receiver's processor.
    pub fn taking(&self, data: u32) -> Span {
        self.host_receive(data) + self.answering_first() + self.interrupts(data) + self.read(data)
    }

    /// The times of a block of `data` user bytes.
    pub fn block(&self, data: u32) -> BlockTimes {
        self.times(data, &self.demands_alone(data))
    }

    /// The same if the system call of reading is that of many blocks.
    pub fn block_together(&self, data: u32) -> BlockTimes {
        self.times(data, &self.demands(data))
    }

    /// The same if only its answer is waited for: a board answers however far behind the reader is.
    pub fn block_answered(&self, data: u32) -> BlockTimes {
        let mut demands = self.demands_alone(data);
        if self.to.0.interface.protocol == ProtocolPlace::Board && !self.consumes() {
            demands.remove(&Resource::Processor(self.to.1));
        }
        self.times(data, &demands)
    }

    fn times(&self, data: u32, demands: &BTreeMap<Resource, Span>) -> BlockTimes {
        let longest = demands.iter().max_by_key(|&(_, &span)| span);
        let (slowest, spacing) =
            longest.map_or((Resource::Processor(self.from.1), Span::ZERO), |(&r, &s)| (r, s));
        let back = self.returning();
        let outward = |(resource, &span): (&Resource, &Span)| {
            span.saturating_sub(back.get(resource).copied().unwrap_or_default())
        };
        let unanswered = demands.iter().map(outward).max().unwrap_or_default();
        BlockTimes { answered: self.answered(data), spacing, slowest, unanswered }
    }

    /// What the answer to a block takes on its way back and at the sender.
    fn returning(&self) -> BTreeMap<Resource, Span> {
        let mut demands = Demands { blocks: 1, each: BTreeMap::new() };
        if let Some(answer) = self.speech.answer {
            demands.returning(self, &self.back, answer);
        }
        demands.each
    }

    /// A note if the sender asks before a block of `data` user bytes, which waits `queue` besides, can be answered.
    ///
    /// The longest silence is that of the first window, which goes out at once. Enquiries that cross make URP go back,
    /// and what it sends again keeps the line from what is new: a transfer may take many times as long, or never end.
    pub fn asks_early(&self, data: u32, queue: Span, bound: &str) -> Option<String> {
        let (timeout, silence) = (self.speech.timeout?, self.block(data).answered + queue);
        (timeout < silence).then(|| {
            format!(
                "the timeout of {timeout} runs out before an answer can come, after up to {silence}: blocks are sent again for nothing, so {bound}; give a longer timeout"
            )
        })
    }

    /// From one answer to the next, if they come one behind the other on the way back.
    pub fn answers_apart(&self) -> Span {
        let busy = |answer| self.back.stages.iter().map(move |stage| stage.busy(&[answer])).max();
        self.speech.answer.and_then(busy).unwrap_or_default()
    }

    /// From a block's start to the opening of the window.
    fn answered(&self, data: u32) -> Span {
        // A protocol answers before its host is told of the data.
        let taken = match self.consumes() {
            true => self.interrupts(data) + self.read(data),
            false => Span::ZERO,
        };
        let (answer, from) = (self.speech.answer, self.from.0);
        self.host_send(data)
            + self.board_send(data)
            + self.way.to_slots()
            + self.way.latency(&self.speech.packets(data))
            + self.host_receive(data)
            + taken
            + self.answering()
            + self.back.to_slots()
            + answer.map_or(Span::ZERO, |it| self.back.latency(&[it]) + controls(from, it.bytes))
    }

    /// The demands of a block and its answer on each stage, the reading of its bytes included. The system call is not: a
    /// reader that is behind takes all that is there with one.
    pub fn demands(&self, data: u32) -> BTreeMap<Resource, Span> {
        self.demands_for(data, 1)
    }

    /// The same of a block that is read by itself.
    pub fn demands_alone(&self, data: u32) -> BTreeMap<Resource, Span> {
        let mut demands = self.demands(data);
        let call = self.to.0.processor.read.fixed;
        if !call.is_zero() {
            *demands.entry(Resource::Processor(self.to.1)).or_default() += call;
        }
        demands
    }

    /// The same of a datagram that is written by itself: the sender's processor has its write besides.
    pub fn demands_written(&self, data: u32) -> BTreeMap<Resource, Span> {
        let mut demands = self.demands_alone(data);
        *demands.entry(Resource::Processor(self.from.1)).or_default() += self.writing(data);
        demands.retain(|_, span| !span.is_zero());
        demands
    }

    /// Whether answers wait until the application has read.
    fn consumes(&self) -> bool {
        self.to.0.interface.echo == Echo::Consumption && !self.speech.of_host
    }

    /// What the system calls of reading keep the receiver's processor for each block, if `outstanding` may be under way and
    /// a message, which ends a read, has so many `blocks`. A reader that is behind takes a window with one call, or more if a
    /// board answers meanwhile. If answers wait for the reading, a window's first block is read by itself and those that come
    /// meanwhile together; a processor that also takes these in needs a third call.
    pub fn calls(&self, outstanding: u64, blocks: u64) -> Span {
        let call = self.to.0.processor.read.fixed;
        let in_window = match (self.consumes(), self.to.0.interface.protocol) {
            (false, ProtocolPlace::Board) => 0,
            (false, ProtocolPlace::Host) => 1,
            (true, ProtocolPlace::Board) => 2,
            (true, ProtocolPlace::Host) => 3,
        };
        let by_window = call.scaled(in_window, outstanding.max(1));
        by_window.max(call.scaled(1, blocks.max(1))).min(call)
    }

    /// What the answers to a window of `outstanding` blocks of `data` bytes wait for a read, if the processor that reads
    /// runs the protocol too and has not the time to read each block by itself. A read and the way to the next blocks
    /// overlap, so that they wait for a part of it.
    pub fn behind_reads(&self, data: u32, outstanding: u64, answered: Span) -> Span {
        if self.to.0.interface.protocol == ProtocolPlace::Board || self.consumes() {
            return Span::ZERO;
        }
        let call = self.to.0.processor.read.fixed;
        let lacking = self.taking(data).scaled(outstanding, 1).saturating_sub(answered);
        let both = (answered + call).as_nanos().max(1);
        call.min(lacking).scaled(answered.as_nanos(), both)
    }

    /// The same of `blocks` blocks.
    pub fn demands_for(&self, data: u32, blocks: u64) -> BTreeMap<Resource, Span> {
        self.demands_with(data, blocks, self.speech.answer)
    }

    /// The same with an answer of its own to each block, or none.
    pub fn demands_with(
        &self,
        data: u32,
        blocks: u64,
        answer: Option<Packet>,
    ) -> BTreeMap<Resource, Span> {
        let packets = self.speech.packets(data);
        let mut demands = Demands { blocks, each: BTreeMap::new() };
        demands.add(Resource::Processor(self.from.1), self.host_send(data));
        demands.add(Resource::Board(self.from.1), self.board_send(data));
        let reading = self.read(data).saturating_sub(self.to.0.processor.read.fixed);
        let taking = self.host_receive(data) + self.interrupts(data) + reading;
        demands.add(Resource::Processor(self.to.1), taking);
        demands.along(&self.way, &packets);
        if let Some(answer) = answer {
            demands.answer(self, &self.back, answer);
        }
        demands.each.retain(|_, span| !span.is_zero());
        demands.each
    }

    /// The demands of `answers` answers that come `back`, on the way and at the two ends.
    pub fn answer_demands(
        &self,
        back: &Way,
        answer: Packet,
        answers: u64,
    ) -> BTreeMap<Resource, Span> {
        let mut demands = Demands { blocks: answers, each: BTreeMap::new() };
        demands.answer(self, back, answer);
        demands.each
    }

    /// What a write of so many bytes costs its processor: the system call, its requests, and the interrupts that say that
    /// these are done.
    pub fn writing(&self, write: u32) -> Span {
        let requests = self.speech.requests(write, &self.from.0.interface.split);
        let handing = requests.iter().map(|blocks| self.request(blocks.iter().sum()) + self.done());
        self.from.0.processor.write.of(u64::from(write)) + handing.sum()
    }
}

/// The board that takes in what a host receives.
fn inward((host, index): (&Host, usize)) -> Resource {
    if host.interface.half_duplex { Resource::Board(index) } else { Resource::BoardIn(index) }
}

/// The demands of some blocks.
struct Demands {
    blocks: u64,
    each: BTreeMap<Resource, Span>,
}

impl Demands {
    /// Adds what each block takes.
    fn add(&mut self, resource: Resource, span: Span) {
        *self.each.entry(resource).or_default() += span.scaled(self.blocks, 1);
    }

    fn along(&mut self, way: &Way, packets: &[Packet]) {
        for stage in &way.stages {
            let busy = stage.busy_for(packets, self.blocks);
            *self.each.entry(stage.resource).or_default() += busy;
        }
    }

    /// What an answer takes on its way and at its ends.
    fn answer(&mut self, talk: &Talk<'_>, back: &Way, answer: Packet) {
        self.returning(talk, back, answer);
        self.control(talk.to, Resource::Board(talk.to.1), answer.bytes.into());
    }

    /// The same but for the end that sends it.
    fn returning(&mut self, talk: &Talk<'_>, back: &Way, answer: Packet) {
        self.along(back, &[answer]);
        for stage in &back.stages {
            // The channel turns round for an answer, and back again.
            let rest = stage.channel().and_then(|channel| channel.alone.rest());
            self.add(stage.resource, rest.unwrap_or_default().scaled(2, 1));
        }
        self.control(talk.from, inward(talk.from), answer.bytes.into());
    }

    fn control(&mut self, (host, index): (&Host, usize), board: Resource, envelopes: u64) {
        self.add(board, host.interface.control);
        self.add(Resource::Processor(index), control_on_processor(host, envelopes));
    }
}

/// Protocol work for a block on a host's processor, and programmed I/O.
fn block_cost(host: &Host, cost: Cost, envelopes: u64) -> Span {
    let programmed = host.interface.programmed.unwrap_or_default();
    match host.interface.protocol {
        ProtocolPlace::Host => cost.of(envelopes) + programmed.scaled(envelopes, 1),
        ProtocolPlace::Board => Span::ZERO,
    }
}

/// The cost of a control of so many envelopes to a host's processor.
fn control_on_processor(host: &Host, envelopes: u64) -> Span {
    block_cost(host, Cost { fixed: host.processor.control, per_byte: Span::ZERO }, envelopes)
}

/// The cost of a control of so many envelopes to a host: its board, and its processor if the protocol runs there.
fn controls(host: &Host, envelopes: u32) -> Span {
    host.interface.control + control_on_processor(host, envelopes.into())
}

/// The place of a host's system calls and interrupts.
pub(crate) fn processor_place(host: &Host) -> String {
    HostPlace::Processor.of(&host.name)
}

/// The place at which the protocol is processed.
pub(crate) fn protocol_place(host: &Host) -> String {
    match host.interface.protocol {
        ProtocolPlace::Host => processor_place(host),
        ProtocolPlace::Board => HostPlace::Interface.of(&host.name),
    }
}

/// The place at which one waits for an earlier request.
pub(crate) fn request_place(host: &Host) -> String {
    HostPlace::EarlierRequest.of(&host.name)
}

/// The place at which one waits for the window.
pub(crate) fn window_place(host: &Host) -> String {
    HostPlace::Transport.of(&host.name)
}

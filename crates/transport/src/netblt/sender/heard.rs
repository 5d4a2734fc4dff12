//! What the receiver's messages do to a sender: buffers are allowed, confirmed, or asked for again, and offers taken up.

use super::super::terms::SPREAD;
use super::super::wire::{Burst, Message, Said};
use super::{Outgoing, PROMPT, SOON, Sender, packets, slower};
use trunkline_core::{Span, Time};

/// Milliseconds from packet to packet at most as long as nothing is offered (a choice, as a law's slowest offer).
const SLOWEST: u64 = 1000;

impl Sender {
    /// A CONTROL packet has come.
    pub fn receive(&mut self, now: Time, messages: &[Message]) {
        self.silence.ends(now, self.timer);
        self.young.turn(now);
        for message in messages {
            if !self.heard.note(message.sequence) {
                self.sent.copies += 1;
                self.shows(message);
                // Its acknowledgement is lost, or it is too early.
                self.ack_by(now);
                continue;
            }
            self.ack_by(now);
            match &message.said {
                Said::Go => self.allow(message.sequence, message.buffer),
                Said::Ok { offer, timer } => {
                    self.offer(message.sequence, *offer);
                    if *timer != u16::MAX {
                        self.timer = Span::from_millis((*timer).into());
                        self.young.learn(self.timer);
                    }
                    self.confirm(message.buffer);
                }
                Said::Resend { offer, missing } => {
                    if !self.dialect.is_classic() {
                        self.offer(message.sequence, *offer);
                    }
                    self.mark(message.buffer, missing);
                }
            }
        }
        self.find_tail(now);
    }

    /// An acknowledgement of RFC 998 does not tell what has been sent. If all that told it was lost, the receiver would wait for it as long
    /// as for a client that fills no buffer. So the end of a buffer that is let be sent, or asked for, again goes again: at once, and then
    /// ever more seldom, as it may be waiting for a slow line, which copies of it would make slower still.
    fn shows(&mut self, message: &Message) {
        let is_ours = self.dialect.is_classic() && self.pace.is_even();
        if !is_ours || matches!(message.said, Said::Ok { .. }) {
            return;
        }
        let buffer = self.index(message.buffer).and_then(|it| self.buffers.get_mut(it));
        let Some(buffer) = buffer.filter(|it| !it.confirmed) else { return };
        let (Some((bytes, _)), sent) = (buffer.filled, buffer.sent) else { return };
        if sent < packets(bytes, self.terms.packet) {
            return;
        }
        buffer.copies += 1;
        if buffer.copies.is_power_of_two() {
            self.again.insert((message.buffer, (sent - 1) as u16));
        }
    }

    fn ack_by(&mut self, now: Time) {
        let patience =
            PROMPT.max(Span::from_millis(self.pace.burst().interval.into()).scaled(1, 2));
        // A law takes the wait for the next packet for a queue.
        let is_slow = self.pace.is_even() && !self.dialect.is_classic() && self.pace.gap() > SOON;
        let due = match self.could_send() && !is_slow {
            true => now + patience,
            false => now,
        };
        self.ack_due = Some(self.ack_due.map_or(due, |it| it.min(due)));
    }

    /// The place of a buffer among those kept.
    fn index(&self, number: u32) -> Option<usize> {
        let index = number.checked_sub(self.base?)? as usize;
        // The receiver may be a spread ahead of what is confirmed here, and allow a spread beyond that.
        let most = usize::from(self.terms.outstanding) * 2 * SPREAD as usize;
        (index < most).then_some(index)
    }

    /// A GO has come. The first message of all names the first buffer; what comes before it waits.
    fn allow(&mut self, sequence: u16, number: u32) {
        if sequence == 1 && self.base.is_none() {
            self.base = Some(number);
            std::mem::take(&mut self.early).into_iter().for_each(|it| self.open(it));
        }
        match self.base {
            Some(_) => self.open(number),
            None if self.early.len() < usize::from(self.terms.outstanding) => {
                self.early.push(number);
            }
            None => {}
        }
    }

    fn open(&mut self, number: u32) {
        let Some(index) = self.index(number) else { return };
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, Outgoing::default);
        }
        self.buffers[index].allowed = true;
    }

    fn confirm(&mut self, number: u32) {
        let Some(index) = self.index(number) else { return };
        let Some(buffer) = self.buffers.get_mut(index) else { return };
        let Some((bytes, _)) = buffer.filled else { return };
        if buffer.confirmed || buffer.sent < packets(bytes, self.terms.packet) {
            return;
        }
        buffer.confirmed = true;
        self.open -= 1;
        self.unanswered -= u64::from(bytes);
        self.released.push_back(self.done + index as u64);
        let from = (number, 0);
        for packets in [&mut self.again, &mut self.echo] {
            let marked: Vec<_> = packets.range(from..=(number, u16::MAX)).copied().collect();
            marked.iter().for_each(|it| _ = packets.remove(it));
        }
        self.tail.confirmed(number);
        while self.buffers.front().is_some_and(|it| it.confirmed) {
            self.buffers.pop_front();
            self.base = self.base.map(|base| base.wrapping_add(1));
            self.done += 1;
            self.at = self.at.saturating_sub(1);
        }
    }

    fn mark(&mut self, number: u32, missing: &[u16]) {
        let Some(index) = self.index(number) else { return };
        let Some(buffer) = self.buffers.get(index).filter(|it| !it.confirmed) else { return };
        let Some((bytes, _)) = buffer.filled else { return };
        let count = packets(bytes, self.terms.packet);
        let is_sent = |it: &&u16| u32::from(**it) < buffer.sent;
        let sent = missing.iter().filter(is_sent).count() as u64;
        let is_lost = |it: &&u16| self.young.may_be_lost((number, **it));
        let lost = missing.iter().filter(is_sent).filter(is_lost).count() as u64;
        let follows =
            missing.windows(2).filter(|it| it[0].checked_add(1) == Some(it[1])).count() as u64;
        self.lost.0 += lost;
        self.lost.1 += lost.saturating_sub(follows);
        for &packet in missing {
            // Of a short last buffer the receiver may not know where it ends: its last packet tells.
            let packet = u32::from(packet).min(count - 1);
            if packet < buffer.sent {
                self.again.insert((number, packet as u16));
            }
        }
        self.slow_down(sent);
    }

    /// So many packets are asked for again. As long as nothing is offered that alone tells what the path carries: the pace becomes slower
    /// by the share that has not come.
    fn slow_down(&mut self, asked: u64) {
        let all = self.sent.packets + self.sent.again;
        let sent = all - self.told;
        if self.has_offer || !self.pace.is_even() || asked.min(sent) == 0 {
            return;
        }
        self.told = all;
        let came = sent.saturating_sub(asked).max(1);
        let Burst { size, interval } = self.offer;
        let slower = u64::from(interval) * sent / came;
        let most = (u64::from(size) * SLOWEST).min(u16::MAX.into());
        self.take_offer(Burst { size, interval: slower.min(most.max(interval.into())) as u16 });
    }

    /// Takes up an offer, unless a newer one has been.
    fn offer(&mut self, sequence: u16, offer: Burst) {
        if sequence.wrapping_sub(self.offered) < 1 << 15 {
            self.offered = sequence;
            self.has_offer |= offer.size > 0;
            self.take_offer(offer);
        }
    }

    pub(super) fn take_offer(&mut self, offer: Burst) {
        let offer = Burst { size: offer.size.min(self.terms.burst.size), ..offer };
        let offer = if offer.size == 0 { self.pace.burst() } else { offer };
        self.offer = offer;
        let burst = slower(offer, self.cap);
        if self.pace.set(burst) && self.dialect.is_classic() && self.base.is_some() {
            // Data packets of RFC 998 cannot tell the burst in force.
            self.ack_due = Some(Time::ZERO);
        }
    }
}

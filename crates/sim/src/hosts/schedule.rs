//! When traffic starts and ends.

use super::end::Doing;
use super::jobs::{EndId, Timer};
use super::world::World;
use trunkline_core::Time;
use trunkline_scenario::{Start, Traffic};

impl World<'_> {
    /// Starts the traffic whose time has come, and asks for a timer for what starts later.
    pub fn start_due(&mut self) {
        for traffic in self.course.waiting() {
            match self.starts_at(traffic) {
                Some(at) => {
                    self.traffic[traffic].started = true;
                    self.schedule_flows(traffic, at);
                }
                None => self.course.waits(traffic),
            }
        }
    }

    /// When a traffic starts, once that is known.
    fn starts_at(&self, traffic: usize) -> Option<Time> {
        let now = self.net.now();
        match &self.scenario.traffic[traffic].start {
            Start::At(span) => Some(Time::ZERO + *span),
            Start::AfterBytes(other, size) => {
                let other = &self.traffic[self.course.named(other)?];
                other.delivered_by.iter().all(|&(bytes, _)| bytes >= size.bytes()).then_some(now)
            }
            Start::AfterEnd(other) => self.traffic[self.course.named(other)?].ended.then_some(now),
        }
    }

    fn schedule_flows(&mut self, traffic: usize, at: Time) {
        let Traffic { stagger, late, .. } = self.scenario.traffic[traffic];
        for (index, sender) in self.course.senders(traffic).enumerate() {
            let at = at + late + stagger.scaled(index as u64, 1);
            self.net.set_timer(at, Timer::Start(sender.0 / 2).number());
        }
    }

    /// A sending application has ended. With a connection its flow has; datagrams under way still arrive.
    pub fn sender_ended(&mut self, id: EndId) {
        if self.ends[id.index()].protocol.is_connected() || self.ends[id.index()].started.is_none()
        {
            self.flow_ended(id);
        } else {
            self.drained(id);
        }
    }

    /// Ends a flow of datagrams whose sender has ended when all of them have been read or lost.
    pub fn drained(&mut self, sender: EndId) {
        let (end, peer) = (&self.ends[sender.index()], &self.ends[sender.peer().index()]);
        if end.doing == Doing::Ended
            && !end.protocol.is_connected()
            && peer.doing != Doing::Ended
            && end.has_sent_all()
            && self.net.route_counts(end.route).in_flight == 0
            && peer.has_read_all()
        {
            self.ends[sender.peer().index()].doing = Doing::Ended;
            self.flow_ended(sender);
        }
    }

    /// The far end counts as dead: the flow ends, so that nobody waits for it for ever.
    pub fn give_up(&mut self, id: EndId) {
        let sender = EndId(id.0 & !1);
        let end = &self.ends[sender.index()];
        if end.doing != Doing::Ended {
            self.traffic[end.traffic].gave_up += 1;
            self.application_ended(sender);
        }
    }

    fn flow_ended(&mut self, sender: EndId) {
        self.end_intervals(sender.peer());
        let traffic = self.ends[sender.index()].traffic;
        let state = &mut self.traffic[traffic];
        state.flows_left -= 1;
        if state.flows_left == 0 {
            state.ended = true;
            self.course.ended(traffic);
            self.start_due();
            self.stop_company(traffic);
            self.stopped = self.course.is_over();
        }
    }

    /// Stops the traffic that goes on until another one's end: each of its applications ends with its next
    /// step, and those that have not started do not.
    fn stop_company(&mut self, ended: usize) {
        for traffic in self.course.company_of(ended) {
            self.traffic[traffic].started = true;
            self.course.starts_no_more(traffic);
            for sender in self.course.senders(traffic) {
                self.ends[sender.index()].app.stop();
                if matches!(self.ends[sender.index()].doing, Doing::Nothing | Doing::Opening) {
                    self.application_ended(sender);
                }
            }
        }
    }
}

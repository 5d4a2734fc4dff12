//! Shared media in a network: a lane that is a station of a medium hands its frames over to it, and takes back those that
//! leave by a port once they have been heard.

use super::Plane;
use super::lane::Lane;
use super::plan::{LanePlan, MediumPlan};
use super::transit::Transit;
use crate::clock::Clock;
use trunkline_core::{Counts, Packet, Time};
use trunkline_path::medium::{Heard, StationId};
use trunkline_path::{Backlog, Delivered, Medium};

/// A medium at work.
#[derive(Debug)]
pub(super) struct Shared {
    plan: MediumPlan,
    medium: Medium<Packet<Transit>>,
    /// The lane of each station.
    lanes: Vec<usize>,
}

impl Shared {
    /// The medium that has this number in the plan.
    pub fn new(plan: MediumPlan, number: usize, lanes: &[LanePlan]) -> Shared {
        let mut own = vec![0; plan.stations.len()];
        for (index, lane) in lanes.iter().enumerate() {
            if let Some((_, station)) = lane.station.filter(|&(medium, _)| medium == number) {
                own[station.0] = index;
            }
        }
        Shared { medium: built(&plan), plan, lanes: own }
    }

    /// Forgets everything.
    pub fn restart(&mut self) {
        self.medium = built(&self.plan);
    }

    /// When it next has something to do.
    pub fn due(&self) -> Time {
        self.medium.next_event().unwrap_or(Time::NEVER)
    }
}

fn built(plan: &MediumPlan) -> Medium<Packet<Transit>> {
    let stations: Vec<&str> = plan.stations.iter().map(String::as_str).collect();
    Medium::new(&plan.spec, plan.seed, &plan.name, &stations)
}

impl Plane {
    /// What the station of a medium that `lane` is did, and what waits there.
    pub(super) fn on_medium(&self, lane: &Lane) -> (Counts, Backlog) {
        let Some((medium, station)) = lane.station() else { return Default::default() };
        let medium = &self.media[medium].medium;
        (medium.counts(station), medium.backlog(station))
    }

    /// Hands a packet over to a medium.
    pub(super) fn enter_medium(
        &mut self,
        (medium, from): (usize, StationId),
        at: Time,
        packet: Packet<Transit>,
        clock: &Clock,
    ) {
        let heard_by = &self.ways[packet.body.way()].heard_by;
        // A way over a medium says who hears it; a plan that does not is its maker's mistake.
        let to = heard_by.get(packet.body.hop()).copied().flatten().unwrap_or(from);
        self.media[medium].medium.offer(at, from, to, packet);
        self.give_back_from(medium, at, clock);
    }

    /// Lets a medium work up to `at`. What has been heard goes on, or leaves from the lane of the station that sent it.
    pub(super) fn serve_medium(&mut self, medium: usize, at: Time, clock: &Clock) {
        self.media[medium].medium.advance(at);
        while let Some(Heard { release, from, packet, .. }) = self.media[medium].medium.take(at) {
            let lane = self.media[medium].lanes[from.0];
            let delivered = Delivered { release, packet };
            let body = &delivered.packet.body;
            match body.hop() + 1 < self.ways[body.way()].lanes.len() {
                true => self.forward(lane, delivered, clock),
                false => self.lanes[lane].heard.push_back(delivered),
            }
        }
        self.give_back_from(medium, at, clock);
    }

    /// Gives back what a medium has dropped by `at`.
    fn give_back_from(&mut self, medium: usize, at: Time, clock: &Clock) {
        let Plane { media, pool, live, tap, .. } = self;
        let Shared { medium, lanes, .. } = &mut media[medium];
        if !medium.has_dropped() {
            return;
        }
        for (station, packet, cause) in medium.dropped() {
            live.way(packet.body.way()).drop_one();
            let bytes = pool.bytes(&packet.body.frame);
            tap.dropped(lanes[station.0], clock.realtime(at), bytes, cause);
            pool.free(packet.body.frame);
        }
    }
}

//! Paths of one lane for each direction: what comes in at one port leaves by the other.

use crate::EmuError;
use crate::capture::CaptureTap;
use crate::clock::{Arrivals, Clock};
use crate::dataplane::{BUDGET, Inlet};
use crate::lane::Lane;
use crate::pool::FramePool;
use crate::snapshot::LaneSnapshot;
use crate::work::{Taken, Work};
use trunkline_core::{Span, Time};
use trunkline_path::Change;
use trunkline_port::{Port, PortError};

/// Paths of one lane for each direction, between two ports each.
pub struct Pairs {
    inlets: Vec<Inlet>,
    /// What is known of the arrivals at each inlet's port.
    arrivals: Vec<Arrivals>,
    lanes: Vec<Lane>,
    /// For each lane, the inlet whose port its frames leave by.
    outlets: Vec<usize>,
    pool: FramePool,
    tap: CaptureTap,
    /// Some port gives no arrival stamps: a frame counts as having come when it is read.
    unstamped: bool,
    /// A bit for each inlet whose device is down. Frames to it are refused and counted, until it is up again.
    down: u64,
}

impl Pairs {
    /// Lanes of index `2k` and `2k + 1` are the two directions of one path.
    pub fn new(inlets: Vec<Inlet>, lanes: Vec<Lane>, pool: FramePool, tap: CaptureTap) -> Pairs {
        let outlets = (0..lanes.len())
            .map(|lane| inlets.iter().position(|inlet| inlet.lane == lane ^ 1).unwrap_or(0))
            .collect();
        let arrivals = vec![Arrivals::default(); inlets.len()];
        Pairs { inlets, arrivals, lanes, outlets, pool, tap, unstamped: false, down: 0 }
    }
}

/// What was found where a device is down, which passes: nothing.
fn unless_down<T: Default>(result: Result<T, PortError>) -> Result<T, PortError> {
    match result {
        Err(error) if error.is_passing() => Ok(T::default()),
        other => other,
    }
}

/// The bit of an inlet. There are never more than 64 whose devices somebody could switch off.
fn bit(inlet: usize) -> u64 {
    1u64.checked_shl(inlet as u32).unwrap_or(0)
}

impl Work for Pairs {
    fn ports(&self) -> impl Iterator<Item = &dyn Port> {
        self.inlets.iter().map(|inlet| &*inlet.port as &dyn Port)
    }

    fn receive(&mut self, clock: &mut Clock) -> Result<Taken, EmuError> {
        let Pairs { inlets, arrivals, lanes, pool, tap, unstamped, .. } = self;
        clock.synchronise();
        let began = clock.now();
        let (mut taken, mut frames) = (Taken::default(), 0);
        for (Inlet { port, lane }, arrivals) in std::iter::zip(inlets, arrivals) {
            let lane = &mut lanes[*lane];
            let mut latest = None;
            let received = port.receive(BUDGET, &mut |frame| {
                let at = clock.stamp(frame.stamp, arrivals);
                latest = Some(at);
                taken.note(at);
                *unstamped |= frame.stamp.is_none();
                lane.accept(at, frame.bytes, pool, clock, tap);
            });
            let count = unless_down(received)?;
            if count < BUDGET {
                arrivals.drained(began);
            }
            lane.was_read(began, latest.filter(|_| count >= BUDGET));
            taken.most = taken.most.max(count);
            frames += count;
        }
        clock.read(frames);
        Ok(taken)
    }

    fn serve(&mut self, clock: &mut Clock) -> Result<usize, EmuError> {
        let mut sent = 0;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let port = self.inlets[self.outlets[index]].port.as_mut();
            sent += unless_down(lane.serve(&mut self.pool, port, clock, &mut self.tap))?;
        }
        Ok(sent)
    }

    fn next_wake(&self) -> Option<Time> {
        self.lanes.iter().filter_map(Lane::next_wake).min()
    }

    fn patience(&self) -> Span {
        let least = || self.lanes.iter().map(Lane::least_delay).min().unwrap_or_default();
        if self.unstamped { Span::ZERO } else { least() }
    }

    fn pulse(&mut self) -> Result<(), EmuError> {
        self.down = 0;
        for (index, inlet) in self.inlets.iter_mut().enumerate() {
            match inlet.port.check() {
                Err(error) if error.is_passing() => self.down |= bit(index),
                other => other?,
            }
            self.lanes[inlet.lane].account(inlet.port.as_mut());
        }
        Ok(())
    }

    fn down(&self) -> u64 {
        self.down
    }

    fn account(&mut self) {
        for inlet in &mut self.inlets {
            self.lanes[inlet.lane].account(inlet.port.as_mut());
        }
    }

    fn change(&mut self, lane: usize, at: Time, change: Change) {
        self.lanes[lane].change(at, change);
    }

    fn lanes(&self) -> Vec<LaneSnapshot> {
        self.lanes.iter().map(Lane::snapshot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::Memory;
    use trunkline_core::Seed;
    use trunkline_path::{ChannelKey, LinkSpec};

    #[test]
    fn frames_may_lie_unread_for_the_shortest_delay_if_their_stamps_tell_when_they_came() {
        let lane = |millis| {
            let spec = LinkSpec { delay: Span::from_millis(millis), ..LinkSpec::default() };
            let key = ChannelKey::default();
            let side = crate::capture::Side::Near;
            Lane::new("up", side, &spec, key, Seed(1), Time::ZERO, Span::ZERO)
        };
        let inlet = |lane| Inlet { port: Box::new(Memory::default()), lane };
        let inlets = vec![inlet(0), inlet(1)];
        let (pool, tap) = (FramePool::new(1), CaptureTap::default());
        let mut pairs = Pairs::new(inlets, vec![lane(5), lane(3)], pool, tap);
        assert_eq!(pairs.patience(), Span::from_millis(3));
        pairs.unstamped = true;
        assert_eq!(pairs.patience(), Span::ZERO);
    }
}

//! Bursts through a Datakit path: the load that the Datakit studies put on the simulator.
//!
//! Blocks of 1024 bytes and their trailers, as 65 packets of 16 bytes each, come from a few channels onto the
//! backplane of a node and go over two more nodes and a T1 trunk, as in Hawley's looped path (Hawley 1989
//! §1.3): five lines at 8 Mbit/s and one T1 in the middle, which is the bottleneck at a load of about 0.9.

use super::{Outcome, Switches};
use anyhow::Result;
use trunkline_core::{Channel, Ecn, Rate, Seed, Size, Span, Time};
use trunkline_path::discipline::RoundRobinSettings;
use trunkline_path::{ByteTime, DisciplineSpec, Framing, Limit, LinkSpec, TrunkProcessor};
use trunkline_sim::{Event, LinkId, Network, Parcel, RouteId};

/// User bytes of a packet on the backplane.
const SIZE: u32 = 16;
/// Packets of a burst: a block, and its trailer.
const BURST: u32 = 65;
/// Channels, each of which sends a burst every so often.
const CHANNELS: u64 = 8;
const INTERVAL: Span = Span::from_millis(50);
/// Which of the path's links is the trunk, of how many.
const TRUNK: usize = 2;
const LINKS: usize = 6;
/// Simulated.
pub const LENGTH: Time = Time::from_nanos(20_000_000_000);

/// What the trunk's board has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Board {
    /// A fifo in hardware.
    Hardware,
    /// A processor with the fifo program.
    Fifo,
    /// A processor with the round robin program.
    RoundRobin,
}

/// One of the backplanes and fibres between two boards.
fn backplane() -> LinkSpec {
    LinkSpec {
        rate: Some(Rate::from_bits_per_second(8_000_000)),
        framing: Framing::Datakit,
        delay: Span::from_micros(5),
        discipline: DisciplineSpec::fifo(Limit::Bytes(1 << 16)),
        ..LinkSpec::default()
    }
}

/// The T1 trunk behind a board.
fn trunk(board: Board) -> LinkSpec {
    let limit = Limit::Bytes(32 << 10);
    let plain = LinkSpec {
        rate: Some(Rate::from_bits_per_second(1_544_000)),
        framing: Framing::T1_LAPD,
        delay: Span::from_millis(1),
        discipline: DisciplineSpec::fifo(limit),
        ..LinkSpec::default()
    };
    // Fifo sizes and times for each byte: Hawley 1989 §1.4, §2.2.
    let processor = |output_first| TrunkProcessor {
        input_fifo: Size::from_bytes(4096),
        input_per_byte: ByteTime::from_picos(1_412_500),
        output_per_byte: ByteTime::from_picos(1_231_250),
        output_first,
    };
    let with = |output_first| LinkSpec {
        output_buffer: Size::from_bytes(1024),
        processor: Some(processor(output_first)),
        ..plain.clone()
    };
    match board {
        Board::Hardware => plain,
        Board::Fifo => with(true),
        Board::RoundRobin => {
            let discipline = RoundRobinSettings { limit, quantum: 64 }.into();
            LinkSpec { discipline, ..with(false) }
        }
    }
}

/// The path with its channels, ready to run.
pub struct Datakit {
    network: Network,
    links: Vec<LinkId>,
    routes: Vec<RouteId>,
    length: Time,
}

impl Datakit {
    /// Builds it.
    pub fn new(board: Board, length: Time, switches: Switches) -> Result<Datakit> {
        let mut network = Network::new(Seed(1));
        switches.apply(&mut network)?;
        let spec = |place| if place == TRUNK { trunk(board) } else { backplane() };
        let links: Vec<LinkId> =
            (0..LINKS).map(|place| network.add_link(&spec(place), &place.to_string())).collect();
        let routes = (0..CHANNELS).map(|it| network.add_route(Channel(it), &links)).collect();
        Ok(Datakit { network, links, routes, length })
    }

    /// Runs it to the end.
    pub fn run(&mut self) -> Result<Outcome> {
        let stagger = INTERVAL.as_nanos() / CHANNELS;
        for channel in 0..CHANNELS {
            self.network.set_timer(Time::from_nanos(channel * stagger), channel);
        }
        let mut outcome = Outcome::default();
        while let Some(event) = self.network.next(self.length) {
            match event {
                Event::Timer(channel) => self.send(channel),
                Event::Arrived(_) => outcome.delivered += 1,
                Event::Lost(..) => outcome.dropped += 1,
            }
        }
        self.network.end_record()?;
        outcome.hops = self.links.iter().map(|&it| self.network.counts(it).delivered).sum();
        Ok(outcome)
    }

    fn send(&mut self, channel: u64) {
        let route = self.routes[channel as usize];
        for number in 0..BURST {
            // The trailer is two control envelopes and a block's length.
            let (size, controls) = if number + 1 < BURST { (SIZE, 0) } else { (4, 2) };
            self.network.inject(Parcel {
                route,
                size,
                controls,
                ecn: Ecn::NotEct,
                tag: channel,
                trace: None,
            });
        }
        self.network.set_timer(self.network.now() + INTERVAL, channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bursts but those sent last come through, whatever the board.
    #[test]
    fn all_that_is_sent_comes_through() {
        let length = Time::from_nanos(1_000_000_000);
        for board in [Board::Hardware, Board::Fifo, Board::RoundRobin] {
            let mut path = Datakit::new(board, length, Switches::default()).unwrap();
            let outcome = path.run().unwrap();
            let sent = CHANNELS * u64::from(BURST) * (length - Time::ZERO).as_nanos()
                / INTERVAL.as_nanos();
            assert_eq!(outcome.dropped, 0, "{board:?}");
            assert!(outcome.delivered <= sent + u64::from(BURST), "{board:?}: {outcome:?}");
            assert!(outcome.delivered + 4 * u64::from(BURST) > sent, "{board:?}: {outcome:?}");
        }
    }
}

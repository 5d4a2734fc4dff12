//! Shared media against their rules and their theory.

mod broadcast;
mod csma_cd;
mod eased;
mod fddi;
mod half_duplex;
mod laws;
mod leaf_spine;
mod text;
mod token_ring;
mod wideband;

use trunkline_core::{Cause, Channel, DropCause, Packet, Rate, Seed, Span, Time};
use trunkline_path::medium::{AccessSpec, Heard, StationId};
use trunkline_path::{DisciplineSpec, Framing, Medium, MediumSpec};

type P = Packet<u64>;

/// A medium of `kind` whose stations keep `queue`.
fn spec(kind: &str, keys: &str, rate: u64, delay: Span, queue: &str) -> MediumSpec {
    let spec = MediumSpec {
        rate: Some(Rate::from_bits_per_second(rate)),
        framing: Framing::None,
        delay,
        discipline: queue.parse::<DisciplineSpec>().unwrap(),
        access: AccessSpec::read(kind, keys).unwrap(),
    };
    spec.check().unwrap();
    spec
}

fn micros(n: u64) -> Time {
    Time::from_nanos(n * 1000)
}

fn packet(size: u32, at: Time, body: u64) -> P {
    Packet::new(Channel(1), size, at, body)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("s{index:03}")).collect()
}

/// When the last bit left its station.
fn departed(heard: &Heard<P>) -> Time {
    heard.release.before(heard.packet.ledger.get(Cause::Propagate))
}

/// A medium, and what came of what it was given.
struct Trial {
    medium: Medium<P>,
    heard: Vec<Heard<P>>,
    dropped: Vec<(StationId, P, DropCause)>,
}

impl Trial {
    fn new(spec: &MediumSpec, seed: u64, stations: &[String]) -> Trial {
        let stations: Vec<&str> = stations.iter().map(String::as_str).collect();
        let medium = Medium::new(spec, Seed(seed), "m", &stations);
        Trial { medium, heard: Vec::new(), dropped: Vec::new() }
    }

    fn offer(&mut self, at: Time, from: usize, to: usize, size: u32, body: u64) {
        self.run(at);
        self.medium.offer(at, StationId(from), StationId(to), packet(size, at, body));
    }

    /// Everything that happens until `until`.
    fn run(&mut self, until: Time) {
        while let Some(at) = self.medium.next_event().filter(|&at| at <= until) {
            self.medium.advance(at);
            self.heard.extend(std::iter::from_fn(|| self.medium.take(at)));
        }
        self.dropped.extend(self.medium.dropped());
    }

    fn finish(&mut self) {
        self.run(Time::NEVER);
    }

    /// Keeps `count` stations supplied with frames of `size` bytes until `until`: each has two at first, and another for
    /// each that is heard or given up.
    fn saturate(&mut self, count: usize, size: u32, until: Time) {
        let mut body = 0;
        let mut next = |trial: &mut Trial, at: Time, station: usize| {
            body += 1;
            let to = StationId((station + 1) % count);
            trial.medium.offer(at, StationId(station), to, packet(size, at, body));
        };
        for station in (0..count).chain(0..count) {
            next(self, Time::ZERO, station);
        }
        while let Some(at) = self.medium.next_event().filter(|&at| at <= until) {
            self.medium.advance(at);
            let mut done = Vec::new();
            while let Some(heard) = self.medium.take(at) {
                done.push(heard.from.0);
                self.heard.push(heard);
            }
            let lost: Vec<_> = self.medium.dropped().collect();
            done.extend(lost.iter().map(|(station, ..)| station.0));
            self.dropped.extend(lost);
            done.into_iter().for_each(|station| next(self, at, station));
        }
    }
}

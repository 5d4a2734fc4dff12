//! Runs a discipline at a steady load, for counting its instructions for each packet:
//!
//! ```text
//! valgrind --tool=callgrind discipline_cost round-robin:quantum=500 100000 1000000
//! ```
//!
//! Arguments: a discipline in its command-line form, the number of channels, the number of packets,
//! and optionally `overflow`. The queue is filled with two packets for each channel; then each step brings one
//! packet on a channel drawn at random and serves one, so that channels come and go. With `overflow` the
//! queue is at its limit and each step brings two. A run with 0 packets gives the cost of filling, and
//! `none` in place of a discipline that of drawing channels and making packets.

use std::hint::black_box;
use std::process::ExitCode;
use trunkline_core::{Channel, Packet, Seed, Stream, Time};
use trunkline_path::{AnyDiscipline, Discipline, DisciplineSpec, Drops, Limit, aal5_cells};

/// User bytes of each packet.
const SIZE: u32 = 500;
const USAGE: &str = "usage: discipline_cost none|KIND[:key=value,…] CHANNELS PACKETS [overflow]";

struct Load {
    /// `None` if only the load itself is to be counted.
    discipline: Option<AnyDiscipline<Packet<()>>>,
    channels: Stream,
    count: u64,
    drops: Drops<Packet<()>>,
}

impl Load {
    fn new(text: &str, count: u64, overflow: bool) -> Result<Load, String> {
        let (channels, drops) = (Seed(1).stream("channels"), Drops::default());
        if text == "none" {
            return Ok(Load { discipline: None, channels, count, drops });
        }
        let limit = Limit::Packets(if overflow { 2 * count } else { 1 << 40 });
        let mut spec = DisciplineSpec::parse(text, limit).map_err(|error| error.to_string())?;
        if spec.set_limit(limit).is_err() {
            let cells = Limit::Cells(limit.amount() * aal5_cells(SIZE));
            spec.set_limit(cells).map_err(|error| error.to_string())?;
        }
        Ok(Load {
            discipline: Some(AnyDiscipline::new(&spec, Seed(1), "cost")),
            channels,
            count,
            drops,
        })
    }

    fn arrive(&mut self, channel: u64) {
        let mut packet = Packet::new(Channel(channel), SIZE, Time::ZERO, ());
        packet.band = (channel % 8) as u8;
        match &mut self.discipline {
            Some(discipline) => discipline.enqueue(Time::ZERO, packet, &mut self.drops),
            None => drop(black_box(packet)),
        }
        self.drops.drain().for_each(drop);
    }

    /// Serves pieces until a packet is complete.
    fn serve(&mut self) {
        let Some(discipline) = &mut self.discipline else { return };
        while let Some(service) = discipline.dequeue(Time::ZERO, &mut self.drops) {
            if service.packet.is_some() {
                return;
            }
        }
    }

    fn run(&mut self, packets: u64, arrivals: u64) {
        for channel in (0..self.count).chain(0..self.count) {
            self.arrive(channel);
        }
        self.steady(packets, arrivals);
    }

    /// The part that counts: not inlined, so that callgrind can be told to collect only here
    /// (`--toggle-collect='*Load*steady*'`).
    #[inline(never)]
    fn steady(&mut self, packets: u64, arrivals: u64) {
        for _ in 0..packets {
            for _ in 0..arrivals {
                let channel = self.channels.below(self.count);
                self.arrive(channel);
            }
            self.serve();
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(text), Some(channels), Some(packets)) = (arguments.first(), numbers(1), numbers(2))
    else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let overflow = arguments.get(3).is_some_and(|word| word == "overflow");
    match Load::new(text, channels.max(1), overflow) {
        Ok(mut load) => load.run(packets, if overflow { 2 } else { 1 }),
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

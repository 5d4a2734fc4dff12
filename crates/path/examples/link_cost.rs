//! Runs one link as a simulator does, for counting its instructions for each packet:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*steady*' link_cost fifo 1000000
//! ```
//!
//! Arguments: a discipline in its command-line form, the number of packets, and optionally the gap between
//! packets in nanoseconds, of which 1333 is a load of 0.9. Packets of 1500 bytes go over 10 Gbit/s and
//! 1 ms, from 100 channels in turn. Without valgrind it prints the time that each took.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;
use trunkline_core::{Carried, Cause, Channel, Metered, Rate, Seed, Span, Time};
use trunkline_path::{DisciplineSpec, Limit, Link, LinkSpec};

/// User bytes of each packet.
const SIZE: u32 = 1500;
const USAGE: &str = "usage: link_cost KIND[:key=value,…] PACKETS [GAP]";

/// As small as a simulator's packet: it keeps no ledger of its own.
#[derive(Debug)]
struct Value {
    entered: Time,
    size: u32,
    flow: u32,
    waited: Span,
    copies: u8,
}

impl Metered for Value {
    fn size(&self) -> u32 {
        self.size
    }
    fn channel(&self) -> Channel {
        Channel(u64::from(self.flow))
    }
}

impl Carried for Value {
    fn entered(&self) -> Time {
        self.entered
    }
    fn book(&mut self, _: Cause, span: Span) {
        self.waited += span;
    }
    fn copies(&self) -> u8 {
        self.copies
    }
    fn set_copies(&mut self, copies: u8) {
        self.copies = copies;
    }
}

fn link(discipline: &str) -> Result<Link<Value>, String> {
    let limit = Limit::Packets(1000);
    let discipline = DisciplineSpec::parse(discipline, limit).map_err(|error| error.to_string())?;
    let rate = Some(Rate::from_bits_per_second(10_000_000_000));
    let spec = LinkSpec { rate, discipline, delay: Span::from_millis(1), ..LinkSpec::default() };
    Ok(Link::new(&spec, Seed(1), "link", Time::ZERO))
}

/// The part that counts: not inlined, so that callgrind can be told to collect only here.
#[inline(never)]
fn steady(link: &mut Link<Value>, from: u64, packets: u64, gap: u64) -> u64 {
    let mut delivered = 0;
    for index in from..from + packets {
        let at = Time::from_nanos(index * gap);
        let flow = (index % 100) as u32;
        link.offer(at, Value { entered: at, size: SIZE, flow, waited: Span::ZERO, copies: 1 });
        let until = at + Span::from_nanos(gap);
        while let Some(next) = link.next_event().filter(|&next| next < until) {
            link.advance(next);
            if let Some(arrived) = link.take(next) {
                black_box(&arrived.packet);
                delivered += 1;
            }
        }
        if link.has_dropped() {
            link.dropped().for_each(drop);
        }
    }
    delivered
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(kind), Some(packets)) = (arguments.first(), number(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut link = match link(kind) {
        Ok(link) => link,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(2);
        }
    };
    let gap = number(2).unwrap_or(1333);
    let begun = Instant::now();
    let delivered = steady(&mut link, 0, packets, gap);
    let each = begun.elapsed().as_nanos() as f64 / packets.max(1) as f64;
    println!("{delivered} delivered, {each:.1} ns each, {} bytes a link", size_of::<Link<Value>>());
    ExitCode::SUCCESS
}

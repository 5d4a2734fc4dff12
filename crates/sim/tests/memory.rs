//! What a datagram costs in memory when no sample is kept, and a frame that a cluster's medium gives up: nothing. The only test
//! of its program, so that nobody else allocates.

use cap::Cap;
use std::alloc::System;
use trunkline_scenario::Scenario;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Runs so many datagrams of 125 bytes. Returns the most memory that there has been at a time, in bytes.
fn peak(datagrams: u32, samples: &str) -> usize {
    let text = format!(
        "samples = {samples}\nstop_after = \"24h\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\n\
         [[traffic]]\nname = \"paced\"\nfrom = \"a\"\nto = \"b\"\nkind = \"paced\"\nsize = 125\n\
         rate = \"1Mbit/s\"\nduration = \"{datagrams}ms\"\ntransport = {{ kind = \"udp\" }}\n"
    );
    let scenario = Scenario::parse(&text, "memory.toml").unwrap().remove(0);
    let run = trunkline_sim::run(&scenario).unwrap();
    assert_eq!(run.traffic[0].samples.count(), u64::from(datagrams));
    MEMORY.max_allocated()
}

/// Runs a cluster whose stations' queues overflow for so many messages of each node. Returns the most memory that there has
/// been at a time, in bytes, and the frames that were given up.
fn crowded(messages: u32) -> (usize, u64) {
    let text = format!(
        "samples = \"none\"\nstop_after = \"24h\"\n[[cluster]]\nname = \"c\"\nkind = \"fddi\"\n\
         rate = \"100Mbit/s\"\nlimit = \"40kB\"\nnodes = 4\nprotocol = \"traditional\"\n\
         test = {{ kind = \"flood\", words = 1000, events = {messages} }}\n"
    );
    let scenario = Scenario::parse(&text, "memory.toml").unwrap().remove(0);
    let run = trunkline_sim::run(&scenario).unwrap();
    (MEMORY.max_allocated(), run.traffic[0].packets.dropped)
}

#[test]
fn memory_does_not_grow_with_datagrams_that_are_not_kept() {
    let (before, few) = crowded(100);
    let (after, many) = crowded(1000);
    assert!(many > few + 1000, "{few} {many}");
    assert!(after < 2 * before, "{before} {after}: {few} {many}");
    let few = peak(20_000, "\"none\"");
    let many = peak(200_000, "\"none\"");
    assert!(many < few + few / 10 + 65_536, "{few} {many}");
    // Shows that the measure sees samples if they are kept.
    assert!(peak(20_000, "\"all\"") > many + 20_000 * 50);
}

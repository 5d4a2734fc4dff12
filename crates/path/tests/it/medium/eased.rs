//! Media with one thing better: turns that cost nothing, another rate, buffers without limit.

use super::spec;
use trunkline_core::{Rate, Span};
use trunkline_path::medium::AccessSpec;

const MILLI: Span = Span::from_millis(1);

fn access(kind: &str, keys: &str) -> AccessSpec {
    AccessSpec::read(kind, keys).unwrap()
}

#[test]
fn a_bus_without_overheads_takes_the_place_of_turns() {
    let free = |kind: &str, keys: &str| spec(kind, keys, 10_000_000, MILLI, "fifo").without_turns();
    let bus = access("bus", "order=turns");
    for (kind, keys) in [("half-duplex", ""), ("half-duplex", "turnaround=1s"), ("wideband", "")] {
        let found = free(kind, keys).unwrap();
        assert_eq!((found.access, found.delay), (bus, MILLI), "{kind} {keys}");
    }
    // Round a ring a frame and its answer go together.
    for kind in ["token-ring", "fddi"] {
        let found = free(kind, "").unwrap();
        assert_eq!((found.access, found.delay), (bus, Span::from_micros(500)), "{kind}");
    }
    let found = free("bus", "overhead=1us,burst=64").unwrap();
    assert_eq!(found.access, access("bus", "burst=64"));
}

#[test]
fn turns_that_cost_nothing_are_left() {
    for (kind, delay) in [("bus", MILLI), ("leaf-spine", MILLI), ("half-duplex", Span::ZERO)] {
        let medium = spec(kind, "", 10_000_000, delay, "fifo");
        assert_eq!(medium.without_turns(), None, "{kind}");
    }
    // Who is next of those that wait is no cost.
    assert!(spec("csma-cd", "", 10_000_000, Span::ZERO, "fifo").without_turns().is_some());
}

#[test]
fn all_rates_of_a_medium_grow_together() {
    let faster = |kind: &str, keys: &str| spec(kind, keys, 10_000_000, MILLI, "fifo").faster(3);
    let fabric = faster("leaf-spine", "trunk_rate=40mbit");
    assert_eq!(fabric.rate, Some(Rate::from_bits_per_second(30_000_000)));
    assert_eq!(fabric.access, access("leaf-spine", "trunk_rate=120mbit"));
    assert_eq!(faster("wideband", "").access, access("wideband", "usable=9018,datagrams=6"));
    assert_eq!(faster("fddi", "ttrt=5ms").access, access("fddi", "ttrt=5ms"));
}

#[test]
fn a_fabric_without_limits_has_room_in_switches_too() {
    let fabric = spec("leaf-spine", "buffer=9000,headroom=300", 1_000_000, MILLI, "fifo:limit=3kB");
    let free = fabric.unlimited(1 << 30);
    assert_eq!(free.access, access("leaf-spine", "buffer=1073741824"));
    assert_eq!(free.discipline, spec("bus", "", 1, MILLI, "fifo:limit=1GiB").discipline);
    assert_eq!((free.rate, free.delay), (fabric.rate, fabric.delay));
}

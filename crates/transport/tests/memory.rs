//! The memory of a flow: 1 KB, and 32 octets for each packet in flight
//! (`reference/simulator-benchmarks.md`). The only test of its program, so that nobody else allocates.

use cap::Cap;
use std::alloc::System;
use std::sync::Arc;
use trunkline_core::{Span, Time};
use trunkline_transport::Extent;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Segment, Settings, Tcp};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const FLOWS: usize = 500;

/// Up to `segments` segments of the first end arrive, and all answers.
fn exchange(now: Time, [one, two]: &mut [Tcp<Extent>; 2], segments: usize) {
    for _ in 0..segments {
        let Some(segment) = one.transmit(now) else { break };
        two.receive(now, segment);
        while let Some(data) = two.take() {
            two.consumed(now, u64::from(data.len));
        }
        while let Some(answer) = two.transmit(now) {
            one.receive(now, answer);
        }
    }
}

#[test]
fn flows_are_small_and_segments_cost_nothing() {
    // The least of three: the thread that started this one may allocate meanwhile too.
    let [idle, full] = (0..3).map(|_| octets_of_a_flow()).reduce(least).expect("three");
    assert!(idle <= 1024, "{idle} octets for a flow before it sends");
    // Room for records grows by doubling: at most twice what is in flight.
    assert!(full <= 1024 + 2 * 32 * 10, "{full} octets with ten packets in flight");
    println!("{} octets for an end, {idle} for a flow, {full} sending", size_of::<Tcp<Extent>>());
    nothing_is_allocated_for_a_segment_that_arrives();
}

fn least(one: [usize; 2], other: [usize; 2]) -> [usize; 2] {
    [one[0].min(other[0]), one[1].min(other[1])]
}

/// Before it sends, and with ten packets in flight.
fn octets_of_a_flow() -> [usize; 2] {
    assert!(size_of::<Segment<Extent>>() <= 80, "{}", size_of::<Segment<Extent>>());
    // The benchmark's flow: NewReno, 1448 octets in a segment, an initial window of ten.
    let settings = Settings { mss: 1448, sack: false, timestamps: false, ..Settings::default() };
    let settings = Arc::new(settings.with_congestion(Algorithm::NEW_RENO));
    let before = MEMORY.allocated();
    let mut flows: Vec<[Tcp<Extent>; 2]> = Vec::with_capacity(FLOWS);
    for _ in 0..FLOWS {
        let mut ends =
            [0; 2].map(|_| Tcp::connected(Arc::clone(&settings), &settings).expect("good"));
        ends[0].offer(Time::ZERO, Extent::new(0, u32::MAX));
        flows.push(ends);
    }
    let idle = (MEMORY.allocated() - before) / FLOWS;
    for ends in &mut flows {
        while ends[0].transmit(Time::ZERO).is_some() {}
        assert_eq!(ends[0].in_flight(), 10 * 1448);
    }
    let full = (MEMORY.allocated() - before) / FLOWS;
    [idle, full]
}

fn nothing_is_allocated_for_a_segment_that_arrives() {
    let settings = Settings::default().with_congestion(Algorithm::NEW_RENO);
    let mut ends = [0; 2].map(|_| Tcp::connected(settings, &settings).expect("good"));
    ends[0].offer(Time::ZERO, Extent::new(0, u32::MAX));
    exchange(Time::ZERO, &mut ends, 20_000);
    let (before, received) = (MEMORY.total_allocated(), ends[1].received());
    exchange(Time::ZERO + Span::from_millis(10), &mut ends, 10_000);
    assert!(ends[1].received() > received + 14_000_000);
    assert_eq!(MEMORY.total_allocated() - before, 0, "the flow had all that it needs");
}

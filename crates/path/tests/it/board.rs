//! A trunk board's processor between its two fifos.

use proptest::prelude::*;
use trunkline_core::{Cause, Channel, DropCause, Packet, Rate, Seed, Size, Span, Time};
use trunkline_path::discipline::RoundRobinSettings;
use trunkline_path::{
    ByteTime, Change, DisciplineSpec, Framing, Limit, Link, LinkSpec, TrunkProcessor,
};

/// 22.6 and 19.7 cycles of 62.5 ns (Hawley 1989 §1.4).
const IN: ByteTime = ByteTime::from_picos(1_412_500);
const OUT: ByteTime = ByteTime::from_picos(1_231_250);
/// User bytes of a packet of the backplane.
const UNIT: u32 = 16;

fn round_robin(quantum: u32) -> DisciplineSpec {
    RoundRobinSettings { limit: Limit::Bytes(1 << 20), quantum }.into()
}

/// The daughter board of the report, with a line that takes no time.
fn board(discipline: DisciplineSpec) -> LinkSpec {
    let processor = TrunkProcessor {
        input_fifo: Size::from_bytes(4000),
        input_per_byte: IN,
        output_per_byte: OUT,
        output_first: false,
    };
    let spec = LinkSpec {
        discipline,
        output_buffer: Size::from_bytes(1000),
        processor: Some(processor),
        ..LinkSpec::default()
    };
    spec.check().unwrap();
    spec
}

fn packet(channel: u64, size: u32, at: Time) -> Packet<usize> {
    Packet::new(Channel(channel), size, at, 0)
}

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Lets the link work until nothing is left, and gives back what came out.
fn drain(link: &mut Link<Packet<usize>>) -> Vec<(Time, Packet<usize>)> {
    link.advance(nanos(1 << 50));
    std::iter::from_fn(|| link.take(nanos(1 << 50)))
        .map(|delivered| (delivered.release, delivered.packet))
        .collect()
}

/// How long a short message waits in memory behind a quantum of each of `channels` channels: from when it is
/// there, at the end of a turn, until the processor begins to move it.
///
/// The line takes no time, so that a packet is released when the processor has moved it; the input fifo
/// costs nothing, so that the message is in memory as soon as the processor is free.
fn in_memory_wait(quantum: u32, channels: u64) -> Span {
    let mut spec = board(round_robin(quantum));
    spec.processor.as_mut().unwrap().input_per_byte = ByteTime::default();
    spec.processor.as_mut().unwrap().input_fifo = Size::from_bytes(1 << 20);
    let mut link = Link::new(&spec, Seed(1), "trunk", Time::ZERO);
    for index in 0..channels * 200 {
        link.offer(Time::ZERO, packet(1 + index % channels, UNIT, Time::ZERO));
    }
    // Long enough for everybody to have had a turn, and not at the end of one.
    let round = channels * u64::from(quantum) * OUT.as_picos() / 1000;
    let came = nanos(2 * round + 7777);
    link.offer(came, packet(99, UNIT, came));
    let out = drain(&mut link);
    let at = out.iter().position(|(_, packet)| packet.channel == Channel(99)).unwrap();
    let turn_ends = (0..at)
        .find(|&index| out[index].0 > came && out[index].1.channel != out[index + 1].1.channel)
        .unwrap();
    let begun = out[at - 1].0;
    // The message itself took one packet's time.
    let moved = u64::from(UNIT) * OUT.as_picos() / 1000;
    assert!(
        out[at].0 - begun >= Span::from_nanos(moved)
            && out[at].0 - begun <= Span::from_nanos(moved + 1)
    );
    begun - out[turn_ends].0
}

#[test]
fn table2_of_hawley_1989() {
    let published = include_str!("../published/table2_queueing_delay.csv");
    let mut compared = 0;
    for row in published.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let (quantum, channels): (u32, u64) =
            (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        let delay: f64 = cells[2].parse().unwrap();
        let ours = in_memory_wait(quantum, channels);
        let formula = channels * u64::from(quantum) * OUT.as_picos() / 1000;
        assert!(ours.abs_diff(Span::from_nanos(formula)) <= Span::from_nanos(1), "{row}: {ours}");
        // Printed in whole microseconds, some rounded down and some up.
        assert!((ours.as_micros_f64() - delay).abs() < 1.0, "{row}: {ours}");
        compared += 1;
    }
    assert_eq!(compared, 20);
}

#[test]
fn a_burst_of_35_kilo_envelopes_overflows_the_input_fifo() {
    // §1.4: 4 kE, filled at 800 kE/s and emptied at 710 kE/s, lasts for a burst of 35.6 kE. A packet of 18
    // envelopes comes every 22.5 µs.
    let mut link = Link::new(&board(round_robin(64)), Seed(1), "trunk", Time::ZERO);
    let mut sent = 0u64;
    while !link.has_dropped() {
        let at = nanos(sent * 22_500);
        link.offer(at, packet(1 + sent % 4, UNIT, at));
        sent += 1;
    }
    assert!((33_000..37_000).contains(&(18 * sent)), "{} envelopes", 18 * sent);
    assert_eq!(link.dropped().map(|(_, cause)| cause).collect::<Vec<_>>(), [DropCause::QueueLimit]);
}

#[test]
fn the_fifo_program_fills_the_output_first() {
    // Two packets at once: the first needs 18 envelopes in and 16 bytes out.
    let first_release = |output_first: bool| {
        let mut spec = board(DisciplineSpec::fifo(Limit::Bytes(500_000)));
        spec.processor.as_mut().unwrap().output_first = output_first;
        let mut link = Link::new(&spec, Seed(1), "trunk", Time::ZERO);
        (0..2).for_each(|_| link.offer(Time::ZERO, packet(1, UNIT, Time::ZERO)));
        drain(&mut link)[0].0.as_nanos()
    };
    assert_eq!(first_release(true), 25_425 + 19_700);
    assert_eq!(first_release(false), 2 * 25_425 + 19_700);
}

#[test]
fn the_output_fifo_holds_quanta_with_their_channel_numbers() {
    // A line of 1 kB/s: 1000 envelopes hold 15 quanta of 64 and 2, and one more is on the line.
    let mut spec = board(round_robin(64));
    spec.rate = Some(Rate::from_bits_per_second(8_000));
    spec.processor.as_mut().unwrap().input_fifo = Size::from_bytes(100_000);
    let mut link = Link::new(&spec, Seed(1), "trunk", Time::ZERO);
    for index in 0..400 {
        link.offer(Time::ZERO, packet(1 + index % 2, 64, Time::ZERO));
    }
    // 400 quanta in, 16 out, and a message of another channel: it is in front of all that is still in memory.
    let later = nanos(50_000_000);
    link.offer(later, packet(9, 16, later));
    let out = drain(&mut link);
    let place = out.iter().position(|(_, packet)| packet.channel == Channel(9)).unwrap();
    assert_eq!(
        place,
        16 + 2,
        "behind what is in the fifo and on the line, and a turn of each channel"
    );
}

#[test]
fn pieces_of_a_turn_share_a_t1_frame() {
    // 64 bytes of channel 1 in four packets, then 64 of channel 2: two frames of 72 bytes at 192 kB/s.
    let mut spec = board(round_robin(64));
    spec.rate = Some(Rate::from_bits_per_second(1_544_000));
    spec.framing = Framing::T1_LAPD;
    let mut link = Link::new(&spec, Seed(1), "trunk", Time::ZERO);
    for index in 0..8 {
        link.offer(Time::ZERO, packet(1 + index / 4, UNIT, Time::ZERO));
    }
    let out = drain(&mut link);
    let started = 8 * 25_425 + 19_700;
    let last = out.last().unwrap().0.as_nanos();
    assert_eq!(last, started + 144 * 1_000_000 / 192);
}

#[test]
fn a_turn_is_moved_in_one_go() {
    // What comes while the processor moves a quantum waits in the input fifo until that is done.
    let mut link = Link::new(&board(round_robin(64)), Seed(1), "trunk", Time::ZERO);
    (0..4).for_each(|_| link.offer(Time::ZERO, packet(1, UNIT, Time::ZERO)));
    let in_memory = 4 * 25_425;
    let later = nanos(in_memory + 1000);
    link.offer(later, packet(2, UNIT, later));
    let releases: Vec<u64> = drain(&mut link).iter().map(|(at, _)| at.as_nanos()).collect();
    let turn = (1..=4).map(|pieces| in_memory + pieces * 19_700);
    assert_eq!(releases, turn.chain([in_memory + 5 * 19_700 + 25_425]).collect::<Vec<_>>());
}

/// What comes, `gap` nanoseconds after what came before: channel and size, or a change of the rate.
type Script = Vec<(u64, Result<(u64, u32), u64>)>;

fn any_script() -> impl Strategy<Value = Script> {
    let arrive = (1u64..5, prop_oneof![4 => 1u32..=16, 1 => 1u32..300]).prop_map(Ok);
    let step = prop_oneof![20 => arrive, 1 => (100_000u64..10_000_000).prop_map(Err)];
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..60_000], step), 1..200)
}

fn any_board() -> impl Strategy<Value = LinkSpec> {
    let limit =
        prop_oneof![(1u64..5000).prop_map(Limit::Bytes), (1u64..100).prop_map(Limit::Packets)];
    let kinds = ["round-robin:quantum=64", "round-robin:quantum=10", "fifo", "drr:quantum=100"];
    let kinds = kinds.into_iter().chain(["two-lists:quantum=64,frame=256", "codel", "fq-codel"]);
    let kind = prop::sample::select(kinds.collect::<Vec<_>>());
    let rate = prop::option::of(100_000u64..10_000_000);
    let framing = prop::sample::select(vec![Framing::None, Framing::T1_LAPD, Framing::Datakit]);
    let times = (0u64..3_000_000, 0u64..3_000_000);
    (kind, limit, rate, framing, 18u64..5000, 1u64..1500, times, any::<bool>()).prop_map(
        |(kind, limit, rate, framing, input, output, times, output_first)| LinkSpec {
            rate: rate.map(Rate::from_bits_per_second),
            framing,
            delay: Span::from_micros(300),
            discipline: DisciplineSpec::parse(kind, limit).unwrap(),
            output_buffer: Size::from_bytes(output),
            processor: Some(TrunkProcessor {
                input_fifo: Size::from_bytes(input),
                input_per_byte: ByteTime::from_picos(times.0),
                output_per_byte: ByteTime::from_picos(times.1),
                output_first,
            }),
            ..LinkSpec::default()
        },
    )
}

/// Deliveries and drops. With `step` the link is looked after so often, and conservation is asserted then.
fn play(
    spec: &LinkSpec,
    script: &Script,
    step: Option<u64>,
) -> (Vec<(Time, Packet<usize>)>, Vec<usize>) {
    let mut link = Link::new(spec, Seed(1), "trunk", Time::ZERO);
    let (mut delivered, mut dropped, mut now) = (Vec::new(), Vec::new(), 0);
    for (id, (gap, what)) in script.iter().enumerate() {
        for between in (now + 1..now + gap).step_by(step.unwrap_or(u64::MAX) as usize) {
            if step.is_some() {
                link.advance(nanos(between));
            }
        }
        now += gap;
        match *what {
            Ok((channel, size)) => {
                let packet = Packet::new(Channel(channel), size, nanos(now), id);
                link.offer(nanos(now), packet);
            }
            Err(rate) => {
                link.schedule(nanos(now), Change::Rate(Some(Rate::from_bits_per_second(rate))));
            }
        }
        if step.is_some() {
            delivered.extend(
                std::iter::from_fn(|| link.take(nanos(now))).map(|it| (it.release, it.packet)),
            );
            dropped.extend(link.dropped().map(|(packet, _)| packet.body));
            let inside = link.backlog().packets + link.in_flight() as u64;
            assert_eq!(link.counts().in_flight(), inside, "conservation");
        }
    }
    delivered.extend(drain(&mut link));
    dropped.extend(link.dropped().map(|(packet, _)| packet.body));
    assert_eq!((link.counts().in_flight(), link.next_event()), (0, None));
    (delivered, dropped)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_once_in_order_booked_exactly_and_never_early(
        spec in any_board(), script in any_script(), step in 1_000u64..50_000,
    ) {
        let (delivered, dropped) = play(&spec, &script, None);
        let mut ids: Vec<usize> = delivered.iter().map(|(_, packet)| packet.body).collect();
        ids.extend(&dropped);
        ids.sort_unstable();
        let came = (0..script.len()).filter(|&id| script[id].1.is_ok());
        prop_assert_eq!(ids, came.collect::<Vec<_>>(), "each once");
        for channel in 1..5 {
            let mut order = delivered.iter().filter(|(_, packet)| packet.channel == Channel(channel));
            prop_assert!(order.by_ref().map(|(_, packet)| packet.body).is_sorted(), "order");
        }
        let processor = spec.processor.unwrap();
        for (release, packet) in &delivered {
            let spent = *release - packet.entered;
            prop_assert_eq!(packet.ledger.total(), spent, "booked");
            prop_assert_eq!(packet.ledger.get(Cause::Propagate), spec.delay);
            let envelopes = u64::from(packet.size + 2 * packet.size.div_ceil(16));
            let moved = envelopes * processor.input_per_byte.as_picos()
                + u64::from(packet.size) * processor.output_per_byte.as_picos();
            prop_assert!(spent + Span::from_nanos(2) >= spec.delay + Span::from_nanos(moved / 1000), "early");
        }
        let sliced = play(&spec, &script, Some(step));
        prop_assert_eq!((delivered, dropped), sliced, "however time is sliced");
    }
}

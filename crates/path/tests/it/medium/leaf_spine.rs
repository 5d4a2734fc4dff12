//! The leaf-spine fabric: times by hand, nothing lost without a cause, order, fairness.

use super::*;
use proptest::prelude::*;
use trunkline_core::Ecn;

const RATE: u64 = 100_000_000_000;
/// Of 1500 bytes at 100 Gbit/s.
const FRAME: u64 = 120;
const CABLE: u64 = 100;
const SWITCH: u64 = 500;
/// The next to the last bit of a frame may leave a switch after it has come there.
const HOP: u64 = CABLE + SWITCH;

fn nanos(n: u64) -> Time {
    Time::from_nanos(n)
}

/// A fabric with cables of 100 ns and station queues that are never full.
fn fabric(keys: &str, stations: usize) -> Trial {
    let spec = spec("leaf-spine", keys, RATE, Span::from_nanos(CABLE), "fifo:limit=100000p");
    Trial::new(&spec, 1, &names(stations))
}

#[test]
fn an_idle_fabric_takes_serialisation_cables_and_switches() {
    let cases = [
        ("same leaf", 1, "", 2 * FRAME + HOP + CABLE),
        ("over a spine", 5, "", 4 * FRAME + 3 * HOP + CABLE),
        (
            "over a faster spine",
            5,
            ",trunk_rate=400gbit",
            2 * (FRAME + FRAME / 4) + 3 * HOP + CABLE,
        ),
    ];
    for (name, to, keys, expected) in cases {
        let mut trial = fabric(&format!("hosts_per_leaf=4,spines=2{keys}"), 8);
        trial.offer(nanos(10), 0, to, 1500, 0);
        trial.finish();
        let [heard] = &trial.heard[..] else { panic!("{name}: {:?}", trial.heard) };
        assert_eq!(heard.release.since(nanos(10)), Span::from_nanos(expected), "{name}");
        let ledger = &heard.packet.ledger;
        assert_eq!(ledger.get(Cause::Queue), Span::ZERO, "{name}");
        assert_eq!(ledger.get(Cause::Propagate), heard.way, "{name}");
        assert_eq!(ledger.get(Cause::Transmit), heard.nominal, "{name}");
    }
}

/// A lone flow gets the whole rate however a switch holds back, if the buffer holds what is under way.
#[test]
fn a_lone_flow_has_the_line_rate() {
    for flow in ["credit", "pause", "drop"] {
        let mut trial = fabric(&format!("hosts_per_leaf=4,flow={flow},buffer=64KiB"), 8);
        (0..1000).for_each(|body| trial.offer(Time::ZERO, 0, 6, 1500, body));
        trial.finish();
        assert_eq!(trial.heard.len(), 1000, "{flow}");
        let last = trial.heard[999].release;
        assert_eq!(last, nanos(1003 * FRAME + 3 * HOP + CABLE), "{flow}");
    }
}

/// With credits for one frame only the next is sent when the credit is back.
#[test]
fn a_credit_goes_round_once_for_each_buffer_of_frames() {
    for (buffer, per_round) in [(1500, 1), (1000, 1), (3000, 2), (4499, 2)] {
        let mut trial = fabric(&format!("buffer={buffer}"), 2);
        (0..8).for_each(|body| trial.offer(Time::ZERO, 0, 1, 1500, body));
        trial.finish();
        let round = FRAME + HOP + FRAME + CABLE;
        for (index, heard) in (0u64..).zip(&trial.heard) {
            let sent = index / per_round * round + index % per_round * FRAME;
            let expected = nanos(sent + 2 * FRAME + HOP + CABLE);
            assert_eq!(heard.release, expected, "{buffer} {index}");
        }
        assert_eq!(trial.heard.len(), 8);
    }
}

/// Offers `frames` frames of each of the others to station 0 at once.
fn incast(trial: &mut Trial, stations: usize, frames: u64) {
    for round in 0..frames {
        for from in 1..stations {
            trial.offer(Time::ZERO, from, 0, 1500, round);
        }
    }
    trial.finish();
}

#[test]
fn incast_loses_nothing_with_credits_or_pauses_and_keeps_the_port_busy() {
    for (flow, buffer) in [("credit", 20_000), ("pause", 40_000)] {
        let keys = format!("hosts_per_leaf=8,spines=2,flow={flow},buffer={buffer}");
        let mut trial = fabric(&keys, 32);
        incast(&mut trial, 32, 60);
        assert_eq!((trial.heard.len(), trial.dropped.len()), (31 * 60, 0), "{flow}");
        let most = trial.medium.most_held().unwrap();
        assert!(most > buffer / 2 && most <= buffer, "{flow}: {most}");
        // Station 0's own cable is never idle from the first frame on.
        let ends = trial.heard.iter().map(|it| it.release).max().unwrap();
        assert_eq!(ends, nanos(FRAME + HOP + 31 * 60 * FRAME + CABLE), "{flow}");
    }
}

#[test]
fn incast_loses_what_finds_no_room_with_drop_and_counts_it() {
    let mut trial = fabric("hosts_per_leaf=32,flow=drop,buffer=30000", 32);
    incast(&mut trial, 32, 60);
    assert_eq!(trial.heard.len() + trial.dropped.len(), 31 * 60);
    assert!(trial.dropped.iter().all(|it| it.2 == DropCause::QueueLimit));
    // 20 of the frames that come first fill the buffer, and each time that the others come one has left.
    assert_eq!(trial.heard.len(), 20 + 59);
    assert_eq!(trial.medium.most_held(), Some(30_000));
}

/// A headroom too small for the cable loses frames, as it does in a switch.
#[test]
fn a_headroom_too_small_loses_frames() {
    let lost = |headroom: &str| {
        let mut trial = fabric(&format!("flow=pause,buffer=40000{headroom}"), 16);
        incast(&mut trial, 16, 100);
        trial.dropped.len()
    };
    assert_eq!(lost(""), 0);
    assert_eq!(lost(",headroom=11750"), 0, "700 ns at 100 Gbit/s and two frames of 1500 bytes");
    assert!(lost(",headroom=3000") > 0);
}

/// A port serves its inputs in turn: those that always have something to send get as much each.
#[test]
fn inputs_share_a_port_evenly() {
    for flow in ["credit", "pause"] {
        let keys = format!("hosts_per_leaf=8,flow={flow},buffer=40000");
        let mut trial = fabric(&keys, 8);
        let counts = [0, 300, 100, 100, 200, 100, 100, 0];
        for (from, &frames) in counts.iter().enumerate() {
            (0..frames).for_each(|body| trial.offer(Time::ZERO, from, 7, 1500, body));
        }
        trial.finish();
        let mut heard = [0u32; 8];
        trial.heard.iter().take(480).for_each(|it| heard[it.from.0] += 1);
        assert_eq!(heard, [0, 80, 80, 80, 80, 80, 80, 0], "{flow}");
    }
}

#[test]
fn a_port_marks_from_the_threshold_on_and_only_whom_it_may() {
    for flow in ["drop", "credit"] {
        let keys = format!("flow={flow},buffer=1MiB,ecn_threshold=15000");
        let mut trial = fabric(&keys, 3);
        for body in 0..100 {
            for (from, ecn) in [(1, Ecn::Ect0), (2, Ecn::NotEct)] {
                let packet = Packet { ecn, ..packet(1500, Time::ZERO, body) };
                trial.medium.offer(Time::ZERO, StationId(from), StationId(0), packet);
            }
        }
        trial.finish();
        let marked = trial.heard.iter().filter(|it| it.packet.ecn == Ecn::Ce).count() as u64;
        assert_eq!(trial.medium.counts(StationId(1)).marked, marked);
        assert_eq!(trial.medium.counts(StationId(2)).marked, 0);
        // The queue grows by one frame in each frame's time: 10 wait when the tenth of each has come.
        assert_eq!(marked, 90, "{flow}");
    }
}

/// When, from whom, to whom (none: all), and how many bytes.
type Asked = (u64, usize, Option<usize>, u32);

fn traffic() -> impl Strategy<Value = Vec<Asked>> {
    let to = prop::option::weighted(0.8, 1usize..9);
    prop::collection::vec((0u64..300, 0usize..9, to, 64u32..3000), 1..150)
}

fn shape() -> impl Strategy<Value = (u32, u32, u32)> {
    (1u32..6, 1u32..4, 3000u32..9000)
}

fn carried(keys: &str, asked: &[Asked]) -> Trial {
    let mut trial = fabric(keys, 9);
    let mut at = 0;
    for (body, &(gap, from, step, size)) in asked.iter().enumerate() {
        at += gap;
        match step {
            Some(step) => trial.offer(nanos(at), from, (from + step) % 9, size, body as u64),
            None => {
                trial.run(nanos(at));
                let packet = packet(size, nanos(at), body as u64);
                trial.medium.offer_to_all(nanos(at), StationId(from), packet);
            }
        }
    }
    trial.finish();
    trial
}

proptest! {
    /// With credits and with pauses everybody hears everything, frames for all among them, in order for each pair, and no
    /// buffer holds more than it has.
    #[test]
    fn nothing_is_lost_or_stuck_without_drops(
        asked in traffic(), (hosts, spines, buffer) in shape(), pauses: bool,
    ) {
        // 700 ns at 100 Gbit/s and two frames of 3000 bytes.
        let (flow, more) = if pauses { ("pause,headroom=14750", 14_750) } else { ("credit", 0) };
        let keys = format!("hosts_per_leaf={hosts},spines={spines},flow={flow},buffer={}", buffer + more);
        let trial = carried(&keys, &asked);
        prop_assert_eq!(trial.dropped.len(), 0);
        let hearers = |it: &Asked| if it.2.is_some() { 1 } else { 8 };
        prop_assert_eq!(trial.heard.len(), asked.iter().map(hearers).sum::<usize>());
        prop_assert!(trial.medium.most_held().unwrap() <= u64::from(buffer + more));
        for (from, to) in (0..9).flat_map(|from| (0..9).map(move |to| (from, to))) {
            let bodies: Vec<u64> = trial.heard.iter()
                .filter(|it| (it.from.0, it.to.0) == (from, to))
                .map(|it| it.packet.body)
                .filter(|&body| asked[body as usize].2.is_some())
                .collect();
            prop_assert!(bodies.is_sorted(), "{} to {}: {:?}", from, to, bodies);
        }
    }

    /// With drop everything is heard or lost with its cause, and the counts and ledgers add up.
    #[test]
    fn what_is_lost_is_counted(asked in traffic(), (hosts, spines, buffer) in shape()) {
        let keys = format!("hosts_per_leaf={hosts},spines={spines},flow=drop,buffer={buffer}");
        let trial = carried(&keys, &asked);
        let (mut heard, mut lost) = (0, 0);
        for station in 0..9 {
            let counts = trial.medium.counts(StationId(station));
            prop_assert_eq!(counts.in_flight(), 0);
            heard += counts.delivered;
            lost += counts.dropped_by(DropCause::QueueLimit);
        }
        prop_assert_eq!((trial.heard.len(), trial.dropped.len()), (heard as usize, lost as usize));
        prop_assert!(trial.medium.most_held().unwrap() <= u64::from(buffer));
        for it in &trial.heard {
            prop_assert_eq!(it.packet.ledger.total(), it.release.since(it.packet.entered));
        }
    }
}

#[test]
fn a_fabric_that_cannot_be_is_refused() {
    let refused = |keys: &str, rate: Option<Rate>| {
        let spec = MediumSpec {
            rate,
            framing: Framing::None,
            delay: Span::from_micros(1),
            discipline: "fifo".parse().unwrap(),
            access: AccessSpec::read("leaf-spine", keys).unwrap(),
        };
        spec.check().unwrap_err().to_string()
    };
    let rate = Some(Rate::from_bits_per_second(RATE));
    assert!(refused("", None).contains("give the medium one"));
    // 2.5 us at 100 Gbit/s are 31250 bytes.
    let text = refused("flow=pause,buffer=40000", rate);
    assert!(
        text.starts_with("a headroom of 49682 bytes leaves nothing of a buffer of 40000"),
        "{text}"
    );
    assert!(refused("spines=0", rate).starts_with("spines is 0"));
    let error = AccessSpec::read("leaf-spine", "flow=lossless").unwrap_err().to_string();
    assert_eq!(error, "key 'flow': 'lossless' is not one of credit, pause, drop");
}

/// What a station sends to one and to all comes to each in the order of sending, whatever spines there are: whoever stands on
/// the order between two stations (the careful message layer does) sees no difference between the two.
#[test]
fn frames_for_one_and_for_all_keep_their_order() {
    for keys in ["", "flow=drop,buffer=100000", "flow=pause,buffer=100000"] {
        let keys = format!("hosts_per_leaf=3,spines=4,trunk_rate=40mbit,{keys}");
        let spec = spec("leaf-spine", &keys, 100_000_000, Span::from_micros(1), "fifo:limit=1000p");
        let mut trial = Trial::new(&spec, 1, &names(12));
        for body in 0..200u64 {
            let at = micros(body * 20);
            for from in [0, 4, 11] {
                trial.run(at);
                match body % 3 {
                    0 => trial.medium.offer_to_all(at, StationId(from), packet(900, at, body)),
                    _ => {
                        let to = StationId((from + 1 + body as usize % 11) % 12);
                        trial.medium.offer(at, StationId(from), to, packet(60, at, body));
                    }
                }
            }
        }
        trial.finish();
        let mut last = std::collections::BTreeMap::new();
        for heard in &trial.heard {
            let before = last.insert((heard.from, heard.to), heard.packet.body);
            let (from, to, body) = (heard.from, heard.to, heard.packet.body);
            assert!(before.is_none_or(|before| before < body), "{keys}: {from:?} {to:?} {body}");
        }
        assert!(trial.heard.len() > 2000);
    }
}

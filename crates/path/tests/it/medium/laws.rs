//! What holds for every medium.

use super::*;
use proptest::prelude::*;
use trunkline_path::medium::KINDS;

/// A kind with keys under which to try it.
fn trials() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().flat_map(|kind| kind.trials.iter().map(|keys| (kind.name, *keys))).collect()
}

const QUEUES: [&str; 6] = [
    "fifo:limit=5p",
    "drr:limit=6p",
    "priority:limit=900B",
    "token-bucket:rate=1mbit,burst=2000B,limit=9p",
    "codel:limit=20p",
    "gather:count=3,every=700us,latency=50us,cost=100us,limit=9p",
];

/// When, from which of four stations, to which of the others, and how many bytes.
fn traffic() -> impl Strategy<Value = Vec<(u64, usize, usize, u32)>> {
    prop::collection::vec((0u64..400, 0usize..4, 1usize..4, 1u32..300), 1..80)
}

fn carried(spec: &MediumSpec, seed: u64, asked: &[(u64, usize, usize, u32)]) -> Trial {
    let stations = ["d", "b", "c", "a"].map(String::from);
    let mut trial = Trial::new(spec, seed, &stations);
    let mut at = 0;
    for (body, &(gap, from, step, size)) in asked.iter().enumerate() {
        at += gap;
        trial.offer(micros(at), from, (from + step) % 4, size, body as u64);
    }
    trial.finish();
    trial
}

proptest! {
    #[test]
    fn nothing_is_lost_in_silence_and_the_ledger_sums(
        asked in traffic(), which: prop::sample::Index, queue in 0..QUEUES.len(), delay in 0u64..20_000, seed: u64,
    ) {
        let (kind, keys) = *which.get(&trials());
        let spec = spec(kind, keys, 8_000_000, Span::from_nanos(delay), QUEUES[queue]);
        let trial = carried(&spec, seed, &asked);
        prop_assert_eq!(trial.heard.len() + trial.dropped.len(), asked.len());
        for station in 0..4 {
            let counts = trial.medium.counts(StationId(station));
            prop_assert_eq!(counts.in_flight(), 0);
            prop_assert_eq!(counts.entered, asked.iter().filter(|it| it.1 == station).count() as u64);
            prop_assert_eq!(trial.medium.backlog(StationId(station)).packets, 0);
        }
        for it in &trial.heard {
            prop_assert_eq!(it.packet.ledger.total(), it.release.since(it.packet.entered));
            let (_, from, step, size) = asked[it.packet.body as usize];
            prop_assert_eq!((it.from.0, it.to.0, it.packet.size), (from, (from + step) % 4, size));
        }
    }

    /// On one channel for all the frames of a station stay in order, and no two frames that are heard share the channel,
    /// unless bursts of several lie among one another.
    #[test]
    fn one_sends_at_a_time_and_in_order(
        asked in traffic(), which: prop::sample::Index, delay in 0u64..20_000, seed: u64,
    ) {
        let channels: Vec<_> = trials()
            .into_iter()
            .filter(|(kind, keys)| *kind != "leaf-spine" && !keys.contains("burst"))
            .collect();
        let (kind, keys) = *which.get(&channels);
        let spec = spec(kind, keys, 8_000_000, Span::from_nanos(delay), "fifo:limit=30p");
        let trial = carried(&spec, seed, &asked);
        let mut heard: Vec<_> = trial.heard.iter().collect();
        heard.sort_by_key(|it| departed(it));
        for pair in heard.windows(2) {
            let bits = u64::from(pair[1].packet.size) * 1000;
            prop_assert!(departed(pair[1]).since(departed(pair[0])).as_nanos() >= bits);
        }
        for from in 0..4 {
            let bodies: Vec<u64> =
                heard.iter().filter(|it| it.from.0 == from).map(|it| it.packet.body).collect();
            prop_assert!(bodies.is_sorted());
        }
    }

    /// The same seed gives the same times. A station's number means nothing but its place in a ring, on a leaf or in a bus's order.
    #[test]
    fn the_same_seed_gives_the_same_run(
        asked in traffic(), which: prop::sample::Index, delay in 0u64..20_000, seed: u64,
    ) {
        let (kind, keys) = *which.get(&trials());
        let spec = spec(kind, keys, 8_000_000, Span::from_nanos(delay), "fifo:limit=9p");
        let times = |trial: Trial| -> Vec<(u64, Time)> {
            trial.heard.iter().map(|it| (it.packet.body, it.release)).collect()
        };
        let once = times(carried(&spec, seed, &asked));
        prop_assert_eq!(&once, &times(carried(&spec, seed, &asked)));
        if KINDS.iter().any(|it| it.name == kind && !it.stations_alike) {
            return Ok(());
        }
        // The stations declared in another order.
        let stations = ["a", "b", "c", "d"].map(String::from);
        let place = |station: usize| [3, 1, 2, 0][station];
        let mut trial = Trial::new(&spec, seed, &stations);
        let mut at = 0;
        for (body, &(gap, from, step, size)) in asked.iter().enumerate() {
            at += gap;
            trial.offer(micros(at), place(from), place((from + step) % 4), size, body as u64);
        }
        trial.finish();
        prop_assert_eq!(&once, &times(trial));
    }

    /// Whatever is written as the keys of a kind is read, or refused with a line that says why.
    #[test]
    fn keys_are_read_or_refused(which in 0..KINDS.len(), text in "[a-z_=,0-9.us]{0,40}") {
        if let Err(error) = AccessSpec::read(KINDS[which].name, &text) {
            let line = error.to_string();
            prop_assert!(!line.is_empty() && !line.contains('\n'), "{}", line);
        }
    }
}

/// A batch that is full goes then, although its station had asked for the medium from when the batch would be old.
#[test]
fn what_a_packet_makes_ready_does_not_wait_for_what_was_asked_before() {
    for (kind, keys) in trials() {
        let spec = spec(kind, keys, 8_000_000, Span::from_micros(3), "gather:count=2,every=10s");
        let mut trial = carried(&spec, 1, &[]);
        trial.offer(Time::ZERO, 0, 1, 100, 0);
        trial.offer(Time::ZERO + Span::from_secs(1), 0, 1, 100, 1);
        trial.finish();
        let late = trial.heard.iter().map(|it| it.release).max();
        let bound = Time::ZERO + Span::from_secs(3);
        assert!(trial.heard.len() == 2 && late < Some(bound), "{kind}:{keys}: {late:?}");
    }
}

#[test]
fn wrong_keys_are_named() {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let wrong = |kind: &str, keys: &str| AccessSpec::read(kind, keys).unwrap_err().to_string();
    assert_eq!(wrong("csma", ""), format!("'csma' is no medium: use one of {}", kinds.join(", ")));
    assert_eq!(
        wrong("half-duplex", "turn=1us"),
        "half-duplex has no key 'turn': its own are turnaround"
    );
    assert!(wrong("half-duplex", "turnaround=x").starts_with("key 'turnaround': 'x'"));
    let far = AccessSpec::read("half-duplex", "turnaround=11s").unwrap();
    let spec = |access, queue: &str| MediumSpec {
        rate: Some(Rate::from_bits_per_second(10_000_000)),
        framing: Framing::Ethernet,
        delay: Span::from_micros(30),
        discipline: queue.parse().unwrap(),
        access,
    };
    let wrong = |spec: MediumSpec| spec.check().unwrap_err().to_string();
    assert_eq!(wrong(spec(far, "fifo")), "turnaround is 11s: it must lie between 0ns and 10s");
    let near = AccessSpec::read("half-duplex", "").unwrap();
    let pieces = wrong(spec(near, "round-robin"));
    assert!(pieces.contains("whole frames"), "{pieces}");
}

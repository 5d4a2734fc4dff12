//! Frames for all stations, on every kind of medium.

use super::*;
use trunkline_path::medium::KINDS;

/// Every other station hears such a frame once, and it is counted once as sent.
#[test]
fn every_other_station_hears_a_frame_for_all_once() {
    for (kind, keys) in KINDS.iter().flat_map(|kind| kind.trials.iter().map(move |it| (kind, it))) {
        let spec = spec(kind.name, keys, 10_000_000, Span::from_micros(5), "fifo:limit=1000p");
        let mut trial = Trial::new(&spec, 1, &names(5));
        for from in [2, 0, 2] {
            let at = Time::ZERO;
            trial.medium.offer_to_all(at, StationId(from), packet(100, at, from as u64));
            trial.offer(at, from, 1, 60, 9);
        }
        trial.finish();
        let mut heard: Vec<(usize, usize)> = trial
            .heard
            .iter()
            .filter(|it| it.packet.body != 9)
            .map(|it| (it.from.0, it.to.0))
            .collect();
        heard.sort_unstable();
        let expected = [
            (0, 1),
            (0, 2),
            (0, 3),
            (0, 4),
            (2, 0),
            (2, 0),
            (2, 1),
            (2, 1),
            (2, 3),
            (2, 3),
            (2, 4),
            (2, 4),
        ];
        assert_eq!(heard, expected, "{} {keys}", kind.name);
        let counts = trial.medium.counts(StationId(2));
        assert_eq!((counts.entered, counts.duplicated, counts.delivered), (4, 6, 10));
        assert_eq!(counts.in_flight(), 0);
    }
}

/// On a ring the frame comes to each station as it passes, and the ledgers say so.
#[test]
fn a_frame_for_all_comes_round_a_ring_station_by_station() {
    for kind in ["fddi", "token-ring"] {
        let delay = Span::from_micros(40);
        let spec = spec(kind, "station_latency=1us", 100_000_000, delay, "fifo:limit=1000p");
        let mut trial = Trial::new(&spec, 1, &names(4));
        trial.medium.offer_to_all(Time::ZERO, StationId(1), packet(125, Time::ZERO, 0));
        trial.finish();
        let order: Vec<usize> = trial.heard.iter().map(|it| it.to.0).collect();
        assert_eq!(order, [2, 3, 0], "{kind}");
        let ways: Vec<u64> = trial.heard.iter().map(|it| it.way.as_nanos()).collect();
        assert_eq!(ways, [11_000, 22_000, 33_000], "{kind}");
        for heard in &trial.heard {
            assert_eq!(heard.packet.ledger.total(), heard.release.since(Time::ZERO), "{kind}");
        }
    }
}

#[test]
fn a_station_alone_is_heard_by_nobody() {
    let spec = spec("half-duplex", "", 1_000_000, Span::ZERO, "fifo:limit=10p");
    let mut trial = Trial::new(&spec, 1, &names(1));
    trial.medium.offer_to_all(Time::ZERO, StationId(0), packet(100, Time::ZERO, 0));
    trial.finish();
    assert_eq!((trial.heard.len(), trial.medium.counts(StationId(0)).entered), (0, 0));
}

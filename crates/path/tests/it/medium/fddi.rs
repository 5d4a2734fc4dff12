//! The timed token: rotations, throughput and shares against theory.

use super::*;

/// Nanoseconds of a frame of 4500 bytes at 100 Mbit/s, the longest of FDDI, and of a token of 88 bits.
const FRAME: u64 = 360_000;
const TOKEN: u64 = 880;
const TTRT: u64 = 8_000_000;

/// A ring of 20 km.
fn fddi(keys: &str) -> MediumSpec {
    spec("fddi", keys, 100_000_000, Span::from_micros(100), "fifo:limit=1000000p")
}

/// Nanoseconds once round a ring of so many stations.
fn latency(count: usize) -> u64 {
    100_000 + 1000 * count as u64
}

/// Fills the queues of `count` stations and runs for half a second.
fn saturated(keys: &str, count: usize, busy: usize, size: u32) -> Trial {
    let mut trial = Trial::new(&fddi(keys), 1, &names(count));
    let frames = 500_000_000 / (u64::from(size) * 80) + 2;
    for body in 0..frames {
        for station in 0..busy {
            let (from, to) = (StationId(station), StationId((station + 1) % count));
            trial.medium.offer(Time::ZERO, from, to, packet(size, Time::ZERO, body));
        }
    }
    trial.run(micros(500_000));
    trial
}

/// The bits heard a second as a share of the rate, after the first tenth of a second.
fn utilisation(trial: &Trial) -> f64 {
    let counted = trial.heard.iter().filter(|it| departed(it) > micros(100_000));
    counted.map(|it| f64::from(it.packet.size) * 8.0).sum::<f64>() / 0.4 / 1e8
}

/// When a station's turns begin: departures of frames that do not follow right behind another of its own.
fn turns(trial: &Trial, station: usize, frame: u64) -> Vec<u64> {
    let own = trial.heard.iter().filter(|it| it.from == StationId(station));
    let times: Vec<u64> = own.map(|it| departed(it).as_nanos()).collect();
    let first = |pair: &[u64]| (pair[1] - pair[0] > frame).then_some(pair[1]);
    times.windows(2).filter_map(first).collect()
}

/// Saturated stations carry n (T - L) / (n T + L) of the rate, T being TTRT and L the ring's latency (Jain, "Performance
/// analysis of FDDI token ring networks", 1990); with many stations that is (T - L) / T. A token is counted with L, and
/// each station may exceed its time by the last frame.
#[test]
fn saturated_stations_carry_what_theory_says() {
    for (count, ttrt) in [(1, 8), (2, 8), (10, 8), (50, 8), (10, 4), (10, 165)] {
        let trial = saturated(&format!("ttrt={ttrt}ms"), count.max(2), count, 125);
        let (n, t) = (count as f64, f64::from(ttrt) * 1e6);
        let lost = (latency(count.max(2)) + TOKEN * count as u64) as f64;
        let theory = n * (t - lost) / (n * t + lost);
        let found = utilisation(&trial);
        assert!((found / theory - 1.0).abs() < 0.01, "{count}, {ttrt} ms: {found}, {theory}");
        assert!(count < 10 || (found / ((t - lost) / t) - 1.0).abs() < 0.02, "{found}");
    }
}

/// No rotation is longer than 2 TTRT, whatever the load, and the mean is no longer than TTRT (Sevcik and Johnson 1987).
#[test]
fn no_rotation_takes_twice_the_target() {
    // With synchronous time each of them sends in each rotation, so that its turns are those of the token.
    for (keys, busy) in [("", 1), ("synchronous=80%", 10), ("synchronous=80%", 3)] {
        let trial = saturated(keys, 10, busy, 4500);
        for station in 0..busy {
            let turns = turns(&trial, station, FRAME);
            let gaps: Vec<u64> = turns.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.len() > 20, "{keys} {busy}: {}", gaps.len());
            assert!(gaps.iter().all(|&gap| gap <= 2 * TTRT), "{keys} {busy}: {gaps:?}");
            let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
            assert!(mean <= TTRT + FRAME, "{keys} {busy}: {mean}");
        }
    }
}

/// What fits into its synchronous time a station sends in each rotation, though others take all that is left.
#[test]
fn synchronous_time_is_kept_under_load() {
    // Ten stations with 720 us each: two frames of 360 us.
    let trial = saturated("synchronous=90%", 10, 10, 4500);
    let by = |station| trial.heard.iter().filter(|it| it.from == StationId(station)).count();
    let counts: Vec<usize> = (0..10).map(by).collect();
    let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    assert!(least >= 2 * (500 / 8), "{counts:?}");
    assert!(most - least <= most / 4, "{counts:?}");
}

/// The stations' shares are equal in the long run: whoever finds the token late has it early the next time.
#[test]
fn saturated_stations_have_equal_shares() {
    let trial = saturated("", 5, 5, 1000);
    let by = |station| trial.heard.iter().filter(|it| it.from == StationId(station)).count();
    let counts: Vec<usize> = (0..5).map(by).collect();
    let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    assert!(most * 8 <= least * 10, "{counts:?}");
}

/// A frame that comes to an idle ring waits once round at most.
#[test]
fn an_idle_ring_makes_a_frame_wait_half_a_round() {
    let mut trial = Trial::new(&fddi(""), 1, &names(10));
    let mut chance = Seed(7).stream("arrivals");
    let frames = 4000;
    for body in 0..frames {
        let at = Time::from_nanos(body * 3_000_000 + chance.below(1_000_000));
        trial.offer(at, (body as usize * 7) % 10, (body as usize * 7 + 1) % 10, 1000, body);
    }
    trial.finish();
    let waits = trial.heard.iter().map(|it| it.packet.ledger.get(Cause::Queue).as_nanos() as f64);
    let (sum, most) = waits.fold((0.0, 0.0f64), |(sum, most), it| (sum + it, most.max(it)));
    let (mean, round) = (sum / frames as f64, latency(10) as f64);
    assert!(most < round && (mean / round - 0.5).abs() < 0.02, "{mean} of {round}");
}

#[test]
fn a_ring_longer_than_its_target_is_refused() {
    let access = AccessSpec::read("fddi", "ttrt=90us").unwrap();
    let wrong = MediumSpec { access, ..fddi("") }.check_stations(2).unwrap_err().to_string();
    assert!(wrong.contains("a ttrt of 90us leaves no time"), "{wrong}");
    // 100 us of fibre, and 1 us for each station.
    let ring = fddi("ttrt=150us");
    assert_eq!(ring.check_stations(49), Ok(()));
    let wrong = ring.check_stations(50).unwrap_err().to_string();
    assert!(wrong.contains("a ttrt of 150us leaves no time"), "{wrong}");
}

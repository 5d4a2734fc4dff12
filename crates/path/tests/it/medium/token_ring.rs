//! The token ring: cycle time, throughput and waiting time against theory.

use super::*;

/// Bits of a frame and of a token at 16 Mbit/s, in nanoseconds: 1000 bytes, 24 bits.
const FRAME: u64 = 500_000;
const TOKEN: u64 = 1500;

fn ring(keys: &str) -> MediumSpec {
    spec("token-ring", keys, 16_000_000, Span::from_micros(40), "fifo")
}

/// Departures of the frames of the first station, in nanoseconds.
fn cycles(trial: &Trial) -> Vec<u64> {
    let own = trial.heard.iter().filter(|it| it.from == StationId(0));
    let times: Vec<u64> = own.map(|it| departed(it).as_nanos()).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// With one frame a turn the cycle is N (F + T) + L: frames, tokens, and the ring's latency L = N l + d.
#[test]
fn the_cycle_of_a_saturated_ring_is_exact() {
    for count in [1, 2, 10, 100] {
        let mut trial = Trial::new(&ring("hold=0s,early_release=true"), 1, &names(count));
        trial.saturate(count, 1000, micros(4_000_000));
        let latency = 250 * count as u64 + 40_000;
        let cycle = count as u64 * (FRAME + TOKEN) + latency;
        let seen = cycles(&trial);
        assert!(seen.len() > 50 && seen.iter().all(|&it| it == cycle), "{count}: {cycle} {seen:?}");
    }
}

/// Without early release a frame shorter than the ring keeps the token for its latency: N (max(F, L) + T) + L.
#[test]
fn a_short_frame_holds_the_token_until_it_has_come_round() {
    for (count, size) in [(1, 10), (2, 10), (10, 10), (100, 10), (10, 1000)] {
        let mut trial = Trial::new(&ring("hold=0s"), 1, &names(count));
        trial.saturate(count, size, micros(2_000_000));
        let (frame, latency) = (u64::from(size) * 500, 250 * count as u64 + 40_000);
        let cycle = count as u64 * (frame.max(latency) + TOKEN) + latency;
        assert!(cycles(&trial).iter().all(|&it| it == cycle), "{count} stations, {size} bytes");
    }
}

/// A station that may hold the token for 10 ms sends 20 frames of 0.5 ms a turn.
#[test]
fn a_station_sends_what_ends_in_its_holding_time() {
    for count in [1, 2, 10, 100] {
        let mut trial = Trial::new(&ring("early_release=true"), 1, &names(count));
        // More frames are needed at a station than a turn sends.
        for body in 0..60 * count {
            trial.medium.offer(
                Time::ZERO,
                StationId(body % count),
                StationId((body + 1) % count),
                packet(1000, Time::ZERO, body as u64),
            );
        }
        trial.finish();
        let latency = 250 * count as u64 + 40_000;
        let own: Vec<u64> = trial
            .heard
            .iter()
            .filter(|it| it.from == StationId(0))
            .map(|it| departed(it).as_nanos())
            .collect();
        assert_eq!(own.len(), 60);
        let cycle = count as u64 * (20 * FRAME + TOKEN) + latency;
        assert_eq!((own[20] - own[0], own[40] - own[20]), (cycle, cycle), "{count}");
        assert_eq!(own[19] - own[0], 19 * FRAME);
    }
}

/// A frame that comes to an idle ring waits for the token: at most once round, and half of that in the mean.
#[test]
fn an_idle_ring_makes_a_frame_wait_half_a_round() {
    for count in [1, 2, 10, 100] {
        let mut trial = Trial::new(&ring("early_release=true"), 1, &names(count));
        let mut chance = Seed(7).stream("arrivals");
        let frames = 4000;
        for body in 0..frames {
            let at = Time::from_nanos(body * 10_000_000 + chance.below(1_000_000));
            trial.offer(
                at,
                (body as usize * 7) % count,
                (body as usize * 7 + 1) % count,
                1000,
                body,
            );
        }
        trial.finish();
        let latency = (250 * count as u64 + 40_000) as f64;
        let waits =
            trial.heard.iter().map(|it| it.packet.ledger.get(Cause::Queue).as_nanos() as f64);
        let (sum, most) = waits.fold((0.0, 0.0f64), |(sum, most), it| (sum + it, most.max(it)));
        let mean = sum / frames as f64;
        assert!(
            most < latency && (mean / latency - 0.5).abs() < 0.02,
            "{count}: {mean} of {latency}"
        );
    }
}

/// Mean wait of Poisson arrivals at symmetric stations that send one frame a turn (Takagi, "Queuing analysis of polling
/// models", ACM Computing Surveys 20(1), 1988): W = (N λ b² + r (N + ρ)) / (2 (1 − ρ − N λ r)), b = F + T, r = L / N.
#[test]
fn waiting_times_are_those_of_cyclic_polling() {
    for (count, load) in [(1, 0.5), (2, 0.3), (10, 0.5), (10, 0.7)] {
        let mut trial = Trial::new(&ring("hold=0s,early_release=true"), 1, &names(count));
        let b = (FRAME + TOKEN) as f64;
        let latency = (250 * count as u64 + 40_000) as f64;
        let (n, r) = (count as f64, latency / count as f64);
        let rate = load / (n * b);
        let mut chance = Seed(11).stream("arrivals");
        let (mut at, frames) = (0.0, 200_000);
        for body in 0..frames {
            at += -(1.0 - chance.unit()).ln() / (n * rate);
            let station = chance.below(count as u64) as usize;
            trial.offer(Time::from_nanos(at as u64), station, (station + 1) % count, 1000, body);
        }
        trial.finish();
        let waits =
            trial.heard.iter().map(|it| it.packet.ledger.get(Cause::Queue).as_nanos() as f64);
        let mean = waits.sum::<f64>() / frames as f64;
        let theory = (n * rate * b * b + r * (n + load)) / (2.0 * (1.0 - load - n * rate * r));
        assert!(
            (mean / theory - 1.0).abs() < 0.03,
            "{count} stations, {load}: {mean} against {theory}"
        );
    }
}

//! Carrier sense with collision detection: collisions one by one, and throughput against theory.

use super::*;

/// Ethernet at 10 Mbit/s whose stations are `delay` microseconds apart.
fn ethernet(delay: u64) -> MediumSpec {
    let cable = spec("csma-cd", "", 10_000_000, Span::from_micros(delay), "fifo");
    MediumSpec { framing: Framing::Ethernet, ..cable }
}

/// What the frames that were heard took of the channel, preamble and check sequence included.
fn throughput(delay: u64, count: usize, size: u32) -> f64 {
    let mut trial = Trial::new(&ethernet(delay), 1, &names(count));
    let micros_of_time = 4_000_000;
    trial.saturate(count, size, micros(micros_of_time));
    bits(size) * trial.heard.len() as f64 / (10.0 * micros_of_time as f64)
}

/// Bits of a frame without the gap behind it.
fn bits(size: u32) -> f64 {
    8.0 * (f64::from(size) + 26.0)
}

/// 46 bytes in 84 with header, check sequence, preamble and gap: 67.2 us.
#[test]
fn a_station_that_hears_nobody_sends_at_once() {
    let mut trial = Trial::new(&ethernet(5), 1, &names(3));
    trial.offer(micros(10), 0, 1, 46, 0);
    trial.offer(micros(20), 1, 2, 46, 1);
    trial.finish();
    let seen: Vec<u64> = trial.heard.iter().map(|it| it.release.as_nanos()).collect();
    // The second hears the first from 15 us on, and until 82.2 us with the gap; its own takes 67.2 us, and 5 us to get there.
    assert_eq!(seen, [82_200, 154_400]);
}

/// The second station begins at 13 us, 3 us after the first, which is 5 us away. The first hears it at 18 us and jams for
/// 3.2 us, until 21.2 us. The second hears the first at 15 us, completes its preamble at 19.4 us and jams until 22.6 us.
/// Each waits whole slots of 51.2 us from there, and the gap of 9.6 us after it last heard something.
#[test]
fn who_begins_before_the_first_is_heard_collides() {
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut trial = Trial::new(&ethernet(5), seed, &names(2));
        trial.offer(micros(10), 0, 1, 46, 0);
        trial.offer(micros(13), 1, 0, 46, 1);
        trial.finish();
        let first = &trial.heard[0];
        let start = departed(first).as_nanos() - 67_200;
        firsts.insert((first.from.0, start));
    }
    // With no slot to wait the first begins 9.6 us after it has heard the second until 27.6 us, and the second 9.6 us after
    // it has heard the first until 26.2 us.
    assert!(firsts.contains(&(0, 37_200)), "{firsts:?}");
    assert!(firsts.contains(&(1, 35_800)), "{firsts:?}");
    assert!(firsts.iter().all(|&(_, start)| start >= 35_800));
}

/// Two stations that begin together collide on average 1 + 1/2 + 1/2 1/4 + 1/2 1/4 1/8 + … = 1.64 times: after the nth
/// collision both draw one of 2^n slots. What the winner waits follows from the same draws.
#[test]
fn two_stations_resolve_a_collision_as_the_draws_say() {
    const SLOT: f64 = 51.2;
    const FRAGMENT: f64 = 9.6;
    const GAP: f64 = 9.6;
    fn from_the_end_of(collision: u32) -> f64 {
        if collision > 12 {
            return 0.0;
        }
        let slots = 1u64 << collision.min(10);
        let each = 1.0 / (slots * slots) as f64;
        let wait = |slot: u64| (slot as f64 * SLOT).max(GAP);
        // The lower of two different draws is k for 2 (slots - k - 1) of the pairs.
        let wins: f64 = (0..slots).map(|k| 2.0 * (slots - k - 1) as f64 * each * wait(k)).sum();
        let again = FRAGMENT + from_the_end_of(collision + 1);
        wins + (0..slots).map(|k| each * (wait(k) + again)).sum::<f64>()
    }
    let theory = FRAGMENT + from_the_end_of(1);
    let runs = 20_000;
    let waited = |seed| {
        let mut trial = Trial::new(&ethernet(0), seed, &names(2));
        trial.offer(Time::ZERO, 0, 1, 46, 0);
        trial.offer(Time::ZERO, 1, 0, 46, 1);
        trial.finish();
        trial.heard[0].packet.ledger.get(Cause::Queue).as_micros_f64()
    };
    let mean = (0..runs).map(waited).sum::<f64>() / f64::from(runs as u32);
    assert!((mean / theory - 1.0).abs() < 0.03, "{mean} us against {theory} us");
}

/// Metcalfe and Boggs 1976, §6: E = P / (P + W T), W = (1 - A) / A, A = (1 - 1/Q)^(Q - 1), with the gap of 96 bits that
/// came later. Their stations know Q and try with probability 1/Q in slots that a collision fills.
#[test]
fn the_throughput_of_long_frames_is_that_of_metcalfe_and_boggs() {
    for count in [2usize, 3, 5, 10, 30, 64, 100] {
        let q = count as f64;
        let a = (1.0 - 1.0 / q).powf(q - 1.0);
        let efficiency = bits(1500) / (bits(1500) + 96.0 + (1.0 - a) / a * 512.0);
        let seen = throughput(12, count, 1500);
        assert!((seen / efficiency - 1.0).abs() < 0.05, "{count}: {seen} against {efficiency}");
    }
}

/// The rule of thumb 1 / (1 + 5 a), a the propagation delay in frames, at the greatest distance that the slot allows.
#[test]
fn the_throughput_over_a_long_cable_is_near_the_rule_of_thumb() {
    for count in [10, 30, 64] {
        let a = 25.0 / (bits(1500) / 10.0);
        let seen = throughput(25, count, 1500);
        assert!((seen * (1.0 + 5.0 * a) - 1.0).abs() < 0.05, "{count}: {seen}, a = {a}");
    }
}

/// Of two stations that always have a frame the one that has just sent begins with no collisions counted, the other with
/// all of its own: one sends many frames while the other waits.
#[test]
fn the_station_that_has_sent_captures_the_channel() {
    let mut trial = Trial::new(&ethernet(5), 1, &names(2));
    trial.saturate(2, 1500, micros(4_000_000));
    let from: Vec<usize> = trial.heard.iter().map(|it| it.from.0).collect();
    let turns = from.chunk_by(|one, other| one == other);
    let (turns, longest) = turns.fold((0, 0), |(n, most), turn| (n + 1, most.max(turn.len())));
    let mean = from.len() as f64 / f64::from(turns);
    assert!(mean > 5.0 && longest > 50, "turns of {mean} frames, {longest} at most");
    assert!(!trial.dropped.is_empty(), "no frame was given up");
    assert!(trial.dropped.iter().all(|it| it.2 == DropCause::Collision));
}

/// Below its capacity the channel carries what it is offered.
#[test]
fn a_light_load_is_carried_whole() {
    for (count, load) in [(2, 0.3), (10, 0.3), (10, 0.6), (100, 0.5)] {
        let mut trial = Trial::new(&ethernet(10), 1, &names(count));
        let mut chance = Seed(3).stream("arrivals");
        let (mut at, frames) = (0.0, 20_000);
        for body in 0..frames {
            at += -(1.0 - chance.unit()).ln() * bits(1500) * 100.0 / load;
            let station = chance.below(count as u64) as usize;
            trial.offer(Time::from_nanos(at as u64), station, (station + 1) % count, 1500, body);
        }
        trial.finish();
        let took = departed(trial.heard.last().unwrap()).as_nanos() as f64;
        let seen = trial.heard.len() as f64 * bits(1500) * 100.0 / took;
        assert!((seen / load - 1.0).abs() < 0.02, "{count} stations, {load}: {seen}");
    }
}

/// A frame that collides as often as is allowed is given up, and the next one has its own attempts.
#[test]
fn a_frame_is_given_up_after_so_many_collisions() {
    let cable =
        MediumSpec { access: AccessSpec::read("csma-cd", "attempts=1").unwrap(), ..ethernet(5) };
    let mut trial = Trial::new(&cable, 1, &names(2));
    for body in 0..2 {
        trial.offer(Time::ZERO, 0, 1, 46, body);
    }
    trial.offer(Time::ZERO, 1, 0, 46, 2);
    trial.finish();
    let lost: Vec<u64> = trial.dropped.iter().map(|it| it.1.body).collect();
    assert_eq!((lost, trial.heard.len()), (vec![0, 2], 1));
    assert_eq!(trial.medium.counts(StationId(0)).dropped_by(DropCause::Collision), 1);
}

#[test]
fn a_cable_on_which_collisions_would_be_missed_is_refused() {
    let far = MediumSpec { delay: Span::from_micros(30), ..ethernet(5) };
    assert!(far.check().unwrap_err().to_string().contains("collisions would be missed"));
    let endless = MediumSpec { rate: None, ..ethernet(0) };
    assert!(endless.check().unwrap_err().to_string().contains("give a rate"));
}

/// Nobody would hear a collision in time, and all frames would be lost.
#[test]
fn a_slot_has_a_bit_at_least() {
    let with = |slot: &str| MediumSpec {
        access: AccessSpec::read("csma-cd", slot).unwrap(),
        ..ethernet(0)
    };
    let refused = with("slot_bits=0").check().unwrap_err().to_string();
    assert!(refused.contains("slot_bits"), "{refused}");
    assert_eq!(with("slot_bits=1").check(), Ok(()));
}

//! Whatever the network does, every octet is delivered once, in order, and something is delivered.

use crate::tcp::pair::{Network, Pair, Passing, at, bottleneck, millis};
use proptest::prelude::*;
use trunkline_core::{Seed, Span};
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{MOST_BUFFER, Profile, Recovery, Seq, Settings, Tcp};

fn settings() -> impl Strategy<Value = Settings> {
    let profile = prop::sample::select(Profile::ALL.to_vec());
    let kind = prop::sample::select(Algorithm::ALL.to_vec());
    let recovery = prop::sample::select(vec![Recovery::Tahoe, Recovery::Reno, Recovery::NewReno]);
    let options = any::<[bool; 8]>();
    (profile, kind, recovery, options, 64..1461u32, 1..12u32, 0..200_000u64).prop_map(
        |(profile, congestion, recovery, options, mss, initial_window, buffer)| {
            let [sack, timestamps, scaling, ecn, nagle, prr, rack, undo] = options;
            Settings {
                mss,
                congestion,
                recovery,
                sack,
                timestamps,
                window_scaling: scaling,
                ecn,
                nagle,
                prr,
                rack,
                undo,
                initial_window,
                receive_buffer: u64::from(mss) + buffer,
                // With a third of all lost, somebody gives up after twelve time-outs once in some hundred cases.
                most_timeouts: u8::MAX,
                ..Settings::of(profile)
            }
        },
    )
}

/// Loses, doubles, delays and reorders, in percent; ends after ten minutes, so that a transfer can.
fn chaos(seed: u64, loss: u64, double: u64, spread: u64) -> crate::tcp::pair::Network {
    let mut draw = Seed(seed).stream("chaos");
    Box::new(move |passing: Passing<'_>| {
        let kind = passing.now < at(600_000);
        if kind && draw.below(100) < loss {
            return vec![];
        }
        if kind && draw.below(50) == 0 {
            crate::tcp::pair::mark(passing.segment);
        }
        let mut copies = 1 + u64::from(draw.below(100) < double);
        if !kind {
            copies = 1;
        }
        let late = |draw: &mut trunkline_core::Stream| match kind {
            true => Span::from_micros(10_000 + draw.below(spread * 1000 + 1)),
            false => millis(10),
        };
        (0..copies).map(|_| late(&mut draw)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_octet_arrives_once_and_in_order(
        one in settings(),
        two in settings(),
        numbers in any::<[u32; 2]>(),
        seed in any::<u64>(),
        (loss, double, spread) in (0..35u64, 0..20u64, 0..80u64),
        offers in prop::collection::vec((0..2usize, 1..30_000u32, 0..300u64), 1..8),
        handshake in any::<bool>(),
    ) {
        let numbers = numbers.map(Seq::new);
        let network = chaos(seed, loss, double, spread);
        let mut pair = if handshake {
            Pair::opening([one, two], numbers, network)
        } else {
            let [a, b] = numbers;
            let ends = [
                Tcp::connected(one, &two).unwrap().numbered(a, b),
                Tcp::connected(two, &one).unwrap().numbered(b, a),
            ];
            Pair::of(ends, numbers, network)
        };
        let mut total = [0u64; 2];
        for (end, octets, pause) in offers {
            pair.offer(end, octets);
            total[1 - end] += u64::from(octets);
            pair.run(pair.now + millis(pause));
        }
        pair.close(0);
        pair.close(1);
        let ended = pair.run_to_end(at(10_000_000));
        prop_assert!(ended.is_some(), "{}", pair.state());
        prop_assert_eq!(pair.taken, total);
        prop_assert_eq!(pair.ends.each_ref().map(Tcp::outstanding), [0; 2]);
    }

    #[test]
    fn an_application_that_reads_slowly_is_never_overrun(
        one in settings(),
        two in settings(),
        seed in any::<u64>(),
        bites in prop::collection::vec((1..5000u64, 0..2000u64), 1..40),
    ) {
        let mut pair = Pair::connected([one, two], chaos(seed, 5, 2, 30));
        pair.reads[1] = false;
        pair.offer(0, 100_000);
        pair.close(0);
        pair.close(1);
        let mut done = 0;
        for (bite, pause) in bites {
            pair.run(pair.now + millis(pause));
            let bite = bite.min(pair.taken[1] - done);
            done += bite;
            let held = pair.taken[1] - done;
            prop_assert!(held <= two.receive_buffer, "{held} octets in {}", two.receive_buffer);
            pair.ends[1].consumed(pair.now, bite);
            pair.settle(1);
        }
        pair.reads[1] = true;
        let left = pair.taken[1] - done;
        pair.ends[1].consumed(pair.now, left);
        pair.settle(1);
        prop_assert!(pair.run_to_end(at(10_000_000)).is_some(), "{}", pair.state());
        prop_assert_eq!(pair.taken[1], 100_000);
    }
}

#[test]
fn numbers_wrap_in_the_middle_of_a_long_transfer() {
    let settings = Settings {
        mss: 65_495,
        receive_buffer: MOST_BUFFER,
        send_buffer: MOST_BUFFER,
        ..Settings::default()
    };
    let mut pair = Pair::connected([settings; 2], chaos(3, 0, 0, 0));
    for _ in 0..3 {
        pair.offer(0, u32::MAX);
    }
    pair.run(at(600_000));
    assert_eq!(pair.taken[1], 3 * u64::from(u32::MAX));
    assert_eq!(pair.ends[0].counters().sending.retransmitted, 0);
}

#[test]
fn the_same_seed_gives_the_same_segments() {
    let run = || {
        let linux = Settings::of(Profile::Linux);
        let mut pair = Pair::connected([linux; 2], chaos(11, 3, 2, 15)).traced();
        pair.offer(0, 2_000_000);
        pair.offer(1, 300_000);
        pair.run(at(60_000));
        let trace = pair.trace.take().unwrap();
        (trace.into_iter().map(|sent| (sent.at, sent.segment)).collect::<Vec<_>>(), pair.taken)
    };
    let (first, second) = (run(), run());
    assert!(first.0.len() > 1000 && first.1 == [300_000, 2_000_000]);
    assert!(first == second);
}

/// As long as something is on its way that was lost and sent again, losses are being repaired: a recovery that ends over
/// such a hole goes on as the next one (IsLost(HighACK + 1), RFC 6675 §5), and does not wait for another loss.
#[test]
fn recovery_lasts_until_no_hole_is_left() {
    for (profile, every) in [(Profile::Linux, 7), (Profile::Linux, 31), (Profile::Trunkline, 13)] {
        let mut passed = 0;
        let network = bottleneck(1_500_000, 100, millis(50), move |_| {
            passed += 1;
            passed > 20 && passed % every == 0
        });
        let settings = Settings { mss: 1000, ..Settings::of(profile) };
        let mut pair = Pair::connected([settings; 2], network).traced();
        pair.offer(0, 600_000);
        let mut holes = 0;
        while pair.taken[1] < 600_000 {
            assert!(pair.step(at(60_000)), "{}", pair.state());
            let sent = pair.sent(0);
            let end = sent.iter().map(|it| it.1 + u64::from(it.2)).max().unwrap_or(1);
            let una = end - pair.ends[0].outstanding();
            let hole = sent.iter().filter(|it| it.1 == una && it.2 > 0).count() > 1;
            holes += usize::from(hole);
            let probed = pair.ends[0].counters().sending.tail_probes > 0;
            assert!(probed || !hole || pair.ends[0].recovering(), "{every}: {}", pair.state());
        }
        assert!(holes > 100, "{holes}");
    }
}

/// Segments whose acknowledgements were lost arrived long before the one that tells of them, which answers what was sent
/// again. Their age is no round trip (Karn and Partridge 1987; RFC 6298 §3), with SACK or without.
#[test]
fn lost_acknowledgements_make_no_long_round_trips() {
    for (sack, timestamps) in [(true, true), (true, false), (false, true), (false, false)] {
        let network: Network = Box::new(|passing| {
            let silent = at(500) <= passing.now && passing.now < at(20_000);
            if passing.way == 1 && silent { vec![] } else { vec![millis(50)] }
        });
        let settings = Settings { sack, timestamps, ..Settings::default() };
        let mut pair = Pair::connected([settings; 2], network);
        pair.offer(0, 200_000);
        pair.run(at(490));
        pair.offer(0, 3_000);
        pair.run(at(100_000));
        pair.offer(0, 50_000);
        pair.run(at(200_000));
        assert_eq!(pair.taken[1], 253_000, "{}", pair.state());
        let smoothed = pair.ends[0].smoothed_rtt();
        assert!(smoothed < millis(200), "sack {sack}, stamps {timestamps}: {smoothed}");
    }
}

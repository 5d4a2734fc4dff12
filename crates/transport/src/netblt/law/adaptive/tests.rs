//! Single rules of the law.

use super::*;

/// A law for packets of 1000 bytes, that has a rate, offers and gets three quarters of it, over a round trip of 50 ms.
fn law(rate: u64) -> Adaptive {
    let terms =
        Terms { packet: 940, burst: Burst { size: 100, interval: 100 }, ..Terms::default() };
    let mut law = Adaptive::new(&terms, Dialect::V5);
    (law.rate, law.highest) = (rate, rate);
    (law.offered, law.sent) = (rate * 3 / 4, rate * 3 / 4);
    law.round(Span::from_millis(50));
    law
}

/// Whether losses are taken for the path's own after a stretch of 30 packets, which come so far apart. Each sixth is lost, and its time
/// left empty.
fn learns(law: &mut Adaptive, apart: Span) -> bool {
    for place in (0..30u64).filter(|place| place % 6 != 1) {
        let at = Time::ZERO + apart.scaled(place, 1);
        law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
    }
    law.own_loss.likely(Losses { sent: 100, lost: 50, gaps: 50 }).lost > 0
}

/// What is lost while less comes than was sent, a queue filling with the rest, is lost for want of room. (Three transfers at
/// once took a sixth for the path's own in their first stretch.)
#[test]
fn what_is_lost_while_a_queue_fills_is_not_the_paths_own() {
    // 1.5 MB/s are sent: of these 1.2 MB/s come and a sixth is lost; or 0.8 MB/s come and a sixth is lost.
    assert!(learns(&mut law(2_000_000), Span::from_nanos(667_000)));
    assert!(!learns(&mut law(2_000_000), Span::from_millis(1)));
}

/// What is lost while as much comes of less is not the path's own either, and behind three trials the law looks for a queue. (Beside BBR
/// before a queue that was always full it sent half as much again as the line carries.)
#[test]
fn what_is_lost_on_a_full_line_is_not_the_paths_own() {
    let came = |before| {
        let mut law = law(2_000_000);
        law.phase = Phase::Drain;
        law.full.take(2_250_000, before);
        (0..2).for_each(|_| law.full.tried(true));
        (learns(&mut law, Span::from_nanos(667_000)), law.phase)
    };
    assert_eq!(came(1_800_000), (true, Phase::Hold(0)));
    assert_eq!(came(1_200_000), (false, Phase::Breathe(0)));
}

/// What is lost without leaving its time empty is lost on a line that is busy with others all the while: of 1.5 MB/s 1.25 come evenly.
/// (Beside BBR before a queue that was always full it sent twice what the line carries, and a third was lost.)
#[test]
fn what_takes_no_time_is_lost_in_a_full_queue() {
    let after = |left_empty: bool| {
        let mut law = law(2_000_000);
        (law.phase, law.sent) = (Phase::Hold(1), 1_500_000);
        law.own_loss.take(Losses { sent: 600, lost: 100, gaps: 100 });
        let mut at = Time::ZERO;
        for place in 0..90u64 {
            let lost = place % 6 == 1;
            at += Span::from_nanos(match (lost, left_empty) {
                (true, false) => 0,
                (false, false) => 800_000,
                (_, true) => 667_000,
            });
            if !lost {
                law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
            }
        }
        law.phase
    };
    assert!(matches!(after(true), Phase::Hold(_)), "{:?}", after(true));
    assert!(matches!(after(false), Phase::Breathe(_)), "{:?}", after(false));
}

/// Takes in so many packets from a place on, which come so far apart. Each so-manieth is lost, and its time left empty.
fn come(law: &mut Adaptive, from: &mut (Time, u64), packets: u64, each: u64, apart: Span) {
    for place in from.1..from.1 + packets {
        from.0 += apart;
        if place % each != 1 {
            law.arrived(&Arrival { at: from.0, bytes: 1000, place: Some(place) });
        }
    }
    from.1 += packets;
}

/// In the beginning a sixth that is lost may be somebody's queue, a twelfth is learned. (A path that lost 5 % was looked at for a queue
/// in most transfers as soon as its rate was found: 1.5 s of 30 at 600 ms.)
#[test]
fn a_moderate_loss_is_learned_in_the_beginning() {
    let learned = |each: u64| {
        let mut law = law(6_666_666);
        come(&mut law, &mut (Time::ZERO, 0), 100, each, Span::from_micros(200));
        assert_ne!(law.offered, 5_000_000, "it has decided");
        law.own_loss.likely(Losses { sent: 100, lost: 50, gaps: 50 }).lost > 0
    };
    assert!(learned(12) && !learned(6));
}

/// Packets between a stretch and the next, three times as many as in it at a third of the round trip, tell as well. Packets at the
/// rate itself do not.
#[test]
fn packets_behind_a_stretch_tell_what_the_path_loses() {
    let learned = |percent: u64| {
        let mut law = law(2_000_000);
        (law.phase, law.sent) = (Phase::Drain, 20_000 * percent);
        let apart = Span::from_nanos(1_000_000_000_000 / law.sent);
        let mut from = (Time::ZERO, 2);
        come(&mut law, &mut from, 40, 1000, apart);
        assert_eq!(law.phase, Phase::Hold(0), "the stretch is over");
        come(&mut law, &mut from, 200, 20, apart);
        law.taken_up(None);
        come(&mut law, &mut from, 60, 1000, apart);
        law.own_loss.likely(Losses { sent: 100, lost: 50, gaps: 50 }).lost > 0
    };
    assert!(learned(90) && !learned(100));
}

/// Of many stretches one loses much by chance: while the rate is held, all packets since the last look have to have lost more as well. (At 5 %
/// every fifth transfer of half a minute looked for a queue for that.)
#[test]
fn a_stretch_that_loses_much_by_chance_is_no_congestion() {
    let few = Losses { sent: 160, lost: 16, gaps: 16 };
    let doubts = |phase, lost| {
        let mut law = law(2_000_000);
        law.phase = phase;
        law.own_loss.take(Losses { sent: 500, lost: 20, gaps: 20 });
        law.excess(few, Losses { sent: 640, lost, gaps: lost }, false) > 0
    };
    assert!(!doubts(Phase::Hold(1), 40) && doubts(Phase::Hold(1), 70));
    assert!(doubts(Phase::Hold(0), 40) && doubts(Phase::More(1000), 40));
}

/// What comes through below the rate while there is a queue is believed for a quarter each time.
#[test]
fn a_rate_that_others_have_taken_a_part_of_is_taken_back() {
    let mut law = law(1_000_000);
    law.hold(800_000, false, Span::from_millis(20));
    assert_eq!(law.rate, 950_000);
    law.hold(800_000, false, Span::from_millis(20));
    assert_eq!(law.rate, 912_500);
    law.hold(800_000, false, Span::ZERO);
    assert_eq!(law.rate, 912_500);
}

/// Rates of a line come together: who has three quarters of it tries less in proportion than who has a quarter, and nobody
/// more than as much again.
#[test]
fn who_has_little_tries_more() {
    let mut law = law(1_000_000);
    let mut step = |rate| {
        law.rate = rate;
        law.step()
    };
    assert_eq!([1_000_000, 750_000, 250_000].map(&mut step), [125_000, 93_750, 187_500]);
    assert_eq!(step(100_000), 100_000);
}

/// The shortest round trip after a look in which it stays at 60 ms, where it was 50 before, and nothing is lost.
fn base_after_a_look(law: &mut Adaptive) -> Span {
    law.round(Span::from_millis(60));
    law.breathe(Time::ZERO);
    law.breathed(Time::ZERO, 1, (300_000, Losses { sent: 30, lost: 0, gaps: 0 }, false));
    law.base()
}

/// A round trip that stays as long in a look has become longer if half of a window was let go. Otherwise it may be the queue of
/// others: taken for the path it would never be seen again. (Beside BBR before a short queue all losses became the path's own.)
#[test]
fn a_queue_that_stays_is_not_forgotten() {
    assert_eq!(base_after_a_look(&mut law(1_000_000)), Span::from_millis(50));
    let mut contending = law(1_000_000);
    contending.standing.1 = 1_000_000;
    contending.enter(Time::ZERO);
    assert_eq!(base_after_a_look(&mut contending), Span::from_millis(60));
}

/// What a law without an offer offers after packets at such microseconds, in packets a second. A first `copies` of them are of the OPEN.
fn first_offer(copies: usize, micros: &[u64], ends: bool) -> Option<u64> {
    let terms = Terms { packet: 940, burst: Burst { size: 100, interval: 1 }, ..Terms::default() };
    let mut law = Adaptive::new(&terms, Dialect::V5);
    for (index, micros) in micros.iter().enumerate() {
        let place = (index >= copies).then_some(index as u64);
        let at = Time::ZERO + Span::from_micros(*micros);
        law.arrived(&Arrival { at, bytes: 1000, place });
    }
    if ends {
        law.ended(Time::ZERO);
    }
    (law.offered > 0).then_some(law.offered / 1000)
}

/// A queue of a few packets cuts a train, so that twelve packets of it never come. Those that came tell the rate as soon as others follow
/// much later, or nothing more is waited for.
#[test]
fn a_train_that_a_short_queue_has_cut_tells_the_rate() {
    let train: Vec<u64> = (0..5).map(|it| it * 1000).collect();
    let with = |later: &[u64]| [&train[..], later].concat();
    assert_eq!(first_offer(0, &train, false), None);
    assert_eq!(first_offer(0, &train, true), Some(750));
    assert_eq!(first_offer(0, &with(&[30_000]), false), Some(750));
    assert_eq!(first_offer(0, &with(&[6000, 7000]), false), None, "one is missing");
    assert_eq!(first_offer(5, &with(&[100_000]), false), Some(750), "copies of the OPEN");
    assert_eq!(first_offer(1, &[0, 100_000], true), None, "a packet alone tells nothing");
}

/// Copies of the OPEN bear no numbers. One or two that are lost among others which come evenly leave a hole; what comes in bunches has none.
#[test]
fn copies_that_were_lost_leave_a_hole() {
    let offered = |millis: [u64; 10]| first_offer(10, &millis.map(|it| it * 1000), false);
    assert_eq!(offered([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Some(750));
    assert_eq!(offered([0, 1, 2, 3, 4, 6, 7, 8, 9, 10]), Some(750));
    assert_eq!(offered([0, 1, 4, 5, 6, 7, 8, 9, 10, 11]), Some(749), "rounded");
    assert_eq!(offered([0, 0, 0, 4, 4, 4, 8, 8, 8, 12]), Some(562));
    assert_eq!(offered([0, 0, 0, 0, 0, 9, 9, 9, 9, 9]), Some(750));
    assert_eq!(first_offer(3, &[0, 1000, 3000, 99_000], false), Some(499), "too few to tell");
    assert_eq!(first_offer(2, &[0, 1000, 9000, 10_000, 11_000, 12_000], true), Some(750), "data");
}

/// Round trips of 50 ms that vary by up to 20 are jitter while the rate is held, and no queue; while more is tried they may be one. A stretch
/// lasts longer then, and its ends are not believed to the millisecond. (20 Mbit/s, 50 ms with a jitter of a tenth had 0.83 of the line.)
#[test]
fn jitter_is_no_queue() {
    let vary = |phase| {
        let mut law = law(1_000_000);
        law.phase = phase;
        (0..60).for_each(|at| law.round(Span::from_millis(50 + [0, 9, 3, 20, 15, 5][at % 6])));
        law
    };
    let calm = vary(Phase::More(1));
    assert_eq!(
        (calm.tolerated(), calm.stretch()),
        (Span::from_millis(4), Span::from_nanos(16_666_666))
    );
    assert_eq!(calm.fairly(700_000, Span::from_millis(30)), 700_000);
    for phase in [Phase::Hold(1), Phase::Contest] {
        let mut law = vary(phase);
        assert!(law.tolerated() >= Span::from_millis(10), "{}", law.tolerated());
        assert_eq!(law.stretch(), Span::from_millis(150));
        // A stretch whose ends were early or late by a few turns tells what was sent, and one of a far greater or lesser rate does not.
        let fair =
            [500_000, 700_000, 770_000, 1_500_000].map(|it| law.fairly(it, Span::from_millis(100)));
        assert!(500_000 < fair[0] && fair[0] < 700_000 && fair[3] > 1_200_000, "{fair:?}");
        assert_eq!(fair[1..3], [law.sent; 2]);
        // All that jitter makes of the round trip stays, and no more.
        law.sent = law.rate;
        assert_eq!(law.drained(law.tolerated()), law.rate);
        assert!(law.drained(law.tolerated().scaled(3, 2)) < law.rate);
    }
}

/// The jitter of a held rate counts for two periods though round trips turn no more, that of a contest only while they do.
#[test]
fn jitter_is_remembered_if_the_rate_is_held() {
    let calmed = |phase| {
        let mut law = law(1_000_000);
        law.phase = phase;
        (0..60).for_each(|at| law.round(Span::from_millis(50 + 9 * (at % 2))));
        (0..20).for_each(|_| law.round(Span::from_millis(50)));
        law
    };
    assert_eq!(calmed(Phase::Contest).tolerated(), Span::from_millis(4));
    let mut law = calmed(Phase::Hold(1));
    for (second, tolerated) in [(0, 45), (11, 45), (22, 4)] {
        law.turn(Time::ZERO + Span::from_secs(second));
        law.round(Span::from_millis(50));
        assert_eq!(law.tolerated(), Span::from_millis(tolerated), "{second} s");
    }
}

/// Each second packet comes behind the next: none is lost, a stretch lasts until most of its packets are known to have come, and what they
/// are late by is no queue. (100 Mbit/s, 50 ms with a free jitter of two fifths had 0.39 of the line.)
#[test]
fn what_is_overtaken_is_not_lost() {
    let mut law = law(1_000_000);
    assert_eq!(law.tolerated(), Span::from_millis(4));
    let mut at = Time::ZERO;
    for pair in 0..100u64 {
        for (place, millis) in [(2 * pair + 1, 20 * pair), (2 * pair, 20 * pair + 12)] {
            at = Time::ZERO + Span::from_millis(millis);
            law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
        }
    }
    assert_eq!(law.losses(at, Some(100)), Losses { sent: 100, lost: 0, gaps: 0 });
    law.arrived(&Arrival { at, bytes: 1000, place: Some(205) });
    assert_eq!(law.losses(at, Some(100)).lost, 0, "they may still come");
    assert_eq!(law.late(), Span::from_millis(12));
    assert_eq!(law.stretch(), Span::from_millis(36));
    // Twice the mean of 6 ms.
    assert!(law.tolerated() > Span::from_millis(10), "{}", law.tolerated());
    assert!(law.fairly(700_000, Span::from_millis(36)) > 740_000);
}

/// In a contest the window is offered for each round trip, but no more than half as much again as what came through. (Over a path without
/// a delay and with an independent jitter of 20 ms one round trip in ten took a tenth of the others, and ten times the rate of the line was
/// offered.)
#[test]
fn a_short_round_trip_in_a_contest_is_no_faster_line() {
    let offered_after = |millis| {
        let mut law = law(1_000_000);
        law.round(Span::from_millis(100));
        law.standing.1 = law.rate;
        law.enter(Time::ZERO);
        law.taken_up(None);
        law.round(Span::from_millis(millis));
        come(&mut law, &mut (Time::ZERO, 2), 40, 1000, Span::from_millis(1));
        assert_eq!(law.phase, Phase::Contest);
        assert!(!law.in_force, "it has decided");
        law.offered
    };
    let usual = offered_after(100);
    assert!((1_000_000..1_200_000).contains(&usual), "{usual}");
    assert_eq!(offered_after(10), 1_500_000);
}

/// Where jitter makes most of a round trip, it makes the time too in which the law looks: the shortest round trip is a tenth of the usual
/// one, and packets are late by more than it.
#[test]
fn jitter_longer_than_the_shortest_round_trip_sets_the_pace() {
    let mut law = law(1_000_000);
    law.phase = Phase::Hold(1);
    (0..40).for_each(|at| law.round(Span::from_millis(5 + 20 * (at % 2))));
    assert_eq!((law.base(), law.usual_round()), (Span::from_millis(5), Span::from_millis(100)));
    assert_eq!(law.stretch(), Span::from_millis(300));
    for (place, millis) in [(1, 0), (3, 1), (2, 31), (4, 32)] {
        let at = Time::ZERO + Span::from_millis(millis);
        law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
    }
    assert_eq!(law.late(), Span::from_millis(30));
    // 17 ms of a queue go by themselves, and three of the others beyond jitter within two round trips.
    assert_eq!(law.drained(Span::from_millis(120)), 990_000);
    // What stays behind before a queue that jitter explains is not believed.
    law.hold(700_000, false, Span::from_millis(30));
    assert_eq!(law.rate, 1_000_000);
}

/// The order of packets shows that before round trips do. (Of 19 transfers of 4 MB one went at a tenth of the line for 20 s, until round
/// trips had turned six times.)
#[test]
fn packets_far_out_of_order_set_the_pace_too() {
    let mut law = law(1_000_000);
    law.round(Span::from_millis(5));
    let pairs = |law: &mut Adaptive, pairs: std::ops::Range<u64>, late: u64| {
        for pair in pairs {
            for (place, millis) in [(2 * pair + 1, 20 * pair), (2 * pair, 20 * pair + late)] {
                let at = Time::ZERO + Span::from_millis(millis);
                law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
            }
        }
        law.usual_round()
    };
    // Ten times the mean, which is half of that.
    let of_few = pairs(&mut law, 0..100, 4);
    assert!((Span::from_millis(19)..=Span::from_millis(20)).contains(&of_few), "{of_few}");
    // What came later than a round trip told nothing before.
    let of_more = pairs(&mut law, 100..400, 16);
    assert!(of_more > Span::from_millis(60), "{of_more}");
    assert_eq!(law.late(), Span::from_millis(16));
    assert!(law.tolerated() > Span::from_millis(12), "{}", law.tolerated());
}

/// A packet may come as late as a usual round trip: so long it is remembered that it was overtaken, however many stretches have ended.
#[test]
fn what_was_overtaken_is_remembered_for_a_usual_round_trip() {
    let late_after = |millis: u64| {
        let mut law = law(1_000_000);
        law.phase = Phase::Hold(1);
        (0..40).for_each(|at| law.round(Span::from_millis(5 + 20 * (at % 2))));
        assert_eq!(law.usual_round(), Span::from_millis(100));
        let arrives = |law: &mut Adaptive, place: u64, millis: u64| {
            let at = Time::ZERO + Span::from_millis(millis);
            law.arrived(&Arrival { at, bytes: 1000, place: Some(place) });
        };
        [(1, 0), (3, 1)].into_iter().for_each(|(place, millis)| arrives(&mut law, place, millis));
        law.since = Some(4);
        law.decide(Time::ZERO + Span::from_millis(millis - 1));
        arrives(&mut law, 2, millis);
        law.late()
    };
    assert_eq!(late_after(91), Span::from_millis(90));
    assert_eq!(late_after(121), Span::ZERO);
}

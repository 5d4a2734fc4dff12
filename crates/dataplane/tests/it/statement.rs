//! The closing statement's words and bounds.

use trunkline_core::{Cause, Span};
use trunkline_dataplane::accuracy::{Accuracy, DEFAULT_BOUND, Validity};
use trunkline_dataplane::{LaneSnapshot, Snapshot};
use trunkline_measure::Percentiles;

fn percentiles(count: u64, step: u64) -> Percentiles {
    let [mean, min, p50, p99, p999, max] = [3, 1, 2, 4, 5, 6].map(|it| Span::from_nanos(it * step));
    Percentiles { count, mean, min, p50, p99, p999, max }
}

/// A direction in which everything happened.
fn busy() -> LaneSnapshot {
    let millis = Span::from_millis;
    LaneSnapshot {
        name: "up".into(),
        entered: 100,
        duplicated: 7,
        delivered: 80,
        dropped: [("loss".to_string(), 12), ("queue-limit".to_string(), 3)].into(),
        in_flight: 12,
        impairments: vec!["loss asked 10%, achieved 12% of 100".into()],
        lateness: percentiles(80, 1000),
        spacing_error: percentiles(79, 100),
        mean_delay: vec![
            (Cause::Queue, millis(1)),
            (Cause::Transmit, millis(2)),
            (Cause::Propagate, millis(3)),
            (Cause::Emulator, Span::from_micros(4)),
            (Cause::Host, millis(5)),
        ],
        ..LaneSnapshot::default()
    }
}

fn said(snapshot: &Snapshot) -> String {
    Accuracy::of(snapshot, DEFAULT_BOUND).to_string()
}

#[test]
fn everything_that_happened_has_its_line() {
    let snapshot = Snapshot {
        uptime: Span::from_secs(60),
        lanes: vec![busy()],
        stalls: 2,
        stalled: Span::from_millis(5),
        longest_stall: Span::from_millis(3),
        interruptions: 4,
        interrupted: Span::from_micros(300),
        clock_steps: 1,
        stamps_corrected: 6,
        stamps_uncertain: 8,
        stamp_uncertainty: Span::from_micros(9),
        ..Snapshot::default()
    };
    let wanted = "    up in 100 + copies 7 = out 80 + dropped 15 (loss 12, queue-limit 3) + in flight 12\n       \
                  late by    mean 3us, p50 2us, p99 4us, p99.9 5us, max 6us\n       \
                  spacing off mean 300ns, p50 200ns, p99 400ns, p99.9 500ns, max 600ns\n       \
                  mean delay queue 1.000ms + transmit 2.000ms + propagate 3.000ms + emulator 0.004ms + other 5.000ms\n       \
                  loss asked 10%, achieved 12% of 100\n\
                  machine stalled 2 times for more than 1ms, longest 3ms\n\
                  machine interrupted the emulator 4 times for more than 20us, 300us in all\n\
                  the wall clock was stepped 1 times during the run; arrival stamps put right: 6\n\
                  8 arrivals close to a step of the wall clock are uncertain by up to 9us\n\
                  VALID: 99 in 100 frames left within 100us of their time";
    assert_eq!(said(&snapshot), wanted);
}

#[test]
fn what_did_not_happen_has_none() {
    let lane = LaneSnapshot { name: "down".into(), ..LaneSnapshot::default() };
    let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
    let wanted = "  down in 0 + copies 0 = out 0 + dropped 0 + in flight 0\n\
                  nothing to judge: no frame was offered to the path";
    assert_eq!(said(&snapshot), wanted);
    assert_eq!(Accuracy::of(&snapshot, DEFAULT_BOUND).verdict(), Validity::Nothing);
}

#[test]
fn a_path_that_kept_everything_says_what_became_of_it() {
    let lane = LaneSnapshot { lateness: Percentiles::default(), ..busy() };
    let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
    let end = "nothing to judge: of 100 frames that entered none was to leave: the path dropped 15, and 12 were \
               still under way";
    assert!(said(&snapshot).ends_with(end), "{}", said(&snapshot));
}

/// The reasons for which a run of a minute, changed so, is INVALID.
fn reasons(change: impl FnOnce(&mut Snapshot)) -> Vec<String> {
    let mut snapshot =
        Snapshot { uptime: Span::from_secs(60), lanes: vec![busy()], ..Snapshot::default() };
    change(&mut snapshot);
    let accuracy = Accuracy::of(&snapshot, DEFAULT_BOUND);
    match accuracy.verdict() {
        Validity::Invalid(reasons) => {
            assert!(said(&snapshot).ends_with(&format!("INVALID: {}", reasons.join("; "))));
            assert_eq!(accuracy.verdict().name(), "invalid");
            reasons
        }
        other => {
            assert_eq!((other.name(), &other), ("valid", &Validity::Valid));
            Vec::new()
        }
    }
}

#[test]
fn a_bound_is_the_last_value_that_it_allows() {
    let none = [""; 0];
    assert_eq!(reasons(|it| it.lanes[0].late = 1), none);
    assert_eq!(reasons(|it| it.lanes[0].late = 2).len(), 1);
    let uncertain = |nanos| {
        move |it: &mut Snapshot| {
            (it.stamps_uncertain, it.stamp_uncertainty) = (1, Span::from_nanos(nanos));
        }
    };
    assert_eq!(reasons(uncertain(100_000)), none);
    assert_eq!(reasons(uncertain(100_001)).len(), 1);
    assert_eq!(reasons(|it| it.stamp_uncertainty = Span::from_secs(1)), none, "of no stamp");
    assert_eq!(reasons(|it| it.stamps_replaced = 1).len(), 1);
    // A hundredth of the run, and of a short one ten milliseconds.
    assert_eq!(reasons(|it| it.stalled = Span::from_millis(600)), none);
    assert_eq!(reasons(|it| it.stalled = Span::from_micros(600_001)).len(), 1);
    let short = |micros| {
        move |it: &mut Snapshot| {
            (it.uptime, it.stalled) = (Span::from_millis(500), Span::from_micros(micros));
        }
    };
    assert_eq!(reasons(short(10_000)), none);
    assert_eq!(reasons(short(10_001)).len(), 1);
    assert_eq!(reasons(|it| it.longest_stall = Span::from_micros(99_999)), none);
    assert_eq!(reasons(|it| it.longest_stall = Span::from_millis(100)).len(), 1);
}

#[test]
fn losses_of_the_emulator_are_reasons_and_frames_too_big_are_none() {
    let lost = |cause: &str| {
        let cause = cause.to_string();
        reasons(|it| {
            it.lanes[0].dropped.insert(cause, 5);
            it.lanes[0].dropped_by_emulator = 5;
        })
    };
    assert_eq!(lost("send-failed"), ["up: the emulator itself lost 5 frames"]);
    assert_eq!(lost("too-big"), [""; 0]);
}

#[test]
fn what_the_machine_did_follows_the_other_reasons() {
    let told = reasons(|it| {
        it.lanes[0].late = 9;
        (it.stalls, it.longest_stall) = (1, Span::from_millis(2));
        (it.interruptions, it.interrupted) = (3, Span::from_micros(70));
    });
    let machine = "the machine interrupted the emulator 3 times for more than 20us (70us in all) and stalled it 1 times \
                   for more than 1ms (longest 2ms)";
    let late = "up: 9 of 80 frames left more than 100us late (p99 4us, max 6us)";
    assert_eq!(told, [late, machine]);
    // Either of them is worth the line, and by themselves they are no reason.
    assert_eq!(reasons(|it| (it.lanes[0].late, it.stalls) = (9, 1)).len(), 2);
    assert_eq!(reasons(|it| (it.lanes[0].late, it.interruptions) = (9, 1)).len(), 2);
    assert_eq!(reasons(|it| it.lanes[0].late = 9).len(), 1);
    assert_eq!(reasons(|it| (it.stalls, it.interruptions) = (1, 1)), [""; 0]);
}

#[test]
fn losses_are_summed_over_the_directions() {
    let lane = |count| LaneSnapshot { dropped_by_emulator: count, ..LaneSnapshot::default() };
    let snapshot = Snapshot { lanes: vec![lane(2), lane(3)], ..Snapshot::default() };
    assert_eq!(snapshot.dropped_by_emulator(), 5);
}

//! What the two reports found by thinking about their measurements has to come out of the scenarios alone: the
//! window of 84 bytes, the requests cut into 756 and 268, the one request at a time, the seven queue times.

use std::sync::LazyLock;
use trunkline_explain::{
    Binding, Constraint, Explanation, Group, Jump, Measure, Options, TrafficExplanation, explain,
    explain_with, text,
};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

macro_rules! scenario {
    ($($file:literal),*) => {{
        let text = concat!($(include_str!(concat!("../scenarios/", $file))),*);
        Scenario::parse(text, "test.toml").expect("a scenario").remove(0)
    }};
}

/// Vande Water 1988 §2.5.2: dkbench from Berkeley to New Jersey with blocks of 28 bytes, three outstanding.
static SMALL_WINDOW: LazyLock<Explanation> =
    LazyLock::new(|| explain(&scenario!("xunet.toml", "echo-small.toml"), &Simulator).unwrap());
/// Vande Water 1988 §3.7: dkxload's transfer test with blocks of 252 bytes (Table IV).
static TABLE_4: LazyLock<Explanation> =
    LazyLock::new(|| explain(&scenario!("xunet.toml", "transfer.toml"), &Simulator).unwrap());
/// Hawley 1989 §4.2: messages over the empty trunk.
static UNLOADED: LazyLock<Explanation> =
    LazyLock::new(|| explain(&scenario!("datakit.toml", "unloaded.toml"), &Simulator).unwrap());
/// Hawley 1989 §4.3.2.1: the same behind four transfers with windows of 1024 x 7 in a fifo.
static LOADED: LazyLock<Explanation> = LazyLock::new(|| {
    let options = Options { traffic: vec!["interactive".into()], ..Options::default() };
    explain_with(&scenario!("datakit.toml", "loaded.toml"), &Simulator, &options, &mut |_| {})
        .unwrap()
});

fn only(explanation: &Explanation) -> &TrafficExplanation {
    &explanation.traffic[0]
}

fn group(explanation: &'static Explanation, size: u64) -> &'static Group {
    only(explanation).group(size).expect("a group")
}

fn jump(explanation: &'static Explanation, to: u64) -> &'static Jump {
    only(explanation).jumps.iter().find(|jump| jump.to == to).expect("a jump")
}

/// Lines broken for the terminal are joined again.
fn told(explanation: &Explanation) -> String {
    text(explanation).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_told(explanation: &Explanation, words: &[&str]) {
    let told = told(explanation);
    for word in words {
        assert!(told.contains(word), "no '{word}' in: {told}");
    }
}

fn saved(group: &Group, constraint: Constraint, to: &str) -> f64 {
    let relaxed = group.relaxing(constraint).expect("a relaxation");
    relaxed.steps.iter().find(|step| step.to == to).expect("a step").saved
}

#[test]
fn the_window_of_84_bytes_is_found() {
    let small = group(&SMALL_WINDOW, 84);
    assert_eq!(small.binds, Binding::One(Constraint::Distance));
    let two = group(&SMALL_WINDOW, 85);
    assert_eq!(two.binds, Binding::One(Constraint::Window));
    assert_eq!(two.rounds.as_ref().unwrap().window, Some(84));
    assert_eq!(jump(&SMALL_WINDOW, 85).rounds[1].as_ref().unwrap().rounds, [84, 1]);
    // Section 2.5.3: 155 ms become 57 with the large buffers.
    assert!((0.58..0.68).contains(&saved(two, Constraint::Window, "756 B")), "{two:#?}");
    let many = group(&SMALL_WINDOW, 1024);
    assert_eq!(many.rounds.as_ref().unwrap().rounds.len(), 13);
    assert_eq!(many.binds, Binding::One(Constraint::Window));
    for to in [85, 169] {
        let (constraint, share) = jump(&SMALL_WINDOW, to).cause.unwrap();
        assert!(constraint == Constraint::Window && share > 0.9, "{to}: {constraint:?} {share}");
    }
    assert_told(
        &SMALL_WINDOW,
        &[
            "The window binds (84 B; 64 % of the time is Window): 756 B would cut",
            "85 bytes go as 84, wait, 1, wait: two round trips (the window is 84 bytes)",
            "13 rounds of at most 84 bytes",
            "Distance binds (24.15ms one way",
        ],
    );
}

#[test]
fn requests_cut_by_the_window_of_756_bytes_are_found() {
    assert_eq!(only(&TABLE_4).measure, Measure::Throughput);
    let cut = group(&TABLE_4, 1024);
    assert_eq!(cut.rounds.as_ref().unwrap().rounds, [756, 268]);
    assert_eq!(cut.binds, Binding::One(Constraint::Window));
    let three = group(&TABLE_4, 1025);
    let rounds = three.rounds.as_ref().unwrap();
    assert_eq!(
        (rounds.rounds.as_slice(), rounds.requests.as_slice()),
        ([756, 268, 1].as_slice(), [1024, 1].as_slice())
    );
    assert_eq!(rounds.outstanding, Some(1));
    assert_eq!(three.binds, Binding::One(Constraint::Requests));
    // One alone buys little: what a round trip carries stays below 1024 bytes.
    for size in [84, 756, 1024, 1025] {
        let pair = &group(&TABLE_4, size).pairs[0];
        let kinds = (pair.first.0, pair.second.0);
        assert_eq!(kinds, (Constraint::Window, Constraint::Requests), "{size}");
    }
    assert_eq!(group(&TABLE_4, 756).binds, Binding::Two(Constraint::Window, Constraint::Requests));
    assert_told(
        &TABLE_4,
        &[
            "1024 bytes go as 756, wait, 268, wait: two round trips (the window is 756 bytes and the interface takes one request at a time)",
            "1025 bytes go as 756, wait, 268, wait, 1, wait: three round trips",
            "here two of 1024 and 1",
            "Relaxed together, window and interface: requests",
        ],
    );
}

#[test]
fn one_request_at_a_time_is_found_behind_the_65th_byte() {
    let step = jump(&UNLOADED, 65);
    let rounds = step.rounds[1].as_ref().unwrap();
    assert_eq!((rounds.rounds.as_slice(), rounds.outstanding), ([64, 1].as_slice(), Some(1)));
    assert!(rounds.by_requests() && !rounds.by_window());
    let (constraint, share) = step.cause.unwrap();
    let interface = matches!(constraint, Constraint::Requests | Constraint::Split);
    assert!(interface && share > 0.6, "{constraint:?} {share}");
    // Two sizes around which nothing happens in the report either (Figure 9).
    assert!(only(&UNLOADED).jumps.iter().all(|jump| ![13, 61, 769].contains(&jump.to)));
    assert_eq!(jump(&UNLOADED, 512).cause.unwrap().0, Constraint::Split);
    assert_told(
        &UNLOADED,
        &[
            "65 bytes go as two requests of 64 and 1, one outstanding: two round trips",
            "since only one of the requests is outstanding at a time",
            "511 bytes go as eight requests of 7 x 64 and 63, one outstanding: eight round trips",
        ],
    );
}

#[test]
fn seven_and_ten_queue_times_are_found() {
    for (size, times) in [(512, 7), (768, 10)] {
        let group = group(&LOADED, size);
        assert_eq!(group.binds, Binding::One(Constraint::Queue));
        let rounds = group.rounds.as_ref().unwrap();
        assert_eq!(rounds.rounds.len(), times);
        let queue = rounds.queue.as_ref().unwrap();
        assert_eq!(queue.place, "n3>n6");
        // So many queue times are nearly all of the delay.
        let share = queue.span.as_secs_f64() * times as f64 / group.figure().seconds;
        assert!((0.8..1.1).contains(&share), "{size}: {share}");
        assert!(saved(group, Constraint::Queue, "round robin") > 0.8);
        // With one window for the message it waits once or twice.
        assert!(group.relaxing(Constraint::Window).unwrap().saved > 0.6);
    }
    assert_told(
        &LOADED,
        &[
            "A 512-byte message goes in 7 rounds of at most 84 bytes (the window is 84 bytes), so it waits 7 times in the queue of n3>n6: 7 x ",
            "so it waits 10 times in the queue of n3>n6: 10 x ",
            "The queue binds (fifo, shared with bulk): round robin would cut",
        ],
    );
}

/// A waterfall holds all of the time; the shares of transfers' senders do too.
#[test]
fn the_bars_add_up() {
    for explanation in [&*SMALL_WINDOW, &*TABLE_4, &*UNLOADED, &*LOADED] {
        for group in &only(explanation).groups {
            let share: f64 = group.waterfall.iter().map(|bar| bar.share).sum();
            assert!((share - 1.0).abs() < 1e-9, "{share}");
            let spans: f64 = group.waterfall.iter().map(|bar| bar.span.as_secs_f64()).sum();
            assert!((spans / group.figure().seconds - 1.0).abs() < 1e-3, "{spans}");
        }
        let sender: f64 = only(explanation).sender.iter().map(|state| state.share).sum();
        assert!(only(explanation).sender.is_empty() || (sender - 1.0).abs() < 1e-9);
    }
}

//! Every transport and every kind of traffic: what binds is found, and what a step promises is what the change brings.

use trunkline_explain::{Binding, Constraint, Explanation, Group, explain, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

const HOSTS: &str = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'n'\n\
                     [[link]]\nbetween = ['a', 'n']\nrate = '100Mbit/s'\n";

fn scenario(trunk: &str, traffic: &str) -> Scenario {
    let text = format!(
        "{HOSTS}[[link]]\nname = 'trunk'\nbetween = ['n', 'b']\n{trunk}\n\
         [[traffic]]\nname = 'it'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    Scenario::parse(&text, "transports.toml").expect("a scenario").remove(0)
}

fn group(explanation: &Explanation) -> &Group {
    &explanation.traffic("it").expect("the traffic").groups[0]
}

/// By how much the best step of `constraint` raises the rate, as a factor.
fn factor(group: &Group, constraint: Constraint) -> f64 {
    group.relaxing(constraint).map_or(1.0, |it| 1.0 / (1.0 - it.saved))
}

/// Bytes that a scenario's first traffic delivers in a second, at full length.
fn goodput(scenario: &Scenario) -> f64 {
    let run = trunkline_sim::run(scenario).expect("a run");
    let samples = &run.traffic[0].samples;
    let bytes: u64 = samples.iter().map(|sample| sample.size).sum();
    let seconds: f64 = samples.iter().map(|sample| sample.delay().as_secs_f64()).sum();
    bytes as f64 / seconds
}

const LONG: &str = "rate = '100Mbit/s'\ndelay = '50ms'\nlimit = '2MB'";

#[test]
fn the_window_of_tcp_is_found() {
    let tcp = "kind = 'bulk'\nbytes = '20MB'\ntransport = { kind = 'tcp', window = '16384B' }";
    let explanation = explain(&scenario(LONG, tcp), &Simulator).unwrap();
    let group = group(&explanation);
    assert_eq!(group.binds, Binding::One(Constraint::Window), "{}", text(&explanation));
    assert!(factor(group, Constraint::Window) > 25.0, "{group:#?}");
}

#[test]
fn the_windows_of_protocols_chosen_by_name_are_found_and_bring_what_they_promise() {
    let steps = [
        (
            "kind = 'stop-and-wait', timeout = '116ms'",
            "selective-repeat of 16",
            "kind = 'selective-repeat', frames = 16",
        ),
        (
            "kind = 'go-back-n', frame = 500, frames = 6",
            "24 frames",
            "kind = 'go-back-n', frame = 500, frames = 24",
        ),
        (
            "kind = 'selective-repeat', frames = 3, buffer = 20",
            "48 frames",
            "kind = 'selective-repeat', frames = 48, buffer = 48",
        ),
        (
            "kind = 'netblt', packets = 20, outstanding = 2",
            "8 buffers",
            "kind = 'netblt', packets = 20, outstanding = 8",
        ),
    ];
    for (now, step, then) in steps {
        steps_are_found((LONG, now), Constraint::Window, (step, then));
    }
}

#[test]
fn the_rates_that_senders_set_themselves_are_found_and_bring_what_they_promise() {
    let steps = [
        (
            "kind = 'netblt', burst = 8, interval = '30ms'",
            "10 times",
            "kind = 'netblt', burst = 80, interval = '30ms'",
        ),
        ("kind = 'netblt', rate = '3Mbit/s'", "2 times", "kind = 'netblt', rate = '6Mbit/s'"),
        (
            "kind = 'go-back-n', frames = 600, rate = '5Mbit/s'",
            "2 times",
            "kind = 'go-back-n', frames = 600, rate = '10Mbit/s'",
        ),
    ];
    for (now, step, then) in steps {
        steps_are_found((LONG, now), Constraint::Pace, (step, then));
    }
}

/// Asserts that `constraint` binds a transfer with these settings, and that its step is worth what a file with it shows.
fn steps_are_found((trunk, now): (&str, &str), constraint: Constraint, (step, then): (&str, &str)) {
    let with = |keys: &str| {
        scenario(trunk, &format!("kind = 'bulk'\nbytes = '1MB'\ntransport = {{ {keys} }}"))
    };
    let explanation = explain(&with(now), &Simulator).unwrap();
    let group = group(&explanation);
    assert_eq!(group.binds, Binding::One(constraint), "{now}: {}", text(&explanation));
    let relaxed = group.relaxing(constraint).expect("what binds was relaxed");
    let bought = relaxed.steps.iter().find(|it| it.to == step);
    let bought = bought.unwrap_or_else(|| panic!("{now}: no step {step} in {:#?}", relaxed.steps));
    let brings = goodput(&with(then));
    let promised = bought.figure.bytes_per_second;
    assert!((promised / brings - 1.0).abs() < 0.01, "{now}: {promised} promised, {brings} brought");
}

#[test]
fn what_answers_wait_for_is_no_window_if_there_is_enough_of_it() {
    let bulk =
        "kind = 'bulk'\nbytes = '3MB'\ntransport = { kind = 'selective-repeat', frames = 2000 }";
    let explanation =
        explain(&scenario("rate = '2Mbit/s'\nlimit = '4MB'", bulk), &Simulator).unwrap();
    assert_eq!(group(&explanation).binds, Binding::One(Constraint::Rate), "{}", text(&explanation));
}

#[test]
fn a_schedule_is_found_but_not_what_it_says_of_the_start() {
    let bulk = "kind = 'bulk'\nbytes = '8MB'\ntransport = { kind = 'tcp', congestion = 'cubic' }";
    let trunk =
        |schedule: &str| format!("delay = '10ms'\nlimit = '200kB'\nschedule = '{schedule}'");
    let changing = trunk(
        "0s rate=10mbit; 1s loss=100%; 4s loss=0%; 8s rate=2mbit; 20s rate=10mbit; repeat 30s",
    );
    let explanation = explain(&scenario(&changing, bulk), &Simulator).unwrap();
    let found = group(&explanation);
    assert_eq!(found.binds, Binding::One(Constraint::Schedule), "{}", text(&explanation));
    assert!(text(&explanation).contains("(4 changes, again every 30s"), "{}", text(&explanation));
    let promised = found.relaxing(Constraint::Schedule).unwrap().steps[0].figure.bytes_per_second;
    let brings = goodput(&scenario(&trunk("0s rate=10mbit"), bulk));
    assert!((promised / brings - 1.0).abs() < 0.01, "{promised} promised, {brings} brought");
    let steady = explain(&scenario(&trunk("0s rate=10mbit"), bulk), &Simulator).unwrap();
    assert!(group(&steady).relaxing(Constraint::Schedule).is_none(), "{}", text(&steady));
}

#[test]
fn a_rare_loss_is_found_though_a_short_run_sees_none() {
    let trunk = "rate = '100Mbit/s'\ndelay = '20ms'\nlimit = '2MB'\nloss = '0.05%'";
    let tcp = "kind = 'bulk'\nbytes = '30MB'\ntransport = { kind = 'tcp', congestion = 'newreno' }";
    let explanation = explain(&scenario(trunk, tcp), &Simulator).unwrap();
    assert_eq!(group(&explanation).binds, Binding::One(Constraint::Loss), "{}", text(&explanation));
}

#[test]
fn greedy_connections_have_a_rate_and_are_bound_by_the_line() {
    let trunk = "rate = '8Mbit/s'\ndelay = '5ms'";
    // A window that the queue holds: nothing is lost, so that nothing waits behind a hole.
    let tcp = "{ kind = 'tcp', window = '128KiB' }";
    let greedy = &format!("kind = 'greedy'\nduration = '10s'\ntransport = {tcp}");
    let explanation = explain(&scenario(trunk, greedy), &Simulator).unwrap();
    let group = group(&explanation);
    assert_eq!(group.binds, Binding::One(Constraint::Rate), "{}", text(&explanation));
    let rate = group.figure().bytes_per_second;
    // 1448 of 1500 bytes.
    assert!((0.95e6..0.966e6).contains(&rate), "{rate}");
    assert!(factor(group, Constraint::Rate) > 7.0, "{group:#?}");
    assert!(!text(&explanation).contains("it: 0 B"), "{}", text(&explanation));
}

#[test]
fn a_small_buffer_promises_what_a_large_one_brings() {
    let trunk = |limit| format!("rate = '20Mbit/s'\ndelay = '25ms'\nlimit = '{limit}'");
    let tcp = "kind = 'bulk'\nbytes = '40MB'\ntransport = { kind = 'tcp', congestion = 'newreno' }";
    let small = scenario(&trunk("6kB"), tcp);
    let true_factor = goodput(&scenario(&trunk("1GiB"), tcp)) / goodput(&small);
    let explanation = explain(&small, &Simulator).unwrap();
    let promised = factor(group(&explanation), Constraint::QueueLimit);
    assert!(
        (promised / true_factor - 1.0).abs() < 0.05,
        "promised {promised}, brings {true_factor}"
    );
}

#[test]
fn one_byte_is_not_bytes() {
    let messages = "kind = 'interactive'\nsizes = [1]\nrepeat = 20\ntransport = 'urp'";
    let told = text(&explain(&scenario("delay = '3ms'", messages), &Simulator).unwrap());
    assert!(told.contains("where the time of 1 byte goes"), "{told}");
    assert!(!told.contains(" 1 bytes"), "{told}");
}

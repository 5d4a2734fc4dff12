//! Greedy connections: goodput by intervals, and what the sender waited for in them.

use crate::hosts::support::{FREE, at, pair, run, traffic};
use trunkline_core::{Cause, Span};

const GREEDY: &str = r#"
[[traffic]]
name = "greedy"
kind = "greedy"
from = "a"
to = "b"
duration = "2100ms"
warm_up = "500ms"
interval = "200ms"
write = 4096
"#;

fn greedy(more: &str) -> String {
    pair(&format!("{FREE}{GREEDY}{more}"))
}

/// A window of 7 blocks of 256 bytes each round trip of 40 ms and the time of a block and its echo.
#[test]
fn a_window_limits_a_greedy_connection() {
    let text = greedy("transport = { kind = 'urp', block = 256, outstanding = 7, packet = 0 }");
    let run = run(&text.replace("5ms", "20ms"));
    let greedy = traffic(&run, "greedy");
    assert_eq!(greedy.samples.len(), 8, "whole intervals of 200 ms between 0.5 s and 2.1 s");
    let round = 0.040 + (260.0 + 1.0) * 8.0 / 1e6;
    for sample in &greedy.samples {
        assert_eq!(sample.delay(), Span::from_millis(200));
        let expected = 7.0 * 256.0 / round;
        assert!((sample.rate() / expected - 1.0).abs() < 0.08, "{} {expected}", sample.rate());
        assert!(sample.booked(Cause::Window) > Span::from_millis(150), "{:?}", sample.steps);
    }
    let starts = greedy.samples.iter().map(|sample| sample.start).collect::<Vec<_>>();
    assert_eq!(starts[0], at(Span::from_millis(500)));
}

/// If the line is cut the receiver reads nothing, and that is measured.
#[test]
fn silence_is_a_measurement() {
    let run = run(&greedy("transport = 'urp'").replace("delay = \"5ms\"", "loss = \"100%\""));
    let greedy = traffic(&run, "greedy");
    assert_eq!(greedy.samples.iter().map(|it| it.size).sum::<u64>(), 0);
    for sample in &greedy.samples {
        let waited = sample.booked(Cause::Window) + sample.booked(Cause::Recover);
        assert_eq!(waited, sample.delay(), "{:?}", sample.steps);
    }
}

/// A connection that only accompanies another is measured as long as that.
#[test]
fn company_is_measured_as_long_as_it_lasts() {
    let other = "transport = 'urp'\nuntil = \"short\"\n[[traffic]]\nname = \"short\"\nkind = \"greedy\"\nfrom = \"a\"\n\
                 to = \"b\"\nduration = \"1s\"\nwarm_up = \"100ms\"\ninterval = \"100ms\"\n\
                 transport = 'urp'\n";
    let run = run(&greedy(other));
    assert_eq!(traffic(&run, "short").samples.len(), 9);
    let lengths = traffic(&run, "greedy").samples.len();
    assert_eq!(lengths, 2, "0.5 to 0.9 s: the next would end after the other");
}

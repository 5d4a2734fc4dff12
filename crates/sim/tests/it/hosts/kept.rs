//! What is kept of very many measurements, and that figures do not depend on it.

use crate::hosts::support::{run, traffic};
use trunkline_core::Cause;
use trunkline_engine::NoteKind;
use trunkline_measure::{Estimator, Quantity};

/// 20,000 datagrams of 125 bytes beside a greedy connection, so that delays vary.
const PACED: &str = r#"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
rate = "10Mbit/s"
delay = "5ms"
[[traffic]]
name = "paced"
from = "a"
to = "b"
kind = "paced"
size = 125
rate = "1Mbit/s"
duration = "20s"
transport = { kind = "udp" }
[[traffic]]
name = "beside"
from = "a"
to = "b"
kind = "greedy"
duration = "20s"
transport = { kind = "tcp" }
"#;

fn with(samples: &str) -> trunkline_engine::Run {
    run(&format!("samples = {samples}\n{PACED}"))
}

#[test]
fn figures_do_not_depend_on_how_many_samples_are_kept() {
    let all = with("\"all\"");
    let whole = traffic(&all, "paced");
    assert!(whole.samples.is_whole() && whole.samples.len() > 15_000);
    for (samples, kept) in [("\"none\"", 0), ("500", 500)] {
        let run = with(samples);
        let summed = traffic(&run, "paced");
        assert_eq!((summed.samples.len(), summed.samples.count()), (kept, whole.samples.count()));
        assert_eq!(summed.packets, whole.packets);
        assert!(run.notes.iter().any(|note| note.kind == NoteKind::LeftOut), "{:?}", run.notes);
        assert_eq!(trunkline_engine::check(&run), []);
        for cause in Cause::ALL {
            assert_eq!(summed.booked(125, cause), whole.booked(125, cause), "{cause:?}");
        }
        for rule in [Estimator::Mean, Estimator::MEDIAN, Estimator::P99, Estimator::HawleyAverage] {
            let value = |run: &trunkline_measure::TrafficRun| {
                run.estimate(125, Quantity::Delay, rule).unwrap().value
            };
            let (a, b) = (value(whole), value(summed));
            assert!((a - b).abs() <= 0.002 * a, "{rule}: {a} {b}");
        }
    }
}

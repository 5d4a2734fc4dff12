//! The textbooks' protocols in the simulator, held against the textbooks' formulas.

use trunkline_engine::check;
use trunkline_model::{Figure, What, predictions};
use trunkline_scenario::Scenario;

/// User bytes of a frame: so many that headers and answers, of 8 bytes each, hardly count.
const FRAME: u32 = 8000;
/// The time for which a frame, or an answer, keeps the line of 10 Mbit/s busy, in milliseconds.
const T: f64 = (FRAME + 8) as f64 * 8.0 / 1e4;
const ANSWER: f64 = 8.0 * 8.0 / 1e4;

/// A way and a protocol on it.
struct Case {
    protocol: &'static str,
    /// Propagation time over the time of a frame, the textbooks' a.
    a: f64,
    frames: u32,
    loss: f64,
    keys: String,
}

impl Case {
    fn new(protocol: &'static str, a: f64, frames: u32, loss: f64) -> Case {
        let window = if protocol == "stop-and-wait" {
            String::new()
        } else {
            format!("frames = {frames}, rate = \"10Mbit/s\", ")
        };
        let buffer = if protocol == "selective-repeat" { "buffer = 100000, " } else { "" };
        // Just after the answer may have come.
        let timeout = (1.0 + 2.0 * a) * T + ANSWER + 0.001;
        let keys = format!("{window}{buffer}timeout = \"{timeout:.4}ms\"");
        Case { protocol, a, frames, loss, keys }
    }

    fn scenario(&self) -> Scenario {
        let Case { protocol, a, loss, keys, .. } = self;
        let delay = a * T;
        let seconds = self.seconds();
        let text = format!(
            "stop_after = '24h'\nsamples = 'none'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '{delay:.6}ms'\n\
             forward = {{ loss = {loss} }}\n\
             [[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '{seconds}s'\n\
             interval = '10s'\nwrite = {FRAME}\n\
             transport = {{ kind = '{protocol}', frame = {FRAME}, {keys} }}\n"
        );
        let cells = Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        cells.into_iter().next().expect("one cell")
    }

    /// So long that some hundred thousand frames are sent, which leave a quarter of a per cent to chance.
    fn seconds(&self) -> f64 {
        let window = f64::from(self.frames);
        let frames = if self.loss > 0.0 { 300_000.0 } else { 2_000.0 };
        (frames * T / 1e3 * ((1.0 + 2.0 * self.a) / window).max(1.0)).round()
    }

    /// The share of the line that frames accepted at the other end take.
    fn simulated(&self) -> f64 {
        let run = trunkline_sim::run(&self.scenario()).expect("a run");
        assert_eq!(check(&run), []);
        run.traffic[0].delivered_bytes as f64 / f64::from(FRAME) * T / 1e3 / self.seconds()
    }

    /// The same by our formula, which knows headers, answers and the time-out.
    fn predicted(&self) -> f64 {
        let scenario = self.scenario();
        let found = predictions(&scenario).unwrap();
        let found = found.list.iter().find(|found| found.what == What::Throughput);
        let Some(Figure::Rate(rate)) = found.map(|found| found.value) else {
            panic!("{}: no formula: {:?}", self.protocol, predictions(&scenario).unwrap().notes)
        };
        rate.millibytes_per_second() as f64 / 1e3 / f64::from(FRAME) * T / 1e3
    }

    /// The same as the textbooks print it.
    fn textbook(&self) -> f64 {
        let Case { a, frames, loss: p, .. } = *self;
        let (round, n) = (1.0 + 2.0 * a, f64::from(frames));
        match self.protocol {
            "stop-and-wait" => (1.0 - p) / round,
            "go-back-n" if n < round && p > 0.0 => panic!("the textbooks differ"),
            "go-back-n" if p > 0.0 => (1.0 - p) / (1.0 + 2.0 * a * p),
            _ => (1.0 - p) * (n / round).min(1.0),
        }
    }

    fn check(&self) {
        let Case { protocol, a, frames, loss, .. } = self;
        let (simulated, predicted) = (self.simulated(), self.predicted());
        let off = |from: f64| (simulated / from - 1.0).abs();
        let name = format!("{protocol}, a = {a}, N = {frames}, p = {loss}: {simulated:.4}");
        assert!(off(predicted) < 0.01, "{name}, our formula {predicted:.4}");
        if !(*protocol == "go-back-n" && f64::from(*frames) < 1.0 + 2.0 * a && *loss > 0.0) {
            let textbook = self.textbook();
            assert!(off(textbook) < 0.01, "{name}, textbook {textbook:.4}");
        }
    }
}

/// 1 / (1 + 2a), and (1 − p) / (1 + 2a).
#[test]
fn stop_and_wait_is_as_in_the_textbooks() {
    for a in [0.0, 0.5, 4.96, 20.0] {
        for loss in [0.0, 0.01, 0.3] {
            Case::new("stop-and-wait", a, 1, loss).check();
        }
    }
}

/// min(1, N / (1 + 2a)), with losses (1 − p) / (1 + 2ap) if the window fills the line. The textbooks count what goes in
/// vain in whole frames, so that 1 + 2a is just below a whole number here.
#[test]
fn go_back_n_is_as_in_the_textbooks() {
    for a in [0.49, 4.99] {
        for frames in [2, 7, 40] {
            for loss in [0.0, 0.01, 0.1] {
                Case::new("go-back-n", a, frames, loss).check();
            }
        }
    }
}

/// (1 − p) min(1, N / (1 + 2a)).
#[test]
fn selective_repeat_is_as_in_the_textbooks() {
    for a in [0.49, 4.99] {
        for frames in [2, 7, 40] {
            for loss in [0.0, 0.01, 0.1] {
                Case::new("selective-repeat", a, frames, loss).check();
            }
        }
    }
}

/// A case that the formulas do not cover has no figure, and the reason is told.
#[test]
fn what_no_formula_covers_is_told() {
    let of = |keys: &str, write: u32| {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\n\
             delay = '10ms'\nloss = '1%'\n[[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n\
             bytes = '1MiB'\nwrite = {write}\ntransport = {{ {keys} }}\n"
        );
        let cells = Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let found = predictions(&cells[0]).unwrap();
        assert_eq!(found.list, []);
        found.notes.iter().map(|note| format!("{note}; ")).collect::<String>()
    };
    let timeout = "timeout = '1s', rate = '1Mbit/s'";
    for (keys, write, reason) in [
        ("kind = 'stop-and-wait'".to_string(), 1024, "give timeout"),
        (format!("kind = 'go-back-n', {timeout}"), 1024, "lost answers"),
        (format!("kind = 'selective-repeat', {timeout}"), 1024, "give buffer = "),
        ("kind = 'selective-repeat', timeout = '1s'".to_string(), 1024, "give rate"),
        ("kind = 'stop-and-wait', timeout = '1s'".to_string(), 1500, "do not fill"),
        (
            "kind = 'stop-and-wait', timeout = '1ms'".to_string(),
            1024,
            "shorter than the round trip",
        ),
    ] {
        let notes = of(&keys, write);
        assert!(notes.contains(reason), "{keys}: {notes}");
    }
}

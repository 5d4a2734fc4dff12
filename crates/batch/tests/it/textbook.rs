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

/// A file over 1 Mbit/s and 50 ms.
fn path(link: &str, transport: &str) -> String {
    format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
         [[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '50ms'\n{link}\n\
         [[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '300s'\n\
         transport = {{ {transport} }}\n"
    )
}

/// The rate that the formulas give for a file over 1 Mbit/s and 50 ms, or why there is none; and the simulator's.
fn both(link: &str, transport: &str) -> (Result<f64, String>, f64) {
    let (predicted, simulated, notes) = rates(&path(link, transport), 300.0);
    (predicted.ok_or(notes), simulated)
}

/// The rates of a scenario, predicted and simulated over so many seconds, in bytes per second, and the formula's notes.
fn rates(text: &str, seconds: f64) -> (Option<f64>, f64, String) {
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let run = trunkline_sim::run(&scenario[0]).expect("a run");
    assert_eq!(check(&run), []);
    let found = predictions(&scenario[0]).unwrap();
    let rate = found.list.iter().find(|found| found.what == What::Throughput);
    let predicted = match rate.map(|found| found.value) {
        Some(Figure::Rate(rate)) => Some(rate.millibytes_per_second() as f64 / 1e3),
        _ => None,
    };
    let notes = found.notes.iter().map(|note| note.to_string()).collect();
    (predicted, run.traffic[0].delivered_bytes as f64 / seconds, notes)
}

/// A time-out below the round trip, a queue that overflows or drops early, answers or a sender that are slower than
/// the line: the formula takes it in, or says that it does not.
#[test]
fn what_the_formulas_do_not_cover_they_say() {
    let refused = [
        ("", "kind = 'stop-and-wait', timeout = '20ms'", "shorter than the round trip"),
        ("", "kind = 'go-back-n', frames = 4, timeout = '20ms'", "shorter than the round trip"),
        ("", "kind = 'go-back-n', frames = 40, timeout = '120ms'", "shorter than the round trip"),
        (
            "",
            "kind = 'selective-repeat', frames = 40, timeout = '120ms'",
            "shorter than the round trip",
        ),
        (
            "",
            "kind = 'go-back-n', frames = 40, timeout = '150ms', rate = '10Mbit/s'",
            "shorter than the round trip",
        ),
        // In the long run the round trip is 116 ms, but the last of the first window, which goes at once, takes 216.
        ("", "kind = 'go-back-n', frames = 14, timeout = '150ms'", "shorter than the round trip"),
        ("", "kind = 'go-back-n', frames = 400", "give timeout"),
        ("delay = '40min'", "kind = 'stop-and-wait'", "give timeout"),
        ("limit = '3p'", "kind = 'go-back-n', frames = 14", "overflow the queue of a>b (3p)"),
        ("limit = '3p'", "kind = 'selective-repeat', frames = 14", "overflow the queue"),
        ("discipline = 'red'", "kind = 'go-back-n', frames = 60", "RED"),
        ("discipline = 'codel'", "kind = 'go-back-n', frames = 60", "CoDel"),
        (
            "framing = 'ethernet'\nforward = { loss = '5%' }",
            "kind = 'go-back-n', frames = 14, timeout = '150ms', rate = '1Mbit/s'",
            "faster than",
        ),
        ("loss = '100%'", "kind = 'stop-and-wait', timeout = '150ms'", "everything is lost"),
        // While a frame waits 2 s for its repetition, 55 others go ahead of it.
        (
            "forward = { loss = '5%' }",
            "kind = 'selective-repeat', frames = 3, buffer = 40, timeout = '2s', rate = '1Mbit/s'",
            "give buffer = ",
        ),
        ("limit = '2p'", "kind = 'netblt', interval = '50ms', frame = 1024", "overflow the queue"),
    ];
    for (link, transport, why) in refused {
        let link = if link.contains("delay") {
            link.replace("delay", "backward = { delay") + " }"
        } else {
            link.into()
        };
        let (predicted, simulated) = both(&link, transport);
        match predicted {
            Ok(rate) => panic!("{link}; {transport}: {rate} B/s predicted, {simulated} simulated"),
            Err(said) => assert!(said.contains(why), "{link}; {transport}: {said}"),
        }
    }
}

/// What slow answers and a slow sender make of the rate is in the formula; a queue that just holds the window is enough.
#[test]
fn what_the_formulas_cover_is_the_simulator_s() {
    let covered = [
        ("backward = { rate = '4kbit/s' }", "kind = 'go-back-n', frames = 40, frame = 1024"),
        ("", "kind = 'go-back-n', frames = 40, timeout = '150ms', rate = '100kbit/s'"),
        ("", "kind = 'selective-repeat', frames = 40, timeout = '150ms', rate = '100kbit/s'"),
        ("limit = '13p'", "kind = 'go-back-n', frames = 14"),
        ("limit = '1p'", "kind = 'go-back-n', frames = 40, rate = '1Mbit/s'"),
        ("discipline = 'red'", "kind = 'stop-and-wait'"),
        ("discipline = 'codel'", "kind = 'go-back-n', frames = 40, rate = '1Mbit/s'"),
    ];
    for (link, transport) in covered {
        let (predicted, simulated) = both(link, transport);
        let rate = predicted.unwrap_or_else(|why| panic!("{link}; {transport}: {why}"));
        assert!((rate / simulated - 1.0).abs() < 0.01, "{link}; {transport}: {rate} {simulated}");
    }
}

/// A small window that losses keep from filling the line: some of its places wait for their time-outs, and those that
/// are left take turns on the line, or leave it idle.
#[test]
fn places_that_wait_for_a_time_out_leave_the_line_to_the_others() {
    for (frames, loss, timeout) in [
        (3, "2%", "2s"),
        (5, "10%", "2s"),
        (8, "30%", "500ms"),
        (40, "5%", "10s"),
        (4, "10%", "1s"),
    ] {
        let link = format!("delay = '4ms'\nforward = {{ loss = '{loss}' }}");
        let keys = format!(
            "kind = 'selective-repeat', frames = {frames}, buffer = 10000, timeout = '{timeout}', rate = '1Mbit/s'"
        );
        let text = path(&link, &keys).replace("delay = '50ms'\n", "");
        let text = text.replace("duration = '300s'", "duration = '9000s'");
        let text = format!("stop_after = '3h'\nsamples = 'none'\n{text}");
        let (predicted, simulated, notes) = rates(&text, 9000.0);
        let predicted = predicted.unwrap_or_else(|| panic!("{keys}: {notes}"));
        assert!((predicted / simulated - 1.0).abs() < 0.015, "{keys}: {predicted} {simulated}");
    }
}

/// A window of one frame whose sender's rate is below that of frames and their answers, which a time-out does not wait for: of
/// frames of 1032 bytes at 10 kbit/s one goes in 825.6 ms, and 1 / (1 − p) of them bring one.
#[test]
fn a_single_frame_keeps_to_its_sender_s_rate() {
    for kind in ["go-back-n", "selective-repeat"] {
        let keys = format!("kind = '{kind}', frames = 1, timeout = '150ms', rate = '10kbit/s'");
        let text = path("forward = { loss = '10%' }", &keys)
            .replace("duration = '300s'", "duration = '20000s'\ninterval = '10s'");
        let text = format!("stop_after = '6h'\nsamples = 'none'\n{text}");
        let (predicted, simulated, notes) = rates(&text, 20_000.0);
        let predicted = predicted.unwrap_or_else(|| panic!("{keys}: {notes}"));
        assert!((predicted * 0.8256 / 1024.0 - 0.9).abs() < 1e-4, "{keys}: {predicted}");
        assert!((predicted / simulated - 1.0).abs() < 0.01, "{keys}: {predicted} {simulated}");
    }
}

/// A test of a stated time counts writes whose frames have gone: the whole first window of them, which a note tells.
#[test]
fn a_test_that_is_short_for_its_window_has_a_note() {
    let notes = |link: &str, keys: &str| {
        let text = path(link, keys).replace("'greedy'", "'timed-transfer'\nsizes = [1024]");
        let found = predictions(&Scenario::parse(&text, "test.toml").unwrap()[0]).unwrap();
        assert_eq!(found.list.len(), 2, "{:?}", found.notes);
        found.notes.iter().map(|note| note.to_string()).collect::<String>()
    };
    let window = "kind = 'go-back-n', frames = 3000, timeout = '60s'";
    let paced = format!("{window}, rate = '1Mbit/s'");
    assert!(notes("limit = '5000p'", window).contains("return sooner"));
    assert_eq!(notes("", &paced), "", "a window that is never full");
    // Until the time-out 3000 frames go in vain.
    assert!(notes("forward = { loss = '0.1%' }", &paced).contains("holds 3076096 bytes"));
    let far = "backward = { delay = '30s' }\nforward = { loss = '0.1%' }";
    assert!(notes(far, &paced).contains("return sooner"));
}

/// Lines that send in slots make frames and answers wait for one: half of a slot in the mean, and a note tells of
/// how much more or less it may be.
#[test]
fn waits_for_slots_are_in_the_formulas() {
    for (delay, rate) in [("0", "1Mbit/s"), ("3ms", "100kbit/s"), ("777us", "64kbit/s")] {
        let text = path("framing = 'atm-aal5'", "kind = 'stop-and-wait', frame = 100")
            .replace("delay = '50ms'", &format!("delay = '{delay}'"))
            .replace("'1Mbit/s'", &format!("'{rate}'"))
            .replace("kind = 'greedy'", "kind = 'greedy'\nwrite = 100");
        let (predicted, simulated, notes) = rates(&text, 300.0);
        let predicted = predicted.unwrap_or_else(|| panic!("no formula: {notes}"));
        let range = notes.split("between ").nth(1).unwrap_or_else(|| panic!("no range: {notes}"));
        let bounds: Vec<f64> =
            range.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let inside = |value: f64| bounds[0] * 0.99 <= value && value <= bounds[1] * 1.01;
        assert!(inside(simulated) && inside(predicted), "{predicted} {simulated}: {notes}");
    }
}

/// Of a window that about fills a line with losses the formula is an upper bound, and says so.
#[test]
fn a_window_that_about_fills_the_line_has_a_note() {
    let about = "kind = 'selective-repeat', frames = 16, buffer = 10000, timeout = '500ms', rate = '1Mbit/s'";
    let notes = |frames: &str| {
        let text = path("forward = { loss = '5%' }", &about.replace("16", frames));
        let found = predictions(&Scenario::parse(&text, "test.toml").unwrap()[0]).unwrap();
        found.notes.iter().map(|note| note.to_string()).collect::<String>()
    };
    assert!(notes("16").contains("up to 6 % lower") && !notes("4").contains("up to 6 %"));
}

/// A transfer ends with the answer to an empty message, which is a frame more: the time is the simulator's, however few
/// frames there are.
#[test]
fn a_transfer_takes_as_long_as_the_formulas_say() {
    let of = |bytes: u32, confirm: bool, transport: &str| {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '50ms'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = {bytes}\n\
             confirm = {confirm}\ntransport = {{ {transport} }}\n"
        );
        Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}")).remove(0)
    };
    for transport in [
        "kind = 'stop-and-wait'",
        "kind = 'go-back-n', frames = 4",
        "kind = 'go-back-n', frames = 40",
        "kind = 'selective-repeat', frames = 5",
    ] {
        for frames in [1, 3, 4, 5, 39, 100] {
            let scenario = of(1024 * frames, true, transport);
            let run = trunkline_sim::run(&scenario).unwrap();
            let predicted = trunkline_model::predict(&scenario).unwrap();
            let [took, expected] = [&run, &predicted].map(|run| {
                let sample = &run.traffic[0].samples[0];
                sample.end.since(sample.start).as_millis_f64()
            });
            let name = format!("{transport}, {frames} frames: {took} ms, {expected} predicted");
            assert!((took / expected - 1.0).abs() < 1e-3, "{name}");
        }
        let found = predictions(&of(10_240, false, transport)).unwrap();
        assert_eq!(found.list, [], "{transport}");
    }
}

/// A transfer over NETBLT opens a connection, and its answer another one the other way: the formula counts both.
#[test]
fn a_transfer_over_netblt_takes_as_long_as_the_formulas_say() {
    for (bytes, keys) in [
        (1024, "burst = 1, interval = '10ms'"),
        (10_240, "burst = 5, interval = '10ms'"),
        (102_400, "burst = 5, interval = '10ms'"),
        (1_024_000, "burst = 5, interval = '10ms', packets = 10"),
        (102_400, "burst = 10, interval = '200ms', packets = 10, outstanding = 4"),
        // Buffers that hold less than a burst, and one that holds all.
        (102_400, "burst = 160, interval = '40ms', packets = 1, outstanding = 1"),
        (204_800, "burst = 100, interval = '100ms', packets = 10, outstanding = 4"),
        (65_536, "burst = 5, interval = '10ms', packets = 64, outstanding = 1"),
    ] {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '50ms'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = {bytes}\n\
             transport = {{ kind = 'netblt', frame = 1024, {keys} }}\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap().remove(0);
        let runs =
            [trunkline_sim::run(&scenario).unwrap(), trunkline_model::predict(&scenario).unwrap()];
        let [took, expected] = runs.each_ref().map(|run| {
            let sample = &run.traffic[0].samples[0];
            assert_eq!(check(run), []);
            sample.end.since(sample.start).as_millis_f64()
        });
        assert!(
            (took / expected - 1.0).abs() < 0.02,
            "{bytes}, {keys}: {took} ms, {expected} predicted"
        );
    }
}

/// Over NETBLT writes of any size are gathered in buffers, as long as the host writes faster than packets go.
#[test]
fn writes_over_netblt_need_not_fill_its_packets() {
    let scenario = |write: u32, cost: &str| {
        let text = format!(
            "[[host]]\nname = 'a'\nprocessor = 'p'\n[[host]]\nname = 'b'\n[processor.p]\nwrite = '{cost}'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '10ms'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = 1000000\nwrite = {write}\n\
             transport = {{ kind = 'netblt', burst = 5, interval = '10ms' }}\n"
        );
        Scenario::parse(&text, "test.toml").unwrap().remove(0)
    };
    for (write, cost) in
        [(100, "0us"), (1024, "0us"), (4000, "0us"), (1024, "200us"), (100_000, "2ms")]
    {
        let scenario = scenario(write, cost);
        let runs =
            [trunkline_sim::run(&scenario).unwrap(), trunkline_model::predict(&scenario).unwrap()];
        let [took, expected] =
            runs.each_ref().map(|run| run.traffic[0].samples[0].delay().as_millis_f64());
        assert!(
            (took / expected - 1.0).abs() < 0.02,
            "{write}, {cost}: {took} ms, {expected} predicted"
        );
    }
    let slow = predictions(&scenario(100, "2ms")).unwrap();
    assert!(slow.list.is_empty() && slow.notes[0].text.contains("do not fill"), "{slow:?}");
}

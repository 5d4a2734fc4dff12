//! The formulas for TCP against figures that the simulator gave for cases drawn from a seed:
//! `cargo run --release -p trunkline-batch --example formulas -- --seed 7`. The bounds are the goals of
//! docs/formulas.md.

use trunkline_model::{Figure, What, predictions};
use trunkline_scenario::Scenario;

const STEADY: &str = include_str!("../recorded/steady.csv");
const TRANSFERS: &str = include_str!("../recorded/transfers.csv");

/// A recorded case: its scenario, goodput in bytes per second of a flow or seconds of a transfer, and mean queue in
/// milliseconds.
struct Case {
    scenario: Scenario,
    rtt_ms: f64,
    figure: f64,
    queue_ms: f64,
}

fn number(fields: &[&str], at: usize) -> f64 {
    fields[at].parse().unwrap_or_else(|_| panic!("{fields:?}: field {at} is no number"))
}

fn case(line: &str) -> Case {
    let fields: Vec<&str> = line.split(',').collect();
    let (controller, profile, rate) = (fields[1], fields[2], fields[3]);
    let (loss, limit, flows) = (fields[5], fields[7], fields[8]);
    let delay = number(&fields, 4) / 2.0;
    let kind = match fields[9] {
        "transfer" => format!("kind = \"bulk\"\nbytes = {}\nconfirm = true", fields[10]),
        _ => "kind = \"greedy\"\nduration = \"60s\"".into(),
    };
    // Flows begin within a round trip, at distances drawn for each run: half of it is the mean.
    let stagger = (number(&fields, 4) / 2.0 / number(&fields, 8)) as u64;
    let text = format!(
        "samples = \"all\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"{}us\"\n\
         forward = {{ rate = \"{rate}bit/s\", loss = {loss}, limit = \"{limit}B\" }}\n\
         [[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\ncount = {flows}\nwrite = 65536\n\
         stagger = \"{stagger}us\"\n{kind}\n\
         transport = {{ kind = \"tcp\", profile = \"{profile}\", congestion = \"{controller}\" }}\n",
        delay.floor()
    );
    let cells =
        Scenario::parse(&text, "case.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let scenario = cells.into_iter().next().unwrap();
    let (figure, queue_ms) = (number(&fields, 12), number(&fields, 15));
    Case { scenario, rtt_ms: number(&fields, 4) / 1e3, figure, queue_ms }
}

/// The errors of goodput and of the mean round trip.
fn errors(case: &Case) -> (f64, f64) {
    let found = predictions(&case.scenario).unwrap();
    let of = |what: What| found.list.iter().find(|p| p.what == what).map(|p| p.value);
    let Some(Figure::Rate(rate)) = of(What::Throughput) else { panic!("{:?}", found.notes) };
    let queue = of(What::MeanQueue).or(of(What::StandingQueue)).and_then(Figure::time);
    let queue = queue.map_or(0.0, |queue| queue.as_millis_f64());
    let rate = rate.millibytes_per_second() as f64 / 1e3;
    let round_trip = (case.rtt_ms + queue) / (case.rtt_ms + case.queue_ms);
    ((rate / case.figure - 1.0).abs(), (round_trip - 1.0).abs())
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * share) as usize).min(values.len() - 1)]
}

#[test]
fn the_goals_hold_for_the_recorded_cases() {
    let cases: Vec<Case> = STEADY.lines().skip(1).map(case).collect();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    let (goodputs, trips): (Vec<f64>, Vec<f64>) = cases.iter().map(errors).unzip();
    let (median, high) = (quantile(goodputs.clone(), 0.5), quantile(goodputs, 0.95));
    assert!(
        median <= 0.10 && high <= 0.35,
        "goodput: median {median:.3}, 95th percentile {high:.3}"
    );
    let median = quantile(trips, 0.5);
    assert!(median <= 0.15, "round trip: median {median:.3}");
}

#[test]
fn the_goals_hold_for_the_recorded_transfers() {
    let cases: Vec<Case> = TRANSFERS.lines().skip(1).map(case).collect();
    assert!(cases.len() >= 160, "{} cases", cases.len());
    let error = |case: &Case| {
        let found = predictions(&case.scenario).unwrap();
        let own = found.list.iter().find(|p| p.what == What::Transfer);
        let time = own.and_then(|p| p.value.time()).unwrap_or_else(|| panic!("{:?}", found.notes));
        (time.as_secs_f64() / case.figure - 1.0).abs()
    };
    let errors: Vec<f64> = cases.iter().map(error).collect();
    let (median, high) = (quantile(errors.clone(), 0.5), quantile(errors, 0.95));
    assert!(
        median <= 0.10 && high <= 0.35,
        "transfers: median {median:.3}, 95th percentile {high:.3}"
    );
}

//! A scenario cut down to what real time allows.

use trunkline_core::{Size, Span};
use trunkline_scenario::{Scenario, Start, Traffic, Workload};

/// Fewest messages of a size: a median of fewer says little.
const MESSAGES: u32 = 10;
/// Shortest time of a timed workload.
const DURATION: Span = Span::from_millis(500);
/// Shortest interval in which a greedy connection's bytes are counted.
const INTERVAL: Span = Span::from_millis(100);
/// Fewest bytes of a transfer.
const BYTES: u64 = 20_000;
/// A run may last so many times as long as it was cut to before it is ended.
const PATIENCE: u64 = 3;

/// `scenario` with its repetitions, transfers and durations cut to about `allowed`, if it `takes` longer in
/// the simulator. Sizes, rates, delays and windows stay as they are, and so do repetitions below ten.
pub fn shortened(scenario: &Scenario, takes: Span, allowed: Span) -> Scenario {
    let mut short = scenario.clone();
    if takes > allowed {
        let share = allowed.as_secs_f64() / takes.as_secs_f64();
        short.traffic.iter_mut().for_each(|traffic| cut(traffic, share));
        short.stop_after = short.stop_after.min(allowed.scaled(PATIENCE, 1));
    }
    short
}

/// At most `most` of `cells`, spread evenly from the first to the last.
pub fn chosen(cells: &[Scenario], most: usize) -> Vec<Scenario> {
    let (count, gaps) = (cells.len(), most.saturating_sub(1).max(1));
    if count <= most {
        return cells.to_vec();
    }
    (0..most).map(|index| cells[index * (count - 1) / gaps].clone()).collect()
}

fn cut(traffic: &mut Traffic, share: f64) {
    if let Start::AfterBytes(_, bytes) = &mut traffic.start {
        *bytes = Size::from_bytes(part(bytes.bytes(), share, 1));
    }
    // What goes on until another ends, ends with it.
    let endless = traffic.until.is_some();
    match &mut traffic.workload {
        Workload::Interactive { repeat, .. } if !endless => {
            *repeat = fewer(*repeat, share, MESSAGES);
        }
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } if !endless => {
            let few = fewer(*repeat, share, 1);
            let left = share * f64::from(*repeat) / f64::from(few);
            *repeat = few;
            *bytes = Size::from_bytes(part(bytes.bytes(), left.min(1.0), BYTES));
        }
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Paced { duration, .. }
            if !endless =>
        {
            *duration = shorter(*duration, share, DURATION);
        }
        Workload::Greedy { duration, warm_up, interval, .. } => {
            *duration = shorter(*duration, share, DURATION);
            *warm_up = (*warm_up).min(duration.scaled(1, 4));
            *interval = shorter(*interval, share, INTERVAL).min(*duration - *warm_up);
        }
        _ => {}
    }
}

fn part(of: u64, share: f64, least: u64) -> u64 {
    ((of as f64 * share) as u64).max(least.min(of))
}

fn fewer(count: u32, share: f64, least: u32) -> u32 {
    ((f64::from(count) * share) as u32).max(least.min(count))
}

fn shorter(span: Span, share: f64, least: Span) -> Span {
    Span::from_nanos(part(span.as_nanos(), share, least.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[host]]
        name = "a"
        [[host]]
        name = "b"
        [[link]]
        between = ["a", "b"]
        [[traffic]]
        name = "messages"
        kind = "interactive"
        from = "a"
        to = "b"
        sizes = [1, 64]
        repeat = 300
        [[traffic]]
        name = "files"
        kind = "bulk"
        from = "a"
        to = "b"
        bytes = "1MB"
        repeat = 4
        [[traffic]]
        name = "greedy"
        kind = "greedy"
        from = "a"
        to = "b"
        duration = "60s"
        warm_up = "10s"
    "#;

    fn scenario() -> Scenario {
        Scenario::parse(FILE, "t.toml").unwrap().remove(0)
    }

    #[test]
    fn work_is_cut_in_proportion() {
        let long = scenario();
        let short = shortened(&long, Span::from_secs(60), Span::from_secs(6));
        let Workload::Interactive { repeat, .. } = short.traffic[0].workload else { panic!() };
        assert_eq!(repeat, 30);
        let Workload::Bulk { bytes, repeat, .. } = short.traffic[1].workload else { panic!() };
        assert_eq!((bytes.bytes(), repeat), (400_000, 1));
        let Workload::Greedy { duration, warm_up, .. } = short.traffic[2].workload else {
            panic!()
        };
        assert_eq!((duration, warm_up), (Span::from_secs(6), Span::from_millis(1500)));
        assert_eq!(short.stop_after, Span::from_secs(18));
    }

    #[test]
    fn what_is_short_enough_stays() {
        let long = scenario();
        assert_eq!(shortened(&long, Span::from_secs(6), Span::from_secs(6)), long);
        let short = shortened(&long, Span::from_secs(60), Span::from_millis(1));
        let Workload::Interactive { repeat, .. } = short.traffic[0].workload else { panic!() };
        assert_eq!(repeat, MESSAGES);
    }

    #[test]
    fn cells_are_spread() {
        let cells: Vec<Scenario> =
            (0..7).map(|index| Scenario { name: index.to_string(), ..scenario() }).collect();
        let names = |most| chosen(&cells, most).into_iter().map(|it| it.name).collect::<String>();
        assert_eq!(
            (names(1), names(2), names(3), names(9)),
            ("0".into(), "06".into(), "036".into(), "0123456".into())
        );
    }
}

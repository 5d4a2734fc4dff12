//! Chapter 2 of Vande Water 1988 by machine: his measurements in, his conclusions out.

use std::path::Path;
use trunkline_core::Seed;
use trunkline_fit::{CannotTell, Known, Opens, PathFit, Pattern};

/// Table I: minimum round trips from Berkeley to New Jersey with the 756-byte window, by `dkbench`.
fn table_one() -> Vec<(u32, f64)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("studies/vandewater1988/published/table1_rtt_fishonaplatter.csv");
    let text = std::fs::read_to_string(file).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].parse().unwrap(), cells[4].parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn his_window_his_slope_and_his_distance() {
    let known = Known {
        block: Some(252),
        overhead: Some(4),
        answer: Some(1),
        // §2.5.2: the board sends on only after an answer to all.
        opens: Some(Opens::AsWhole),
        ..Known::only(Pattern::Echo)
    };
    let fit = PathFit::of(&table_one(), known, Seed(1988));
    assert_eq!(fit.window, Ok(756));
    // Equation 5: 0.02 ms for each byte, both ways, lines and hosts together.
    let delay = fit.delay.unwrap();
    // §2.4: 24.15 ms at most, for 3000 miles at two thirds of the speed of light.
    assert!(delay.interval.low > 21.5 && delay.interval.high < 24.15, "{delay:?}");
    let curve = fit.curve.unwrap();
    assert!((curve.slope - 0.02).abs() < 0.001, "{}", curve.slope);
    assert!((curve.base - 54.64).abs() < 1.0, "{}", curve.base);
}

/// Without knowing how the board sends, the distance is told as wide as it has to be.
#[test]
fn what_he_knew_of_the_board_is_needed_for_the_distance() {
    let fit = PathFit::of(&table_one(), Known::only(Pattern::Echo), Seed(1988));
    assert_eq!(fit.window, Ok(756));
    let Err(CannotTell::TooWide { low, high, .. }) = fit.delay else { panic!("{:?}", fit.delay) };
    assert!(low < 24.15 && 24.15 < high, "{low} to {high}");
}

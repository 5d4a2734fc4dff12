//! What is told first is what brings most, and what is promised is what the change brings: scenarios by chance, each change
//! made in its file and run at full length. `make advice` does the same for three hundred.

use crate::advice::draw::{draw, is_long};
use crate::advice::judge::{Verdict, judge};

/// Any seed would do; this one is the first that was tried.
const SEED: u64 = 1;
/// Packets over links from which on a run may be cut: low enough that the drawn scenarios come to it.
const TIGHT: u64 = 1000;

fn judged(numbers: impl Iterator<Item = u64>) -> Vec<Verdict> {
    numbers.map(|number| judge(&draw(SEED, number), is_long(number).then_some(TIGHT))).collect()
}

fn assert_good(verdicts: &[Verdict]) {
    let wrong: Vec<String> = verdicts
        .iter()
        .filter(|it| !it.is_right() || !it.keeps_promises())
        .map(|it| it.to_string())
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), verdicts.len(), wrong.join("\n"));
}

#[test]
fn drawn_scenarios_are_advised_rightly() {
    // In 14 datagrams go on arriving after their sender has done; in 29 and 115 chance may have made what relaxing gains.
    let verdicts = judged((0..24).chain([29, 115]));
    assert_good(&verdicts);
    assert!(verdicts.iter().any(|it| it.was_cut), "no run was cut, so that cutting was not tried");
    let odd: Vec<String> =
        verdicts.iter().filter(|it| !it.is_as_built()).map(|it| it.to_string()).collect();
    assert!(odd.len() <= 5, "scenarios are not what they were built to be:\n{}", odd.join("\n"));
}

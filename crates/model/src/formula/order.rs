//! Windows of blocks of unequal size, whose answers come in the order of the blocks.
//!
//! The answer to block k comes when its own round is over, and not before the answer to the block ahead: with a window of w
//! blocks and rounds a, A(k) = max(A(k − w) + a(k), A(k − 1)). A short block that follows a long one gains nothing by its
//! shorter round. In the long run the slowest circuit of these dependences counts (Baccelli et al. 1992 §2.4).

use trunkline_core::Span;

/// Blocks of a write for which circuits are searched; among more of them the short last one hardly counts (a choice).
const BLOCKS: usize = 32;
/// Halvings of the interval in which the slowest circuit is: one part in a million.
const HALVINGS: u32 = 20;

/// The time that a window of `outstanding` blocks needs for the blocks of a write, whose rounds are `answered`, written again
/// and again.
pub fn window_time(answered: &[Span], outstanding: u32) -> Span {
    let window = u64::from(outstanding.max(1));
    let mean = answered.iter().copied().sum::<Span>().scaled(1, window);
    let longest = answered.iter().copied().max().unwrap_or_default();
    let most = longest.scaled(answered.len() as u64, window);
    let alike = answered.iter().all(|&it| it == longest);
    if alike || window == 1 || answered.len() > BLOCKS {
        return mean;
    }
    let count = answered.len() as f64;
    let rounds: Vec<f64> = answered.iter().map(|it| it.as_nanos() as f64).collect();
    let (mut least, mut most) = (mean.as_nanos() as f64 / count, most.as_nanos() as f64 / count);
    for _ in 0..HALVINGS {
        let middle = (least + most) / 2.0;
        if any_slower(&rounds, window as usize, middle) { least = middle } else { most = middle }
    }
    mean.max(Span::from_nanos((least * count) as u64))
}

/// Whether a circuit takes longer than `pace` for each block that it goes back.
fn any_slower(rounds: &[f64], window: usize, pace: f64) -> bool {
    let count = rounds.len();
    let mut longest = vec![0.0_f64; count];
    for _ in 0..=count {
        let before = longest.clone();
        for (block, &round) in rounds.iter().enumerate() {
            let opened =
                before[(block + count - window % count) % count] + round - pace * window as f64;
            let behind = before[(block + count - 1) % count] - pace;
            longest[block] = longest[block].max(opened).max(behind);
        }
        if longest == before {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(of: &[u64]) -> Vec<Span> {
        of.iter().map(|&it| Span::from_millis(it)).collect()
    }

    fn near(found: Span, told: f64) {
        let found = found.as_secs_f64() * 1e3;
        assert!((found / told - 1.0).abs() < 1e-5, "{found} and {told}");
    }

    #[test]
    fn blocks_of_one_size_share_the_window() {
        assert_eq!(window_time(&millis(&[60, 60, 60]), 2), Span::from_millis(90));
        assert_eq!(window_time(&millis(&[60, 20]), 1), Span::from_millis(80));
    }

    /// In a window of two the long ones follow each other in one place of it, and the short ones wait in the other.
    #[test]
    fn a_short_block_waits_for_the_long_one_ahead() {
        near(window_time(&millis(&[60, 20]), 2), 60.0);
        near(window_time(&millis(&[60, 20]), 4), 30.0);
    }

    /// Places of a window of three have both in turn. The long ones alone would be as slow by way of the order.
    #[test]
    fn places_that_have_both_in_turn_take_the_mean_if_that_is_more() {
        near(window_time(&millis(&[60, 20]), 3), 30.0);
        near(window_time(&millis(&[60, 55]), 3), 115.0 / 3.0);
    }

    /// The recurrence itself, followed.
    #[test]
    fn the_slowest_circuit_is_what_comes_of_it_in_the_long_run() {
        for (rounds, window) in [(vec![9, 9, 9, 2], 3), (vec![7, 1, 5], 2), (vec![9, 9, 4], 5)] {
            let count = rounds.len();
            let mut answers = vec![0.0_f64; window];
            for block in 0..10_000 * count {
                let opened = answers[answers.len() - window] + rounds[block % count] as f64;
                answers.push(opened.max(answers[answers.len() - 1]));
            }
            let told = answers[answers.len() - 1] / 10_000.0;
            let found = window_time(&millis(&rounds), window as u32).as_secs_f64() * 1e3;
            assert!((found / told - 1.0).abs() < 1e-3, "{rounds:?}, {window}: {found} and {told}");
        }
    }
}

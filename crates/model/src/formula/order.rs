//! Windows of blocks of unequal size, which pass a line one behind the other and whose answers come in their order.
//!
//! With a window of w blocks, times s on the line and rounds a, block k has left the line at D(k) = max(D(k − 1), A(k − w)) + s(k),
//! and its answer comes at A(k) = max(D(k) + a(k) − s(k), A(k − 1)). A short block that follows a long one gains nothing by its
//! shorter round, and a line waits for answers where blocks of the window are short. In the long run the slowest circuit of
//! these dependences counts (Baccelli et al. 1992 §2.4).

use trunkline_core::Span;

/// Blocks of a write for which circuits are searched; among more of them the short last one hardly counts (a choice).
const BLOCKS: usize = 32;
/// Halvings of the interval in which the slowest circuit is: one part in a million.
const HALVINGS: u32 = 20;
/// The share by which the slowest circuit has to be slower than the line alone to be none of the line's own.
const LINE: f64 = 1e-4;

/// A block's time on the slowest line, and its whole round until its answer is there, that time included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// On the line.
    pub busy: Span,
    /// Until its answer is there.
    pub answered: Span,
}

/// The time that a window of `outstanding` blocks needs for the blocks of a write, written again and again. Less than the line
/// takes for them if that is what holds them up.
pub fn window_time(rounds: &[Round], outstanding: u32) -> Span {
    let window = u64::from(outstanding.max(1));
    let mean = rounds.iter().map(|it| it.answered).sum::<Span>().scaled(1, window);
    let alike = rounds.iter().all(|it| *it == rounds[0]);
    if alike || window == 1 || rounds.len() > BLOCKS {
        return mean;
    }
    let line: Span = rounds.iter().map(|it| it.busy).sum();
    let both = slowest(rounds, window, mean.max(line));
    if both.as_secs_f64() > line.as_secs_f64() * (1.0 + LINE) {
        return both;
    }
    let answers: Vec<Round> = rounds.iter().map(|it| Round { busy: Span::ZERO, ..*it }).collect();
    slowest(&answers, window, mean)
}

/// What the slowest circuit takes for the blocks of a write, and `least` at least.
fn slowest(rounds: &[Round], window: u64, least: Span) -> Span {
    let count = rounds.len() as f64;
    let longest = rounds.iter().map(|it| it.answered).max().unwrap_or_default();
    let most = longest.scaled(rounds.len() as u64, window).max(least) + least;
    let times: Vec<[f64; 2]> =
        rounds.iter().map(|it| [it.busy, it.answered].map(|it| it.as_nanos() as f64)).collect();
    let [mut low, mut high] = [least, most].map(|it| it.as_nanos() as f64 / count);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if any_slower(&times, window as usize, middle) { low = middle } else { high = middle }
    }
    least.max(Span::from_nanos((low * count) as u64))
}

/// Whether a circuit takes longer than `pace` for each block that it goes back.
fn any_slower(rounds: &[[f64; 2]], window: usize, pace: f64) -> bool {
    let count = rounds.len();
    let before = |block: usize, back: usize| (block + count - back % count) % count;
    let (mut left, mut answered) = (vec![0.0_f64; count], vec![0.0_f64; count]);
    for _ in 0..=2 * count {
        let was = (left.clone(), answered.clone());
        for (block, &[busy, round]) in rounds.iter().enumerate() {
            let behind = was.0[before(block, 1)] - pace;
            let opened = was.1[before(block, window)] - pace * window as f64;
            left[block] = left[block].max(behind.max(opened) + busy);
            let ahead = was.1[before(block, 1)] - pace;
            answered[block] = answered[block].max(ahead).max(left[block] + round - busy);
        }
        if (&left, &answered) == (&was.0, &was.1) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(of: &[u64]) -> Vec<Round> {
        over(&of.iter().map(|&it| [0, it]).collect::<Vec<_>>())
    }

    fn over(of: &[[u64; 2]]) -> Vec<Round> {
        let [busy, answered] = [0, 1].map(|at| move |it: &[u64; 2]| Span::from_millis(it[at]));
        of.iter().map(|it| Round { busy: busy(it), answered: answered(it) }).collect()
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

    /// The line takes 31 ms for the four, and answers alone 30.7. But the line has nothing to do while the short block is one
    /// of the three of the window: the answer to the long one ahead, 23 ms, and a long one, 10.
    #[test]
    fn a_line_waits_while_short_blocks_fill_the_window() {
        let blocks = over(&[[10, 23], [10, 23], [10, 23], [1, 14]]);
        near(window_time(&blocks, 3), 33.0);
        // With room for all of them it never waits, and what the answers alone would take is told.
        assert!(window_time(&blocks, 9) < Span::from_millis(31));
    }

    /// The recurrence itself, followed.
    #[test]
    fn the_slowest_circuit_is_what_comes_of_it_in_the_long_run() {
        for (rounds, window) in [
            (vec![[0, 9], [0, 9], [0, 9], [0, 2]], 3),
            (vec![[0, 7], [0, 1], [0, 5]], 2),
            (vec![[0, 9], [0, 9], [0, 4]], 5),
            (vec![[10, 31], [10, 31], [10, 31], [1, 22]], 3),
            (vec![[10, 23], [10, 23], [10, 23], [1, 14]], 3),
            (vec![[5, 16], [5, 16], [2, 13]], 2),
        ] {
            let count = rounds.len();
            let (mut left, mut answers) = (0.0_f64, vec![0.0_f64; window]);
            for block in 0..10_000 * count {
                let [busy, round] = rounds[block % count].map(|it| it as f64);
                left = left.max(answers[answers.len() - window]) + busy;
                answers.push((left + round - busy).max(answers[answers.len() - 1]));
            }
            let told = answers[answers.len() - 1] / 10_000.0;
            let found = window_time(&over(&rounds), window as u32).as_secs_f64() * 1e3;
            assert!((found / told - 1.0).abs() < 1e-3, "{rounds:?}, {window}: {found} and {told}");
        }
    }
}

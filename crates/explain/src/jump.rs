//! Why a byte more makes a difference.

use crate::candidates::Candidate;
use crate::constraint::Constraint;
use crate::decide::RungFigures;
use crate::figure::{Figure, Figures};

/// The least jump that is told, as a share of the smaller size's time.
const NOTICEABLE: f64 = 0.08;
/// The least share of the jump that goes with the constraint which is said to make it.
const MADE: f64 = 0.5;
/// Shares of the jump that are this close are equal.
const EQUALS: f64 = 0.2;

/// Neighbouring sizes between which the time jumps.
pub(crate) fn jumps(base: &Figures) -> Vec<(u64, u64)> {
    let sizes: Vec<u64> = base.keys().copied().collect();
    let pairs = sizes.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|&(small, large)| close(small, large) && steep(base, small, large)).collect()
}

/// Whether two sizes differ by no more than a sixteenth, or one byte.
fn close(small: u64, large: u64) -> bool {
    small > 1 && large - small <= (small / 16).max(1)
}

fn steep(base: &Figures, small: u64, large: u64) -> bool {
    let (from, to): (&Figure, &Figure) = (&base[&small], &base[&large]);
    let rise = (to.seconds / from.seconds - 1.0).abs();
    rise > NOTICEABLE && rise > from.noise(to)
}

/// The constraint without which most of the jump is gone, with the share that goes. Distance makes every jump
/// larger and none by itself.
pub(crate) fn cause(
    base: &Figures,
    candidates: &[Candidate],
    rungs: &[RungFigures],
    (small, large): (u64, u64),
) -> Option<(Constraint, f64)> {
    // Relative to the smaller size: what makes everything faster makes no step smaller.
    let height =
        |figures: &Figures| Some(figures.get(&large)?.seconds / figures.get(&small)?.seconds - 1.0);
    let before = height(base)?;
    let gone = |figures: &RungFigures| {
        let after = height(figures.last()?.as_ref()?)?;
        Some(1.0 - (after / before).abs())
    };
    let made: Vec<(Constraint, f64)> = std::iter::zip(candidates, rungs)
        .filter(|(candidate, _)| candidate.constraint != Constraint::Distance)
        .filter_map(|(candidate, figures)| Some((candidate.constraint, gone(figures)?)))
        .filter(|&(_, share)| share > MADE)
        .collect();
    let most = made.iter().map(|&(_, share)| share).fold(0.0, f64::max);
    made.into_iter().filter(|&(_, share)| share >= most - EQUALS).min_by_key(|&(it, _)| it)
}

//! What binds: from what each relaxation buys.

use crate::candidates::Candidate;
use crate::constraint::Constraint;
use crate::explanation::{Binding, Bought, PairRelaxed, Relaxed};
use crate::figure::{Figure, Figures};

/// The least share of the time that a relaxation has to save to be the one that binds.
pub const ENOUGH: f64 = 0.10;
/// Relaxations that leave a time within this share of each other's savings are equals.
const EQUALS: f64 = 0.9;
/// Distance binds in spite of other constraints if it alone is worth so many times what they are.
const DISTANCE_RULES: f64 = 3.0;

/// The figures of a candidate's rungs, or `None` if a run failed.
pub(crate) type RungFigures = Vec<Option<Figures>>;

/// What the rungs of `candidate` buy for `size`.
fn relaxed(
    candidate: &Candidate,
    rungs: &RungFigures,
    size: u64,
    base: &Figure,
) -> Option<Relaxed> {
    let figures = rungs.iter().map(|figures| figures.as_ref().and_then(|it| it.get(&size)));
    let steps: Vec<Bought> = std::iter::zip(&candidate.rungs, figures)
        .filter_map(|((to, _), figure)| {
            let figure = *figure?;
            Some(Bought { to: to.clone(), figure, saved: base.saved_by(&figure) })
        })
        .collect();
    let best = steps.iter().max_by(|a, b| a.saved.total_cmp(&b.saved))?;
    let (saved, certain) = (best.saved, best.saved > base.noise(&best.figure));
    Some(Relaxed {
        constraint: candidate.constraint,
        place: candidate.place.clone(),
        now: candidate.now.clone(),
        steps,
        saved,
        certain,
    })
}

/// What each candidate buys for `size`, the most first.
pub(crate) fn ranked(
    candidates: &[Candidate],
    rungs: &[RungFigures],
    size: u64,
    base: &Figures,
) -> Vec<Relaxed> {
    let Some(base) = base.get(&size) else { return Vec::new() };
    let mut all: Vec<Relaxed> = std::iter::zip(candidates, rungs)
        .filter_map(|(candidate, rungs)| relaxed(candidate, rungs, size, base))
        .collect();
    all.sort_by(|a, b| {
        let more = b.saved.total_cmp(&a.saved).then(b.most().total_cmp(&a.most()));
        more.then(a.constraint.cmp(&b.constraint))
    });
    all
}

/// The constraint that binds. Of equals it is the one that takes least to relax; distance only if nothing else
/// is worth a third as much. What chance may have made counts only if nothing else is worth anything.
pub(crate) fn binding(relaxed: &[Relaxed], pairs: &[PairRelaxed]) -> Binding {
    let worth: Vec<&Relaxed> = relaxed.iter().filter(|it| it.saved > ENOUGH).collect();
    let certain: Vec<&Relaxed> = worth.iter().copied().filter(|it| it.certain).collect();
    match among(&certain, pairs) {
        Binding::Nothing => among(&worth, &[]),
        binding => binding,
    }
}

/// What binds among those that are worth something.
fn among(list: &[&Relaxed], pairs: &[PairRelaxed]) -> Binding {
    let fastest = list.iter().map(|it| it.most()).fold(0.0, f64::max);
    // If nothing arrives all that brings something saves the whole time, and is worth what it brings.
    let worth = |it: &Relaxed| if it.saved < 1.0 { it.saved } else { it.most() / fastest };
    let near = list.iter().filter(|it| it.constraint != Constraint::Distance);
    let most = near.clone().map(|it| worth(it)).fold(0.0, f64::max);
    let distance = list.iter().copied().find(|it| it.constraint == Constraint::Distance);
    let rules = distance.is_some_and(|distance| worth(distance) > DISTANCE_RULES * most);
    let equals = near.filter(|it| worth(it) >= EQUALS * most);
    if let Some(first) = equals.min_by_key(|it| it.constraint).filter(|_| !rules) {
        return Binding::One(first.constraint);
    }
    let pair = pairs.iter().find(|pair| pair.saved > ENOUGH && distance_allows(pair, distance));
    if let Some(pair) = pair {
        return Binding::Two(pair.first.0, pair.second.0);
    }
    if distance.is_some() { Binding::One(Constraint::Distance) } else { Binding::Nothing }
}

/// Whether a pair is worth something beside distance.
fn distance_allows(pair: &PairRelaxed, distance: Option<&Relaxed>) -> bool {
    distance.is_none_or(|distance| distance.saved <= DISTANCE_RULES * pair.saved)
}

/// Whether a pair buys so much more than its better half that it is worth telling: half of what is left.
pub(crate) fn is_news(pair: f64, alone: f64) -> bool {
    let left = 1.0 - alone.max(0.0);
    pair > ENOUGH && (1.0 - pair) < 0.5 * left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxed(constraint: Constraint, saved: f64, certain: bool) -> Relaxed {
        let (place, now) = (String::new(), String::new());
        Relaxed { constraint, place, now, steps: Vec::new(), saved, certain }
    }

    /// If nothing arrives, whatever lets some arrive saves the whole time.
    #[test]
    fn of_what_brings_something_instead_of_nothing_the_most_binds() {
        let brings = |constraint, rate| {
            let figure = Figure { bytes_per_second: rate, ..Figure::NOTHING };
            let step = Bought { to: String::new(), figure, saved: 1.0 };
            Relaxed { steps: vec![step], ..relaxed(constraint, 1.0, true) }
        };
        let list = [brings(Constraint::Window, 1e3), brings(Constraint::Rate, 3e3)];
        assert_eq!(binding(&list, &[]), Binding::One(Constraint::Rate));
        let list = [brings(Constraint::Window, 2.9e3), brings(Constraint::Rate, 3e3)];
        assert_eq!(binding(&list, &[]), Binding::One(Constraint::Window));
    }

    #[test]
    fn what_chance_may_have_made_is_told_before_nothing() {
        let loss = relaxed(Constraint::Loss, 0.86, false);
        let rate = relaxed(Constraint::Rate, 0.12, true);
        assert_eq!(binding(std::slice::from_ref(&loss), &[]), Binding::One(Constraint::Loss));
        assert_eq!(binding(&[loss, rate], &[]), Binding::One(Constraint::Rate));
        let little = relaxed(Constraint::Loss, 0.09, false);
        assert_eq!(binding(&[little], &[]), Binding::Nothing);
    }
}

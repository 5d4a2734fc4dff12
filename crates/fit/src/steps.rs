//! Finds the sizes at which delay jumps, from the smallest size upwards.

use crate::curve::{Curve, Packets, Regression, Shape, Teeth};
use crate::level::Level;
use serde::Serialize;

/// A level must stand off from the value that the curve through all smaller sizes gives it by so many standard
/// errors.
const CLEAR: f64 = 6.0;
/// And by this part of what it lies above the least level: no real path is quite linear.
const BENT: f64 = 0.002;
/// And by this part of the highest steps before it: behind a window's first jump hosts are late once more in
/// each turn, and nothing lower than the jumps is to be found there.
const FAINT: f64 = 0.25;
/// Levels that a curve is drawn through before anything is said about the next one.
const BEFORE: usize = 3;
/// Different combs that are looked for: packets and a window, each way.
const COMBS: usize = 4;
/// The number of times that the eye is made less sharp before a shape counts as strange.
const BLINKS: usize = 12;
/// Steps of one comb are as high as one another to this part.
const ALIKE: f64 = 0.2;
/// By how much beyond what disturbed it.
const BLUNTER: f64 = 1.3;

/// The kind of jumps that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Looking {
    /// Only for the first jump: those behind it are not looked at, since they need not come at its
    /// multiples (slow start, a receive window that moves, fragments).
    pub first_only: bool,
    /// Only for jumps higher than so many milliseconds.
    pub least: f64,
}

/// Two neighbouring sizes between which delay jumps, by how much is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The smaller size, before the jump.
    pub before: u32,
    /// The larger size, behind it.
    pub behind: u32,
}

/// The result of a scan from the smallest size upwards.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scan {
    /// The shape, with the combs found.
    pub shape: Shape,
    /// A jump whose place is not known to the byte: sizes between are wanted.
    pub open: Option<Gap>,
    /// The first size at which delay is less than the combs say, or jumps although no period is left to
    /// explain it, and by how much.
    pub strange: Option<(u32, f64)>,
    /// The distance in milliseconds below which a level that stands off was overlooked.
    pub blunt: f64,
    /// The size at which that had to be done first.
    pub overlooked: Option<u32>,
}

/// Scans levels, which ascend by size. Small irregularities that fit no comb (a reader that is woken once
/// for one packet and once for all others, say) must not hide a window's jumps: if the scan meets one
/// it begins anew with a blunter eye. A shape that stays strange is returned as it looked first.
pub(crate) fn scan(levels: &[Level], packets: Packets, looking: Looking) -> Scan {
    let first = scan_with(levels, packets, looking, looking.least);
    let mut found = first.clone();
    for _ in 0..BLINKS {
        let Some((_, off)) = found.strange else { return found };
        let blunt = found.blunt.max(off.abs() * BLUNTER);
        found = scan_with(levels, packets, looking, blunt);
        found.overlooked = first.strange.map(|(size, _)| size);
    }
    first
}

fn scan_with(levels: &[Level], packets: Packets, looking: Looking, blunt: f64) -> Scan {
    let shape = Shape { packets, teeth: Vec::new() };
    let mut found = Scan { shape, open: None, strange: None, blunt, overlooked: None };
    let mut calm: Vec<Level> = Vec::new();
    for (index, next) in levels.iter().enumerate() {
        let off = found.standing_off(&calm, next);
        // A level that stands off while the one behind it does not is one that something disturbed.
        // Behind the next step that cannot be seen.
        let lasts = |later: &Level| {
            found.shape.steps(later.size) > found.shape.steps(next.size)
                || found.standing_off(&calm, later) * off > 0.0
        };
        if off != 0.0 && !levels.get(index + 1).is_none_or(lasts) {
            continue;
        }
        if off != 0.0 && !found.take(off, &calm, next.size) {
            return found;
        }
        if looking.first_only && !found.shape.teeth.is_empty() {
            return found;
        }
        calm.push(next.clone());
    }
    found
}

impl Scan {
    /// The distance of a level from the value that the smaller ones give it, in milliseconds; 0 if that
    /// may be chance.
    fn standing_off(&self, calm: &[Level], next: &Level) -> f64 {
        let Some(regression) = (calm.len() >= BEFORE).then(|| self.regression(calm)).flatten()
        else {
            return 0.0;
        };
        let (expected, error) = regression.predict(next.size);
        let off = next.millis - expected;
        let bent = BENT * (next.millis - calm[0].millis).max(0.0);
        let faint = FAINT * regression.highest();
        let allowed = (CLEAR * error.hypot(next.error) + bent).max(self.blunt).max(faint);
        if off.abs() > allowed { off } else { 0.0 }
    }

    /// With the combs of which at least one step lies among the levels.
    fn regression(&self, levels: &[Level]) -> Option<Regression> {
        let most = levels.last().map_or(0, |one| one.size);
        let mut shape = self.shape.clone();
        shape.teeth.retain(|teeth| teeth.first < most);
        Regression::of(levels, &shape)
    }

    /// Takes note of a level at `next` that stands off from the calm ones before. False if the scan
    /// cannot go on.
    fn take(&mut self, off: f64, calm: &[Level], next: u32) -> bool {
        let last = calm[calm.len() - 1].size;
        let known = self.shape.teeth.iter().any(|teeth| teeth.first == last);
        if off > 0.0 && next > last + 1 {
            self.open = Some(Gap { before: last, behind: next });
        } else if off > 0.0
            && let Some(comb) = self.repeated(off, calm)
        {
            let teeth = &mut self.shape.teeth[comb];
            teeth.period = last - teeth.first;
            return true;
        } else if off > 0.0 && !known && self.shape.teeth.len() < COMBS {
            self.shape.teeth.push(Teeth::multiples(last));
            return true;
        } else {
            self.strange = Some((next, off));
        }
        false
    }

    /// The comb of which a step of this height behind the calm levels is the second one: as high as the
    /// first, and sooner than twice as far by less than half.
    fn repeated(&self, off: f64, calm: &[Level]) -> Option<usize> {
        let last = calm[calm.len() - 1].size;
        let regression = self.regression(calm)?;
        let second = |teeth: &Teeth| {
            let whole = teeth.period == teeth.first;
            whole && last < 2 * teeth.first && last >= teeth.first + teeth.first / 2
        };
        let alike = |comb: &usize| (off / regression.height(*comb) - 1.0).abs() < ALIKE;
        (0..self.shape.teeth.len()).filter(|&comb| second(&self.shape.teeth[comb])).find(alike)
    }
}

/// The curve through all levels, without combs that turn out not to stand out.
pub(crate) fn settle(levels: &[Level], shape: &Shape) -> Option<(Curve, Shape)> {
    let mut shape = shape.clone();
    loop {
        let regression = Regression::of(levels, &shape)?;
        let dull = (0..shape.teeth.len())
            .map(|comb| (comb, regression.clearness(comb)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|&(_, clearness)| clearness < CLEAR / 2.0);
        match dull {
            Some((comb, _)) => shape.teeth.remove(comb),
            None => return Some((regression.curve(), shape)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Comb;
    use crate::level::levels;
    use trunkline_core::{Seed, Stream};

    fn noisy(curve: &Curve, sizes: &[u32], noise: f64, stream: &mut Stream) -> Vec<(u32, f64)> {
        let one = |&size: &u32| (size, curve.at(size));
        let all = sizes.iter().map(one).flat_map(|pair| [pair; 12]);
        all.map(|(size, millis)| (size, millis + noise * stream.normal())).collect()
    }

    fn seen(samples: &[(u32, f64)]) -> Scan {
        scan(&levels(samples), Packets::UNKNOWN, Looking::default())
    }

    fn nothing() -> Scan {
        let shape = Shape { packets: Packets::UNKNOWN, teeth: vec![] };
        Scan { shape, open: None, strange: None, blunt: 0.0, overlooked: None }
    }

    fn window(period: u32, height: f64) -> Curve {
        Curve {
            base: 54.0,
            slope: 0.02,
            packets: Packets::UNKNOWN,
            combs: vec![Comb { teeth: Teeth::multiples(period), height }],
        }
    }

    #[test]
    fn a_step_between_neighbours_is_a_period_and_a_step_in_a_gap_is_open() {
        let mut stream = Seed(1).stream("steps");
        let sizes = [1, 2, 16, 17, 60, 80, 84, 85, 100, 112, 168, 169, 200];
        let samples = noisy(&window(84, 98.0), &sizes, 0.1, &mut stream);
        let found = seen(&samples);
        assert_eq!(
            (&found.shape.teeth[..], found.open, found.strange),
            (&[Teeth::multiples(84)][..], None, None)
        );
        let (curve, shape) = settle(&levels(&samples), &found.shape).unwrap();
        assert_eq!(shape.teeth, [Teeth::multiples(84)]);
        assert!((curve.combs[0].height - 98.0).abs() < 0.2 && (curve.base - 54.0).abs() < 0.2);
        let sizes = [1, 2, 16, 17, 112, 113];
        let found = seen(&noisy(&window(84, 98.0), &sizes, 0.1, &mut stream));
        assert_eq!(found.open, Some(Gap { before: 17, behind: 112 }));
    }

    #[test]
    fn only_the_first_step_is_looked_at_where_no_more_is_wanted() {
        let mut stream = Seed(4).stream("steps");
        // Slow start: the second step is three times as far as the first.
        let sizes = [1, 40, 84, 85, 100, 168, 169, 252, 253, 300];
        let doubling = |size: u32| {
            54.0 + 0.02 * f64::from(size)
                + 98.0 * f64::from(size > 84)
                + 60.0 * f64::from(size > 252)
        };
        let samples: Vec<(u32, f64)> = sizes
            .iter()
            .flat_map(|&size| [size; 12])
            .map(|size| (size, doubling(size) + 0.1 * stream.normal()))
            .collect();
        let first = Looking { first_only: true, least: 3.0 };
        let found = scan(&levels(&samples), Packets::UNKNOWN, first);
        assert_eq!(found.shape.teeth, [Teeth::multiples(84)]);
        assert_eq!((found.strange, found.overlooked), (None, None));
        assert!(seen(&samples).strange.is_some() || seen(&samples).overlooked.is_some());
        let high = Looking { first_only: true, least: 200.0 };
        assert_eq!(scan(&levels(&samples), Packets::UNKNOWN, high).shape.teeth, []);
    }

    #[test]
    fn one_disturbed_size_is_passed_over() {
        let mut stream = Seed(2).stream("steps");
        let sizes: Vec<u32> = (1..30).map(|step| step * 10).collect();
        let mut samples = noisy(&window(1000, 98.0), &sizes, 0.1, &mut stream);
        samples.iter_mut().filter(|(size, _)| *size == 150).for_each(|(_, millis)| *millis += 9.0);
        assert_eq!(seen(&samples), nothing());
    }

    #[test]
    fn steps_that_do_not_come_again_are_strange() {
        let mut stream = Seed(3).stream("steps");
        let sizes = [1, 2, 16, 40, 84, 85, 100, 168, 169, 200, 252, 253, 300];
        let once = |size: u32| 54.0 + if size > 84 { 98.0 } else { 0.0 };
        let samples: Vec<(u32, f64)> = sizes
            .iter()
            .flat_map(|&size| [size; 12])
            .map(|size| (size, once(size) + 0.1 * stream.normal()))
            .collect();
        let found = seen(&samples);
        assert_eq!((found.overlooked, &found.shape.teeth[..]), (Some(169), &[][..]));
        assert!(found.blunt > 98.0);
    }

    /// Of straight lines of all heights and slopes less than one in a thousand seems to have a step: six standard errors, which are
    /// known from a dozen values each, are not for ever.
    #[test]
    fn a_line_has_no_steps() {
        let sizes: Vec<u32> = (0..16).map(|power| 1 << power).collect();
        let mut stream = Seed(4).stream("lines");
        let wrong = (0..20000).filter(|_| {
            let (base, slope) = (1.0 + 99.0 * stream.unit(), 0.01 * stream.unit());
            let curve = Curve { base, slope, packets: Packets::UNKNOWN, combs: vec![] };
            seen(&noisy(&curve, &sizes, 0.03, &mut stream)) != nothing()
        });
        let wrong = wrong.count();
        assert!(wrong < 20, "{wrong} of 20000");
    }
}

//! The choice of message sizes, so that every boundary is straddled to the byte.

use crate::curve::{Curve, Packets, Regression, Shape, Teeth};
use crate::level::{Level, levels};
use crate::steps::{Gap, Looking, scan, settle};
use serde::Serialize;
use std::collections::BTreeSet;

/// The suspicions about a path before anything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Suspects {
    /// The largest network packet, headers included: 1500 on Ethernet.
    pub mtu: Option<u32>,
    /// Bytes of all headers between user bytes and that: 28 for UDP over IPv4, 40 for TCP without options.
    pub headers: u32,
    /// User bytes of a segment or block, if the transport says so.
    pub segment: Option<u32>,
    /// Bytes that may be outstanding, if the transport says so.
    pub window: Option<u32>,
}

impl Suspects {
    /// Sizes on both sides of each boundary (multiples of segment and of what fits the MTU, up to eight;
    /// multiples of the window, up to four) and both sides of the powers of two, from 1 to `largest`.
    pub fn sizes(&self, largest: u32) -> Vec<u32> {
        let fits = self.mtu.map(|mtu| mtu.saturating_sub(self.headers));
        let multiples = |of: Option<u32>, most: u32| {
            let of = of.filter(|&of| of > 0);
            of.into_iter().flat_map(move |of| (1..=most).filter_map(move |k| of.checked_mul(k)))
        };
        let boundaries = multiples(fits, 8)
            .chain(multiples(self.segment, 8))
            .chain(multiples(self.window, 4))
            .chain((0..31).map(|power| 1 << power));
        let around = boundaries.flat_map(|size| [size - 1, size, size.saturating_add(1)]);
        let sizes: BTreeSet<u32> = around.filter(|size| (1..=largest).contains(size)).collect();
        sizes.into_iter().collect()
    }
}

/// A size to be measured, and how often (in addition to what has been measured of it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Ask {
    /// User bytes.
    pub size: u32,
    /// Round trips.
    pub repeat: u32,
}

/// A sweep over message sizes that follows the jumps of delay.
///
/// It begins with small sizes, goes up by halves of octaves as long as no window shows, narrows each jump
/// to the exact byte, looks behind its multiples, measures anew what does not follow, and at last repeats the sizes on
/// which the slope hangs until the rate is known to three percent or [`most`](Sweep::most) is reached. Small sizes come
/// first because with a small window on a long path large ones take minutes. Measure what one answer asks for in mixed
/// order, so that a disturbance does not hit one size alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Largest size.
    pub largest: u32,
    /// No larger sizes once a round trip takes so long, in milliseconds.
    pub longest: f64,
    /// Round trips of each size.
    pub repeat: u32,
    /// Most round trips of any size.
    pub most: u32,
    /// Whether the slope is to be known well. Not if the rate is known otherwise.
    pub slope: bool,
    /// Sizes to be measured in any case.
    pub suspects: Vec<u32>,
    /// The conversion of user bytes to bytes on the line. If that is known, packets' own steps are none, the sweep
    /// begins with sizes about one packet's, and of a gap it first tries the packets' ends in it.
    pub packets: Packets,
    /// The kind of jumps that is followed.
    pub looking: Looking,
    /// Of these sizes as many round trips as of any are wanted, before the sweep is done: a jump is
    /// suspected there that may be small.
    pub doubted: Vec<u32>,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep {
            largest: 1 << 16,
            longest: 2_000.0,
            repeat: 20,
            most: 400,
            slope: true,
            suspects: Vec::new(),
            packets: Packets::UNKNOWN,
            looking: Looking::default(),
            doubted: Vec::new(),
        }
    }
}

/// The first sizes: all of one packet on most paths.
const FIRST: [u32; 15] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
/// Steps of a comb that are looked at.
const STEPS: u32 = 4;
/// The same if packets are known, so that their steps need not be told from the window's.
const FEW_STEPS: u32 = 2;
/// The number of times that a size that fits no curve is measured anew.
const DOUBTS: usize = 3;
/// A comb this high against the round trip of a byte can only be a window's.
const WINDOW_LIKE: f64 = 0.25;
/// Round trips on which a step's place rests if only one step counts.
const CONFIRMED: u32 = 10;
/// The accuracy to which the slope is to be known, as its standard error in units of itself: ±3 % at 95 %.
const SLOPE: f64 = 0.015;
/// Round trips are not asked for if more than so many times those made were needed.
const HOPELESS: f64 = 60.0;

impl Sweep {
    /// The sizes to measure next, after `samples` of `(user bytes, milliseconds)` in any order; nothing when
    /// the sweep is done.
    pub fn next(&self, samples: &[(u32, f64)]) -> Vec<Ask> {
        let levels = levels(samples);
        if levels.is_empty() {
            return self.asks(&levels, self.first());
        }
        let found = scan(&levels, self.packets, self.looking);
        let shape = &found.shape;
        let fresh = |sizes| Some(self.asks(&levels, sizes)).filter(|asks| !asks.is_empty());
        let doubtful = found.strange.map(|(size, _)| size).or(found.overlooked);
        fresh(found.open.map_or_else(Vec::new, |gap| self.inside(gap)))
            .or_else(|| self.anew(&levels, doubtful))
            .or_else(|| fresh(self.behind_steps(&levels, shape)))
            .or_else(|| fresh(self.beyond(&levels, shape)).filter(|_| found.strange.is_none()))
            .or_else(|| self.confirmed(&levels, shape))
            .or_else(|| self.closer(&levels))
            .unwrap_or_else(|| self.again(&levels, shape))
    }

    /// Both sides of the only step of interest once more: a place to the byte hangs on few round trips, and
    /// if hosts were late at one of the two it is another.
    fn confirmed(&self, levels: &[Level], shape: &Shape) -> Option<Vec<Ask>> {
        let step = shape.teeth.first().filter(|_| self.looking.first_only)?.first;
        let wanted = (CONFIRMED.min(self.most)) as usize;
        let few = levels.iter().filter(|one| one.size.wrapping_sub(step) < 2);
        let few = few.filter(|one| one.values.len() < wanted);
        let ask = |one: &Level| Ask { size: one.size, repeat: (wanted - one.values.len()) as u32 };
        let asks: Vec<Ask> = few.map(ask).collect();
        (!asks.is_empty()).then_some(asks)
    }

    /// Sizes that are doubted, as often as any.
    fn closer(&self, levels: &[Level]) -> Option<Vec<Ask>> {
        let ask = |one: &Level| {
            let left = (self.most as usize).saturating_sub(one.values.len()) as u32;
            (left > 0).then_some(Ask { size: one.size, repeat: left })
        };
        let doubted = levels.iter().filter(|one| self.doubted.contains(&one.size));
        let asks: Vec<Ask> = doubted.filter_map(ask).collect();
        (!asks.is_empty()).then_some(asks)
    }

    fn asks(&self, levels: &[Level], sizes: Vec<u32>) -> Vec<Ask> {
        let known: BTreeSet<u32> = levels.iter().map(|one| one.size).collect();
        let fresh: BTreeSet<u32> = sizes
            .into_iter()
            .filter(|&size| size <= self.largest && !known.contains(&size))
            .collect();
        fresh.into_iter().map(|size| Ask { size, repeat: self.repeat }).collect()
    }

    fn first(&self) -> Vec<u32> {
        let block = self.packets.block;
        if block > 0 {
            return [1, block / 2, block, block + 1, 2 * block]
                .into_iter()
                .chain(self.doubted.iter().copied())
                .filter(|&size| size > 0)
                .collect();
        }
        let most = FIRST[FIRST.len() - 1];
        let suspects = self.suspects.iter().copied().filter(|&size| size <= most);
        FIRST.into_iter().chain(suspects).collect()
    }

    /// Sizes inside a gap: the ends of packets next to its middle, if it has some, else quarters.
    fn inside(&self, gap: Gap) -> Vec<u32> {
        let block = self.packets.block;
        if block > 0 {
            let middle = gap.before + (gap.behind - gap.before) / 2;
            let ends = [0, 1].map(|more| (middle / block + more) * block);
            let inside = |size: &u32| *size > gap.before && *size < gap.behind;
            let found: Vec<u32> =
                ends.into_iter().flat_map(|end| [end, end + 1]).filter(inside).collect();
            if !found.is_empty() {
                return found;
            }
        }
        between(gap)
    }

    /// A size that does not follow from the smaller ones, and the one before it, to be measured at another
    /// time: hosts that were busy for seconds are no jump.
    fn anew(&self, levels: &[Level], doubtful: Option<u32>) -> Option<Vec<Ask>> {
        let at = levels.iter().position(|one| Some(one.size) == doubtful)?;
        let most = (self.repeat as usize).saturating_mul(1 + DOUBTS).min(self.most as usize);
        let ask = |one: &Level| {
            let left = most.saturating_sub(one.values.len()) as u32;
            (left > 0).then_some(Ask { size: one.size, repeat: left.min(self.repeat) })
        };
        let asks: Vec<Ask> = levels[at.saturating_sub(1)..=at].iter().filter_map(ask).collect();
        (!asks.is_empty()).then_some(asks)
    }

    /// Both sides of the first steps of each comb that have not become too slow.
    fn behind_steps(&self, levels: &[Level], shape: &Shape) -> Vec<u32> {
        let quick = |size: u32| self.expected(levels, shape, size) <= self.longest;
        let count = match (self.looking.first_only, self.packets.block > 0) {
            (true, _) => return self.behind_first(levels, shape),
            (_, true) => FEW_STEPS,
            _ => STEPS,
        };
        let steps = shape.teeth.iter().flat_map(|teeth| teeth.sizes(count).enumerate());
        steps
            .filter(|&(at, size)| at < 2 || quick(size))
            .flat_map(|(_, size)| [size, size.saturating_add(1)])
            .collect()
    }

    /// Both sides of the only step of interest, and a size on each side of it that tells a step from one
    /// level that was disturbed.
    fn behind_first(&self, levels: &[Level], shape: &Shape) -> Vec<u32> {
        let Some(step) = shape.teeth.first().map(|teeth| teeth.first) else { return Vec::new() };
        let width = if self.packets.block > 0 { self.packets.block } else { step };
        let [before, behind] = [step - width.min(step - 1) / 2, step + (width / 2).max(2)];
        let near =
            |size: u32| levels.iter().any(|one| one.size.abs_diff(size) < (width / 4).max(1));
        let sides = [before, behind].into_iter().filter(|&size| !near(size));
        sides.chain([step, step + 1]).collect()
    }

    fn expected(&self, levels: &[Level], shape: &Shape, size: u32) -> f64 {
        Regression::of(levels, shape).map_or(f64::INFINITY, |found| found.predict(size).0)
    }

    /// Larger sizes, unless a window has shown or they would take too long.
    fn beyond(&self, levels: &[Level], shape: &Shape) -> Vec<u32> {
        let Some(top) = levels.last().filter(|top| top.size < self.largest) else {
            return Vec::new();
        };
        let first = self.looking.first_only && !shape.teeth.is_empty();
        let seen = first || settle(levels, shape).is_some_and(|(curve, _)| shows_window(&curve));
        if seen || top.millis > self.longest {
            return Vec::new();
        }
        let to = top.size.saturating_mul(2).min(self.largest);
        let suspects = self.suspects.iter().copied().filter(|size| (top.size..=to).contains(size));
        suspects.chain([top.size + (to - top.size) / 2, to]).collect()
    }

    /// Sizes to be measured again because the slope hangs on them and is not known well enough.
    fn again(&self, levels: &[Level], shape: &Shape) -> Vec<Ask> {
        let settled = settle(levels, shape).filter(|_| self.slope);
        let Some((_, shape)) = settled else { return Vec::new() };
        let Some(relative) = Regression::of(levels, &shape).and_then(|it| it.slope_error()) else {
            return Vec::new();
        };
        let factor = (relative / SLOPE) * (relative / SLOPE);
        if !(1.0..HOPELESS).contains(&factor) {
            return Vec::new();
        }
        let ends = slope_ends(levels, &shape.teeth);
        let ask = |one: &Level| {
            let count = one.values.len() as f64;
            let left = f64::from(self.most) - count;
            let repeat = (count * (factor - 1.0))
                .ceil()
                .clamp(f64::from(self.repeat), left.max(0.0).max(f64::from(self.repeat)));
            (left >= repeat).then_some(Ask { size: one.size, repeat: repeat as u32 })
        };
        levels.iter().filter(|one| ends.contains(&one.size)).filter_map(ask).collect()
    }
}

/// Whether one of the combs is a window's beyond doubt.
fn shows_window(curve: &Curve) -> bool {
    curve
        .combs
        .iter()
        .any(|comb| comb.height > WINDOW_LIKE * curve.base && !curve.may_be_packets(comb))
}

/// Three sizes inside a gap.
fn between(gap: Gap) -> Vec<u32> {
    let width = gap.behind - gap.before;
    let inside = |quarter: u32| gap.before + ((u64::from(width) * u64::from(quarter)) / 4) as u32;
    let sizes = [inside(1), inside(2), inside(3)];
    sizes.into_iter().filter(|&size| size > gap.before && size < gap.behind).collect()
}

/// The sizes at both ends of each stretch without a step, and some in the middle of the first: the slope is
/// what lies between the ends only if nothing bends the curve there.
fn slope_ends(levels: &[Level], teeth: &[Teeth]) -> BTreeSet<u32> {
    let most = levels.last().map_or(0, |one| one.size);
    let within = |teeth: &Teeth| teeth.sizes(most / teeth.period + 1);
    let steps = teeth.iter().flat_map(within).flat_map(|size| [size, size.saturating_add(1)]);
    let stretch = teeth.iter().map(|teeth| teeth.first).max().unwrap_or(most);
    let inside: Vec<u32> =
        levels.iter().map(|one| one.size).filter(|&size| size < stretch).collect();
    let quarter = |part: u32| {
        let goal = u64::from(stretch) * u64::from(part) / 8;
        inside.iter().copied().min_by_key(|&size| u64::from(size).abs_diff(goal))
    };
    let middle = (1..8).filter_map(quarter);
    let smallest = levels.iter().map(|one| one.size).take(2);
    let largest = levels.iter().rev().map(|one| one.size).take(2);
    steps.chain(middle).chain(smallest).chain(largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{Known, Pattern};
    use crate::path::PathFit;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn suspected_boundaries_are_straddled() {
        let suspects =
            Suspects { mtu: Some(1500), headers: 28, segment: Some(252), window: Some(756) };
        let sizes = suspects.sizes(65_536);
        for boundary in [1472, 2944, 252, 504, 756, 1512, 1024, 65_536] {
            for size in [boundary - 1, boundary, boundary + 1] {
                assert_eq!(sizes.contains(&size), size <= 65_536, "{size}");
            }
        }
        assert!(sizes.is_sorted() && sizes[0] == 1);
        assert_eq!(Suspects::default().sizes(5), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_first_sizes_are_small_and_suspects_among_them() {
        let sweep = Sweep { suspects: vec![84, 85, 9_000], ..Sweep::default() };
        let first: Vec<u32> = sweep.next(&[]).iter().map(|ask| ask.size).collect();
        assert!(first.contains(&85) && !first.contains(&9_000) && first.contains(&512));
    }

    /// Hosts that are late for as long as one size is measured: it is measured again.
    #[test]
    fn a_size_that_was_late_for_once_hides_no_window() {
        let packets = Packets { block: 580, overhead: 87 };
        let sweep = Sweep { packets, slope: false, ..Sweep::default() };
        let mut stream = Seed(4).stream("late");
        let (mut samples, mut late) = (Vec::new(), 0);
        for round in 0.. {
            let asks = sweep.next(&samples);
            if asks.is_empty() {
                break;
            }
            assert!(round < 40, "no end");
            for Ask { size, repeat } in asks {
                let busy = size == 2321 && late == 0;
                late += u32::from(size == 2321);
                let exact = 9.5
                    + 0.0036 * packets.line_bytes(size)
                    + 16.3 * f64::from((size - 1) / 1160)
                    + if busy { 6.0 } else { 0.0 };
                samples.extend((0..repeat).map(|_| (size, exact + 0.1 * stream.unit())));
            }
        }
        assert!(late >= 2, "not measured again");
        let known = Known { block: Some(580), overhead: Some(87), ..Known::only(Pattern::Echo) };
        assert_eq!(PathFit::of(&samples, known, Seed(1)).window, Ok(1160));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_sweep_ends_and_brackets_the_jump(
            window in 20u32..20_000,
            jump in 1.0..100.0f64,
            (slope, noise) in (0.00001..0.01f64, 0.0..0.03f64),
            largest in 1_000u32..65_536,
            seed: u64,
        ) {
            let sweep = Sweep { largest, ..Sweep::default() };
            let mut stream = Seed(seed).stream("sweep");
            let mut samples = Vec::new();
            for round in 0.. {
                prop_assert!(round < 100, "no end");
                let asks = sweep.next(&samples);
                if asks.is_empty() {
                    break;
                }
                for ask in asks {
                    prop_assert!((1..=largest).contains(&ask.size) && ask.repeat > 0);
                    let exact = 1.0 + slope * f64::from(ask.size)
                        + jump * f64::from((ask.size - 1) / window);
                    let noisy = |_| (ask.size, exact + noise * stream.normal());
                    samples.extend((0..ask.repeat).map(noisy));
                }
            }
            let sizes: BTreeSet<u32> = samples.iter().map(|sample| sample.0).collect();
            if window < largest && f64::from(window) * slope < 10.0 * jump {
                prop_assert!(sizes.contains(&window) && sizes.contains(&(window + 1)), "{sizes:?}");
            }
            for size in sizes {
                let count = samples.iter().filter(|sample| sample.0 == size).count();
                prop_assert!(count <= sweep.most as usize, "{count} of {size}");
            }
        }
    }
}

//! The shape of delay against message size: a line, and combs of steps on it.

use crate::level::{Level, level};
use crate::regress::{Solution, regress};
use serde::Serialize;
use trunkline_core::Stream;

/// The sizes at which steps lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Teeth {
    /// The first step is between messages of so many bytes and of one more.
    pub first: u32,
    /// The others follow so many bytes apart: as many as `first`, or fewer if a sender that may have
    /// `first` bytes outstanding sends whole segments and does not fill its window (TCP).
    pub period: u32,
}

impl Teeth {
    /// At all multiples of a period.
    pub fn multiples(period: u32) -> Teeth {
        Teeth { first: period, period }
    }

    /// The number of steps below `size`.
    pub(crate) fn below(self, size: u32) -> f64 {
        let behind = size.saturating_sub(1).checked_sub(self.first);
        behind.map_or(0.0, |behind| f64::from(behind / self.period) + 1.0)
    }

    /// The sizes before the first `count` steps.
    pub(crate) fn sizes(self, count: u32) -> impl Iterator<Item = u32> {
        (0..count).map_while(move |k| self.period.checked_mul(k)?.checked_add(self.first))
    }
}

/// Steps of one height: what a window or a packet boundary does to delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comb {
    /// The sizes at which they lie.
    pub teeth: Teeth,
    /// The height of each, in milliseconds.
    pub height: f64,
}

/// The bytes that packets add to those of a message on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// User bytes of a packet, but for the last; 0 if that is not known: then packets add nothing.
    pub block: u32,
    /// Bytes of its headers and trailers.
    pub overhead: u32,
}

impl Packets {
    /// Nothing is known of packets.
    pub const UNKNOWN: Packets = Packets { block: 0, overhead: 0 };

    /// Bytes on the line of a message of `size` user bytes, beyond the first packet's headers.
    pub fn line_bytes(self, size: u32) -> f64 {
        let further = if self.block == 0 { 0.0 } else { Teeth::multiples(self.block).below(size) };
        f64::from(size) + f64::from(self.overhead) * further
    }
}

/// `milliseconds = base + slope * line bytes + sum of heights * steps below size`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// At size 0, in milliseconds; with the headers of one packet.
    pub base: f64,
    /// Milliseconds for each byte on the line.
    pub slope: f64,
    /// The conversion of user bytes to bytes on the line.
    pub packets: Packets,
    /// Steps, by the first of each kind, ascending.
    pub combs: Vec<Comb>,
}

/// The longest headers and trailers of a packet, in bytes: Ethernet with preamble, VLAN tag and gap, IPv6
/// and TCP with options.
pub(crate) const HEADERS: f64 = 142.0;
/// Steps that cost more than so many of those do not come from packets alone.
const SURELY_MORE: f64 = 4.0;

impl Curve {
    /// Whether the cost of a packet may explain the steps of this comb.
    pub(crate) fn may_be_packets(&self, comb: &Comb) -> bool {
        comb.height <= SURELY_MORE * HEADERS * self.slope
    }

    /// Milliseconds at `size` bytes.
    pub fn at(&self, size: u32) -> f64 {
        let combs = self.combs.iter().map(|comb| comb.height * comb.teeth.below(size));
        self.base + self.slope * self.packets.line_bytes(size) + combs.sum::<f64>()
    }
}

/// The terms by which a regression explains delay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// The conversion of user bytes to bytes on the line.
    pub packets: Packets,
    /// Steps of combs.
    pub teeth: Vec<Teeth>,
}

impl Shape {
    fn row(&self, size: u32) -> Vec<f64> {
        let ends = [1.0, self.packets.line_bytes(size)];
        ends.into_iter().chain(self.teeth.iter().map(|teeth| teeth.below(size))).collect()
    }

    /// The number of steps of all kinds below `size`.
    pub fn steps(&self, size: u32) -> f64 {
        self.teeth.iter().map(|teeth| teeth.below(size)).sum()
    }

    /// The number of steps of the widest kind below `size`: a window's turns.
    pub fn turns(&self, size: u32) -> u32 {
        let widest = self.teeth.iter().max_by_key(|teeth| teeth.first);
        widest.map_or(0, |teeth| teeth.below(size) as u32)
    }

    /// A row that picks out one coefficient.
    fn unit(&self, coefficient: usize) -> Vec<f64> {
        (0..self.teeth.len() + 2).map(|at| if at == coefficient { 1.0 } else { 0.0 }).collect()
    }
}

/// A regression of levels on a line and combs.
pub(crate) struct Regression {
    shape: Shape,
    solution: Solution,
}

impl Regression {
    /// The regression of levels on a shape. `None` if the levels do not determine it.
    pub fn of(levels: &[Level], shape: &Shape) -> Option<Regression> {
        let millis: Vec<f64> = levels.iter().map(|one| one.millis).collect();
        Regression::with(levels, &millis, shape)
    }

    fn with(levels: &[Level], millis: &[f64], shape: &Shape) -> Option<Regression> {
        let rows: Vec<Vec<f64>> = levels.iter().map(|one| shape.row(one.size)).collect();
        let errors: Vec<f64> = levels.iter().map(|one| one.error.hypot(one.misfit)).collect();
        let solution = regress(&rows, millis, &errors)?;
        Some(Regression { shape: shape.clone(), solution })
    }

    /// Milliseconds at `size`, and the standard error of that.
    pub fn predict(&self, size: u32) -> (f64, f64) {
        let row = self.shape.row(size);
        (self.solution.at(&row), self.solution.error_at(&row))
    }

    /// The height of the comb of this index over its standard error.
    pub fn clearness(&self, comb: usize) -> f64 {
        let unit = self.shape.unit(comb + 2);
        self.solution.at(&unit) / self.solution.error_at(&unit)
    }

    /// The slope's standard error in units of the slope; `None` if it is not positive.
    pub fn slope_error(&self) -> Option<f64> {
        let slope = self.solution.coefficients[1];
        (slope > 0.0).then(|| self.solution.error_at(&self.shape.unit(1)) / slope)
    }

    /// The height of the comb of this index, in milliseconds.
    pub fn height(&self, comb: usize) -> f64 {
        self.solution.coefficients[comb + 2]
    }

    /// The height of the highest comb, in milliseconds; 0 without any.
    pub fn highest(&self) -> f64 {
        self.solution.coefficients[2..].iter().copied().fold(0.0, f64::max)
    }

    /// The curve.
    pub fn curve(&self) -> Curve {
        let [base, slope, heights @ ..] = &self.solution.coefficients[..] else {
            unreachable!("a regression has a base and a slope")
        };
        let comb = |(&teeth, &height)| Comb { teeth, height };
        let combs = self.shape.teeth.iter().zip(heights).map(comb).collect();
        Curve { base: *base, slope: *slope, packets: self.shape.packets, combs }
    }
}

/// The number of curves that a bootstrap draws.
const DRAWS: usize = 400;

/// Curves of the same shape through levels drawn anew: from the values of each size (a bootstrap within
/// sizes), and for what the shape does not explain with the level's misfit more. That part is no noise,
/// neighbouring sizes share it, and it would harm the slope most: so it is drawn both for each
/// level alone and as a tilt within each window. If nothing was repeated, levels are drawn from their
/// standard errors.
pub(crate) fn redrawn(levels: &[Level], shape: &Shape, stream: &mut Stream) -> Vec<Curve> {
    let most = levels.last().map_or(1, |one| one.size);
    let window = shape.teeth.iter().map(|teeth| teeth.period).max().unwrap_or(most);
    // From -1 to 1, with the mean square 1/3.
    let place =
        |size: u32| 2.0 * f64::from(size.saturating_sub(1) % window) / f64::from(window) - 1.0;
    (0..DRAWS)
        .filter_map(|_| {
            let tilt = 3f64.sqrt() * stream.normal();
            let drawn = |one: &Level| {
                draw(one, stream) + one.misfit * (stream.normal() + tilt * place(one.size))
            };
            let millis: Vec<f64> = levels.iter().map(drawn).collect();
            Some(Regression::with(levels, &millis, shape)?.curve())
        })
        .collect()
}

fn draw(one: &Level, stream: &mut Stream) -> f64 {
    if one.values.len() < 4 {
        return one.millis + one.error * stream.normal();
    }
    let count = one.values.len() as u64;
    let mut drawn = vec![0.0; one.values.len()];
    drawn.fill_with(|| one.values[stream.below(count) as usize]);
    level(&mut drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::levels;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn a_step_is_behind_a_multiple() {
        let at = |size| Teeth::multiples(84).below(size);
        assert_eq!([1, 84, 85, 168, 169].map(at), [0.0, 0.0, 1.0, 1.0, 2.0]);
        assert_eq!(at(0), 0.0);
        let at = |size| Teeth { first: 4096, period: 2896 }.below(size);
        assert_eq!([4096, 4097, 6992, 6993].map(at), [0.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn packets_bring_their_headers() {
        let packets = Packets { block: 100, overhead: 40 };
        assert_eq!(
            [1, 100, 101, 201].map(|size| packets.line_bytes(size)),
            [1.0, 100.0, 141.0, 281.0]
        );
        assert_eq!(Packets::UNKNOWN.line_bytes(500), 500.0);
    }

    proptest! {
        #[test]
        fn a_curve_without_noise_is_found_again(
            base in 0.5..100.0f64,
            slope in 0.0001..0.01f64,
            height in 1.0..100.0f64,
            period in 20u32..500,
        ) {
            let truth = Curve { base, slope, packets: Packets::UNKNOWN, combs: vec![Comb { teeth: Teeth::multiples(period), height }] };
            let sizes = (1..40).map(|step| step * period / 7 + 1).chain([1, 2]);
            let samples: Vec<(u32, f64)> = sizes.map(|size| (size, truth.at(size))).collect();
            let levels = levels(&samples);
            let shape = Shape { packets: Packets::UNKNOWN, teeth: vec![Teeth::multiples(period)] };
            let regression = Regression::of(&levels, &shape).unwrap();
            let found = regression.curve();
            prop_assert!((found.base - base).abs() < 1e-6 * base);
            prop_assert!((found.combs[0].height - height).abs() < 1e-6 * height);
            prop_assert!(regression.clearness(0) > 0.0 && regression.predict(1).1 > 0.0);
            let draws = redrawn(&levels, &shape, &mut Seed(1).stream("test"));
            prop_assert!(draws.iter().any(|draw| draw.base < base) && draws.iter().any(|draw| draw.base > base));
        }
    }
}

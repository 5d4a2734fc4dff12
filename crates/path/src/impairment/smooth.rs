//! A Gaussian process that is smooth in time.

use trunkline_core::Stream;

/// A process with normal values of mean 0 and variance 1, whose value and slope change gradually: the
/// correlation after a time t, in units of its memory, is (1 + t)·exp(−t) (Matérn's with ν = 3/2; the damped
/// oscillator of Uhlenbeck and Ornstein 1930 in the critical case).
#[derive(Debug, Clone, Copy)]
pub(super) struct Smooth {
    /// Its value now.
    pub value: f64,
    /// The speed of its change, in units of its memory, of which the variance is 1 too.
    slope: f64,
}

/// The value and the slope after some time, exactly, and the part that chance adds to them.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The parts that the value takes over of value and slope, and the slope of both.
    keeps: [[f64; 2]; 2],
    /// The parts of chance: to the value; to the slope, along with that and for itself.
    adds: [f64; 3],
}

impl Step {
    fn of(time: f64) -> Step {
        let fade = libm::exp(-time);
        let keeps = [[fade * (1.0 + time), fade * time], [-fade * time, fade * (1.0 - time)]];
        // Together with what is kept it makes both variances 1 and the correlation of the two 0.
        let free = |row: [f64; 2]| (1.0 - row[0] * row[0] - row[1] * row[1]).max(0.0);
        let value = libm::sqrt(free(keeps[0]));
        let common = -(keeps[0][0] * keeps[1][0] + keeps[0][1] * keeps[1][1]);
        let along = if value > 0.0 { common / value } else { 0.0 };
        let own = libm::sqrt((free(keeps[1]) - along * along).max(0.0));
        Step { keeps, adds: [value, along, own] }
    }
}

/// After so many memories nothing of the past is left that a number could hold.
const FORGOTTEN: f64 = 40.0;

impl Smooth {
    /// A process that has always been.
    pub fn new(stream: &mut Stream) -> Smooth {
        Smooth { value: stream.normal(), slope: stream.normal() }
    }

    /// The process `time` later, in units of its memory.
    pub fn after(self, time: f64, stream: &mut Stream) -> Smooth {
        let Step { keeps: [value, slope], adds } = Step::of(time.min(FORGOTTEN));
        let (one, other) = (stream.normal(), stream.normal());
        Smooth {
            value: value[0] * self.value + value[1] * self.slope + adds[0] * one,
            slope: slope[0] * self.value + slope[1] * self.slope + adds[1] * one + adds[2] * other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Seed;

    /// Correlation of the values of two processes, and the variance of the second, over many pairs.
    fn related(time: f64, steps: u32) -> (f64, f64) {
        const PAIRS: u32 = 100_000;
        let mut stream = Seed(3).stream("smooth");
        let (mut product, mut square) = (0.0, 0.0);
        for _ in 0..PAIRS {
            let first = Smooth::new(&mut stream);
            let step = |smooth: Smooth, _| smooth.after(time / f64::from(steps), &mut stream);
            let last = (0..steps).fold(first, step);
            product += first.value * last.value;
            square += last.value * last.value;
        }
        (product / f64::from(PAIRS), square / f64::from(PAIRS))
    }

    #[test]
    fn values_have_their_correlation_however_the_time_is_cut() {
        for time in [0.0, 1e-6, 0.01, 0.5, 1.0, 3.0, 1e9, f64::INFINITY] {
            let wanted = if time > 100.0 { 0.0 } else { (1.0 + time) * (-time).exp() };
            for steps in [1, 7] {
                let (correlation, variance) = related(time, steps);
                // Five deviations of 100,000 pairs: the product of two such values varies by √2 at most.
                assert!((correlation - wanted).abs() < 0.023, "{time}, {steps}: {correlation}");
                assert!((variance - 1.0).abs() < 0.023, "{time}, {steps}: {variance}");
            }
        }
    }
}

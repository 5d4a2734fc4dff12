//! A scenario held against the measurements that it was made of.

use super::Written;

/// A size of message in the scenario and in the measurements. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// User bytes, as measured.
    pub size: u32,
    /// The round trip that the scenario has.
    pub simulated: f64,
    /// The round trip that the quickest of those measured took.
    pub quick: f64,
    /// The median of those measured.
    pub median: f64,
}

impl Trial {
    /// The distance of the scenario's round trip from those between the quickest and the median.
    pub fn off(&self) -> f64 {
        (self.quick - self.simulated).max(self.simulated - self.median).max(0.0)
    }
}

impl Written {
    /// The scenario with the error that its trials have, and the worst of them, if that is more than the fit
    /// expects: what looks like a window to the fit need not be one.
    #[must_use]
    pub fn tried(self, trials: &[Trial]) -> (Written, Option<Trial>) {
        let worst = trials.iter().copied().max_by(|a, b| a.off().total_cmp(&b.off()));
        let Some(worst) = worst.filter(|worst| worst.off() > self.error) else {
            return (self, None);
        };
        let text = self.text.replacen(&promise(self.error), &promise(worst.off()), 1);
        (Written { text, error: worst.off() }, Some(worst))
    }
}

/// The file's line about its error, in milliseconds.
pub(super) fn promise(error: f64) -> String {
    format!("Round trips of this scenario are those measured within {error:.4} ms.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_keeps_no_promise_has_another() {
        let written = || Written { text: format!("# {}\n", promise(0.5)), error: 0.5 };
        let trial = |size, simulated| Trial { size, simulated, quick: 10.0, median: 11.0 };
        let kept = [trial(1, 9.6), trial(2, 10.5), trial(3, 11.4)];
        assert_eq!(written().tried(&kept), (written(), None));
        assert_eq!(written().tried(&[]), (written(), None));
        let broken = [trial(1, 9.0), trial(2, 17.25), trial(3, 10.5)];
        let (other, worst) = written().tried(&broken);
        assert_eq!((other.error, worst), (6.25, Some(broken[1])));
        assert_eq!(other.text, format!("# {}\n", promise(6.25)));
    }
}

//! The places of values on an axis, and of its ticks.

use crate::figure::{Axis, Scale};
use crate::number;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Position along the axis, 0 to 1.
    pub(crate) at: f64,
    /// What is printed; empty for a mark without label.
    pub(crate) text: String,
}

/// An axis with its range settled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ruler {
    Linear {
        from: f64,
        to: f64,
        step: f64,
    },
    Log {
        from: f64,
        to: f64,
    },
    Category(Vec<String>),
    /// Another's places, with a tick at each of a few values.
    Own {
        scale: Box<Ruler>,
        values: Vec<f64>,
    },
}

impl Ruler {
    /// A ruler that covers `values` on `axis`, with about `ticks` ticks; `zero` puts zero on it.
    pub(crate) fn cover(axis: &Axis, values: &[f64], ticks: usize, zero: bool) -> Ruler {
        let usable = |v: &&f64| v.is_finite() && (axis.scale != Scale::Log || **v > 0.0);
        let ends = values.iter().chain(&axis.from).chain(&axis.to);
        let (mut low, mut high) =
            ends.filter(usable).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        if axis.scale == Scale::Log {
            return log(low, high);
        }
        if zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        linear(low, high, ticks)
    }

    /// The position of `value`, 0 to 1 within the range; `None` if it has none.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let place = match *self {
            Ruler::Linear { from, to, .. } => (value - from) / (to - from),
            Ruler::Log { .. } if value <= 0.0 => return None,
            Ruler::Log { from, to } => (value / from).ln() / (to / from).ln(),
            Ruler::Category(_) => return None,
            Ruler::Own { ref scale, .. } => return scale.at(value),
        };
        place.is_finite().then_some(place)
    }

    /// The place at which bars begin: zero, or the low end of a logarithmic axis.
    pub(crate) fn base(&self) -> f64 {
        self.at(0.0).map_or(0.0, |at| at.clamp(0.0, 1.0))
    }

    /// All ticks.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        match self {
            Ruler::Linear { from, to, step } => linear_ticks(*from, *to, *step),
            Ruler::Log { from, to } => log_ticks(*from, *to),
            Ruler::Own { scale, values } => values
                .iter()
                .filter_map(|value| {
                    Some(Tick { at: scale.at(*value)?, text: number::short(*value) })
                })
                .collect(),
            Ruler::Category(names) => (0..names.len())
                .map(|index| Tick { at: slot(index, names.len()), text: names[index].clone() })
                .collect(),
        }
    }
}

/// The middle of slot `index` of `count`.
pub(crate) fn slot(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64
}

/// 1, 2 or 5 times a power of ten, so that `width` is about `count` steps.
fn nice_step(width: f64, count: usize) -> f64 {
    let rough = width / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

fn linear(low: f64, high: f64, ticks: usize) -> Ruler {
    let (low, high) = if high - low > high.abs().max(low.abs()) * 1e-6 {
        (low, high)
    } else {
        let pad = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        (if low == 0.0 { 0.0 } else { low - pad }, high + pad)
    };
    let step = nice_step(high - low, ticks);
    Ruler::Linear { from: (low / step).floor() * step, to: (high / step).ceil() * step, step }
}

fn linear_ticks(from: f64, to: f64, step: f64) -> Vec<Tick> {
    let count = ((to - from) / step).round() as usize;
    (0..=count)
        .map(|index| {
            let value = from + step * index as f64;
            Tick { at: index as f64 / count.max(1) as f64, text: number::with_step(value, step) }
        })
        .collect()
}

/// The ends move to 1, 2 or 5 times a power of ten.
fn log(low: f64, high: f64) -> Ruler {
    let (low, high) = if high > low * 1.001 { (low, high) } else { (low / 2.0, high * 2.0) };
    let ladder = |value: f64| {
        let power = 10f64.powf(value.log10().floor());
        [0.5, 1.0, 2.0, 5.0, 10.0].map(|factor| factor * power)
    };
    let from = ladder(low).into_iter().rfind(|rung| *rung <= low * 1.0001).unwrap_or(low);
    let to = ladder(high).into_iter().find(|rung| *rung >= high * 0.9999).unwrap_or(high);
    Ruler::Log { from, to }
}

fn log_ticks(from: f64, to: f64) -> Vec<Tick> {
    let decades = (to / from).log10();
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let every = (decades / 7.0).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for power in first..=last {
        for factor in 1..10 {
            let value = f64::from(factor) * 10f64.powi(power);
            if value < from * 0.9999 || value > to * 1.0001 {
                continue;
            }
            let labelled = match factor {
                1 => (power - first) % every == 0,
                2 | 5 => decades <= 2.5,
                _ => false,
            };
            let text = if labelled { number::short(value) } else { String::new() };
            if labelled || decades <= 5.0 {
                ticks.push(Tick { at: (value / from).ln() / (to / from).ln(), text });
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(ruler: &Ruler) -> Vec<String> {
        ruler.ticks().into_iter().map(|tick| tick.text).filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let axis = Axis::default();
        assert_eq!(
            texts(&Ruler::cover(&axis, &[0.3, 9.2], 5, true)),
            ["0", "2", "4", "6", "8", "10"]
        );
        assert_eq!(
            texts(&Ruler::cover(&axis, &[0.02, 0.11], 4, true)),
            ["0.00", "0.05", "0.10", "0.15"]
        );
        let log = Axis { scale: Scale::Log, ..axis };
        assert_eq!(
            texts(&Ruler::cover(&log, &[1.0, 90.0], 5, false)),
            ["1", "2", "5", "10", "20", "50", "100"]
        );
    }

    proptest! {
        #[test]
        fn every_value_lies_on_its_axis(
            values in proptest::collection::vec(-1e9..1e9f64, 1..20),
            zero: bool,
            log: bool,
        ) {
            let axis = Axis { scale: if log { Scale::Log } else { Scale::Linear }, ..Axis::default() };
            let ruler = Ruler::cover(&axis, &values, 6, zero);
            for at in values.iter().filter_map(|value| ruler.at(*value)) {
                prop_assert!((-1e-3..=1.001).contains(&at), "{at} on {ruler:?}");
            }
            let ticks = ruler.ticks();
            prop_assert!((1..=60).contains(&ticks.len()));
            prop_assert!(ticks.iter().all(|tick| (-1e-3..=1.001).contains(&tick.at)));
        }
    }
}

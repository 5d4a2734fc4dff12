//! What chance does to transfers of which units are lost independently of each other.

use crate::prediction::What;
use crate::units::Course;
use trunkline_core::Span;
use trunkline_scenario::{Listed, Workload};
use trunkline_transport::protocol::Formula;

/// A note if what is lost of the last units may be much of a transfer.
pub(crate) fn last_again(workload: &Workload, formula: &Formula, total: Span) -> Option<String> {
    let late = Span::from_nanos(formula.late as u64);
    let ends = matches!(workload, Workload::Bulk { .. } | Workload::Push { .. });
    (ends && late > total.scaled(1, 20)).then(|| {
        format!("what is lost of the last frames goes again after a time-out each time: the transfer may take up to {late} longer")
    })
}

/// A note if the number of losses, which is a matter of chance, changes much of a transfer's time. A lost unit costs as much as
/// the formula has more for it than without losses; of `units` units that come through, each lost with probability p before, the
/// number of losses is negatively binomial.
pub(crate) fn vary(
    listed: &Listed,
    course: &Course,
    (what, total): (What, Span),
) -> Option<String> {
    let path = course.path;
    let lost = 1.0 - (1.0 - path.loss) * (1.0 - path.answer_loss);
    if what != What::Transfer || lost <= 0.0 || lost >= 1.0 {
        return None;
    }
    let spared = course.formula.interval - course.without_loss(listed)?;
    let each = spared * (1.0 - lost) / lost;
    let base = total.as_nanos() as f64 - spared * path.units as f64;
    let [least, most] = [0.1, 0.9].map(|part| {
        let nanos = base + each * losses(path.units as f64, lost, part);
        Span::from_nanos(nanos.max(0.0) as u64)
    });
    (most.saturating_sub(least) > total.scaled(1, 10)).then(|| {
        format!("losses are a matter of chance: four in five transfers take {least} to {most}")
    })
}

/// The number of losses that is not exceeded with probability `part`.
fn losses(units: f64, lost: f64, part: f64) -> f64 {
    let mut chance = (1.0 - lost).powf(units);
    if chance < 1e-200 {
        // So many that they are distributed normally; nine tenths lie below 1.2816 deviations.
        let (mean, deviation) = (units * lost / (1.0 - lost), (units * lost).sqrt() / (1.0 - lost));
        return mean + if part < 0.5 { -1.2816 } else { 1.2816 } * deviation;
    }
    let (mut sum, mut count) = (chance, 0.0);
    while sum < part {
        chance *= lost * (units + count) / (count + 1.0);
        count += 1.0;
        sum += chance;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_known_probability() {
        // Of one unit: none with 1/2, one more with each half of the rest.
        assert_eq!(
            [0.1, 0.5, 0.74, 0.76, 0.9].map(|part| losses(1.0, 0.5, part)),
            [0.0, 0.0, 1.0, 2.0, 3.0]
        );
        let many = losses(1e6, 0.01, 0.9);
        assert!((many - (10_101.0 + 1.2816 * 101.0)).abs() < 2.0, "{many}");
    }
}

//! The figure that is made of a traffic's measurements.

use trunkline_measure::{Estimator, Quantity};
use trunkline_report::Shown;
use trunkline_scenario::{Traffic, Workload};

/// The summary of `traffic`: by the estimator that it names, else by the median. Transfers are
/// shown as rates, messages and datagrams by their delay, timed transfers by the mean time from one write to
/// the next: most writes return at once and one in a window waits for it, so that the middle one says nothing
/// (the interval of Vande Water 1988 §3.7.2 is the whole time over the writes).
pub fn shown(traffic: &Traffic) -> Shown {
    let quantity = match traffic.workload {
        // Nothing is moved at no rate; its time is that of what surrounds a file.
        Workload::Push { bytes, .. } if bytes.bytes() == 0 => Quantity::Delay,
        Workload::Bulk { .. } | Workload::Push { .. } | Workload::Greedy { .. } => Quantity::Rate,
        Workload::Interactive { .. }
        | Workload::TimedEcho { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Paced { .. } => Quantity::Delay,
    };
    let own = match traffic.workload {
        Workload::TimedTransfer { .. } => Estimator::Mean,
        _ => Estimator::MEDIAN,
    };
    let named = traffic.estimator.as_deref().and_then(|name| name.parse().ok());
    Shown { quantity, estimator: named.unwrap_or(own) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_scenario::Scenario;

    #[test]
    fn writes_are_shown_by_their_mean_unless_another_figure_is_asked_for() {
        let of = |kind: &str, more: &str| {
            let text = format!(
                "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                 [[traffic]]\nname = 't'\nkind = '{kind}'\nfrom = 'a'\nto = 'b'\nsizes = [1]\n{more}\n"
            );
            let cells = Scenario::parse(&text, "test.toml").unwrap();
            shown(&cells[0].traffic[0]).estimator
        };
        assert_eq!(of("timed-transfer", ""), Estimator::Mean);
        assert_eq!(of("timed-transfer", "estimator = 'p99'"), Estimator::Percentile(9_900));
        assert_eq!(of("timed-echo", ""), Estimator::MEDIAN);
    }
}

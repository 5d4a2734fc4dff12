//! From measurements to figures: delays and rates by size, throughput of simultaneous flows.

use crate::confidence::MANY;
use crate::samples::Streamed;
use crate::stats::quantile;
use crate::{Course, Estimate, Estimator, Interval, Sample, Step, TrafficRun};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Cause, Span};

/// The quantity that is read off each sample of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// From the start of each measurement to its end, in milliseconds.
    Delay,
    /// From the intended start to the end, in milliseconds: what a user on that schedule waits.
    Response,
    /// User bytes of each measurement over its delay, in bytes per second; of several flows the mean.
    Rate,
    /// Of all flows together, in bytes per second: in a `Reduction` the sum of their rates, in a report
    /// [`TrafficRun::total_rate`].
    TotalRate,
}

impl Quantity {
    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Delay | Quantity::Response => "ms",
            Quantity::Rate | Quantity::TotalRate => "B/s",
        }
    }

    /// Of one sample; of [`Quantity::TotalRate`] its part in it.
    pub(crate) fn of(self, sample: &Sample) -> f64 {
        match self {
            Quantity::Delay => sample.delay().as_millis_f64(),
            Quantity::Response => (sample.end - sample.intended).as_millis_f64(),
            Quantity::Rate | Quantity::TotalRate => sample.rate(),
        }
    }
}

/// The spread of the delays of one size, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Shortest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// Nine in ten are no longer.
    pub p90: f64,
    /// 99 in 100 are no longer.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

/// The throughput of simultaneous flows, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Throughput {
    /// Mean of the flows' own figures, 0 of a flow that got nothing.
    pub per_conversation: f64,
    /// Standard deviation of the transfers kept, all flows together.
    pub deviation: f64,
    /// Sum of the flows' own figures, as if each kept its rate while all run. It may exceed what the line
    /// carries if they do not all run at the same time: [`TrafficRun::total_rate`] does not.
    pub sum: f64,
    /// The number of flows that it is the mean of: those that measured something, and those that got nothing.
    pub conversations: usize,
}

impl TrafficRun {
    /// The sizes measured, ascending; 0 alone if they are [`amounts`](TrafficRun::amounts).
    pub fn sizes(&self) -> Vec<u64> {
        if let Some(groups) = self.samples.groups() {
            return groups.keys().copied().collect();
        }
        if self.amounts {
            return if self.samples.is_empty() { Vec::new() } else { vec![0] };
        }
        // Most stand beside others of the same size.
        let alike = self.samples.chunk_by(|one, next| one.size == next.size);
        let sizes: BTreeSet<u64> = alike.map(|alike| alike[0].size).collect();
        sizes.into_iter().collect()
    }

    /// The number of measurements of one size, those that are not kept included.
    pub fn count(&self, size: u64) -> u64 {
        let kept = || self.of_size(size).count() as u64;
        self.streamed(size).map_or_else(kept, |group| group.count)
    }

    /// The number of flows that have measurements of one size.
    pub fn flows(&self, size: u64) -> usize {
        let kept = || self.flows_of(size).map(|(flow, _)| flow).collect::<BTreeSet<u32>>().len();
        self.streamed(size).map_or_else(kept, Streamed::flows)
    }

    /// The number of flows that were under way and got nothing, so that they have no measurement of any size.
    fn starved(&self, size: u64) -> usize {
        let measured: BTreeSet<u32> = match self.streamed(size) {
            Some(group) => group.reach.keys().copied().collect(),
            None => self.flows_of(size).map(|(flow, _)| flow).collect(),
        };
        let starved = self.courses.iter().filter_map(Course::starved);
        starved.filter(|flow| !measured.contains(flow)).count()
    }

    /// The time of the measurements of one size: the steps of all, or their sums by place and cause,
    /// in the order in which they first occurred.
    pub fn steps(&self, size: u64) -> Vec<Step> {
        let kept = || self.of_size(size).flat_map(|sample| sample.steps.iter()).collect();
        self.streamed(size).map_or_else(kept, |group| group.steps.clone())
    }

    /// The time of all measurements of one size that is booked under `cause`.
    pub fn booked(&self, size: u64, cause: Cause) -> Span {
        let kept = || self.of_size(size).map(|sample| sample.booked(cause)).sum();
        self.streamed(size).map_or_else(kept, |group| group.booked(cause))
    }

    /// Whether any measurement of one size does not say what its time was spent on ([`Sample::is_untold`]).
    pub fn any_untold(&self, size: u64) -> bool {
        let kept = || self.of_size(size).any(Sample::is_untold);
        self.streamed(size).map_or_else(kept, |group| group.untold > 0)
    }

    /// The spread of the delays of one size; `None` without any. If not all are kept, quantiles come from
    /// a histogram and are at most 0.1 % off; the extremes are exact.
    pub fn spread(&self, size: u64) -> Option<Spread> {
        if let Some(group) = self.streamed(size) {
            let nanos = |share| group.quantile(Quantity::Delay, share) * 1e6;
            let (min, median, max) = (nanos(0.0), nanos(0.5), nanos(1.0));
            return Some(Spread { min, median, p90: nanos(0.9), p99: nanos(0.99), max });
        }
        let delays = Some(self.delay_nanos(size)).filter(|delays| !delays.is_empty())?;
        let nanos = |share| quantile(&delays, share);
        let (min, median, max) = (nanos(0.0), nanos(0.5), nanos(1.0));
        Some(Spread { min, median, p90: nanos(0.9), p99: nanos(0.99), max })
    }

    /// The 95 % confidence interval of the median of the delays of one size, in nanoseconds.
    pub fn median_interval(&self, size: u64) -> Option<Interval> {
        let estimate = match self.streamed(size) {
            Some(group) => group.estimate(Quantity::Delay, Estimator::MEDIAN)?.scaled(1e6),
            None => Estimator::MEDIAN.estimate(&self.delay_nanos(size))?,
        };
        estimate.interval()
    }

    fn delay_nanos(&self, size: u64) -> Vec<f64> {
        self.of_size(size).map(|sample| sample.delay().as_nanos() as f64).collect()
    }

    fn streamed(&self, size: u64) -> Option<&Streamed> {
        self.samples.groups()?.get(&size)
    }

    /// The measurements of one size that are kept, flow by flow in order of time.
    pub fn of_size(&self, size: u64) -> impl Iterator<Item = &Sample> {
        self.among(&self.samples, size)
    }

    /// Those of one size among `samples`.
    fn among<'a>(
        &self,
        samples: &'a [Sample],
        size: u64,
    ) -> impl Iterator<Item = &'a Sample> + use<'a> {
        let all = self.amounts && size == 0;
        samples.iter().filter(move |sample| all || sample.size == size)
    }

    /// Those of one size, by the flow of which several stand side by side: a flow may occur more than once.
    fn flows_of(&self, size: u64) -> impl Iterator<Item = (u32, impl Iterator<Item = &Sample>)> {
        let flows = self.samples.chunk_by(|one, next| one.flow == next.flow);
        flows.filter_map(move |flow| {
            let mut found = self.among(flow, size).peekable();
            found.peek()?;
            Some((flow[0].flow, found))
        })
    }

    /// The delays of those kept.
    pub fn delays(&self, size: u64) -> Vec<Span> {
        self.of_size(size).map(Sample::delay).collect()
    }

    /// The rates of those kept, in bytes per second.
    pub fn rates(&self, size: u64) -> Vec<f64> {
        self.of_size(size).map(Sample::rate).collect()
    }

    /// A quantity of the measurements of one size that are kept, one list for each flow in ascending order.
    pub fn by_flow(&self, size: u64, quantity: Quantity) -> Vec<Vec<f64>> {
        let mut flows: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (flow, samples) in self.flows_of(size) {
            flows.entry(flow).or_default().extend(samples.map(|sample| quantity.of(sample)));
        }
        flows.into_values().collect()
    }

    /// One figure for a quantity of one size. The rules that drop ends drop them from each flow. If not all
    /// measurements are kept, means and extremes are those of all, to rounding; quantiles and the rules with
    /// thresholds come from a histogram, and are at most 0.1 % off.
    pub fn estimate(
        &self,
        size: u64,
        quantity: Quantity,
        estimator: Estimator,
    ) -> Option<Estimate> {
        match self.streamed(size) {
            Some(group) => group.estimate(quantity, estimator),
            None => estimator.estimate_flows(&self.by_flow(size, quantity)),
        }
    }

    /// The point estimate: the same without an interval, which may cost a bootstrap.
    pub fn point(&self, size: u64, quantity: Quantity, estimator: Estimator) -> Option<Estimate> {
        match self.streamed(size) {
            Some(group) => group.estimate(quantity, estimator).map(Estimate::without_interval),
            None => estimator.point_flows(&self.by_flow(size, quantity)),
        }
    }

    /// Throughput as Hawley's Appendix A gives it (Hawley 1989, section 4.1.1): the estimator (there
    /// [`Estimator::DropFirstLast`]) is applied to each flow's transfers, and the total is the sum over
    /// the flows, as if each kept its rate while all run. `None` if a flow has too few transfers, or none is kept; one that
    /// got nothing has a rate of 0.
    /// If not all measurements are kept, rules other than the mean and the minimum take those kept.
    pub fn throughput(&self, size: u64, estimator: Estimator) -> Option<Throughput> {
        let figures =
            self.figures(size, Quantity::Rate, estimator).filter(|flows| !flows.is_empty())?;
        let sum: f64 = figures.iter().sum();
        let deviation = self.point(size, Quantity::Rate, estimator)?.deviation;
        let conversations = figures.len() + self.starved(size);
        let per_conversation = sum / conversations as f64;
        Some(Throughput { per_conversation, deviation, sum, conversations })
    }

    /// The 95 % confidence interval of [`Throughput::per_conversation`]: the flows' own intervals, put together as
    /// independent errors are. `None` if the rule has none, or a flow has too few measurements for one of its own.
    pub fn throughput_interval(&self, size: u64, estimator: Estimator) -> Option<Interval> {
        let found = self.throughput(size, estimator)?;
        if found.conversations == 1 {
            return self.estimate(size, Quantity::Rate, estimator)?.interval();
        }
        let streamed = || self.streamed(size)?.halves_of_flows(Quantity::Rate, estimator);
        let kept = || {
            let flows = self.by_flow(size, Quantity::Rate);
            let many = flows.iter().map(Vec::len).sum::<usize>() > MANY;
            flows.iter().map(|flow| estimator.reach(flow, many)).collect::<Option<Vec<_>>>()
        };
        let reach = streamed().or_else(kept)?;
        let joined = |side: fn(&(f64, f64)) -> f64| {
            reach.iter().map(|it| side(it).powi(2)).sum::<f64>().sqrt() / found.conversations as f64
        };
        let value = found.per_conversation;
        Some(Interval { low: value - joined(|it| it.0), high: value + joined(|it| it.1) })
    }

    /// Each flow's own figure.
    fn figures(&self, size: u64, quantity: Quantity, rule: Estimator) -> Option<Vec<f64>> {
        let streamed = || self.streamed(size)?.of_flows(quantity, rule);
        let kept = || {
            let flows = self.by_flow(size, quantity);
            flows.iter().map(|flow| Some(rule.point(flow)?.value)).collect()
        };
        streamed().or_else(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conservation, Keep, Samples, Steps};
    use trunkline_core::{Seed, Time};

    /// Transfers of 1000 bytes: for each flow the milliseconds that each took.
    fn transfers(flows: &[&[u64]]) -> TrafficRun {
        let mut samples = Vec::new();
        for (flow, spans) in flows.iter().enumerate() {
            let mut start = Time::ZERO;
            for (index, &millis) in spans.iter().enumerate() {
                let (flow, index, end) =
                    (flow as u32, index as u32, start + Span::from_millis(millis));
                let steps = Steps::default();
                samples.push(Sample {
                    flow,
                    index,
                    size: 1000,
                    intended: Time::ZERO,
                    start,
                    end,
                    steps,
                });
                start = end;
            }
        }
        TrafficRun { name: "bulk".into(), samples: samples.into(), ..TrafficRun::default() }
    }

    #[test]
    fn losses_are_of_all_that_was_sent() {
        let packets =
            Conservation { sent: 30, duplicated: 10, delivered: 25, dropped: 10, in_flight: 5 };
        assert!(packets.holds());
        assert_eq!(packets.lost(), Some(0.25));
        let none = Conservation::default();
        assert_eq!((none.lost(), none.holds()), (None, true));
        assert!(!Conservation { in_flight: 4, ..packets }.holds());
    }

    #[test]
    fn the_total_is_the_sum_over_the_conversations() {
        let traffic = transfers(&[&[1, 10, 10, 1], &[1, 20, 20, 1]]);
        let found = traffic.throughput(1000, Estimator::DropFirstLast).unwrap();
        assert_eq!((found.per_conversation, found.sum, found.conversations), (75e3, 150e3, 2));
        assert_eq!(found.deviation, 25e3, "of the transfers kept, 100 kB/s and 50 kB/s");
        assert_eq!(traffic.sizes(), [1000]);
        assert_eq!((traffic.delays(1000).len(), traffic.rates(1000)[1]), (8, 100e3));
        assert_eq!(traffic.throughput(1000, Estimator::HawleyAverage), None);
        assert_eq!(traffic.throughput(7, Estimator::Mean), None);
    }

    /// Two flows at 100 and 50 kB/s: the rate of a flow is 75, and no interval of the measurements of both, of which
    /// the median is one or the other, has it inside.
    #[test]
    fn the_interval_of_a_flows_rate_is_around_that_rate() {
        let fast = [9, 10, 10, 10, 11, 9, 10, 11, 10, 10, 10, 10, 9, 11, 10, 10];
        let slow = fast.map(|millis| 2 * millis);
        for rule in [Estimator::MEDIAN, Estimator::Mean, Estimator::DropFirstLast] {
            let traffic = transfers(&[&fast, &fast, &fast, &slow]);
            let found = traffic.throughput(1000, rule).unwrap().per_conversation;
            let Interval { low, high } = traffic.throughput_interval(1000, rule).unwrap();
            assert!(low <= found && found <= high, "{rule}: {low} {found} {high}");
            assert!(high - low < 0.1 * found, "{rule}: the flows' difference is no chance");
            let one = transfers(&[&fast]);
            let alone = one.estimate(1000, Quantity::Rate, rule).unwrap().interval();
            assert_eq!(one.throughput_interval(1000, rule), alone, "{rule}");
        }
        let single = transfers(&[&[10], &[20], &[20]]);
        assert_eq!(
            single.throughput_interval(1000, Estimator::Mean),
            None,
            "one each says nothing"
        );
        let traffic = transfers(&[&fast, &slow]);
        assert_eq!(traffic.throughput_interval(1000, Estimator::Minimum), None);
    }

    /// Neither a flow of which an empty file is measured, nor one that ended as it began.
    #[test]
    fn flows_that_got_nothing_have_no_rate() {
        let course = |flow: u32, bytes, to| {
            let to = Time::ZERO + Span::from_millis(to);
            Course { flow, from: Time::ZERO, to, bytes }
        };
        let courses = vec![
            course(0, 2000, 20),
            course(1, 0, 20),
            course(2, 0, 20),
            course(3, 0, 0),
            course(4, 900, 20),
        ];
        let whole = TrafficRun { courses, ..transfers(&[&[10, 10], &[], &[20]]) };
        let mut streamed = Samples::new(Keep::AtMost(0), Seed(1), false);
        whole.samples.iter().for_each(|sample| streamed.push(sample.clone()));
        streamed.finish();
        let streamed = TrafficRun { samples: streamed, ..whole.clone() };
        assert!(whole.samples.is_whole() && !streamed.samples.is_whole());
        for traffic in [whole, streamed] {
            let found = traffic.throughput(1000, Estimator::Mean).unwrap();
            assert_eq!((found.sum, found.conversations), (150e3, 3), "flows 0 and 2, and flow 1");
            assert_eq!(found.per_conversation, 50e3);
        }
    }
}

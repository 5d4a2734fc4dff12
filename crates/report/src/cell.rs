//! The charts of one cell: how what was measured is spread and how it goes over time, the causes of its time, the fill of
//! its queues.

use crate::figure::{Axis, Figure, FigureKind, Point, Role, Series, distribution};
use crate::gather::{Unit, joined, rate_unit, time_unit};
use crate::names;
use crate::number;
use crate::report::{Report, Spot, run_name};
use crate::steps::step_sums;
use crate::summary::Digest;
use std::collections::BTreeSet;
use trunkline_core::Cause;
use trunkline_engine::Run;
use trunkline_measure::{Sample, TrafficRun};

/// Series in one chart: what can be told apart.
pub(crate) const SERIES: usize = 8;
/// Sizes in the charts of one cell.
const SIZES: usize = 3;

/// One traffic in one cell.
pub(crate) struct One<'a> {
    pub(crate) digest: &'a Digest<'a>,
    pub(crate) report: &'a Report,
    pub(crate) spot: Spot<'a>,
    pub(crate) traffic: &'a str,
    pub(crate) label: String,
    pub(crate) cell: usize,
    pub(crate) index: usize,
}

impl<'a> One<'a> {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![self.spread(), self.over_time(), self.ledger()];
        figures.extend(self.waterfalls());
        figures
    }

    fn figure(
        &self,
        name: &str,
        kind: FigureKind,
        what: &str,
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    ) -> Figure {
        Figure {
            name: format!("{name}-{}-{}", self.cell, self.index),
            kind,
            title: joined(&format!("{}: {what}", self.traffic), &self.label),
            caption: String::new(),
            x,
            y,
            series,
        }
    }

    fn runs(&self) -> impl Iterator<Item = (&'a Run, &'a TrafficRun)> {
        let name = self.traffic;
        let runs = self.report.runs_at(self.spot).into_iter();
        runs.filter_map(move |run| Some((run, run.traffic(name)?)))
    }

    /// At most [`SIZES`] sizes, the least and the greatest among them.
    fn sizes(&self) -> Vec<u64> {
        let sizes: BTreeSet<u64> = self.runs().flat_map(|(_, traffic)| traffic.sizes()).collect();
        let sizes: Vec<u64> = sizes.into_iter().collect();
        if sizes.len() <= SIZES {
            return sizes;
        }
        (0..SIZES).map(|i| sizes[i * (sizes.len() - 1) / (SIZES - 1)]).collect()
    }

    /// A series for each engine and size, of the values that `points` makes of a traffic.
    fn series(&self, points: impl Fn(&TrafficRun, u64) -> Vec<Point>) -> Vec<Series> {
        let sizes = self.sizes();
        let each = sizes.iter().flat_map(|size| self.runs().map(move |found| (*size, found)));
        let series = each.map(|(size, (run, traffic))| Series {
            name: match sizes.len() {
                1 => run_name(run),
                _ => joined(&run_name(run), &number::bytes(size, traffic.amounts)),
            },
            role: Role::from(run.engine),
            group: (sizes.len() > 1).then(|| size.to_string()),
            points: points(traffic, size),
        });
        series.filter(|series| !series.points.is_empty()).take(SERIES).collect()
    }

    /// What is drawn of each measurement: its delay or, if it is an amount that came in an interval, its rate.
    fn drawn(&self) -> Drawn {
        let amounts = self.runs().any(|(_, traffic)| traffic.amounts);
        let (what, value): (_, fn(&Sample) -> f64) = match amounts {
            true => ("throughput", Sample::rate),
            false => ("delay", |sample| sample.delay().as_nanos() as f64),
        };
        let samples = self.runs().flat_map(|(_, traffic)| &traffic.samples);
        let largest = samples.map(value).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let unit = if amounts { rate_unit(largest) } else { time_unit(largest) };
        Drawn { what, value, unit }
    }

    fn time_unit(&self) -> Unit {
        let samples = self.runs().flat_map(|(_, traffic)| &traffic.samples);
        let largest = samples.map(|sample| sample.delay()).max().unwrap_or_default();
        time_unit(largest.as_nanos() as f64)
    }

    fn spread(&self) -> Figure {
        let Drawn { what, value, unit } = self.drawn();
        let series = self.series(|traffic, size| {
            let values: Vec<f64> = traffic.of_size(size).map(|it| value(it) / unit.0).collect();
            if values.len() > 1 { distribution(values) } else { Vec::new() }
        });
        let (x, y) = (Axis::linear(what, unit.1), Axis::linear("share of samples", ""));
        let title = format!("how the {what} is spread");
        self.figure("cdf", FigureKind::Cdf, &title, x, y, series)
    }

    fn over_time(&self) -> Figure {
        let Drawn { what, value, unit } = self.drawn();
        let series = self.series(|traffic, size| {
            let point = |sample: &Sample| {
                Point::new(sample.start.as_nanos() as f64 / 1e9, value(sample) / unit.0)
            };
            let points: Vec<Point> = traffic.of_size(size).map(point).collect();
            if points.len() > 1 { points } else { Vec::new() }
        });
        let (x, y) = (Axis::linear("start", "s"), Axis::linear(what, unit.1));
        let title = format!("{what} over time");
        self.figure("time", FigureKind::TimeSeries, &title, x, y, series)
    }

    /// For each size and engine the causes of the mean delay.
    fn ledger(&self) -> Figure {
        let (divisor, unit) = self.time_unit();
        let mut series = cause_series();
        for size in self.sizes() {
            for (run, traffic) in self.runs() {
                let row = joined(&number::bytes(size, traffic.amounts), &run_name(run));
                let Some(found) = self.digest.get(run, &traffic.name, size) else { continue };
                for ((_, mean), series) in found.ledger().iter().zip(&mut series) {
                    let value = mean.as_nanos() as f64 / divisor;
                    series.points.push(Point::new(row.as_str(), value));
                }
            }
        }
        let (x, y) = (Axis::category("", ""), Axis::linear("mean time", unit));
        self.figure("ledger", FigureKind::Stacked, "where the time went", x, y, booked(series))
    }

    /// For each engine the mean delay of the middle size, place by place.
    fn waterfalls(&self) -> Vec<Figure> {
        let sizes = self.sizes();
        let Some(size) = sizes.get(sizes.len() / 2).copied() else { return Vec::new() };
        let one = |(run, traffic): (&Run, &TrafficRun)| {
            let engine = run.engine;
            let size_text = number::bytes(size, traffic.amounts);
            let what = format!("{size_text}, place by place, {}", run_name(run));
            let (x, y) = (Axis::category("", ""), Axis::linear("mean time", self.time_unit().1));
            let series = self.places(run, traffic, size);
            self.figure(&format!("places-{engine}"), FigureKind::Waterfall, &what, x, y, series)
        };
        self.runs().map(one).collect()
    }

    fn places(&self, run: &Run, traffic: &TrafficRun, size: u64) -> Vec<Series> {
        let divisor = self.time_unit().0;
        let sums = step_sums(run, traffic.steps(size).into_iter(), traffic.count(size));
        let mut order: Vec<&str> = Vec::new();
        for sum in &sums {
            if !order.contains(&sum.place) {
                order.push(sum.place);
            }
        }
        let mut series = cause_series();
        for (place, sum) in order.iter().flat_map(|p| sums.iter().map(move |sum| (*p, sum))) {
            if sum.place == place {
                let value = sum.mean().as_nanos() as f64 / divisor;
                series[sum.cause as usize].points.push(Point::new(place, value));
            }
        }
        // All places as rows in their order, whichever causes they have.
        series[0].points.splice(0..0, order.iter().map(|place| Point::new(*place, 0.0)));
        booked(series)
    }
}

/// What a chart shows of a measurement, and in which unit.
struct Drawn {
    what: &'static str,
    value: fn(&Sample) -> f64,
    unit: Unit,
}

/// One empty series for each cause, in the order of booking.
fn cause_series() -> Vec<Series> {
    let series = |cause| Series { name: names::cause(cause).into(), ..Series::default() };
    Cause::ALL.into_iter().map(series).collect()
}

/// All causes or, if nothing is booked, none: unused ones keep their place, so that a cause looks the same in
/// every chart. The legend leaves them out.
fn booked(series: Vec<Series>) -> Vec<Series> {
    let any = series.iter().flat_map(|series| &series.points).any(|point| point.y > 0.0);
    if any { series } else { Vec::new() }
}

pub(crate) fn queues(report: &Report, spot: Spot<'_>, cell: usize) -> Option<Figure> {
    let runs = report.runs_at(spot).into_iter();
    let links = runs.flat_map(|run| run.links.iter().map(move |link| (run, link)));
    let series = links
        .filter(|(_, link)| link.backlog.iter().any(|(_, bytes)| *bytes > 0))
        .take(SERIES)
        .map(|(run, link)| Series {
            name: format!("{}, {}", run_name(run), link.name),
            role: Role::from(run.engine),
            group: Some(link.name.clone()),
            points: link
                .backlog
                .iter()
                .map(|(at, bytes)| Point::new(at.as_nanos() as f64 / 1e9, *bytes as f64))
                .collect(),
        })
        .collect::<Vec<Series>>();
    (!series.is_empty()).then(|| Figure {
        name: format!("queue-{cell}"),
        kind: FigureKind::QueueDepth,
        title: joined("Bytes waiting in queues", &report.label(spot)),
        caption: String::new(),
        x: Axis::linear("time", "s"),
        y: Axis::linear("waiting", "bytes"),
        series,
    })
}

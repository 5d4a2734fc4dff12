//! The errors by region: controller, loss, buffer, connections.

use crate::compared::Compared;
use trunkline_report::{Axis, Figure, FigureKind, Point, Role, Series};

/// The columns of the regions.
const COLUMNS: &str = "kind,controller,loss,buffer,flows,cases,without_formula,\
    figure_median,figure_p95,round_trip_median,round_trip_p95,queue_cases,queue_median,queue_p95";
const CONTROLLERS: [&str; 3] = ["newreno", "cubic", "bbr"];
const LOSSES: [&str; 3] = ["none", "below 1%", "1% and more"];
const BUFFERS: [&str; 2] = ["below 1 BDP", "1 BDP and more"];
const FLOWS: [&str; 2] = ["one", "several"];

/// A part of the cases; `None` is all.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    transfers: bool,
    controller: Option<&'static str>,
    loss: Option<&'static str>,
    buffer: Option<&'static str>,
    flows: Option<&'static str>,
}

fn loss_of(one: &Compared) -> &'static str {
    let loss = one.case.loss;
    LOSSES[if loss == 0.0 { 0 } else { 1 + usize::from(loss >= 0.01) }]
}

impl Region {
    fn holds(&self, one: &Compared) -> bool {
        let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        self.transfers == one.case.bytes.is_some()
            && is(self.controller, &one.case.controller)
            && is(self.loss, loss_of(one))
            && is(self.buffer, BUFFERS[usize::from(one.case.depth >= 1.0)])
            && is(self.flows, FLOWS[usize::from(one.case.flows > 1)])
    }

    /// All regions, the larger first.
    fn all() -> Vec<Region> {
        let mut regions = Vec::new();
        for transfers in [false, true] {
            let whole = Region { transfers, ..Region::default() };
            regions.push(whole);
            for controller in CONTROLLERS.map(Some) {
                regions.push(Region { controller, ..whole });
            }
            let cross = |region: Region| {
                let losses = LOSSES.map(|loss| Region { loss: Some(loss), ..region });
                let buffers = BUFFERS.map(|buffer| Region { buffer: Some(buffer), ..region });
                let flows = FLOWS.map(|flows| Region { flows: Some(flows), ..region });
                losses.into_iter().chain(buffers).chain(flows)
            };
            regions.extend(cross(whole));
            for controller in CONTROLLERS.map(Some) {
                for loss in LOSSES.map(Some) {
                    for buffer in BUFFERS.map(Some) {
                        for flows in FLOWS.map(Some) {
                            regions.push(Region { controller, loss, buffer, flows, transfers });
                        }
                    }
                }
            }
        }
        regions
    }
}

/// The value at `share` of the sorted amounts of errors.
pub fn quantile(mut errors: Vec<f64>, share: f64) -> Option<f64> {
    errors.iter_mut().for_each(|error| *error = error.abs());
    errors.sort_by(f64::total_cmp);
    let index = ((errors.len() as f64 * share) as usize).min(errors.len().saturating_sub(1));
    errors.get(index).copied()
}

/// The table of regions that hold cases, as CSV.
pub fn table(all: &[Compared]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for region in Region::all() {
        let own: Vec<&Compared> = all.iter().filter(|one| region.holds(one)).collect();
        if !own.is_empty() {
            text.push_str(&line(&region, &own));
        }
    }
    text
}

fn line(region: &Region, own: &[&Compared]) -> String {
    let errors = |of: fn(&Compared) -> Option<f64>| -> Vec<f64> {
        own.iter().filter_map(|one| of(one)).collect()
    };
    let both = |errors: &[f64]| {
        [0.5, 0.95].map(|share| {
            quantile(errors.to_vec(), share).map_or(String::new(), |error| format!("{error:.4}"))
        })
    };
    let (figures, trips, queues) = (
        errors(Compared::error),
        errors(Compared::round_trip_error),
        errors(Compared::queue_error),
    );
    let name = |part: Option<&str>| part.unwrap_or("all").to_string();
    let fields = [
        if region.transfers { "transfer" } else { "steady" }.to_string(),
        name(region.controller),
        name(region.loss),
        name(region.buffer),
        name(region.flows),
        own.len().to_string(),
        (own.len() - figures.len()).to_string(),
        both(&figures).join(","),
        both(&trips).join(","),
        queues.len().to_string(),
        both(&queues).join(","),
    ];
    format!("{}\n", fields.join(","))
}

/// The error of a case that a chart shows.
type Error = fn(&Compared) -> Option<f64>;

/// The charts: goodput and round trip of steady connections, times of transfers.
pub fn figures(all: &[Compared]) -> Vec<Figure> {
    let of = |name: &str, title: &str, transfers, error: Error| {
        let steady = Region { transfers, ..Region::default() };
        let mut series = Vec::new();
        for (flows, words) in [("one", "one connection"), ("several", "several connections")] {
            let region = Region { flows: Some(flows), ..steady };
            for (share, quantity) in [(0.5, "median"), (0.95, "95th percentile")] {
                let points = points(all, region, share, error);
                let name = format!("{quantity}, {words}");
                series.push(Series { name, role: Role::Ours, group: None, points });
            }
        }
        Figure {
            name: name.into(),
            kind: FigureKind::Bars,
            title: title.into(),
            caption: String::new(),
            x: Axis::category("controller and loss", ""),
            y: Axis { from: Some(0.0), ..Axis::linear("error of the formula", "%") },
            series,
        }
    };
    vec![
        of(
            "goodput",
            "Goodput of steady connections: formula against simulator",
            false,
            Compared::error,
        ),
        of(
            "round-trip",
            "Mean round trip with its queue: formula against simulator",
            false,
            Compared::round_trip_error,
        ),
        of("transfers", "Time of transfers: formula against simulator", true, Compared::error),
    ]
}

fn points(all: &[Compared], region: Region, share: f64, error: Error) -> Vec<Point> {
    let mut points = Vec::new();
    for controller in CONTROLLERS {
        for loss in LOSSES {
            let part = Region { controller: Some(controller), loss: Some(loss), ..region };
            let errors = all.iter().filter(|one| part.holds(one)).filter_map(error).collect();
            if let Some(error) = quantile(errors, share) {
                let name = format!("{controller}, {loss}");
                points.push(Point::new(name.as_str(), 100.0 * error));
            }
        }
    }
    points
}

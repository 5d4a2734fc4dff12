//! The formulas' figures of a case, and how far they are from the simulator's.

use crate::case::Case;
use crate::simulated::{Simulated, mean, runs};
use anyhow::{Context, Result};
use trunkline_core::Span;
use trunkline_engine::Note;
use trunkline_model::{Figure, What, predictions};

/// The columns of the predicted figures.
pub const COLUMNS: &str = "model_figure,model_queue_ms,figure_error,round_trip_error,queue_error";

/// The formulas' figures of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// Steady: user bytes per second of a flow. Transfers: seconds of one. `None` where no formula applies.
    pub figure: Option<f64>,
    /// The mean wait in the queue, in milliseconds.
    pub queue: f64,
    /// The reasons why there is no figure, or the assumptions made.
    pub notes: Vec<Note>,
}

/// A case with both.
pub struct Compared {
    pub case: Case,
    pub simulated: Simulated,
    pub predicted: Predicted,
}

/// Asks the formulas: the mean over the runs that are simulated, whose flows begin at different distances.
pub fn predict(case: &Case) -> Result<Predicted> {
    let each = (0..runs(case)).map(|run| predict_run(case, run)).collect::<Result<Vec<_>>>()?;
    let figures: Option<Vec<f64>> = each.iter().map(|one| one.figure).collect();
    let figure = figures.map(|figures| mean(&figures));
    let first = each.into_iter().next().context("a case has a run")?;
    Ok(Predicted { figure, ..first })
}

fn predict_run(case: &Case, run: u32) -> Result<Predicted> {
    let found = predictions(&case.scenario(run)?)?;
    let wanted = if case.bytes.is_some() { What::Transfer } else { What::Throughput };
    let of = |what: What| found.list.iter().find(|p| p.what == what).map(|p| p.value);
    let figure = of(wanted).and_then(|figure| match figure {
        Figure::Rate(rate) => Some(rate.millibytes_per_second() as f64 / 1e3),
        Figure::Time(span) => Some(span.as_secs_f64()),
        _ => None,
    });
    let queue = of(What::MeanQueue).or(of(What::StandingQueue)).and_then(Figure::time);
    let queue = queue.unwrap_or(Span::ZERO).as_millis_f64();
    Ok(Predicted { figure, queue, notes: found.notes })
}

impl Compared {
    /// The error of the goodput, or of the time of a transfer: predicted over simulated, less one.
    pub fn error(&self) -> Option<f64> {
        self.predicted.figure.map(|figure| figure / self.simulated.figure - 1.0)
    }

    /// The error of the mean round trip of a steady case, queue and the segment's own time included.
    pub fn round_trip_error(&self) -> Option<f64> {
        let own = self.case.rtt as f64 / 1e3 + 12e6 / self.case.rate as f64;
        let steady = self.case.bytes.is_none() && self.predicted.figure.is_some();
        steady.then(|| (own + self.predicted.queue) / (own + self.simulated.queue) - 1.0)
    }

    /// The error of the mean queue of a steady case, where it is a tenth of the round trip or more.
    pub fn queue_error(&self) -> Option<f64> {
        let counts = self.simulated.queue * 10.0 >= self.case.rtt as f64 / 1e3;
        let error = || self.predicted.queue / self.simulated.queue - 1.0;
        self.round_trip_error().filter(|_| counts).map(|_| error())
    }

    /// As fields of CSV; empty where there is nothing to say.
    pub fn line(&self) -> String {
        let text = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        format!(
            "{},{:.4},{},{},{}",
            text(self.predicted.figure),
            self.predicted.queue,
            text(self.error()),
            text(self.round_trip_error()),
            text(self.queue_error())
        )
    }
}

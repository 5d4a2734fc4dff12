//! What is predicted, with the terms that it is made of.

use crate::Throughput;
use std::fmt::{self, Write};
use trunkline_core::{Cause, Span};
use trunkline_engine::Note;

/// A predicted quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// From the start of a write to the end of the answer's last read, with nothing else on the path.
    UnloadedRoundTrip,
    /// The same with the scenario's other traffic.
    RoundTrip,
    /// The most that it can be with the scenario's other traffic.
    RoundTripAtMost,
    /// From the start of a write to the end of its last read at the far end.
    Delay,
    /// The most that it can be with the scenario's other traffic.
    DelayAtMost,
    /// A whole transfer.
    Transfer,
    /// From one write's return to the next one's, in the long run.
    Interval,
    /// A stated interval, in which the receiver reads so many bytes.
    Amount,
    /// User bytes per second of one flow, in the long run.
    Throughput,
    /// Time that the standing queue of a saturated line takes to drain.
    StandingQueue,
    /// What a packet waits in the mean before the line that a connection fills, or swings above.
    MeanQueue,
    /// Busy share of the busiest line.
    Utilisation,
}

impl What {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            What::UnloadedRoundTrip => "round trip, unloaded",
            What::RoundTrip => "round trip",
            What::RoundTripAtMost => "round trip, at most",
            What::Delay => "delay one way",
            What::DelayAtMost => "delay one way, at most",
            What::Transfer => "transfer time",
            What::Interval => "interval of writes",
            What::Amount => "interval of so many bytes",
            What::Throughput => "throughput of a flow",
            What::StandingQueue => "standing queue",
            What::MeanQueue => "mean queue",
            What::Utilisation => "utilisation",
        }
    }

    /// Is it what the scenario's traffic would measure, and so a sample of the run?
    pub fn is_measured(self) -> bool {
        matches!(
            self,
            What::RoundTrip
                | What::RoundTripAtMost
                | What::Delay
                | What::DelayAtMost
                | What::Transfer
                | What::Interval
                | What::Amount
        )
    }
}

/// A value with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A length of time.
    Time(Span),
    /// User bytes per second.
    Rate(Throughput),
    /// Parts per million.
    Share(u64),
    /// A plain number.
    Count(u64),
}

impl Figure {
    /// The unit in which the figure counts; [`Display`](fmt::Display) may choose a larger one.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::Time(_) => "ns",
            Figure::Rate(_) => "B/s",
            Figure::Share(_) => "ppm",
            Figure::Count(_) => "1",
        }
    }

    /// The time, if it is one.
    pub fn time(self) -> Option<Span> {
        match self {
            Figure::Time(span) => Some(span),
            _ => None,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Time(span) => f.pad(&span.to_string()),
            Figure::Rate(rate) => f.pad(&rate.to_string()),
            Figure::Share(parts) => {
                f.pad(&format!("{}.{:02}%", parts / 10_000, parts % 10_000 / 100))
            }
            Figure::Count(count) => f.pad(&count.to_string()),
        }
    }
}

/// One term of a prediction. The times of terms that carry a cause sum exactly to the prediction; a
/// term without a cause is an intermediate result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// What it is.
    pub name: String,
    /// Where the time passes: a host, a node, or a link with its direction, `a>b`.
    pub place: String,
    /// What the time is spent on.
    pub cause: Option<Cause>,
    /// The formula.
    pub formula: &'static str,
    /// The formula with the numbers put in.
    pub numbers: String,
    /// Its value.
    pub value: Figure,
    /// Where the formula comes from: report and section.
    pub source: &'static str,
}

impl Term {
    /// The time that it adds to its prediction.
    pub fn span(&self) -> Span {
        self.cause.and_then(|_| self.value.time()).unwrap_or(Span::ZERO)
    }
}

/// A predicted figure of one traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// The traffic's name.
    pub traffic: String,
    /// User bytes of the message, the write or the transfer.
    pub size: u64,
    /// Which quantity.
    pub what: What,
    /// Its value.
    pub value: Figure,
    /// What it is made of, in order of time.
    pub terms: Vec<Term>,
}

impl Prediction {
    /// The unit of the value.
    pub fn unit(&self) -> &'static str {
        self.value.unit()
    }
}

/// All that can be predicted of a network, and why the rest cannot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Predictions {
    /// The figures, traffic by traffic in the scenario's order.
    pub list: Vec<Prediction>,
    /// Assumptions made, and what no formula covers.
    pub notes: Vec<Note>,
}

impl Predictions {
    /// The figure for a traffic and size, if there is one.
    pub fn find(&self, traffic: &str, size: u64, what: What) -> Option<&Prediction> {
        self.list.iter().find(|p| p.traffic == traffic && p.size == size && p.what == what)
    }

    /// For the terminal: each figure, below it the formulas with the numbers put in, then the notes.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for prediction in &self.list {
            // Writing to a string cannot fail.
            let _ = write_prediction(&mut text, prediction);
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

fn write_prediction(text: &mut String, prediction: &Prediction) -> fmt::Result {
    let Prediction { traffic, size, what, value, terms } = prediction;
    let unit = if *size == 1 { "byte" } else { "bytes" };
    writeln!(text, "{traffic}, {size} {unit}: {} = {value}", what.name())?;
    for term in terms {
        let place =
            if term.place.is_empty() { String::new() } else { format!(" at {}", term.place) };
        let mark = if term.cause.is_some() { '+' } else { ' ' };
        writeln!(text, "  {mark} {:<12} {}{place}", term.value, term.name)?;
        writeln!(text, "      {} = {}   [{}]", term.formula, term.numbers, term.source)?;
    }
    writeln!(text)
}

//! Published experiments as data.
//!
//! A study is a directory with a `study.toml`, scenario files, and published tables. It says which cells of
//! which scenarios are run, which published value each is held against, which figures are drawn, the source of each
//! parameter, and what counts as success. The studies of `studies/` are compiled in.
//!
//! [`run`] is handed engines, whichever they are, and judges what they return.

mod check;
mod coordinate;
mod error;
mod extract;
mod figure;
mod filter;
mod format;
mod formula;
mod goal;
mod job;
mod join;
mod keypath;
mod library;
mod page;
mod part;
mod quote;
mod result;
mod run;
mod source;
mod table;
mod term;
#[cfg(test)]
mod testing;
mod unit;
mod verified;

pub use error::StudyError;
pub use filter::{Choice, Filter, Scalar};
pub use format::{
    Experiment, FigureSpec, Goal, Judge, Key, Measure, Parameter, Part, Provenance, Quantity,
    Quote, SeriesSpec, Share, Statistic, Study, Variant,
};
pub use formula::FormulaError;
pub use library::{Library, names};
pub use result::{ExperimentResult, GoalResult, ParameterNote, QuoteResult, StudyResult};
pub use run::{Makers, Progress, Verifier, run, run_sources};
pub use source::{ScenarioFile, Source};
pub use table::Published;
pub use term::{ColumnTerm, ExperimentTerm, FormulaTerm, Reduce, Side, Term, TermError};
pub use unit::Unit;

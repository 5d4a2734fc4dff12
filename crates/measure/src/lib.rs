//! Samples and what they say: histograms of times, the reports' estimators and sound ones with their
//! confidence, what a run has measured of each traffic and link, tables of named cells and their comparison.
//!
//! Floating point begins here, when results are summarised. Every sum is taken in the order of the
//! samples and every function beyond the four operations and the square root comes from one portable
//! library, so that the figures are the same to the last bit on every machine.

mod accuracy;
mod compare;
mod confidence;
mod estimator;
mod reduce;
mod run;
mod samples;
mod share;
mod spread;
mod stats;
mod steady;
mod steps;
mod table;
mod times;
mod total;
mod trail;
mod waiting;

pub use accuracy::Accuracy;
pub use compare::{Agreement, Comparison, Counted, Row, Tolerance, compare};
pub use confidence::{Interval, MeanInterval, bootstrap_quantile, mean_interval, repetitions};
pub use estimator::{Estimate, Estimator, EstimatorError};
pub use reduce::{Quantity, Spread, Throughput};
pub use run::{Conservation, LinkRun, Sample, SenderState, Step, TrafficRun, WindowSample};
pub use samples::{Keep, KeepError, Samples};
pub use share::{order_interval, share_interval};
pub use stats::{deviation, mean, quantile};
pub use steady::steady_from;
pub use steps::{Steps, Unpacked};
pub use table::{Cell, Columns, Key, Table, TableError, key_text, unit_of};
pub use times::{Percentiles, TimeRange, Times};
pub use total::Course;
pub use trail::Trail;
pub use waiting::{SenderClock, Spent, Waiting};

//! Samples and histograms of times.

mod run;
mod times;

pub use run::{Conservation, Engine, LinkRun, Run, Sample, SenderState, Step, TrafficRun};
pub use times::{Percentiles, Times};

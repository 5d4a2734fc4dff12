//! Samples and histograms of times.

mod times;

pub use times::{Percentiles, Times};

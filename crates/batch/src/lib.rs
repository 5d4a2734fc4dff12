//! Every cell of a scenario in every engine that is handed in, on all processors, to one report.
//!
//! The result does not depend on the number of processors, nor on which cell was done first.

mod axis;
mod batch;
mod cost;
mod error;
mod kept;
mod pool;
mod shown;

pub use axis::idle_axes;
pub use batch::{Batch, Outcome, Progress, make, reseed};
pub use cost::cost;
pub use error::BatchError;
pub use kept::{Kept, digest_of, read_kept};
pub use pool::run_all;
pub use shown::shown;

//! Inferences about a path from measurements.
//!
//! A probe hands over [`Observations`]: messages and answers with the time stamps of both hosts. The
//! functions here do no I/O and read no clock.
//!
//! - [`Clock::relate`] relates the two hosts' clocks, and says what no measurement can tell of them;
//!   [`Summary::of`] puts a session into figures: delay, jitter, loss, order, each way if it can.
//! - [`Stopping`] says when enough has been measured, [`Degradation::of`] how much worse load makes it.
//! - [`Sweep`] chooses message sizes, [`PathFit::of`] finds window, rate, propagation and the hosts' cost
//!   from the round trips, or says why it cannot ([`Line`]: datagrams' part in it), and [`PathFit::scenario`] writes
//!   the scenario file.
//! - [`flent`] writes Flent's data files.
//!
//! ```
//! use trunkline_core::Seed;
//! use trunkline_fit::{Known, PathFit, Pattern, Sweep};
//!
//! // A path with a window of 756 bytes, in place of a real one: milliseconds by size.
//! let round_trip = |size: u32| 54.6 + 0.02 * f64::from(size) + 90.0 * f64::from((size - 1) / 756);
//!
//! let sweep = Sweep::default();
//! let mut samples = Vec::new();
//! loop {
//!     let asks = sweep.next(&samples);
//!     if asks.is_empty() {
//!         break;
//!     }
//!     for ask in asks {
//!         samples.extend((0..ask.repeat).map(|_| (ask.size, round_trip(ask.size))));
//!     }
//! }
//! let fit = PathFit::of(&samples, Known::only(Pattern::Echo), Seed(1));
//! assert_eq!(fit.window, Ok(756));
//! ```

mod boundary;
mod clock;
mod curve;
pub mod flent;
mod hull;
mod known;
mod level;
mod line;
mod load;
mod loss;
mod observation;
mod order;
mod outlier;
mod path;
mod regress;
mod scenario;
mod sizes;
mod steps;
mod stopping;
mod summary;
mod variation;

pub use boundary::{Boundary, waits};
pub use clock::{Clock, ClockError, FASTEST_DRIFT, OneWay, Stretch};
pub use curve::{Comb, Curve, Packets, Teeth};
pub use known::{CannotTell, Fitted, Known, Opens, Pattern, Waits};
pub use line::Line;
pub use load::{Compared, Degradation, Figure};
pub use loss::{Loss, Share};
pub use observation::{Exchange, Far, Lost, Observations, Stamp, Way};
pub use order::Reordering;
pub use outlier::{OutlierRule, outliers};
pub use path::{FEWEST, PathFit};
pub use scenario::{CannotWrite, Over, OverTcp, OverUdp, Trial, Wanted, Written};
pub use sizes::{Ask, Suspects, Sweep};
pub use steps::{Gap, Looking};
pub use stopping::{Center, Goal, Look, Progress, Stopping};
pub use summary::{Direction, Spread, Summary};
pub use variation::{delay_variation, interarrival_jitter};

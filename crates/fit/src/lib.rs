//! What measurements say about a path.
//!
//! A probe hands over [`Observations`]: messages and answers with the time stamps of both hosts. The
//! functions here do no I/O and read no clock. [`Clock::relate`] relates the two hosts' clocks,
//! [`Summary::of`] puts a session into figures.

mod clock;
mod curve;
pub mod flent;
mod hull;
mod known;
mod level;
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

pub use clock::{Clock, ClockError, FASTEST_DRIFT, OneWay, Stretch};
pub use curve::{Comb, Curve, Packets, Teeth};
pub use known::{CannotTell, Fitted, Known, Opens, Pattern};
pub use load::{Compared, Degradation, Figure};
pub use loss::{Loss, Share};
pub use observation::{Exchange, Far, Lost, Observations, Stamp, Way};
pub use order::Reordering;
pub use outlier::{OutlierRule, outliers};
pub use path::PathFit;
pub use scenario::{CannotWrite, Wanted, Written};
pub use sizes::{Ask, Suspects, Sweep};
pub use steps::Gap;
pub use stopping::{Center, Goal, Look, Progress, Stopping};
pub use summary::{Direction, Spread, Summary};
pub use variation::{delay_variation, interarrival_jitter};

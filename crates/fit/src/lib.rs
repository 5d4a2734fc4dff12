//! What measurements say about a path.
//!
//! A probe hands over [`Observations`]: messages and answers with the time stamps of both hosts. The
//! functions here do no I/O and read no clock.

mod clock;
mod hull;
mod observation;
mod variation;

pub use clock::{Clock, ClockError, FASTEST_DRIFT, OneWay, Stretch};
pub use observation::{Exchange, Far, Lost, Observations, Stamp, Way};
pub use variation::{delay_variation, interarrival_jitter};

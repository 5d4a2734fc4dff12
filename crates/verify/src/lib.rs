//! Measures the emulator from outside, as §3.9 of the LDS report does: stamped, numbered UDP probes.
//!
//! ```text
//!  (a) near ═══════════════════════ far      direct veth: what the measurement itself takes
//!  (b) near ─── bare forwarder ──── far      same backend, no path: what the machine can forward
//!  (c) near ─── path under test ─── far
//! ```
//!
//! One [`generator`] sends in both directions at once, from the intended send times, and receives. A
//! probe's departure is the sender's clock before the call that sends it; its arrival is the kernel's
//! stamp at the destination device. The modelled path itself, fed with the departures, says when each
//! probe was due ([`reference`](mod@reference)); [`compare`] takes the difference. What (a) shows from departure to
//! arrival is taken off and told as the measurement's own.

pub mod calibrate;
pub mod compare;
pub mod costs;
mod error;
pub mod generator;
mod laboratory;
pub mod limits;
pub mod probe;
pub mod reference;
pub mod report;
mod run;
mod scenario;
pub mod spread;
pub mod sweep;
pub mod trace;

pub use error::VerifyError;
pub use laboratory::{Arrangement, Laboratory};
pub use run::{Baseline, Emulator, Trial, check};
pub use scenario::measure;

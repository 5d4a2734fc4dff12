//! The vocabulary of Trunkline.
//!
//! Every other crate speaks in these words: integer [`Time`] and [`Span`] in nanoseconds, [`Rate`] in
//! bits per second, [`Size`] in bytes, the [`Packet`] with its [`Ledger`] of delay by [`Cause`], the
//! named reasons for a loss ([`DropCause`]), the congestion bits ([`Ecn`]), and seeded random [`Stream`]s. Nothing here does I/O or
//! reads a clock.

mod counts;
mod ecn;
mod ledger;
mod packet;
mod parse;
mod quantity;
mod random;
mod seldom;
mod shared;
mod tight;
mod time;

pub use counts::{Counts, DropCause};
pub use ecn::Ecn;
pub use ledger::{Cause, Ledger};
pub use packet::{Carried, Channel, Hosts, Metered, Packet};
pub use parse::{ParseError, number_and_unit};
pub use quantity::{Rate, Size};
pub use random::{Probability, Seed, Stream};
pub use seldom::{Seldom, Untouched};
pub use shared::{Recent, Shared};
pub use tight::Tight;
pub use time::{Span, Time};

//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! Every controller is a machine of integers without clock or randomness of its own, so that the same
//! ACKs give the same window on every machine. [`Congestion`] is the face they share, [`Controller`]
//! one of them, [`Settings`] what it is told at its start.
//!
//! A new controller is one file here with its machine and its [`Entry`], one line of this file that
//! declares it, and one in [`Algorithm::ALL`].

mod ack;
mod algorithm;
mod bbr;
mod controller;
pub(crate) mod cubic;
mod dctcp;
mod idle;
mod prague;
mod rate;
mod reno;
mod settings;

pub use ack::{Ack, Congestion, Reason};
pub use algorithm::{Algorithm, Entry, Law, Marks, UnknownAlgorithm};
pub use bbr::Bbr;
pub use controller::{Controller, Other};
pub use cubic::Cubic;
pub use rate::{RateSample, RateSampler, Stamp};
pub use reno::Reno;
pub use settings::{Counting, MOST_WINDOW, Settings, Start};

//! The formula room: closed formulas as pure functions, published ones and their general forms.
//!
//! Times are whole nanoseconds, rounded down at the last step; rates of user bytes are
//! [`Throughput`](crate::Throughput)s. Each function names the report, the equation or section that it
//! comes from, and the range in which it holds.

pub mod chance;
pub mod course;
pub mod fairness;
pub mod general;
pub mod hawley1989;
pub mod hystart;
pub mod lambert1987;
pub mod mosberger1994;
pub mod opening;
pub mod order;
pub mod rounds;
pub mod sawtooth;
pub mod tcp;
pub mod transfer;
pub mod vandewater1988;

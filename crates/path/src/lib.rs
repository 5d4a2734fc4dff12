//! The elements of a path between two hosts.
//!
//! A [`Link`] is one direction of a path: a queue [`Discipline`] in front of a [`Line`] (rate, framing,
//! output buffer), then [`impairment`]s, then a [`DelayLine`]:
//!
//! ```text
//! offer ─▶ discipline ─▶ output buffer ─▶ line ─▶ loss, errors, jitter … ─▶ delay line ─▶ take
//!          (has a limit)                                                    (in flight, never drops)
//! ```
//!
//! A trunk board has a [`TrunkProcessor`], which takes time to move everything in and out of the discipline:
//!
//! ```text
//! offer ─▶ input fifo ─▶ processor ─▶ discipline ─▶ processor ─▶ output fifo ─▶ line …
//! ```
//!
//! A [`medium`] joins several stations, each with a discipline of its own, and decides who sends when:
//!
//! ```text
//! offer ─▶ discipline of the station ─▶ channel, in turn ─▶ take at the station that it is for
//! ```
//!
//! Nothing here reads a clock: time is an argument, so the simulator and the real-time emulator run
//! the same code. The engine calls [`Link::offer`] with each arrival in order of time,
//! [`Link::advance`] to let the line work up to an instant, and [`Link::take`] for what is due.

mod block_queue;
mod board;
mod catch_up;
mod classify;
mod delay;
pub mod discipline;
mod framing;
pub mod impairment;
mod limit;
mod line;
mod link;
pub mod medium;
mod opportunities;
mod outlet;
mod pace;
mod processor;
mod schedule;
mod spec;

pub use block_queue::BlockQueue;
pub use catch_up::CatchUp;
pub use classify::{ChannelKey, Class, classify, mark_frame};
pub use delay::DelayLine;
pub use discipline::{
    AnyDiscipline, Backlog, Discipline, DisciplineSpec, DisciplineTextError, Drops, Service,
    Sharing, Standing,
};
pub use framing::{Framer, Framing, Piece, aal5_cells};
pub use limit::Limit;
pub use line::Line;
pub use link::{Change, Delivered, Link, Served};
pub use medium::{Medium, MediumSpec};
pub use opportunities::DeliveryTrace;
pub use processor::{ByteTime, TrunkProcessor};
pub use schedule::{Schedule, ScheduleError};
pub use spec::{LinkSpec, SpecError};

//! Hosts in virtual time: processors, interfaces, end points and the applications on them.
//!
//! A message's way: system write → requests of the interface → blocks of the transport → packets of the
//! path → the far interface → the far host's interrupt → system read. Each stage is a room here.

mod apps;
mod arrive;
mod booking;
mod build;
mod collect;
mod course;
mod early;
mod end;
mod endings;
mod flying;
mod ideal;
mod intervals;
mod jobs;
mod listed;
mod measured;
mod protocol;
mod receive;
mod requests;
mod schedule;
mod segments;
mod send;
pub(crate) mod serial;
mod settings;
mod tag;
mod tcp;
mod unsteady;
mod world;

pub(crate) use world::World;

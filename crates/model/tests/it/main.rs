//! The formulas against published figures, recorded runs of the simulator, and their own laws.

mod against_simulator;
mod buckets;
mod common;
mod costs;
mod drawn_media;
mod drawn_paced;
mod ends;
mod growing;
mod media;
mod media_beside;
mod messages;
mod processors;
mod published_hawley1989;
mod published_lambert1987;
mod published_vandewater1988;
mod queues;
mod small_transfers;
mod takers;
mod tcp;
mod textbooks;
mod totals;
mod transfers;
mod turns;
mod when;
mod windows;

//! Ladders of engines, and what they make of runs that are INVALID.

mod invalid;
mod phase;

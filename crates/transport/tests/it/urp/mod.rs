//! URP between two ends.

mod grades;
mod lossy;
mod profiles;
mod talk;
mod traces;

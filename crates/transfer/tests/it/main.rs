//! Transfers of files.

// Lists of missing ranges are compared, and often hold one.
#![allow(clippy::single_range_in_vec_init)]

mod faults;
mod hostile;
mod places;
mod resume;
mod tree;
mod trees;

//! Scenario files: read, refused, damaged, large.

mod damaged;
mod examples;
mod file;
mod grids;
mod ranges;
mod remarks;
mod scale;
mod wrong_files;

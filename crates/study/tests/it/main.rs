//! Studies and their parts.

mod common;
mod format;
mod ledger;
mod parameters;
mod reports;
mod short;
mod studies;

//! Studies and their parts.

mod common;
mod format;
mod ledger;
mod reports;
mod short;
mod studies;

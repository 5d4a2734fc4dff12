//! Studies and their parts.

mod common;
mod format;
mod ledger;
mod short;
mod studies;

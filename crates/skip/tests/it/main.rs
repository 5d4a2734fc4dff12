//! Notes of skips, and the lint that looks for tests without one.

mod early_returns;
mod lint;
mod notes;

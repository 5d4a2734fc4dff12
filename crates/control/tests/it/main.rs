//! Paths that are run, shown and set as the command does it.

mod control;
mod documentation;
mod session;
mod user_namespace;

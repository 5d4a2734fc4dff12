//! The command as people run it: real programs in network namespaces, wrong use, interrupted runs.
//!
//! Each test has a namespace that stands for the machine's network, so that nothing is changed outside of
//! it and whatever a run leaves behind can be seen. If that is not permitted, tests run in the
//! machine's own network as an ordinary user does, or say that they were skipped. No test judges how fast
//! anything was: runs are started with `--best-effort`. `turn.rs` says which tests run at the same time.

mod action;
mod between;
mod bridge;
mod clusters;
mod console;
mod datagrams;
mod dissector;
mod endings;
mod explain;
mod habits;
mod hostile;
mod ladder;
mod live;
mod losses;
mod machine;
mod measuring;
mod neighbours;
mod nodes;
mod pipes;
mod plane;
mod probe;
mod processors;
mod programs;
mod reach;
mod resume;
mod scenarios;
mod shell;
mod stalls;
mod studies;
mod support;
mod transfers;
mod turn;
mod tutorial;
mod unprivileged;
mod wrong_use;

//! Judges `explain` over scenarios drawn by chance: `make advice`, or
//! `cargo run --release -p trunkline-explain --example advice -- [COUNT [SEED [FIRST]]]`.
//!
//! Prints a line for each scenario that is advised wrongly or promised wrongly, then the shares. Every second ten
//! scenarios are explained with so small a budget that runs are cut if they may be.

#[path = "../tests/it/advice/mod.rs"]
mod advice;

use advice::draw::{draw, is_long};
use advice::judge::{Verdict, judge};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Packets over links from which on a run may be cut, in every second ten.
const TIGHT: u64 = 1000;
/// The goal: the least share of right first answers.
const GOAL: f64 = 0.98;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (count, seed) = (numbers.next().unwrap_or(300), numbers.next().unwrap_or(1));
    let first = numbers.next().unwrap_or(0);
    let verdicts = all(seed, first, count);
    let share = |holds: &dyn Fn(&Verdict) -> bool| verdicts.iter().filter(|it| holds(it)).count();
    for it in verdicts.iter().filter(|it| !it.is_right() || !it.keeps_promises()) {
        println!("{}: {it}", if it.is_right() { "PROMISE" } else { "WRONG" });
        println!("{}", draw(seed, it.number).paper.text());
    }
    for it in verdicts.iter().filter(|it| it.is_right() && !it.is_as_built()) {
        println!("right, but not as built: {it}");
    }
    let right = share(&|it| it.is_right());
    let runs: usize = verdicts.iter().map(|it| it.runs).sum();
    println!("seed {seed}: {count} scenarios from {first}, {runs} runs by explain");
    println!(
        "right first answers: {right} of {count} ({:.1} %)",
        100.0 * right as f64 / count as f64
    );
    println!("told as built: {}", share(&|it| it.is_as_built()));
    println!("promises within 10 %: {}", share(&|it| it.keeps_promises()));
    println!("runs were cut in: {}", share(&|it| it.was_cut));
    if right as f64 >= GOAL * count as f64 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The verdicts in order, worked out on all cores.
fn all(seed: u64, first: u64, count: u64) -> Vec<Verdict> {
    let (next, verdicts) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + count {
                        return;
                    }
                    let budget = is_long(number).then_some(TIGHT);
                    let verdict = judge(&draw(seed, number), budget);
                    eprint!("\r{number} ");
                    verdicts.lock().expect("no thread has panicked").push(verdict);
                }
            });
        }
    });
    let mut verdicts = verdicts.into_inner().expect("no thread has panicked");
    verdicts.sort_by_key(|it| it.number);
    verdicts
}

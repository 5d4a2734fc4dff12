//! Works scenarios through on all cores, and gives what each came to in the order of the asking.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use trunkline_scenario::Scenario;

/// Does `work` on every scenario. `done` is told the number of finished ones after each. The order of the results
/// is that of the scenarios, whatever finishes first.
pub(crate) fn run_all<T: Send>(
    scenarios: &[Scenario],
    work: impl Fn(&Scenario) -> T + Sync,
    mut done: impl FnMut(usize),
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = scenarios.iter().map(|_| Mutex::new(None)).collect();
    let (finished, news) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers(scenarios.len()) {
            let finished = finished.clone();
            let (next, results, work) = (&next, &results, &work);
            scope.spawn(move || {
                while let Some(index) = claim(next, scenarios.len()) {
                    put(&results[index], work(&scenarios[index]));
                    // Nobody listens if the caller has gone.
                    let _ = finished.send(());
                }
            });
        }
        drop(finished);
        for (count, ()) in news.iter().enumerate() {
            done(count + 1);
        }
    });
    results.into_iter().filter_map(taken).collect()
}

fn workers(work: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.min(work)
}

fn claim(next: &AtomicUsize, count: usize) -> Option<usize> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    (index < count).then_some(index)
}

fn put<T>(slot: &Mutex<Option<T>>, value: T) {
    *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(value);
}

fn taken<T>(slot: Mutex<Option<T>>) -> Option<T> {
    slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

//! Jobs on all processors, results in the order of the jobs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs every job on `threads` threads, those with the greatest `cost` first, and returns the results in
/// the order of the jobs: they do not depend on the number of threads. `done` is told how many are done
/// and which job has just ended; it is called from the threads.
///
/// The calling thread is one of them. The C library gives each thread a heap of its own, so that one more would leave
/// unused what reading the scenario has given back.
pub fn run_all<J: Sync, R: Send + Sync>(
    jobs: &[J],
    threads: usize,
    cost: impl Fn(&J) -> u64,
    work: impl Fn(&J) -> R + Sync,
    done: impl Fn(usize, &J) + Sync,
) -> Vec<R> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(cost(&jobs[index])));
    let results: Vec<OnceLock<R>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(&jobs[index]);
            assert!(results[index].set(result).is_ok(), "each job is taken once");
            done(ended.fetch_add(1, Ordering::Relaxed) + 1, &jobs[index]);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(worker);
        }
        worker();
    });
    results.into_iter().map(|cell| cell.into_inner().expect("every job was done")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..50).collect();
        for threads in [0, 1, 4, 100] {
            let told = Mutex::new(Vec::new());
            let done = |count, _: &u64| told.lock().unwrap().push(count);
            let squares = run_all(&jobs, threads, |&job| job, |&job| job * job, done);
            assert_eq!(squares, jobs.iter().map(|job| job * job).collect::<Vec<_>>());
            let mut told = told.into_inner().unwrap();
            told.sort_unstable();
            assert_eq!(told, (1..=50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_calling_thread_works_too() {
        let here = std::thread::current().id();
        let place = |_: &u64| std::thread::current().id();
        assert_eq!(run_all(&[1, 2], 1, |&job| job, place, |_, _| {}), [here, here]);
    }

    #[test]
    fn the_longest_come_first() {
        let begun = Mutex::new(Vec::new());
        run_all(&[3u64, 9, 5], 1, |&job| job, |&job| begun.lock().unwrap().push(job), |_, _| {});
        assert_eq!(begun.into_inner().unwrap(), [9, 5, 3]);
        assert!(run_all(&[] as &[u64], 3, |&job| job, |&job| job, |_, _| {}).is_empty());
    }
}

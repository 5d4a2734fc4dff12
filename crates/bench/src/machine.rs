//! The machine on which the figures were measured, and whether anything else was running there.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fmt;
use std::fs;

/// More of the machine than this used by others, in percent, makes figures doubtful.
const TOLERABLE: f64 = 5.0;
/// A load average above this before the start means that others are at work.
const QUIET: f64 = 0.5;

/// The machine, with its load before and after.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Processors that may be used.
    pub cores: usize,
    /// Their model.
    pub processor: String,
    /// Kernel release.
    pub kernel: String,
    /// Load average of the last minute before the run.
    pub load_before: f64,
    /// And after it; the run's own work is in it.
    pub load_after: Option<f64>,
    /// Share of all processors' time that other processes took during the run, in percent.
    pub others_percent: Option<f64>,
    /// Share that the hypervisor kept for itself, in percent.
    pub stolen_percent: Option<f64>,
    #[serde(skip)]
    start: Spent,
}

/// Processor time since boot, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    total: f64,
    busy: f64,
    stolen: f64,
    /// By this process and the children that it has waited for.
    own: f64,
}

impl Machine {
    /// Looks at the machine before the run.
    pub fn before() -> Machine {
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(),
            kernel: read("/proc/sys/kernel/osrelease"),
            load_before: load(),
            load_after: None,
            others_percent: None,
            stolen_percent: None,
            start: Spent::now(),
        }
    }

    /// Looks at it again, after the run.
    pub fn finish(&mut self) {
        let (now, start) = (Spent::now(), self.start);
        let total = (now.total - start.total).max(1e-9);
        let others = (now.busy - start.busy) - (now.own - start.own);
        self.load_after = Some(load());
        self.others_percent = Some((100.0 * others / total).max(0.0));
        self.stolen_percent = Some(100.0 * (now.stolen - start.stolen) / total);
    }

    /// The reason why the figures should not be relied upon, if there is one.
    pub fn warning(&self) -> Option<String> {
        let others = self.others_percent.unwrap_or(0.0) + self.stolen_percent.unwrap_or(0.0);
        if self.cores < 2 {
            return Some("one processor only: generator and forwarder share it".into());
        }
        if others > TOLERABLE {
            return Some(format!("others took {others:.0} % of the machine during the run"));
        }
        let busy = self.load_before > QUIET;
        busy.then(|| format!("the load average was {} before the start", self.load_before))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, processor, kernel, load_before, .. } = self;
        write!(f, "machine: {cores} × {processor}, Linux {kernel}, load {load_before} before")?;
        if let Some(after) = self.load_after {
            write!(f, ", {after} after")?;
        }
        if let (Some(others), Some(stolen)) = (self.others_percent, self.stolen_percent) {
            write!(f, "; others took {others:.1} % and the hypervisor {stolen:.1} % meanwhile")?;
        }
        Ok(())
    }
}

impl Spent {
    /// The first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq,
    /// steal, in ticks.
    fn now() -> Spent {
        let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
        let stat = read("/proc/stat");
        let line = stat.lines().next().unwrap_or_default();
        let fields: Vec<f64> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0.0) / ticks;
        let total = (0..8).map(at).sum::<f64>();
        let stolen = at(7);
        let busy = total - stolen - at(3) - at(4);
        Spent { total, busy, stolen, own: own(ticks) }
    }
}

/// Fields 16 and 17 of /proc/self/stat: what finished children used; the process's own from its clock.
fn own(ticks: f64) -> f64 {
    let stat = read("/proc/self/stat");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let at = |index: usize| fields.get(index).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let children = (at(13) + at(14)) / ticks;
    let clock = clock_gettime(ClockId::ProcessCPUTime);
    children + clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9
}

fn load() -> f64 {
    read("/proc/loadavg")
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0)
}

fn processor() -> String {
    let info = read("/proc/cpuinfo");
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split(':').nth(1));
    name.map_or_else(|| std::env::consts::ARCH.into(), |name| name.trim().into())
}

/// A file of the kernel's; empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

//! Both hosts' counters before, during and after a measurement.

use super::Connection;
use crate::counters::{self, HostReading};
use crate::{ProbeError, clock};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use trunkline_core::{Span, Time};

/// The time between readings of this host's counters, and every how many of these the server's are read, whose answer
/// travels over the path that is being measured.
const NEAR_EVERY: Span = Span::from_secs(2);
const FAR_EVERY: u32 = 5;
/// Readings that are kept; the rest goes by unread.
const MOST: usize = 512;
/// A processor busier than this disturbs the measurement.
const BUSY: f64 = 0.9;
/// A wall clock that moves by more than this against the other one has been set, in nanoseconds.
const STEP: u64 = 1_000_000;

/// The counters of both hosts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Hosts {
    /// This host's, in order of time: the first before, the last after.
    pub near: Vec<HostReading>,
    /// The server's.
    pub far: Vec<HostReading>,
    /// The share of this host's processors in use, 0 to 1.
    pub near_busy: Option<f64>,
    /// The same of the server's host.
    pub far_busy: Option<f64>,
    /// Possible disturbances of the measurement, each in one line.
    pub warnings: Vec<String>,
}

/// Reads the counters while `work` is done. What the server does not answer is missing.
pub fn during<T>(connection: &Connection, work: impl FnOnce() -> T) -> (T, Hosts) {
    let mut hosts = Hosts::default();
    hosts.near.push(counters::read());
    hosts.far.extend(far(connection));
    let (done, difference) = (AtomicBool::new(false), clock::difference());
    let (result, between) = thread::scope(|scope| {
        let watch = scope.spawn(|| watch(connection, &done));
        let result = work();
        done.store(true, Ordering::Relaxed);
        (result, watch.join().unwrap_or_default())
    });
    hosts.near.extend(between.near);
    hosts.far.extend(between.far);
    hosts.near.push(counters::read());
    hosts.far.extend(far(connection));
    hosts.conclude(clock::difference().abs_diff(difference));
    (result, hosts)
}

fn far(connection: &Connection) -> Result<HostReading, ProbeError> {
    connection.host()
}

fn watch(connection: &Connection, done: &AtomicBool) -> Hosts {
    let mut hosts = Hosts::default();
    let mut next: Time = clock::now() + NEAR_EVERY;
    let mut turn = 0;
    while !done.load(Ordering::Relaxed) && hosts.near.len() < MOST {
        thread::sleep(Duration::from_millis(50));
        if clock::now() < next {
            continue;
        }
        next += NEAR_EVERY;
        turn += 1;
        hosts.near.push(counters::read());
        if turn % FAR_EVERY == 0 && !connection.is_over() {
            hosts.far.extend(far(connection));
        }
    }
    hosts
}

impl Hosts {
    fn conclude(&mut self, step: u64) {
        for (name, list) in [("this host", &self.near), ("the server's host", &self.far)] {
            let (Some(first), Some(last)) = (list.first(), list.last()) else { continue };
            let busy = last.busy_since(first);
            if let Some(share) = busy.filter(|&share| share > BUSY) {
                self.warnings.push(format!(
                    "{name} was busy: {:.0} % of its processors' time was in use, which delays messages",
                    share * 100.0
                ));
            }
            let lost = last.interface_losses_since(first);
            if lost > 0 {
                self.warnings.push(format!("{name} lost {lost} packets at its own interfaces"));
            }
        }
        let busy = |list: &[HostReading]| list.last()?.busy_since(list.first()?);
        (self.near_busy, self.far_busy) = (busy(&self.near), busy(&self.far));
        if step > STEP {
            let millis = step / 1_000_000;
            self.warnings.push(format!(
                "this host's wall clock was set by {millis} ms meanwhile; round trips do not depend on it"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Interface;

    #[test]
    fn what_disturbs_is_said() {
        let reading = |ticks: u64, busy: u64, dropped: u64| HostReading {
            total_ticks: ticks,
            busy_ticks: busy,
            interfaces: vec![Interface { rx_dropped: dropped, ..Interface::default() }],
            ..HostReading::default()
        };
        let mut hosts = Hosts {
            near: vec![reading(100, 50, 0), reading(200, 145, 3)],
            far: vec![reading(0, 0, 1), reading(100, 20, 1)],
            ..Hosts::default()
        };
        hosts.conclude(5_000_000);
        assert_eq!((hosts.near_busy, hosts.far_busy), (Some(0.95), Some(0.2)));
        let said = hosts.warnings.join("\n");
        assert!(
            said.contains("95 %") && said.contains("lost 3") && said.contains("5 ms"),
            "{said}"
        );
        assert_eq!(hosts.warnings.len(), 3);
    }
}

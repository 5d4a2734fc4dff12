//! A host's load and its interfaces' counters, as `/proc` shows them.

use crate::clock;
use serde::{Deserialize, Serialize};
use std::fs;

/// The counters of a host at one instant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostReading {
    /// Nanoseconds since 1970.
    pub wall_ns: u64,
    /// Nanoseconds of the monotonic clock.
    pub clock_ns: u64,
    /// The name of the host.
    pub name: String,
    /// The kernel's version.
    pub kernel: String,
    /// Processors.
    pub processors: usize,
    /// Runnable tasks on average over the last minute (`/proc/loadavg`).
    pub load: f64,
    /// Time in which processors did something, in ticks of 10 ms over all of them (`/proc/stat`).
    pub busy_ticks: u64,
    /// All time, in the same ticks.
    pub total_ticks: u64,
    /// Time stolen by the host of a virtual machine, in the same ticks.
    pub stolen_ticks: u64,
    /// The interfaces but loopback (`/proc/net/dev`).
    pub interfaces: Vec<Interface>,
}

/// The counters of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Octets received.
    pub rx_octets: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets received in error.
    pub rx_errors: u64,
    /// Packets dropped on reception.
    pub rx_dropped: u64,
    /// Octets sent.
    pub tx_octets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets dropped before they were sent.
    pub tx_dropped: u64,
}

/// Reads all counters. What the system does not show stays zero.
pub fn read() -> HostReading {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (busy_ticks, total_ticks, stolen_ticks) = ticks(&text("/proc/stat"));
    HostReading {
        wall_ns: clock::wall(),
        clock_ns: clock::now().as_nanos(),
        name: text("/proc/sys/kernel/hostname").trim().into(),
        kernel: text("/proc/sys/kernel/osrelease").trim().into(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        load: load(&text("/proc/loadavg")),
        busy_ticks,
        total_ticks,
        stolen_ticks,
        interfaces: interfaces(&text("/proc/thread-self/net/dev")),
    }
}

impl HostReading {
    /// The share of all processors' time, 0 to 1, that was used from `earlier` on; `None` if no tick
    /// has passed.
    pub fn busy_since(&self, earlier: &HostReading) -> Option<f64> {
        let total = self.total_ticks.checked_sub(earlier.total_ticks).filter(|&ticks| ticks > 0)?;
        Some(self.busy_ticks.saturating_sub(earlier.busy_ticks) as f64 / total as f64)
    }

    /// Packets lost at the host's own interfaces from `earlier` on: errors and drops.
    pub fn interface_losses_since(&self, earlier: &HostReading) -> u64 {
        let lost = |reading: &HostReading| {
            let each = reading.interfaces.iter();
            each.map(|i| i.rx_errors + i.rx_dropped + i.tx_errors + i.tx_dropped).sum::<u64>()
        };
        lost(self).saturating_sub(lost(earlier))
    }
}

/// proc(5): user nice system idle iowait irq softirq steal guest guest_nice; guests are in user and nice.
fn ticks(stat: &str) -> (u64, u64, u64) {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let total: u64 = ticks.iter().take(8).sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (total - idle, total, ticks.get(7).copied().unwrap_or(0))
}

fn load(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn interfaces(text: &str) -> Vec<Interface> {
    text.lines().skip(2).filter_map(interface).filter(|one| one.name != "lo").collect()
}

fn interface(line: &str) -> Option<Interface> {
    let (name, rest) = line.split_once(':')?;
    let n: Vec<u64> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| n.get(index).copied();
    Some(Interface {
        name: name.trim().into(),
        rx_octets: at(0)?,
        rx_packets: at(1)?,
        rx_errors: at(2)?,
        rx_dropped: at(3)?,
        tx_octets: at(8)?,
        tx_packets: at(9)?,
        tx_errors: at(10)?,
        tx_dropped: at(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_shows_its_counters() {
        let reading = read();
        assert!(reading.total_ticks > 0 && reading.total_ticks >= reading.busy_ticks);
        assert!(!reading.kernel.is_empty() && reading.processors > 0);
        assert_eq!(reading.interface_losses_since(&reading), 0);
        assert_eq!(reading.busy_since(&reading), None);
    }

    #[test]
    fn files_are_read_as_documented() {
        assert_eq!(ticks("cpu  10 1 5 80 2 1 1 3 4 0\ncpu0 1\n"), (21, 103, 3));
        assert_eq!(ticks("nonsense"), (0, 0, 0));
        assert_eq!(load("0.52 0.6 0.7 1/200 77"), 0.52);
        let text = "Inter-|\n face |\n  lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n tl0: 100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\n x: 1\n";
        let found = interfaces(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rx_octets, found[0].rx_dropped, found[0].tx_packets), (100, 4, 6));
        assert_eq!(found[0].tx_dropped, 8);
    }
}

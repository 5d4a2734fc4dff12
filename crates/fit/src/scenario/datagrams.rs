//! The scenario of a path that was measured with datagrams.

use super::{CannotWrite, PathFit, Wanted, Written};
use crate::curve::Curve;
use std::fmt::Write;

/// Most sizes that the file has: each is a traffic of its own, each way.
const MOST_SIZES: usize = 8;
/// Most datagrams of each: whole bits a second, as a scenario has them, make their turns drift.
const MOST_REPEAT: u32 = 3;
/// Each has the line for itself: from one to the next so many times what the longest takes of it.
const APART: f64 = 3.0;
/// And at least so long, in milliseconds.
const LEAST_APART: f64 = 20.0;

/// The datagrams that were measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverUdp {
    /// Bytes of IP's and UDP's headers.
    pub headers: u32,
    /// Bytes of the message's head in each datagram.
    pub head: u32,
    /// The largest IP packet.
    pub mtu: u32,
    /// Bytes of headers of each further fragment.
    pub fragment: u32,
}

impl OverUdp {
    /// The largest message that goes in one packet, in user bytes.
    pub fn room(&self) -> u32 {
        self.mtu.saturating_sub(self.headers + self.head)
    }

    /// Payload of a full fragment, in bytes: a multiple of 8 (RFC 791 §3.2, RFC 8200 §4.5).
    pub fn period(&self) -> u32 {
        (self.mtu.saturating_sub(self.fragment) / 8 * 8).max(8)
    }

    /// Fragments of a message of `size` user bytes beyond the first packet.
    fn further(&self, size: u32) -> u32 {
        size.saturating_sub(self.room()).div_ceil(self.period())
    }

    /// The payload of a scenario's datagram that is as long on the line, headers of fragments included.
    fn payload(&self, size: u32) -> u32 {
        // The scenario's own headers are IPv4's.
        size + self.head + self.headers.saturating_sub(IPV4) + self.fragment * self.further(size)
    }
}

/// Bytes of IPv4's and UDP's headers: what a scenario's transport "udp" adds.
const IPV4: u32 = 28;

impl PathFit {
    pub(super) fn over_udp(
        &self,
        curve: &Curve,
        wanted: &Wanted,
        udp: &OverUdp,
    ) -> Result<Written, CannotWrite> {
        let sizes = spread(&wanted.sizes);
        let largest = sizes.last().copied().unwrap_or(1);
        // What came in fragments is one packet here, with the fragments' headers in it.
        let mtu = udp.mtu.max(IPV4 + udp.payload(largest));
        let path = self.line(curve, udp.headers + udp.head, mtu)?;
        let slower = path.ways.map_or(path.byte, |[up, down]| up.max(down));
        let longest = path.write + f64::from(IPV4 + udp.payload(largest)) * slower;
        let slot = (APART * longest).max(LEAST_APART);
        // What fragments cost besides their headers is left out.
        let steps: f64 = curve.combs.iter().map(|comb| comb.height.abs()).sum();
        let error = self.worst + steps;
        let traffic = traffic(&sizes, wanted.repeat.clamp(1, MOST_REPEAT), udp, slot);
        Ok(Written { text: self.text(wanted, path, &traffic, error), error })
    }
}

/// So many of the sizes, the least and the largest among them.
fn spread(sizes: &[u32]) -> Vec<u32> {
    let last = sizes.len().saturating_sub(1);
    let count = sizes.len().min(MOST_SIZES);
    let at = |index: usize| sizes[index * last / (count - 1).max(1)];
    let mut found: Vec<u32> = (0..count).map(at).collect();
    found.dedup();
    found
}

/// Each size in each direction in a turn of its own.
fn traffic(sizes: &[u32], repeat: u32, udp: &OverUdp, slot: f64) -> String {
    let turns = 2.0 * sizes.len() as f64;
    let mut text = String::from(
        "# Datagrams wait for no answer: a round trip is one of each way. The number in a name is the\n\
         # size of the messages measured, without their head; `size` is what is as long on the line.\n",
    );
    for (at, &size) in sizes.iter().enumerate() {
        for (way, (name, from, to)) in
            [("up", "near", "far"), ("down", "far", "near")].into_iter().enumerate()
        {
            let payload = udp.payload(size);
            let start = slot * (2 * at + way) as f64;
            let rate = f64::from(payload) * 8_000.0 / (slot * turns);
            let duration = slot * turns * (f64::from(repeat) - 0.5);
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                r#"
[[traffic]]
name = "{name}-{size}"
kind = "paced"
from = "{from}"
to = "{to}"
size = {payload}
rate = "{rate}bit/s"
start = "{start}ns"
duration = "{duration}ns"
transport = "udp"
"#,
                rate = rate.round().max(1.0),
                start = (start * 1e6).round(),
                duration = (duration * 1e6).round(),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_cut_as_ip_cuts_them() {
        let udp = OverUdp { headers: 28, head: 40, mtu: 1500, fragment: 20 };
        assert_eq!((udp.room(), udp.period()), (1432, 1480));
        assert_eq!([1432, 1433, 2912, 2913].map(|size| udp.further(size)), [0, 1, 1, 2]);
        assert_eq!([1432, 1433].map(|size| udp.payload(size)), [1472, 1493]);
        let odd = OverUdp { mtu: 1006, ..udp };
        assert_eq!((odd.room(), odd.period()), (938, 984));
    }

    #[test]
    fn few_sizes_are_spread_over_all() {
        assert_eq!(spread(&[1, 5, 9]), [1, 5, 9]);
        let many = spread(&(1..=100).collect::<Vec<u32>>());
        assert_eq!((many.len(), many[0], many[MOST_SIZES - 1]), (MOST_SIZES, 1, 100));
        assert_eq!((spread(&[7]), spread(&[])), (vec![7], vec![]));
    }
}

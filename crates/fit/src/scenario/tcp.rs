//! The scenario of a path that was measured over TCP.

use super::{CannotWrite, MTU, PathFit, Wanted, Written};
use crate::curve::Curve;
use crate::known::Waits;

/// Bytes of a segment's time stamps (RFC 7323).
const STAMPS: u32 = 12;
/// Bytes of IPv4's and TCP's headers without options: what the simulator counts for a segment.
const HEADERS: u32 = 40;

/// The connection that was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverTcp {
    /// User bytes of a segment.
    pub segment: u32,
    /// Whether segments carry time stamps.
    pub timestamps: bool,
    /// The congestion control of both ends.
    pub congestion: String,
    /// Segments that a fresh connection sends at once, if that was found.
    pub initial: Option<u32>,
}

impl PathFit {
    pub(super) fn over_tcp(
        &self,
        curve: &Curve,
        wanted: &Wanted,
        tcp: &OverTcp,
    ) -> Result<Written, CannotWrite> {
        let window = self.window.as_ref().ok().copied();
        if let Some(window) = window.filter(|_| self.known.waits != Waits::AllWays) {
            let way = if self.known.waits == Waits::Out { "messages" } else { "answers" };
            return Err(CannotWrite::OneWay { window, way });
        }
        let headers = HEADERS + if tcp.timestamps { STAMPS } else { 0 };
        let mtu = (tcp.segment + headers).max(if window.is_some() { 0 } else { MTU });
        let path = self.line(curve, headers, mtu)?;
        let others = curve.combs.iter().filter(|comb| Some(comb.teeth.first) != window);
        let steps: f64 = others.map(|comb| comb.height.abs()).sum();
        let error = self.worst + steps;
        let traffic = traffic(wanted, tcp, window);
        Ok(Written { text: self.text(wanted, path, &traffic, error), error })
    }
}

/// A simulated receiver opens its window a little otherwise than the kernel's: messages that just fill it or just
/// do not, to this part of a segment, wait longer there. They are left out.
const ABOUT: u32 = 2;

/// Sizes that the scenario reproduces.
fn sizes(wanted: &Wanted, tcp: &OverTcp, window: Option<u32>) -> Vec<u32> {
    let about = |size: u32, most: u32| size.abs_diff(most) < tcp.segment / ABOUT;
    let filled = |size: u32| window.is_some_and(|most| about(size, most));
    wanted.sizes.iter().copied().filter(|&size| !filled(size)).collect()
}

fn traffic(wanted: &Wanted, tcp: &OverTcp, window: Option<u32>) -> String {
    let sizes = sizes(wanted, tcp, window);
    let initial = tcp.initial.map_or(String::new(), |count| format!(", initial_window = {count}"));
    // Where a second segment has no room, a timer would acknowledge the first; the kernel does it at once.
    let at_once = |bytes: u32| if bytes < 2 * tcp.segment { ", delayed_ack = \"0s\"" } else { "" };
    let bounded = |bytes: u32| format!(", window = {bytes}{}", at_once(bytes));
    let window = window.map_or(String::new(), bounded);
    format!(
        r#"# Sizes are those on the connection: the head of each message is among them.
[[traffic]]
name = "echo"
kind = "interactive"
from = "near"
to = "far"
sizes = {sizes:?}
repeat = {repeat}
reply = "echo"
transport = {{ kind = "tcp", profile = "linux", congestion = {congestion:?}, mss = {mss}, timestamps = {stamps}{initial}{window} }}
"#,
        repeat = wanted.repeat.max(1),
        congestion = tcp.congestion,
        mss = tcp.segment + if tcp.timestamps { STAMPS } else { 0 },
        stamps = tcp.timestamps,
    )
}

//! The kernel's view of a TCP connection, and the choice of its congestion control.

use nix::sys::socket::{getsockopt, setsockopt};
// The last of the three needs the others by their bare names.
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketType, socket};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use trunkline_core::Span;

sockopt_impl!(
    /// `TCP_INFO` of tcp(7).
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info
);

sockopt_impl!(
    /// `TCP_WINDOW_CLAMP` of tcp(7), in octets.
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    libc::c_int
);

/// Bounds the window that a socket offers, before it is connected or listens. The kernel needs a buffer for
/// it: packets that fill theirs badly would close the window before it is used up.
///
/// # Errors
/// If the kernel does not take it.
pub fn set_window(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    set_socket_recv_buffer_size(socket, (octets as usize).saturating_mul(2))?;
    hold_window(socket, octets)
}

/// Bounds the window of a connection anew. Since Linux 6.6 the kernel sets its own bound when a longer
/// segment comes than any before (`tcp_measure_rcv_mss`).
///
/// # Errors
/// If the kernel does not take it.
pub fn hold_window(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    Ok(setsockopt(socket, WindowClamp, &i32::try_from(octets).unwrap_or(i32::MAX))?)
}

/// The reading of `TCP_INFO` at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpReading {
    /// Nanoseconds since the stream began.
    pub at_ns: u64,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Its mean deviation in microseconds.
    pub rttvar_us: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Octets of a segment.
    pub mss_octets: u32,
    /// Segments sent again so far.
    pub retransmits: u32,
    /// The path's largest packet in octets.
    pub path_mtu_octets: u32,
}

/// Reads it, `at` after the stream began; `None` if the kernel does not say.
pub fn read(stream: &TcpStream, at: Span) -> Option<TcpReading> {
    let info = getsockopt(stream, Info).ok()?;
    Some(TcpReading {
        at_ns: at.as_nanos(),
        rtt_us: info.tcpi_rtt,
        rttvar_us: info.tcpi_rttvar,
        cwnd_segments: info.tcpi_snd_cwnd,
        mss_octets: info.tcpi_snd_mss,
        retransmits: info.tcpi_total_retrans,
        path_mtu_octets: info.tcpi_pmtu,
    })
}

/// Whether segments carry time stamps (RFC 7323). `None` if the kernel does not say.
pub fn timestamps(stream: &TcpStream) -> Option<bool> {
    /// `TCPI_OPT_TIMESTAMPS` of `linux/tcp.h`.
    const TIMESTAMPS: u8 = 1;
    getsockopt(stream, Info).ok().map(|info| info.tcpi_options & TIMESTAMPS != 0)
}

/// Sets the congestion control.
///
/// # Errors
/// One line that names it and what there is.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> Result<(), String> {
    set_tcp_congestion(socket, name).map_err(|_| {
        format!(
            "this host's kernel has no congestion control '{name}' for us; it has: {}",
            available()
        )
    })
}

/// Those of `wanted` that this process may set; if none is named, of all that the kernel has. A name that
/// the kernel does not have yet may make it load a module, so that no client decides of it.
///
/// # Errors
/// One line that tells which of those named is not to be had.
pub fn settable(wanted: &[String]) -> Result<Vec<String>, String> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)
        .or_else(|_| socket(AddressFamily::INET6, SocketType::STREAM, None))
        .map_err(|error| format!("cannot open a socket: {error}"))?;
    if wanted.is_empty() {
        let all = available();
        let found = all.split_whitespace().filter(|name| set_congestion(&socket, name).is_ok());
        return Ok(found.map(str::to_string).collect());
    }
    wanted.iter().try_for_each(|name| set_congestion(&socket, name))?;
    Ok(wanted.to_vec())
}

/// A congestion control that does not pace and that every Linux kernel has.
pub const UNPACED: &str = "reno";

/// The congestion control in force.
pub fn congestion(socket: &impl AsFd) -> Option<String> {
    tcp_congestion(socket).ok()
}

/// The congestion controls that the kernel has, separated by spaces.
pub fn available() -> String {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).map_or("(unknown)".into(), |text| text.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_kernel_says_what_it_knows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let reading = read(&stream, Span::from_millis(1)).unwrap();
        assert!(reading.cwnd_segments > 0 && reading.mss_octets > 0, "{reading:?}");
        assert!(reading.path_mtu_octets >= reading.mss_octets);
        let name = congestion(&stream).unwrap();
        set_congestion(&stream, &name).unwrap();
        let complaint = set_congestion(&stream, "carrier-pigeon").unwrap_err();
        assert!(complaint.contains("carrier-pigeon") && complaint.contains(&name), "{complaint}");
    }
}

//! The settings of a traffic's transport that its relaxations change: windows.

use trunkline_core::Size;
use trunkline_scenario::{TcpSettings, Transport, UrpSettings};
use trunkline_transport::tcp::{MOST_UNSCALED, Settings};

/// User bytes of the window of URP; `None` for what has none, or another.
pub(crate) fn window(transport: &Transport) -> Option<u32> {
    match transport {
        Transport::Urp(urp) if urp.mode.has_trailers() => {
            Some(u32::from(urp.block) * u32::from(urp.outstanding))
        }
        Transport::Urp(_)
        | Transport::Tcp(_)
        | Transport::Listed(_)
        | Transport::Datagram
        | Transport::Udp => None,
    }
}

/// The settings of an end that speaks TCP if the scenario leaves them to the profile.
fn profile(tcp: &TcpSettings) -> Settings {
    // The run has shown that there is such a profile.
    Settings::of(tcp.profile.parse().unwrap_or_default())
}

/// The largest window that an end offers.
pub(crate) fn receive_buffer(tcp: &TcpSettings) -> u64 {
    let profile = profile(tcp);
    let buffer = tcp.window.map_or(profile.receive_buffer, Size::bytes);
    let scales = tcp.window_scaling.unwrap_or(profile.window_scaling);
    if scales { buffer } else { buffer.min(MOST_UNSCALED) }
}

/// The most that an end keeps unacknowledged: a window that is asked for only makes it more.
pub(crate) fn send_buffer(tcp: &TcpSettings) -> u64 {
    profile(tcp).send_buffer_for(tcp.window.map_or(0, Size::bytes))
}

/// Segments of an end's first window.
pub(crate) fn initial_window(tcp: &TcpSettings) -> u32 {
    tcp.initial_window.unwrap_or(profile(tcp).initial_window)
}

pub(crate) fn deepen(transport: &mut Transport, bytes: u64) {
    let Transport::Tcp(tcp) = transport else { return };
    if receive_buffer(tcp).min(send_buffer(tcp)) >= bytes {
        return;
    }
    // A window beyond what can be advertised without scaling may have been asked for.
    let asked = tcp.window.map_or(0, |window| window.bytes());
    tcp.window = Some(Size::from_bytes(bytes.max(receive_buffer(tcp)).max(asked)));
    if bytes > MOST_UNSCALED && !tcp.window_scaling.unwrap_or(profile(tcp).window_scaling) {
        tcp.window_scaling = Some(true);
    }
}

pub(crate) fn begin_with(transport: &mut Transport, segments: u32) {
    if let Transport::Tcp(tcp) = transport
        && initial_window(tcp) < segments
    {
        tcp.initial_window = Some(segments);
    }
}

pub(crate) fn widen(transport: &mut Transport, block: u16, outstanding: u8) {
    let wanted = u32::from(block) * u32::from(outstanding);
    if window(transport).is_some_and(|now| now < wanted)
        && let Transport::Urp(urp) = transport
    {
        *urp = UrpSettings { block, outstanding, ..urp.clone() };
    }
}

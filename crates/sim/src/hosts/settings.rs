//! From a scenario's transport to the settings of its protocol.

use trunkline_core::{Seed, Span};
use trunkline_scenario::{Echo, TcpSettings};
use trunkline_transport::tcp;

/// What a protocol has from the host and the scenario rather than from the traffic.
#[derive(Debug, Clone)]
pub(crate) struct Habits {
    /// When the host's interface answers for blocks.
    pub echo: Echo,
    /// The largest packet, in bytes with its IP header.
    pub mtu: u32,
    pub seed: Seed,
    /// The host's name: its clocks tick at instants of their own.
    pub host: String,
    /// The flow's name and number: its draws are its own.
    pub flow: String,
}

/// Settings of TCP. A window that is asked for holds for both buffers, as programs set both.
pub(crate) fn tcp(settings: &TcpSettings, habits: &Habits) -> Result<tcp::Settings, String> {
    let profile: tcp::Profile = settings.profile.parse().map_err(|error| format!("{error}"))?;
    let mut tcp = tcp::Settings::of(profile);
    tcp.congestion = match &settings.congestion {
        Some(kind) => kind.parse().map_err(|error| format!("{error}"))?,
        None => tcp.congestion,
    };
    tcp.initial_window = settings.initial_window.unwrap_or(tcp.initial_window);
    tcp.sack = settings.sack.unwrap_or(tcp.sack);
    tcp.timestamps = settings.timestamps.unwrap_or(tcp.timestamps);
    tcp.window_scaling = settings.window_scaling.unwrap_or(tcp.window_scaling);
    tcp.ecn = settings.ecn.unwrap_or(tcp.ecn);
    tcp.min_rto = settings.min_rto.unwrap_or(tcp.min_rto);
    tcp.max_rto = tcp.max_rto.max(tcp.min_rto);
    tcp.delayed_ack = match settings.delayed_ack {
        Some(Span::ZERO) => None,
        Some(span) => Some(span),
        None => tcp.delayed_ack,
    };
    let headers = tcp::IP_HEADER + tcp::TCP_HEADER;
    tcp.mss = settings.mss.unwrap_or(habits.mtu.saturating_sub(headers));
    if let Some(window) = settings.window {
        let window = window.bytes().max(u64::from(tcp.mss));
        tcp.receive_buffer = window;
        tcp.receive_spare = if profile == tcp::Profile::Linux { window } else { 0 };
        tcp.send_buffer = tcp.send_buffer_for(window);
    }
    if let Some(tick) = tcp.tick {
        tcp.tick_phase = phase(tick, habits);
    }
    // As a program that measures sets its sockets, in the emulator too (TCP_NODELAY).
    tcp.nagle = false;
    // Only who draws needs a seed of its own: the settings of all others are shared.
    if tcp.congestion.entry().draws {
        tcp.seed = habits.seed.stream(&format!("{} congestion", habits.flow)).bits();
    }
    tcp.checked().map_err(|error| error.to_string())
}

/// When a host's coarse clock ticks first: hosts were not started together.
fn phase(tick: Span, habits: &Habits) -> Span {
    let mut chance = habits.seed.stream(&format!("{} clock", habits.host));
    Span::from_nanos(chance.below(tick.as_nanos()))
}

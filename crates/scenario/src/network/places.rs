//! The places of a host under which time is booked. Those of the path are its [lanes](super::Lane).

/// A place of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPlace {
    /// All that a real host does, which nobody tells apart.
    Host,
    /// The processor.
    Processor,
    /// The interface board.
    Interface,
    /// An interface that takes no request before it has answered for earlier ones.
    EarlierRequest,
    /// The transport's window.
    Transport,
    /// The window of congestion control.
    CongestionWindow,
    /// Pacing by the transport.
    Pacing,
}

impl HostPlace {
    /// Its name on the host called `host`.
    pub fn of(self, host: &str) -> String {
        let what = match self {
            HostPlace::Host => "host",
            HostPlace::Processor => "processor",
            HostPlace::Interface => "interface",
            HostPlace::EarlierRequest => "interface, earlier request",
            HostPlace::Transport => "transport",
            HostPlace::CongestionWindow => "transport, congestion window",
            HostPlace::Pacing => "transport, pacing",
        };
        format!("{host} {what}")
    }
}

//! The properties of a connection that the formulas need to know.

use crate::formula::chance::Telling;
use trunkline_core::{Size, Span};
use trunkline_scenario::TcpSettings;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::congestion::Counting;
pub(crate) use trunkline_transport::tcp::congestion::Law;
use trunkline_transport::tcp::{Profile, Recovery, Settings};

/// Bytes of the IPv4 and the TCP header without options (RFC 791, RFC 9293).
const HEADERS: u32 = 20 + 20;
/// Bytes of the time stamp option with its padding (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;
/// Octets of the first window at most.
const FIRST_OCTETS: u32 = 14_600;
/// The largest window without scaling (RFC 9293 §3.1).
pub(super) const UNSCALED: u64 = 65_535;

/// What counts for the data of one direction; the profiles' habits if the scenario says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connection {
    pub law: Law,
    /// User bytes of a full segment.
    pub payload: u32,
    /// Bytes of header before them.
    pub header: u32,
    /// User bytes that may be outstanding at most.
    pub window: u64,
    /// Bytes that the sender may hold at most.
    pub buffer: u64,
    /// Those that it may hold at first, and for each segment of the congestion window, if the buffer grows with that.
    pub grows: Option<[u64; 2]>,
    /// Segments of the first window.
    pub first: u32,
    /// Segments that an ACK stands for.
    pub acked: u32,
    /// The longest that a receiver waits for a second segment before it acknowledges.
    pub held_back: Option<Span>,
    /// How the window counts what is acknowledged.
    pub counting: Counting,
    /// Whether small segments are acknowledged at once, as in Linux.
    pub prompt: bool,
    pub min_rto: Span,
    /// Whether the shortest time-out is added to the round trip, as in Linux.
    pub above_round_trip: bool,
    /// How the sender learns what is lost.
    pub telling: Telling,
    /// Segments that limited transmit adds to a window.
    pub limited: u32,
    /// Whether windows are counted in whole segments, as in Linux.
    pub whole: bool,
    /// Whether time-outs come at the ticks of a slow clock, as in 4.4BSD.
    pub ticks: bool,
    /// Whether it offers congestion notification.
    pub heeds_marks: bool,
}

/// The law of the congestion control that a scenario names, or of the profile's own.
fn law(name: Option<&str>, own: Algorithm) -> Result<Law, String> {
    let known = match name {
        Some(name) => name.parse::<Algorithm>().ok(),
        None => Some(own),
    };
    let law = known.and_then(|algorithm| algorithm.entry().law);
    law.ok_or_else(|| format!("the congestion control '{}'", name.unwrap_or(own.name())))
}

/// What an end does if the scenario says nothing else.
fn habits(settings: &TcpSettings) -> Result<Settings, String> {
    let profile: Result<Profile, _> = settings.profile.parse();
    let known =
        profile.map_err(|_| format!("the habits of the TCP profile '{}'", settings.profile))?;
    Ok(Settings::of(known))
}

/// Bytes that the send buffer holds at first, and for each segment of the window; [`law`] knows the congestion control that
/// `settings` name.
fn growth(settings: &TcpSettings, habits: &Settings, payload: u32) -> Option<[u64; 2]> {
    let named = settings.congestion.as_deref().and_then(|name| name.parse::<Algorithm>().ok());
    let habits = named.map_or(*habits, |kind| habits.with_congestion(kind));
    let each = habits.buffer_of_a_segment(payload)?;
    let first = settings.initial_window.unwrap_or(habits.initial_window);
    Some([habits.send_buffer_with(first.into(), payload), each])
}

/// How the sender that `settings` describe learns what is lost; [`law`] knows the congestion control that they name.
fn telling(settings: &TcpSettings, habits: &Settings, sack: bool) -> Result<Telling, String> {
    if sack {
        return Ok(Telling::Selective);
    }
    let named = settings.congestion.as_deref().and_then(|name| name.parse::<Algorithm>().ok());
    let recovery = named.map_or(habits.recovery, |kind| habits.with_congestion(kind).recovery);
    match recovery {
        Recovery::NewReno => Ok(Telling::Partial),
        Recovery::Reno => Ok(Telling::Duplicates),
        Recovery::Tahoe => Err("the slow start of 4.3BSD-Tahoe after each loss".into()),
    }
}

impl Connection {
    /// The sending half of a connection between the ends that `ours` and `theirs` describe, on a path whose packets have at most
    /// `mtu` bytes. The receiver sets the window, and how acknowledgements come; an option holds if both ends offer it.
    ///
    /// # Errors
    /// What no formula knows.
    pub fn between(
        ours: &TcpSettings,
        theirs: &TcpSettings,
        mtu: u32,
    ) -> Result<Connection, String> {
        let (habits, peer) = (habits(ours)?, habits(theirs)?);
        let both = |of: fn(&TcpSettings, &Settings) -> bool| of(ours, &habits) && of(theirs, &peer);
        let law = law(ours.congestion.as_deref(), habits.congestion)?;
        let telling = telling(ours, &habits, both(|end, of| end.sack.unwrap_or(of.sack)))?;
        let stamped = both(|end, of| end.timestamps.unwrap_or(of.timestamps));
        let options = if stamped { TIMESTAMPS } else { 0 };
        let [mss, theirs_at_most] =
            [ours, theirs].map(|end| end.mss.unwrap_or(mtu.saturating_sub(HEADERS)));
        let buffer = habits.send_buffer_for(ours.window.map_or(0, Size::bytes));
        let asked = theirs.window.map(|window| window.bytes().max(theirs_at_most.into()));
        let window = asked.unwrap_or(peer.receive_buffer).min(buffer);
        let scaled = both(|end, of| end.window_scaling.unwrap_or(of.window_scaling));
        let held_back = theirs.delayed_ack.map_or(peer.delayed_ack, Some);
        let held_back = held_back.filter(|span| !span.is_zero());
        let payload = mss.min(theirs_at_most).saturating_sub(options).max(1);
        let first = ours.initial_window.unwrap_or(habits.initial_window);
        // RFC 6928 §2 bounds ten segments by 14 600 octets, but for two segments.
        let bounded = !habits.counts_segments && (3..=10).contains(&first);
        let most = if bounded { (FIRST_OCTETS / payload).max(2) } else { u32::MAX };
        Ok(Connection {
            law,
            payload,
            header: HEADERS + options,
            window: if scaled { window } else { window.min(UNSCALED) },
            buffer,
            grows: growth(ours, &habits, payload),
            first: first.min(most),
            acked: if held_back.is_some() { 2 } else { 1 },
            held_back,
            counting: habits.counting,
            prompt: peer.interactive,
            min_rto: ours.min_rto.unwrap_or(habits.min_rto),
            above_round_trip: habits.min_rto_above_srtt,
            telling,
            limited: if habits.limited_transmit { 2 } else { 0 },
            whole: habits.counts_segments,
            ticks: habits.tick.is_some(),
            heeds_marks: both(|end, of| end.ecn.unwrap_or(of.ecn)),
        })
    }

    /// User bytes that the sender may hold with a congestion window of so many.
    pub fn buffer_with(&self, window: f64) -> f64 {
        let grown = |[first, each]: [u64; 2]| {
            (each as f64 * window / f64::from(self.payload)).max(first as f64)
        };
        self.grows.map_or(f64::INFINITY, grown).min(self.buffer as f64)
    }

    /// b of the laws: segments acknowledged for each that the window grows by.
    pub fn slowed_by(&self) -> u32 {
        if self.counting == Counting::Bytes { 1 } else { self.acked }
    }

    /// Segments of so many user bytes for each acknowledgement: who waits for a full segment's worth, as Linux does if
    /// others come seldom, has an own one for each that is smaller.
    pub fn acked_of(&self, segment: u64) -> u32 {
        if self.prompt && segment < u64::from(self.payload) { 1 } else { self.acked }
    }

    /// The part of itself that the window grows by in a round, besides its law: an eighth of a segment for each ACK of
    /// 4.4BSD (RFC 2525 §2.6).
    pub fn share(&self) -> f64 {
        match self.counting {
            Counting::AcksAndEighth => 1.0 / (8.0 * f64::from(self.acked)),
            Counting::Bytes | Counting::Acks => 0.0,
        }
    }

    /// The time-out of a steady round trip: SRTT and four deviations, which come to nothing, within the profile's
    /// bounds (RFC 6298 §2.3, §2.4; Linux adds the shortest time-out instead of the deviations).
    pub fn timeout(&self, round_trip: Span) -> Span {
        match self.above_round_trip {
            true => round_trip + self.min_rto,
            false => round_trip.max(self.min_rto),
        }
    }

    /// Whether HyStart may end slow start, as in Linux's CUBIC.
    pub fn has_hystart(&self) -> bool {
        self.whole && self.law == Law::Cubic
    }

    /// The window in segments.
    pub fn segments(&self) -> f64 {
        self.window as f64 / f64::from(self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_what_the_scenario_says_instead() {
        let profile = |name: &str| TcpSettings { profile: name.into(), ..TcpSettings::default() };
        let alike = |of: &TcpSettings, mtu| Connection::between(of, of, mtu);
        let modern = alike(&profile("trunkline"), 1500).unwrap();
        assert_eq!((modern.payload, modern.header, modern.first), (1448, 52, 10));
        assert_eq!((modern.law, modern.slowed_by()), (Law::Reno, 1));
        let old = alike(&profile("bsd-reno"), 9180).unwrap();
        assert_eq!((old.payload, old.header, old.window, old.first), (9140, 40, 65_535, 1));
        assert_eq!(old.slowed_by(), 2);
        let linux = alike(&profile("linux"), 1500).unwrap();
        assert_eq!((linux.law, linux.window), (Law::Cubic, 3_932_160));
        // Twice ten segments of 2304 octets of memory at first; 4.4BSD's has its size at once.
        assert_eq!(
            [0.0, 1e6, 1e9].map(|it| linux.buffer_with(it).round()),
            [46_080.0, 3_182_320.0, 8_388_608.0]
        );
        assert_eq!(old.buffer_with(0.0), 65_535.0);
        assert!(alike(&profile("vms"), 1500).unwrap_err().contains("vms"));
        let small = TcpSettings {
            window: Some(Size::from_bytes(1 << 20)),
            window_scaling: Some(false),
            delayed_ack: Some(Span::ZERO),
            mss: Some(512),
            ..TcpSettings::default()
        };
        let small = alike(&small, 1500).unwrap();
        assert_eq!((small.window, small.payload, small.acked), (65_535, 500, 1));
    }

    /// RFC 9293 §3.7.1 and §3.8.6, RFC 7323 §2.2: the receiver announces window and segments, and options hold if both ends have
    /// them.
    #[test]
    fn the_receiver_sets_the_window_and_options_need_both_ends() {
        let plain = TcpSettings::default();
        let between = |ours: &TcpSettings, theirs: &TcpSettings| {
            Connection::between(ours, theirs, 1500).unwrap()
        };
        let small = TcpSettings { window: Some(Size::from_bytes(4096)), ..plain.clone() };
        assert_eq!(between(&plain, &small).window, 4096);
        assert_eq!(between(&small, &plain).window, between(&plain, &plain).window);
        for (ours, theirs) in [(100, 1460), (1460, 100)] {
            let [ours, theirs] =
                [ours, theirs].map(|mss| TcpSettings { mss: Some(mss), ..plain.clone() });
            assert_eq!(between(&ours, &theirs).payload, 88);
        }
        let bare = TcpSettings {
            timestamps: Some(false),
            window_scaling: Some(false),
            sack: Some(false),
            ..plain.clone()
        };
        for tcp in [between(&plain, &bare), between(&bare, &plain)] {
            assert_eq!((tcp.header, tcp.payload, tcp.window), (40, 1460, UNSCALED));
            assert_ne!(tcp.telling, Telling::Selective);
        }
        let patient = TcpSettings { delayed_ack: Some(Span::ZERO), ..plain.clone() };
        assert_eq!((between(&plain, &patient).acked, between(&patient, &plain).acked), (1, 2));
    }
}

//! The settings of one end.

use super::clock::Clock;
use super::congestion::{self, Algorithm, Counting, Marks, Start};
use super::rtt::Rtt;
use trunkline_core::Span;

/// The largest window that scaling can state (RFC 7323 §2.3).
pub const MOST_BUFFER: u64 = MOST_UNSCALED << 14;
/// The largest window without scaling.
pub const MOST_UNSCALED: u64 = 65_535;
/// The time for which an end tries to open a connection. RFC 9293 §3.8.3 asks for three minutes at least; 4.4BSD gives
/// up after 75 s and Linux after 127, which rules out a planet.
pub const LONGEST_OPENING: Span = Span::from_secs(3 * 3600);
/// RFC 6298 §4: "finer clock granularities (<= 100 msec) perform somewhat better".
const FINE_GRANULARITY: Span = Span::from_millis(100);
/// The smallest segment: 40 octets of options, the most that a header holds, and 8 of data (`TCP_MIN_SND_MSS` of
/// Linux, `tcp.h`).
pub const LEAST_MSS: u32 = 48;
/// The least that the shortest time-out may be: no kernel's clock is finer.
pub const LEAST_RTO: Span = Span::from_millis(1);

/// The recovery after three duplicate acknowledgements if SACK is not agreed upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment (4.3BSD-Tahoe; RFC 2001 §3 tells of it).
    Tahoe,
    /// Fast recovery, left with the first acknowledgement of new data, even if it is a partial one
    /// (RFC 5681 §3.2, 4.4BSD).
    Reno,
    /// Fast recovery that lasts until all that was outstanding is acknowledged, with one segment sent
    /// again for each partial acknowledgement (RFC 6582).
    #[default]
    NewReno,
}

/// Everything that one end is told. Check it with [`Settings::checked`], or let
/// [`Tcp`](super::Tcp) do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The largest segment: octets after an IPv4 and a TCP header without options (RFC 6691), so that time
    /// stamps take 12 of them. 1460 on Ethernet.
    pub mss: u32,
    /// Octets that the receiver holds for an application that does not read; bounds the window.
    pub receive_buffer: u64,
    /// Octets that it holds beyond that without closing the window. Linux counts twice the buffer that a program
    /// asks for (socket(7), SO_RCVBUF) while `TCP_WINDOW_CLAMP` keeps the window as it is; in 4.4BSD all that
    /// waits for the application is taken off (`sbspace`).
    pub receive_spare: u64,
    /// Octets that the sender keeps unacknowledged at most.
    pub send_buffer: u64,
    /// Whether what the send buffer takes from an application begins smaller and grows with the congestion window, as in
    /// Linux ([`send_buffer_with`](Settings::send_buffer_with)).
    pub buffer_grows: bool,
    /// Segments sent before the first acknowledgement (RFC 6928: 10).
    pub initial_window: u32,
    /// After so many lost SYNs the first window is one segment: 1 by RFC 5681 §3.1, 2 by RFC 6928 §2 and in Linux
    /// (`tcp_init_transfer`).
    pub lost_syns: u8,
    /// Whether it offers selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Whether it offers time stamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Whether it offers windows above 65 535 octets (RFC 7323 §2).
    pub window_scaling: bool,
    /// Whether it offers explicit congestion notification (RFC 3168). Controllers that need it offer it all the same
    /// ([`Marks`]).
    pub ecn: bool,
    /// The longest time for which an acknowledgement is held back; `None`: never. With
    /// [`interactive`](Settings::interactive) the time itself goes by the gaps between segments, from 40 ms on.
    pub delayed_ack: Option<Span>,
    /// After how many full segments one is sent whatever happens, at least 1 (RFC 5681 §4.2: 2).
    pub ack_every: u8,
    /// Whether it pushes a segment (PSH) in which a write ends, and one for every half of the largest window; and
    /// acknowledges at once when the application has read all up to a pushed one, as Linux does (`tcp_push`,
    /// `forced_push`, `tcp_cleanup_rbuf`).
    pub pushes: bool,
    /// The segments that are acknowledged at once before any is held back (Linux: 16, and no more than half a
    /// window).
    pub quick_acks: u8,
    /// Whether an acknowledgement waits for the application's answer once there has been one in time, as in Linux
    /// ("pingpong" mode since the first answer: `tcp_event_data_sent`, `tcp_cleanup_rbuf`).
    pub interactive: bool,
    /// Whether a small segment waits while another one is unacknowledged (RFC 896).
    pub nagle: bool,
    /// The tick of the retransmission timer, if it is coarse: 500 ms in BSD. Round trips are then
    /// measured in ticks too, one at a time.
    pub tick: Option<Span>,
    /// The tick of the timer of delayed acknowledgements: 200 ms in BSD.
    pub fast_tick: Option<Span>,
    /// The time after the run's origin of one tick of the host's clocks, if they tick.
    pub tick_phase: Span,
    /// The shortest retransmission time-out (RFC 6298 §2.4: 1 s).
    pub min_rto: Span,
    /// The longest (RFC 6298 §2.5: at least 60 s).
    pub max_rto: Span,
    /// The first, before any measurement (RFC 6298 §2.1: 1 s).
    pub initial_rto: Span,
    /// Linux: [`min_rto`](Settings::min_rto) bounds the four deviations added to the smoothed round trip,
    /// not their sum (`tcp_rtt_estimator`, `__tcp_set_rto`).
    pub min_rto_above_srtt: bool,
    /// Whether the timer starts anew when the first segment is repaired. Then a segment lost again and again while all
    /// else arrives makes no time-out. RFC 6675 §6 permits it, Linux does it (`tcp_xmit_retransmit_queue`).
    pub rearms: bool,
    /// Time-outs in a row before the other end counts as dead (Linux tcp_retries2: 15).
    pub most_timeouts: u8,
    /// The congestion controller.
    pub congestion: Algorithm,
    /// The way in which the controller counts acknowledgements.
    pub counting: Counting,
    /// Segments that one acknowledgement counts for in slow start at most, if bytes are counted
    /// (L of RFC 3465 §2.2).
    pub slow_start_limit: u8,
    /// The way in which CUBIC ends slow start.
    pub start: Start,
    /// The seed of a controller that draws (BBR): let it differ between flows.
    pub seed: u64,
    /// The recovery after duplicate acknowledgements without SACK.
    pub recovery: Recovery,
    /// Whether the first two duplicate acknowledgements send new segments (RFC 3042).
    pub limited_transmit: bool,
    /// Whether recovery reduces the rate in proportion (RFC 6937).
    pub prr: bool,
    /// Whether loss is detected by time, with tail loss probes (RFC 8985). It needs SACK on both sides.
    pub rack: bool,
    /// Whether windows are counts of segments, as in Linux. Beside what the controllers then do
    /// ([`congestion::Settings::counts_segments`]): the first window is so many segments of whatever size
    /// (`tcp_init_cwnd`), and a window counts as used when it is full although the other end's is full too, and
    /// in slow start when half of it is (`tcp_is_cwnd_limited`).
    pub counts_segments: bool,
    /// Whether duplicates stand for SACK if it is not agreed upon, as in Linux (`tcp_add_reno_sack`). Then
    /// recovery goes by [`prr`](Settings::prr) all the same; it lasts until more is acknowledged than was
    /// outstanding when it began (`tcp_is_non_sack_preventing_reopen`); each partial acknowledgement starts the
    /// timer anew.
    pub emulates_sack: bool,
    /// Whether a sender with more to send may wait until its window lets several segments out at once
    /// (`tcp_tso_should_defer`).
    pub defers: bool,
    /// Whether reductions found needless by duplicate SACK (RFC 3708) or by time stamps (RFC 3522, 4015) are undone.
    pub undo: bool,
    /// Whether needless time-outs are found by F-RTO (RFC 5682; Linux tcp_frto).
    pub frto: bool,
    /// Whether the window restarts after an idle time-out (RFC 5681 §4.1). If windows count segments it is halved for
    /// each, as in Linux.
    pub idle_restart: bool,
}

/// The reason for refusing settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No such segment.
    #[error(
        "a TCP segment of {0} octets is not possible: write an mss of 48 to 65495, or an mtu of 88 to 65535"
    )]
    Mss(u32),
    /// A buffer that no window can state, or that holds no segment.
    #[error("a TCP buffer of {found} octets is not possible: write {least} (a segment) to 1GiB")]
    Buffer {
        /// Octets asked for.
        found: u64,
        /// A segment.
        least: u32,
    },
    /// Nothing could be sent first.
    #[error("an initial TCP window of {0} segments is not possible: write 1 to 1000")]
    InitialWindow(u32),
    /// It would never acknowledge.
    #[error("TCP cannot acknowledge every 0 segments: write 1 to 255, usually 2")]
    AckEvery,
    /// Time-outs that contradict each other.
    #[error(
        "TCP time-outs from {min} to {max} are not possible: write a shortest one of at least {LEAST_RTO}, and a longest one not below it"
    )]
    Timeouts {
        /// The shortest.
        min: Span,
        /// The longest.
        max: Span,
    },
    /// A clock that stands.
    #[error("a TCP clock cannot tick every 0s: write a time such as 500ms, or leave it out")]
    Tick,
    /// It would be dead from the start.
    #[error(
        "a TCP end that gives up after 0 time-outs is dead at once: write 1 to 255, usually 15"
    )]
    MostTimeouts,
}

impl Settings {
    /// These settings with another congestion controller, and the recovery that its name promises:
    /// [`Algorithm::RENO`] leaves at the first acknowledgement of new data, the others do not.
    #[must_use]
    pub const fn with_congestion(mut self, kind: Algorithm) -> Settings {
        self.congestion = kind;
        self.recovery = if kind.entry().stays_through_partial_acks {
            Recovery::NewReno
        } else {
            Recovery::Reno
        };
        self
    }

    /// These settings, if they hold together. Without scaling the receive buffer is cut to 65 535 octets.
    pub fn checked(mut self) -> Result<Settings, SettingsError> {
        if !(LEAST_MSS..=65_495).contains(&self.mss) {
            return Err(SettingsError::Mss(self.mss));
        }
        for found in [self.receive_buffer, self.send_buffer] {
            if !(u64::from(self.mss)..=MOST_BUFFER).contains(&found) {
                return Err(SettingsError::Buffer { found, least: self.mss });
            }
        }
        if !(1..=1000).contains(&self.initial_window) {
            return Err(SettingsError::InitialWindow(self.initial_window));
        }
        self.check_times()?;
        if !self.window_scaling {
            self.receive_buffer = self.receive_buffer.min(MOST_UNSCALED);
        }
        Ok(self)
    }

    fn check_times(&self) -> Result<(), SettingsError> {
        if self.ack_every == 0 {
            return Err(SettingsError::AckEvery);
        }
        if self.most_timeouts == 0 {
            return Err(SettingsError::MostTimeouts);
        }
        if [self.tick, self.fast_tick].into_iter().flatten().any(Span::is_zero) {
            return Err(SettingsError::Tick);
        }
        let (min, max) = (self.min_rto, self.max_rto);
        if min < LEAST_RTO || max < min {
            return Err(SettingsError::Timeouts { min, max });
        }
        Ok(())
    }

    /// The granularity of the clock, G of RFC 6298 §2: a tick if the clock is coarse, else the 100 ms of §4, or
    /// [`min_rto`](Settings::min_rto) if that is less, for who asks for finer time-outs has a finer clock.
    pub(super) fn granularity(&self) -> Span {
        self.tick.unwrap_or(FINE_GRANULARITY.min(self.min_rto))
    }
    /// The clock of retransmissions.
    pub(super) const fn slow_clock(&self) -> Clock {
        Clock { tick: self.tick, phase: self.tick_phase }
    }
    /// The clock of delayed acknowledgements.
    pub(super) const fn fast_clock(&self) -> Clock {
        Clock { tick: self.fast_tick, phase: self.tick_phase }
    }

    /// The time without an acknowledgement after which an end gives up that has not measured the round trip, since its SYN went
    /// again and nothing tells which one was answered.
    pub fn patience(&self) -> Span {
        let mut rtt = Rtt::new();
        rtt.opened(1);
        let waits = (0..=self.most_timeouts).map(|_| {
            let timeout = rtt.timeout(self);
            rtt.back_off();
            timeout
        });
        waits.fold(Span::ZERO, |sum, timeout| sum + timeout)
    }

    /// The settings of the congestion controller, with `mss` octets of data in a full segment.
    pub(super) fn controller(&self, mss: u32) -> congestion::Settings {
        let initial = u64::from(self.initial_window) * u64::from(mss);
        let modest = self.initial_window > 2 && !self.counts_segments;
        // RFC 6928 §2 bounds ten segments by 14 600 octets, but for two segments.
        let bound = (2 * u64::from(mss)).max(14_600);
        let initial =
            if modest && self.initial_window <= 10 { initial.min(bound) } else { initial };
        congestion::Settings {
            initial_window: Some(initial),
            counting: self.counting,
            slow_start_limit: self.slow_start_limit,
            whole_segments: self.tick.is_some(),
            counts_segments: self.counts_segments,
            start: self.start,
            seed: self.seed,
            ..congestion::Settings::new(self.congestion, mss)
        }
    }

    /// The way in which marks are told of; `None` if this end offers no congestion notification.
    pub(super) fn marks(&self) -> Option<Marks> {
        let marks = self.congestion.entry().marks;
        Some(marks).filter(|marks| self.ecn || marks.insists())
    }

    /// By how many bits this end shifts the windows that it offers.
    pub(super) fn scale(&self) -> u8 {
        (0..=14).find(|&shift| self.receive_buffer >> shift <= MOST_UNSCALED).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    #[test]
    fn impossible_settings_are_refused_in_one_line() {
        let good = Settings::default();
        let bad = [
            Settings { mss: 47, ..good },
            Settings { mss: 65_496, ..good },
            Settings { receive_buffer: 1459, ..good },
            Settings { send_buffer: MOST_BUFFER + 1, ..good },
            Settings { initial_window: 0, ..good },
            Settings { ack_every: 0, ..good },
            Settings { tick: Some(Span::ZERO), ..good },
            Settings { max_rto: Span::from_millis(999), ..good },
            Settings { most_timeouts: 0, ..good },
        ];
        for settings in bad {
            let complaint = settings.checked().unwrap_err().to_string();
            assert!(complaint.contains("write") && !complaint.contains('\n'), "{complaint}");
        }
    }

    #[test]
    fn windows_are_shifted_as_little_as_they_must() {
        let scale = |receive_buffer| Settings { receive_buffer, ..Settings::default() }.scale();
        assert_eq!([scale(65_535), scale(65_536), scale(4 << 20)], [0, 1, 7]);
        assert_eq!(scale(MOST_BUFFER), 14);
        let old = Settings { window_scaling: false, ..Settings::default() }.checked().unwrap();
        assert_eq!((old.receive_buffer, old.scale()), (MOST_UNSCALED, 0));
    }

    #[test]
    fn ten_segments_are_bounded_as_rfc_6928_has_it() {
        let first = |mss| Settings::default().controller(mss).initial_window;
        assert_eq!(
            [first(1448), first(4096), first(9140)],
            [Some(14_480), Some(14_600), Some(18_280)]
        );
    }

    #[test]
    fn the_controller_is_told_what_concerns_it() {
        let bsd = Settings { seed: 77, ..Settings::of(Profile::BsdReno) };
        let told = bsd.controller(1000);
        assert_eq!((told.initial_window, told.counting), (Some(1000), Counting::AcksAndEighth));
        assert!(told.whole_segments && !told.counts_segments);
        assert_eq!(told.seed, 77);
        let linux = Settings::of(Profile::Linux).controller(1000);
        assert!(!linux.whole_segments && linux.counts_segments);
        assert_eq!((linux.start, linux.slow_start_limit), (Start::HyStart, u8::MAX));
    }
}

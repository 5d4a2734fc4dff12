//! The systems whose habits an end can have, and their settings.

use super::congestion::{Algorithm, Counting, Start};
use super::settings::{MOST_UNSCALED, Recovery, Settings};
use std::fmt;
use std::str::FromStr;
use trunkline_core::Span;

/// The largest window that Linux has had of its own accord up to 6.14: five eighths of the 6 MiB of `tcp_rmem`. A packet with
/// 1440 octets and more of data takes 2304 of memory, and since 6.6 their ratio, in 256ths and rounded down, is what counts
/// (`tcp_measure_rcv_mss`). Before, half of it did (`tcp_adv_win_scale`).
const RECEIVE_BUFFER: u64 = (6 << 20) * 160 / 256;

/// The system whose habits an end has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// The RFCs in force, each by the letter.
    #[default]
    Trunkline,
    /// Linux 6: time-outs from 200 ms on, delayed acknowledgements from 40 to 200 ms after a quick start, CUBIC
    /// (`net/ipv4/tcp*.c`, `include/net/tcp.h`: TCP_RTO_MIN, TCP_ATO_MIN, TCP_DELACK_MAX, TCP_MAX_QUICKACKS).
    Linux,
    /// 4.4BSD, "Net/3" (1993): clocks of 500 and 200 ms, fast recovery that the first new acknowledgement
    /// ends, no SACK, no scaling, an initial window of one segment (Wright and Stevens, *TCP/IP
    /// Illustrated* vol. 2, chapters 24 to 29).
    BsdReno,
}

/// A name that is no [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no TCP profile: write trunkline, linux or bsd-reno")]
pub struct UnknownProfile(String);

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 3] = [Profile::Trunkline, Profile::Linux, Profile::BsdReno];

    /// As written in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Trunkline => "trunkline",
            Profile::Linux => "linux",
            Profile::BsdReno => "bsd-reno",
        }
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Profile, UnknownProfile> {
        let found = Profile::ALL.into_iter().find(|profile| profile.name() == text.trim());
        found.ok_or_else(|| UnknownProfile(text.trim().replace(['\n', '\r'], " ")))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(Profile::Trunkline)
    }
}

impl Settings {
    /// The settings of `profile`.
    pub const fn of(profile: Profile) -> Settings {
        match profile {
            Profile::Trunkline => Settings::modern(),
            Profile::Linux => Settings::linux(),
            Profile::BsdReno => Settings::bsd_reno(),
        }
    }

    /// The RFCs by the letter; buffers large enough for 1 Gbit/s × 100 ms are the user's to ask for.
    const fn modern() -> Settings {
        Settings {
            mss: 1460,
            receive_buffer: 4 << 20,
            receive_spare: 0,
            send_buffer: 8 << 20,
            buffer_grows: true,
            initial_window: 10,
            lost_syns: 1,
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: false,
            delayed_ack: Some(Span::from_millis(100)),
            ack_every: 2,
            pushes: false,
            quick_acks: 0,
            interactive: false,
            nagle: true,
            tick: None,
            fast_tick: None,
            tick_phase: Span::ZERO,
            min_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
            min_rto_above_srtt: false,
            rearms: false,
            most_timeouts: 15,
            congestion: Algorithm::NEW_RENO,
            counting: Counting::Bytes,
            slow_start_limit: 2,
            start: Start::HyStartPlusPlus,
            seed: 0,
            recovery: Recovery::NewReno,
            limited_transmit: true,
            prr: true,
            rack: true,
            counts_segments: false,
            emulates_sack: false,
            defers: false,
            undo: true,
            frto: true,
            idle_restart: true,
        }
    }

    /// Linux 6: `tcp_rmem` grows to 6 MiB, which are counted as memory (`RECEIVE_BUFFER`). `tcp_wmem` grows to 4 MiB, of which
    /// segments that are sent take up to two and a half times their octets; here and in emulated hosts it is twice that, so that
    /// the receiver's window is what limits.
    /// TCP_RTO_MAX 120 s; slow start counts all that an acknowledgement covers (`tcp_slow_start`); HyStart as of 2011.
    /// The receive buffer does not grow here: it has its last size at once.
    const fn linux() -> Settings {
        Settings {
            receive_buffer: RECEIVE_BUFFER,
            lost_syns: 2,
            delayed_ack: Some(Span::from_millis(200)),
            quick_acks: 16,
            interactive: true,
            pushes: true,
            min_rto: Span::from_millis(200),
            max_rto: Span::from_secs(120),
            min_rto_above_srtt: true,
            rearms: true,
            congestion: Algorithm::CUBIC,
            slow_start_limit: u8::MAX,
            counts_segments: true,
            emulates_sack: true,
            defers: true,
            start: Start::HyStart,
            ..Settings::modern()
        }
    }

    /// 4.4BSD: TCPTV_MIN 2 ticks, TCPTV_REXMTMAX 64 s, first time-out 6 s, TCP_MAXRXTSHIFT 12. Its buffers
    /// were 8 KiB unless asked otherwise; the largest window is the default here.
    const fn bsd_reno() -> Settings {
        Settings {
            receive_buffer: MOST_UNSCALED,
            send_buffer: MOST_UNSCALED,
            buffer_grows: false,
            initial_window: 1,
            sack: false,
            timestamps: false,
            window_scaling: false,
            delayed_ack: Some(Span::from_millis(200)),
            tick: Some(Span::from_millis(500)),
            fast_tick: Some(Span::from_millis(200)),
            max_rto: Span::from_secs(64),
            initial_rto: Span::from_secs(6),
            most_timeouts: 12,
            congestion: Algorithm::RENO,
            counting: Counting::AcksAndEighth,
            recovery: Recovery::Reno,
            limited_transmit: false,
            prr: false,
            rack: false,
            undo: false,
            frto: false,
            ..Settings::modern()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_they_are_printed() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            let settings = Settings::of(profile);
            assert_eq!(settings.checked(), Ok(settings));
        }
        let complaint = "tahoe".parse::<Profile>().unwrap_err().to_string();
        assert!(complaint.contains("'tahoe'") && complaint.contains("bsd-reno"));
    }

    /// The figures that the profiles' descriptions name.
    #[test]
    fn a_profile_is_its_systems() {
        let linux = Settings::of(Profile::Linux);
        assert_eq!((linux.receive_buffer, linux.max_rto), (3_932_160, Span::from_secs(120)));
        assert_eq!((linux.congestion, linux.start), (Algorithm::CUBIC, Start::HyStart));
        let held_back = Some(Span::from_millis(200));
        assert!(linux.defers && linux.delayed_ack == held_back);
        let bsd = Settings::of(Profile::BsdReno);
        assert_eq!((bsd.receive_buffer, bsd.send_buffer), (MOST_UNSCALED, MOST_UNSCALED));
        assert_eq!((bsd.initial_rto, bsd.max_rto), (Span::from_secs(6), Span::from_secs(64)));
        assert_eq!((bsd.initial_window, bsd.most_timeouts), (1, 12));
        assert_eq!(bsd.delayed_ack, held_back);
        assert_eq!((bsd.congestion, bsd.counting), (Algorithm::RENO, Counting::AcksAndEighth));
        assert_eq!(bsd.recovery, Recovery::Reno);
        let later = [
            bsd.sack,
            bsd.timestamps,
            bsd.window_scaling,
            bsd.limited_transmit,
            bsd.prr,
            bsd.rack,
            bsd.undo,
            bsd.frto,
        ];
        assert_eq!(later, [false; 8], "what came later");
    }
}

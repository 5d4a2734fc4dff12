//! The settings of one end of a channel.

use std::fmt;
use std::str::FromStr;
use trunkline_core::{Span, Time};

/// The largest block, in octets (10th edition; the length field would allow 65 535).
pub const MOST_BLOCK: u16 = 4096;
/// The most blocks outstanding: sequence numbers are modulo 8.
pub const MOST_OUTSTANDING: u8 = 7;

/// Whose habits an end has. The sources agree on the wire and differ in when they reject, when they
/// resend and when they ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// The best of the three: one REJ for each spell of errors, in order with the ECHOs; REJ says
    /// ECHO, ACK and go back; a time-out exactly one [`Settings::timeout`] after the last transmission.
    #[default]
    Trunkline,
    /// Research Unix, 8th and 10th edition: a REJ for each bad block; every ACK resends all that is
    /// unacknowledged; a count of two seconds; a peer's initialisation sets the window to 3 blocks.
    V10,
    /// Plan 9: one REJ between two ECHOs, sent at once, and read as an ECHO too; BOTS is read as BOT;
    /// the clock is looked at twice in a time-out.
    Plan9,
    /// The KMC11 board's microcode: a REJ counts only while an ENQ is unanswered, so that recovery
    /// always waits for the board's one clock tick; BOTS is answered by ECHO.
    Kmc,
}

/// A name that is no [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no URP profile: write trunkline, v10, plan9 or kmc")]
pub struct UnknownProfile(String);

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

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 4] = [Profile::Trunkline, Profile::V10, Profile::Plan9, Profile::Kmc];

    /// As written in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Trunkline => "trunkline",
            Profile::V10 => "v10",
            Profile::Plan9 => "plan9",
            Profile::Kmc => "kmc",
        }
    }

    /// When a timer started at `now` runs out.
    ///
    /// Trunkline: `timeout` later. 10th edition: a counter of two that goes down at every tick of
    /// `timeout`, hence between one and two time-outs. Plan 9: `timeout` later, noticed at the next half
    /// time-out. KMC: the next tick of one clock for all channels.
    pub(crate) fn due(self, now: Time, timeout: Span) -> Time {
        let step = timeout.as_nanos().max(1);
        let ticks = |at: Time, step: u64| at.as_nanos().div_ceil(step);
        let at = |tick: u64, step: u64| Time::from_nanos(tick.saturating_mul(step));
        match self {
            Profile::Trunkline => now + timeout,
            Profile::V10 => at(now.as_nanos() / step + 2, step),
            Profile::Plan9 => {
                let half = (step / 2).max(1);
                at(ticks(now + timeout, half), half)
            }
            Profile::Kmc => at(now.as_nanos() / step + 1, step),
        }
    }

    /// The time that a closing end waits for what is outstanding: 10th edition 15 s (taken over for the
    /// default and for the KMC, whose host is the same), Plan 9 two minutes.
    pub(crate) const fn linger(self) -> Span {
        match self {
            Profile::Plan9 => Span::from_secs(120),
            _ => Span::from_secs(15),
        }
    }
}

/// The grade of service, chosen by the transmitter; the receiver follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Blocks with trailers, a window, errors repaired by going back.
    #[default]
    Block,
    /// Blocks with resynchronising trailers (BOTS): damaged blocks are left out, nothing is resent, and
    /// every block ends a message.
    Detection,
    /// Characters with flow control: after every [`Settings::block`] octets the sender waits for an
    /// ECHO. No error is noticed; message ends are carried only as [`Settings::eot`] says.
    Character,
    /// Characters only. If the initialisation is lost nothing tells of it, and the receiver ignores
    /// what follows; an end that is [connected](super::Urp::connected) needs none.
    Raw,
}

impl Mode {
    /// The modes that scenarios know, by their names: those that carry a message whole, however long it is, and hold a
    /// sender back. In [`Detection`](Mode::Detection) each block is a message, and [`Raw`](Mode::Raw) takes whatever a
    /// host without costs can write in no time.
    pub const NAMED: [(&'static str, Mode); 2] =
        [("block", Mode::Block), ("character", Mode::Character)];

    /// Its name, as written in a scenario if it may stand there.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Block => "block",
            Mode::Detection => "detection",
            Mode::Character => "character",
            Mode::Raw => "raw",
        }
    }

    /// Whether it sends trailers.
    pub const fn has_trailers(self) -> bool {
        matches!(self, Mode::Block | Mode::Detection)
    }
}

/// When the receiver opens the sender's window again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Echo {
    /// As soon as a block is found good.
    #[default]
    Acceptance,
    /// When the consumer has taken its data ([`Urp::consumed`](super::Urp::consumed)).
    Consumption,
}

/// The check that protects a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Check {
    /// The count and the sequence number of the trailer, as in every source.
    #[default]
    Count,
    /// These and a CRC-32 before the trailer, an extension of five envelopes that both ends must have.
    Crc,
}

/// Everything that one end is told. Check it with [`Settings::checked`], or let
/// [`Urp::new`](super::Urp::new) do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// User octets of a full block, 1 to 4096.
    pub block: u16,
    /// Blocks outstanding, 1 to 7.
    pub outstanding: u8,
    /// The time that the sender waits before it asks.
    pub timeout: Span,
    /// Whose habits.
    pub profile: Profile,
    /// The grade of service of what this end sends.
    pub mode: Mode,
    /// When this end opens the other's window.
    pub echo: Echo,
    /// Enquiries (or repeated initialisations) in a row without an answer before the other end counts
    /// as dead, at least 1.
    pub enquiries: u8,
    /// The check that protects the blocks.
    pub check: Check,
    /// Whether the ends of messages are carried in modes without trailers, each as the user control
    /// [`User::EOT`](super::User::EOT) behind the data. An extension that both ends must have.
    pub eot: bool,
}

/// The reason for refusing settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No such block.
    #[error("a URP block of {0} octets is not possible: write 1 to 4096")]
    Block(u16),
    /// No such window.
    #[error("{0} URP blocks outstanding are not possible: write 1 to 7 (numbers are modulo 8)")]
    Outstanding(u8),
    /// It would ask without end.
    #[error("a URP time-out of nothing would ask without end: write a time such as 1s")]
    Timeout,
    /// It would be dead from the start.
    #[error(
        "a URP end that asks 0 times counts its peer as dead at once: write 1 to 255 enquiries"
    )]
    Enquiries,
}

impl Default for Settings {
    /// 256 octets times 3 blocks, one second (Hawley 1989 §1.1, §3).
    fn default() -> Settings {
        Settings {
            block: 256,
            outstanding: 3,
            timeout: Span::from_secs(1),
            profile: Profile::Trunkline,
            mode: Mode::Block,
            echo: Echo::Acceptance,
            enquiries: 30,
            check: Check::Count,
            eot: false,
        }
    }
}

impl Settings {
    /// The window and block that `profile`'s implementation comes with, else the defaults: 252 × 3 for
    /// the KMC's large buffers (Vande Water 1988 §3.7.2), 252 × 4 for Plan 9's quarters of 1024 octets.
    pub fn of(profile: Profile) -> Settings {
        let (block, outstanding) = match profile {
            Profile::Trunkline | Profile::V10 => (256, 3),
            Profile::Plan9 => (252, 4),
            Profile::Kmc => (252, 3),
        };
        Settings { block, outstanding, profile, ..Settings::default() }
    }

    /// These settings, if they hold together.
    pub fn checked(self) -> Result<Settings, SettingsError> {
        if self.block == 0 || self.block > MOST_BLOCK {
            return Err(SettingsError::Block(self.block));
        }
        if self.outstanding == 0 || self.outstanding > MOST_OUTSTANDING {
            return Err(SettingsError::Outstanding(self.outstanding));
        }
        if self.timeout.is_zero() {
            return Err(SettingsError::Timeout);
        }
        if self.enquiries == 0 {
            return Err(SettingsError::Enquiries);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vande Water 1988 §3.7.2, and quarters of 1024 octets.
    #[test]
    fn a_profile_comes_with_its_window() {
        let of = |profile| {
            let Settings { block, outstanding, profile: own, .. } = Settings::of(profile);
            assert_eq!(own, profile);
            (block, outstanding)
        };
        assert_eq!([of(Profile::Kmc), of(Profile::Plan9)], [(252, 3), (252, 4)]);
        assert_eq!([of(Profile::Trunkline), of(Profile::V10)], [(256, 3); 2]);
    }

    #[test]
    fn profiles_are_read_as_they_are_printed() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            assert!(Settings::of(profile).checked().is_ok());
        }
        let complaint = "V9".parse::<Profile>().unwrap_err().to_string();
        assert!(complaint.contains("'V9'") && complaint.contains("kmc"));
    }

    #[test]
    fn impossible_settings_are_refused_in_one_line() {
        let good = Settings::default();
        let bad = [
            Settings { block: 0, ..good },
            Settings { block: 4097, ..good },
            Settings { outstanding: 0, ..good },
            Settings { outstanding: 8, ..good },
            Settings { timeout: Span::ZERO, ..good },
            Settings { enquiries: 0, ..good },
        ];
        for settings in bad {
            let complaint = settings.checked().unwrap_err().to_string();
            assert!(complaint.contains("write") && !complaint.contains('\n'), "{complaint}");
        }
        assert!(Settings { block: 4096, outstanding: 7, ..good }.checked().is_ok());
    }

    #[test]
    fn each_clock_ticks_in_its_way() {
        let second = Span::from_secs(1);
        let due = |profile: Profile, millis: u64| {
            profile.due(Time::ZERO + Span::from_millis(millis), second).as_nanos() / 1_000_000
        };
        assert_eq!([due(Profile::Trunkline, 0), due(Profile::Trunkline, 999)], [1000, 1999]);
        assert_eq!([due(Profile::V10, 0), due(Profile::V10, 999)], [2000, 2000]);
        assert_eq!([due(Profile::Plan9, 0), due(Profile::Plan9, 999)], [1000, 2000]);
        assert_eq!([due(Profile::Kmc, 0), due(Profile::Kmc, 999)], [1000, 1000]);
    }
}

//! The options that both ends have agreed upon by their SYNs.

use super::congestion::Marks;
use super::segment::{Flags, Offer};
use super::settings::Settings;
use trunkline_core::Ecn;

/// The options in force for a connection once its SYNs have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreed {
    /// Octets of data in a full segment.
    pub mss: u32,
    /// Whether segments carry time stamps.
    pub timestamps: bool,
    /// Whether acknowledgements carry SACK.
    pub sack: bool,
    /// The way in which marks are told of; `None` if nothing is sent as ECN-capable.
    pub ecn: Option<Marks>,
    /// The codepoint that the other end's SYN came with.
    pub syn: Ecn,
    /// Whether windows are shifted at all.
    pub scales: bool,
    /// By how many bits the windows are shifted that the other end offers.
    pub send_scale: u8,
    /// By how many bits those are shifted that this end offers.
    pub receive_scale: u8,
}

/// The other end's offer in respect of congestion marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Nothing.
    None,
    /// To echo them (RFC 3168 §6.1.1).
    Echo,
    /// To count them (RFC 9768 §3.1.1).
    Count,
}

impl Notice {
    /// The offer of ends with `settings`.
    pub fn of(settings: &Settings) -> Notice {
        match settings.marks() {
            Some(Marks::Counted) => Notice::Count,
            Some(Marks::Once | Marks::Each) => Notice::Echo,
            None => Notice::None,
        }
    }

    /// The offer of a SYN without an acknowledgement, by its flags (RFC 3168 §6.1.1; RFC 9768 table 2).
    pub fn asked(flags: Flags) -> Notice {
        match flags.ace() {
            0b111 => Notice::Count,
            ace if ace & 0b011 == 0b011 => Notice::Echo,
            _ => Notice::None,
        }
    }

    /// The offer of the answer to a SYN that had `asked` (RFC 3168 §6.1.1; RFC 9768 table 2). Who was asked to count
    /// may echo; who was asked to echo does no more than that.
    pub fn answered(asked: Notice, flags: Flags) -> Notice {
        match (asked, flags.ace()) {
            (Notice::None, _) => Notice::None,
            (Notice::Count, ace) if codepoint(ace).is_some() => Notice::Count,
            (_, ace) if ace & 0b011 == 0b001 => Notice::Echo,
            _ => Notice::None,
        }
    }
}

/// The ACE field that tells which codepoint a SYN came with (RFC 9768 tables 2 and 3).
pub fn greeting(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The codepoint that an ACE field tells of, if it is a [`greeting`].
fn codepoint(ace: u8) -> Option<Ecn> {
    Ecn::ALL.into_iter().find(|&ecn| greeting(ecn) == ace)
}

/// Marks counted before there are data: 5, and one more if a SYN came marked (RFC 9768 §3.2.1, §3.2.2.1), which the
/// other end's `ace` tells.
pub fn first_count(ace: u8) -> u8 {
    if codepoint(ace) == Some(Ecn::Ce) { 6 } else { 5 }
}

/// Octets that time stamps take of every segment.
pub const STAMPS: u32 = 12;
/// The size that a SYN without the option means (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

impl Agreed {
    /// The offer of `settings`.
    pub fn offer(settings: &Settings) -> Offer {
        Offer {
            mss: Some(settings.mss as u16),
            scale: settings.window_scaling.then(|| settings.scale()),
            sack: settings.sack,
        }
    }

    /// Whether the other end is told by CWR that the window has been reduced (RFC 3168 §6.1.2). A counter needs no end.
    pub fn says_reduced(&self) -> bool {
        matches!(self.ecn, Some(Marks::Once | Marks::Each))
    }

    /// The codepoint of a segment: if marks are told of once, of new data alone (RFC 3168 §6.1.4, §6.1.5), else of all.
    pub fn codepoint(&self, new: bool) -> Ecn {
        match self.ecn {
            None => Ecn::NotEct,
            Some(Marks::Once) if !new => Ecn::NotEct,
            Some(marks) => marks.codepoint(),
        }
    }

    /// Before the other end has been heard.
    pub fn alone(settings: &Settings) -> Agreed {
        Agreed { mss: settings.mss, ..Agreed::default() }
    }

    /// The options that `settings` and the other end's `offer` have in common, with its time stamps and ECN.
    pub fn between(settings: &Settings, offer: Offer, timestamps: bool, notice: Notice) -> Agreed {
        let timestamps = timestamps && settings.timestamps;
        let scales = offer.scale.filter(|_| settings.window_scaling);
        let mss = settings.mss.min(u32::from(offer.mss.unwrap_or(DEFAULT_MSS)));
        let stamps = if timestamps { STAMPS } else { 0 };
        Agreed {
            mss: mss.saturating_sub(stamps).max(1),
            timestamps,
            sack: settings.sack && offer.sack,
            ecn: match (settings.marks(), notice) {
                (None, _) | (_, Notice::None) => None,
                (Some(Marks::Counted), Notice::Echo) => Some(Marks::Once),
                (marks, _) => marks,
            },
            syn: Ecn::NotEct,
            scales: scales.is_some(),
            // RFC 7323 §2.3: a larger shift is taken as 14.
            send_scale: scales.unwrap_or(0).min(14),
            receive_scale: scales.map_or(0, |_| settings.scale()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::congestion::Algorithm;
    use super::*;

    /// RFC 9768 table 2: who asks to count is answered by a counting end, an echoing one, and one that knows neither.
    #[test]
    fn marks_are_told_of_in_the_best_way_that_both_know() {
        let settings =
            |kind: Algorithm| Settings { ecn: true, congestion: kind, ..Settings::default() };
        let agreed = |own: Algorithm, notice| {
            Agreed::between(&settings(own), Offer::default(), false, notice).ecn
        };
        assert_eq!(agreed(Algorithm::NEW_RENO, Notice::Count), Some(Marks::Once));
        assert_eq!(agreed(Algorithm::NEW_RENO, Notice::None), None);
        for (ace, notice) in [
            (0b000, Notice::None),
            (0b001, Notice::Echo),
            (0b101, Notice::Echo),
            (0b111, Notice::None),
        ] {
            let flags = Flags::NONE.with_ace(ace);
            assert_eq!(Notice::answered(Notice::Count, flags), notice, "{ace:03b}");
        }
        for ecn in Ecn::ALL {
            let flags = Flags::NONE.with_ace(greeting(ecn));
            assert_eq!(Notice::answered(Notice::Count, flags), Notice::Count);
            assert_eq!(first_count(greeting(ecn)), if ecn == Ecn::Ce { 6 } else { 5 });
        }
        assert_eq!(Notice::asked(Flags::NONE.with_ace(0b111)), Notice::Count);
        assert_eq!(Notice::asked(Flags::ECE | Flags::CWR), Notice::Echo);
        assert_eq!(Notice::asked(Flags::ECE), Notice::None);
    }

    #[test]
    fn who_has_not_been_heard_takes_what_we_send() {
        let settings = Settings { mss: 1234, ..Settings::default() };
        assert_eq!(Agreed::alone(&settings), Agreed { mss: 1234, ..Agreed::default() });
    }
}

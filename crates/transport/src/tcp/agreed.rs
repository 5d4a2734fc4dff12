//! What both ends have agreed upon by their SYNs.

use super::segment::Offer;
use super::settings::Settings;

/// What holds for a connection once its SYNs have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreed {
    /// Octets of data in a full segment.
    pub mss: u32,
    /// Do segments carry time stamps?
    pub timestamps: bool,
    /// Do acknowledgements carry SACK?
    pub sack: bool,
    /// Are data sent as ECN-capable?
    pub ecn: bool,
    /// Are windows shifted at all?
    pub scales: bool,
    /// By how many bits the windows are shifted that the other end offers.
    pub send_scale: u8,
    /// By how many bits those are shifted that this end offers.
    pub receive_scale: u8,
}

/// Octets that time stamps take of every segment.
pub const STAMPS: u32 = 12;
/// What a SYN without the option means (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

impl Agreed {
    /// What `settings` offer.
    pub fn offer(settings: &Settings) -> Offer {
        Offer {
            mss: Some(settings.mss as u16),
            scale: settings.window_scaling.then(|| settings.scale()),
            sack: settings.sack,
        }
    }

    /// Before the other end has been heard.
    pub fn alone(settings: &Settings) -> Agreed {
        Agreed { mss: settings.mss, ..Agreed::default() }
    }

    /// What `settings` and the other end's `offer` have in common, with its time stamps and ECN.
    pub fn between(settings: &Settings, offer: Offer, timestamps: bool, ecn: bool) -> Agreed {
        let timestamps = timestamps && settings.timestamps;
        let scales = offer.scale.filter(|_| settings.window_scaling);
        let mss = settings.mss.min(u32::from(offer.mss.unwrap_or(DEFAULT_MSS)));
        let stamps = if timestamps { STAMPS } else { 0 };
        Agreed {
            mss: mss.saturating_sub(stamps).max(1),
            timestamps,
            sack: settings.sack && offer.sack,
            ecn: ecn && settings.ecn,
            scales: scales.is_some(),
            // RFC 7323 §2.3: a larger shift is taken as 14.
            send_scale: scales.unwrap_or(0).min(14),
            receive_scale: scales.map_or(0, |_| settings.scale()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_been_heard_takes_what_we_send() {
        let settings = Settings { mss: 1234, ..Settings::default() };
        assert_eq!(Agreed::alone(&settings), Agreed { mss: 1234, ..Agreed::default() });
    }
}

//! Which congestion controllers there are, and what they are called.

use std::fmt;
use std::str::FromStr;

/// A congestion controller by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Kind {
    /// `reno`: RFC 5681. Its machine leaves recovery at the first ACK of new data, as 4.4BSD did, so
    /// that several losses in one window halve the window several times.
    Reno,
    /// `newreno`: the same window, and recovery lasts until all that was outstanding is acknowledged
    /// (RFC 6582).
    NewReno,
    /// `constant-rate`: NewReno whose window grows by c·r² segments in a round trip of r, so that the
    /// *rate* gains the same each second whatever the round trip (Floyd 1991; Henderson and Katz 1998;
    /// RFC 2760 §3.4).
    ConstantRate,
    /// `cubic`: RFC 9438.
    #[default]
    Cubic,
    /// `bbr`: the first version as published by Cardwell et al. 2016.
    Bbr,
}

impl Kind {
    /// All of them, in the order of their names' declaration.
    pub const ALL: [Kind; 5] =
        [Kind::Reno, Kind::NewReno, Kind::ConstantRate, Kind::Cubic, Kind::Bbr];

    /// The name that it is read and written by.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Reno => "reno",
            Kind::NewReno => "newreno",
            Kind::ConstantRate => "constant-rate",
            Kind::Cubic => "cubic",
            Kind::Bbr => "bbr",
        }
    }

    /// Does recovery last until everything that was outstanding at its beginning is acknowledged
    /// (RFC 6582 §3.2)? Otherwise the first ACK of new data ends it.
    pub const fn stays_through_partial_acks(self) -> bool {
        !matches!(self, Kind::Reno)
    }

    /// Does it need delivery-rate samples ([`RateSampler`](super::RateSampler)) with its ACKs?
    pub const fn wants_rate_samples(self) -> bool {
        matches!(self, Kind::Bbr)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no congestion controller has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no congestion controller is called '{0}': use reno, newreno, constant-rate, cubic or bbr")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Kind, UnknownKind> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownKind(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse::<Kind>(), Ok(kind));
        }
        let complaint = "vegas".parse::<Kind>().unwrap_err().to_string();
        assert!(complaint.contains("'vegas'") && complaint.contains("newreno"), "{complaint}");
    }
}

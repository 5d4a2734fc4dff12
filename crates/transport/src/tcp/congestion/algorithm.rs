//! The congestion controllers, and what each says of itself.
//!
//! A controller is one file: its [`Entry`] stands there, beside its machine. This file has one line for it,
//! in [`Algorithm::ALL`]; what reads names, checks scenarios, draws controllers for property tests or asks what a
//! formula may assume goes by that list.

use super::{Controller, Settings};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use trunkline_core::Ecn;

/// The description of a congestion controller by itself.
#[derive(Debug)]
pub struct Entry {
    /// The name that it is read and written by.
    pub name: &'static str,
    /// Its work, in one line.
    pub about: &'static str,
    /// The source of its definition.
    pub source: &'static str,
    /// The way in which congestion marks are to be asked for and told of.
    pub marks: Marks,
    /// The law that the formulas may assume of it; `None` if they know nothing of it.
    pub law: Option<Law>,
    /// The module of Linux that does the same; `None` if there is none.
    pub kernel: Option<&'static str>,
    /// Whether recovery lasts until all that was outstanding at its beginning is acknowledged
    /// (RFC 6582 §3.2). Otherwise the first ACK of new data ends it.
    pub stays_through_partial_acks: bool,
    /// Whether it needs delivery-rate samples ([`RateSampler`](super::RateSampler)) with its ACKs.
    pub wants_rate_samples: bool,
    /// Whether it draws lots, from a stream begun with [`Settings::seed`].
    pub draws: bool,
    /// Whether an ACK may make its window smaller that tells neither of losses nor of marks.
    pub shrinks_by_acks: bool,
    /// Windows that a send buffer that grows has room for (`sndbuf_expand` of Linux's modules).
    pub windows_in_buffer: u8,
    /// Makes one at the beginning of a connection.
    pub build: fn(&Settings) -> Controller,
}

impl Entry {
    /// A controller that recovers by RFC 6582, takes marks as RFC 3168 has them, and of which neither formulas nor
    /// Linux know.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        build: fn(&Settings) -> Controller,
    ) -> Entry {
        Entry {
            name,
            about,
            source,
            marks: Marks::Once,
            law: None,
            kernel: None,
            stays_through_partial_acks: true,
            wants_rate_samples: false,
            draws: false,
            shrinks_by_acks: false,
            windows_in_buffer: 2,
            build,
        }
    }
}

/// The way in which an end asks for congestion marks, and tells the other end of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Marks {
    /// Once for each window of data (RFC 3168): new data are ECT(0) if the settings ask for ECN, and a mark is echoed
    /// until the sender says that it has reduced its window.
    #[default]
    Once,
    /// For each packet by ECE, whose changes are acknowledged at once (RFC 8257 §3.2). Everything is ECT(0), SYN and
    /// retransmissions included (§3.6); ECN is always asked for.
    Each,
    /// By a counter in each acknowledgement (AccECN, RFC 9768). Everything after the SYNs is ECT(1) (RFC 9331 §4.1);
    /// ECN is always asked for. If the other end knows RFC 3168 only, it goes by that.
    Counted,
}

impl Marks {
    /// Whether ECN is asked for whatever the settings say.
    pub const fn insists(self) -> bool {
        !matches!(self, Marks::Once)
    }

    /// The codepoint of data.
    pub const fn codepoint(self) -> Ecn {
        match self {
            Marks::Once | Marks::Each => Ecn::Ect0,
            Marks::Counted => Ecn::Ect1,
        }
    }
}

/// By which law a window follows losses, as far as the formulas know one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// Halved by a loss, a segment more in a round trip.
    Reno,
    /// Halved by a loss, c·r² segments more in a round trip.
    ConstantRate,
    /// RFC 9438.
    Cubic,
    /// No loss moves it.
    Bbr,
}

/// A congestion controller by name.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm(&'static Entry);

impl Algorithm {
    /// All of them, in the order in which they are listed to a reader; one a line.
    #[rustfmt::skip]
    pub const ALL: &'static [Algorithm] = &[
        Algorithm::RENO,
        Algorithm::NEW_RENO,
        Algorithm::CONSTANT_RATE,
        Algorithm::CUBIC,
        Algorithm::BBR,
        Algorithm::DCTCP,
        Algorithm::PRAGUE,
    ];

    /// Their names, in the same order.
    pub const NAMES: &'static [&'static str] = &names();

    /// The controller of `entry`.
    pub(super) const fn of(entry: &'static Entry) -> Algorithm {
        Algorithm(entry)
    }

    /// The name that it is read and written by.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Its description.
    pub const fn entry(self) -> &'static Entry {
        self.0
    }
}

const fn names() -> [&'static str; Algorithm::ALL.len()] {
    let mut names = [""; Algorithm::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Algorithm::ALL[index].name();
        index += 1;
    }
    names
}

impl Default for Algorithm {
    fn default() -> Algorithm {
        Algorithm::CUBIC
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Algorithm {}

impl Hash for Algorithm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for Algorithm {
    fn partial_cmp(&self, other: &Algorithm) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Algorithm {
    fn cmp(&self, other: &Algorithm) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no congestion controller has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no congestion controller is called '{0}': use one of {list}", list = Algorithm::NAMES.join(", "))]
pub struct UnknownAlgorithm(String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Algorithm, UnknownAlgorithm> {
        let found = Algorithm::ALL.iter().find(|kind| kind.name() == text);
        found.copied().ok_or_else(|| UnknownAlgorithm(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_read_as_they_are_written() {
        for &kind in Algorithm::ALL {
            assert_eq!(kind.to_string().parse::<Algorithm>(), Ok(kind));
        }
        let complaint = "vegas".parse::<Algorithm>().unwrap_err().to_string();
        assert!(complaint.contains("'vegas'") && complaint.contains("newreno"), "{complaint}");
    }

    #[test]
    fn every_controller_says_what_it_is() {
        let names: BTreeSet<&str> = Algorithm::NAMES.iter().copied().collect();
        assert_eq!(names.len(), Algorithm::ALL.len(), "two controllers of one name");
        for kind in Algorithm::ALL {
            let Entry { name, about, source, .. } = kind.entry();
            let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            assert!(!name.is_empty() && name.chars().all(plain), "{name}");
            assert!(!about.is_empty() && !source.is_empty(), "{name}");
            assert!(![about, source].iter().any(|it| it.contains(['\n', '|'])), "{name}");
        }
    }
}

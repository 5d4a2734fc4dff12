//! The releases from a line after its delay has been made shorter: in order, and no faster than packets went in.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::{Span, Time};

/// The way in which packets catch up with those in front of them after the delay has been made shorter.
///
/// Those under way keep their release times. What leaves the line after the change would arrive before them,
/// and has to wait, because order is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CatchUp {
    /// By the time in which the line was idle, so that nothing comes out faster than the line carries. On a
    /// line that is never idle the delay stays what it was. A line without a rate closes gaps by a
    /// quarter, a delivery trace as far as its mean rate allows.
    #[default]
    Drain,
    /// At once: all that has to wait comes out together with the last packet that was under way.
    AtOnce,
}

const NAMES: [(CatchUp, &str); 2] = [(CatchUp::Drain, "drain"), (CatchUp::AtOnce, "at-once")];

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(it, _)| it == self).map_or("?", |&(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for CatchUp {
    type Err = String;

    fn from_str(text: &str) -> Result<CatchUp, String> {
        let found = NAMES.iter().find(|&&(_, name)| name == text).map(|&(it, _)| it);
        found.ok_or_else(|| {
            format!("'{text}' is no way to catch up: use drain (at the line's rate) or at-once")
        })
    }
}

impl TryFrom<String> for CatchUp {
    type Error = String;

    fn try_from(text: String) -> Result<CatchUp, String> {
        text.parse()
    }
}

impl From<CatchUp> for String {
    fn from(catch_up: CatchUp) -> String {
        catch_up.to_string()
    }
}

/// The gap between the departures of two packets from the line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// From one to the other.
    pub whole: Span,
    /// The part of it for which there was nothing on the line.
    pub idle: Span,
    /// The second one's user bytes.
    pub bytes: u32,
}

/// The last packet that left the line: when it did, and when it is due at the far end without impairments.
#[derive(Debug, Default)]
pub(crate) struct Front {
    last: Option<(Time, Time)>,
}

impl Front {
    /// A packet that left at `departed` is due at `due`, and what follows comes behind it.
    pub fn resume(departed: Time, due: Time) -> Front {
        Front { last: Some((departed, due)) }
    }

    /// When the packet that leaves the line at `departed` is due: after `delay`, or later behind those in
    /// front. `spacing` tells how near it may come to the one before it; none if that has arrived.
    #[inline]
    pub fn follow(
        &mut self,
        departed: Time,
        delay: Span,
        spacing: impl FnOnce(Span, bool) -> Span,
    ) -> Time {
        let free = departed + delay;
        let due = match self.last {
            Some((before, last)) if last + departed.since(before) > free => {
                free.max(last + spacing(departed.since(before), last > departed))
            }
            _ => free,
        };
        self.last = Some((departed, due));
        due
    }

    /// Nothing that follows is due before `release`, when the last packet comes out.
    pub fn hold(&mut self, release: Time) {
        if let Some((_, due)) = &mut self.last {
            *due = release.max(*due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (it, name) in NAMES {
            assert_eq!((name.parse(), it.to_string()), (Ok(it), name.to_string()));
        }
        assert!("later".parse::<CatchUp>().unwrap_err().contains("drain"));
    }
}

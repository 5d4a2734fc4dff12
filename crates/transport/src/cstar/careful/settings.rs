//! Settings of the careful protocol.

use super::audit::LONGEST;
use super::reserve::MOST_ASKED;
use crate::protocol::{ProtocolKey, Takes, Values};
use trunkline_core::Span;

/// Settings of the careful protocol. The default is what the report describes, made safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarefulSettings {
    /// Data frames carry the grants that are due (§5.3, footnote 6).
    pub piggyback: bool,
    /// Takes windows of 2 too, with which nodes can wait for each other for ever: the report's rule as it is printed.
    pub literal: bool,
    /// Sends an update when half a window is owed, not only when more is. Windows are of 4 at least then.
    pub at_half: bool,
    /// Most bytes of received fragments that are copied out of the adapter.
    pub memory: u64,
    /// While a fragment is waited for longer than this, the peers are asked whether anything was lost: it shows the loss of
    /// a frame behind which nothing more comes. A peer of which nothing but answers comes is asked again after twice as long
    /// each time, up to a second (or this, if longer), within which, and a round trip, a loss is found. Never if `None`, as in the report.
    pub audit: Option<Span>,
    /// Windows are of the least size, and what buffers are left is lent to the peers that send most (§6.2), each loan until it
    /// was not used for so long. Fixed windows of ⌊R/P⌋ if `None`, as in the report.
    pub lease: Option<Span>,
    /// Windows are of the least size, and before a message of so many fragments or more for one node that node is asked for
    /// room, out of the other buffers (§7). No message if `None`, as in the report.
    pub reserve: Option<u32>,
    /// The nodes stand in rows of so many, and have windows only for those a power of two before or behind them in their row
    /// or column, the nearer the larger; frames for others are handed on (§7). Goes with neither loans nor reservations. Windows for all if `None`, as in the report.
    pub grid: Option<u16>,
}

impl Default for CarefulSettings {
    fn default() -> CarefulSettings {
        CarefulSettings {
            piggyback: true,
            literal: false,
            at_half: false,
            memory: 1 << 28,
            audit: None,
            lease: None,
            reserve: None,
            grid: None,
        }
    }
}

impl CarefulSettings {
    /// The least window with which nodes make progress (a random simulation of the rules, and the model check in the tests);
    /// the report's theorem allows 1, and 2 against livelock. With `at_half` a single update, which takes a credit as data
    /// do, would earn one in a window of 3: nodes would answer each other's updates for ever, and send nothing else.
    pub fn least_window(&self) -> u32 {
        if self.at_half { 4 } else { 3 }
    }

    /// The longest time for which a node to which nothing comes waits before its layer does something.
    pub fn longest_timer(&self) -> Span {
        [self.audit, self.lease].into_iter().flatten().fold(LONGEST, Span::max)
    }

    /// The keys by which files and commands give them.
    pub const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            name: "piggyback",
            takes: Takes::Flag,
            default: Some("true"),
            help: "Whether data frames carry the window updates that are due",
        },
        ProtocolKey {
            name: "literal",
            takes: Takes::Flag,
            default: Some("false"),
            help: "Whether windows of 2 are allowed, with which nodes can wait for each other for ever",
        },
        ProtocolKey {
            name: "at_half",
            takes: Takes::Flag,
            default: Some("false"),
            help: "Whether an update is sent when half a window is owed, not only when more is; windows, and those kept with the other keys, are then of 4 at least, not 3",
        },
        ProtocolKey {
            name: "memory",
            takes: Takes::Bytes(0, 1 << 40),
            default: Some("268435456"),
            help: "Most bytes of received fragments that are copied out of the adapter",
        },
        ProtocolKey {
            name: "audit",
            takes: Takes::Time(Span::from_micros(1), Span::from_secs(3600)),
            default: None,
            help: "Ask peers whether anything was lost when a fragment is waited for longer than this, those of which nothing but answers comes after twice as long each time, up to 1 s: a loss is found within a second (or this, if longer) and a round trip; never if left out",
        },
        ProtocolKey {
            name: "lease",
            takes: Takes::Time(Span::from_micros(1), Span::from_secs(3600)),
            default: None,
            help: "Keep windows of 3, and lend the other buffers to the peers that send most, until a loan was not used for this time; fixed windows if left out",
        },
        ProtocolKey {
            name: "reserve",
            takes: Takes::Count(2, MOST_ASKED as u64),
            default: None,
            help: "Keep windows of 3, and ask a node for room before a message of so many fragments or more; no reservations if left out",
        },
        ProtocolKey {
            name: "grid",
            takes: Takes::Count(1, u16::MAX as u64),
            default: None,
            help: "Put the nodes in rows of so many, with windows only for those a power of two away in their row or column, the nearer the larger, and hand on frames for others; windows for all if left out",
        },
    ];

    /// The settings that `values` give.
    ///
    /// # Errors
    /// None so far: ranges are the keys'.
    pub fn of(values: &Values) -> Result<CarefulSettings, String> {
        Ok(CarefulSettings {
            piggyback: values.flag("piggyback"),
            literal: values.flag("literal"),
            at_half: values.flag("at_half"),
            memory: values.number("memory"),
            audit: values.time("audit"),
            lease: values.time("lease"),
            reserve: Some(values.number("reserve") as u32).filter(|&fragments| fragments > 0),
            grid: Some(values.number("grid") as u16).filter(|&columns| columns > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_keys_say_of_defaults_holds() {
        let values = Values::defaults(CarefulSettings::KEYS);
        assert_eq!(CarefulSettings::of(&values).unwrap(), CarefulSettings::default());
    }
}

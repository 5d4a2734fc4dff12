//! Settings of the traditional protocol.

use crate::protocol::{ProtocolKey, Takes, Values};
use trunkline_core::Span;

/// Settings of the traditional protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraditionalSettings {
    /// A frame acknowledges all events before its own, as in the report. That is wrong of a program that sends under an
    /// event before it has received all before: what it still asks for is then gone, and the run ends. Else only those that
    /// its node says it has received whole.
    pub infer: bool,
    /// Frames that the adapter holds for repetition; what is not acknowledged by then is copied to memory. With 0 each is
    /// copied as it is sent (TR 94-14 §6.1: an adapter with one buffer).
    pub on_board: u32,
    /// How long a node waits for a fragment, or for a free buffer, before it asks. It doubles with each time.
    pub timeout: Span,
    /// The longest that it comes to.
    pub longest_timeout: Span,
}

impl Default for TraditionalSettings {
    fn default() -> TraditionalSettings {
        TraditionalSettings {
            infer: false,
            on_board: 16,
            timeout: Span::from_millis(10),
            longest_timeout: Span::from_secs(1),
        }
    }
}

impl TraditionalSettings {
    /// The keys by which files and commands give them.
    pub const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            name: "infer",
            takes: Takes::Flag,
            default: Some("false"),
            help: "Whether a frame acknowledges all events before its own, whatever its node has received; a loss ends the run if nodes send under an event before they have received all before",
        },
        ProtocolKey {
            name: "on_board",
            takes: Takes::Count(0, 1 << 20),
            default: Some("16"),
            help: "Frames that the adapter holds for repetition; older ones are copied to memory, with 0 each as it is sent",
        },
        ProtocolKey {
            name: "timeout",
            takes: Takes::Time(Span::from_micros(1), Span::from_secs(3600)),
            default: Some("10ms"),
            help: "How long a node waits before it asks again; doubles with each time",
        },
        ProtocolKey {
            name: "longest_timeout",
            takes: Takes::Time(Span::from_micros(1), Span::from_secs(3600)),
            default: Some("1s"),
            help: "The longest that it comes to",
        },
    ];

    /// The settings that `values` give.
    ///
    /// # Errors
    /// If the longest time-out is shorter than the first.
    pub fn of(values: &Values) -> Result<TraditionalSettings, String> {
        let default = TraditionalSettings::default();
        let settings = TraditionalSettings {
            infer: values.flag("infer"),
            on_board: values.number("on_board") as u32,
            timeout: values.time("timeout").unwrap_or(default.timeout),
            longest_timeout: values.time("longest_timeout").unwrap_or(default.longest_timeout),
        };
        if settings.longest_timeout < settings.timeout {
            let TraditionalSettings { timeout, longest_timeout, .. } = settings;
            return Err(format!(
                "a longest_timeout of {longest_timeout} is shorter than the timeout of {timeout}"
            ));
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_keys_say_of_defaults_holds() {
        let values = Values::defaults(TraditionalSettings::KEYS);
        assert_eq!(TraditionalSettings::of(&values).unwrap(), TraditionalSettings::default());
    }
}

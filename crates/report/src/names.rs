//! The names of enumerations in files and on pages: those that their serialised form has.

use trunkline_core::Cause;
use trunkline_measure::{Agreement, Quantity, SenderState};

/// A cause's name.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Host => "host",
        Cause::Window => "window",
        Cause::Queue => "queue",
        Cause::Transmit => "transmit",
        Cause::Propagate => "propagate",
        Cause::Recover => "recover",
        Cause::Emulator => "emulator",
    }
}

/// A sender state's name.
pub(crate) fn state(state: SenderState) -> &'static str {
    match state {
        SenderState::Opening => "opening",
        SenderState::Application => "application",
        SenderState::Host => "host",
        SenderState::Request => "request",
        SenderState::Window => "window",
        SenderState::Recover => "recover",
    }
}

/// A quantity's name.
pub(crate) fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Delay => "delay",
        Quantity::Response => "response",
        Quantity::Rate => "rate",
        Quantity::TotalRate => "total-rate",
    }
}

/// A verdict's name and its mark, which reads without colour.
pub(crate) fn verdict(verdict: Agreement) -> (&'static str, &'static str) {
    match verdict {
        Agreement::Within => ("within", "✓"),
        Agreement::Outside => ("outside", "✗"),
        Agreement::Suspect => ("suspect", "?"),
        Agreement::Missing => ("missing", "–"),
        Agreement::Unpublished => ("unpublished", "+"),
    }
}

/// Tables of a scenario whose entries have names: `link.NAME.key`.
const NAMED: [&str; 9] =
    ["link", "traffic", "host", "medium", "cluster", "processor", "interface", "module", "costs"];

/// A coordinate of a grid as a reader says it: `link.access.forward.discipline` is the forward discipline of access. A
/// key of another kind, as a study's, stays as it is, with spaces in place of underscores.
pub(crate) fn coordinate(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let words = match &parts[..] {
        [table, name, rest @ ..] if !rest.is_empty() && NAMED.contains(table) => {
            format!("{} of {name}", rest.join(" "))
        }
        _ => key.to_owned(),
    };
    words.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_said_in_words() {
        let said = [
            ("link.access.forward.discipline", "forward discipline of access"),
            ("traffic.call.sizes", "sizes of call"),
            ("link.t1.module", "module of t1"),
            ("rtt_ms", "rtt ms"),
            ("stop_after", "stop after"),
            ("trunk.discipline", "trunk.discipline"),
        ];
        for (key, words) in said {
            assert_eq!(coordinate(key), words);
        }
    }

    #[test]
    fn names_are_those_of_the_serialised_form() {
        let text = |value: &dyn erased::Json| value.json();
        for one in Cause::ALL {
            assert_eq!(text(&one), format!("\"{}\"", cause(one)));
        }
        for one in [Quantity::Delay, Quantity::Response, Quantity::Rate, Quantity::TotalRate] {
            assert_eq!(text(&one), format!("\"{}\"", quantity(one)));
        }
        for one in [SenderState::Opening, SenderState::Request, SenderState::Recover] {
            assert_eq!(text(&one), format!("\"{}\"", state(one)));
        }
        for one in [Agreement::Within, Agreement::Outside, Agreement::Unpublished] {
            assert_eq!(text(&one), format!("\"{}\"", verdict(one).0));
        }
    }

    mod erased {
        pub(super) trait Json {
            fn json(&self) -> String;
        }
        impl<T: serde::Serialize> Json for T {
            fn json(&self) -> String {
                serde_json::to_string(self).unwrap()
            }
        }
    }
}

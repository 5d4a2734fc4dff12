//! The names of enumerations in files and on pages: those that their serialised form has.

use trunkline_core::Cause;
use trunkline_measure::{Quantity, SenderState, Verdict};

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
pub(crate) fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Within => ("within", "✓"),
        Verdict::Outside => ("outside", "✗"),
        Verdict::Suspect => ("suspect", "?"),
        Verdict::Missing => ("missing", "–"),
        Verdict::Unpublished => ("unpublished", "+"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for one in [Verdict::Within, Verdict::Outside, Verdict::Unpublished] {
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

//! Stop-and-wait: one frame, then its answer.

use super::{Arq, FRAME, Rule, Settings, TIMEOUT, formula, restraints, shape};
use crate::protocol::ProtocolEntry;

/// Stop-and-wait: utilisation 1 / (1 + 2a) without errors.
pub static STOP_AND_WAIT: ProtocolEntry = ProtocolEntry {
    name: "stop-and-wait",
    help: "One frame at a time: the next one waits for the answer to the one before",
    keys: &[FRAME, TIMEOUT],
    build: |values| Ok(Arq::boxed(Rule::GoBack, &Settings::of(values))),
    connects_for_each: false,
    shape,
    formula: |values, path| formula::interval(Rule::GoBack, &Settings::of(values), path),
    restraints: restraints::of_one_frame,
};

//! Go-back-n: a window of frames, and all of them again behind a loss.

use super::{Arq, FRAME, RATE, Rule, Settings, TIMEOUT, formula, restraints, shape};
use crate::protocol::{ProtocolEntry, ProtocolKey, Takes};

/// Go-back-n: utilisation min(1, N / (1 + 2a)) without errors.
pub static GO_BACK_N: ProtocolEntry = ProtocolEntry {
    name: "go-back-n",
    help: "A window of frames, answered in order; behind a loss all are sent again",
    keys: &[FRAME, FRAMES, TIMEOUT, RATE],
    build: |values| Ok(Arq::boxed(Rule::GoBack, &Settings::of(values))),
    connects_for_each: false,
    shape,
    formula: |values, path| formula::interval(Rule::GoBack, &Settings::of(values), path),
    restraints: |values, enough| restraints::of(&GO_BACK_N, values, enough),
};

/// Seven: what numbers of three bits allow, as in HDLC (ISO/IEC 13239) and URP.
const FRAMES: ProtocolKey = ProtocolKey {
    name: "frames",
    takes: Takes::Count(1, restraints::MOST_FRAMES),
    default: Some("7"),
    help: "Frames that may be without an answer",
};

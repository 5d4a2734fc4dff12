//! Selective repeat: a window of frames, each answered and repeated by itself.

use super::{Arq, FRAME, RATE, Rule, Settings, TIMEOUT, formula, restraints, shape};
use crate::protocol::{ProtocolEntry, ProtocolKey, Takes, Unfit};

/// Selective repeat: utilisation (1 − p) min(1, N / (1 + 2a)).
pub static SELECTIVE_REPEAT: ProtocolEntry = ProtocolEntry {
    name: "selective-repeat",
    help: "A window of frames, each answered by itself; a lost frame alone is sent again",
    keys: &[FRAME, FRAMES, BUFFER, TIMEOUT, RATE],
    build: |values| match (values.number("buffer"), values.number("frames")) {
        (buffer @ 1.., frames) if buffer < frames => Err(Unfit::new(
            "buffer",
            format!(
                "it is below frames = {frames}, of which each may come behind a gap: give buffer = {frames} or more, or fewer frames"
            ),
        )),
        _ => Ok(Arq::boxed(Rule::Selective, &Settings::of(values))),
    },
    connects_for_each: false,
    shape,
    formula: |values, path| formula::interval(Rule::Selective, &Settings::of(values), path),
    restraints: |values, enough| restraints::of(&SELECTIVE_REPEAT, values, enough),
};

/// Four: half of what numbers of three bits count, so that old frames are told from new ones.
const FRAMES: ProtocolKey = ProtocolKey {
    name: "frames",
    takes: Takes::Count(1, restraints::MOST_FRAMES),
    default: Some("4"),
    help: "Frames that may be without an answer",
};

const BUFFER: ProtocolKey = ProtocolKey {
    name: "buffer",
    takes: Takes::Count(1, 1 << 24),
    default: None,
    help: "Frames that a receiver can hold from the first missing one on; the sender goes no further ahead. \
           As many as frames if left out; textbooks' formulas with losses take it for unlimited",
};

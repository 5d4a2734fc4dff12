//! Keys and small things that several tests have in common.

use crate::Work;
use trunkline_transport::cstar::NodeId;
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Payload in words; the report has up to 2000 (Tables 1 to 3).
pub(super) const WORDS: ProtocolKey = ProtocolKey {
    name: "words",
    takes: Takes::Count(1, 16_000_000),
    default: Some("1000"),
    help: "Words of 4 bytes of a message",
};

/// Whether the nodes touch what they exchange.
pub(super) const PROCESSING: ProtocolKey = ProtocolKey {
    name: "processing",
    takes: Takes::Flag,
    default: Some("false"),
    help: "Whether each word is written once before it is sent, and read once after it is received",
};

pub(super) fn flag_of(values: &Values) -> bool {
    values.flag(PROCESSING.name)
}

/// The work of writing so many words, and that of reading them; none of either without processing.
pub(super) fn written_and_read(words: u64, processing: bool) -> (Work, Work) {
    let words = if processing { words } else { 0 };
    (Work { written: words, ..Work::default() }, Work { read: words, ..Work::default() })
}

/// The nodes before and after one in the ring of all.
pub(super) fn neighbours(me: NodeId, nodes: u16) -> (NodeId, NodeId) {
    let before = if me.0 == 0 { nodes - 1 } else { me.0 - 1 };
    let after = if me.0 == nodes - 1 { 0 } else { me.0 + 1 };
    (NodeId(before), NodeId(after))
}

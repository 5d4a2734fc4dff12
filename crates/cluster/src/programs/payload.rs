//! Payload that tells who sent it under which event, and where in the message it lies.

use crate::Message;
use bytes::Bytes;
use trunkline_transport::cstar::{EventId, NodeId};

/// The first word of 8 bytes of a message. The multipliers are odd, so that different messages begin differently.
fn first(from: NodeId, event: EventId) -> u64 {
    let name = u64::from(from.0) << 32 | u64::from(event.0);
    (name ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The words of a message in their order.
fn words(from: NodeId, event: EventId) -> impl Iterator<Item = [u8; 8]> {
    let step = |word: &u64| Some(word.wrapping_add(0xd1b5_4a32_d192_ed03).rotate_left(5));
    std::iter::successors(Some(first(from, event)), step).map(u64::to_le_bytes)
}

/// The message of a node under an event.
pub(super) fn payload(from: NodeId, event: EventId, bytes: usize) -> Bytes {
    let mut data: Vec<u8> = words(from, event).take(bytes.div_ceil(8)).flatten().collect();
    data.truncate(bytes);
    data.into()
}

/// Checks a message of `bytes` bytes against what its sender sent under its event.
pub(super) fn check(message: &Message, bytes: usize) -> Result<(), String> {
    let Message { from, event, data } = message;
    if data.len() != bytes {
        return Err(format!(
            "the message of {from} for {event} has {} B instead of {bytes} B",
            data.len()
        ));
    }
    let wrong = |(part, word): (&[u8], [u8; 8])| part != &word[..part.len()];
    match std::iter::zip(data.chunks(8), words(*from, *event)).position(wrong) {
        None => Ok(()),
        Some(at) => {
            Err(format!("the message of {from} for {event} is wrong from byte {} on", 8 * at))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_and_a_wrong_name_are_found() {
        let (from, event) = (NodeId(3), EventId(7));
        let good = Message { from, event, data: payload(from, event, 1003) };
        assert_eq!(check(&good, 1003), Ok(()));
        assert!(check(&good, 1004).unwrap_err().contains("1003 B instead of 1004 B"));
        assert!(check(&Message { from: NodeId(2), ..good.clone() }, 1003).is_err());
        assert!(check(&Message { event: EventId(8), ..good.clone() }, 1003).is_err());
        for at in [0, 500, 1002] {
            let mut data = good.data.to_vec();
            data[at] ^= 1;
            let bad = Message { data: data.into(), ..good.clone() };
            assert!(check(&bad, 1003).unwrap_err().contains(&format!("byte {}", at / 8 * 8)));
        }
    }

    #[test]
    fn parts_of_a_message_differ() {
        let data = payload(NodeId(0), EventId(0), 8000);
        let mut parts: Vec<&[u8]> = data.chunks(8).collect();
        parts.sort();
        parts.dedup();
        assert_eq!(parts.len(), 1000);
    }
}

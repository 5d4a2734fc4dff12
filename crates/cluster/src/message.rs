//! Messages: cut into fragments, and filled so that their receiver can check them.

use crate::Op;
use bytes::Bytes;
use std::sync::LazyLock;
use trunkline_transport::cstar::{Delivery, Destination, EventId, Flags, Fragment, NodeId};

/// Most bytes of a fragment.
const LONGEST: usize = 1 << 16;
/// Places in the table at which a fragment's octets may begin.
const PLACES: usize = 4096;

/// Octets without a pattern.
static TABLE: LazyLock<&'static [u8]> = LazyLock::new(|| {
    // Marsaglia's xorshift with 64 bits.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    Vec::leak((0..LONGEST + PLACES).map(|_| next()).collect())
});

/// The octets of a fragment: a stretch of one table that depends on its node, event and number.
fn octets(from: NodeId, event: EventId, fragment: u32, bytes: u32) -> &'static [u8] {
    let mix = u64::from(from.0) << 48 ^ u64::from(event.0) << 16 ^ u64::from(fragment);
    let place = (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % PLACES;
    &TABLE[place..place + (bytes as usize).min(LONGEST)]
}

/// How a message is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes of the message.
    pub bytes: u32,
    /// Bytes of a fragment at most.
    pub frame: u32,
}

impl Cut {
    /// How many fragments there are: one even of no bytes.
    pub fn count(self) -> u32 {
        self.bytes.div_ceil(self.frame.max(1)).max(1)
    }

    fn bytes_of(self, fragment: u32) -> u32 {
        let before = u64::from(fragment) * u64::from(self.frame);
        u64::from(self.bytes).saturating_sub(before).min(u64::from(self.frame)) as u32
    }

    /// The operations that send the message of `from`; every other node sends under this event too if `crowd`.
    pub fn send(
        self,
        from: NodeId,
        to: Destination,
        event: EventId,
        crowd: bool,
    ) -> impl Iterator<Item = Op> {
        let count = self.count();
        (0..count).map(move |number| {
            let flags = Flags { last: number + 1 == count, crowd, large: count > 1 };
            let data = Bytes::from_static(octets(from, event, number, self.bytes_of(number)));
            Op::Send(Fragment { to, event, flags, following: count - number - 1, data })
        })
    }

    /// Checks a fragment of such a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, delivery: &Delivery) -> Result<(), String> {
        let &Delivery { from, event, fragment, .. } = delivery;
        let expected = octets(from, event, fragment, self.bytes_of(fragment));
        if delivery.data == expected {
            return Ok(());
        }
        Err(format!(
            "fragment {fragment} of {from} for {event} has {} bytes that were not sent so; {} were expected",
            delivery.data.len(),
            expected.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_full_fragments_and_a_rest() {
        let cut = Cut { bytes: 8001, frame: 4000 };
        let lengths: Vec<u32> = (0..cut.count()).map(|it| cut.bytes_of(it)).collect();
        assert_eq!(lengths, [4000, 4000, 1]);
        assert_eq!(Cut { bytes: 0, frame: 4000 }.count(), 1);
        let last =
            |op: Op| matches!(op, Op::Send(Fragment { flags: Flags { last: true, .. }, .. }));
        let ops: Vec<bool> =
            cut.send(NodeId(1), Destination::All, EventId(0), true).map(last).collect();
        assert_eq!(ops, [false, false, true]);
    }

    /// Octets of another node, event or fragment are told apart, and so is a single one that is wrong.
    #[test]
    fn a_fragment_that_was_not_sent_so_is_told() {
        let cut = Cut { bytes: 8000, frame: 4000 };
        let status = trunkline_transport::cstar::Status::More;
        let delivery = |from: u16, event: u32, fragment: u32, data: Bytes| Delivery {
            from: NodeId(from),
            event: EventId(event),
            fragment,
            status,
            data,
            buffer: None,
        };
        let data = Bytes::from_static(octets(NodeId(1), EventId(2), 1, 4000));
        assert_eq!(cut.check(&delivery(1, 2, 1, data.clone())), Ok(()));
        for wrong in [(0, 2, 1), (1, 3, 1), (1, 2, 0)] {
            let (from, event, fragment) = wrong;
            assert!(
                cut.check(&delivery(from, event, fragment, data.clone())).is_err(),
                "{wrong:?}"
            );
        }
        let mut other = data.to_vec();
        other[3999] ^= 1;
        assert!(cut.check(&delivery(1, 2, 1, other.into())).is_err());
    }
}

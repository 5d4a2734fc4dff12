//! Proportional rate reduction: what goes out for each acknowledgement during recovery (RFC 6937, RFC 9937).

/// The state of RFC 6937 §3, in octets.
#[derive(Debug, Clone, Default)]
pub struct Prr {
    /// RecoverFS: what was outstanding when recovery began.
    outstanding: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// sndcnt, less what has been sent of it.
    room: u64,
    /// Octets of the whole numbers that sndcnt is rounded up to.
    unit: u64,
}

impl Prr {
    /// Recovery begins. What goes out is counted in `unit`s of so many octets: a segment where segments count
    /// (Linux), 1 where octets do.
    pub fn begin(outstanding: u64, unit: u32) -> Prr {
        Prr { outstanding: outstanding.max(1), unit: u64::from(unit.max(1)), ..Prr::default() }
    }

    /// The octets that may go out before the next acknowledgement.
    pub const fn room(&self) -> u64 {
        self.room
    }

    pub fn sent(&mut self, octets: u64) {
        self.out = self.out.saturating_add(octets);
        self.room = self.room.saturating_sub(octets);
    }

    /// Takes in an acknowledgement that delivered `delivered` octets. `in_flight` are in flight, and recovery shall
    /// end at a window of `target`. The bound is the one with slow start (PRR-SSRB) if the acknowledgement
    /// is `safe` (it acknowledges something new, and nothing more is found lost: RFC 9937 §6.2), else the conservative one
    /// (PRR-CRB).
    pub fn acked(&mut self, delivered: u64, in_flight: u64, target: u64, mss: u32, safe: bool) {
        self.delivered += delivered;
        let unspent = self.delivered.saturating_sub(self.out);
        self.room = if in_flight > target {
            let due = u128::from(self.delivered) * u128::from(target);
            let due = due.div_ceil(u128::from(self.outstanding));
            let due = u64::try_from(due).unwrap_or(u64::MAX);
            due.checked_next_multiple_of(self.unit).unwrap_or(due).saturating_sub(self.out)
        } else {
            let limit = unspent.max(delivered) + if safe { u64::from(mss) } else { 0 };
            (target - in_flight).min(limit)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §3.1's first example: one loss, 20 segments outstanding, window to be halved.
    #[test]
    fn one_loss_sends_one_segment_for_every_other_acknowledgement() {
        let mut prr = Prr::begin(20, 1);
        let (mut in_flight, mut sent) = (19, 0);
        for ack in 1..=18u64 {
            in_flight -= 1;
            prr.acked(1, in_flight, 10, 1, true);
            let goes = prr.room();
            prr.sent(goes);
            in_flight += goes;
            sent += goes;
            assert!(
                in_flight >= 10 && sent >= ack / 2,
                "{ack}: {sent} sent, {in_flight} in flight"
            );
        }
        assert_eq!((sent, in_flight), (9, 10));
    }

    /// Half a segment is due for the first acknowledgement, and no segment is sent in halves.
    #[test]
    fn where_segments_count_a_part_of_one_is_a_whole_one() {
        let rooms = |unit| {
            let mut prr = Prr::begin(20_000, unit);
            let room = |ack: u64| {
                prr.acked(1000, 19_000 - 500 * ack, 10_000, 1000, true);
                let goes = prr.room() / 1000 * 1000;
                prr.sent(goes);
                (prr.room() + goes, goes)
            };
            (1..=4).map(room).collect::<Vec<_>>()
        };
        assert_eq!(rooms(1), [(500, 0), (1000, 1000), (500, 0), (1000, 1000)]);
        assert_eq!(rooms(1000), [(1000, 1000), (0, 0), (1000, 1000), (0, 0)]);
    }

    #[test]
    fn after_many_losses_it_starts_slowly_up_to_the_target() {
        let mut prr = Prr::begin(20, 1);
        let mut in_flight = 4;
        let mut spare = Vec::new();
        for _ in 0..4 {
            in_flight -= 1;
            prr.acked(1, in_flight, 10, 1, true);
            spare.push(prr.room());
            in_flight += prr.room();
            prr.sent(prr.room());
        }
        assert_eq!(spare, [2, 2, 2, 2]);
    }
}

//! Packets that overtake one another (RFC 4737).

use serde::Serialize;

/// The disorder of packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Reordering {
    /// Packets that arrived, each counted once.
    pub received: u64,
    /// Packets that arrived after one with a greater number (Type-P-Reordered, §3).
    pub reordered: u64,
    /// For each reordered packet, in order of arrival, how many places later it came than the first
    /// packet that has a greater number (reordering extent, §4.2).
    pub extents: Vec<u64>,
    /// Packets that came right behind three or more packets with greater numbers (n-reordering with
    /// n = 3, §5): those TCP would take for lost.
    pub three_late: u64,
}

impl Reordering {
    /// Reordered packets for each one received (reordered ratio, §4.1); `None` if nothing came.
    pub fn ratio(&self) -> Option<f64> {
        (self.received > 0).then(|| self.reordered as f64 / self.received as f64)
    }

    /// Of numbers in the order of arrival, duplicates taken out.
    pub fn of(arrivals: &[u64]) -> Reordering {
        // Places at which a number arrived that is greater than all before: the numbers grow with them.
        let mut records: Vec<usize> = Vec::new();
        let mut found = Reordering { received: arrivals.len() as u64, ..Reordering::default() };
        for (place, &number) in arrivals.iter().enumerate() {
            if records.last().is_none_or(|&last| arrivals[last] < number) {
                records.push(place);
                continue;
            }
            let first = records.partition_point(|&record| arrivals[record] <= number);
            found.reordered += 1;
            found.extents.push((place - records[first]) as u64);
            let before = &arrivals[place.saturating_sub(3)..place];
            found.three_late += u64::from(before.len() == 3 && before.iter().all(|n| *n > number));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_late_packet_and_one_early() {
        // The example of a single packet reordered: 4 comes behind 5, 6, 7 and 8.
        let found = Reordering::of(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        assert_eq!((found.reordered, &found.extents[..], found.three_late), (1, &[4][..], 1));
        assert_eq!(found.ratio(), Some(0.1));
        // A packet that comes early makes every packet before it late.
        let found = Reordering::of(&[1, 2, 4, 5, 3, 6]);
        assert_eq!((found.reordered, &found.extents[..], found.three_late), (1, &[2][..], 0));
        assert_eq!(Reordering::of(&[3, 1, 2]).extents, [1, 2]);
        assert_eq!(Reordering::of(&[]).ratio(), None);
    }

    proptest! {
        #[test]
        fn as_defined(shuffled in Just((0..40u64).collect::<Vec<_>>()).prop_shuffle(), count in 0usize..40) {
            let arrivals = &shuffled[..count];
            let mut extents = Vec::new();
            for (i, number) in arrivals.iter().enumerate() {
                if let Some(j) = arrivals[..i].iter().position(|earlier| earlier > number) {
                    extents.push((i - j) as u64);
                }
            }
            let found = Reordering::of(arrivals);
            prop_assert_eq!(found.reordered as usize, extents.len());
            prop_assert_eq!(found.extents, extents);
            prop_assert!(found.three_late <= found.reordered);
        }
    }
}

//! The probes sent and arrived, and which arrival belongs to which probe. No clock, no socket.

/// The probes that one end sent, by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// The sender's clock before the call that sent it: nanoseconds of CLOCK_REALTIME.
    pub before: Vec<u64>,
    /// The time that each call took, in nanoseconds.
    pub took: Vec<u32>,
}

impl Sent {
    /// Room for `count` probes.
    pub fn with_capacity(count: usize) -> Sent {
        Sent { before: Vec::with_capacity(count), took: Vec::with_capacity(count) }
    }

    /// Notes the next probe.
    pub fn push(&mut self, before: u64, after: u64) {
        self.before.push(before);
        self.took.push(u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX));
    }

    /// The number sent.
    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }
}

/// A probe as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub number: u32,
    /// The kernel's arrival stamp: nanoseconds of CLOCK_REALTIME.
    pub stamp: u64,
}

/// Arrivals by the numbers of the probes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matched {
    /// The stamp of each probe's first arrival.
    pub arrived: Vec<Option<u64>>,
    /// Arrivals of probes that had arrived before.
    pub duplicated: u64,
    /// First arrivals behind a probe with a higher number (RFC 4737 §3.3).
    pub reordered: u64,
    /// Arrivals with numbers that were never sent.
    pub foreign: u64,
}

impl Matched {
    /// Gives each of `sent` probes its arrival, if it had one.
    pub fn of(sent: usize, arrivals: &[Arrival]) -> Matched {
        let mut matched = Matched { arrived: vec![None; sent], ..Matched::default() };
        let mut expected = 0;
        for arrival in arrivals {
            let Some(place) = matched.arrived.get_mut(arrival.number as usize) else {
                matched.foreign += 1;
                continue;
            };
            if place.is_some() {
                matched.duplicated += 1;
                continue;
            }
            *place = Some(arrival.stamp);
            matched.reordered += u64::from(arrival.number < expected);
            expected = expected.max(arrival.number + 1);
        }
        matched
    }

    /// The number of probes that never arrived.
    pub fn lost(&self) -> u64 {
        self.arrived.iter().filter(|stamp| stamp.is_none()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrivals(numbers: &[u32]) -> Vec<Arrival> {
        let at = |(index, &number)| Arrival { number, stamp: 1000 + index as u64 };
        numbers.iter().enumerate().map(at).collect()
    }

    #[test]
    fn a_clean_trace_has_nothing_to_report() {
        let matched = Matched::of(3, &arrivals(&[0, 1, 2]));
        assert_eq!(matched.arrived, [Some(1000), Some(1001), Some(1002)]);
        assert_eq!((matched.lost(), matched.duplicated, matched.reordered), (0, 0, 0));
    }

    #[test]
    fn loss_duplicates_and_reordering_are_told_apart() {
        // 1 never comes; 3 overtakes 2; 0 and 3 come twice; 9 was never sent.
        let matched = Matched::of(6, &arrivals(&[0, 0, 3, 2, 3, 9, 4, 5]));
        assert_eq!(matched.lost(), 1);
        assert_eq!(matched.duplicated, 2);
        assert_eq!(matched.reordered, 1);
        assert_eq!(matched.foreign, 1);
        assert_eq!(matched.arrived[3], Some(1002), "the first arrival counts");
    }

    #[test]
    fn one_late_probe_is_one_reordering() {
        // RFC 4737: 1 alone is reordered, not the three that overtook it.
        assert_eq!(Matched::of(5, &arrivals(&[0, 2, 3, 4, 1])).reordered, 1);
        assert_eq!(Matched::of(5, &arrivals(&[4, 3, 2, 1, 0])).reordered, 4);
    }

    proptest! {
        #[test]
        fn every_arrival_is_counted_once(numbers in prop::collection::vec(0u32..50, 0..100)) {
            let matched = Matched::of(40, &arrivals(&numbers));
            let arrived = 40 - matched.lost();
            prop_assert_eq!(arrived + matched.duplicated + matched.foreign, numbers.len() as u64);
            prop_assert!(matched.reordered <= arrived);
        }
    }
}

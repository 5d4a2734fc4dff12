//! Which channel has the largest backlog, in constant time.

/// Sub-buckets of each octave: 2^4.
const SUB_BITS: u32 = 4;
const SUBS: u64 = 1 << SUB_BITS;
/// One bucket for each value below 16, then 16 for each of the 60 octaves up to 2^64.
const BUCKETS: usize = ((64 - SUB_BITS as usize) + 1) << SUB_BITS;

/// Channels sorted by backlog into buckets that are linear within an octave, as in an HDR histogram.
///
/// Every bucket spans at most 1/16 of its lower edge, and values below 32 have a bucket each. So the
/// channel found has more than 16/17 of the longest channel's backlog: it is at most 5.9 % shorter.
/// Finding it is two bit scans; moving a channel to another bucket touches its neighbours in two circles.
#[derive(Debug)]
pub(super) struct Longest {
    /// A circle for each bucket: the bucket's own place, and behind it those of its channels. Places of
    /// buckets come first, so that neither end of a circle is a special case.
    circles: Vec<Place>,
    /// One bit for each bucket that is not empty, and one for each word that is not zero.
    words: [u64; WORDS],
    summary: u64,
}

/// Words of the map of buckets.
const WORDS: usize = BUCKETS.div_ceil(64);

#[derive(Debug, Clone, Copy)]
struct Place {
    before: u32,
    after: u32,
}

/// The bucket of a backlog.
fn bucket(bytes: u64) -> usize {
    let octave = (bytes | SUBS).ilog2() - SUB_BITS;
    ((u64::from(octave) << SUB_BITS) + (bytes >> octave)) as usize
}

impl Default for Longest {
    fn default() -> Longest {
        let circles = (0..BUCKETS as u32).map(|own| Place { before: own, after: own }).collect();
        Longest { circles, words: [0; WORDS], summary: 0 }
    }
}

impl Longest {
    /// Takes in channel `id` with a backlog of `bytes`.
    #[inline]
    pub fn insert(&mut self, id: u32, bytes: u64) {
        let places = BUCKETS + id as usize + 1;
        if self.circles.len() < places {
            self.circles.resize(places, Place { before: 0, after: 0 });
        }
        self.put(id, bucket(bytes));
    }

    /// Takes out channel `id`.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        self.pull(id);
    }

    /// The backlog of channel `id` changes from `old` to `new` bytes.
    #[inline]
    pub fn change(&mut self, id: u32, old: u64, new: u64) {
        let (old, new) = (bucket(old), bucket(new));
        if old != new {
            self.pull(id);
            self.put(id, new);
        }
    }

    /// A channel with one of the largest backlogs: of those in the highest bucket, the one that came
    /// into it first.
    pub fn longest(&self) -> Option<u32> {
        let word = self.summary.checked_ilog2()? as usize;
        let bit = self.words[word].checked_ilog2()? as usize;
        Some(self.circles[64 * word + bit].after - BUCKETS as u32)
    }

    /// Puts a channel last into a bucket's circle.
    #[inline]
    fn put(&mut self, id: u32, bucket: usize) {
        let own = BUCKETS as u32 + id;
        let last = std::mem::replace(&mut self.circles[bucket].before, own);
        self.circles[last as usize].after = own;
        self.circles[own as usize] = Place { before: last, after: bucket as u32 };
        self.words[bucket / 64 % WORDS] |= 1 << (bucket % 64);
        self.summary |= 1 << (bucket / 64);
    }

    /// Takes a channel out of the circle that it is in. Only in a circle of two both neighbours are one: the
    /// bucket, which is empty then.
    #[inline]
    fn pull(&mut self, id: u32) {
        let Place { before, after } = self.circles[BUCKETS + id as usize];
        self.circles[before as usize].after = after;
        self.circles[after as usize].before = before;
        if before == after {
            self.clear(before as usize);
        }
    }

    #[inline]
    fn clear(&mut self, bucket: usize) {
        let word = bucket / 64 % WORDS;
        self.words[word] &= !(1 << (bucket % 64));
        self.summary &= !(u64::from(self.words[word] == 0) << word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_ascend_without_gaps_and_stay_narrow() {
        assert!((0..32).all(|bytes| bucket(bytes) == bytes as usize));
        let mut lower = 0;
        for bytes in 1..100_000u64 {
            assert!(bucket(bytes) - bucket(bytes - 1) <= 1);
            if bucket(bytes) != bucket(bytes - 1) {
                lower = bytes;
            }
            assert!(16 * bytes < 17 * lower, "{bytes} shares a bucket with {lower}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn the_longest_is_within_a_seventeenth_of_the_true_one(
            steps in prop::collection::vec((0u32..40, prop_oneof![0u64..100, 0u64..1 << 40]), 1..200),
        ) {
            let mut index = Longest::default();
            let mut naive = std::collections::BTreeMap::new();
            for (id, bytes) in steps {
                match (naive.get(&id).copied(), bytes % 5 == 0) {
                    (None, _) => { index.insert(id, bytes); naive.insert(id, bytes); }
                    (Some(_), true) => { index.remove(id); naive.remove(&id); }
                    (Some(old), false) => { index.change(id, old, bytes); naive.insert(id, bytes); }
                }
                let found = index.longest().map(|id| naive[&id]);
                let most = naive.values().copied().max();
                prop_assert_eq!(found.is_some(), most.is_some());
                if let (Some(found), Some(most)) = (found, most) {
                    prop_assert!(17 * found >= 16 * most, "{} of {}", found, most);
                }
            }
        }
    }
}

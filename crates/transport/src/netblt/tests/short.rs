//! A first buffer that both ends know to be shorter than the others.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// It comes whole over whatever a path does, and so do those behind it.
    #[test]
    fn a_shorter_first_buffer_comes_whole(
        len in 1usize..30_000, head in 1u32..=4000, which in 1usize..3, fates in fates(),
    ) {
        let data = stream(len);
        let events = Events { head: Some(head), ..NOTHING };
        let habits = habits(Dialect::ALL[which], RateLaw::Adaptive);
        let (ends, ..) = run_with(&data, true, habits, (&fates, events));
        if ends[0].ending() == Some(&Ending::Unanswered) {
            return Ok(());
        }
        prop_assert_eq!(ends[0].ending(), Some(&Ending::Done));
        let got: Vec<u8> = ends[1].got.values().flatten().copied().collect();
        prop_assert!(got == data, "{} of {} bytes", got.len(), data.len());
        let behind = len.saturating_sub(head as usize).div_ceil(4000);
        prop_assert_eq!(ends[1].whole.len(), 1 + behind);
    }
}

//! Sums of Mosberger, Turner and Peterson, *Exploiting Highly Reliable Networks with Careful Protocols*, University of
//! Arizona, TR 94-14, 1994.

use trunkline_core::Span;
use trunkline_transport::cstar::Operation;

/// A cycle of an HP 9000/720 (Appendix A): 20 ns.
pub const CYCLE: Span = Span::from_nanos(20);

/// Cycles that a small fragment takes in one protocol and can be omitted in the other, while it is sent or in the
/// interrupt by which it comes (Appendix A).
pub fn cycles(careful: bool, sending: bool) -> u32 {
    let of = |it: &&Operation| it.is_careful() == careful && it.is_sending() == sending;
    Operation::ALL.iter().filter(of).map(|it| it.cycles()).sum()
}

/// The time of these cycles, sending and interrupt together (Appendix A).
pub fn operations(careful: bool) -> Span {
    let cycles = cycles(careful, true) + cycles(careful, false);
    CYCLE.scaled(u64::from(cycles), 1)
}

/// Bytes that a sender holds until they are acknowledged if it keeps a path of `rate` bits a second and `delay` one way
/// busy: twice the product of both (TR 94-14 §2.2: 144 MB at 1 Gbit/s and 600 ms). A careful sender holds none.
pub fn backup(rate: f64, delay: Span) -> f64 {
    2.0 * rate / 8.0 * delay.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_printed() {
        assert_eq!(operations(false), Span::from_nanos(28_360));
        assert_eq!(operations(true), Span::from_nanos(3_020));
        assert_eq!((cycles(false, true), cycles(false, false)), (318, 1100));
        assert_eq!((cycles(true, true), cycles(true, false)), (42, 109));
    }

    /// 72 MB is the product in units of 2^20 bytes; a sender needs at least twice that.
    #[test]
    fn a_sender_over_a_long_path_needs_as_much_as_printed() {
        let bytes = backup(1e9, Span::from_millis(600));
        assert_eq!((bytes / f64::from(1 << 20)).floor(), 143.0);
    }
}

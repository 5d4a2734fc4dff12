//! Rates, and the bursts that make them.

use crate::netblt::wire::Burst;
use trunkline_core::Span;

/// The interval of an offer at least, so that whole milliseconds are exact enough.
const INTERVAL: u64 = 100;

/// Bytes in so much time.
pub fn bytes_in(rate: u64, span: Span) -> u64 {
    (u128::from(rate) * u128::from(span.as_nanos()) / 1_000_000_000) as u64
}

/// The rate of so many bytes in so much time.
pub fn per_second(bytes: u64, span: Span) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1))) as u64
}

/// The burst that comes nearest to `rate`, of packets of so many bytes.
pub fn burst(rate: u64, packet: u64, most: u16) -> Burst {
    if rate == 0 {
        return Burst::default();
    }
    let per_second = |size: u64| size * packet * 1000;
    let size = (rate * INTERVAL).div_ceil(packet * 1000).clamp(1, most.max(1).into());
    let interval = (per_second(size) + rate / 2) / rate;
    Burst { size: size as u16, interval: interval.clamp(1, u16::MAX.into()) as u16 }
}

/// The rate of a burst of packets of so many bytes; none is so slow that it makes no pace.
pub fn rate_of(burst: Burst, packet: u64) -> u64 {
    match burst {
        Burst { interval: 0, .. } => u64::MAX,
        Burst { size, interval } => u64::from(size) * packet * 1000 / u64::from(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_comes_near_to_its_rate() {
        for rate in [2_000, 12_500, 125_000, 1_250_000, 37_500_000, 1_250_000_000u64] {
            let found = burst(rate, 1500, u16::MAX);
            let got = rate_of(found, 1500);
            assert!(got.abs_diff(rate) * 100 <= rate, "{rate}: {found:?}");
        }
        assert_eq!(burst(10_000_000, 1000, 20), Burst { size: 20, interval: 2 });
    }
}

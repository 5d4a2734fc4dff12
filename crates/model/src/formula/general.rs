//! The general forms behind the published formulas.

use crate::throughput::{SECOND, Throughput};
use trunkline_core::{Channel, Rate, Span};
use trunkline_path::{Framer, Framing, Piece};

/// Speed of light in vacuum, metres per second.
pub const LIGHT: u64 = 299_792_458;

fn span(nanos: u128) -> Span {
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Time of `bits` line bits: bits / (rate × the share of the line that carries frames).
///
/// Holds for a constant rate. With slotted framing the wait for the slot's beginning comes on top.
pub fn bit_time(bits: u64, rate: Rate, framing: Framing) -> Span {
    let (carrying, whole) = framing.line_share();
    let rate = u128::from(rate.bits_per_second()) * u128::from(carrying);
    span(u128::from(bits) * SECOND * u128::from(whole) / rate)
}

/// Serialisation delay of one packet of `bytes` user bytes, `controls` of them control envelopes, on
/// an idle line: line bits under the framing / rate (Hawley 1989 §2.1, Vande Water 1988 eq. 2).
pub fn serialisation(framing: Framing, rate: Rate, bytes: u32, controls: u32) -> Span {
    let piece = Piece { channel: Channel(0), bytes, controls, last: true };
    bit_time(Framer::new(framing).line_bits(piece, false), rate, framing)
}

/// Propagation delay: distance / speed. Distance in millimetres, so that a mile (1609.344 m) is exact;
/// speed in metres per second, [`LIGHT`] times the medium's fraction (2/3 in fibre and copper; Vande
/// Water 1988 eq. 1).
pub fn propagation(millimetres: u64, metres_per_second: u64) -> Span {
    let nanos = u128::from(millimetres) * (SECOND / 1_000);
    span(nanos / u128::from(metres_per_second.max(1)))
}

/// `numerator / denominator` of the speed `light`, metres per second.
pub const fn fraction_of(light: u64, numerator: u64, denominator: u64) -> u64 {
    light * numerator / denominator
}

/// Round trip of a message and its answer if every round after the first costs one response time
/// more: response × (1 + (rounds out − 1) + (rounds back − 1)).
///
/// The general form of Vande Water 1988 eq. 4, with a window of its own for each direction (§2.5.3:
/// with 756 bytes out and 84 back the steps are one response time, not two). Holds if the response
/// time far exceeds the time to send a window.
pub fn round_trip(response: Span, rounds_out: u64, rounds_back: u64) -> Span {
    response.scaled(1 + rounds_out.saturating_sub(1) + rounds_back.saturating_sub(1), 1)
}

/// Throughput = min(window / round trip, bottleneck, host) (Vande Water 1988 eq. 8 for the first term;
/// §3.6.2 for the lowest element of the chain).
///
/// Holds for a window that slides, or that is used in full in each round.
pub fn throughput(
    window: u64,
    round_trip: Span,
    bottleneck: Throughput,
    host: Throughput,
) -> Throughput {
    Throughput::over(window, round_trip).min(bottleneck).min(host)
}

/// Bytes under way on a full path: rate × round trip, rounded down.
pub fn bandwidth_delay_product(rate: Throughput, round_trip: Span) -> u64 {
    let product = u128::from(rate.millibytes_per_second()) * u128::from(round_trip.as_nanos());
    u64::try_from(product / 1_000 / SECOND).unwrap_or(u64::MAX)
}

/// Bytes that stand before and on a saturated line: the sum of the windows, less what the rest of the path
/// holds (rate × round trip without queueing and without the line's own time for a block). Zero if the
/// windows do not fill the path.
///
/// Holds for senders that always have data and an unchanging window, without loss: the generalisation
/// of Hawley 1989 §4.3.2.1, in which the path holds next to nothing.
pub fn standing_queue(windows: u64, rate: Throughput, round_trip: Span) -> u64 {
    windows.saturating_sub(bandwidth_delay_product(rate, round_trip))
}

/// Waiting time in a FIFO behind `bytes`: bytes / drain rate (Hawley 1989 §2.2, §4.3.2.1).
pub fn fifo_wait(bytes: u64, drain: Throughput) -> Span {
    drain.time_for(bytes)
}

/// The most that `quanta` quanta wait under round robin among `others` other active channels: each
/// waits for one quantum of every other channel.
///
/// Holds for any load of the others (Hawley 1989 §1.2; Table 2 counts the own quantum as well).
/// `quantum_time` is the time of one quantum on the line, framing included.
pub fn round_robin_wait(others: u64, quanta: u64, quantum_time: Span) -> Span {
    quantum_time.scaled(others.saturating_mul(quanta), 1)
}

/// Mean wait in an M/D/1 queue: τ² / (2 (a − τ)) for service time τ and mean interval a of Poisson
/// arrivals (Pollaczek and Khinchine with constant service). `None` at utilisation 1 and above.
pub fn poisson_wait(service: Span, interval: Span) -> Option<Span> {
    let (service, interval) = (u128::from(service.as_nanos()), u128::from(interval.as_nanos()));
    (service < interval).then(|| span(service * service / (2 * (interval - service))))
}

/// Wait in a D/D/1 queue: none while service is no longer than the interval; `None` above, since the
/// queue grows without end.
pub fn paced_wait(service: Span, interval: Span) -> Option<Span> {
    (service <= interval).then_some(Span::ZERO)
}

/// Mean wait if `together` packets arrive at one instant at an idle line: (n − 1)/2 service times.
pub fn batch_wait(together: u64, service: Span) -> Span {
    service.scaled(together.saturating_sub(1), 2)
}

/// Utilisation in parts per million: service time / interval.
pub fn utilisation_ppm(service: Span, interval: Span) -> u64 {
    let parts = u128::from(service.as_nanos()) * 1_000_000;
    u64::try_from(parts / u128::from(interval.as_nanos().max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serialisation_knows_the_framings() {
        let t1 = Rate::from_bits_per_second(1_544_000);
        // 256 data bytes and 8 of the frame at 192 kB/s.
        assert_eq!(serialisation(Framing::T1_LAPD, t1, 256, 0).as_nanos(), 264_000_000 / 192);
        // A trailer in a frame of its own: 8 + 4 + 2 stuff bytes, 14 (Hawley 1989 §2.1).
        assert_eq!(serialisation(Framing::T1_LAPD, t1, 4, 2).as_nanos(), 14_000_000 / 192);
        assert_eq!(serialisation(Framing::None, t1, 193, 0), Span::from_millis(1));
    }

    #[test]
    fn queues_of_known_load() {
        let ms = Span::from_millis;
        assert_eq!(poisson_wait(ms(1), ms(2)), Some(Span::from_micros(500)), "ρ = 1/2: τ/2");
        assert_eq!(poisson_wait(ms(2), ms(2)), None);
        assert_eq!((paced_wait(ms(2), ms(2)), paced_wait(ms(3), ms(2))), (Some(Span::ZERO), None));
        assert_eq!(batch_wait(4, ms(2)), ms(3));
        assert_eq!(utilisation_ppm(ms(1), ms(4)), 250_000);
        let rate = Throughput::from_bytes_per_second(176_000);
        assert_eq!(bandwidth_delay_product(rate, ms(10)), 1_760);
        assert_eq!(standing_queue(28_672, rate, ms(10)), 26_912);
        assert_eq!(standing_queue(1_000, rate, ms(10)), 0);
        assert_eq!(round_robin_wait(4, 2, ms(1)), ms(8));
    }

    proptest! {
        #[test]
        fn a_larger_window_is_never_slower(
            window in 1u64..1 << 20, more in 0u64..1 << 20, rtt in 1u64..1 << 40,
        ) {
            let rtt = Span::from_nanos(rtt);
            let (line, host) =
                (Throughput::from_bytes_per_second(176_000), Throughput::UNLIMITED);
            let small = throughput(window, rtt, line, host);
            prop_assert!(throughput(window + more, rtt, line, host) >= small);
            prop_assert!(throughput(window, rtt + rtt, line, host) <= small);
            prop_assert!(small <= line);
        }

        #[test]
        fn bytes_and_time_are_inverse(bytes in 1u64..1 << 40, nanos in 1_000u64..1 << 40) {
            let rate = Throughput::over(bytes, Span::from_nanos(nanos));
            prop_assume!(rate.millibytes_per_second() > 1_000_000);
            let back = rate.time_for(bytes).as_nanos();
            prop_assert!(back >= nanos && back - nanos <= nanos / 1_000_000 + 1);
        }
    }
}

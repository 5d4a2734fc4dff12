//! TCP: what a connection gets by its losses, its window and the length of its transfer.
//!
//! Loss probabilities are per packet and small; windows are in segments, means over time. Roots and
//! powers are taken by a portable library, so that every machine gets the same bits.

use crate::throughput::{SECOND, Throughput};
use trunkline_core::Span;

/// CUBIC's C in segments per second cubed (RFC 9438 §5.1).
pub const CUBIC_C: f64 = 0.4;
/// CUBIC's β (RFC 9438 §4.6).
pub const CUBIC_BETA: f64 = 0.7;

/// `segments` of `mss` bytes in each round trip, as user bytes per second; unlimited for no time.
pub fn rate(segments: f64, mss: u32, round_trip: Span) -> Throughput {
    let nanos = round_trip.as_nanos();
    if nanos == 0 || !segments.is_finite() {
        return Throughput::UNLIMITED;
    }
    let bytes = segments.max(0.0) * f64::from(mss);
    let millibytes = libm::floor(bytes * 1e12 / nanos as f64);
    Throughput::from_millibytes_per_second(millibytes as u64)
}

/// The mean window of Reno by the square-root law: √(3 / (2 b p)) segments (Mathis, Semke, Mahdavi, Ott
/// 1997, *The macroscopic behavior of the TCP congestion avoidance algorithm*, CCR 27(3), equation 3,
/// with C = √(3/2b)).
///
/// `acked` b is the segments that one ACK stands for if ACKs are counted; 1 if bytes are (RFC 3465).
/// Holds for a greedy sender in congestion avoidance, regular and isolated losses, p below about 2 %.
pub fn square_root_window(loss: f64, acked: u32) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    libm::sqrt(3.0 / (2.0 * f64::from(acked.max(1)) * loss))
}

/// The inputs of [`pftk`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pftk {
    /// p: the probability that a packet is lost, given that none before it in its round was.
    pub loss: f64,
    /// RTT, queueing included.
    pub round_trip: Span,
    /// T₀: the first retransmission time-out.
    pub timeout: Span,
    /// b: segments that one ACK stands for.
    pub acked: u32,
    /// W_m: the receiver's window in segments.
    pub window: f64,
}

/// The probability that a loss in a window of `w` segments ends in a time-out: min(1,
/// (1 − (1−p)³)(1 + (1−p)³(1 − (1−p)^(w−3))) / (1 − (1−p)^w)) (Padhye et al. 1998, equation 24).
pub fn timeout_probability(p: f64, w: f64) -> f64 {
    let through = |count: f64| libm::pow(1.0 - p, count);
    let first = (1.0 - through(3.0)) * (1.0 + through(3.0) * (1.0 - through(w - 3.0)));
    (first / (1.0 - through(w))).min(1.0)
}

/// Segments per second by the full model of J. Padhye, V. Firoiu, D. Towsley, J. Kurose, *Modeling TCP
/// Throughput: A Simple Model and its Empirical Validation*, SIGCOMM 1998, equation 32: triple duplicate
/// ACKs, time-outs with their doubling, and the receiver's window.
///
/// It counts what is sent; of that 1 − p arrives. Holds for a greedy Reno sender whose losses come in runs
/// to the end of a round and are independent from round to round, and a round trip that does not depend on
/// the window. `None` for p outside 0 < p < 1.
pub fn pftk(path: &Pftk) -> Option<f64> {
    let Pftk { loss: p, round_trip, timeout, acked, window } = *path;
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let (b, rtt, t0) = (f64::from(acked.max(1)), round_trip.as_secs_f64(), timeout.as_secs_f64());
    let offset = (2.0 + b) / (3.0 * b);
    let free = offset + libm::sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + offset * offset);
    let (w, rounds) = if free < window {
        (free, b / 2.0 * free + 1.0)
    } else {
        (window, b / 8.0 * window + (1.0 - p) / (p * window) + 2.0)
    };
    let q = timeout_probability(p, w);
    let sent = (1.0 - p) / p + w + q / (1.0 - p);
    Some(sent / (rtt * rounds + q * t0 * doublings(p)))
}

/// The length of a sequence of time-outs, each twice the one before, in units of the first:
/// (1 + p + 2p² + 4p³ + 8p⁴ + 16p⁵ + 32p⁶) / (1 − p) (Padhye et al. 1998, equation 29).
pub fn doublings(p: f64) -> f64 {
    let sum = 1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))));
    sum / (1.0 - p)
}

/// The same, simplified: min(W_m / RTT, 1 / (RTT √(2bp/3) + T₀ min(1, 3√(3bp/8)) p (1 + 32p²))) (Padhye et
/// al. 1998, equation 33). `None` for p outside 0 < p < 1.
pub fn pftk_simple(path: &Pftk) -> Option<f64> {
    let Pftk { loss: p, round_trip, timeout, acked, window } = *path;
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let (bp, rtt) = (f64::from(acked.max(1)) * p, round_trip.as_secs_f64());
    let often = (3.0 * libm::sqrt(3.0 * bp / 8.0)).min(1.0);
    let waiting = timeout.as_secs_f64() * often * p * (1.0 + 32.0 * p * p);
    Some((window / rtt).min(1.0 / (rtt * libm::sqrt(2.0 * bp / 3.0) + waiting)))
}

/// The mean window of CUBIC by its own law: (C (3 + β) / (4 (1 − β)))^¼ RTT^¾ / p^¾ segments, 1.054
/// (RTT/p)^¾ (RFC 9438 §5, with C and β put in §5.1).
///
/// Holds for a greedy sender, losses at regular intervals, no time-outs, without fast convergence; valid
/// if it is above Reno's window.
pub fn cubic_window(round_trip: Span, loss: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    cubic_mean(round_trip.as_secs_f64(), loss)
}

/// The same for a round trip in seconds.
pub(crate) fn cubic_mean(round_trip: f64, loss: f64) -> f64 {
    let factor = CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA));
    libm::pow(factor, 0.25) * libm::pow(round_trip / loss, 0.75)
}

/// CUBIC's mean window, its Reno-friendly region included: the larger of its own law and √(3 / 2p)
/// (RFC 9438 §4.3, §5).
pub fn cubic_or_reno_window(round_trip: Span, loss: f64) -> f64 {
    cubic_window(round_trip, loss).max(square_root_window(loss, 1))
}

/// The share of a line that one Reno connection uses whose window moves between half of P + B and P + B, P
/// being what the path holds and B what the buffer does: 3/4 without a buffer, all with B = P.
///
/// Below P the window grows by a segment in each round trip and the line is idle in part; above, it is
/// busy. Worked out from the saw-tooth: data (3P + B)(P − B)/8 in (P − B)/2 round trips, then B(P + B/2) at
/// the full rate. Holds for one greedy connection, one loss in each period, bytes counted.
pub fn reno_utilisation(pipe: u64, buffer: u64) -> f64 {
    let (p, b) = (pipe as f64, buffer as f64);
    if b >= p {
        return 1.0;
    }
    let (idle_data, idle_time) = ((3.0 * p + b) * (p - b) / 8.0, (p - b) / 2.0 * p);
    let full = b * (p + b / 2.0);
    (idle_data + full) / (idle_time + full)
}

/// The same for CUBIC, whose window runs along W(s) = W_max (1 − (1 − β)(1 − s)³) from loss to loss: 0.925
/// without a buffer, all if the buffer holds (1 − β)/β of the path.
///
/// The line is idle in part until W(s) = P. Holds outside the Reno-friendly region, for a greedy connection
/// alone, without fast convergence.
pub fn cubic_utilisation(pipe: u64, buffer: u64) -> f64 {
    let drop = 1.0 - CUBIC_BETA;
    let (p, most) = (pipe as f64, (pipe + buffer) as f64);
    let short = buffer as f64 / most.max(1.0) / drop;
    if pipe == 0 || short >= 1.0 {
        return 1.0;
    }
    // (1 − s)³ when the path is full.
    let left = libm::cbrt(short);
    let until = 1.0 - left;
    let carried = most / p * (until - drop * (1.0 - left * short) / 4.0);
    (carried + left).min(1.0)
}

/// The share of a line that BBR uses: a fiftieth goes into looking for the round trip, 200 ms in every ten
/// seconds (Cardwell et al. 2017).
pub const BBR_UTILISATION: f64 = 0.98;

/// Bytes that BBR hands over at a time at `rate`: a segment up to 1.2 Mbit/s, two up to 24, then what goes out in a
/// millisecond, at most 64 KiB (draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.2). Draining ends with three of
/// them still waiting (§4.2.3.2).
pub fn bbr_burst(rate: Throughput, mss: u32) -> u64 {
    let mss = u64::from(mss);
    match rate.bytes_per_second() {
        rate if rate < 150_000 => mss,
        rate if rate < 3_000_000 => 2 * mss,
        rate => (rate / 1_000).min(64 << 10),
    }
}

/// Throughput of a window that nothing shrinks: W / (RTT + q), q being what each packet waits in queues.
pub fn window_limit(window: u64, round_trip: Span, queue: Span) -> Throughput {
    Throughput::over(window, round_trip + queue)
}

/// The queue at which windows of `flows`, each with its round trip without the queue, take a line's rate:
/// Σ Wᵢ / (rᵢ + q) = C; no time if they do not fill it. To a nanosecond, by halving intervals.
///
/// Holds for windows that nothing shrinks, a FIFO that loses nothing, and a queue that all of them meet.
pub fn window_queue(flows: &[(u64, Span)], rate: Throughput) -> Span {
    let wanted = u128::from(rate.millibytes_per_second());
    let sum = |queue: u64| -> u128 {
        let each = flows.iter().map(|&(window, rtt)| {
            let nanos = (u128::from(rtt.as_nanos()) + u128::from(queue)).max(1);
            u128::from(window) * 1_000 * SECOND / nanos
        });
        each.sum()
    };
    if wanted == 0 || sum(0) <= wanted {
        return Span::ZERO;
    }
    let windows: u64 = flows.iter().map(|&(window, _)| window).sum();
    let (mut low, mut high) = (0, rate.time_for(windows).as_nanos().saturating_add(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if sum(middle) > wanted { low = middle } else { high = middle }
    }
    Span::from_nanos(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() <= tolerance, "{found}, expected {expected}");
    }

    /// √(1.5/p) and 1.054 (RTT/p)^¾, the windows that RFC 9438 §5.1 compares.
    #[test]
    fn windows_of_reno_and_cubic() {
        for (loss, reno) in [(1e-2, 12.2), (1e-3, 38.7), (1e-4, 122.5), (1e-6, 1224.7)] {
            close(square_root_window(loss, 1), reno, 0.005);
        }
        for (millis, loss, window) in
            [(100, 1e-4, 187.0), (100, 1e-5, 1054.0), (100, 1e-6, 5926.0), (10, 1e-8, 33325.0)]
        {
            close(cubic_window(ms(millis), loss), window, 0.003);
        }
        close(cubic_or_reno_window(ms(10), 1e-4), 122.5, 0.001);
        close(cubic_or_reno_window(ms(100), 1e-6), 5926.0, 0.003);
    }

    fn path(loss: f64, window: f64) -> Pftk {
        Pftk { loss, round_trip: ms(200), timeout: ms(2000), acked: 2, window }
    }

    /// For small p the full model is the square-root law, of which it is an extension.
    #[test]
    fn pftk_becomes_the_square_root_law() {
        let found = pftk(&path(1e-6, f64::INFINITY)).unwrap();
        close(found, square_root_window(1e-6, 2) / 0.2, 0.01);
        close(pftk_simple(&path(1e-6, f64::INFINITY)).unwrap(), found, 0.01);
        assert_eq!((pftk(&path(0.0, 10.0)), pftk_simple(&path(1.0, 10.0))), (None, None));
    }

    /// With little loss the receiver's window limits: W_m / RTT.
    #[test]
    fn pftk_knows_the_receivers_window() {
        close(pftk(&path(1e-7, 8.0)).unwrap(), 40.0, 0.01);
        close(pftk_simple(&path(1e-7, 8.0)).unwrap(), 40.0, 1e-9);
    }

    /// By hand, for p = 0.02, b = 2, a window of 6, RTT 0.2 s, T₀ 2 s: 35/3 rounds, Q̂ = 0.5437, f(p) = 1.0417.
    #[test]
    fn pftk_where_window_and_losses_both_count() {
        close(pftk(&path(0.02, 6.0)).unwrap(), 16.028_68, 1e-6);
    }

    /// By hand, for p = 0.1, b = 2, RTT 0.2 s, T₀ 2 s: E[W] = 2/3 + √(12 + 4/9) = 4.194; Q̂ = 0.7036…
    #[test]
    fn pftk_by_hand() {
        let (p, w) = (0.1f64, 2.0 / 3.0 + (12.0f64 + 4.0 / 9.0).sqrt());
        let q =
            (1.0 - 0.729) * (1.0 + 0.729 * (1.0 - 0.9f64.powf(w - 3.0))) / (1.0 - 0.9f64.powf(w));
        let f = 1.0 + 0.1 + 0.02 + 0.004 + 0.0008 + 0.00016 + 0.000032;
        let by_hand = (9.0 + w + q / 0.9) / (0.2 * (w + 1.0) + q * 2.0 * f / (1.0 - p));
        close(pftk(&path(p, 1e9)).unwrap(), by_hand, 1e-9);
        assert!((4.0..4.5).contains(&w) && by_hand < 10.0, "{w} {by_hand}");
    }

    #[test]
    fn saw_teeth_in_small_buffers() {
        for (buffer, reno, cubic) in [
            (0, 0.75, 0.925),
            (100_000, 0.8176, 0.9671),
            (428_572, 0.9494, 1.0),
            (1_000_000, 1.0, 1.0),
        ] {
            close(reno_utilisation(1_000_000, buffer), reno, 1e-4);
            close(cubic_utilisation(1_000_000, buffer), cubic, 1e-4);
        }
        let (mut reno, mut cubic) = (0.0, 0.0);
        for buffer in (0..1_200_000).step_by(10_000) {
            let more = (reno_utilisation(1_000_000, buffer), cubic_utilisation(1_000_000, buffer));
            assert!(more.0 >= reno && more.1 >= cubic && more.0 <= 1.0 && more.1 <= 1.0);
            (reno, cubic) = more;
        }
    }

    proptest! {
        #[test]
        fn more_loss_is_never_faster(
            p in 1e-6f64..0.5, more in 1.01f64..1.9, rtt in 1u64..2_000, timeout in 200u64..60_000,
            acked in 1u32..3, window in 4.0f64..1e6,
        ) {
            let path = Pftk { loss: p, round_trip: ms(rtt), timeout: ms(timeout), acked, window };
            let worse = Pftk { loss: p * more, ..path };
            prop_assert!(pftk_simple(&worse) <= pftk_simple(&path));
            let most = window / path.round_trip.as_secs_f64();
            prop_assert!(pftk_simple(&path).unwrap() <= most);
            prop_assert!(square_root_window(p * more, acked) < square_root_window(p, acked));
            prop_assert!(cubic_window(ms(rtt), p * more) < cubic_window(ms(rtt), p));
        }

        #[test]
        fn windows_fill_the_line_exactly(
            flows in prop::collection::vec((1_000u64..1 << 24, 1u64..1_000_000_000), 1..8),
            rate in 10_000u64..1 << 30,
        ) {
            let flows: Vec<(u64, Span)> =
                flows.into_iter().map(|(window, rtt)| (window, Span::from_nanos(rtt))).collect();
            let rate = Throughput::from_bytes_per_second(rate);
            let queue = window_queue(&flows, rate);
            let each = flows.iter().map(|&(window, rtt)| window_limit(window, rtt, queue));
            let total: u128 = each.map(|t| u128::from(t.millibytes_per_second())).sum();
            prop_assert!(total <= u128::from(rate.millibytes_per_second()));
            if !queue.is_zero() {
                let less = queue.saturating_sub(Span::from_nanos(1));
                let each = flows.iter().map(|&(window, rtt)| window_limit(window, rtt, less));
                let total: u128 = each.map(|t| u128::from(t.millibytes_per_second())).sum();
                prop_assert!(total + flows.len() as u128 >= u128::from(rate.millibytes_per_second()));
            }
        }
    }
}

//! The sharing of a bottleneck by connections with different round trips: the "square-root model after Floyd
//! 1991".
//!
//! S. Floyd, *Connections with Multiple Congested Gateways in Packet-Switched Networks, Part 1: One-way
//! Traffic*, CCR 21(5), 1991, has the heuristic; its body was not at hand, and what is here is worked out
//! from the balance of a window's gain and loss, and not compared with the paper's equations. The gain in
//! a round trip without loss is a segments, the window W is halved once per loss of probability p per
//! packet: a = (W p)(W/2), so W = √(2a/p), and the throughput T = K √(a/p) / r.
//!
//! Assumed: congestion avoidance always, windows large against one segment, round trips that do not
//! depend on the load (or include it), greedy senders, one-way traffic, ACKs neither delayed nor lost.

use super::tcp;
use crate::throughput::Throughput;
use trunkline_core::{Rate, Span};

/// The growth of the window in a round trip without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// a = 1: TCP as it is.
    IncreaseByOne,
    /// a = c r²: the rate, not the window, grows at one speed whatever the round trip (RFC 2760 §3.4).
    ConstantRate,
}

/// The distribution of losses over the connections: the exponent α of T ∝ 1/r^α under increase-by-one.
pub mod exponent {
    /// Every packet is lost with one probability, whosever it is: W ∝ √a, T ∝ 1/r.
    pub const INDEPENDENT: f64 = 1.0;
    /// Every connection loses once in each epoch of congestion: W ∝ a/r, T ∝ 1/r².
    pub const SYNCHRONISED: f64 = 2.0;
}

/// The probability that a packet is lost at one of `gateways` in a row, each losing with `loss`:
/// 1 − (1 − p)ⁿ, near n p.
pub fn loss_along(loss: f64, gateways: u32) -> f64 {
    1.0 - libm::pow(1.0 - loss, f64::from(gateways))
}

/// T₀/T₁ of a connection through `gateways` equally congested gateways, with a round trip `ratio` times
/// that of the connections through one of them: 1/(√n ρ) with increase-by-one, 1/√n with constant rate.
///
/// Independent losses, n p small.
pub fn long_to_short(policy: Policy, gateways: u32, ratio: f64) -> f64 {
    let lost = libm::sqrt(f64::from(gateways.max(1)));
    match policy {
        Policy::IncreaseByOne => 1.0 / (lost * ratio),
        Policy::ConstantRate => 1.0 / lost,
    }
}

/// The long connection's share of one gateway that it shares with `shorts` short ones:
/// 1 / (1 + m T₁/T₀) = 1 / (1 + m √n ρ) with increase-by-one.
pub fn share_of_long(policy: Policy, gateways: u32, ratio: f64, shorts: u32) -> f64 {
    1.0 / (1.0 + f64::from(shorts) / long_to_short(policy, gateways, ratio))
}

/// The share of the longer of two connections on one bottleneck: 1 / (1 + ρ^α).
pub fn share_of_longer(ratio: f64, exponent: f64) -> f64 {
    1.0 / (1.0 + libm::pow(ratio, exponent))
}

/// The shares of connections with `round_trips` on one bottleneck, 1/r^α each of the sum with
/// increase-by-one, the same for all with constant rate (whose a ∝ r² undoes the round trip for either
/// way of losing). They sum to 1.
pub fn shares(policy: Policy, round_trips: &[Span], exponent: f64) -> Vec<f64> {
    let shortest = round_trips.iter().min().copied().unwrap_or(Span::ZERO);
    let shortest = shortest.as_nanos().max(1) as f64;
    let weight = |rtt: &Span| match policy {
        Policy::ConstantRate => 1.0,
        Policy::IncreaseByOne => libm::pow(shortest / rtt.as_nanos().max(1) as f64, exponent),
    };
    let weights: Vec<f64> = round_trips.iter().map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Shares of `capacity` by `weights`, none above its cap; what a cap leaves goes to the others by their
/// weights. Caps that do not add up to the capacity leave the rest unused.
///
/// With W/(RTT + q) for caps this is min(model, window limit).
pub fn capped(weights: &[f64], caps: &[Throughput], capacity: Throughput) -> Vec<Throughput> {
    let mut granted: Vec<Option<u64>> = vec![None; weights.len()];
    loop {
        let taken: u64 = granted.iter().flatten().sum();
        let left = capacity.millibytes_per_second().saturating_sub(taken);
        let open = || (0..weights.len()).filter(|&index| granted[index].is_none());
        let sum: f64 = open().map(|index| weights[index]).sum();
        let share = |index: usize| libm::floor(left as f64 * (weights[index] / sum)) as u64;
        let cap = |index: usize| caps[index].millibytes_per_second();
        let over: Vec<usize> = open().filter(|&index| share(index) > cap(index)).collect();
        if over.is_empty() {
            let shares: Vec<u64> =
                (0..weights.len()).map(|i| granted[i].unwrap_or_else(|| share(i))).collect();
            return shares.into_iter().map(Throughput::from_millibytes_per_second).collect();
        }
        over.into_iter().for_each(|index| granted[index] = Some(cap(index)));
    }
}

/// The ratio of two round trips when each packet waits `queue` besides: (r₀ + q) / (r₁ + q). The nominal
/// ratio is that without a queue.
pub fn effective_ratio(long: Span, short: Span, queue: Span) -> f64 {
    (long + queue).as_nanos() as f64 / (short + queue).as_nanos().max(1) as f64
}

/// The shares of connections with constant windows at a bottleneck whose buffer never overflows: the standing
/// queue q of Σ Wᵢ/(rᵢ + q) = C, and each one's Wᵢ/(rᵢ + q).
pub fn window_limited(windows: &[(u64, Span)], rate: Rate) -> (Span, Vec<Throughput>) {
    let queue = tcp::window_queue(windows, Throughput::from(rate));
    let each = windows.iter().map(|&(window, rtt)| tcp::window_limit(window, rtt, queue));
    (queue, each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// Whether a share is the printed one, to a tenth of a per cent.
    fn printed(share: f64, percent: f64) {
        assert!((share * 100.0 - percent).abs() < 0.0501, "{share}, printed {percent} %");
    }

    /// What the experiment of the LDS report could carry: 133 Mbit/s and windows of 64 KB (§3.10).
    const GOODPUT: Rate = Rate::from_bits_per_second(133_000_000);
    const WINDOW: u64 = 64 << 10;
    /// Nanoseconds of a cell at 149.76 Mbit/s.
    const CELL: f64 = 424.0 / 0.149_76;

    #[test]
    fn shares_by_congested_gateways() {
        for (n, constant, by_one) in
            [(1, 50.0, 50.0), (2, 41.4, 26.1), (3, 36.6, 16.1), (5, 30.9, 8.2), (10, 24.0, 3.1)]
        {
            printed(share_of_long(Policy::ConstantRate, n, f64::from(n), 1), constant);
            printed(share_of_long(Policy::IncreaseByOne, n, f64::from(n), 1), by_one);
            // n^(−3/2) with r₀ = n r₁.
            let ratio = long_to_short(Policy::IncreaseByOne, n, f64::from(n));
            assert!((ratio * libm::pow(f64::from(n), 1.5) - 1.0).abs() < 1e-12);
            // The exact loss along n gateways is near n p.
            assert!((loss_along(1e-4, n) / (f64::from(n) * 1e-4) - 1.0).abs() < 1e-3);
        }
        // Three short ones at each of four gateways, ρ = 2: 1/(1 + 3 · 2 · 2).
        assert!((share_of_long(Policy::IncreaseByOne, 4, 2.0, 3) - 1.0 / 13.0).abs() < 1e-12);
    }

    #[test]
    fn shares_and_caps_by_ratio() {
        let standing = Span::from_nanos((1_000.0 * CELL) as u64);
        let cap = |rho: u64, queue: Span| {
            let rate = tcp::window_limit(WINDOW, ms(rho), queue);
            let whole = Throughput::from(GOODPUT).millibytes_per_second();
            (rate.millibytes_per_second() as f64 / whole as f64).min(1.0)
        };
        for (rho, one, middle, two, empty, queued) in [
            (1, 50.0, 50.0, 50.0, 100.0, 100.0),
            (2, 33.3, 26.1, 20.0, 100.0, 81.6),
            (3, 25.0, 16.1, 10.0, 100.0, 67.6),
            (5, 16.7, 8.2, 3.8, 78.8, 50.3),
            (7, 12.5, 5.1, 2.0, 56.3, 40.1),
            (10, 9.1, 3.1, 1.0, 39.4, 30.7),
            (15, 6.2, 1.7, 0.4, 26.3, 22.1),
            (20, 4.8, 1.1, 0.2, 19.7, 17.3),
        ] {
            for (exponent, share) in [(1.0, one), (1.5, middle), (2.0, two)] {
                printed(share_of_longer(rho as f64, exponent), share);
            }
            printed(cap(rho, Span::ZERO), empty);
            printed(cap(rho, standing), queued);
            // Remark 1: the cap lies above the model's share at every ratio.
            assert!(queued >= one);
        }
    }

    /// Remark 2: windows held in full need more than the 1200 cells of the buffer at every ratio.
    #[test]
    fn windows_in_an_unlimited_buffer() {
        for (rho, queue, cells, share) in [
            (1, 6.9, 2_431, 50.0),
            (2, 6.4, 2_266, 46.8),
            (5, 5.4, 1_894, 38.0),
            (10, 4.4, 1_563, 27.3),
            (20, 3.7, 1_317, 16.6),
        ] {
            let (standing, each) = window_limited(&[(WINDOW, ms(rho)), (WINDOW, ms(1))], GOODPUT);
            assert!((standing.as_millis_f64() - queue).abs() < 0.051, "{rho}: {standing}");
            let found = standing.as_nanos() as f64 / CELL;
            assert!((found - f64::from(cells)).abs() < 1.0, "{rho}: {found} cells");
            assert!(found > 1_200.0);
            let long = each[0].millibytes_per_second() as f64;
            let whole = long + each[1].millibytes_per_second() as f64;
            printed(long / whole, share);
        }
    }

    /// Remark 3: half a buffer, 1.7 ms, narrows the ratios.
    #[test]
    fn queueing_narrows_the_ratio() {
        let queue = Span::from_micros(1_700);
        for (nominal, effective) in [(2, 1.37), (5, 2.48), (10, 4.33), (20, 8.04)] {
            let found = effective_ratio(ms(nominal), ms(1), queue);
            assert!((found - effective).abs() < 0.005, "{nominal}: {found}");
            assert_eq!(effective_ratio(ms(nominal), ms(1), Span::ZERO), nominal as f64);
        }
    }

    #[test]
    fn what_a_cap_leaves_goes_to_the_others() {
        let rate = Throughput::from_bytes_per_second;
        let given = |caps: [u64; 3]| {
            let caps = caps.map(rate);
            let each = capped(&[1.0, 1.0, 2.0], &caps, rate(400));
            each.into_iter().map(Throughput::bytes_per_second).collect::<Vec<_>>()
        };
        assert_eq!(given([1_000, 1_000, 1_000]), [100, 100, 200]);
        assert_eq!(given([40, 1_000, 1_000]), [40, 120, 240]);
        assert_eq!(given([40, 110, 1_000]), [40, 110, 250]);
        assert_eq!(given([10, 20, 30]), [10, 20, 30], "the rest stays unused");
    }

    #[test]
    fn policies() {
        let round_trips = [ms(10), ms(1)];
        let by_one = |alpha| shares(Policy::IncreaseByOne, &round_trips, alpha)[0];
        printed(by_one(exponent::INDEPENDENT), 9.1);
        printed(by_one(exponent::SYNCHRONISED), 1.0);
        assert_eq!(shares(Policy::ConstantRate, &round_trips, 2.0), [0.5, 0.5]);
    }

    proptest! {
        #[test]
        fn shares_sum_to_one_and_longer_never_gets_more(
            rtts in prop::collection::vec(1u64..1 << 40, 1..10), alpha in 0.0f64..3.0,
        ) {
            let mut rtts: Vec<Span> = rtts.into_iter().map(Span::from_nanos).collect();
            rtts.sort_unstable();
            for policy in [Policy::IncreaseByOne, Policy::ConstantRate] {
                let shares = shares(policy, &rtts, alpha);
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]));
            }
        }

        #[test]
        fn no_more_is_given_than_there_is_and_nothing_above_its_cap(
            flows in prop::collection::vec((0.001f64..1000.0, 0u64..1 << 30), 1..10),
            capacity in 0u64..1 << 32,
        ) {
            let weights: Vec<f64> = flows.iter().map(|flow| flow.0).collect();
            let caps: Vec<Throughput> =
                flows.iter().map(|flow| Throughput::from_bytes_per_second(flow.1)).collect();
            let capacity = Throughput::from_bytes_per_second(capacity);
            let given = capped(&weights, &caps, capacity);
            let millis = |t: &Throughput| u128::from(t.millibytes_per_second());
            let sum: u128 = given.iter().map(millis).sum();
            prop_assert!(given.iter().zip(&caps).all(|(given, cap)| given <= cap));
            prop_assert!(sum <= millis(&capacity) + 1);
            let room: u128 = caps.iter().map(millis).sum::<u128>().min(millis(&capacity));
            prop_assert!(sum + 20 + room / 1_000_000_000 >= room, "{sum} of {room}");
        }
    }
}

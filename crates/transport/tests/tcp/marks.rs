//! Controllers that are told of each mark, over queues that mark from a length on.

use crate::pair::{Network, Pair, at, mark};
use std::cell::RefCell;
use std::rc::Rc;
use trunkline_core::{Ecn, Span, Time};
use trunkline_transport::tcp::Settings;
use trunkline_transport::tcp::congestion::Kind;

/// Octets of data in a full segment, and of its packet.
const MSS: u32 = 1000;
const PACKET: u64 = 1052;

/// What a queue saw after its warm-up.
#[derive(Default)]
struct Seen {
    packets: u64,
    marked: u64,
    octets: u64,
    /// The shortest and the longest queue in packets.
    least: u64,
    most: u64,
}

/// A line of `rate` packets per second, `delay` each way, that marks every packet that finds `threshold` packets or more.
/// No packet is dropped.
fn step_marking(
    rate: u64,
    threshold: u64,
    delay: Span,
    warm: Time,
) -> (Network, Rc<RefCell<Seen>>) {
    let seen = Rc::new(RefCell::new(Seen { least: u64::MAX, ..Seen::default() }));
    let (book, mut free) = (Rc::clone(&seen), Time::ZERO);
    let service = Span::from_nanos(1_000_000_000 / rate);
    let network: Network = Box::new(move |passing| {
        if passing.way == 1 {
            return vec![delay];
        }
        let queued = free.since(passing.now).as_nanos().div_ceil(service.as_nanos());
        if queued >= threshold {
            mark(passing.segment);
        }
        if passing.now >= warm {
            let mut seen = book.borrow_mut();
            seen.packets += 1;
            seen.marked += u64::from(passing.segment.ecn == Ecn::Ce);
            seen.octets += u64::from(passing.segment.size());
            (seen.least, seen.most) = (seen.least.min(queued), seen.most.max(queued));
        }
        free = free.max(passing.now) + service;
        vec![free.since(passing.now) + delay]
    });
    (network, seen)
}

fn settings(kind: Kind) -> Settings {
    Settings { mss: MSS + 12, receive_buffer: 8 << 20, send_buffer: 8 << 20, ..Settings::default() }
        .with_congestion(kind)
}

/// One flow of `settings` alone over a step-marking queue, for `seconds`.
fn alone(
    settings: Settings,
    (rate, rtt_millis, threshold): (u64, u64, u64),
    seconds: u64,
) -> (f64, f64, u64, u64) {
    let half = Span::from_micros(rtt_millis * 500);
    let (network, seen) = step_marking(rate, threshold, half, at(10_000));
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, u32::MAX);
    pair.run(at(seconds * 1000));
    assert_eq!(pair.ends[0].counters().sending.retransmitted, 0);
    let seen = seen.borrow();
    let full = seen.octets as f64 / ((seconds - 10) * rate * PACKET) as f64;
    (full, seen.marked as f64 / seen.packets as f64, seen.least, seen.most)
}

const LINES: [(u64, u64, u64); 3] = [(100_000, 1, 20), (20_000, 20, 65), (50_000, 10, 80)];

/// The share of marked packets of one flow whose window is marked from `window` segments on: one round trip in each period
/// of T. A period has the round trip that a mark takes to be heard, the one after the reduction, in which the window stands
/// still (as after any mark, RFC 3168 §6.1.2), and one for each segment of a reduction by half of alpha. Alpha decays by
/// q = 15/16 in each of them but the marked one, to a = (1 − q)·q^(T−1)/(1 − q^T).
fn share(window: f64) -> f64 {
    let q = 15.0f64 / 16.0;
    let period = |t: f64| window * (1.0 - q) * q.powf(t - 1.0) / (1.0 - q.powf(t)) / 2.0 + 2.0;
    let (mut low, mut high) = (2.0, window);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if period(middle) > middle { low = middle } else { high = middle }
    }
    1.0 / low
}

/// Marks begin at W = C·RTT + K. The published share solves α²·(1 − α/4) = (2W + 1)/(W + 1)², about √(2/W), and the queue
/// swings by W·α/2 below K + 1 (Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, §3.3, equations 5 to 10). It takes
/// alpha to be the same at all times and the sender to grow in every round trip, which [`share`] does not.
#[test]
fn dctcp_has_the_published_alpha_and_queue() {
    for line in LINES {
        let (rate, rtt_millis, threshold) = line;
        let each = Settings { delayed_ack: None, ..settings(Kind::DCTCP) };
        let (full, marked, least, most) = alone(each, line, 40);
        let window = (rate * rtt_millis) as f64 / 1e3 + threshold as f64;
        let (published, alpha) = ((2.0 / window).sqrt(), share(window));
        let (swing, law) = ((most - least) as f64, window * published / 2.0);
        println!(
            "{line:?}: {full:.4} of the line, marked {marked:.4} for {alpha:.4} ({published:.4}), \
             queue {least} to {most}, swing {swing} for {law:.1}"
        );
        assert!(full > 0.999, "{full}");
        assert!((marked / alpha - 1.0).abs() < 0.1, "{marked} of {alpha}");
        assert!((marked / published - 1.0).abs() < 0.2, "{marked} of {published}");
        assert!(most <= threshold + 2, "{most} over {threshold}");
        assert!((swing - law).abs() < 3.0 + 0.2 * law, "{swing} for {law}");
    }
}

/// With an acknowledgement for every other segment packets come in pairs, so that marks begin a packet earlier. The
/// line stays full and the queue near the threshold.
#[test]
fn dctcp_keeps_the_queue_near_the_threshold() {
    for line in LINES {
        let (full, marked, least, most) = alone(settings(Kind::DCTCP), line, 40);
        println!("{line:?}: {full:.4} of the line, marked {marked:.4}, queue {least} to {most}");
        assert!(full > 0.999, "{full}");
        assert!(least > 0 && most <= line.2 + 3, "{least} to {most}");
    }
}

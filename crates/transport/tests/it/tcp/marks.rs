//! Controllers that are told of each mark, over queues that mark from a length on.

use crate::tcp::pair::{Network, Pair, Sent, at, mark, millis};
use std::cell::RefCell;
use std::rc::Rc;
use trunkline_core::{Ecn, Span, Time};
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Flags, Seq, Settings, Tcp};

/// Octets of data in a full segment, and of its packet.
const MSS: u32 = 1000;
const PACKET: u64 = 1052;

/// The observations of a queue after its warm-up.
#[derive(Default)]
struct Seen {
    packets: u64,
    marked: u64,
    octets: u64,
    /// The shortest and the longest queue in packets.
    least: u64,
    most: u64,
}

/// A line of `rate` packets per second, `delay` each way, that marks every packet that finds `threshold` packets or
/// more. No packet is dropped.
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

fn settings(kind: Algorithm) -> Settings {
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

/// The share of marked packets of one flow whose window is marked from `window` segments on: one round trip in each
/// period of T. A period has the round trip that a mark takes to be heard, the one after the reduction, in which the
/// window stands still (as after any mark, RFC 3168 §6.1.2), and one for each segment of a reduction by half of alpha.
/// Alpha decays by q = 15/16 in each of them but the marked one, to a = (1 − q)·q^(T−1)/(1 − q^T).
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

/// Marks begin at W = C·RTT + K. The published share solves α²·(1 − α/4) = (2W + 1)/(W + 1)², about √(2/W), and the
/// queue swings by W·α/2 below K + 1 (Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, §3.3, equations 5 to 10). It
/// takes alpha to be the same at all times and the sender to grow in every round trip, which [`share`] does not.
#[test]
fn dctcp_has_the_published_alpha_and_queue() {
    for line in LINES {
        let (rate, rtt_millis, threshold) = line;
        let each = Settings { delayed_ack: None, ..settings(Algorithm::DCTCP) };
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
        let (full, marked, least, most) = alone(settings(Algorithm::DCTCP), line, 40);
        println!("{line:?}: {full:.4} of the line, marked {marked:.4}, queue {least} to {most}");
        assert!(full > 0.999, "{full}");
        assert!(least > 0 && most <= line.2 + 3, "{least} to {most}");
    }
}

/// Marks one data segment in `every`, each way 5 ms.
fn some_marked(every: usize) -> Network {
    Box::new(move |passing| {
        if passing.number % every == every - 1 && passing.segment.data.len > 0 {
            mark(passing.segment);
        }
        vec![millis(5)]
    })
}

fn opened(settings: [Settings; 2], every: usize) -> Pair {
    let mut pair = Pair::opening(settings, [Seq::new(77); 2], some_marked(every)).traced();
    pair.offer(0, 400_000);
    pair.run(at(60_000));
    assert_eq!(pair.taken[1], 400_000, "{}", pair.state());
    pair
}

/// The segments that went one way, SYN first.
fn gone(pair: &Pair, way: usize) -> Vec<&Sent> {
    pair.trace.as_ref().unwrap().iter().filter(|sent| sent.way == way).collect()
}

/// Octets that acknowledgements with ECE cover are those that came marked, however acknowledgements are held back
/// (RFC 8257 §3.2).
#[test]
fn each_marked_octet_is_told_of_by_ece() {
    for (every, ack_every) in [(2, 2), (3, 2), (7, 2), (50, 2), (5, 8), (11, 16)] {
        let told = Settings { ack_every, ..settings(Algorithm::DCTCP) };
        let pair = opened([told; 2], every);
        let data = gone(&pair, 0);
        let marked: u64 = data
            .iter()
            .enumerate()
            .filter(|(number, sent)| number % every == every - 1 && sent.segment.data.len > 0)
            .map(|(_, sent)| u64::from(sent.segment.data.len))
            .sum();
        let (mut acked, mut echoed) = (1, 0);
        for sent in gone(&pair, 1).into_iter().filter(|sent| !sent.segment.flags.has(Flags::SYN)) {
            let ack = u64::from(sent.segment.ack.get()) - 77;
            echoed += if sent.segment.flags.has(Flags::ECE) { ack - acked } else { 0 };
            acked = ack;
        }
        assert_eq!(echoed, marked, "one in {every}, an acknowledgement for {ack_every}");
        assert!(data.iter().all(|sent| sent.segment.ecn != Ecn::NotEct), "RFC 8257 §3.6");
    }
}

/// RFC 9768 tables 2 and 3 by the letter, and a count that misses no mark.
#[test]
fn marks_are_counted_from_the_handshake_on() {
    for every in [2, 3, 10] {
        let pair = opened([settings(Algorithm::PRAGUE); 2], every);
        let (there, back) = (gone(&pair, 0), gone(&pair, 1));
        let ace = |sent: &Sent| sent.segment.flags.ace();
        assert_eq!(
            [ace(there[0]), ace(back[0]), ace(there[1])],
            [0b111, 0b010, 5],
            "data carry the count"
        );
        assert_eq!(there[0].segment.ecn, Ecn::NotEct);
        assert!(there[1..].iter().chain(&back[1..]).all(|sent| sent.segment.ecn == Ecn::Ect1));
        let [sender, receiver] = pair.ends.each_ref().map(Tcp::counters);
        assert!(receiver.receiving.marked > 30);
        assert_eq!(sender.sending.echoes, u64::from(receiver.receiving.marked));
        assert!(sender.sending.echo_reductions > 0);
    }
}

/// The handshake's last acknowledgement tells what the answer to the SYN came with; the count begins after it.
#[test]
fn an_acknowledgement_without_data_greets() {
    let network = some_marked(usize::MAX);
    let ends = [settings(Algorithm::PRAGUE); 2];
    let mut pair = Pair::opening(ends, [Seq::new(77); 2], network).traced();
    pair.run(at(1000));
    pair.offer(1, 10_000);
    pair.run(at(2000));
    let aces: Vec<u8> = gone(&pair, 0).iter().map(|sent| sent.segment.flags.ace()).collect();
    assert_eq!(aces[..2], [0b111, 0b010]);
    assert!(aces.len() > 3 && aces[2..].iter().all(|&ace| ace == 5), "{aces:?}");
    assert_eq!(pair.ends.each_ref().map(|end| end.counters().sending.echoes), [0; 2]);
}

/// Who meets an end that knows RFC 3168 only goes by that, with ECT(0) and half the window for a mark; who meets one
/// that knows neither sends nothing that can be marked (RFC 9768 §3.1.2, RFC 9331 §4.2).
#[test]
fn without_a_counting_peer_prague_is_a_classic_sender() {
    let prague = settings(Algorithm::PRAGUE);
    let reno = settings(Algorithm::NEW_RENO);
    for ends in [[prague, Settings { ecn: true, ..reno }], [Settings { ecn: true, ..reno }, prague]]
    {
        let pair = opened(ends, 10);
        let data = gone(&pair, 0).into_iter().filter(|sent| sent.segment.data.len > 0);
        assert!(data.into_iter().all(|sent| sent.segment.ecn == Ecn::Ect0));
        assert!(pair.ends[0].counters().sending.echo_reductions > 0);
    }
    let pair = opened([prague, reno], 10);
    assert!(gone(&pair, 0).iter().all(|sent| sent.segment.ecn == Ecn::NotEct));
}

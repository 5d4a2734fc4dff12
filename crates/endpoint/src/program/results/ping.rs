//! ping of iputils: text, a line for each answer.

use super::{Reading, seconds};
use trunkline_core::Span;

/// Bytes of ICMP's header, which ping counts.
const HEADER: u64 = 8;

/// Adds a sample for each answer, and what was lost.
pub(super) fn read(reading: &mut Reading<'_>) -> Option<()> {
    let output = reading.output().to_owned();
    let (sent, received) = output.lines().find_map(summary)?;
    let mut bytes = 0;
    let mut start = reading.outcome.client.started;
    for answer in output.lines().filter_map(answer) {
        // Without time stamps only the order is known.
        start = match answer.at {
            Some(at) => reading.monotonic(at).before(answer.rtt),
            None => start,
        };
        reading.numbered(answer.number.saturating_sub(1), answer.bytes, start, &[answer.rtt]);
        start += answer.rtt;
        bytes += answer.bytes;
    }
    (reading.run.packets_sent, reading.run.packets_received) = (sent, received);
    reading.run.delivered_bytes = bytes;
    if received < sent {
        reading.note(format!("ping: {} of {sent} were not answered", sent - received));
    }
    Some(())
}

struct Answer {
    /// Nanoseconds since 1970.
    at: Option<u64>,
    bytes: u64,
    number: u32,
    rtt: Span,
}

/// `[1700000000.123456] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.045 ms`; copies are left out.
fn answer(line: &str) -> Option<Answer> {
    let (at, line) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((at, rest)) => (nanos(at), rest),
        None => (None, line),
    };
    let (bytes, rest) = line.split_once(" bytes from ")?;
    let field = |name: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(name));
    let millis: f64 = field("time=")?.parse().ok()?;
    let number = field("icmp_seq=")?.parse().ok()?;
    // An IPv4 packet is no longer than 16 bits say (RFC 791 §3.1).
    let bytes = u64::from(bytes.parse::<u16>().ok()?).saturating_sub(HEADER);
    let rtt = seconds(millis / 1e3);
    (!rest.ends_with("(DUP!)")).then_some(Answer { at, bytes, number, rtt })
}

/// Seconds and microseconds, exactly.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let whole = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(micros.parse::<u64>().ok()?.checked_mul(1000)?)
}

/// `3 packets transmitted, 3 received, 0% packet loss, time 419ms`
fn summary(line: &str) -> Option<(u64, u64)> {
    let (sent, rest) = line.split_once(" packets transmitted, ")?;
    let (received, _) = rest.split_once(" received")?;
    Some((sent.parse().ok()?, received.parse().ok()?)).filter(|(sent, received)| received <= sent)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_recorded;
    use super::*;

    #[test]
    fn a_recorded_run_is_read() {
        let text = include_str!("../../../tests/data/ping.txt");
        let run = read_recorded("ping -D x", text, None);
        let rtts: Vec<u64> = run.samples.iter().map(|it| it.delay().as_nanos()).collect();
        assert_eq!(rtts, [33_000, 34_000, 32_000]);
        assert!(run.samples.iter().all(|sample| sample.size == 100));
        let gap = run.samples[1].start - run.samples[0].start;
        assert_eq!(gap, Span::from_nanos(207_896_000));
        assert_eq!((run.packets_sent, run.packets_received, run.notes.len()), (3, 3, 0));
    }

    #[test]
    fn losses_and_copies_are_told() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=2 ttl=64 time=1.5 ms\n\
                    64 bytes from 10.0.0.1: icmp_seq=2 ttl=64 time=1.6 ms (DUP!)\n\
                    3 packets transmitted, 1 received, +1 duplicates, 66% packet loss, time 2ms\n";
        let run = read_recorded("ping x", text, None);
        assert_eq!((run.samples.len(), run.samples[0].index), (1, 1));
        assert_eq!(run.notes[0].text, "ping: 2 of 3 were not answered");
    }
}

//! iperf3: the JSON of its `-J`, of the client and, if the data go there, of the server.

use super::{Reading, is_rate, seconds};
use crate::program::child::{Ending, Finished};
use serde_json::Value;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};

/// Adds a sample for each interval at the receiving side, or one for the whole if that side has told of
/// none. Times count from the program's start: iperf3 tells its own to the second only.
pub(super) fn read(reading: &mut Reading<'_>) -> Option<()> {
    let client = reports(reading.output()).pop()?;
    let stopped = reading.outcome.client.ending == Ending::Stopped;
    if let Some(error) = client.get("error").and_then(Value::as_str).filter(|_| !stopped) {
        // It ends with status 0 all the same.
        reading.run.notes.push(Note::failed(&format!("iperf3: {error}")));
        return Some(());
    }
    let end = client.get("end")?;
    let reverse = client.pointer("/start/test_start/reverse").and_then(Value::as_u64) == Some(1);
    let server = reading.outcome.server.as_ref().map(|server| reports(&server.output));
    let server =
        server.unwrap_or_default().into_iter().rfind(|report| !intervals(report, None).is_empty());
    // What has arrived at the server a client is told at the end; one that was stopped says that it was nothing.
    let receiver = if stopped && !reverse { server.as_ref() } else { Some(&client) };
    let Some(received) = receiver.and_then(|report| report.get("end")) else {
        let text =
            "iperf3: stopped before it was told what arrived, and the server has not said either";
        reading.run.notes.push(Note::new(NoteKind::Unfinished, text));
        return Some(());
    };
    if totals(reading, end, received).is_none() && !stopped {
        return None;
    }
    if !is_rate(&reading.outcome.plan.workload) {
        return without_delays(reading, received);
    }
    let source = if reverse { Some(&client) } else { server.as_ref() };
    let found = source.map(|source| intervals(source, sent_until(end))).unwrap_or_default();
    let sum = found.iter().try_fold(0u64, |sum, (_, _, bytes)| sum.checked_add(*bytes))?;
    if found.is_empty() {
        whole(reading, received)?;
        reading.note(
            "iperf3: one figure for the whole run: the receiver's intervals are not known".into(),
        );
    }
    let origin = reading.outcome.client.started;
    for (from, span, bytes) in found {
        reading.sample(bytes, origin + from, &[span]);
    }
    reading.run.delivered_bytes = reading.run.delivered_bytes.max(sum);
    Some(())
}

/// Of a traffic whose figure is a delay: iperf3 measures none, and an interval is none either.
fn without_delays(reading: &mut Reading<'_>, received: &Value) -> Option<()> {
    let Finished { started, ended, .. } = reading.outcome.client;
    let (bytes, ran) = (reading.run.delivered_bytes, ended.since(started));
    let sum = received.get("sum_received").or_else(|| received.get("sum"))?;
    let number = |name: &str| sum.get(name).and_then(Value::as_f64);
    // A server whose client was stopped takes the time to its last interval for all.
    let told =
        number("bits_per_second").filter(|_| reading.outcome.client.ending == Ending::Natural);
    let rate = told.unwrap_or(bytes as f64 * 8.0 / ran.as_secs_f64()) / 1e6;
    let jitter = received.pointer("/sum/jitter_ms").and_then(Value::as_f64);
    let jitter = jitter.map(|jitter| format!(", jitter {jitter:.3} ms")).unwrap_or_default();
    reading.note(format!("iperf3: {rate:.3} Mbit/s received{jitter}; it measures no delays"));
    Some(())
}

/// What the client has sent, and what was received by the report of who knows it.
fn totals(reading: &mut Reading<'_>, end: &Value, received: &Value) -> Option<()> {
    let number = |path: &str| received.pointer(path).and_then(Value::as_u64);
    reading.run.delivered_bytes = number("/sum_received/bytes").or_else(|| number("/sum/bytes"))?;
    let again = end.pointer("/sum_sent/retransmits").and_then(Value::as_u64);
    reading.run.retransmissions = again.unwrap_or(0);
    if let (Some(lost), Some(packets)) = (number("/sum/lost_packets"), number("/sum/packets")) {
        reading.run.packets_sent = packets;
        reading.run.packets_received = packets.saturating_sub(lost);
        reading.note(format!("iperf3: {lost} of {packets} datagrams lost"));
    }
    Some(())
}

fn whole(reading: &mut Reading<'_>, end: &Value) -> Option<()> {
    let sum = end.get("sum_received").or_else(|| end.get("sum"))?;
    let (from, span, bytes) = interval(sum)?;
    let origin = reading.outcome.client.started;
    reading.sample(bytes, origin + from, &[span]);
    Some(())
}

/// When the client stopped sending, from its `end`.
fn sent_until(end: &Value) -> Option<Span> {
    let until = |name: &str| end.pointer(name).and_then(Value::as_f64);
    until("/sum_sent/end").or_else(|| until("/sum/end")).map(seconds)
}

/// Start, length and bytes of each interval, without those left out (`-O`) and the remnant at the end, which is short, or long
/// if the server hears late that the client has ended. It may be as long as any other, and even empty: what begins when all was
/// `sent` is part of it. A server whose client was stopped tells of the last one twice.
fn intervals(report: &Value, sent: Option<Span>) -> Vec<(Span, Span, u64)> {
    let listed = report.get("intervals").and_then(Value::as_array);
    let sums = listed.into_iter().flatten().filter_map(|entry| entry.get("sum"));
    let counted = sums.filter(|sum| sum.get("omitted").and_then(Value::as_bool) != Some(true));
    let mut found: Vec<_> = counted.filter_map(interval).collect();
    found.dedup_by_key(|&mut (from, ..)| from);
    let mut spans: Vec<Span> = found.iter().map(|&(_, span, _)| span).collect();
    spans.sort_unstable();
    let usual = spans.get(spans.len() / 2).copied().unwrap_or(Span::ZERO);
    let end = sent.map_or(Span::MAX, |sent| sent.saturating_sub(usual.scaled(1, 2)));
    found.retain(|&(from, ..)| from < end);
    found.pop_if(|&mut (_, span, _)| span > usual.scaled(3, 2));
    found.retain(|&(_, span, _)| span >= usual.scaled(1, 2));
    found
}

fn interval(sum: &Value) -> Option<(Span, Span, u64)> {
    let time = |name: &str| sum.get(name).and_then(Value::as_f64).map(seconds);
    let (from, until) = (time("start")?, time("end")?);
    let bytes = sum.get("bytes").and_then(Value::as_u64)?;
    Some((from, until.saturating_sub(from), bytes)).filter(|(_, span, _)| !span.is_zero())
}

/// A server prints a report for each test, one after the other.
fn reports(text: &str) -> Vec<Value> {
    let Some(first) = text.find('{') else { return Vec::new() };
    let stream = serde_json::Deserializer::from_str(&text[first..]).into_iter();
    stream.map_while(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{rate_plan, read_recorded_of, read_stopped_of};
    use super::*;
    use crate::plan::FlowPlan;
    use crate::run::FlowRun;

    fn read_recorded(command: &str, output: &str, server: Option<&str>) -> FlowRun {
        read_recorded_of(&rate_plan(), command, output, server)
    }

    const CLIENT: &str = include_str!("../../../tests/data/iperf3-client.json");
    const SERVER: &str = include_str!("../../../tests/data/iperf3-server.json");
    const UDP: &str = include_str!("../../../tests/data/iperf3-udp.json");
    const REFUSED: &str = include_str!("../../../tests/data/iperf3-refused.json");

    #[test]
    fn the_servers_intervals_are_the_receivers() {
        let run = read_recorded("iperf3 -c x -J", CLIENT, Some(SERVER));
        assert_eq!((run.delivered_bytes, run.retransmissions), (655_360, 0));
        let [sample] = &run.samples[..] else { panic!("{run:?}") };
        // The recorded server was interrupted last; the report of the UDP test before is the one read.
        assert_eq!((sample.size, sample.delay()), (131_072, Span::from_micros(1_000_278)));
        assert_eq!(sample.start.as_nanos(), 10_000_000_000);
    }

    #[test]
    fn without_a_servers_report_the_whole_is_known() {
        let run = read_recorded("iperf3 -c x -J", CLIENT, None);
        assert_eq!((run.samples.len(), run.samples[0].size), (1, 655_360));
        assert!(run.notes[0].text.contains("whole run"));
        let run = read_recorded("iperf3 -u -c x -J", UDP, None);
        assert_eq!((run.packets_sent, run.packets_received), (4, 4));
        let plan = crate::plan::tests::plan();
        let run = read_recorded_of(&plan, "iperf3 -u -c x -J", UDP, None);
        assert_eq!((run.samples.len(), run.packets_sent), (0, 4));
        assert!(run.notes.iter().any(|note| note.text.contains("no delays")), "{:?}", run.notes);
    }

    fn sum(sender: bool, bytes: u64) -> Value {
        serde_json::json!({"start": 0, "end": 3, "bytes": bytes, "sender": sender, "lost_packets": 0, "packets": 7})
    }

    /// What a client says that was stopped.
    fn stopped(reverse: u32, plan: &FlowPlan, server: &str) -> FlowRun {
        let report = serde_json::json!({
            "start": {"test_start": {"reverse": reverse}},
            "end": {"sum_sent": sum(true, 9000), "sum_received": sum(true, 0), "sum": sum(true, 9000)},
            "error": "interrupt - the client has terminated",
        });
        read_stopped_of(plan, "iperf3 -c x -J", &report.to_string(), Some(server))
    }

    /// What has arrived a stopped client does not know if the data go to the server: no figure, rather than 0 bit/s.
    #[test]
    fn what_nobody_has_told_is_no_rate() {
        for plan in [rate_plan(), crate::plan::tests::plan()] {
            let run = stopped(0, &plan, "{\"start\": {");
            assert_eq!((run.samples.count(), run.delivered_bytes, run.packets_sent), (0, 0, 0));
            assert_eq!(run.notes[0].kind, NoteKind::Unfinished, "{:?}", run.notes);
        }
        assert_eq!(stopped(1, &rate_plan(), "{\"start\": {").samples.count(), 1);
    }

    /// The server heard of the end at 3 s, after 1 MB, and counts up to its last interval.
    #[test]
    fn what_a_stopped_client_does_not_know_its_server_does() {
        let server = serde_json::json!({
            "intervals": [{"sum": sum(false, 700_000)}],
            "end": {"sum_received": {"bytes": 1_000_000, "bits_per_second": 8e6},
                    "sum": {"bytes": 0, "lost_packets": 3, "packets": 700, "jitter_ms": 0.25}},
        });
        let run = stopped(0, &crate::plan::tests::plan(), &server.to_string());
        assert_eq!(
            (run.delivered_bytes, run.packets_sent, run.packets_received),
            (1_000_000, 700, 697)
        );
        let told = |text: &str| run.notes.iter().any(|note| note.text.contains(text));
        assert!(told("3 of 700") && told("4.000 Mbit/s received, jitter 0.250"), "{:?}", run.notes);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let run = read_recorded("iperf3 -c x -J", REFUSED, None);
        assert!(run.samples.is_empty());
        assert!(
            run.notes[0].to_string().starts_with("error: iperf3: unable to connect"),
            "{:?}",
            run.notes
        );
    }

    #[test]
    fn what_is_left_out_and_the_remnant_are_no_intervals() {
        let sum = |start: f64, end: f64, omitted: bool| serde_json::json!({"sum": {"start": start, "end": end, "bytes": 5, "omitted": omitted}});
        let report = serde_json::json!({"intervals": [
            sum(0.0, 1.0, true), sum(0.0, 1.0, false), sum(1.0, 2.0, false), sum(2.0, 2.001, false),
        ]});
        assert_eq!(intervals(&report, None).len(), 2);
        // The client's last word was lost, and came a second later.
        let halves = (0..10).map(|at| sum(f64::from(at) / 2.0, f64::from(at + 1) / 2.0, false));
        let late: Vec<Value> = halves.chain([sum(5.0, 6.2, false)]).collect();
        let found = intervals(&serde_json::json!({"intervals": late}), None);
        assert_eq!(found.len(), 10);
        assert_eq!(found.last().map(|it| it.0), Some(Span::from_millis(4500)));
    }

    #[test]
    fn an_interval_that_is_told_twice_counts_once() {
        let sum = |at: u32| serde_json::json!({"sum": {"start": at, "end": at + 1, "bytes": 9, "omitted": false}});
        let server = serde_json::json!({"intervals": [sum(0), sum(1), sum(2), sum(2)]});
        assert_eq!(intervals(&server, None).len(), 3);
    }

    /// A remnant of the usual length: nothing was under way any more.
    #[test]
    fn what_begins_when_all_was_sent_is_no_interval() {
        let sum = |at: u32, bytes: u32| serde_json::json!({"sum": {"start": at, "end": at + 1, "bytes": bytes, "omitted": false}});
        let server = serde_json::json!({"intervals": [sum(0, 9), sum(1, 9), sum(2, 9), sum(3, 0)]});
        let sent = sent_until(&serde_json::json!({"sum_sent": {"end": 3.02}}));
        let bytes = intervals(&server, sent).into_iter().map(|it| it.2);
        assert_eq!(bytes.collect::<Vec<_>>(), [9, 9, 9]);
    }
}

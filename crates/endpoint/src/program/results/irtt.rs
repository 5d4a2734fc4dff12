//! irtt: the JSON of its `-o`.

use super::Reading;
use serde_json::Value;
use trunkline_core::Span;

/// Adds a sample for each round trip: the way there and the way back. irtt leaves the server's time out.
pub(super) fn read(reading: &mut Reading<'_>) -> Option<()> {
    let report = parse(reading.output())?;
    let trips = report.get("round_trips")?.as_array()?;
    let length = report.pointer("/config/params/length").and_then(Value::as_u64).unwrap_or(0);
    // No UDP datagram is longer than 16 bits say (RFC 768).
    if length > u64::from(u16::MAX) {
        return None;
    }
    for trip in trips {
        sample(reading, trip, length);
    }
    let (sent, received) = (trips.len() as u64, reading.run.samples.count());
    let lost = sent - received;
    (reading.run.packets_sent, reading.run.packets_received) = (sent, received);
    reading.run.delivered_bytes = 2 * length * received;
    if lost > 0 {
        reading.note(format!("irtt: {lost} of {} were not answered", trips.len()));
    }
    Some(())
}

/// The report, which starts with the first brace; text may come before it.
fn parse(output: &str) -> Option<Value> {
    let text = &output[output.find('{')?..];
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// Makes a sample; none if the answer was lost.
fn sample(reading: &mut Reading<'_>, trip: &Value, length: u64) -> Option<()> {
    let delay = |name: &str| trip.pointer(&format!("/delay/{name}")).and_then(Value::as_u64);
    let number = trip.get("seqno").and_then(Value::as_u64)?;
    let rtt = Span::from_nanos(delay("rtt")?);
    let sent = trip.pointer("/timestamps/client/send/wall").and_then(Value::as_u64)?;
    // One way is known if both ends stamp; the rest of the round trip is the other.
    let there = Span::from_nanos(delay("send").unwrap_or(0)).min(rtt);
    let index = u32::try_from(number).ok()?;
    let start = reading.monotonic(sent);
    reading.numbered(index, length, start, &[there, rtt.saturating_sub(there)]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_recorded;
    use super::*;

    #[test]
    fn a_recorded_run_is_read() {
        let run =
            read_recorded("irtt client x", include_str!("../../../tests/data/irtt.json"), None);
        assert_eq!((run.samples.len(), run.packets_sent, run.notes.len()), (5, 5, 0));
        let first = &run.samples[0];
        assert_eq!((first.size, first.delay().as_nanos()), (60, 151_516));
        let steps: Vec<u64> = first.steps.iter().map(|step| step.span.as_nanos()).collect();
        assert_eq!(steps, [94_401, 57_115]);
        let apart: Vec<Span> =
            run.samples.windows(2).map(|pair| pair[1].start - pair[0].start).collect();
        assert!(apart.iter().all(|gap| *gap > Span::from_millis(1)), "{apart:?}");
    }

    #[test]
    fn a_lost_one_is_no_sample() {
        let text = r#"{"round_trips": [{"seqno": 0, "lost": "true", "delay": {}}]}"#;
        let run = read_recorded("irtt client x", text, None);
        assert_eq!((run.samples.len(), run.packets_sent), (0, 1));
        assert_eq!(run.notes[0].text, "irtt: 1 of 1 were not answered");
    }
}

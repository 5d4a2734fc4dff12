//! curl: the JSON of its `-w '%{json}'`.

use super::{Reading, seconds};
use serde_json::Value;

/// Adds one sample: up to the first byte, and from there to the last. The last line that is JSON counts, for
/// what was fetched may be printed before it.
pub(super) fn read(reading: &mut Reading<'_>) -> Option<()> {
    let parse = |line: &str| serde_json::from_str::<Value>(line).ok();
    let report = reading.output().lines().rev().find_map(parse)?;
    let time = |name: &str| report.get(name).and_then(Value::as_f64).map(seconds);
    let size = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or(0);
    let total = time("time_total")?;
    let first = time("time_starttransfer")?.min(total);
    let bytes = size("size_download").checked_add(size("size_upload"))?;
    // It ends when the transfer does; before it the program had to be loaded.
    let start = reading.outcome.client.ended.before(total);
    reading.sample(bytes, start, &[first, total.saturating_sub(first)]);
    reading.run.delivered_bytes = bytes;
    reading.note(format!("curl: first byte after {first}, last after {total}"));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_recorded;
    use trunkline_core::Span;

    #[test]
    fn a_recorded_run_is_read() {
        let run = read_recorded("curl x", include_str!("../../../tests/data/curl.json"), None);
        let [sample] = &run.samples[..] else { panic!("{run:?}") };
        assert_eq!((sample.size, sample.delay()), (432, Span::from_micros(26_983)));
        assert_eq!(sample.steps.iter().next().unwrap().span, Span::from_micros(26_899));
        assert_eq!(sample.end.as_nanos(), 12_000_000_000);
    }
}

//! Raw samples as CSV.

use std::io::{self, Write};
use trunkline_fit::{Observations, Way};

/// Writes one row for each message, answered or not, in the order of sending.
///
/// # Errors
/// If `out` does not take it.
pub fn write_samples(out: &mut dyn Write, phases: &[(&str, &Observations)]) -> io::Result<()> {
    writeln!(
        out,
        "phase,sequence,size_octets,intended_ns,sent_ns,server_received_ns,server_sent_ns,\
         server_order,received_ns,round_trip_ns,response_ns,lost"
    )?;
    for (phase, observed) in phases {
        let answered = observed.exchanges.iter().map(|one| {
            let far = |value: Option<i64>| value.map_or(String::new(), |value| value.to_string());
            let row = format!(
                "{phase},{},{},{},{},{},{},{},{},{},{},",
                one.sequence,
                one.size,
                one.intended,
                one.sent,
                far(one.far.map(|far| far.received)),
                far(one.far.map(|far| far.sent)),
                far(one.far.map(|far| far.order as i64)),
                one.received,
                one.round_trip(),
                one.response()
            );
            (one.sequence, row)
        });
        let lost = observed.lost.iter().map(|one| {
            let way = match one.way {
                Some(Way::Out) => "up",
                Some(Way::Back) => "down",
                None => "unknown",
            };
            let row = format!("{phase},{},{},,{},,,,,,,{way}", one.sequence, one.size, one.sent);
            (one.sequence, row)
        });
        let mut rows: Vec<(u64, String)> = answered.chain(lost).collect();
        rows.sort();
        rows.iter().try_for_each(|(_, row)| writeln!(out, "{row}"))?;
    }
    Ok(())
}

/// An interval of a transfer: direction, start and length in seconds, octets.
pub type IntervalRow<'a> = (&'a str, f64, f64, u64);

/// Writes one row for each interval.
///
/// # Errors
/// If `out` does not take it.
pub fn write_intervals(out: &mut dyn Write, rows: &[IntervalRow<'_>]) -> io::Result<()> {
    writeln!(out, "direction,start_s,length_s,octets,goodput_bit_per_s")?;
    rows.iter().try_for_each(|(direction, start, length, octets)| {
        let rate = *octets as f64 * 8.0 / length;
        writeln!(out, "{direction},{start:.3},{length:.3},{octets},{rate:.0}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_fit::{Exchange, Lost};

    #[test]
    fn rows_are_in_the_order_of_sending_and_as_long_as_the_head() {
        let exchange = Exchange {
            sequence: 1,
            size: 64,
            reply: 64,
            intended: 5,
            sent: 10,
            far: None,
            received: 30,
        };
        let lost = Lost { sequence: 0, size: 1, sent: 2, way: Some(Way::Back) };
        let observed =
            Observations { exchanges: vec![exchange], lost: vec![lost], ..Observations::default() };
        let mut out = Vec::new();
        write_samples(&mut out, &[("idle", &observed)]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "idle,0,1,,2,,,,,,,down");
        assert_eq!(lines[2], "idle,1,64,5,10,,,,30,20,25,");
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    }

    #[test]
    fn intervals_have_their_rate() {
        let mut out = Vec::new();
        write_intervals(&mut out, &[("up", 1.0, 0.5, 1000)]).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with("up,1.000,0.500,1000,16000\n"));
    }
}

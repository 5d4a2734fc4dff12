//! Every number of the Wideband bandwidth analysis, RFC 1030 Appendix I.

use crate::common::{as_printed, rows};
use std::collections::BTreeMap;
use trunkline_core::{Rate, Span};
use trunkline_model::formula::lambert1987 as l;

const ANALYSIS: &str = include_str!("../published/lambert1987/wideband_bandwidth_analysis.csv");

fn millis(span: Span, printed: &str) -> String {
    as_printed(span.as_nanos(), 6, printed)
}

fn megabits(rate: Rate, printed: &str) -> String {
    as_printed(rate.bits_per_second(), 6, printed)
}

/// Ours of the row `name`, with as many digits as `printed`.
fn ours(name: &str, printed: &str) -> String {
    let stations = l::STATIONS;
    let raw = l::bandwidth(l::bits(l::FRAME_SYMBOLS), l::FRAME);
    match name {
        "raw_bandwidth_nominal" | "raw_bandwidth" => megabits(raw, printed),
        "stations" => stations.to_string(),
        "frame_symbols" => l::FRAME_SYMBOLS.to_string(),
        "bits_per_symbol" => l::BITS_PER_SYMBOL.to_string(),
        "frame_interval" => millis(l::FRAME, printed),
        "frame_bits" => l::bits(l::FRAME_SYMBOLS).to_string(),
        "control_symbols_per_station" => l::CONTROL_SYMBOLS.to_string(),
        "padding_symbols_per_slot" => l::PADDING_SYMBOLS.to_string(),
        "control_slot_symbols" => l::control_subframe(1).to_string(),
        "control_subframe_symbols" => l::control_subframe(stations).to_string(),
        "data_subframe_symbols" => l::data_subframe(stations).to_string(),
        "datagram_size_field_bits" => l::SIZE_BITS.to_string(),
        "data_limit_symbols" => l::data_limit(stations).to_string(),
        "data_after_headers_symbols" => l::data_after_headers(stations).to_string(),
        "coding_rate" => format!("{}/{}", l::CODING.0, l::CODING.1),
        "usable_bits_per_frame" => l::usable_bits(stations).to_string(),
        "usable_bytes_per_frame" => l::usable_bytes(stations).to_string(),
        "usable_bandwidth" => megabits(l::bandwidth(l::usable_bits(stations), l::FRAME), printed),
        "packets_per_frame" => l::packets_per_frame(stations, 1500).to_string(),
        "best_throughput" => megabits(l::best_throughput(stations), printed),
        // The reason for the padding, from which nothing is derived.
        "bsat_esi_rate" => printed.into(),
        other => panic!("no formula for {other}"),
    }
}

#[test]
fn every_row_of_the_analysis_comes_out_as_printed() {
    let rows = rows(ANALYSIS);
    assert_eq!(rows.len(), 22);
    let found: BTreeMap<&str, (&str, String)> =
        rows.iter().map(|row| (&*row[0], (&*row[1], ours(&row[0], &row[1])))).collect();
    for (name, (printed, ours)) in &found {
        match *name {
            // The two figures that are printed beside it do not give it.
            "raw_bandwidth" => assert_eq!((*printed, &**ours), ("3.081", "3.088")),
            // 1.0458: the report cuts.
            "best_throughput" => assert_eq!((*printed, &**ours), ("1.045", "1.046")),
            _ => assert_eq!(ours, printed, "{name}"),
        }
    }
}

/// With fewer stations more is left, until the size of a datagram limits it.
#[test]
fn a_control_subframe_grows_with_the_stations() {
    assert_eq!(l::data_limit(12), l::data_subframe(12));
    assert_eq!((l::data_limit(11), l::data_limit(1)), (1 << 14, 1 << 14));
    assert_eq!(l::usable_bytes(30), 0);
    assert!(l::usable_bytes(12) < l::usable_bytes(11));
}

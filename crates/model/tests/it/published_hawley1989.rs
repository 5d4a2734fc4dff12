//! Every number that a formula of Hawley 1989 gives in print.

use crate::common::{as_printed, rows};
use trunkline_core::Span;
use trunkline_model::Throughput;
use trunkline_model::formula::hawley1989 as h;

#[test]
fn table_1() {
    let mut compared = 0;
    for row in rows(include_str!("../published/hawley1989/table1_theoretical_throughput.csv")) {
        let (quantum, block) = (row[0].parse().ok(), row[1].parse().ok());
        let ours = h::round_robin_throughput(quantum, block).millibytes_per_second();
        let ours = as_printed(ours, 6, &row[2]);
        if row[4] == "1" {
            assert_ne!(ours, row[2], "suspect: {row:?}");
            continue;
        }
        assert_eq!(ours, row[2], "{row:?}");
        compared += 1;
    }
    assert_eq!(compared, 21, "24 cells less three suspect ones");
}

#[test]
fn table_2() {
    let rows = rows(include_str!("../published/hawley1989/table2_queueing_delay.csv"));
    assert_eq!(rows.len(), 20);
    for row in rows {
        let (quantum, channels) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        let ours = h::in_memory_delay(channels, quantum).as_nanos();
        // The print rounds below a millisecond and cuts above: 1260.8 is 1260, 2521.6 is 2521.
        let shown = if ours < 1_000_000 { (ours + 500) / 1_000 } else { ours / 1_000 };
        assert_eq!(shown.to_string(), row[2], "{row:?}");
    }
}

/// The value of a quoted result by its number in the list.
fn quoted(id: &str) -> String {
    let rows = rows(include_str!("../published/hawley1989/text_results.csv"));
    rows.into_iter().find(|row| row[0] == id).expect("listed")[4].clone()
}

fn assert_quoted(id: &str, value: u64, digits: usize) {
    assert_eq!(as_printed(value, digits, &quoted(id)), quoted(id), "result {id}");
}

#[test]
fn results_quoted_in_sections_2_1_and_2_2() {
    let drain = h::fifo_drain_rate(64);
    assert_eq!(drain, Throughput::from_bytes_per_second(176_000));
    assert_quoted("1", h::round_robin_throughput(Some(64), None).millibytes_per_second(), 6);
    assert_quoted("3", h::in_memory_delay(2, 64).as_nanos(), 3);
    assert_quoted("4", h::drain_time(4_000, h::READ_RATE).as_nanos(), 6);
    assert_quoted("5", h::drain_time(1_000, drain).as_nanos(), 6);
    assert_quoted("6", h::round_robin_delay_bound(4_000, 1_000).as_nanos(), 6);
    assert_quoted("7", h::drain_time(32_000, drain).as_nanos(), 6);
    assert_quoted("8", h::drain_time(500_000, drain).as_nanos(), 9);
    // Result 2 is cut, not rounded: 162.755 is quoted as 162.7.
    let cut = h::round_robin_throughput(Some(64), Some(256)).millibytes_per_second() / 100_000;
    assert_eq!(format!("{}.{}", cut / 10, cut % 10), quoted("2"));
    let burst = h::burst_to_overflow(4_000, h::BACKPLANE_RATE, h::READ_RATE).unwrap();
    assert_eq!(as_printed(burst, 3, "35.6"), "35.6", "§1.4");
    assert_eq!(h::burst_to_overflow(4_000, h::READ_RATE, h::BACKPLANE_RATE), None);
}

#[test]
fn postulate_of_section_4_2_2() {
    assert_quoted("18", h::unloaded_delay(256).as_nanos(), 6);
    assert_quoted("19", h::unloaded_delay(257).as_nanos(), 6);
    assert_quoted("20", h::unloaded_delay(511).as_nanos(), 6);
    assert_eq!([64, 65, 511, 512, 769, 1025].map(h::stream_blocks), [1, 2, 8, 1, 1, 2]);
}

#[test]
fn queue_ahead_of_a_packet_in_section_4_3_2_1() {
    let ahead =
        |delay: u64| h::queued_ahead(Span::from_micros(delay), Span::from_millis(182), 32_000);
    assert_quoted("30", ahead(157_000), 3);
    assert_quoted("31", ahead(60_000), 3);
    assert_quoted("32", ahead(25_628 - 5_000), 3);
    // The sum of four windows of 7 × 1024 bytes, 28 KiB, is what the packet waited behind: within 4 %.
    let wait = h::wait_behind_windows(4, 7 * 1024);
    let measured = Span::from_millis(157);
    assert!(wait.abs_diff(measured) < measured.scaled(4, 100), "{wait}");
}

//! The command-line form of disciplines.

use proptest::prelude::*;
use trunkline_path::{DisciplineSpec, Limit};

const DEFAULT: Limit = Limit::Packets(77);

fn read(text: &str) -> DisciplineSpec {
    DisciplineSpec::parse(text, DEFAULT).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn printed(text: &str) -> String {
    read(text).to_string()
}

#[test]
fn defaults_and_keys() {
    for (text, full) in [
        ("fifo", "fifo:limit=77p"),
        (" fifo : limit = 64KiB ", "fifo:limit=64KiB"),
        ("round-robin:quantum=64,limit=500KB", "round-robin:quantum=64,limit=500000B"),
        ("round-robin", "round-robin:quantum=64,limit=77p"),
        ("two-lists:sparse=leave", "two-lists:quantum=64,frame=256,sparse=leave,limit=77p"),
        ("two-lists", "two-lists:quantum=64,frame=256,sparse=via-low,limit=77p"),
        ("drr:quantum=1KiB", "drr:quantum=1024,limit=77p"),
        ("priority", "priority:bands=8,limit=77p"),
        ("codel", "codel:target=5ms,interval=100ms,mtu=1500,limit=77p"),
        (
            "fq-codel:target=1.5ms",
            "fq-codel:flows=1024,quantum=1514,target=1.5ms,interval=100ms,mtu=1500,limit=10240p",
        ),
        ("epd", "epd:threshold=1000,limit=1200"),
        ("epd:threshold=10c,limit=20", "epd:threshold=10,limit=20"),
    ] {
        assert_eq!(printed(text), full);
    }
}

#[test]
fn complaints_name_the_key_what_was_found_and_what_is_allowed() {
    for (text, words) in [
        ("red", vec!["'red'", "fq-codel"]),
        ("fifo:quantum=3", vec!["fifo", "'quantum'", "keys are limit"]),
        ("drr:quantum", vec!["'quantum'", "key=value", "quantum, limit"]),
        ("drr:quantum=x", vec!["'quantum'", "'x'", "32KiB"]),
        ("drr:quantum=0", vec!["quantum", "0", "1048576"]),
        ("drr:quantum=5GiB", vec!["'quantum'", "5GiB", "4GiB"]),
        ("drr:quantum=5,quantum=6", vec!["'quantum'", "twice"]),
        ("priority:bands=65", vec!["bands", "65", "64"]),
        ("priority:bands=300", vec!["'bands'", "'300'", "8"]),
        ("two-lists:sparse=no", vec!["'sparse'", "'no'", "via-low"]),
        ("codel:target=5", vec!["'target'", "'5'", "ms"]),
        ("codel:target=5ms,interval=1ms", vec!["codel", "interval", "1ms", "5ms"]),
        ("epd:limit=64KiB", vec!["'limit'", "'64KiB'", "cells"]),
        ("epd:threshold=1300", vec!["threshold", "1300", "1200"]),
        ("fifo:limit=0", vec!["'limit'", "0"]),
    ] {
        let complaint = DisciplineSpec::parse(text, DEFAULT).unwrap_err().to_string();
        assert!(!complaint.contains('\n'), "{complaint}");
        for word in words {
            assert!(complaint.contains(word), "{text}: {complaint} lacks {word}");
        }
    }
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1u64..1 << 40).prop_map(Limit::Bytes),
        (1u64..1 << 40).prop_map(Limit::Packets),
        (1u64..1 << 40).prop_map(Limit::Cells),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        limit in limits(), quantum in 1u32..1 << 20, target in 1u64..10_000_000_000,
        more in 0u64..90_000_000_000, cells in 1u64..1 << 40, bands in 1u8..=64,
    ) {
        let interval = target + more;
        for text in [
            format!("fifo:limit={limit}"),
            format!("round-robin:quantum={quantum},limit={limit}"),
            format!("two-lists:quantum={quantum},frame={quantum},limit={limit}"),
            format!("two-lists:sparse=leave,limit={limit}"),
            format!("drr:quantum={quantum},limit={limit}"),
            format!("priority:bands={bands},limit={limit}"),
            format!("codel:target={target}ns,interval={interval}ns,mtu={quantum},limit={limit}"),
            format!("fq-codel:target={target}ns,interval={interval}ns,flows={quantum},limit={limit}"),
            format!("epd:threshold={},limit={cells}", cells / 2),
        ] {
            let spec = read(&text);
            let kind = text.split(':').next().unwrap();
            prop_assert!(spec.to_string().starts_with(kind));
            prop_assert_eq!(&read(&spec.to_string()), &spec);
            prop_assert_eq!(spec.to_string().parse::<DisciplineSpec>().unwrap(), spec);
        }
    }
}

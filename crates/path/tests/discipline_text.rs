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
        ("codel", "codel:target=5ms,interval=100ms,mtu=1500,ecn=false,limit=77p"),
        (
            "codel:ecn=true,ce_threshold=1ms",
            "codel:target=5ms,interval=100ms,mtu=1500,ecn=true,ce_threshold=1ms,limit=77p",
        ),
        (
            "fq-codel:target=1.5ms",
            "fq-codel:flows=1024,quantum=1514,target=1.5ms,interval=100ms,mtu=1500,ecn=true,limit=10240p",
        ),
        (
            "pie:alpha=0.5Hz,mark_below=0.2",
            "pie:target=15ms,update=15ms,alpha=0.5,beta=1.25,burst=150ms,mtu=1500,ecn=true,\
             mark_below=20%,limit=77p",
        ),
        (
            "dualpi2:classic=20",
            "dualpi2:target=15ms,update=16ms,alpha=0.16,beta=3.2,coupling=2,step=1ms,\
             scheduler=wrr,classic=20%,shift=50ms,limit=77p",
        ),
        ("sfq:perturb=0s", "sfq:buckets=1024,quantum=1514,perturb=0ns,limit=77p"),
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
        ("codel:ecn=yes", vec!["'ecn'", "'yes'", "true"]),
        ("fq-codel:ce_threshold=11s", vec!["ce_threshold", "11s", "10s"]),
        ("pie:target=0s", vec!["pie", "target", "0", "10s"]),
        ("pie:update=1ns", vec!["updates", "1ns", "1us"]),
        ("pie:alpha=1001", vec!["alpha", "1001", "1000"]),
        ("pie:beta=-1", vec!["'beta'", "-1", "0.125"]),
        ("pie:mark_below=110%", vec!["'mark_below'", "110%", "100%"]),
        ("dualpi2:coupling=0", vec!["coupling", "0", "100"]),
        ("dualpi2:scheduler=fifo", vec!["'scheduler'", "'fifo'", "ts-fifo"]),
        ("dualpi2:classic=100%", vec!["classic", "100", "99"]),
        ("dualpi2:step=11s", vec!["step", "11s", "10s"]),
        ("sfq:buckets=0", vec!["buckets", "0", "1048576"]),
        ("sfq:perturb=1us", vec!["perturbations", "1us", "1ms"]),
        ("sfq:flows=9", vec!["sfq", "'flows'", "buckets, quantum, perturb, limit"]),
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
            format!("codel:ecn={},ce_threshold={target}ns,limit={limit}", target % 2 == 0),
            format!("fq-codel:ecn={},ce_threshold={target}ns,limit={limit}", target % 2 == 0),
            format!("pie:target={target}ns,burst={more}ns,alpha={}.{bands:03},limit={limit}", bands),
            format!("pie:mark_below={bands}%,ecn=false,mtu={quantum},limit={limit}"),
            format!("dualpi2:step={target}ns,coupling={bands},classic={bands}%,limit={limit}"),
            format!("dualpi2:scheduler=ts-fifo,shift={target}ns,limit={limit}"),
            format!("sfq:buckets={quantum},perturb={bands}ms,quantum={quantum},limit={limit}"),
        ] {
            let spec = read(&text);
            let kind = text.split(':').next().unwrap();
            prop_assert!(spec.to_string().starts_with(kind));
            prop_assert_eq!(&read(&spec.to_string()), &spec);
            prop_assert_eq!(&spec.to_string().parse::<DisciplineSpec>().unwrap(), &spec);
            let json = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<DisciplineSpec>(&json).unwrap(), spec);
        }
    }
}

#[test]
fn json_names_the_kind_and_knows_settings_from_before_ecn() {
    let json = |text: &str| serde_json::to_value(read(text)).unwrap();
    assert_eq!(json("dualpi2")["kind"], "dualpi2");
    assert_eq!((&json("pie")["kind"], &json("pie")["alpha"]), (&"pie".into(), &"0.125".into()));
    assert_eq!(json("sfq")["perturb"], "10s");
    let mut old = json("fq-codel");
    let fields = old.as_object_mut().unwrap();
    assert!(fields.remove("ecn").is_some() && !fields.contains_key("ce_threshold"));
    assert_eq!(serde_json::from_value::<DisciplineSpec>(old).unwrap(), read("fq-codel"));
    let wrong = serde_json::json!({"kind": "sfq", "limit": "9p", "buckets": 3, "quantum": 1,
        "perturb": "0s", "flows": 1});
    assert!(serde_json::from_value::<DisciplineSpec>(wrong).is_err());
}

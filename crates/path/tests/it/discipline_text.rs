//! The command-line form of disciplines.

use crate::page;
use proptest::prelude::*;
use trunkline_path::discipline::{DisciplineKind, KINDS, Key, help};
use trunkline_path::{DisciplineSpec, DisciplineTextError, Limit};

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
        ("no-such", vec!["use one of", "'no-such'", "fq-codel"]),
        ("fq_codel", vec!["'fq_codel'", "did you mean 'fq-codel'?"]),
        ("cake", vec!["did you mean 'fq-codel'?"]),
        ("FIFO", vec!["did you mean 'fifo'?"]),
        ("pfifo:limit=3p", vec!["'pfifo'", "did you mean 'fifo'?"]),
        ("roundrobin", vec!["did you mean 'round-robin'?"]),
        ("codle:ecn=true", vec!["did you mean 'codel'?"]),
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

/// A text of `kind` in which every key has an end of its range, its default, or is left out, as `choices` say in turn.
fn chosen(kind: &DisciplineKind, choices: &[u8], limit: Limit) -> String {
    let mut choices = choices.iter().cycle();
    let mut pair = |key: &Key| {
        let (lowest, highest) = key.range.clone().unzip();
        let value = match choices.next()? % 4 {
            0 => lowest,
            1 => highest,
            2 => key.default.clone(),
            _ => None,
        };
        let is_free = key.unit == LIMIT && key.name == "limit";
        let value = if is_free { Some(limit.to_string()) } else { value };
        Some(format!("{}={}", key.name, value?))
    };
    let pairs: Vec<String> = kind.keys().iter().filter_map(&mut pair).collect();
    format!("{}:{}", kind.name, pairs.join(","))
}

/// How help calls the value of a limit in any unit.
const LIMIT: &str = "bytes, packets or cells";

fn reads_back(text: &str, kind: &str) {
    let spec = read(text);
    assert!(spec.to_string().starts_with(kind) && spec.kind() == kind);
    assert_eq!(read(&spec.to_string()), spec);
    assert_eq!(spec.to_string().parse::<DisciplineSpec>().unwrap(), spec);
    let json = serde_json::to_string(&spec).unwrap();
    assert!(json.starts_with(&format!("{{\"kind\":\"{kind}\",")), "{json}");
    assert_eq!(serde_json::from_str::<DisciplineSpec>(&json).unwrap(), spec);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(limit in limits(), choices in prop::collection::vec(0u8..4, 12)) {
        for kind in KINDS {
            kind.texts().for_each(|text| reads_back(&text, kind.name));
            let text = chosen(kind, &choices, limit);
            match DisciplineSpec::parse(&text, DEFAULT) {
                Ok(_) => reads_back(&text, kind.name),
                // Two values may be at odds with each other; each by itself is one that can be read.
                Err(error) => prop_assert!(
                    matches!(error, DisciplineTextError::Spec { .. }), "{text}: {error}"
                ),
            }
        }
    }
}

#[test]
fn every_kind_has_a_trial_and_says_what_it_is() {
    for kind in KINDS {
        assert!(kind.texts().count() > 0 && kind.about().ends_with('.'), "{}", kind.name);
        assert!(kind.keys().iter().all(|key| key.help.ends_with('.')), "{}", kind.name);
        let names: Vec<_> = kind.keys().iter().map(|key| key.name).collect();
        assert_eq!(names.last(), Some(&"limit"), "{}: {names:?}", kind.name);
    }
}

#[test]
fn a_value_beyond_an_end_of_its_range_is_refused() {
    let mut seen = 0;
    for kind in KINDS {
        for key in kind.keys().iter().filter(|key| key.unit == "number") {
            let (lowest, highest) = key.range.clone().unwrap();
            let (lowest, highest) =
                (lowest.parse::<u64>().unwrap(), highest.parse::<u64>().unwrap());
            for beyond in [lowest.checked_sub(1), highest.checked_add(1)].into_iter().flatten() {
                let text = format!("{}:{}={beyond}", kind.name, key.name);
                assert!(DisciplineSpec::parse(&text, DEFAULT).is_err(), "{text}");
                seen += 1;
            }
        }
    }
    assert!(seen > 6, "{seen}");
}

const START: &str =
    "<!-- disciplines: BLESS=1 cargo test -p trunkline-path --test it writes these tables -->";
const END: &str = "<!-- end of disciplines -->";

/// The tables of docs/path.md, from what the disciplines say of themselves.
fn tables() -> String {
    let about = KINDS.iter().map(|kind| format!("| `{}` | {} |\n", kind.name, kind.about()));
    let keys =
        KINDS.iter().flat_map(|kind| kind.keys().into_iter().map(|key| row(kind.name, &key)));
    format!(
        "| kind | what, and its source |\n|---|---|\n{}\n\
         | kind | key | value | range | what |\n|---|---|---|---|---|\n{}",
        about.collect::<String>(),
        keys.collect::<String>(),
    )
}

fn row(kind: &str, key: &Key) -> String {
    let default = key.default.as_ref().map_or(String::new(), |default| format!("={default}"));
    let range = key.range.as_ref().map_or(String::new(), |(low, high)| format!("{low} to {high}"));
    format!("| `{kind}` | `{}{default}` | {} | {range} | {} |\n", key.name, key.unit, key.help)
}

#[test]
fn the_reference_page_has_what_the_disciplines_say() {
    page::holds("path.md", [START, END], &tables());
    for kind in KINDS {
        assert!(help().contains(kind.about()), "{}", kind.name);
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

//! Whatever an INVALID run shows is marked, and every dash has its reason.

use trunkline_batch::make;
use trunkline_engine::{EngineName, Note, NoteKind, Pace, Run};
use trunkline_ladder::{Ladder, Tolerances, Verdict, What, section, terminal};
use trunkline_model::Formulas;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

const FILE: &str = r#"
    name = "two"
    [[host]]
    name = "a"
    [[host]]
    name = "b"
    [[link]]
    between = ["a", "b"]
    delay = "5ms"
    rate = "1Mbit/s"
    limit = "3KiB"
    [[traffic]]
    name = "file"
    kind = "bulk"
    from = "a"
    to = "b"
    bytes = "100kB"
    repeat = 3
    transport = { kind = "tcp" }
    [[traffic]]
    name = "keys"
    kind = "interactive"
    from = "a"
    to = "b"
    sizes = [64]
    repeat = 30
    transport = { kind = "tcp" }
"#;

fn scenario() -> Scenario {
    Scenario::parse(FILE, "t.toml").unwrap().remove(0)
}

fn runs(invalid: &[&str]) -> Vec<Run> {
    let scenario = scenario();
    let simulated = make(&Simulator, &scenario).unwrap();
    assert!(simulated.traffic[0].packets.dropped > 0, "the queue is too long for this test");
    let mut notes = simulated.notes.clone();
    notes.extend(invalid.iter().map(|why| Note::new(NoteKind::Invalid, *why)));
    let emulated = Run { engine: EngineName::EMU, pace: Pace::Real, notes, ..simulated.clone() };
    vec![make(&Formulas, &scenario).unwrap(), simulated, emulated]
}

fn ladder(runs: &[Run]) -> Ladder {
    Ladder::new(&scenario(), runs, &Tolerances::default())
}

#[test]
fn every_value_of_an_invalid_run_is_marked() {
    let fine = ladder(&runs(&[]));
    assert_eq!(fine.invalid_figures().0, 0);
    assert!(!terminal(&fine).contains("INVALID"), "{}", terminal(&fine));
    let spoilt = ladder(&runs(&["the machine was too busy"]));
    let values =
        spoilt.rows.iter().filter(|row| row.figures.contains_key(&EngineName::EMU)).count();
    assert_eq!(spoilt.invalid_figures().0, values);
    let text = terminal(&spoilt);
    let units = ["ms INVALID", "bit/s INVALID", "% INVALID"];
    let marked: usize = units.iter().map(|unit| text.matches(unit).count()).sum();
    assert_eq!(marked, values, "{text}");
    assert!(text.contains("INVALID: emu: the machine was too busy"), "{text}");
    let page = section(std::slice::from_ref(&spoilt));
    let entries =
        page.rows.iter().flatten().filter(|entry| units.iter().any(|it| entry.ends_with(it)));
    assert_eq!(entries.count(), values, "{page:#?}");
    let json = serde_json::to_value(&spoilt).unwrap();
    for row in json["rows"].as_array().unwrap() {
        assert_eq!(row["figures"]["emu"]["invalid"], true, "{row}");
        assert_eq!(row["figures"]["sim"]["invalid"], false, "{row}");
        assert_eq!(row["judgements"]["emu"]["verdict"], "invalid", "{row}");
    }
}

#[test]
fn what_failed_in_the_simulator_spoils_every_verdict() {
    let mut runs = runs(&[]);
    runs[1].notes.push(Note::of_traffic("file", NoteKind::Failed, "3 blocks are wrong"));
    let ladder = ladder(&runs);
    for row in &ladder.rows {
        assert!(row.figures[&EngineName::SIM].invalid, "{row:#?}");
        assert!(row.judgements.values().all(|it| it.verdict == Verdict::Invalid), "{row:#?}");
    }
    assert!(terminal(&ladder).contains("3 blocks are wrong"));
}

#[test]
fn every_dash_has_its_reason() {
    let mut runs = runs(&[]);
    // The emulation completed no message, and there is no simulation to hold the others against.
    let keys = runs[2].traffic.iter_mut().find(|it| it.name == "keys").unwrap();
    keys.samples = Default::default();
    runs.remove(1);
    let ladder = ladder(&runs);
    let text = terminal(&ladder);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" – ")).collect();
    assert!(!rows.is_empty(), "{text}");
    let mut dashes = 0;
    for row in &ladder.rows {
        for engine in &ladder.engines {
            if !row.figures.contains_key(engine) {
                dashes += 1;
                let reason = row.absent.get(engine).expect("a reason in the document");
                assert!(!reason.is_empty() && text.contains(reason.as_str()), "{reason}: {text}");
                assert!(
                    section(std::slice::from_ref(&ladder))
                        .rows
                        .iter()
                        .flatten()
                        .any(|it| it.contains(reason.as_str()))
                );
            }
        }
    }
    assert!(dashes >= 2, "{ladder:#?}");
}

#[test]
fn a_program_whose_messages_have_another_size_is_told_of_it() {
    let mut runs = runs(&[]);
    let keys = runs[2].traffic.iter_mut().find(|it| it.name == "keys").unwrap();
    let mut samples = keys.samples.to_vec();
    samples.iter_mut().for_each(|it| it.size = 92);
    keys.samples = samples.into();
    runs[2].notes.push(Note::of_traffic("keys", NoteKind::Program, "'-D' added to the command"));
    let ladder = ladder(&runs);
    let why = |size: u64, engine: EngineName| {
        let what = What::RoundTrip { size };
        let row = ladder.rows.iter().find(|row| row.traffic == "keys" && row.what == what);
        row.expect("a row").absent[&engine].clone()
    };
    let described = why(64, EngineName::EMU);
    assert!(described.contains("92 B") && !described.contains("-D"), "{described}");
    let sent = why(92, EngineName::SIM);
    assert!(sent.contains("64") && !sent.contains("nothing was completed"), "{sent}");
}

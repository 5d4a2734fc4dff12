//! What is wrong with a study is told in one line; what is right is run and judged.

use crate::common::{Made, engine, texts, verify};
use std::sync::Arc;
use trunkline_engine::{EngineName, Run, SharedEngine};
use trunkline_measure::Agreement;
use trunkline_report::{Embed, Scale};
use trunkline_scenario::Scenario;
use trunkline_study::{Library, Makers, Source, StudyError, StudyResult, run_sources};

const STUDY: &str = r#"
name = "test"
title = "A test"
report = "None"
parameter = [{ file = "scenario.toml", key = "link.t1.rate", section = "1" }]
quote = [{ file = "published.csv", row = { rate = "fast", size = 64 }, value = "delay_ms", unit = "ms", tolerance = 0.1, ours = { experiment = "delay", where = { rate = "fast", size = 64 } } }]

[[experiment]]
name = "delay"
title = "Delays"
scenario = "scenario.toml"
traffic = "echo"
measure = { kind = "delay", estimator = "mean" }
unit = "ms"
published = "published.csv"
value = "delay_ms"
keys = { rate = { from = "link.t1.rate", values = { slow = "1Mbit/s", fast = "2Mbit/s" } }, size = "size" }
tolerance = 0.1

[[figure]]
name = "delays"
kind = "lines"
title = "Delays"
x = { label = "size" }
y = { label = "delay", unit = "ms" }
series = [{ experiment = "delay", x = ["size"], by = ["rate"] }]

[[goal]]
title = "Half of them"
experiment = "delay"
judge = { kind = "share", at_least = 0.5 }
"#;

fn open(study: &str) -> Result<Source, StudyError> {
    Source::read(Library::Texts(texts(study)))
}

fn result(study: &str, make: fn(&Scenario) -> Result<Run, String>) -> StudyResult {
    let source = open(study).expect("a sound study");
    let engines: [SharedEngine; 1] = [Arc::new(Made { name: EngineName::SIM, make })];
    let makers = Makers { engines: &engines, verify: &verify };
    run_sources(&[source], &makers, 2, &|_| {}).expect("its tables fit").remove(0)
}

#[test]
fn wrong_studies_are_refused_in_one_line() {
    let table = [
        ("report = \"None\"", "", "report"),
        ("title = \"A test\"", "titel = \"A test\"", "titel"),
        (
            "kind = \"delay\", estimator = \"mean\"",
            "kind = \"delay\", estimator = \"means\"",
            "unknown estimator 'means'",
        ),
        ("kind = \"delay\", estimator", "kind = \"dealy\", estimator", "dealy"),
        ("unit = \"ms\"\npublished", "unit = \"mm\"\npublished", "mm"),
        ("scenario = \"scenario.toml\"", "scenario = \"none.toml\"", "none.toml"),
        ("traffic = \"echo\"", "traffic = \"bulk\"", "no traffic bulk: it has echo"),
        ("\"link.t1.rate\", values", "\"link.t2.rate\", values", "no link.t2.rate"),
        ("value = \"delay_ms\"\nkeys", "value = \"delay_us\"\nkeys", "no column delay_us"),
        ("published = \"published.csv\"", "published = \"none.csv\"", "none.csv"),
        ("published = \"published.csv\"\n", "", "published is missing"),
        ("key = \"link.t1.rate\"", "key = \"link.t1.speed\"", "has no link.t1.speed"),
        ("section = \"1\"", "section = \"1\", inferred = \"so\"", "exactly one of"),
        (", section = \"1\"", "", "exactly one of"),
        ("row = { rate = \"fast\", size = 64 }", "row = { rate = \"fast\" }", "2 rows"),
        (
            "ours = { experiment = \"delay\"",
            "ours = { experiment = \"other\"",
            "no experiment other",
        ),
        (
            "series = [{ experiment = \"delay\"",
            "series = [{ experiment = \"other\"",
            "no experiment other",
        ),
        ("by = [\"rate\"]", "by = [\"speed\"]", "no key column speed"),
        ("tolerance = 0.1\n\n[[figure]]", "\n[[figure]]", "neither it nor delay has a tolerance"),
        ("name = \"delay\"", "name = \"delay\"\nvariant = \"none\"", "variant none"),
        ("tolerance = 0.1\n\n[[figure]]", "tolerance = -0.1\n\n[[figure]]", "allowed from 0"),
        ("at_least = 0.5", "at_least = 50", "at_least: found 50, allowed 0 to 1"),
        (
            "kind = \"share\"",
            "kind = \"factor\", factor = 0.5",
            "factor: found 0.5, allowed from 1",
        ),
        (
            "kind = \"share\", at_least = 0.5",
            "kind = \"between\", low = 2, high = 1",
            "no value lies between 2 and 1",
        ),
        ("unit = \"ms\", tolerance = 0.1", "unit = \"ms\", between = [2, 1]", "between 2 and 1"),
        (
            "published = \"published.csv\"\n",
            "published = \"published.csv\"\nwhere = { size = 65 }\n",
            "published.csv: no row with a value is chosen",
        ),
        ("keys = { rate = {", "keys = { speed = {", "no column speed"),
        (", size = \"size\" }\ntolerance", " }\ntolerance", "two figures for rate=slow"),
    ];
    for (right, wrong, told) in table {
        assert!(STUDY.contains(right), "{right}");
        let error = open(&STUDY.replacen(right, wrong, 1)).expect_err(wrong).to_string();
        assert!(error.contains(told), "{wrong}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// Before anything is run, which may take hours.
#[test]
fn a_published_value_that_is_no_number_is_refused() {
    let mut files = texts(STUDY);
    let table = files.get_mut("published.csv").expect("a published table");
    *table = table.replacen(",4.4", ",n/a", 1);
    let error = Source::read(Library::Texts(files)).unwrap_err().to_string();
    let told =
        "experiment delay: published.csv: delay_ms at rate=slow size=64 is \"n/a\": give a number";
    assert!(error.contains(told), "{error}");
}

#[test]
fn a_wrong_scenario_is_told_with_its_line() {
    let mut files = texts(STUDY);
    let scenario = files.get_mut("scenario.toml").unwrap();
    *scenario = scenario.replace("repeat = 30", "repaet = 30");
    let error = Source::read(Library::Texts(files)).unwrap_err().to_string();
    assert!(error.starts_with("scenario.toml:15: traffic.echo.repaet"), "{error}");
}

#[test]
fn a_wrong_shared_file_is_told_with_its_own_line() {
    let mut files = texts(&STUDY.replacen(
        "report =",
        "shared = [\"boards.toml\", \"more.toml\"]\nreport =",
        1,
    ));
    files.insert("boards.toml".into(), "[processor.vax]\nwrite = \"1ms\"\n".into());
    files.insert("more.toml".into(), "[interface.kmc]\nrequests = 1\nrequest = 2\n".into());
    let error = Source::read(Library::Texts(files)).unwrap_err().to_string();
    assert!(error.starts_with("more.toml:3: interface.kmc.request"), "{error}");
}

#[test]
fn every_published_cell_stands_beside_ours() {
    let found = result(STUDY, engine);
    assert_eq!(found.runs, 2);
    let rows = &found.experiment("delay").unwrap().comparison.rows;
    let verdicts: Vec<Agreement> = rows.iter().map(|row| row.verdict).collect();
    assert_eq!(
        verdicts,
        [Agreement::Within, Agreement::Within, Agreement::Within, Agreement::Outside]
    );
    // 3 ms, 10 us, the letters of 1Mbit/s, and 0 to 6 us by turns.
    assert!((rows[0].ours.unwrap() - 3.619_8).abs() < 1e-3, "{:?}", rows[0]);
    assert_eq!(found.quotes[0].agrees, Some(false));
    assert!(found.goals[0].met && found.goals[0].outside.len() == 1, "{:?}", found.goals);
    assert_eq!(found.figures[0].series.len(), 4, "published and ours of each rate");
    assert!(found.figures[0].series.iter().all(|series| series.points.len() == 2));
    assert_eq!((found.inferred(), found.notes.len()), (0, 1));
    assert!(found.holds() && found.summary().contains("met    Half of them: 3 of 4 cells"));
}

/// On an axis of numbers words have no place, and a chart of them was empty.
#[test]
fn a_figure_over_words_has_a_place_for_each() {
    let study = STUDY.replacen(
        "x = { label = \"size\" }",
        "x = { label = \"rate\", scale = \"log\", from = 1 }",
        1,
    );
    let study =
        study.replacen("x = [\"size\"], by = [\"rate\"]", "x = [\"rate\"], by = [\"size\"]", 1);
    let figure = &result(&study, engine).figures[0];
    assert_eq!((figure.x.scale, figure.x.from), (Scale::Category, None));
    let chart = trunkline_report::chart(figure, Embed::File);
    assert!(chart.contains("fast") && !chart.contains("Not drawn"), "{chart}");
}

#[test]
fn doubtful_cells_are_spared_where_the_study_says_so() {
    let study = STUDY.replacen("tolerance = 0.1\n", "tolerance = 0.1\nspare_suspects = true\n", 1);
    let found = result(&study, engine);
    assert_eq!(found.experiments[0].comparison.counts.suspect, 1);
}

#[test]
fn variants_change_whole_experiments() {
    let study = STUDY.replacen("name = \"delay\"", "name = \"delay\"\nvariant = \"one\"", 1)
        + "[[variant]]\nname = \"one\"\ntitle = \"One rate\"\n[variant.set]\n\"link.t1.rate\" = \"2Mbit/s\"\n";
    let found = result(&study, engine);
    assert_eq!((found.runs, found.experiments[0].comparison.counts.missing), (1, 2));
    assert!(found.experiments[0].problems[0].contains("no run has a value"));
}

#[test]
fn a_run_that_fails_is_named_and_its_cells_are_missing() {
    let fails = |scenario: &Scenario| match scenario.cell["link.t1.rate"].as_str() {
        "2Mbit/s" => Err("out of\nluck".to_string()),
        _ => engine(scenario),
    };
    let found = result(STUDY, fails);
    assert_eq!(found.failures, ["scenario.toml link.t1.rate=2Mbit/s: out of luck"]);
    assert_eq!(found.experiments[0].comparison.counts.missing, 2);
    assert!(!found.holds() && found.summary().contains("FAILED"));
}

#[test]
fn a_run_that_breaks_a_law_is_a_failure() {
    let breaks = |scenario: &Scenario| {
        let mut run = engine(scenario)?;
        run.traffic[0].samples[3].steps = Default::default();
        Ok(run)
    };
    let found = result(STUDY, breaks);
    assert_eq!(found.failures.len(), 2);
    assert!(found.failures[0].contains("the steps sum to"), "{:?}", found.failures);
}

#[test]
fn a_result_becomes_a_page_with_its_files() {
    let report =
        result(STUDY, engine).report("1.2.3", vec![("machine".into(), "a send_queue".into())]);
    let page = trunkline_report::page(&report);
    for part in
        ["A test", "Goals", "Half of them", "Parameters", "link.t1.rate", "Delays", "a send_queue"]
    {
        assert!(page.contains(part), "{part}");
    }
    let directory = tempfile::tempdir().unwrap();
    trunkline_report::write(directory.path(), &report).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("published-and-ours.csv").lines().count(), 1 + 4);
    assert!(read("goals.csv").contains("Half of them,met,"));
    assert!(read("delays.svg").contains("<svg"));
}

#[test]
fn a_file_that_a_scenario_names_is_one_of_the_study() {
    let mut files = texts(STUDY);
    let lossy = files["scenario.toml"].replace("rate = [", "loss = 'trace:lost'\nrate = [");
    files.insert("scenario.toml".into(), lossy);
    let error = Source::read(Library::Texts(files.clone())).unwrap_err().to_string();
    assert!(error.contains("'lost'") || error.contains("lost:"), "{error}");
    files.insert("lost".into(), "0 0 1\n".into());
    let source = Source::read(Library::Texts(files)).unwrap();
    let file = source.scenario("scenario.toml", None).unwrap();
    assert!(
        file.cells.iter().all(|cell| cell.links[0]
            .forward
            .impairments
            .loss
            .unread_file()
            .is_none())
    );
}

//! The studies that are built in: complete, consistent, covered, and the same on any number of threads.

use crate::common::{Made, engine, verify};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trunkline_engine::{EngineName, SharedEngine};
use trunkline_measure::Keep;
use trunkline_scenario::{Interface, Returns, Scenario};
use trunkline_study::{Makers, Measure, Source, StudyResult, names, run};

fn directory(study: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(study)
}

fn open(study: &str) -> Source {
    Source::open(study).unwrap_or_else(|error| panic!("{study}: {error}"))
}

fn results(threads: usize) -> Vec<StudyResult> {
    let wanted = [EngineName::MODEL, EngineName::SIM, EngineName::EMU];
    let engines = wanted.map(|name| Arc::new(Made { name, make: engine }) as SharedEngine);
    let makers = Makers { engines: &engines, verify: &verify };
    run(&names(), &makers, threads, &|_| {}).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_study_and_every_scenario_can_be_read() {
    assert_eq!(
        names(),
        [
            "hawley-beyond",
            "hawley1989",
            "lambert-beyond",
            "lambert1987",
            "lds2001",
            "mosberger-beyond",
            "mosberger1994",
            "vandewater1988",
            "xunet-beyond"
        ]
    );
    for name in names() {
        let source = open(name);
        assert_eq!(source.study.name, name);
        assert!(source.scenarios().count() > 0, "{name}");
    }
}

/// The rules of the reports look at all measurements: of a study whose scenario kept the usual hundred
/// thousand, whole tables were missing.
#[test]
fn studies_keep_all_measurements() {
    for name in names() {
        let source = open(name);
        for (place, scenario) in source.scenarios() {
            let kept = |cell: &Scenario| cell.samples == Keep::All;
            assert!(scenario.cells.iter().all(kept), "{name} {place:?}");
        }
    }
}

#[test]
fn the_reports_grids_have_the_cells_of_their_tables() {
    let cells = |study: &str, file: &str| open(study).scenario(file, None).unwrap().cells.len();
    assert_eq!(cells("hawley1989", "throughput.toml"), 36);
    assert_eq!(cells("hawley1989", "unloaded.toml"), 3);
    assert_eq!(cells("hawley1989", "loaded.toml"), 12);
    assert_eq!(cells("hawley1989", "stddev.toml"), 12);
    assert_eq!(cells("lambert1987", "ring.toml"), 2 * 2 * 8);
    assert_eq!(cells("lambert1987", "wideband-500.toml"), 3 * 5 * 16);
    assert_eq!(cells("lds2001", "fairness.toml"), 8);
    assert_eq!(cells("lds2001", "verify.toml"), 5 * 3);
    assert_eq!(cells("vandewater1988", "processes.toml"), 14);
    assert_eq!(cells("vandewater1988", "background-same-host.toml"), 15);
}

#[test]
fn published_tables_have_the_rows_that_their_readme_states() {
    let mut tables = 0;
    for (study, below) in [
        ("hawley1989", "published"),
        ("vandewater1988", "published"),
        ("lambert1987", "published"),
        ("lds2001", "published"),
        ("lds2001", "derived"),
    ] {
        let published = directory(study).join(below);
        let readme = std::fs::read_to_string(published.join("README.md")).unwrap();
        for line in readme.lines().filter(|line| line.starts_with("| `")) {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let file = parts[1].trim_matches('`');
            let text = std::fs::read_to_string(published.join(file)).unwrap();
            let table = trunkline_study::Published::read(&text).unwrap();
            assert_eq!(table.rows.len().to_string(), parts[3], "{study} {file}");
            tables += 1;
        }
        let files = std::fs::read_dir(&published).unwrap().count();
        assert_eq!(files - 1, readme.lines().filter(|line| line.starts_with("| `")).count());
    }
    assert_eq!(tables, 17 + 6 + 7 + 4);
}

/// What follows from the report's other figures by arithmetic is told apart from what rests on a run: the first agrees
/// whatever an engine does.
#[test]
fn quotations_that_no_run_can_change_are_told_apart() {
    let results = results(2);
    let counts = |study: &str| {
        let result = results.iter().find(|it| it.name == study).unwrap();
        let judged = result.quotes.iter().filter(|it| it.agrees.is_some());
        let (runs, arithmetic): (Vec<_>, Vec<_>) = judged.partition(|it| it.measured);
        (runs.len(), arithmetic.len())
    };
    assert_eq!(counts("hawley1989"), (27, 11));
    assert_eq!(counts("vandewater1988"), (21, 14));
    assert_eq!(counts("lds2001"), (5, 16));
}

/// Every row of a table of quotations is held against something, or says why not.
#[test]
fn every_quotation_is_compared_or_says_why_not() {
    for (study, file) in [
        ("hawley1989", "published/text_results.csv"),
        ("vandewater1988", "published/text_results.csv"),
        ("vandewater1988", "published/rtt_in_text.csv"),
        ("vandewater1988", "published/formulas.csv"),
        ("lambert1987", "published/best_results.csv"),
        ("lds2001", "published/text_results.csv"),
        ("lds2001", "published/correctness_targets.csv"),
    ] {
        let source = open(study);
        let text = std::fs::read_to_string(directory(study).join(file)).unwrap();
        for row in trunkline_study::Published::read(&text).unwrap().rows {
            let result = |row: &trunkline_measure::Key| {
                let parameter = row.get("parameter").map_or("", String::as_str);
                parameter.starts_with("result")
                    || ["effective_window", "correction", "accuracy"].contains(&parameter)
            };
            let quoted =
                source.study.quote.iter().any(|quote| quote.file == file && quote.row.allows(&row));
            let compared = source.study.experiment.iter().any(|one| {
                let chosen = one.resolved().iter().any(|part| part.filter.allows(&row));
                one.published.as_deref() == Some(file) && chosen
            });
            assert!(
                quoted || compared || (row.contains_key("parameter") && !result(&row)),
                "{study} {file} {row:?}"
            );
        }
    }
}

/// Every published column of figures is compared in full.
#[test]
fn every_published_cell_of_the_tables_is_compared() {
    let results = results(4);
    let rows = |study: &str, experiment: &str| {
        let study = results.iter().find(|result| result.name == study).unwrap();
        let rows = &study.experiment(experiment).unwrap().comparison.rows;
        assert!(rows.iter().all(|row| row.published.is_some()), "{experiment}");
        rows.len()
    };
    for (experiment, count) in [
        ("table-1", 24),
        ("table-2", 20),
        ("throughput", 36),
        ("throughput-per-conversation", 36),
        ("throughput-deviation", 36),
        ("repetitions", 56),
        // One standard deviation is not legible.
        ("repetitions-deviation", 55),
        ("unloaded-minimum", 42),
        ("unloaded-minimum-ratio", 42),
        ("unloaded-average", 42),
        ("loaded", 168),
    ] {
        assert_eq!(rows("hawley1989", experiment), count, "{experiment}");
    }
    for (experiment, count) in [
        ("table-1-mean", 14),
        ("table-1-packets", 14),
        ("table-1-throughput", 14),
        ("table-1-minimum", 14),
        ("table-2-measured", 4),
        ("table-2-maximum", 4),
        ("table-2-effective", 4),
        ("table-2-correction", 4),
        ("table-3-total", 14),
        ("table-3-per-process", 14),
        ("table-4-throughput", 14),
        ("table-4-interval", 14),
        ("table-4-rate", 14),
        ("rtt-in-text", 12),
    ] {
        assert_eq!(rows("vandewater1988", experiment), count, "{experiment}");
    }
    for (experiment, count) in [
        ("theoretical-throughput", 3),
        ("theoretical-costs", 4),
        ("ring", 39),
        ("ethernet", 29),
        ("ethernet-repairs", 11),
        ("wideband", 28),
    ] {
        assert_eq!(rows("lambert1987", experiment), count, "{experiment}");
    }
    for (experiment, count) in [
        ("latency", 36),
        ("throughput", 48),
        ("flooding", 24),
        ("jacobi", 24),
        ("jacobi-single", 4),
    ] {
        assert_eq!(rows("mosberger1994", experiment), count, "{experiment}");
    }
}

#[test]
fn nothing_is_missing_and_figures_are_complete() {
    for result in results(4) {
        assert!(result.failures.is_empty(), "{:?}", result.failures);
        for experiment in &result.experiments {
            // Spread and its ratio need noise, which the engine of this test has little of.
            assert!(
                experiment.problems.is_empty(),
                "{} {}: {:?}",
                result.name,
                experiment.name,
                experiment.problems
            );
            assert!(experiment.comparison.rows.iter().all(|row| row.ours.is_some()));
        }
        for quote in result.quotes.iter().filter(|quote| quote.ours.is_none()) {
            assert!(quote.agrees.is_none() && !quote.remark.is_empty(), "{quote:?}");
        }
        for (figure, spec) in result.figures.iter().zip(&open(&result.name).study.figure) {
            assert!(!figure.is_empty(), "{} {}", result.name, figure.name);
            assert!(figure.series.len() >= spec.series.len(), "{} {}", result.name, figure.name);
        }
    }
}

#[test]
fn figures_show_all_that_the_reports_show() {
    let results = results(2);
    let names_of = |study: &str| -> Vec<String> {
        let result = results.iter().find(|result| result.name == study).unwrap();
        result.figures.iter().map(|figure| figure.name.clone()).collect()
    };
    let figures = |numbers: &[u32]| -> Vec<String> {
        numbers.iter().map(|number| format!("figure-{number}")).collect()
    };
    assert_eq!(
        names_of("hawley1989"),
        figures(&[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17])
    );
    assert_eq!(names_of("lambert1987"), ["ring", "ethernet", "wideband"]);
    assert_eq!(names_of("mosberger1994"), ["latency", "throughput", "flooding", "jacobi"]);
    assert_eq!(names_of("vandewater1988"), figures(&[2, 3, 4, 5, 6, 7, 8, 9, 10]));
    let hawley = results.iter().find(|result| result.name == "hawley1989").unwrap();
    let points = |name: &str| -> Vec<usize> {
        let figure = hawley.figures.iter().find(|figure| figure.name == name).unwrap();
        figure.series.iter().map(|series| series.points.len()).collect()
    };
    assert_eq!(points("figure-4"), [6; 6], "three disciplines, published and ours");
    assert_eq!(points("figure-9"), [14; 6]);
    assert_eq!(points("figure-11"), [14; 10], "four windows and the unloaded trunk");
    assert_eq!(points("figure-17"), [14; 8], "three disciplines and the unloaded trunk");
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let (one, four) = (results(1), results(4));
    for (one, four) in one.iter().zip(&four) {
        assert_eq!(one, four, "{}", one.name);
        assert_eq!(format!("{one:?}"), format!("{four:?}"), "to the last bit");
    }
}

#[test]
fn runs_are_shared_between_experiments() {
    let hawley = results(4).into_iter().find(|result| result.name == "hawley1989").unwrap();
    // Throughput, unloaded, loaded, and the round robin columns of both repetitions: each cell once.
    assert_eq!(hawley.runs, 36 + 3 + 12 + 4 + 4);
}

/// What one report says of the board holds in the other. The hosts' drivers differ: how they cut writes, and
/// which receive buffers they post.
#[test]
fn both_reports_have_the_same_board() {
    let board = |study: &str, file: &str, name: &str| -> Interface {
        let source = open(study);
        let cell: &Scenario = &source.scenario(file, None).unwrap().cells[0];
        let host = cell.hosts.iter().find(|host| host.interface.name == name);
        Interface {
            name: String::new(),
            split: Vec::new(),
            receive_buffer: None,
            returns: Returns::Block,
            ..(*host.expect("a host has it").interface).clone()
        }
    };
    let hawley = board("hawley1989", "unloaded.toml", "kmc-v9");
    assert_eq!(hawley, board("vandewater1988", "rtt.toml", "kmc-bsd"));
    assert_eq!(hawley, board("vandewater1988", "echo-small.toml", "kmc-bsd-small"));
}

/// Every setting of the files of both reports names its source.
#[test]
fn every_parameter_has_a_source() {
    for study in ["hawley1989", "lambert1987", "lds2001", "vandewater1988"] {
        let source = open(study);
        let used = used(&source);
        let files = source.scenarios().map(|((file, _), _)| file.clone());
        let files: BTreeSet<String> = files.chain(source.study.shared.iter().cloned()).collect();
        for file in files {
            let told: Vec<&str> = source
                .study
                .parameter
                .iter()
                .filter(|one| one.file == file)
                .map(|one| one.key.as_str())
                .collect();
            for path in paths(&source.values(&file).unwrap()) {
                let part = path.split('.').take(2).collect::<Vec<_>>().join(".");
                let named = |key: &&&str| path == **key || path.starts_with(&format!("{key}."));
                let settled = ["name", "between", "from", "to", "kind"]
                    .iter()
                    .any(|end| path.ends_with(&format!(".{end}")));
                let concerns = ["node", "link", "medium", "host", "traffic"]
                    .contains(&part.split('.').next().unwrap())
                    || used.contains(&part);
                assert!(
                    !concerns || settled || told.iter().any(|key| named(&key)),
                    "{study} {file}: {path} has no [[parameter]]"
                );
            }
        }
    }
}

/// The interfaces, processors and modules that a study's hosts and links use.
fn used(source: &Source) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (_, file) in source.scenarios() {
        for kind in ["host", "link"] {
            let elements =
                file.values.get(kind).and_then(toml::Value::as_array).cloned().unwrap_or_default();
            for element in elements {
                for key in ["interface", "processor", "module"] {
                    let values = match element.get(key) {
                        Some(toml::Value::Array(list)) => list.clone(),
                        Some(one) => vec![one.clone()],
                        None => Vec::new(),
                    };
                    used.extend(
                        values
                            .iter()
                            .filter_map(|value| Some(format!("{key}.{}", value.as_str()?))),
                    );
                }
            }
        }
    }
    used
}

/// The paths of all settings of a file, lists of tables by their names, others whole.
fn paths(value: &toml::Value) -> Vec<String> {
    fn walk(value: &toml::Value, path: &str, found: &mut Vec<String>) {
        let below =
            |step: &str| if path.is_empty() { step.to_string() } else { format!("{path}.{step}") };
        match value {
            toml::Value::Table(table) => {
                table.iter().for_each(|(key, value)| walk(value, &below(key), found))
            }
            toml::Value::Array(list) if list.iter().all(|item| item.get("name").is_some()) => {
                for item in list {
                    walk(item, &below(item["name"].as_str().unwrap()), found);
                }
            }
            _ => found.push(path.to_string()),
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found.retain(|path| path.contains('.'));
    found
}

#[test]
fn formulas_have_rows_and_no_scenario() {
    for name in names() {
        for experiment in open(name).study.experiment {
            if matches!(experiment.measure, Measure::Formula { .. }) {
                assert!(
                    (experiment.published.is_some() || experiment.rows_of.is_some())
                        && experiment.scenario.is_none(),
                    "{}",
                    experiment.name
                );
            }
        }
    }
}

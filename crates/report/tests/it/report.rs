//! A report's table, files and page.

use crate::fixture;
use std::collections::BTreeMap;
use std::path::Path;
use trunkline_core::{Span, Time};
use trunkline_engine::{EngineName, Note, NoteKind};
use trunkline_measure::{
    Cell, Conservation, Estimator, Key, Quantity, Sample, Samples, Table, Tolerance, TrafficRun,
    compare,
};
use trunkline_report::{
    Axis, Charts, Embed, Figure, FigureKind, Point, Report, ReportError, Role, Scale, Series,
    Shown, chart, columns, figures, page, terminal, write,
};

/// Compares with a kept file; `UPDATE_GOLDEN=1` writes it anew.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == text, "{name} differs; if that is meant, run the tests with UPDATE_GOLDEN=1");
}

/// Those of `samples` that `keep` wants.
fn only(samples: &Samples, keep: impl Fn(&Sample) -> bool) -> Samples {
    samples.iter().filter(|sample| keep(sample)).cloned().collect()
}

fn written(report: &Report) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let files = write(directory.path(), report).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn key(size: u32) -> Key {
    Key::from([("size".to_string(), size.to_string())])
}

/// A comparison with every verdict, one of them with an infinite error.
fn with_comparison() -> Report {
    let (mut published, mut ours) =
        (Table::new("table 3 <old> & new", "ms"), Table::new("ours", "ms"));
    for (size, value) in [(1, 10.0), (2, 10.0), (3, 0.0), (4, 10.0)] {
        published.put(key(size), Some(Cell::of(value))).unwrap();
    }
    for (size, value) in [(1, 10.5), (2, 20.0), (3, 1.0), (5, 10.0)] {
        ours.put(key(size), Some(Cell::of(value))).unwrap();
    }
    let comparison = compare(&published, &ours, Tolerance::relative(0.1)).unwrap();
    Report { comparisons: vec![comparison], ..fixture::report() }
}

/// Names, values and texts as nasty as they come.
fn nasty() -> Report {
    let mut report = with_comparison();
    report.title = "<script>alert(\"x\")</script> & 'co' \u{1}".into();
    report.scenario = "name = \"</pre><b>\"".into();
    for run in &mut report.runs {
        run.traffic[0].name = "keys <&\"',\n\u{7}>".into();
        run.places[1] = "a>b<c&d".into();
        run.notes.push(Note::new(NoteKind::Program, "]]> <!-- -->"));
        // A transfer that took no time has an infinite rate.
        for sample in run.traffic[1].samples.iter_mut() {
            sample.end = sample.start;
        }
        run.ended = Time::ZERO;
    }
    report.figures.push(figure(FigureKind::Bars, Scale::Linear, &[f64::NAN, f64::INFINITY, 1.0]));
    report
}

fn figure(kind: FigureKind, scale: Scale, values: &[f64]) -> Figure {
    let points = |factor: f64| {
        let point = |(i, y): (usize, &f64)| Point::new((1u64 << i) as f64, y * factor).spread(0.5);
        values.iter().enumerate().map(point).collect()
    };
    let series = |name: &str, role, factor| Series {
        name: name.into(),
        role,
        group: Some("board".into()),
        points: points(factor),
    };
    Figure {
        name: format!("{kind:?}-{scale:?}").to_lowercase(),
        kind,
        title: "Round trip".into(),
        caption: "Made up.".into(),
        x: Axis::category("message", "bytes"),
        y: Axis { scale, ..Axis::linear("round trip", "ms") },
        series: vec![series("published", Role::Published, 1.0), series("sim", Role::Sim, 1.1)],
    }
}

fn no_such_number(name: &str, text: &str) {
    for word in text.split(|c: char| !c.is_ascii_alphabetic()) {
        assert!(!["NaN", "nan", "inf", "Infinity"].contains(&word), "{name} has {word}");
    }
}

#[test]
fn the_terminal_has_a_column_for_each_engine() {
    let text = terminal(&fixture::report());
    golden("terminal.txt", &text);
    for part in ["model", "sim (against model)", "emu", "unavailable", "no permission", "1 of 24"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(text.matches("round-robin").count(), 1, "coordinates are shown once:\n{text}");
}

#[test]
fn differences_are_against_the_engine_chosen() {
    let report = Report { reference: Some(EngineName::SIM), ..fixture::report() };
    assert!(terminal(&report).contains("model (against sim)"));
}

#[test]
fn the_files_are_as_they_were() {
    let files = written(&fixture::report());
    for name in ["samples.csv", "cells.csv", "links.csv", "steps.csv", "senders.csv", "backlog.csv"]
    {
        golden(name, &files[name]);
    }
    golden(
        "bars.svg",
        &chart(&figure(FigureKind::Bars, Scale::Linear, &[1.0, 2.0, 4.0]), Embed::File),
    );
    golden(
        "lines.svg",
        &chart(&figure(FigureKind::Lines, Scale::Log, &[1.0, 20.0, 400.0]), Embed::File),
    );
}

#[test]
fn the_same_report_is_written_in_the_same_bytes() {
    assert_eq!(written(&with_comparison()), written(&with_comparison()));
}

#[test]
fn each_row_of_samples_sums_to_its_delay() {
    let files = written(&fixture::report());
    let mut lines = files["samples.csv"].lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let delay = heads.iter().position(|head| *head == "delay_ns").unwrap();
    for line in lines.filter(|line| line.contains("keystrokes")) {
        let row: Vec<&str> = line.split(',').collect();
        assert_eq!(row.len(), heads.len());
        let sum: u64 = row[delay + 1..].iter().map(|text| text.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, row[delay].parse::<u64>().unwrap());
    }
}

#[test]
fn what_is_shown_is_what_was_measured() {
    let cells = written(&fixture::report()).remove("cells.csv").unwrap();
    let heads: Vec<&str> = cells.lines().next().unwrap().split(',').collect();
    let row =
        cells.lines().find(|line| line.starts_with("sim,t1,fifo,7,valid,keystrokes,64,")).unwrap();
    let row: BTreeMap<&str, &str> = heads.into_iter().zip(row.split(',')).collect();
    // 4764 µs and 0, 100, 200, 300 µs in the queue.
    assert_eq!((row["min_ns"], row["max_ns"], row["value"]), ("4764000", "5064000", "4914000"));
    assert_eq!((row["queue_ns"], row["propagate_ns"], row["n"]), ("150000", "4000000", "4"));
    // Two flows of 100 000 bytes in half a second each.
    let files = cells.lines().find(|line| line.starts_with("sim,t1,fifo,7,valid,files,")).unwrap();
    assert!(files.contains(",B/s,mean,200000,"), "{files}");
    assert!(files.contains(",200000,400000,2,"), "{files}");
}

#[test]
fn every_table_names_the_transport() {
    let report = fixture::report();
    let files = written(&report);
    let texts = [&terminal(&report), &page(&report), &files["cells.csv"], &files["run.json"]];
    for text in texts {
        for transport in ["tcp cubic", "urp 3 x 256 B"] {
            assert!(text.contains(transport), "no '{transport}' in {text}");
        }
    }
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    for report in [fixture::report(), with_comparison(), nasty(), Report::default()] {
        let text = page(&report);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
        for forbidden in ["http", "src=", "@import", "<link"] {
            assert!(!text.contains(forbidden), "the page contains {forbidden}");
        }
        let mut ids: Vec<&str> =
            document.descendants().filter_map(|node| node.attribute("id")).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "identifiers are unique");
    }
}

#[test]
fn names_are_escaped_and_no_value_is_not_finite() {
    let report = nasty();
    for (name, text) in written(&report) {
        no_such_number(&name, &text);
        if name.ends_with(".svg") {
            roxmltree::Document::parse(&text).unwrap();
        }
    }
    no_such_number("terminal", &terminal(&report));
    assert!(!page(&report).contains("<script>alert"));
    serde_json::from_str::<serde_json::Value>(&written(&report)["run.json"]).unwrap();
}

#[test]
fn verdicts_have_words_marks_and_colours() {
    let text = page(&with_comparison());
    for (class, mark) in [("within", "✓"), ("outside", "✗"), ("missing", "–"), ("unpublished", "+")]
    {
        let cell = format!("<td class=\"{class}\" data-label=\"verdict\">{mark} {class}</td>");
        assert!(text.contains(&cell), "{class}");
    }
    assert!(text.contains("1 of 4 cells within ±10 %"));
    assert!(terminal(&with_comparison()).contains("✗ outside"));
}

#[test]
fn an_empty_report_says_so() {
    let report = Report { title: "Nothing".into(), ..Report::default() };
    assert!(page(&report).contains("There are no runs to report."));
    assert!(terminal(&report).contains("There are no runs to report."));
    assert_eq!(written(&report)["backlog.csv"], "engine,scenario,seed,validity,link,at_ns,bytes\n");
}

#[test]
fn two_things_in_one_place_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = fixture::report();
    report.runs.push(report.runs[0].clone());
    assert!(matches!(write(directory.path(), &report), Err(ReportError::Twice { .. })));
    let mut report = fixture::report();
    let figure = figure(FigureKind::Bars, Scale::Linear, &[1.0]);
    report.figures = vec![figure.clone(), figure];
    assert!(matches!(write(directory.path(), &report), Err(ReportError::Figure(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_figures_of_a_report_cover_what_was_measured() {
    let names: Vec<String> = figures(&fixture::report()).iter().map(Figure::slug).collect();
    for name in [
        "measured-0-0",
        "measured-1-0",
        "cdf-0-0",
        "time-1-0",
        "ledger-0-0",
        "places-sim-0-0",
        "queue-1",
    ] {
        assert!(names.iter().any(|one| one == name), "{name} is not among {names:?}");
    }
}

#[test]
fn the_manual_names_every_column_and_field() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    for (file, columns) in columns() {
        let start = manual.find(&format!("## `{file}`")).unwrap_or_else(|| panic!("no {file}"));
        let part = &manual[start..];
        let part = part[2..].find("\n## ").map_or(part, |end| &part[..end + 2]);
        let common = &manual[manual.find("## Columns of every file").unwrap()..];
        for column in columns {
            let name = format!("`{column}`");
            let common = ["engine", "scenario", "cell.KEY", "seed", "validity"]
                .contains(&column.as_str())
                && common.contains(&name);
            assert!(common || part.contains(&name), "{file}: {name} is not described");
        }
    }
    let json = written(&with_comparison()).remove("run.json").unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let part = &manual[manual.find("## `run.json`").unwrap()..];
    for field in fields(&json) {
        assert!(part.contains(&format!("`{field}`")), "run.json: `{field}` is not described");
    }
}

/// Every field's name, those of cells aside, which are the scenario's.
fn fields(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| {
                let inner = if ["cell", "key"].contains(&name.as_str()) {
                    Vec::new()
                } else {
                    fields(value)
                };
                inner.into_iter().chain([name.clone()])
            })
            .collect(),
        serde_json::Value::Array(items) => items.iter().flat_map(fields).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_cause_looks_the_same_in_every_chart() {
    let report = fixture::report();
    let figures = figures(&report);
    let stacked = |kind| figures.iter().find(|figure| figure.kind == kind).unwrap();
    for figure in [stacked(FigureKind::Stacked), stacked(FigureKind::Waterfall)] {
        let position = figure.series.iter().position(|series| series.name == "transmit");
        assert_eq!(position, Some(3));
        let text = chart(figure, Embed::File);
        assert!(text.contains(">transmit</text>") && !text.contains(">recover</text>"));
    }
}

#[test]
fn a_place_keeps_its_row_whatever_is_booked_there() {
    let figures = figures(&fixture::report());
    let figure = figures.iter().find(|figure| figure.kind == FigureKind::Waterfall).unwrap();
    let text = chart(figure, Embed::File);
    let at = |place: &str| text.find(&format!(">{place}</text>")).unwrap();
    assert!(at("coma") < at("coma&gt;tempel") && at("coma&gt;tempel") < at("tempel"));
}

#[test]
fn a_single_figure_is_shown_by_rules_that_drop_the_ends_and_counts_that_nobody_made_are_not() {
    let mut report = fixture::report();
    let average = Shown { quantity: Quantity::Delay, estimator: Estimator::HawleyAverage };
    report.shown.insert("keystrokes", average);
    let formula = &mut report.runs[0].traffic[0];
    formula.packets = Conservation::default();
    formula.samples = only(&formula.samples, |sample| sample.size == 64 && sample.index == 0);
    let shown = terminal(&report);
    let row = |what: &str| shown.lines().find(|line| line.contains(what)).unwrap().to_string();
    assert!(row("64 B: hawley-average").contains("4.764 ms"), "{shown}");
    assert!(!row("packets lost").contains("0 of 0"), "{shown}");
}

/// Of flows at 100 and 400 kB/s the figure is 250 kB/s, where no transfer is near.
#[test]
fn the_interval_of_a_rate_has_the_rate_in_it() {
    let mut run = fixture::run(EngineName::SIM, "fifo", 1);
    let files = &mut run.traffic[1];
    let template = files.samples[0].clone();
    let flow = |(flow, millis): (u32, u64)| {
        let template = template.clone();
        (0..20).map(move |index| {
            let start = Time::from_nanos(u64::from(index) * 2_000_000_000);
            let end = start + Span::from_millis(millis + u64::from(index % 3));
            Sample { flow, index, start, end, ..template.clone() }
        })
    };
    files.samples = [(0, 1000), (1, 250)].into_iter().flat_map(flow).collect();
    let mut report = Report { runs: vec![run], ..fixture::report() };
    for quantity in [Quantity::Rate, Quantity::TotalRate] {
        report.shown.insert("files", Shown { quantity, estimator: Estimator::MEDIAN });
        let text = written(&report).remove("run.json").unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let row = &json["runs"][0]["traffic"][1]["summary"][0];
        let [low, rate, high] =
            ["low", "flow_bytes_per_s", "high"].map(|field| row[field].as_f64().unwrap());
        assert!(low <= rate && rate <= high, "{quantity:?}: {low} {rate} {high}");
        assert!(high - low < 0.02 * rate, "{quantity:?}: {low} to {high}");
    }
}

#[test]
fn a_grid_of_two_axes_is_drawn_over_the_longer_one() {
    let mut report = Report::default();
    for (discipline, window) in
        ["fifo", "drr"].iter().flat_map(|one| ["1", "3", "10"].iter().map(move |two| (one, two)))
    {
        let mut run = fixture::run(EngineName::SIM, discipline, 0);
        run.traffic.truncate(1);
        run.traffic[0].samples = only(&run.traffic[0].samples, |sample| sample.size == 64);
        run.cell.insert("window".into(), (*window).into());
        report.runs.push(run);
    }
    let figures = figures(&report);
    let figure = figures.iter().find(|figure| figure.name == "measured-0-0").unwrap();
    assert_eq!((figure.kind, figure.x.label.as_str()), (FigureKind::Lines, "window"));
    let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["trunk.discipline = fifo", "trunk.discipline = drr"]);
    assert!(figure.title.ends_with("(sim)"), "{}", figure.title);
    assert!(figure.series.iter().all(|series| series.points.len() == 3));
}

/// A picture that a run has drawn of itself stands on the page, and is a file beside its record.
#[test]
fn pictures_of_runs_are_shown_and_written() {
    let mut report = fixture::report();
    for run in &mut report.runs {
        run.pictures.push(trunkline_engine::Picture {
            name: "ring".into(),
            about: "Nodes & waits.".into(),
            svg: "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>drawn</title></svg>\n".into(),
            trace: "{}".into(),
        });
    }
    let files = written(&report);
    let text = &files["index.html"];
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(text, options).unwrap();
    assert!(text.contains("Who waits for whom") && text.contains("Nodes &amp; waits."));
    assert_eq!(text.matches("<title>drawn</title>").count(), 4);
    for number in 0..4 {
        assert!(text.contains(&format!("waits-{number}-ring.trace.json")));
        assert!(files[&format!("waits-{number}-ring.svg")].starts_with("<svg"));
        assert_eq!(files[&format!("waits-{number}-ring.trace.json")], "{}");
    }
}

/// A run of so many traffics, each with a message of its own.
fn crowd(traffics: usize) -> Report {
    let mut report = fixture::report();
    report.unavailable.clear();
    report.runs.truncate(1);
    let one = report.runs[0].traffic[1].clone();
    let name = |index| format!("source-{index}");
    report.runs[0].traffic =
        (0..traffics).map(|index| TrafficRun { name: name(index), ..one.clone() }).collect();
    report
}

#[test]
fn of_many_traffics_the_first_have_charts_and_tables_hold_all() {
    let charts = |files: &BTreeMap<String, String>| {
        files.keys().filter(|name| name.ends_with(".svg")).count()
    };
    let (few, many) = (written(&crowd(20)), written(&crowd(3000)));
    let all = written(&Report { charts: Charts::All, ..crowd(21) });
    let none = written(&Report { charts: Charts::AtMost(0), ..crowd(20) });
    assert_eq!(charts(&many), charts(&few));
    assert_eq!((charts(&all) - 1) * 20, (charts(&few) - 1) * 21);
    assert_eq!(charts(&none), 1, "the queues belong to no traffic");
    let line = "charts show the first 20 of 3000 traffics, tables and CSV files hold all";
    assert!(many["index.html"].contains(line) && many["index.html"].contains("--charts all"));
    for name in ["cells.csv", "samples.csv", "run.json", "index.html"] {
        assert!(many[name].contains("source-2999"), "{name}");
    }
    for whole in [&few, &all] {
        assert!(!whole["index.html"].contains("charts show"));
    }
}

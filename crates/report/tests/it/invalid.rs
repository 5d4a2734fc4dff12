//! What an INVALID run shows is marked wherever it is shown.

use crate::fixture;
use std::collections::BTreeMap;
use trunkline_engine::{EngineName, Note, NoteKind};
use trunkline_report::{Report, page, terminal, write};

/// The fixture with two emulated cells, the second of which the machine has spoilt.
fn spoilt() -> Report {
    let mut report = Report { unavailable: Vec::new(), ..fixture::report() };
    report.runs.push(fixture::run(EngineName::EMU, "fifo", 90));
    let mut bad = fixture::run(EngineName::EMU, "round-robin", 20);
    bad.notes.push(Note::new(NoteKind::Invalid, "the machine was too busy"));
    report.runs.push(bad);
    report
}

fn lines_of<'a>(text: &'a str, cell: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.contains("fifo") || line.contains("round-robin") {
            inside = line.contains(cell);
        }
        if inside && !line.trim().is_empty() && !line.starts_with("note") {
            found.push(line);
        }
    }
    found
}

#[test]
fn the_terminal_marks_each_value() {
    let text = terminal(&spoilt());
    let (good, bad) = (lines_of(&text, "fifo"), lines_of(&text, "round-robin"));
    let values = |lines: &[&str]| {
        lines.iter().filter(|line| line.contains("bit/s") || line.contains(" ms")).count()
    };
    assert_eq!((values(&good), values(&bad)), (5, 5), "{text}");
    assert!(good.iter().all(|line| !line.contains("INVALID")), "{text}");
    let lost = |line: &&&str| line.contains("packets lost") || line.contains("sent again");
    assert_eq!(bad.iter().filter(lost).count(), 2, "{text}");
    let marked = bad.iter().filter(|line| line.contains("INVALID")).count();
    assert_eq!(marked, 7, "five values and two counts:\n{text}");
}

#[test]
fn the_page_marks_tables_legends_and_tooltips() {
    let text = page(&spoilt());
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let entries =
        document.descendants().filter(|node| node.attribute("class") == Some("number invalid"));
    let entries: Vec<_> = entries.collect();
    assert_eq!(entries.len(), 7);
    for entry in entries {
        let struck = entry.first_element_child().filter(|child| child.has_tag_name("s"));
        assert!(struck.and_then(|it| it.text()).is_some_and(|value| !value.contains("INVALID")));
        assert!(entry.children().any(|part| part.text().is_some_and(|it| it.contains("INVALID"))));
    }
    // The page begins with it.
    let warning = document.descendants().find(|node| node.attribute("class") == Some("warning"));
    let warning = warning.unwrap().first_element_child().unwrap().text().unwrap();
    assert!(
        warning.starts_with("1 of 2 runs by emu is INVALID: the machine was too busy."),
        "{warning}"
    );
    let answer = document.descendants().find(|node| node.attribute("class") == Some("answer"));
    let told: Vec<&str> = answer.unwrap().descendants().filter_map(|node| node.text()).collect();
    assert!(
        told.iter().all(|text| !text.contains("round-robin") || !text.contains("emu")),
        "{told:?}"
    );
    // Each with the name of the chart that it is in.
    let titles: Vec<String> = document
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| {
            let chart = node.ancestors().find_map(|it| it.attribute("aria-label")).unwrap_or("");
            Some(format!("{}|{chart}", node.text()?))
        })
        .collect();
    // Values of the emulator in charts that show both cells, by the name of the cell.
    let tips = titles.iter().filter(|tip| tip.starts_with("emu") && tip.contains("round-robin"));
    let tips: Vec<&String> = tips.collect();
    assert!(tips.len() >= 4, "{titles:#?}");
    assert!(tips.iter().all(|tip| tip.contains("INVALID")), "{tips:#?}");
    let fine = titles.iter().filter(|tip| tip.starts_with("emu") && tip.contains("fifo"));
    assert!(fine.clone().count() >= 4 && fine.clone().all(|tip| !tip.contains("INVALID")));
    // The steps: rows of the ledger by cause, and the waterfall's title.
    let steps = titles.iter().filter(|tip| tip.contains(" B, emu"));
    let (bad, good): (Vec<&String>, Vec<&String>) = steps.partition(|tip| tip.contains("INVALID"));
    assert!(!bad.is_empty() && bad.len() == good.len(), "{bad:#?} {good:#?}");
    let waterfalls = |cell: &str| {
        let of_cell = |tip: &&String| tip.contains("place by place, emu") && tip.contains(cell);
        let all: Vec<&String> = titles.iter().filter(of_cell).collect();
        (all.len(), all.iter().filter(|tip| tip.contains("INVALID")).count())
    };
    assert_eq!(
        (waterfalls("fifo").1, waterfalls("round-robin").0),
        (0, waterfalls("round-robin").1)
    );
    assert!(waterfalls("round-robin").0 > 0);
    // Distributions and courses over time have legends.
    let legends = document.descendants().filter(|node| node.has_tag_name("text"));
    let legends: Vec<&str> = legends.filter_map(|node| node.text()).collect();
    assert!(legends.iter().any(|name| name.starts_with("emu INVALID")), "{legends:#?}");
}

#[test]
fn every_csv_row_tells() {
    let directory = tempfile::tempdir().unwrap();
    let files = write(directory.path(), &spoilt()).unwrap();
    let csv = files.iter().filter(|path| path.extension().is_some_and(|it| it == "csv"));
    let mut count = 0;
    for path in csv {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
        let rows = lines.map(|line| {
            heads.iter().copied().zip(line.split(',')).collect::<BTreeMap<&str, &str>>()
        });
        for row in rows {
            let bad = row["engine"] == "emu" && row["cell.trunk.discipline"] == "round-robin";
            let expected = if bad { "INVALID" } else { "valid" };
            assert_eq!(row.get("validity"), Some(&expected), "{path:?}: {row:?}");
            count += usize::from(bad);
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn the_summaries_of_the_document_tell() {
    let mut out = Vec::new();
    trunkline_report::json(&spoilt(), &mut out).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
    for run in document["runs"].as_array().unwrap() {
        let bad = !run["invalid"].as_array().unwrap().is_empty();
        for traffic in run["traffic"].as_array().unwrap() {
            for summary in traffic["summary"].as_array().unwrap() {
                assert_eq!(summary["invalid"], bad, "{summary}");
            }
        }
    }
}

//! The order of a page, and the looks of its charts.

use crate::fixture;
use roxmltree::{Document, Node, ParsingOptions};
use trunkline_engine::EngineName;
use trunkline_report::{Embed, Figure};
use trunkline_report::{FigureKind, Place, Report, Scale, chart, figures, page};

fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..Default::default() };
    Document::parse_with_options(text, options).unwrap()
}

/// Three engines in both cells of the fixture.
fn three() -> Report {
    let mut report = Report { unavailable: Vec::new(), ..fixture::report() };
    report.runs.push(fixture::run(EngineName::EMU, "fifo", 90));
    report.runs.push(fixture::run(EngineName::EMU, "round-robin", 20));
    report
}

/// Cells of one engine over the values of one key.
fn over(key: &str, values: &[&str]) -> Report {
    let run = |value: &&str| {
        let mut run = fixture::run(EngineName::SIM, "fifo", 0);
        run.traffic.truncate(1);
        let samples = &run.traffic[0].samples;
        run.traffic[0].samples = samples.iter().filter(|it| it.size == 64).cloned().collect();
        run.cell.insert(key.into(), (*value).into());
        run
    };
    Report { runs: values.iter().map(run).collect(), ..Report::default() }
}

fn folded(node: &Node<'_, '_>) -> bool {
    node.ancestors().any(|it| it.has_tag_name("details"))
}

#[test]
fn a_page_leads_with_the_answer_and_folds_the_rest() {
    for report in [three(), fixture::report()] {
        let text = page(&report);
        let document = parsed(&text);
        let at = |found: Option<Node<'_, '_>>| found.map(|node| node.range().start).unwrap();
        let find =
            |want: &dyn Fn(&Node<'_, '_>) -> bool| document.descendants().find(|it| want(it));
        let answer = at(find(&|it| it.attribute("class") == Some("answer")));
        let chart = at(find(&|it| it.has_tag_name("svg")));
        let table = at(find(&|it| it.has_tag_name("table")));
        assert!(answer < chart && chart < table, "{answer} {chart} {table}");
        let figures = document.descendants().filter(|it| it.has_tag_name("figure"));
        let (rest, lead): (Vec<_>, Vec<_>) = figures.partition(folded);
        assert!((1..=2).contains(&lead.len()) && rest.len() > 5, "{} {}", lead.len(), rest.len());
        assert!(document.descendants().filter(|it| it.has_tag_name("table")).all(|it| folded(&it)));
    }
}

#[test]
fn the_answer_says_what_was_found_and_how_far_the_engines_agree() {
    let text = page(&over("delay", &["1ms", "2ms", "4ms"]));
    assert!(
        text.contains("<li>keystrokes: median delay 4.764 ms (in every cell), by sim.</li>"),
        "{text}"
    );
    let text = page(&three());
    assert!(text.contains("Against model, emu differs by"), "{text}");
    assert!(text.contains(" to ") && text.contains("by emu."), "{text}");
    let own = Report { answer: vec!["All is well.".into()], ..three() };
    assert!(page(&own).contains("<li>All is well.</li>") && !page(&own).contains("Against model"));
}

/// The class of the swatch before a legend's name, and the name.
fn legend<'a>(document: &'a Document<'_>) -> Vec<(&'a str, &'a str)> {
    let labels = document.descendants().filter(|it| it.attribute("class") == Some("tl-label"));
    labels
        .filter_map(|label| {
            let swatch = label.prev_sibling_element()?.attribute("class")?;
            let strokes = swatch.starts_with("tl-mark") || swatch.starts_with("tl-edge");
            Some((swatch, label.text()?)).filter(|_| strokes)
        })
        .collect()
}

#[test]
fn an_engine_has_one_colour_in_every_chart() {
    let text = page(&three());
    let document = parsed(&text);
    for (engine, class) in [("model", "tl-sm"), ("sim", "tl-ss"), ("emu", "tl-se")] {
        let named: Vec<(&str, &str)> = legend(&document)
            .into_iter()
            .filter(|(_, name)| name.split(',').next() == Some(engine))
            .collect();
        assert!(named.len() > 4, "{engine}: {named:?}");
        assert!(named.iter().all(|(swatch, _)| swatch.contains(class)), "{engine}: {named:?}");
    }
    // Causes have colours that no engine has.
    let causes =
        legend(&document).into_iter().filter(|(_, name)| ["queue", "transmit"].contains(name));
    let causes: Vec<_> = causes.collect();
    assert!(!causes.is_empty());
    let engines = ["tl-sm", "tl-ss", "tl-se", "tl-sp"];
    assert!(
        causes.iter().all(|(swatch, _)| !engines.iter().any(|it| swatch.contains(it))),
        "{causes:?}"
    );
}

#[test]
fn numbers_with_units_are_spaced_by_their_values() {
    let report = over("link.access.delay", &["1ms", "10ms", "0.1s"]);
    let all = figures(&report);
    let measured = all.iter().find(|figure| figure.name == "measured-0-0").unwrap();
    assert_eq!((measured.kind, measured.x.scale), (FigureKind::Lines, Scale::Log));
    assert_eq!(measured.x.caption(), "delay of access (ms)");
    let places: Vec<&Place> = measured.series[0].points.iter().map(|point| &point.x).collect();
    assert_eq!(places, [&Place::Number(1.0), &Place::Number(10.0), &Place::Number(100.0)]);
    // Words stay places of their own.
    let all = figures(&over("discipline", &["fifo", "drr", "pie"]));
    let measured = all.iter().find(|figure| figure.name == "measured-0-0").unwrap();
    assert_eq!((measured.kind, measured.x.scale), (FigureKind::Bars, Scale::Category));
}

#[test]
fn engines_and_groups_make_panels_with_the_same_axes() {
    let all = figures(&three());
    let several = |figure: &&Figure| {
        let groups: Vec<_> = figure.series.iter().filter_map(|it| it.group.as_ref()).collect();
        figure.kind == FigureKind::Lines && groups.iter().any(|it| *it != groups[0])
    };
    let figure = all.iter().find(several).unwrap();
    let text = chart(figure, Embed::File);
    let document = Document::parse(&text).unwrap();
    let panels: Vec<_> = document
        .descendants()
        .filter(|it| it.has_tag_name(("http://www.w3.org/2000/svg", "svg")))
        .skip(1)
        .collect();
    assert_eq!(panels.len(), 2, "{text}");
    let ticks = |panel: &Node<'_, '_>| -> Vec<String> {
        let ticks = panel.descendants().filter(|it| it.attribute("class") == Some("tl-tick"));
        ticks.filter_map(|it| it.text()).map(str::to_owned).collect()
    };
    assert_eq!(ticks(&panels[0]), ticks(&panels[1]));
    let names: Vec<&str> = legend(&document).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["model", "sim", "emu", "model", "sim", "emu"]);
}

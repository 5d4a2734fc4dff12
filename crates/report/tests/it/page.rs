//! The order of a page, and the looks of its charts.

use crate::fixture;
use roxmltree::{Document, Node, ParsingOptions};
use trunkline_engine::{EngineName, Note, NoteKind, Pace, Run};
use trunkline_report::{Embed, Figure};
use trunkline_report::{FigureKind, Place, Report, Scale, chart, figures, page, terminal};

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
        text.contains("<li>keystrokes: median delay 4.764\u{a0}ms (in every cell), by sim.</li>"),
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

/// A grid of `first` and `second`, each cell slower than the one before, in which the model has no values.
fn grid(first: (&str, &[&str]), second: (&str, &[&str])) -> Report {
    let cells = first.1.iter().flat_map(|one| second.1.iter().map(move |two| (*one, *two)));
    let runs = cells.enumerate().flat_map(|(slower, (one, two))| {
        [EngineName::MODEL, EngineName::SIM].map(|engine| {
            let mut run = fixture::run(engine, "fifo", slower as u64);
            run.traffic.truncate(1);
            let samples = &run.traffic[0].samples;
            let kept = |size| size == 64 && engine == EngineName::SIM;
            run.traffic[0].samples = samples.iter().filter(|it| kept(it.size)).cloned().collect();
            run.cell = [(first.0, one), (second.0, two)].map(|(k, v)| (k.into(), v.into())).into();
            run
        })
    });
    Report { runs: runs.collect(), ..Report::default() }
}

fn measured(report: &Report) -> Figure {
    figures(report).into_iter().find(|figure| figure.name == "measured-0-0").unwrap()
}

#[test]
fn an_engine_without_values_is_not_in_the_charts() {
    let report = grid(("link.a.loss", &["0%", "1%", "5%"]), ("link.a.queue", &["fifo", "pie"]));
    let figure = measured(&report);
    assert_eq!(figure.title, "keystrokes: delay, median (sim)");
    let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["queue of a = fifo", "queue of a = pie"]);
    // The same over sizes.
    let mut report = fixture::report();
    let of_model = |run: &&mut Run| run.engine == EngineName::MODEL;
    for run in report.runs.iter_mut().filter(of_model) {
        run.traffic[0].samples = Vec::new().into();
    }
    let names: Vec<String> = measured(&report).series.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["trunk.discipline = fifo", "trunk.discipline = round-robin"]);
}

#[test]
fn words_are_not_joined_by_lines_and_error_bars_are_explained() {
    let words = grid(("link.a.queue", &["fifo", "drr", "pie"]), ("link.b.queue", &["fifo", "pie"]));
    let numbers = grid(("link.a.loss", &["0%", "1%", "5%"]), ("link.b.queue", &["fifo", "pie"]));
    let [words, numbers] = [words, numbers].map(|report| measured(&report));
    assert_eq!((words.kind, words.x.scale), (FigureKind::Bars, Scale::Category));
    assert_eq!((numbers.kind, numbers.x.scale), (FigureKind::Lines, Scale::Linear));
    assert!(numbers.caption.contains("standard deviation"), "{}", numbers.caption);
}

#[test]
fn error_bars_have_the_colour_of_their_curve() {
    let report = grid(("link.a.loss", &["0%", "1%", "5%"]), ("link.b.queue", &["fifo", "pie"]));
    let text = chart(&measured(&report), Embed::File);
    let document = parsed(&text);
    let bars = document.descendants().filter_map(|it| it.attribute("class"));
    let bars: Vec<&str> = bars.filter(|class| class.starts_with("tl-bar-end")).collect();
    assert!(bars.contains(&"tl-bar-end tl-s0") && bars.contains(&"tl-bar-end tl-s1"), "{bars:?}");
}

#[test]
fn amounts_of_intervals_are_shown_as_throughput() {
    let mut report = over("delay", &["1ms"]);
    report.runs[0].traffic[0].amounts = true;
    let of_cell = figures(&report).into_iter().filter(|figure| figure.name.ends_with("-0-0"));
    let titles: Vec<String> = of_cell.map(|figure| figure.title).collect();
    assert!(titles.contains(&"keystrokes: throughput over time".to_string()), "{titles:?}");
    assert!(titles.contains(&"keystrokes: how the throughput is spread".to_string()), "{titles:?}");
    let text = page(&report);
    assert!(text.contains("each interval, sim") && text.contains("each interval, place by place"));
}

#[test]
fn the_answer_names_a_size_only_if_there_are_several() {
    let report = grid(("link.a.loss", &["0%", "1%", "5%"]), ("link.b.queue", &["fifo", "pie"]));
    let text = page(&report);
    let answer = text.lines().find(|line| line.starts_with("<li>keystrokes")).unwrap();
    assert!(answer.contains("loss of a = 0%, queue of b = fifo)"), "{answer}");
    let text = page(&three());
    let answer = text.lines().find(|line| line.starts_with("<li>keystrokes")).unwrap();
    assert!(answer.contains("512\u{a0}B"), "{answer}");
}

#[test]
fn dashes_have_their_reasons_once_below_the_table() {
    let report = grid(("link.a.loss", &["0%", "1%", "5%"]), ("link.b.queue", &["fifo", "pie"]));
    let text = page(&report);
    let document = parsed(&text);
    let dashes = document.descendants().filter(|it| it.attribute("class") == Some("number none"));
    assert_eq!(dashes.clone().count(), 6);
    assert!(dashes.clone().all(|it| it.text() == Some("–")));
    let reasons: Vec<&str> = text.lines().filter(|line| line.starts_with("<li>– model")).collect();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].ends_with("(64\u{a0}B: median; 6\u{a0}cells)</li>"), "{reasons:?}");
    assert!(!text.contains("Differences in per cent"), "the model has no values");
    assert!(page(&three()).contains("Differences in per cent against model."));
}

/// As if `ping -s` had been given another size than the scenario has.
#[test]
fn a_program_of_other_sizes_is_the_reason_for_the_dashes() {
    let mut report = Report { unavailable: Vec::new(), ..fixture::report() };
    let mut run = fixture::run(EngineName::EMU, "fifo", 90);
    let mut samples = run.traffic[0].samples.to_vec();
    samples.iter_mut().for_each(|it| it.size += 28);
    run.traffic[0].samples = samples.into();
    run.notes.push(Note::of_traffic("keystrokes", NoteKind::Program, "'-D' added"));
    report.runs.push(run);
    let text = terminal(&report);
    let told = |line: &str, sizes: [&str; 2]| {
        line.contains("other sizes") && sizes.iter().all(|it| line.contains(it))
    };
    let reasons: Vec<&str> = text.lines().filter(|line| line.starts_with('–')).collect();
    assert!(
        reasons.iter().any(|line| told(line, ["emu, keystrokes", "29 B, 92 B, 540 B"])),
        "{text}"
    );
    assert!(
        reasons.iter().any(|line| told(line, ["sim, keystrokes", "1 B, 64 B, 512 B"])),
        "{text}"
    );
    assert!(!reasons.iter().any(|line| line.contains("'-D' added")), "{text}");
}

/// Of a program whose output nobody reads the bytes are not known, which is not that there were none.
#[test]
fn what_a_program_does_not_tell_is_no_rate_of_nothing() {
    let mut report = Report { unavailable: Vec::new(), runs: Vec::new(), ..fixture::report() };
    let mut run = fixture::run(EngineName::EMU, "fifo", 90);
    run.traffic[0].samples = Default::default();
    run.traffic[0].delivered_bytes = 0;
    run.pace = Pace::Real;
    report.runs.push(run.clone());
    assert!(terminal(&report).contains("0 bit/s"), "{}", terminal(&report));
    for (kind, words) in [
        (NoteKind::Program, "of this program only its run time is known"),
        (NoteKind::Failed, "'make coffee': exit status: 2"),
    ] {
        let run = Run { notes: vec![Note::of_traffic("keystrokes", kind, words)], ..run.clone() };
        report.runs = vec![run];
        let text = terminal(&report);
        let dash = format!("{words} (delivered)");
        assert!(!text.contains(" 0 bit/s") && text.contains(&dash), "{text}");
    }
}

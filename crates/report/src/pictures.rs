//! Pictures that runs have drawn of themselves: on the page the first, and each as a file beside its record.

use crate::chart::svg::escaped;
use crate::gather::CELLS;
use crate::report::{Report, Spot, run_name};
use trunkline_engine::Picture;

/// Every picture with the stem of its files' names.
pub(crate) fn drawn(report: &Report) -> impl Iterator<Item = (String, &Picture)> {
    let all = report.runs.iter().flat_map(|run| &run.pictures);
    all.enumerate().map(|(number, picture)| (format!("waits-{number}-{}", picture.name), picture))
}

/// Their part of the page.
pub(crate) fn part(report: &Report) -> String {
    let runs = report.runs.iter().flat_map(|run| run.pictures.iter().map(move |it| (run, it)));
    let figures = runs.zip(drawn(report)).take(CELLS).map(|((run, picture), (name, _))| {
        let of = [picture.name.clone(), run_name(run), report.label(Spot::of(run))];
        let of: Vec<String> = of.into_iter().filter(|it| !it.is_empty()).collect();
        format!(
            "<figure class=\"whole\">\n{}<figcaption>{}: {} Record, for ui.perfetto.dev: {name}.trace.json.</figcaption>\n</figure>\n",
            picture.svg,
            escaped(&of.join(", ")),
            escaped(&picture.about),
        )
    });
    let shown: String = figures.collect();
    match drawn(report).count() {
        all if all > CELLS => {
            format!(
                "{shown}<p class=\"aside\">The first {CELLS} of {all}; all are files beside this page.</p>\n"
            )
        }
        _ => shown,
    }
}

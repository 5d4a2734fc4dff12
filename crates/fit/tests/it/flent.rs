//! Flent itself reads what is written for it, if it is installed.

use std::path::Path;
use std::process::Command;
use trunkline_fit::flent::{Flent, Point};

fn wave(middle: f64, swing: f64) -> Vec<Point> {
    let point = |index: u32| {
        let at = f64::from(index) * 0.2;
        Point { at, value: middle + swing * f64::from(index % 5) }
    };
    (0..100).map(point).collect()
}

fn measured(up: usize, down: usize) -> Flent {
    Flent {
        title: "a title".into(),
        note: "urp, 64 bytes".into(),
        host: "far".into(),
        local_host: "near".into(),
        transport: "urp".into(),
        start: 1_795_276_800_000_000_000,
        length: 20.0,
        step: 0.2,
        pings: wave(30.0, 1.0),
        uploads: vec![wave(5.0, 0.1); up],
        downloads: vec![wave(7.0, 0.1); down],
    }
}

fn flent(file: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("flent").arg("-i").arg(file).args(arguments).output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn flent_reads_sums_up_and_plots_each_kind() {
    if !trunkline_skip::installed(&["flent"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Python and its libraries take seconds to start: a plot of each kind, and one summary.
    for (up, down, plot) in
        [(0, 0, "ping_cdf"), (2, 0, "totals"), (0, 3, "box_totals"), (2, 1, "all_scaled")]
    {
        let measured = measured(up, down);
        let file = folder.path().join(format!("{}.flent.gz", measured.test()));
        std::fs::write(&file, measured.file().unwrap()).unwrap();
        let picture = folder.path().join("plot.png");
        let said = flent(&file, &["-f", "plot", "-p", plot, "-o", picture.to_str().unwrap()]);
        let size = std::fs::metadata(&picture).map_or(0, |found| found.len());
        assert!(size > 5_000, "{plot} of {}: {said:?}", measured.test());
        std::fs::remove_file(&picture).unwrap();
    }
    let summary = flent(&folder.path().join("rrul_be.flent.gz"), &["-f", "summary"]).unwrap();
    for figure in ["Ping (ms) UDP BE1", "TCP upload sum", "10.40", "32.00"] {
        assert!(summary.contains(figure), "{figure}: {summary}");
    }
}

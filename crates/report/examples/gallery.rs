//! Draws one figure of each kind from made-up numbers: `cargo run -p trunkline-report --example gallery DIR`.

use trunkline_report::{
    Axis, Embed, Figure, FigureKind, Place, Point, Role, Scale, Series, chart, distribution,
};

fn main() -> std::io::Result<()> {
    let Some(directory) = std::env::args_os().nth(1).map(std::path::PathBuf::from) else {
        eprintln!("gallery: no directory given; name one: gallery DIR");
        std::process::exit(2);
    };
    std::fs::create_dir_all(&directory)?;
    for figure in figures() {
        let file = directory.join(format!("{}.svg", figure.slug()));
        std::fs::write(file, chart(&figure, Embed::File))?;
    }
    Ok(())
}

fn figures() -> Vec<Figure> {
    vec![bars(), lines(), log_lines(), cdf(), cloud(), queue(), waterfall(), stacked(), crowded()]
}

fn figure(
    name: &str,
    kind: FigureKind,
    title: &str,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
) -> Figure {
    Figure { name: name.into(), kind, title: title.into(), caption: String::new(), x, y, series }
}

fn series(name: &str, role: Role, points: Vec<Point>) -> Series {
    Series { name: name.into(), role, group: None, points }
}

/// Numbers that look scattered and are the same each time.
fn scatter(index: u32) -> f64 {
    f64::from(index.wrapping_mul(2_654_435_761) >> 16) / 65_536.0
}

fn bars() -> Figure {
    let points = |factor: f64| {
        ["fifo", "round-robin", "two-lists", "drr"]
            .into_iter()
            .zip([1.31, 0.97, 1.02, 0.99])
            .map(|(name, y)| Point::new(name, y * factor).spread(0.08))
            .collect()
    };
    let all = vec![
        series("published", Role::Published, points(1.04)),
        series("model", Role::Model, points(1.0)),
        series("sim", Role::Sim, points(0.98)),
        series("emu", Role::Emu, points(0.93)),
    ];
    let (x, y) = (Axis::category("discipline", ""), Axis::linear("throughput", "Mbit/s"));
    figure("bars", FigureKind::Bars, "Throughput of one file transfer", x, y, all)
}

fn over_sizes(name: &str, role: Role, group: &str, fixed: f64, each: f64) -> Series {
    let sizes = [1.0, 16.0, 64.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
    let point = |size: f64| {
        let point = Point::new(size, fixed + each * size);
        if role == Role::Published { point } else { point.spread(0.6 + each * size * 0.05) }
    };
    let points = sizes.into_iter().map(point).collect();
    Series { name: name.into(), role, group: Some(group.into()), points }
}

fn lines() -> Figure {
    let all = vec![
        over_sizes("one board, published", Role::Published, "one", 9.0, 0.021),
        over_sizes("one board, sim", Role::Sim, "one", 8.6, 0.0215),
        over_sizes("other board, published", Role::Published, "other", 14.0, 0.012),
        over_sizes("other board, sim", Role::Sim, "other", 14.5, 0.0117),
        over_sizes("other board, model", Role::Model, "other", 13.2, 0.0113),
    ];
    let (x, y) = (Axis::category("message", "bytes"), Axis::linear("round trip", "ms"));
    figure("lines", FigureKind::Lines, "Round trip of a message and its answer", x, y, all)
}

fn log_lines() -> Figure {
    let mut figure = lines();
    figure.name = "log-lines".into();
    figure.x.scale = Scale::Log;
    figure.y.scale = Scale::Log;
    figure.series[0].points.push(Point::new(0.0, 8.0));
    figure
}

fn cdf() -> Figure {
    let sample = |shift: f64| distribution((0..400).map(|i| shift + 4.0 * scatter(i).powi(3)));
    let all = vec![
        series("fifo", Role::Sim, sample(6.0)),
        series("round-robin", Role::Sim, sample(3.1)),
        series("fifo, emulated", Role::Emu, sample(6.4)),
        series("round-robin, emulated", Role::Emu, sample(3.4)),
    ];
    let (x, y) = (Axis::linear("delay", "ms"), Axis::linear("share of samples", ""));
    figure("cdf", FigureKind::Cdf, "Delay of a keystroke", x, y, all)
}

fn cloud() -> Figure {
    let run = |shift: f64, count: u32| {
        let point = |i: u32| {
            Point::new(f64::from(i) * 10.0 / f64::from(count), shift + scatter(i).powi(4) * 3.0)
        };
        (0..count).map(point).collect()
    };
    let all =
        vec![series("sim", Role::Sim, run(3.0, 20_000)), series("emu", Role::Emu, run(4.2, 50))];
    let (x, y) = (Axis::linear("time", "s"), Axis::linear("delay", "ms"));
    figure("time-series", FigureKind::TimeSeries, "Delay of a keystroke over time", x, y, all)
}

fn queue() -> Figure {
    let depth = |scale: f64| {
        let point = |i: u32| {
            Point::new(
                f64::from(i) / 40.0,
                (f64::from(i % 37) * scale + 900.0 * scatter(i)).floor(),
            )
        };
        (0..400).map(point).collect()
    };
    let all = vec![
        series("coma>tempel", Role::Sim, depth(300.0)),
        series("tempel>coma", Role::Sim, depth(20.0)),
    ];
    let (x, y) = (Axis::linear("time", "s"), Axis::linear("waiting", "bytes"));
    figure("queue-depth", FigureKind::QueueDepth, "Queue depth", x, y, all)
}

fn causes(rows: &[(&str, [f64; 5])]) -> Vec<Series> {
    ["host", "window", "queue", "transmit", "propagate"]
        .into_iter()
        .enumerate()
        .map(|(cause, name)| {
            let points =
                rows.iter().map(|(place, spans)| Point::new(*place, spans[cause])).collect();
            series(name, Role::Ours, points)
        })
        .collect()
}

fn waterfall() -> Figure {
    let rows = [
        ("coma", [3.2, 0.8, 0.0, 0.0, 0.0]),
        ("coma>node", [0.0, 0.0, 1.9, 2.4, 0.01]),
        ("node>tempel", [0.0, 0.0, 0.2, 1.2, 6.0]),
        ("tempel", [4.1, 0.0, 0.0, 0.0, 0.0]),
        ("tempel>coma", [0.0, 0.0, 0.0, 0.6, 6.0]),
    ];
    let (x, y) = (Axis::category("place", ""), Axis::linear("mean time", "ms"));
    figure(
        "waterfall",
        FigureKind::Waterfall,
        "Where the time of a message went",
        x,
        y,
        causes(&rows),
    )
}

fn stacked() -> Figure {
    let rows = [
        ("1 B, model", [3.2, 0.0, 0.0, 0.1, 6.0]),
        ("1 B, sim", [3.3, 0.0, 0.3, 0.1, 6.0]),
        ("1024 B, model", [5.2, 1.8, 0.0, 6.1, 6.0]),
        ("1024 B, sim", [5.3, 2.0, 0.5, 6.1, 6.0]),
    ];
    let (x, y) = (Axis::category("", ""), Axis::linear("mean time", "ms"));
    figure(
        "stacked",
        FigureKind::Stacked,
        "Where the time went, by message size",
        x,
        y,
        causes(&rows),
    )
}

/// Names, numbers and series as unwieldy as they come.
fn crowded() -> Figure {
    let names: Vec<String> =
        (0..14).map(|i| format!("trunk.discipline = number {i}, delay = {i}ms")).collect();
    let all = (0..9)
        .map(|s| {
            let point = |(i, name): (usize, &String)| {
                Point::new(name.as_str(), 1e6 * (1.0 + (i as f64 + 1.0) * scatter(s)))
            };
            let points = names.iter().enumerate().map(point).collect();
            series(&format!("series {s} with <a> rather long & odd name"), Role::Ours, points)
        })
        .chain([series("nothing", Role::Ours, vec![Point::new(Place::Number(1.0), f64::NAN)])])
        .collect();
    let title = "A heading that is much longer than what a single line of a chart of this width could \
                 hold at the size of a heading";
    let (x, y) = (Axis::category("cell", ""), Axis::linear("something counted", "bytes"));
    figure("crowded", FigureKind::Bars, title, x, y, all)
}

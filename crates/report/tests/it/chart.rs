//! What holds for every chart: well-formed, within its view, labels apart from one another.

use proptest::prelude::*;
use trunkline_report::{Axis, Embed, Figure, FigureKind, Point, Role, Scale, Series, chart};

const KINDS: [FigureKind; 7] = [
    FigureKind::Bars,
    FigureKind::Lines,
    FigureKind::Cdf,
    FigureKind::TimeSeries,
    FigureKind::QueueDepth,
    FigureKind::Waterfall,
    FigureKind::Stacked,
];

const ROLES: [Role; 3] = [Role::Sim, Role::Model, Role::Emu];

fn any_figure() -> impl Strategy<Value = Figure> {
    let value = prop_oneof![
        8 => (0.0..1e6f64).boxed(),
        1 => Just(0.0).boxed(),
        1 => (-1e3..1e3f64).boxed(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(1e300), Just(1e-300)].boxed(),
    ];
    let name = "[a-zA-Z0-9 <>&=.,µ-]{0,40}";
    let points = proptest::collection::vec((0u32..40, value), 0..40);
    let series = proptest::collection::vec((name, points), 0..7);
    let scale = || prop_oneof![Just(Scale::Linear), Just(Scale::Log), Just(Scale::Category)];
    (0..KINDS.len(), name, scale(), scale(), series, any::<bool>(), 1..4usize).prop_map(
        |(kind, title, x, y, series, words, origins)| Figure {
            name: "a figure".into(),
            kind: KINDS[kind],
            title,
            caption: String::new(),
            x: Axis { scale: x, ..Axis::linear("over", "bytes") },
            y: Axis { scale: y, ..Axis::linear("what", "ms") },
            series: series
                .into_iter()
                .enumerate()
                .map(|(index, (name, points))| Series {
                    role: ROLES[index % origins],
                    group: (origins > 2).then(|| format!("group {}", index / origins)),
                    ..one(name, &points, words)
                })
                .collect(),
        },
    )
}

fn one(name: String, points: &[(u32, f64)], words: bool) -> Series {
    let point = |(x, y): &(u32, f64)| match words {
        true => Point::new(format!("category number {x}").as_str(), *y),
        false => Point::new(f64::from(*x), *y).spread(y / 10.0),
    };
    Series { name, role: Role::Ours, group: None, points: points.iter().map(point).collect() }
}

/// Left, top, right and bottom of each upright text in the chart, its width taken at the usual half em.
fn boxes(document: &roxmltree::Document<'_>) -> Vec<(f64, f64, f64, f64, String)> {
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts
        .filter(|node| node.attribute("transform").is_none())
        .map(|node| {
            let (right, down) = moved(node);
            let number = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
            let size = match node.attribute("class").unwrap() {
                "tl-heading" => 16.0,
                "tl-title" => 14.0,
                "tl-label" => 12.0,
                "tl-value" | "tl-note" => 10.0,
                _ => 11.0,
            };
            let text = node.text().unwrap_or_default().to_string();
            let width = text.chars().count() as f64 * size * 0.5;
            let left = match node.attribute("text-anchor") {
                Some("end") => number("x") - width,
                Some("middle") => number("x") - width / 2.0,
                _ => number("x"),
            };
            let (left, below) = (left + right, number("y") + down);
            (left, below - size * 0.75, left + width, below, text)
        })
        .collect()
}

/// By how much the panel that a text is in stands to the right and below.
fn moved(node: roxmltree::Node<'_, '_>) -> (f64, f64) {
    let places = node.ancestors().filter(|it| it.has_tag_name(("http://www.w3.org/2000/svg", "g")));
    let places = places.filter_map(|group| group.attribute("transform")).map(|text| {
        let numbers = text.trim_start_matches("translate(").trim_end_matches(')');
        let (x, y) = numbers.split_once(' ').unwrap();
        (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap())
    });
    places.fold((0.0, 0.0), |sum, place| (sum.0 + place.0, sum.1 + place.1))
}

proptest! {
    #[test]
    fn every_chart_is_well_formed_and_its_labels_stand_apart(figure in any_figure()) {
        let text = chart(&figure, Embed::File);
        let document = roxmltree::Document::parse(&text).unwrap();
        let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len(), "identifiers are unique");
        // A series or a figure may be called so, a place may not.
        let attributes = document.descendants().flat_map(|node| node.attributes());
        for attribute in attributes.filter(|it| it.name() != "aria-label") {
            let value = attribute.value();
            prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{}={value}", attribute.name());
        }
        let view: Vec<f64> = document.root_element().attribute("viewBox").unwrap()
            .split(' ').map(|part| part.parse().unwrap()).collect();
        let boxes = boxes(&document);
        for (index, a) in boxes.iter().enumerate() {
            prop_assert!(a.0 >= -1.0 && a.1 >= 0.0 && a.2 <= view[2] + 1.0 && a.3 <= view[3],
                "{a:?} is out of the view");
            for b in &boxes[index + 1..] {
                let apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
                prop_assert!(apart || a.4.trim().is_empty() || b.4.trim().is_empty(), "{a:?} covers {b:?}");
            }
        }
    }

    #[test]
    fn a_figure_survives_its_serialised_form(mut figure in any_figure()) {
        // JSON has no numbers that are not finite.
        for series in &mut figure.series {
            series.points.retain(|point| point.y.is_finite());
        }
        let text = serde_json::to_string(&figure).unwrap();
        let back: Figure = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(chart(&back, Embed::Page), chart(&figure, Embed::Page));
    }
}

#[test]
fn a_long_label_beside_its_bar_has_two_lines() {
    let place = "server transport, congestion window of the connection";
    let points = vec![Point::new(place, 3.0), Point::new("link", 1.0)];
    let figure = Figure {
        name: "places".into(),
        kind: FigureKind::Waterfall,
        title: "place by place".into(),
        caption: String::new(),
        x: Axis::category("", ""),
        y: Axis::linear("mean time", "ms"),
        series: vec![Series { points, ..Series::default() }],
    };
    let text = chart(&figure, Embed::Page);
    let document = roxmltree::Document::parse(&text).unwrap();
    let labels = document.descendants().filter(|it| it.attribute("text-anchor") == Some("end"));
    let labels: Vec<&str> = labels.filter_map(|it| it.text()).collect();
    assert_eq!(labels.join(" "), format!("{place} link"), "{labels:?}");
    assert_eq!(labels.len(), 3);
}

//! Axes of numbers: the coordinates of a grid are texts with units, and those that are all of one kind are spaced by
//! their values.

use crate::figure::{Axis, Figure, FigureKind, Place, Scale};
use trunkline_core::{Probability, Rate, Size, Span};

/// Fewer values than this make no curve.
const FEWEST: usize = 3;
/// From this ratio of the greatest value to the least on an axis is logarithmic.
const WIDE: f64 = 16.0;

/// A kind of coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Time,
    Rate,
    Size,
    Share,
}

const KINDS: [Kind; 5] = [Kind::Number, Kind::Time, Kind::Rate, Kind::Size, Kind::Share];

impl Kind {
    /// The value of `text` in the kind's own unit, if it is of this kind.
    fn value(self, text: &str) -> Option<f64> {
        let value = match self {
            Kind::Number => text.parse().ok(),
            Kind::Time => text.parse::<Span>().ok().map(|span| span.as_nanos() as f64),
            Kind::Rate => text.parse::<Rate>().ok().map(|rate| rate.bits_per_second() as f64),
            Kind::Size => text.parse::<Size>().ok().map(|size| size.bytes() as f64),
            Kind::Share => text.parse::<Probability>().ok().map(|share| share.as_f64() * 100.0),
        };
        value.filter(|value| value.is_finite())
    }

    /// A unit in which all of `values` are short, and what to divide by.
    fn unit(self, values: &[f64]) -> (f64, &'static str) {
        let units: &[(f64, &str)] = match self {
            Kind::Number => return (1.0, ""),
            Kind::Share => return (1.0, "%"),
            Kind::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Kind::Rate => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            Kind::Size if values.iter().all(|value| value % 1024.0 == 0.0) => {
                &[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "bytes")]
            }
            Kind::Size => &[(1e6, "MB"), (1e3, "kB"), (1.0, "bytes")],
        };
        let least = values.iter().copied().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
        let fits = units.iter().find(|(factor, _)| least >= *factor * 0.1);
        fits.or(units.last()).copied().unwrap_or((1.0, ""))
    }
}

/// Spaces the level axis of curves by number if every place on it is a number or a quantity of one kind.
pub(crate) fn numbered(figure: &mut Figure) {
    if figure.x.scale != Scale::Category || figure.kind != FigureKind::Lines {
        return;
    }
    let places: Vec<&Place> =
        figure.series.iter().flat_map(|series| &series.points).map(|point| &point.x).collect();
    let Some((kind, values)) =
        KINDS.into_iter().find_map(|kind| Some((kind, read(kind, &places)?)))
    else {
        return;
    };
    let (divisor, unit) = kind.unit(&values);
    let scale = scale(&values);
    let points = figure.series.iter_mut().flat_map(|series| &mut series.points);
    for (point, value) in points.zip(&values) {
        point.x = Place::Number(value / divisor);
    }
    let unit = if unit.is_empty() { figure.x.unit.clone() } else { unit.into() };
    figure.x = Axis { scale, unit, ..figure.x.clone() };
}

/// Whether `texts` are distinct enough numbers of one kind for a curve.
pub(crate) fn is_numeric<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let places: Vec<Place> = texts.map(Place::from).collect();
    let places: Vec<&Place> = places.iter().collect();
    KINDS.into_iter().any(|kind| read(kind, &places).is_some())
}

/// The values of all places, if they are of `kind` and at least [`FEWEST`] differ.
fn read(kind: Kind, places: &[&Place]) -> Option<Vec<f64>> {
    let value = |place: &&Place| match place {
        Place::Number(number) => (kind == Kind::Number).then_some(*number),
        Place::Text(text) => kind.value(text),
    };
    let values: Vec<f64> = places.iter().map(value).collect::<Option<_>>()?;
    let mut distinct = values.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    (distinct.len() >= FEWEST).then_some(values)
}

fn scale(values: &[f64]) -> Scale {
    let (least, greatest) =
        values.iter().fold((f64::MAX, f64::MIN), |(l, g), value| (l.min(*value), g.max(*value)));
    if least > 0.0 && greatest / least >= WIDE { Scale::Log } else { Scale::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Point, Series};

    fn over(places: &[&str]) -> Figure {
        let points = places.iter().map(|place| Point::new(*place, 1.0)).collect();
        let mut figure = Figure {
            name: "a".into(),
            kind: FigureKind::Lines,
            title: String::new(),
            caption: String::new(),
            x: Axis::category("delay of access", ""),
            y: Axis::default(),
            series: vec![Series { points, ..Series::default() }],
        };
        numbered(&mut figure);
        figure
    }

    fn places(figure: &Figure) -> Vec<f64> {
        let place = |point: &Point| match point.x {
            Place::Number(number) => number,
            Place::Text(_) => f64::NAN,
        };
        figure.series[0].points.iter().map(place).collect()
    }

    #[test]
    fn quantities_of_one_kind_stand_where_their_values_are() {
        let figure = over(&["100us", "1ms", "20ms", "0.1s"]);
        assert_eq!(places(&figure), [0.1, 1.0, 20.0, 100.0]);
        assert_eq!(
            (figure.x.scale, figure.x.caption().as_str()),
            (Scale::Log, "delay of access (ms)")
        );
        let figure = over(&["16KiB", "32KiB", "48KiB"]);
        assert_eq!(places(&figure), [16.0, 32.0, 48.0]);
        assert_eq!((figure.x.scale, figure.x.unit.as_str()), (Scale::Linear, "KiB"));
        let figure = over(&["10Mbit/s", "1Gbit/s", "500Mbit/s"]);
        assert_eq!(
            (places(&figure), figure.x.unit.as_str()),
            (vec![10.0, 1000.0, 500.0], "Mbit/s")
        );
        let figure = over(&["0%", "0.5%", "10%"]);
        assert_eq!((figure.x.scale, figure.x.unit.as_str()), (Scale::Linear, "%"));
    }

    #[test]
    fn what_is_no_number_and_what_is_of_two_kinds_stays() {
        for places in [
            &["fifo", "drr", "pie"][..],
            &["1ms", "2ms", "off"],
            &["1ms", "1MB", "7ms"],
            &["1", "2"],
        ] {
            assert_eq!(over(places).x.scale, Scale::Category, "{places:?}");
        }
    }
}

//! Lower convex hulls, and the common slope of two of them.

/// The lower convex hull of points whose first coordinates do not fall, from left to right (Andrew's
/// monotone chain). Points may come unordered; they are sorted.
pub(crate) fn lower_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        while hull.len() >= 2 && !turns_up(hull[hull.len() - 2], hull[hull.len() - 1], point) {
            hull.pop();
        }
        if hull.last().is_none_or(|last| last.0 < point.0) {
            hull.push(point);
        }
    }
    hull
}

/// Whether the way from `a` over `b` to `c` turns to the left.
fn turns_up(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    (b.0 - a.0) * (c.1 - a.1) > (b.1 - a.1) * (c.0 - a.0)
}

/// The slope `b`, between `-most` and `most`, for which a line of slope `b` below all of `above` and a
/// line of slope `-b` below all of `below` leave the least sum of distances to the points. The sum is
/// convex and piecewise linear in `b`, so halving finds its minimum.
pub(crate) fn skew(above: &[(f64, f64)], below: &[(f64, f64)], most: f64) -> f64 {
    let (up, down) = (Side::new(above), Side::new(below));
    let (mut low, mut high) = (-most, most);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        // What the sum gains for each unit of slope, left and right of the hull point that is touched.
        let gain = up.gain(middle) - down.gain(-middle);
        if gain > 0.0 { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

/// The points on one side, as far as the sum of distances needs them.
struct Side {
    hull: Vec<(f64, f64)>,
    /// Sum of the first coordinates, and how many.
    sum: f64,
    count: f64,
}

impl Side {
    fn new(points: &[(f64, f64)]) -> Side {
        let sum = points.iter().map(|point| point.0).sum();
        Side { hull: lower_hull(points), sum, count: points.len() as f64 }
    }

    /// The derivative by `slope` of `sum over points of (y - slope t) - n min (y - slope t)`.
    fn gain(&self, slope: f64) -> f64 {
        let height = |point: &&(f64, f64)| point.1 - slope * point.0;
        let touched = self.hull.iter().min_by(|a, b| height(a).total_cmp(&height(b)));
        self.count * touched.map_or(0.0, |point| point.0) - self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((0.0..1e3f64, 0.0..1e3f64), 2..60)
    }

    proptest! {
        #[test]
        fn no_point_lies_below_the_hull(points in points()) {
            let hull = lower_hull(&points);
            for (t, y) in &points {
                for two in hull.windows(2) {
                    let slope = (two[1].1 - two[0].1) / (two[1].0 - two[0].0);
                    prop_assert!(y - (two[0].1 + slope * (t - two[0].0)) > -1e-6 * (1.0 + slope.abs()));
                }
            }
            prop_assert!(hull.iter().all(|point| points.contains(point)));
        }

        #[test]
        fn no_other_slope_is_nearer(above in points(), below in points(), other in -5.0..5.0f64) {
            let sum = |slope: f64| {
                let distance = |points: &[(f64, f64)], slope: f64| {
                    let heights: Vec<f64> = points.iter().map(|(t, y)| y - slope * t).collect();
                    let least = heights.iter().copied().fold(f64::INFINITY, f64::min);
                    heights.iter().map(|height| height - least).sum::<f64>()
                };
                distance(&above, slope) + distance(&below, -slope)
            };
            let best = skew(&above, &below, 5.0);
            prop_assert!(sum(best) <= sum(other) * (1.0 + 1e-9) + 1e-6);
        }
    }
}

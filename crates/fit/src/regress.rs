//! Weighted least squares with few unknowns.

/// The result of a regression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    /// One for each column.
    pub coefficients: Vec<f64>,
    /// Covariances of the coefficients, if the weights are right.
    covariance: Vec<Vec<f64>>,
}

impl Solution {
    /// The value at a row.
    pub fn at(&self, row: &[f64]) -> f64 {
        row.iter().zip(&self.coefficients).map(|(x, coefficient)| x * coefficient).sum()
    }

    /// The standard error of the value at a row.
    pub fn error_at(&self, row: &[f64]) -> f64 {
        let products = |line: &[f64]| line.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
        let sum: f64 = self.covariance.iter().zip(row).map(|(line, x)| products(line) * x).sum();
        sum.max(0.0).sqrt()
    }
}

/// Solves `rows * coefficients = values` in the least squares sense, each row divided by its standard
/// error. `None` if the columns do not determine the coefficients.
pub(crate) fn regress(rows: &[Vec<f64>], values: &[f64], errors: &[f64]) -> Option<Solution> {
    let width = rows.first()?.len();
    // Columns differ by orders of magnitude (1 against 65 536): each is brought to length one first.
    let scales: Vec<f64> = (0..width)
        .map(|j| rows.iter().zip(errors).map(|(row, e)| (row[j] / e) * (row[j] / e)).sum::<f64>())
        .map(f64::sqrt)
        .collect();
    if scales.contains(&0.0) {
        return None;
    }
    let mut normal = vec![vec![0.0; width]; width];
    let mut right = vec![0.0; width];
    for ((row, value), error) in rows.iter().zip(values).zip(errors) {
        let scaled: Vec<f64> =
            row.iter().zip(&scales).map(|(x, scale)| x / scale / error).collect();
        for j in 0..width {
            right[j] += scaled[j] * value / error;
            (0..width).for_each(|k| normal[j][k] += scaled[j] * scaled[k]);
        }
    }
    let inverse = invert(normal)?;
    let coefficients = inverse
        .iter()
        .zip(&scales)
        .map(|(line, scale)| line.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>() / scale)
        .collect();
    let covariance = (0..width)
        .map(|j| (0..width).map(|k| inverse[j][k] / scales[j] / scales[k]).collect())
        .collect();
    Some(Solution { coefficients, covariance })
}

/// Gauss–Jordan with row pivots; `None` for what is singular to twelve digits.
fn invert(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let width = matrix.len();
    for (index, line) in matrix.iter_mut().enumerate() {
        line.extend((0..width).map(|column| if column == index { 1.0 } else { 0.0 }));
    }
    for column in 0..width {
        let pivot = (column..width)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        let divisor = matrix[column][column];
        if divisor.abs() < 1e-12 {
            return None;
        }
        matrix[column].iter_mut().for_each(|value| *value /= divisor);
        let line = matrix[column].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = other[column];
            other.iter_mut().zip(&line).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    Some(matrix.into_iter().map(|line| line[width..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn a_line_and_its_error() {
        let mut stream = Seed(9).stream("regress");
        let rows: Vec<Vec<f64>> = (0..50).map(|x| vec![1.0, f64::from(x) * 1000.0]).collect();
        let errors = vec![0.5; rows.len()];
        let mut within = 0;
        for _ in 0..200 {
            let values: Vec<f64> =
                rows.iter().map(|row| 3.0 + 0.002 * row[1] + 0.5 * stream.normal()).collect();
            let found = regress(&rows, &values, &errors).unwrap();
            let at = [1.0, 80_000.0];
            within += u32::from((found.at(&at) - 163.0).abs() < 1.96 * found.error_at(&at));
        }
        assert!((178..=199).contains(&within), "{within} of 200");
    }

    #[test]
    fn equal_columns_determine_nothing() {
        let rows: Vec<Vec<f64>> = (1..9).map(|x| vec![f64::from(x), 2.0 * f64::from(x)]).collect();
        assert_eq!(regress(&rows, &[1.0; 8], &[1.0; 8]), None);
        assert_eq!(regress(&[], &[], &[]), None);
    }

    proptest! {
        #[test]
        fn what_is_exact_is_found_exactly(a in -9.0..9.0f64, b in -0.1..0.1f64, c in -50.0..50.0f64) {
            let rows: Vec<Vec<f64>> = (0..30u32)
                .map(|x| vec![1.0, f64::from(x * x) * 7.0, f64::from(x / 7)])
                .collect();
            let truth = [a, b, c];
            let value = |row: &Vec<f64>| row.iter().zip(truth).map(|(x, k)| x * k).sum::<f64>();
            let values: Vec<f64> = rows.iter().map(value).collect();
            let found = regress(&rows, &values, &[1.0; 30]).unwrap();
            for (coefficient, right) in found.coefficients.iter().zip(truth) {
                prop_assert!((coefficient - right).abs() < 1e-7);
            }
        }
    }
}

//! Numbers for readers: few digits, never a value that is not finite.

use trunkline_core::Span;

/// What stands where there is no value.
pub(crate) const NONE: &str = "–";

/// `value` with as many decimals as a scale with this step needs.
pub(crate) fn with_step(value: f64, step: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    if value != 0.0 && (value.abs() >= 1e7 || step < 1e-6) {
        return short(value);
    }
    let decimals =
        if step > 0.0 && step < 1.0 { (-step.log10() - 1e-9).ceil() as usize } else { 0 };
    unsigned_zero(format!("{value:.decimals$}"))
}

/// `value` to four significant digits, the shortest way.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size != 0.0 && !(1e-3..1e7).contains(&size) {
        format!("{value:.3e}").replace(".000e", "e")
    } else {
        let whole = if size < 1.0 { 0 } else { size.log10().floor() as usize };
        let decimals = if size < 0.1 { 5 } else { 3usize.saturating_sub(whole) };
        let text = format!("{value:.decimals$}");
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        };
        unsigned_zero(text)
    }
}

fn unsigned_zero(text: String) -> String {
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').into()
    } else {
        text
    }
}

/// A time given in nanoseconds, in the unit that suits it.
pub(crate) fn time(nanos: f64) -> String {
    scaled(nanos, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// A span in the unit that suits it.
pub(crate) fn span(span: Span) -> String {
    time(span.as_nanos() as f64)
}

/// Bytes each second, as bits each second in the unit that suits it.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    scaled(
        bytes_per_second * 8.0,
        &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    )
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let fits = units.iter().find(|(factor, _)| value.abs() >= *factor).or(units.last());
    fits.map_or_else(|| short(value), |(factor, unit)| format!("{} {unit}", short(value / factor)))
}

/// How far `value` is from `reference`, in per cent of it, with its sign.
pub(crate) fn difference(value: f64, reference: f64) -> String {
    let per_cent = (value / reference - 1.0) * 100.0;
    if per_cent.is_finite() { format!("{per_cent:+.1} %") } else { NONE.into() }
}

/// Bytes, for headings of rows.
pub(crate) fn bytes(count: u64) -> String {
    format!("{count} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_digits_in_a_fitting_unit() {
        assert_eq!(time(12_345_678.0), "12.35 ms");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(rate(193_000.0), "1.544 Mbit/s");
        assert_eq!(
            (short(0.05), short(1234.5), short(1e9)),
            ("0.05".into(), "1234".into(), "1e9".into())
        );
        assert_eq!(short(99.996), "100");
        assert_eq!(with_step(-0.0, 0.5), "0.0");
        assert_eq!(difference(110.0, 100.0), "+10.0 %");
    }

    #[test]
    fn nothing_that_is_not_finite_is_printed() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for text in [time(value), rate(value), short(value), with_step(value, 1.0)] {
                assert_eq!(text, NONE);
            }
        }
        assert_eq!(difference(1.0, 0.0), NONE);
    }
}

//! Numbers for readers: few digits, never a value that is not finite.

/// The sign that there is no value.
pub(crate) const NONE: &str = "–";

/// `value` with as many decimals as a scale with this step needs.
pub(crate) fn with_step(value: f64, step: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    if value != 0.0 && (value.abs() >= 1e12 || step < 1e-6) {
        return short(value);
    }
    let decimals =
        if step > 0.0 && step < 1.0 { (-step.log10() - 1e-9).ceil() as usize } else { 0 };
    grouped(&unsigned_zero(format!("{value:.decimals$}")))
}

/// A thin space between the thousands of numbers of five digits and more.
fn grouped(text: &str) -> String {
    let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
    let whole = digits.find('.').unwrap_or(digits.len());
    if whole < 5 {
        return text.into();
    }
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index < whole && (whole - index) % 3 == 0 {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// `value` to four significant digits, the shortest way.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size != 0.0 && !(1e-3..1e7).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
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

const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const RATES: [(f64, &str); 4] = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];

/// A time and its deviation, both in nanoseconds, in the unit that suits the time.
pub(crate) fn time(nanos: f64, deviation: f64) -> String {
    scaled(nanos, deviation, &TIMES)
}

/// Bytes each second and their deviation, as bits each second in the unit that suits the rate.
pub(crate) fn rate(bytes_per_second: f64, deviation: f64) -> String {
    scaled(bytes_per_second * 8.0, deviation * 8.0, &RATES)
}

/// A deviation of no more than a ten-thousandth of the value is not worth its digits. One of more than ten times
/// the value decides upon the unit.
fn scaled(value: f64, deviation: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let size = value.abs().max(if deviation.is_finite() { deviation / 10.0 } else { 0.0 });
    let fits = units.iter().find(|(factor, _)| size >= *factor).or(units.last());
    let (factor, unit) = fits.copied().unwrap_or((1.0, ""));
    if deviation.is_finite() && deviation > value.abs() * 1e-4 {
        format!("{} ± {} {unit}", short(value / factor), brief(deviation / factor))
    } else {
        format!("{} {unit}", short(value / factor))
    }
}

/// To two significant digits.
fn brief(value: f64) -> String {
    let power = 10f64.powf(value.abs().log10().floor() - 1.0);
    short((value / power).round() * power)
}

/// From this share on a difference is told as a factor.
const FACTOR: f64 = 10.0;

/// How far `value` is from `reference`, in per cent of it, with its sign.
pub(crate) fn difference(value: f64, reference: f64) -> String {
    if value == reference { share(0.0) } else { share(value / reference - 1.0) }
}

/// A share of a reference as signed per cent, a large one as a factor; beside a reference of zero it says so.
pub fn share(share: f64) -> String {
    match (share.is_finite(), share < FACTOR) {
        (false, _) => "against 0".into(),
        (true, true) => format!("{:+.1} %", share * 100.0),
        (true, false) => format!("{} times", short(1.0 + share)),
    }
}

/// A share as per cent.
pub(crate) fn unsigned_share(share: f64) -> String {
    if share.is_finite() { format!("{} %", short(share * 100.0)) } else { "against 0".into() }
}

/// The size of a measurement, for headings of rows; `amounts` if those of all sizes are one group, as those of a greedy
/// connection's intervals are.
pub(crate) fn bytes(count: u64, amounts: bool) -> String {
    if amounts { "each interval".into() } else { format!("{count} B") }
}

/// Signs that do not begin a line without their number.
const SIGNS: [&str; 14] = [
    "%", "s", "ms", "us", "µs", "ns", "B", "bytes", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "±",
    "cells",
];

/// `text` with numbers and their units on one line.
pub(crate) fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ');
    out.extend(words.next());
    for word in words {
        let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
        let number = out.ends_with(|last: char| last.is_ascii_digit());
        out.push(if number && SIGNS.contains(&unit) { '\u{a0}' } else { ' ' });
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units() {
        let text = "from 9.5 Mbit/s (delay = 5ms, 20 B) to 4 of 5 cells, 3 %.";
        let glued = glued(text);
        assert_eq!(
            glued.replace('\u{a0}', "~"),
            "from 9.5~Mbit/s (delay = 5ms, 20~B) to 4 of 5~cells, 3~%."
        );
        assert_eq!(glued.replace('\u{a0}', " "), text);
    }

    #[test]
    fn few_digits_in_a_fitting_unit() {
        assert_eq!(time(12_345_678.0, 123_456.0), "12.35 ± 0.12 ms");
        assert_eq!(time(0.0, 0.0), "0 ns");
        assert_eq!(time(0.0, 5.5e7), "0 ± 55 ms");
        assert_eq!(time(600.0, 310_000.0), "0.6 ± 310 µs");
        assert_eq!(rate(193_000.0, 0.01), "1.544 Mbit/s");
        assert_eq!(
            (short(0.05), short(1234.5), short(1e9)),
            ("0.05".into(), "1234".into(), "1e9".into())
        );
        assert_eq!(short(99.996), "100");
        assert_eq!(
            (with_step(-15e6, 5e6), with_step(2000.0, 500.0)),
            ("-15\u{2009}000\u{2009}000".into(), "2000".into())
        );
        assert_eq!(short(1.5e7), "1.5e7");
        assert_eq!(with_step(-0.0, 0.5), "0.0");
        assert_eq!(difference(110.0, 100.0), "+10.0 %");
    }

    #[test]
    fn nothing_that_is_not_finite_is_printed() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for text in [time(value, value), rate(value, 1.0), short(value), with_step(value, 1.0)]
            {
                assert_eq!(text, NONE);
            }
        }
        assert_eq!(
            (difference(1.0, 0.0), difference(0.0, 0.0)),
            ("against 0".into(), "+0.0 %".into())
        );
        assert_eq!(
            (difference(5000.0, 1.0), difference(10.9, 1.0)),
            ("5000 times".into(), "+990.0 %".into())
        );
    }
}

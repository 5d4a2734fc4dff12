//! Every number of Vande Water's equations 1 to 9, his Table II and the round trips quoted in the text.

use crate::common::{as_printed, rows};
use std::collections::BTreeSet;
use trunkline_core::{Rate, Span};
use trunkline_model::Throughput;
use trunkline_model::formula::general;
use trunkline_model::formula::vandewater1988 as v;

const FORMULAS: &str = include_str!("../published/vandewater1988/formulas.csv");
const IN_TEXT: &str = include_str!("../published/vandewater1988/rtt_in_text.csv");
const TABLE_2: &str =
    include_str!("../published/vandewater1988/table2_single_process_throughput.csv");

/// A decimal text in units of 10^-`digits`, exactly.
fn scaled(text: &str, digits: usize) -> u64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= digits, "{text} has more than {digits} decimals");
    format!("{whole}{fraction:0<digits$}").parse().unwrap_or_else(|_| panic!("'{text}'"))
}

/// The numbers of the equations, each of which a test has to take.
struct Formulas {
    rows: Vec<Vec<String>>,
    taken: BTreeSet<usize>,
}

impl Formulas {
    fn take(&mut self, equation: &str, parameter: &str) -> String {
        let wanted = |row: &Vec<String>| row[0] == equation && row[4] == parameter;
        let index = self.rows.iter().position(wanted).expect(parameter);
        self.taken.insert(index);
        self.rows[index][5].clone()
    }
    fn whole(&mut self, equation: &str, parameter: &str) -> u64 {
        self.take(equation, parameter).parse().expect(parameter)
    }
    /// A time printed in milliseconds.
    fn millis(&mut self, equation: &str, parameter: &str) -> Span {
        Span::from_nanos(scaled(&self.take(equation, parameter), 6))
    }
}

fn assert_millis(ours: Span, printed: &str) {
    assert_eq!(as_printed(ours.as_nanos(), 6, printed), printed);
}

fn t1() -> Rate {
    Rate::from_bits_per_second(v::T1_EFFECTIVE)
}

#[test]
fn every_row_of_the_equations() {
    let mut f = Formulas { rows: rows(FORMULAS), taken: BTreeSet::new() };
    equation_1(&mut f);
    equations_2_and_3(&mut f);
    equations_4_to_6(&mut f);
    equations_7_to_9(&mut f);
    let left: Vec<_> = (0..f.rows.len()).filter(|row| !f.taken.contains(row)).collect();
    assert!(left.is_empty(), "rows not held against a formula: {left:?}");
}

fn equation_1(f: &mut Formulas) {
    assert_eq!(scaled(&f.take("1", "metres_per_mile"), 3), v::MILE);
    assert_eq!(f.take("1", "light_speed"), "3e8");
    assert_eq!(f.take("1", "speed_fraction"), "2/3");
    assert_eq!(general::fraction_of(v::LIGHT, 2, 3), 200_000_000);
    let ours = v::propagation(f.whole("1", "distance"));
    let printed = f.millis("1", "result");
    // Printed as 24.15; its own numbers give 24.14, and the row is marked suspect for that.
    assert_millis(ours, "24.14");
    assert!(ours.abs_diff(printed) <= Span::from_micros(10));
    assert_millis(v::propagation(f.whole("1", "distance_round_trip_uiuc")), "31.38");
}

fn equations_2_and_3(f: &mut Formulas) {
    assert_eq!(scaled(&f.take("2", "rate"), 6), v::T1_EFFECTIVE);
    let bytes = f.whole("2", "bytes");
    let transmission = v::transmission(bytes, t1());
    assert_millis(transmission, &f.take("2", "result"));
    let ours = v::round_trip(transmission, v::propagation(3_000).scaled(2, 1));
    assert_millis(ours, &f.take("3", "result"));
}

fn equations_4_to_6(f: &mut Formulas) {
    let window = f.whole("4", "window");
    let above = f.whole("4", "accuracy");
    let response = Span::from_millis(54);
    for (bytes, measured) in [(1024, 1266), (85, 155), (112, 156)] {
        let ours = v::round_trip_small_window(bytes, window, response);
        let measured = Span::from_millis(measured);
        let excess = ours.saturating_sub(measured);
        // "Consistently 6 %" above: 6.6, 4.5 and 3.8 %.
        assert!(excess > Span::ZERO && excess < measured.scaled(above + 1, 100), "{bytes}");
    }
    assert_eq!(scaled(&f.take("5", "cost"), 6), v::LOCAL_COST.as_nanos());
    let response = f.millis("5", "response_fishonaplatter");
    assert_millis(v::round_trip_local(756, response), &f.take("5", "result_756"));
    assert_eq!(scaled(&f.take("6", "rate"), 6), v::T1_EFFECTIVE);
    assert_eq!(f.millis("6", "cost"), v::WIDE_AREA_COST);
    assert_eq!(f.millis("6", "cost_per_host").scaled(2, 1), v::WIDE_AREA_COST);
    // No result is printed; 69.97 ms were measured for 756 bytes.
    assert_millis(v::round_trip_one_window(756, response), "69.69");
}

fn equations_7_to_9(f: &mut Formulas) {
    let seconds = |f: &mut Formulas, name| Span::from_secs(f.whole("7", name));
    let (large, empty) = (seconds(f, "t_large"), seconds(f, "t_zero"));
    let measured = v::measured_throughput(f.whole("7", "size_large"), large, empty);
    // 2066.963, cut to one decimal in print.
    let printed = scaled(&f.take("7", "result"), 3);
    assert_eq!(measured.millibytes_per_second() / 100, printed / 100);
    let (window, rtt) = (f.whole("8", "window"), f.millis("8", "minimum_rtt"));
    let most = v::maximum_throughput(window, rtt);
    assert_eq!(most, Throughput::from_bytes_per_second(f.whole("8", "result")));
    let measured = Throughput::from_millibytes_per_second(printed);
    let effective = v::effective_window_millibytes(measured, rtt);
    let printed = f.take("9", "effective_window");
    assert_eq!(as_printed(effective, 3, &printed), printed);
    assert_millis(v::correction(window, measured, rtt), &f.take("9", "correction"));
}

#[test]
fn table_ii() {
    let rows = rows(TABLE_2);
    assert_eq!(rows.len(), 4);
    for row in rows {
        let window: u64 = row[2].parse().unwrap();
        let rtt = Span::from_nanos(scaled(&row[7], 6));
        let measured = Throughput::from_millibytes_per_second(scaled(&row[5], 3));
        let effective = v::effective_window_millibytes(measured, rtt);
        // The round trip is known to four digits only, which leaves 0.01 % open.
        let printed = scaled(&row[3], 3);
        assert!(effective.abs_diff(printed) <= printed / 5_000 + 5, "{row:?}: {effective}");
        let most = v::maximum_throughput(window, rtt).millibytes_per_second();
        let printed = scaled(&row[4], 3);
        assert!(most.abs_diff(printed) <= printed / 5_000, "{row:?}: {most}");
        assert_millis(v::correction(window, measured, rtt), &row[6]);
        let corrected = v::maximum_throughput(window, rtt + v::correction(window, measured, rtt));
        let off = corrected.millibytes_per_second().abs_diff(measured.millibytes_per_second());
        assert!(off <= 10, "both halves of equation 9 agree");
    }
}

#[test]
fn round_trips_quoted_in_the_text() {
    let mut compared = 0;
    for row in rows(IN_TEXT) {
        let (destination, bytes) = (row[1].as_str(), row[3].parse::<u64>().unwrap());
        let printed = Span::from_nanos(scaled(&row[4], 6));
        let one_way = match destination {
            "Fishonaplatter" => v::propagation(3_000).scaled(2, 1),
            "UIUC" => v::propagation(3_900),
            _ => Span::ZERO,
        };
        let ours = match row[5].as_str() {
            "theoretical" if bytes == 1 => one_way,
            "theoretical" => v::round_trip(v::transmission(bytes, t1()), one_way),
            "equation 5" => v::round_trip_local(bytes, Span::from_micros(54_640)),
            _ => continue,
        };
        compared += 1;
        // 31.38 is quoted as 32 throughout; everything else to the digits shown, 24.15 for 24.14 included.
        let slack = if destination == "UIUC" { 700 } else { 300 };
        assert!(ours.abs_diff(printed) <= Span::from_micros(slack), "{row:?}: {ours}");
    }
    assert_eq!(compared, 7);
    // The 84-byte window on one side only: steps of one response time, not two (§2.5.3).
    let response = Span::from_millis(43);
    assert_eq!(general::round_trip(response, 1, 2), response.scaled(2, 1));
}

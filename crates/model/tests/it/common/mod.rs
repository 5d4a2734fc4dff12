//! Reads the published tables.
#![allow(dead_code)]

pub mod build;

/// The rows of a published table below its heading, cut at commas; quoted cells are kept whole.
pub fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(cells).collect()
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().expect("never empty").push(other),
        }
    }
    cells
}

/// `value` in units of 10^-`digits`, rounded to the decimals that `printed` shows, as text.
pub fn as_printed(value: u64, digits: usize, printed: &str) -> String {
    let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let step = 10u64.pow((digits - decimals) as u32);
    let rounded = (value + step / 2) / step;
    let unit = 10u64.pow(decimals as u32);
    match decimals {
        0 => format!("{rounded}"),
        _ => format!("{}.{:0decimals$}", rounded / unit, rounded % unit),
    }
}

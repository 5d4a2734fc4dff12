//! Which parameters of the studies are held by the stored figures: each is made a fifth larger, or else smaller, and the
//! shortened cells run until a figure differs.
//!
//! `cargo run --release -p trunkline-study --example held -- [STUDY...]`

#[path = "../tests/it/short.rs"]
mod short;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use toml::Value;
use trunkline_study::{Source, names};

/// A fifth more or less, or a quarter: some sizes are whole with that alone.
const FACTORS: [f64; 4] = [1.2, 0.8, 1.25, 0.75];

/// What becomes of a parameter that is changed.
enum Fate {
    /// A figure moves in this cell.
    Held(String),
    /// No figure moves.
    Free,
    /// It is no number, or cannot be changed so.
    Fixed(String),
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let all: Vec<String> = names().into_iter().map(String::from).collect();
    for study in if asked.is_empty() { all } else { asked } {
        sweep(&study)?;
    }
    Ok(())
}

fn sweep(study: &str) -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies"), place.path())?;
    let directory = place.path().join(study);
    let source = Source::open(study)?;
    let before = cells(&source);
    let (mut held, mut free, mut fixed) = (0, Vec::new(), Vec::new());
    for parameter in &source.study.parameter {
        let file = directory.join(&parameter.file);
        match fate(&directory, &file, &parameter.key, &before)? {
            Fate::Held(cell) => {
                held += 1;
                println!("{study}\t{}\theld by {cell}", parameter.key);
            }
            Fate::Free => free.push(parameter.key.clone()),
            Fate::Fixed(why) => fixed.push(format!("{} ({why})", parameter.key)),
        }
    }
    println!("{study}: {held} held");
    println!("{study}: {} move nothing: {}", free.len(), free.join(", "));
    println!("{study}: {} cannot be changed so: {}", fixed.len(), fixed.join(", "));
    Ok(())
}

/// Cells with their figures by traffic, as they are stored.
type Figures = Vec<(String, BTreeMap<String, short::Figures>)>;

fn cells(source: &Source) -> Figures {
    let figures = |cell: short::Cell| Some((cell.label.clone(), cell.figures()?));
    short::run_all(source).into_iter().filter_map(figures).collect()
}

fn fate(
    directory: &Path,
    file: &Path,
    key: &str,
    before: &Figures,
) -> Result<Fate, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let mut fate = Fate::Fixed("no number".into());
    for factor in FACTORS {
        let mut values = Value::Table(text.parse()?);
        if !scale(&mut values, key, factor) {
            break;
        }
        fs::write(file, toml::to_string(&values)?)?;
        match (Source::open(&directory.display().to_string()), &fate) {
            (Ok(source), _) => fate = moved(&source, before),
            (Err(error), Fate::Fixed(_)) => fate = Fate::Fixed(error.to_string()),
            _ => {}
        }
        if matches!(fate, Fate::Held(_)) {
            break;
        }
    }
    fs::write(file, text)?;
    Ok(fate)
}

/// The first cell whose figures are others now.
fn moved(source: &Source, before: &Figures) -> Fate {
    // In the order of the labels: those of a changed grid are others, and stand in the same places.
    let mut cells = short::cells(source);
    cells.sort_by(|one, other| one.0.cmp(&other.0));
    for ((label, scenario), (_, was)) in cells.iter().zip(before) {
        let Some(now) = short::Cell::of(label, scenario).figures() else {
            return Fate::Held(format!("{label}, which fails"));
        };
        if now.len() != was.len() || !now.values().zip(was.values()).all(|(now, was)| now.are(was))
        {
            return Fate::Held(label.clone());
        }
    }
    Fate::Free
}

/// Scales every number at or below `key`. Whether there is one.
fn scale(root: &mut Value, key: &str, factor: f64) -> bool {
    let mut place = root;
    for step in key.split('.') {
        let next = match place {
            Value::Table(table) => table.get_mut(step),
            Value::Array(list) => {
                list.iter_mut().find(|item| item.get("name").and_then(Value::as_str) == Some(step))
            }
            _ => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    scale_all(place, factor)
}

fn scale_all(value: &mut Value, factor: f64) -> bool {
    match value {
        Value::Integer(number) => {
            let scaled = (*number as f64 * factor).round() as i64;
            let step = if factor > 1.0 { 1 } else { -1 };
            *number = if scaled == *number { *number + step } else { scaled };
            true
        }
        Value::Float(number) => {
            *number *= factor;
            true
        }
        Value::String(text) => {
            let new = scaled(text, factor);
            let is_number = new.is_some();
            *text = new.unwrap_or_else(|| std::mem::take(text));
            is_number
        }
        Value::Array(list) => list.iter_mut().map(|it| scale_all(it, factor)).max() == Some(true),
        Value::Table(table) => {
            table.iter_mut().map(|(_, it)| scale_all(it, factor)).max() == Some(true)
        }
        _ => false,
    }
}

/// A quantity like "70us" with its number scaled; `None` if it does not begin with one.
fn scaled(text: &str, factor: f64) -> Option<String> {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some(format!("{}{}", (number * factor * 1e6).round() / 1e6, &text[end..]))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &there)?,
            false => drop(fs::copy(entry.path(), there)?),
        }
    }
    Ok(())
}

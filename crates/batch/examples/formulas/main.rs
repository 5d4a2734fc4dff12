//! Holds the formulas for TCP against the simulator over cases drawn from a seed.
//!
//! `cargo run --release -p trunkline-batch --example formulas -- --seed 1 --cases 240 --out docs/formulas`
//! simulates the cases, predicts them, and writes `cases.csv`, `regions.csv` and the charts.
//! With `--simulated FILE` the simulator's figures are read from an earlier `cases.csv`.

mod case;
mod compared;
mod regions;
mod simulated;

use anyhow::{Context, Result, bail};
use case::Case;
use compared::{Compared, predict};
use simulated::{Simulated, simulate};
use std::path::{Path, PathBuf};
use trunkline_core::Seed;
use trunkline_report::{Embed, chart};

#[derive(Default)]
struct Options {
    seed: u64,
    cases: u32,
    threads: usize,
    out: PathBuf,
    /// Figures of the simulator from an earlier run.
    simulated: Option<PathBuf>,
    /// Cases to be simulated, in place of drawn ones.
    given: Option<PathBuf>,
}

fn options() -> Result<Options> {
    let mut found =
        Options { seed: 1, cases: 240, threads: 1, out: ".".into(), ..Options::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--seed" => found.seed = value.parse()?,
            "--cases" => found.cases = value.parse()?,
            "--threads" => found.threads = value.parse()?,
            "--out" => found.out = value.into(),
            "--simulated" => found.simulated = Some(value.into()),
            "--given" => found.given = Some(value.into()),
            _ => bail!("{word}: write --seed, --cases, --threads, --out, --given or --simulated"),
        }
    }
    Ok(found)
}

fn main() -> Result<()> {
    let options = options()?;
    let cases = match &options.simulated {
        Some(file) => read(file)?,
        None => simulated_cases(&options)?,
    };
    std::fs::create_dir_all(&options.out)?;
    let compared = |(case, simulated): (Case, Simulated)| -> Result<Compared> {
        Ok(Compared { predicted: predict(&case)?, case, simulated })
    };
    let all = cases.into_iter().map(compared).collect::<Result<Vec<_>>>()?;
    let mut text = format!("{},{},{}\n", case::COLUMNS, simulated::COLUMNS, compared::COLUMNS);
    for one in &all {
        text.push_str(&format!("{},{},{}\n", one.case.line(), one.simulated.line(), one.line()));
    }
    std::fs::write(options.out.join("cases.csv"), text)?;
    std::fs::write(options.out.join("regions.csv"), regions::table(&all))?;
    for figure in regions::figures(&all) {
        let file = options.out.join(format!("{}.svg", figure.slug()));
        std::fs::write(file, chart(&figure, Embed::File))?;
    }
    Ok(())
}

fn simulated_cases(options: &Options) -> Result<Vec<(Case, Simulated)>> {
    let cases: Vec<Case> = match &options.given {
        Some(file) => given(file)?,
        None => (1..=options.cases).map(|n| Case::draw(Seed(options.seed), n)).collect(),
    };
    let started = std::time::Instant::now();
    let done = |count: usize, case: &Case| {
        eprintln!("{count} of {}: {} {:?}", cases.len(), case.line(), started.elapsed());
    };
    let figures = trunkline_batch::run_all(&cases, options.threads, Case::cost, simulate, done);
    cases.into_iter().zip(figures).map(|(case, figures)| Ok((case, figures?))).collect()
}

fn given(file: &Path) -> Result<Vec<Case>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    text.lines().skip(1).map(|line| Ok(Case::read(line)?.0)).collect()
}

fn read(file: &Path) -> Result<Vec<(Case, Simulated)>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let row = |line: &str| -> Result<(Case, Simulated)> {
        let (case, rest) = Case::read(line)?;
        Ok((case, Simulated::read(&rest)?))
    };
    text.lines().skip(1).map(row).collect()
}

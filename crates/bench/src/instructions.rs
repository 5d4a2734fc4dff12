//! Costs in instructions, counted by callgrind: the same on a busy machine as on an idle one.

use crate::figure::Figure;
use crate::parts::{PARTS, Part};
use anyhow::{Context, Result, bail};
use comfy_table::Table;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Every discipline in its command-line form, and nothing in the place of one.
const HARNESS: &str = "none";
const DISCIPLINES: [&str; 8] =
    ["fifo", "round-robin", "two-lists", "drr", "priority", "codel", "fq-codel", "epd"];
/// Numbers of active channels.
const CHANNELS: [u64; 3] = [10, 1000, 100_000];
/// Cost at the most channels over that at the fewest should not exceed this.
const GOAL: f64 = 2.0;
/// Packets in the shorter of two runs whose difference counts.
const FEW: u64 = 1000;
/// Counted at the same time; more would not be faster on two processors.
const AT_ONCE: usize = 2;

/// The cost of one discipline.
#[derive(Debug, Serialize)]
pub struct Discipline {
    name: &'static str,
    /// Instructions for one packet in and out, in the order of [`CHANNELS`].
    cost: Vec<f64>,
    /// The last over the first.
    ratio: f64,
}

/// The cost of one part of the dataplane.
#[derive(Debug, Serialize)]
pub struct PartCost {
    what: &'static str,
    /// Instructions for one packet.
    cost: f64,
}

/// All that was counted.
#[derive(Debug, Serialize)]
pub struct Instructions {
    channels: [u64; 3],
    disciplines: Vec<Discipline>,
    parts: Vec<PartCost>,
}

/// A run to be counted: the program's arguments without and with the number of packets.
struct Count {
    program: PathBuf,
    before: Vec<String>,
}

impl Count {
    /// Instructions for each packet: a run with `packets` more than [`FEW`], less one with those.
    fn per_packet(&self, packets: u64) -> Result<f64> {
        let more = self.total(FEW + packets)?;
        let few = self.total(FEW)?;
        Ok(more.saturating_sub(few) as f64 / packets as f64)
    }

    fn total(&self, packets: u64) -> Result<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&self.program)
            .args(&self.before)
            .arg(packets.to_string())
            .output()
            .context("valgrind cannot be started: install it (apt-get install valgrind)")?;
        let told = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{} {:?} failed under valgrind: {told}", self.program.display(), self.before);
        }
        let count = told.lines().find_map(|line| line.split("Collected : ").nth(1));
        count.and_then(|text| text.trim().parse().ok()).context("callgrind told no count")
    }
}

/// Counts everything; `packets` for each figure.
pub fn measure(packets: u64) -> Result<Instructions> {
    let own = std::env::current_exe()?;
    let example = example_beside(&own)?;
    let names = || [HARNESS].into_iter().chain(DISCIPLINES);
    let disciplines = names().flat_map(|name| CHANNELS.map(|channels| (name, channels)));
    let mut counts: Vec<Count> = disciplines
        .map(|(name, channels)| Count {
            program: example.clone(),
            before: vec![name.into(), channels.to_string()],
        })
        .collect();
    let cut = counts.len();
    let parts = PARTS.iter().flat_map(|part| [part.name, part.harness]);
    counts.extend(
        parts.map(|name| Count { program: own.clone(), before: vec!["part".into(), name.into()] }),
    );
    let costs = all(&counts, packets)?;
    let (disciplines, parts) = costs.split_at(cut);
    Ok(Instructions {
        channels: CHANNELS,
        disciplines: by_discipline(disciplines),
        parts: by_part(parts),
    })
}

/// The load generator for disciplines, which cargo puts beside this program.
fn example_beside(own: &Path) -> Result<PathBuf> {
    let folder = own.parent().context("this program lies nowhere")?;
    let path = folder.join("examples").join(OsStr::new("discipline_cost"));
    if !path.exists() {
        bail!(
            "{} is missing: build it with `cargo build --release -p trunkline-path --example discipline_cost`",
            path.display()
        );
    }
    Ok(path)
}

/// Every count, some of them at a time, in their order.
fn all(counts: &[Count], packets: u64) -> Result<Vec<f64>> {
    let next = Mutex::new(counts.iter().enumerate());
    let results: Mutex<Vec<Result<(usize, f64), String>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                // The lock is given back before the counting starts.
                while let Some((index, count)) = next.lock().ok().and_then(|mut it| it.next()) {
                    let result = count.per_packet(packets).map_err(|error| format!("{error:#}"));
                    if let Ok(mut results) = results.lock() {
                        results.push(result.map(|cost| (index, cost)));
                    }
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut costs =
        results.into_iter().collect::<Result<Vec<_>, String>>().map_err(anyhow::Error::msg)?;
    costs.sort_unstable_by_key(|&(index, _)| index);
    Ok(costs.into_iter().map(|(_, cost)| cost).collect())
}

fn by_discipline(costs: &[f64]) -> Vec<Discipline> {
    let (harness, costs) = costs.split_at(CHANNELS.len());
    let rows = DISCIPLINES.into_iter().zip(costs.chunks(CHANNELS.len()));
    rows.map(|(name, costs)| {
        let cost: Vec<f64> = costs.iter().zip(harness).map(|(all, own)| all - own).collect();
        let ratio = cost[cost.len() - 1] / cost[0];
        Discipline { name, cost, ratio }
    })
    .collect()
}

fn by_part(costs: &[f64]) -> Vec<PartCost> {
    let rows = PARTS.iter().zip(costs.chunks(2));
    rows.map(|(&Part { what, .. }, pair)| PartCost { what, cost: pair[0] - pair[1] }).collect()
}

impl Instructions {
    /// The tables, with the verdict on the goal.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
        let heads = self.channels.map(|channels| format!("{channels} channels"));
        table.set_header(["discipline".into()].into_iter().chain(heads).chain(["ratio".into()]));
        for Discipline { name, cost, ratio } in &self.disciplines {
            let costs = cost.iter().map(|cost| format!("{cost:.0}"));
            let cells = [(*name).to_string()].into_iter().chain(costs);
            table.add_row(cells.chain([format!("{ratio:.2}")]));
        }
        let mut parts = Table::new();
        parts.load_preset(comfy_table::presets::ASCII_MARKDOWN);
        parts.set_header(["part", "instructions"]);
        for PartCost { what, cost } in &self.parts {
            parts.add_row([(*what).to_string(), format!("{cost:.0}")]);
        }
        format!("{table}\n{}\n{parts}\n", self.verdict())
    }

    fn verdict(&self) -> String {
        let over: Vec<&str> =
            self.disciplines.iter().filter(|it| it.ratio > GOAL).map(|it| it.name).collect();
        let most = Figure::of(self.disciplines.iter().map(|it| it.ratio).collect());
        let most = most.map_or(0.0, |figure| figure.max);
        let missed = if over.is_empty() {
            String::new()
        } else {
            format!(", missed by {}", over.join(", "))
        };
        format!(
            "goal: at most {GOAL} times as much with the most channels; greatest {most:.2}{missed}"
        )
    }
}

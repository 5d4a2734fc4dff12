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
use trunkline_path::DisciplineSpec;
use trunkline_path::discipline::{DisciplineKind, KINDS};

/// Nothing in the place of a discipline.
const HARNESS: &str = "none";
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
    name: String,
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

/// A run to be counted.
struct Count {
    program: PathBuf,
    /// The program's arguments before the number of packets.
    before: Vec<String>,
    packets: u64,
    /// Only within functions of this name; if there is none, a run with few packets is subtracted.
    within: Option<&'static str>,
}

impl Count {
    fn per_packet(&self) -> Result<f64> {
        let (packets, few) = match self.within {
            Some(_) => (self.packets, 0),
            None => (self.packets + FEW, self.total(FEW)?),
        };
        Ok(self.total(packets)?.saturating_sub(few) as f64 / self.packets as f64)
    }

    fn total(&self, packets: u64) -> Result<u64> {
        let within = self.within.map(|name| format!("--toggle-collect={name}"));
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .args(within)
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
        let count = count.and_then(|text| text.trim().parse().ok());
        count.filter(|&count| count > 0).context("callgrind counted nothing")
    }
}

/// Every discipline in its command-line form. Quanta are of the load's packet size, so that a packet is
/// one piece: with smaller ones it is several, and each costs the same again.
///
/// No time passes in the load, so that nothing waits long enough to be dropped or marked: what is counted of the
/// disciplines that look at times is the way of a packet, not their controllers' updates. Those that hold packets
/// to a rate are left out: without time none would leave them.
fn disciplines() -> Vec<String> {
    let text = |kind: &DisciplineKind| match kind.keys().iter().any(|key| key.name == "quantum") {
        true => format!("{}:quantum=500", kind.name),
        false => kind.name.to_string(),
    };
    let flows = |text: &String| {
        let spec = text.parse::<DisciplineSpec>();
        spec.is_ok_and(|spec| spec.assumptions().holds_back().is_none())
    };
    KINDS.iter().map(text).filter(flows).collect()
}

/// Counts everything. Of a discipline the cost of each packet of at least `packets`, and of twice as many
/// as there are channels, so that every channel is served.
pub fn measure(packets: u64) -> Result<Instructions> {
    let own = std::env::current_exe()?;
    let example = example_beside(&own)?;
    let names = [vec![HARNESS.to_string()], disciplines()].concat();
    let loads = names.iter().flat_map(|name| CHANNELS.map(|channels| (name, channels)));
    let mut counts: Vec<Count> = loads
        .map(|(name, channels)| Count {
            program: example.clone(),
            before: vec![name.clone(), channels.to_string()],
            packets: packets.max(2 * channels),
            within: Some("*Load*steady*"),
        })
        .collect();
    let cut = counts.len();
    let parts = PARTS.iter().flat_map(|part| [part.name, part.harness]);
    counts.extend(parts.map(|name| Count {
        program: own.clone(),
        before: vec!["part".into(), name.into()],
        packets,
        within: None,
    }));
    let costs = all(&counts)?;
    let (loads, parts) = costs.split_at(cut);
    Ok(Instructions {
        channels: CHANNELS,
        disciplines: by_discipline(loads),
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
fn all(counts: &[Count]) -> Result<Vec<f64>> {
    let next = Mutex::new(counts.iter().enumerate());
    let results: Mutex<Vec<Result<(usize, f64), String>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                // The lock is given back before the counting starts.
                while let Some((index, count)) = next.lock().ok().and_then(|mut it| it.next()) {
                    let result = count.per_packet().map_err(|error| format!("{error:#}"));
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
    let rows = disciplines().into_iter().zip(costs.chunks(CHANNELS.len()));
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
            let cells = [name.clone()].into_iter().chain(costs);
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
        let over: Vec<&str> = self
            .disciplines
            .iter()
            .filter(|it| it.ratio > GOAL)
            .map(|it| it.name.as_str())
            .collect();
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

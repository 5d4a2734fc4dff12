//! Instructions for a message, of every layer, by callgrind.

use super::ends::{COUNTED, Task};
use super::ours::{Carrying, Pair};
use super::path::Path;
use super::phases::Phase;
use super::{Contender, SIZES, contenders, count, not_there, phases};
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;

/// Instructions of the careful layer over those of bare datagrams should not exceed this.
const GOAL: f64 = 1.05;
/// How often a program that spins is counted, of which the median is told: it looks in vain more or less often.
const TIMES: usize = 3;
/// How long the end that asks rests before each message, in microseconds (a choice: ten times what the other one needs under
/// callgrind).
const PAUSE: u64 = 1000;

/// All that was counted.
#[derive(Debug, Serialize)]
pub struct Counted {
    rows: Vec<Row>,
    phases: Vec<Phase>,
    /// Programs that are not there, so that their layers have no rows.
    missing: Vec<String>,
}

/// Instructions of one end, its libraries included and the kernel not, for a message sent and one received, by size.
#[derive(Debug, Serialize)]
pub struct Row {
    layer: String,
    /// `None` if they cannot be told from those of an idle one.
    instructions: Vec<Option<f64>>,
    /// Whether those contain what an end looked in vain.
    spins: bool,
}

/// Counts all layers; `few` round trips in the shorter of two runs that are subtracted. Those whose programs are not there have
/// no rows.
pub fn measure(few: u32) -> Result<Counted> {
    let (path, place) = (Path::new()?, tempfile::tempdir()?);
    let (there, missing) = contenders();
    let row = |contender: Contender| {
        let count = |bytes: u32| contender.instructions(&path, bytes, few, place.path());
        let instructions = SIZES.into_iter().map(count).collect::<Result<_>>()?;
        let spins = matches!(contender, Contender::Peer(_));
        Ok(Row { layer: contender.name(), instructions, spins })
    };
    let rows = there.into_iter().map(row).collect::<Result<_>>()?;
    let phases = phases::measure(&path, few, place.path())?;
    Ok(Counted { rows, phases, missing })
}

impl Contender {
    fn instructions(
        self,
        path: &Path,
        bytes: u32,
        few: u32,
        place: &std::path::Path,
    ) -> Result<Option<f64>> {
        let carrying = match self {
            Contender::Ours(carrying, _) => carrying,
            Contender::Peer(peer) => {
                let counts = (0..TIMES).map(|_| peer.instructions(path, bytes, few, place));
                let counts: Vec<_> = counts.collect::<Result<_>>()?;
                return Ok(median(counts.into_iter().flatten().collect()));
            }
        };
        let file = place.join("count");
        let within = matches!(carrying, Carrying::End(_)).then_some(COUNTED);
        let (task, polls, pause) = (Task::PingPong, false, PAUSE);
        let per_message = count::per_message(few, |count| {
            Pair { path, carrying, task, bytes, count, polls, pause }.run(Some((&file, within)))?;
            count::counted(&file)
        });
        per_message.map(Some)
    }
}

/// The middle one of some counts, if there are any.
fn median(mut counts: Vec<f64>) -> Option<f64> {
    counts.sort_by(f64::total_cmp);
    counts.get(counts.len() / 2).copied()
}

/// The tables, with the verdicts.
pub fn text(counted: &Counted) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["bytes".into()].into_iter().chain(SIZES.map(|it| it.to_string())));
    for Row { layer, instructions, spins } in &counted.rows {
        let mark = if *spins { " *" } else { "" };
        let shown = |it: &Option<f64>| it.map_or_else(|| "–".into(), |it| format!("{it:.0}{mark}"));
        table.add_row([layer.clone()].into_iter().chain(instructions.iter().map(shown)));
    }
    let verdicts = SIZES.iter().enumerate();
    let verdicts: Vec<String> =
        verdicts.filter_map(|(at, &bytes)| verdict(&counted.rows, at, bytes)).collect();
    format!(
        "{table}\n{}* those of looking in vain included: it does not sleep\n{}\n\n{}",
        not_there(&counted.missing),
        verdicts.join("\n"),
        phases::text(&counted.phases)
    )
}

/// Whether the careful layer is near the limit, and ahead of all others, at a size.
fn verdict(rows: &[Row], at: usize, bytes: u32) -> Option<String> {
    let of = |row: &Row| row.instructions.get(at).copied().flatten();
    let (bare, careful) = (of(rows.first()?)?, of(rows.get(1)?)?);
    let others: Vec<f64> = rows.get(2..)?.iter().filter_map(of).collect();
    let (cheaper, all) = (others.iter().filter(|&&it| it > careful).count(), others.len());
    let times = careful / bare;
    let word = if times <= GOAL { "met" } else { "missed" };
    Some(format!(
        "{bytes} bytes: careful takes {times:.2} times the instructions of bare UDP (goal {GOAL}: {word}); it is ahead of {cheaper} of {all}"
    ))
}

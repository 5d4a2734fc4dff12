//! Where a message layer's instructions go: sending, the arrival of a frame, and the rest, as TR 94-14's Appendix A has it.

use super::count;
use super::ends::Task;
use super::ours::{Carrying, Pair};
use super::path::Path;
use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;

/// The layers, in the order of each row's figures, with the type that callgrind knows.
const LAYERS: [(&str, &str); 2] = [("careful", "Careful"), ("traditional", "Traditional")];

/// The parts of a layer: a name, its function, and the cycles that Appendix A has for it of both layers.
const PHASES: [(&str, &str, Option<[u32; 2]>); 5] = [
    ("send: take a fragment", "send", Some([42, 318])),
    ("arrive: the interrupt", "arrive", Some([109, 1100])),
    ("receive: hand a fragment over", "receive", None),
    ("release: its buffer is free", "release", None),
    ("transmit: the next frame to be sent", "transmit", None),
];

/// A part's cost.
#[derive(Debug, Serialize)]
pub struct Phase {
    what: &'static str,
    /// Instructions for each message sent and received, of the careful and of the traditional layer; `None` of a part that the
    /// compiler has put into what calls it.
    instructions: [Option<f64>; 2],
    /// Cycles of what only one of them does, on an HP 9000/720 in 1994.
    cycles: Option<[u32; 2]>,
}

/// Counts each part of both layers in a run of one-word messages.
pub fn measure(path: &Path, few: u32, place: &std::path::Path) -> Result<Vec<Phase>> {
    let file = place.join("phase");
    let mut phases = Vec::new();
    for (what, function, cycles) in PHASES {
        let mut instructions = [None; 2];
        for (own, (layer, kind)) in instructions.iter_mut().zip(LAYERS) {
            let within = format!("*{kind} as *Layer>::{function}*");
            let total = |count| {
                let (task, carrying) = (Task::PingPong, Carrying::Node(layer));
                let pair = Pair { path, carrying, task, bytes: 4, count, polls: false, pause: 0 };
                pair.run(Some((&file, Some(&within))))?;
                count::counted_within(&file)
            };
            let (shorter, longer) = (total(few)?, total(2 * few)?);
            let more = shorter.zip(longer).map(|(shorter, longer)| longer.saturating_sub(shorter));
            *own = more.map(|more| more as f64 / f64::from(few));
        }
        phases.push(Phase { what, instructions, cycles });
    }
    Ok(phases)
}

/// The table.
pub fn text(phases: &[Phase]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    let heads = ["careful", "traditional", "cycles of 1994, careful", "traditional"];
    table.set_header(["part of the layer, 4 bytes"].into_iter().chain(heads));
    let row = |what: &str, own: [Option<f64>; 2], cycles: Option<[u32; 2]>| {
        let printed = |at: usize| cycles.map_or_else(|| "–".into(), |it| it[at].to_string());
        let own = own.map(|it| it.map_or_else(|| "inlined".into(), |it| format!("{it:.0}")));
        [what.to_string(), own[0].clone(), own[1].clone(), printed(0), printed(1)]
    };
    for phase in phases {
        table.add_row(row(phase.what, phase.instructions, phase.cycles));
    }
    let sum = |at: usize| phases.iter().filter_map(|it| it.instructions[at]).sum();
    table.add_row(row("in all that is counted", [Some(sum(0)), Some(sum(1))], Some([151, 1418])));
    format!(
        "{table}\nCycles are of the operations that only one of the layers does (TR 94-14, Appendix A).\n"
    )
}

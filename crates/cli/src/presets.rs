//! `trunkline presets`: the named paths.

use crate::failure::Failure;
use crate::output;
use comfy_table::{Table, presets};
use serde_json::json;
use trunkline_report::fit;
use trunkline_scenario::PRESETS;

/// List the named paths with their numbers and sources.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  trunkline shell --preset geo-satellite -- ping -c 3 {peer}")]
pub struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the presets.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.json {
        let list: Vec<_> = PRESETS
            .iter()
            .map(|preset| {
                let settings: serde_json::Map<_, _> =
                    preset.settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
                json!({"name": preset.name, "summary": preset.summary, "settings": settings, "source": preset.source})
            })
            .collect();
        return output::line(&serde_json::to_string_pretty(&list)?);
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    fit(&mut table);
    table.set_header([
        "preset",
        "settings (delay is one way)",
        "what it is, and the source of its numbers",
    ]);
    for preset in PRESETS {
        let settings: Vec<String> =
            preset.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.add_row([
            preset.name.to_string(),
            settings.join("\n"),
            format!("{}\n{}", preset.summary, preset.source),
        ]);
    }
    output::line(&table.to_string())
}

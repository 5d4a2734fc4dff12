//! `trunkline set`: change a running path.

use crate::failure::Failure;
use crate::options::{own_name, unambiguous};
use crate::{output, show};
use std::path::Path;
use trunkline_control::{Client, SetRequest};
use trunkline_core::Span;
use trunkline_scenario::{SettingError, Settings};

/// Change settings of a path or of a scenario's link while traffic flows.
///
/// Packets under way keep their release times, order is kept, and nothing is lost. After a shorter delay
/// packets catch up no faster than the line carries (catch-up=at-once: in one burst). A plain setting
/// holds for both directions, up- or down- before it for one. All settings are changed, or none. In a scenario
/// --link names the link, and up is from the first of its ends to the second; the change is noted in the results,
/// which are then of another path than the file describes. Inside a shell it changes that shell's path. Of a transfer
/// (send) it changes the rate cap, and nothing else.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trunkline set delay=80ms
  trunkline set rate=2mbit up-loss=1% --after 5s
  trunkline set jitter=none limit=64KiB --pid 4711
  trunkline set --link second delay=80ms     # beside trunkline run --engine emu

Can change: delay, catch-up, rate, limit, loss, bit-errors, duplicate, reorder,
jitter.")]
pub struct Args {
    /// Settings, each NAME=VALUE
    #[arg(required = true, value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// The run by its process number, if several run; inside a shell, that shell's if nothing else is said
    #[arg(long, value_name = "PID")]
    pid: Option<String>,
    /// The path or link by its name, if the run has several
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Apply the change after this time instead of at once
    #[arg(long, value_name = "TIME")]
    after: Option<Span>,
    /// Print the new settings as JSON
    #[arg(long)]
    json: bool,
}

/// The settings, each of which can mean one thing only. Whether they suit the path is the run's to say.
fn given(words: &[String]) -> Result<Settings, String> {
    let pair = |word| Settings::pair(word).map(|(name, value)| (own_name(name), value));
    let pairs: Result<Vec<_>, _> = words.iter().map(|word| pair(word)).collect();
    let pairs = pairs.map_err(|error| error.to_string())?;
    pairs.iter().try_for_each(|(name, value)| unambiguous(name, value))?;
    let settings = Settings::of_one_source(pairs).map_err(|error| error.to_string())?;
    match settings.resolve() {
        Err(error @ SettingError::Value { .. }) => Err(error.to_string()),
        Err(SettingError::Unknown { name, .. }) => Err(format!(
            "there is no setting '{name}': `trunkline set --help` names those that can change"
        )),
        _ => Ok(settings),
    }
}

/// A value whose file begins at `here`: the run that reads it was perhaps started elsewhere.
fn anchored(value: &str, here: &Path) -> String {
    let file = value.strip_prefix("trace:").filter(|file| !file.is_empty());
    let whole = file.map(|file| here.join(file));
    match whole.as_deref().and_then(Path::to_str) {
        Some(file) => format!("trace:{file}"),
        None => value.into(),
    }
}

/// Sends the change and prints the settings as they are with it.
pub fn run(args: &Args) -> Result<(), Failure> {
    let settings = given(&args.settings).map_err(Failure::wrong_use)?;
    let here = std::env::current_dir().unwrap_or_default();
    let anchored = |(name, value): (&str, &str)| (name.into(), anchored(value, &here));
    let request = SetRequest {
        settings: settings.iter().map(anchored).collect(),
        link: args.link.clone(),
        after: args.after,
    };
    let client = Client::connect(&show::meant(args.pid.as_deref())?)?;
    let description = client.patch("/v1/path", &request)?;
    if args.json {
        output::line(&serde_json::to_string_pretty(&description)?)
    } else {
        output::line(show::settings(&description).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_that_of_the_one_who_asks() {
        let told = ["trace:lost.txt", "trace:/a/lost.txt", "trace:", "1%", "ge:p=1%,r=20%"]
            .map(|value| anchored(value, Path::new("/home/me")));
        let meant =
            ["trace:/home/me/lost.txt", "trace:/a/lost.txt", "trace:", "1%", "ge:p=1%,r=20%"];
        assert_eq!(told, meant);
    }

    #[test]
    fn names_of_other_programs_are_taken_as_options_are() {
        let words = ["latency=5ms", "bw=1mbit", "up-loss=1%"].map(String::from);
        let settings = given(&words).unwrap();
        let told: Vec<_> = settings.iter().collect();
        assert_eq!(told, [("delay", "5ms"), ("rate", "1mbit"), ("up-loss", "1%")]);
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        let told = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            given(&words).err().unwrap_or_default()
        };
        for (words, part) in [
            (&["loss=1"][..], "loss: '1' is 1 in a hundred to tc"),
            (&["delay=5ms", "down-limit=100"], "down-limit: '100' is packets to tc"),
            (&["up-reorder=1:5ms"], "write 1%:5ms, or 100%:5ms"),
            (&["output-buffer=5"], "write 5B"),
            (&["schedule=0s loss=1%; 5s limit=100"], "schedule: limit: '100' is packets to tc"),
            (&["delay=5ms", "loss=1%", "delay=6ms"], "delay is given twice"),
            (&["delay"], "write name=value"),
            (&["delay=-1ms"], "negative"),
            (&["rate=1mbit", "up-loss=101%"], "up-loss: "),
            (&["latency=5ms", "delay=6ms"], "delay is given twice"),
            (&["latency=soon"], "delay: "),
            (&["up-latency=5ms"], "there is no setting 'up-latency'"),
            (&["latecy=5ms"], "`trunkline set --help` names those that can change"),
        ] {
            assert!(told(words).contains(part), "{words:?}: {}", told(words));
        }
        assert_eq!(told(&["loss=1%", "limit=100p", "up-loss=0.5", "reorder=1%:5ms"]), "");
    }
}

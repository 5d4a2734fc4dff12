//! Options that several verbs share: the path's settings, and how the emulator runs.

use crate::failure::Failure;
use clap::builder::StyledStr;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use trunkline_core::Span;
use trunkline_dataplane::capture::CaptureFilter;
use trunkline_dataplane::{Options, accuracy};
use trunkline_path::discipline;
use trunkline_port::Backend;
use trunkline_scenario::{PathSpec, SETTINGS, Settings};

/// The settings of a path as given on the command line: those of the preset, then the plain ones,
/// then those of one direction.
#[derive(Debug, Clone)]
pub struct PathArgs {
    preset: Option<String>,
    settings: Settings,
}

const HEADING: &str =
    "Path (both directions; --up-… and --down-… set one; up is from the near end)";
const WHOLE: [(&str, &str, &str); 3] = [
    (
        "mtu",
        "BYTES",
        "Largest network-layer packet of the interfaces made for the path, 68 to 65535; IPv6 needs 1280 \
         [default: 1500]",
    ),
    (
        "key",
        "KEY",
        "What distinguishes channels: five-tuple, source-destination, vlan, dscp, one [default: five-tuple]",
    ),
    ("seed", "NUMBER", "Seed of all randomness [default: 1]"),
];

/// Refuses what means something else to who knows `tc`: a limit without a unit, which is packets there and bytes in files;
/// a share of 1, which is 1 % there and all in files. Of a schedule, so each of its settings.
pub fn unambiguous(name: &str, value: &str) -> Result<(), String> {
    let number = value.parse::<u64>().unwrap_or(0);
    let packets = ["pkts", "pkt", "packets", "packet"].iter().find_map(|it| value.strip_suffix(it));
    let told = match (plain(name), number) {
        ("schedule", _) => {
            let pairs = value.split([';', ' ', '\t', '\n']).filter_map(|it| it.split_once('='));
            let mut checked = pairs.map(|(name, value)| unambiguous(name, value));
            return checked.try_for_each(|it| it.map_err(|told| format!("{name}: {told}")));
        }
        ("limit", _) if packets.is_some() => {
            format!("takes packets as {}p", packets.unwrap_or_default().trim())
        }
        ("rate", _) if is_pair(value) => {
            "is one rate for both ways: write --down-rate and --up-rate for two".to_owned()
        }
        ("limit", 1..) => {
            format!(
                "is packets to tc and bytes to others: write {value}p for packets, or {value}B for bytes"
            )
        }
        ("output-buffer", 1..) => format!("has no unit: write {value}B for bytes"),
        ("loss" | "duplicate", 1) => {
            "is 1 in a hundred to tc and all to others: write 1%, or 100%".to_owned()
        }
        ("reorder", _) if value.starts_with("1:") => {
            let late = &value[2..];
            format!("is 1 in a hundred to tc and all to others: write 1%:{late}, or 100%:{late}")
        }
        _ => return Ok(()),
    };
    Err(format!("{name}: '{value}' {told}"))
}

/// Refuses a rate beside a delivery trace of the same directions. Of two sources, such as a preset and an option, the later
/// one counts.
pub fn one_speed(prefix: &str, given: impl Fn(&str) -> bool) -> Result<(), String> {
    let [trace, rate] = ["trace", "rate"].map(|name| format!("{prefix}{name}"));
    if given(&trace) && given(&rate) {
        return Err(format!(
            "{trace}: a rate and a delivery trace were both given: leave one of them out"
        ));
    }
    Ok(())
}

/// Whether a text is two quantities with a stroke between them, such as `10mbit/2mbit`.
fn is_pair(text: &str) -> bool {
    let digit = |text: &str| text.starts_with(|it: char| it.is_ascii_digit());
    text.split_once('/').is_some_and(|(one, other)| digit(one) && digit(other))
}

/// What other programs call a setting.
const ALIASES: [(&str, &str); 3] = [("latency", "delay"), ("bandwidth", "rate"), ("bw", "rate")];

/// What a setting that other programs call `name` is called here.
pub fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

impl PathArgs {
    /// The path described.
    pub fn resolve(&self) -> Result<PathSpec, Failure> {
        let mut settings = self.settings.clone();
        self.preset
            .as_deref()
            .map_or(Ok(()), |preset| settings.start_from(preset))
            .and_then(|()| settings.resolve())
            .map_err(|error| Failure::wrong_use(as_options(&error.to_string())))
    }
}

/// Settings are named `delay` in files and `--delay` here.
fn as_options(message: &str) -> String {
    let mut names = SETTINGS.iter().map(|setting| setting.name).chain(WHOLE.map(|(name, ..)| name));
    if names.any(|name| plain(message).starts_with(&format!("{name}:"))) {
        format!("--{message}")
    } else {
        message.to_string()
    }
}

/// Whether a path has a setting of that name, of both directions or of one.
pub fn is_setting(name: &str) -> bool {
    let of_both = |known: &str| known == name;
    of_both("preset")
        || SETTINGS.iter().any(|setting| setting.name == plain(name))
        || ALIASES.iter().any(|(alias, _)| of_both(alias))
        || WHOLE.iter().any(|(whole, ..)| of_both(whole))
}

fn wrong_value(told: &str) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--{told}"))
}

fn plain(name: &str) -> &str {
    name.strip_prefix("up-").or_else(|| name.strip_prefix("down-")).unwrap_or(name)
}

fn option(name: String, value: &'static str, help: impl Into<StyledStr>) -> Arg {
    Arg::new(name.clone())
        .long(name)
        .value_name(value)
        .help(help)
        .help_heading(HEADING)
        .allow_hyphen_values(true)
}

fn augment(mut command: Command) -> Command {
    let preset = option("preset".into(), "NAME", "Start from a named path (`trunkline presets`)");
    command = command.arg(preset);
    for setting in SETTINGS {
        let aliases = ALIASES.iter().filter(|it| it.1 == setting.name).map(|it| it.0);
        let plain = option(setting.name.into(), setting.value, setting.help);
        command = command.arg(plain.visible_aliases(aliases));
        for direction in ["up", "down"] {
            let name = format!("{direction}-{}", setting.name);
            command = command.arg(option(name, setting.value, setting.help).hide(true));
        }
    }
    WHOLE
        .into_iter()
        .fold(command, |command, (name, value, help)| command.arg(option(name.into(), value, help)))
}

impl clap::Args for PathArgs {
    fn augment_args(command: Command) -> Command {
        augment(command)
    }
    fn augment_args_for_update(command: Command) -> Command {
        augment(command)
    }
}

impl FromArgMatches for PathArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PathArgs, clap::Error> {
        let mut settings = Settings::default();
        let given = |name: &str| matches.get_one::<String>(name);
        let asks = |name| given(name).is_some_and(|value| value == "help");
        if ["queue", "up-queue", "down-queue"].into_iter().any(asks) {
            return Err(clap::Error::raw(clap::error::ErrorKind::DisplayHelp, discipline::help()));
        }
        for prefix in ["", "up-", "down-"] {
            one_speed(prefix, |name| given(name).is_some()).map_err(|told| wrong_value(&told))?;
            for setting in SETTINGS {
                let name = format!("{prefix}{}", setting.name);
                if let Some(value) = given(&name) {
                    unambiguous(&name, value).map_err(|told| wrong_value(&told))?;
                    settings.add(&name, value);
                }
            }
        }
        for (name, _, _) in WHOLE {
            if let Some(value) = given(name) {
                settings.add(name, value);
            }
        }
        Ok(PathArgs { preset: given("preset").cloned(), settings })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PathArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A time that is not nothing.
pub fn lasting(text: &str) -> Result<Span, String> {
    match text.parse::<Span>().map_err(|error| error.to_string())? {
        Span::ZERO => Err("nothing happens in no time: give a longer one, such as 10s".into()),
        span => Ok(span),
    }
}

fn capture_filter(text: &str) -> Result<CaptureFilter, String> {
    match text {
        "near" => Ok(CaptureFilter::Near),
        "far" => Ok(CaptureFilter::Far),
        "both" => Ok(CaptureFilter::Both),
        _ => Err(format!("'{text}' is no end: use near, far or both")),
    }
}

/// Settings of the emulator.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Emulator")]
pub struct EmulatorArgs {
    /// How frames are exchanged with the kernel: packet (everywhere) or xdp (faster, root only)
    #[arg(long, default_value = "packet", value_name = "BACKEND")]
    pub backend: Backend,
    /// Never sleep; needs a processor for the emulator alone
    #[arg(long)]
    pub busy: bool,
    /// Run the emulator on this processor only
    #[arg(long, value_name = "NUMBER")]
    pub cpu: Option<usize>,
    /// Capture frames to FILE (pcapng, nanoseconds; dropped packets carry their cause)
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<std::path::PathBuf>,
    /// The ends at which to capture: near, far or both; drops are always captured
    #[arg(long, value_name = "END", default_value = "both", value_parser = capture_filter,
          requires = "pcap")]
    pub pcap_at: CaptureFilter,
    /// Do not fail a run whose frames left late
    #[arg(long)]
    pub best_effort: bool,
    /// Latest departure of a frame that counts as on time: if more than 1 in 100 are later, the run is INVALID
    #[arg(long, value_name = "TIME", default_value_t = accuracy::DEFAULT_BOUND)]
    pub bound: Span,
    /// Print the closing statement as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Write the closing statement as JSON into FILE, and leave standard output to the program
    #[arg(long, value_name = "FILE")]
    pub report: Option<std::path::PathBuf>,
    /// Print nothing about the path, unless the run is INVALID
    #[arg(long)]
    pub quiet: bool,
}

impl EmulatorArgs {
    /// The options of the dataplane's loop.
    pub fn dataplane(&self) -> Options {
        Options { busy: self.busy, cpu: self.cpu, own: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_lasts() {
        assert!(["0s", "0ns"].iter().all(|it| lasting(it).unwrap_err().contains("in no time")));
        assert_eq!(lasting("2s"), Ok(Span::from_secs(2)));
        assert!(lasting("2").is_err());
    }
}

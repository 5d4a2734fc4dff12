//! `trunkline probe rtt`: round trips.

use super::fitted;
use super::sinks::{self, SinkArgs, millis, with_interval};
use super::target::{Stop, TargetArgs};
use crate::failure::Failure;
use crate::files;
use crate::options::lasting;
use crate::output;
use crate::progress::Progress;
use crate::serve::{failure, tcp_window};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use trunkline_core::{Seed, Span};
use trunkline_fit::{FEWEST, Goal, Share};
use trunkline_probe::Pace;
use trunkline_probe::client::Event;
use trunkline_probe::client::fitting::to_fit;
use trunkline_probe::client::rtt::{Measured, RttPlan, RttResult, measure};
use trunkline_probe::result::{PathFigures, SizeFigures, flent, write_samples};
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

/// Measure round trips of messages of many sizes.
///
/// Sizes are user octets; each message carries a head besides (40 octets in a datagram and on a TCP
/// connection, none in URP). One message is outstanding at a time, or they are paced; then delays count
/// from the instant at which a message was meant to be sent. Sizes take turns in an order drawn anew for
/// each round.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    repetition: Repetition,
    #[command(flatten)]
    sinks: SinkArgs,
    /// Find the path's window, rate, delay and costs from where the delay jumps, and write a scenario that
    /// reproduces it to FILE. Chooses the sizes itself unless some are given
    #[arg(long, value_name = "FILE.toml", help_heading = "Output")]
    fit: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  trunkline probe rtt lab7 --key-file probe.key
  trunkline probe rtt lab7 --sizes 1,64,1024 --count 300
  trunkline probe rtt lab7 --every 20ms --duration 60s --json
  trunkline probe rtt lab7 --poisson 50/s --sizes 172 --json-lines
  trunkline probe rtt lab7 --transport urp --window 1024x7 --sweep 1..4096
  trunkline probe rtt lab7 --transport tcp --fit path.toml
  trunkline probe rtt lab7 --sizes 64 --confidence 95 --within 2%";

#[derive(clap::Args)]
#[command(next_help_heading = "Messages")]
struct Messages {
    /// What carries the messages: udp, tcp or urp
    #[arg(long, default_value = "udp", value_name = "NAME")]
    transport: Transport,
    /// User octets of the messages [default: sizes around the path's suspected boundaries]
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', conflicts_with = "sweep")]
    sizes: Vec<u32>,
    /// Sizes in steps (1..4096:64), or the sizes at which the delay jumps,
    /// to the byte (1..4096)
    #[arg(long, value_name = "FROM..TO[:STEP]")]
    sweep: Option<Sweep>,
    /// Send a message at this interval, whether or not answers come
    #[arg(long, value_name = "TIME", conflicts_with = "poisson", value_parser = lasting)]
    every: Option<Span>,
    /// Send messages at random instants (a Poisson process), this many per second on average
    #[arg(long, value_name = "N/s")]
    poisson: Option<PerSecond>,
    /// URP: octets of a block, and blocks outstanding [default: the server's]
    #[arg(long, value_name = "BLOCKxN")]
    window: Option<Window>,
    /// TCP: the congestion control of both ends [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// TCP: the largest window that this end offers, which bounds answers [default: the system's, which
    /// grows]
    #[arg(long, value_name = "SIZE", value_parser = tcp_window)]
    tcp_window: Option<u32>,
    /// Seed of the order of sizes and of the instants
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Repetition")]
struct Repetition {
    /// Messages of each size [default: 100; with --duration or --within no limit; a search for sizes
    /// decides itself]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Longest time to send messages
    #[arg(long, value_name = "TIME", value_parser = lasting)]
    duration: Option<Span>,
    /// Repeat until the median of each size is known within this share of itself
    #[arg(long, value_name = "SHARE%")]
    within: Option<Percent>,
    /// With this confidence, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, requires = "within")]
    confidence: f64,
    /// With --within: the most messages of each size
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_count: usize,
    /// How long to wait for an answer by datagram
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = lasting)]
    timeout: Span,
}

/// A range of sizes.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    from: u32,
    to: u32,
    step: Option<u32>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let wrong =
            || format!("'{text}' is no range of sizes: write one such as 1..4096 or 1..4096:64");
        let (from, rest) = text.split_once("..").ok_or_else(wrong)?;
        let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step)));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let sweep =
            Sweep { from: number(from)?, to: number(to)?, step: step.map(number).transpose()? };
        if sweep.from > sweep.to || sweep.step == Some(0) {
            return Err(wrong());
        }
        Ok(sweep)
    }
}

impl Sweep {
    /// The sizes, if they are given by a step.
    fn sizes(self) -> Vec<u32> {
        let by =
            |step: u32| (self.from..=self.to).step_by(step as usize).chain([self.to]).collect();
        self.step.map(by).unwrap_or_default()
    }

    /// Without a step it follows the jumps of the delay.
    fn adaptive(self) -> Option<trunkline_fit::Sweep> {
        let sweep = trunkline_fit::Sweep { largest: self.to, ..trunkline_fit::Sweep::default() };
        self.step.is_none().then_some(sweep)
    }
}

/// So many in a second.
#[derive(Debug, Clone, Copy)]
pub struct PerSecond(Span);

impl FromStr for PerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<PerSecond, String> {
        let number = text.strip_suffix("/s").unwrap_or(text).trim().parse::<f64>().ok();
        let found = number.filter(|n| (0.001..=1_000_000.0).contains(n));
        let found =
            found.ok_or_else(|| format!("'{text}' is no frequency: write one such as 50/s"))?;
        Ok(PerSecond(Span::from_nanos((1e9 / found) as u64)))
    }
}

/// URP's block and blocks outstanding.
#[derive(Debug, Clone, Copy)]
pub struct Window(pub u16, pub u8);

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let found = text.split_once('x').and_then(|(block, outstanding)| {
            Some(Window(block.trim().parse().ok()?, outstanding.trim().parse().ok()?))
        });
        found
            .filter(|&Window(block, outstanding)| block > 0 && outstanding > 0)
            .ok_or_else(|| format!("'{text}' is no window: write block and blocks, such as 1024x7"))
    }
}

/// A share in percent.
#[derive(Debug, Clone, Copy)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let found = number.filter(|n| *n > 0.0 && *n <= 100.0);
        found
            .map(|n| Percent(n / 100.0))
            .ok_or_else(|| format!("'{text}' is no share: write one such as 2%"))
    }
}

impl Messages {
    fn pace(&self) -> Pace {
        match (self.every, self.poisson) {
            (Some(span), _) => Pace::Every(span),
            (None, Some(PerSecond(span))) => Pace::Poisson(span),
            (None, None) => Pace::OneOutstanding,
        }
    }
}

/// Messages of each size if nothing else ends the measurement.
const COUNT: u64 = 100;
/// The longest measurement if no duration is given.
const LONGEST: Span = Span::from_secs(3600);

impl Args {
    fn plan(&self) -> Result<RttPlan, Failure> {
        let (messages, repetition) = (&self.messages, &self.repetition);
        let free = repetition.duration.is_some() || repetition.within.is_some();
        let goal = repetition.within.map(|Percent(relative)| Goal {
            relative,
            confidence: repetition.confidence / 100.0,
            most: repetition.max_count,
            ..Goal::default()
        });
        if !(50.0..100.0).contains(&repetition.confidence) {
            return Err(Failure::wrong_use("--confidence lies between 50 and 100 percent"));
        }
        let swept = messages.sweep.map_or(messages.sizes.clone(), Sweep::sizes);
        let wanted = self.fit.is_some() && messages.sizes.is_empty() && messages.sweep.is_none();
        let sweep = messages.sweep.and_then(Sweep::adaptive);
        let mut plan = RttPlan {
            transport: messages.transport,
            sizes: swept,
            sweep: sweep.or_else(|| wanted.then(|| fitted::sweep(messages.transport))),
            pace: messages.pace(),
            count: repetition.count.unwrap_or(if free { u64::MAX } else { COUNT }),
            duration: repetition.duration.unwrap_or(LONGEST),
            timeout: repetition.timeout,
            goal,
            seed: Seed(messages.seed),
            window: messages.window.map(|Window(block, outstanding)| (block, outstanding)),
            line: false,
            congestion: messages.congestion.clone(),
            tcp_window: messages.tcp_window,
        };
        match plan.sweep {
            Some(_) => self.check_search()?,
            None => self.check_sizes(&plan.sizes)?,
        }
        if self.fit.is_some() {
            to_fit(&mut plan);
        }
        Ok(plan)
    }

    /// A search for sizes begins at one byte, and decides how often it measures each.
    fn check_search(&self) -> Result<(), Failure> {
        let given = [
            ("--count", self.repetition.count.is_some()),
            ("--within", self.repetition.within.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Failure::wrong_use(format!(
                "{option} has no effect on a search for the sizes at which the delay jumps, which decides how often each \
                 is measured: leave it out, or give sizes (--sizes, or --sweep with a step)"
            )));
        }
        match self.messages.sweep {
            Some(Sweep { from, to, .. }) if from > 1 => Err(Failure::wrong_use(format!(
                "a search for the sizes at which the delay jumps begins at 1 byte, not at {from}: write --sweep 1..{to}, \
                 or give a step, as in --sweep {from}..{to}:16"
            ))),
            _ => Ok(()),
        }
    }

    /// A fit needs some different sizes.
    fn check_sizes(&self, sizes: &[u32]) -> Result<(), Failure> {
        let different = sizes.iter().collect::<BTreeSet<_>>().len();
        if self.fit.is_none() || different >= FEWEST {
            return Ok(());
        }
        Err(Failure::wrong_use(format!(
            "--fit needs at least {FEWEST} different sizes, small and large, not {different}: give more, or none, and it \
             chooses them"
        )))
    }
}

/// Measures and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let plan = args.plan()?;
    args.sinks.check(args.fit.as_deref())?;
    let stop = Stop::on_signals()?;
    let connection = args.target.connect(&stop)?;
    let mut progress = Progress::new(0);
    let mut tell = |event: Event| match event {
        Event::Answer(exchange) => {
            stop.unless(args.sinks.answer("rtt", &exchange) || args.fit.is_some());
        }
        Event::Sent(count) if count % 16 == 0 => progress.tell(&format!("{count} messages sent")),
        Event::Sent(_) => {}
    };
    let mut done = measure(&connection, &plan, calibrate(), &mut tell).map_err(failure)?;
    drop(progress);
    let found = args.fit.is_some().then(|| done.fit());
    done.result.path = found.as_ref().map(PathFigures::of);
    // Files first: they are wanted whether or not anybody reads the rest.
    let saved = save(args, &done);
    let whole = stop.check().and(done.failure.map_or(Ok(()), |error| Err(failure(error))));
    // What was not measured to its end makes no scenario.
    let wanted = args.fit.as_deref().zip(found).filter(|_| whole.is_ok());
    let fitted = wanted.map(|(file, found)| fitted::write(&done.result, &found, file));
    args.sinks.result(&done.result, || table(&done.result))?;
    saved?;
    whole?;
    fitted.transpose()?.unwrap_or_default().iter().for_each(output::tell);
    Ok(())
}

fn save(args: &Args, done: &Measured) -> Result<(), Failure> {
    files::write(args.sinks.csv.as_deref(), |out| write_samples(out, &[("rtt", &done.observed)]))?;
    sinks::flent(&args.sinks, &done.result.hosts, |start| flent::of_rtt(done, start))
}

fn table(result: &RttResult) -> String {
    let mut table = sinks::new_table();
    table.set_header([
        "bytes",
        "answers",
        "response ms\nmin",
        "median",
        "mean",
        "p90",
        "p99",
        "max",
        "one way ms, median\nup",
        "down",
        "jitter ms\nup / down",
        "lost\nup / down",
        "odd",
    ]);
    for size in &result.sizes {
        table.add_row(row(size));
    }
    let mut lines = vec![table.to_string()];
    lines.extend(words(result));
    lines.join("\n")
}

fn row(size: &SizeFigures) -> Vec<String> {
    let figures = &size.figures;
    let of = |pick: fn(&trunkline_fit::Spread) -> f64| {
        figures.response_ms.map_or("-".into(), |spread| millis(pick(&spread)))
    };
    let way = |way: &trunkline_probe::result::OneDirection| {
        way.delay_ms.map_or("-".into(), |spread| millis(spread.median))
    };
    let jitter = |value: Option<f64>| value.map_or("-".into(), millis);
    let mean = figures.response_ms.map(|spread| with_interval(spread.mean, spread.mean_interval));
    vec![
        size.size_octets.to_string(),
        figures.response_ms.map_or(0, |spread| spread.count).to_string(),
        of(|spread| spread.min),
        of(|spread| spread.median),
        mean.unwrap_or("-".into()),
        of(|spread| spread.p90),
        of(|spread| spread.p99),
        of(|spread| spread.max),
        way(&figures.up),
        way(&figures.down),
        format!("{} / {}", jitter(figures.up.jitter_ms), jitter(figures.down.jitter_ms)),
        format!("{} / {}", lost(&figures.loss.out), lost(&figures.loss.back)),
        size.outliers.median_distance.to_string(),
    ]
}

fn lost(share: &Share) -> String {
    match (share.least, share.most) {
        (0, 0) => "0".into(),
        (least, most) if least == most => {
            format!("{least} ({:.2} %)", least as f64 / share.of.max(1) as f64 * 100.0)
        }
        (least, most) => format!("{least} to {most}"),
    }
}

fn words(result: &RttResult) -> Vec<String> {
    let all = &result.all;
    let mut lines = vec![format!(
        "{} by {}, {}: {} sent, {} answered; duplicates {} up, {} down; reordered {} up, {} down",
        result.server,
        result.transport,
        result.pace,
        result.sent,
        result.answered,
        all.up.duplicates,
        all.down.duplicates,
        all.up.order.reordered,
        all.down.order.reordered
    )];
    if let Some(uncertainty) = all.up.delay_uncertainty_ms {
        lines.push(format!(
            "one way: the least delays up and down are taken as equal; without that each may be wrong by \
             {} ms",
            millis(uncertainty)
        ));
    }
    for size in &result.sizes {
        if let Some(goal) = size.goal.filter(|goal| !goal.reached) {
            let after = goal.known_ms.map_or(0, |known| known.count);
            lines.push(format!(
                "{} bytes: not known as well as asked after {after}",
                size.size_octets
            ));
        }
    }
    lines.push(sinks::timing(&result.timing_error));
    lines.extend(result.hosts.warnings.iter().map(|warning| format!("WARNING: {warning}")));
    lines
}

//! `trunkline cluster run`: all nodes of a cluster on this machine.

use super::watched::Watched;
use super::{Common, failure};
use crate::failure::Failure;
use crate::files;
use crate::output;
use comfy_table::Table;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;
use trunkline_cluster::trace::{perfetto, picture};
use trunkline_netns::enter_user_namespace_if_needed;
use trunkline_nodes::{Joined, Launch, MOST_NAMESPACES, NodesError, Outcome, Place, together};
use trunkline_transport::cstar::{Frame, NodeId};

/// Start all nodes on this machine, run a test, and check the results.
///
/// Each node is a process in a network namespace of its own; an Ethernet bridge joins them. The figure is of
/// node 0's laps: the time of a hop for latency, of a message for flood, payload a second for throughput, of a whole round
/// or run for the others.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How many
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=250))]
    nodes: u16,
    #[command(flatten)]
    common: Common,
    /// Run on loopback, without namespaces
    #[arg(long)]
    here: bool,
    /// What carries the frames
    #[arg(long, value_enum, default_value_t = Over::Udp, conflicts_with = "here")]
    over: Over,
    /// Give up after this time
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = super::duration)]
    most: Duration,
    /// Write what the programs did to this file, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw who waits for whom into this file, an SVG picture
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What carries the frames between namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Over {
    /// UDP datagrams, broadcasts by IP multicast
    Udp,
    /// Ethernet frames without IP, broadcasts by multicast
    Ethernet,
}

const EXAMPLES: &str = "\
Examples:
  trunkline cluster run --nodes 2 --test latency:words=1000,rounds=1000
  trunkline cluster run --nodes 4 --test jacobi:side=64,iterations=200 \\
      --protocol traditional --drop 5%
  trunkline cluster run --nodes 4 --test all-to-all --here --json
  trunkline cluster run --nodes 4 --test all-reduce --over ethernet
  trunkline cluster run --nodes 4 --test halo:rounds=10 --picture halo.svg

Exit status: 0 done and right, 1 a node failed or found something wrong, 2 wrong
use.";

/// Acts of each program that are recorded at most (a choice; some 10 MB of JSON).
const MOST_RECORDS: usize = 100_000;
/// Bytes of an IPv4 packet beside a frame: IPv4 and UDP; over Ethernet it is two.
const HEADERS: u32 = 28;

/// Runs the cluster.
pub fn run(args: &Args) -> Result<(), Failure> {
    let common = &args.common;
    common.test.check(args.nodes, common.frame).map_err(Failure::wrong_use)?;
    let layout = common.layout(args.nodes);
    common.protocol.layer(NodeId(0), &layout).map_err(Failure::wrong_use)?;
    files::writable(&[args.trace.as_deref(), args.picture.as_deref()])?;
    let mut caught = crate::signals::Caught::begin()?;
    let joined = if args.here {
        Joined::Loopback
    } else {
        debug_assert!(args.nodes <= MOST_NAMESPACES);
        enter_user_namespace_if_needed()?;
        let mtu = (common.frame + Frame::HEADER + HEADERS).max(1500);
        match args.over {
            Over::Udp => Joined::Segment { mtu },
            Over::Ethernet => Joined::Bridge { mtu },
        }
    };
    if let Some(signal) = caught.pending() {
        return Err(Failure::interrupted(signal));
    }
    let (stop, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
    let (flag, which) = (Arc::clone(&stop), Arc::clone(&signal));
    caught.watch(move |number| {
        which.store(number, Ordering::Relaxed);
        flag.store(true, Ordering::Relaxed);
        true
    })?;
    let program = std::env::current_exe()?;
    let words = words();
    let command = |node: NodeId, place: Place| {
        let mut command = Command::new(&program);
        command.args(["cluster", "node", "--id", &node.0.to_string()]);
        command.args(["--bind", &place.to_string(), "--nodes", &args.nodes.to_string()]);
        if args.trace.is_some() || args.picture.is_some() {
            command.args(["--record", &MOST_RECORDS.to_string()]);
        }
        command.args(&words);
        command
    };
    let launched = Launch::start(joined, args.nodes, &stop, &command);
    let mut watched = Watched::new(common.test.laps());
    let watches = &mut |watch: &_| watched.tells(0, watch);
    let outcomes = launched.and_then(|launch| launch.run(args.most, &stop, watches));
    drop(watched);
    let mut outcomes = outcomes.map_err(|error| match error {
        NodesError::Stopped => Failure::interrupted(signal.load(Ordering::Relaxed)),
        other => failure(&other),
    })?;
    drawn(args, &mut outcomes)?;
    tell(args, &outcomes)
}

/// Writes the trace and the picture, if they are wanted; they are no part of what is told.
fn drawn(args: &Args, outcomes: &mut [Outcome]) -> Result<(), Failure> {
    let nodes = together(outcomes);
    outcomes.iter_mut().for_each(|it| (it.began, it.records) = (0, Vec::new()));
    files::write(args.trace.as_deref(), |out| out.write_all(perfetto(&nodes).as_bytes()))?;
    files::write(args.picture.as_deref(), |out| out.write_all(picture(&nodes).as_bytes()))
}

/// The words of the command line that each node gets: all but those that are for the run.
fn words() -> Vec<OsString> {
    let own = ["--nodes", "--most", "--trace", "--picture", "--over"];
    let (mut words, mut skip) = (Vec::new(), false);
    for word in std::env::args_os().skip_while(|word| word != "run").skip(1) {
        let text = word.to_string_lossy();
        if std::mem::take(&mut skip) || text == "--here" || text == "--json" {
            continue;
        }
        skip = own.contains(&&*text);
        if !skip && !own.iter().any(|it| text.starts_with(&format!("{it}="))) {
            words.push(word);
        }
    }
    words
}

/// The figures of a run.
#[derive(Serialize)]
struct Summary<'a> {
    test: &'static str,
    protocol: &'static str,
    nodes: u16,
    /// What the figure is, and its unit.
    figure: &'static str,
    unit: &'static str,
    median: Option<f64>,
    p99: Option<f64>,
    laps: usize,
    right: bool,
    outcomes: &'a [Outcome],
}

fn summary<'a>(args: &Args, outcomes: &'a [Outcome]) -> Summary<'a> {
    let (test, parts) = (&args.common.test, args.common.test.parts(args.nodes) as f64);
    let laps = outcomes.iter().find(|it| it.node == 0).map_or(&[][..], |it| &it.laps);
    let value = |&(nanos, bytes): &(u64, u64)| match test.is_rate() {
        true => bytes as f64 * 8e3 / nanos as f64,
        false => nanos as f64 / 1e3 / parts,
    };
    let mut values: Vec<f64> = laps.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * values.len() as f64).ceil() as usize;
        values.get(place.saturating_sub(1)).copied()
    };
    let wrong = |it: &Outcome| it.failure.is_some() || it.wrong.is_some();
    Summary {
        test: test.name(),
        protocol: args.common.protocol.name(),
        nodes: args.nodes,
        figure: test.figure(),
        unit: if test.is_rate() { "Mbit/s" } else { "us" },
        median: at(0.5),
        p99: at(0.99),
        laps: values.len(),
        right: outcomes.len() == usize::from(args.nodes) && !outcomes.iter().any(wrong),
        outcomes,
    }
}

fn tell(args: &Args, outcomes: &[Outcome]) -> Result<(), Failure> {
    let summary = summary(args, outcomes);
    if args.json {
        output::line(&serde_json::to_string(&summary)?)?;
    } else {
        output::line(&table(outcomes))?;
        let Summary { test, protocol, nodes, figure, unit, laps, .. } = summary;
        if let (Some(median), Some(p99)) = (summary.median, summary.p99) {
            output::line(&format!(
                "{test}, {protocol}, {nodes} nodes: {figure} {median:.2} {unit}, p99 {p99:.2} {unit}, of {laps} laps"
            ))?;
        }
        output::line(&promise(args, outcomes))?;
    }
    reason(outcomes).map_or(Ok(()), |why| Err(Failure::failed(why)))
}

/// Why the nodes have not come to a right end: what the first says of itself, and not what it was told of another.
fn reason(outcomes: &[Outcome]) -> Option<String> {
    let why = |it: &Outcome| {
        let why = it.failure.as_ref().or(it.wrong.as_ref())?;
        Some(format!("node {}: {why}", it.node))
    };
    let mut of_themselves = outcomes.iter().filter(|it| !it.told);
    of_themselves.find_map(why).or_else(|| outcomes.iter().find_map(why))
}

/// What the network did with the frames. If none of n is known to be lost, fewer than 3 in n are, with 95 % confidence (the
/// rule of three: 0.95 = 1 - exp(-3)). Greetings are among those received: they cross the same network.
fn promise(args: &Args, outcomes: &[Outcome]) -> String {
    let sum = |of: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (received, again) = (sum(&|it| it.received), sum(&|it| it.again));
    let full = sum(&|it| it.kernel_dropped.unwrap_or(0));
    let dropped = sum(&|it| it.dropped);
    let told = full == 0 && outcomes.iter().all(|it| it.failure.is_none());
    let kept = match (args.common.protocol.name(), received / 3) {
        ("careful", one_in @ 2..) if told => {
            format!(", none is known to be lost: fewer than 1 in {one_in} with 95 % confidence")
        }
        _ => String::new(),
    };
    format!(
        "{received} frames received{kept}; {again} sent again, {full} dropped by the kernel, {dropped} on purpose"
    )
}

fn table(outcomes: &[Outcome]) -> String {
    let mut table = Table::new();
    table.set_header([
        "node", "sent", "received", "again", "refused", "buffers", "copied", "verdict",
    ]);
    for it in outcomes {
        let verdict = it.failure.as_ref().or(it.wrong.as_ref());
        table.add_row([
            it.node.to_string(),
            it.sent.to_string(),
            it.received.to_string(),
            it.again.to_string(),
            it.refused.to_string(),
            it.buffers.to_string(),
            format!("{} B", it.copied),
            verdict.map_or_else(|| "right".into(), Clone::clone),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_found_a_fault_is_quoted() {
        let failed = |node, why: &str, told| Outcome {
            node,
            failure: Some(why.into()),
            told,
            ..Outcome::default()
        };
        let told = failed(0, "node 1 has failed: a frame was lost", true);
        let own = failed(1, "a frame was lost", false);
        assert_eq!(reason(&[told.clone(), own]).unwrap(), "node 1: a frame was lost");
        assert!(reason(&[told]).unwrap().starts_with("node 0: node 1 has failed"));
        assert_eq!(reason(&[Outcome::default()]), None);
    }
}

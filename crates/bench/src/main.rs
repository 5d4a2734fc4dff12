//! `trunkline-bench`: what the emulator and the simulator cost on this machine, as ratios within one run.

mod figure;
mod flood;
mod gate;
mod instructions;
mod kernelless;
mod loops;
mod machine;
mod messages;
mod movers;
mod parts;
mod process;
mod quic;
mod simulator;
mod tcp;
mod throughput;

use anyhow::Result;
use cap::Cap;
use clap::{Parser, Subcommand, ValueEnum};
use machine::Machine;
use serde::Serialize;
use std::alloc::System;
use std::time::Duration;

/// Counts the bytes that are allocated, for the simulator's memory.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Measures what the emulator and the simulator cost on this machine, as ratios within one run.
///
/// Needs two processors to itself and root; everything happens in network namespaces of its own.
#[derive(Parser)]
struct Args {
    /// Fewer and shorter repetitions: under a minute
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Measure only these
    #[arg(long, value_delimiter = ',', value_name = "WHAT")]
    only: Vec<Section>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Run one part of the dataplane for its instructions to be counted
    #[command(hide = true)]
    Part { name: String, packets: u64 },
    /// Be one of two ends that exchange messages
    #[command(hide = true)]
    End(messages::ends::Args),
    /// Receive a file over QUIC into this directory
    #[command(hide = true)]
    QuicReceive(quic::Receive),
    /// Send a file over QUIC to who receives in this directory
    #[command(hide = true)]
    QuicSend(quic::Send),
    /// Run one workload of the simulator once, for a profiler
    #[command(hide = true)]
    Simulate {
        name: String,
        /// Run only one of so many parts of its time
        #[arg(default_value_t = 1)]
        parts: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// The dataplane against a bare forwarder and a direct pair
    Throughput,
    /// Instructions of disciplines and of the dataplane's parts
    Instructions,
    /// Kernel TCP
    Tcp,
    /// Moving data over loopback, by ours, QUIC and TCP; needs no root
    Movers,
    /// Messages between two processes: both layers of a cluster, bare UDP, libfabric, UCX, Open MPI, Aeron
    Messages,
    /// Instructions of all of these for a message, by callgrind
    MessageInstructions,
    /// The simulator's time for each packet-hop, and its memory; needs no root
    Simulator,
}

/// How much is done.
struct Effort {
    throughput: throughput::Effort,
    kernelless: usize,
    packets: u64,
    tcp: tcp::Effort,
    movers: movers::Effort,
    messages: messages::Effort,
    simulator: usize,
}

const FULL: Effort = Effort {
    throughput: throughput::Effort { rounds: 5, turn: Duration::from_millis(300) },
    kernelless: 9,
    packets: 20_000,
    tcp: tcp::Effort { rounds: 3, seconds: 3 },
    movers: movers::Effort { rounds: 5, bytes: 1_000_000_000 },
    messages: messages::Effort { rounds: 5, count: 5000, few: 1000 },
    simulator: 3,
};
const QUICK: Effort = Effort {
    throughput: throughput::Effort { rounds: 1, turn: Duration::from_millis(150) },
    kernelless: 3,
    packets: 2_000,
    tcp: tcp::Effort { rounds: 1, seconds: 2 },
    movers: movers::Effort { rounds: 1, bytes: 200_000_000 },
    messages: messages::Effort { rounds: 1, count: 1000, few: 300 },
    simulator: 1,
};

/// Everything that was measured.
#[derive(Serialize)]
struct Report {
    machine: Machine,
    warning: Option<String>,
    throughput: Option<throughput::Throughput>,
    own_code: Option<Vec<kernelless::Kernelless>>,
    instructions: Option<instructions::Instructions>,
    tcp: Option<Vec<tcp::Row>>,
    movers: Option<Vec<movers::Row>>,
    messages: Option<messages::Messages>,
    message_instructions: Option<messages::counted::Counted>,
    simulator: Option<simulator::Simulator>,
}

impl Report {
    /// Nothing measured yet on this machine.
    fn new(machine: Machine) -> Report {
        Report {
            machine,
            warning: None,
            throughput: None,
            own_code: None,
            instructions: None,
            tcp: None,
            movers: None,
            messages: None,
            message_instructions: None,
            simulator: None,
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.verb {
        Some(Verb::Part { name, packets }) => return parts::run(name, *packets),
        Some(Verb::Simulate { name, parts }) => return simulator::run_one(name, *parts),
        Some(Verb::End(args)) => return messages::ends::run(args),
        Some(Verb::QuicReceive(args)) => return quic::receive(args),
        Some(Verb::QuicSend(args)) => return quic::send(args),
        None => {}
    }
    let report = measure(&args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}

/// Measures what is wanted and prints each table as soon as it is there.
fn measure(args: &Args) -> Result<Report> {
    let effort = if args.quick { QUICK } else { FULL };
    let wanted = |section| args.only.is_empty() || args.only.contains(&section);
    let show = |title: &str, text: String| {
        if !args.json {
            println!("\n{title}\n\n{text}");
        }
    };
    let machine = Machine::before();
    // The peers find the processors as awake as our dataplane does.
    let _for_all = trunkline_dataplane::Awake::hold();
    let mut report = Report::new(machine);
    if wanted(Section::Throughput) {
        let all = throughput::measure(effort.throughput)?;
        let own = kernelless::measure(effort.kernelless)?;
        show("Forwarding: median (least–greatest)", all.text() + &kernelless::text(&own));
        (report.throughput, report.own_code) = (Some(all), Some(own));
    }
    if wanted(Section::Tcp) {
        let rows = tcp::measure(effort.tcp)?;
        show("TCP, one flow by iperf3", tcp::text(&rows));
        report.tcp = Some(rows);
    }
    if wanted(Section::Movers) {
        let rows = movers::measure(effort.movers)?;
        show("Moving data over loopback: median (least–greatest)", movers::text(&rows));
        report.movers = Some(rows);
    }
    if wanted(Section::Messages) {
        let all = messages::measure(effort.messages)?;
        show("Messages between two processes: median (least–greatest)", messages::text(&all));
        report.messages = Some(all);
    }
    if wanted(Section::MessageInstructions) {
        let all = messages::counted::measure(effort.messages.few)?;
        show("Instructions for a message sent and one received", messages::counted::text(&all));
        report.message_instructions = Some(all);
    }
    if wanted(Section::Instructions) {
        let all = instructions::measure(effort.packets)?;
        show("Instructions for each packet, by callgrind", all.text());
        report.instructions = Some(all);
    }
    if wanted(Section::Simulator) {
        let all = simulator::measure(effort.simulator)?;
        show("Simulator: median (least–greatest)", all.text());
        report.simulator = Some(all);
    }
    report.machine.finish();
    report.warning = report.machine.warning();
    let warning = report.warning.as_ref();
    let warning = warning.map(|why| format!("WARNING: {why}; figures are unreliable"));
    show(&report.machine.to_string(), warning.unwrap_or_default());
    Ok(report)
}

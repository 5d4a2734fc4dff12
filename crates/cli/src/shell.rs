//! `trunkline shell`: a program in its own namespace, behind the emulated path.

use crate::emulation::{self, Ending, Running};
use crate::failure::Failure;
use crate::links::{self, ExtraLink};
use crate::options::{EmulatorArgs, PathArgs};
use crate::programs::{
    Program, is_there, outcome, own_status, terminal_reaches_programs, wait_for_listener,
};
use crate::reach::{Reach, ReachArgs};
use crate::signals::Caught;
use crate::{describe, output, statement};
use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use trunkline_core::Rate;
use trunkline_dataplane::hosts::{
    Addresses, Hosts, addresses, carries_ipv6, inner_devices, machine_addresses,
};
use trunkline_dataplane::{Options, Plan, keep_off, processors};
use trunkline_netns::processes_in;
use trunkline_scenario::PathSpec;

/// Run a program in its own network namespace, behind the emulated path.
///
/// The program sees an interface tl0 whose other end is a second host, the peer, at 10.77.0.1 and
/// fd00:746c::1; in the program's arguments {peer} stands for that address, and TRUNKLINE_PEER holds
/// it. Up is from the program to the peer. As root the world outside is reached through the peer.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Run COMMAND (by sh -c) at the far end, and start the program when it listens (or after 3 s in which it does
    /// not; later, up to 60 s, if it is still computing)
    #[arg(long, value_name = "COMMAND", help_heading = "Ends")]
    peer: Option<String>,
    /// Another far host, NAME, behind a path of its own: 'NAME delay=270ms rate=10mbit'; {NAME} and
    /// TRUNKLINE_PEER_NAME give its address. May be given several times
    #[arg(long, value_name = "NAME SETTINGS", help_heading = "Ends")]
    link: Vec<ExtraLink>,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    emulator: EmulatorArgs,
    /// End with the program's own exit status; 128 and more if a signal ended it
    #[arg(long)]
    pass_status: bool,
    /// The program and its arguments; your shell if there is none
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  trunkline shell --delay 50ms -- ping -c 3 {peer}        # round trip 100 ms
  trunkline shell --preset geo-satellite -- curl -sI https://example.org
  trunkline shell --rate 1.544mbit --framing t1-lapd \\
      --queue round-robin:quantum=64 --peer 'iperf3 -s' \\
      -- iperf3 -c {peer} -t 10
  trunkline shell --delay 30ms --link 'satellite delay=270ms' \\
      -- ping -c 3 {satellite}";

/// A path is fast from this sum of its rates on, in bits per second.
const FAST: u64 = 400_000_000;
/// The time between two looks at the emulator and the capture.
const WATCH: Duration = Duration::from_millis(50);
/// The time by which we may hear of a signal later than of the end of the program that it was sent to as well.
const LAG: Duration = Duration::from_millis(250);
/// The time that programs may take to end when asked, before they are killed.
const GRACE: Duration = Duration::from_secs(2);

/// An event during the run.
enum Event {
    CommandEnded(io::Result<ExitStatus>),
    PeerEnded(io::Result<ExitStatus>),
    Signal(i32),
}

/// Runs the program behind the path.
pub fn run(args: &Args) -> Result<(), Failure> {
    let path = args.path.resolve()?;
    args.command.first().map_or(Ok(()), is_there)?;
    if args.peer.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::wrong_use("--peer: no command is given: write --peer 'iperf3 -s'"));
    }
    links::check_names("peer", &args.link)?;
    links::check_far_names(&args.link)?;
    links::check_words(&args.link)?;
    let mut names = vec![String::new()];
    let mut paths = vec![path];
    for link in &args.link {
        names.push(link.name.clone());
        paths.push(link.path.clone());
    }
    if paths.len() > 1 {
        names[0] = "peer".into();
    }
    let mut caught = Caught::begin()?;
    let (host, state) = emulation::prepare()?;
    let mtus: Vec<u32> = paths.iter().map(|path| path.mtu).collect();
    let hosts = Hosts::build(&mtus)?;
    for namespace in hosts.laboratory().namespaces() {
        state.note_namespace(namespace)?;
    }
    let dataplane = spare_processor(args, &hosts, &paths);
    // Behind that: its threads keep off the emulator's processor too.
    let of_machine = (&host, &hosts, &state);
    let first = (&names[..], paths[0].mtu);
    let reach = Reach::build(&args.reach, of_machine, first, args.emulator.quiet)?;
    let plans = plans(&hosts, &names, paths.clone());
    let running = emulation::start(plans, &args.emulator, dataplane, &state)?;
    if !args.emulator.quiet {
        announce(&names, &paths);
        reach.announce();
    }
    let result = match caught.pending() {
        Some(signal) => Err(Failure::interrupted(signal)),
        None => in_company(args, (&hosts, &reach), (&names, &paths), &running, caught),
    };
    hosts.laboratory().end_programs();
    let ending = running.end();
    drop(reach);
    conclude(result, ending, &args.emulator)
}

/// On fast paths the emulator, which then never rests, gets a processor of its own, on which neither
/// programs nor receivers do any work: that would make frames late. On slow ones they may, because
/// passing work on takes some microseconds.
fn spare_processor(args: &Args, hosts: &Hosts, paths: &[PathSpec]) -> Options {
    let rates = paths.iter().flat_map(|path| [path.up.rate, path.down.rate]);
    let total: u64 = rates.flatten().map(Rate::bits_per_second).sum();
    let asked = args.emulator.dataplane();
    let all = processors();
    match asked.cpu.or(all.last().copied()) {
        Some(number) if total >= FAST => match hosts.laboratory().spare(number, &all) {
            Ok(()) => {
                keep_off(number);
                Options { cpu: Some(number), own: all.len() > 1, ..asked }
            }
            Err(error) => {
                tracing::debug!(%error, "receivers work on the emulator's processor");
                asked
            }
        },
        _ => asked,
    }
}

/// The emulator's own failure comes first, because the program's may follow from it; then the
/// program's, then the verdict.
fn conclude(
    result: Result<(), Failure>,
    ending: Ending,
    emulator: &EmulatorArgs,
) -> Result<(), Failure> {
    let verdict = statement::close(&ending.snapshot, emulator);
    ending.check()?;
    result.and(verdict)
}

fn plans<'a>(hosts: &'a Hosts, names: &[String], paths: Vec<PathSpec>) -> Vec<Plan<'a>> {
    let plan = |(index, path)| {
        let (near, far) = inner_devices(index);
        Plan { name: names[index].clone(), path, namespace: hosts.middle(), near, far }
    };
    paths.into_iter().enumerate().map(plan).collect()
}

fn announce(names: &[String], paths: &[PathSpec]) {
    for (index, (name, path)) in names.iter().zip(paths).enumerate() {
        let Addresses { near, far, .. } = addresses(index);
        let name = if name.is_empty() { "peer" } else { name };
        output::tell(format_args!("{name} {far} (here {near}): {}", describe::path(path)));
        describe::idle(path).iter().for_each(output::tell);
        if !carries_ipv6(path.mtu) {
            output::tell(format_args!("{name} has no IPv6, which needs --mtu 1280 or more"));
        }
    }
}

/// Starts the peer, then the program, and waits until the program has ended.
fn in_company(
    args: &Args,
    (hosts, reach): (&Hosts, &Reach),
    (names, paths): (&[String], &[PathSpec]),
    running: &Running,
    caught: Caught,
) -> Result<(), Failure> {
    let (sender, events) = channel();
    let told = sender.clone();
    caught.watch(move |signal| told.send(Event::Signal(signal)).is_ok())?;
    let peer = match &args.peer {
        Some(text) => {
            let asked = (text.as_str(), args.emulator.quiet);
            Some(start_peer(asked, (hosts, reach), (names, paths), (&sender, &events))?)
        }
        None => None,
    };
    let (words, command) = near_command(args, names, paths);
    let ended = report(&sender, Event::CommandEnded);
    let program = Program::start(hosts.near(), command, (false, reach.files()), ended)?;
    let result = attend(&program, (&words, args.pass_status), &events, running);
    let result = result.map_err(|failure| match behind(&args.command) {
        Some(option) => failure.with_hint(&format!(
            "{option} stands behind the program, so the program got it: options of the path go in front"
        )),
        None => failure,
    });
    if let Some(peer) = peer {
        peer.signal(Signal::TERM);
    }
    result
}

/// An option of ours among the program's arguments, if nobody wrote `--` to say that they are the program's.
fn behind(command: &[OsString]) -> Option<&str> {
    let known = <Args as clap::Args>::augment_args(clap::Command::new("shell"));
    let is_ours = |word: &&str| {
        let name = word.strip_prefix("--").and_then(|it| it.split('=').next());
        name.is_some_and(|name| known.get_arguments().any(|it| it.get_long() == Some(name)))
    };
    let own = std::env::args_os().any(|word| word == "--");
    let mut words = command.iter().skip(1).filter_map(|word| word.to_str());
    words.find(is_ours).filter(|_| !own)
}

fn report(
    sender: &Sender<Event>,
    event: impl FnOnce(io::Result<ExitStatus>) -> Event + Send + 'static,
) -> impl FnOnce(io::Result<ExitStatus>) + Send + 'static {
    let sender = sender.clone();
    // The receiver is gone only when the run is over, and then nobody asks any more.
    move |status| drop(sender.send(event(status)))
}

fn start_peer(
    (text, quiet): (&str, bool),
    (hosts, reach): (&Hosts, &Reach),
    (names, paths): (&[String], &[PathSpec]),
    (sender, events): (&Sender<Event>, &Receiver<Event>),
) -> Result<Program, Failure> {
    let mut command = Command::new("sh");
    command.args(["-c", text]).envs(environment(names, paths, true)).stdout(io::stderr());
    let ended = report(sender, Event::PeerEnded);
    let far = hosts.far(0);
    let program = Program::start(far, command, (true, reach.files()), ended)?;
    let (mut early, mut well) = (None, false);
    let listens = wait_for_listener(far, &reach.ports(), || {
        match events.try_recv() {
            Ok(Event::PeerEnded(Ok(status))) if status.success() => well = true,
            event => early = event.ok(),
        }
        // What it has begun in the background may listen yet.
        early.is_some() || (well && processes_in(far.inode()).is_empty())
    })?;
    match early {
        Some(Event::PeerEnded(status)) => outcome(&format!("peer '{text}'"), status)?,
        Some(Event::Signal(signal)) => return Err(Failure::interrupted(signal)),
        None if !listens && !quiet => {
            output::tell("the peer listens at no port so far: the program starts all the same");
        }
        Some(Event::CommandEnded(_)) | None => {}
    }
    Ok(program)
}

/// The program, with {peer} and its like filled in, and its name for messages.
fn near_command(args: &Args, names: &[String], paths: &[PathSpec]) -> (String, Command) {
    let mut words: Vec<OsString> =
        args.command.iter().map(|word| links::fill_in(word, names)).collect();
    let interactive = words.is_empty();
    if interactive {
        let own = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        words.push(own.unwrap_or_else(|| "/bin/sh".into()));
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(environment(names, paths, false));
    if interactive {
        let prompt = format!("[trunkline {}] ", describe::short(&paths[0]));
        command.env("PROMPT_COMMAND", format!("PS1=\"{prompt}$PS1\"; unset PROMPT_COMMAND"));
        command.env("PS1", format!("{prompt}$ "));
    }
    (words[0].to_string_lossy().into_owned(), command)
}

/// The addresses of the other ends, as seen from the near end or from a far one.
fn environment(names: &[String], paths: &[PathSpec], far: bool) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (index, (name, path)) in names.iter().zip(paths).enumerate() {
        let ends = addresses(index);
        let (v4, v6) = if far { (ends.near, ends.near6) } else { (ends.far, ends.far6) };
        let suffix = if index == 0 { String::new() } else { links::variable_suffix(name) };
        variables.push((format!("TRUNKLINE_PEER{suffix}"), v4.to_string()));
        if carries_ipv6(path.mtu) {
            variables.push((format!("TRUNKLINE_PEER6{suffix}"), v6.to_string()));
        }
    }
    variables.push(("TRUNKLINE_HOST".into(), machine_addresses().0.to_string()));
    variables.push(("TRUNKLINE_PID".into(), std::process::id().to_string()));
    variables
}

/// Waits for the program's end; hands signals on; ends it when the emulator has stopped.
fn attend(
    program: &Program,
    (name, pass_status): (&str, bool),
    events: &Receiver<Event>,
    running: &Running,
) -> Result<(), Failure> {
    let mut heard = Vec::new();
    loop {
        match events.recv_timeout(WATCH) {
            Ok(Event::CommandEnded(status)) => {
                let signal = status.as_ref().ok().and_then(ExitStatusExt::signal);
                let with_us = signal.is_some_and(|it| heard.contains(&it) || comes(it, events));
                let own = status.as_ref().ok().and_then(own_status);
                return outcome(name, status).map_err(|failure| match own {
                    Some(own) if pass_status || with_us => failure.with_status(own),
                    _ => failure,
                });
            }
            Ok(Event::PeerEnded(status)) => {
                if let Err(failure) = outcome("the peer", status) {
                    output::tell(failure.message());
                }
            }
            Ok(Event::Signal(signal @ (SIGINT | SIGQUIT))) if terminal_reaches_programs() => {
                heard.push(signal);
            }
            Ok(Event::Signal(signal)) => {
                end_program(program, events, Signal::from_named_raw(signal));
                return Err(Failure::interrupted(signal));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::failed("lost the program")),
            Err(RecvTimeoutError::Timeout) => {
                running.tell_of_devices();
                if let Some(trouble) = running.trouble() {
                    end_program(program, events, None);
                    return Err(Failure::failed(trouble));
                }
            }
        }
    }
}

/// Whether a signal that has ended the program comes to us too, as the terminal's do: we may hear of the end first.
fn comes(signal: i32, events: &Receiver<Event>) -> bool {
    let until = Instant::now() + LAG;
    let left = || until.saturating_duration_since(Instant::now());
    let mut later = std::iter::from_fn(|| events.recv_timeout(left()).ok());
    matches!(signal, SIGINT | SIGQUIT)
        && later.any(|event| matches!(event, Event::Signal(it) if it == signal))
}

fn end_program(program: &Program, events: &Receiver<Event>, signal: Option<Signal>) {
    program.signal(signal.unwrap_or(Signal::TERM));
    if !ends_in(GRACE, events) {
        program.signal(Signal::KILL);
    }
}

/// Whether the program ends within `time`.
fn ends_in(time: Duration, events: &Receiver<Event>) -> bool {
    let until = Instant::now() + time;
    while let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if matches!(event, Event::CommandEnded(_)) {
            return true;
        }
    }
    false
}

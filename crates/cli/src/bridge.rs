//! `trunkline bridge`: the piece of fibre between two interfaces.

use crate::emulation::Running;
use crate::failure::Failure;
use crate::links::{self, ExtraLink};
use crate::options::{EmulatorArgs, PathArgs, lasting};
use crate::signals::Caught;
use crate::{describe, emulation, output, statement};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use trunkline_core::Span;
use trunkline_dataplane::Plan;
use trunkline_netns::{LinkInfo, Namespace};
use trunkline_port::Backend;
use trunkline_scenario::PathSpec;

/// Join two interfaces by an emulated path.
///
/// Every frame that comes in at one interface (ARP, IPv6, VLAN, LLDP, jumbo …) leaves by the other, and
/// none is made or changed. Up is from A to B. Runs until it is interrupted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The near interface
    a: String,
    /// The far interface
    b: String,
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Another pair of interfaces with a path of its own, in the same process: 'NAME C D delay=270ms'.
    /// May be given several times
    #[arg(long, value_name = "NAME C D SETTINGS", help_heading = "Ends")]
    link: Vec<ExtraLink>,
    /// Stop after this time instead of waiting for an interrupt
    #[arg(long, value_name = "TIME", help_heading = "Ends", value_parser = lasting)]
    duration: Option<Span>,
    #[command(flatten)]
    emulator: EmulatorArgs,
}

const EXAMPLES: &str = "\
Examples:
  trunkline bridge eth1 eth2 --delay 250ms
  trunkline bridge eth1 eth2 --delay 30ms \\
      --link 'satellite eth3 eth4 delay=270ms rate=10mbit'
  trunkline set delay=80ms         # from another terminal, while traffic flows";

/// Bridges until interrupted.
pub fn run(args: &Args) -> Result<(), Failure> {
    links::check_names("first", &args.link)?;
    let mut plans = vec![("".to_string(), args.a.clone(), args.b.clone(), args.path.resolve()?)];
    for link in &args.link {
        let [c, d] = &link.words[..] else {
            return Err(Failure::wrong_use(format!(
                "--link {}: name two interfaces, such as '{} eth3 eth4 delay=270ms'",
                link.name, link.name
            )));
        };
        plans.push((link.name.clone(), c.clone(), d.clone(), link.path.clone()));
    }
    if plans.len() > 1 {
        plans[0].0 = "first".into();
    }
    check_distinct(&plans)?;
    let caught = Caught::begin()?;
    let (host, state) = emulation::prepare_on_host()?;
    let devices: Vec<&str> = plans.iter().flat_map(|(_, a, b, _)| [a.as_str(), b]).collect();
    state.claim(&devices)?;
    let mut told = Vec::new();
    for (_, a, b, path) in &plans {
        check_devices(&host, [a, b])?;
        check_backend(args.emulator.backend, [a, b])?;
        told.push(format!("{a} <-> {b}: {}", describe::path(path)));
        told.extend(describe::idle(path));
    }
    let plans = plans
        .into_iter()
        .map(|(name, near, far, path)| Plan { name, path, namespace: &host, near, far })
        .collect();
    let (sender, interrupted) = channel();
    caught.watch(move |_| sender.send(()).is_ok())?;
    let running = emulation::start(plans, &args.emulator, args.emulator.dataplane(), &state)?;
    // Only now do frames pass: who waits for these lines may send.
    told.iter().for_each(output::tell);
    wait(&interrupted, &running, args.duration);
    let ending = running.end();
    let verdict = statement::close(&ending.snapshot, &args.emulator);
    ending.check()?;
    verdict
}

type Named = (String, String, String, PathSpec);

fn check_distinct(plans: &[Named]) -> Result<(), Failure> {
    let mut devices: Vec<&str> = plans.iter().flat_map(|(_, a, b, _)| [a.as_str(), b]).collect();
    devices.sort_unstable();
    match devices.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::wrong_use(format!(
            "interface '{}' is named twice: a path joins two different interfaces",
            pair[0]
        ))),
        None => Ok(()),
    }
}

/// Refuses devices that are missing, down, of another kind, or joined already, and tells of an MTU that would drop frames.
fn check_devices(host: &Namespace, devices: [&String; 2]) -> Result<(), Failure> {
    let infos = [host.link(devices[0])?, host.link(devices[1])?];
    for (device, info) in std::iter::zip(devices, &infos) {
        check_device(device, info)?;
    }
    check_apart(devices, &infos)?;
    let [one, other] = infos.map(|info| info.mtu);
    if one != other {
        output::tell(format_args!(
            "the MTUs differ ({one} and {other}): larger frames towards the smaller one are dropped as too-big"
        ));
    }
    Ok(())
}

fn check_device(device: &str, info: &LinkInfo) -> Result<(), Failure> {
    if !info.ethernet {
        return Err(Failure::failed(format!(
            "interface '{device}' is no Ethernet interface: join two of those (eth1, a veth, a tap), since frames leave as \
             they came"
        )));
    }
    if !info.up {
        return Err(Failure::failed(format!(
            "interface '{device}' is down: set it up first (ip link set {device} up)"
        )));
    }
    Ok(())
}

/// What the kernel passes from one to the other by itself would pass twice, and go round.
fn check_apart([a, b]: [&String; 2], [one, other]: &[LinkInfo; 2]) -> Result<(), Failure> {
    let (joined, part) = if one.master == Some(other.index) {
        (format!("'{a}' is a part of '{b}'"), a)
    } else if other.master == Some(one.index) {
        (format!("'{b}' is a part of '{a}'"), b)
    } else if one.master.is_some() && one.master == other.master {
        (format!("'{a}' and '{b}' are parts of one device"), a)
    } else {
        return Ok(());
    };
    Err(Failure::failed(format!(
        "{joined}, and the kernel passes frames from one to the other already: take '{part}' out first (ip link set {part} nomaster)"
    )))
}

/// AF_XDP shows frames as the driver has them. What comes from a wire is complete; what comes from a
/// virtual device's other end may be a super-frame or lack its checksum, and AF_XDP does not tell.
fn check_backend(backend: Backend, devices: [&String; 2]) -> Result<(), Failure> {
    let is_virtual =
        |device: &str| !Path::new("/sys/class/net").join(device).join("device").exists();
    match devices.into_iter().find(|device| is_virtual(device)) {
        Some(device) if backend == Backend::Xdp => Err(Failure::failed(format!(
            "the xdp backend cannot bridge '{device}': it is a virtual device, whose frames may lack their \
             checksums; use --backend packet, which finishes them"
        ))),
        _ => Ok(()),
    }
}

/// Waits for an interrupt, trouble, or the time asked for.
fn wait(interrupted: &Receiver<()>, running: &Running, duration: Option<Span>) {
    const WATCH: Duration = Duration::from_millis(50);
    let started = Instant::now();
    let time_is_up =
        || duration.is_some_and(|duration| started.elapsed() >= duration.to_duration());
    while matches!(interrupted.recv_timeout(WATCH), Err(RecvTimeoutError::Timeout)) {
        running.tell_of_devices();
        if running.trouble().is_some() || time_is_up() {
            return;
        }
    }
}

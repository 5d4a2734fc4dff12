//! `trunkline doctor`: what this machine can and cannot do, each tried, with the remedy.

use crate::emulation;
use crate::failure::Failure;
use crate::{output, reach};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use trunkline_dataplane::hosts::{Hosts, inner_devices};
use trunkline_dataplane::processors;
use trunkline_netns::{
    ForwardDrop, Namespace, Privilege, RunState, available_memory, enter_user_namespace_if_needed,
};
use trunkline_port::{Backend, open};

/// List what this machine can and cannot do, with the remedies.
///
/// Everything is tried in a laboratory of its own, which is gone at the end; the machine's network is looked at and not
/// changed. Exit status 1 if `shell` cannot work here.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trunkline doctor
  trunkline doctor --json | jq '.[] | select(.state != \"good\")'")]
pub struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// How far something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// It works less well, or something that not everybody needs is missing.
    Limited,
    /// Without it nothing is emulated.
    Missing,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn good(what: &'static str, found: impl Into<String>) -> Finding {
        Finding { what, state: State::Good, found: found.into(), remedy: None }
    }

    fn limited(what: &'static str, found: impl Into<String>, remedy: &str) -> Finding {
        let remedy = Some(remedy.to_owned());
        Finding { what, state: State::Limited, found: found.into(), remedy }
    }

    fn missing(what: &'static str, found: impl Into<String>, remedy: &str) -> Finding {
        let remedy = Some(remedy.to_owned());
        Finding { what, state: State::Missing, found: found.into(), remedy }
    }
}

/// Looks at the machine and says what it found.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut findings = vec![kernel(), place(), clock_source(), processors_found(), memory()];
    // A refusal is a finding as well; what stands on the rights is not tried then.
    match enter_user_namespace_if_needed() {
        Ok(privilege) => {
            findings.push(rights(privilege));
            findings.extend(in_a_laboratory());
        }
        Err(error) => {
            let remedy = "as the text says; then run `trunkline doctor` again";
            findings.push(Finding::missing("rights", error.to_string(), remedy));
        }
    }
    findings.extend([sleeping(), programs()]);
    if args.json {
        output::line(&serde_json::to_string_pretty(&findings)?)?;
    } else {
        output::line(&words(&findings))?;
    }
    match findings.iter().filter(|it| it.state == State::Missing).count() {
        0 => Ok(()),
        count => Err(Failure::failed(format!(
            "`shell` cannot work here: MISSING above ({count}), each with what to do"
        ))),
    }
}

fn words(findings: &[Finding]) -> String {
    let line = |Finding { what, state, found, remedy }: &Finding| {
        let mark = match state {
            State::Good => "good   ",
            State::Limited => "limited",
            State::Missing => "MISSING",
        };
        let remedy = remedy.as_ref().map_or(String::new(), |text| format!("\n{:>25}-> {text}", ""));
        format!("{mark}  {what:<15} {found}{remedy}")
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The oldest kernel on which everything works: namespaces have cookies since then.
const OLDEST: (u32, u32) = (5, 14);

fn kernel() -> Finding {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let remedy = "use Linux 5.14 or later";
    match version(&release) {
        Some(version) if version >= OLDEST => Finding::good("kernel", format!("Linux {release}")),
        _ => Finding::limited("kernel", format!("Linux {release}, older than 5.14"), remedy),
    }
}

/// The first two numbers of a kernel's release: `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn place() -> Finding {
    let banner = fs::read_to_string("/proc/version").unwrap_or_default();
    let in_container =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|it| Path::new(it).exists());
    if banner.to_lowercase().contains("microsoft") {
        return Finding::good("place", "WSL2");
    }
    if in_container {
        let found = "a container; if something is MISSING below, start it with --privileged, or with --cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt apparmor=unconfined";
        return Finding::good("place", found);
    }
    Finding::good("place", "a machine, or a virtual one")
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Sources that are read without a system call or an access to a device.
const FAST_SOURCES: [&str; 5] =
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen"];

fn clock_source() -> Finding {
    let source = fs::read_to_string(CLOCK_SOURCE).unwrap_or_default().trim().to_owned();
    let remedy = "boot with clocksource=tsc, or expect frames some microseconds late: `trunkline verify` measures it";
    match source.as_str() {
        "" => Finding::limited("clock", "the kernel does not say which clock it reads", remedy),
        fast if FAST_SOURCES.contains(&fast) => Finding::good("clock", source),
        _ => Finding::limited("clock", format!("{source}, which is slow to read"), remedy),
    }
}

fn processors_found() -> Finding {
    let all = processors();
    let governor = all.first().and_then(|number| {
        let path = format!("/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor");
        fs::read_to_string(path).ok()
    });
    let saving = governor.is_some_and(|name| name.trim() == "powersave");
    match all.len() {
        0 | 1 => Finding::limited(
            "processors",
            "one, for the emulator and all programs",
            "use two or more; on one, frames leave late beside a busy program",
        ),
        count if saving => Finding::limited(
            "processors",
            format!("{count}, with the governor powersave"),
            "for the least lateness: cpupower frequency-set -g performance",
        ),
        count => Finding::good("processors", count.to_string()),
    }
}

/// Bytes below which queues of usual size may not fit.
const LITTLE_MEMORY: u64 = 256 << 20;

fn memory() -> Finding {
    let available = available_memory();
    let found = format!("{} MiB available", available >> 20);
    if available < LITTLE_MEMORY {
        return Finding::limited(
            "memory",
            found,
            "free some: a run asks for its buffers when it starts",
        );
    }
    Finding::good("memory", found)
}

fn rights(privilege: Privilege) -> Finding {
    match privilege {
        Privilege::Held { .. } => Finding::good("rights", "those of root"),
        Privilege::UserNamespace { .. } => Finding::limited(
            "rights",
            "an ordinary user's, by a user namespace",
            "run as root for `bridge`, for --backend xdp, and for ping to the world outside",
        ),
    }
}

/// What is tried with rights.
fn in_a_laboratory() -> Vec<Finding> {
    let remedy = "see the text; in a container, its seccomp profile or capabilities forbid it";
    let prepared = emulation::prepare_on_host();
    let (host, state) = match prepared {
        Ok(made) => made,
        Err(error) => return vec![Finding::missing("run directory", error.message(), remedy)],
    };
    let directory = Finding::good("run directory", state.directory().display().to_string());
    let hosts = match Hosts::build(&[1500]) {
        Ok(hosts) => hosts,
        Err(error) => {
            return vec![directory, Finding::missing("namespaces", error.to_string(), remedy)];
        }
    };
    let mut findings =
        vec![directory, Finding::good("namespaces", "made, with devices between them")];
    findings.extend([packets(&hosts), xdp(&hosts)]);
    findings.extend(outside(&host, &hosts, &state));
    findings
}

fn packets(hosts: &Hosts) -> Finding {
    let (near, _) = inner_devices(0);
    match tried(hosts, &near, Backend::Packet) {
        Ok(()) => Finding::good("packet sockets", "AF_PACKET with rings"),
        Err(error) => Finding::missing("packet sockets", error, "load the module af_packet"),
    }
}

/// Opens the device of the laboratory as the emulator does.
fn tried(hosts: &Hosts, device: &str, backend: Backend) -> Result<(), String> {
    let opened = hosts.middle().run(|| open(device, backend).map(drop));
    opened.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn xdp(hosts: &Hosts) -> Finding {
    let (_, far) = inner_devices(0);
    let remedy =
        "nothing to do, unless you want --backend xdp: it needs root and a kernel with AF_XDP";
    match tried(hosts, &far, Backend::Xdp) {
        Ok(()) => Finding::good("AF_XDP", "usable by --backend xdp"),
        Err(error) => Finding::limited("AF_XDP", error, remedy),
    }
}

/// The ways out of a laboratory, and into it.
fn outside(host: &Namespace, hosts: &Hosts, state: &RunState) -> Vec<Finding> {
    let trial = reach::trial(host, hosts, state);
    let dropped = host.forward_drop().ok().flatten();
    let world = world(&trial, dropped.as_ref());
    let machine = "its servers and names are reached as host.trunkline";
    let unreached = "its loopback device is not reached from `shell`; --publish works";
    let files = "programs get /etc/hosts and /etc/resolv.conf of their own";
    let ipv6 = match trial.ipv6 {
        true => Ok(()),
        false => Err("this machine has no default route of IPv6".to_owned()),
    };
    vec![
        found("this machine", trial.gateway, machine, unreached),
        found("UDP to it", trial.datagrams, "as host.trunkline too", "TCP works; load nft_tproxy"),
        found("names", trial.files, files, "write {host} and {peer} in place of names"),
        world,
        found("IPv6 outside", ipv6, "by TCP and UDP", "nothing to do, unless you need it"),
    ]
}

/// Something that works, or works less well for a reason.
fn found(
    what: &'static str,
    tried: Result<(), String>,
    good: &'static str,
    remedy: &str,
) -> Finding {
    match tried {
        Ok(()) => Finding::good(what, good),
        Err(error) => Finding::limited(what, error, remedy),
    }
}

/// How the world outside is reached by IPv4: through the kernel, by the gateway where that does not do, or not at all.
fn world(trial: &reach::Trial, dropped: Option<&ForwardDrop>) -> Finding {
    let what = "world outside";
    let without = match (&trial.gateway, &trial.datagrams) {
        (Ok(()), Ok(())) => "by TCP and UDP alone",
        (Ok(()), Err(_)) => "by TCP alone",
        (Err(_), _) => "not reached",
    };
    match (&trial.masquerades, dropped) {
        (Ok(()), None) => Finding::good(what, "by IPv4, all protocols"),
        (Ok(()), Some(drop)) => Finding::limited(
            what,
            format!(
                "{without}, unless a rule lets the rest through chain {} of table {}",
                drop.chain, drop.table
            ),
            &drop.remedy(),
        ),
        (Err(error), _) => Finding::limited(
            what,
            format!("{without}: {error}"),
            "run as root, with the modules nf_tables, nft_masq, nft_ct and nft_chain_nat",
        ),
    }
}

/// How often a sleep is tried, and how long it is.
const SLEEPS: usize = 50;
const SLEEP: Duration = Duration::from_millis(1);
/// Lateness of a wake-up that a run's default bound (100 us, of which the last are spun) bears well.
const EARLY_ENOUGH: Duration = Duration::from_micros(500);

fn sleeping() -> Finding {
    let late = |_| {
        let begun = Instant::now();
        std::thread::sleep(SLEEP);
        begun.elapsed().saturating_sub(SLEEP)
    };
    let mut all: Vec<Duration> = (0..SLEEPS).map(late).collect();
    all.sort_unstable();
    let (middle, last) = (all[SLEEPS / 2], all[SLEEPS - 1]);
    let found = format!(
        "a sleep of 1 ms ends {} us late, {} us at most of {SLEEPS}",
        middle.as_micros(),
        last.as_micros()
    );
    if middle > EARLY_ENOUGH {
        return Finding::limited(
            "timers",
            found,
            "use --busy, or a kernel with high-resolution timers",
        );
    }
    Finding::good("timers", found)
}

/// Programs that most people put behind a path.
const PROGRAMS: [&str; 4] = ["ping", "iperf3", "curl", "tshark"];

fn programs() -> Finding {
    let absent: Vec<&str> =
        PROGRAMS.into_iter().filter(|name| crate::programs::is_there(name).is_err()).collect();
    if absent.is_empty() {
        return Finding::good("programs", PROGRAMS.join(", "));
    }
    let found = format!("not installed: {}", absent.join(", "));
    Finding::limited("programs", found, "nothing to do, unless an example uses one of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(version("5.4.72-microsoft-standard-WSL2"), Some((5, 4)));
        assert_eq!(version("nonsense"), None);
        assert!(version("5.9.1") < Some(OLDEST) && version("5.15.0") >= Some(OLDEST));
    }

    #[test]
    fn what_is_missing_stands_out_and_has_its_remedy_below() {
        let findings =
            [Finding::good("clock", "tsc"), Finding::missing("rights", "none", "run as root")];
        let text = words(&findings);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "good     clock           tsc");
        assert_eq!(lines[1], "MISSING  rights          none");
        assert_eq!(lines[2].trim_start(), "-> run as root");
    }
}

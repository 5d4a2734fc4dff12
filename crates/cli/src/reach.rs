//! The places beyond the path that the programs of `shell` reach, and those from which they are reached: the world
//! outside, the machine itself, its name servers, published ports.

use crate::failure::Failure;
use crate::output;
use std::fs;
use std::net::IpAddr;
use std::sync::Arc;
use trunkline_dataplane::hosts::{
    Hosts, addresses, carries_ipv6, device, machine_addresses, networks,
};
use trunkline_gateway::{
    Beyond, Entry, Gateway, ProgramFiles, Publication, Published, Settings, Tell,
};
use trunkline_netns::{
    LabError, Namespace, Outside, Replacements, RunState, Transport, Unreachable,
};

/// The ending of the laboratory's names.
const DOMAIN: &str = "trunkline";
/// Switches of the far host by which it answers what it has no route for, instead of saying nothing.
const ANSWERING: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];

/// The command line's wishes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Ends")]
pub struct ReachArgs {
    /// Connect the far end neither to the world outside nor to this machine
    #[arg(long)]
    no_outside: bool,
    /// Connect TCP PORT of this machine to a server inside, over the path; 8080:80 connects 8080 to port 80
    /// inside, 0.0.0.0:8080:80 for other machines too, 5353:53/udp for UDP. May be given several times
    #[arg(short, long, value_name = "[ADDRESS:]PORT[:PORT][/udp]")]
    publish: Vec<Publication>,
}

/// What stands, until this is dropped.
pub struct Reach {
    outside: Option<Result<Outside, Unreachable>>,
    gateway: Option<Gateway>,
    files: Option<ProgramFiles>,
    published: Vec<Published>,
    /// Lines for the person at the terminal.
    lines: Vec<String>,
}

impl Reach {
    /// Connects the far host of the first path as far as the machine allows it, and says how far that is. `names` are
    /// those of the paths, and `mtu` is the first one's. A `quiet` one does
    /// not tell later what it could not reach.
    pub fn build(
        args: &ReachArgs,
        (host, hosts, state): (&Namespace, &Hosts, &RunState),
        (names, mtu): (&[String], u32),
        quiet: bool,
    ) -> Result<Reach, Failure> {
        let tell: Tell = match quiet {
            true => Arc::new(|_| {}),
            false => Arc::new(|line| output::tell(line)),
        };
        let mut reach = Reach {
            outside: None,
            gateway: None,
            files: None,
            published: Vec::new(),
            lines: Vec::new(),
        };
        if !args.no_outside {
            reach.outside = Some(Outside::connect(host, hosts.far(0), state));
            let entries = entries(names, carries_ipv6(mtu));
            reach.open((host, hosts), mtu, &entries, &tell)?;
            reach.name(state, &entries);
        }
        for &publication in &args.publish {
            reach.publish(publication, hosts, &tell)?;
        }
        Ok(reach)
    }

    /// The files of the programs.
    pub fn files(&self) -> Replacements {
        self.files.as_ref().map(|files| files.replacements().clone()).unwrap_or_default()
    }

    /// Ports of the far host that no program opened.
    pub fn ports(&self) -> Vec<u16> {
        self.gateway.as_ref().map(Gateway::ports).unwrap_or_default()
    }

    /// Says what is reached.
    pub fn announce(&self) {
        self.lines.iter().for_each(output::tell);
    }

    fn open(
        &mut self,
        (host, hosts): (&Namespace, &Hosts),
        mtu: u32,
        entries: &[Entry],
        tell: &Tell,
    ) -> Result<(), Failure> {
        let dropped = host.forward_drop().ok().flatten();
        let forwards = matches!(self.outside, Some(Ok(_)));
        let v6 = carries_ipv6(mtu);
        let beyond =
            Beyond { v4: !forwards || dropped.is_some(), v6: v6 && host.run(has_ipv6_route)? };
        let (machine, machine6) = machine_addresses();
        hosts.add_machine(v6)?;
        let settings = Settings {
            device: GATE,
            machine,
            machine6: v6.then_some(machine6),
            own: networks(),
            beyond,
            domain: DOMAIN,
        };
        let gateway = Gateway::open(hosts.far(0), settings, entries, tell);
        let by = gateway.as_ref().ok().map(transports);
        self.lines.push(told(self.outside.as_ref(), by));
        if let (Some(dropped), true) = (dropped, forwards) {
            let (round, rest) = match by {
                Some(BOTH) => ("TCP, UDP", "ping"),
                _ => ("TCP", "ping and UDP"),
            };
            self.lines.push(format!(
                "this machine's firewall drops packets that it would pass on, unless a rule lets them through (chain {} of table {}, as Docker and ufw set it): {round} and names go round it; for {rest}: {}",
                dropped.chain,
                dropped.table,
                dropped.remedy()
            ));
        }
        match gateway {
            Ok(gateway) => {
                self.lines.extend(gateway.without_datagrams().map(|error| {
                    format!("this machine is reached by TCP and not by UDP: {error}")
                }));
                self.gateway = Some(gateway);
                lead(hosts, beyond.v6)?;
            }
            Err(error) => {
                let line = format!("this machine and its name servers are not reached: {error}");
                self.lines.push(line);
                if forwards {
                    lead(hosts, false)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the programs the laboratory's names.
    fn name(&mut self, state: &RunState, entries: &[Entry]) {
        let Some(_) = self.gateway else { return };
        let (machine, _) = machine_addresses();
        match ProgramFiles::write(state, entries, Some(machine)) {
            Ok(files) => self.files = Some(files),
            Err(error) => self.lines.push(format!(
                "the programs have this machine's own /etc/hosts and /etc/resolv.conf ({error}): its address is {machine}, {{host}} in the program's arguments"
            )),
        }
    }

    fn publish(
        &mut self,
        publication: Publication,
        hosts: &Hosts,
        tell: &Tell,
    ) -> Result<(), Failure> {
        let Publication { address, outside, inside, transport } = publication;
        let (kind, ending) = match transport {
            Transport::Tcp => ("", ""),
            Transport::Udp => ("UDP ", "/udp"),
        };
        let server = addresses(0).near;
        let published = Published::start(publication, hosts.far(0), server, tell);
        let at = address.map_or("localhost".to_owned(), |it| it.to_string());
        let published = published.map_err(|error| {
            Failure::failed(format!(
                "--publish {outside}{ending}: cannot listen at {kind}port {outside} of {at}: {error}: choose another port, such as --publish 18080:{inside}{ending}"
            ))
        })?;
        self.lines.push(format!(
            "{kind}port {outside} of {at} leads to port {inside} inside, over the path"
        ));
        self.published.push(published);
        Ok(())
    }
}

/// The names of the laboratory's places: this machine, and the far hosts of the paths.
fn entries(names: &[String], v6: bool) -> Vec<Entry> {
    let entry = |name: &str, address: IpAddr| Entry { address, name: format!("{name}.{DOMAIN}") };
    let (machine, machine6) = machine_addresses();
    let mut entries = vec![entry("host", machine.into())];
    entries.extend(v6.then(|| entry("host", machine6.into())));
    for (index, name) in names.iter().enumerate() {
        let name = if name.is_empty() { "peer" } else { name };
        entries.push(entry(&name.to_lowercase(), addresses(index).far.into()));
    }
    entries
}

/// What of all this works here, tried without a change to the machine.
pub struct Trial {
    /// Connections to the machine.
    pub gateway: Result<(), String>,
    /// Datagrams to the machine.
    pub datagrams: Result<(), String>,
    /// Files of the programs' own.
    pub files: Result<(), String>,
    /// Passing IPv4 on: the laboratory can, and this user may look at the machine's rules.
    pub masquerades: Result<(), String>,
    /// Whether the machine reaches anything by IPv6.
    pub ipv6: bool,
}

/// Tries it in the laboratory `hosts`.
pub fn trial(host: &Namespace, hosts: &Hosts, state: &RunState) -> Trial {
    let (machine, _) = machine_addresses();
    let beyond = Beyond::default();
    let (own, domain) = (networks(), DOMAIN);
    let settings = Settings { device: GATE, machine, machine6: None, own, beyond, domain };
    let tell: Tell = Arc::new(|_| {});
    let gateway = Gateway::open(hosts.far(0), settings, &[], &tell);
    let datagrams = match &gateway {
        Ok(gateway) => gateway.without_datagrams().map_or(Ok(()), |error| Err(error.to_string())),
        Err(error) => Err(error.to_string()),
    };
    let files = ProgramFiles::write(state, &[], Some(machine)).map(drop);
    let masquerades = hosts.far(0).can_masquerade().and_then(|()| host.nft_tables().map(drop));
    Trial {
        gateway: gateway.map(drop).map_err(|error| error.to_string()),
        datagrams,
        files: files.map_err(|error| error.to_string()),
        masquerades: masquerades.map_err(|error| error.to_string()),
        ipv6: host.run(has_ipv6_route).unwrap_or(false),
    }
}

/// The far host's device.
const GATE: &str = "tl0";

/// Sends what is for elsewhere from the near host to the far one, which answers what it cannot pass on.
fn lead(hosts: &Hosts, v6: bool) -> Result<(), LabError> {
    debug_assert_eq!(device(0), GATE);
    let ends = addresses(0);
    hosts.near().add_default_route(ends.far.into())?;
    if v6 {
        hosts.near().add_default_route(ends.far6.into())?;
    }
    for setting in ANSWERING {
        match hosts.far(0).set_sysctl(setting, "1") {
            // A kernel without IPv6.
            Err(error) if setting.contains("ipv6") => tracing::debug!(%error, "left as it is"),
            other => other?,
        }
    }
    Ok(())
}

/// What a gateway passes on.
const BOTH: &str = "TCP and UDP";

/// What this one passes on.
fn transports(gateway: &Gateway) -> &'static str {
    if gateway.without_datagrams().is_none() { BOTH } else { "TCP" }
}

/// How the world outside is reached; `by` is what the gateway passes on, if there is one.
fn told(outside: Option<&Result<Outside, Unreachable>>, by: Option<&str>) -> String {
    let machine = by.map_or("", |_| ", this machine as host.trunkline");
    match (outside, by) {
        (Some(Ok(_)), _) => format!("the world outside is reached through the peer{machine}"),
        (Some(Err(reason)), Some(by)) => {
            format!("the world outside is reached by {by} alone{machine}: {reason}")
        }
        (Some(Err(reason)), None) => format!("the world outside is not reached: {reason}"),
        (None, _) => String::new(),
    }
}

/// Whether the calling thread's namespace has a default route of IPv6.
fn has_ipv6_route() -> bool {
    let text = fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap_or_default();
    text.lines().any(leads_out)
}

/// Whether a line of `/proc/net/ipv6_route` (destination, its prefix, …, device) is a default route by a real device.
fn leads_out(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    let everything = fields.next().is_some_and(|to| to.bytes().all(|digit| digit == b'0'));
    everything && fields.next() == Some("00") && fields.last().is_some_and(|device| device != "lo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_is_told_from_others() {
        let (zeros, rest) = ("0".repeat(32), "00000400 00000001 00000000 00000003");
        let line = |to: &str, prefix, device| {
            format!("{to} {prefix} {zeros} 00 {zeros} {rest}     {device}")
        };
        assert!(leads_out(&line(&zeros, "00", "eth0")));
        assert!(!leads_out(&line(&zeros, "00", "lo")), "the kernel's refusal");
        assert!(!leads_out(&line(&zeros, "40", "eth0")));
        assert!(!leads_out(&line(&format!("fd{}", &zeros[2..]), "00", "eth0")));
        assert!(!leads_out(""));
    }
}

//! The commands of a program: what is put in for the placeholders, and what is added so that the result can be
//! read.

use crate::EndpointError;
use crate::plan::FlowPlan;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use trunkline_netns::Namespace;
use trunkline_scenario::Program;

/// Ports that are given out: below those that the system takes for itself, above the well-known ones.
const PORTS: std::ops::Range<u16> = 20_000..29_000;
/// The port at which the next search begins, so that two flows never get the same one soon after each other.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// The names that are replaced, in braces.
const PLACEHOLDERS: [&str; 3] = ["own", "peer", "port"];

/// Programs whose results are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Iperf3,
    Ping,
    Irtt,
    Curl,
    Other,
}

/// The commands to run.
#[derive(Debug, Clone)]
pub(crate) struct Commands {
    pub kind: Kind,
    pub client: String,
    pub server: Option<String>,
    pub port: u16,
    /// Whether the server listens on that port, as far as its command says.
    pub names_port: bool,
    /// Notes on what was added to the commands, and on what looks like a placeholder in them and is none.
    pub notes: Vec<String>,
}

impl Commands {
    /// The commands of `program` with everything put in.
    pub fn new(program: &Program, plan: &FlowPlan) -> Result<Commands, EndpointError> {
        let port = free_port(&plan.destination.namespace, plan.destination.address)?;
        let (near, far) = (plan.source.address, plan.destination.address);
        let mut notes = unknown(program);
        let kind = kind_of(&program.command);
        let mut client = fill(&program.command, [near, far], port);
        for addition in additions(kind, &client) {
            client = with(kind, &client, addition);
            notes
                .push(format!("'{addition}' added to the command, so that its result can be read"));
        }
        let server = program.server.as_deref().map(|command| {
            let mut server = fill(command, [far, near], port);
            for addition in server_additions(&server, &client) {
                server = format!("{server} {addition}");
                notes.push(format!(
                    "'{addition}' added to the server's command, so that its result can be read"
                ));
            }
            server
        });
        let names_port = program.server.as_deref().is_some_and(|text| text.contains("{port}"));
        Ok(Commands { kind, client, server, port, names_port, notes })
    }

    /// Whether the server ends by itself after one client.
    pub fn serves_once(&self) -> bool {
        let once =
            |server: &str| kind_of(server) == Kind::Iperf3 && has(server, &["-1", "--one-off"]);
        self.server.as_deref().is_some_and(once)
    }
}

/// Puts in the addresses, the program's own and its peer's, and the port.
fn fill(command: &str, [own, peer]: [Ipv4Addr; 2], port: u16) -> String {
    let filled = command.replace("{own}", &own.to_string()).replace("{peer}", &peer.to_string());
    filled.replace("{port}", &port.to_string())
}

/// A word in braces that is no placeholder is the program's own, or a slip.
fn unknown(program: &Program) -> Vec<String> {
    let commands = [Some(&program.command), program.server.as_ref()];
    let braced = commands.into_iter().flatten().flat_map(|command| {
        command.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(word, _)| word)
    });
    let a_name = |word: &&str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let other = braced.filter(a_name).filter(|word| !PLACEHOLDERS.contains(word));
    other
        .map(|word| {
            format!(
                "'{{{word}}}' is left to the program: {{own}}, {{peer}} and {{port}} are filled in"
            )
        })
        .collect()
}

/// The program that a command runs, by its first word that is neither a variable nor a wrapper.
pub(crate) fn kind_of(command: &str) -> Kind {
    let mut words =
        command.split_whitespace().skip_while(|word| word.contains('=') || *word == "exec");
    match words.next().and_then(|word| word.rsplit('/').next()) {
        Some("iperf3") => Kind::Iperf3,
        Some("ping") => Kind::Ping,
        Some("irtt") => Kind::Irtt,
        Some("curl") => Kind::Curl,
        _ => Kind::Other,
    }
}

/// Whether it is one program with its arguments, to which more can be added at the end.
fn is_plain(command: &str) -> bool {
    !command.contains([';', '|', '&', '>', '<', '(', '`', '\n'])
}

fn has(command: &str, options: &[&str]) -> bool {
    command.split_whitespace().any(|word| options.contains(&word))
}

/// The options to be added to a client's command.
fn additions(kind: Kind, command: &str) -> Vec<&'static str> {
    if !is_plain(command) {
        return Vec::new();
    }
    let wanted: &[(&'static str, &[&str])] = match kind {
        Kind::Iperf3 => &[("-J", &["-J", "--json"])],
        // The time of each answer.
        Kind::Ping => &[("-D", &["-D"])],
        Kind::Irtt => &[("-o -", &["-o"])],
        Kind::Curl => &[
            ("-s", &["-s", "--silent"]),
            ("-o /dev/null", &["-o", "-O", "--output"]),
            ("-w '\\n%{json}\\n'", &["-w", "--write-out"]),
        ],
        Kind::Other => &[],
    };
    let missing = wanted.iter().filter(|(_, present)| !has(command, present));
    missing.map(|&(addition, _)| addition).collect()
}

/// The command with an option more: at its end, but irtt takes options before the address only.
fn with(kind: Kind, command: &str, addition: &str) -> String {
    match kind {
        Kind::Irtt => command.replacen("irtt client", &format!("irtt client {addition}"), 1),
        _ => format!("{command} {addition}"),
    }
}

/// The options to be added to a server's: the receiving side's intervals are the server's.
fn server_additions(server: &str, client: &str) -> Vec<String> {
    if kind_of(server) != Kind::Iperf3 || !is_plain(server) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    if !has(server, &["-J", "--json"]) {
        missing.push("-J".to_owned());
    }
    let mut words =
        client.split_whitespace().skip_while(|word| !matches!(*word, "-i" | "--interval"));
    if let Some(interval) = words.nth(1).filter(|_| !has(server, &["-i", "--interval"])) {
        missing.push(format!("-i {interval}"));
    }
    missing
}

/// A port of `address` on which nothing listens, neither TCP nor UDP.
fn free_port(namespace: &Namespace, address: Ipv4Addr) -> Result<u16, EndpointError> {
    let found = namespace.run(|| {
        PORTS.map(|_| next_port()).find(|&port| {
            TcpListener::bind((address, port)).is_ok() && UdpSocket::bind((address, port)).is_ok()
        })
    })?;
    let none =
        || format!("no free port from 20000 to 28999 at {address}: end other programs there");
    found.ok_or_else(|| EndpointError::Transport(none()))
}

fn next_port() -> u16 {
    let count = PORTS.end - PORTS.start;
    PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_known_by_its_name() {
        assert_eq!(kind_of("A=1 exec /usr/bin/iperf3 -c x"), Kind::Iperf3);
        assert_eq!(kind_of("ping -c 3 {peer}"), Kind::Ping);
        assert_eq!(kind_of("sh -c 'ping x'"), Kind::Other);
        assert_eq!(kind_of(""), Kind::Other);
    }

    #[test]
    fn what_is_missing_is_added_to_plain_commands_only() {
        assert_eq!(additions(Kind::Iperf3, "iperf3 -c 10.0.0.1"), ["-J"]);
        assert!(additions(Kind::Iperf3, "iperf3 -c 10.0.0.1 -J").is_empty());
        assert!(additions(Kind::Iperf3, "iperf3 -c 10.0.0.1 | tee x").is_empty());
        assert_eq!(additions(Kind::Curl, "curl -s -o x http://y/"), ["-w '\\n%{json}\\n'"]);
        assert_eq!(server_additions("iperf3 -s", "iperf3 -c x -i 0.5"), ["-J", "-i 0.5"]);
        assert_eq!(with(Kind::Irtt, "irtt client 10.0.0.1", "-o -"), "irtt client -o - 10.0.0.1");
        assert!(server_additions("nc -l", "iperf3 -c x -i 0.5").is_empty());
    }

    #[test]
    fn placeholders_are_filled() {
        let both = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
        let filled = fill("x -B {own} -c {peer} -p {port}", both, 20_001);
        assert_eq!(filled, "x -B 10.0.0.1 -c 10.0.0.2 -p 20001");
    }

    #[test]
    fn a_slip_in_a_placeholder_is_told() {
        let told = |command: &str, server: Option<&str>| {
            unknown(&Program { command: command.into(), server: server.map(Into::into) })
        };
        assert!(told("awk '{print $1}' {peer} ${HOME}", Some("x {own} {port} {}")).is_empty());
        let notes = told("ping {per}", Some("x {prt}"));
        assert!(notes.len() == 2 && notes[0].starts_with("'{per}'"), "{notes:?}");
    }
}

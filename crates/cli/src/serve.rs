//! `trunkline serve`: the other end of `trunkline probe`.

use crate::bound::Bound;
use crate::failure::Failure;
use crate::output::{self, counted};
use crate::probe::Window;
use crate::signals;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use trunkline_core::{Rate, Size, Span};
use trunkline_netns::raise_open_files;
use trunkline_probe::server::{IpNet, Options, Server, network};
use trunkline_probe::wire::PORT;
use trunkline_probe::{Key, ProbeError};

/// Answer the probes of other hosts.
///
/// Listens at one port of TCP and UDP. If others than this host can reach it, it asks for a key or for
/// a list of addresses; it answers nobody else, and nothing larger than it was asked. Ends with SIGINT or
/// SIGTERM and then says what happened.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Listen at this address; one of a single link has its device behind it: fe80::1%eth0
    #[arg(long, value_name = "ADDRESS", default_value_t = Bound::from(IpAddr::V6(Ipv6Addr::UNSPECIFIED)))]
    bind: Bound,
    /// Listen at this port of TCP and UDP; 0 for any
    #[arg(long, value_name = "NUMBER", default_value_t = PORT)]
    port: u16,
    /// Clients must have the key in FILE, which only its owner may read [default: TRUNKLINE_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Clients")]
    key_file: Option<PathBuf>,
    /// Clients must come from one of these networks; without a key they prove nothing else
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',', value_parser = network,
          help_heading = "Clients")]
    allow: Vec<IpNet>,
    /// Highest rate of a session, both ways together [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Limits")]
    max_rate: Option<Rate>,
    /// Longest duration of a session
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration,
          help_heading = "Limits")]
    max_duration: Span,
    /// Largest number of sessions at once
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_sessions: u32,
    /// URP: octets of a block, and blocks outstanding, for clients that give none
    #[arg(long, value_name = "BLOCKxN", default_value = "1024x7", help_heading = "Transports")]
    window: Window,
    /// TCP's receive buffer, which bounds the window [default: the system's, which grows]
    #[arg(long, value_name = "SIZE", value_parser = receive_buffer, help_heading = "Transports")]
    receive_buffer: Option<u32>,
    /// The largest window that this end of TCP offers [default: the system's, which grows]
    #[arg(long, value_name = "SIZE", value_parser = tcp_window, conflicts_with = "receive_buffer",
          help_heading = "Transports")]
    tcp_window: Option<u32>,
    /// The congestion controls of TCP that clients may ask for [default: those that the kernel has]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Transports")]
    congestion: Vec<String>,
    /// Print a summary as JSON at the end
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  head -c 24 /dev/urandom | base64 > probe.key; chmod 600 probe.key
  trunkline serve --key-file probe.key
  trunkline serve --allow 192.168.7.0/24 --max-rate 100mbit --max-duration 60s
  trunkline serve --bind 127.0.0.1            # this host only: no key needed";

/// A duration in which something can be done.
fn duration(text: &str) -> Result<Span, String> {
    match time(text)? {
        Span::ZERO => Err("no session ends in no time: give some, such as 60s".into()),
        some => Ok(some),
    }
}

/// A time, hours too.
fn time(text: &str) -> Result<Span, String> {
    let hours = text.strip_suffix('h').and_then(|hours| hours.trim().parse::<u64>().ok());
    match hours {
        Some(hours) => Ok(Span::from_secs(hours.saturating_mul(3600))),
        None => text.parse().map_err(|error: trunkline_core::ParseError| error.to_string()),
    }
}

/// A window of TCP, in octets: from a small segment to what window scaling allows (RFC 7323 §2.3).
pub fn tcp_window(text: &str) -> Result<u32, String> {
    octets(text, "window of TCP")
}

/// A receive buffer, of as much as a window.
fn receive_buffer(text: &str) -> Result<u32, String> {
    octets(text, "receive buffer")
}

fn octets(text: &str, what: &str) -> Result<u32, String> {
    let size: Size = text.parse().map_err(|error: trunkline_core::ParseError| error.to_string())?;
    let octets = u32::try_from(size.bytes()).ok().filter(|n| (1024..=1 << 30).contains(n));
    octets.ok_or_else(|| format!("'{text}' is no {what}: write one from 1KiB to 1GiB"))
}

/// Serves until a signal comes.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = Options {
        key: Key::find(args.key_file.as_deref()).map_err(Failure::failed)?,
        allow: args.allow.clone(),
        max_rate: args.max_rate,
        max_duration: args.max_duration,
        max_sessions: args.max_sessions as usize,
        window: (args.window.0, args.window.1),
        receive_buffer: args.receive_buffer.map(|octets| octets as usize),
        tcp_window: args.tcp_window,
        congestion: args.congestion.clone(),
        ..Options::at(args.bind.at(args.port))
    };
    // Each connection is one.
    raise_open_files();
    let (sender, signal) = channel();
    signals::watch(move |number| sender.send(number).is_ok())?;
    let server = Server::start(options).map_err(failure)?;
    output::tell(format_args!("listening at {}", server.address()));
    // The sender lives as long as the thread that holds it, so that only a signal ends the waiting.
    let _ = signal.recv();
    let seen = server.statistics();
    drop(server);
    if args.json {
        return output::line(&serde_json::to_string_pretty(&seen)?);
    }
    output::line(&format!(
        "{}; refused: {} by address, {} by key, {} too many; connections that said nothing: {}, \
         something else: {}; datagrams: {} good, {} late, {} garbage",
        counted(seen.sessions, "session"),
        seen.refused_addresses,
        seen.refused_keys,
        seen.refused_full,
        seen.silent,
        seen.foreign,
        seen.good_datagrams,
        seen.late_datagrams,
        seen.garbage_datagrams
    ))
}

/// The failure with its exit status.
pub fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::WrongUse(reason) => Failure::wrong_use(reason),
        other => Failure::failed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_let_nothing_happen_are_refused() {
        for wrong in ["0", "0s", "0h", "0ms"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("2h"), Ok(Span::from_secs(7200)));
        for wrong in ["0", "0B", "1023B", "9000000000GB", "2GiB"] {
            let told = receive_buffer(wrong).unwrap_err();
            assert!(wrong == "0" || told.contains("1KiB to 1GiB"), "{told}");
        }
        assert_eq!(receive_buffer("64KiB"), Ok(65536));
        for wrong in ["0x7", "1024x0", "1024"] {
            assert!(wrong.parse::<Window>().is_err(), "{wrong}");
        }
    }
}

//! `trunkline send`: files to a host that runs `trunkline receive`.

use crate::bound::placed;
use crate::failure::Failure;
use crate::moved::{self, KeyArgs, MannerArgs, Transfer, amount, rate, told};
use crate::output::{self, counted};
use crate::progress::Progress;
use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use trunkline_core::Rate;
use trunkline_handshake::ShortCode;
use trunkline_mover::{Control, Limit, PORT, Secret, SendOptions, Sending, Sent, send};

/// Send files and directories to a host that runs `trunkline receive`.
///
/// They go over NETBLT in UDP, which finds the path's rate and keeps it when packets are lost, encrypted. If either end is
/// killed, the same command goes on with what is missing; while the receiver is away it is waited for. Progress is what the
/// receiver has confirmed. The last line says what limited the transfer.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Args {
    /// Files and directories, and at the end the receiver, `[CODE@]HOST[:PORT]`: the code that it printed, its name or
    /// address, its port if that is not 1818. Without a code a key is needed
    // Options may stand between them, and what stands in a row would have to be as many as are asked for.
    #[arg(required = true, value_name = "PATH", num_args = 1..)]
    what: Vec<OsString>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    manner: MannerArgs,
    /// The most user data per second; `trunkline set rate=…` changes it while it runs [default: what the path carries]
    #[arg(long, value_name = "RATE", value_parser = moved::cap)]
    rate: Option<Rate>,
    /// Print progress and the result as lines of JSON
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "trunkline send [OPTIONS] <PATH>... <[CODE@]HOST[:PORT]>";
const EXAMPLES: &str = "\
Examples:
  trunkline send results/ k7q-m2x@lab7.example.org
  trunkline send disk.img notes.txt 192.168.7.2:4000 --key-file transfer.key
  trunkline set rate=5mbit         # from another terminal, while it runs";

/// The receiver as it was written.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    code: Option<ShortCode>,
    host: String,
    port: u16,
}

impl Target {
    fn read(text: &OsStr) -> Result<Target, String> {
        let text = text.to_str().ok_or("the receiver's name is no text")?;
        let (code, place) = match text.rsplit_once('@') {
            Some((code, place)) => {
                let code = code.parse::<ShortCode>().map_err(|error| error.to_string())?;
                (Some(code), place)
            }
            None => (None, text),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, PORT),
            Some((host, port)) => (host, port_of(port.strip_prefix(':').unwrap_or(port))?),
            None => match place.split_once(':') {
                // Two colons are an address of IPv6 without a port.
                Some((host, port)) if !port.contains(':') => (host, port_of(port)?),
                _ => (place, PORT),
            },
        };
        if host.is_empty() {
            return Err(format!(
                "'{text}' names no host: write CODE@HOST or HOST:PORT, at the end"
            ));
        }
        Ok(Target { code, host: host.to_owned(), port })
    }

    /// The addresses that the name stands for.
    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|error| Failure::failed(format!("{}: {error}", self.host)))?;
        // IPv4 first: a receiver on this host listens there if nothing else is said.
        let mut all: Vec<SocketAddr> = found.collect();
        for address in &all {
            let SocketAddr::V6(it) = address else { continue };
            placed(it.ip(), it.scope_id()).map_err(Failure::wrong_use)?;
        }
        all.sort_by_key(SocketAddr::is_ipv6);
        all.dedup();
        match all.is_empty() {
            true => Err(Failure::failed(format!("{} has no address", self.host))),
            false => Ok(all),
        }
    }
}

fn port_of(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|&port| port > 0);
    port.ok_or_else(|| format!("'{text}' is no port: write a number from 1 to 65535"))
}

/// The paths, each of which names something.
fn named(paths: &[OsString]) -> Result<Vec<PathBuf>, String> {
    match paths.iter().position(|path| path.is_empty()) {
        None => Ok(paths.iter().map(PathBuf::from).collect()),
        Some(at) => Err(format!("path {} is empty: name a file or a directory", at + 1)),
    }
}

/// Sends.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Some((target, paths @ [_, ..])) = args.what.split_last() else {
        return Err(Failure::wrong_use(
            "a path and a receiver are needed: write trunkline send FILE CODE@HOST; `trunkline receive` prints the code",
        ));
    };
    let paths = named(paths).map_err(Failure::wrong_use)?;
    let target = Target::read(target).map_err(Failure::wrong_use)?;
    let secret = match &target.code {
        Some(code) => Secret::Code(code.clone()),
        None => args.key.secret()?.ok_or_else(|| {
            Failure::wrong_use(
                "no code and no key: write CODE@HOST with the code that `trunkline receive` printed, or give \
                 --key-file, or --no-key if neither end need prove who it is",
            )
        })?,
    };
    if args.manner.manner().raw && target.port != PORT {
        return Err(Failure::wrong_use(
            "IP protocol 30 has no ports: leave the port out with --raw",
        ));
    }
    let mut to = target.addresses()?;
    if args.manner.manner().raw {
        to.iter_mut().for_each(|it| it.set_port(0));
    }
    let names: Vec<String> = to.iter().map(moved::place).collect();
    let control = Arc::new(Control::default());
    control.set_cap(args.rate).map_err(Failure::wrong_use)?;
    let signal = moved::stop_on_signals(&control)?;
    let transfer = Arc::new(Transfer::new(Arc::clone(&control), &names.join(" and ")));
    let _server = moved::serve(&transfer);
    let mut shown = Shown { progress: Progress::new(0), json: args.json, to: names.join(" and ") };
    let tell = &mut |what: &Sending| {
        transfer.is_at(what);
        shown.tell(what);
    };
    let manner = args.manner.manner();
    let sent = send(&SendOptions { paths, to, secret, manner }, &control, tell);
    drop(shown);
    let sent = sent.map_err(|error| moved::failure(error, &signal))?;
    if args.json {
        return moved::json_line("sent", &sent);
    }
    output::line(&summary(&sent))
}

struct Shown {
    progress: Progress,
    json: bool,
    /// The receiver's addresses.
    to: String,
}

impl Shown {
    fn tell(&mut self, what: &Sending) {
        if self.json {
            // What nobody reads any more is no reason to stop sending.
            let _ = moved::json_line("progress", what);
        } else if *what == Sending::Lost {
            self.progress.event(&words(what, &self.to));
        } else {
            self.progress.tell(&words(what, &self.to));
        }
    }
}

/// A phase in a line.
pub fn words(what: &Sending, to: &str) -> String {
    match what {
        Sending::Scan { entries, bytes } => {
            let noun = if *entries == 1 { "entry" } else { "entries" };
            format!("scan: {entries} {noun}, {}", amount(*bytes))
        }
        Sending::Connect { seconds, .. } if *seconds < 2.0 => format!("connect: calling {to}"),
        Sending::Connect { seconds, why } => {
            let why = why.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
            format!(
                "connect: {to} has not answered for {seconds:.0} s{why}; waiting (Ctrl-C ends it)"
            )
        }
        Sending::Send { confirmed, bytes, moved, seconds, again_share } => {
            let again = if *again_share > 0.0005 {
                format!(", {:.1} % again", again_share * 100.0)
            } else {
                String::new()
            };
            format!("send: {}{again}", told(*confirmed, *bytes, *moved, *seconds))
        }
        Sending::Verify { read, bytes } => {
            format!("verify: read {} of {} that were there before", amount(*read), amount(*bytes))
        }
        Sending::Place { done, entries } => format!("verify: {done} of {entries} entries in place"),
        Sending::Lost => format!("the session with {to} is lost; what it has is kept"),
    }
}

/// The last lines: what was sent, and what limited it.
fn summary(sent: &Sent) -> String {
    let had = match sent.had {
        0 => String::new(),
        had => format!(" ({} were there before)", amount(had)),
    };
    let whole = format!(
        "sent {}: {}, {}{had} in {:.1} s",
        sent.name,
        counted(sent.files, "file"),
        amount(sent.bytes),
        sent.seconds
    );
    let root = format!("BLAKE3 of its chunks' hashes: {}", sent.root);
    match sent.bytes.saturating_sub(sent.had) {
        // What was not moved had no rate, and nothing limited it.
        0 => format!("{whole}\n{root}"),
        moved => format!(
            "{whole}, {}, {:.3} octets on the wire for each\n{}\n{root}",
            rate(moved, sent.seconds),
            sent.wire as f64 / moved as f64,
            limited(sent)
        ),
    }
}

/// What limited it, with the numbers.
fn limited(sent: &Sent) -> String {
    let Some((first, share)) = sent.limits.first() else { return "nothing limited it".into() };
    let mut text = format!("limited by {first} for {:.0} % of the time", share * 100.0);
    let moved = sent.bytes.saturating_sub(sent.had);
    match first {
        Limit::Path => {
            let lost = sent.again as f64 / sent.packets.max(1) as f64 * 100.0;
            text +=
                &format!(": it carried {} with {lost:.1} % sent again", rate(moved, sent.moving));
        }
        Limit::Cap => text += ": give a higher --rate",
        Limit::Receiver => text += ": look at the receiver's last line",
        _ => {}
    }
    let rest: Vec<String> = sent.limits[1..]
        .iter()
        .map(|(limit, share)| format!("{limit} {:.0} %", share * 100.0))
        .collect();
    if !rest.is_empty() {
        text += &format!("; then {}", rest.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(code: Option<&str>, host: &str, port: u16) -> Target {
        Target { code: code.map(|it| it.parse().unwrap()), host: host.into(), port }
    }

    #[test]
    fn receivers_are_read() {
        let read = |text: &str| Target::read(OsStr::new(text));
        assert_eq!(read("abc-234@lab"), Ok(target(Some("abc-234"), "lab", 1818)));
        assert_eq!(read("ABC234@lab:99"), Ok(target(Some("abc-234"), "lab", 99)));
        assert_eq!(read("10.0.0.1:7"), Ok(target(None, "10.0.0.1", 7)));
        assert_eq!(read("fe80::1"), Ok(target(None, "fe80::1", 1818)));
        assert_eq!(read("abc-234@[fe80::1]:7"), Ok(target(Some("abc-234"), "fe80::1", 7)));
        assert_eq!(read("[fe80::1]"), Ok(target(None, "fe80::1", 1818)));
        for wrong in ["abc@lab", "lab:x", "abc-234@", ":7", "lab:70000", "lab:0", "[::1]:0"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_empty_path_is_told_by_its_place() {
        assert_eq!(named(&["a".into()]), Ok(vec!["a".into()]));
        let told = named(&["a".into(), "".into()]).unwrap_err();
        assert!(told.starts_with("path 2 is empty"), "{told}");
    }

    /// A transfer that moved nothing had no rate, and nothing limited it.
    #[test]
    fn what_moved_nothing_was_not_limited() {
        let sent = |had| Sent {
            name: "file".into(),
            files: 1,
            bytes: 2000,
            had,
            seconds: 1.0,
            moving: 0.5,
            wire: 1100,
            packets: 2,
            again: 0,
            limits: vec![(Limit::Path, 0.32)],
            root: "0".into(),
        };
        let (none, half) = (summary(&sent(2000)), summary(&sent(1000)));
        assert!(!none.contains("limited") && !none.contains("bit/s"), "{none}");
        assert!(none.contains("2.0 kB (2.0 kB were there before) in 1.0 s\n"), "{none}");
        assert!(half.contains("limited by the path's rate for 32 % of the time"), "{half}");
        assert!(half.contains(" in 1.0 s, 8.0 kbit/s, 1.100 octets on the wire"), "{half}");
    }

    /// Nothing can be sent to an address of one link without a device, and who calls it would wait for ever.
    #[test]
    fn a_receiver_on_one_link_has_its_device() {
        let found = |text: &str| Target::read(OsStr::new(text)).unwrap().addresses();
        for text in ["fe80::1", "[fe80::1]:99"] {
            let told = format!("{:?}", found(text).unwrap_err());
            assert!(told.contains("fe80::1%eth0"), "{told}");
        }
        for text in ["fe80::1%lo", "[fe80::1%lo]:99"] {
            assert_eq!(found(text).unwrap().len(), 1, "{text}");
        }
    }
}

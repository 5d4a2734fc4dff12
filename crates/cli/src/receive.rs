//! `trunkline receive`: the other end of `trunkline send`.

use crate::bound::Bound;
use crate::failure::Failure;
use crate::moved::{self, KeyArgs, MannerArgs, Signal, amount, rate, told};
use crate::output::{self, counted};
use crate::progress::Progress;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use trunkline_core::Size;
use trunkline_handshake::ShortCode;
use trunkline_mover::{
    CHUNK, Control, Got, MoverError, PORT, ReceiveOptions, Receiving, Secret, keep_receiving,
    receive,
};
use trunkline_transfer::journal::{self, Listed, Unfinished};

/// Receive what `trunkline send` sends, into a directory.
///
/// Prints a short code that the sender must give, unless both have a key; after three wrong ones the code is worth nothing.
/// Nothing is written outside the directory, and a file gets its name when all of it is there. What has come is
/// kept if either end is stopped or killed: the same command goes on from there.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to put the files
    #[arg(default_value = ".", value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Listen at this address; 0.0.0.0 or :: for all of this host's; one of a single link has its device behind it:
    /// fe80::1%eth0
    #[arg(long, value_name = "ADDRESS", default_value_t = Bound::from(IpAddr::V4(Ipv4Addr::LOCALHOST)))]
    bind: Bound,
    /// Listen at this port of UDP; 0 for any
    #[arg(long, value_name = "NUMBER", default_value_t = PORT, conflicts_with = "raw")]
    port: u16,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    manner: MannerArgs,
    /// Receive one transfer after another until Ctrl-C, and not one
    #[arg(long)]
    keep: bool,
    /// Replace files that exist already
    #[arg(long)]
    replace: bool,
    /// Memory for data that wait for the disk; 175104B at least
    #[arg(long, value_name = "SIZE", default_value = "96MB", value_parser = memory)]
    memory: Size,
    /// List the unfinished transfers in the directory instead, and how far they are
    #[arg(long, conflicts_with_all = ["bind", "port", "replace", "memory", "key_file", "no_key", "keep", "plaintext", "raw"])]
    list: bool,
    /// Print the code, progress and the result as lines of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trunkline receive inbox --bind 0.0.0.0       # prints a code, such as k7q-m2x
  trunkline receive inbox --bind :: --port 4000 --key-file transfer.key
  trunkline receive --replace       # from this host only, into this directory
  trunkline receive inbox --keep --key-file transfer.key
  trunkline receive inbox --list    # what was begun there and has not ended";

/// Room for one chunk at least: with less nothing comes.
fn memory(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error: trunkline_core::ParseError| error.to_string())?;
    let least = Size::from_bytes(CHUNK.into());
    match size < least {
        true => Err(format!("{size} hold no chunk: the least is {}B", CHUNK)),
        false => Ok(size),
    }
}

/// Receives.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.list {
        return list(args);
    }
    let secret = match args.key.secret()? {
        Some(secret) => secret,
        None => Secret::Code(ShortCode::draw()?),
    };
    let control = Arc::new(Control::default());
    let signal = moved::stop_on_signals(&control)?;
    let code = match &secret {
        Secret::Code(code) => Some(code.to_string()),
        _ => None,
    };
    let options = ReceiveOptions {
        directory: args.directory.clone(),
        listen: args.bind.at(args.port),
        secret,
        manner: args.manner.manner(),
        memory: args.memory.bytes(),
        replace: args.replace,
    };
    let mut shown = Shown { progress: Progress::new(0), json: args.json, code };
    if args.keep {
        return keep(options, &control, &signal, shown);
    }
    let tell = &mut |what: &Receiving| shown.tell(what);
    let got = receive(options, &control, tell);
    drop(shown);
    let got = got.map_err(|error| moved::failure(error, &signal))?;
    result(&got, args.json)
}

/// Receives until it is stopped. A transfer that fails is told, and the next one is waited for.
fn keep(
    options: ReceiveOptions,
    control: &Control,
    signal: &Signal,
    shown: Shown,
) -> Result<(), Failure> {
    let (json, shown) = (shown.json, RefCell::new(shown));
    let each = &mut |got: Result<Got, MoverError>| {
        shown.borrow_mut().progress.clear();
        match got {
            // What nobody reads any more is no reason to stop receiving.
            Ok(got) => _ = result(&got, json),
            Err(error) if json => {
                let said = serde_json::json!({ "error": error.to_string() });
                let _ = moved::json_line("failed", &said);
            }
            Err(error) => output::tell(error),
        }
    };
    let tell = &mut |what: &Receiving| shown.borrow_mut().tell(what);
    keep_receiving(options, control, tell, each).map_err(|error| moved::failure(error, signal))
}

/// Prints what has come.
fn result(got: &Got, json: bool) -> Result<(), Failure> {
    match json {
        true => moved::json_line("received", got),
        false => output::line(&summary(got)),
    }
}

/// Prints the unfinished transfers, a line for each.
fn list(args: &Args) -> Result<(), Failure> {
    let all = journal::list(&args.directory).map_err(Failure::failed)?;
    if all.is_empty() && !args.json {
        output::tell(format_args!("{}: no unfinished transfer", args.directory.display()));
    }
    all.iter().try_for_each(|one| match (one, args.json) {
        (Listed::Unfinished(one), true) => moved::json_line("unfinished", &described(one)),
        (Listed::Unfinished(one), false) => output::line(&unfinished(one)),
        (Listed::Unreadable(path), true) => {
            moved::json_line("unreadable", &serde_json::json!({ "path": path.to_string_lossy() }))
        }
        (Listed::Unreadable(path), false) => {
            output::line(&format!("{}: its journal cannot be read", path.display()))
        }
    })
}

fn described(one: &Unfinished) -> serde_json::Value {
    serde_json::json!({
        "name": one.name, "done_bytes": one.done, "bytes": one.all, "path": one.path.to_string_lossy()
    })
}

fn unfinished(one: &Unfinished) -> String {
    let name = one.name.as_deref().unwrap_or("(its list has not come yet)");
    let share = match one.all {
        0 => String::new(),
        all => format!(" of {}, {:.0} %", amount(all), one.done as f64 / all as f64 * 100.0),
    };
    format!("{name}: {} received{share}, in {}", amount(one.done), one.path.display())
}

struct Shown {
    progress: Progress,
    json: bool,
    code: Option<String>,
}

impl Shown {
    fn tell(&mut self, what: &Receiving) {
        if self.json {
            if let (Receiving::Listen { .. }, Some(code)) = (what, &self.code) {
                let _ = moved::json_line("code", &serde_json::json!({ "code": code }));
            }
            let _ = moved::json_line("progress", what);
            return;
        }
        match what {
            Receiving::Listen { address } => {
                output::tell(format_args!("{}", listening(address)));
                if let Some(code) = &self.code {
                    output::tell(format_args!(
                        "the code is {code}: trunkline send … {code}@{}",
                        host(address)
                    ));
                }
            }
            Receiving::Away => self.progress.event(&words(what)),
            what => self.progress.tell(&words(what)),
        }
    }
}

/// Where it listens; without UDP there is no port.
fn listening(address: &SocketAddr) -> String {
    match address.port() {
        0 => format!("listening at {} (IP protocol 30)", address.ip()),
        _ => format!("listening at {address} (UDP)"),
    }
}

/// The receiver as a sender would write it.
fn host(address: &SocketAddr) -> String {
    let name = match address.ip() {
        ip if ip.is_unspecified() => "HOST".to_string(),
        IpAddr::V4(ip) => ip.to_string(),
        // The sender's device has another name or number.
        IpAddr::V6(ip) if ip.is_unicast_link_local() => format!("[{ip}%DEVICE]"),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    match address.port() {
        // IP protocol 30 has none.
        PORT | 0 => name,
        port => format!("{name}:{port}"),
    }
}

/// A phase in a line.
fn words(what: &Receiving) -> String {
    match what {
        Receiving::Listen { address } => listening(address),
        Receiving::Connect { from, name, .. } if name.is_empty() => {
            format!("{} has called", moved::place(from))
        }
        Receiving::Connect { from, name, had, bytes } => {
            let from = moved::place(from);
            format!("{from} sends {name}: {} of {} are there", amount(*had), amount(*bytes))
        }
        Receiving::Receive { confirmed, bytes, moved, seconds } => {
            format!("receive: {}", told(*confirmed, *bytes, *moved, *seconds))
        }
        Receiving::Away => {
            "the sender has gone; what has come is kept, waiting for it (Ctrl-C ends it)".into()
        }
        Receiving::Place { done, entries } => {
            format!("verify: {done} of {entries} entries in place")
        }
    }
}

/// The last lines: what has come, and what this end did to its pace.
fn summary(got: &Got) -> String {
    let had = match got.bytes.saturating_sub(got.moved) {
        0 => String::new(),
        had => format!(" ({} were there before)", amount(had)),
    };
    let mut text = format!(
        "received {}: {}, {}{had} in {:.1} s",
        got.name,
        counted(got.files, "file"),
        amount(got.bytes),
        got.seconds
    );
    // What did not move had no rate, and nothing limited it.
    let has_moved = got.moved > 0;
    if has_moved {
        text += &format!(", {}", rate(got.moved, got.seconds));
    }
    if got.kept > 0 {
        let those = if got.kept == 1 { "entry" } else { "entries" };
        text += &format!("\n{} {those} of another user kept mode and time", got.kept);
    }
    if has_moved && got.disk >= 0.05 {
        text += &format!(
            "\nfor {:.0} % of the time this end asked for nothing, because its disk or its processor had not taken what was there",
            got.disk * 100.0
        );
    }
    if got.overrun > 0 {
        text += &format!(
            "\n{} came while the socket's buffer of {} was full: `sysctl net.core.rmem_max` bounds it",
            counted(got.overrun, "datagram"),
            amount(got.buffer)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_holds_a_chunk() {
        for wrong in ["0", "0B", "175103B", "100kB"] {
            let told = memory(wrong).unwrap_err();
            assert!(told.contains("175104B"), "{told}");
        }
        assert_eq!(memory("175104B").map(Size::bytes), Ok(CHUNK.into()));
    }

    #[test]
    fn a_sender_is_told_what_to_write() {
        let host = |text: &str| host(&text.parse().unwrap());
        assert_eq!(host("127.0.0.1:1818"), "127.0.0.1");
        assert_eq!(host("0.0.0.0:99"), "HOST:99");
        assert_eq!(host("[2001:db8::1]:99"), "[2001:db8::1]:99");
        assert_eq!(host("[fe80::1%2]:99"), "[fe80::1%DEVICE]:99");
    }
}

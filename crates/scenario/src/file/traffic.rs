//! Traffic: what is sent by whom, how, and when.

use super::Alike;
use super::error::{Wrong, list};
use super::reader::{Reader, complaint, size};
use super::transport;
use super::tree::Value;
use crate::{Program, Reply, Start, TcpSettings, Traffic, Transport, Workload};
use trunkline_core::{Size, Span};
use trunkline_measure::Estimator;

/// A `[[traffic]]`.
pub(super) fn traffic(table: &Reader<'_>, alike: &mut Alike) -> Result<Traffic, Wrong> {
    let kind = table.word("kind")?;
    foreign_keys(table, kind)?;
    let from_each = table.names("from_each")?;
    let from = sender(table, &from_each)?;
    let transport = transport::read(table, "transport", &spoken(kind))?;
    let reply_transport = transport::read(table, "reply_transport", &transport)?;
    agree(table, "transport", kind, [&transport, &transport])?;
    agree(table, "reply_transport", kind, [&reply_transport, &transport])?;
    Ok(Traffic {
        name: table.name("name")?,
        workload: workload(table, kind)?,
        from,
        to: table.name("to")?,
        via: table.names("via")?,
        count: table.whole("count")?,
        from_each,
        transport: alike.transports.share(transport),
        reply_transport: alike.transports.share(reply_transport),
        start: start(table)?,
        stagger: table.span("stagger")?,
        late: Span::ZERO,
        until: table.text("until")?,
        estimator: estimator(table)?,
        band: table.whole("band")?,
        program: program(table)?,
    })
}

/// The outside program, with its server only if there is a command.
fn program(table: &Reader<'_>) -> Result<Option<Program>, Wrong> {
    let server = table.text("server")?;
    match (table.text("command")?, server) {
        (Some(command), server) => Ok(Some(Program { command, server })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(table.found("server", "it serves a command: give that as well")),
    }
}

/// Keys that belong to other kinds of traffic.
fn foreign_keys(table: &Reader<'_>, kind: &str) -> Result<(), Wrong> {
    match table.foreign(kind) {
        None => Ok(()),
        Some(key) => Err(table.found(
            key,
            &format!(
                "traffic of kind {kind} has no such key; its own are {}",
                list(table.own(kind))
            ),
        )),
    }
}

/// The first sender: `from`, or the first of `from_each`.
fn sender(table: &Reader<'_>, from_each: &[String]) -> Result<String, Wrong> {
    match (table.text("from")?, from_each.first()) {
        (Some(from), None) => Ok(from),
        (None, Some(first)) => Ok(first.clone()),
        (None, None) => {
            Err(table.wrong("from", "found nothing: give a host, or hosts in from_each"))
        }
        (Some(_), Some(_)) => {
            Err(table.found("from", "from_each is given as well: leave one of them out"))
        }
    }
}

fn workload(table: &Reader<'_>, kind: &str) -> Result<Workload, Wrong> {
    Ok(match kind {
        "interactive" => Workload::Interactive {
            sizes: table.sizes("sizes")?,
            repeat: repeat(table)?,
            reply: reply(table)?,
            every: table.span("every")?,
        },
        "bulk" => Workload::Bulk {
            bytes: transfer(table)?,
            repeat: repeat(table)?,
            write: table.bytes("write")?,
            confirm: table.flag("confirm")?,
        },
        "timed-echo" => {
            Workload::TimedEcho { sizes: table.sizes("sizes")?, duration: duration(table)? }
        }
        "timed-transfer" => {
            Workload::TimedTransfer { sizes: table.sizes("sizes")?, duration: duration(table)? }
        }
        "push" => Workload::Push {
            bytes: Size::from_bytes(table.size("bytes")?),
            repeat: repeat(table)?,
            write: table.bytes("write")?,
            store: table.span("store")?,
        },
        "greedy" => Workload::Greedy {
            duration: duration(table)?,
            warm_up: table.span("warm_up")?,
            interval: table.span("interval")?,
            write: table.bytes("write")?,
        },
        _ => Workload::Paced {
            size: table.bytes("size")?,
            rate: table.rate("rate")?,
            duration: duration(table)?,
        },
    })
}

/// The bytes of a transfer. An empty file is pushed to time what surrounds a file; an empty transfer is nothing.
fn transfer(table: &Reader<'_>) -> Result<Size, Wrong> {
    match table.size("bytes")? {
        0 => Err(table.found("bytes", "a transfer has bytes: give 1 or more, or kind = \"push\"")),
        bytes => Ok(Size::from_bytes(bytes)),
    }
}

/// The number of repetitions; without end if another traffic's end decides and the file does not say.
fn repeat(table: &Reader<'_>) -> Result<u32, Wrong> {
    let endless = table.has("until") && !table.has("repeat");
    if endless { Ok(u32::MAX) } else { table.whole("repeat") }
}

/// For how long; without end in the same way.
fn duration(table: &Reader<'_>) -> Result<Span, Wrong> {
    let endless = table.has("until") && !table.has("duration");
    if endless { Ok(ENDLESS) } else { table.span("duration") }
}

/// Longer than any run.
const ENDLESS: Span = Span::from_secs(365 * 24 * 3600);

fn reply(table: &Reader<'_>) -> Result<Reply, Wrong> {
    let bytes = table.word_or("reply", size)?;
    Ok(bytes.and_then(|bytes| u32::try_from(bytes).ok()).map_or(Reply::Echo, Reply::Bytes))
}

/// The transport of a kind of traffic if the file does not say.
fn spoken(kind: &str) -> Transport {
    match kind {
        "paced" => Transport::Datagram,
        _ => Transport::Tcp(TcpSettings::default()),
    }
}

/// Paced traffic is datagrams; everything else has to wait for answers, which datagrams do not give. Both
/// ends speak the same protocol.
fn agree(
    table: &Reader<'_>,
    key: &str,
    kind: &str,
    [transport, other]: [&Transport; 2],
) -> Result<(), Wrong> {
    let given = if table.has(key) { key } else { "transport" };
    let datagrams = matches!(transport, Transport::Datagram | Transport::Udp);
    match (kind == "paced", datagrams) {
        (true, false) => Err(table.found(
            given,
            "paced traffic is datagrams: write \"datagram\" or \"udp\", or leave it out",
        )),
        (false, true) => Err(table.found(
            given,
            &format!(
                "{kind} traffic waits for answers, which datagrams have not: use another transport, or kind = \"paced\""
            ),
        )),
        _ if !transport.understands(other) => {
            Err(table.found(given, "both ends have to speak the same protocol"))
        }
        _ => Ok(()),
    }
}

fn start(table: &Reader<'_>) -> Result<Start, Wrong> {
    let at = table.optional_span("start")?;
    let Some(after) = table.text("start_after")? else {
        return Ok(Start::At(at.unwrap_or(Span::ZERO)));
    };
    if at.is_some() {
        return Err(table.found("start", "start_after is given as well: leave one of them out"));
    }
    let Some((name, bytes)) = after.split_once(':') else { return Ok(Start::AfterEnd(after)) };
    let bytes: Size = bytes.parse().map_err(|error: trunkline_core::ParseError| {
        let value = Value::Text(bytes.into());
        table.wrong("start_after", complaint(&value, &error.to_string()))
    })?;
    if bytes.bytes() == 0 {
        return Err(table.found("start_after", "give at least 1 byte, or start = \"0\""));
    }
    Ok(Start::AfterBytes(name.trim().into(), bytes))
}

/// The name of an estimator that there is.
fn estimator(table: &Reader<'_>) -> Result<Option<String>, Wrong> {
    let Some(name) = table.text("estimator")? else { return Ok(None) };
    match name.parse::<Estimator>() {
        Ok(_) => Ok(Some(name)),
        Err(error) => {
            let value = Value::Text(name.into());
            Err(table.wrong("estimator", complaint(&value, &error.to_string())))
        }
    }
}

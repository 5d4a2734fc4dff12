//! Traffic: what is sent by whom, how, and when.

use super::error::{Wrong, list};
use super::reader::{Reader, complaint, size};
use super::tree::Value;
use crate::{Reply, Start, Traffic, Transport, UrpSettings, Workload};
use trunkline_core::{Size, Span};
use trunkline_measure::Estimator;

/// A `[[traffic]]`.
pub(super) fn traffic(table: &Reader<'_>) -> Result<Traffic, Wrong> {
    let kind = table.word("kind")?;
    foreign_keys(table, kind)?;
    let from_each = table.names("from_each")?;
    let from = sender(table, &from_each)?;
    let transport = transport(table, "transport", &spoken(kind))?;
    let reply_transport = self::transport(table, "reply_transport", &transport)?;
    for (key, transport) in [("transport", &transport), ("reply_transport", &reply_transport)] {
        agree(table, key, kind, transport)?;
    }
    Ok(Traffic {
        name: table.name("name")?,
        workload: workload(table, kind)?,
        from,
        to: table.name("to")?,
        via: table.names("via")?,
        count: table.whole("count")?,
        from_each,
        transport,
        reply_transport,
        start: start(table)?,
        stagger: table.span("stagger")?,
        until: table.text("until")?,
        estimator: estimator(table)?,
    })
}

/// Keys that belong to other kinds of traffic.
fn foreign_keys(table: &Reader<'_>, kind: &str) -> Result<(), Wrong> {
    let own = || table.schema().keys().filter(|key| key.only.contains(&kind)).map(|key| key.name);
    let foreign = |key: &&crate::file::schema::Key| {
        !key.only.is_empty() && !key.only.contains(&kind) && table.has(key.name)
    };
    match table.schema().keys().find(foreign) {
        None => Ok(()),
        Some(key) => Err(table.found(
            key.name,
            &format!("traffic of kind {kind} has no such key; its own are {}", list(own())),
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
            bytes: Size::from_bytes(table.size("bytes")?),
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
        _ => Workload::Paced {
            size: table.bytes("size")?,
            rate: table.rate("rate")?,
            duration: duration(table)?,
        },
    })
}

/// How often; without end where another traffic's end decides and the file does not say.
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

/// What a kind of traffic speaks where the file does not say.
fn spoken(kind: &str) -> Transport {
    match kind {
        "paced" => Transport::Datagram,
        _ => Transport::Urp(UrpSettings::default()),
    }
}

/// The transport under `key`; what it leaves out is as in `default`.
fn transport(table: &Reader<'_>, key: &str, default: &Transport) -> Result<Transport, Wrong> {
    let inherited = match default {
        Transport::Urp(urp) => urp.clone(),
        Transport::Datagram => UrpSettings::default(),
    };
    let Some(inner) = table.table(key) else {
        return Ok(match table.has(key).then(|| table.word(key)).transpose()? {
            None => default.clone(),
            Some("datagram") => Transport::Datagram,
            Some(_) => Transport::Urp(inherited),
        });
    };
    let datagram = match inner.has("kind") {
        true => inner.word("kind")? == "datagram",
        false => false,
    };
    if !datagram {
        return urp(&inner, inherited).map(Transport::Urp);
    }
    match inner.schema().keys().find(|key| key.name != "kind" && inner.has(key.name)) {
        Some(key) => Err(inner.found(key.name, "datagrams have no such key; leave it out")),
        None => Ok(Transport::Datagram),
    }
}

/// Parameters of URP; what the table leaves out is as in `default`.
fn urp(table: &Reader<'_>, default: UrpSettings) -> Result<UrpSettings, Wrong> {
    let mut urp = default;
    if table.has("block") {
        urp.block = table.bytes("block")?;
    }
    if table.has("outstanding") {
        urp.outstanding = table.whole("outstanding")?;
    }
    if table.has("timeout") {
        urp.timeout = table.span("timeout")?;
    }
    if table.has("profile") {
        urp.profile = table.word("profile")?.into();
    }
    if table.has("packet") {
        urp.packet = table.whole("packet")?;
    }
    Ok(urp)
}

/// Paced traffic is datagrams; everything else has to wait for answers, which datagrams do not give.
fn agree(table: &Reader<'_>, key: &str, kind: &str, transport: &Transport) -> Result<(), Wrong> {
    let given = if table.has(key) { key } else { "transport" };
    match (kind, transport) {
        ("paced", Transport::Urp(_)) => {
            Err(table.found(given, "paced traffic is datagrams: write \"datagram\" or leave it out"))
        }
        ("paced", _) | (_, Transport::Urp(_)) => Ok(()),
        (_, Transport::Datagram) => Err(table.found(
            given,
            &format!("{kind} traffic waits for answers, which datagrams have not: use urp, or kind = \"paced\""),
        )),
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
            let value = Value::Text(name);
            Err(table.wrong("estimator", complaint(&value, &error.to_string())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tables, tree};
    use super::*;

    #[test]
    fn the_schemas_defaults_are_the_types_defaults() {
        let text = "kind = 'urp'\nblock = 256\noutstanding = 3\ntimeout = '1s'\npacket = 16\n";
        let schema = tables::TRANSPORT.table().unwrap();
        for key in schema.keys().filter(|key| key.name != "kind") {
            let crate::file::schema::Need::Default(default) = key.need else { panic!() };
            let written = text.contains(&format!("{} = {default}\n", key.name))
                || text.contains(&format!("{} = '{default}'\n", key.name))
                || key.name == "profile" && default == "trunkline";
            assert!(written, "{} {default}", key.name);
        }
        let tree = tree::parse(text).unwrap();
        let other = UrpSettings { block: 9, outstanding: 1, packet: 0, ..UrpSettings::default() };
        let read = urp(&Reader::new("t".into(), &tree, schema), other).unwrap();
        assert_eq!(read, UrpSettings::default());
    }
}

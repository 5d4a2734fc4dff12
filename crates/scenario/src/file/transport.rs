//! What an end speaks.

use super::error::{Wrong, list};
use super::listed;
use super::reader::Reader;
use crate::{TcpSettings, Transport, UrpSettings};
use trunkline_core::Size;
use trunkline_transport::protocol;
use trunkline_transport::urp::Mode;

/// The profiles of each protocol that has any.
const PROFILES: [(&str, &[&str]); 2] =
    [("urp", &["trunkline", "v10", "plan9", "kmc"]), ("tcp", &["trunkline", "linux", "bsd-reno"])];

/// The transport under `key`; what it leaves out is as in `default`.
pub(super) fn read(table: &Reader<'_>, key: &str, default: &Transport) -> Result<Transport, Wrong> {
    let Some(inner) = table.table(key) else {
        return Ok(match table.has(key).then(|| table.word(key)).transpose()? {
            None => default.clone(),
            Some(word) => plain(word, default),
        });
    };
    let kind = if inner.has("kind") { inner.word("kind")? } else { name(default) };
    if let Some(entry) = protocol::named(kind) {
        return listed::read(inner, entry, default);
    }
    if let Some(foreign) = inner.foreign(kind) {
        return Err(inner.found(foreign, &problem(&inner, kind, foreign)));
    }
    match plain(kind, default) {
        Transport::Urp(urp) => self::urp(&inner, urp).map(Transport::Urp),
        Transport::Tcp(tcp) => self::tcp(&inner, tcp).map(Transport::Tcp),
        datagrams => Ok(datagrams),
    }
}

/// Why `kind` does not take the key `foreign`, and what would.
fn problem(table: &Reader<'_>, kind: &str, foreign: &str) -> String {
    let own: Vec<&str> = table.own(kind).collect();
    if own.is_empty() {
        return format!("{} have no such key; leave it out", plural(kind));
    }
    let own = list(own);
    let others = PROFILES.iter().map(|(name, _)| *name);
    match others.filter(|_| !table.has("kind")).find(|it| table.own(it).any(|key| key == foreign)) {
        Some(other) => format!(
            "{kind}, the kind if none is given, has no such key; write kind = \"{other}\", or one of {own}"
        ),
        None => format!("{kind} has no such key; its own are {own}"),
    }
}

/// The transport called `kind`, with the parameters of `default` if that is one of its kind.
fn plain(kind: &str, default: &Transport) -> Transport {
    if let Some(entry) = protocol::named(kind) {
        return Transport::Listed(listed::plain(entry, default));
    }
    match (kind, default) {
        ("datagram", _) => Transport::Datagram,
        ("udp", _) => Transport::Udp,
        ("tcp", Transport::Tcp(tcp)) => Transport::Tcp(tcp.clone()),
        ("tcp", _) => Transport::Tcp(TcpSettings::default()),
        (_, Transport::Urp(urp)) => Transport::Urp(urp.clone()),
        _ => Transport::Urp(UrpSettings::default()),
    }
}

/// The protocol's name in a file.
fn name(transport: &Transport) -> &'static str {
    match transport {
        Transport::Tcp(_) => "tcp",
        Transport::Urp(_) => "urp",
        Transport::Udp => "udp",
        Transport::Datagram => "datagram",
        Transport::Listed(listed) => listed.entry.name,
    }
}

fn plural(kind: &str) -> String {
    if kind == "udp" { "UDP datagrams".into() } else { format!("{kind}s") }
}

/// Parameters of URP; what the table leaves out is as in `default`.
fn urp(table: &Reader<'_>, default: UrpSettings) -> Result<UrpSettings, Wrong> {
    let mut urp = default;
    if table.has("mode") {
        let word = table.word("mode")?;
        let named = Mode::NAMED.iter().find(|(name, _)| *name == word);
        urp.mode = named.map_or(urp.mode, |&(_, mode)| mode);
    }
    if table.has("block") {
        urp.block = table.bytes("block")?;
    }
    if table.has("outstanding") {
        urp.outstanding = table.whole("outstanding")?;
    }
    if table.has("timeout") {
        urp.timeout = table.span("timeout")?;
    }
    if let Some(profile) = profile(table, "urp")? {
        urp.profile = profile;
    }
    if table.has("packet") {
        urp.packet = table.whole("packet")?;
    }
    Ok(urp)
}

/// Parameters of TCP; what the table leaves out is as in `default`.
fn tcp(table: &Reader<'_>, default: TcpSettings) -> Result<TcpSettings, Wrong> {
    let mut tcp = default;
    if let Some(profile) = profile(table, "tcp")? {
        tcp.profile = profile;
    }
    if table.has("congestion") {
        tcp.congestion = Some(table.word("congestion")?.into());
    }
    if table.has("mss") {
        tcp.mss = Some(table.bytes("mss")?);
    }
    if table.has("window") {
        tcp.window = Some(Size::from_bytes(table.size("window")?));
    }
    if table.has("initial_window") {
        tcp.initial_window = Some(table.whole("initial_window")?);
    }
    for (key, flag) in [
        ("sack", &mut tcp.sack),
        ("timestamps", &mut tcp.timestamps),
        ("window_scaling", &mut tcp.window_scaling),
        ("ecn", &mut tcp.ecn),
    ] {
        if table.has(key) {
            *flag = Some(table.flag(key)?);
        }
    }
    tcp.delayed_ack = table.optional_span("delayed_ack")?.or(tcp.delayed_ack);
    tcp.min_rto = table.optional_span("min_rto")?.or(tcp.min_rto);
    Ok(tcp)
}

/// The profile, one that the protocol has.
fn profile(table: &Reader<'_>, kind: &str) -> Result<Option<String>, Wrong> {
    if !table.has("profile") {
        return Ok(None);
    }
    let profile = table.word("profile")?;
    let known = PROFILES.iter().find(|(name, _)| *name == kind).map_or(&[][..], |it| it.1);
    match known.contains(&profile) {
        true => Ok(Some(profile.into())),
        false => {
            let known = list(known.iter().copied());
            Err(table.found("profile", &format!("{kind} has the profiles {known}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tables};
    use super::*;

    #[test]
    fn the_schemas_defaults_are_the_types_defaults() {
        let text = "kind = 'urp'\nmode = 'block'\nblock = 256\noutstanding = 3\ntimeout = '1s'\npacket = 16\n";
        let schema = tables::TRANSPORT.table().unwrap();
        for key in schema.keys().filter(|key| key.only == ["urp"]) {
            let crate::file::schema::Need::Default(default) = key.need else { panic!() };
            let written = text.contains(&format!("{} = {default}\n", key.name))
                || text.contains(&format!("{} = '{default}'\n", key.name));
            assert!(written, "{} {default}", key.name);
        }
        let tree = parse::parse(text).unwrap();
        let other = UrpSettings {
            mode: Mode::Raw,
            block: 9,
            outstanding: 1,
            packet: 0,
            ..UrpSettings::default()
        };
        let read = super::urp(&Reader::new("t".into(), &tree, schema), other).unwrap();
        assert_eq!(read, UrpSettings::default());
    }
}

//! Clusters: the keys of message layers and of tests as tables of the file, and reading all of it.

use super::error::{Wrong, list};
use super::hosts::{Named, chosen};
use super::listed::{described, given};
use super::media;
use super::reader::Reader;
use super::schema::Table;
use crate::{Cluster, Files, MessageProtocol, NodeCosts};
use std::sync::LazyLock;
use trunkline_cluster::{TESTS, Test};
use trunkline_transport::cstar::{CarefulSettings, Cluster as Layout, TraditionalSettings};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// The names of all tests.
pub(super) const TEST_NAMES: &[&str] = &{
    let mut names = [""; TESTS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = TESTS[index].name;
        index += 1;
    }
    names
};

/// The table of each test. Made once for the life of the process, as those below.
pub(super) fn tests() -> &'static [Table] {
    static TABLES: LazyLock<Vec<Table>> =
        LazyLock::new(|| TESTS.iter().map(|test| table(test.name, test.help, test.keys)).collect());
    &TABLES
}

/// The table of each message layer.
pub(super) fn protocols() -> &'static [Table] {
    static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
        vec![
            table(
                "traditional",
                "Keeps what it sends until acknowledged.",
                TraditionalSettings::KEYS,
            ),
            table(
                "careful",
                "Loses nothing itself, on a network that does not.",
                CarefulSettings::KEYS,
            ),
        ]
    });
    &TABLES
}

fn table(name: &'static str, help: &'static str, keys: &'static [ProtocolKey]) -> Table {
    let only: &'static [&'static str] = Box::leak(Box::new([name]));
    let keys: Vec<_> = keys.iter().map(|key| described(key, only)).collect();
    Table { title: name, help, groups: Box::leak(Box::new([&*keys.leak()])), kinds: None }
}

/// A `[[cluster]]`. `files` gives those that it names.
pub(super) fn cluster(
    table: &Reader<'_>,
    costs: &Named<NodeCosts>,
    files: &dyn Files,
) -> Result<Cluster, Wrong> {
    let medium = media::spec(table, files)?;
    let layout = Layout {
        nodes: table.whole("nodes")?,
        receive_buffers: table.whole("buffers")?,
        send_buffers: table.whole("send_buffers")?,
        frame: table.bytes("frame")?,
    };
    let most = medium.access.most_stations();
    if usize::from(layout.nodes) > most {
        let kind = medium.access.kind();
        return Err(table.found("nodes", &format!("a medium of kind {kind} joins at most {most}")));
    }
    let nodes = usize::from(layout.nodes);
    medium.check_stations(nodes).map_err(|error| media::blame(table, &error))?;
    let cluster = Cluster {
        name: table.name("name")?,
        medium,
        layout,
        overhead: table.bytes("overhead")?,
        loss: table.share("loss")?,
        protocol: protocol(table)?,
        test: test(table)?,
        costs: chosen(table, "costs", costs)?.unwrap_or_default(),
        record: table.whole("record")?,
    };
    cluster.check().map_err(|(key, problem)| table.found(key, &problem))?;
    Ok(cluster)
}

/// The kind under `key`, which is a word or a table, and the values of its keys.
fn kind_and_values(
    table: &Reader<'_>,
    key: &'static str,
    keys: impl Fn(&str) -> &'static [ProtocolKey],
    tables: fn() -> &'static [Table],
) -> Result<(&'static str, Values), Wrong> {
    let Some(inner) = table.table(key) else {
        let kind = table.word(key)?;
        return Ok((kind, Values::defaults(keys(kind))));
    };
    let kind = inner.word("kind")?;
    if let Some(foreign) = inner.foreign(kind) {
        let own: Vec<&str> = inner.own(kind).collect();
        let problem = format!("{kind} has no such key; its own are {}", list(own.into_iter()));
        return Err(inner.found(foreign, &problem));
    }
    let mut values = Values::defaults(keys(kind));
    if let Some(schema) = tables().iter().find(|table| table.title == kind) {
        given(&inner.read_as(schema), keys(kind), &mut values)?;
    }
    Ok((kind, values))
}

fn protocol(table: &Reader<'_>) -> Result<MessageProtocol, Wrong> {
    let (kind, values) = kind_and_values(table, "protocol", MessageProtocol::keys, protocols)?;
    MessageProtocol::of(kind, &values).map_err(|problem| table.wrong("protocol", problem))
}

fn test(table: &Reader<'_>) -> Result<Test, Wrong> {
    let named = |kind: &str| TESTS.iter().find(|test| test.name == kind);
    let keys = |kind: &str| named(kind).map_or(&[][..], |test| test.keys);
    let (kind, values) = kind_and_values(table, "test", keys, tests)?;
    Test::of(kind, &values).map_err(|problem| table.wrong("test", problem))
}

/// A `[costs.NAME]`.
pub(super) fn costs(table: &Reader<'_>) -> Result<NodeCosts, Wrong> {
    Ok(NodeCosts {
        cycle: table.span("cycle")?,
        send: table.span("send")?,
        interrupt: table.span("interrupt")?,
        receive: table.span("receive")?,
        clean_up: table.span("clean_up")?,
        copy_out: table.span("copy_out")?,
        copy: table.span("copy")?,
        write: table.span("write")?,
        read: table.span("read")?,
        point: table.span("point")?,
        sweep: table.span("sweep")?,
        add: table.span("add")?,
    })
}

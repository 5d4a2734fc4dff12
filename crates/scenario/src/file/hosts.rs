//! Hosts with their processors and interfaces, and nodes.

use super::Alike;
use super::error::Wrong;
use super::reader::{Reader, parsed, whole};
use crate::{Disturbance, Echo, Host, Interface, Node, Processor, ProtocolPlace, Returns, Split};
use trunkline_core::{Rate, Size};

/// A definition that hosts refer to by its name.
pub(super) type Named<T> = Vec<(String, T)>;

/// A `[processor.NAME]`.
pub(super) fn processor(table: &Reader<'_>) -> Result<Processor, Wrong> {
    let disturbance = table.table("disturbance").map(|table| disturbance(&table)).transpose()?;
    if let (None, true) = (disturbance, table.has("disturbance")) {
        return Err(table.found("disturbance", "give { probability = \"5%\", mean = \"2ms\" }"));
    }
    Ok(Processor {
        write: table.cost("write")?,
        read: table.cost("read")?,
        request: table.cost("request")?,
        interrupt: table.cost("interrupt")?,
        send_block: table.cost("send_block")?,
        receive_block: table.cost("receive_block")?,
        control: table.span("control")?,
        timer: table.span("timer")?,
        disturbance,
        unsteady: trunkline_core::Span::ZERO,
    })
}

fn disturbance(table: &Reader<'_>) -> Result<Disturbance, Wrong> {
    let probability = table.share("probability")?.as_f64();
    Ok(Disturbance { probability, mean: table.span("mean")? })
}

/// An `[interface.NAME]`.
pub(super) fn interface(name: &str, table: &Reader<'_>) -> Result<Interface, Wrong> {
    Ok(Interface {
        name: name.into(),
        protocol: match table.word("protocol")? {
            "board" => ProtocolPlace::Board,
            _ => ProtocolPlace::Host,
        },
        split: split(table)?,
        requests: table.word_or("requests", whole)?.and_then(|number| u32::try_from(number).ok()),
        send_block: table.cost("send_block")?,
        receive_block: table.cost("receive_block")?,
        control: table.span("control")?,
        half_duplex: table.flag("half_duplex")?,
        deaf: table.optional_span("deaf")?,
        programmed: table.optional_span("programmed")?,
        memory: table.optional_size("memory")?.map(Size::from_bytes),
        receive_buffer: table
            .has("receive_buffer")
            .then(|| table.bytes("receive_buffer"))
            .transpose()?,
        returns: match table.word("returns")? {
            "message" => Returns::Message,
            _ => Returns::Block,
        },
        echo: match table.word("echo")? {
            "posted" => Echo::Posted,
            "consumption" => Echo::Consumption,
            _ => Echo::Arrival,
        },
    })
}

/// The rules by which a write is cut: each holds for longer writes than the one before, the last for all.
fn split(table: &Reader<'_>) -> Result<Vec<Split>, Wrong> {
    let rule = |rule: &Reader<'_>| -> Result<Split, Wrong> {
        let below = rule.has("below").then(|| rule.bytes("below")).transpose()?;
        Ok(Split { below, piece: rule.bytes("piece")? })
    };
    let readers = table.tables("split");
    let rules: Vec<Split> = readers.iter().map(rule).collect::<Result<_, _>>()?;
    for (index, pair) in rules.windows(2).enumerate() {
        let Split { below: Some(below), .. } = pair[0] else {
            return Err(readers[index + 1].wrong("piece", AFTER_ALL));
        };
        if pair[1].below.is_some_and(|next| next <= below) {
            let problem = format!("the rule before holds up to {below}: give more");
            return Err(readers[index + 1].found("below", &problem));
        }
    }
    Ok(rules)
}

const AFTER_ALL: &str =
    "found a rule behind one without 'below', which holds for all: give that one a 'below'";

/// A `[[host]]`.
pub(super) fn host(
    table: &Reader<'_>,
    processors: &Named<Processor>,
    interfaces: &Named<Interface>,
    alike: &mut Alike,
) -> Result<Host, Wrong> {
    Ok(Host {
        name: table.name("name")?,
        processor: alike
            .processors
            .share(chosen(table, "processor", processors)?.unwrap_or_default()),
        interface: alike
            .interfaces
            .share(chosen(table, "interface", interfaces)?.unwrap_or_default()),
    })
}

/// What costs nothing and has no limit, unless the file defines something else under this name.
const IDEAL: &str = "ideal";

/// The definition that `key` names; `None` if it is left out or ideal.
pub(super) fn chosen<T: Clone>(
    table: &Reader<'_>,
    key: &str,
    known: &Named<T>,
) -> Result<Option<T>, Wrong> {
    let Some(name) = table.text(key)? else { return Ok(None) };
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, found)) => Ok(Some(found.clone())),
        None if name == IDEAL => Ok(None),
        None => {
            let names = known.iter().map(|(name, _)| name.as_str()).chain([IDEAL]);
            Err(table.unknown(key, &name, &format!("[{key}.NAME]"), names))
        }
    }
}

/// A `[[node]]`.
pub(super) fn node(table: &Reader<'_>) -> Result<Node, Wrong> {
    let backplane: Option<Rate> = table.word_or("backplane", parsed)?;
    Ok(Node { name: table.name("name")?, backplane })
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tables};
    use super::*;

    #[test]
    fn the_schemas_defaults_are_the_types_defaults() {
        let empty = parse::parse("").unwrap();
        let reader = |schema| Reader::new("test".into(), &empty, schema);
        assert_eq!(interface("ideal", &reader(&tables::INTERFACE)).unwrap(), Interface::default());
        assert_eq!(processor(&reader(&tables::PROCESSOR)).unwrap(), Processor::default());
    }
}

//! What holds across elements: names, connections, ways, and the order of starts and ends.

use super::Elements;
use super::error::Wrong;
use super::media;
use super::reader::Reader;
use crate::network::Ways;
use crate::{RouteError, Scenario, Start, Traffic, Transport, UDP_HEADER, Workload};
use std::collections::{BTreeMap, HashMap, HashSet};
use trunkline_transport::tcp::{IP_HEADER, LEAST_MSS, TCP_HEADER};

/// Most user bytes of a UDP datagram over IPv4: 65535 less the headers (RFC 768, RFC 791).
const MOST_UDP: u32 = 65_535 - UDP_HEADER;
/// Bytes of the IPv4 and the TCP header without options (RFC 791, RFC 9293); options are part of the mss.
const TCP_HEADERS: u32 = IP_HEADER + TCP_HEADER;
/// Longest name.
const LONGEST_NAME: usize = 64;

/// Every element has a name of its own, made of letters, digits, `-`, `_` and `.`.
pub(super) fn names(elements: &Elements<'_>) -> Result<(), Wrong> {
    let joins = elements.links.len() + elements.media.len();
    let alone = !elements.clusters.is_empty() && elements.hosts.is_empty() && joins == 0;
    for (key, count, write) in [
        ("host", elements.hosts.len(), "[[host]]"),
        ("link", joins, "[[link]] or a [[medium]]"),
        ("traffic", elements.traffic.len(), "[[traffic]]"),
    ] {
        if count == 0 && !(alone && elements.traffic.is_empty()) {
            return Err(elements.file.wrong(key, format!("found nothing: write a {write}")));
        }
    }
    unique(elements.hosts.iter().chain(&elements.nodes).chain(&elements.media))?;
    unique(elements.traffic.iter().chain(&elements.clusters))?;
    for name in elements.links.iter().filter(|link| link.has("name")) {
        well_formed(name)?;
    }
    Ok(())
}

fn unique<'e, 'a: 'e>(elements: impl Iterator<Item = &'e Reader<'a>>) -> Result<(), Wrong> {
    let mut seen = BTreeMap::new();
    for element in elements {
        let name = well_formed(element)?;
        if let Some(kind) = seen.insert(name, element.path.clone()) {
            return Err(
                element.found("name", &format!("{kind} has this name already: give another"))
            );
        }
    }
    Ok(())
}

fn well_formed(element: &Reader<'_>) -> Result<String, Wrong> {
    let name = element.name("name")?;
    let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(good) {
        let allowed = format!("give 1 to {LONGEST_NAME} letters, digits, '-', '_' or '.'");
        return Err(element.found("name", &allowed));
    }
    Ok(name)
}

/// Checks a scenario whose elements are right by themselves.
pub(super) fn check(scenario: &Scenario, elements: &Elements<'_>) -> Result<(), Wrong> {
    let names = Names::of(scenario);
    links(scenario, &names, elements)?;
    media(scenario, &names, elements)?;
    connected(scenario, elements)?;
    let known = Ways::new(scenario);
    for (traffic, table) in scenario.traffic.iter().zip(&elements.traffic) {
        ends(scenario, &names, traffic, table)?;
        ways(&known, traffic, table)?;
        whole_datagrams(scenario, traffic, table)?;
        segments_fit(scenario, traffic, table)?;
        references(scenario, &names, traffic, table)?;
    }
    no_cycle(scenario, &names, elements)
}

/// The names that others refer to; of traffic with its place.
struct Names<'a> {
    hosts: HashSet<&'a str>,
    nodes: HashSet<&'a str>,
    traffic: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(scenario: &'a Scenario) -> Names<'a> {
        let traffic = scenario.traffic.iter().map(|it| it.name.as_str());
        Names {
            hosts: scenario.hosts.iter().map(|it| it.name.as_str()).collect(),
            nodes: scenario.nodes.iter().map(|it| it.name.as_str()).collect(),
            traffic: std::iter::zip(traffic, 0..).collect(),
        }
    }
}

/// Links have names of their own and join two stations that exist.
fn links(scenario: &Scenario, names: &Names<'_>, elements: &Elements<'_>) -> Result<(), Wrong> {
    let mut seen = HashSet::new();
    for (link, table) in scenario.links.iter().zip(&elements.links) {
        for end in [&link.from, &link.to] {
            station(scenario, names, ("between", end), table)?;
        }
        if link.from == link.to {
            return Err(table.found("between", "a link joins two different stations"));
        }
        if !seen.insert(link.name.as_str()) {
            let problem = format!("'{}' is the name of two links: give each a name", link.name);
            return Err(match table.has("name") {
                true => table.found("name", "another link has this name already: give another"),
                false => table.wrong("name", format!("found nothing: {problem}")),
            });
        }
    }
    Ok(())
}

/// What a link or a medium joins exists.
fn station(
    scenario: &Scenario,
    names: &Names<'_>,
    (key, name): (&str, &str),
    table: &Reader<'_>,
) -> Result<(), Wrong> {
    if names.hosts.contains(name) || names.nodes.contains(name) {
        return Ok(());
    }
    let hosts = scenario.hosts.iter().map(|it| it.name.as_str());
    let known = hosts.chain(scenario.nodes.iter().map(|it| it.name.as_str()));
    Err(table.unknown(key, name, "host or node", known))
}

/// Media join two or more stations that exist, each once, and have no link's name.
fn media(scenario: &Scenario, names: &Names<'_>, elements: &Elements<'_>) -> Result<(), Wrong> {
    let links: HashSet<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    for (medium, table) in scenario.media.iter().zip(&elements.media) {
        let mut seen = HashSet::new();
        for name in &medium.stations {
            station(scenario, names, ("stations", name), table)?;
            if !seen.insert(name.as_str()) {
                return Err(
                    table.wrong("stations", format!("found \"{name}\" twice: leave one out"))
                );
            }
        }
        let most = medium.spec.access.most_stations();
        if !(2..=most).contains(&medium.stations.len()) {
            let count = medium.stations.len();
            let problem = format!("found {count} of them: give 2 to {most} hosts or nodes");
            return Err(table.wrong("stations", problem));
        }
        let spec = &medium.spec;
        spec.check_stations(medium.stations.len()).map_err(|error| media::blame(table, &error))?;
        if links.contains(medium.name.as_str()) {
            return Err(table.found("name", "a link has this name already: give another"));
        }
    }
    Ok(())
}

/// Every host and node has a link or is on a medium.
fn connected(scenario: &Scenario, elements: &Elements<'_>) -> Result<(), Wrong> {
    let ends = scenario.links.iter().flat_map(|link| [link.from.as_str(), link.to.as_str()]);
    let on_media = scenario.media.iter().flat_map(|medium| &medium.stations);
    let linked: HashSet<&str> = ends.chain(on_media.map(String::as_str)).collect();
    let stations = elements.hosts.iter().chain(&elements.nodes);
    for table in stations {
        let name = table.name("name")?;
        if !linked.contains(name.as_str()) {
            let problem = "no link or medium has it: add a [[link]] with it in 'between', or name it in a medium's 'stations'";
            return Err(table.found("name", problem));
        }
    }
    Ok(())
}

/// Senders and peers are hosts; the way goes over nodes.
fn ends(
    scenario: &Scenario,
    known: &Names<'_>,
    traffic: &Traffic,
    table: &Reader<'_>,
) -> Result<(), Wrong> {
    let hosts = || scenario.hosts.iter().map(|host| host.name.as_str());
    let nodes = || scenario.nodes.iter().map(|node| node.name.as_str());
    let sender = if traffic.from_each.is_empty() { "from" } else { "from_each" };
    let senders = traffic.from_each.iter().chain([&traffic.from]).map(|name| (sender, name));
    for (key, name) in senders.chain([("to", &traffic.to)]) {
        if known.nodes.contains(name.as_str()) {
            return Err(table.found(key, &format!("'{name}' is a node; traffic is between hosts")));
        }
        if !known.hosts.contains(name.as_str()) {
            return Err(table.unknown(key, name, "host", hosts()));
        }
    }
    match traffic.via.iter().find(|name| !known.nodes.contains(name.as_str())) {
        Some(name) => Err(table.unknown("via", name, "node", nodes())),
        None => Ok(()),
    }
}

/// Every flow has a way.
fn ways(known: &Ways<'_>, traffic: &Traffic, table: &Reader<'_>) -> Result<(), Wrong> {
    let sources = traffic.from_each.len().max(1) as u32;
    for flow in 0..sources {
        known.route(traffic, flow).map_err(|error| match error {
            RouteError::NotJoined { .. } => table.found("via", &error.to_string()),
            RouteError::NoDistance { .. } | RouteError::NoWay { .. } => {
                table.found("to", &error.to_string())
            }
        })?;
    }
    Ok(())
}

/// A UDP datagram fits one packet. A larger one would travel in fragments, of which each lost one loses the datagram
/// (RFC 791 §3.2); nothing here cuts packets, so it is refused.
fn whole_datagrams(
    scenario: &Scenario,
    traffic: &Traffic,
    table: &Reader<'_>,
) -> Result<(), Wrong> {
    let (Transport::Udp, Workload::Paced { size, .. }) = (&*traffic.transport, &traffic.workload)
    else {
        return Ok(());
    };
    let most = scenario.mtu.saturating_sub(UDP_HEADER);
    if *size > MOST_UDP {
        let problem = format!("UDP carries at most {MOST_UDP} bytes: give less, or \"datagram\"");
        return Err(table.found("size", &problem));
    }
    match *size <= most {
        true => Ok(()),
        false => Err(table.found(
            "size",
            &format!(
                "with UDP's {UDP_HEADER} bytes of headers it exceeds the MTU of {} and would travel in fragments, which no engine makes: give at most {most}, or a larger mtu",
                scenario.mtu
            ),
        )),
    }
}

/// A TCP segment fits one packet: a kernel's never exceed the MTU, and a simulated or predicted one that did would be
/// faster than any real one.
fn segments_fit(scenario: &Scenario, traffic: &Traffic, table: &Reader<'_>) -> Result<(), Wrong> {
    let most = scenario.mtu.saturating_sub(TCP_HEADERS);
    let ends = [("transport", &traffic.transport), ("reply_transport", &traffic.reply_transport)];
    for (key, transport) in ends {
        let Transport::Tcp(settings) = &**transport else { continue };
        if most < LEAST_MSS {
            let least = LEAST_MSS + TCP_HEADERS;
            let problem = format!(
                "TCP's smallest segment with its headers takes {least} bytes, more than the MTU of {}: give mtu = {least} or more, or another transport",
                scenario.mtu
            );
            return Err(table.found(key, &problem));
        }
        if let Some(mss) = settings.mss.filter(|mss| *mss > most) {
            let problem = format!(
                "a segment of mss = {mss} bytes with {TCP_HEADERS} of headers exceeds the MTU of {}: give mss = {most} or less, or a larger mtu",
                scenario.mtu
            );
            return Err(table.found(key, &problem));
        }
    }
    Ok(())
}

/// The traffic to which a start or an end refers exists, and gets as far as is waited for.
fn references(
    scenario: &Scenario,
    names: &Names<'_>,
    traffic: &Traffic,
    table: &Reader<'_>,
) -> Result<(), Wrong> {
    for (key, name) in [("start_after", after(traffic)), ("until", traffic.until.as_deref())] {
        let Some(name) = name else { continue };
        let others =
            || scenario.traffic.iter().map(|it| it.name.as_str()).filter(|it| *it != traffic.name);
        if name == traffic.name {
            return Err(table.found(key, "a traffic cannot wait for itself: name another"));
        }
        if !names.traffic.contains_key(name) {
            return Err(table.unknown(key, name, "other traffic", others()));
        }
    }
    reached(scenario, names, traffic, table)
}

/// The traffic whose progress another's start waits for.
fn after(traffic: &Traffic) -> Option<&str> {
    match &traffic.start {
        Start::At(_) => None,
        Start::AfterBytes(name, _) | Start::AfterEnd(name) => Some(name),
    }
}

/// Each flow of the other traffic delivers the bytes that a start waits for.
fn reached(
    scenario: &Scenario,
    names: &Names<'_>,
    traffic: &Traffic,
    table: &Reader<'_>,
) -> Result<(), Wrong> {
    let Start::AfterBytes(name, bytes) = &traffic.start else { return Ok(()) };
    let other = names.traffic.get(name.as_str()).map(|&index| &scenario.traffic[index]);
    let Some(most) = other.and_then(|other| other.workload.most_bytes()) else { return Ok(()) };
    if bytes.bytes() <= most {
        return Ok(());
    }
    Err(table.found(
        "start_after",
        &format!("each flow of {name} sends {most} bytes in all: wait for less"),
    ))
}

/// No start or end waits for itself. A traffic's end waits for its start and for the end that it goes
/// on until; a start waits for the start or the end of another.
fn no_cycle(scenario: &Scenario, names: &Names<'_>, elements: &Elements<'_>) -> Result<(), Wrong> {
    let index = |name: &str| names.traffic.get(name).copied();
    let (start, end) = (|traffic: usize| 2 * traffic, |traffic: usize| 2 * traffic + 1);
    let mut waits = vec![Vec::new(); 2 * scenario.traffic.len()];
    for (this, traffic) in scenario.traffic.iter().enumerate() {
        waits[end(this)].push(start(this));
        waits[end(this)].extend(traffic.until.as_deref().and_then(index).map(end));
        waits[start(this)].extend(match &traffic.start {
            Start::At(_) => None,
            Start::AfterBytes(name, _) => index(name).map(start),
            Start::AfterEnd(name) => index(name).map(end),
        });
    }
    match in_cycle(&waits) {
        None => Ok(()),
        Some(event) => {
            let table = &elements.traffic[event / 2];
            let key = if table.has("start_after") { "start_after" } else { "until" };
            Err(table.found(
                key,
                "the two would wait for each other for ever: let one of them start at a time",
            ))
        }
    }
}

/// An event that waits for itself in the end.
fn in_cycle(waits: &[Vec<usize>]) -> Option<usize> {
    // What waits for nothing that is unsettled is settled; what is left at last waits for itself.
    let mut waiters = vec![Vec::new(); waits.len()];
    let mut open: Vec<usize> = waits.iter().map(Vec::len).collect();
    for (event, others) in waits.iter().enumerate() {
        others.iter().for_each(|&other| waiters[other].push(event));
    }
    let mut settled = vec![false; waits.len()];
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&event| open[event] == 0).collect();
    while let Some(event) = ready.pop() {
        settled[event] = true;
        for &waiter in &waiters[event] {
            open[waiter] -= 1;
            ready.extend((open[waiter] == 0).then_some(waiter));
        }
    }
    first_of_cycle(waits, &settled)
}

/// Follows the waiting from the first unsettled event until one comes again.
fn first_of_cycle(waits: &[Vec<usize>], settled: &[bool]) -> Option<usize> {
    let mut event = settled.iter().position(|settled| !settled)?;
    let mut seen = Vec::new();
    while !seen.contains(&event) {
        seen.push(event);
        event = *waits[event].iter().find(|&&it| !settled[it])?;
    }
    Some(event)
}

//! Keys that do less than what they say, or nothing, or that make a run take practically for ever.

use crate::network::{Over, Ways};
use crate::{Host, ProtocolPlace, Scenario, Traffic, Transport, UDP_HEADER, Workload};
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_core::Span;
use trunkline_path::{DisciplineSpec, LinkSpec, MediumSpec, Schedule};
use trunkline_transport::cstar::Frame;
use trunkline_transport::tcp::{IP_HEADER, TCP_HEADER};

/// Bytes of a trailer of URP (Hawley 1989 §1.1): a block takes so much more than its data.
const TRAILER: u32 = 4;
/// The largest window of TCP without window scaling (RFC 9293 §3.1).
const UNSCALED: u64 = 65_535;
/// More intervals than this take a simulator many seconds.
const MOST_INTERVALS: u64 = 10_000_000;
/// The band of a traffic that names none.
const LAST_BAND: u8 = 7;

/// What of a scenario something is said of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// All of it.
    Whole,
    /// The traffic of this name.
    Traffic(String),
    /// The host of this name.
    Host(String),
    /// The link of this name, or one direction of it, as in `a>b`.
    Link(String),
    /// The medium of this name.
    Medium(String),
    /// The cluster of this name.
    Cluster(String),
    /// An axis of its grid.
    Axis(String),
}

impl About {
    /// The name, unless it is of all.
    pub fn name(&self) -> Option<&str> {
        match self {
            About::Whole => None,
            About::Traffic(name)
            | About::Host(name)
            | About::Link(name)
            | About::Medium(name)
            | About::Cluster(name)
            | About::Axis(name) => Some(name),
        }
    }
}

/// A key that another one caps, that changes nothing, or that makes a run long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Remark {
    /// The table in which the key stands.
    pub about: About,
    /// The key in its table, its value, what it comes to, and the remedy.
    pub text: String,
}

/// A line that begins with the key's place in the file.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.at_key(&self.text, f)
    }
}

impl About {
    /// Writes a text that begins with a key of the table, behind the table's place in the file; one of an axis goes on
    /// after the axis.
    pub fn at_key(&self, text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Whole => f.write_str(text),
            About::Traffic(name) => write!(f, "traffic.{name}.{text}"),
            About::Host(name) => write!(f, "host.{name}.{text}"),
            About::Link(name) => write!(f, "link.{name}.{text}"),
            About::Medium(name) => write!(f, "medium.{name}.{text}"),
            About::Cluster(name) => write!(f, "cluster.{name}.{text}"),
            About::Axis(name) => write!(f, "{name} {text}"),
        }
    }
}

impl Scenario {
    /// What is to be said of each key that another one caps, or that changes nothing or makes a run long in this cell.
    pub fn remarks(&self) -> Vec<Remark> {
        let known = Ways::new(self);
        let traffic = self.traffic.iter().flat_map(|traffic| self.of_traffic(traffic, &known));
        let links = self.links.iter().flat_map(|wire| {
            let directions = if wire.forward == wire.backward {
                vec![("", &*wire.forward)]
            } else {
                vec![("forward.", &*wire.forward), ("backward.", &*wire.backward)]
            };
            directions.into_iter().filter_map(move |(way, link)| {
                let about = || About::Link(wire.name.clone());
                idle(&wire.name, way, link)
                    .or_else(|| idle_bucket(about(), way, link, self.mtu))
                    .or_else(|| idle_key(about(), way, &link.discipline))
            })
        });
        let media = self.media.iter().flat_map(|it| {
            of_medium(About::Medium(it.name.clone()), &it.spec, u64::from(self.mtu))
        });
        let clusters = self.clusters.iter().flat_map(|it| {
            let largest = it.layout.frame + it.overhead + Frame::HEADER;
            of_medium(About::Cluster(it.name.clone()), &it.medium, u64::from(largest))
        });
        let hosts = self.hosts.iter().filter_map(unpaid);
        traffic.chain(links).chain(media).chain(clusters).chain(hosts).collect()
    }

    fn of_traffic(&self, traffic: &Traffic, known: &Ways<'_>) -> Vec<Remark> {
        let about = About::Traffic(traffic.name.clone());
        let told = |text: Option<String>| text.map(|text| Remark { about: about.clone(), text });
        let own = [
            self.block(traffic, known),
            packet(&traffic.transport),
            window(&traffic.transport, self.mtu),
            marks(&traffic.transport),
            senders(traffic),
            stagger(traffic),
            intervals(traffic),
            self.crowded(traffic),
            self.hasty(traffic, known),
            self.band(traffic, known),
            self.stopped(traffic, known),
        ];
        own.into_iter().filter_map(told).collect()
    }

    /// A token bucket never holds the tokens of a packet that is larger than it.
    fn stopped(&self, traffic: &Traffic, known: &Ways<'_>) -> Option<String> {
        let size = full_packet(traffic, self.mtu)?;
        let hops = known.route(traffic, 0).ok()?.there;
        hops.into_iter().find_map(|hop| {
            let (name, discipline) = match hop.over {
                Over::Link { link, reversed } => {
                    let wire = &self.links[link];
                    let spec = if reversed { &wire.backward } else { &wire.forward };
                    (&wire.name, &spec.discipline)
                }
                Over::Medium { medium, .. } => {
                    (&self.media[medium].name, &self.media[medium].spec.discipline)
                }
            };
            let largest = discipline.assumptions().largest.filter(|&largest| largest < size)?;
            Some(format!(
                "transport: no packet of {size} bytes passes the discipline of {name}, whose buckets hold {largest}: give a larger burst (and mtu, if there is a peak)"
            ))
        })
    }

    /// A block of URP holds bytes of one request, and a request bytes of one system write.
    fn block(&self, traffic: &Traffic, known: &Ways<'_>) -> Option<String> {
        let Transport::Urp(urp) = &*traffic.transport else { return None };
        if !urp.mode.has_trailers() {
            return None;
        }
        let write = match traffic.workload {
            Workload::Bulk { write, .. }
            | Workload::Push { write, .. }
            | Workload::Greedy { write, .. } => write,
            _ => return None,
        };
        let host = &self.hosts[known.host(&traffic.from)?];
        let rule =
            host.interface.split.iter().find(|rule| rule.below.is_none_or(|below| write < below));
        let piece = rule.map_or(write, |rule| rule.piece.min(write));
        let block = u32::from(urp.block);
        (block > piece).then(|| {
            let (what, remedy) = match piece == write {
                true => {
                    ("a system write", format!("give write = {block} or more, or block = {write}"))
                }
                false => {
                    let board = &host.interface.name;
                    (
                        "a request",
                        format!("interface.{board}.split cuts writes so; give block = {piece}"),
                    )
                }
            };
            format!("transport.block = {block} is capped to {piece}, the bytes of {what}: {remedy}")
        })
    }

    /// Each interval is an event of the simulator, and a sample.
    fn crowded(&self, traffic: &Traffic) -> Option<String> {
        let Workload::Greedy { duration, warm_up, interval, .. } = traffic.workload else {
            return None;
        };
        let measured = duration.min(self.stop_after).saturating_sub(warm_up);
        let all = measured.scaled(traffic.count.into(), 1);
        let made = all.as_nanos() / interval.as_nanos().max(1);
        (made > MOST_INTERVALS).then(|| {
            let least = Span::from_nanos(all.as_nanos().div_ceil(MOST_INTERVALS));
            format!(
                "interval = {interval} makes {made} intervals in all, and a run of so many takes long: give interval = {least} or more, or a shorter duration"
            )
        })
    }

    /// A time-out that is over before an answer can have come sends everything again and again, and a death timer ends all.
    fn hasty(&self, traffic: &Traffic, known: &Ways<'_>) -> Option<String> {
        let times = |key| match &*traffic.transport {
            Transport::Urp(urp) => Some(urp.timeout).filter(|_| key == "timeout"),
            Transport::Listed(listed) => listed.values.time(key),
            _ => None,
        };
        let consequences = [
            ("timeout", "everything is sent or asked for again, and a run may take long"),
            ("death", "both ends give up, and nothing is delivered"),
        ];
        consequences.into_iter().find_map(|(key, follows)| {
            let span = times(key)?;
            let least = self.least_round_trip(traffic, known)?;
            (span < least).then(|| {
                format!(
                    "transport.{key} = {span} is over before any answer can come, for the way there and back takes {least} at least: {follows}; give a longer one"
                )
            })
        })
    }

    /// The delays of the way there and back.
    fn least_round_trip(&self, traffic: &Traffic, known: &Ways<'_>) -> Option<Span> {
        let way = known.route(traffic, 0).ok()?;
        let delay = |over: Over| match over {
            Over::Link { link, reversed } => {
                let wire = &self.links[link];
                let spec = if reversed { &wire.backward } else { &wire.forward };
                // A schedule may shorten it.
                if spec.schedule == Schedule::default() { spec.delay } else { Span::ZERO }
            }
            // How far two stations are from each other is for the medium to say.
            Over::Medium { .. } => Span::ZERO,
        };
        Some(way.there.into_iter().chain(way.back).map(|hop| delay(hop.over)).sum())
    }

    /// Bands count where a discipline has some.
    fn band(&self, traffic: &Traffic, known: &Ways<'_>) -> Option<String> {
        if traffic.band == LAST_BAND {
            return None;
        }
        let ways = (0..traffic.from_each.len().max(1) as u32)
            .filter_map(|flow| known.route(traffic, flow).ok());
        let has_bands = |discipline: &DisciplineSpec| discipline.assumptions().bands;
        let banded = ways.flat_map(|way| way.there).any(|hop| match hop.over {
            Over::Link { link, .. } => {
                let wire = &self.links[link];
                has_bands(&wire.forward.discipline) || has_bands(&wire.backward.discipline)
            }
            Over::Medium { medium, .. } => has_bands(&self.media[medium].spec.discipline),
        });
        (!banded).then(|| {
            format!(
                "band = {} has no effect: nothing on the way has the discipline priority; give it to one, or leave the band out",
                traffic.band
            )
        })
    }
}

/// No packet of URP holds more than a block.
fn packet(transport: &Transport) -> Option<String> {
    let Transport::Urp(urp) = transport else { return None };
    let end = if urp.mode.has_trailers() { TRAILER } else { 1 };
    let whole = u32::from(urp.block) + end;
    (urp.packet > whole).then(|| {
        format!(
            "transport.packet = {} is capped to {whole}, a block with its end: give packet = 0 for a block in one packet",
            urp.packet
        )
    })
}

/// A window holds at least a segment, and without scaling at most 65535 bytes.
fn window(transport: &Transport, mtu: u32) -> Option<String> {
    let Transport::Tcp(tcp) = transport else { return None };
    let window = tcp.window?.bytes();
    // 4.4BSD knows no scaling (RFC 7323) unless it is asked for.
    let scaled = tcp.window_scaling.unwrap_or(tcp.profile != "bsd-reno");
    if window > UNSCALED && !scaled {
        return Some(format!(
            "transport.window = {window} is capped to {UNSCALED}: give window_scaling = true, or a smaller window"
        ));
    }
    let segment = u64::from(tcp.mss.unwrap_or(mtu.saturating_sub(40)));
    (window < segment).then(|| {
        format!(
            "transport.window = {window} is raised to a segment, {segment}: give a larger window, or a smaller mss"
        )
    })
}

/// A congestion control that is made of marks asks for them.
fn marks(transport: &Transport) -> Option<String> {
    let Transport::Tcp(tcp) = transport else { return None };
    (tcp.ecn == Some(false) && tcp.offers_ecn() == Some(true)).then(|| {
        format!(
            "transport.ecn = false has no effect: {} always asks for marks; leave it out, or give another congestion control",
            tcp.congestion()
        )
    })
}

/// Bytes of a full packet of a traffic, if its packets are of one size or fill a segment.
fn full_packet(traffic: &Traffic, mtu: u32) -> Option<u32> {
    match (&*traffic.transport, &traffic.workload) {
        (Transport::Datagram, Workload::Paced { size, .. }) => Some(*size),
        (Transport::Udp, Workload::Paced { size, .. }) => Some(size + UDP_HEADER),
        (Transport::Tcp(tcp), Workload::Bulk { .. } | Workload::Greedy { .. }) => {
            Some(tcp.mss.map_or(mtu, |mss| mss + IP_HEADER + TCP_HEADER))
        }
        (
            Transport::Listed(listed),
            Workload::Bulk { write, .. } | Workload::Greedy { write, .. },
        ) => {
            let shape = (listed.entry.shape)(&listed.values);
            Some(shape.unit.min(*write) + shape.header)
        }
        _ => None,
    }
}

/// Each host of `from_each` has a flow.
fn senders(traffic: &Traffic) -> Option<String> {
    let (hosts, count) = (traffic.from_each.len(), traffic.count as usize);
    (hosts > count).then(|| {
        format!(
            "from_each names {hosts} hosts for count = {count}: '{}' and what follows send nothing; give count = {hosts}, or fewer hosts",
            traffic.from_each[count]
        )
    })
}

/// There is something between two flows only.
fn stagger(traffic: &Traffic) -> Option<String> {
    (traffic.count == 1 && !traffic.stagger.is_zero()).then(|| {
        format!(
            "stagger = {} has no effect on one flow: give count = 2 or more, or leave it out",
            traffic.stagger
        )
    })
}

/// An interval is measured if it ends before the connection does.
fn intervals(traffic: &Traffic) -> Option<String> {
    let Workload::Greedy { duration, warm_up, interval, .. } = traffic.workload else {
        return None;
    };
    (warm_up + interval > duration).then(|| {
        format!(
            "duration = {duration} leaves no whole interval of {interval} after warm_up = {warm_up}, so nothing is measured: give duration = {} or more",
            warm_up + interval
        )
    })
}

/// A discipline orders what waits, and without a rate nothing does.
fn idle(link: &str, way: &str, spec: &LinkSpec) -> Option<Remark> {
    let fast = spec.rate.is_none() && spec.trace.is_none() && spec.processor.is_none();
    let chosen = !spec.discipline.is_fifo() && spec.discipline.assumptions().holds_back().is_none();
    (fast && chosen && spec.schedule == Schedule::default()).then(|| Remark {
        about: About::Link(link.into()),
        text: format!("{way}discipline has no effect: without a rate nothing waits; give a rate, or leave it out"),
    })
}

/// A shaper that lets through more than the line carries. A policer counts what comes, and so do buckets too small for a packet.
fn idle_bucket(about: About, way: &str, spec: &LinkSpec, mtu: u32) -> Option<Remark> {
    let assumed = spec.discipline.assumptions();
    if assumed.largest.is_some_and(|largest| largest < mtu) {
        return None;
    }
    let (cap, rate) = (assumed.cap.filter(|_| assumed.early.is_none())?, spec.rate?);
    (cap >= rate && spec.schedule == Schedule::default()).then(|| Remark {
        about,
        text: format!(
            "{way}discipline has no effect: its rate of {cap} is not below that of the line, {rate}; give a lower one, or leave it out"
        ),
    })
}

/// A key of a discipline that counts only beside others.
fn idle_key(about: About, way: &str, discipline: &DisciplineSpec) -> Option<Remark> {
    let text = format!("{way}discipline: {}", discipline.assumptions().idle?);
    Some(Remark { about, text })
}

/// Keys of a medium whose largest frames have so many bytes.
fn of_medium(about: About, spec: &MediumSpec, frame: u64) -> impl Iterator<Item = Remark> + use<> {
    let small = spec.lossless_up_to().filter(|&most| most < frame).map(|most| Remark {
        about: about.clone(),
        text: format!(
            "headroom has room for two frames of {most} bytes, and those of up to {frame} may be lost: give {} bytes more",
            2 * (frame - most)
        ),
    });
    let own = spec.idle().map(|text| Remark { about: about.clone(), text: text.into() });
    idle_key(about, "", &spec.discipline).into_iter().chain(own).chain(small)
}

/// Blocks cost a host's processor something where the protocol runs on it.
fn unpaid(host: &Host) -> Option<Remark> {
    let work = &host.processor;
    let paid = work.send_block != Default::default()
        || work.receive_block != Default::default()
        || !work.control.is_zero();
    (paid && host.interface.protocol == ProtocolPlace::Board).then(|| Remark {
        about: About::Host(host.name.clone()),
        text: format!(
            "processor: send_block, receive_block and control have no effect, for interface.{} runs the protocol; give the costs there, or protocol = \"host\"",
            host.interface.name
        ),
    })
}

//! Bodies for what other programs say: the kernel, outside programs, earlier runs of our own.

use std::net::Ipv4Addr;
use std::sync::OnceLock;
use trunkline_core::{Seed, Size, Span, Time};
use trunkline_endpoint::{EndPlaces, EndPlan, FlowPlan, Places, Printed, read_printed};
use trunkline_engine::{Run, check};
use trunkline_gateway::{Entry, own_answer};
use trunkline_measure::Keep;
use trunkline_netns::{Namespace, Record, decode};
use trunkline_report::Report;
use trunkline_scenario::{Interface, Reply, Transport, Workload};

/// The numbers of the requests that are waited for.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=3;

/// A datagram of the kernel: the answers in it, framed again, are read the same, and each is a device, a
/// route and a table, or none.
pub fn read_netlink(data: &[u8]) {
    let reply = match decode::reply(data, &NUMBERS) {
        Ok(reply) => reply,
        Err(error) => return assert!(error.errno().is_some_and(|errno| errno != 0), "{error}"),
    };
    assert!((reply.answers.len() + reply.ended) * 16 <= data.len());
    let framed: Vec<u8> = reply.answers.iter().flat_map(|(kind, it)| frame(*kind, it)).collect();
    let again = decode::reply(&framed, &NUMBERS).expect("answers only");
    assert_eq!((again.answers, again.ended), (reply.answers.clone(), 0));
    for (_, payload) in &reply.answers {
        if let Some(device) = decode::link(payload) {
            assert_eq!(payload[4..8], device.index.to_ne_bytes());
            let text = device.mac.map(|mac| mac.to_string());
            assert_eq!(text.map(|text| text.parse().expect("an address")), device.mac);
        }
        if let Some(route) = decode::route(payload) {
            assert!(route.devices.len() <= 1 + payload.len() / 8, "{route:?}");
            if let Some(net) = route.to {
                assert!((1..=32).contains(&net.prefix()), "{net}");
                assert_eq!(net.to_string().parse().ok(), Some(net));
            }
        }
        if let Some((number, name)) = decode::name(payload) {
            assert_eq!(payload[4..8], number.to_ne_bytes());
            assert!(!name.ends_with('\0'), "{name:?}");
        }
        if let Some(name) = decode::table(payload) {
            assert!(!name.ends_with('\0'), "{name:?}");
        }
        if let Some(dropping) = decode::forward_drop(payload) {
            assert!(!dropping.chain.ends_with('\0') && !dropping.table.ends_with('\0'));
        }
    }
}

/// What the kernel tells of a table of ip_tables (`struct ipt_getinfo`, then the entries): it is one of filters, or
/// drops nothing.
pub fn read_iptables(data: &[u8]) {
    let Some((info, entries)) = data.split_at_checked(84) else { return };
    if let Some(dropping) = decode::legacy_forward_drop(info, entries) {
        assert_eq!((dropping.table.as_str(), dropping.chain.as_str()), ("filter", "FORWARD"));
    }
}

/// A question to a laboratory's gateway: its own names are answered by the question's number and with nothing but
/// their addresses, all others are left to others.
pub fn answer_names(data: &[u8]) {
    let entry = |name: &str, address: &str| Entry {
        name: name.into(),
        address: address.parse().expect("an address"),
    };
    let entries =
        [entry("host.trunkline", "10.77.0.254"), entry("host.trunkline", "fd00:746c::fe")];
    let Some(answer) = own_answer(data, "trunkline", &entries) else { return };
    assert_eq!(answer[..2], data[..2]);
    assert!(answer[2] & 0x80 != 0 && matches!(answer[3] & 15, 0 | 3), "{answer:?}");
    assert!(answer.len() <= data.len() + 28, "one address at most for each type");
}

/// A message of netlink in answer to the first request (`linux/netlink.h`, `struct nlmsghdr`).
fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut message = (16 + payload.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend([0, 0]);
    message.extend(NUMBERS.start().to_ne_bytes());
    message.extend([0; 4]);
    message.extend(payload);
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

/// The record of a run: what is read can be written and read the same.
pub fn read_state(data: &[u8]) {
    let Some(record) = Record::read(data) else { return };
    let written = record.text().expect("what was text is text again");
    assert_eq!(Record::read(&written), Some(record));
}

/// The output of an outside program and of its server: of which program, and whether there is a server, says the
/// first octet. Whatever was printed, each sample's steps sum to its delay, and no more came than was sent.
pub fn read_programs(data: &[u8]) {
    let Some((&which, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let (output, server) = match text.split_once('\0') {
        Some((output, server)) => (output, Some(server)),
        None => (&*text, None),
    };
    let command = COMMANDS[usize::from(which) % COMMANDS.len()];
    let ran = [10, 12].map(|second| Time::ZERO + Span::from_secs(second));
    for plan in plans() {
        let run = read_printed(plan, &Printed { command, output, server, ran });
        for sample in &run.samples {
            let sum: Span = sample.steps.iter().map(|step| step.span).sum();
            assert_eq!(sum, sample.delay(), "{sample:?}");
            assert!(sample.intended <= sample.start && sample.start <= sample.end, "{sample:?}");
        }
        assert!(run.packets_received <= run.packets_sent, "{run:?}");
        let told = !run.samples.is_empty() || run.delivered_bytes > 0 || !run.notes.is_empty();
        // Of no requests there is nothing to tell.
        let asks = ["ping x", "irtt client x"].contains(&command);
        assert!(told || asks, "silence: {output}");
    }
    let [all, few] = [&plans()[0], &plans()[2]].map(|plan| {
        let run = read_printed(plan, &Printed { command, output, server, ran });
        let counts = [run.packets_sent, run.packets_received, run.delivered_bytes];
        (run.samples.count(), counts, run.notes)
    });
    assert_eq!(all, few, "counts depend on how many samples are kept");
}

const COMMANDS: [&str; 5] = ["iperf3 -c x", "ping x", "irtt client x", "curl x", "make coffee"];

/// A flow whose figure is a delay, one whose figure is a rate, and the first with one sample kept.
fn plans() -> &'static [FlowPlan; 3] {
    static PLANS: OnceLock<[FlowPlan; 3]> = OnceLock::new();
    PLANS.get_or_init(|| {
        let delay = Workload::Interactive {
            sizes: vec![1],
            repeat: 1,
            reply: Reply::Echo,
            every: Span::ZERO,
        };
        let rate =
            Workload::Push { bytes: Size::from_bytes(9), write: 9, repeat: 1, store: Span::ZERO };
        let few = FlowPlan { keep: Keep::AtMost(1), ..plan(delay.clone()) };
        [plan(delay), plan(rate), few]
    })
}

/// A flow of the machine with itself.
fn plan(workload: Workload) -> FlowPlan {
    let end = EndPlan {
        namespace: Namespace::current().expect("the own namespace"),
        address: Ipv4Addr::LOCALHOST,
        transport: Transport::Udp,
        interface: Interface::default(),
        places: EndPlaces::default(),
    };
    FlowPlan {
        traffic: 0,
        flow: 0,
        workload,
        source: end.clone(),
        destination: end,
        channel: 1,
        mtu: 1500,
        band: 7,
        program: None,
        places: Places::default(),
        linger: Span::ZERO,
        keep: Keep::default(),
        seed: Seed(1),
    }
}

/// The file of a kept run: one that is taken breaks no law, can be written and read the same, and can be
/// reported.
pub fn read_runs(data: &[u8]) {
    let Some(run) = trunkline_batch::read_kept(data, VERSION, DIGEST) else { return };
    assert_eq!(check(&run), []);
    let written = serde_json::to_vec(&run).expect("memory takes it");
    assert_eq!(serde_json::from_slice::<Run>(&written).expect("what was written"), run);
    let report = Report { runs: vec![run], ..Report::default() };
    assert!(!trunkline_report::terminal(&report).is_empty());
    let mut text = Vec::new();
    trunkline_report::json(&report, &mut text).expect("memory takes it");
    assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
    assert!(trunkline_report::page(&report).contains("<html"));
}

/// The version and the digest that a kept run is to have.
pub const VERSION: &str = "1";
/// See [`VERSION`].
pub const DIGEST: &str = "d";

//! The virtual network under arbitrary topologies, disciplines, impairments and traffic.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use trunkline_core::{Channel, DropCause, Ecn, Seed, Span, Time};
use trunkline_path::LinkSpec;
use trunkline_scenario::Settings;
use trunkline_sim::{
    Event, HopShare, HopSums, LinkId, Network, Parcel, RECORD_BYTES, RecordKind, RouteId, TraceId,
};

/// Settings of links of every kind: some never change, some do, some lose and duplicate.
const KINDS: [&str; 19] = [
    "rate=unlimited",
    "rate=10gbit delay=1us limit=3p",
    "rate=7mbit delay=5ms limit=20p",
    "rate=1.544mbit framing=t1-lapd delay=3ms queue=round-robin:quantum=64,limit=4KB",
    "rate=155.52mbit framing=atm-aal5 delay=40us queue=epd:threshold=100,limit=150",
    "rate=10mbit framing=ethernet delay=1ms queue=drr:quantum=500,limit=9p",
    "rate=2mbit delay=250ms queue=two-lists:quantum=64,limit=9p",
    "rate=3mbit queue=priority:limit=9p output-buffer=1KiB",
    "rate=1mbit queue=codel:target=5ms,interval=20ms,limit=40p delay=60min",
    "rate=1mbit queue=fq-codel:target=5ms,interval=20ms,limit=40p delay=1ns",
    "rate=1mbit queue=fq-codel:flows=2,target=1ms,interval=2ms,ce_threshold=2ms,limit=40p",
    "rate=1mbit queue=pie:target=1ms,update=1ms,burst=0s,mtu=100,limit=40p delay=3ms",
    "rate=2mbit queue=dualpi2:target=1ms,update=1ms,limit=40p delay=1ms",
    "rate=1mbit queue=sfq:buckets=2,quantum=500,perturb=50ms,limit=9p",
    "rate=1mbit queue=dualpi2:limit=40p duplicate=20% loss=5%",
    "rate=20mbit delay=2ms loss=10% bit-errors=1e-6",
    "rate=20mbit delay=2ms duplicate=20% reorder=10%:5ms",
    "rate=5mbit delay=2ms jitter=independent:normal:1ms",
    "rate=5mbit delay=2ms schedule=1ms+rate=1mbit;20ms+rate=8mbit+delay=9ms",
];

fn spec(settings: &str) -> LinkSpec {
    let mut all = Settings::default();
    for pair in settings.split(' ') {
        all.add_pair(&pair.replace('+', " ")).unwrap();
    }
    all.resolve().unwrap().up
}

/// A packet to be sent, `gap` nanoseconds after the one before.
#[derive(Debug, Clone)]
struct Send {
    gap: u64,
    route: prop::sample::Index,
    size: u32,
    controls: u16,
}

#[derive(Debug, Clone)]
struct Plan {
    links: Vec<usize>,
    routes: Vec<Vec<prop::sample::Index>>,
    sends: Vec<Send>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let gap = prop_oneof![Just(0u64), 0u64..2_000, 0u64..4_000_000];
    let send = (gap, any::<prop::sample::Index>(), 1u32..3000, 0u16..4)
        .prop_map(|(gap, route, size, controls)| Send { gap, route, size, controls });
    let route = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (
        prop::collection::vec(0..KINDS.len(), 1..6),
        prop::collection::vec(route, 1..6),
        prop::collection::vec(send, 1..150),
    )
        .prop_map(|(links, routes, sends)| Plan { links, routes, sends })
}

/// A place to write to that can be read afterwards.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What became of one packet.
#[derive(Debug, Clone, PartialEq)]
struct End {
    at: Time,
    tag: u64,
    route: RouteId,
    hops: Vec<HopShare>,
    lost: Option<(LinkId, DropCause)>,
    ecn: Ecn,
}

/// The congestion bits that a packet sets off with.
fn bits(tag: u64) -> Ecn {
    [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][tag as usize % 3]
}

struct Lab {
    network: Network,
    links: Vec<LinkId>,
    routes: Vec<(RouteId, Vec<LinkId>)>,
    sent: Vec<Time>,
    ends: Vec<End>,
    record: Sink,
}

impl Lab {
    fn new(plan: &Plan) -> Lab {
        let mut network = Network::new(Seed(5));
        let add = |(index, &kind): (usize, &usize)| {
            network.add_link(&spec(KINDS[kind]), &format!("link {index}"))
        };
        let links: Vec<LinkId> = plan.links.iter().enumerate().map(add).collect();
        let mut routes = Vec::new();
        for (number, route) in plan.routes.iter().enumerate() {
            let hops: Vec<LinkId> = route.iter().map(|hop| *hop.get(&links)).collect();
            routes.push((network.add_route(Channel(number as u64 / 2), &hops), hops));
        }
        let record = Sink::default();
        network.record_to(Box::new(record.clone())).unwrap();
        Lab { network, links, routes, sent: Vec::new(), ends: Vec::new(), record }
    }

    fn run(plan: &Plan) -> Result<Lab, TestCaseError> {
        let mut lab = Lab::new(plan);
        let mut at = Time::ZERO;
        for (number, send) in plan.sends.iter().enumerate() {
            at += Span::from_nanos(send.gap);
            lab.network.set_timer(at, number as u64);
        }
        // Looked at in the middle, when much is under way.
        for until in [Time::from_nanos(at.as_nanos() / 2), at, Time::NEVER] {
            lab.pull(plan, until);
            lab.conservation()?;
        }
        Ok(lab)
    }

    fn pull(&mut self, plan: &Plan, until: Time) {
        let mut last = self.network.now();
        while let Some(event) = self.network.next(until) {
            assert!(self.network.now() >= last && self.network.now() <= until);
            last = self.network.now();
            match event {
                Event::Timer(number) => self.send(&plan.sends[number as usize], number),
                Event::Arrived(parcel) => self.end(parcel, None),
                Event::Lost(parcel, link, cause) => self.end(parcel, Some((link, cause))),
            }
        }
    }

    fn send(&mut self, send: &Send, tag: u64) {
        self.sent.push(self.network.now());
        let trace = Some(self.network.trace());
        let route = send.route.get(&self.routes).0;
        let (size, controls, ecn) = (send.size, send.controls, bits(tag));
        self.network.inject(Parcel { route, size, controls, ecn, tag, trace });
    }

    fn end(&mut self, parcel: Parcel, lost: Option<(LinkId, DropCause)>) {
        let trace: TraceId = parcel.trace.unwrap();
        let (hops, at) = (self.network.hops(trace).collect(), self.network.now());
        self.network.release(trace);
        let Parcel { tag, route, ecn, .. } = parcel;
        self.ends.push(End { at, tag, route, hops, lost, ecn });
    }

    /// Law 6, for routes and for links, at any moment: what the routes say is under way is in the links.
    fn conservation(&self) -> Result<(), TestCaseError> {
        let mut under_way = 0;
        for (route, _) in &self.routes {
            let counts = self.network.route_counts(*route);
            prop_assert!(counts.holds());
            let ends = |lost| {
                self.ends.iter().filter(move |it| it.route == *route && it.lost.is_some() == lost)
            };
            prop_assert_eq!(counts.delivered, ends(false).count() as u64);
            prop_assert_eq!(counts.dropped, ends(true).count() as u64);
            under_way += counts.in_flight;
        }
        // A copy counts for its link when it is made, and for its route when it comes out of that link.
        let in_links: u64 = self.links.iter().map(|&link| self.network.in_flight(link)).sum();
        let on_links: u64 = self.links.iter().map(|&it| self.network.counts(it).duplicated).sum();
        let on_routes: u64 =
            self.routes.iter().map(|(it, _)| self.network.route_counts(*it).duplicated).sum();
        prop_assert_eq!(in_links, under_way + on_links - on_routes);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The shares of every packet's hops sum to its time from injection to arrival, to the nanosecond, and
    /// the sums of its route are the sums of its packets.
    #[test]
    fn shares_are_exact(plan in plan()) {
        let lab = Lab::run(&plan)?;
        for end in lab.ends.iter().filter(|end| end.lost.is_none()) {
            let booked: Span =
                end.hops.iter().map(|hop| hop.queue + hop.transmit + hop.propagate).sum();
            prop_assert_eq!(booked, end.at.since(lab.sent[end.tag as usize]));
            let links: Vec<LinkId> = end.hops.iter().map(|hop| hop.link).collect();
            let (_, route) = &lab.routes[end.route.0 as usize];
            prop_assert_eq!(&links, route);
        }
        for (route, links) in &lab.routes {
            let mut expected: Vec<HopSums> = links
                .iter()
                .map(|&link| HopSums { link, packets: 0, queue: 0, transmit: 0, propagate: 0 })
                .collect();
            for end in lab.ends.iter().filter(|end| end.route == *route) {
                for (sums, hop) in expected.iter_mut().zip(&end.hops) {
                    sums.packets += 1;
                    sums.queue += u128::from(hop.queue.as_nanos());
                    sums.transmit += u128::from(hop.transmit.as_nanos());
                    sums.propagate += u128::from(hop.propagate.as_nanos());
                }
            }
            let copies: u64 = lab.network.route_counts(*route).duplicated;
            let found = lab.network.route_ledger(*route);
            if copies == 0 {
                prop_assert_eq!(found, expected);
            } else {
                // The hops that a copy made before it was one are in the records of both.
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert!(found.packets <= expected.packets && found.queue <= expected.queue);
                }
            }
        }
    }

    /// Packets arrive with the bits that they set off with, or marked by a link that counts it.
    #[test]
    fn every_mark_is_counted(plan in plan()) {
        let lab = Lab::run(&plan)?;
        let mut marked = 0;
        let mut ends = lab.ends.clone();
        ends.sort_by_key(|end| end.tag);
        for copies in ends.chunk_by(|one, other| one.tag == other.tag) {
            let sent = bits(copies[0].tag);
            prop_assert!(copies.iter().all(|end| end.ecn == sent || end.ecn == sent.marked()));
            marked += copies.iter().filter(|end| end.ecn != sent).count();
        }
        let counted: u64 = lab.links.iter().map(|&link| lab.network.counts(link).marked).sum();
        let copies: u64 = lab.links.iter().map(|&it| lab.network.counts(it).duplicated).sum();
        // Copies of a marked packet are marked, which only its first link has counted.
        match copies {
            0 => prop_assert_eq!(counted, marked as u64),
            _ => prop_assert!(counted <= marked as u64 && marked as u64 <= counted + copies),
        }
    }

    /// The same again gives the same to the last bit.
    #[test]
    fn twice_is_the_same(plan in plan()) {
        let (mut first, mut second) = (Lab::run(&plan)?, Lab::run(&plan)?);
        prop_assert_eq!(&first.ends, &second.ends);
        let records = first.network.end_record().unwrap();
        prop_assert_eq!(records, second.network.end_record().unwrap());
        let bytes = first.record.0.lock().unwrap();
        prop_assert_eq!(&*bytes, &*second.record.0.lock().unwrap());
        prop_assert_eq!(bytes.len() as u64, records * RECORD_BYTES as u64);
        let of_kind = |kind| bytes.chunks(RECORD_BYTES).filter(|it| it[20] == kind as u8).count();
        prop_assert_eq!(of_kind(RecordKind::Sent), plan.sends.len());
        let lost = first.ends.iter().filter(|end| end.lost.is_some()).count();
        prop_assert_eq!(of_kind(RecordKind::Lost), lost);
    }

    /// A link that never changes and one with a change that never comes carry packets in different ways,
    /// and book the same.
    #[test]
    fn both_kinds_of_links_book_the_same(
        kind in 0usize..14, sends in prop::collection::vec((0u64..3_000_000, 1u32..3000), 1..100),
    ) {
        let plain = spec(KINDS[kind]);
        let changing = spec(&format!("{} schedule=5s+limit=1c", KINDS[kind]));
        let mut changing = LinkSpec { delay: plain.delay, ..changing };
        changing.schedule.steps[0].0 = Span::from_secs(1_000_000);
        prop_assert_eq!(single(&plain, &sends), single(&changing, &sends));
    }
}

/// Sends packets over one link; what they waited for.
fn single(spec: &LinkSpec, sends: &[(u64, u32)]) -> BTreeMap<u64, (Time, Vec<HopShare>)> {
    let mut network = Network::new(Seed(1));
    let link = network.add_link(spec, "one");
    let routes = [1, 2].map(|channel| network.add_route(Channel(channel), &[link]));
    let mut at = Time::ZERO;
    for (number, &(gap, _)) in sends.iter().enumerate() {
        at += Span::from_nanos(gap);
        network.set_timer(at, number as u64);
    }
    let mut ends = BTreeMap::new();
    while let Some(event) = network.next(Time::from_nanos(999_999_000_000_000)) {
        match event {
            Event::Timer(tag) => {
                let trace = Some(network.trace());
                let (route, size) = (routes[tag as usize % 2], sends[tag as usize].1);
                network.inject(Parcel { route, size, controls: 1, ecn: Ecn::NotEct, tag, trace });
            }
            Event::Arrived(parcel) | Event::Lost(parcel, ..) => {
                let hops = network.hops(parcel.trace.unwrap()).collect();
                ends.insert(parcel.tag, (network.now(), hops));
            }
        }
    }
    ends
}

#[test]
fn timers_come_in_order_and_far_ones_too() {
    let mut network = Network::new(Seed(1));
    let hours = |hours: u64| Time::ZERO + Span::from_secs(3600 * hours);
    let link = network.add_link(&spec("rate=100gbit delay=1ns"), "near");
    let route = network.add_route(Channel(1), &[link, link, link]);
    for (at, number) in
        [(hours(3), 7), (hours(500_000), 8), (Time::from_nanos(5), 1), (hours(3), 6), (hours(2), 5)]
    {
        network.set_timer(at, number);
    }
    network.inject(Parcel { route, size: 125, controls: 0, ecn: Ecn::NotEct, tag: 2, trace: None });
    let mut seen = Vec::new();
    while let Some(event) = network.next(Time::NEVER) {
        match event {
            Event::Timer(number) => seen.push((number, network.now())),
            Event::Arrived(parcel) => seen.push((parcel.tag, network.now())),
            Event::Lost(..) => panic!("nothing is lost"),
        }
    }
    let expected = [
        (1, Time::from_nanos(5)),
        (2, Time::from_nanos(33)),
        (5, hours(2)),
        (7, hours(3)),
        (6, hours(3)),
        (8, hours(500_000)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn nothing_happens_past_the_limit_and_time_stands_still_there() {
    let mut network = Network::new(Seed(1));
    let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
    network.set_timer(ms(5), 1);
    network.set_timer(ms(9), 2);
    assert_eq!(network.next(ms(5)), Some(Event::Timer(1)));
    assert_eq!((network.next(ms(8)), network.now()), (None, ms(5)));
    network.set_timer(ms(6), 3);
    network.set_timer(ms(1), 4);
    let order: Vec<Event> = std::iter::from_fn(|| network.next(ms(10))).collect();
    assert_eq!(order, [Event::Timer(4), Event::Timer(3), Event::Timer(2)]);
}

#[test]
fn a_copy_arrives_with_a_record_of_its_own() {
    let mut network = Network::new(Seed(1));
    let links = ["rate=1mbit delay=1ms", "duplicate=100%", "rate=2mbit"]
        .map(|settings| network.add_link(&spec(settings), settings));
    let route = network.add_route(Channel(1), &links);
    let trace = Some(network.trace());
    network.inject(Parcel { route, size: 125, controls: 0, ecn: Ecn::NotEct, tag: 2, trace });
    let mut arrived = Vec::new();
    while let Some(Event::Arrived(parcel)) = network.next(Time::NEVER) {
        let trace = parcel.trace.unwrap();
        let queue: Vec<u64> = network.hops(trace).map(|hop| hop.queue.as_nanos()).collect();
        arrived.push((trace, network.now().as_nanos(), queue));
    }
    assert_eq!(arrived[0], (TraceId(0), 2_500_000, vec![0, 0, 0]));
    assert_eq!(arrived[1], (TraceId(1), 3_000_000, vec![0, 0, 500_000]));
    let counts = network.route_counts(route);
    assert_eq!((counts.sent, counts.duplicated, counts.delivered), (1, 1, 2));
    assert_eq!(network.route_ledger(route)[0].packets, 1);
    assert_eq!(network.route_ledger(route)[2].packets, 2);
}

#[test]
fn a_links_doings_are_recorded_where_asked_for() {
    let mut network = Network::new(Seed(1));
    let link = network.add_link(&spec("rate=1mbit delay=10ms"), "slow");
    let route = network.add_route(Channel(1), &[link]);
    network.record_queueing(link);
    network.sample_backlog(link, Span::from_micros(500));
    for tag in 0..3 {
        network.inject(Parcel {
            route,
            size: 125,
            controls: 0,
            ecn: Ecn::NotEct,
            tag,
            trace: None,
        });
    }
    assert_eq!(network.in_flight(link), 3);
    while network.next(Time::NEVER).is_some() {}
    let figures = network.queueing(link).unwrap().percentiles();
    assert_eq!((figures.count, figures.max), (3, Span::from_millis(2)));
    assert_eq!((network.busy(link), network.in_flight(link)), (Span::from_millis(3), 0));
    let samples: Vec<u64> = network.backlog_samples(link).iter().map(|&(_, it)| it).collect();
    assert_eq!(samples.len(), 26, "every half a millisecond of the 13 before the end");
    assert_eq!(samples[..8], [375, 375, 250, 250, 125, 125, 0, 0]);
}

/// Fails after a number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("no space left"));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Four packets of 64 bytes in a frame of 264 are on the line for as long as those, not for as long as four frames of 72;
/// from whatever link, and before all have left.
#[test]
fn a_line_is_busy_for_as_long_as_the_frames_that_packets_share() {
    let frame = Span::from_micros(1375);
    for queue in ["fifo", "round-robin:quantum=256,limit=4KB", "fifo jitter=1us"] {
        let mut network = Network::new(Seed(1));
        let line = format!("rate=1.544mbit framing=t1-lapd delay=3ms queue={queue}");
        let link = network.add_link(&spec(&line), "t1");
        let route = network.add_route(Channel(1), &[link]);
        for tag in 0..8 {
            let (controls, ecn) = (0, Ecn::NotEct);
            network.inject(Parcel { route, size: 64, controls, ecn, tag, trace: None });
        }
        let mut arrivals = 0;
        while network.next(Time::NEVER).is_some() {
            arrivals += 1;
            let now = network.now().since(Time::ZERO);
            assert!(network.busy(link) <= now, "{queue}: {} of {now}", network.busy(link));
        }
        let off = network.busy(link).as_nanos().abs_diff(2 * frame.as_nanos());
        assert!(arrivals == 8 && off < 8, "{queue}: {}", network.busy(link));
    }
}

/// A packet that is lost behind the line has kept it busy like any other; one that found no room has not.
#[test]
fn a_line_is_busy_with_what_is_lost_behind_it() {
    for (settings, lost, busy) in [
        ("loss=100%", 4, Span::from_millis(4)),
        ("bit-errors=0.9", 4, Span::from_millis(4)),
        ("loss=100% limit=2p", 4, Span::from_millis(3)),
        ("jitter=1us duplicate=100%", 0, Span::from_millis(4)),
    ] {
        let mut network = Network::new(Seed(1));
        let link = network.add_link(&spec(&format!("rate=1mbit delay=3ms {settings}")), "line");
        let route = network.add_route(Channel(1), &[link]);
        for tag in 0..4 {
            let (controls, ecn) = (0, Ecn::NotEct);
            network.inject(Parcel { route, size: 125, controls, ecn, tag, trace: None });
        }
        let mut found = 0;
        while let Some(event) = network.next(Time::NEVER) {
            found += usize::from(matches!(event, Event::Lost(..)));
        }
        assert_eq!((found, network.busy(link)), (lost, busy), "{settings}");
    }
}

#[test]
fn a_record_that_cannot_be_written_says_so() {
    let mut network = Network::new(Seed(1));
    let route = network.add_route(Channel(1), &[]);
    network.record_to(Box::new(Full(100))).unwrap();
    for tag in 0..10 {
        network.inject(Parcel { route, size: 1, controls: 0, ecn: Ecn::NotEct, tag, trace: None });
    }
    assert!(network.end_record().unwrap_err().to_string().contains("no space"));
    assert_eq!(network.end_record().unwrap(), 0, "nothing is recorded any more");
}

//! A relaxation changes what it names, for the better, and nothing else.

use proptest::prelude::*;
use trunkline_core::{Probability, Rate, Size, Span};
use trunkline_explain::{Ease, Line, MediumEase, PRACTICALLY_NOTHING, Relaxation};
use trunkline_path::impairment::ImpairmentSpec;
use trunkline_path::medium::{AccessSpec, KINDS, MediumSpec};
use trunkline_path::{DisciplineSpec, Framing, Limit, LinkSpec};
use trunkline_scenario::{
    Cluster, Cost, Host, Interface, Listed, Medium, MessageProtocol, Node, Processor, Scenario,
    Split, TcpSettings, Transport, UrpSettings, Wire,
};

use trunkline_transport::protocol::{PROTOCOLS, Value};
use trunkline_transport::tcp::{Profile, Settings};

/// Three hosts, three nodes, three links and three traffics: one more than a relaxation is applied to.
const COUNT: usize = 3;

prop_compose! {
    fn cost()(fixed in 0u64..2_000_000, per_byte in 0u64..5_000) -> Cost {
        Cost { fixed: Span::from_nanos(fixed), per_byte: Span::from_nanos(per_byte) }
    }
}

prop_compose! {
    fn host()(
        costs in prop::collection::vec(cost(), 8),
        requests in prop::option::of(1u32..4),
        piece in prop::option::of(1u32..2000),
        memory in prop::option::of(1u64..100_000),
        buffer in prop::option::of(1u32..2000),
        programmed in prop::option::of(1u64..9000),
        half_duplex: bool,
        deaf in prop::option::of(0u64..9000),
    ) -> Host {
        Host {
            name: String::new(),
            processor: Processor {
                write: costs[0], read: costs[1], request: costs[2], interrupt: costs[3],
                send_block: costs[4], receive_block: costs[5], control: costs[6].fixed, timer: costs[7].fixed, disturbance: None,
                unsteady: Span::ZERO,
            }.into(),
            interface: Interface {
                requests,
                split: piece.map(|piece| Split { below: None, piece }).into_iter().collect(),
                memory: memory.map(Size::from_bytes),
                receive_buffer: buffer,
                programmed: programmed.map(Span::from_nanos),
                half_duplex,
                deaf: deaf.map(Span::from_nanos),
                send_block: costs[6],
                receive_block: costs[7],
                ..Interface::default()
            }.into(),
        }
    }
}

prop_compose! {
    fn link()(
        rate in prop::option::of(1u64..1_000_000_000),
        delay in 0u64..1_000_000_000,
        duplicate in 0f64..0.5,
        limit in 1u64..1_000_000,
        step in prop::sample::select(vec!["rate=1mbit", "delay=3ms", "limit=4kB", "loss=1%", "jitter=1ms"]),
        at in 0u64..3,
    ) -> LinkSpec {
        LinkSpec {
            schedule: format!("0s rate=2mbit; {at}s {step}; repeat 4s").parse().unwrap(),
            rate: rate.map(Rate::from_bits_per_second),
            delay: Span::from_nanos(delay),
            discipline: DisciplineSpec::fifo(Limit::Bytes(limit)),
            impairments: ImpairmentSpec {
                duplicate: Probability::new(duplicate).unwrap(),
                ..ImpairmentSpec::default()
            },
            ..LinkSpec::default()
        }
    }
}

/// A medium of any kind, with any of the settings that its own tests try.
fn medium() -> impl Strategy<Value = Medium> {
    let chosen = (0..KINDS.len(), any::<prop::sample::Index>(), 1u64..1 << 30, 0u64..1 << 20);
    chosen.prop_map(|(kind, trial, rate, delay)| {
        let kind = &KINDS[kind];
        let access = AccessSpec::read(kind.name, kind.trials[trial.index(kind.trials.len())]);
        let spec = MediumSpec {
            rate: Some(Rate::from_bits_per_second(rate)),
            framing: Framing::default(),
            delay: Span::from_nanos(delay),
            discipline: DisciplineSpec::fifo(Limit::Bytes(rate)),
            access: access.expect("settings that are tried"),
        };
        Medium { name: String::new(), stations: Vec::new(), spec }
    })
}

prop_compose! {
    fn cluster()(
        medium in medium(),
        loss in 0f64..0.5,
        buffers in 100u32..1000,
        cycle in 0u64..1000,
        layer in prop::sample::select(MessageProtocol::NAMES),
    ) -> Cluster {
        let text = "[[cluster]]\nname = 'c'\nkind = 'bus'\nnodes = 3\ntest = { kind = 'incast' }\n";
        let mut cluster = Scenario::parse(text, "t.toml").unwrap().remove(0).clusters.remove(0);
        cluster.medium = medium.spec;
        cluster.loss = Probability::new(loss).unwrap();
        cluster.layout.receive_buffers = buffers;
        cluster.costs.cycle = Span::from_nanos(cycle);
        cluster.protocol = MessageProtocol::parse(layer).unwrap();
        cluster
    }
}

prop_compose! {
    fn tcp()(
        window in prop::option::of(64u64..1 << 24),
        initial_window in prop::option::of(1u32..100),
        window_scaling in prop::option::of(any::<bool>()),
        profile in prop::sample::select(vec!["trunkline", "linux", "bsd-reno"]),
    ) -> Transport {
        let window = window.map(Size::from_bytes);
        Transport::Tcp(TcpSettings {
            profile: profile.into(), window, initial_window, window_scaling, ..TcpSettings::default()
        })
    }
}

fn urp() -> impl Strategy<Value = Transport> {
    (1u16..5000, 1u8..8).prop_map(|(block, outstanding)| {
        Transport::Urp(UrpSettings { block, outstanding, ..UrpSettings::default() })
    })
}

/// A protocol chosen by name.
fn listed() -> impl Strategy<Value = Listed> {
    (0..PROTOCOLS.len(), 1u64..100).prop_map(|(index, number)| {
        let entry = PROTOCOLS[index];
        let mut values = entry.defaults();
        values.set("frame", Value::Number(number));
        Listed { entry, values }
    })
}

prop_compose! {
    fn scenario()(
        hosts in prop::collection::vec(host(), COUNT),
        links in prop::collection::vec((link(), link()), COUNT),
        media in prop::collection::vec(medium(), COUNT),
        clusters in prop::collection::vec(cluster(), COUNT),
        transports in prop::collection::vec(
            prop_oneof![
                (urp(), urp()),
                (tcp(), tcp()),
                (listed(), listed())
                    .prop_map(|(ours, theirs)| (Transport::Listed(ours), Transport::Listed(theirs))),
                Just((Transport::Udp, Transport::Udp)),
            ],
            COUNT,
        ),
    ) -> Scenario {
        let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                    [[traffic]]\nname = 't'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [1]\n";
        let mut scenario = Scenario::parse(text, "t.toml").unwrap().remove(0);
        let traffic = scenario.traffic[0].clone();
        scenario.traffic = transports.into_iter().enumerate().map(|(at, (ours, theirs))| {
            let mut traffic = traffic.clone();
            traffic.name = format!("t{at}");
            traffic.transport = ours.into();
            traffic.reply_transport = theirs.into();
            traffic
        }).collect();
        scenario.nodes = (0..COUNT).map(|at| Node {
            name: format!("n{at}"),
            backplane: Some(Rate::from_bits_per_second(8_000_000)),
        }).collect();
        scenario.media = media;
        scenario.clusters = clusters;
        scenario.hosts = hosts;
        let wire = |(forward, backward)| Wire {
            name: String::new(), from: String::new(), to: String::new(),
            forward: LinkSpec::into(forward), backward: LinkSpec::into(backward),
        };
        scenario.links = links.into_iter().map(wire).collect();
        scenario
    }
}

/// What each relaxation says that it changes, put back as it was.
fn undone(relaxation: &Relaxation, before: &Scenario, after: &Scenario) -> Scenario {
    let mut it = after.clone();
    match relaxation {
        Relaxation::Window { traffic, .. }
        | Relaxation::Buffers { traffic, .. }
        | Relaxation::InitialWindow { traffic, .. }
        | Relaxation::Settings { traffic, .. } => {
            it.traffic[*traffic].transport = before.traffic[*traffic].transport.clone();
            it.traffic[*traffic].reply_transport = before.traffic[*traffic].reply_transport.clone();
        }
        Relaxation::Requests { hosts, .. } => {
            interfaces(&mut it, before, hosts, |it, was| it.requests = was.requests);
        }
        Relaxation::Split { hosts } => {
            interfaces(&mut it, before, hosts, |it, was| it.split.clone_from(&was.split));
        }
        Relaxation::ReceiveBuffers { hosts, .. } => {
            interfaces(&mut it, before, hosts, |it, was| {
                (it.receive_buffer, it.returns) = (was.receive_buffer, was.returns);
            })
        }
        Relaxation::Memory { hosts } => {
            interfaces(&mut it, before, hosts, |it, was| it.memory = was.memory);
        }
        Relaxation::Processor { host, .. } => {
            it.hosts[*host].processor = before.hosts[*host].processor.clone();
        }
        Relaxation::Board { host, .. } => interfaces(&mut it, before, &[*host], |it, was| {
            (it.send_block, it.receive_block) = (was.send_block, was.receive_block);
            (it.control, it.half_duplex) = (was.control, was.half_duplex);
            (it.programmed, it.deaf) = (was.programmed, was.deaf);
        }),
        Relaxation::Rate { lines, .. } => {
            undo_lines(&mut it, before, lines, |it, was| {
                it.rate = was.rate;
                it.schedule.clone_from(&was.schedule);
            });
        }
        Relaxation::TrunkBoard { lines } => {
            undo_lines(&mut it, before, lines, |it, was| it.processor.clone_from(&was.processor));
        }
        Relaxation::Backplane { nodes } => {
            nodes.iter().for_each(|&node| it.nodes[node] = before.nodes[node].clone());
        }
        Relaxation::RoundRobin { lines }
        | Relaxation::QueueLimit { lines, .. }
        | Relaxation::Shaper { lines } => {
            undo_lines(&mut it, before, lines, |it, was| {
                it.discipline.clone_from(&was.discipline);
                it.schedule.clone_from(&was.schedule);
            });
        }
        Relaxation::Steady { lines } => {
            undo_lines(&mut it, before, lines, |it, was| it.schedule.clone_from(&was.schedule));
        }
        Relaxation::Loss { lines } => {
            undo_lines(&mut it, before, lines, |it, was| {
                it.impairments = was.impairments.clone();
                it.schedule.clone_from(&was.schedule);
            });
        }
        Relaxation::Distance { lines, media } => {
            undo_lines(&mut it, before, lines, |it, was| {
                it.delay = was.delay;
                it.impairments.jitter = was.impairments.jitter;
                it.schedule.clone_from(&was.schedule);
            });
            undo_media(&mut it, before, media, MediumEase::Distance);
        }
        Relaxation::Media { media, ease } => undo_media(&mut it, before, media, *ease),
        Relaxation::Several(list) => {
            return list.iter().fold(it, |it, one| undone(one, before, &it));
        }
        Relaxation::Cluster { cluster, ease } => {
            undo_cluster(&mut it.clusters[*cluster], &before.clusters[*cluster], ease);
        }
        Relaxation::Without { .. } => it.traffic.clone_from(&before.traffic),
    }
    it
}

fn interfaces(
    it: &mut Scenario,
    before: &Scenario,
    hosts: &[usize],
    undo: impl Fn(&mut Interface, &Interface),
) {
    hosts
        .iter()
        .for_each(|&host| undo(&mut it.hosts[host].interface, &before.hosts[host].interface));
}

fn undo_cluster(it: &mut Cluster, was: &Cluster, ease: &Ease) {
    match ease {
        Ease::Medium(ease) => undo_medium(&mut it.medium, &was.medium, *ease),
        Ease::Loss => it.loss = was.loss,
        Ease::Processors(_) => it.costs = was.costs,
        Ease::Buffers(_) => {
            it.layout.receive_buffers = was.layout.receive_buffers;
            it.layout.send_buffers = was.layout.send_buffers;
        }
        Ease::Layer(_) => it.protocol.clone_from(&was.protocol),
    }
}

fn undo_media(it: &mut Scenario, before: &Scenario, media: &[usize], ease: MediumEase) {
    media.iter().for_each(|&at| undo_medium(&mut it.media[at].spec, &before.media[at].spec, ease));
}

fn undo_medium(it: &mut MediumSpec, was: &MediumSpec, ease: MediumEase) {
    match ease {
        MediumEase::Turns => (it.access, it.delay) = (was.access, was.delay),
        MediumEase::Rate(_) => (it.access, it.rate) = (was.access, was.rate),
        MediumEase::Distance => it.delay = was.delay,
        MediumEase::Limits => {
            it.access = was.access;
            it.discipline.clone_from(&was.discipline);
        }
    }
}

fn undo_lines(
    it: &mut Scenario,
    before: &Scenario,
    lines: &[Line],
    undo: impl Fn(&mut LinkSpec, &LinkSpec),
) {
    for line in lines {
        let wire = &mut it.links[line.link];
        let spec = if line.reversed { &mut *wire.backward } else { &mut *wire.forward };
        undo(spec, line.spec(before));
    }
}

fn some() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..COUNT, 0..=COUNT).prop_map(|it| it.into_iter().collect())
}

fn some_lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (0..COUNT, any::<bool>()).prop_map(|(link, reversed)| Line { link, reversed });
    prop::collection::btree_set(line, 0..=2 * COUNT).prop_map(|it| it.into_iter().collect())
}

fn factor() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![2, PRACTICALLY_NOTHING])
}

/// What concerns transports and hosts.
fn at_an_end() -> impl Strategy<Value = Relaxation> {
    let one = 0..COUNT;
    prop_oneof![
        (one.clone(), 1u16..5000, 1u8..8).prop_map(|(traffic, block, outstanding)| {
            Relaxation::Window { traffic, block, outstanding }
        }),
        (one.clone(), 1u64..1 << 30)
            .prop_map(|(traffic, bytes)| Relaxation::Buffers { traffic, bytes }),
        (one.clone(), 1u32..200)
            .prop_map(|(traffic, segments)| Relaxation::InitialWindow { traffic, segments }),
        (one.clone(), listed())
            .prop_map(|(traffic, listed)| Relaxation::Settings { traffic, listed }),
        (some(), prop::option::of(1u32..5))
            .prop_map(|(hosts, requests)| Relaxation::Requests { hosts, requests }),
        some().prop_map(|hosts| Relaxation::Split { hosts }),
        (some(), any::<bool>())
            .prop_map(|(hosts, gather)| Relaxation::ReceiveBuffers { hosts, gather }),
        some().prop_map(|hosts| Relaxation::Memory { hosts }),
        (one.clone(), factor()).prop_map(|(host, factor)| Relaxation::Processor { host, factor }),
        (one, factor()).prop_map(|(host, factor)| Relaxation::Board { host, factor }),
    ]
}

fn medium_ease() -> impl Strategy<Value = MediumEase> {
    let fixed = vec![MediumEase::Turns, MediumEase::Distance, MediumEase::Limits];
    prop_oneof![prop::sample::select(fixed), (2u32..11).prop_map(MediumEase::Rate)]
}

/// What concerns clusters.
fn ease() -> impl Strategy<Value = Ease> {
    prop_oneof![
        medium_ease().prop_map(Ease::Medium),
        Just(Ease::Loss),
        Just(Ease::Layer(MessageProtocol::parse("careful").unwrap())),
        (2u32..17).prop_map(Ease::Buffers),
        factor().prop_map(Ease::Processors),
    ]
}

/// What concerns the way.
fn on_the_way() -> impl Strategy<Value = Relaxation> {
    prop_oneof![
        (some_lines(), factor()).prop_map(|(lines, factor)| Relaxation::Rate { lines, factor }),
        some_lines().prop_map(|lines| Relaxation::TrunkBoard { lines }),
        some().prop_map(|nodes| Relaxation::Backplane { nodes }),
        some_lines().prop_map(|lines| Relaxation::RoundRobin { lines }),
        some().prop_map(|traffic| Relaxation::Without { traffic }),
        (some_lines(), prop::option::of(1u64..1 << 20))
            .prop_map(|(lines, bytes)| Relaxation::QueueLimit { lines, bytes }),
        some_lines().prop_map(|lines| Relaxation::Shaper { lines }),
        some_lines().prop_map(|lines| Relaxation::Steady { lines }),
        some_lines().prop_map(|lines| Relaxation::Loss { lines }),
        (some_lines(), some()).prop_map(|(lines, media)| Relaxation::Distance { lines, media }),
        (some(), medium_ease()).prop_map(|(media, ease)| Relaxation::Media { media, ease }),
        (0..COUNT, ease()).prop_map(|(cluster, ease)| Relaxation::Cluster { cluster, ease }),
    ]
}

fn relaxation() -> impl Strategy<Value = Relaxation> {
    let several = prop::collection::vec(on_the_way(), 0..3);
    let several = several.prop_map(|mut list| {
        // Indexes of traffic shift when one is taken out.
        list.retain(|one| !matches!(one, Relaxation::Without { .. }));
        Relaxation::Several(list)
    });
    prop_oneof![at_an_end(), on_the_way(), several]
}

proptest! {
    #[test]
    fn nothing_is_touched_that_is_not_named(scenario in scenario(), relaxation in relaxation()) {
        let before = scenario.clone();
        let after = relaxation.apply(&scenario);
        prop_assert_eq!(&scenario, &before);
        prop_assert_eq!(undone(&relaxation, &before, &after), before);
    }

    #[test]
    fn windows_only_grow(scenario in scenario(), block in 1u16..4097, outstanding in 1u8..8) {
        let after = Relaxation::Window { traffic: 0, block, outstanding }.apply(&scenario);
        let window = |transport: &Transport| match transport {
            Transport::Urp(urp) => Some(u32::from(urp.block) * u32::from(urp.outstanding)),
            _ => None,
        };
        let wanted = u32::from(block) * u32::from(outstanding);
        for (was, is) in both_ends(&scenario, &after) {
            prop_assert_eq!(window(is), window(was).map(|was| was.max(wanted)));
        }
    }

    #[test]
    fn a_faster_medium_and_one_without_limits_are_of_its_kind(scenario in scenario()) {
        let media: Vec<usize> = (0..COUNT).collect();
        for ease in [MediumEase::Rate(2), MediumEase::Limits] {
            let after = Relaxation::Media { media: media.clone(), ease }.apply(&scenario);
            for (was, is) in scenario.media.iter().zip(&after.media) {
                prop_assert_eq!(was.spec.access.kind(), is.spec.access.kind());
                prop_assert_ne!(&was.spec, &is.spec);
            }
        }
    }

    #[test]
    fn nobody_pays_for_turns_twice(scenario in scenario()) {
        let free = Relaxation::Media { media: (0..COUNT).collect(), ease: MediumEase::Turns };
        let once = free.apply(&scenario);
        for medium in &once.media {
            prop_assert!(medium.spec.without_turns().is_none(), "{medium:?}");
        }
        prop_assert_eq!(free.apply(&once), once);
    }

    #[test]
    fn another_end_with_settings_of_its_own_keeps_them(
        scenario in scenario(), listed in listed(),
    ) {
        let after = Relaxation::Settings { traffic: 0, listed: listed.clone() }.apply(&scenario);
        let asked = Transport::Listed(listed);
        let [(was, is), (other_was, other_is)] = both_ends(&scenario, &after);
        prop_assert_eq!(is, &asked);
        prop_assert!(is.understands(other_is), "{is:?} beside {other_is:?}");
        let has_own = other_was != was && other_was.understands(&asked);
        prop_assert_eq!(other_is, if has_own { other_was } else { &asked });
    }

    #[test]
    fn buffers_only_grow_and_are_large_enough(scenario in scenario(), bytes in 64u64..1 << 30) {
        let after = Relaxation::Buffers { traffic: 0, bytes }.apply(&scenario);
        for (was, is) in both_ends(&scenario, &after) {
            let (Transport::Tcp(was), Transport::Tcp(is)) = (was, is) else {
                prop_assert_eq!(was, is);
                continue;
            };
            prop_assert!(is.window >= was.window);
            let scales = is.window_scaling.unwrap_or(is.profile != "bsd-reno");
            let profile: Profile = is.profile.parse().unwrap();
            let unasked = Settings::of(profile).receive_buffer;
            let window = is.window.map_or(unasked, |window| window.bytes());
            prop_assert!(window >= bytes && (scales || bytes <= 65_535), "{is:?}");
        }
    }

    #[test]
    fn those_left_behind_wait_for_nobody_who_is_gone(scenario in scenario(), gone in 0..COUNT) {
        let mut scenario = scenario;
        let name = scenario.traffic[gone].name.clone();
        for traffic in &mut scenario.traffic {
            if traffic.name != name {
                traffic.until = Some(name.clone());
                traffic.start = trunkline_scenario::Start::AfterEnd(name.clone());
            }
        }
        let after = Relaxation::Without { traffic: vec![gone] }.apply(&scenario);
        prop_assert_eq!(after.traffic.len(), COUNT - 1);
        for traffic in &after.traffic {
            prop_assert_eq!(&traffic.until, &None);
            prop_assert_eq!(&traffic.start, &trunkline_scenario::Start::At(Span::ZERO));
        }
    }
}

fn both_ends<'a>(was: &'a Scenario, is: &'a Scenario) -> [(&'a Transport, &'a Transport); 2] {
    let (was, is) = (&was.traffic[0], &is.traffic[0]);
    [(&*was.transport, &*is.transport), (&*was.reply_transport, &*is.reply_transport)]
}

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn traffic(name: &str, rest: &str) -> String {
    format!(
        "[[traffic]]\nname = '{name}'\nkind = 'paced'\nsize = 100\nrate = '1Mbit/s'\nduration = '1s'\n\
         transport = {{ kind = 'udp' }}\n{rest}\n"
    )
}

/// The names of what is crossed.
fn names(network: &Network<'_>, crossed: &[Crossing]) -> String {
    let names: Vec<String> = crossed.iter().map(|it| network.lanes()[it.lane].name()).collect();
    names.join(" ")
}

const CHAIN: &str = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
     [[node]]\nname = 'n'\nbackplane = '8Mbit/s'\n[[node]]\nname = 'm'\n\
     [[link]]\nname = 'near'\nbetween = ['a', 'n']\nrate = '1Mbit/s'\n\
     [[link]]\nname = 'trunk'\nbetween = ['m', 'n']\n\
     [[medium]]\nname = 'lan'\nkind = 'half-duplex'\nstations = ['m', 'b']\nrate = '1Mbit/s'\n";

#[test]
fn a_way_crosses_links_media_and_backplanes_both_ways() {
    let text = CHAIN.to_string() + &traffic("t", "from = 'a'\nto = 'b'");
    let scenario = scenario(&text);
    let network = Network::of(&scenario).unwrap();
    let way = network.way(0, 0);
    assert_eq!(names(&network, &way.there), "a>n n n>m m>lan");
    assert_eq!(names(&network, &way.back), "b>lan m>n n n>a");
    assert_eq!((way.from, way.to), (0, 1));
    assert_eq!(way.there.last().unwrap().heard_by, Some(StationId(1)));
}

/// The names that ledgers, tables and random streams have had since they were first printed.
#[test]
fn lanes_have_names_streams_and_what_is_observed() {
    let text = CHAIN.to_string() + &traffic("t", "from = 'a'\nto = 'b'");
    let scenario = scenario(&text);
    let network = Network::of(&scenario).unwrap();
    let told: Vec<String> = (network.lanes().iter())
        .map(|lane| {
            let (recorded, reported) = (lane.is_recorded(), lane.is_reported());
            format!("{}|{}|{recorded}|{reported}", lane.name(), lane.stream())
        })
        .collect();
    let expected = [
        "a>n|near a>n|true|true",
        "n>a|near n>a|true|true",
        "m>n|trunk m>n|false|true",
        "n>m|trunk n>m|false|true",
        "m>lan|m>lan|true|true",
        "b>lan|b>lan|true|true",
        "n|n n|false|false",
    ];
    assert_eq!(told, expected);
    let backplane = network.lanes()[6].spec();
    assert_eq!(backplane.framing, trunkline_path::Framing::Datakit);
    assert_eq!(backplane.rate, scenario.nodes[0].backplane);
}

#[test]
fn specifications_are_borrowed_and_not_copied() {
    let text = CHAIN.to_string() + &traffic("t", "from = 'a'\nto = 'b'");
    let scenario = scenario(&text);
    let network = Network::of(&scenario).unwrap();
    let lanes = &network.lanes()[..2];
    let wire = &scenario.links[0];
    assert!(std::ptr::eq(lanes[0].link().unwrap(), &*wire.forward));
    assert!(std::ptr::eq(lanes[1].link().unwrap(), &*wire.backward));
    assert!(lanes.iter().all(|lane| matches!(lane.spec(), std::borrow::Cow::Borrowed(_))));
}

#[test]
fn flows_of_one_host_share_a_way() {
    let text =
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n[[node]]\nname = 'n'\n\
         [[link]]\nbetween = ['a', 'n']\n[[link]]\nbetween = ['b', 'n']\n\
         [[link]]\nbetween = ['n', 'c']\n"
            .to_string()
            + &traffic("t", "from_each = ['a', 'b', 'a']\nto = 'c'\ncount = 5");
    let scenario = scenario(&text);
    let network = Network::of(&scenario).unwrap();
    let ways: Vec<usize> = (0..5).map(|flow| network.way_of(0, flow)).collect();
    assert_eq!(ways, [0, 1, 0, 0, 1]);
    assert_eq!(network.ways().len(), 2);
}

/// Circuits are numbered by names: the order of declarations decides nothing.
#[test]
fn circuits_are_numbered_by_the_names_of_traffic() {
    let one = traffic("z", "from = 'a'\nto = 'b'\ncount = 3");
    let other = traffic("c", "from = 'a'\nto = 'b'\ncount = 2");
    let text = CHAIN.to_string() + &one + &other;
    let scenario = scenario(&text);
    let network = Network::of(&scenario).unwrap();
    assert_eq!((network.circuit(1, 0), network.circuit(1, 1)), (1, 2));
    assert_eq!((network.circuit(0, 0), network.circuit(0, 2)), (3, 5));
}

#[test]
fn a_traffic_without_a_way_is_refused_with_its_name() {
    let text = CHAIN.to_string() + &traffic("t", "from = 'a'\nto = 'b'");
    let mut scenario = scenario(&text);
    scenario.media.clear();
    let error = Network::of(&scenario).unwrap_err().to_string();
    assert!(error.starts_with("traffic 't': no links lead from 'a' to 'b'"), "{error}");
    scenario.traffic[0].to = "n".into();
    scenario.traffic[0].via = vec!["n".into()];
    assert!(Network::of(&scenario).is_err());
}

/// Nodes in a tree with further links, backplanes at some, a medium, and traffic between hosts: one text for each
/// element.
#[derive(Debug, Clone)]
struct Plan {
    elements: Vec<String>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let links = prop::collection::vec((0..6usize, 0..6usize), 0..6);
    let traffic_between =
        prop::collection::vec((0..4usize, 0..4usize, 1..4u32, any::<bool>()), 1..5);
    (links, traffic_between, 0..64u32, 0..6usize).prop_map(|(links, ways, backplanes, lan)| {
        let mut elements: Vec<String> =
            (0..4).map(|host| format!("[[host]]\nname = 'h{host}'\n")).collect();
        for node in 0..6 {
            let limited = backplanes >> node & 1 == 1;
            let backplane = if limited { "backplane = '8Mbit/s'\n" } else { "" };
            elements.push(format!("[[node]]\nname = 'n{node}'\n{backplane}"));
        }
        let tree = (1..6).map(|node| (node / 2, node));
        let links = tree.chain(links).filter(|(one, other)| one != other);
        for (index, (one, other)) in links.enumerate() {
            // So that the order of names is not that in which they are made.
            let name = index * 7 % 12;
            elements.push(format!("[[link]]\nname = 'l{name}-{index}'\nbetween = ['n{one}', 'n{other}']\n"));
        }
        let hosts = (0..3).map(|host| format!("[[link]]\nname = 'host{host}'\nbetween = ['n{}', 'h{host}']\n", host * 2));
        elements.extend(hosts);
        elements.push(format!(
            "[[medium]]\nname = 'lan'\nkind = 'half-duplex'\nrate = '1Mbit/s'\nstations = ['n{lan}', 'h3', 'h0']\n"
        ));
        for (index, (from, to, count, each)) in ways.into_iter().enumerate() {
            let to = if from == to { (to + 1) % 4 } else { to };
            let second = (0..4).find(|host| *host != from && *host != to).unwrap_or(from);
            let from = match each {
                true => format!("from_each = ['h{from}', 'h{second}']"),
                false => format!("from = 'h{from}'"),
            };
            let name = index * 5 % 7;
            elements.push(traffic(&format!("t{name}-{index}"), &format!("{from}\nto = 'h{to}'\ncount = {count}")));
        }
        Plan { elements }
    })
}

/// What engines agree on, by names alone: of each flow its ends, its lanes with who hears them, and its circuit.
fn agreed(network: &Network<'_>) -> BTreeMap<(String, u32), String> {
    let scenario = network.scenario();
    let flows = scenario.traffic.iter().enumerate();
    let flows = flows.flat_map(|(index, it)| (0..it.count).map(move |flow| (index, flow)));
    flows
        .map(|(index, flow)| {
            let Way { from, to, there, back, .. } = network.way(index, flow);
            let ends = [from, to].map(|&host| &*scenario.hosts[host].name).join(" to ");
            let lanes = [there, back].map(|lanes| {
                let told = lanes.iter().map(|it| {
                    let lane = &network.lanes()[it.lane];
                    format!("{} ({}) to {}", lane.name(), lane.stream(), lane.ends(it.heard_by))
                });
                told.collect::<Vec<_>>().join(", ")
            });
            let circuit = network.circuit(index, flow);
            let name = scenario.traffic[index].name.clone();
            (
                (name, flow),
                format!("{circuit}: {ends} over {} and back over {}", lanes[0], lanes[1]),
            )
        })
        .collect()
}

/// Each lane begins where the one before has ended; the last ends at `to`.
fn joined<'a>(network: &Network<'a>, from: &'a str, crossed: &[Crossing], to: &'a str) -> bool {
    let mut at = from;
    for it in crossed {
        let lane = &network.lanes()[it.lane];
        if lane.begins() != at || matches!(lane, Lane::Station { .. }) != it.heard_by.is_some() {
            return false;
        }
        at = lane.ends(it.heard_by);
    }
    at == to
}

/// Every backplane of a node is crossed once for each time that a way goes through the node.
fn backplanes_crossed(network: &Network<'_>, crossed: &[Crossing]) -> bool {
    let lane = |it: &Crossing| network.lanes()[it.lane];
    let limited = |name: &str| {
        network.scenario().nodes.iter().any(|node| node.name == name && node.backplane.is_some())
    };
    let through = crossed.iter().filter(|it| !matches!(lane(it), Lane::Backplane { .. }));
    let asked = through.filter(|it| limited(lane(it).ends(it.heard_by))).count();
    asked == crossed.iter().filter(|it| matches!(lane(it), Lane::Backplane { .. })).count()
}

proptest! {
    #[test]
    fn every_way_joins_up(plan in plans()) {
        let scenario = scenario(&plan.elements.concat());
        let network = Network::of(&scenario).unwrap();
        prop_assert!(!network.ways().is_empty());
        for way in network.ways() {
            let host = |host: usize| &*scenario.hosts[host].name;
            let Way { from, to, there, back, traffic } = way;
            prop_assert_eq!(host(*to), &scenario.traffic[*traffic].to);
            prop_assert!(joined(&network, host(*from), there, host(*to)), "{:?}", way);
            prop_assert!(joined(&network, host(*to), back, host(*from)), "{:?}", way);
            prop_assert!(backplanes_crossed(&network, there) && backplanes_crossed(&network, back));
        }
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            for flow in 0..traffic.count {
                let way = network.way(index, flow);
                prop_assert_eq!(&*scenario.hosts[way.from].name, traffic.source(flow));
                prop_assert_eq!(way.traffic, index);
            }
        }
    }

    #[test]
    fn the_order_of_declarations_changes_no_way_name_or_circuit(
        (plan, permuted) in plans().prop_flat_map(|plan| {
            let permuted = Just(plan.elements.clone()).prop_shuffle();
            (Just(plan), permuted)
        }),
    ) {
        let (one, other) = (scenario(&plan.elements.concat()), scenario(&permuted.concat()));
        let (one, other) = (Network::of(&one).unwrap(), Network::of(&other).unwrap());
        prop_assert_eq!(agreed(&one), agreed(&other));
        let ranked = |network: &Network<'_>| -> Vec<String> {
            let links = &network.scenario().links;
            network.links().indices().map(|index| links[index].name.clone()).collect()
        };
        prop_assert_eq!(ranked(&one), ranked(&other));
    }
}

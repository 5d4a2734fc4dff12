//! Datagrams at a constant rate.

use crate::bucket;
use crate::flow::{Flow, alongside};
use crate::formula::general::{batch_wait, paced_wait, utilisation_ppm};
use crate::group::stage_name;
use crate::listed::{loss, no_room};
use crate::medium::{self, Channel};
use crate::message::{Terms, one_way};
use crate::prediction::{Figure, Prediction, Term, What};
use crate::streams;
use crate::talk::Talk;
use crate::throughput::Throughput;
use crate::way::Resource;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Cause, Rate, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Traffic, Transport, Workload};

const DD1: (&str, &str) = (
    "utilisation = Σ service time of the flows / interval",
    "D/D/1: constant arrivals, constant service",
);

/// The delay of datagrams of `size` bytes at `rate`, and how busy they keep the way.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    network: &Network<'_>,
    index: usize,
    (size, rate, duration): (u32, Rate, Span),
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let traffic = &network.scenario().traffic[index];
    let mut flows = Flow::all(network, index)?;
    side_by_side(&mut flows);
    covered(network, traffic, &flows)?;
    let interval = Throughput::from(rate).time_for(u64::from(size));
    let opened = flows.iter().map(|flow| bucket::opened(network, flow.clone()));
    let opened: Vec<_> = opened.collect();
    opened.iter().try_for_each(|flow| window_suffices(flow, size, interval))?;
    if let Some(channel) = channel(&flows)? {
        flows.iter().find_map(|flow| flow.uncovered(network)).map_or(Ok(()), Err)?;
        let paced = medium::Paced { network, index, size, interval, duration };
        return medium::paced(paced, &flows, channel, list, notes);
    }
    let (service, resource) = busiest(&flows, size).max(busiest(&opened, size));
    let make = |what, value, terms| Prediction {
        traffic: traffic.name.clone(),
        size: u64::from(size),
        what,
        value,
        terms,
    };
    let place = stage_name(network, resource);
    let term = utilisation(&place, service, interval);
    list.push(make(What::Utilisation, term.value, vec![term]));
    accompanied(network, index, &flows)?;
    if paced_wait(service, interval).is_none() {
        return Err(format!("overload: {place} is asked for more than it can carry"));
    }
    let flows = opened;
    overflow(network, &flows, size).map_or(Ok(()), Err)?;
    let streams::Through { waits, policed } = streams::through(network, traffic, &flows, interval)?;
    if let Some((rate, term, text)) = partly(network, &flows[0], policed, (size, interval)) {
        list.push(make(What::Throughput, Figure::Rate(rate), vec![term]));
        notes.push(Note::of_traffic(&traffic.name, NoteKind::Assumed, text));
    }
    let (service, resource) = busiest(&flows, size);
    let place = stage_name(network, resource);
    if flows.iter().any(|flow| flow.route.from != flows[0].route.from) {
        let (what, terms) = apart(&flows, (size, &place), |text| {
            notes.push(Note::of_traffic(&traffic.name, NoteKind::Assumed, text));
        });
        list.push(make(what, Figure::Time(terms.total()), terms.0));
        return Ok(());
    }
    let service = service.scaled(1, flows.len() as u64);
    let terms = match waits {
        Some(wait) => for_tokens(&flows[0], size, wait),
        None => together(traffic, &flows, size, (service, interval), (resource, &place))?,
    };
    list.push(make(What::Delay, Figure::Time(terms.total()), terms.0));
    Ok(())
}

/// Whether formulas know what happens to the datagrams on their ways. Losses leave the others' delay as it is if none waits for
/// another, and nothing comes back.
///
/// # Errors
/// What they do not know.
fn covered(network: &Network<'_>, traffic: &Traffic, flows: &[Flow<'_>]) -> Result<(), String> {
    let lone = flows.len() == 1 && is_one_way(traffic);
    let some = |flow: &Flow<'_>| loss(network, &flow.route.there) < 1.0;
    if lone && flows.iter().all(|it| it.uncovered_but_loss(network).is_none() && some(it)) {
        return Ok(());
    }
    flows.iter().find_map(|flow| flow.uncovered_but_buckets(network)).map_or(Ok(()), Err)
}

/// What comes through of a flow, with its term and a note, if a policer drops some of it or lines lose some.
fn partly(
    network: &Network<'_>,
    flow: &Flow<'_>,
    policed: Option<streams::Policed>,
    (size, interval): (u32, Span),
) -> Option<(Throughput, Term, String)> {
    if let Some(policed) = policed {
        let (rate, term) = policed.carried(size);
        return Some((rate, term, policed.told()));
    }
    let lost = loss(network, &flow.route.there);
    let offered = Throughput::over(size.into(), interval).millibytes_per_second();
    let rate = Throughput::from_millibytes_per_second((offered as f64 * (1.0 - lost)) as u64);
    let term = Term {
        name: "what is not lost".into(),
        place: String::new(),
        cause: None,
        formula: "size / interval × Π(1 − p)",
        numbers: format!("{size} / {interval} × {:.6}", 1.0 - lost),
        value: Figure::Rate(rate),
        source: DD1.1,
    };
    let text = format!(
        "{:.2} % of the datagrams are lost; the delay is that of those which come",
        100.0 * lost
    );
    (lost > 0.0).then_some((rate, term, text))
}

/// How busy datagrams keep a stage that each takes so long, as a term.
fn utilisation(place: &str, service: Span, interval: Span) -> Term {
    Term {
        name: "the busiest stage".into(),
        place: place.into(),
        cause: None,
        formula: DD1.0,
        numbers: format!("{service} / {interval}"),
        value: Figure::Share(utilisation_ppm(service, interval)),
        source: DD1.1,
    }
}

/// The delay of flows that have one way, each of which takes `service` at its busiest stage.
fn together(
    traffic: &Traffic,
    flows: &[Flow<'_>],
    size: u32,
    (service, interval): (Span, Span),
    (resource, place): (Resource, &str),
) -> Result<Terms, String> {
    let count = flows.len() as u64;
    let wait = collisions(traffic, count, service, interval)?
        + in_pieces(&flows[0], size, (count, service, resource), traffic);
    let mut terms = Terms::default();
    one_way(&mut terms, &flows[0].there, size);
    let numbers = format!("({count} − 1)/2 × {service}, or longer in pieces");
    let name = ("behind datagrams of the same instant", "(n − 1)/2 × service time", DD1.1);
    terms.add(name, place, Cause::Queue, wait, numbers);
    Ok(terms)
}

/// The delay of flows that have one way, whose datagrams wait so long for each other and for tokens.
fn for_tokens(flow: &Flow<'_>, size: u32, wait: Span) -> Terms {
    let mut terms = Terms::default();
    one_way(&mut terms, &flow.there, size);
    let place = flow.there.way.stages.iter().find(|stage| stage.is_held());
    let formula = "mean of max(D(k−1), (k × packet − burst) / rate) + line, less the line";
    let name = ("behind datagrams of the same instant", formula, "RFC 2697 §3");
    let place = place.map_or("", |stage| stage.place.as_str());
    terms.add(name, place, Cause::Queue, wait, wait.to_string());
    terms
}

/// What becomes of datagrams of one instant, one of each flow, that do not all find room in front of a line. Where their instants
/// lie apart, or come apart on lines before, fewer wait.
fn overflow(network: &Network<'_>, flows: &[Flow<'_>], size: u32) -> Option<String> {
    let traffic = &network.scenario().traffic[flows[0].traffic];
    if !traffic.stagger.is_zero() {
        return None;
    }
    let mut users: BTreeMap<Resource, u64> = BTreeMap::new();
    for stage in flows.iter().flat_map(|flow| &flow.there.way.stages) {
        *users.entry(stage.resource).or_default() += 1;
    }
    flows.iter().find_map(|flow| no_room_for(network, &flow.there, size, &users))
}

/// The same of those that meet the datagrams of one flow. So many flows cross each stage.
fn no_room_for(
    network: &Network<'_>,
    talk: &Talk<'_>,
    size: u32,
    users: &BTreeMap<Resource, u64>,
) -> Option<String> {
    let packets = talk.speech.packets(size.min(talk.speech.block));
    let own = users[&talk.way.stages.first()?.resource];
    let bytes = packets.iter().map(|packet| packet.bytes).max()?;
    let mut slowest = talk.writing(size).max(talk.host_send(size)).max(talk.board_send(size));
    talk.way.stages.iter().find_map(|stage| {
        let (busy, before) = (stage.busy(&packets), slowest);
        slowest = slowest.max(busy);
        let behind = users[&stage.resource].saturating_sub(1);
        // Those of one host come as the slowest stage before lets them.
        let gone = if own == behind + 1 { before.scaled(behind, 1) } else { Span::ZERO };
        let waiting = behind.saturating_sub(gone.as_nanos() / busy.as_nanos().max(1));
        let waiting = waiting * packets.len() as u64;
        (waiting > 0 && busy > before)
            .then(|| no_room(network, stage.resource, (waiting, bytes), busy.scaled(waiting, 1)))?
    })
}

/// The shared channel of the flows, if any of them crosses one.
///
/// # Errors
/// If they cross several.
fn channel(flows: &[Flow<'_>]) -> Result<Option<(Resource, Channel)>, String> {
    let mut crossed = flows.iter().filter_map(Flow::channel);
    let first = crossed.next();
    match first.is_some_and(|(first, _)| crossed.any(|(other, _)| other != first)) {
        true => Err("paced flows over several shared media".into()),
        false => Ok(first),
    }
}

/// The delay of flows with ways of their own: in the mean if they meet nowhere, else at most. How long they wait for each other
/// depends on how their instants lie where they meet: a datagram waits at most once for each of the others.
fn apart(
    flows: &[Flow<'_>],
    (size, busiest): (u32, &str),
    mut told: impl FnMut(String),
) -> (What, Terms) {
    let demands: Vec<_> = flows.iter().map(|flow| flow.there.demands_written(size)).collect();
    let all = summed(&demands);
    let each = flows.iter().zip(&demands).map(|(flow, own)| {
        let mut terms = Terms::default();
        one_way(&mut terms, &flow.there, size);
        let others = own.iter().map(|(stage, &span)| all[stage].saturating_sub(span)).sum();
        (terms, others, flow.there.way.to_slots())
    });
    let mut each: Vec<(Terms, Span, Span)> = each.collect();
    let mean = |of: &dyn Fn(&(Terms, Span, Span)) -> Span| {
        each.iter().map(of).sum::<Span>().scaled(1, each.len() as u64)
    };
    let least = mean(&|(terms, _, slots)| terms.total().saturating_sub(*slots));
    let most = mean(&|(terms, others, slots)| terms.total() + *others + *slots);
    if each.iter().all(|(_, others, _)| others.is_zero()) {
        let totals = || each.iter().map(|(terms, ..)| terms.total());
        let (shortest, longest) = (totals().min(), totals().max());
        if let (Some(shortest), Some(longest)) = (shortest, longest)
            && shortest < longest
        {
            told(format!("the delay is the mean of its flows, which take {shortest} to {longest}"));
        }
        return (What::Delay, Terms::mean(each.into_iter().map(|(terms, ..)| terms).collect()));
    }
    told(format!(
        "all is carried, and the mean delay is between {least} and {most}: how long the flows wait for each other where their ways meet depends on how their instants lie"
    ));
    each.sort_by_key(|(terms, others, slots)| terms.total() + *others + *slots);
    let Some((mut terms, others, slots)) = each.pop() else {
        return (What::Delay, Terms::default());
    };
    let name = (
        "others' datagrams, at most",
        "Σ of the stages it shares: Σ service time of each other flow",
        DD1.1,
    );
    terms.add(name, busiest, Cause::Queue, others + slots, (others + slots).to_string());
    (What::DelayAtMost, terms)
}

/// Marks the stages that several flows cross.
fn side_by_side(flows: &mut [Flow<'_>]) {
    let mut users: BTreeMap<Resource, usize> = BTreeMap::new();
    for flow in flows.iter() {
        let stages: BTreeSet<Resource> =
            flow.there.way.stages.iter().map(|it| it.resource).collect();
        stages.into_iter().for_each(|stage| *users.entry(stage).or_default() += 1);
    }
    for stage in flows.iter_mut().flat_map(|flow| &mut flow.there.way.stages) {
        stage.beside = users[&stage.resource] > 1;
    }
}

/// What all flows together ask of each stage.
fn summed(demands: &[BTreeMap<Resource, Span>]) -> BTreeMap<Resource, Span> {
    let mut all: BTreeMap<Resource, Span> = BTreeMap::new();
    for (&stage, &span) in demands.iter().flatten() {
        *all.entry(stage).or_default() += span;
    }
    all
}

/// The longest service of all flows' datagrams together.
fn busiest(flows: &[Flow<'_>], size: u32) -> (Span, Resource) {
    let demands: Vec<_> = flows.iter().map(|flow| flow.there.demands_written(size)).collect();
    let longest = summed(&demands).into_iter().max_by_key(|&(_, span)| span);
    longest.map_or((Span::ZERO, flows[0].there.way.stages[0].resource), |(r, span)| (span, r))
}

/// Fails if anything else is on the same stages.
fn accompanied(network: &Network<'_>, index: usize, flows: &[Flow<'_>]) -> Result<(), String> {
    let stages = |talk: &Talk<'_>| -> BTreeSet<Resource> {
        let hosts = talk.demands_written(1).into_keys();
        let lines = talk.way.stages.iter().filter(|stage| !stage.is_free());
        lines.map(|stage| stage.resource).chain(hosts).collect()
    };
    let own: BTreeSet<Resource> = flows.iter().flat_map(|flow| stages(&flow.there)).collect();
    for other in alongside(network, index) {
        let one_way = is_one_way(&network.scenario().traffic[other]);
        let meets = |flow: &Flow<'_>| {
            let back = if one_way { BTreeSet::new() } else { stages(&flow.back) };
            stages(&flow.there).union(&back).any(|stage| own.contains(stage))
        };
        if Flow::all(network, other)?.iter().any(meets) {
            return Err(format!(
                "other traffic on the same lines ({})",
                network.scenario().traffic[other].name
            ));
        }
    }
    Ok(())
}

/// Whether nothing comes back: neither answers of the application nor of the protocol.
fn is_one_way(traffic: &Traffic) -> bool {
    let is_paced = matches!(traffic.workload, Workload::Paced { .. });
    is_paced && matches!(*traffic.transport, Transport::Udp | Transport::Datagram)
}

/// Whether, with a window, answers come soon enough to keep the pace.
fn window_suffices(flow: &Flow<'_>, size: u32, interval: Span) -> Result<(), String> {
    let talk = &flow.there;
    let Some(outstanding) = talk.speech.outstanding else { return Ok(()) };
    let sizes = talk.speech.requests(size, &talk.from.0.interface.split);
    let answers: Span = sizes.iter().flatten().map(|&data| talk.block(data).answered).sum();
    let sustained = answers.scaled(1, u64::from(outstanding)) <= interval;
    sustained.then_some(()).ok_or_else(|| "a window too small for the pace".to_string())
}

/// What datagrams of the same instant wait besides if a line sends them in turn piece by piece: each waits for all pieces of
/// the others but the last ones, of which it waits for half in the mean.
fn in_pieces(
    flow: &Flow<'_>,
    size: u32,
    (count, service, resource): (u64, Span, Resource),
    traffic: &Traffic,
) -> Span {
    let stage = flow.there.way.stages.iter().find(|stage| stage.resource == resource);
    let bytes = flow.there.speech.packets(size).iter().map(|packet| packet.bytes).sum::<u32>();
    let cut = stage.and_then(|stage| stage.cut).filter(|&cut| cut < bytes);
    match cut {
        Some(cut) if traffic.stagger.is_zero() => {
            let last = (bytes - 1) % cut.max(1) + 1;
            let before = service.scaled(u64::from(bytes - last), u64::from(bytes));
            before.scaled(count - 1, 2)
        }
        _ => Span::ZERO,
    }
}

/// The mean wait of one flow's datagrams behind those of the others.
fn collisions(
    traffic: &Traffic,
    count: u64,
    service: Span,
    interval: Span,
) -> Result<Span, String> {
    let apart = traffic.stagger;
    let clear = apart.scaled(count - 1, 1) + service <= interval;
    match count {
        1 => Ok(Span::ZERO),
        _ if apart.is_zero() => Ok(batch_wait(count, service)),
        _ if apart >= service && clear => Ok(Span::ZERO),
        _ => Err(format!("the phases of {count} paced flows {apart} apart")),
    }
}

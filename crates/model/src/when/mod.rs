//! When traffic is under way. Formulas take all flows to be there from first to last; where starts or ends lie apart, their
//! course is followed, and each traffic is predicted beside those that are there with it.

mod backlog;
mod clock;
mod told;

use crate::engine::{Found, found};
use crate::flow::is_bulk;
use crate::known::Known;
use crate::prediction::{Prediction, What};
use crate::tcp::Joins;
use clock::{Begins, Member, Plan, State, Work, follow};
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Scenario, Start, Traffic, Transport, Workload};

/// Starts, and ends, that lie apart by no more of a work than this are as one (a choice).
const AS_ONE: f64 = 0.02;
/// Predictions of one traffic beside others that are made for a course at most, and flows that are followed (choices: one
/// takes milliseconds).
const MOST_LOOKS: usize = 1000;
const MOST_FLOWS: usize = 256;
/// Without end: the repetitions of a traffic that ends with another.
const ENDLESS: u32 = u32::MAX;

/// What is found if starts are heeded, given what is found of all traffic together.
pub(crate) fn heeded(network: &Network<'_>, together: Vec<Found>) -> Vec<Found> {
    if !apart(network.scenario(), &together) {
        return together;
    }
    let plans = plans(network.scenario());
    if plans.len() > MOST_FLOWS {
        return together.into_iter().map(at_once).collect();
    }
    let mut scenes = Scenes::new(network, &plans, &together);
    let stop = network.scenario().stop_after.as_secs_f64();
    let course = follow(&plans, stop, &mut scenes);
    if scenes.looks > MOST_LOOKS {
        return together.into_iter().map(at_once).collect();
    }
    let heeded = |(index, whole)| scenes.told(index, &course).unwrap_or(whole);
    let mut heeded: Vec<Found> = together.into_iter().enumerate().map(heeded).collect();
    backlog::told(network, &mut heeded);
    heeded
}

fn at_once(mut found: Found) -> Found {
    let text = "all flows are taken to be there from first to last; starts and ends that lie apart are left out, as there are many";
    if let Some(first) = found.list.first() {
        found.notes.push(Note::of_traffic(&first.traffic, NoteKind::Assumed, text));
    }
    found
}

/// Whether starts or ends lie apart by more than a trifle of some work, or hang on others' work.
fn apart(scenario: &Scenario, together: &[Found]) -> bool {
    let at = |traffic: &Traffic| match traffic.start {
        Start::At(at) => Some(at.as_secs_f64()),
        _ => None,
    };
    let Some(first) = scenario.traffic.iter().map(at).collect::<Option<Vec<f64>>>() else {
        return true;
    };
    let stop = scenario.stop_after.as_secs_f64();
    let lengths = scenario.traffic.iter().zip(together).map(|(it, found)| length(it, found));
    let lengths: Vec<Option<f64>> = lengths.collect();
    let last = |(at, traffic): (&f64, &Traffic)| {
        at + traffic.stagger.scaled(u64::from(traffic.count.max(1)) - 1, 1).as_secs_f64()
    };
    let last: Vec<f64> = first.iter().zip(&scenario.traffic).map(last).collect();
    let shortest = lengths.iter().copied().flatten().fold(stop, f64::min);
    let mut apart = between(&first, &last);
    // Of one that nothing is found of, nobody knows the end.
    if let Some(lengths) = lengths.into_iter().collect::<Option<Vec<f64>>>() {
        let ends = |begin: &[f64]| -> Vec<f64> {
            begin.iter().zip(&lengths).map(|(begin, lasts)| (begin + lasts).min(stop)).collect()
        };
        apart = apart.max(between(&ends(&first), &ends(&last)));
    }
    apart > AS_ONE * shortest
}

/// What lies between the least and the most.
fn between(least: &[f64], most: &[f64]) -> f64 {
    let (least, most) =
        (least.iter().copied().reduce(f64::min), most.iter().copied().reduce(f64::max));
    most.zip(least).map_or(0.0, |(most, least)| most - least)
}

/// How many seconds a traffic's flow is under way by what was found; `None` if nothing was.
fn length(traffic: &Traffic, found: &Found) -> Option<f64> {
    if repeats(&traffic.workload) == Some(ENDLESS) {
        return Some(f64::INFINITY);
    }
    let each = works(traffic).into_iter().enumerate().map(|(place, work)| match work {
        Work::Lasts(seconds) => Some(seconds),
        Work::Takes => takes(traffic, place, found),
    });
    each.sum::<Option<f64>>()
}

/// What the flows of a traffic do.
fn works(traffic: &Traffic) -> Vec<Work> {
    let lasts = |span: Span| {
        Work::Lasts(match span {
            Span::MAX => f64::INFINITY,
            span => span.as_secs_f64(),
        })
    };
    match &traffic.workload {
        Workload::Bulk { .. } | Workload::Push { .. } => vec![Work::Takes],
        Workload::Interactive { sizes, .. } => vec![Work::Takes; sizes.len()],
        Workload::TimedEcho { sizes, duration } | Workload::TimedTransfer { sizes, duration } => {
            vec![lasts(*duration); sizes.len()]
        }
        Workload::Greedy { duration, .. } | Workload::Paced { duration, .. } => {
            vec![lasts(*duration)]
        }
    }
}

/// How often a workload is repeated, if it has no stated time.
fn repeats(workload: &Workload) -> Option<u32> {
    match *workload {
        Workload::Bulk { repeat, .. }
        | Workload::Push { repeat, .. }
        | Workload::Interactive { repeat, .. } => Some(repeat),
        _ => None,
    }
}

/// How many seconds a work takes by what was found; `None` if it has no end, or nothing was.
fn takes(traffic: &Traffic, work: usize, found: &Found) -> Option<f64> {
    let measured = |is: &dyn Fn(&Prediction) -> bool| {
        let own = found.list.iter().find(|it| it.what.is_measured() && is(it))?;
        own.value.time()
    };
    match &traffic.workload {
        Workload::Bulk { repeat, .. } | Workload::Push { repeat, .. } if *repeat < ENDLESS => {
            let transfer = measured(&|it| it.what == What::Transfer)?;
            Some(f64::from(*repeat) * transfer.as_secs_f64())
        }
        Workload::Interactive { sizes, repeat, every, .. } if *repeat < ENDLESS => {
            let round = measured(&|it| it.size == u64::from(sizes[work]))?;
            Some(f64::from(*repeat) * round.max(*every).as_secs_f64())
        }
        _ => None,
    }
}

/// The flows of all traffics, in the order in which these are declared.
fn plans(scenario: &Scenario) -> Vec<Plan> {
    let place = |name: &String| scenario.traffic.iter().position(|it| it.name == *name);
    let mut plans = Vec::new();
    for (index, traffic) in scenario.traffic.iter().enumerate() {
        for flow in 0..traffic.count.max(1) {
            let later = traffic.stagger.scaled(u64::from(flow), 1).as_secs_f64();
            let begins = match &traffic.start {
                Start::At(at) => Begins::At(at.as_secs_f64() + later),
                Start::AfterEnd(name) => match place(name) {
                    Some(traffic) => Begins::AfterEnd { traffic, later },
                    None => Begins::At(later),
                },
                Start::AfterBytes(name, bytes) => match place(name) {
                    Some(other) => {
                        let share = share(&scenario.traffic[other], bytes.bytes());
                        Begins::AfterShare { traffic: other, share, later }
                    }
                    None => Begins::At(later),
                },
            };
            let until = traffic.until.as_ref().and_then(place);
            plans.push(Plan { traffic: index, begins, until, works: works(traffic) });
        }
    }
    plans
}

/// The share of a traffic's work in which so many bytes are delivered, if it has an end.
fn share(traffic: &Traffic, bytes: u64) -> Option<f64> {
    match &traffic.workload {
        Workload::Bulk { bytes: all, repeat, .. } | Workload::Push { bytes: all, repeat, .. }
            if *repeat < ENDLESS =>
        {
            let all = all.bytes().saturating_mul(u64::from(*repeat)).max(1);
            Some((bytes as f64 / all as f64).min(1.0))
        }
        _ => None,
    }
}

/// The flows of a traffic that are there together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Present {
    count: u32,
    /// From which hosts, if each has one.
    hosts: Vec<String>,
    /// How they began.
    joins: BTreeSet<Joins>,
}

/// Who is there, by traffic.
type Company = BTreeMap<usize, Present>;
/// What is found of a traffic's flows that began in a way.
type Scene = BTreeMap<(usize, Joins), Found>;

/// What is found beside those who are there, each company looked at once.
struct Scenes<'a> {
    network: &'a Network<'a>,
    plans: &'a [Plan],
    /// Of each flow its number among its traffic's.
    numbers: Vec<u32>,
    known: BTreeMap<Company, Scene>,
    /// Predictions that were made, or would have been.
    looks: usize,
}

impl<'a> Scenes<'a> {
    fn new(network: &'a Network<'a>, plans: &'a [Plan], together: &[Found]) -> Scenes<'a> {
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        let number = |plan: &Plan| {
            let count = counts.entry(plan.traffic).or_default();
            *count += 1;
            *count - 1
        };
        let numbers = plans.iter().map(number).collect();
        let mut scenes = Scenes { network, plans, numbers, known: BTreeMap::new(), looks: 0 };
        let all = (0..plans.len()).map(|flow| Member { flow, joins: Joins::Together });
        let all = scenes.company(&all.collect());
        let known = together.iter().cloned().enumerate();
        let known = known.map(|(index, found)| ((index, Joins::Together), found)).collect();
        scenes.known.insert(all, known);
        scenes
    }

    fn company(&self, state: &State) -> Company {
        let mut company = Company::new();
        for &Member { flow, joins } in state {
            let traffic = &self.network.scenario().traffic[self.plans[flow].traffic];
            let present = company.entry(self.plans[flow].traffic).or_default();
            present.count += 1;
            present.joins.insert(joins);
            if !traffic.from_each.is_empty() {
                let host = self.numbers[flow] as usize % traffic.from_each.len();
                present.hosts.push(traffic.from_each[host].clone());
            }
        }
        company
    }

    /// What is found of a flow in a state in which it is there.
    fn found(&mut self, state: &State, member: Member) -> Option<&Found> {
        let company = self.company(state);
        if !self.known.contains_key(&company) {
            self.looks += company.values().map(|present| present.joins.len()).sum::<usize>();
            if self.looks > MOST_LOOKS {
                return None;
            }
            let found = beside(self.network.scenario(), &company);
            self.known.insert(company.clone(), found);
        }
        self.known[&company].get(&(self.plans[member.flow].traffic, member.joins))
    }
}

impl clock::Found for Scenes<'_> {
    fn takes(&mut self, state: &State, member: Member, work: usize) -> Option<f64> {
        let traffic = &self.network.scenario().traffic[self.plans[member.flow].traffic];
        takes(traffic, work, self.found(state, member)?)
    }

    fn fills(&mut self, state: &State, member: Member, newcomer: usize) -> Option<f64> {
        let newcomer = &self.network.scenario().traffic[self.plans[newcomer].traffic];
        let greedy = is_bulk(newcomer) && matches!(*newcomer.transport, Transport::Tcp(_));
        let found = self.found(state, member).filter(|_| greedy)?;
        found.fills.map(Span::as_secs_f64)
    }
}

/// What is found of each traffic of a company that is there from first to last.
fn beside(scenario: &Scenario, company: &Company) -> Scene {
    let there = |index: usize| company.contains_key(&index);
    let is_there = |name: &String| {
        scenario.traffic.iter().enumerate().any(|(at, it)| it.name == *name && there(at))
    };
    let of = |(&index, present): (&usize, &Present)| {
        let mut traffic = scenario.traffic[index].clone();
        (traffic.count, traffic.from_each) = (present.count, present.hosts.clone());
        traffic.start = Start::At(Span::ZERO);
        traffic.until = traffic.until.filter(&is_there);
        traffic
    };
    let traffic = company.iter().map(of).collect();
    let part = Scenario { traffic, clusters: Vec::new(), ..scenario.clone() };
    let Ok(network) = Network::of(&part) else { return Scene::new() };
    let known = Known::new(&network);
    let each = company.iter().enumerate();
    let ways =
        each.flat_map(|(at, (&index, it))| it.joins.iter().map(move |&way| (at, index, way)));
    ways.map(|(at, index, way)| ((index, way), found(&known, at, way))).collect()
}

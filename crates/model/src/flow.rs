//! The scenario's flows, each with its two directions, and what no formula covers of them.

use crate::speech::Speech;
use crate::talk::Talk;
use crate::way::{Line, Way, line, line_name};
use trunkline_path::LinkSpec;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Host, Over, Route, Scenario, Start, Traffic, Workload};

/// A flow of the scenario.
#[derive(Debug, Clone)]
pub(crate) struct Flow<'a> {
    /// Index of its traffic.
    pub traffic: usize,
    pub there: Talk<'a>,
    pub back: Talk<'a>,
    pub route: Route,
}

fn host<'a>(scenario: &'a Scenario, name: &str) -> Result<(&'a Host, usize), String> {
    let index = scenario.hosts.iter().position(|host| host.name == name);
    let index =
        index.ok_or_else(|| format!("there is no host '{name}': add a [[host]] of that name"))?;
    Ok((&scenario.hosts[index], index))
}

impl<'a> Flow<'a> {
    /// Flow number `number` of traffic number `traffic`.
    pub fn new(scenario: &'a Scenario, traffic: usize, number: u32) -> Result<Flow<'a>, String> {
        let description = &scenario.traffic[traffic];
        let from = host(scenario, description.source(number))?;
        let to = host(scenario, &description.to)?;
        let route = scenario.route(description, number).map_err(|error| error.to_string())?;
        no_medium(scenario, &route)?;
        let there = Way::new(scenario, &route.there, to.1);
        let back = Way::new(scenario, &route.back, from.1);
        let talk = |from, to, transport, way: &Way, back: &Way| Talk {
            from,
            to,
            speech: Speech::of(transport, scenario.mtu),
            way: way.clone(),
            back: back.clone(),
        };
        Ok(Flow {
            traffic,
            there: talk(from, to, &description.transport, &there, &back),
            back: talk(to, from, &description.reply_transport, &back, &there),
            route,
        })
    }

    /// Every flow of a traffic.
    pub fn all(scenario: &'a Scenario, traffic: usize) -> Result<Vec<Flow<'a>>, String> {
        let count = scenario.traffic[traffic].count.max(1);
        (0..count).map(|number| Flow::new(scenario, traffic, number)).collect()
    }

    /// The reason why no formula covers this flow, even with nothing else on the path.
    pub fn uncovered(&self, scenario: &Scenario) -> Option<String> {
        let loss = |link: &LinkSpec| (!lossless(link)).then_some("loss");
        self.uncovered_by(scenario, |link| loss(link).or_else(|| unpredictable(link)))
    }

    /// The same if the formula knows of losses that are independent of each other.
    pub fn uncovered_but_loss(&self, scenario: &Scenario) -> Option<String> {
        let loss = |link: &LinkSpec| {
            let independent = matches!(link.impairments.loss, LossModel::Bernoulli(_));
            (!independent).then_some("loss in bursts or by a trace")
        };
        self.uncovered_by(scenario, |link| loss(link).or_else(|| unpredictable(link)))
    }

    fn uncovered_by(
        &self,
        scenario: &Scenario,
        why: impl Fn(&LinkSpec) -> Option<&'static str>,
    ) -> Option<String> {
        let hops = self.route.there.iter().chain(&self.route.back);
        let mut lines = hops.filter_map(|hop| line(scenario, hop));
        let line = lines.find_map(|Line { link, reversed, spec }| {
            Some(format!("{} on {}", why(spec)?, line_name(scenario, link, reversed)))
        });
        line.or_else(|| [self.there.from.0, self.there.to.0].into_iter().find_map(disturbed))
    }
}

/// Formulas know no shared media.
fn no_medium(scenario: &Scenario, route: &Route) -> Result<(), String> {
    let media = route.there.iter().filter_map(|hop| match hop.over {
        Over::Medium { medium, .. } => Some(&scenario.media[medium].name),
        Over::Link { .. } => None,
    });
    media.into_iter().next().map_or(Ok(()), |name| Err(format!("the shared medium {name}")))
}

fn lossless(link: &LinkSpec) -> bool {
    matches!(&link.impairments.loss, LossModel::Bernoulli(chance) if chance.is_never())
}

/// The property of a link that no formula knows, loss apart.
fn unpredictable(link: &LinkSpec) -> Option<&'static str> {
    let effects = &link.impairments;
    [
        (!effects.bit_errors.is_never(), "bit errors"),
        (!effects.duplicate.is_never(), "duplication"),
        (effects.reorder.is_some(), "reordering"),
        (effects.jitter.is_some(), "jitter"),
        (link.trace.is_some(), "a delivery trace"),
        (link.discipline.assumptions().cap.is_some(), "a rate that the discipline holds"),
        (!link.schedule.steps.is_empty(), "a schedule of changes"),
    ]
    .into_iter()
    .find_map(|(present, name)| present.then_some(name))
}

fn disturbed(host: &Host) -> Option<String> {
    let other = host.processor.disturbance?;
    let happens = other.probability > 0.0 && !other.mean.is_zero();
    happens.then(|| format!("disturbances by other work on {}", host.name))
}

/// Whether it is a transfer that keeps its window or its bottleneck busy.
pub(crate) fn is_bulk(traffic: &Traffic) -> bool {
    matches!(
        traffic.workload,
        Workload::Bulk { .. }
            | Workload::TimedTransfer { .. }
            | Workload::Push { .. }
            | Workload::Greedy { .. }
    )
}

/// The traffics that may be under way while number `traffic` is: all but those that start after its
/// end or end before its start.
pub(crate) fn alongside(scenario: &Scenario, traffic: usize) -> Vec<usize> {
    let others = 0..scenario.traffic.len();
    let apart = |a: usize, b: usize| starts_after(scenario, a, b) || starts_after(scenario, b, a);
    others.filter(|&other| other != traffic && !apart(traffic, other)).collect()
}

/// Whether `later` starts only when `earlier` has ended, directly or by way of others.
fn starts_after(scenario: &Scenario, later: usize, earlier: usize) -> bool {
    let mut at = later;
    // No chain of starts is longer than the list of traffics.
    for _ in 0..scenario.traffic.len() {
        let (name, ended) = match &scenario.traffic[at].start {
            Start::At(_) => return false,
            Start::AfterBytes(name, _) => (name, false),
            Start::AfterEnd(name) => (name, true),
        };
        let Some(before) = scenario.traffic.iter().position(|t| &t.name == name) else {
            return false;
        };
        if ended && before == earlier {
            return true;
        }
        at = before;
    }
    false
}

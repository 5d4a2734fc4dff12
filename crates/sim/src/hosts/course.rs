//! The order of events: what waits for what, starts, ends, and whose end is whose.

use super::jobs::EndId;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use trunkline_scenario::{Network, Start, Traffic};

/// The course of a scenario's traffic. What happens to one of them is looked up here, so that a run of many takes no
/// longer for each than a run of few.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// By index. What is ready at the same instant goes by the order of names, so that that of declarations decides
    /// nothing.
    members: Vec<Member>,
    /// That for which others wait, or until whose end they go on.
    named: HashMap<String, usize>,
    /// Traffic that has not started, in the order of names.
    waiting: Vec<usize>,
    /// The number that are not over.
    going: usize,
}

#[derive(Debug, Default)]
struct Member {
    /// Its ends: senders with even numbers, their peers behind them.
    ends: Range<usize>,
    /// The traffic that goes on until its end, in the order of names.
    company: Vec<usize>,
    over: bool,
}

impl Course {
    pub fn new(network: &Network<'_>) -> Course {
        let traffic = &network.scenario().traffic;
        let order: Vec<usize> = network.traffic().indices().collect();
        let awaited: HashSet<&str> = traffic.iter().flat_map(awaited).collect();
        let known = std::iter::zip(traffic, 0..).filter(|(it, _)| awaited.contains(&*it.name));
        let named = known.map(|(it, index)| (it.name.clone(), index)).collect::<HashMap<_, _>>();
        let mut members: Vec<Member> = traffic.iter().map(|_| Member::default()).collect();
        for &index in &order {
            let until = traffic[index].until.as_ref().and_then(|name| named.get(name));
            until.into_iter().for_each(|&other| members[other].company.push(index));
        }
        Course { members, named, waiting: order, going: traffic.len() }
    }

    /// Its ends have these numbers.
    pub fn has_ends(&mut self, traffic: usize, ends: Range<usize>) {
        self.members[traffic].ends = ends;
    }

    /// The index of traffic that other traffic names.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.named.get(name).copied()
    }
    /// The numbers of its ends.
    pub fn ends(&self, traffic: usize) -> Range<usize> {
        self.members[traffic].ends.clone()
    }
    /// Its sending ends, flow by flow.
    pub fn senders(&self, traffic: usize) -> impl Iterator<Item = EndId> + use<> {
        self.ends(traffic).step_by(2).map(|end| EndId(end as u32))
    }
    /// The traffic that goes on until its end.
    pub fn company_of(&self, traffic: usize) -> Vec<usize> {
        self.members[traffic].company.clone()
    }

    /// What has not started: each is to be started or [waits](Course::waits) again.
    pub fn waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting)
    }
    /// It does not start yet.
    pub fn waits(&mut self, traffic: usize) {
        self.waiting.push(traffic);
    }
    /// It has started, or never will.
    pub fn starts_no_more(&mut self, traffic: usize) {
        self.waiting.retain(|&other| other != traffic);
    }

    /// It has ended, and is over with all that merely accompanies it.
    pub fn ended(&mut self, traffic: usize) {
        let mut ended = vec![traffic];
        while let Some(traffic) = ended.pop() {
            let member = &mut self.members[traffic];
            if !std::mem::replace(&mut member.over, true) {
                self.going -= 1;
                ended.extend(&member.company);
            }
        }
    }
    /// Whether all traffic is over.
    pub fn is_over(&self) -> bool {
        self.going == 0
    }
}

/// The traffic that this one names: for which it waits, and until whose end it goes on.
fn awaited(traffic: &Traffic) -> impl Iterator<Item = &str> {
    let before = match &traffic.start {
        Start::AfterBytes(other, _) | Start::AfterEnd(other) => Some(other),
        Start::At(_) => None,
    };
    before.into_iter().chain(&traffic.until).map(String::as_str)
}

//! The part of a scenario that one traffic's explanation needs: the traffic and those that overlap with it.

use crate::relax;
use trunkline_scenario::{Scenario, Start};

/// The traffic of index `subject` with those that overlap with it, and its new index.
pub(crate) fn focus(scenario: &Scenario, subject: usize) -> (Scenario, usize) {
    let rivals = rivals(scenario, subject);
    let others = (0..scenario.traffic.len()).filter(|at| *at != subject && !rivals.contains(at));
    let others: Vec<usize> = others.collect();
    let before = others.iter().filter(|&&other| other < subject).count();
    let mut focused = scenario.clone();
    relax::remove(&mut focused, &others);
    let subject = subject - before;
    end_together(&mut focused, subject);
    (focused, subject)
}

/// Everything ends with the traffic that is explained, or with the one that it accompanies: nothing that comes later is
/// in its figure.
fn end_together(scenario: &mut Scenario, subject: usize) {
    let leader = leader(scenario, subject);
    let name = scenario.traffic[leader].name.clone();
    let others = scenario.traffic.iter_mut().enumerate().filter(|(at, _)| *at != leader);
    others.for_each(|(_, traffic)| {
        traffic.until.get_or_insert_with(|| name.clone());
    });
}

/// The traffics that may be under way together with `subject`.
pub(crate) fn rivals(scenario: &Scenario, subject: usize) -> Vec<usize> {
    let apart =
        |other: usize| follows(scenario, subject, other) || follows(scenario, other, subject);
    (0..scenario.traffic.len()).filter(|&other| other != subject && !apart(other)).collect()
}

/// Whether `later` starts only when `earlier` has ended.
fn follows(scenario: &Scenario, later: usize, earlier: usize) -> bool {
    let mut at = later;
    // No chain is longer than there are traffics; one that bites its tail never starts.
    for _ in 0..scenario.traffic.len() {
        let Start::AfterEnd(name) = &scenario.traffic[at].start else { return false };
        let Some(next) = index_of(scenario, name) else { return false };
        if next == earlier {
            return true;
        }
        at = next;
    }
    false
}

fn index_of(scenario: &Scenario, name: &str) -> Option<usize> {
    scenario.traffic.iter().position(|traffic| traffic.name == name)
}

/// The traffic whose end ends the run that explains `subject`: itself, or the one that it accompanies.
pub(crate) fn leader(scenario: &Scenario, subject: usize) -> usize {
    let mut at = subject;
    for _ in 0..scenario.traffic.len() {
        let until = scenario.traffic[at].until.as_deref();
        match until.and_then(|name| index_of(scenario, name)) {
            Some(next) => at = next,
            None => return at,
        }
    }
    at
}

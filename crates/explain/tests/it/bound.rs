//! What binds the only traffic or cluster of a scenario, against the change itself.

use trunkline_engine::NoteKind;
use trunkline_explain::{Binding, Constraint, Explanation, Group, explain, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// What is told of the first traffic or cluster.
pub fn group(explanation: &Explanation) -> &Group {
    &explanation.traffic[0].groups[0]
}

/// Asserts that `constraint` binds, and that its last step is worth what `then` shows.
pub fn is_bound(it: &Scenario, constraint: Constraint, then: &Scenario) {
    let explanation = explain(it, &Simulator).unwrap();
    let found = group(&explanation);
    assert_eq!(found.binds, Binding::One(constraint), "{}", text(&explanation));
    let relaxed = found.relaxing(constraint).expect("what binds was relaxed");
    let promised = relaxed.steps.last().expect("a step").figure.seconds;
    let after = explain(then, &Simulator).unwrap();
    let brings = group(&after).figure().seconds;
    let off = promised / brings - 1.0;
    assert!(off.abs() < 0.01, "{promised} promised, {brings} brought: {}", text(&explanation));
    let unrun = explanation.notes.iter().find(|note| note.kind == NoteKind::Unavailable);
    assert_eq!(unrun, None);
}

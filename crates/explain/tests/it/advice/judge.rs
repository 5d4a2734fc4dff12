//! What changes bring, and whether `explain` says so.

use super::change::changes;
use super::draw::Drawn;
use std::collections::BTreeMap;
use std::fmt;
use trunkline_engine::NoteKind;
use trunkline_explain::{Binding, Constraint, Group, Options, explain_with};
use trunkline_sim::Simulator;

/// The least share of the time that a change has to save, by docs/explain.md.
const ENOUGH: f64 = 0.10;
/// Changes that save this share of what the best saves are equals, by docs/explain.md.
const EQUALS: f64 = 0.9;
/// Distance is told where it saves so many times what the best change does, by docs/explain.md.
const DISTANCE: f64 = 3.0;
/// How far a promised time may be from the one that the change brings.
const PROMISE: f64 = 0.10;

/// What was found out about one scenario.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub number: u64,
    pub family: &'static str,
    /// What holds the traffic up by construction.
    pub built: &'static str,
    /// What `explain` says first.
    pub told: String,
    /// What would have been right, the best first.
    pub right: Vec<&'static str>,
    /// What each change saves, the most first.
    pub saved: Vec<(&'static str, f64)>,
    /// The steps of the constraint told: promised and true seconds.
    pub promises: Vec<(String, f64, f64)>,
    /// Runs behind the explanation.
    pub runs: usize,
    pub was_cut: bool,
}

impl Verdict {
    pub fn is_right(&self) -> bool {
        self.right.iter().any(|right| *right == self.told)
    }

    pub fn is_as_built(&self) -> bool {
        self.told == self.built
    }

    pub fn keeps_promises(&self) -> bool {
        self.promises
            .iter()
            .all(|(_, promised, brought)| (promised / brought - 1.0).abs() <= PROMISE)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saved: Vec<String> = self
            .saved
            .iter()
            .map(|(name, saved)| format!("{name} {:.1} %", 100.0 * saved))
            .collect();
        write!(
            f,
            "{} {}: built {}, told {} after {} runs, right {}; saved: {}",
            self.number,
            self.family,
            self.built,
            self.told,
            self.runs,
            self.right.join(" or "),
            saved.join(", ")
        )?;
        for (step, promised, brought) in &self.promises {
            write!(f, "; {step}: promised {promised:.4e} s, brings {brought:.4e} s")?;
        }
        Ok(())
    }
}

/// Explains a scenario, makes every change itself, and compares. Runs are cut where they take more than `budget`
/// packets over links.
pub fn judge(drawn: &Drawn, budget: Option<u64>) -> Verdict {
    let paper = &drawn.paper;
    let as_rate = paper.falls_short();
    let before = paper.seconds(as_rate);
    let mut brought: Vec<(&'static str, &'static str, String, f64)> = Vec::new();
    for change in changes(paper) {
        let seconds = change.paper.seconds(as_rate);
        brought.push((change.constraint, change.place, change.step, seconds));
    }
    let mut saved: BTreeMap<&'static str, f64> = BTreeMap::new();
    for (constraint, _, _, seconds) in &brought {
        let best = saved.entry(constraint).or_insert(f64::MIN);
        *best = best.max(1.0 - seconds / before);
    }
    let mut saved: Vec<(&'static str, f64)> = saved.into_iter().collect();
    saved.sort_by(|a, b| b.1.total_cmp(&a.1));
    let options =
        budget.map_or(Options::default(), |budget| Options { budget, ..Options::default() });
    let options = Options { traffic: vec!["it".into()], ..options };
    let explanation = explain_with(&paper.scenario(), &Simulator, &options, &mut |_| {})
        .expect("it can be explained");
    let group = &explanation.traffic[0].groups[0];
    let was_cut = explanation.notes.iter().any(|note| note.kind == NoteKind::Cut);
    let told = told(&group.binds);
    Verdict {
        number: drawn.number,
        family: drawn.family,
        built: drawn.built,
        promises: promises(group, &told, &brought),
        told,
        right: right(&saved),
        saved,
        runs: explanation.runs,
        was_cut,
    }
}

/// What may be told first: the change that saves most, and its equals.
fn right(saved: &[(&'static str, f64)]) -> Vec<&'static str> {
    let of = |name: &str| saved.iter().find(|it| it.0 == name).map_or(0.0, |it| it.1);
    let near: Vec<_> =
        saved.iter().filter(|it| it.0 != "distance" && it.1 > ENOUGH).copied().collect();
    let most = near.first().map_or(0.0, |it| it.1);
    let distance = of("distance");
    if distance > ENOUGH && distance > DISTANCE * most {
        return vec!["distance"];
    }
    match near.is_empty() {
        true => vec!["nothing"],
        false => near.iter().filter(|it| it.1 >= EQUALS * most).map(|it| it.0).collect(),
    }
}

fn told(binding: &Binding) -> String {
    match binding {
        Binding::One(constraint) => name(*constraint),
        Binding::Two(one, other) => format!("{} and {}", name(*one), name(*other)),
        Binding::Nothing => "nothing".into(),
    }
}

fn name(constraint: Constraint) -> String {
    serde_json::to_value(constraint)
        .ok()
        .and_then(|it| it.as_str().map(str::to_string))
        .expect("a name")
}

/// The steps that are promised of what is told, beside what they bring.
fn promises(
    group: &Group,
    told: &str,
    brought: &[(&'static str, &'static str, String, f64)],
) -> Vec<(String, f64, f64)> {
    let mut all = Vec::new();
    for relaxed in group.relaxed.iter().filter(|it| name(it.constraint) == told) {
        for step in &relaxed.steps {
            let found = brought.iter().find(|(constraint, place, name, _)| {
                *constraint == told
                    && (place.is_empty() || *place == relaxed.place)
                    && *name == step.to
            });
            if let Some((_, _, _, seconds)) = found {
                all.push((format!("{} {}", relaxed.place, step.to), step.figure.seconds, *seconds));
            }
        }
    }
    all
}

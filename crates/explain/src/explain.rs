//! From a scenario to its explanation.

use crate::candidates::{Candidate, candidates};
use crate::cluster::{self, Explained};
use crate::constraint::Constraint;
use crate::decide::{ENOUGH, RungFigures, binding, is_news, ranked};
use crate::explanation::{
    Binding, Explanation, Group, Jump, PairRelaxed, Relaxed, TrafficExplanation,
};
use crate::figure::{Figures, Measure, Reading, figures};
use crate::focus::focus;
use crate::lengths::{self, BUDGET, Lengths, Measured};
use crate::rounds::{Rounds, rounds};
use crate::runner::run_all;
use crate::{ExplainError, jump, waterfall, words};
use trunkline_engine::{About, Engine, EngineError, Note, NoteKind, Run};
use trunkline_measure::{Keep, TrafficRun};
use trunkline_scenario::{Network, Scenario, Workload};

/// How an explanation is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Explain these traffics alone; all where it is empty.
    pub traffic: Vec<String>,
    /// Packets over links up to which a run is never cut short; `u64::MAX` runs everything at its full length.
    pub budget: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { traffic: Vec::new(), budget: BUDGET }
    }
}

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The traffic being explained.
    pub traffic: String,
    /// Runs done of this stage.
    pub done: usize,
    /// Runs of this stage.
    pub runs: usize,
}

/// Explains every traffic of a scenario by runs in `simulator`.
///
/// # Errors
/// Where the scenario cannot be simulated.
pub fn explain(scenario: &Scenario, simulator: &dyn Engine) -> Result<Explanation, ExplainError> {
    explain_with(scenario, simulator, &Options::default(), &mut |_| {})
}

/// The same, as `options` say; `tell` is called whenever a run is done.
///
/// # Errors
/// Where the scenario cannot be simulated, or has no traffic of a name that the options give.
pub fn explain_with(
    scenario: &Scenario,
    simulator: &dyn Engine,
    options: &Options,
    tell: &mut dyn FnMut(Stage),
) -> Result<Explanation, ExplainError> {
    let traffic = scenario.traffic.iter().map(|it| it.name.as_str());
    let known: Vec<&str> =
        traffic.chain(scenario.clusters.iter().map(|it| it.name.as_str())).collect();
    if let Some(name) = options.traffic.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(ExplainError::NoTraffic { name: name.clone(), known: known.join(", ") });
    }
    // Figures stand on samples, whatever the file wants of them in its results.
    let scenario = &Scenario { samples: Keep::default(), ..scenario.clone() };
    let whole = simulated(simulator, scenario)?;
    let mut explanation = Explanation {
        scenario: scenario.name.clone(),
        cell: scenario.cell.clone(),
        seed: scenario.seed.0,
        runs: 1,
        traffic: Vec::new(),
        notes: whole.notes.clone(),
    };
    let asked = |name: &String| options.traffic.is_empty() || options.traffic.contains(name);
    for (index, traffic) in scenario.traffic.iter().enumerate() {
        if asked(&traffic.name) {
            let mut case = Case::new(simulator, scenario, &whole, index, options)?;
            case.relax(tell);
            explanation.runs += case.runs;
            explanation.notes.extend(case.notes());
            explanation.traffic.push(case.explanation());
        }
    }
    for (index, _) in scenario.clusters.iter().enumerate().filter(|(_, it)| asked(&it.name)) {
        let explained = cluster::explained(simulator, (scenario, index), &whole, options, tell);
        if let Some(Explained { it, runs, notes }) = explained {
            explanation.runs += runs;
            explanation.notes.extend(notes);
            explanation.traffic.push(it);
        }
    }
    Ok(explanation)
}

/// One traffic being explained.
struct Case<'a> {
    scenario: Scenario,
    subject: usize,
    reading: Reading,
    run: Run,
    base: Figures,
    lengths: Lengths<'a>,
    candidates: Vec<Candidate>,
    /// For each candidate and rung.
    rungs: Vec<RungFigures>,
    /// Indexes of two candidates, with the figures of both relaxed.
    pairs: Vec<(usize, usize, Figures)>,
    runs: usize,
    notes: Vec<Note>,
}

impl<'a> Case<'a> {
    /// The traffic of number `index`, with what overlaps with it. The rest of the scenario is left out where that leaves the
    /// figures as they were in the `whole` run.
    fn new(
        simulator: &'a dyn Engine,
        scenario: &Scenario,
        whole: &Run,
        index: usize,
        options: &Options,
    ) -> Result<Case<'a>, ExplainError> {
        let reading = Reading::of(&scenario.traffic[index], whole);
        let known = figures(whole, &reading);
        let (focused, at) = focus(scenario, index);
        let alone = (focused != *scenario).then(|| simulated(simulator, &focused)).transpose()?;
        let mut runs = usize::from(alone.is_some());
        let alike = |run: &Run| lengths::agree(&known, &figures(run, &reading));
        let (scenario, subject, run) = match alone.filter(alike) {
            Some(run) => (focused, at, run),
            None => (scenario.clone(), index, whole.clone()),
        };
        let base = figures(&run, &reading);
        let lengths =
            Lengths::new(simulator, &scenario, subject, &reading, (&run, &base), options.budget);
        runs += lengths.runs;
        let candidates = candidates(&scenario, subject, &run);
        Ok(Case {
            scenario,
            subject,
            reading,
            run,
            base,
            lengths,
            candidates,
            rungs: Vec::new(),
            pairs: Vec::new(),
            runs,
            notes: Vec::new(),
        })
    }

    /// Runs the scenario with every rung of every candidate, then with pairs.
    fn relax(&mut self, tell: &mut dyn FnMut(Stage)) {
        if self.base.is_empty() {
            return;
        }
        let rungs = self.candidates.iter().flat_map(|candidate| &candidate.rungs);
        let scenarios: Vec<Scenario> =
            rungs.map(|(_, relaxation)| relaxation.apply(&self.scenario)).collect();
        let mut figures = self.figures(&scenarios, tell).into_iter();
        let counts: Vec<usize> = self.candidates.iter().map(|it| it.rungs.len()).collect();
        self.rungs =
            counts.into_iter().map(|count| figures.by_ref().take(count).collect()).collect();
        let pairs = self.worth_pairing();
        let scenarios: Vec<Scenario> = pairs.iter().map(|&pair| self.both(pair)).collect();
        let figures = self.figures(&scenarios, tell);
        self.pairs = std::iter::zip(pairs, figures)
            .filter_map(|((one, other), figures)| Some((one, other, figures?)))
            .collect();
    }

    fn figures(&mut self, scenarios: &[Scenario], tell: &mut dyn FnMut(Stage)) -> RungFigures {
        let (name, runs) = (&self.reading.name, scenarios.len());
        let told = |done| tell(Stage { traffic: name.clone(), done, runs });
        let results = run_all(scenarios, |scenario| self.lengths.measured(scenario), told);
        let failures = results.iter().filter_map(|result| result.as_ref().err());
        self.notes.extend(failures.map(|error| {
            Note::new(NoteKind::Unavailable, format!("a relaxation could not be run: {error}"))
        }));
        let measured: Vec<&Measured> = results.iter().flatten().collect();
        self.runs += measured.iter().map(|it| it.runs).sum::<usize>();
        self.notes.extend(lengths::told(&measured));
        results.into_iter().map(|result| result.ok().map(|it| it.figures)).collect()
    }

    /// Window and requests hold each other up, so they are always tried together; every other pair where, for
    /// some size, nothing alone is worth anything.
    fn worth_pairing(&self) -> Vec<(usize, usize)> {
        let alone = self.base.keys().any(|&size| {
            self.relaxed(size)
                .iter()
                .all(|it| it.saved <= ENOUGH || it.constraint == Constraint::Distance)
        });
        let count = self.candidates.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        let kind = |at: usize| self.candidates[at].constraint;
        let known =
            |one, other| kind(one) == Constraint::Window && kind(other) == Constraint::Requests;
        pairs
            .filter(|&(one, other)| {
                known(one, other) || alone && kind(other) != Constraint::Distance
            })
            .collect()
    }

    fn both(&self, (one, other): (usize, usize)) -> Scenario {
        // The traffics' indexes shift when one is taken out, so that goes last.
        let order = if self.candidates[one].constraint == Constraint::Queue {
            [other, one]
        } else {
            [one, other]
        };
        order.iter().fold(self.scenario.clone(), |scenario, &at| {
            let last = self.candidates[at].rungs.last();
            last.map_or(scenario.clone(), |(_, relaxation)| relaxation.apply(&scenario))
        })
    }

    /// What each candidate buys for `size`, the most first.
    fn relaxed(&self, size: u64) -> Vec<Relaxed> {
        ranked(&self.candidates, &self.rungs, size, &self.base)
    }

    /// The pairs that buy much more than either of them alone, the best first.
    fn pairs(&self, size: u64, relaxed: &[Relaxed]) -> Vec<PairRelaxed> {
        let Some(base) = self.base.get(&size) else { return Vec::new() };
        let key = |at: usize| (self.candidates[at].constraint, self.candidates[at].place.clone());
        let alone = |key: &(Constraint, String)| {
            let it = relaxed.iter().find(|it| it.constraint == key.0 && it.place == key.1);
            it.map_or(0.0, |it| it.saved)
        };
        let pair = |(one, other, figures): &(usize, usize, Figures)| {
            let figure = *figures.get(&size)?;
            let pair = PairRelaxed {
                first: key(*one),
                second: key(*other),
                figure,
                saved: base.saved_by(&figure),
            };
            let better = alone(&pair.first).max(alone(&pair.second));
            is_news(pair.saved, better).then_some(pair)
        };
        let mut pairs: Vec<PairRelaxed> = self.pairs.iter().filter_map(pair).collect();
        pairs.sort_by(|a, b| b.saved.total_cmp(&a.saved));
        pairs
    }

    fn traffic_run(&self) -> &TrafficRun {
        // The engine returns one for each traffic, in order.
        &self.run.traffic[self.subject]
    }

    fn rounds(&self, size: u64) -> Option<Rounds> {
        let waterfall = waterfall::of_messages(&self.run, self.traffic_run(), size);
        rounds(&self.scenario, self.subject, self.traffic_run(), size, &waterfall)
    }

    fn explanation(&self) -> TrafficExplanation {
        let traffic = &self.scenario.traffic[self.subject];
        let measure = self.reading.measure(&traffic.workload);
        let transfer = Measure::of(&traffic.workload) == Measure::Throughput;
        let run = self.traffic_run();
        let verdicts: Vec<Verdict> = self.base.keys().map(|&size| self.verdict(size)).collect();
        let groups = verdicts.chunk_by(|a, b| a.alike(b)).map(|alike| self.group(measure, alike));
        let jumps = jump::jumps(&self.base).into_iter().map(|pair| self.jump(pair));
        TrafficExplanation {
            name: self.reading.name.clone(),
            measure,
            background: traffic.until.is_some(),
            sender: if transfer { waterfall::of_senders(run) } else { Vec::new() },
            blocks: if transfer { waterfall::of_blocks(&self.run, run) } else { Vec::new() },
            groups: groups.collect(),
            jumps: jumps.collect(),
        }
    }

    fn verdict(&self, size: u64) -> Verdict {
        let relaxed = self.relaxed(size);
        let pairs = self.pairs(size, &relaxed);
        let binds = binding(&relaxed, &pairs);
        let rounds = self.rounds(size);
        Verdict { size, binds, rounds, relaxed, pairs }
    }

    fn group(&self, measure: Measure, alike: &[Verdict]) -> Group {
        let sizes = alike.iter().map(|verdict| (verdict.size, self.base[&verdict.size])).collect();
        // chunk_by gives no empty chunk.
        let it = alike[alike.len() - 1].clone();
        let (run, traffic) = (&self.run, self.traffic_run());
        let mut group = Group {
            sizes,
            size: it.size,
            waterfall: waterfall::of_messages(run, traffic, it.size),
            rounds: it.rounds,
            binds: it.binds,
            relaxed: it.relaxed,
            pairs: it.pairs,
            words: Vec::new(),
        };
        let traffic = &self.scenario.traffic[self.subject];
        group.words = words::group(measure, paces(&traffic.workload), &group);
        group
    }

    fn jump(&self, (from, to): (u64, u64)) -> Jump {
        let mut jump = Jump {
            from,
            to,
            figures: [self.base[&from], self.base[&to]],
            cause: jump::cause(&self.base, &self.candidates, &self.rungs, (from, to)),
            rounds: [self.rounds(from), self.rounds(to)],
            words: String::new(),
        };
        jump.words = words::jump(&jump);
        jump
    }

    fn notes(&self) -> Vec<Note> {
        let about = About::Traffic(self.reading.name.clone());
        let nothing = || Note::new(NoteKind::Unfinished, "nothing was measured");
        let nothing = self.base.is_empty().then(nothing);
        let all = nothing.into_iter().chain(self.notes.iter().cloned());
        let mut notes: Vec<Note> = all.map(|note| note.about(about.clone())).collect();
        notes.dedup();
        notes
    }
}

/// May an application be what holds a traffic up?
fn paces(workload: &Workload) -> bool {
    match workload {
        Workload::Paced { .. } => true,
        Workload::Push { store, .. } => !store.is_zero(),
        Workload::Interactive { .. }
        | Workload::TimedEcho { .. }
        | Workload::Bulk { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Greedy { .. } => false,
    }
}

/// What was found for one size.
#[derive(Debug, Clone)]
struct Verdict {
    size: u64,
    binds: Binding,
    rounds: Option<Rounds>,
    relaxed: Vec<Relaxed>,
    pairs: Vec<PairRelaxed>,
}

impl Verdict {
    fn alike(&self, other: &Verdict) -> bool {
        let count = |it: &Verdict| it.rounds.as_ref().map_or(0, |rounds| rounds.rounds.len());
        self.binds == other.binds && count(self) == count(other)
    }
}

/// The run of a scenario of which there is one cell and one engine.
pub(crate) fn simulated(simulator: &dyn Engine, scenario: &Scenario) -> Result<Run, EngineError> {
    simulator.run(&Network::of(scenario)?, &|_| ())
}

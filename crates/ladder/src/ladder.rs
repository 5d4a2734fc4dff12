//! One cell of a scenario on the ladder.

use crate::because::{absence, reasons};
use crate::figure::{Figure, What, figures};
use crate::phase::Moves;
use crate::verdict::{Judgement, Range, Tolerances, Verdict, judge};
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_engine::{EngineName, Pace, Run};
use trunkline_measure::{Accuracy, key_text};
use trunkline_scenario::{Scenario, Traffic};

/// The rung against which the others are held.
pub(crate) const REFERENCE: EngineName = EngineName::SIM;

/// One figure of one traffic in every engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The traffic.
    pub traffic: String,
    /// What its ends speak.
    pub transport: String,
    /// Which figure.
    pub what: What,
    /// Its values.
    pub figures: BTreeMap<EngineName, Figure>,
    /// Why an engine has no value.
    pub absent: BTreeMap<EngineName, String>,
    /// The range of the simulator in other phases, if another engine was apart from it.
    pub range: Option<Range>,
    /// The other engines, each held against the simulator.
    pub judgements: BTreeMap<EngineName, Judgement>,
}

/// One cell of a scenario with what the engines found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ladder {
    /// The scenario's name.
    pub scenario: String,
    /// The cell's coordinates; empty without a grid.
    pub cell: String,
    /// The engines that ran.
    pub engines: Vec<EngineName>,
    /// The figures, traffic by traffic.
    pub rows: Vec<Row>,
    /// The moves of the simulations of which the rows' ranges are made; `None` if none were needed.
    pub moves: Option<Moves>,
    /// How exactly the emulation was carried out.
    pub accuracy: Option<Accuracy>,
    /// The reasons why runs are not to be used, each with its engine; empty if they are.
    pub invalid: Vec<String>,
}

/// How many comparisons came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// [`Verdict::Agree`].
    pub agree: usize,
    /// [`Verdict::Phase`].
    pub phase: usize,
    /// [`Verdict::Undecided`].
    pub undecided: usize,
    /// [`Verdict::Differ`] with a reason.
    pub explained: usize,
    /// [`Verdict::Differ`] without one.
    pub unexplained: usize,
    /// [`Verdict::Missing`].
    pub missing: usize,
    /// [`Verdict::Invalid`].
    pub invalid: usize,
}

impl Ladder {
    /// Holds the runs of one cell against each other. `runs` has at most one for each engine.
    pub fn new(scenario: &Scenario, runs: &[Run], tolerances: &Tolerances) -> Ladder {
        let emulation = runs.iter().find(|run| run.accuracy.is_some());
        let rows = |traffic: usize| rows(scenario, traffic, runs, tolerances);
        Ladder {
            scenario: scenario.name.clone(),
            cell: key_text(&scenario.cell),
            engines: runs.iter().map(|run| run.engine).collect(),
            rows: (0..scenario.traffic.len()).flat_map(rows).collect(),
            moves: None,
            accuracy: emulation.and_then(|run| run.accuracy.clone()),
            invalid: runs.iter().flat_map(doubts).collect(),
        }
    }

    /// Whether a figure of another engine is apart from the simulator's, so that other phases are worth asking.
    pub fn is_apart(&self) -> bool {
        self.rows.iter().any(Row::is_apart)
    }

    /// Judges what is apart once more, by what the simulator gave in other phases: `phases` are the figures of
    /// each run, which `moves` made.
    pub fn consider(&mut self, phases: &[Figures], moves: Moves, tolerances: &Tolerances) {
        self.moves = Some(moves);
        for row in self.rows.iter_mut().filter(|row| row.is_apart()) {
            row.consider(phases, tolerances);
        }
    }

    /// Values in the table that must not be used, and all values.
    pub fn invalid_figures(&self) -> (usize, usize) {
        let all = || self.rows.iter().flat_map(|row| row.figures.values());
        (all().filter(|figure| figure.invalid).count(), all().count())
    }

    /// How the comparisons of `engine` with the simulator came out.
    pub fn tally(&self, engine: EngineName) -> Tally {
        let mut tally = Tally::default();
        for judgement in self.rows.iter().filter_map(|row| row.judgements.get(&engine)) {
            *match judgement.verdict {
                Verdict::Agree => &mut tally.agree,
                Verdict::Phase => &mut tally.phase,
                Verdict::Undecided => &mut tally.undecided,
                Verdict::Differ if judgement.because.is_empty() => &mut tally.unexplained,
                Verdict::Differ => &mut tally.explained,
                Verdict::Missing => &mut tally.missing,
                Verdict::Invalid => &mut tally.invalid,
            } += 1;
        }
        tally
    }
}

impl Row {
    fn is_apart(&self) -> bool {
        self.judgements.values().any(Judgement::is_apart)
    }

    fn consider(&mut self, phases: &[Figures], tolerances: &Tolerances) {
        let own = self.figures.get(&REFERENCE).map(|figure| figure.value);
        let Some(own) = own else { return };
        let place = (self.traffic.clone(), self.what);
        let moved = phases.iter().filter_map(|figures| figures.get(&place));
        let values: Vec<f64> = moved.copied().chain([own]).collect();
        let Some(range) = Range::of(&values) else { return };
        self.range = Some(range);
        for (engine, judgement) in self.judgements.iter_mut().filter(|(_, it)| it.is_apart()) {
            if let Some(figure) = self.figures.get(engine) {
                judgement.verdict = range.judge(self.what, figure, own, tolerances);
            }
        }
    }
}

impl Tally {
    /// Both together.
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            agree: self.agree + other.agree,
            phase: self.phase + other.phase,
            undecided: self.undecided + other.undecided,
            explained: self.explained + other.explained,
            unexplained: self.unexplained + other.unexplained,
            missing: self.missing + other.missing,
            invalid: self.invalid + other.invalid,
        }
    }
}

/// The figures of one run, by traffic.
pub type Figures = BTreeMap<(String, What), f64>;

/// Every figure of `run`.
pub fn figures_of(scenario: &Scenario, run: &Run) -> Figures {
    let of = |traffic: &Traffic| {
        let found = run.traffic(&traffic.name).map(|it| figures(&traffic.workload, it));
        let name = traffic.name.clone();
        let named = move |(what, figure): (What, Figure)| ((name.clone(), what), figure.value);
        found.into_iter().flatten().map(named).collect::<Figures>()
    };
    scenario.traffic.iter().flat_map(of).collect()
}

/// Why a run is not to be used, with the engine's name.
fn doubts(run: &Run) -> Vec<String> {
    let engine = run.engine;
    run.doubts().into_iter().map(|why| format!("{engine}: {why}")).collect()
}

fn rows(scenario: &Scenario, index: usize, runs: &[Run], tolerances: &Tolerances) -> Vec<Row> {
    let traffic = &scenario.traffic[index];
    let mut found: BTreeMap<What, BTreeMap<EngineName, Figure>> = BTreeMap::new();
    for run in runs {
        let of_run = run.traffic(&traffic.name).map(|it| figures(&traffic.workload, it));
        for (what, figure) in of_run.into_iter().flatten() {
            let figure = Figure { invalid: !run.is_valid(), ..figure };
            found.entry(what).or_default().insert(run.engine, figure);
        }
    }
    // What accompanies others may complete no transfer while they last, and has no figure then.
    if traffic.until.is_some() {
        let counted = runs.iter().filter(|run| run.pace != Pace::Formulas);
        let counted: Vec<EngineName> = counted.map(|run| run.engine).collect();
        found.retain(|_, by| counted.iter().any(|engine| by.contains_key(engine)));
    }
    // Formulas count no packets, and if nothing was lost there is nothing to compare.
    found.retain(|what, by| *what != What::Loss || by.values().any(|it| it.value > 0.0));
    let row = |(what, figures): (What, BTreeMap<EngineName, Figure>)| {
        let judgements = judgements(what, traffic, &figures, runs, tolerances);
        let absent = runs.iter().filter(|run| !figures.contains_key(&run.engine));
        let absent = absent.map(|run| (run.engine, absence(what, traffic, run))).collect();
        let (traffic, transport) = (traffic.name.clone(), traffic.spoken());
        Row { traffic, transport, what, figures, absent, range: None, judgements }
    };
    found.into_iter().map(row).collect()
}

fn judgements(
    what: What,
    traffic: &Traffic,
    figures: &BTreeMap<EngineName, Figure>,
    runs: &[Run],
    tolerances: &Tolerances,
) -> BTreeMap<EngineName, Judgement> {
    let Some(middle) = runs.iter().find(|run| run.engine == REFERENCE) else {
        return BTreeMap::new();
    };
    let others = runs.iter().filter(|run| run.engine != REFERENCE);
    // Formulas have nothing to say of losses.
    let others = others.filter(|run| what != What::Loss || run.pace != Pace::Formulas);
    let judgement = |run: &Run| {
        let pair = (figures.get(&run.engine), figures.get(&REFERENCE));
        (run.engine, judgement(what, traffic, pair, run, middle, tolerances))
    };
    others.map(judgement).collect()
}

fn judgement(
    what: What,
    traffic: &Traffic,
    pair: (Option<&Figure>, Option<&Figure>),
    run: &Run,
    middle: &Run,
    tolerances: &Tolerances,
) -> Judgement {
    let (Some(figure), Some(reference)) = pair else {
        let absent = if pair.0.is_none() { run } else { middle };
        let because = vec![format!("{}: {}", absent.engine, absence(what, traffic, absent))];
        return Judgement { verdict: Verdict::Missing, difference: None, apart: None, because };
    };
    let (verdict, difference, apart) = judge(what, figure, reference, tolerances);
    let doubts: Vec<String> = [run, middle].into_iter().flat_map(doubts).collect();
    let because = match (verdict, doubts.is_empty()) {
        (_, false) => doubts.clone(),
        (Verdict::Agree, true) => Vec::new(),
        (_, true) => reasons(what, &traffic.name, run, middle),
    };
    let verdict = if doubts.is_empty() { verdict } else { Verdict::Invalid };
    Judgement { verdict, difference, apart: Some(apart), because }
}

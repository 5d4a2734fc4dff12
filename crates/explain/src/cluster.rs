//! Clusters: what holds their laps up.

use crate::candidates::{Candidate, candidate, twice_and_free};
use crate::constraint::Constraint;
use crate::decide::{RungFigures, binding, ranked};
use crate::explain::{Options, Stage, simulated};
use crate::explanation::{Group, TrafficExplanation};
use crate::figure::{Figure, Figures, Measure, Reading, figures};
use crate::lengths::hops;
use crate::media::{MediumEase, limits, stations_overflow};
use crate::relax::{Relaxation, part};
use crate::runner::run_all;
use crate::{waterfall, words};
use trunkline_core::Probability;
use trunkline_engine::{Engine, EngineError, Note, NoteKind, Run};
use trunkline_measure::TrafficRun;
use trunkline_scenario::{Cluster, MessageProtocol, NodeCosts, Scenario};

/// How many times the budget a cluster's run may take: it is never shortened, and run a dozen times.
const MOST: u64 = 10;
/// What is noted of one that takes more.
const LONG: &str =
    "its run is too long to be run again with each thing better: --full does it all the same";

/// One thing made better in a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Ease {
    /// One thing better of its medium.
    Medium(MediumEase),
    /// Nodes lose no frame by chance.
    Loss,
    /// All costs of the nodes' processors divided by so much.
    Processors(u64),
    /// So many times the buffers of a node.
    Buffers(u32),
    /// Another message layer.
    Layer(MessageProtocol),
}

impl Ease {
    pub(crate) fn apply(&self, cluster: &mut Cluster) {
        match self {
            Ease::Medium(ease) => ease.apply(&mut cluster.medium),
            Ease::Loss => cluster.loss = Probability::NEVER,
            Ease::Processors(factor) => quicken(&mut cluster.costs, *factor),
            Ease::Buffers(times) => {
                let layout = &mut cluster.layout;
                layout.receive_buffers = layout.receive_buffers.saturating_mul(*times);
                layout.send_buffers = layout.send_buffers.saturating_mul(*times);
            }
            Ease::Layer(protocol) => cluster.protocol = protocol.clone(),
        }
    }
}

fn quicken(costs: &mut NodeCosts, factor: u64) {
    let NodeCosts {
        cycle,
        send,
        interrupt,
        receive,
        clean_up,
        copy_out,
        copy,
        write,
        read,
        point,
        sweep,
        add,
    } = costs;
    let of_the_layer = [cycle, send, interrupt, receive, clean_up, copy_out, copy];
    let of_the_program = [write, read, point, sweep, add];
    let all = of_the_layer.into_iter().chain(of_the_program);
    all.for_each(|cost| *cost = part(*cost, factor));
}

/// What holds a cluster's laps up, with the runs that it took and what there is to note.
pub(crate) struct Explained {
    pub it: TrafficExplanation,
    pub runs: usize,
    pub notes: Vec<Note>,
}

/// Explains the cluster of number `index` by what its laps took in the `whole` run, and what they take with each thing better.
/// `None` if it took none.
pub(crate) fn explained(
    simulator: &dyn Engine,
    (scenario, index): (&Scenario, usize),
    whole: &Run,
    options: &Options,
    tell: &mut dyn FnMut(Stage),
) -> Option<Explained> {
    let name = &scenario.clusters[index].name;
    let laps = whole.traffic(name)?;
    let reading = Reading { name: name.clone(), whole: false };
    let base = figures(whole, &reading);
    let is_long = hops(whole) > options.budget.saturating_mul(MOST);
    let candidates = if is_long { Vec::new() } else { candidates(scenario, index, whole) };
    let results = rerun(simulator, scenario, &candidates, &mut |done, runs| {
        tell(Stage { traffic: name.clone(), done, runs });
    });
    // What ended before all laps were taken, with a loss or a deadlock, is no measure.
    let is_whole =
        |run: &&Run| run.traffic(name).is_some_and(|it| it.samples.len() >= laps.samples.len());
    let runs = results.iter().map(|result| result.as_ref().ok().filter(is_whole));
    let mut found = runs.map(|run| run.map(|run| figures(run, &reading)));
    let rungs: Vec<RungFigures> =
        candidates.iter().map(|it| found.by_ref().take(it.rungs.len()).collect()).collect();
    let failed = results.iter().filter_map(|result| result.as_ref().err());
    let failed = failed.map(|error| format!("a relaxation could not be run: {error}"));
    let notes = is_long.then(|| LONG.to_string()).into_iter().chain(failed);
    let group = |(&size, figure): (&u64, &Figure)| {
        group(whole, laps, (size, figure), (&candidates, &rungs), &base)
    };
    let groups: Vec<Group> = base.iter().map(group).collect();
    (!groups.is_empty()).then(|| Explained {
        it: TrafficExplanation::of_laps(name, groups),
        runs: results.len(),
        notes: notes.map(|it| Note::of_traffic(name, NoteKind::Unavailable, it)).collect(),
    })
}

/// The scenario with each rung of each candidate, in their order; `told` hears how many of how many are done.
fn rerun(
    simulator: &dyn Engine,
    scenario: &Scenario,
    candidates: &[Candidate],
    told: &mut dyn FnMut(usize, usize),
) -> Vec<Result<Run, EngineError>> {
    let rungs = candidates.iter().flat_map(|it| &it.rungs);
    let scenarios: Vec<Scenario> = rungs.map(|(_, it)| it.apply(scenario)).collect();
    let run = |scenario: &Scenario| simulated(simulator, scenario);
    run_all(&scenarios, run, |done| told(done, scenarios.len()))
}

impl TrafficExplanation {
    /// That of a cluster, which has no senders, blocks or jumps.
    fn of_laps(name: &str, groups: Vec<Group>) -> TrafficExplanation {
        TrafficExplanation {
            name: name.into(),
            measure: Measure::Lap,
            background: false,
            sender: Vec::new(),
            blocks: Vec::new(),
            groups,
            jumps: Vec::new(),
        }
    }
}

fn group(
    run: &Run,
    laps: &TrafficRun,
    (size, figure): (u64, &Figure),
    (candidates, rungs): (&[Candidate], &[RungFigures]),
    base: &Figures,
) -> Group {
    let relaxed = ranked(candidates, rungs, size, base);
    let mut group = Group {
        sizes: vec![(size, *figure)],
        size,
        waterfall: waterfall::of_laps(run, laps),
        rounds: None,
        binds: binding(&relaxed, &[]),
        relaxed,
        pairs: Vec::new(),
        words: Vec::new(),
    };
    // Runs that were not made tell nothing.
    if !candidates.is_empty() {
        group.words = words::group(Measure::Lap, false, &group);
    }
    group
}

/// All that can be better.
fn candidates(scenario: &Scenario, index: usize, run: &Run) -> Vec<Candidate> {
    let ground = Ground { cluster: &scenario.clusters[index], index };
    let mut all: Vec<Candidate> = [
        ground.limits(run),
        ground.buffers(),
        ground.layer(),
        ground.processors(),
        ground.turns(),
        ground.medium_rate(),
        ground.loss(),
        ground.distance(),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.sort_by_key(|candidate| candidate.constraint);
    all
}

struct Ground<'a> {
    cluster: &'a Cluster,
    index: usize,
}

impl Ground<'_> {
    fn rung(&self, to: &str, ease: Ease) -> (String, Relaxation) {
        (to.to_string(), Relaxation::Cluster { cluster: self.index, ease })
    }

    fn one(
        &self,
        constraint: Constraint,
        now: String,
        rungs: Vec<(String, Relaxation)>,
    ) -> Option<Candidate> {
        candidate(constraint, self.cluster.name.clone(), now, rungs)
    }

    fn limits(&self, run: &Run) -> Option<Candidate> {
        let rungs = match stations_overflow(run, &self.cluster.name) {
            true => vec![self.rung("no limit", Ease::Medium(MediumEase::Limits))],
            false => Vec::new(),
        };
        self.one(Constraint::QueueLimit, limits(&self.cluster.medium), rungs)
    }

    fn buffers(&self) -> Option<Candidate> {
        let layout = self.cluster.layout;
        let rungs =
            vec![self.rung("4 times", Ease::Buffers(4)), self.rung("16 times", Ease::Buffers(16))];
        let now = match self.cluster.protocol {
            MessageProtocol::Careful(_) => format!("{} receive buffers", layout.receive_buffers),
            MessageProtocol::Traditional(_) => format!(
                "{} receive and {} send buffers",
                layout.receive_buffers, layout.send_buffers
            ),
        };
        self.one(Constraint::Window, now, rungs)
    }

    /// The careful layer. Where frames are lost it does not come to its end.
    fn layer(&self) -> Option<Candidate> {
        let now = self.cluster.protocol.name();
        let careful = MessageProtocol::parse("careful").ok()?;
        let rungs = match self.cluster.protocol {
            MessageProtocol::Traditional(_) => vec![self.rung("careful", Ease::Layer(careful))],
            MessageProtocol::Careful(_) => Vec::new(),
        };
        self.one(Constraint::Layer, now.to_string(), rungs)
    }

    fn processors(&self) -> Option<Candidate> {
        let rungs = match self.cluster.costs == NodeCosts::default() {
            true => Vec::new(),
            false => twice_and_free(|factor| self.rung("", Ease::Processors(factor)).1),
        };
        self.one(Constraint::Processor, String::new(), rungs)
    }

    fn turns(&self) -> Option<Candidate> {
        let medium = &self.cluster.medium;
        let rung = medium
            .without_turns()
            .map(|_| self.rung("at no cost", Ease::Medium(MediumEase::Turns)));
        self.one(Constraint::Turns, medium.access.kind().to_string(), rung.into_iter().collect())
    }

    fn medium_rate(&self) -> Option<Candidate> {
        let medium = &self.cluster.medium;
        let rate = medium.rate?;
        let rung = |(to, ease): (String, MediumEase)| self.rung(&to, Ease::Medium(ease));
        let rungs = MediumEase::rates(&[medium]).into_iter().map(rung).collect();
        self.one(Constraint::MediumRate, rate.to_string(), rungs)
    }

    fn loss(&self) -> Option<Candidate> {
        let rungs = match self.cluster.loss.is_never() {
            true => Vec::new(),
            false => vec![self.rung("none", Ease::Loss)],
        };
        self.one(Constraint::Loss, self.cluster.loss.to_string(), rungs)
    }

    fn distance(&self) -> Option<Candidate> {
        let delay = self.cluster.medium.delay;
        let rungs = match delay.is_zero() {
            true => Vec::new(),
            false => vec![self.rung("hardly any", Ease::Medium(MediumEase::Distance))],
        };
        self.one(Constraint::Distance, delay.to_string(), rungs)
    }
}

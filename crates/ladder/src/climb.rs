//! Scenario files up the ladder: run in every engine and judged.

use crate::ladder::{Figures, Ladder, figures_of};
use crate::phase::Moves;
use crate::shorten::{chosen, shortened};
use crate::verdict::Tolerances;
use std::sync::Arc;
use trunkline_batch::{Batch, BatchError, Outcome, Progress, make, run_all};
use trunkline_core::{Span, Time};
use trunkline_engine::{Pace, Run, SharedEngine};
use trunkline_scenario::Scenario;

/// How scenarios are taken up the ladder.
#[derive(Debug, Clone)]
pub struct Climb {
    /// The engines.
    pub engines: Vec<SharedEngine>,
    /// The simulator: the middle rung, which also tells how long cells take and what other phases give.
    pub simulator: SharedEngine,
    /// Largest number of cells of a file's grid, spread over it.
    pub cells: usize,
    /// What a cell may take in real time; longer ones are cut down for all engines alike.
    pub allowed: Span,
    /// Packets that the simulations of a cell in other phases may send, all together.
    pub phases: u64,
    /// How many simulations are made at once.
    pub threads: usize,
    /// How far engines may be apart.
    pub tolerances: Tolerances,
}

/// A file's cells on the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Climbed {
    /// One for each cell that was run.
    pub ladders: Vec<Ladder>,
    /// The runs with what is known about them, and laws that they broke.
    pub outcome: Outcome,
    /// How many cells the file has; those beyond [`Climb::cells`] were not run.
    pub cells: usize,
    /// Whether repetitions or durations were cut.
    pub cut: bool,
}

impl Climb {
    /// Runs the cells of one file.
    ///
    /// # Errors
    /// If no engine can run a cell.
    pub fn climb(
        &self,
        cells: &[Scenario],
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Climbed, BatchError> {
        let picked = chosen(cells, self.cells);
        let short = self.cut(&picked)?;
        let cut = short != picked;
        let batch = self.batch(short.clone(), self.engines.clone());
        let outcome = batch.run(progress)?;
        let ladder = |scenario: &Scenario| {
            let here = |run: &&Run| run.cell == scenario.cell;
            let runs: Vec<Run> = outcome.report.runs.iter().filter(here).cloned().collect();
            Ladder::new(scenario, &runs, &self.tolerances)
        };
        let mut ladders: Vec<Ladder> = short.iter().map(ladder).collect();
        for (scenario, ladder) in short.iter().zip(&mut ladders).filter(|(_, it)| it.is_apart()) {
            let label = format!("sim in other phases: {}", scenario.name);
            progress(Progress { done: batch.runs(), label });
            self.ask_again(scenario, &outcome.report.runs, ladder);
        }
        Ok(Climbed { ladders, outcome, cells: cells.len(), cut })
    }

    /// Asks the simulator what it gives in other phases.
    fn ask_again(&self, scenario: &Scenario, runs: &[Run], ladder: &mut Ladder) {
        let own = |run: &&Run| run.engine == self.simulator.name() && run.cell == scenario.cell;
        let traffic = runs.iter().find(own).into_iter().flat_map(|run| &run.traffic);
        let moves = Moves::of(scenario, traffic.map(|it| it.packets.sent).sum(), self.phases);
        let work = |phase: &Scenario| {
            make(&*self.simulator, phase).ok().map(|run| figures_of(scenario, &run))
        };
        let phases = run_all(&moves.phases(scenario), self.threads, |_| 0, work, |_, _| {});
        let phases: Vec<Figures> = phases.into_iter().flatten().collect();
        ladder.consider(&phases, moves, &self.tolerances);
    }

    fn batch(&self, cells: Vec<Scenario>, engines: Vec<SharedEngine>) -> Batch {
        Batch { cells, engines, threads: self.threads }
    }

    /// The cells, cut to the time allowed if real time is wanted; the simulator tells how long they take.
    fn cut(&self, cells: &[Scenario]) -> Result<Vec<Scenario>, BatchError> {
        if self.engines.iter().all(|engine| engine.pace() != Pace::Real) {
            return Ok(cells.to_vec());
        }
        let batch = self.batch(cells.to_vec(), vec![Arc::clone(&self.simulator)]);
        let runs = batch.run(&|_| {})?.report.runs;
        let takes = |scenario: &Scenario| {
            let run = runs.iter().find(|run| run.cell == scenario.cell);
            run.map_or(Span::ZERO, |run| run.ended.since(Time::ZERO))
        };
        Ok(cells.iter().map(|it| shortened(it, takes(it), self.allowed)).collect())
    }
}

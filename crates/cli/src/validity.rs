//! The failure of a verb whose results, made in real time, must not be used.

use crate::failure::Failure;
use crate::output::counted;
use trunkline_engine::{Pace, Run};

/// Accepts what the machine has spoilt.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct EffortArgs {
    /// Do not fail if a run in real time is INVALID; its values stay marked
    #[arg(long)]
    pub best_effort: bool,
}

/// Fails if a run is not what was asked for, or must not be used: a script shall not take the figures for
/// good.
///
/// # Errors
/// With the first reason.
pub fn check<'a>(
    runs: impl Iterator<Item = &'a Run> + Clone,
    effort: EffortArgs,
) -> Result<(), Failure> {
    if let Some(failed) = runs.clone().flat_map(Run::failures).next() {
        return Err(Failure::failed(failed));
    }
    let invalid: Vec<String> = runs.clone().filter_map(|run| run.invalid().next()).collect();
    let all = runs.filter(|run| run.pace == Pace::Real).count();
    spoilt(&invalid, &format!("{} in real time", counted(all as u64, "run")), effort)
}

/// Fails if there are reasons why results must not be used, one for each of them, `of` so many.
///
/// # Errors
/// With the first reason.
pub fn spoilt(reasons: &[String], of: &str, effort: EffortArgs) -> Result<(), Failure> {
    match reasons.first().filter(|_| !effort.best_effort) {
        Some(first) => Err(Failure::failed(format!(
            "{} of {of} are INVALID, first because {first}; repeat on a quieter machine, or accept them with --best-effort",
            reasons.len()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Time;
    use trunkline_engine::{EngineName, Note, NoteKind};

    fn run(pace: Pace, invalid: &[&str], failed: &[&str]) -> Run {
        let invalid = invalid.iter().map(|why| Note::new(NoteKind::Invalid, *why));
        let failed = failed.iter().map(|why| Note::of_traffic("t", NoteKind::Failed, *why));
        Run {
            engine: EngineName::EMU,
            pace,
            scenario: "s".into(),
            cell: Default::default(),
            seed: 1,
            traffic: Vec::new(),
            links: Vec::new(),
            places: Vec::new(),
            ended: Time::ZERO,
            notes: invalid.chain(failed).collect(),
            accuracy: None,
            pictures: Vec::new(),
        }
    }

    fn outcome(runs: &[Run], best_effort: bool) -> Option<String> {
        let failure = check(runs.iter(), EffortArgs { best_effort }).err();
        failure.map(|failure| failure.message().to_string())
    }

    #[test]
    fn an_invalid_run_fails_unless_it_is_accepted() {
        let fine = run(Pace::Real, &[], &[]);
        assert_eq!(outcome(&[fine.clone(), run(Pace::Virtual, &[], &[])], false), None);
        let both = [fine, run(Pace::Real, &["too busy", "a clock was set"], &[])];
        let told = outcome(&both, false).unwrap();
        assert!(told.contains("1 of 2 runs in real time are INVALID"), "{told}");
        assert!(told.contains("too busy") && told.contains("--best-effort"), "{told}");
        assert_eq!(outcome(&both, true), None);
    }

    #[test]
    fn what_failed_fails_in_every_engine_and_is_not_to_be_accepted() {
        for pace in [Pace::Virtual, Pace::Real] {
            let told = outcome(&[run(pace, &[], &["wrong data"])], true).unwrap();
            assert!(told.contains("traffic 't' failed: wrong data"), "{told}");
        }
    }
}

//! `trunkline study`: published measurements, done again.

use crate::engines::{self, Setup};
use crate::failure::Failure;
use crate::output::{self, counted};
use crate::progress::Steps;
use crate::scenario::{OutArgs, ResumeArgs, ThreadsArgs, facts, tell_of_kept, unwritten};
use crate::validity::{self, EffortArgs};
use crate::verify;
use crate::work::Watch;
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trunkline_batch::digest_of;
use trunkline_engine::{EngineName, SharedEngine};
use trunkline_report::{Destination, Report, terminal_comparison};
use trunkline_study::{
    Experiment, ExperimentResult, GoalResult, Makers, Source, Study, StudyResult, names,
    run_sources,
};

/// Redo published measurements and compare with what was published.
///
/// A study is one of those built in, or a directory with a study.toml (docs/studies.md).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  trunkline study list
  trunkline study show hawley1989
  trunkline study run hawley1989 --out results   # results/hawley1989/index.html";

#[derive(Subcommand)]
enum Verb {
    /// The studies that are built in
    #[command(after_help = "Example:\n  trunkline study list --json")]
    List(ListArgs),
    /// Show what a study runs, what it is compared with, and how it is judged
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Run studies, and print every comparison and every goal
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
}

const SHOW_EXAMPLES: &str = "\
Examples:
  trunkline study show hawley1989
  trunkline study show vandewater1988 --scenario transfer.toml > transfer.toml
  trunkline explain transfer.toml";

const RUN_EXAMPLES: &str = "\
Examples:
  trunkline study run hawley1989 --out results   # results/hawley1989/index.html
  trunkline study run hawley1989 vandewater1988 --strict
  trunkline study run ./my-study --json

Exit status: 0 if everything ran, whatever the verdicts; 1 if a run failed or is
INVALID, and with --strict if a goal was missed.";

#[derive(clap::Args)]
struct ListArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ShowArgs {
    /// The study, or its directory
    name: String,
    /// Print one of its scenario files instead, complete, for run, predict and explain
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    scenario: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct RunArgs {
    /// The studies, or their directories
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    resume: ResumeArgs,
    /// The engines that may be used; a study's runs on others are left out
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',', value_parser = engines::parser(),
          default_value = engines::joined(&engines::names()))]
    engine: Vec<EngineName>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Exit status 1 if a goal is missed
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    effort: EffortArgs,
    /// Print every table with its published and our values, not only its verdict
    #[arg(long, conflicts_with = "json")]
    tables: bool,
}

/// Number of the JSON forms; it rises when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// Lists, shows or runs.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.verb {
        Verb::List(args) => list(args),
        Verb::Show(args) => show(args),
        Verb::Run(args) => run_studies(args),
    }
}

fn open(name: &str) -> Result<Source, Failure> {
    Source::open(name).map_err(Failure::wrong_use)
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let sources = names().into_iter().map(open).collect::<Result<Vec<Source>, Failure>>()?;
    if args.json {
        let studies: Vec<Value> = sources.iter().map(|one| heading(&one.study)).collect();
        let document = json!({"format": FORMAT, "studies": studies});
        return output::line(&serde_json::to_string_pretty(&document)?);
    }
    let line =
        |study: &Study| format!("{:<16} {}\n{:16} {}", study.name, study.title, "", study.report);
    let lines: Vec<String> = sources.iter().map(|one| line(&one.study)).collect();
    output::line(&lines.join("\n"))
}

fn heading(study: &Study) -> Value {
    json!({"name": study.name, "title": study.title, "report": study.report, "about": study.about})
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let source = open(&args.name)?;
    let study = &source.study;
    if let Some(file) = &args.scenario {
        let text = source.scenario_text(file).map_err(Failure::wrong_use)?;
        return output::line(text.trim_end());
    }
    if args.json {
        let mut document = heading(study);
        document["format"] = FORMAT.into();
        document["experiments"] = study.experiment.iter().map(experiment_json).collect();
        document["goals"] =
            study.goal.iter().map(|goal| Value::from(goal.title.as_str())).collect();
        document["parameters"] = json!({"all": study.parameter.len(), "inferred": inferred(study)});
        return output::line(&serde_json::to_string_pretty(&document)?);
    }
    output::line(&description(study))
}

fn inferred(study: &Study) -> usize {
    study.parameter.iter().filter(|parameter| parameter.inferred.is_some()).count()
}

fn experiment_json(one: &Experiment) -> Value {
    json!({"name": one.name, "title": one.title, "published": one.published, "tolerance": one.tolerance})
}

fn description(study: &Study) -> String {
    let mut lines = vec![format!("{}: {}", study.name, study.title), study.report.clone()];
    if !study.about.is_empty() {
        lines.extend([String::new(), study.about.trim().to_string()]);
    }
    lines.extend([String::new(), "Tables (published figures that they are held against):".into()]);
    lines.extend(study.experiment.iter().map(experiment_line));
    lines.extend([String::new(), "Goals:".into()]);
    lines.extend(study.goal.iter().map(|goal| format!("  {}", goal.title)));
    lines.push(String::new());
    let (all, guessed) = (study.parameter.len(), inferred(study));
    lines.push(format!(
        "Parameters: {all}, {guessed} of them inferred; figures: {}",
        study.figure.len()
    ));
    lines.join("\n")
}

fn experiment_line(one: &Experiment) -> String {
    // Tolerances are written to a tenth of a per cent.
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let judged = one.tolerance.map_or("shown".into(), |share| format!("±{} %", percent(share)));
    let published = one.published.as_deref().unwrap_or("nothing published");
    format!("  {:<28} {} ({published}, {judged})", one.name, one.title)
}

fn run_studies(args: &RunArgs) -> Result<(), Failure> {
    let sources = args.names.iter().map(|name| open(name)).collect::<Result<Vec<_>, _>>()?;
    for source in &sources {
        engines::all_known(&source.study.name, source.engines())?;
    }
    engines::get_rights(&args.engine);
    let watch = Watch::start()?;
    let destinations = reserve(args, &sources)?;
    let digest = digest_of(&args.names);
    let kept = args.out.out.as_ref();
    let kept =
        kept.map(|out| args.resume.kept(out, "studies", digest).map(Arc::new)).transpose()?;
    let setup = Setup { kept: kept.clone(), ..Setup::default() };
    let made = results(&watch, sources, setup.engines(&args.engine), args.threads.number())
        .and_then(|results| written(&watch, destinations, results));
    if let Some(kept) = &kept {
        match made {
            Ok(_) => drop(kept.discard()?),
            Err(_) => tell_of_kept(kept),
        }
    }
    let (results, reports, pages) = made?;
    print(args, &results, &reports)?;
    pages.iter().for_each(|page| output::tell(format_args!("written: {}", page.display())));
    verdict(&results, args)
}

/// Results, their reports, and the pages that these became.
type Written = (Vec<StudyResult>, Vec<Report>, Vec<PathBuf>);

fn written(
    watch: &Watch,
    destinations: Vec<Destination>,
    results: Vec<StudyResult>,
) -> Result<Written, Failure> {
    let reports: Vec<Report> =
        results.iter().map(|result| result.report(env!("CARGO_PKG_VERSION"), facts())).collect();
    for (destination, report) in destinations.iter().zip(&reports) {
        destination.fill(report).map_err(unwritten)?;
    }
    watch.check()?;
    let mut pages = Vec::new();
    for destination in destinations {
        let files = destination.publish().map_err(unwritten)?;
        pages.extend(files.into_iter().filter(|file| file.ends_with("index.html")));
    }
    Ok((results, reports, pages))
}

/// A directory for each study, below the one that was named.
fn reserve(args: &RunArgs, sources: &[Source]) -> Result<Vec<Destination>, Failure> {
    let Some(out) = &args.out.out else { return Ok(Vec::new()) };
    let below = |source: &Source| args.out.reserve(&Path::new(out).join(&source.study.name));
    sources.iter().map(below).collect()
}

fn results(
    watch: &Watch,
    sources: Vec<Source>,
    engines: Vec<SharedEngine>,
    threads: usize,
) -> Result<Vec<StudyResult>, Failure> {
    let steps = Steps::new();
    let told = steps.clone();
    let found = watch.during(move || {
        let makers = Makers { engines: &engines, verify: &verify::measure };
        run_sources(&sources, &makers, threads, &|now| {
            told.tell(now.done, now.total, &now.label);
        })
    });
    steps.end();
    found?.map_err(Failure::wrong_use)
}

fn print(args: &RunArgs, results: &[StudyResult], reports: &[Report]) -> Result<(), Failure> {
    if args.json {
        let pairs = results.iter().zip(reports);
        let studies =
            pairs.map(|(result, report)| result_json(result, report)).collect::<Result<_, _>>()?;
        let document = json!({"format": FORMAT, "studies": Value::Array(studies)});
        return output::line(&document.to_string());
    }
    for result in results {
        if args.tables {
            let tables = result.experiments.iter().map(|one| {
                let why = one.problems.iter().map(|problem| format!("– {problem}\n"));
                terminal_comparison(&one.comparison) + &why.collect::<String>()
            });
            output::line(&tables.collect::<Vec<String>>().join("\n"))?;
        }
        output::line(&result.summary())?;
    }
    Ok(())
}

fn result_json(result: &StudyResult, report: &Report) -> Result<Value, serde_json::Error> {
    let mut text = Vec::new();
    trunkline_report::json(report, &mut text).map_err(serde_json::Error::io)?;
    let goal = |goal: &GoalResult| json!({"title": goal.title, "met": goal.met, "found": goal.found, "outside": goal.outside});
    Ok(json!({
        "name": result.name,
        "holds": result.holds(),
        "runs": result.runs,
        "inferred": result.inferred(),
        "goals": result.goals.iter().map(goal).collect::<Vec<Value>>(),
        "failures": result.failures,
        "absent": result.experiments.iter().flat_map(absent).collect::<Vec<Value>>(),
        "invalid": result.invalid,
        "report": serde_json::from_slice::<Value>(&text)?,
    }))
}

/// The reasons why cells have no value.
fn absent(one: &ExperimentResult) -> impl Iterator<Item = Value> {
    one.problems.iter().map(|reason| json!({"experiment": one.name, "reason": reason}))
}

/// A missed goal is a finding and no failure, unless that is asked for.
fn verdict(results: &[StudyResult], args: &RunArgs) -> Result<(), Failure> {
    let failed: usize = results.iter().map(|result| result.failures.len()).sum();
    if failed > 0 {
        return Err(Failure::failed(format!("{failed} runs failed, see above")));
    }
    let invalid: Vec<String> =
        results.iter().flat_map(|result| result.invalid.iter().cloned()).collect();
    let runs: usize = results.iter().map(|result| result.runs).sum();
    validity::spoilt(&invalid, &counted(runs as u64, "cell"), args.effort)?;
    let goals = results.iter().flat_map(|result| &result.goals);
    let (all, missed) = (goals.clone().count(), goals.filter(|goal| !goal.met).count());
    match args.strict && missed > 0 {
        true => Err(Failure::failed(format!("{missed} of {all} goals are missed, see above"))),
        false => Ok(()),
    }
}

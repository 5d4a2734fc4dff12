//! An engine that nobody here knows: it is a value, and takes its place beside the others.

use std::sync::Arc;
use trunkline_batch::{Batch, Kept};
use trunkline_engine::{Engine, EngineError, EngineName, Note, NoteKind, Pace, Run, SharedEngine};
use trunkline_measure::{Step, TrafficRun};
use trunkline_report::terminal;
use trunkline_scenario::{Network, Scenario};
use trunkline_sim::Simulator;

const TEXT: &str = "name = 'Two'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nname = 'l'\n\
                    between = ['a', 'b']\nrate = '1Mbit/s'\ndelay = ['1ms', '2ms']\n[[traffic]]\n\
                    name = 'keys'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [64]\nrepeat = 3\n";

/// Every message takes twice as long as in the simulator; a delay of 2 ms it cannot do.
#[derive(Debug)]
struct Slow;

impl Engine for Slow {
    fn name(&self) -> EngineName {
        "slow".parse().unwrap()
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn run(&self, network: &Network<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        if network.scenario().cell["link.l.delay"] == "2ms" {
            return Err(EngineError::refused("2 ms are too much"));
        }
        let run = Simulator.run(network, told)?;
        let twice = |traffic: TrafficRun| {
            let slower = traffic.samples.iter().cloned().map(|mut sample| {
                sample.end += sample.delay();
                let twice = |step: Step| Step { span: step.span.scaled(2, 1), ..step };
                sample.steps = sample.steps.iter().map(twice).collect();
                sample
            });
            TrafficRun { samples: slower.collect(), ..traffic.clone() }
        };
        Ok(Run {
            engine: self.name(),
            traffic: run.traffic.into_iter().map(twice).collect(),
            ended: run.ended + trunkline_core::Span::from_secs(9),
            notes: vec![Note::of_traffic("keys", NoteKind::Assumed, "everything is slow")],
            ..run
        })
    }
}

fn batch(engines: Vec<SharedEngine>) -> Batch {
    Batch { cells: Scenario::parse(TEXT, "two.toml").unwrap(), engines, threads: 2 }
}

#[test]
fn it_has_a_column_its_notes_and_its_reasons() {
    let outcome = batch(vec![Arc::new(Slow), Arc::new(Simulator)]).run(&|_| ()).unwrap();
    assert_eq!(outcome.violations, [""; 0]);
    let report = outcome.report;
    assert_eq!(report.engines(), [EngineName::SIM, Slow.name()]);
    let text = terminal(&report);
    assert!(text.contains("slow (against sim)"), "{text}");
    assert!(text.contains("+100.0 %") || text.contains("+100 %"), "{text}");
    assert!(text.contains("note: slow: keys: everything is slow"), "{text}");
    assert!(text.contains("note: slow: unavailable: 2 ms are too much"), "{text}");
    let mut json = Vec::new();
    trunkline_report::json(&report, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["engines"], serde_json::json!(["sim", "slow"]));
    let own = json["runs"].as_array().unwrap().iter().find(|run| run["engine"] == "slow").unwrap();
    let note = serde_json::json!(
        {"about": {"traffic": "keys"}, "kind": "assumed", "text": "everything is slow"}
    );
    assert_eq!(own["notes"][0], note);
    let mut all = note.clone();
    (all["engine"], all["cells"]) = ("slow".into(), 1.into());
    assert!(json["notes"].as_array().unwrap().contains(&all), "{}", json["notes"]);
}

#[test]
fn its_runs_are_kept_as_others_are() {
    let home = tempfile::tempdir().unwrap();
    let kept = Arc::new(Kept::new(home.path().join("kept"), "Two", "d".into(), "1"));
    let first = batch(vec![kept.around(Arc::new(Slow))]).run(&|_| ()).unwrap();
    assert_eq!(kept.kept(), 1, "the refusal is asked for again");
    let again = batch(vec![kept.around(Arc::new(Slow))]).run(&|_| ()).unwrap();
    assert_eq!((first, kept.kept()), (again, 1));
}

//! Grids in every engine: order, threads, what is absent, what is refused.

use std::sync::{Arc, Mutex};
use trunkline_batch::{Batch, BatchError, Outcome, cost, reseed, shown};
use trunkline_emu::Emulator;
use trunkline_engine::{EngineName, Note, NoteKind, SharedEngine};
use trunkline_measure::{Estimator, Quantity};
use trunkline_model::Formulas;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

const TEXT: &str = r#"
name = "Grid"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = ["1Mbit/s", "64kbit/s", "10Mbit/s"]
delay = "5ms"
loss = "1%"
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "20kB"
transport = "urp"
[[traffic]]
name = "keys"
kind = "interactive"
from = "a"
to = "b"
sizes = [1]
repeat = 30
estimator = "hawley-minimum"
transport = "urp"
[[traffic]]
name = "ticks"
kind = "timed-transfer"
from = "a"
to = "b"
sizes = [100]
duration = "1s"
transport = "urp"
"#;

fn cells() -> Vec<Scenario> {
    Scenario::parse(TEXT, "grid.toml").unwrap()
}

fn model() -> SharedEngine {
    Arc::new(Formulas)
}

fn sim() -> SharedEngine {
    Arc::new(Simulator)
}

fn run(engines: &[SharedEngine], threads: usize) -> Outcome {
    let batch = Batch { cells: cells(), engines: engines.to_vec(), threads };
    batch.run(&|_| ()).unwrap()
}

#[test]
fn runs_come_cell_by_cell_whatever_the_number_of_threads() {
    let first = run(&[sim(), model(), sim()], 1);
    let found: Vec<(&str, EngineName)> = first
        .report
        .runs
        .iter()
        .map(|run| (run.cell["link.line.rate"].as_str(), run.engine))
        .collect();
    let rates = ["1Mbit/s", "64kbit/s", "10Mbit/s"];
    assert_eq!(
        found,
        rates
            .iter()
            .flat_map(|&rate| [(rate, EngineName::MODEL), (rate, EngineName::SIM)])
            .collect::<Vec<_>>()
    );
    assert_eq!(first.violations, [""; 0]);
    for threads in [2, 7] {
        assert_eq!(run(&[model(), sim()], threads), first);
    }
}

#[test]
fn progress_counts_every_run() {
    let batch = Batch { cells: cells(), engines: vec![model(), sim()], threads: 2 };
    let told = Mutex::new(Vec::new());
    batch.run(&|now| told.lock().unwrap().push((now.done, now.label))).unwrap();
    let mut told = told.into_inner().unwrap();
    told.sort();
    assert_eq!(
        told.iter().map(|(done, _)| *done).collect::<Vec<_>>(),
        (1..=batch.runs()).collect::<Vec<_>>()
    );
    assert!(
        told.iter().any(|(_, label)| label == "sim: Grid, link.line.rate=64kbit/s"),
        "{told:?}"
    );
}

#[test]
fn what_an_engine_cannot_run_is_missing_with_the_reason() {
    // One kernel cannot have two minds about selective acknowledgements.
    let tcp = |name: &str, sack: bool| {
        format!(
            "[[traffic]]\nname = '{name}'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '1kB'\n\
             transport = {{ kind = 'tcp', sack = {sack} }}\ncommand = 'true'\n"
        )
    };
    let text = format!("{TEXT}{}{}", tcp("one", true), tcp("two", false));
    let cells = Scenario::parse(&text, "grid.toml").unwrap();
    let batch = Batch { cells, engines: vec![Arc::new(Emulator::default()), model()], threads: 1 };
    let report = batch.run(&|_| ()).unwrap().report;
    assert_eq!(report.engines(), [EngineName::MODEL, EngineName::EMU]);
    assert_eq!((report.runs.len(), report.unavailable.len()), (3, 3));
    let told = report.notes().into_iter().find(|it| it.note.kind == NoteKind::Unavailable);
    let told = told.unwrap().to_string();
    assert!(told.contains("'one' and 'two' want different tcp sack"), "{told}");
    assert!(told.contains("(3 cells)"), "{told}");
}

#[test]
fn a_failed_program_is_told_from_a_remark() {
    let mut run = trunkline_batch::make(&Formulas, &cells()[0]).unwrap();
    assert!(run.is_valid());
    run.notes = vec![
        Note::of_traffic("a", NoteKind::Failed, "'false': exit status: 1"),
        Note::of_traffic("b", NoteKind::Program, "curl: first byte after 2ms"),
    ];
    let found: Vec<String> = run.failures().collect();
    assert_eq!(found, ["traffic 'a' failed: 'false': exit status: 1"]);
    assert!(!run.is_valid());
    run.notes.remove(0);
    assert!(run.is_valid() && run.doubts().is_empty());
}

#[test]
fn each_workload_has_its_figure() {
    let cells = cells();
    let figures: Vec<(Quantity, Estimator)> =
        cells[0].traffic.iter().map(|one| (shown(one).quantity, shown(one).estimator)).collect();
    assert_eq!(
        figures,
        [
            (Quantity::Rate, Estimator::MEDIAN),
            (Quantity::Delay, Estimator::HawleyMinimum),
            (Quantity::Delay, Estimator::Mean),
        ]
    );
}

#[test]
fn a_seed_replaces_the_files_but_not_an_axis() {
    let mut cells = cells();
    reseed(&mut cells, 9).unwrap();
    assert!(cells.iter().all(|cell| cell.seed.0 == 9));
    let mut axis = Scenario::parse(&format!("seed = [1, 2]\n{TEXT}"), "grid.toml").unwrap();
    assert_eq!(reseed(&mut axis, 9), Err(BatchError::SeedVaries { seed: 9 }));
    assert_eq!(axis[0].seed.0, 1);
}

#[test]
fn more_work_costs_more() {
    let small = &cells()[0];
    let mut large = small.clone();
    large.traffic[0].count = 10;
    assert!(cost(&large) > cost(small));
}

/// A grid whose second axis has no effect, for no block is longer than a write.
#[test]
fn what_has_no_effect_is_noted() {
    let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\n\
                rate = ['1Mbit/s', '2Mbit/s']\n[[traffic]]\nname = 'file'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n\
                bytes = '20kB'\ntransport = { kind = 'urp', block = [1024, 2048, 4096] }\n";
    let report = |text: &str| {
        let cells = Scenario::parse(text, "t.toml").unwrap();
        let engines = vec![sim(), model()];
        Batch { cells, engines, threads: 2 }.run(&|_| ()).unwrap().report
    };
    let notes = report(text).notes();
    let axis = "sim: traffic.file.transport.block has no effect: 1024 and 2048 and 4096 give the same measurements";
    assert!(notes.iter().any(|note| note.to_string().starts_with(axis)), "{notes:?}");
    for engine in ["sim", "model"] {
        let capped = format!(
            "{engine}: traffic.file.transport.block = 4096 is capped to 1024, the bytes of a system write: give write = 4096 or more"
        );
        assert!(notes.iter().any(|note| note.to_string().starts_with(&capped)), "{notes:?}");
    }
    let notes = report(&text.replace("bytes =", "write = 4096\nbytes =")).notes();
    assert!(notes.iter().all(|it| it.note.kind != NoteKind::NoEffect), "{notes:?}");
}

/// The last packets are sent again and again on a line that has gone, which is in no message's time.
#[test]
fn what_changes_time_outs_alone_has_an_effect() {
    let text = "stop_after = '1h'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                delay = '50ms'\nforward = { schedule = '500ms loss=100%' }\n[[traffic]]\nname = 'call'\n\
                kind = 'interactive'\nsizes = [1000]\nrepeat = 1000\nevery = '100ms'\nfrom = 'a'\nto = 'b'\n\
                transport = { kind = 'tcp', profile = ['trunkline', 'bsd-reno'] }\n";
    let cells = Scenario::parse(text, "t.toml").unwrap();
    let report = Batch { cells, engines: vec![sim()], threads: 2 }.run(&|_| ()).unwrap().report;
    let [one, other] = [0, 1].map(|at| &report.runs[at].traffic[0]);
    assert_eq!(one.samples, other.samples);
    assert_ne!(one.timeouts, other.timeouts);
    let notes = report.notes();
    assert!(notes.iter().all(|it| it.note.kind != NoteKind::NoEffect), "{notes:?}");
}

/// A simulated run that takes a while says how far it is.
#[test]
fn a_long_simulated_run_tells_how_far_it_is() {
    let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                rate = '10Gbit/s'\n[[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\n\
                size = 100\nrate = '1Gbit/s'\nduration = '200ms'\n";
    let cells = Scenario::parse(text, "long.toml").unwrap();
    let told = Mutex::new(Vec::new());
    let batch = Batch { cells, engines: vec![sim()], threads: 2 };
    batch.run(&|now| told.lock().unwrap().push((now.done, now.label))).unwrap();
    let told = told.into_inner().unwrap();
    let (last, before) = told.split_last().unwrap();
    assert_eq!(last, &(1, "sim: long".to_string()));
    let under_way = |(done, label): &(usize, String)| {
        *done == 0 && label.starts_with("sim: long, ") && label.ends_with("ms of virtual time")
    };
    assert!(!before.is_empty() && before.iter().all(under_way), "{before:?}");
}

/// So does one of a cluster, and it tells how many have been done.
#[test]
fn a_long_run_of_a_cluster_tells_how_far_it_is() {
    let text = "[[cluster]]\nname = 'c'\nkind = 'leaf-spine'\nrate = ['1Gbit/s', '10Gbit/s']\nnodes = 4\n\
                test = { kind = 'latency', words = [1], rounds = 20000, warm_up = 1 }\n";
    let cells = Scenario::parse(text, "long.toml").unwrap();
    let told = Mutex::new(Vec::new());
    let batch = Batch { cells, engines: vec![sim()], threads: 1 };
    batch.run(&|now| told.lock().unwrap().push((now.done, now.label))).unwrap();
    let told = told.into_inner().unwrap();
    let under_way = told.iter().filter(|it| it.1.ends_with("ms of virtual time"));
    let mut done: Vec<usize> = under_way.map(|it| it.0).collect();
    done.dedup();
    assert_eq!(done, [0, 1], "{told:?}");
}

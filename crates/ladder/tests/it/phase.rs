//! What phase decides is told from what engines dispute.
//!
//! In place of an emulation stands a simulation of another phase, or of another path.

use trunkline_batch::make;
use trunkline_core::{Seed, Span};
use trunkline_engine::{EngineName, Pace, Run};
use trunkline_ladder::{Figures, Ladder, Moves, Row, Tolerances, Verdict, figures_of, terminal};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// Packets that all simulations of a test may send together.
const BUDGET: u64 = 4_000_000;

/// A download beside an upload, whose acknowledgements queue among the upload's blocks.
const FILE: &str = r#"
    name = "up and down"
    stop_after = "60s"
    [[host]]
    name = "home"
    [[host]]
    name = "server"
    [[link]]
    between = ["home", "server"]
    delay = "10ms"
    forward = { rate = "1Mbit/s", limit = "64KiB" }
    backward = { rate = "16Mbit/s" }
    [[traffic]]
    name = "upload"
    kind = "bulk"
    from = "home"
    to = "server"
    bytes = "50kB"
    transport = { kind = "urp", block = 1024, outstanding = 7, packet = 0 }
    until = "download"
    [[traffic]]
    name = "download"
    kind = "bulk"
    from = "server"
    to = "home"
    bytes = "500kB"
    repeat = 2
    transport = { kind = "urp", block = 4096, outstanding = 7, packet = 0 }
    start_after = "upload:50kB"
"#;

fn scenario() -> Scenario {
    Scenario::parse(FILE, "t.toml").unwrap().remove(0)
}

fn simulated(scenario: &Scenario) -> Run {
    make(&Simulator, scenario).unwrap()
}

fn moves(scenario: &Scenario) -> Moves {
    let sent = simulated(scenario).traffic.iter().map(|traffic| traffic.packets.sent).sum();
    Moves::of(scenario, sent, BUDGET)
}

fn asked(scenario: &Scenario) -> Vec<Figures> {
    let phases = moves(scenario).phases(scenario);
    phases.iter().map(|phase| figures_of(scenario, &simulated(phase))).collect()
}

/// A ladder whose emulation is `emulated`, judged with the simulator's phases.
fn ladder(emulated: &Scenario, phases: &[Figures]) -> Ladder {
    let scenario = scenario();
    let emulation = Run { engine: EngineName::EMU, pace: Pace::Real, ..simulated(emulated) };
    let runs = [simulated(&scenario), emulation];
    let mut ladder = Ladder::new(&scenario, &runs, &Tolerances::default());
    if ladder.is_apart() {
        ladder.consider(phases, moves(&scenario), &Tolerances::default());
    }
    ladder
}

fn download(ladder: &Ladder) -> &Row {
    ladder.rows.iter().find(|row| row.traffic == "download").unwrap()
}

fn verdict(row: &Row) -> Verdict {
    row.judgements[&EngineName::EMU].verdict
}

#[test]
fn what_phase_decides_is_found() {
    let scenario = scenario();
    let phases = asked(&scenario);
    let elsewhere = Scenario { seed: Seed(77), ..scenario.clone() };
    let ladders = moves(&scenario).phases(&elsewhere).into_iter().take(12);
    let ladders: Vec<Ladder> = ladders.map(|other| ladder(&other, &phases)).collect();
    let rows: Vec<&Row> = ladders.iter().map(download).collect();
    let decided: Vec<&&Row> = rows.iter().filter(|row| verdict(row) == Verdict::Phase).collect();
    assert!(decided.len() >= 4, "{rows:#?}");
    assert!(rows.iter().all(|row| verdict(row) != Verdict::Differ), "{rows:#?}");
    for row in decided {
        let range = row.range.unwrap();
        assert!(range.runs == 39 && range.width() > 0.2, "{range:?}");
    }
    let texts: String = ladders.iter().map(terminal).collect();
    for part in ["within the phase range", "sim gives", "in 39 runs", "make the scenario longer"] {
        assert!(texts.contains(part), "{part}: {texts}");
    }
}

#[test]
fn what_phase_does_not_decide_still_differs() {
    let phases = asked(&scenario());
    for (delay, rate) in [(30, None), (10, Some(2_000_000))] {
        let mut other = scenario();
        let wire = &mut other.links[0];
        wire.forward.delay = Span::from_millis(delay);
        wire.backward.delay = Span::from_millis(delay);
        if let Some(rate) = rate {
            wire.forward.rate = Some(trunkline_core::Rate::from_bits_per_second(rate));
        }
        let ladder = ladder(&other, &phases);
        let row = download(&ladder);
        assert_eq!(verdict(row), Verdict::Differ, "{row:#?}");
        let range = row.range.expect("the range is told where it does not help, too");
        let emulated = row.figures[&EngineName::EMU].value;
        assert!(emulated < range.low || emulated > range.high, "{range:?}");
        assert!(!row.judgements[&EngineName::EMU].because.is_empty(), "{row:#?}");
        assert!(terminal(&ladder).contains("sim gives"), "{}", terminal(&ladder));
    }
}

#[test]
fn what_agrees_needs_no_phases() {
    let ladder = ladder(&scenario(), &[]);
    assert!(!ladder.is_apart() && ladder.moves.is_none());
    assert!(ladder.rows.iter().all(|row| row.range.is_none() && verdict(row) == Verdict::Agree));
}

#[test]
fn the_same_seed_gives_the_same_phases() {
    let scenario = scenario();
    let moves = moves(&scenario);
    assert_eq!(moves.phases(&scenario), moves.phases(&scenario));
    assert_eq!(asked(&scenario), asked(&scenario));
    let other = Scenario { seed: Seed(2), ..scenario.clone() };
    assert_ne!(moves.phases(&scenario)[0].seed, moves.phases(&other)[0].seed);
}

#[test]
fn long_scenarios_are_asked_less_often() {
    let scenario = scenario();
    let runs = |packets| Moves::of(&scenario, packets, BUDGET).runs;
    assert_eq!((runs(0), runs(1000), runs(200_000), runs(100_000_000)), (39, 39, 20, 8));
}

#[test]
fn hosts_vary_within_what_their_links_leave() {
    let mut scenario = scenario();
    assert_eq!(Moves::of(&scenario, 1, BUDGET).packets, Span::from_micros(100));
    scenario.links[0].forward.delay = Span::ZERO;
    let moves = Moves::of(&scenario, 1, BUDGET);
    assert_eq!(moves.packets, Span::ZERO);
    assert!(moves.phases(&scenario).iter().all(|it| it.hosts[0].processor.unsteady.is_zero()));
}

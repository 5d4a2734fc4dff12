//! A scenario from its laboratory to its result, and again if the machine was disturbed.

use crate::collect::Measured;
use crate::conduct::{Conductor, settle};
use crate::kernel::sysctls;
use crate::laboratory::{LEAD, Laboratory, Network};
use crate::load::{self, Ticks};
use crate::options::AtWork;
use crate::plan::Plan;
use crate::rights::get_rights;
use crate::turn::Turn;
use crate::validity::{FOREIGN, Machine};
use crate::{EmuError, Options, Progress, flows};
use std::thread;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_dataplane::{Console, keep_off, monotonic, processors};
use trunkline_endpoint::{Flow, FlowRun, HostThreads};
use trunkline_engine::{Note, NoteKind, Run};
use trunkline_netns::{Namespace, RunState, runtime_dir, sweep_all};
use trunkline_scenario::Network as Lowered;

/// How long another testbed is waited for.
const TURN: Duration = Duration::from_secs(3600);
/// For how long it is looked what others do with the processors.
const MOMENT: Duration = Duration::from_millis(200);
/// How often, while they do too much for a run: one that begins then is INVALID.
const LOOKS: u32 = 10;
/// How long what was sent to make connections may be under way.
const SETTLING: Span = Span::from_secs(3);

/// Runs one cell of a scenario in real time, with real packets. A measurement during which the machine was
/// disturbed is made again, as often as the options allow; the last says why it is invalid, if it is.
///
/// Without the rights of root, [`get_rights`] has to be called before, while the process has one thread.
///
/// # Errors
/// If the scenario cannot be built on real hosts, or the laboratory not be had.
pub fn run(lowered: &Lowered<'_>, options: &Options<'_>) -> Result<Run, EmuError> {
    // On a thread of its own, for the processors that it may use are a thread's, and programs die with the
    // thread that has started them.
    let no_thread = |source| EmuError::System { what: "start a thread", source };
    let thread = trunkline_netns::thread("testbed").map_err(no_thread)?;
    thread::scope(|scope| {
        let handle =
            thread.spawn_scoped(scope, || repeated(lowered, options)).map_err(no_thread)?;
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn repeated(lowered: &Lowered<'_>, options: &Options<'_>) -> Result<Run, EmuError> {
    let _at_work = AtWork::begin()?;
    let (scenario, plan) = (lowered.scenario(), Plan::of(lowered)?);
    // What cannot be built is said before anybody waits for a turn.
    (0..plan.stations.len()).try_for_each(|station| sysctls(scenario, &plan, station).map(drop))?;
    get_rights()?;
    let (host, directory) = (Namespace::current()?, runtime_dir()?);
    for line in sweep_all(&host)? {
        tracing::info!("{line}");
    }
    let state = RunState::create(&directory, &host)?;
    if let Some(socket) = options.console.and_then(Console::socket) {
        state.update(|record| record.control_socket = Some(socket.to_owned()))?;
    }
    let waiting = || options.tell(&Progress { waiting: true, ..Progress::default() });
    let _turn = Turn::wait(&directory, TURN, &waiting, &|| options.is_cancelled())?;
    let attempts = options.attempts.max(1);
    let mut earlier: Option<String> = None;
    for attempt in 1.. {
        let mut run = once(lowered, &plan, &state, options, attempt)?;
        let spoilt = run.invalid().next();
        // What has carried nothing would carry nothing again: its programs failed, or it was too short for its path.
        let is_empty = run.traffic.iter().all(|traffic| traffic.packets.delivered == 0);
        if spoilt.is_none() || is_empty || attempt >= attempts {
            run.notes.extend(earlier.map(|why| repetition(&why, attempt)));
            return Ok(run);
        }
        earlier = spoilt;
    }
    unreachable!("the attempts end")
}

/// Says that and why a measurement was made again.
fn repetition(why: &str, attempt: u32) -> Note {
    let times = if attempt == 2 { "once".to_string() } else { format!("{} times", attempt - 1) };
    let text = format!("measured again {times}, because the machine was disturbed: {why}");
    Note::new(NoteKind::Repeated, text)
}

fn once(
    lowered: &Lowered<'_>,
    plan: &Plan,
    state: &RunState,
    options: &Options<'_>,
    attempt: u32,
) -> Result<Run, EmuError> {
    let look = || if options.is_cancelled() { 0.0 } else { load::foreign(MOMENT) };
    let (scenario, foreign) = (lowered.scenario(), load::calm(LOOKS, FOREIGN, look));
    let laboratory = Laboratory::build(scenario, plan, state)?;
    let cpu = spare_processor(&laboratory);
    let capture = options.console.and_then(Console::next_capture);
    let network = laboratory.start(scenario, plan, (monotonic(), cpu), capture)?;
    let threads = HostThreads::new();
    let flows = flows::prepare(lowered, plan, &laboratory, &threads, options)?;
    let origin = begin(&network)?;
    // Not before: the links forget what was changed until now.
    let presence = options.console.map(|console| console.enter(network.session()));
    let (before, ticks) = (network.snapshot(), Ticks::now());
    let conductor = Conductor::new(scenario, plan, &network, &flows, origin);
    // Nobody waits for programs whose results nobody will read: together they might take long to end.
    let states = conductor.run(options, attempt).inspect_err(|_| laboratory.end_programs())?;
    let machine = machine_since(&ticks, foreign);
    let flows = joined(flows);
    let ended = monotonic();
    let machine = Machine { lasted: ended.since(origin), ..machine };
    drop(presence);
    let (session, mut network) = network.end();
    std::mem::replace(&mut network.result, Ok(()))?;
    let measured = Measured {
        lowered,
        scenario,
        plan,
        origin,
        ended,
        flows,
        states,
        before,
        network: &network,
        session: &session,
        machine,
    };
    Ok(measured.into_run())
}

/// What the machine did since `before`, of a run that lasts no longer.
fn machine_since(before: &Ticks, foreign: f64) -> Machine {
    let now = Ticks::now();
    let (busy, stolen) = (now.busy_since(before), now.stolen_since(before));
    Machine { foreign, busy, stolen, lasted: Span::ZERO }
}

/// Ends all flows that have not ended, at the same time, and takes what they have measured.
fn joined(flows: Vec<Vec<Flow>>) -> Vec<Vec<FlowRun>> {
    flows.iter().flatten().for_each(Flow::stop);
    flows.into_iter().map(|flows| flows.into_iter().map(Flow::join).collect()).collect()
}

/// Keeps everything but the emulator off a processor, if there are several, and gives that processor's
/// number.
fn spare_processor(laboratory: &Laboratory) -> Option<usize> {
    let all = processors();
    let last = all.last().copied().filter(|_| all.len() > 1)?;
    if let Err(error) = laboratory.spare(last, &all) {
        tracing::debug!(%error, "receivers work on the emulator's processor");
        return None;
    }
    keep_off(last);
    Some(last)
}

/// Lets time begin: whatever was sent to make connections is forgotten, and the links are as new.
fn begin(network: &Network) -> Result<Time, EmuError> {
    settle(network, SETTLING);
    let origin = monotonic() + LEAD;
    network.live().restart(origin);
    while !network.live().has_restarted() && !network.has_ended() {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(origin)
}

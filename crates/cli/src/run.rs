//! What `shell` and `bridge` have in common: permission, clean-up of earlier runs, start and end.

use crate::failure::Failure;
use crate::options::EmulatorArgs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use trunkline_emu::capture::CaptureTap;
use trunkline_emu::{EmuError, Plan, Session, SessionOptions, Snapshot};
use trunkline_lab::{Namespace, RunState, enter_user_namespace_if_needed, runtime_dir, sweep};

/// Gets the rights that a laboratory needs, removes what killed runs left, and starts this run's record.
pub fn prepare() -> Result<(Namespace, RunState), Failure> {
    let privilege = enter_user_namespace_if_needed()?;
    let host = Namespace::current()?;
    let directory = runtime_dir(privilege);
    for line in sweep(&host, &directory)? {
        eprintln!("trunkline: from a killed run: {line}");
    }
    let state = RunState::create(&directory, &host)?;
    Ok((host, state))
}

/// A path at work.
pub struct Running {
    /// The session, for control.
    pub session: Arc<Session>,
    thread: JoinHandle<(Snapshot, Result<(), EmuError>)>,
    ended: Option<Receiver<()>>,
}

/// How a run came out.
pub struct Ending {
    /// The final state.
    pub snapshot: Snapshot,
    emulator: Result<(), EmuError>,
}

impl Ending {
    /// Fails where the emulator ended by itself.
    pub fn check(&self) -> Result<(), Failure> {
        self.emulator.as_ref().map_or_else(|error| Err(Failure::failed(error)), |()| Ok(()))
    }
}

/// Starts emulating `plans`.
pub fn start(
    plans: Vec<Plan<'_>>,
    args: &EmulatorArgs,
    _state: &RunState,
) -> Result<Running, Failure> {
    let options = SessionOptions {
        backend: args.backend,
        dataplane: args.dataplane(),
        tap: CaptureTap::default(),
        bound: args.bound,
    };
    let (session, thread) = Session::start(plans, options)?;
    let (sender, ended) = channel();
    let thread = std::thread::spawn(move || {
        let result = thread.join();
        drop(sender);
        result
    });
    Ok(Running { session: Arc::new(session), thread, ended: Some(ended) })
}

impl Running {
    /// Something that ends when the emulator does.
    pub fn thread_ended(&mut self) -> Receiver<()> {
        self.ended.take().unwrap_or_else(|| channel().1)
    }

    /// Stops the emulator and gives its final state.
    pub fn end(self) -> Result<Ending, Failure> {
        self.session.stop();
        let joined = self.thread.join();
        let (snapshot, emulator) =
            joined.map_err(|_| Failure::failed("the emulator crashed; please report this"))?;
        Ok(Ending { snapshot, emulator })
    }
}

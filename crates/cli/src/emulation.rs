//! What `shell` and `bridge` have in common: permission, clean-up of earlier runs, start and end.

use crate::failure::Failure;
use crate::options::EmulatorArgs;
use crate::output;
use std::cell::RefCell;
use std::sync::Arc;
use trunkline_control::{Server, SessionController, socket_path};
use trunkline_emu::capture::{Capture, CaptureHandle, CaptureTap};
use trunkline_emu::{EmuError, Options, Plan, Session, SessionOptions, SessionThread, Snapshot};
use trunkline_lab::{Namespace, RunState, enter_user_namespace_if_needed, runtime_dir, sweep_all};

/// Gets the rights that a laboratory needs, removes what killed runs left, and starts this run's record.
pub fn prepare() -> Result<(Namespace, RunState), Failure> {
    enter_user_namespace_if_needed()?;
    prepare_on_host()
}

/// The same for work on the machine's own devices. A user namespace of our own gives no rights over those, so it is not
/// entered: what a packet socket needs is there, or the error says what is missing.
pub fn prepare_on_host() -> Result<(Namespace, RunState), Failure> {
    let host = Namespace::current()?;
    for line in sweep_all(&host)? {
        output::tell(format_args!("from a killed run: {line}"));
    }
    let state = RunState::create(&runtime_dir()?, &host)?;
    Ok((host, state))
}

/// A path at work.
pub struct Running {
    session: Arc<Session>,
    thread: SessionThread,
    capture: Option<CaptureHandle>,
    /// The devices that were said to be down.
    down: RefCell<Vec<String>>,
    _control: Server,
}

/// How a run came out.
pub struct Ending {
    /// The final state.
    pub snapshot: Snapshot,
    emulator: Result<(), EmuError>,
    capture: Result<(), Failure>,
}

impl Ending {
    /// Fails where the emulator or the capture ended by itself.
    pub fn check(self) -> Result<(), Failure> {
        self.emulator?;
        self.capture
    }
}

/// Starts emulating `plans`, with a capture where one is asked for, and listens for `show` and `set`.
pub fn start(
    plans: Vec<Plan<'_>>,
    args: &EmulatorArgs,
    dataplane: Options,
    state: &RunState,
) -> Result<Running, Failure> {
    let command: Vec<String> = std::env::args().collect();
    let command = command.join(" ");
    let (tap, capture) = match &args.pcap {
        Some(file) => {
            let (tap, handle) = Capture::start(file, &command, args.pcap_at)?;
            (tap, Some(handle))
        }
        None => (CaptureTap::default(), None),
    };
    let options = SessionOptions { backend: args.backend, dataplane, tap, bound: args.bound };
    let (session, thread) = Session::start(plans, options)?;
    let session = Arc::new(session);
    let socket = socket_path()?;
    state.update(|record| record.control_socket = Some(socket.clone()))?;
    let controller = SessionController::new(Arc::clone(&session), &command);
    let control = Server::start(&socket, Arc::new(controller))?;
    Ok(Running { session, thread, capture, down: RefCell::default(), _control: control })
}

impl Running {
    /// Has the emulator stopped, or the capture failed? Then the run is of no more use.
    pub fn trouble(&self) -> Option<String> {
        let capture = self.capture.as_ref().and_then(CaptureHandle::failed);
        let stopped = || self.thread.is_finished().then(|| "the emulator has stopped".to_string());
        capture.or_else(stopped)
    }

    /// Says which devices have gone down since the last call, and which have come up again.
    pub fn tell_of_devices(&self) {
        let mut told = self.down.borrow_mut();
        let now: Vec<String> = self.session.devices_down().into_iter().map(Into::into).collect();
        for device in now.iter().filter(|device| !told.contains(device)) {
            output::tell(format_args!(
                "device '{device}' is down: what is sent to it is lost until it is up (ip link set {device} up)"
            ));
        }
        for device in told.iter().filter(|device| !now.contains(device)) {
            output::tell(format_args!("device '{device}' is up again"));
        }
        *told = now;
    }

    /// Stops the emulator and the capture, and gives the final state.
    pub fn end(self) -> Ending {
        self.session.stop();
        let (snapshot, emulator) = self.thread.join();
        let capture = self.capture.map_or(Ok(()), finish);
        Ending { snapshot, emulator, capture }
    }
}

fn finish(capture: CaptureHandle) -> Result<(), Failure> {
    let summary = capture.finish()?;
    output::tell(format_args!("captured {} records, {} bytes", summary.written, summary.bytes));
    if summary.missed > 0 {
        output::tell(format_args!(
            "{} records are missing from the capture: the disk did not keep up",
            summary.missed
        ));
    }
    Ok(())
}

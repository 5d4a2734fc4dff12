//! The common part of verbs in real time: permission, clean-up of earlier runs, start and end.

use crate::engines;
use crate::failure::Failure;
use crate::files;
use crate::options::EmulatorArgs;
use crate::output;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trunkline_control::{Server, SessionController, socket_path};
use trunkline_dataplane::capture::{CaptureError, CaptureFilter, CaptureSummary};
use trunkline_dataplane::{
    CaptureRequest, Console, DataplaneError, Ended, Options, Plan, Session, SessionOptions,
    SessionThread, Snapshot,
};
use trunkline_engine::EngineName;
use trunkline_netns::{
    Namespace, RunState, enter_user_namespace_if_needed, runtime_dir, sweep_all,
};

/// The file and the links of a capture of what a scenario emulates.
#[derive(Debug, Clone, clap::Args)]
pub struct CaptureArgs {
    /// Capture what is emulated to FILE (pcapng; an interface for each direction of a link, dropped packets with their
    /// cause); a second measurement goes to FILE-2, and so on
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

impl CaptureArgs {
    /// A console for what is emulated beside results at `out`, and who listens there for `show` and `set`; nothing if nothing is emulated.
    /// To be asked for once there are rights: this starts a thread.
    pub fn console(
        &self,
        engines: &[EngineName],
        out: Option<&Path>,
    ) -> Result<(Option<Arc<Console>>, Option<Server>), Failure> {
        if !engines::any_real(engines) {
            return match &self.pcap {
                Some(_) => {
                    Err(Failure::wrong_use("--pcap captures real frames: add emu to --engine"))
                }
                None => Ok((None, None)),
            };
        }
        let console = console(self.pcap.as_deref(), CaptureFilter::Both)?;
        files::differ(&[self.pcap.as_deref(), out])?;
        let control = listen(&console, None).inspect_err(|failure| {
            output::tell(format_args!(
                "`show` and `set` do not reach this run: {}",
                failure.message()
            ));
        });
        Ok((Some(console), control.ok()))
    }
}

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
    /// The devices that were said to be down.
    down: RefCell<Vec<String>>,
    quiet: bool,
    _control: Server,
}

/// The outcome of a run.
pub struct Ending {
    /// The final state.
    pub snapshot: Snapshot,
    emulator: Result<(), DataplaneError>,
    capture: Result<(), Failure>,
}

impl Ending {
    /// Fails if the emulator or the capture ended by itself.
    pub fn check(self) -> Result<(), Failure> {
        self.emulator?;
        self.capture
    }
}

/// This process's command line.
fn command() -> String {
    output::words().join(" ")
}

/// A console whose sessions are captured to `file`, if that is asked for.
pub fn console(file: Option<&Path>, filter: CaptureFilter) -> Result<Arc<Console>, Failure> {
    files::writable(&[file])?;
    let request =
        |file: &Path| CaptureRequest { file: file.to_owned(), command: command(), filter };
    Ok(Arc::new(Console::new(file.map(request))))
}

/// Listens for `show` and `set` at a console, and notes the address in `state`.
pub fn listen(console: &Arc<Console>, state: Option<&RunState>) -> Result<Server, Failure> {
    let socket = socket_path()?;
    if let Some(state) = state {
        state.update(|record| record.control_socket = Some(socket.clone()))?;
    }
    let controller = SessionController::new(Arc::clone(console), &command());
    let server = Server::start(&socket, Arc::new(controller))?;
    console.answers_at(socket);
    Ok(server)
}

/// Starts emulating `plans`, with a capture if one is asked for, and listens for `show` and `set`.
pub fn start(
    plans: Vec<Plan<'_>>,
    args: &EmulatorArgs,
    dataplane: Options,
    state: &RunState,
) -> Result<Running, Failure> {
    files::writable(&[args.pcap.as_deref(), args.report.as_deref()])?;
    let console = console(args.pcap.as_deref(), args.pcap_at)?;
    let (backend, bound, capture) = (args.backend, args.bound, console.next_capture());
    let options = SessionOptions { backend, dataplane, capture, bound };
    let (session, thread) = Session::start(plans, options)?;
    let session = Arc::new(session);
    console.show(Arc::clone(&session));
    let control = listen(&console, Some(state))?;
    let (down, quiet) = (RefCell::default(), args.quiet);
    Ok(Running { session, thread, down, quiet, _control: control })
}

impl Running {
    /// The reason why the run is of no more use: the emulator has stopped, or the capture failed.
    pub fn trouble(&self) -> Option<String> {
        let stopped = || self.thread.is_finished().then(|| "the emulator has stopped".to_string());
        self.thread.capture_failed().or_else(stopped)
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
        let Ended { snapshot, result, capture, .. } = self.thread.join();
        let capture = capture.map_or(Ok(()), |capture| tell_of_capture(capture, self.quiet));
        Ending { snapshot, emulator: result, capture }
    }
}

fn tell_of_capture(
    capture: Result<CaptureSummary, CaptureError>,
    quiet: bool,
) -> Result<(), Failure> {
    let summary = capture?;
    if !quiet {
        output::tell(format_args!("captured {} records, {} bytes", summary.written, summary.bytes));
    }
    if summary.missed > 0 {
        output::tell(format_args!(
            "{} records are missing from the capture: the disk did not keep up",
            summary.missed
        ));
    }
    Ok(())
}

//! A running path: ports opened, memory reserved, the dataplane in its thread.

use crate::capture::{CaptureTap, Side};
use crate::dataplane::{Dataplane, Inlet, Options, Remote};
use crate::lane::Lane;
use crate::pool::FramePool;
use crate::snapshot::Snapshot;
use crate::{EmuError, store};
use std::sync::Mutex;
use std::thread::JoinHandle;
use trunkline_core::{Span, Time};
use trunkline_lab::{Namespace, available_memory};
use trunkline_port::{Backend, Port};
use trunkline_scenario::{Direction, PathSpec, SettingError, Settings};

/// One path to emulate, and the two devices that it joins.
pub struct Plan<'a> {
    /// Its name where there are several, else empty.
    pub name: String,
    /// What it does to packets.
    pub path: PathSpec,
    /// Where the devices are.
    pub namespace: &'a Namespace,
    /// The device towards the near end.
    pub near: String,
    /// The device towards the far end.
    pub far: String,
}

/// How a session runs.
#[derive(Debug, Default)]
pub struct SessionOptions {
    /// How frames are exchanged with the kernel.
    pub backend: Backend,
    /// How the loop runs.
    pub dataplane: Options,
    /// Where frames are shown as they pass.
    pub tap: CaptureTap,
    /// How late a frame may be before it counts as late.
    pub bound: Span,
}

/// Paths that are being emulated.
pub struct Session {
    remote: Remote,
    paths: Mutex<Vec<(String, PathSpec)>>,
    arena: u64,
    backends: Vec<String>,
    /// The devices of the ports, in their order.
    devices: Vec<String>,
    origin: Time,
}

/// The thread of a session, to be waited for.
pub struct SessionThread(JoinHandle<(Snapshot, Result<(), EmuError>)>);

impl SessionThread {
    /// Has the dataplane ended?
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the end; gives the final state, and why it ended where that was not asked for.
    ///
    /// # Panics
    /// Where the dataplane's thread did.
    pub fn join(self) -> (Snapshot, Result<(), EmuError>) {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Session {
    /// Starts emulating `plans` in one thread.
    ///
    /// # Errors
    /// Where a device cannot be opened or the paths do not fit into memory.
    pub fn start(
        plans: Vec<Plan<'_>>,
        options: SessionOptions,
    ) -> Result<(Session, SessionThread), EmuError> {
        let specs: Vec<PathSpec> = plans.iter().map(|plan| plan.path.clone()).collect();
        let arena = store::arena_for(&specs, available_memory())?;
        let origin = crate::clock::monotonic();
        let (mut inlets, mut lanes, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for plan in plans {
            for (direction, side) in [(Direction::Up, Side::Near), (Direction::Down, Side::Far)] {
                let device = if side == Side::Near { &plan.near } else { &plan.far };
                inlets.push(Inlet {
                    port: open(plan.namespace, device, options.backend)?,
                    lane: lanes.len(),
                });
                let name = lane_name(&plan.name, direction);
                let (spec, key) = (plan.path.link(direction), plan.path.key);
                lanes.push(Lane::new(
                    &name,
                    side,
                    spec,
                    key,
                    plan.path.seed,
                    origin,
                    options.bound,
                ));
            }
            paths.push((plan.name, plan.path));
        }
        let devices = inlets.iter().map(|inlet| inlet.port.device().to_string()).collect();
        let backends = inlets.iter().map(|inlet| inlet.port.backend_name().to_string()).collect();
        let pool = FramePool::try_new(arena)
            .ok_or(EmuError::Memory { needed: arena, available: available_memory() })?;
        let (dataplane, remote) =
            Dataplane::new(inlets, lanes, pool, options.tap, options.dataplane)?;
        let thread = std::thread::Builder::new()
            .name("dataplane".into())
            .spawn(move || dataplane.run())
            .map_err(EmuError::Wait)?;
        let session =
            Session { remote, paths: Mutex::new(paths), arena, backends, devices, origin };
        Ok((session, SessionThread(thread)))
    }

    /// The state, at most 100 ms old.
    pub fn snapshot(&self) -> Snapshot {
        self.remote.snapshot()
    }

    /// The devices that were down when last looked at, a second ago at most. Frames to them are lost, and the run goes on.
    pub fn devices_down(&self) -> Vec<&str> {
        let down = self.remote.down();
        let numbered = self.devices.iter().enumerate().take(64);
        numbered.filter(|(index, _)| down >> index & 1 == 1).map(|(_, name)| &**name).collect()
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.remote.stop();
    }

    /// The paths as set now, with their names.
    pub fn paths(&self) -> Vec<(String, PathSpec)> {
        self.lock().clone()
    }

    /// The backend of each port.
    pub fn backends(&self) -> &[String] {
        &self.backends
    }

    /// The instant of [`monotonic`](crate::monotonic) at which slot clocks, traces and schedules began.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// Changes settings of the path called `name` (or of the only one), `after` from now.
    ///
    /// # Errors
    /// Where a setting cannot be used, or the changed paths no longer fit into the memory reserved.
    pub fn change(
        &self,
        name: Option<&str>,
        settings: &Settings,
        after: Span,
    ) -> Result<PathSpec, ChangeError> {
        self.change_at(name, settings, crate::clock::monotonic() + after)
    }

    /// Changes settings at the instant `at` of [`monotonic`](crate::monotonic), or as soon as the
    /// emulator reads the request (100 ms, or a second where frames are always due) if that is later.
    ///
    /// # Errors
    /// As [`Session::change`].
    pub fn change_at(
        &self,
        name: Option<&str>,
        settings: &Settings,
        at: Time,
    ) -> Result<PathSpec, ChangeError> {
        let mut paths = self.lock();
        let index = find(&paths, name)?;
        let mut changed = paths.clone();
        let changes = changed[index].1.change(settings)?;
        let specs: Vec<PathSpec> = changed.iter().map(|(_, path)| path.clone()).collect();
        let needed = store::required(&specs);
        if needed > self.arena {
            return Err(EmuError::Memory { needed, available: self.arena }.into());
        }
        if self.remote.is_ending() {
            return Err(ChangeError::Ending);
        }
        for (direction, change) in changes {
            self.remote.change(2 * index + direction as usize, at, change);
        }
        *paths = changed;
        Ok(paths[index].1.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, PathSpec)>> {
        self.paths.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Why settings of a running path could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The change does not fit.
    #[error(transparent)]
    Emulator(#[from] EmuError),
    /// No path of this name.
    #[error("there is no path '{0}' in this run: `trunkline show` lists them")]
    NoPath(String),
    /// Nothing is carried any more.
    #[error("this run is ending: nothing was changed")]
    Ending,
    /// Several paths, and none named.
    #[error("this run has several paths: name one of {0} with --link")]
    Several(String),
}

fn find(paths: &[(String, PathSpec)], name: Option<&str>) -> Result<usize, ChangeError> {
    match name {
        Some(name) => paths
            .iter()
            .position(|(other, _)| other == name)
            .ok_or_else(|| ChangeError::NoPath(name.to_string())),
        None if paths.len() == 1 => Ok(0),
        None => {
            let names: Vec<&str> = paths.iter().map(|(name, _)| name.as_str()).collect();
            Err(ChangeError::Several(names.join(", ")))
        }
    }
}

fn lane_name(path: &str, direction: Direction) -> String {
    if path.is_empty() { direction.to_string() } else { format!("{path}/{direction}") }
}

fn open(namespace: &Namespace, device: &str, backend: Backend) -> Result<Box<dyn Port>, EmuError> {
    Ok(namespace.run(|| trunkline_port::open(device, backend))??)
}

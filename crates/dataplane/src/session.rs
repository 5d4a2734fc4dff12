//! A dataplane at work: ports opened, memory reserved, a thread of its own, settings that can change.

use crate::capture::{
    Capture, CaptureError, CaptureHandle, CapturePlan, CaptureSummary, CaptureTap,
};
use crate::console::CaptureRequest;
use crate::dataplane::{Dataplane, Options, Remote};
use crate::paths::{ChangeError, Changed, Paths};
use crate::plane::{LanePlan, Live, Plane, PlaneLayout, Takes, WayPlan};
use crate::snapshot::Snapshot;
use crate::{DataplaneError, store};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use trunkline_core::{Span, Time};
use trunkline_netns::{Namespace, available_memory};
use trunkline_port::{Backend, Port};
use trunkline_scenario::{Direction, PathSpec, Settings};

/// One path to emulate, and the two devices that it joins.
pub struct Plan<'a> {
    /// Its name if there are several, else empty.
    pub name: String,
    /// The path that packets cross.
    pub path: PathSpec,
    /// The namespace of the devices.
    pub namespace: &'a Namespace,
    /// The device towards the near end.
    pub near: String,
    /// The device towards the far end.
    pub far: String,
}

/// A network to emulate, and the paths that can be set while it is at work.
pub struct Setup {
    /// The network.
    pub plane: PlaneLayout,
    /// Each with its name. The two directions of path K are the lanes 2K and 2K + 1 of the network.
    pub paths: Vec<(String, PathSpec)>,
    /// The beginnings and ends of lanes in a capture.
    pub captured: CapturePlan,
}

/// The settings of a session.
#[derive(Debug, Default)]
pub struct SessionOptions {
    /// The way in which frames are exchanged with the kernel.
    pub backend: Backend,
    /// The way in which the loop runs.
    pub dataplane: Options,
    /// The capture, if one is wanted.
    pub capture: Option<CaptureRequest>,
    /// The lateness from which a frame counts as late.
    pub bound: Span,
}

/// Paths that are being emulated.
pub struct Session {
    remote: Remote,
    paths: Mutex<Paths>,
    changes: Mutex<Vec<Changed>>,
    live: Arc<Live>,
    arena: u64,
    lanes: Vec<String>,
    backends: Vec<String>,
    /// The devices of the ports, in their order.
    devices: Vec<String>,
    origin: Time,
}

/// The result of a session.
pub struct Ended {
    /// The final state.
    pub snapshot: Snapshot,
    /// The network, for what else it can tell.
    pub plane: Plane,
    /// The reason why it ended if that was not asked for.
    pub result: Result<(), DataplaneError>,
    /// The result of the capture, if there was one.
    pub capture: Option<Result<CaptureSummary, CaptureError>>,
}

type Thread = JoinHandle<(Snapshot, Plane, Result<(), DataplaneError>)>;

/// The thread of a session, to be waited for. Dropping it ends the session.
pub struct SessionThread {
    thread: Option<Thread>,
    remote: Remote,
    capture: Option<CaptureHandle>,
}

impl SessionThread {
    /// Whether the dataplane has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The reason why the capture has ended before its time, if it has.
    pub fn capture_failed(&self) -> Option<String> {
        self.capture.as_ref().and_then(CaptureHandle::failed)
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// If the dataplane's thread did.
    pub fn join(mut self) -> Ended {
        let thread = self.thread.take().expect("it is joined once");
        let joined = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (snapshot, plane, result) = joined;
        let capture = self.capture.take().map(CaptureHandle::finish);
        Ended { snapshot, plane, result, capture }
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.remote.stop();
        // Its panic, if any, is not the first thing that went wrong.
        let _ = thread.join();
    }
}

impl Session {
    /// Starts emulating `plans` in one thread.
    ///
    /// # Errors
    /// If a device cannot be opened, the paths do not fit into memory, or the capture cannot be begun.
    pub fn start(
        plans: Vec<Plan<'_>>,
        options: SessionOptions,
    ) -> Result<(Session, SessionThread), DataplaneError> {
        Session::over(setup(plans, &options)?, options)
    }

    /// Starts emulating a network.
    ///
    /// # Errors
    /// As [`Session::start`].
    pub fn over(
        setup: Setup,
        options: SessionOptions,
    ) -> Result<(Session, SessionThread), DataplaneError> {
        let Setup { plane, paths, captured } = setup;
        let SessionOptions { dataplane, capture, .. } = options;
        let (arena, origin) = (plane.arena, plane.origin);
        let devices = plane.ports.iter().map(|port| port.device().to_string()).collect();
        let backends = plane.ports.iter().map(|port| port.backend_name().to_string()).collect();
        let lanes = plane.lanes.iter().map(|lane| lane.name.clone()).collect();
        let (tap, capture) = match capture {
            Some(CaptureRequest { file, command, .. }) => {
                let (tap, handle) = Capture::start(&file, &command, captured)?;
                (tap, Some(handle))
            }
            None => (CaptureTap::default(), None),
        };
        let plane = Plane::new(plane, tap)?;
        let live = plane.live();
        let (dataplane, remote) = Dataplane::new(plane, dataplane)?;
        let thread = trunkline_netns::thread("dataplane")
            .and_then(|thread| thread.spawn(move || dataplane.run()))
            .map_err(DataplaneError::Wait)?;
        let thread = SessionThread { thread: Some(thread), remote: remote.clone(), capture };
        let (paths, changes) = (Mutex::new(Paths::new(paths, origin)), Mutex::default());
        let session =
            Session { remote, paths, changes, live, arena, lanes, backends, devices, origin };
        Ok((session, thread))
    }

    /// Counts of the frames of each way.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// The changes of settings so far that were asked for by [`Session::change`], in that order.
    pub fn changes(&self) -> Vec<Changed> {
        locked(&self.changes).clone()
    }

    /// The state, at most 100 ms old.
    pub fn snapshot(&self) -> Snapshot {
        self.remote.snapshot()
    }

    /// The devices that were down when last looked at, a second ago at most. Frames to them are lost, and the run goes
    /// on.
    pub fn devices_down(&self) -> Vec<&str> {
        let down = self.remote.down();
        let numbered = self.devices.iter().enumerate().take(64);
        numbered.filter(|(index, _)| down >> index & 1 == 1).map(|(_, name)| &**name).collect()
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.remote.stop();
    }

    /// The paths as they are set now, with their names.
    pub fn paths(&self) -> Vec<(String, PathSpec)> {
        self.begun().at(crate::clock::monotonic())
    }

    /// The changes that are still to come, in the order of time.
    pub fn pending(&self) -> Vec<Changed> {
        locked(&self.paths).pending(crate::clock::monotonic())
    }

    /// The paths, whose schedules began when the network last did.
    fn begun(&self) -> MutexGuard<'_, Paths> {
        let mut paths = locked(&self.paths);
        paths.begin(self.live.begun().unwrap_or(self.origin));
        paths
    }

    /// The names of the lanes, as snapshots and captures have them.
    pub fn lanes(&self) -> &[String] {
        &self.lanes
    }

    /// The backend of each port.
    pub fn backends(&self) -> &[String] {
        &self.backends
    }

    /// The instant of [`monotonic`](crate::monotonic) at which slot clocks, traces and schedules began.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// Changes settings of the path called `name` (or of the only one), `after` from now, for somebody who asks for it
    /// while the session is at work: the change is noted.
    ///
    /// # Errors
    /// If a setting cannot be used, or the changed paths no longer fit into the memory reserved.
    pub fn change(
        &self,
        name: Option<&str>,
        settings: &Settings,
        after: Span,
    ) -> Result<PathSpec, ChangeError> {
        let at = crate::clock::monotonic() + after;
        let (changed, noted) = self.change_noted(name, settings, at)?;
        locked(&self.changes).push(noted);
        Ok(changed)
    }

    /// Changes settings at the instant `at` of [`monotonic`](crate::monotonic), or as soon as the
    /// emulator reads the request (100 ms, or a second if frames are always due) if that is later.
    ///
    /// # Errors
    /// As [`Session::change`].
    pub fn change_at(
        &self,
        name: Option<&str>,
        settings: &Settings,
        at: Time,
    ) -> Result<PathSpec, ChangeError> {
        self.change_noted(name, settings, at).map(|(changed, _)| changed)
    }

    fn change_noted(
        &self,
        name: Option<&str>,
        settings: &Settings,
        at: Time,
    ) -> Result<(PathSpec, Changed), ChangeError> {
        let mut paths = self.begun();
        let (then, plan) = paths.planned(name, settings, at)?;
        // Scenarios reckon with what hosts can have under way, and begin with less than this if queues are long.
        if then.needed > self.arena.max(paths.needed()) {
            let needed = then.needed;
            return Err(DataplaneError::Memory { needed, available: self.arena }.into());
        }
        if self.remote.is_ending() {
            return Err(ChangeError::Ending);
        }
        for (direction, change) in then.changes {
            self.remote.change(2 * then.index + direction as usize, at, change);
        }
        *paths = plan;
        Ok((then.path, then.noted))
    }
}

/// The network of paths between two devices each: two ports, lanes and ways for every one.
fn setup(plans: Vec<Plan<'_>>, options: &SessionOptions) -> Result<Setup, DataplaneError> {
    let arena = store::arena_for(plans.iter().map(|plan| &plan.path), available_memory())?;
    let origin = crate::clock::monotonic();
    let mut plane = PlaneLayout { origin, bound: options.bound, arena, ..PlaneLayout::default() };
    let mut paths = Vec::new();
    for Plan { name, path, namespace, near, far } in plans {
        let first = plane.ports.len();
        for device in [&near, &far] {
            plane.ports.push(open(namespace, device, options.backend)?);
        }
        plane.add_path(&name, &path, first);
        paths.push((name, path));
    }
    let names: Vec<String> = paths.iter().map(|(name, _)| name.clone()).collect();
    let filter = options.capture.as_ref().map(|capture| capture.filter).unwrap_or_default();
    Ok(Setup { plane, paths, captured: CapturePlan::of_paths(&names, filter) })
}

impl PlaneLayout {
    /// Adds the two lanes and ways of a path between the ports `near` and `near + 1`: all that comes in by one of
    /// them leaves by the other.
    pub fn add_path(&mut self, name: &str, path: &PathSpec, near: usize) {
        let ends = [(Direction::Up, near, near + 1), (Direction::Down, near + 1, near)];
        let is_first = self.lanes.is_empty();
        for (direction, entry, exit) in ends {
            let name = match name {
                "" => direction.to_string(),
                name => format!("{name}/{direction}"),
            };
            let lanes = vec![self.lanes.len()];
            // The first path has a name only beside others, which must not change what it draws.
            let stream = if is_first { direction.to_string() } else { name.clone() };
            self.lanes.push(LanePlan {
                stream,
                name,
                seed: path.seed,
                spec: path.link(direction).clone(),
                observed: false,
                station: None,
            });
            self.ways.push(WayPlan {
                entry,
                lanes,
                heard_by: Vec::new(),
                exit,
                takes: Takes::All(path.key),
            });
        }
    }
}

fn open(
    namespace: &Namespace,
    device: &str,
    backend: Backend,
) -> Result<Box<dyn Port>, DataplaneError> {
    Ok(namespace.run(|| trunkline_port::open(device, backend))??)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Memory;

    #[test]
    fn a_session_has_the_lanes_of_its_plan() {
        let ports = (0..4).map(|_| Box::new(Memory::default()) as Box<dyn Port>).collect();
        let origin = crate::monotonic();
        let mut plane = PlaneLayout { ports, origin, arena: 1 << 20, ..PlaneLayout::default() };
        let path = Settings::default().resolve().unwrap();
        plane.add_path("a", &path, 0);
        plane.add_path("b", &path, 2);
        let captured = CapturePlan::of_paths(&[], Default::default());
        let setup = Setup { plane, paths: Vec::new(), captured };
        let (session, thread) = Session::over(setup, SessionOptions::default()).unwrap();
        assert_eq!(session.lanes(), ["a/up", "a/down", "b/up", "b/down"]);
        session.stop();
        thread.join().result.unwrap();
    }

    #[test]
    fn a_network_of_paths_has_the_memory_and_the_bound_that_it_should() {
        let bound = Span::from_millis(3);
        let options = SessionOptions { bound, ..SessionOptions::default() };
        let Setup { plane, .. } = setup(Vec::new(), &options).unwrap();
        let needed = store::required(std::iter::empty());
        assert_eq!((plane.bound, needed > 0 && plane.arena >= needed), (bound, true));
    }

    /// A path that comes to another gives that a name, and leaves what it draws alone.
    #[test]
    fn further_paths_leave_the_first_ones_draws_alone() {
        let path = Settings::default().resolve().unwrap();
        let streams = |names: &[&str]| {
            let mut plane = PlaneLayout::default();
            names.iter().enumerate().for_each(|(at, name)| plane.add_path(name, &path, 2 * at));
            let lanes = plane.lanes.into_iter().map(|lane| (lane.name, lane.stream));
            lanes.collect::<Vec<_>>()
        };
        let told = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(name, stream)| (name.into(), stream.into())).collect()
        };
        assert_eq!(streams(&[""]), told(&[("up", "up"), ("down", "down")]));
        let both = [
            ("peer/up", "up"),
            ("peer/down", "down"),
            ("sat/up", "sat/up"),
            ("sat/down", "sat/down"),
        ];
        assert_eq!(streams(&["peer", "sat"]), told(&both));
    }
}

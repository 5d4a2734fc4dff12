//! The loops that are compared: the emulator's own, and one that does nothing but forward.

use anyhow::Result;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use trunkline_dataplane::capture::CaptureTap;
use trunkline_dataplane::{Dataplane, Options, Plane, PlaneLayout, Remote, accuracy, monotonic};
use trunkline_port::{Port, PortError};
use trunkline_scenario::{PathSpec, Settings};

/// Frames in one go: the emulator's own number, so that both share the cost of a system call alike.
const BUDGET: usize = 32;
/// Room for a frame of any size used here.
const ROOM: usize = 2048;
/// Frames under way at most, by memory that is used only if it is needed.
const ARENA: u64 = 256 << 20;
const NICE: i32 = -20;

/// The forwarder between the two devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Receive, copy, send.
    Bare,
    /// The emulator on a path of any settings.
    Emulator(&'static [&'static str]),
}

/// A path that changes nothing.
pub const UNLIMITED: Arrangement = Arrangement::Emulator(&["rate=unlimited", "delay=0ms"]);
/// A path with a line and a distance, faster than any backend.
pub const WITH_DELAY: Arrangement = Arrangement::Emulator(&["rate=10gbit", "delay=10ms"]);

impl Arrangement {
    /// All that are compared.
    pub const ALL: [Arrangement; 3] = [Arrangement::Bare, UNLIMITED, WITH_DELAY];

    /// In a table.
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Bare => "bare forwarder",
            UNLIMITED => "emulator, unlimited",
            _ => "emulator, 10 Gbit/s 10 ms",
        }
    }
}

/// A loop that runs in a thread of its own.
pub struct Running {
    stop: Stop,
    thread: Option<JoinHandle<Result<()>>>,
}

enum Stop {
    Bare(Arc<AtomicBool>),
    Emulator(Remote),
}

impl Running {
    /// Starts forwarding between `ports`, on processor `cpu`, never sleeping.
    pub fn start(
        arrangement: Arrangement,
        ports: [Box<dyn Port>; 2],
        cpu: usize,
    ) -> Result<Running> {
        let (stop, thread) = match arrangement {
            Arrangement::Bare => {
                let stop = Arc::new(AtomicBool::new(false));
                let seen = Arc::clone(&stop);
                let work = move || {
                    settle(cpu);
                    Ok(forward(ports, &seen)?)
                };
                (Stop::Bare(stop), std::thread::spawn(work))
            }
            Arrangement::Emulator(settings) => {
                let options = Options { busy: true, cpu: Some(cpu), ..Options::default() };
                let (dataplane, remote) = dataplane(&path(settings)?, ports, options)?;
                let work = move || dataplane.run().2.map_err(anyhow::Error::from);
                (Stop::Emulator(remote), std::thread::spawn(work))
            }
        };
        Ok(Running { stop, thread: Some(thread) })
    }

    /// Ends it.
    ///
    /// # Errors
    /// What the loop itself failed with.
    pub fn finish(mut self) -> Result<()> {
        self.ask();
        let thread = self.thread.take().map(JoinHandle::join);
        thread.map_or(Ok(()), |end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    fn ask(&self) {
        match &self.stop {
            Stop::Bare(stop) => stop.store(true, Relaxed),
            Stop::Emulator(remote) => remote.stop(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask();
        // Its result matters to `finish` only.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The path that `settings` describe.
pub fn path(settings: &[&str]) -> Result<PathSpec> {
    let mut all = Settings::default();
    settings.iter().try_for_each(|pair| all.add_pair(pair))?;
    Ok(all.resolve()?)
}

/// The emulator's loop over `ports`, near and far.
pub fn dataplane(
    path: &PathSpec,
    ports: [Box<dyn Port>; 2],
    options: Options,
) -> Result<(Dataplane, Remote)> {
    let (origin, bound) = (monotonic(), accuracy::DEFAULT_BOUND);
    let mut plan =
        PlaneLayout { ports: ports.into(), origin, bound, arena: ARENA, ..PlaneLayout::default() };
    plan.add_path("", path, 0);
    Ok(Dataplane::new(Plane::new(plan, CaptureTap::default())?, options)?)
}

/// Puts the calling thread on processor `cpu`, first among ordinary threads if that is allowed, as
/// the emulator does. On a machine without such a processor it stays on its own.
pub fn settle(cpu: usize) {
    pin(cpu);
    // Not allowed to an ordinary user; the warning about the machine's load covers the rest.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Puts the calling thread on processor `cpu`, if there is one.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // A machine with one processor is warned about.
    let _ = sched_setaffinity(None, &set);
}

/// Forwards between the ports until told to stop.
pub fn forward(ports: [Box<dyn Port>; 2], stop: &AtomicBool) -> Result<(), PortError> {
    let [mut near, mut far] = ports;
    let mut batch = Batch { store: vec![[0; ROOM]; 2 * BUDGET], lengths: Vec::new() };
    batch.lengths.reserve(2 * BUDGET);
    while !stop.load(Relaxed) {
        batch.hop(near.as_mut(), far.as_mut())?;
        batch.hop(far.as_mut(), near.as_mut())?;
    }
    Ok(())
}

/// The frames between a receive and a send.
struct Batch {
    store: Vec<[u8; ROOM]>,
    lengths: Vec<usize>,
}

impl Batch {
    fn hop(&mut self, from: &mut dyn Port, to: &mut dyn Port) -> Result<(), PortError> {
        let Batch { store, lengths } = self;
        lengths.clear();
        from.receive(BUDGET, &mut |got| {
            // A super-frame may bring more than the budget; none of those here does.
            if let Some(room) =
                store.get_mut(lengths.len()).and_then(|it| it.get_mut(..got.bytes.len()))
            {
                room.copy_from_slice(got.bytes);
                lengths.push(got.bytes.len());
            }
        })?;
        if lengths.is_empty() {
            return Ok(());
        }
        let mut frames = store.iter().zip(&*lengths).map(|(room, &length)| &room[..length]);
        to.send(&mut frames, &mut |_, _| {})
    }
}

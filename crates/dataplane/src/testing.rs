//! A port for unit tests that exists in memory only.

use crate::clock::Source;
use crate::{Plane, PlaneLayout};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use trunkline_core::{Span, Time};
use trunkline_path::LinkSpec;
use trunkline_port::{Port, PortError, Received, Refusals, SendOutcome};
use trunkline_scenario::Settings;

/// Frames that a test shares with a port.
pub(crate) type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A port that hands out what was put in, once, and keeps what is sent.
pub(crate) struct Memory {
    /// The frames to be received.
    pub inward: Frames,
    /// The frames that have been sent.
    pub outward: Frames,
    /// The stamp of what is received.
    pub stamp: Option<u64>,
    /// The number that the kernel has dropped in front of it.
    pub drops: u64,
    /// The frames that it has refused.
    pub refusals: Refusals,
    /// The fate of frames from this size on.
    pub fails: Option<(usize, SendOutcome)>,
    /// Whether its device is down.
    pub down: bool,
    /// Nothing ever comes by it.
    pub quiet: OwnedFd,
}

impl Default for Memory {
    fn default() -> Memory {
        let quiet = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let (inward, outward) = (Frames::default(), Frames::default());
        let (drops, refusals, fails) = (0, Refusals::default(), None);
        Memory { inward, outward, stamp: None, drops, refusals, fails, down: false, quiet }
    }
}

impl Port for Memory {
    fn receive(
        &mut self,
        _: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let frames = std::mem::take(&mut *self.inward.lock().unwrap());
        frames.iter().for_each(|bytes| sink(Received { bytes, stamp: self.stamp }));
        Ok(frames.len())
    }
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        for (index, bytes) in frames.enumerate() {
            match self.fails {
                Some((size, failed)) if bytes.len() >= size => outcome(index, failed),
                _ => {
                    self.outward.lock().unwrap().push(bytes.to_vec());
                    outcome(index, SendOutcome::Sent);
                }
            }
        }
        Ok(())
    }
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.quiet.as_fd()
    }
    fn check(&mut self) -> Result<(), PortError> {
        if self.down { Err(PortError::Down { device: self.device().into() }) } else { Ok(()) }
    }
    fn kernel_drops(&mut self) -> u64 {
        self.drops
    }
    fn refusals(&self) -> Refusals {
        self.refusals
    }
    fn device(&self) -> &str {
        "memory"
    }
    fn mtu(&self) -> u32 {
        1500
    }
    fn backend_name(&self) -> &'static str {
        "memory"
    }
}

/// The path `spec`, or one that does nothing, both ways between two ports, begun a hundred seconds ago.
pub(crate) fn one_way(near: Memory, far: Memory, spec: LinkSpec) -> Plane {
    let mut path = Settings::default().resolve().unwrap();
    (path.up, path.down) = (spec.clone(), spec);
    let mut plan = PlaneLayout {
        ports: vec![Box::new(near), Box::new(far)],
        origin: crate::monotonic().before(Span::from_secs(100)),
        arena: 1 << 20,
        ..PlaneLayout::default()
    };
    plan.add_path("", &path, 0);
    Plane::new(plan, Default::default()).unwrap()
}

/// Two clocks that a test moves. Copies are the same clocks.
#[derive(Debug, Clone)]
pub(crate) struct Hands(Arc<Mutex<(Time, i64)>>);

impl Hands {
    /// Clocks that stand at `monotonic` and `realtime`.
    pub fn at(monotonic: Time, realtime: i64) -> Hands {
        Hands(Arc::new(Mutex::new((monotonic, realtime))))
    }

    /// Lets time pass.
    pub fn pass(&self, span: Span) {
        let mut hands = self.0.lock().unwrap();
        hands.0 += span;
        hands.1 += span.as_nanos() as i64;
    }

    /// Sets the wall clock.
    pub fn step(&self, nanos: i64) {
        self.0.lock().unwrap().1 += nanos;
    }

    /// The monotonic clock.
    pub fn now(&self) -> Time {
        self.0.lock().unwrap().0
    }

    /// The wall clock, as the kernel stamps with it.
    pub fn stamp(&self) -> u64 {
        self.0.lock().unwrap().1 as u64
    }
}

impl Source for Hands {
    fn monotonic(&self) -> Time {
        self.now()
    }

    fn realtime(&self) -> i64 {
        self.0.lock().unwrap().1
    }
}

//! How frames came that a node hands on, kept until they go.

use super::machine::Places;
use super::path::{Era, Path};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Time};
use trunkline_transport::cstar::{EventId, Frame, Grid, NodeId};

/// A fragment: whose, of which event, and its number there for whom it is.
type Key = (NodeId, EventId, u32, Option<NodeId>);

/// What passes through a node.
#[derive(Debug, Default)]
pub(super) struct Passing {
    frames: BTreeMap<Key, Way>,
    /// The one whose interrupt is under way.
    under_interrupt: Option<Key>,
}

#[derive(Debug)]
struct Way {
    path: Path,
    /// Frames that will still be sent of it.
    left: usize,
}

fn key(frame: &Frame) -> Key {
    use trunkline_transport::cstar::Destination::Node;
    let to = if let Node(node) = frame.target() { Some(node) } else { None };
    (frame.origin(), frame.event, frame.fragment, to)
}

impl Passing {
    /// The interrupt by a frame that has come to `me` begins.
    pub fn comes(&mut self, grid: Grid, me: NodeId, frame: &Frame, path: &Path) {
        let left = grid.onward(me, frame.origin(), frame.target()).count();
        let passes = left > 0 && !frame.kind.is_control();
        let key = passes.then(|| key(frame));
        if let Some(key) = key {
            self.frames.insert(key, Way { path: path.clone(), left });
        }
        self.under_interrupt = key;
    }

    /// The interrupt under way is done. What has come waits for windows from now on.
    pub fn interrupted(&mut self, era: Era, now: Time, places: &Places) {
        let key = self.under_interrupt.take();
        if let Some(way) = key.and_then(|key| self.frames.get_mut(&key)) {
            way.path.mark(era, now, places.processor, Cause::Host);
        }
    }

    /// The path of a frame that is sent now, if it came from elsewhere.
    pub fn goes(&mut self, era: Era, now: Time, places: &Places, frame: &Frame) -> Option<Path> {
        if frame.origin() == frame.from {
            return None;
        }
        let key = key(frame);
        let way = self.frames.get_mut(&key)?;
        way.left -= 1;
        let mut path = way.path.clone();
        path.mark(era, now, places.window, Cause::Window);
        if way.left == 0 {
            self.frames.remove(&key);
        }
        Some(path)
    }
}

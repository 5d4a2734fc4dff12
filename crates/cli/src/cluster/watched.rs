//! How far a cluster has come, on standard error while it runs.

use crate::output;
use crate::progress::Progress;
use trunkline_nodes::{Progress as Come, Watch};

/// A cluster, or one node of it, that is watched.
pub struct Watched {
    watch: Watch,
    /// Laps in all.
    laps: u64,
    shown: Progress,
    /// Whether it was told that it stands still.
    told: bool,
}

impl Watched {
    /// One whose programs take so many laps.
    pub fn new(laps: u64) -> Watched {
        Watched { watch: Watch::default(), laps, shown: Progress::new(0), told: false }
    }

    /// The one node has come so far.
    pub fn note(&mut self, come: Come) {
        self.watch.note(come);
        self.tells(come.node, &self.watch.clone());
    }

    /// Tells how far it has come, by one of its nodes until that has ended; a standstill at once and by its name.
    pub fn tells(&mut self, node: u16, watch: &Watch) {
        let Some(standstill) = watch.standstill() else {
            if let Some(Come { laps, refused, again, .. }) = watch.of(node) {
                let all = self.laps;
                let more = match refused + again {
                    0 => String::new(),
                    _ => format!("; it refused {refused} fragments, and sent {again} again"),
                };
                self.shown.tell(&format!("node {node} has ended {laps} of {all} laps{more}"));
            }
            return;
        };
        if !std::mem::replace(&mut self.told, true) {
            self.shown.clear();
            output::tell(standstill);
        }
        self.shown.tell(&standstill.to_string());
    }

    /// Nothing more is shown.
    pub fn ends(&self) {
        self.shown.clear();
    }
}

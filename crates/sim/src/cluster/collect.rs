//! From a cluster that has come to its end to its part of a [`Run`].

use super::world::Cluster;
use trunkline_cluster::pattern::Pattern;
use trunkline_cluster::trace::{perfetto, picture};
use trunkline_core::Counts;
use trunkline_engine::{Note, NoteKind, Picture, Run};
use trunkline_measure::{Conservation, Course, LinkRun, TrafficRun};
use trunkline_path::medium::StationId;

impl Cluster<'_> {
    /// Adds what has been measured to `run`.
    pub fn tell(mut self, run: &mut Run) {
        run.ended = run.ended.max(self.now);
        run.places.extend(Cluster::place_names(self.spec));
        run.pictures.extend(self.picture());
        run.notes.extend(self.notes());
        self.samples.finish();
        let counts = self.counts();
        let in_flight = counts.in_flight();
        run.links.push(LinkRun {
            name: self.spec.name.clone(),
            counts,
            in_flight,
            busy: self.stations().map(|it| self.medium.busy(it)).sum(),
            queueing: None,
            backlog: Vec::new(),
        });
        run.traffic.push(self.traffic(counts, in_flight));
    }

    /// Who waits for whom, if that was asked for.
    fn picture(&mut self) -> Option<Picture> {
        if self.spec.record == 0 {
            return None;
        }
        // The programs may have stopped before.
        if self.records.is_empty() {
            self.stop_recording();
        }
        let about = format!(
            "From the start to the end of lap {} of node 0, or of the run. {}",
            self.spec.record,
            Pattern::of(&self.records).sentence()
        );
        Some(Picture {
            name: self.spec.name.clone(),
            about,
            svg: picture(&self.records),
            trace: perfetto(&self.records),
        })
    }

    fn traffic(&mut self, counts: Counts, in_flight: u64) -> TrafficRun {
        let lost = self.lost();
        let bytes = self.delivered;
        TrafficRun {
            name: self.spec.name.clone(),
            transport: self.spec.protocol.name().into(),
            samples: std::mem::take(&mut self.samples),
            packets: Conservation {
                sent: counts.entered,
                duplicated: counts.duplicated,
                delivered: counts.delivered - lost,
                dropped: counts.dropped() + lost,
                in_flight,
            },
            delivered_bytes: bytes,
            courses: vec![Course {
                flow: 0,
                from: trunkline_core::Time::ZERO,
                to: self.now,
                bytes,
            }],
            retransmissions: self.again,
            ..TrafficRun::default()
        }
    }

    /// All stations' counts together.
    pub(super) fn counts(&self) -> Counts {
        self.stations().map(|it| self.medium.counts(it)).fold(Counts::default(), |sum, it| sum + it)
    }

    fn stations(&self) -> impl Iterator<Item = StationId> + use<> {
        (0..self.machines.len()).map(StationId)
    }

    fn notes(&self) -> Vec<Note> {
        let name = &self.spec.name;
        let note = |kind, text: String| Note::of_traffic(name, kind, text);
        let mut notes = Vec::new();
        if let Some((node, failure)) = &self.failed {
            notes.push(note(NoteKind::Failed, format!("{node}: {failure}")));
        } else if (self.ended as usize) < self.machines.len() {
            let (kind, why) = self.unfinished();
            notes.push(note(kind, why));
        } else {
            let wrong = self.machines.iter().enumerate().filter_map(|(node, machine)| {
                machine.node.verdict().err().map(|wrong| format!("node {node}: {wrong}"))
            });
            notes.extend(wrong.map(|wrong| note(NoteKind::Failed, wrong)));
        }
        let lost = self.lost();
        if lost > 0 {
            notes
                .push(note(NoteKind::Lost, format!("{lost} frames lost on arrival, as loss says")));
        }
        if let Some(bytes) = self.medium.most_held() {
            let text = format!("a switch held at most {bytes} bytes of what came in at one port");
            notes.push(note(NoteKind::Held, text));
        }
        notes.extend(self.samples.selection().map(|text| note(NoteKind::LeftOut, text)));
        notes
    }

    /// Frames lost on their arrival at nodes.
    pub(super) fn lost(&self) -> u64 {
        self.machines.iter().map(|it| it.lost).sum()
    }
}

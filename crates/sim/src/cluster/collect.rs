//! From a cluster that has come to its end to its part of a [`Run`].

use super::world::Cluster;
use trunkline_cluster::Waiting;
use trunkline_cluster::pattern::Pattern;
use trunkline_cluster::trace::{perfetto, picture};
use trunkline_core::Counts;
use trunkline_engine::{Note, NoteKind, Picture, Run};
use trunkline_measure::{Conservation, Course, LinkRun, TrafficRun};
use trunkline_path::medium::StationId;
use trunkline_scenario::MessageProtocol;
use trunkline_transport::cstar::Source;

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
    fn counts(&self) -> Counts {
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
            let kind = if self.waits_for_ever() { NoteKind::Failed } else { NoteKind::Unfinished };
            notes.push(note(kind, self.unfinished()));
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
    fn lost(&self) -> u64 {
        self.machines.iter().map(|it| it.lost).sum()
    }

    /// Whether programs wait for what cannot come any more, be it that their layers go on to ask each other. A livelock for
    /// want of buffers is no failure of the run but what it found, as TR 94-14 did (Table 3).
    fn waits_for_ever(&self) -> bool {
        self.quiet || self.stood_still && self.pressed() == (0, 0)
    }

    /// How often fragments were refused for want of buffers, and asked for again.
    fn pressed(&self) -> (u64, u64) {
        let counters = self.machines.iter().map(|it| it.node.counters());
        counters.fold((0, 0), |sum, it| (sum.0 + it.refused, sum.1 + it.requests))
    }

    /// Why programs wait for ever.
    fn deadlock(&self) -> String {
        let literal = matches!(&self.spec.protocol, MessageProtocol::Careful(it) if it.literal);
        let why = match (self.lost() + self.counts().dropped(), literal) {
            (0, false) => String::new(),
            (0, true) => "; leave out 'literal', and give more buffers".into(),
            (lost, _) => format!(
                "; frames were lost ({lost}), and nobody asks for them: give 'audit', which finds a loss, or the traditional protocol, which repairs it"
            ),
        };
        format!("deadlock: nothing is under way; {}{why}", self.waiting())
    }

    /// Who waits for what, the first of them.
    fn waiting(&self) -> String {
        let waits = self.machines.iter().enumerate().find_map(|(node, machine)| {
            let waiting = machine.waits?;
            Some(format!("node {node} waits for {}", awaited(waiting)))
        });
        waits.unwrap_or_else(|| "all nodes are at work".into())
    }

    /// What keeps the programs from their end.
    fn unfinished(&self) -> String {
        if self.quiet {
            return self.deadlock();
        }
        let waits = self.waiting();
        match (self.stood_still, self.pressed()) {
            (false, _) => format!("not finished at {}: {waits}", self.now),
            (true, (0, 0)) => format!(
                "livelock: the message layers exchange frames of their own and no program comes on; {waits}; give 'lease' a longer time than nodes take for such frames, and leave out 'literal'"
            ),
            (true, (refused, requests)) => format!(
                "livelock: frames are exchanged and no program comes on; fragments were refused for want of buffers {refused} times and asked for again {requests} times; {waits}; give more 'buffers' and 'send_buffers', or let less be outstanding"
            ),
        }
    }
}

fn awaited(waiting: Waiting) -> String {
    match waiting {
        Waiting::Window(peer) => format!("the window of {peer}"),
        Waiting::Buffers => "buffers for sending".into(),
        Waiting::Fragment(Source::Node(peer), event) => format!("a fragment of {peer} for {event}"),
        Waiting::Fragment(Source::Any, event) => format!("a fragment of {event}"),
    }
}

//! What keeps the programs of a cluster from their end.

use super::world::Cluster;
use trunkline_cluster::Waiting;
use trunkline_engine::NoteKind;
use trunkline_scenario::MessageProtocol;
use trunkline_transport::cstar::Source;

impl Cluster<'_> {
    /// What keeps the programs from their end, and what that makes of the run. Programs that wait for what cannot come any
    /// more have failed, be it that their layers go on to ask each other. A livelock for want of buffers is no failure of
    /// the run but what it found, as TR 94-14 did (Table 3); a run that was cut merely has not finished.
    pub(super) fn unfinished(&self) -> (NoteKind, String) {
        let waits = self.waiting();
        if self.quiet {
            return (
                NoteKind::Failed,
                format!("deadlock: nothing is under way; {waits}{}", self.remedy()),
            );
        }
        let stood_long = self.has_stood_long();
        if !self.stood_still && !stood_long {
            return (NoteKind::Unfinished, format!("not finished at {}: {waits}", self.now));
        }
        let (refused, requests) = self.pressed();
        if refused > 0 {
            let text = format!(
                "livelock: frames are exchanged and no program comes on; fragments were refused for want of buffers {refused} times and asked for again {requests} times; {waits}; give more 'buffers' and 'send_buffers', or let less be outstanding"
            );
            return (NoteKind::Unfinished, text);
        }
        let text = format!(
            "livelock: the message layers send frames of their own and no program comes on; {waits}{}",
            self.remedy()
        );
        (NoteKind::Failed, text)
    }

    /// How often fragments were refused for want of buffers, and asked for again.
    fn pressed(&self) -> (u64, u64) {
        let counters = self.machines.iter().map(|it| it.node.counters());
        counters.fold((0, 0), |sum, it| (sum.0 + it.refused, sum.1 + it.requests))
    }

    /// Who waits for what, the first of them.
    fn waiting(&self) -> String {
        let waits = self.machines.iter().enumerate().find_map(|(node, machine)| {
            let waiting = machine.waits?;
            Some(format!("node {node} waits for {}", awaited(waiting)))
        });
        waits.unwrap_or_else(|| "all nodes are at work".into())
    }

    /// What helps programs that wait for ever, by what was lost and by the keys that were given; with what stands in front
    /// of it.
    fn remedy(&self) -> String {
        let lost = self.lost() + self.counts().dropped();
        match &self.spec.protocol {
            MessageProtocol::Careful(it) if lost > 0 && it.audit.is_none() => format!(
                "; frames were lost ({lost}), and nobody asks for them: give 'audit', which finds a loss, or the traditional protocol, which repairs it"
            ),
            _ if lost > 0 => format!(
                "; {lost} frames were lost, and what asks for them too: let less be lost ('loss', 'limit')"
            ),
            MessageProtocol::Careful(it) => {
                let timers = [("audit", it.audit), ("lease", it.lease)];
                let short = timers.into_iter().filter(|it| it.1.is_some() && !self.quiet);
                let mut remedies: Vec<String> = short.map(|(key, _)| longer(key)).collect();
                remedies.extend(it.literal.then(|| "leave out 'literal'".into()));
                remedies.push("give more 'buffers'".into());
                format!("; {}", remedies.join(", "))
            }
            MessageProtocol::Traditional(it) => {
                let infer = if it.infer { "leave out 'infer', or " } else { "" };
                format!("; {infer}give more 'buffers' and 'send_buffers'")
            }
        }
    }
}

fn longer(key: &str) -> String {
    format!("give '{key}' a longer time than nodes take for such frames")
}

fn awaited(waiting: Waiting) -> String {
    match waiting {
        Waiting::Window(peer) => format!("the window of {peer}"),
        Waiting::Buffers => "buffers for sending".into(),
        Waiting::Fragment(Source::Node(peer), event) => format!("a fragment of {peer} for {event}"),
        Waiting::Fragment(Source::Any, event) => format!("a fragment of {event}"),
    }
}

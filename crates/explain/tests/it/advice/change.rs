//! The changes, each written into the scenario by itself.

use super::paper::{Arq, Netblt, Paper, Speech, Tcp, Trunk, Work};

/// Something changed: the constraint that it relaxes, as `explain` calls it, the step, and the scenario with it.
#[derive(Debug, Clone)]
pub struct Change {
    pub constraint: &'static str,
    pub place: &'static str,
    pub step: String,
    pub paper: Paper,
}

/// Every change that can be made to a scenario.
pub fn changes(paper: &Paper) -> Vec<Change> {
    let mut all = Changes { paper, list: Vec::new() };
    all.queue();
    all.window();
    all.processors();
    all.trunk();
    all.way_back();
    all.list
}

struct Changes<'a> {
    paper: &'a Paper,
    list: Vec<Change>,
}

impl Changes<'_> {
    fn with(&mut self, constraint: &'static str, step: &str, change: impl FnOnce(&mut Paper)) {
        self.at(constraint, "", step, change);
    }

    fn at(
        &mut self,
        constraint: &'static str,
        place: &'static str,
        step: &str,
        change: impl FnOnce(&mut Paper),
    ) {
        let mut paper = self.paper.clone();
        change(&mut paper);
        self.list.push(Change { constraint, place, step: step.into(), paper });
    }

    fn both(&mut self, constraint: &'static str, step: &str, change: impl Fn(&mut Trunk)) {
        self.with(constraint, step, |paper| {
            change(&mut paper.there);
            change(&mut paper.back);
        });
    }

    fn queue(&mut self) {
        if self.paper.others > 0 {
            self.with("queue", "without others", |paper| paper.others = 0);
            self.both("queue", "round robin", |trunk| trunk.round_robin = true);
        }
        let there = |trunk: &mut Trunk| trunk.limit = 1 << 30;
        if has_answers_of_length(&self.paper.work) {
            self.both("queue-limit", "no limit", there);
        } else {
            self.with("queue-limit", "no limit", |paper| there(&mut paper.there));
        }
    }

    fn window(&mut self) {
        match self.paper.speech.clone() {
            Speech::Urp { block, outstanding } => {
                let larger = [(252, 3), (1024, 3), (1024, 7), (4096, 7)];
                for (block, outstanding) in
                    larger.into_iter().filter(|it| it.0 * it.1 > block * outstanding)
                {
                    let step = format!("{} B", block * outstanding);
                    let speech = Speech::Urp { block, outstanding };
                    self.with("window", &step, |paper| paper.speech = speech);
                }
            }
            Speech::Tcp(tcp) => self.tcp(&tcp),
            Speech::Arq(arq) => self.arq(&arq),
            Speech::Netblt(netblt) => self.netblt(&netblt),
            Speech::Udp | Speech::Datagram => {}
        }
    }

    /// Four times, sixteen times and so on, up to twice what the trunk carries in a round trip.
    fn wider(&self, now: u64, unit: u64) -> Vec<u64> {
        let round = 2.0 * self.paper.delay as f64 / 1e9;
        let enough = 2.0 * round * self.paper.there.rate as f64 / 8.0;
        let mut all = vec![4 * now];
        while ((all[all.len() - 1] * unit) as f64) < enough {
            all.push(4 * all[all.len() - 1]);
        }
        all
    }

    fn arq(&mut self, arq: &Arq) {
        for frames in self.wider(arq.frames.unwrap_or(1), arq.frame) {
            let (kind, step) = match arq.frames {
                Some(_) => (arq.kind, format!("{frames} frames")),
                None => ("selective-repeat", format!("selective-repeat of {frames}")),
            };
            let wider = Arq { kind, frames: Some(frames), ..arq.clone() };
            self.with("window", &step, |paper| paper.speech = Speech::Arq(wider));
        }
        if let Some(rate) = arq.rate {
            for (step, rate) in
                [("2 times", Some(2 * rate)), ("10 times", Some(10 * rate)), ("none", None)]
            {
                let faster = Arq { rate, ..arq.clone() };
                self.with("pace", step, |paper| paper.speech = Speech::Arq(faster));
            }
        }
    }

    fn netblt(&mut self, netblt: &Netblt) {
        for outstanding in self.wider(netblt.outstanding, Netblt::PACKET * Netblt::PACKETS) {
            let wider = Netblt { outstanding, ..netblt.clone() };
            let step = format!("{outstanding} buffers");
            self.with("window", &step, |paper| paper.speech = Speech::Netblt(wider));
        }
        if netblt.bursts.is_none() && netblt.cap.is_none() {
            return;
        }
        for times in [2, 10] {
            let bursts = netblt.bursts.map(|(burst, interval)| (burst * times, interval));
            let faster =
                Netblt { bursts, cap: netblt.cap.map(|cap| cap * times), ..netblt.clone() };
            let step = format!("{times} times");
            self.with("pace", &step, |paper| paper.speech = Speech::Netblt(faster));
        }
        let free = Netblt { bursts: None, cap: None, ..netblt.clone() };
        self.with("pace", "found by the receiver", |paper| paper.speech = Speech::Netblt(free));
    }

    fn tcp(&mut self, tcp: &Tcp) {
        let steps = [
            (65_535, "65535 B"),
            (1 << 18, "256 KiB"),
            (1 << 20, "1 MiB"),
            (1 << 22, "4 MiB"),
            (1 << 24, "16 MiB"),
        ];
        let now = tcp.receiver.or(tcp.window).unwrap_or(tcp.unasked());
        for (bytes, step) in steps.into_iter().filter(|it| it.0 > now) {
            let larger = |asked: Option<u64>| {
                let has = asked.unwrap_or(tcp.unasked());
                if has < bytes { Some(bytes) } else { asked }
            };
            let window = larger(tcp.window);
            let receiver = tcp.receiver.map(|receiver| receiver.max(bytes));
            let larger = Tcp { window, receiver, ..tcp.clone() };
            self.with("window", step, |paper| paper.speech = Speech::Tcp(larger));
        }
        let first = tcp.initial_window.unwrap_or(if tcp.profile == "bsd-reno" { 1 } else { 10 });
        for segments in [10, 40, 160].into_iter().filter(|&segments| segments > first) {
            let quicker = Tcp { initial_window: Some(segments), ..tcp.clone() };
            let step = format!("{segments} segments");
            self.with("initial-window", &step, |paper| paper.speech = Speech::Tcp(quicker));
        }
    }

    fn processors(&mut self) {
        for (at, host) in ["a", "b"].into_iter().enumerate() {
            if self.paper.costs[at] != [0, 0] {
                for (step, part) in [("twice as fast", 2), ("takes no time", 1000)] {
                    self.at("processor", host, step, |paper| {
                        paper.costs[at] = paper.costs[at].map(|cost| cost / part);
                    });
                }
            }
        }
    }

    fn trunk(&mut self) {
        let (there, back) = (self.paper.there.clone(), self.paper.back.clone());
        let messages = has_answers_of_length(&self.paper.work);
        if there.loss > 0.0 {
            let same = there.loss == back.loss;
            self.with("loss", "none", |paper| {
                paper.there.loss = 0.0;
                if same || messages {
                    paper.back.loss = 0.0;
                }
            });
        }
        for (step, factor) in [("2 times", 2), ("10 times", 10)] {
            self.with("rate", step, |paper| {
                paper.there.rate *= factor;
                if there.rate == back.rate {
                    paper.back.rate *= factor;
                }
            });
        }
        self.with("distance", "hardly any", |paper| paper.delay /= 1000);
    }

    fn way_back(&mut self) {
        let (there, back) = (self.paper.there.clone(), self.paper.back.clone());
        if has_answers_of_length(&self.paper.work) {
            return;
        }
        if back.rate < there.rate {
            for (step, factor) in [("twice the rate", 2), ("ten times the rate", 10)] {
                self.with("ack-path", step, |paper| paper.back.rate *= factor);
            }
        }
        if back.loss > 0.0 && back.loss != there.loss {
            self.with("ack-path", "no loss", |paper| paper.back.loss = 0.0);
        }
        if self.paper.others_go_back || back.limit < there.limit {
            self.with("ack-path", "no queue limit", |paper| paper.back.limit = 1 << 30);
        }
    }
}

impl Tcp {
    /// The buffer that a profile has.
    fn unasked(&self) -> u64 {
        match self.profile {
            "bsd-reno" => 65_535,
            "linux" => 3 << 20,
            _ => 4 << 20,
        }
    }
}

fn has_answers_of_length(work: &Work) -> bool {
    matches!(work, Work::Interactive { .. } | Work::TimedEcho { .. })
}

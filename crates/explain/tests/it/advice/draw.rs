//! Scenarios by chance, each with one thing in the way that is several times tighter than everything else.

use super::paper::{Arq, Netblt, Paper, Speech, Tcp, Trunk, Work};
use trunkline_core::{Seed, Stream};

/// A scenario with what holds its traffic up.
#[derive(Debug, Clone)]
pub struct Drawn {
    pub number: u64,
    pub family: &'static str,
    pub built: &'static str,
    pub paper: Paper,
}

type Family = (&'static str, &'static str, fn(&mut Dice) -> Paper);

const FAMILIES: [Family; 12] = [
    ("window", "window", window),
    ("receive window", "window", receive_window),
    ("rate", "rate", rate),
    ("queue", "queue", queue),
    ("processor", "processor", processor),
    ("loss", "loss", loss),
    ("buffer", "queue-limit", buffer),
    ("way back", "ack-path", way_back),
    ("initial window", "initial-window", initial_window),
    ("distance", "distance", distance),
    ("frames", "window", frames),
    ("pace", "pace", pace),
];

/// The scenario of this number: the families take turns.
pub fn draw(seed: u64, number: u64) -> Drawn {
    let (family, built, draw) = FAMILIES[(number % FAMILIES.len() as u64) as usize];
    let mut dice = Dice(Seed(seed).stream(&format!("advice {number}")));
    let mut paper = draw(&mut dice);
    paper.seed = 1 + dice.0.below(1 << 30);
    if is_long(number) {
        lengthen(&mut paper);
    }
    Drawn { number, family, built, paper }
}

/// Whether the scenario of this number is one of those that last long, so that there is something to cut.
pub fn is_long(number: u64) -> bool {
    number / 10 % 2 == 1
}

/// Ten times as much of what may be cut.
fn lengthen(paper: &mut Paper) {
    let stream = matches!(paper.speech, Speech::Tcp(_));
    match &mut paper.work {
        // A single exchange over a new connection is what it is about.
        Work::Interactive { repeat: 1, .. } => {}
        Work::Interactive { repeat, .. } => *repeat *= 10,
        Work::TimedEcho { duration, .. } | Work::Paced { duration, .. } => *duration *= 10,
        _ if stream => {}
        Work::Bulk { repeat, .. } | Work::Push { repeat, .. } => *repeat *= 10,
        Work::Greedy { duration, .. } | Work::TimedTransfer { duration, .. } => *duration *= 10,
    }
}

struct Dice(Stream);

impl Dice {
    /// Between two numbers, evenly over their logarithms.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64);
        (low * libm::exp(libm::log(high / low) * self.0.unit())) as u64
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.0.below(number) == 0
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.0.below(list.len() as u64) as usize].clone()
    }
}

const MILLI: u64 = 1_000_000;
const MBIT: u64 = 1_000_000;
/// No queue overflows with it.
const DEEP: u64 = 16 << 20;

/// A trunk of a rate both ways, so far away, with nothing else in the way.
fn plain(rate: u64, delay: u64) -> Paper {
    let trunk = Trunk { rate, limit: DEEP, loss: 0.0, round_robin: false };
    Paper {
        seed: 1,
        there: trunk.clone(),
        back: trunk,
        delay,
        speech: Speech::Tcp(tcp(None)),
        work: Work::Greedy { duration: 6000, write: 1024 },
        count: 1,
        costs: [[0, 0], [0, 0]],
        others: 0,
        others_go_back: false,
    }
}

fn tcp(congestion: Option<&'static str>) -> Tcp {
    Tcp { profile: "trunkline", congestion, ..Tcp::default() }
}

/// Bytes that a trunk carries in a round trip.
fn product(paper: &Paper) -> u64 {
    (paper.there.rate as f64 / 8.0 * 2.0 * paper.delay as f64 / 1e9) as u64
}

/// Something that goes on for some seconds at about `rate` bytes each second.
fn stream(dice: &mut Dice, rate: u64) -> Work {
    let duration = dice.between(4000, 9000);
    let bytes = rate * duration / 1000;
    let write = dice.of(&[1024, 4096, 16_384]);
    match dice.0.below(4) {
        0 => Work::Bulk { bytes, repeat: 1, write },
        1 => Work::Push { bytes: bytes / 4, repeat: 4, write },
        2 => Work::TimedTransfer { size: write, duration },
        _ => Work::Greedy { duration, write },
    }
}

fn window(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(8 * MBIT, 20 * MBIT), dice.between(20 * MILLI, 60 * MILLI));
    if dice.one_in(3) {
        let (block, outstanding) = dice.of(&[(252, 3), (512, 3), (1024, 3), (256, 7), (1024, 1)]);
        paper.speech = Speech::Urp { block, outstanding };
        let size = dice.between(3, 9) * block * outstanding;
        let rate = block * outstanding * 1_000_000_000 / (2 * paper.delay);
        paper.work = match dice.one_in(2) {
            true => Work::Interactive { size, repeat: dice.between(5, 40), reply: Some(4) },
            false => stream(dice, rate),
        };
        return paper;
    }
    let window = (product(&paper) / dice.between(4, 16)).max(6000);
    let profile = dice.of(&["trunkline", "linux", "bsd-reno"]);
    paper.speech = Speech::Tcp(Tcp { profile, window: Some(window), ..tcp(None) });
    paper.work = stream(dice, window * 1_000_000_000 / (2 * paper.delay));
    paper
}

fn receive_window(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(8 * MBIT, 20 * MBIT), dice.between(20 * MILLI, 60 * MILLI));
    let receiver = (product(&paper) / dice.between(4, 16)).max(6000);
    let profile = dice.of(&["trunkline", "linux"]);
    let window = dice.of(&[None, Some(1 << 20)]);
    paper.speech = Speech::Tcp(Tcp { profile, window, receiver: Some(receiver), ..tcp(None) });
    paper.work = stream(dice, receiver * 1_000_000_000 / (2 * paper.delay));
    paper
}

fn rate(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(MBIT / 2, 4 * MBIT), dice.between(MILLI / 2, 10 * MILLI));
    let bytes = paper.there.rate / 8;
    match dice.0.below(5) {
        0 => {
            let size = dice.between(200, 1400);
            let rate = paper.there.rate * dice.between(15, 40) / 10;
            paper.speech = dice.of(&[Speech::Udp, Speech::Datagram]);
            paper.work = Work::Paced { size, rate, duration: dice.between(3000, 8000) };
            // Twice the time of a datagram would be drop-tail's patience; a tenth of a second holds many.
            paper.there.limit = bytes / 10;
        }
        1 => {
            paper.delay = dice.between(MILLI / 10, MILLI);
            paper.speech = Speech::Urp { block: 4096, outstanding: 7 };
            // Blocks do not reach over the end of a write.
            paper.work = match stream(dice, bytes) {
                Work::Bulk { bytes, repeat, .. } => Work::Bulk { bytes, repeat, write: 16_384 },
                Work::Push { bytes, repeat, .. } => Work::Push { bytes, repeat, write: 16_384 },
                Work::Greedy { duration, .. } => Work::Greedy { duration, write: 16_384 },
                Work::TimedTransfer { duration, .. } => {
                    Work::TimedTransfer { size: 16_384, duration }
                }
                other => other,
            };
        }
        2 => {
            paper.delay = dice.between(MILLI / 10, MILLI);
            let size = dice.between(10_000, 60_000);
            paper.work = Work::Interactive { size, repeat: dice.between(5, 30), reply: None };
        }
        _ => {
            let congestion = dice.of(&[None, Some("reno"), Some("cubic"), Some("bbr")]);
            paper.speech = Speech::Tcp(tcp(congestion));
            paper.there.limit = (bytes / 4).max(65_536);
            paper.count = dice.of(&[1, 1, 3]);
            paper.work = stream(dice, bytes / paper.count);
        }
    }
    paper
}

fn queue(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(MBIT, 6 * MBIT), dice.between(MILLI, 5 * MILLI));
    paper.others = dice.between(1, 5);
    let size = dice.between(16, 600);
    let duration = dice.between(4000, 12_000);
    let hundred = paper.there.rate / 80;
    paper.there.limit = (hundred * dice.between(10, 25) / 10).max(12_000);
    paper.back.limit = paper.there.limit;
    let messages = dice.of(&[
        Work::Interactive { size, repeat: duration / 100, reply: Some(size) },
        Work::TimedEcho { size, duration },
    ]);
    (paper.speech, paper.work) = match dice.0.below(3) {
        0 => {
            let rate = size * 8 * dice.between(10, 50);
            (dice.of(&[Speech::Udp, Speech::Datagram]), Work::Paced { size, rate, duration })
        }
        1 => (Speech::Urp { block: 1024, outstanding: 7 }, messages),
        _ => (Speech::Tcp(tcp(None)), messages),
    };
    paper.others_go_back = !matches!(paper.work, Work::Paced { .. }) && dice.one_in(3);
    paper
}

fn processor(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(10 * MBIT, 40 * MBIT), dice.between(MILLI / 5, MILLI));
    let host = dice.0.below(2) as usize;
    let packet = dice.between(2 * MILLI, 8 * MILLI);
    match dice.0.below(4) {
        0 => {
            paper.costs[host] = [packet, 0];
            let size = dice.between(16, 1000);
            paper.speech =
                dice.of(&[Speech::Tcp(tcp(None)), Speech::Urp { block: 1024, outstanding: 7 }]);
            paper.work = dice.of(&[
                Work::Interactive { size, repeat: 60, reply: None },
                Work::TimedEcho { size, duration: 4000 },
            ]);
        }
        1 => {
            paper.costs[host] = [0, packet];
            paper.speech = Speech::Urp { block: 1024, outstanding: 7 };
            paper.work = stream(dice, 1024 * 1_000_000_000 / packet);
        }
        2 => {
            paper.costs[host] = [packet, 0];
            paper.speech = Speech::Tcp(Tcp { window: Some(1 << 18), ..tcp(None) });
            paper.work = stream(dice, 1024 * 1_000_000_000 / packet);
        }
        _ => {
            paper.costs[host] = [0, packet];
            paper.speech = Speech::Tcp(Tcp { window: Some(1 << 18), ..tcp(None) });
            paper.work = stream(dice, 1448 * 1_000_000_000 / packet);
        }
    }
    paper
}

fn loss(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(10 * MBIT, 20 * MBIT), dice.between(10 * MILLI, 40 * MILLI));
    let mut share = |low: u64, high: u64| dice.between(low, high) as f64 / 10_000.0;
    match paper.delay % 4 {
        0 => {
            paper.there.loss = share(1500, 4000);
            let rate = paper.there.rate / dice.between(10, 40);
            paper.speech = dice.of(&[Speech::Udp, Speech::Datagram]);
            paper.work = Work::Paced { size: dice.between(100, 1400), rate, duration: 6000 };
        }
        1 => {
            paper.there.loss = share(200, 800);
            paper.delay /= 10;
            paper.speech = Speech::Urp { block: 1024, outstanding: 7 };
            paper.work =
                Work::Bulk { bytes: dice.between(200_000, 600_000), repeat: 2, write: 4096 };
        }
        _ => {
            paper.there.loss = share(100, 500);
            let (profile, congestion) = dice.of(&[
                ("trunkline", None),
                ("trunkline", Some("cubic")),
                ("linux", None),
                ("linux", Some("reno")),
                ("bsd-reno", None),
            ]);
            // Buffers and a first window of today, so that they are not in the way as well.
            let window = (profile == "bsd-reno").then_some(1 << 20);
            let initial_window = (profile == "bsd-reno").then_some(160);
            paper.speech =
                Speech::Tcp(Tcp { profile, congestion, window, initial_window, ..Tcp::default() });
            paper.work = stream(dice, 150_000);
        }
    }
    if dice.one_in(2) {
        paper.back.loss = paper.there.loss;
    }
    paper
}

fn buffer(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(10 * MBIT, 30 * MBIT), dice.between(20 * MILLI, 50 * MILLI));
    paper.there.limit = dice.between(3100, 6000);
    let congestion = dice.of(&[None, Some("reno"), Some("cubic")]);
    let profile = dice.of(&["trunkline", "linux"]);
    paper.speech = Speech::Tcp(Tcp { profile, congestion, ..Tcp::default() });
    paper.work = stream(dice, 300_000);
    paper
}

fn way_back(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(8 * MBIT, 20 * MBIT), dice.between(2 * MILLI, 15 * MILLI));
    if dice.one_in(3) {
        // The largest window there is, so that it is not in the way as well.
        paper.speech = Speech::Urp { block: 4096, outstanding: 7 };
        paper.back.loss = dice.between(500, 2000) as f64 / 10_000.0;
        paper.work = Work::Bulk { bytes: dice.between(100_000, 300_000), repeat: 2, write: 4096 };
        return paper;
    }
    paper.back.rate = dice.between(16_000, 48_000);
    paper.back.limit = 1 << 20;
    let profile = dice.of(&["trunkline", "linux"]);
    paper.speech = Speech::Tcp(Tcp { profile, ..Tcp::default() });
    paper.work = stream(dice, 150_000);
    paper
}

fn initial_window(dice: &mut Dice) -> Paper {
    let mut paper =
        plain(dice.between(50 * MBIT, 100 * MBIT), dice.between(30 * MILLI, 80 * MILLI));
    let initial_window = Some(dice.between(1, 3));
    let profile = dice.of(&["trunkline", "linux"]);
    paper.speech = Speech::Tcp(Tcp { profile, initial_window, ..Tcp::default() });
    let bytes = dice.between(20_000, 120_000);
    paper.work = match dice.one_in(2) {
        true => Work::Bulk { bytes, repeat: 1, write: 4096 },
        false => Work::Interactive { size: 200, repeat: 1, reply: Some(bytes) },
    };
    paper
}

/// The window of a protocol that is chosen by name.
fn frames(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(8 * MBIT, 20 * MBIT), dice.between(20 * MILLI, 60 * MILLI));
    let window = product(&paper) / dice.between(4, 16);
    let window = if dice.one_in(4) {
        let buffer = Netblt::PACKET * Netblt::PACKETS;
        let outstanding = (window / buffer).max(1);
        paper.speech = Speech::Netblt(Netblt { outstanding, bursts: None, cap: None });
        outstanding * buffer
    } else {
        let kind = dice.of(&["stop-and-wait", "go-back-n", "selective-repeat"]);
        let frame = dice.of(&[300, 1000, 1400]);
        let frames = (kind != "stop-and-wait").then(|| (window / frame).max(1));
        paper.speech = Speech::Arq(Arq { kind, frame, frames, rate: None });
        frame * frames.unwrap_or(1)
    };
    let rate = window * 1_000_000_000 / (2 * paper.delay);
    paper.work = match (&paper.speech, dice.0.below(3)) {
        (Speech::Arq(_), 0) => {
            let size = window * dice.between(3, 9);
            Work::Interactive { size, repeat: dice.between(5, 40), reply: Some(4) }
        }
        (Speech::Arq(_), _) => stream(dice, rate),
        // Each message of NETBLT is a transfer: a long one shows what holds it up.
        _ => Work::Bulk { bytes: 6 * rate, repeat: 1, write: 4096 },
    };
    paper
}

/// The rate that settings of a protocol hold.
fn pace(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(8 * MBIT, 20 * MBIT), dice.between(2 * MILLI, 20 * MILLI));
    let rate = paper.there.rate / dice.between(4, 16);
    if dice.one_in(3) {
        let (kind, frame) = (dice.of(&["go-back-n", "selective-repeat"]), 1000);
        let frames = Some(4 * product(&paper) / frame + 2);
        paper.speech = Speech::Arq(Arq { kind, frame, frames, rate: Some(rate) });
        paper.work = stream(dice, rate / 8);
        return paper;
    }
    let interval = dice.of(&[10, 25, 60]);
    let burst = (rate * interval / 8000 / Netblt::PACKET).max(1);
    let (bursts, cap) = dice.of(&[(Some((burst, interval)), None), (None, Some(rate))]);
    paper.speech = Speech::Netblt(Netblt { outstanding: 400, bursts, cap });
    paper.work = Work::Bulk { bytes: rate / 8 * dice.between(4, 8), repeat: 1, write: 4096 };
    paper
}

fn distance(dice: &mut Dice) -> Paper {
    let mut paper = plain(dice.between(10 * MBIT, 40 * MBIT), dice.between(20 * MILLI, 80 * MILLI));
    let size = dice.between(1, 800);
    paper.speech = dice.of(&[Speech::Tcp(tcp(None)), Speech::Urp { block: 1024, outstanding: 7 }]);
    paper.work = match dice.0.below(3) {
        0 => Work::Interactive { size, repeat: dice.between(3, 60), reply: None },
        1 => Work::TimedEcho { size, duration: dice.between(2000, 10_000) },
        _ => {
            paper.speech = dice.of(&[Speech::Udp, Speech::Datagram]);
            Work::Paced { size, rate: size * 8 * dice.between(5, 50), duration: 4000 }
        }
    };
    paper
}

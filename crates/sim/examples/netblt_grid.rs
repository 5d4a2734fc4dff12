//! NETBLT's rate law over a grid of paths: what it gets, what it leaves to others, and the queue that it keeps, as CSV.
//!
//! ```text
//! cargo run --release -p trunkline-sim --example netblt_grid [--shifted] [--seed=N] [REGION...] > grid.csv
//! ```
//!
//! Regions: `alone`, `low`, `burst`, `jitter`, `loose`, `beside`, `fair`, `change`, `back`, `wideband`. Without one, all of them. Each line ends with
//! `goal` and whether it is met; the goals are those of `docs/transfer.md`. With `--shifted` all rates are 1.7 times as great, all
//! round trips 0.6 times as long, and chance draws otherwise: a rule that helps by luck does not help there. `--seed=N` draws chance otherwise again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trunkline_core::Time;
use trunkline_engine::Run;
use trunkline_scenario::Scenario;

/// User bytes of a packet, and its bytes on the line.
const USER: f64 = 1440.0;
const PACKET: f64 = 1472.0;

/// How a grid differs from the one in this file.
#[derive(Debug, Clone, Copy)]
struct Shift {
    rate: f64,
    round: f64,
    seed: u64,
}

/// Not at all.
const PLAIN: Shift = Shift { rate: 1.0, round: 1.0, seed: 1 };
/// A grid of other paths.
const SHIFTED: Shift = Shift { rate: 1.7, round: 0.6, seed: 2 };

impl Shift {
    fn line(self, megabits: f64, round: f64, loss: f64, queue: f64) -> Line {
        // Whole kilobits and microseconds.
        let scaled = |it: f64, by: f64| (it * by * 1e3).round() / 1e3;
        let (megabits, round) = (scaled(megabits, self.rate), scaled(round, self.round));
        Line { megabits, round, loss, queue }
    }
}

/// One or more flows of a transport.
#[derive(Debug, Clone)]
struct Flows {
    transport: String,
    count: usize,
    start: f64,
}

/// What a cell has to show.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// So much of what the path gives, and a median queueing delay of a quarter of the round trip at most.
    Share(f64),
    /// The first traffic's share of what all have, from 0.30 to 0.70.
    Beside,
    /// Jain's index over the round trips 20 to 30 after the last start.
    Fair,
}

/// A run of the grid.
#[derive(Debug, Clone)]
struct Cell {
    region: &'static str,
    name: String,
    /// The hosts and the path between `a` and `b`.
    path: String,
    /// The ends of the traffic.
    ends: (&'static str, &'static str),
    flows: Vec<Flows>,
    seconds: f64,
    round: f64,
    /// User bits that the path gives in the whole time, per second.
    best: f64,
    goal: Goal,
}

/// A line between two hosts.
#[derive(Debug, Clone, Copy)]
struct Line {
    megabits: f64,
    /// Milliseconds there and back.
    round: f64,
    /// Share of packets that it loses.
    loss: f64,
    /// Its queue, in products of rate and round trip.
    queue: f64,
}

impl Line {
    fn name(&self) -> String {
        let Line { megabits, round, loss, queue } = self;
        format!("{megabits}M {round}ms loss {loss} queue {queue}")
    }

    /// User bits per second that it lets through.
    fn best(&self) -> f64 {
        self.megabits * 1e6 * (1.0 - self.loss) * USER / PACKET
    }

    /// Its text, with more settings of the link.
    fn text(&self, more: &str) -> String {
        self.text_over(self.round, more)
    }

    /// The same where so many milliseconds there and back are the link's delay.
    fn text_over(&self, round: f64, more: &str) -> String {
        // A queue that holds no four packets is no queue of a router.
        let limit = (self.megabits * self.round / 8.0 * 1e3 * self.queue).max(4.0 * PACKET);
        format!(
            "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\n\
             rate = \"{}kbit/s\"\ndelay = \"{}us\"\nlimit = \"{}B\"\n{more}\n",
            self.megabits * 1e3,
            (round * 500.0) as u64,
            limit as u64
        )
    }

    fn cell(&self, region: &'static str, what: &str, forward: &str, seconds: f64) -> Cell {
        Cell {
            region,
            name: format!("{}{what}", self.name()),
            path: self.text(forward),
            ends: ("a", "b"),
            flows: vec![netblt(0.0)],
            seconds,
            round: self.round / 1e3,
            best: self.best(),
            goal: Goal::Share(0.95),
        }
    }
}

fn netblt(start: f64) -> Flows {
    Flows { transport: "{ kind = \"netblt\" }".into(), count: 1, start }
}

fn tcp(congestion: &str, start: f64) -> Flows {
    let transport = format!("{{ kind = \"tcp\", congestion = \"{congestion}\" }}");
    Flows { transport, count: 1, start }
}

fn random(loss: f64) -> String {
    format!("forward = {{ loss = \"{}%\" }}", loss * 100.0)
}

/// One transfer on a line.
fn alone(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
        for (megabits, round, queue, seconds) in [
            (10.0, 10.0, 1.0, 60.0),
            (10.0, 100.0, 1.0, 60.0),
            (10.0, 600.0, 1.0, 120.0),
            (100.0, 10.0, 1.0, 20.0),
            (100.0, 100.0, 0.1, 60.0),
            (100.0, 100.0, 1.0, 60.0),
            (100.0, 600.0, 0.07, 120.0),
            (1000.0, 1.0, 4.0, 3.0),
            (1000.0, 50.0, 0.5, 10.0),
            (10_000.0, 10.0, 0.5, 3.0),
        ] {
            let line = shift.line(megabits, round, loss, queue);
            cells.push(line.cell("alone", "", &random(loss), seconds));
        }
    }
    cells
}

/// Lines on which a packet takes long.
fn low(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
        for (megabits, round, queue, seconds) in [
            (0.1, 100.0, 4.0, 600.0),
            (0.1, 1000.0, 1.0, 600.0),
            (1.0, 20.0, 4.0, 120.0),
            (1.0, 100.0, 1.0, 120.0),
            (1.0, 100.0, 4.0, 120.0),
            (1.0, 1800.0, 0.5, 600.0),
        ] {
            let line = shift.line(megabits, round, loss, queue);
            cells.push(line.cell("low", "", &random(loss), seconds));
        }
    }
    cells
}

/// Losses in bursts of ten, jitter, and a policer.
fn burst(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (megabits, round, seconds) in [(10.0, 100.0, 60.0), (100.0, 50.0, 30.0)] {
        for loss in [0.02, 0.05, 0.1] {
            let line = shift.line(megabits, round, loss, 1.0);
            let chain =
                format!("forward = {{ loss = \"ge:p={}%,r=10%\" }}", 10.0 * loss / (1.0 - loss));
            cells.push(line.cell("burst", " in bursts of ten", &chain, seconds));
        }
        let line = shift.line(megabits, round, 0.0, 1.0);
        let jitter = format!("forward = {{ jitter = \"{}us\" }}", (line.round * 200.0) as u64);
        cells.push(line.cell("burst", " jitter of a fifth", &jitter, seconds));
        let police = format!(
            "discipline = {{ kind = \"token-bucket\", rate = \"{}Mbit/s\", burst = \"{}B\", mode = \"police\" }}",
            line.megabits / 2.0,
            (line.megabits * line.round * 10.0) as u64
        );
        let mut cell = line.cell("burst", " policer of half", &police, seconds);
        cell.best /= 2.0;
        cells.push(cell);
    }
    cells
}

/// Jitter that keeps the order and such that does not, as shares of the round trip, with and without losses.
fn jitter(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (megabits, round, seconds) in [(10.0, 100.0, 60.0), (20.0, 50.0, 60.0), (100.0, 50.0, 30.0)]
    {
        for (share, loss) in [(0.05, 0.0), (0.1, 0.02), (0.2, 0.02), (0.4, 0.0)] {
            for kind in ["", "independent:normal:"] {
                let line = shift.line(megabits, round, loss, 1.0);
                // The deviation of a normal distribution, the width of the other.
                let part = if kind.is_empty() { share } else { share / 4.0 };
                let jitter = (line.round * 1000.0 * part) as u64;
                let forward = format!(
                    "forward = {{ jitter = \"{kind}{jitter}us\", loss = \"{}%\" }}",
                    100.0 * loss
                );
                let what = format!(" {}jitter {share}", if kind.is_empty() { "" } else { "free " });
                cells.push(line.cell("jitter", &what, &forward, seconds));
            }
        }
    }
    cells
}

/// Jitter both ways that is longer than the round trip without it, as of radio: hardly two packets come in order.
fn loose(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (megabits, seconds) in [(1.0, 120.0), (2.0, 60.0), (10.0, 60.0), (50.0, 30.0)] {
        for (round, mean) in [(2.0, 5.0), (2.0, 20.0), (20.0, 20.0), (20.0, 50.0)] {
            for (shape, loss) in [("exponential", 0.0), ("exponential", 0.05), ("uniform", 0.01)] {
                let line = shift.line(megabits, round, loss, 100.0 / round);
                let mean = mean * shift.round;
                // What is uniform varies by its time to both sides, which the delay has to hold.
                let within = if shape == "uniform" { 2.0 * mean } else { 0.0 };
                let free = format!("independent:{shape}:{}us", (mean * 1e3) as u64);
                let more = format!(
                    "forward = {{ jitter = \"{free}\", loss = \"{}%\" }}\nbackward = {{ jitter = \"{free}\" }}",
                    100.0 * loss
                );
                let mut cell = line.cell("loose", &format!(" {shape} {mean}ms"), "", seconds);
                cell.path = line.text_over(line.round + within, &more);
                cell.round = (line.round + 2.0 * mean) / 1e3;
                cells.push(cell);
            }
        }
    }
    cells
}

/// Beside one flow of TCP.
fn beside(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    let paths = [
        (20.0, 40.0, vec![0.25, 0.5, 1.0, 2.0, 4.0], 60.0),
        (5.0, 40.0, vec![1.0, 2.0], 60.0),
        (20.0, 10.0, vec![1.0, 4.0], 60.0),
        (20.0, 200.0, vec![0.5, 1.0, 2.0], 120.0),
        (100.0, 20.0, vec![0.5, 2.0], 40.0),
        (200.0, 40.0, vec![0.5, 1.0], 40.0),
    ];
    for congestion in ["bbr", "cubic", "reno"] {
        for (megabits, round, queues, seconds) in &paths {
            for &queue in queues {
                let line = shift.line(*megabits, *round, 0.0, queue);
                let mut cell = line.cell("beside", &format!(" {congestion}"), "", *seconds);
                cell.flows.push(tcp(congestion, 0.0));
                cell.goal = Goal::Beside;
                cells.push(cell.clone());
                if (*megabits, *round) == (20.0, 40.0) && (0.5..=2.0).contains(&queue) {
                    cell.name += " that was there";
                    cell.flows[0].start = 10.0;
                    cells.push(cell.clone());
                    cell.name = format!("{} {congestion} that comes later", line.name());
                    (cell.flows[0].start, cell.flows[1].start) = (0.0, 10.0);
                    cells.push(cell);
                }
            }
        }
    }
    cells
}

/// Transfers beside each other.
fn fair(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    for queue in [0.25, 0.5, 1.0, 2.0] {
        for (megabits, round) in [(20.0, 40.0), (100.0, 20.0), (10.0, 200.0)] {
            let line = shift.line(megabits, round, 0.0, queue);
            let seconds = (0.2 * round + 20.0).min(60.0);
            for count in [2, 3, 4, 8] {
                let mut cell = line.cell("fair", &format!(" {count} at once"), "", seconds);
                cell.flows[0].count = count;
                cell.goal = Goal::Fair;
                cells.push(cell);
            }
            let mut cell = line.cell("fair", " the second after 10 s", "", seconds + 10.0);
            cell.flows.push(netblt(10.0));
            cell.goal = Goal::Fair;
            cells.push(cell);
        }
    }
    cells
}

/// Paths that change, and others that come and go.
fn change(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |line: Line, what: &str, more: &str, seconds: f64, part: f64| {
        let mut cell = line.cell("change", what, more, seconds);
        cell.best *= part;
        cells.push(cell);
    };
    let to = |megabits: f64, delay: f64| {
        let Line { megabits, round, .. } = shift.line(megabits, 2.0 * delay, 0.0, 0.0);
        format!("rate={}kbit delay={}us", (megabits * 1e3).round(), (round * 500.0).round())
    };
    let line = shift.line(10.0, 100.0, 0.0, 1.0);
    add(line, " outage of 30 s", "schedule = \"40s loss=100%; 70s loss=0%\"", 120.0, 0.75);
    let slow = format!("schedule = \"20s {}; 40s {}\"", to(2.0, 50.0), to(10.0, 50.0));
    add(line, " a fifth from 20 s to 40 s", &slow, 60.0, 44.0 / 60.0);
    let places = [(60.0, 30.0), (120.0, 20.0), (40.0, 35.0), (100.0, 25.0)];
    let places = places.iter().cycle().take(7).zip(1..);
    let places = places.map(|(&(rate, delay), at)| format!("{}s {}", 15 * at, to(rate, delay)));
    let hand_over = format!("schedule = \"{}\"", places.collect::<Vec<_>>().join("; "));
    let line = shift.line(100.0, 50.0, 0.0, 1.0);
    // Eight stretches of 15 s.
    let mean = (100.0 + 60.0 + 120.0 + 40.0) / 400.0;
    add(line, " hand-over every 15 s", &hand_over, 120.0, mean);
    let lossy = shift.line(100.0, 50.0, 0.01, 1.0);
    add(
        lossy,
        " hand-over every 15 s",
        &format!("{hand_over}\nforward = {{ loss = \"1%\" }}"),
        120.0,
        mean,
    );
    for (congestion, part) in [("cubic", 0.75), ("bbr", 0.75)] {
        let mut cell = line.cell("change", &format!(" {congestion} for the second half"), "", 60.0);
        cell.flows.push(tcp(congestion, 30.0));
        cell.best *= part;
        cell.goal = Goal::Share(0.85);
        cells.push(cell);
    }
    cells
}

/// Ways back that are many times narrower than the way there, and such that lose much of what is said.
fn back(shift: Shift) -> Vec<Cell> {
    let mut cells = Vec::new();
    let paths =
        [(100.0, 20.0), (100.0, 50.0), (10.0, 100.0), (100.0, 100.0), (20.0, 200.0), (50.0, 250.0)];
    for loss in [0.0, 0.01] {
        for (megabits, times) in paths {
            for (round, seconds) in [(40.0, 40.0), (100.0, 40.0), (600.0, 120.0)] {
                let line = shift.line(megabits, round, loss, 1.0);
                let rate = (line.megabits * 1e3 / times).round();
                // A quarter of a second, as modems have.
                let limit = (rate * 1e3 / 8.0 / 4.0).max(8.0 * PACKET);
                let back = format!("rate = \"{rate}kbit/s\", limit = \"{limit}B\"");
                let what = format!(" a {times}th back");
                cells.push(line.cell("back", &what, &both(loss, loss, &back), seconds));
            }
        }
    }
    for (megabits, round, seconds) in
        [(10.0, 100.0, 60.0), (100.0, 50.0, 30.0), (100.0, 600.0, 120.0)]
    {
        for words in [0.05, 0.2, 0.4] {
            let line = shift.line(megabits, round, 0.01, 1.0);
            let what = format!(" {words} of the words lost");
            cells.push(line.cell("back", &what, &both(0.01, words, ""), seconds));
        }
        let line = shift.line(megabits, round, 0.01, 1.0);
        let chain = "forward = { loss = \"1%\" }\nbackward = { loss = \"ge:p=1%,r=10%\" }";
        cells.push(line.cell("back", " words lost in bursts of ten", chain, seconds));
    }
    cells
}

/// Losses there and back, and more settings of the way back.
fn both(there: f64, back: f64, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    let back = format!("loss = \"{}%\"{comma}{more}", 100.0 * back);
    format!("{}\nbackward = {{ {back} }}", random(there))
}

/// The channel of RFC 1030: one transfer of 10 MB and of 50 MB from the first word, and eight at once.
fn wideband(_: Shift) -> Vec<Cell> {
    let studies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let read = |file: &str| {
        std::fs::read_to_string(format!("{studies}/{file}"))
            .unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let path = read("lambert1987/network.toml") + &read("lambert-beyond/path.toml");
    let cell = |count: usize, bytes: f64, seconds: f64| {
        let transport = "{ kind = \"netblt\", frame = 1424 }".into();
        Cell {
            region: "wideband",
            name: format!("{count} at once {} MB", bytes / 1e6),
            path: path.clone(),
            ends: ("workstation", "isi"),
            flows: vec![Flows { transport, count, start: 0.0 }],
            seconds,
            round: 1.8,
            best: 1.045e6,
            goal: Goal::Share(0.97),
        }
    };
    vec![cell(1, 10e6, 0.0), cell(1, 50e6, 0.0), cell(2, 0.0, 90.0), cell(8, 0.0, 90.0)]
}

impl Cell {
    fn text(&self, seed: u64) -> String {
        let stop = self.seconds.max(1000.0);
        let mut text = format!("seed = {seed}\nstop_after = \"{stop}s\"\n{}", self.path);
        for (index, flows) in self.flows.iter().enumerate() {
            let (from, to) = self.ends;
            text += &format!(
                "[[traffic]]\nname = \"t{index}\"\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {}\n",
                flows.transport
            );
            if self.seconds == 0.0 {
                let bytes = self.name.split(' ').rev().nth(1).unwrap_or("1");
                text += &format!("kind = \"bulk\"\nwrite = 10000\nbytes = \"{bytes}MB\"\n");
                continue;
            }
            text += &format!(
                "kind = \"greedy\"\nwrite = 65536\ncount = {}\nstagger = \"13ms\"\nstart = \"{}s\"\n\
                 duration = \"{}s\"\nwarm_up = \"0s\"\ninterval = \"{}us\"\n",
                flows.count,
                flows.start,
                self.seconds - flows.start,
                (self.round * 1e6) as u64
            );
        }
        text
    }

    fn run(&self, seed: u64) -> Run {
        let text = self.text(seed);
        let cells = Scenario::parse(&text, "grid.toml")
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", self.name));
        trunkline_sim::run(&cells[0]).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// User bits per second of each flow between two instants.
    fn rates(&self, run: &Run, from: f64, to: f64) -> Vec<f64> {
        let instant = |at: Time| at.since(Time::ZERO).as_secs_f64();
        let mut rates = Vec::new();
        for (traffic, flows) in run.traffic.iter().zip(&self.flows) {
            for flow in 0..flows.count {
                let samples = traffic.samples.iter().filter(|it| it.flow as usize == flow);
                let within =
                    samples.filter(|it| instant(it.start) >= from && instant(it.end) <= to);
                let bits: f64 = within.map(|it| it.size as f64 * 8.0).sum();
                rates.push(bits / (to - from));
            }
        }
        rates
    }

    /// The line of the table.
    fn line(&self, seed: u64) -> String {
        let run = self.run(seed);
        let seconds = match self.seconds {
            0.0 => run.traffic[0]
                .samples
                .iter()
                .next()
                .map_or(f64::INFINITY, |it| it.delay().as_secs_f64()),
            seconds => seconds,
        };
        let bytes = |index: usize| run.traffic[index].delivered_bytes as f64 * 8.0 / seconds;
        let all: f64 = (0..run.traffic.len()).map(bytes).sum();
        let last = self.flows.iter().map(|it| it.start).fold(0.0, f64::max);
        let rates = self.rates(&run, last, self.seconds);
        let own = rates.first().copied().unwrap_or(0.0) / rates.iter().sum::<f64>().max(1.0);
        let early = self.rates(&run, last + 20.0 * self.round, last + 30.0 * self.round);
        let fair = jain(&early);
        let queue = run
            .links
            .iter()
            .filter_map(|it| it.queueing.as_ref())
            .map(|it| it.quantile(0.5).as_secs_f64() / self.round)
            .fold(0.0, f64::max);
        let packets = run.traffic[0].packets;
        let again = run.traffic[0].retransmissions as f64 / (packets.sent.max(1)) as f64;
        // What TCP beside it has is not its own.
        let own_part = matches!(self.goal, Goal::Share(_));
        let share = if own_part { bytes(0) } else { all } / self.best;
        let (goal, met) = match self.goal {
            Goal::Share(least) => ("share", share >= least && queue <= 0.25),
            Goal::Beside => ("beside", (0.3..=0.7).contains(&own)),
            Goal::Fair => ("fair", fair >= 0.95),
        };
        format!(
            "{},{},{share:.3},{own:.3},{fair:.3},{:.3},{queue:.3},{again:.4},{goal},{}",
            self.region,
            self.name,
            jain(&rates),
            if met { "met" } else { "missed" }
        )
    }
}

/// Jain's index of fairness.
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares).max(1e-9)
}

fn main() {
    let (options, asked): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|it| it.starts_with("--"));
    let shift = if options.iter().any(|it| it == "--shifted") { SHIFTED } else { PLAIN };
    let seed = options.iter().find_map(|it| it.strip_prefix("--seed="));
    let seed = seed.map_or(shift.seed, |it| it.parse().expect("--seed=N, a whole number"));
    let all = [alone, low, burst, jitter, loose, beside, fair, change, back, wideband]
        .map(|region| region(shift));
    let is_asked = |cell: &Cell| {
        asked.is_empty()
            || asked.iter().any(|it| format!("{} {}", cell.region, cell.name).contains(it.as_str()))
    };
    let cells: Vec<Cell> = all.into_iter().flatten().filter(is_asked).collect();
    println!("region,path,share,own,jain20to30,jain,queue,again,goal,met");
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); cells.len()]));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = cell.line(seed);
                    eprintln!("{line}");
                    let mut lines = lines.lock().unwrap_or_else(|error| error.into_inner());
                    if let Some(at) = cells.iter().position(|it| std::ptr::eq(it, cell)) {
                        lines[at] = line;
                    }
                }
            });
        }
    });
    for line in lines.into_inner().unwrap_or_default() {
        println!("{line}");
    }
}

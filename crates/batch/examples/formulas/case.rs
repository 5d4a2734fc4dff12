//! A case: a path, its connections and what they carry, drawn from a seed.

use anyhow::{Context, Result, ensure};
use trunkline_core::{Seed, Stream};
use trunkline_scenario::Scenario;

/// Bytes of a full packet.
pub const PACKET: f64 = 1_500.0;
/// Packets that a run may put on the line; a case that needs more is drawn again.
const MOST_PACKETS: f64 = 1_200_000.0;
/// Packets for which a buffer has room at least.
const LEAST_BUFFER: f64 = 3.0;
/// Saw-teeth and round trips that a measured steady state holds at least.
const EPOCHS: f64 = 20.0;
const ROUNDS: f64 = 400.0;
/// The columns of a case.
pub const COLUMNS: &str =
    "case,controller,profile,rate_bps,rtt_us,loss,buffer_bdp,limit_bytes,flows,kind,bytes,seconds";

/// One case of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub number: u32,
    pub controller: String,
    pub profile: String,
    /// Bits per second.
    pub rate: u64,
    /// Microseconds, both ways, without queue and transmission.
    pub rtt: u64,
    /// The probability that the way out loses a packet.
    pub loss: f64,
    /// The buffer in products of rate and round trip.
    pub depth: f64,
    /// The buffer in bytes.
    pub limit: u64,
    pub flows: u32,
    /// The bytes of one transfer by each flow; `None` for a greedy flow.
    pub bytes: Option<u64>,
    /// Seconds that are measured; a transfer takes what it takes.
    pub seconds: u64,
}

impl Case {
    /// Case number `number` of a seed, whatever other cases are drawn.
    pub fn draw(seed: Seed, number: u32) -> Case {
        let mut stream = seed.stream(&format!("case {number}"));
        loop {
            let case = Case::draw_once(&mut stream, number);
            if case.packets() <= MOST_PACKETS && case.limit as f64 >= LEAST_BUFFER * PACKET {
                return case;
            }
        }
    }

    fn draw_once(stream: &mut Stream, number: u32) -> Case {
        let controller = pick(stream, &["newreno", "newreno", "cubic", "cubic", "bbr"]);
        let profile = pick(stream, &["trunkline", "linux"]);
        let rate = between(stream, 5e5, 1e8) as u64;
        let rtt = between(stream, 1e3, 3e5) as u64;
        let loss = if stream.unit() < 0.35 { 0.0 } else { between(stream, 1e-4, 0.1) };
        let depth = between(stream, 0.1, 4.0);
        let flows = if stream.unit() < 0.4 { 1 } else { between(stream, 2.0, 101.0) as u32 };
        let bytes = (stream.unit() < 0.3).then(|| between(stream, 1e4, 1e7) as u64);
        let limit = (depth * rate as f64 / 8.0 * rtt as f64 / 1e6) as u64;
        let (controller, profile) = (controller.to_string(), profile.to_string());
        let loss = (loss * 1e6).round() / 1e6;
        let mut case = Case {
            number,
            controller,
            profile,
            rate,
            rtt,
            loss,
            depth,
            limit,
            flows,
            bytes,
            seconds: 0,
        };
        case.seconds = case.long_enough().ceil() as u64;
        case
    }

    /// The product of rate and round trip in packets.
    pub fn pipe(&self) -> f64 {
        self.rate as f64 / 8.0 * self.rtt as f64 / 1e6 / PACKET
    }

    /// Seconds that hold enough saw-teeth, taken from the path alone.
    fn long_enough(&self) -> f64 {
        let full = (self.pipe() * (1.0 + self.depth)).max(2.0) / f64::from(self.flows);
        let round = self.rtt as f64 / 1e6 * (1.0 + self.depth);
        let by_chance = if self.loss > 0.0 { 1.0 / self.loss.sqrt() } else { f64::INFINITY };
        let rounds = match self.controller.as_str() {
            "bbr" => 60.0 / round / EPOCHS,
            _ => full.min(by_chance).max(4.0) / 2.0,
        };
        (EPOCHS * rounds * round).max(ROUNDS * round).max(20.0)
    }

    /// Packets that the line carries meanwhile at most.
    fn packets(&self) -> f64 {
        match self.bytes {
            Some(bytes) => bytes as f64 * f64::from(self.flows) / PACKET,
            None => self.rate as f64 / 8.0 / PACKET * self.seconds as f64 * 1.5,
        }
    }

    /// Bytes of the whole as a relative cost.
    pub fn cost(&self) -> u64 {
        self.packets() as u64
    }

    /// The scenario of run number `run`. Flows start within a round trip, at distances that differ from run to
    /// run; the way back loses nothing and delays nothing but by distance.
    pub fn scenario(&self, run: u32) -> Result<Scenario> {
        let cells = Scenario::parse(&self.text(run), "case.toml")?;
        cells.into_iter().next().context("a scenario has a cell")
    }

    fn text(&self, run: u32) -> String {
        let Case { controller, profile, rate, rtt, loss, limit, flows, .. } = self;
        let seed = 1_000 * u64::from(self.number) + u64::from(run);
        let phase = Seed(seed).stream("stagger").unit();
        let stagger = (phase * *rtt as f64 / f64::from(*flows)) as u64;
        let sample = (rtt / 7).clamp(500, 50_000);
        let kind = match self.bytes {
            Some(bytes) => format!("kind = \"bulk\"\nbytes = {bytes}\nconfirm = true"),
            None => {
                let warm = self.seconds / 2;
                let all = self.seconds + warm;
                format!("kind = \"greedy\"\nduration = \"{all}s\"\nwarm_up = \"{warm}s\"")
            }
        };
        format!(
            "seed = {seed}\nsamples = \"all\"\nsample_backlog = \"{sample}us\"\nstop_after = \"10h\"\n\
             [[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             [[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"{delay}us\"\n\
             forward = {{ rate = \"{rate}bit/s\", loss = {loss}, limit = \"{limit}B\" }}\n\
             [[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\ncount = {flows}\n\
             stagger = \"{stagger}us\"\nwrite = 65536\n{kind}\n\
             transport = {{ kind = \"tcp\", profile = \"{profile}\", congestion = \"{controller}\" }}\n",
            delay = rtt / 2,
        )
    }

    /// The case as a line of CSV.
    pub fn line(&self) -> String {
        let kind = if self.bytes.is_some() { "transfer" } else { "steady" };
        format!(
            "{},{},{},{},{},{:.6},{:.3},{},{},{kind},{},{}",
            self.number,
            self.controller,
            self.profile,
            self.rate,
            self.rtt,
            self.loss,
            self.depth,
            self.limit,
            self.flows,
            self.bytes.unwrap_or(0),
            self.seconds
        )
    }

    /// The case that a line of CSV describes, and the fields after it.
    pub fn read(line: &str) -> Result<(Case, Vec<&str>)> {
        let fields: Vec<&str> = line.split(',').collect();
        ensure!(fields.len() >= 12, "found '{line}': a case has 12 fields");
        let case = Case {
            number: fields[0].parse()?,
            controller: fields[1].into(),
            profile: fields[2].into(),
            rate: fields[3].parse()?,
            rtt: fields[4].parse()?,
            loss: fields[5].parse()?,
            depth: fields[6].parse()?,
            limit: fields[7].parse()?,
            flows: fields[8].parse()?,
            bytes: (fields[9] == "transfer").then(|| fields[10].parse()).transpose()?,
            seconds: fields[11].parse()?,
        };
        Ok((case, fields[12..].to_vec()))
    }
}

fn pick<'a>(stream: &mut Stream, of: &[&'a str]) -> &'a str {
    of[stream.below(of.len() as u64) as usize]
}

/// A number between `low` and `high`, every ratio being as likely as another.
fn between(stream: &mut Stream, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, stream.unit())
}

//! A scenario as numbers, its file, and its figure.

use std::collections::BTreeMap;
use std::fmt::Write;
use trunkline_engine::Run;
use trunkline_measure::Sample;
use trunkline_scenario::Scenario;

/// How the traffic speaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Speech {
    Urp { block: u64, outstanding: u64 },
    Tcp(Tcp),
    Udp,
    Datagram,
    Arq(Arq),
    Netblt(Netblt),
}

/// A textbook protocol: stop-and-wait has no `frames`.
#[derive(Debug, Clone, PartialEq)]
pub struct Arq {
    pub kind: &'static str,
    pub frame: u64,
    pub frames: Option<u64>,
    /// Bits in a second of the sender's own line.
    pub rate: Option<u64>,
}

/// NETBLT as far as the drawn scenarios set it.
#[derive(Debug, Clone, PartialEq)]
pub struct Netblt {
    pub outstanding: u64,
    /// Packets of a burst, and milliseconds from one to the next.
    pub bursts: Option<(u64, u64)>,
    /// The most bits in a second.
    pub cap: Option<u64>,
}

impl Netblt {
    /// User bytes of a packet, and packets of a buffer.
    pub const PACKET: u64 = 1440;
    pub const PACKETS: u64 = 16;

    fn text(&self) -> String {
        let mut out = format!(
            "{{ kind = 'netblt', packets = {}, outstanding = {}",
            Netblt::PACKETS,
            self.outstanding
        );
        if let Some((burst, interval)) = self.bursts {
            let _ = write!(out, ", burst = {burst}, interval = '{interval}ms'");
        }
        if let Some(cap) = self.cap {
            let _ = write!(out, ", rate = '{cap}bit/s'");
        }
        out + " }"
    }
}

impl Arq {
    fn text(&self) -> String {
        let mut out = format!("{{ kind = '{}', frame = {}", self.kind, self.frame);
        if let Some(frames) = self.frames {
            let _ = write!(out, ", frames = {frames}");
        }
        if let Some(rate) = self.rate {
            let _ = write!(out, ", rate = '{rate}bit/s'");
        }
        out + " }"
    }
}

/// TCP as far as the drawn scenarios set it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tcp {
    pub profile: &'static str,
    pub congestion: Option<&'static str>,
    /// Of both ends, and another one of the receiver.
    pub window: Option<u64>,
    pub receiver: Option<u64>,
    pub initial_window: Option<u64>,
}

/// What the applications do. Times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    Bulk { bytes: u64, repeat: u64, write: u64 },
    Push { bytes: u64, repeat: u64, write: u64 },
    Greedy { duration: u64, write: u64 },
    TimedTransfer { size: u64, duration: u64 },
    Interactive { size: u64, repeat: u64, reply: Option<u64> },
    TimedEcho { size: u64, duration: u64 },
    Paced { size: u64, rate: u64, duration: u64 },
}

/// One direction of the trunk.
#[derive(Debug, Clone, PartialEq)]
pub struct Trunk {
    /// Bits in a second.
    pub rate: u64,
    /// Bytes.
    pub limit: u64,
    /// Share of the packets.
    pub loss: f64,
    pub round_robin: bool,
}

/// A scenario: `a` sends to `b` over a trunk, `c` to `d` or back.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    pub seed: u64,
    pub there: Trunk,
    pub back: Trunk,
    /// Of the trunk, one way, in nanoseconds.
    pub delay: u64,
    pub speech: Speech,
    pub work: Work,
    pub count: u64,
    /// What each system write or read, and each packet, costs the processors of `a` and `b`, in nanoseconds.
    pub costs: [[u64; 2]; 2],
    /// The number of greedy connections besides, and whether they go back.
    pub others: u64,
    pub others_go_back: bool,
}

/// Bits in a second of the lines beside the trunk.
pub const EDGE: u64 = 1_000_000_000;

impl Paper {
    /// The file.
    pub fn text(&self) -> String {
        let mut out = format!("seed = {}\nstop_after = '1h'\n", self.seed);
        for (name, [call, packet]) in std::iter::zip(["a", "b"], self.costs) {
            let _ = writeln!(
                out,
                "[processor.p{name}]\nwrite = '{call}ns'\nread = '{call}ns'\nsend_block = '{packet}ns'\n\
                 receive_block = '{packet}ns'\n[[host]]\nname = '{name}'\nprocessor = 'p{name}'"
            );
        }
        out.push_str("[[host]]\nname = 'c'\n[[host]]\nname = 'd'\n[[node]]\nname = 'n'\n[[node]]\nname = 'm'\n");
        for ends in ["'a', 'n'", "'c', 'n'", "'m', 'b'", "'m', 'd'"] {
            let _ = writeln!(
                out,
                "[[link]]\nbetween = [{ends}]\nrate = '{EDGE}bit/s'\nlimit = '64MiB'"
            );
        }
        let _ = writeln!(
            out,
            "[[link]]\nname = 'trunk'\nbetween = ['n', 'm']\ndelay = '{}ns'",
            self.delay
        );
        let _ = writeln!(out, "forward = {}\nbackward = {}", self.there.text(), self.back.text());
        out.push_str(&self.traffic());
        if self.others > 0 {
            let (from, to) = if self.others_go_back { ("d", "c") } else { ("c", "d") };
            let _ = writeln!(
                out,
                "[[traffic]]\nname = 'others'\nkind = 'greedy'\nfrom = '{from}'\nto = '{to}'\ncount = {}\n\
                 transport = 'tcp'\nuntil = 'it'",
                self.others
            );
        }
        out
    }

    fn traffic(&self) -> String {
        let work = self.work.text();
        let waits = if self.others > 0 { "start = '2s'\n" } else { "" };
        let mut out = format!(
            "[[traffic]]\nname = 'it'\nfrom = 'a'\nto = 'b'\ncount = {}\n{waits}{work}\n",
            self.count
        );
        let _ = writeln!(out, "transport = {}", self.speech.text(false));
        if matches!(&self.speech, Speech::Tcp(tcp) if tcp.receiver.is_some()) {
            let _ = writeln!(out, "reply_transport = {}", self.speech.text(true));
        }
        out
    }

    /// The scenario.
    pub fn scenario(&self) -> Scenario {
        let text = self.text();
        match Scenario::parse(&text, "advice.toml") {
            Ok(mut cells) => cells.remove(0),
            Err(error) => panic!("{error}\n{text}"),
        }
    }

    /// Seconds of a message or transfer, or of a byte, at full length.
    pub fn seconds(&self, as_rate: bool) -> f64 {
        let run = trunkline_sim::run(&self.scenario()).expect("it can be simulated");
        self.read(&run, as_rate)
    }

    /// Whether the traffic is of datagrams that do not arrive as they are offered.
    pub fn falls_short(&self) -> bool {
        let Work::Paced { rate, .. } = self.work else { return false };
        let offered = rate as f64 / 8.0 * self.count as f64;
        1.0 / self.seconds(true) < 0.9 * offered
    }

    /// The figure of a run; `as_rate` if what arrives is counted and not when.
    fn read(&self, run: &Run, as_rate: bool) -> f64 {
        let it = run.traffic("it").expect("the traffic");
        if as_rate {
            let lives =
                it.sender.iter().map(|states| states.values().map(|it| it.as_secs_f64()).sum());
            // Datagrams go on arriving when their sender has done.
            let first = it.samples.iter().map(|it| it.start).min().expect("a sample");
            let last = it.samples.iter().map(|it| it.end).max().expect("a sample");
            let life = lives.fold((last - first).as_secs_f64(), f64::max);
            return life / it.delivered_bytes as f64;
        }
        let mut flows: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        it.samples.iter().for_each(|sample| flows.entry(sample.flow).or_default().push(sample));
        if let Work::Greedy { .. } = self.work {
            let rate = |samples: &Vec<&Sample>| {
                let bytes: u64 = samples.iter().map(|sample| sample.size).sum();
                bytes as f64 / samples.iter().map(|it| it.delay().as_secs_f64()).sum::<f64>()
            };
            return 1.0 / flows.values().map(rate).sum::<f64>();
        }
        let kept: Vec<f64> = flows.into_values().flat_map(|samples| settled(&samples)).collect();
        kept.iter().sum::<f64>() / kept.len() as f64
    }
}

/// Delays without the warm-up that docs/explain.md states.
fn settled(samples: &[&Sample]) -> Vec<f64> {
    let all: Vec<f64> = samples.iter().map(|sample| sample.delay().as_secs_f64()).collect();
    if samples.len() < 3 {
        return all;
    }
    let since = |at: usize| (samples[at].end - samples[0].start).as_secs_f64();
    let whole = since(samples.len() - 1);
    let early = (0..samples.len()).filter(|&at| since(at) <= whole / 10.0 + 1e-9).count();
    all[early.max(samples.len().div_ceil(10)).min(samples.len() - 1)..].to_vec()
}

impl Trunk {
    fn text(&self) -> String {
        let discipline = if self.round_robin { "round-robin:quantum=64" } else { "fifo" };
        format!(
            "{{ rate = '{}bit/s', limit = '{}B', loss = '{:.6}%', discipline = '{discipline}' }}",
            self.rate,
            self.limit,
            100.0 * self.loss
        )
    }
}

impl Speech {
    fn text(&self, receiver: bool) -> String {
        match self {
            Speech::Urp { block, outstanding } => {
                // Blocks go as packets of their own: no line counts envelopes here.
                format!(
                    "{{ kind = 'urp', block = '{block}B', outstanding = {outstanding}, packet = 0 }}"
                )
            }
            Speech::Udp => "'udp'".into(),
            Speech::Datagram => "'datagram'".into(),
            Speech::Tcp(tcp) => tcp.text(receiver),
            Speech::Arq(arq) => arq.text(),
            Speech::Netblt(netblt) => netblt.text(),
        }
    }
}

impl Tcp {
    fn text(&self, receiver: bool) -> String {
        let mut out = format!("{{ kind = 'tcp', profile = '{}'", self.profile);
        if let Some(congestion) = self.congestion {
            let _ = write!(out, ", congestion = '{congestion}'");
        }
        let window = if receiver { self.receiver.or(self.window) } else { self.window };
        if let Some(window) = window {
            let _ = write!(out, ", window = '{window}B'");
        }
        if let Some(segments) = self.initial_window {
            let _ = write!(out, ", initial_window = {segments}");
        }
        if self.window.max(self.receiver).is_some_and(|window| window > 65_535) {
            out.push_str(", window_scaling = true");
        }
        out + " }"
    }
}

impl Work {
    fn text(&self) -> String {
        match self {
            Work::Bulk { bytes, repeat, write } => {
                format!("kind = 'bulk'\nbytes = '{bytes}B'\nrepeat = {repeat}\nwrite = '{write}B'")
            }
            Work::Push { bytes, repeat, write } => {
                format!("kind = 'push'\nbytes = '{bytes}B'\nrepeat = {repeat}\nwrite = '{write}B'")
            }
            Work::Greedy { duration, write } => {
                format!("kind = 'greedy'\nduration = '{duration}ms'\nwrite = '{write}B'")
            }
            Work::TimedTransfer { size, duration } => {
                format!("kind = 'timed-transfer'\nsizes = [{size}]\nduration = '{duration}ms'")
            }
            Work::Interactive { size, repeat, reply } => {
                let reply = reply.map_or(String::new(), |bytes| format!("\nreply = {bytes}"));
                format!("kind = 'interactive'\nsizes = [{size}]\nrepeat = {repeat}{reply}")
            }
            Work::TimedEcho { size, duration } => {
                format!("kind = 'timed-echo'\nsizes = [{size}]\nduration = '{duration}ms'")
            }
            Work::Paced { size, rate, duration } => format!(
                "kind = 'paced'\nsize = '{size}B'\nrate = '{rate}bit/s'\nduration = '{duration}ms'"
            ),
        }
    }
}

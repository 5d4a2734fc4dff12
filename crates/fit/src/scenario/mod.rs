//! Writes the scenario file of a path that was fitted, so that the simulator and the emulator can stand in
//! for the path that was measured.

mod datagrams;
mod tcp;
mod tried;

pub use datagrams::OverUdp;
pub use tcp::OverTcp;
pub use tried::Trial;

use crate::curve::Curve;
use crate::known::{CannotTell, Fitted, Pattern};
use crate::path::PathFit;

/// The longest block of URP, in user bytes.
const MOST_BLOCK: u32 = 4096;
/// The most blocks of URP outstanding.
const MOST_OUTSTANDING: u32 = 7;
/// The bytes that URP adds to the user bytes of a block: one that ends it and three of trailer.
const TRAILER: f64 = 4.0;
/// URP's answer to a block, in bytes.
const ANSWER: f64 = 1.0;

/// The carrier of the messages, in the measurement and in the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// Blocks of URP.
    Urp,
    /// A connection of TCP.
    Tcp(OverTcp),
    /// Datagrams.
    Udp(OverUdp),
}

/// The contents of the file beside the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The scenario's name.
    pub name: String,
    /// The place, the time and the way of the measurement: one line.
    pub about: String,
    /// Message sizes for the file's interactive traffic: those measured, in user bytes.
    pub sizes: Vec<u32>,
    /// Messages of each size.
    pub repeat: u32,
    /// Bytes of each answer, if it is not the whole message.
    pub reply: u32,
    /// The carrier.
    pub over: Over,
}

/// A scenario file.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The file, in TOML.
    pub text: String,
    /// By how much a simulated round trip may differ from the level measured at the same size, in
    /// milliseconds: what the fit does not explain, and what the transport of the scenario divides
    /// otherwise than the one measured.
    pub error: f64,
}

/// The reason why no scenario can be written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CannotWrite {
    /// The fit has no curve that goes on.
    #[error("no scenario: {0}")]
    NotFitted(CannotTell),
    /// Longer messages take no longer.
    #[error("no scenario: a longer message takes no longer; measure larger sizes")]
    NoSlope,
    /// No window was seen, and URP's largest would make the line wait.
    #[error(
        "no scenario: URP can have {most} bytes outstanding, too few for a path that never waited up to {largest} bytes; describe it by hand with a datagram transport"
    )]
    TooLong {
        /// Bytes.
        most: u32,
        /// Bytes.
        largest: u32,
    },
    /// A window that segments do not fill.
    #[error(
        "no scenario: a window of {window} bytes that is refilled by {period} is not URP's, which sends whole blocks only; describe it by hand with TCP"
    )]
    NotWhole {
        /// Bytes.
        window: u32,
        /// Bytes.
        period: u32,
    },
    /// Only one way's window makes the sender wait.
    #[error(
        "no scenario: a window of {window} bytes makes only the {way} wait, and a scenario's connection has one window for both ways; bound the other end's window too (--tcp-window)"
    )]
    OneWay {
        /// Bytes.
        window: u32,
        /// The way.
        way: &'static str,
    },
    /// The jumps are higher than an empty message's round trip leaves room for.
    #[error(
        "no scenario: jumps of {jump:.3} ms do not fit into a round trip of {empty:.3} ms, so something else than distance makes the sender wait"
    )]
    JumpTooHigh {
        /// Milliseconds.
        jump: f64,
        /// Milliseconds.
        empty: f64,
    },
}

/// A path without its transport.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    /// Milliseconds for each byte.
    byte: f64,
    /// The same up and down, if they are not alike.
    ways: Option<[f64; 2]>,
    /// One-way propagation, in milliseconds.
    delay: f64,
    /// The cost of each write to a host, in milliseconds.
    write: f64,
    /// The largest packet, in bytes.
    mtu: u32,
}

/// The largest packet if nothing is said: a scenario's default.
const MTU: u32 = 1500;

/// A path as URP sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Geometry {
    block: u32,
    outstanding: u32,
    /// Milliseconds for each byte on the line.
    byte: f64,
    /// One-way propagation, in milliseconds.
    delay: f64,
    /// The cost of each write to a host, in milliseconds.
    write: f64,
}

impl PathFit {
    /// The scenario file of this path: two hosts, a link, and traffic over the transport that was measured,
    /// with the window that was found. Datagrams go each way for themselves. Every figure stands beside its estimate
    /// and interval, or beside the reason why it could not be told, in a comment.
    ///
    /// The scenario reproduces the curve: if propagation and hosts' costs could not be told apart, it
    /// has one division of many. With URP packets are taken as URP's blocks, so that the headers of what was
    /// measured are spread over a block's bytes, and a window longer than seven blocks is divided into
    /// fewer and longer ones.
    ///
    /// # Errors
    /// If there is no curve or no slope, or no such path with this transport.
    pub fn scenario(&self, wanted: &Wanted) -> Result<Written, CannotWrite> {
        let no_curve = || match &self.rate {
            Err(why) => CannotWrite::NotFitted(why.clone()),
            Ok(_) => CannotWrite::NoSlope,
        };
        let curve = self.curve.as_ref().ok_or_else(no_curve)?;
        if let Err(why @ (CannotTell::NotPeriodic { .. } | CannotTell::Open { .. })) = &self.window
        {
            return Err(CannotWrite::NotFitted(why.clone()));
        }
        match &wanted.over {
            Over::Urp => self.over_urp(curve, wanted),
            Over::Tcp(tcp) => self.over_tcp(curve, wanted, tcp),
            Over::Udp(udp) => self.over_udp(curve, wanted, udp),
        }
    }

    fn over_urp(&self, curve: &Curve, wanted: &Wanted) -> Result<Written, CannotWrite> {
        let geometry = self.geometry(curve, wanted)?;
        if geometry.byte <= 0.0 {
            return Err(CannotWrite::NoSlope);
        }
        let error = self.reproduction_error(curve, geometry);
        let Geometry { byte, delay, write, .. } = geometry;
        let path = Line { byte, ways: self.ways(byte), delay, write, mtu: MTU };
        let traffic = self.traffic_text(wanted, geometry);
        Ok(Written { text: self.text(wanted, path, &traffic, error), error })
    }

    /// The line of a transport whose packets carry their headers, which the curve counts from the second
    /// packet on: `headers` are those of the first.
    fn line(&self, curve: &Curve, headers: u32, mtu: u32) -> Result<Line, CannotWrite> {
        let byte = curve.slope / self.known.pattern.ways();
        if byte <= 0.0 {
            return Err(CannotWrite::NoSlope);
        }
        let empty = (curve.base - 2.0 * f64::from(headers) * byte).max(0.0);
        let trip = self.delay.as_ref().map_or(empty, |delay| 2.0 * delay.value).min(empty);
        let (delay, write) = (trip / 2.0, (empty - trip) / 2.0);
        Ok(Line { byte, ways: self.ways(byte), delay, write, mtu })
    }

    /// The time of a byte up and down, if datagrams told that they are not alike: what both take together
    /// stays, so that round trips do.
    fn ways(&self, byte: f64) -> Option<[f64; 2]> {
        let [up, down] = self.known.line?.ways.filter(|_| self.known.pattern == Pattern::Echo)?;
        let both = up.value + down.value;
        Some([up, down].map(|way| 2.0 * byte * way.value / both))
    }

    fn geometry(&self, curve: &Curve, wanted: &Wanted) -> Result<Geometry, CannotWrite> {
        let Ok(window) = self.window else { return self.without_window(curve, wanted) };
        let teeth = curve.combs.iter().map(|comb| comb.teeth).find(|teeth| teeth.first == window);
        if let Some(teeth) = teeth.filter(|teeth| teeth.period != window) {
            return Err(CannotWrite::NotWhole { window, period: teeth.period });
        }
        let candidates = self.divisions(window);
        let placed =
            candidates.iter().map(|&(block, n)| self.placed(curve, block, n, Some(window)));
        let fits = placed.clone().find(|geometry| geometry.write >= 0.0 && geometry.delay >= 0.0);
        fits.ok_or_else(|| CannotWrite::JumpTooHigh {
            jump: curve.at(window + 1) - curve.at(window),
            empty: curve.at(1),
        })
    }

    /// Blocks, and how many, that make up a window: as known first, then as few as possible.
    fn divisions(&self, window: u32) -> Vec<(u32, u32)> {
        let known = self.block.filter(|&block| block > 0 && window.is_multiple_of(block));
        let known = known.map(|block| (block, window / block)).into_iter();
        let exact =
            (1..=MOST_OUTSTANDING).filter(|n| window.is_multiple_of(*n)).map(|n| (window / n, n));
        let near = (1..=MOST_OUTSTANDING).map(|n| (window / n, n));
        known
            .chain(exact)
            .chain(near)
            .filter(|&(block, n)| (1..=MOST_BLOCK).contains(&block) && n <= MOST_OUTSTANDING)
            .collect()
    }

    /// The longest window, if with it the line never waits either.
    fn without_window(&self, curve: &Curve, wanted: &Wanted) -> Result<Geometry, CannotWrite> {
        let largest = wanted.sizes.iter().copied().max().unwrap_or(1);
        let outstanding = MOST_OUTSTANDING;
        let block = self.block.filter(|&block| block <= MOST_BLOCK).unwrap_or(MOST_BLOCK);
        let most = block * outstanding;
        let geometry = self.placed(curve, block, outstanding, None);
        let carried = f64::from(outstanding - 1) * (f64::from(block) + TRAILER) * geometry.byte;
        if largest <= most || carried >= 2.0 * geometry.delay + ANSWER * geometry.byte {
            return Ok(geometry);
        }
        Err(CannotWrite::TooLong { most, largest })
    }

    /// With blocks of this length: the byte's time that carries a full block as fast, the propagation that
    /// makes jumps as high, and the rest of a one-byte message's round trip as the hosts' cost.
    fn placed(&self, curve: &Curve, block: u32, outstanding: u32, window: Option<u32>) -> Geometry {
        let ways = self.known.pattern.ways();
        let full = f64::from(block) + TRAILER;
        let byte = match window {
            // What the line carries from the first byte of a window to its last.
            Some(window) => {
                let further = f64::from(outstanding - 1) * TRAILER;
                (curve.at(window) - curve.at(1)) / ways / (f64::from(window - 1) + further)
            }
            None => self.packet_time(curve, block) / full,
        };
        let empty = curve.at(1) - 2.0 * (1.0 + TRAILER) * byte;
        let trip = match window {
            Some(window) => {
                let jump = (curve.at(window + 1) - curve.at(window)) / ways;
                let carried = f64::from(outstanding - 1) * full * byte;
                jump - (1.0 + TRAILER + ANSWER) * byte + carried
            }
            None => self
                .delay
                .as_ref()
                .map_or(empty, |delay| 2.0 * delay.value)
                .clamp(0.0, empty.max(0.0)),
        };
        Geometry { block, outstanding, byte, delay: trip / 2.0, write: (empty - trip) / 2.0 }
    }

    /// The time that `block` bytes in the middle of a message take, one way, in ms.
    fn packet_time(&self, curve: &Curve, block: u32) -> f64 {
        // Many blocks, so that the places at which packets begin do not matter.
        let blocks = 64;
        let size = block.saturating_mul(blocks);
        (curve.at(size + 1) - curve.at(1)) / f64::from(blocks) / self.known.pattern.ways()
    }

    /// The error of reproduction: what the curve misses, the spread of headers over a block, and steps that are no
    /// window's.
    fn reproduction_error(&self, curve: &Curve, geometry: Geometry) -> f64 {
        let ways = self.known.pattern.ways();
        let window = self.window.as_ref().ok();
        let others = curve.combs.iter().filter(|comb| Some(&comb.teeth.first) != window);
        let steps: f64 = others.map(|comb| comb.height.abs()).sum();
        let within = f64::from(geometry.block) * (ways * geometry.byte - curve.slope).abs();
        self.worst + within + steps + 2.0 * ways * TRAILER * geometry.byte
    }

    fn text(&self, wanted: &Wanted, path: Line, traffic: &str, error: f64) -> String {
        let head = format!(
            "name = {:?}\nabout = {:?}\nstop_after = \"604800s\"\n\n",
            one_line(&wanted.name),
            one_line(&wanted.about),
        );
        self.comments(error) + &head + &path_text(path) + traffic
    }

    fn traffic_text(&self, wanted: &Wanted, geometry: Geometry) -> String {
        let reply = match self.known.pattern {
            Pattern::Echo => "\"echo\"".to_string(),
            Pattern::Short => wanted.reply.to_string(),
        };
        format!(
            r#"[[traffic]]
name = "echo"
kind = "interactive"
from = "near"
to = "far"
sizes = {sizes:?}
repeat = {repeat}
reply = {reply}
transport = {{ kind = "urp", block = {block}, outstanding = {outstanding}, packet = 0, timeout = "60s" }}
"#,
            sizes = wanted.sizes,
            repeat = wanted.repeat.max(1),
            block = geometry.block,
            outstanding = geometry.outstanding,
        )
    }

    fn comments(&self, error: f64) -> String {
        let fitted = |found: &Result<Fitted, CannotTell>, unit: &str, digits: usize| match found {
            Ok(it) => {
                let (low, high) = (it.interval.low, it.interval.high);
                format!("{:.digits$} {unit} ({low:.digits$} to {high:.digits$})", it.value)
            }
            Err(why) => why.to_string(),
        };
        let window =
            self.window.as_ref().map_or_else(ToString::to_string, |bytes| format!("{bytes} bytes"));
        let rates = self.known.line.and_then(|line| line.rates());
        let both = if rates.is_some() { ", if it were one for both ways" } else { "" };
        let ways = rates.into_iter().flat_map(|rates| ["up", "down"].into_iter().zip(rates));
        let ways = ways.map(|(way, rate)| format!("rate {way}: {}", fitted(&Ok(rate), "bit/s", 0)));
        let lines = [
            "Fitted from measured round trips; in brackets 95 % intervals.".to_string(),
            format!("window: {window}"),
            format!("rate{both}: {}", fitted(&self.rate, "bit/s", 0)),
            format!("one-way delay, half of both: {}", fitted(&self.delay, "ms", 4)),
            format!(
                "hosts, both, for a message and its answer: {}",
                fitted(&self.per_message, "ms", 4)
            ),
            format!("packet, beyond its bytes, one way: {}", fitted(&self.per_packet, "ms", 4)),
            tried::promise(error),
        ];
        let lines = lines.into_iter().chain(ways);
        lines.fold(String::new(), |text, line| text + "# " + &line + "\n") + "\n"
    }
}

fn path_text(path: Line) -> String {
    let nanos = |millis: f64| (millis * 1e6).round();
    let rate = |byte: f64| format!("rate = \"{}bit/s\"", (8_000.0 / byte).round().clamp(1.0, 1e13));
    let rate = match path.ways.map(|ways| ways.map(rate)) {
        None => rate(path.byte),
        Some([up, down]) => format!("forward = {{ {up} }}\nbackward = {{ {down} }}"),
    };
    format!(
        r#"{mtu}[processor.measured]
write = "{write}ns"

[[host]]
name = "near"
processor = "measured"
[[host]]
name = "far"
processor = "measured"

[[link]]
between = ["near", "far"]
{rate}
delay = "{delay}ns"

"#,
        write = nanos(path.write),
        delay = nanos(path.delay),
        mtu = if path.mtu == MTU { String::new() } else { format!("mtu = {}\n\n", path.mtu) },
    )
}

/// TOML's basic strings hold what Rust's debug form of a string holds, but for control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() || !it.is_ascii() { ' ' } else { it }).collect()
}

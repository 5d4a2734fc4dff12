//! Disciplines as people write them on a command line: `round-robin:quantum=64,limit=500KB`.

use crate::spec::Sparse;
use crate::{DisciplineSpec, Limit, SpecError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use trunkline_core::{Size, Span, number_and_unit};

/// Why the text of a discipline could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DisciplineTextError {
    /// No such discipline.
    #[error("'{found}' is no discipline: use one of {KINDS}")]
    Kind {
        /// What was found.
        found: String,
    },
    /// Something that is not `key=value`.
    #[error("'{found}' in discipline {kind} is not key=value: the keys are {allowed}")]
    NotAPair {
        /// The discipline.
        kind: String,
        /// What was found.
        found: String,
        /// The keys of this discipline.
        allowed: String,
    },
    /// A key that this discipline does not have.
    #[error("discipline {kind} has no key '{found}': the keys are {allowed}")]
    Key {
        /// The discipline.
        kind: String,
        /// The key found.
        found: String,
        /// The keys of this discipline.
        allowed: String,
    },
    /// A key that was given before.
    #[error("discipline {kind} has the key '{found}' twice: leave one of them out")]
    Twice {
        /// The discipline.
        kind: String,
        /// The key.
        found: String,
    },
    /// A value that cannot be read.
    #[error("discipline {kind}, key '{key}': {cause}")]
    Value {
        /// The discipline.
        kind: String,
        /// The key.
        key: &'static str,
        /// What was found and what is allowed.
        cause: String,
    },
    /// A value outside its range.
    #[error("discipline {kind}: {cause}")]
    Spec {
        /// The discipline.
        kind: String,
        /// What was found and what is allowed.
        cause: SpecError,
    },
}

const KINDS: &str = "fifo, round-robin, two-lists, drr, priority, codel, fq-codel, epd";

/// Bytes of each turn (Hawley 1989 §1.4; for two-lists the patent's abstract gives no figure and
/// this is ours).
const QUANTUM: u32 = 64;
/// Bytes of a frame of two-lists: the most data of a Datakit trunk frame (Hawley 1989 §2.1); the
/// patent's abstract gives no figure.
const FRAME: u32 = 256;
/// Bytes of each turn: an Ethernet frame of the largest size (RFC 8290 §5.2.4).
const PACKET_QUANTUM: u32 = 1514;
/// The eight priorities of IEEE 802.1p.
const BANDS: u8 = 8;
/// RFC 8289 §5.3 and RFC 8290 §5.2.2.
const TARGET: Span = Span::from_millis(5);
/// RFC 8289 §5.3 and RFC 8290 §5.2.1.
const INTERVAL: Span = Span::from_millis(100);
/// The largest IP packet on Ethernet (RFC 8289 §5.3 asks for the interface's).
const MTU: u32 = 1500;
/// RFC 8290 §5.2.5.
const FLOWS: u32 = 1024;
/// RFC 8290 §5.2.3.
const FQ_LIMIT: Limit = Limit::Packets(10_240);
/// Cells (LDS report §3.10).
const EPD_THRESHOLD: u64 = 1000;
/// Cells (LDS report §3.10).
const EPD_LIMIT: u64 = 1200;

impl DisciplineSpec {
    /// Reads `kind[:key=value,…]`, such as `fifo:limit=64KiB`, `round-robin:quantum=64,limit=500KB`,
    /// `fq-codel:target=5ms` or `epd:threshold=1000,limit=1200`. What [`Display`](fmt::Display) prints reads back the same.
    ///
    /// | kind | keys with their defaults |
    /// |---|---|
    /// | `fifo` | `limit` |
    /// | `round-robin` | `quantum=64`, `limit` |
    /// | `two-lists` | `quantum=64`, `frame=256`, `sparse=via-low` (or `leave`), `limit` |
    /// | `drr` | `quantum=1514`, `limit` |
    /// | `priority` | `bands=8`, `limit` |
    /// | `codel` | `target=5ms`, `interval=100ms`, `mtu=1500`, `limit` |
    /// | `fq-codel` | `flows=1024`, `quantum=1514`, `target=5ms`, `interval=100ms`, `mtu=1500`, `limit=10240p` |
    /// | `epd` | `threshold=1000`, `limit=1200`, both in cells |
    ///
    /// Quanta, frames and MTUs are in bytes. Where the table gives a limit no default it is `default_limit`.
    /// Sources: Hawley 1989 §1.4 (quantum 64), RFC 8289 §5.3, RFC 8290 §5.2, the LDS report §3.10 (epd);
    /// the other figures of two-lists are ours, for its patent gives none.
    pub fn parse(text: &str, default_limit: Limit) -> Result<DisciplineSpec, DisciplineTextError> {
        let (kind, pairs) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let mut keys = Keys::new(kind.trim(), pairs);
        let spec = keys.spec(default_limit)?;
        keys.finish()?;
        spec.check()
            .map_err(|cause| DisciplineTextError::Spec { kind: keys.kind.into(), cause })?;
        Ok(spec)
    }
}

impl FromStr for DisciplineSpec {
    type Err = DisciplineTextError;

    /// As [`DisciplineSpec::parse`] with a default limit of 1 GiB, that of a default link.
    fn from_str(text: &str) -> Result<DisciplineSpec, DisciplineTextError> {
        DisciplineSpec::parse(text, Limit::Bytes(1 << 30))
    }
}

impl fmt::Display for DisciplineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DisciplineSpec::Fifo { limit } => write!(f, "fifo:limit={limit}"),
            DisciplineSpec::RoundRobin { limit, quantum } => {
                write!(f, "round-robin:quantum={quantum},limit={limit}")
            }
            DisciplineSpec::TwoLists { limit, quantum, frame, sparse } => {
                let sparse = sparse_name(*sparse);
                write!(f, "two-lists:quantum={quantum},frame={frame},sparse={sparse},limit={limit}")
            }
            DisciplineSpec::Drr { limit, quantum } => {
                write!(f, "drr:quantum={quantum},limit={limit}")
            }
            DisciplineSpec::Priority { limit, bands } => {
                write!(f, "priority:bands={bands},limit={limit}")
            }
            DisciplineSpec::Codel { limit, target, interval, mtu } => {
                write!(f, "codel:target={target},interval={interval},mtu={mtu},limit={limit}")
            }
            DisciplineSpec::FqCodel { limit, flows, quantum, target, interval, mtu } => {
                write!(f, "fq-codel:flows={flows},quantum={quantum},target={target},")?;
                write!(f, "interval={interval},mtu={mtu},limit={limit}")
            }
            DisciplineSpec::Epd { threshold, limit } => {
                write!(f, "epd:threshold={threshold},limit={limit}")
            }
        }
    }
}

/// The keys of one discipline, as they are asked for.
struct Keys<'a> {
    kind: &'a str,
    given: Vec<&'a str>,
    known: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    fn new(kind: &'a str, pairs: &'a str) -> Keys<'a> {
        let given = pairs.split(',').map(str::trim).filter(|pair| !pair.is_empty()).collect();
        Keys { kind, given, known: Vec::new() }
    }

    fn spec(&mut self, default_limit: Limit) -> Result<DisciplineSpec, DisciplineTextError> {
        Ok(match self.kind {
            "fifo" => DisciplineSpec::Fifo { limit: self.limit(default_limit)? },
            "round-robin" => DisciplineSpec::RoundRobin {
                quantum: self.bytes("quantum", QUANTUM)?,
                limit: self.limit(default_limit)?,
            },
            "two-lists" => DisciplineSpec::TwoLists {
                quantum: self.bytes("quantum", QUANTUM)?,
                frame: self.bytes("frame", FRAME)?,
                sparse: self.take("sparse", Sparse::ViaLow, read_sparse)?,
                limit: self.limit(default_limit)?,
            },
            "drr" => DisciplineSpec::Drr {
                quantum: self.bytes("quantum", PACKET_QUANTUM)?,
                limit: self.limit(default_limit)?,
            },
            "priority" => DisciplineSpec::Priority {
                bands: self.take("bands", BANDS, |text| read_count(text, "", "8"))?,
                limit: self.limit(default_limit)?,
            },
            "codel" => DisciplineSpec::Codel {
                target: self.take("target", TARGET, read)?,
                interval: self.take("interval", INTERVAL, read)?,
                mtu: self.bytes("mtu", MTU)?,
                limit: self.limit(default_limit)?,
            },
            "fq-codel" => DisciplineSpec::FqCodel {
                flows: self.take("flows", FLOWS, |text| read_count(text, "", "1024"))?,
                quantum: self.bytes("quantum", PACKET_QUANTUM)?,
                target: self.take("target", TARGET, read)?,
                interval: self.take("interval", INTERVAL, read)?,
                mtu: self.bytes("mtu", MTU)?,
                limit: self.limit(FQ_LIMIT)?,
            },
            "epd" => DisciplineSpec::Epd {
                threshold: self.take("threshold", EPD_THRESHOLD, read_cells)?,
                limit: self.take("limit", EPD_LIMIT, read_cells)?,
            },
            found => return Err(DisciplineTextError::Kind { found: found.into() }),
        })
    }

    fn limit(&mut self, default: Limit) -> Result<Limit, DisciplineTextError> {
        self.take("limit", default, read)
    }

    fn bytes(&mut self, key: &'static str, default: u32) -> Result<u32, DisciplineTextError> {
        self.take(key, default, read_bytes)
    }

    /// The value of `key`, or `default` where it is not given.
    fn take<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, DisciplineTextError> {
        self.known.push(key);
        let is_ours =
            |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| name.trim() == key);
        let Some(at) = self.given.iter().position(is_ours) else { return Ok(default) };
        let value = self.given.remove(at).split_once('=').map_or("", |(_, value)| value.trim());
        read(value).map_err(|cause| DisciplineTextError::Value {
            kind: self.kind.into(),
            key,
            cause,
        })
    }

    /// Complains of what nobody has asked for.
    fn finish(&self) -> Result<(), DisciplineTextError> {
        let Some(&pair) = self.given.first() else { return Ok(()) };
        let (kind, allowed) = (self.kind.to_string(), self.known.join(", "));
        Err(match pair.split_once('=') {
            None => DisciplineTextError::NotAPair { kind, found: pair.into(), allowed },
            Some((key, _)) if self.known.contains(&key.trim()) => {
                DisciplineTextError::Twice { kind, found: key.trim().into() }
            }
            Some((key, _)) => DisciplineTextError::Key { kind, found: key.trim().into(), allowed },
        })
    }
}

/// Reads what has a reader of its own.
fn read<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|cause: T::Err| cause.to_string())
}

fn read_bytes(text: &str) -> Result<u32, String> {
    let bytes = read::<Size>(text)?.bytes();
    u32::try_from(bytes).map_err(|_| format!("'{text}' is too large: use less than 4GiB"))
}

/// Reads a whole number, with or without `unit`.
fn read_count<T: FromStr>(text: &str, unit: &str, example: &str) -> Result<T, String> {
    let (number, found) = number_and_unit(text);
    let complaint = || format!("'{text}' is not a whole number in range, such as {example}");
    if !found.is_empty() && found != unit {
        return Err(complaint());
    }
    number.parse().map_err(|_| complaint())
}

fn read_cells(text: &str) -> Result<u64, String> {
    read_count(text, "c", "1000 (cells)")
}

fn sparse_name(sparse: Sparse) -> &'static str {
    match sparse {
        Sparse::Leave => "leave",
        Sparse::ViaLow => "via-low",
    }
}

fn read_sparse(text: &str) -> Result<Sparse, String> {
    [Sparse::Leave, Sparse::ViaLow]
        .into_iter()
        .find(|&sparse| sparse_name(sparse) == text)
        .ok_or_else(|| format!("'{text}' is neither leave nor via-low"))
}

//! Disciplines as people write them on a command line: `round-robin:quantum=64,limit=500KB`.

use super::dualpi2::{DualPi2Settings, DualScheduler};
use super::pie::PieSettings;
use super::sfq::SfqSettings;
use super::spec::{DisciplineSpec, Sparse};
use crate::{Limit, SpecError};
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

const KINDS: &str = "fifo, round-robin, two-lists, drr, priority, codel, fq-codel, epd, pie, \
     dualpi2, sfq";

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
/// Queues of sfq: as many as of fq-codel.
const BUCKETS: u32 = 1024;
/// What is usual for sfq since Linux recommends it.
const PERTURB: Span = Span::from_secs(10);

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
    /// | `codel` | `target=5ms`, `interval=100ms`, `mtu=1500`, `ecn=false`, `ce_threshold`, `limit` |
    /// | `fq-codel` | `flows=1024`, `quantum=1514`, `target=5ms`, `interval=100ms`, `mtu=1500`, `ecn=true`, `ce_threshold`, `limit=10240p` |
    /// | `epd` | `threshold=1000`, `limit=1200`, both in cells |
    /// | `pie` | `target=15ms`, `update=15ms`, `alpha=0.125`, `beta=1.25`, `burst=150ms`, `mtu=1500`, `ecn=true`, `mark_below=10%`, `limit` |
    /// | `dualpi2` | `target=15ms`, `update=16ms`, `alpha=0.16`, `beta=3.2`, `coupling=2`, `step=1ms`, `scheduler=wrr` (or `ts-fifo`), `classic=10%`, `shift=50ms`, `limit` |
    /// | `sfq` | `buckets=1024`, `quantum=1514`, `perturb=10s` (0s: never), `limit` |
    ///
    /// Quanta, frames and MTUs are in bytes. Where the table gives a limit no default it is `default_limit`.
    /// Sources: Hawley 1989 §1.4 (quantum 64), RFC 8289 §5.3, RFC 8290 §5.2, the LDS report §3.10 (epd), RFC 8033
    /// §4, §5 and appendix A (pie), RFC 9332 appendix A and Linux (dualpi2), McKenney 1990 and Linux (sfq);
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
            DisciplineSpec::Codel { limit, target, interval, mtu, ecn, ce_threshold } => {
                write!(f, "codel:target={target},interval={interval},mtu={mtu},ecn={ecn},")?;
                write_threshold(f, *ce_threshold)?;
                write!(f, "limit={limit}")
            }
            DisciplineSpec::FqCodel {
                limit,
                flows,
                quantum,
                target,
                interval,
                mtu,
                ecn,
                ce_threshold,
            } => {
                write!(f, "fq-codel:flows={flows},quantum={quantum},target={target},")?;
                write!(f, "interval={interval},mtu={mtu},ecn={ecn},")?;
                write_threshold(f, *ce_threshold)?;
                write!(f, "limit={limit}")
            }
            DisciplineSpec::Epd { threshold, limit } => {
                write!(f, "epd:threshold={threshold},limit={limit}")
            }
            DisciplineSpec::Pie(settings) => settings.fmt(f),
            DisciplineSpec::DualPi2(settings) => settings.fmt(f),
            DisciplineSpec::Sfq(SfqSettings { limit, buckets, quantum, perturb }) => {
                write!(f, "sfq:buckets={buckets},quantum={quantum},perturb={perturb},limit={limit}")
            }
        }
    }
}

fn write_threshold(f: &mut fmt::Formatter<'_>, threshold: Option<Span>) -> fmt::Result {
    threshold.map_or(Ok(()), |it| write!(f, "ce_threshold={it},"))
}

impl fmt::Display for PieSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PieSettings { limit, target, update, alpha, beta, burst, mtu, ecn, mark_below } = self;
        write!(f, "pie:target={target},update={update},alpha={alpha},beta={beta},burst={burst},")?;
        write!(f, "mtu={mtu},ecn={ecn},mark_below={mark_below},limit={limit}")
    }
}

impl fmt::Display for DualPi2Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DualPi2Settings { limit, target, update, alpha, beta, coupling, step, .. } = self;
        let (classic, shift) = (self.classic, self.shift);
        let scheduler = scheduler_name(self.scheduler);
        write!(f, "dualpi2:target={target},update={update},alpha={alpha},beta={beta},")?;
        write!(f, "coupling={coupling},step={step},scheduler={scheduler},classic={classic}%,")?;
        write!(f, "shift={shift},limit={limit}")
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
                ecn: self.take("ecn", false, read_flag)?,
                ce_threshold: self.take("ce_threshold", None, |text| read(text).map(Some))?,
                limit: self.limit(default_limit)?,
            },
            "fq-codel" => DisciplineSpec::FqCodel {
                flows: self.take("flows", FLOWS, |text| read_count(text, "", "1024"))?,
                quantum: self.bytes("quantum", PACKET_QUANTUM)?,
                target: self.take("target", TARGET, read)?,
                interval: self.take("interval", INTERVAL, read)?,
                mtu: self.bytes("mtu", MTU)?,
                ecn: self.take("ecn", true, read_flag)?,
                ce_threshold: self.take("ce_threshold", None, |text| read(text).map(Some))?,
                limit: self.limit(FQ_LIMIT)?,
            },
            "epd" => DisciplineSpec::Epd {
                threshold: self.take("threshold", EPD_THRESHOLD, read_cells)?,
                limit: self.take("limit", EPD_LIMIT, read_cells)?,
            },
            "pie" => DisciplineSpec::Pie(self.pie(default_limit)?),
            "dualpi2" => DisciplineSpec::DualPi2(self.dualpi2(default_limit)?),
            "sfq" => DisciplineSpec::Sfq(SfqSettings {
                buckets: self.take("buckets", BUCKETS, |text| read_count(text, "", "1024"))?,
                quantum: self.bytes("quantum", PACKET_QUANTUM)?,
                perturb: self.take("perturb", PERTURB, read)?,
                limit: self.limit(default_limit)?,
            }),
            found => return Err(DisciplineTextError::Kind { found: found.into() }),
        })
    }

    fn pie(&mut self, default_limit: Limit) -> Result<PieSettings, DisciplineTextError> {
        let default = PieSettings::with_limit(default_limit);
        Ok(PieSettings {
            target: self.take("target", default.target, read)?,
            update: self.take("update", default.update, read)?,
            alpha: self.take("alpha", default.alpha, read)?,
            beta: self.take("beta", default.beta, read)?,
            burst: self.take("burst", default.burst, read)?,
            mtu: self.bytes("mtu", default.mtu)?,
            ecn: self.take("ecn", default.ecn, read_flag)?,
            mark_below: self.take("mark_below", default.mark_below, read)?,
            limit: self.limit(default_limit)?,
        })
    }

    fn dualpi2(&mut self, default_limit: Limit) -> Result<DualPi2Settings, DisciplineTextError> {
        let default = DualPi2Settings::with_limit(default_limit);
        Ok(DualPi2Settings {
            target: self.take("target", default.target, read)?,
            update: self.take("update", default.update, read)?,
            alpha: self.take("alpha", default.alpha, read)?,
            beta: self.take("beta", default.beta, read)?,
            coupling: self.take("coupling", default.coupling, |text| read_count(text, "", "2"))?,
            step: self.take("step", default.step, read)?,
            scheduler: self.take("scheduler", default.scheduler, read_scheduler)?,
            classic: self.take("classic", default.classic, |text| read_count(text, "%", "10%"))?,
            shift: self.take("shift", default.shift, read)?,
            limit: self.limit(default_limit)?,
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

fn scheduler_name(scheduler: DualScheduler) -> &'static str {
    match scheduler {
        DualScheduler::Wrr => "wrr",
        DualScheduler::TsFifo => "ts-fifo",
    }
}

fn read_scheduler(text: &str) -> Result<DualScheduler, String> {
    [DualScheduler::Wrr, DualScheduler::TsFifo]
        .into_iter()
        .find(|&scheduler| scheduler_name(scheduler) == text)
        .ok_or_else(|| format!("'{text}' is neither wrr nor ts-fifo"))
}

fn read_flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("'{text}' is neither true nor false"))
}

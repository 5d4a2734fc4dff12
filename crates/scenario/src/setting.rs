//! The settings of one direction: their names, what they take, and what they do.

use crate::files::Files;
use trunkline_core::{Rate, Size, Span};
use trunkline_path::impairment::{LossModel, Setting as Impair};
use trunkline_path::{
    Change, DeliveryTrace, DisciplineSpec, Limit, LinkSpec, SpecError, TrunkProcessor,
};

/// A setting of one direction.
pub struct Setting {
    /// Its name: `--name` on the command line, `name=` elsewhere.
    pub name: &'static str,
    /// What its value is called in help texts.
    pub value: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Puts a value into a description.
    pub(crate) apply: fn(&mut Draft<'_>, &str) -> Result<(), String>,
    /// The change that brings a running link to a description that has this setting; `None` if
    /// only a new start can.
    pub(crate) live: Option<fn(&LinkSpec) -> Change>,
}

/// Queue that a path gets when none is asked for: as many bytes as the line sends in this time.
const DEFAULT_QUEUE: Span = Span::from_millis(250);
/// But at least this many bytes.
const LEAST_QUEUE: u64 = 64 * 1024;
/// And this many if the rate is not known in advance (no rate, or a trace): about mahimahi's "infinite".
const UNRATED_QUEUE: u64 = 64 * 1024 * 1024;

/// A description in the making.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    spec: LinkSpec,
    queue: Option<String>,
    limit: Option<Limit>,
    /// Gives the files that values name.
    files: &'a dyn Files,
}

impl<'a> Draft<'a> {
    /// Starts from a finished description.
    pub fn of(spec: LinkSpec, files: &'a dyn Files) -> Draft<'a> {
        Draft { spec, queue: None, limit: None, files }
    }

    /// Starts from nothing.
    pub fn new(files: &'a dyn Files) -> Draft<'a> {
        Draft::of(LinkSpec::default(), files)
    }

    /// The processor of the trunk board, which no setting of a real path describes.
    pub fn set_processor(&mut self, processor: Option<TrunkProcessor>) {
        self.spec.processor = processor;
    }

    /// Forgets the limit, for the discipline that follows has its own.
    pub fn forget_limit(&mut self) {
        self.limit = None;
    }

    /// Fills in what depends on other settings and checks the whole.
    pub fn finish(mut self) -> Result<LinkSpec, SpecError> {
        let queue = self.queue.as_deref().unwrap_or("fifo");
        let read = |rate| {
            let spec = DisciplineSpec::parse(queue, default_limit(rate));
            spec.map_err(|error| SpecError::Conflict(error.to_string()))
        };
        let rate = self.spec.rate;
        self.spec.discipline = read(rate)?;
        // A token bucket drains its queue at its own rate.
        if let Some(cap) = self.spec.discipline.assumptions().cap
            && rate.is_none_or(|rate| cap < rate)
        {
            self.spec.discipline = read(Some(cap))?;
        }
        if let Some(limit) = self.limit {
            self.spec.discipline.set_limit(limit)?;
        }
        self.spec.discipline.check_limit()?;
        self.spec.check()?;
        Ok(self.spec)
    }

    /// The description with a live change in it; everything else as it was.
    pub fn into_changed(mut self) -> Result<LinkSpec, SpecError> {
        if let Some(limit) = self.limit {
            self.spec.discipline.set_limit(limit)?;
            self.spec.discipline.check_limit()?;
        }
        Ok(self.spec)
    }
}

/// The limit of a queue that drains at `rate`.
fn default_limit(rate: Option<Rate>) -> Limit {
    Limit::Bytes(match rate {
        Some(rate) => rate.bytes_in(DEFAULT_QUEUE).max(LEAST_QUEUE),
        None => UNRATED_QUEUE,
    })
}

/// Reads a value by its type's own rules.
fn read<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads the files of all loss traces that have not been read.
fn read_loss_traces<'a>(
    files: &dyn Files,
    models: impl Iterator<Item = &'a mut LossModel>,
) -> Result<(), String> {
    for model in models {
        if let Some(file) = model.unread_file().map(str::to_string) {
            let content = files.text(&file)?;
            model.load(&content).map_err(|error| format!("'{file}': {error}"))?;
        }
    }
    Ok(())
}

/// Reads `none` as nothing.
fn read_optional<T: std::str::FromStr>(text: &str) -> Result<Option<T>, String>
where
    T::Err: std::fmt::Display,
{
    if ["none", "0"].contains(&text) { Ok(None) } else { read(text).map(Some) }
}

/// Reads a probability, or `none`.
fn read_chance<T: std::str::FromStr + Default>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    read_optional(text).map(Option::unwrap_or_default)
}

/// Every setting of one direction, in the order in which help shows them.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "delay",
        value: "TIME",
        help: "Propagation delay ONE WAY, 0 to 1h in steps of 1ns (250ms); twice this in a round trip",
        apply: |draft, text| {
            draft.spec.delay = read(text)?;
            Ok(())
        },
        live: Some(|link| Change::Delay(link.delay)),
    },
    Setting {
        name: "catch-up",
        value: "HOW",
        help: "How packets catch up after the delay was made shorter, in order: \
               'drain' at the line's rate [default], or 'at-once', all in one burst",
        apply: |draft, text| {
            draft.spec.catch_up = read(text)?;
            Ok(())
        },
        live: Some(|link| Change::CatchUp(link.catch_up)),
    },
    Setting {
        name: "rate",
        value: "RATE",
        help: "Line rate in bits per second (10Mbit/s, 56kbit), or 'unlimited'",
        apply: |draft, text| {
            draft.spec.rate = match text {
                "unlimited" | "none" => None,
                text => Some(read::<Rate>(text)?),
            };
            draft.spec.trace = None;
            Ok(())
        },
        live: Some(|link| Change::Rate(link.rate)),
    },
    Setting {
        name: "queue",
        value: "KIND[:KEY=VALUE,…]",
        help: "Queue discipline, such as round-robin:quantum=64 or fq-codel; 'help' lists all with their keys \
               [default: fifo]",
        apply: |draft, text| {
            DisciplineSpec::parse(text, Limit::Bytes(LEAST_QUEUE)).map_err(|e| e.to_string())?;
            draft.queue = Some(text.to_string());
            Ok(())
        },
        live: None,
    },
    Setting {
        name: "limit",
        value: "AMOUNT",
        help: "Most that may wait in the queue: bytes (64KiB), packets (1000p) or cells (1200c) \
               [default: 250ms of the rate, at least 64KiB]",
        apply: |draft, text| {
            draft.limit = Some(read(text)?);
            Ok(())
        },
        live: Some(|link| Change::Limit(link.discipline.limit())),
    },
    Setting {
        name: "framing",
        value: "KIND",
        help: "How user bytes become line bits: none, ethernet, t1-lapd (or t1-lapd:frame=64), t1-mixed, atm-aal5, datakit",
        apply: |draft, text| {
            draft.spec.framing = read(text)?;
            Ok(())
        },
        live: None,
    },
    Setting {
        name: "output-buffer",
        value: "SIZE",
        help: "Bytes that the line takes out of the queue ahead of time, beyond any discipline (1KiB)",
        apply: |draft, text| {
            draft.spec.output_buffer = read::<Size>(text)?;
            Ok(())
        },
        live: None,
    },
    Setting {
        name: "loss",
        value: "MODEL",
        help: "Random loss on the line: 1%, ge:p=1%,r=20% (Gilbert-Elliott), trace:FILE (of 0 and 1)",
        apply: |draft, text| {
            draft.spec.impairments.loss = read(text)?;
            read_loss_traces(draft.files, std::iter::once(&mut draft.spec.impairments.loss))
        },
        live: Some(|link| Change::Setting(Impair::Loss(link.impairments.loss.clone()))),
    },
    Setting {
        name: "bit-errors",
        value: "RATIO",
        help: "Bit error ratio (1e-7); a damaged packet fails its check sequence and is dropped",
        apply: |draft, text| {
            draft.spec.impairments.bit_errors = read_chance(text)?;
            Ok(())
        },
        live: Some(|link| Change::Setting(Impair::BitErrors(link.impairments.bit_errors))),
    },
    Setting {
        name: "duplicate",
        value: "SHARE",
        help: "Share of packets delivered twice (0.1%)",
        apply: |draft, text| {
            draft.spec.impairments.duplicate = read_chance(text)?;
            Ok(())
        },
        live: Some(|link| Change::Setting(Impair::Duplicate(link.impairments.duplicate))),
    },
    Setting {
        name: "reorder",
        value: "SHARE:TIME",
        help: "Share of packets held back by a time, so that others overtake them (1%:5ms)",
        apply: |draft, text| {
            draft.spec.impairments.reorder = read_optional(text)?;
            Ok(())
        },
        live: Some(|link| Change::Setting(Impair::Reorder(link.impairments.reorder))),
    },
    Setting {
        name: "jitter",
        value: "TIME|KIND:…",
        help: "Variation of the delay: 5ms (keeps order), independent:normal:3ms (may reorder), \
               correlated:normal:3ms:rho=0.9 (keeps order; misses its deviation if packets are close), or 'none'",
        apply: |draft, text| {
            draft.spec.impairments.jitter = read_optional(text)?;
            Ok(())
        },
        live: Some(|link| Change::Setting(Impair::Jitter(link.impairments.jitter))),
    },
    Setting {
        name: "trace",
        value: "FILE",
        help: "Delivery opportunities in mahimahi's format, instead of a rate",
        apply: |draft, text| {
            let trace = DeliveryTrace::parse(&draft.files.text(text)?);
            draft.spec.trace = Some(trace.map_err(|error| format!("'{text}': {error}"))?);
            draft.spec.rate = None;
            Ok(())
        },
        live: None,
    },
    Setting {
        name: "schedule",
        value: "STEPS|FILE",
        help: "Changes over time: '0s rate=10mbit; 5s rate=1mbit delay=80ms; repeat 10s', or a file",
        apply: |draft, text| {
            draft.spec.schedule = match text.contains('=') {
                true => read(text)?,
                false => {
                    read(&draft.files.text(text)?).map_err(|error| format!("'{text}': {error}"))?
                }
            };
            read_loss_traces(draft.files, draft.spec.loss_models_mut())
        },
        live: None,
    },
];

/// The setting of one direction called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// All names, those of the whole path last.
pub(crate) fn names() -> Vec<&'static str> {
    SETTINGS.iter().map(|setting| setting.name).chain(["mtu", "key", "seed"]).collect()
}

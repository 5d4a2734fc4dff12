//! Links, their directions, and what the ends of trunks are.

use super::super::media;
use super::super::schema::Form::{Fixed, List, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Key, Kind, Table};
use super::key;
use std::sync::LazyLock;
use trunkline_path::discipline::{self, KINDS};

const fn setting(
    name: &'static str,
    setting: &'static str,
    example: &'static str,
    help: &'static str,
) -> Key {
    key(name, One(Kind::Setting(setting, example)), Optional, help)
}

const QUEUE: Kind =
    Kind::Or(&Kind::Setting("queue", "round-robin:quantum=64"), &Kind::Built(&DISCIPLINE));

/// What the ends of a trunk decide.
const ENDS: &[Key] = &[
    key("discipline", One(QUEUE), Optional, "Who is served next; fifo if left out"),
    setting(
        "limit",
        "limit",
        "64KiB",
        "Most that may wait: bytes, packets (1000p) or cells (1200c); 250 ms of the rate, at least 64 KiB, if left out",
    ),
    setting(
        "output_buffer",
        "output-buffer",
        "1KiB",
        "Bytes that the line takes out of the queue ahead of time",
    ),
    setting("framing", "framing", "t1-lapd", "How user bytes become line bits; none if left out"),
    key(
        "processor",
        One(BOARD),
        Optional,
        "The board's processor, which needs an output_buffer; moving bytes takes no time if left out",
    ),
];

const BOARD: Kind = Kind::Or(&Kind::Word(&["none"]), &Kind::Table(&TRUNK_PROCESSOR));
static TRUNK_PROCESSOR: Table = Table {
    kinds: None,
    title: "a trunk processor",
    help: "The one processor of a trunk board, which moves every byte twice: in and out.",
    groups: &[&[
        key(
            "input_fifo",
            One(Kind::Size(18, 1 << 40)),
            Required,
            "What the input fifo holds, in envelopes",
        ),
        key(
            "input_per_byte",
            One(Kind::ByteTime),
            Default("0ns"),
            "To move an envelope from the input fifo into memory, at most 1ms",
        ),
        key(
            "output_per_byte",
            One(Kind::ByteTime),
            Default("0ns"),
            "To move a user byte from memory into the output buffer, at most 1ms",
        ),
        key(
            "output_first",
            One(Kind::Flag),
            Default("false"),
            "Whether filling the output buffer goes before emptying the input fifo",
        ),
    ]],
};

/// What the line between them does.
const LINE: &[Key] = &[
    setting("rate", "rate", "1.544Mbit/s", "Line rate, or \"unlimited\", which holds if left out"),
    setting("delay", "delay", "250ms", "Propagation delay one way, 0 to 3600s"),
    setting(
        "catch_up",
        "catch-up",
        "drain",
        "How packets catch up after a schedule made the delay shorter: drain or at-once",
    ),
    setting("loss", "loss", "1%", "Random loss: a share, ge:p=1%,r=20% or trace:FILE"),
    setting("bit_errors", "bit-errors", "1e-7", "Bit error ratio"),
    setting("duplicate", "duplicate", "0.1%", "Share of packets delivered twice"),
    setting("reorder", "reorder", "1%:5ms", "Share of packets held back by a time"),
    setting("jitter", "jitter", "5ms", "Variation of the delay"),
    setting(
        "trace",
        "trace",
        "FILE",
        "Delivery opportunities in mahimahi's format, in place of a rate",
    ),
    setting(
        "schedule",
        "schedule",
        "5s rate=1mbit",
        "Changes over time, as text or the path of a file",
    ),
    key(
        "module",
        One(Kind::Name),
        Optional,
        "A [module.NAME], whose keys hold for those that this table leaves out; or \"none\"",
    ),
];

pub(in crate::file) static MODULE: Table = Table {
    kinds: None,
    title: "[module.NAME]",
    help: "What the ends of a trunk are.",
    groups: &[ENDS],
};

pub(in crate::file) static LINK: Table = Table {
    kinds: None,
    title: "[[link]]",
    help: "A link between two hosts or nodes.",
    groups: &[
        &[
            key("name", Fixed(Kind::Name), Optional, "Its name; A-B if left out"),
            key(
                "between",
                List(Kind::Name),
                Required,
                "The two ends; forward is from the first to the second",
            ),
            key(
                "preset",
                One(Kind::Text),
                Optional,
                "A preset (`trunkline presets`), below all other keys",
            ),
            key(
                "forward",
                One(Kind::Table(&DIRECTION)),
                Optional,
                "What is different from the first end to the second",
            ),
            key(
                "backward",
                One(Kind::Table(&DIRECTION)),
                Optional,
                "What is different from the second end to the first",
            ),
        ],
        LINE,
        ENDS,
    ],
};

pub(in crate::file) static MEDIUM: Table = Table {
    kinds: Some(media::tables),
    title: "[[medium]]",
    help: "A medium that several hosts and nodes share: each hears all others.",
    groups: &[
        &[
            key("name", Fixed(Kind::Name), Required, "Its name"),
            key("kind", One(Kind::Word(media::NAMES)), Required, "How its stations take turns"),
            key(
                "stations",
                List(Kind::Name),
                Required,
                "The hosts and nodes on it, in their order round a ring",
            ),
        ],
        STATIONS,
    ],
};

/// What stations of a medium share, and have.
pub(super) const STATIONS: &[Key] = &[
    setting("rate", "rate", "10Mbit/s", "The rate at which a station sends, or \"unlimited\""),
    setting(
        "delay",
        "delay",
        "5us",
        "Propagation delay one way between any two stations; of a ring, once round it; 0 to 3600s",
    ),
    setting("framing", "framing", "ethernet", "How user bytes become bits; none if left out"),
    key("discipline", One(QUEUE), Optional, "The queue of each station; fifo if left out"),
    setting(
        "limit",
        "limit",
        "64KiB",
        "Most that may wait at each station; 250 ms of the rate, at least 64 KiB, if left out",
    ),
];

pub(in crate::file) static DIRECTION: Table = Table {
    kinds: None,
    title: "a direction",
    help: "What is different in one direction of a link.",
    groups: &[LINE, ENDS],
};

/// A discipline as a table: the keys of all kinds, as the disciplines themselves describe them.
static DISCIPLINE: LazyLock<Table> = LazyLock::new(|| {
    let help =
        "A queue discipline with its settings; which kind has which keys is in docs/path.md.";
    let keys: &'static [Key] = Vec::leak(discipline_keys());
    Table { kinds: None, title: "a discipline", help, groups: Vec::leak(vec![keys]) }
});

fn discipline_keys() -> Vec<Key> {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let kind = One(Kind::Setting("queue", "round-robin"));
    let mut keys = vec![key("kind", kind, Required, String::leak(kinds.join(", ")))];
    let of = |kind: &discipline::DisciplineKind| {
        let name = kind.name;
        kind.keys().into_iter().map(move |key| (name, key))
    };
    let all: Vec<(&'static str, discipline::Key)> = KINDS.iter().flat_map(of).collect();
    for (_, described) in &all {
        if keys.iter().all(|key| key.name != described.name) {
            let same = all.iter().filter(|(_, other)| other.name == described.name);
            keys.push(parameter(described, meanings(same)));
        }
    }
    keys
}

/// What a key means to each kind that has it.
fn meanings<'a>(all: impl Iterator<Item = &'a (&'static str, discipline::Key)>) -> String {
    let mut meanings: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(kind, ref key) in all {
        match meanings.iter_mut().find(|(help, _)| *help == key.help) {
            Some((_, kinds)) => kinds.push(kind),
            None => meanings.push((key.help, vec![kind])),
        }
    }
    let lines = meanings.iter().map(|(help, kinds)| format!("{}: {help}", kinds.join(", ")));
    lines.collect::<Vec<_>>().join(" ")
}

fn parameter(described: &discipline::Key, help: String) -> Key {
    let example = described.default.clone().or(described.range.clone().map(|(lowest, _)| lowest));
    let form = match described.unit {
        discipline::FLAG => Kind::Flag,
        _ => Kind::Setting("queue", String::leak(example.unwrap_or_else(|| "64KiB".into()))),
    };
    key(described.name, One(form), Optional, String::leak(help))
}

//! Links, their directions, and what the ends of trunks are.

use super::super::schema::Form::{Fixed, List, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Key, Kind, Table};
use super::key;

const fn setting(
    name: &'static str,
    setting: &'static str,
    example: &'static str,
    help: &'static str,
) -> Key {
    key(name, One(Kind::Setting(setting, example)), Optional, help)
}

const QUEUE: Kind =
    Kind::Or(&Kind::Setting("queue", "round-robin:quantum=64"), &Kind::Table(&DISCIPLINE));

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
            "Does filling the output buffer go before emptying the input fifo?",
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
        "A [module.NAME], whose keys hold where this table has none; or \"none\"",
    ),
];

pub(in crate::file) static MODULE: Table =
    Table { title: "[module.NAME]", help: "What the ends of a trunk are.", groups: &[ENDS] };

pub(in crate::file) static LINK: Table = Table {
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

pub(in crate::file) static DIRECTION: Table = Table {
    title: "a direction",
    help: "What is different in one direction of a link.",
    groups: &[LINE, ENDS],
};

const fn parameter(name: &'static str, example: &'static str, help: &'static str) -> Key {
    key(name, One(Kind::Setting("queue", example)), Optional, help)
}

static DISCIPLINE: Table = Table {
    title: "a discipline",
    help: "A queue discipline with its parameters; the kinds with their keys are in docs/path.md.",
    groups: &[&[
        key(
            "kind",
            One(Kind::Setting("queue", "round-robin")),
            Required,
            "fifo, round-robin, two-lists, drr, priority, codel, fq-codel, epd, pie, dualpi2, sfq",
        ),
        parameter("limit", "500kB", "Most that may wait"),
        parameter("quantum", "64", "Bytes from one channel before the next has its turn"),
        parameter("frame", "256", "Bytes of a frame of two-lists"),
        parameter(
            "sparse",
            "via-low",
            "What two-lists does with an emptied channel: leave or via-low",
        ),
        parameter("bands", "8", "Priorities, 1 to 64"),
        parameter("target", "5ms", "Standing delay that codel, fq-codel, pie and dualpi2 accept"),
        parameter("interval", "100ms", "How long it may be exceeded"),
        parameter(
            "mtu",
            "1500",
            "Bytes below which codel, fq-codel and (twice as many) pie never drop",
        ),
        parameter("flows", "1024", "Queues of fq-codel"),
        parameter("threshold", "1000", "Cells above which epd refuses a packet whole"),
        key(
            "ecn",
            One(Kind::Flag),
            Optional,
            "Whether codel, fq-codel and pie mark instead of dropping",
        ),
        parameter("ce_threshold", "1ms", "Delay above which codel and fq-codel mark every packet"),
        parameter("update", "15ms", "How often pie and dualpi2 work out their probability"),
        parameter("alpha", "0.125", "Gain of pie and dualpi2 for the delay above target, Hz"),
        parameter("beta", "1.25", "Gain of pie and dualpi2 for the growth of the delay, Hz"),
        parameter("burst", "150ms", "How long pie lets a burst pass"),
        parameter("mark_below", "10%", "Probability above which pie drops what it could mark"),
        parameter("coupling", "2", "How much more often dualpi2 marks low-latency packets (k)"),
        parameter("step", "1ms", "Delay above which dualpi2 marks every low-latency packet"),
        parameter("scheduler", "wrr", "How dualpi2 chooses between its queues: wrr or ts-fifo"),
        parameter("classic", "10%", "Share of the line of dualpi2's classic queue, with wrr"),
        parameter("shift", "50ms", "How much longer its packets wait, with ts-fifo"),
        parameter("buckets", "1024", "Queues of sfq"),
        parameter("perturb", "10s", "How often sfq changes its hash; 0s: never"),
    ]],
};

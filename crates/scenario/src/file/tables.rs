//! Every table of a scenario file with its keys.

use super::schema::Form::{Elements, Fixed, List, Named, One};
use super::schema::Need::{Default, Optional, Required};
use super::schema::{Form, Key, Kind, Need, Table};
use trunkline_core::Span;

const HOUR: Span = Span::from_secs(3600);
const WEEK: Span = Span::from_secs(7 * 24 * 3600);
const INSTANT: Span = Span::from_nanos(1);

/// A length of time that may be zero.
const SPAN: Kind = Kind::Span(Span::ZERO, HOUR);
/// A length of time that may not.
const SOME_SPAN: Kind = Kind::Span(INSTANT, WEEK);
/// Most user bytes of one message, system write or datagram: what the memory of a host of the time, or
/// of a simulator today, takes without a thought.
const MESSAGE: Kind = Kind::Size(1, 16 << 20);
/// Most user bytes of a transfer: 1 TB.
const TRANSFER: Kind = Kind::Size(1, 1_000_000_000_000);

const fn key(name: &'static str, form: Form, need: Need, help: &'static str) -> Key {
    Key { name, form, need, help, only: &[] }
}

const fn only(
    only: &'static [&'static str],
    name: &'static str,
    form: Form,
    need: Need,
    help: &'static str,
) -> Key {
    Key { name, form, need, help, only }
}

/// The file.
pub(super) static FILE: Table = Table {
    title: "the file",
    help: "A scenario: hosts, nodes, links and traffic.",
    groups: &[&[
        key(
            "name",
            Fixed(Kind::Text),
            Optional,
            "What reports call it; the file's stem if left out",
        ),
        key("about", Fixed(Kind::Text), Default(""), "One or more sentences for the report"),
        key("seed", One(Kind::Whole(0, i64::MAX as u64)), Default("1"), "Seed of all randomness"),
        key("stop_after", One(SOME_SPAN), Default("60min"), "Latest end, in the time of the run"),
        key(
            "sample_backlog",
            One(Kind::Span(Span::from_micros(1), HOUR)),
            Optional,
            "Sample what waits at every link this often, for a chart of queue depth",
        ),
        key("host", Elements(&HOST), Required, "End systems"),
        key("node", Elements(&NODE), Optional, "Switches"),
        key("link", Elements(&LINK), Required, "What connects hosts and nodes"),
        key("traffic", Elements(&TRAFFIC), Required, "What is sent"),
        key("processor", Named(&PROCESSOR), Optional, "What operations cost hosts"),
        key("interface", Named(&INTERFACE), Optional, "Boards between hosts and the network"),
        key("module", Named(&MODULE), Optional, "Ends of trunks"),
    ]],
};

static HOST: Table = Table {
    title: "[[host]]",
    help: "An end system: one serial processor and one network interface.",
    groups: &[&[
        key("name", Fixed(Kind::Name), Required, "Its name"),
        key(
            "processor",
            One(Kind::Name),
            Optional,
            "A [processor.NAME]; one without costs if left out",
        ),
        key(
            "interface",
            One(Kind::Name),
            Optional,
            "An [interface.NAME]; an ideal one if left out",
        ),
    ]],
};

static NODE: Table = Table {
    title: "[[node]]",
    help: "A switch: everything that crosses it takes its turn on the shared backplane.",
    groups: &[&[
        key("name", Fixed(Kind::Name), Required, "Its name"),
        key(
            "backplane",
            One(Kind::Or(&Kind::Word(&["unlimited"]), &Kind::Rate)),
            Default("unlimited"),
            "The backplane's rate; a packet of up to 16 envelopes takes 180 bits of it",
        ),
    ]],
};

const COST: Kind = Kind::Or(&SPAN, &Kind::Table(&COST_TABLE));
static COST_TABLE: Table = Table {
    title: "a cost",
    help: "A fixed part, and one for each byte or envelope.",
    groups: &[&[
        key("fixed", One(SPAN), Default("0"), "For each operation"),
        key(
            "per_byte",
            One(SPAN),
            Default("0"),
            "For each byte, or envelope where the operation deals in them",
        ),
    ]],
};

/// The costs that hosts and boards both have.
const BLOCK_COSTS: &[Key] = &[
    key(
        "send_block",
        One(COST),
        Default("0"),
        "Protocol work for each block sent; for each envelope",
    ),
    key(
        "receive_block",
        One(COST),
        Default("0"),
        "Protocol work for each block received; for each envelope",
    ),
    key(
        "control",
        One(SPAN),
        Default("0"),
        "Protocol work for each control (ECHO, ACK, REJ) sent or received",
    ),
];

pub(super) static PROCESSOR: Table = Table {
    title: "[processor.NAME]",
    help: "What each operation costs a host's processor, which does one thing at a time.",
    groups: &[
        &[
            key("write", One(COST), Default("0"), "A system write; for each user byte"),
            key("read", One(COST), Default("0"), "A system read; for each user byte"),
            key("request", One(COST), Default("0"), "Handing one request to the interface"),
            key("interrupt", One(COST), Default("0"), "Each interrupt of the interface"),
        ],
        BLOCK_COSTS,
        &[key(
            "disturbance",
            One(Kind::Table(&DISTURBANCE)),
            Optional,
            "Other work that gets in the way, by chance",
        )],
    ],
};

static DISTURBANCE: Table = Table {
    title: "a disturbance",
    help: "Other work on a host; the lengths are exponentially distributed.",
    groups: &[&[
        key("probability", One(Kind::Share), Required, "How likely an operation is held up"),
        key("mean", One(Kind::Span(INSTANT, HOUR)), Required, "How long on average"),
    ]],
};

pub(super) static INTERFACE: Table = Table {
    title: "[interface.NAME]",
    help: "The board between processor and network; the default is an ideal one: no cost, no limit.",
    groups: &[
        &[
            key(
                "protocol",
                One(Kind::Word(&["host", "board"])),
                Default("host"),
                "Whose processor runs the transport protocol",
            ),
            key(
                "split",
                List(Kind::Table(&SPLIT)),
                Optional,
                "How a system write is cut into requests: the first rule that holds; one request if left out",
            ),
            key(
                "requests",
                One(Kind::Or(&Kind::Word(&["unlimited"]), &Kind::Whole(1, 1_000_000))),
                Default("unlimited"),
                "Requests of one channel taken before the far end has answered for the first",
            ),
        ],
        BLOCK_COSTS,
        &[
            key(
                "half_duplex",
                One(Kind::Flag),
                Default("false"),
                "Do both directions take turns at one processor?",
            ),
            key(
                "programmed",
                One(SPAN),
                Optional,
                "Programmed I/O: what each envelope costs the host's processor; DMA if left out",
            ),
            key(
                "interleave",
                One(Kind::Size(1, 1 << 20)),
                Default("4096"),
                "Bytes of one channel sent before another that is ready has its turn",
            ),
            key(
                "memory",
                One(Kind::Size(1, 1 << 40)),
                Optional,
                "Memory for data received and not yet taken; no limit if left out",
            ),
            key(
                "receive_buffer",
                One(Kind::Size(1, 1 << 20)),
                Optional,
                "Bytes of each receive buffer, one interrupt for each filled; one for each block if left out",
            ),
            key(
                "echo",
                One(Kind::Word(&["arrival", "consumption"])),
                Default("arrival"),
                "When the receiver answers with ECHO",
            ),
        ],
    ],
};

static SPLIT: Table = Table {
    title: "a rule of split",
    help: "A rule by which a system write is cut into requests.",
    groups: &[&[
        key(
            "below",
            One(Kind::Size(1, 1 << 31)),
            Optional,
            "It holds for writes of fewer bytes; for all if left out",
        ),
        key(
            "piece",
            One(Kind::Size(1, 1 << 31)),
            Required,
            "Bytes of each request; the last may be shorter",
        ),
    ]],
};

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
        "A [module.NAME]; its keys hold where this table has none",
    ),
];

static MODULE: Table =
    Table { title: "[module.NAME]", help: "What the ends of a trunk are.", groups: &[ENDS] };

static LINK: Table = Table {
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

pub(super) static DIRECTION: Table = Table {
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
            "fifo, round-robin, two-lists, drr, priority, codel, fq-codel, epd",
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
        parameter("target", "5ms", "Standing delay that codel and fq-codel accept"),
        parameter("interval", "100ms", "How long it may be exceeded"),
        parameter("mtu", "1500", "Bytes below which codel and fq-codel never drop"),
        parameter("flows", "1024", "Queues of fq-codel"),
        parameter("threshold", "1000", "Cells above which epd refuses a packet whole"),
    ]],
};

const INTERACTIVE: &str = "interactive";
const BULK: &str = "bulk";
const TIMED_ECHO: &str = "timed-echo";
const TIMED_TRANSFER: &str = "timed-transfer";
const PUSH: &str = "push";
const PACED: &str = "paced";
const KINDS: &[&str] = &[INTERACTIVE, BULK, TIMED_ECHO, TIMED_TRANSFER, PUSH, PACED];

static TRAFFIC: Table = Table {
    title: "[[traffic]]",
    help: "Something that is sent.",
    groups: &[
        &[
            key("name", Fixed(Kind::Name), Required, "Its name"),
            key("kind", One(Kind::Word(KINDS)), Required, "What the applications do"),
            key("from", One(Kind::Name), Optional, "The host of the senders; this or from_each"),
            key("from_each", List(Kind::Name), Optional, "Hosts of the senders, taken in turn"),
            key("to", One(Kind::Name), Required, "The host of their peers"),
            key(
                "via",
                List(Kind::Name),
                Optional,
                "The nodes to be crossed, all of them in order; the fewest links if left out",
            ),
            key("count", One(Kind::Whole(1, 10_000)), Default("1"), "Flows at once"),
            key(
                "transport",
                One(TRANSPORT),
                Optional,
                "What the sender's end speaks; urp, and datagram for paced traffic, if left out",
            ),
            key(
                "reply_transport",
                One(TRANSPORT),
                Optional,
                "What the peer's end speaks when it sends; what is left out is as in transport",
            ),
            key(
                "start",
                One(Kind::Span(Span::ZERO, WEEK)),
                Optional,
                "When the first flow starts; at once if this and start_after are left out",
            ),
            key(
                "start_after",
                One(Kind::Text),
                Optional,
                "NAME: when that traffic has ended; NAME:SIZE: when each flow of it has delivered so much",
            ),
            key("stagger", One(SPAN), Default("0"), "Between the starts of two flows"),
            key(
                "until",
                One(Kind::Name),
                Optional,
                "It ends when the traffic of this name ends, if its own work is not done before",
            ),
            key(
                "estimator",
                One(Kind::Text),
                Optional,
                "The estimator of its table; the workload's own if left out",
            ),
        ],
        WORK,
    ],
};

/// What belongs to some kinds of traffic only.
const WORK: &[Key] = &[
    only(
        &[INTERACTIVE, TIMED_ECHO, TIMED_TRANSFER],
        "sizes",
        List(MESSAGE),
        Required,
        "User bytes of the messages or writes, one size after the other",
    ),
    only(
        &[INTERACTIVE, BULK, PUSH],
        "repeat",
        One(Kind::Whole(1, 10_000_000)),
        Default("1"),
        "Messages of each size, or transfers; without end where 'until' is given and this is not",
    ),
    only(
        &[INTERACTIVE],
        "reply",
        One(Kind::Or(&Kind::Word(&["echo"]), &MESSAGE)),
        Default("echo"),
        "What comes back: the whole message, or so many bytes",
    ),
    only(
        &[INTERACTIVE],
        "every",
        One(SPAN),
        Default("0"),
        "From one message's start to the next's intended start; 0: as soon as the answer is there",
    ),
    only(
        &[BULK, PUSH],
        "bytes",
        One(TRANSFER),
        Default("1MB"),
        "User bytes of a transfer, or of the file",
    ),
    only(&[BULK, PUSH], "write", One(MESSAGE), Default("1024"), "User bytes of each system write"),
    only(
        &[BULK],
        "confirm",
        One(Kind::Flag),
        Default("true"),
        "Is a transfer timed to the receiver's answer, or to the last write's return?",
    ),
    only(
        &[PUSH],
        "store",
        One(SPAN),
        Default("0"),
        "What the receiver spends on storing the bytes of each write",
    ),
    only(
        &[TIMED_ECHO, TIMED_TRANSFER, PACED],
        "duration",
        One(SOME_SPAN),
        Default("10s"),
        "For how long, each size; without end where 'until' is given and this is not",
    ),
    only(&[PACED], "size", One(MESSAGE), Required, "User bytes of each datagram"),
    only(&[PACED], "rate", One(Kind::Rate), Required, "User bytes, as a rate"),
];

pub(super) const TRANSPORT: Kind =
    Kind::Or(&Kind::Word(&["urp", "datagram"]), &Kind::Table(&TRANSPORT_TABLE));
static TRANSPORT_TABLE: Table = Table {
    title: "a transport",
    help: "How an end point speaks: the Universal Receiver Protocol in block mode, or datagrams.",
    groups: &[&[
        key(
            "kind",
            One(Kind::Word(&["urp", "datagram"])),
            Default("urp"),
            "The protocol; the other keys are urp's",
        ),
        key("block", One(Kind::Size(1, 4096)), Default("256"), "User bytes of a block"),
        key("outstanding", One(Kind::Whole(1, 7)), Default("3"), "Blocks outstanding"),
        key(
            "timeout",
            One(Kind::Span(INSTANT, HOUR)),
            Default("1s"),
            "After how long without an answer the sender asks with ENQ",
        ),
        key(
            "profile",
            One(Kind::Word(&["trunkline", "v10", "plan9", "kmc"])),
            Default("trunkline"),
            "Whose habits",
        ),
        key(
            "packet",
            One(Kind::Whole(0, 4096)),
            Default("16"),
            "Envelopes of each network packet; 0: a block in one packet",
        ),
    ]],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables that a table leads to, itself first.
    fn reachable(table: &'static Table, found: &mut Vec<&'static Table>) {
        if found.iter().any(|known| known.title == table.title) {
            return;
        }
        found.push(table);
        table.keys().filter_map(|key| key.form.table()).for_each(|table| reachable(table, found));
    }

    /// The rows of the reference page under the heading of a table, subheadings of another excluded.
    fn section(page: &str, title: &str) -> String {
        let heading = |line: &str| line.starts_with('#');
        let mut lines = page.lines().skip_while(|line| {
            !heading(line) || !line.trim_start_matches(['#', ' ']).eq_ignore_ascii_case(title)
        });
        assert!(lines.next().is_some(), "the page has no heading '{title}'");
        let rows =
            lines.take_while(|line| !heading(line) || line.contains("What the applications"));
        rows.filter(|line| line.starts_with('|')).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_reference_page_has_every_key_with_its_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut tables = Vec::new();
        reachable(&FILE, &mut tables);
        assert_eq!(tables.len(), 15);
        // A direction and a module have keys of a link, which are described there.
        let described = |table: &&Table| !["a direction", "[module.NAME]"].contains(&table.title);
        for table in tables.into_iter().filter(described) {
            let rows = section(&page, table.title);
            for key in table.keys() {
                let row = rows.lines().find(|row| row.starts_with(&format!("| `{}` |", key.name)));
                let row =
                    row.unwrap_or_else(|| panic!("{} has no row '{}'", table.title, key.name));
                match key.need {
                    Default("") | Optional => {}
                    Default(text) => assert!(row.contains(&format!("`{text}`")), "{row}"),
                    Required => assert!(row.contains("required"), "{row}"),
                }
            }
        }
    }

    #[test]
    fn no_table_has_a_key_twice() {
        let mut tables = Vec::new();
        reachable(&FILE, &mut tables);
        for table in tables {
            let mut names: Vec<&str> = table.keys().map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.title);
        }
    }
}

//! Hosts, nodes, and what hosts are made of.

use super::super::schema::Form::{Fixed, List, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Key, Kind, Table};
use super::{HOUR, INSTANT, SPAN, key};

pub(in crate::file) static HOST: Table = Table {
    kinds: None,
    title: "[[host]]",
    help: "An end system: one serial processor and one network interface.",
    groups: &[&[
        key("name", Fixed(Kind::Name), Required, "Its name"),
        key(
            "processor",
            One(Kind::Name),
            Optional,
            "A [processor.NAME], or \"ideal\", which holds if left out: no costs",
        ),
        key(
            "interface",
            One(Kind::Name),
            Optional,
            "An [interface.NAME], or \"ideal\", which holds if left out: no cost, no limit",
        ),
    ]],
};

pub(in crate::file) static NODE: Table = Table {
    kinds: None,
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
    kinds: None,
    title: "a cost",
    help: "A fixed part, and one for each byte or envelope.",
    groups: &[&[
        key("fixed", One(SPAN), Default("0"), "For each operation"),
        key(
            "per_byte",
            One(SPAN),
            Default("0"),
            "For each byte, or for each envelope if the operation deals in envelopes",
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

pub(in crate::file) static PROCESSOR: Table = Table {
    kinds: None,
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
        &[
            key(
                "timer",
                One(SPAN),
                Default("0"),
                "Each timer of a protocol on the host that runs out; the protocol acts when that is done",
            ),
            key(
                "disturbance",
                One(Kind::Table(&DISTURBANCE)),
                Optional,
                "Other work that gets in the way, by chance",
            ),
        ],
    ],
};

static DISTURBANCE: Table = Table {
    kinds: None,
    title: "a disturbance",
    help: "Other work on a host; the lengths are exponentially distributed.",
    groups: &[&[
        key("probability", One(Kind::Share), Required, "How likely an operation is held up"),
        key("mean", One(Kind::Span(INSTANT, HOUR)), Required, "How long on average"),
    ]],
};

pub(in crate::file) static INTERFACE: Table = Table {
    kinds: None,
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
                "Whether both directions take turns at one processor",
            ),
            key(
                "deaf",
                One(SPAN),
                Optional,
                "With one packet buffer for both directions: what comes while the board sends, and for so long behind, is lost",
            ),
            key(
                "programmed",
                One(SPAN),
                Optional,
                "Programmed I/O: what each envelope costs the host's processor; DMA if left out",
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
                "Bytes of the receive buffer, one posted at a time for each channel; no limit if left out",
            ),
            key(
                "returns",
                One(Kind::Word(&["block", "message"])),
                Default("block"),
                "When a receive buffer that is not full is returned, with an interrupt",
            ),
            key(
                "echo",
                One(Kind::Word(&["arrival", "posted", "consumption"])),
                Default("arrival"),
                "When the receiver answers with ECHO",
            ),
        ],
    ],
};

static SPLIT: Table = Table {
    kinds: None,
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

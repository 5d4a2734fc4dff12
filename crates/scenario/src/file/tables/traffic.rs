//! Traffic and transports.

use super::super::schema::Form::{Fixed, List, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Form, Key, Kind, Need, Table};
use super::{HOUR, INSTANT, SOME_SPAN, SPAN, WEEK, key};
use trunkline_core::Span;

/// Most user bytes of one message, system write or datagram: what the memory of a host of the time, or
/// of a simulator today, takes without a thought.
const MESSAGE: Kind = Kind::Size(1, 16 << 20);
/// Most user bytes of a transfer: 1 TB.
const TRANSFER: Kind = Kind::Size(1, 1_000_000_000_000);

const fn only(
    only: &'static [&'static str],
    name: &'static str,
    form: Form,
    need: Need,
    help: &'static str,
) -> Key {
    Key { name, form, need, help, only }
}

const INTERACTIVE: &str = "interactive";
const BULK: &str = "bulk";
const TIMED_ECHO: &str = "timed-echo";
const TIMED_TRANSFER: &str = "timed-transfer";
const PUSH: &str = "push";
const PACED: &str = "paced";
const KINDS: &[&str] = &[INTERACTIVE, BULK, TIMED_ECHO, TIMED_TRANSFER, PUSH, PACED];

pub(in crate::file) static TRAFFIC: Table = Table {
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

pub(in crate::file) const TRANSPORT: Kind =
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

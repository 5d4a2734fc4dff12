//! Clusters: nodes, their message layer, their program and what operations cost them.

use super::super::clusters;
use super::super::media;
use super::super::schema::Form::{Fixed, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Kind, Table};
use super::links::STATIONS;
use super::{SPAN, key};

pub(in crate::file) static CLUSTER: Table = Table {
    kinds: Some(media::tables),
    title: "[[cluster]]",
    help: "Nodes that run one program over a message layer, on a medium of their own (TR 94-14).",
    groups: &[
        &[
            key("name", Fixed(Kind::Name), Required, "Its name"),
            key("kind", One(Kind::Word(media::NAMES)), Required, "The kind of its medium"),
            key("nodes", One(Kind::Whole(1, 16_384)), Required, "How many nodes, each a station"),
            key(
                "protocol",
                One(PROTOCOL),
                Default("careful"),
                "Its message layer: careful, or traditional, by name or as a table with its keys",
            ),
            key("test", One(TEST), Required, "The program: by name, or as a table with its keys"),
            key(
                "frame",
                One(Kind::Size(4, 60_000)),
                Default("8000"),
                "Most payload of a frame; longer messages are cut into fragments",
            ),
            key(
                "overhead",
                One(Kind::Size(0, 1024)),
                Default("20"),
                "Octets of a frame that are the network's, beside 32 of the message layer",
            ),
            key(
                "buffers",
                One(Kind::Whole(2, 1 << 20)),
                Default("128"),
                "Receive buffers of each adapter, of one frame each",
            ),
            key(
                "send_buffers",
                One(Kind::Whole(1, 1 << 20)),
                Default("128"),
                "Frames that a traditional node holds until they are acknowledged",
            ),
            key(
                "loss",
                One(Kind::Share),
                Default("0"),
                "Share of frames lost at random, each on its arrival at a node",
            ),
            key(
                "costs",
                One(Kind::Name),
                Optional,
                "A [costs.NAME]: what operations cost the nodes' processors; nothing if left out",
            ),
            key(
                "record",
                One(Kind::Whole(0, 1000)),
                Default("0"),
                "Laps of node 0 until whose end it is drawn who waits for whom; none if 0",
            ),
        ],
        STATIONS,
    ],
};

const PROTOCOL: Kind =
    Kind::Or(&Kind::Word(crate::MessageProtocol::NAMES), &Kind::Table(&PROTOCOL_TABLE));
static PROTOCOL_TABLE: Table = Table {
    kinds: Some(clusters::protocols),
    title: "a message layer",
    help: "The message layer of a cluster's nodes.",
    groups: &[&[key(
        "kind",
        One(Kind::Word(crate::MessageProtocol::NAMES)),
        Default("careful"),
        "Which; the other keys depend on it",
    )]],
};

const TEST: Kind = Kind::Or(&Kind::Word(clusters::TEST_NAMES), &Kind::Table(&TEST_TABLE));
static TEST_TABLE: Table = Table {
    kinds: Some(clusters::tests),
    title: "a test",
    help: "The program that all nodes of a cluster run.",
    groups: &[&[key(
        "kind",
        One(Kind::Word(clusters::TEST_NAMES)),
        Required,
        "Which; the other keys depend on it",
    )]],
};

pub(in crate::file) static COSTS: Table = Table {
    kinds: None,
    title: "[costs.NAME]",
    help: "What operations cost a node's processor, which does one thing at a time.",
    groups: &[&[
        key("cycle", One(SPAN), Default("0"), "A cycle of the operations of TR 94-14's Appendix A"),
        key("send", One(SPAN), Default("0"), "To send a fragment, beside those operations"),
        key("interrupt", One(SPAN), Default("0"), "Each interrupt by a frame, beside them"),
        key("receive", One(SPAN), Default("0"), "To receive a fragment that is there"),
        key(
            "clean_up",
            One(SPAN),
            Default("0"),
            "Behind a fragment that has left: its buffers go back",
        ),
        key(
            "copy_out",
            One(SPAN),
            Default("0"),
            "To move a received frame out of the adapter, beside copying it",
        ),
        key("copy", One(SPAN), Default("0"), "To copy 4 bytes between adapter and memory"),
        key("write", One(SPAN), Default("0"), "To write 4 bytes before they are sent"),
        key("read", One(SPAN), Default("0"), "To read 4 bytes that were received"),
        key("point", One(SPAN), Default("0"), "To compute a point of a grid"),
        key("sweep", One(SPAN), Default("0"), "To begin a sweep over a part of a grid"),
        key("add", One(SPAN), Default("0"), "To add a value to another"),
    ]],
};

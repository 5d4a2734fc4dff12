//! Traffic and transports.

use super::super::listed;
use super::super::schema::Form::{Fixed, List, One};
use super::super::schema::Need::{Default, Optional, Required};
use super::super::schema::{Form, Key, Kind, Need, Table};
use super::{HOUR, INSTANT, SOME_SPAN, SPAN, WEEK, key};
use trunkline_core::Span;
use trunkline_transport::tcp::{LEAST_RTO, congestion};
use trunkline_transport::urp;

/// Most user bytes of one message, system write or datagram: what the memory of a host of the time, or
/// of a simulator today, takes without a thought.
const MESSAGE: Kind = Kind::Size(1, 16 << 20);
/// Most user bytes of a transfer: 1 TB. A file may have none.
const TRANSFER: Kind = Kind::Size(0, 1_000_000_000_000);

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
const GREEDY: &str = "greedy";
const PACED: &str = "paced";
const KINDS: &[&str] = &[INTERACTIVE, BULK, TIMED_ECHO, TIMED_TRANSFER, PUSH, GREEDY, PACED];

pub(in crate::file) static TRAFFIC: Table = Table {
    kinds: None,
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
                "What the sender's end speaks; tcp, and datagram for paced traffic, if left out",
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
            key(
                "band",
                One(Kind::Whole(0, 7)),
                Default("7"),
                "Its priority band, 0 the most urgent; with the discipline priority the bands beyond the last count as the last",
            ),
            key(
                "command",
                One(Kind::Text),
                Optional,
                "In the emulator this program makes the traffic, on the host `from`; {own}, {peer} and {port} are filled in",
            ),
            key(
                "server",
                One(Kind::Text),
                Optional,
                "What has to run on the host `to` for the command",
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
        "Messages of each size, or transfers; without end if 'until' is given and this is not",
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
        "User bytes of a transfer, 1 or more, or of the file, which may be empty",
    ),
    only(
        &[BULK, PUSH, GREEDY],
        "write",
        One(MESSAGE),
        Default("1024"),
        "User bytes of each system write",
    ),
    only(
        &[BULK],
        "confirm",
        One(Kind::Flag),
        Default("true"),
        "Whether a transfer is timed to the receiver's answer (true) or to the return of the last write (false)",
    ),
    only(
        &[PUSH],
        "store",
        One(SPAN),
        Default("0"),
        "What the receiver spends on storing the bytes of each write",
    ),
    only(
        &[TIMED_ECHO, TIMED_TRANSFER, GREEDY, PACED],
        "duration",
        One(SOME_SPAN),
        Default("10s"),
        "For how long, each size; without end if 'until' is given and this is not",
    ),
    only(
        &[GREEDY],
        "warm_up",
        One(SPAN),
        Default("1s"),
        "How long a flow has run when the first interval is measured",
    ),
    only(
        &[GREEDY],
        "interval",
        One(SOME_SPAN),
        Default("1s"),
        "How long each measured interval is",
    ),
    only(&[PACED], "size", One(MESSAGE), Required, "User bytes of each datagram"),
    only(&[PACED], "rate", One(Kind::Rate), Required, "User bytes, as a rate"),
];

const URP: &str = "urp";
/// Modes of URP.
const MODES: [&str; 2] = {
    let [(block, _), (character, _)] = urp::Mode::NAMED;
    [block, character]
};
const DATAGRAM: &str = "datagram";
const UDP: &str = "udp";
const TCP: &str = "tcp";
const PROTOCOLS: &[&str] = &listed::names([URP, DATAGRAM, UDP, TCP]);
/// Largest window of TCP with its largest scale (RFC 7323 section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;

pub(in crate::file) const TRANSPORT: Kind =
    Kind::Or(&Kind::Word(PROTOCOLS), &Kind::Table(&TRANSPORT_TABLE));
static TRANSPORT_TABLE: Table = Table {
    kinds: Some(listed::tables),
    title: "a transport",
    help: "How an end point speaks: the Universal Receiver Protocol, datagrams, TCP, or another protocol by its name.",
    groups: &[
        &[
            key(
                "kind",
                One(Kind::Word(PROTOCOLS)),
                Optional,
                "The protocol, on which the other keys depend; tcp, and datagram for paced traffic, if left out",
            ),
            only(
                &[URP, TCP],
                "profile",
                One(Kind::Word(&["trunkline", "v10", "plan9", "kmc", "linux", "bsd-reno"])),
                Optional,
                "Whose habits; linux for tcp and trunkline for urp if left out",
            ),
        ],
        URP_KEYS,
        TCP_KEYS,
    ],
};

const URP_KEYS: &[Key] = &[
    only(
        &[URP],
        "mode",
        One(Kind::Word(&MODES)),
        Default("block"),
        "Blocks that are repaired and have a window, or characters, of which 'block' bytes are sent before an ECHO is waited for and nothing is repaired",
    ),
    only(&[URP], "block", One(Kind::Size(1, 4096)), Default("256"), "User bytes of a block"),
    only(&[URP], "outstanding", One(Kind::Whole(1, 7)), Default("3"), "Blocks outstanding"),
    only(
        &[URP],
        "timeout",
        One(Kind::Span(INSTANT, HOUR)),
        Default("1s"),
        "After how long without an answer the sender asks with ENQ",
    ),
    only(
        &[URP],
        "packet",
        One(Kind::Whole(0, 4096)),
        Default("16"),
        "Envelopes of each network packet; 0: a block in one packet",
    ),
];

const TCP_KEYS: &[Key] = &[
    only(
        &[TCP],
        "congestion",
        One(Kind::Word(congestion::Algorithm::NAMES)),
        Optional,
        "Congestion control; the profile's if left out",
    ),
    only(
        &[TCP],
        "mss",
        One(Kind::Size(48, 65_495)),
        Optional,
        "User bytes of the largest segment without options; what the MTU leaves if left out",
    ),
    only(
        &[TCP],
        "window",
        One(Kind::Size(64, LARGEST_WINDOW)),
        Optional,
        "Receive buffer: the largest window; the profile's if left out",
    ),
    only(
        &[TCP],
        "initial_window",
        One(Kind::Whole(1, 1000)),
        Optional,
        "Segments of the first window; the profile's if left out",
    ),
    only(
        &[TCP],
        "sack",
        One(Kind::Flag),
        Optional,
        "Selective acknowledgements; as the profile if left out",
    ),
    only(
        &[TCP],
        "timestamps",
        One(Kind::Flag),
        Optional,
        "Time stamps, 12 bytes of each segment; as the profile if left out",
    ),
    only(
        &[TCP],
        "window_scaling",
        One(Kind::Flag),
        Optional,
        "Windows of more than 65535 bytes; as the profile if left out",
    ),
    only(
        &[TCP],
        "ecn",
        One(Kind::Flag),
        Optional,
        "Explicit congestion notification; as the profile if left out",
    ),
    only(
        &[TCP],
        "delayed_ack",
        One(Kind::Span(Span::ZERO, HOUR)),
        Optional,
        "The longest that an acknowledgement is held back, 0 for never; the profile's if left out",
    ),
    only(
        &[TCP],
        "min_rto",
        One(Kind::Span(LEAST_RTO, HOUR)),
        Optional,
        "The shortest retransmission time-out; the profile's if left out",
    ),
];

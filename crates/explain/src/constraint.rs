//! What can bind a traffic.

use serde::Serialize;

/// Something that can limit a message's delay or a transfer's rate. The order is that of what it takes
/// to relax it: a setting, another driver, another board, another host, another trunk, another place. If
/// relaxing two of them buys about the same, the earlier one is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// The queue in front of a line: other traffic is ahead, and the discipline lets it be.
    Queue,
    /// A queue that overflows.
    QueueLimit,
    /// The rate that a discipline holds, whatever the line carries.
    Shaper,
    /// The transport's window: of URP its blocks, of TCP the buffers of both ends, of others what their settings say.
    Window,
    /// The rate that settings of the transport hold.
    Pace,
    /// The message layer of a cluster.
    Layer,
    /// The window with which TCP begins.
    InitialWindow,
    /// The interface takes no further request of a channel before the last is answered for.
    Requests,
    /// A system write is cut into several requests.
    Split,
    /// The host posts receive buffers one at a time, with an interrupt for each.
    ReceiveBuffers,
    /// The interface's memory overflows.
    Memory,
    /// The interface board's processor.
    Board,
    /// The host's processor.
    Processor,
    /// The processor of a trunk board.
    TrunkBoard,
    /// The nodes' backplanes.
    Backplane,
    /// What taking turns on a shared medium costs.
    Turns,
    /// The rate of a shared medium.
    MediumRate,
    /// What a schedule changes while the traffic is under way.
    Schedule,
    /// What the line loses or damages has to be sent again.
    Loss,
    /// What is worse on the way of the answers than on that of the data: rate, loss, queue.
    AckPath,
    /// The rate of the slowest line.
    Rate,
    /// Distance. Nothing can be bought but a shorter path.
    Distance,
}

impl Constraint {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Constraint::Queue => "queue",
            Constraint::QueueLimit => "queue limit",
            Constraint::Shaper => "discipline's rate",
            Constraint::Window => "window",
            Constraint::Pace => "sender's rate",
            Constraint::Layer => "message layer",
            Constraint::InitialWindow => "initial window",
            Constraint::Requests => "interface: requests",
            Constraint::Split => "interface: splitting of writes",
            Constraint::ReceiveBuffers => "interface: receive buffers",
            Constraint::Memory => "interface: memory",
            Constraint::Board => "interface board",
            Constraint::Processor => "processor",
            Constraint::TrunkBoard => "trunk board",
            Constraint::Backplane => "backplane",
            Constraint::Turns => "turn-taking",
            Constraint::MediumRate => "medium's rate",
            Constraint::Schedule => "schedule",
            Constraint::Loss => "loss",
            Constraint::AckPath => "way back",
            Constraint::Rate => "trunk rate",
            Constraint::Distance => "distance",
        }
    }
}

//! A cluster: nodes that run one program over a message layer, on a medium of their own.

use trunkline_cluster::{Node, Test, Work};
use trunkline_core::{Probability, Span};
use trunkline_path::MediumSpec;
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster as Layout, ClusterError, Layer, NodeId, Traditional,
    TraditionalSettings,
};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// A cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// What joins its nodes, each of which is a station.
    pub medium: MediumSpec,
    /// Nodes, buffers and frames.
    pub layout: Layout,
    /// Octets of a frame beside those of the message layer: those of the network.
    pub overhead: u32,
    /// The share of frames that a node loses at random, each on its arrival.
    pub loss: Probability,
    /// The message layer.
    pub protocol: MessageProtocol,
    /// The program.
    pub test: Test,
    /// What its nodes' processors take for it.
    pub costs: NodeCosts,
    /// Laps of node 0 until whose end it is recorded and drawn what the programs do; none if 0.
    pub record: u32,
}

impl Cluster {
    /// Checks what single keys do not say: that the message layer has buffers enough, and the test nodes.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let key = |error: &ClusterError| match error {
            ClusterError::Grid { .. } | ClusterError::Schemes => "protocol",
            _ => "buffers",
        };
        self.layer(NodeId(0)).map_err(|error| (key(&error), error.to_string()))?;
        self.test.check(self.layout.nodes, self.layout.frame).map_err(|problem| ("test", problem))
    }

    /// The message layer of a node.
    ///
    /// # Errors
    /// If it has too few buffers.
    pub fn layer(&self, me: NodeId) -> Result<Box<dyn Layer>, ClusterError> {
        self.protocol.layer(me, &self.layout)
    }

    /// A node that has not started.
    ///
    /// # Errors
    /// As [`Cluster::layer`].
    pub fn node(&self, me: NodeId) -> Result<Node, ClusterError> {
        let Layout { nodes, frame, .. } = self.layout;
        Ok(Node::new(self.test.program(me, nodes, frame), self.layer(me)?))
    }
}

/// A message layer with its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageProtocol {
    /// Keeps what it sends until it is acknowledged.
    Traditional(TraditionalSettings),
    /// Loses nothing itself.
    Careful(CarefulSettings),
}

impl MessageProtocol {
    /// The names of all, as files have them.
    pub const NAMES: &'static [&'static str] = &["traditional", "careful"];

    /// The layer called `name`, with these values for its keys.
    ///
    /// # Errors
    /// If there is none of this name, or values do not go together.
    pub fn of(name: &str, values: &Values) -> Result<MessageProtocol, String> {
        match name {
            "traditional" => TraditionalSettings::of(values).map(MessageProtocol::Traditional),
            "careful" => CarefulSettings::of(values).map(MessageProtocol::Careful),
            _ => Err(format!("'{name}' is no message layer: use traditional or careful")),
        }
    }

    /// The keys of the layer called `name`.
    pub fn keys(name: &str) -> &'static [ProtocolKey] {
        match name {
            "traditional" => TraditionalSettings::KEYS,
            _ => CarefulSettings::KEYS,
        }
    }

    /// Reads `NAME` or `NAME:key=value,…`.
    ///
    /// # Errors
    /// What was found, and what there is.
    pub fn parse(text: &str) -> Result<MessageProtocol, String> {
        MessageProtocol::values(text).and_then(|(name, it)| MessageProtocol::of(name, &it))
    }

    /// The name in such a text, and the values of all its keys.
    ///
    /// # Errors
    /// As [`MessageProtocol::parse`].
    pub fn values(text: &str) -> Result<(&str, Values), String> {
        let (name, pairs) = Values::named(text)?;
        Ok((name, Values::parse(name, MessageProtocol::keys(name), pairs)?))
    }

    /// The end of a node.
    ///
    /// # Errors
    /// If it has too few buffers.
    pub fn layer(&self, me: NodeId, layout: &Layout) -> Result<Box<dyn Layer>, ClusterError> {
        Ok(match self {
            MessageProtocol::Traditional(settings) => {
                Box::new(Traditional::new(me, layout, settings)?)
            }
            MessageProtocol::Careful(settings) => Box::new(Careful::new(me, layout, settings)?),
        })
    }

    /// The longest time for which a node to which nothing comes leaves its layer waiting before that does something.
    pub fn longest_timer(&self) -> Span {
        match self {
            MessageProtocol::Traditional(settings) => settings.longest_timeout,
            MessageProtocol::Careful(settings) => settings.longest_timer(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            MessageProtocol::Traditional(_) => "traditional",
            MessageProtocol::Careful(_) => "careful",
        }
    }
}

/// What operations cost the processor of a node, which does one thing at a time. All zero by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCosts {
    /// A cycle of the operations of Appendix A of TR 94-14; 20 ns on an HP 9000/720.
    pub cycle: Span,
    /// To send a fragment, beside those operations.
    pub send: Span,
    /// Each interrupt by a frame, beside those operations.
    pub interrupt: Span,
    /// To receive a fragment, once it is there.
    pub receive: Span,
    /// Behind a fragment that has left: its buffers go back to their pools.
    pub clean_up: Span,
    /// To move a frame that was received out of the adapter, beside copying it.
    pub copy_out: Span,
    /// To copy a word of 4 bytes between the adapter and memory.
    pub copy: Span,
    /// To write a word of 4 bytes before it is sent.
    pub write: Span,
    /// To read a word of 4 bytes that was received.
    pub read: Span,
    /// To compute a point of a grid.
    pub point: Span,
    /// To begin a sweep over a part of a grid.
    pub sweep: Span,
    /// To add a value to another.
    pub add: Span,
}

impl NodeCosts {
    /// The time that a program's own work takes.
    pub fn of(&self, work: &Work) -> Span {
        self.write.scaled(work.written, 1)
            + self.read.scaled(work.read, 1)
            + self.point.scaled(work.points, 1)
            + self.sweep.scaled(work.sweeps, 1)
            + self.add.scaled(work.added, 1)
    }
}

//! `trunkline cluster`: nodes that exchange messages, as real processes.

mod node;
mod run;
mod watched;

use crate::failure::Failure;
use std::ops::Deref;
use std::time::Duration;
use trunkline_cluster::Test;
use trunkline_core::{Probability, Seed, Span};
use trunkline_nodes::{NodesError, Terms};
use trunkline_scenario::MessageProtocol;
use trunkline_transport::cstar::Cluster;
use trunkline_transport::protocol::{Value, Values};

/// Run a test of a message layer among nodes, each a process
///
/// The message layer is that of Mosberger, Turner and Peterson (TR 94-14, 1994) in both forms: `traditional` repairs what is
/// lost; `careful` loses nothing itself and stops with a word when the network does.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Start all nodes on this machine, run a test, and check the results
    Run(run::Args),
    /// Run one node of a cluster, here or on its own host
    Node(node::Args),
}

/// Does it.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Run(args) => run::run(args),
        What::Node(args) => node::run(args),
    }
}

/// What all nodes have in common.
#[derive(clap::Args, Clone)]
struct Common {
    /// The test: NAME or NAME:key=value,…
    #[arg(long, value_name = "TEST", value_parser = test, long_help = tests())]
    test: Chosen<Test>,
    /// The message layer: careful, or traditional; with keys as in careful:audit=100ms, which is 200ms if left out
    #[arg(long, value_name = "LAYER", default_value = "careful", value_parser = layer)]
    protocol: Chosen<MessageProtocol>,
    /// Largest payload of a frame, in bytes; longer messages are cut
    #[arg(long, value_name = "BYTES", default_value_t = 8000, value_parser = clap::value_parser!(u32).range(4..=60_000))]
    frame: u32,
    /// Receive buffers of each node, of one frame each
    #[arg(long, value_name = "NUMBER", default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..))]
    buffers: u32,
    /// Frames that a traditional node holds until they are acknowledged
    #[arg(long, value_name = "NUMBER", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    send_buffers: u32,
    /// Each node drops this share of the frames that it receives, to test the layer
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    drop: Probability,
    /// Seed of the drops
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Poll for datagrams this long before sleeping; useful with a processor for each node
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = duration)]
    poll: Duration,
    /// A node counts as dead if it has not answered for this long while others wait
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = silence)]
    silence: Duration,
}

fn tests() -> String {
    let mut text = String::from("The test: NAME or NAME:key=value,…\n");
    for kind in trunkline_cluster::TESTS {
        let keys: Vec<&str> = kind.keys.iter().map(|key| key.name).collect();
        text += &format!("\n- {}: {} Keys: {}", kind.name, kind.help, keys.join(", "));
    }
    text
}

/// How long a careful node waits before it asks whether anything was lost, if nothing is said (a choice): on a real network
/// the loss of a frame behind which nothing more comes would be waited for in silence.
const AUDIT: Span = Span::from_millis(200);

/// What was chosen by name, and the values of its keys.
#[derive(Clone)]
struct Chosen<T> {
    it: T,
    values: Values,
}

impl<T> Deref for Chosen<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.it
    }
}

fn test(text: &str) -> Result<Chosen<Test>, String> {
    let (name, values) = Test::values(text)?;
    Ok(Chosen { it: Test::of(name, &values)?, values })
}

fn layer(text: &str) -> Result<Chosen<MessageProtocol>, String> {
    let (name, mut values) = MessageProtocol::values(text)?;
    if name == "careful" && values.get("audit").is_none() {
        values.set("audit", Value::Time(AUDIT));
    }
    Ok(Chosen { it: MessageProtocol::of(name, &values)?, values })
}

/// A node is asked when it has been silent for a second, and needs some time to answer.
fn silence(text: &str) -> Result<Duration, String> {
    let least = Duration::from_secs(2);
    duration(text).and_then(|it| if it < least { Err("give 2s or more".into()) } else { Ok(it) })
}

fn duration(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Duration::from_nanos(span.as_nanos()))
}

impl Common {
    fn layout(&self, nodes: u16) -> Cluster {
        let Common { frame, buffers: receive_buffers, send_buffers, .. } = *self;
        Cluster { nodes, receive_buffers, send_buffers, frame }
    }

    /// What all nodes must have alike.
    fn terms(&self, nodes: u16) -> Terms {
        let own = |name: &str, value: String| (name.to_owned(), value);
        let keys = |values: &Values| {
            values.pairs().into_iter().map(|(name, value)| own(name, value)).collect::<Vec<_>>()
        };
        let mut pairs = vec![own("--nodes", nodes.to_string())];
        pairs.push(own("--test", self.test.name().into()));
        pairs.extend(keys(&self.test.values));
        pairs.push(own("--protocol", self.protocol.name().into()));
        pairs.extend(keys(&self.protocol.values));
        pairs.push(own("--frame", self.frame.to_string()));
        pairs.push(own("--buffers", self.buffers.to_string()));
        Terms::new(pairs)
    }

    fn seed(&self) -> Seed {
        Seed(self.seed)
    }
}

/// The failure that an error of nodes is.
fn failure(error: &NodesError) -> Failure {
    Failure::failed(error)
}

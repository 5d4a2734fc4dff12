//! `trunkline cluster node`: one node.

use super::watched::Watched;
use super::{Common, failure};
use crate::failure::Failure;
use crate::output;
use std::io::{BufRead, stdin};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;
use trunkline_cluster::Node;
use trunkline_nodes::{Address, Carrier, NodesError, Peers, Place, Plan, Said, Told, drive};
use trunkline_transport::cstar::NodeId;

/// Run one node of a cluster, here or on its own host.
///
/// All nodes get the same options but --id and --bind. A node begins when it has heard all others, prints what it came to as
/// a line of JSON, and answers the others until it is stopped or its input ends. It authenticates nobody: use it on networks
/// of your own.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Its number, from 0
    #[arg(long, value_name = "N")]
    id: u16,
    /// Listen at ADDRESS:PORT for datagrams, or on this device for Ethernet frames. With ADDRESS:PORT@GROUP broadcasts are
    /// sent once, to this IPv4 multicast group on the address's device, if all nodes hear it
    #[arg(long, value_name = "WHERE")]
    bind: Place,
    /// Addresses of all nodes, this one included, in the order of their numbers: ADDRESS:PORT, or Ethernet addresses if --bind is a
    /// device; read from the input if left out
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',')]
    peers: Vec<String>,
    /// Number of nodes, if --peers is left out
    #[arg(long, value_name = "NUMBER", required_unless_present = "peers")]
    nodes: Option<u16>,
    /// Record so many acts of its program, and tell them with the outcome
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide = true)]
    record: usize,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Example, on hosts alpha and beta:
  trunkline cluster node --id 0 --bind 0.0.0.0:7714 \\
      --peers alpha:7714,beta:7714 --test latency:words=1000
  trunkline cluster node --id 1 --bind 0.0.0.0:7714 \\
      --peers alpha:7714,beta:7714 --test latency:words=1000
The same without IP, on their devices eth1:
  trunkline cluster node --id 0 --bind eth1 --frame 1400 \\
      --peers 02:74:00:00:00:00,02:74:00:00:00:01 --test latency";

/// Runs the node.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (stop, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
    let (flag, which) = (Arc::clone(&stop), Arc::clone(&signal));
    crate::signals::watch(move |number| {
        which.store(number, Ordering::Relaxed);
        flag.store(true, Ordering::Relaxed);
        true
    })?;
    let common = &args.common;
    let nodes = nodes(args)?;
    let (layout, me) = (common.layout(nodes), NodeId(args.id));
    common.test.check(nodes, common.frame).map_err(Failure::wrong_use)?;
    let layer = common.protocol.layer(me, &layout).map_err(Failure::wrong_use)?;
    let mut node = Node::new(common.test.program(me, nodes, common.frame), layer);
    node.record(args.record);
    let bound = Carrier::bind(&args.bind, common.buffers, common.frame);
    let mut carrier = bound.map_err(|error| fails(args, &error))?;
    carrier.agree(common.terms(nodes));
    let peers = peers(args, &carrier, &stop)?;
    if peers.is_empty() {
        return Ok(());
    }
    carrier.meet(me, peers).map_err(|error| fails(args, &error))?;
    let plan = Plan {
        me,
        drop: common.drop,
        seed: common.seed(),
        poll: common.poll,
        patience: Duration::from_secs(30),
        silence: common.silence,
    };
    let mut teller = Teller::new(args, nodes);
    let driven = drive(&plan, node, carrier, &stop, &mut |told| teller.tell(&told));
    let outcome = match driven {
        // Whoever started it knows why.
        Err(NodesError::Stopped) if args.peers.is_empty() => return Ok(()),
        Err(NodesError::Stopped) => {
            return Err(Failure::interrupted(signal.load(Ordering::Relaxed)));
        }
        outcome => outcome.map_err(|error| fails(args, &error))?,
    };
    teller.said?;
    match outcome.failure.or(outcome.wrong) {
        Some(_) if args.peers.is_empty() => Ok(()),
        Some(why) => Err(Failure::failed(format!("{me}: {why}"))),
        None => Ok(()),
    }
}

/// Tells what a node does: its user, if it was started by hand, otherwise whoever started it.
struct Teller {
    me: NodeId,
    nodes: u16,
    by_hand: bool,
    watched: Watched,
    /// Whether its outcome could be said.
    said: Result<(), Failure>,
}

impl Teller {
    fn new(args: &Args, nodes: u16) -> Teller {
        let watched = Watched::new(args.common.test.laps());
        let by_hand = !args.peers.is_empty();
        Teller { me: NodeId(args.id), nodes, by_hand, watched, said: Ok(()) }
    }

    fn tell(&mut self, told: &Told<'_>) {
        let (me, nodes, by_hand) = (self.me, self.nodes, self.by_hand);
        match told {
            Told::Misses(unheard) if by_hand => {
                unheard
                    .found()
                    .iter()
                    .for_each(|it| output::tell(format_args!("{me} waits for {it}")));
            }
            Told::Misses(_) => {}
            Told::Ended(outcome) => {
                self.watched.ends();
                self.said = say(&Said::Ended(Box::new((*outcome).clone())));
            }
            Told::Goes(progress) if by_hand => self.watched.note(*progress),
            Told::Goes(progress) => {
                let _ = say(&Said::Goes(*progress));
            }
            Told::Begins { unheard } => {
                if *unheard && (by_hand || me == NodeId(0)) {
                    let what =
                        "not all nodes hear it by multicast: a broadcast is a datagram to each";
                    output::tell(format_args!("{me}: {what}"));
                }
                if by_hand {
                    output::tell(format_args!("all {nodes} nodes are there; {me} begins"));
                } else {
                    let _ = say(&Said::Begins);
                }
            }
        }
    }
}

/// The failure that an error is. Whoever started all nodes tells it once: all may fail alike.
fn fails(args: &Args, error: &NodesError) -> Failure {
    let failure = failure(error);
    if !args.peers.is_empty() {
        return failure;
    }
    match say(&Said::Fails(failure.message().into())) {
        Ok(()) => failure.told(),
        Err(other) => other,
    }
}

/// How many nodes there are.
fn nodes(args: &Args) -> Result<u16, Failure> {
    let named = args.peers.len() as u16;
    match args.nodes {
        Some(nodes) if named > 0 && nodes != named => {
            let problem = format!("--nodes says {nodes}, and --peers names {named}: leave one out");
            Err(Failure::wrong_use(problem))
        }
        Some(nodes) => Ok(nodes),
        None => Ok(named),
    }
}

/// Where all nodes are: from the command line, or from whoever started this one, whose end is the node's.
fn peers(args: &Args, carrier: &Carrier, stop: &Arc<AtomicBool>) -> Result<Vec<Address>, Failure> {
    if !args.peers.is_empty() {
        return args.peers.iter().map(|text| resolved(&args.bind, text)).collect();
    }
    let address = carrier.address().map_err(|error| failure(&error))?;
    say(&Said::Listens(address))?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    let peers: Peers = serde_json::from_str(&line)
        .map_err(|_| Failure::failed("the input does not say where all nodes are: give --peers"))?;
    let flag = Arc::clone(stop);
    let watch = move || {
        let _ = std::io::copy(&mut stdin().lock(), &mut std::io::sink());
        flag.store(true, Ordering::Relaxed);
    };
    trunkline_netns::thread("input").and_then(|it| it.spawn(watch)).map_err(Failure::no_thread)?;
    Ok(peers.peers)
}

fn resolved(place: &Place, text: &str) -> Result<Address, Failure> {
    match place {
        Place::Udp(_) | Place::Group(..) => looked_up(text).map(Address::Udp),
        Place::Device(_) => {
            let wanted = "no Ethernet address like 02:74:00:00:00:01";
            text.parse().map_err(|_| Failure::wrong_use(format!("--peers: '{text}' is {wanted}")))
        }
    }
}

/// The first address of `HOST:PORT`.
fn looked_up(text: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    if host.is_empty() || port.parse::<u16>().is_err() {
        let remedy = "give ADDRESS:PORT, with a port up to 65535";
        return Err(Failure::wrong_use(format!("--peers: '{text}' has no port: {remedy}")));
    }
    let missing = |why: String| Failure::failed(format!("--peers: no address of '{host}': {why}"));
    let mut found = text.to_socket_addrs().map_err(|error| missing(error.to_string()))?;
    found.next().ok_or_else(|| missing("there is none".into()))
}

/// Says it in a line of JSON.
fn say(what: &Said) -> Result<(), Failure> {
    output::line(&serde_json::to_string(what)?)
}

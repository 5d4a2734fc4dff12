//! A process for each node of a cluster, on this machine.
//!
//! A node's process says on its output where it listens, hears on its input where all are, and says what it came to. It ends
//! when its input ends, so that none outlives whoever started it.

use crate::{Address, NodesError, Outcome, Place, Progress, Watch};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use trunkline_netns::{IpNet, LabError, Laboratory, Mac, SpawnOptions, spawn};
use trunkline_transport::cstar::NodeId;

/// How the nodes of a cluster on this host are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// Each in a network namespace of its own with an address, by an Ethernet bridge; what is for all goes to a multicast
    /// group.
    Segment {
        /// The largest packet on the way, in bytes.
        mtu: u32,
    },
    /// The same without addresses.
    Bridge {
        /// The largest packet on the way, in bytes.
        mtu: u32,
    },
    /// All on this host's loopback.
    Loopback,
}

/// What a node says, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// It listens there.
    Listens(Address),
    /// It cannot run, for this reason.
    Fails(String),
    /// It has met all others, and its program begins.
    Begins,
    /// Its program has come so far.
    Goes(Progress),
    /// Its program has ended, or cannot go on.
    Ended(Box<Outcome>),
}

/// Where all nodes are, by their numbers, as a node is told: one line of JSON. Nowhere if it is to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// Their addresses.
    pub peers: Vec<Address>,
}

/// A cluster under way.
#[derive(Debug)]
pub struct Launch {
    children: Vec<(Child, Option<ChildStdin>)>,
    heard: Receiver<(usize, Option<String>)>,
    /// Whether they know where all are.
    met: bool,
    /// Which have met the others.
    begun: Vec<bool>,
    /// Kept for as long as the nodes live.
    laboratory: Option<Laboratory>,
}

/// The device of a node in a namespace of its own.
const DEVICE: &str = "tl";
/// The bridge that joins them.
const BRIDGE: &str = "tlbridge";
/// The port at which nodes in namespaces of their own listen.
const PORT: u16 = 7714;
/// How long processes may take to end before they are killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the others are waited for when one has failed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Addresses of namespaces: 10.77.0.1 for node 0, and so on.
const NETWORK: [u8; 3] = [10, 77, 0];
/// Their multicast group, one of those for use within a site (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 14);
/// Most nodes in namespaces: their number is an octet of an address.
pub const MOST_NAMESPACES: u16 = 250;

impl Launch {
    /// Starts `nodes` processes. `command` makes the command of a node, which is to listen at a place.
    ///
    /// # Errors
    /// If namespaces or processes cannot be had, or `stop` is set.
    pub fn start(
        joined: Joined,
        nodes: u16,
        stop: &AtomicBool,
        command: &dyn Fn(NodeId, Place) -> Command,
    ) -> Result<Launch, NodesError> {
        let laboratory = match joined {
            Joined::Segment { mtu } => Some(addressed(nodes, stop, bridged(nodes, stop, mtu)?)?),
            Joined::Bridge { mtu } => Some(bridged(nodes, stop, mtu)?),
            Joined::Loopback => None,
        };
        let (sender, heard) = channel();
        let begun = vec![false; usize::from(nodes)];
        let mut launch = Launch { children: Vec::new(), heard, met: false, begun, laboratory };
        for node in (0..nodes).map(NodeId) {
            goes_on(stop)?;
            let place = match joined {
                Joined::Segment { .. } => {
                    Place::Group(SocketAddrV4::new(address(node), PORT), GROUP)
                }
                Joined::Bridge { .. } => Place::Device(DEVICE.into()),
                Joined::Loopback => Place::Udp((Ipv4Addr::LOCALHOST, 0).into()),
            };
            launch.add(node, command(node, place), &sender)?;
        }
        Ok(launch)
    }

    fn add(
        &mut self,
        node: NodeId,
        mut command: Command,
        sender: &Sender<(usize, Option<String>)>,
    ) -> Result<(), NodesError> {
        let index = usize::from(node.0);
        let own = self.laboratory.as_ref().map(|it| &it.hosts()[index]);
        // The terminal's signals are for the one who started them.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let options = SpawnOptions { own_group: true, ..SpawnOptions::default() };
        let mut child = match own {
            Some(namespace) => spawn(namespace, command, options).map_err(|error| match error {
                LabError::System { source, .. } => not_started(node, source),
                error => error.into(),
            })?,
            None => {
                use std::os::unix::process::CommandExt;
                let started = command.process_group(0).spawn();
                started.map_err(|source| not_started(node, source))?
            }
        };
        let (input, output) = (child.stdin.take(), child.stdout.take());
        self.children.push((child, input));
        let sender = sender.clone();
        let reader = trunkline_netns::thread("node").map_err(|source| not_started(node, source))?;
        let started = reader.spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok) {
                if sender.send((index, Some(line))).is_err() {
                    return;
                }
            }
            let _ = sender.send((index, None));
        });
        started.map(|_| ()).map_err(|source| not_started(node, source))
    }

    /// Lets them meet, and waits for the outcome of each. They are stopped then, or soon after one has failed, of which it tells the
    /// others. `tell` is called when
    /// a node has told how far it has come.
    ///
    /// # Errors
    /// If a node fails or dies, if not all have ended after `most`, or if `stop` is set. Then all are stopped too.
    pub fn run(
        mut self,
        most: Duration,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Watch),
    ) -> Result<Vec<Outcome>, NodesError> {
        let count = self.children.len();
        let mut deadline = Instant::now() + most;
        let mut watch = Watch::default();
        let mut addresses: Vec<Option<Address>> = vec![None; count];
        let mut outcomes: Vec<Option<Outcome>> = vec![None; count];
        let mut failed = false;
        while outcomes.iter().any(Option::is_none) {
            let (index, said) = match self.next(deadline, stop, &outcomes, &watch) {
                Ok(next) => next,
                Err(NodesError::Stopped) => return Err(NodesError::Stopped),
                // Somebody's failure is the reason why others do not come to their end.
                Err(_) if failed => break,
                Err(error) => return Err(error),
            };
            match said {
                Said::Listens(address) => {
                    addresses[index] = Some(address);
                    let all: Option<Vec<Address>> = addresses.iter().copied().collect();
                    if let Some(peers) = all {
                        self.tell(&Peers { peers })?;
                        self.met = true;
                    }
                }
                Said::Fails(_) if failed => {}
                Said::Fails(reason) => {
                    return Err(NodesError::Gone { node: NodeId(index as u16), reason });
                }
                Said::Begins => self.begun[index] = true,
                Said::Goes(progress) => {
                    watch.note(progress);
                    tell(&watch);
                }
                Said::Ended(outcome) => {
                    watch.ended(outcome.node);
                    if outcome.failure.is_some() && !std::mem::replace(&mut failed, true) {
                        deadline = deadline.min(Instant::now() + LAST_WORDS);
                    }
                    outcomes[index] = Some(*outcome);
                }
            }
        }
        self.stop();
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// What a node says next.
    fn next(
        &self,
        deadline: Instant,
        stop: &AtomicBool,
        outcomes: &[Option<Outcome>],
        watch: &Watch,
    ) -> Result<(usize, Said), NodesError> {
        let died = |index: usize, what: &str| NodesError::Died {
            node: NodeId(index as u16),
            what: what.into(),
        };
        loop {
            goes_on(stop)?;
            // Also while they say something all the time.
            if Instant::now() >= deadline {
                let (index, late) = self.late(outcomes, watch);
                return Err(died(index, &late));
            }
            match self.heard.recv_timeout(Duration::from_millis(50)) {
                Ok((index, Some(line))) => match serde_json::from_str(&line) {
                    Ok(said) => return Ok((index, said)),
                    Err(_) => return Err(died(index, &format!("said what it should not: {line}"))),
                },
                // One that has failed ends when it has said so.
                Ok((index, None)) if has_failed(outcomes[index].as_ref()) => {}
                Ok((index, None)) => return Err(died(index, "died before its program had ended")),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(died(0, "is not heard any more"));
                }
            }
        }
    }

    /// The node for which there is no time left, and what is told of it.
    fn late(&self, outcomes: &[Option<Outcome>], watch: &Watch) -> (usize, String) {
        let begun = self.begun.iter().filter(|&&it| it).count();
        if let Some(index) = self.begun.iter().position(|it| !it) {
            let count = self.begun.len();
            let remedy = "give --most more time, or use fewer nodes";
            let late = format!(
                "has not met the others in time: {begun} of {count} nodes have begun; {remedy}"
            );
            return (index, late);
        }
        let index = outcomes.iter().position(Option::is_none).unwrap_or(0);
        let why = watch.standstill().map_or_else(String::new, |it| format!(": {it}"));
        (index, format!("has not ended in time{why}"))
    }

    /// Tells all of them. Of one that takes in nothing any more the last words, or its end, are still to be heard.
    fn tell(&mut self, what: &Peers) -> Result<(), NodesError> {
        for input in self.children.iter_mut().filter_map(|(_, input)| input.as_mut()) {
            match tell_one(input, what) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                told => told.map_err(NodesError::system("tell the nodes where all are"))?,
            }
        }
        Ok(())
    }

    /// Ends the inputs of all, waits for them, and kills those that go on.
    fn stop(&mut self) {
        if !std::mem::replace(&mut self.met, true) {
            // Those that wait to hear where all are need not say that they did not. Some may have died.
            for (_, input) in &mut self.children {
                let _ = input.as_mut().map(|it| tell_one(it, &Peers { peers: Vec::new() }));
            }
        }
        self.children.iter_mut().for_each(|(_, input)| *input = None);
        let deadline = Instant::now() + GRACE;
        for (child, _) in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() > deadline {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

fn not_started(node: NodeId, source: std::io::Error) -> NodesError {
    if source.kind() == ErrorKind::WouldBlock {
        NodesError::Processes { node }
    } else {
        NodesError::System { what: format!("start {node}"), source }
    }
}

/// Sees that nobody has asked for an end.
fn goes_on(stop: &AtomicBool) -> Result<(), NodesError> {
    if stop.load(Ordering::Relaxed) { Err(NodesError::Stopped) } else { Ok(()) }
}

fn has_failed(outcome: Option<&Outcome>) -> bool {
    outcome.is_some_and(|outcome| outcome.failure.is_some())
}

fn tell_one(input: &mut ChildStdin, what: &Peers) -> std::io::Result<()> {
    let mut line = serde_json::to_string(what).unwrap_or_default();
    line.push('\n');
    input.write_all(line.as_bytes()).and_then(|()| input.flush())
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.stop();
    }
}

fn address(NodeId(node): NodeId) -> Ipv4Addr {
    let [a, b, c] = NETWORK;
    Ipv4Addr::new(a, b, c, node as u8 + 1)
}

/// Gives each node's device its address, and those of all others for good: the kernel keeps only a thousand that were
/// asked for on the wire, in all namespaces together, which is those of 32 nodes.
fn addressed(
    nodes: u16,
    stop: &AtomicBool,
    laboratory: Laboratory,
) -> Result<Laboratory, NodesError> {
    for (node, host) in (0..nodes).zip(laboratory.hosts()) {
        goes_on(stop)?;
        if let Some(own) = IpNet::new(address(NodeId(node)), 24) {
            host.add_address(DEVICE, own)?;
        }
        for other in (0..nodes).filter(|&other| other != node) {
            host.add_neighbour(DEVICE, address(NodeId(other)).into(), Mac::local(other.into()))?;
        }
    }
    Ok(laboratory)
}

/// Namespaces of their own for so many nodes, and an Ethernet bridge between them. It knows who is behind which port: what
/// goes to a node that has said nothing yet would come to all of them, as many times as there are nodes.
fn bridged(nodes: u16, stop: &AtomicBool, mtu: u32) -> Result<Laboratory, NodesError> {
    let mut laboratory = Laboratory::new()?;
    laboratory.middle().create_bridge(BRIDGE, mtu)?;
    for node in 0..nodes {
        goes_on(stop)?;
        let host = laboratory.add_host()?;
        let inner = format!("tl{node}");
        laboratory.hosts()[host].set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        laboratory.join(host, (DEVICE, Some(Mac::local(node.into()))), (&inner, None), mtu)?;
        laboratory.middle().add_port(BRIDGE, &inner)?;
        laboratory.middle().add_behind_port(&inner, Mac::local(node.into()))?;
    }
    Ok(laboratory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes that say this, and stay until their input ends.
    fn saying(said: &[Vec<Said>]) -> Result<Launch, NodesError> {
        let script = |said: &Said| format!("echo '{}'; ", serde_json::to_string(said).unwrap());
        let command = |NodeId(node): NodeId, _| {
            let said: String = said[usize::from(node)].iter().map(script).collect();
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{said} while read line; do :; done")]);
            command
        };
        Launch::start(Joined::Loopback, said.len() as u16, &AtomicBool::new(false), &command)
    }

    /// Whoever asks for an end while the last words of the others are awaited is told of no other.
    #[test]
    fn a_want_of_processes_is_told_as_that() {
        let told = |error| not_started(NodeId(3), error).to_string();
        let limited = told(std::io::Error::from_raw_os_error(11));
        assert!(limited.starts_with("cannot start node 3: no more processes"), "{limited}");
        let missing = told(ErrorKind::NotFound.into());
        assert!(missing.starts_with("start node 3: "), "{missing}");
    }

    #[test]
    fn an_interrupt_behind_a_failure_is_an_interrupt() {
        let outcome = Outcome { failure: Some("a frame was lost".into()), ..Outcome::default() };
        let (ended, goes) = (Said::Ended(Box::new(outcome)), Said::Goes(Progress::default()));
        let stop = AtomicBool::new(false);
        let launch = saying(&[vec![ended, goes], Vec::new()]).unwrap();
        // It goes on behind the failure.
        let ended = launch.run(Duration::from_secs(60), &stop, &mut |_| {
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(ended, Err(NodesError::Stopped)), "{ended:?}");
    }

    /// Nodes that still meet have not begun, and so cannot end: the one that is missing is named.
    #[test]
    fn who_has_not_met_the_others_in_time_is_told() {
        let mut launch = saying(&[]).unwrap();
        let mut late = |begun: [bool; 3]| {
            launch.begun = begun.to_vec();
            launch.late(&[Some(Outcome::default()), None, None], &Watch::default())
        };
        let (node, meets) = late([true, true, false]);
        assert_eq!(node, 2);
        assert!(meets.starts_with("has not met the others in time: 2 of 3 nodes"), "{meets}");
        assert_eq!(late([true; 3]), (1, "has not ended in time".into()));
    }

    /// What nodes say of their beginning is heard, and the end of the time of those that do not is told so.
    #[test]
    fn a_meeting_that_lasts_too_long_is_told() {
        let launch = saying(&[vec![Said::Begins], Vec::new()]).unwrap();
        let ended = launch.run(Duration::from_millis(200), &AtomicBool::new(false), &mut |_| {});
        let told = ended.unwrap_err().to_string();
        assert!(told.contains("has not met the others in time"), "{told}");
    }

    #[test]
    fn no_process_is_started_behind_an_interrupt() {
        let command = |_, _| -> Command { panic!("a process is started") };
        let started = Launch::start(Joined::Loopback, 2, &AtomicBool::new(true), &command);
        assert!(matches!(started, Err(NodesError::Stopped)));
    }
}

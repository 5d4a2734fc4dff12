//! Four nodes in a ring smooth a line of numbers; each needs its neighbours' outermost ones.

use bytes::Bytes;
use trunkline_cluster::together::Network;
use trunkline_cluster::{Message, Node, Plan, Rounds, in_rounds};
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, EventId, NodeId};

const NODES: u16 = 4;
const SWEEPS: u32 = 100;

#[derive(Debug)]
struct Line {
    me: u16,
    /// Its numbers, between the last one of the node to the left and the first one of the node to the right.
    numbers: Vec<f64>,
    sweeps: u32,
    leftward: EventId,
}

impl Rounds for Line {
    fn round(&mut self, plan: &mut Plan) {
        if self.sweeps > 0 {
            let mean = |three: &[f64]| three.iter().sum::<f64>() / 3.0;
            let means: Vec<f64> = self.numbers.windows(3).map(mean).collect();
            self.numbers[1..=means.len()].copy_from_slice(&means);
        }
        if self.sweeps < SWEEPS {
            let (left, right) = ((self.me + NODES - 1) % NODES, (self.me + 1) % NODES);
            let (left, right) = (NodeId(left), NodeId(right));
            let octets = |number: f64| Bytes::copy_from_slice(&number.to_be_bytes());
            let (leftward, rightward) = (plan.event(), plan.event());
            plan.send(left, leftward, octets(self.numbers[1]));
            plan.send(right, rightward, octets(self.numbers[self.numbers.len() - 2]));
            plan.receive(right, leftward);
            plan.receive(left, rightward);
            self.leftward = leftward;
            self.sweeps += 1;
        }
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        let octets = message.data.as_ref().try_into().map_err(|_| "not 8 bytes")?;
        let place = if message.event == self.leftward { self.numbers.len() - 1 } else { 0 };
        self.numbers[place] = f64::from_be_bytes(octets);
        Ok(())
    }

    fn verdict(&self) -> Result<(), String> {
        println!("node {}: {:.3?}", self.me, &self.numbers[1..self.numbers.len() - 1]);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster { nodes: NODES, receive_buffers: 64, send_buffers: 64, frame: 4000 };
    let mut nodes = Vec::new();
    for me in 0..NODES {
        let mut numbers = vec![0.0; 7];
        numbers[3] = if me == 0 { 20.0 } else { 0.0 };
        let line = Line { me, numbers, sweeps: 0, leftward: EventId(0) };
        let layer = Careful::new(NodeId(me), &cluster, &CarefulSettings::default())?;
        let program = in_rounds(line, NodeId(me), NODES, cluster.frame);
        nodes.push(Node::new(program, Box::new(layer)));
    }
    for node in Network::default().run(nodes)? {
        node.verdict()?;
    }
    Ok(())
}

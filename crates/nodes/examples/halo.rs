//! Four nodes in a ring smooth a line of numbers; each needs its neighbours' outermost ones.

use trunkline_nodes::{Endpoint, NodesError, in_threads};
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, EventId, NodeId};

const CLUSTER: Cluster = Cluster { nodes: 4, receive_buffers: 64, send_buffers: 64, frame: 4000 };

/// A node's five numbers, between the last one of the node to the left and the first one of the node to the right.
fn smooth(NodeId(me): NodeId, end: &mut Endpoint<'_, Careful>) -> Result<[f64; 7], NodesError> {
    let (left, right) = (NodeId((me + 3) % 4), NodeId((me + 1) % 4));
    let mut line = [0_f64; 7];
    line[3] = if me == 0 { 20.0 } else { 0.0 };
    for sweep in 0..100 {
        let (leftward, rightward) = (EventId(2 * sweep), EventId(2 * sweep + 1));
        end.send_message(left, leftward, line[1].to_be_bytes().to_vec())?;
        end.send_message(right, rightward, line[5].to_be_bytes().to_vec())?;
        line[6] = number(&end.receive_message(right, leftward)?.data);
        line[0] = number(&end.receive_message(left, rightward)?.data);
        let old = line;
        for at in 1..6 {
            line[at] = (old[at - 1] + old[at] + old[at + 1]) / 3.0;
        }
    }
    Ok(line)
}

fn number(octets: &[u8]) -> f64 {
    f64::from_be_bytes(octets.try_into().expect("eight octets"))
}

fn main() -> Result<(), NodesError> {
    let layer = |me| Careful::new(me, &CLUSTER, &CarefulSettings::default());
    for (me, line) in in_threads(&CLUSTER, layer, smooth)?.iter().enumerate() {
        println!("node {me}: {:.3?}", &line[1..6]);
    }
    Ok(())
}

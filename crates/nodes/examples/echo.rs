//! Two nodes on loopback, here as threads: one sends messages over the careful layer, the other sends each back.

use std::sync::atomic::AtomicBool;
use std::thread::scope;
use trunkline_core::Span;
use trunkline_nodes::{Carrier, Endpoint, NodesError, Place, Plan};
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, EventId, NodeId};

const CLUSTER: Cluster = Cluster { nodes: 2, receive_buffers: 16, send_buffers: 16, frame: 1000 };
const MESSAGES: u32 = 1000;

fn run(me: NodeId, carrier: Carrier, stop: &AtomicBool) -> Result<(), NodesError> {
    let audit = Some(Span::from_millis(200));
    let layer =
        Careful::new(me, &CLUSTER, &CarefulSettings { audit, ..CarefulSettings::default() })?;
    let mut end = Endpoint::meet(&Plan::new(me), layer, carrier, stop)?;
    let other = NodeId(1 - me.0);
    for event in (0..MESSAGES).map(EventId) {
        if me == NodeId(0) {
            end.send_message(other, event, event.to_string())?;
            let back = end.receive_message(other, event)?.data;
            assert_eq!(back, event.to_string());
        } else {
            let data = end.receive_message(other, event)?.data;
            end.send_message(other, event, data)?;
        }
    }
    println!("{me}: frames sent and received: {:?}", end.carried());
    Ok(())
}

fn main() -> Result<(), NodesError> {
    let bind = || Carrier::bind(&Place::Udp(([127, 0, 0, 1], 0).into()), 16, CLUSTER.frame);
    let mut both = [bind()?, bind()?];
    let all = vec![both[0].address()?, both[1].address()?];
    both[0].meet(NodeId(0), all.clone())?;
    both[1].meet(NodeId(1), all)?;
    let (stop, [one, other]) = (AtomicBool::new(false), both);
    scope(|scope| {
        let answers = scope.spawn(|| run(NodeId(1), other, &stop));
        run(NodeId(0), one, &stop)?;
        answers.join().expect("no panic")
    })
}

//! Two nodes on loopback, here as threads: one sends messages over the careful layer, the other sends each back.

use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use std::thread::scope;
use std::time::Duration;
use trunkline_core::{Probability, Seed, Span};
use trunkline_nodes::{Carrier, Endpoint, NodesError, Place, Plan};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, EventId, Flags, Fragment, NodeId, Source,
};

const CLUSTER: Cluster = Cluster { nodes: 2, receive_buffers: 16, send_buffers: 16, frame: 1000 };
const MESSAGES: u32 = 1000;

fn run(me: NodeId, carrier: Carrier, stop: &AtomicBool) -> Result<(), NodesError> {
    let audit = Some(Span::from_millis(200));
    let layer =
        Careful::new(me, &CLUSTER, &CarefulSettings { audit, ..CarefulSettings::default() })?;
    let plan = Plan {
        me,
        drop: Probability::NEVER,
        seed: Seed(1),
        poll: Duration::ZERO,
        patience: Duration::from_secs(10),
        silence: Duration::from_secs(30),
    };
    let mut end = Endpoint::meet(&plan, layer, carrier, stop)?;
    let (other, flags) = (NodeId(1 - me.0), Flags { last: true, ..Flags::default() });
    let message = |event, data| {
        let to = Destination::Node(other);
        Fragment { to, event, flags, following: 0, data }
    };
    for event in (0..MESSAGES).map(EventId) {
        if me == NodeId(0) {
            end.send(&message(event, Bytes::from(event.to_string())))?;
            let back = end.receive(Source::Node(other), event)?.data;
            assert_eq!(back, event.to_string());
        } else {
            let data = end.receive(Source::Node(other), event)?.data;
            end.send(&message(event, data))?;
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

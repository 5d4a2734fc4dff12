//! Nodes that ask each other for signs of life, and what is taken for death.

use super::*;
use crate::{Endpoint, Place};
use std::time::Duration;
use trunkline_transport::cstar::{Careful, CarefulSettings, EventId, Source};

const CLUSTER: Cluster = Cluster { nodes: 2, receive_buffers: 16, send_buffers: 16, frame: 1000 };

/// Answers greetings and no frame: as a node that meets, then to the second question behind that as one that has begun.
fn greets(mut carrier: Carrier, stop: &AtomicBool) {
    let (mut begun, mut asked) = (false, 0);
    while !stop.load(Ordering::Relaxed) {
        let came = carrier.receive(Duration::from_millis(20)).unwrap();
        match came.map(|octets| read(&octets)) {
            Some(Heard::Hello { said: Said::Asks, .. }) => {
                asked += u32::from(begun);
                let said = if asked < 2 { Said::All } else { Said::Begun };
                greet(&mut carrier, NodeId(1), NodeId(0), said).unwrap();
            }
            Some(Heard::Hello { said: Said::All, .. }) => begun = true,
            Some(Heard::Gone { .. }) => break,
            _ => {}
        }
    }
    assert_eq!(asked, 2);
}

/// A node that has heard everybody and still meets others answers no frame, and is not out of reach. One that has begun is.
#[test]
fn a_node_that_has_not_begun_is_not_out_of_reach() {
    let layer = || {
        let audit = Some(Span::from_millis(20));
        let settings = CarefulSettings { audit, ..CarefulSettings::default() };
        Careful::new(NodeId(0), &CLUSTER, &settings).unwrap()
    };
    let place = Place::Udp(([127, 0, 0, 1], 0).into());
    let mut both = [(); 2].map(|()| Carrier::bind(&place, 16, 1000).unwrap());
    let all = both.each_ref().map(|it| it.address().unwrap());
    (0..).zip(&mut both).for_each(|(me, it)| it.meet(NodeId(me), all.to_vec()).unwrap());
    let [own, mut other] = both;
    other.agree_also(layer().terms());
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| greets(other, &stop));
        let ended = Endpoint::meet(&Plan::new(NodeId(0)), layer(), own, &stop)
            .and_then(|mut end| end.receive(Source::Node(NodeId(1)), EventId(0)).map(drop));
        stop.store(true, Ordering::Relaxed);
        ended
    });
    assert!(ended.unwrap_err().to_string().contains(PASSES_NOTHING));
}

/// All nodes may share a processor and wait: what they ask in a second grows no faster than their number, and none
/// counts as dead before it was asked some times.
#[test]
fn many_nodes_that_wait_ask_each_other_more_seldom() {
    let silence = Span::from_secs(30);
    assert_eq!([2, 33].map(|nodes| pause(nodes, silence)), [ASKS; 2]);
    for nodes in [100, 250] {
        let asked = (nodes * nodes) as u64 * 1_000_000_000 / pause(nodes, silence).as_nanos();
        assert!(asked <= 34 * nodes as u64, "{nodes}: {asked} in a second");
    }
    for nodes in [250, 10_000] {
        assert!(pause(nodes, silence).scaled(TIMES, 1) <= silence);
    }
    assert_eq!(pause(250, Span::from_secs(2)), ASKS);
}

//! Ends of a message layer that talk, and programs that use them wrongly.

use super::*;
use crate::in_threads;
use crate::threads::each_in_threads;
use std::time::Duration;
use trunkline_core::{Probability, Seed, Span};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Flags, NodeId, Status, Traditional, TraditionalSettings,
};

const CLUSTER: Cluster = Cluster { nodes: 2, receive_buffers: 16, send_buffers: 16, frame: 1000 };
const ROUNDS: u32 = 300;

/// What a node says under an event: three fragments, and nobody says the same.
fn said(NodeId(me): NodeId, event: u32) -> [Bytes; 3] {
    [0, 1, 2].map(|part| Bytes::from(format!("{me} {event} {part}").repeat(50)))
}

fn says<L: Layer>(end: &mut Endpoint<'_, L>, me: NodeId, event: u32) -> Result<(), NodesError> {
    let to = Destination::Node(NodeId(1 - me.0));
    for (data, following) in said(me, event).into_iter().zip((0..3).rev()) {
        let flags = Flags { last: following == 0, crowd: false, large: true };
        end.send(&Fragment { to, event: EventId(event), flags, following, data })?;
    }
    Ok(())
}

fn hears<L: Layer>(end: &mut Endpoint<'_, L>, me: NodeId, event: u32) -> Result<(), NodesError> {
    let from = NodeId(1 - me.0);
    loop {
        let came = end.receive(Source::Node(from), EventId(event))?;
        assert_eq!(came.data, said(from, event)[came.fragment as usize]);
        if came.status != Status::More {
            return Ok(());
        }
    }
}

/// Node 0 asks and node 1 answers; each is four messages ahead at first, more than there are buffers for in one window.
fn talk<L: Layer>(end: &mut Endpoint<'_, L>, me: NodeId) -> Result<(), NodesError> {
    let ahead = 4;
    for event in 0..ROUNDS + ahead {
        if event < ROUNDS {
            says(end, me, event)?;
        }
        if let Some(earlier) = event.checked_sub(ahead) {
            hears(end, me, earlier)?;
        }
    }
    Ok(())
}

/// Runs both ends; each says how it ended. They answer each other until both have heard all.
fn both<L: Layer>(drop: f64, layer: impl Fn(NodeId) -> L) -> Vec<Result<(), String>> {
    let drop = Probability::new(drop).unwrap();
    let patience = Duration::from_secs(30);
    let plan = |me| Plan { drop, seed: Seed(7), patience, ..Plan::new(me) };
    let ended = each_in_threads(&CLUSTER, plan, |me| Ok(layer(me)), |me, end| talk(end, me));
    ended.unwrap().into_iter().map(|it| it.map_err(|why| why.to_string())).collect()
}

/// Times of audits: an end waits with the clock for the shorter, and for the longer it naps first.
const AUDITS: [u64; 2] = [20, 200];

fn careful(millis: u64) -> impl Fn(NodeId) -> Careful {
    let audit = Some(Span::from_millis(millis));
    let settings = CarefulSettings { audit, ..CarefulSettings::default() };
    move |me| Careful::new(me, &CLUSTER, &settings).unwrap()
}

fn traditional(me: NodeId) -> Traditional {
    Traditional::new(me, &CLUSTER, &TraditionalSettings::default()).unwrap()
}

#[test]
fn what_one_end_sends_the_other_receives() {
    for millis in AUDITS {
        assert_eq!(both(0.0, careful(millis)), [Ok(()), Ok(())]);
    }
    assert_eq!(both(0.0, traditional), [Ok(()), Ok(())]);
}

/// Messages of no fragment's bytes, of one and of many, from one node and from all at once, come whole.
#[test]
fn whole_messages_come_whole() {
    let cluster = Cluster { nodes: 3, receive_buffers: 24, send_buffers: 24, ..CLUSTER };
    let said = |from: u16, bytes: usize| vec![from as u8; bytes];
    let run = |NodeId(me): NodeId, end: &mut Endpoint<'_, Careful>| {
        let (left, right) = ((me + 2) % 3, (me + 1) % 3);
        for (event, bytes) in (0..).step_by(2).zip([0, 1, 1000, 1001, 6500]) {
            let (ring, crowd) = (EventId(event), EventId(event + 1));
            end.send_message(NodeId(right), ring, said(me, bytes))?;
            assert_eq!(end.receive_message(NodeId(left), ring)?.data, said(left, bytes));
            end.send_in_crowd(Destination::All, crowd, said(me, bytes))?;
            let mut heard = [NodeId(0); 2];
            for from in &mut heard {
                let message = end.receive_message(Source::Any, crowd)?;
                assert_eq!(message.data, said(message.from.0, bytes));
                *from = message.from;
            }
            heard.sort();
            let others = (0..3).map(NodeId).filter(|it| it.0 != me);
            assert!(others.eq(heard), "{heard:?}");
        }
        Ok(())
    };
    let layer = |me| Careful::new(me, &cluster, &CarefulSettings::default());
    assert_eq!(in_threads(&cluster, layer, run).unwrap().len(), 3);
}

/// The traditional layer mends a loss; the careful one ends both nodes, and says whose frame of which event was lost.
#[test]
fn a_loss_is_mended_or_told_to_both() {
    assert_eq!(both(0.05, traditional), [Ok(()), Ok(())]);
    for millis in AUDITS {
        let ended = both(0.05, careful(millis)).into_iter().map(Result::unwrap_err);
        let told: Vec<bool> = ended
            .map(|why| {
                assert!(why.contains("reliability violated") && why.contains("event"), "{why}");
                why.contains("has failed")
            })
            .collect();
        assert!(told.contains(&false), "nobody found it");
    }
}

/// Both send more than there are buffers for before they receive anything: their calls end, with the remedy.
#[test]
fn a_livelock_is_an_error() {
    let cluster = Cluster { receive_buffers: 4, send_buffers: 8, ..CLUSTER };
    // Frames come often enough for so short a silence, of which ten are waited for; one of a thread that has to wait for a
    // processor is shorter.
    let (timeout, longest_timeout) = (Span::from_millis(5), Span::from_millis(20));
    let settings = TraditionalSettings { timeout, longest_timeout, ..Default::default() };
    let layer = |me| Traditional::new(me, &cluster, &settings);
    let plan = |me| Plan { silence: Duration::from_secs(1), ..Plan::new(me) };
    let program = |NodeId(me): NodeId, end: &mut Endpoint<'_, Traditional>| {
        let (other, mine) =
            (NodeId(1 - me), (0..30).map(|round| EventId(2 * round + u32::from(me))));
        mine.clone().try_for_each(|event| end.send_message(other, event, "much"))?;
        mine.map(|EventId(event)| EventId(event ^ 1))
            .try_for_each(|event| end.receive_message(other, event).map(|_| ()))
    };
    for ended in each_in_threads(&cluster, plan, layer, program).unwrap() {
        let why = ended.unwrap_err().to_string();
        let told = why.contains("livelock: for ") && why.contains("more receive buffers");
        assert!(told, "{why}");
    }
}

/// What the ends of two nodes come to, each with a layer, a carrier and a plan of its own. Node 0 says and hears first.
fn two(
    clusters: [Cluster; 2],
    carriers: [(u32, u32); 2],
    plans: [Plan; 2],
    run: impl Fn(NodeId, &mut Endpoint<'_, Careful>) -> Result<(), NodesError> + Sync,
) -> [String; 2] {
    let place = crate::Place::Udp(([127, 0, 0, 1], 0).into());
    let mut bound = carriers.map(|(buffers, frame)| Carrier::bind(&place, buffers, frame).unwrap());
    let all: Vec<_> = bound.iter().map(|it| it.address().unwrap()).collect();
    for (me, carrier) in (0..).map(NodeId).zip(&mut bound) {
        carrier.meet(me, all.clone()).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut ends = (0..).map(NodeId).zip(bound).zip(clusters).zip(plans);
        let threads = [(); 2].map(|()| {
            let (((me, carrier), cluster), plan) = ends.next().unwrap();
            let (run, stop) = (&run, &stop);
            scope.spawn(move || {
                let layer = Careful::new(me, &cluster, &CarefulSettings::default())?;
                run(me, &mut Endpoint::meet(&plan, layer, carrier, stop)?)
            })
        });
        threads.map(|it| it.join().map_or("panic".into(), told))
    })
}

fn told(ended: Result<(), NodesError>) -> String {
    ended.map_or_else(|why| why.to_string(), |()| "well".into())
}

const CARRIER: (u32, u32) = (CLUSTER.receive_buffers, CLUSTER.frame);

fn plans() -> [Plan; 2] {
    [0, 1].map(|me| Plan { patience: Duration::from_secs(5), ..Plan::new(NodeId(me)) })
}

/// Two nodes whose layers or carriers differ do not begin, and say what differs.
#[test]
fn ends_that_do_not_fit_together_are_told() {
    let echo =
        |me, end: &mut Endpoint<'_, Careful>| says(end, me, 0).and_then(|()| hears(end, me, 0));
    let same = [CLUSTER; 2];
    let fewer = Cluster { receive_buffers: 6, ..CLUSTER };
    let shorter = Cluster { frame: 500, ..CLUSTER };
    let more = Cluster { nodes: 3, ..CLUSTER };
    let of = |it: &Cluster| (it.receive_buffers, it.frame);
    let cases = [
        ([CLUSTER, fewer], [CARRIER, of(&fewer)], plans(), "receive buffers = 6, and this node 16"),
        ([CLUSTER, shorter], [CARRIER, of(&shorter)], plans(), "bytes of a frame = 500, and this"),
        (same, [CARRIER, (6, 1000)], plans(), "receive buffers: 16, and the carrier 6"),
        (same, [CARRIER, (16, 500)], plans(), "bytes of a frame: 1000, and the carrier 500"),
        ([CLUSTER, more], [CARRIER; 2], plans(), "nodes: 3, and the carrier 2"),
        (same, [CARRIER; 2], [plans()[0]; 2], "node 0 by its plan, node 1 to its message layer"),
    ];
    for (clusters, carriers, plans, why) in cases {
        // The other waits for it in vain, or hears of it.
        let plans = plans.map(|plan| Plan { patience: Duration::from_millis(500), ..plan });
        let ended = two(clusters, carriers, plans, echo);
        assert!(ended.iter().any(|it| it.contains(why)), "{why}: {ended:?}");
        assert!(!ended.contains(&"well".into()), "{why}: {ended:?}");
    }
    assert_eq!(two(same, [CARRIER; 2], plans(), echo), ["well", "well"]);
}

/// A program that names a node which is none, or itself, or sends a fragment that no frame holds, ends at once; the other
/// hears of it.
#[test]
fn what_cannot_be_sent_or_received_is_told_to_both() {
    let flags = Flags { last: true, crowd: false, large: false };
    let long = Fragment {
        to: NodeId(1).into(),
        event: EventId(0),
        flags,
        following: 0,
        data: Bytes::from(vec![0; 1001]),
    };
    type Wrong<'a> = &'a (dyn Fn(&mut Endpoint<'_, Careful>) -> Result<(), NodesError> + Sync);
    let stranger = |node| format!("node {node} is no peer of node 0, one of 2 nodes");
    let cases: [(Wrong<'_>, String); 7] = [
        (&|end| end.send_message(NodeId(7), EventId(0), "x"), stranger(7)),
        (&|end| end.send_message(NodeId(0), EventId(0), "x"), stranger(0)),
        (&|end| end.send_message(NodeId(7), EventId(0), vec![0; 9000]), stranger(7)),
        (&|end| end.receive_message(NodeId(7), EventId(0)).map(drop), stranger(7)),
        (&|end| end.receive_message(NodeId(0), EventId(0)).map(drop), stranger(0)),
        (&|end| end.send(&long), "a fragment of 1001 bytes is longer than the 1000".into()),
        (
            &|end| end.queue(long.clone()).and_then(|()| end.flush()),
            "of 1001 bytes is longer".into(),
        ),
    ];
    for (wrong, why) in cases {
        let ended = two([CLUSTER; 2], [CARRIER; 2], plans(), |me, end| match me {
            NodeId(0) => wrong(end),
            _ => end.receive_message(NodeId(0), EventId(0)).map(drop),
        });
        assert!(ended[0].contains(&why), "{why}: {ended:?}");
        assert!(ended[1].starts_with("node 0 has failed") && ended[1].contains(&why), "{ended:?}");
    }
}

/// What is queued goes when a program ends, whether or not it answers on.
#[test]
fn what_is_queued_is_not_lost_at_the_end() {
    let queues = |me, end: &mut Endpoint<'_, Careful>| match me {
        NodeId(0) => fragments(NodeId(1).into(), EventId(0), false, vec![7; 2500].into(), 1000)
            .try_for_each(|it| end.queue(it)),
        _ => {
            let came = end.receive_message(NodeId(0), EventId(0))?;
            assert_eq!(came.data, vec![7; 2500]);
            Ok(())
        }
    };
    assert_eq!(two([CLUSTER; 2], [CARRIER; 2], plans(), queues), ["well", "well"]);
    let layer = |me| Careful::new(me, &CLUSTER, &CarefulSettings::default());
    in_threads(&CLUSTER, layer, queues).unwrap();
}

/// A program that panics is not waited for.
#[test]
fn a_panic_is_told_to_the_others() {
    let ended = two([CLUSTER; 2], [CARRIER; 2], plans(), |me, end| {
        assert_ne!(me, NodeId(0));
        end.receive_message(NodeId(0), EventId(0)).map(drop)
    });
    assert_eq!(ended, ["panic", "node 0 has failed: its program has panicked"]);
}

/// Several nodes that send under one event which is no crowd, and too many events at once, are named.
#[test]
fn what_breaks_the_rules_for_programs_is_named() {
    let cluster = Cluster { nodes: 3, receive_buffers: 24, ..CLUSTER };
    let layer = |me| Traditional::new(me, &cluster, &TraditionalSettings::default());
    let ended = in_threads(&cluster, layer, |me, end| {
        let receive = |end: &mut Endpoint<'_, _>, from: Source, event| {
            end.receive_message(from, EventId(event)).map(drop)
        };
        match me {
            NodeId(0) => {
                receive(end, Source::Any, 0)?;
                end.send_message(NodeId(2), EventId(1), "it has come")?;
                return receive(end, Source::Any, 0);
            }
            // What it sends comes when the event is done with.
            NodeId(2) => receive(end, NodeId(0).into(), 1)?,
            _ => {}
        }
        end.send_message(NodeId(0), EventId(0), "mine")
    });
    let why = ended.unwrap_err().to_string();
    let named = why.contains("has received all of event 0") && why.contains("in a crowd only");
    assert!(named, "{why}");

    let layer = |me| Careful::new(me, &CLUSTER, &CarefulSettings::default());
    let ended = in_threads(&CLUSTER, layer, |me, end| {
        let other = NodeId(1 - me.0);
        (0..5000).try_for_each(|event| end.send_message(other, EventId(event), "x"))?;
        end.receive_message(other, EventId(0)).map(drop)
    });
    let why = ended.unwrap_err().to_string();
    assert!(why.contains("4096 events wait to be received"), "{why}");
}

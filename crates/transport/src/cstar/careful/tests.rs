//! A careful node by itself, and two that talk.

use super::*;
use crate::cstar::Flags;
use bytes::Bytes;

pub(super) const AT: Time = Time::ZERO;

pub(super) fn cluster(nodes: u16, receive_buffers: u32) -> Cluster {
    Cluster { nodes, receive_buffers, send_buffers: 128, frame: 8000 }
}

fn node(me: u16, nodes: u16, buffers: u32) -> Careful {
    Careful::new(NodeId(me), &cluster(nodes, buffers), &CarefulSettings::default()).unwrap()
}

pub(super) fn fragment(to: Destination, event: u32) -> Fragment {
    let flags = Flags { last: true, ..Flags::default() };
    let data = Bytes::from_static(b"data");
    Fragment { to, event: EventId(event), flags, following: 0, data }
}

pub(super) fn to(node: u16) -> Destination {
    Destination::Node(NodeId(node))
}

/// Appendix A: sending a fragment takes 42 cycles beyond what both protocols do, its interrupt 109.
#[test]
fn a_fragment_costs_what_the_appendix_says() {
    let (mut one, mut other) = (node(0, 2, 128), node(1, 2, 128));
    one.send(AT, fragment(to(1), 0)).unwrap();
    assert_eq!(one.take_tally().cycles(), 42);
    other.arrive(AT, one.transmit(AT).unwrap());
    assert_eq!(other.take_tally().cycles(), 109);
}

#[test]
fn the_window_is_a_share_of_the_buffers() {
    for (nodes, window) in [(2, 64), (4, 32), (8, 16), (42, 3)] {
        assert_eq!(node(0, nodes, 128).window(), window);
    }
    let refused = Careful::new(NodeId(0), &cluster(43, 128), &CarefulSettings::default());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("window of 2") && text.contains("give 129 buffers"), "{text}");
}

/// Who grants at half a window must not be owed that by a single update: windows of 3, which others have, are too small.
#[test]
fn windows_are_of_four_if_updates_come_at_half() {
    let of = |nodes, buffers, grid, lease: Option<u64>| {
        let lease = lease.map(trunkline_core::Span::from_millis);
        let settings = CarefulSettings { at_half: true, grid, lease, ..CarefulSettings::default() };
        Careful::new(NodeId(0), &cluster(nodes, buffers), &settings)
    };
    for lease in [None, Some(1)] {
        let text = of(2, 7, None, lease).unwrap_err().to_string();
        assert!(text.contains("window of 3") && text.contains("give 8 buffers"), "{text}");
        assert_eq!(of(2, 8, None, lease).unwrap().window(), 4);
    }
    assert!(of(4, 7, Some(2), None).unwrap_err().to_string().contains("give at least 8"));
    assert_eq!(of(4, 8, Some(2), None).unwrap().peers[NodeId(1)].window, 4);
}

/// The last credit is kept for an update; what the application has done with opens the window again.
#[test]
fn a_window_is_never_closed_by_data_and_is_opened_by_an_update() {
    let (mut one, mut other) = (node(0, 2, 8), node(1, 2, 8));
    for event in 0..3 {
        one.send(AT, fragment(to(1), event)).unwrap();
        other.arrive(AT, one.transmit(AT).unwrap());
    }
    let blocked = one.send(AT, fragment(to(1), 3)).unwrap_err();
    assert!(matches!(blocked, Blocked::Window(_, NodeId(1))));
    // Half the window is used up, so that what waits is copied out and an update comes before anything is received.
    let update = other.transmit(AT).unwrap();
    assert_eq!((update.kind, update.grant), (Kind::Update, 3));
    one.arrive(AT, update);
    one.send(AT, fragment(to(1), 3)).unwrap();
    for event in 0..3 {
        assert_eq!(other.receive(AT, Source::Any, EventId(event)).unwrap().buffer, None);
    }
}

/// What is copied out leaves the memory in which it came: others may share that.
#[test]
fn what_is_copied_out_is_in_memory_of_its_own() {
    let (mut one, mut other) = (node(0, 2, 8), node(1, 2, 8));
    let block = Bytes::from(b"datadatadata".to_vec());
    for event in 0..3 {
        let data = block.slice(4 * event..4 * event + 4);
        one.send(AT, Fragment { data, ..fragment(to(1), event as u32) }).unwrap();
        other.arrive(AT, one.transmit(AT).unwrap());
    }
    assert!(block.is_unique(), "it is still part of what waits");
    for event in 0..3 {
        let delivery = other.receive(AT, Source::Any, EventId(event)).unwrap();
        assert_eq!((&delivery.data[..], delivery.buffer), (&b"data"[..], None));
    }
}

#[test]
fn a_frame_for_all_takes_the_least_grant_along() {
    let mut nodes: Vec<Careful> = (0..3).map(|me| node(me, 3, 18)).collect();
    let frames: Vec<Frame> = [(1, 2), (2, 1)]
        .into_iter()
        .flat_map(|(from, count)| {
            let sender: &mut Careful = &mut nodes[from];
            (0..count).for_each(|event| sender.send(AT, fragment(to(0), event)).unwrap());
            std::iter::from_fn(|| sender.transmit(AT)).collect::<Vec<_>>()
        })
        .collect();
    for frame in frames {
        let event = frame.event;
        nodes[0].arrive(AT, frame);
        let delivery = nodes[0].receive(AT, Source::Any, event).unwrap();
        nodes[0].release(AT, delivery.buffer.unwrap());
    }
    nodes[0].send(AT, fragment(Destination::All, 9)).unwrap();
    assert_eq!(nodes[0].transmit(AT).unwrap().grant, 1);
    let owed: Vec<u32> = nodes[0].peers.values().map(|peer| peer.owed).collect();
    assert_eq!(owed, [1, 0]);
}

#[test]
fn a_lost_frame_is_reported_and_what_follows_is_not_delivered() {
    let (mut one, mut other) = (node(0, 2, 32), node(1, 2, 32));
    (0..2).for_each(|event| one.send(AT, fragment(to(1), event)).unwrap());
    let _lost = one.transmit(AT).unwrap();
    other.arrive(AT, one.transmit(AT).unwrap());
    let (peer, event) = (NodeId(0), EventId(1));
    assert_eq!(other.failure(), Some(&Failure::Lost { peer, event, missing: 1 }));
    assert_eq!(other.receive(AT, Source::Any, EventId(1)), None);
}

#[test]
fn a_frame_that_comes_twice_is_reported() {
    let (mut one, mut other) = (node(0, 2, 32), node(1, 2, 32));
    one.send(AT, fragment(to(1), 0)).unwrap();
    let frame = one.transmit(AT).unwrap();
    other.arrive(AT, frame.clone());
    other.arrive(AT, frame);
    assert!(matches!(other.failure(), Some(Failure::Disordered { .. })));
}

/// Nothing follows the frame that is lost: the one who waits asks, and the answer tells.
#[test]
fn the_loss_of_the_last_frame_is_found_by_an_audit() {
    for destination in [to(1), Destination::All] {
        let settings = CarefulSettings {
            audit: Some(trunkline_core::Span::from_millis(100)),
            ..Default::default()
        };
        let new = |me| Careful::new(NodeId(me), &cluster(2, 32), &settings).unwrap();
        let (mut one, mut other) = (new(0), new(1));
        one.send(AT, fragment(destination, 0)).unwrap();
        let _lost = one.transmit(AT).unwrap();
        assert_eq!(other.receive(AT, Source::Node(NodeId(0)), EventId(0)), None);
        let at = other.deadline().unwrap();
        other.expire(at);
        one.arrive(at, other.transmit(at).unwrap());
        other.arrive(at, one.transmit(at).unwrap());
        assert!(matches!(other.failure(), Some(Failure::Lost { peer: NodeId(0), missing: 1, .. })));
    }
}

/// Instants of the questions to node 0 until `end`, of a node that waits for it and is answered at once.
fn questions(asks: &mut Careful, answers: &mut Careful, end: Time) -> Vec<Time> {
    let mut instants = Vec::new();
    while let Some(at) = asks.deadline().filter(|at| *at < end && instants.len() < 1000) {
        asks.expire(at);
        while let Some(question) = asks.transmit(at) {
            instants.push(at);
            answers.arrive(at, question);
        }
        while let Some(answer) = answers.transmit(at) {
            asks.arrive(at, answer);
        }
    }
    instants
}

/// Who answers but says nothing else is asked less and less, at least once a second; who speaks, as often as at first.
#[test]
fn a_silent_peer_is_asked_less_and_less() {
    let audit = Span::from_micros(30);
    let settings = CarefulSettings { audit: Some(audit), ..CarefulSettings::default() };
    let new = |me| Careful::new(NodeId(me), &cluster(2, 32), &settings).unwrap();
    let (mut one, mut other) = (new(0), new(1));
    assert_eq!(other.receive(AT, Source::Node(NodeId(0)), EventId(1)), None);
    let end = AT + Span::from_secs(10);
    let asked = questions(&mut other, &mut one, end);
    assert_eq!(asked[..4], [1, 2, 4, 8].map(|times| AT + audit.scaled(times, 1)));
    assert!((24..=27).contains(&asked.len()), "{}", asked.len());
    let apart = asked.windows(2).map(|two| two[1].since(two[0])).max();
    assert_eq!(apart, Some(Span::from_secs(1)));
    // Another event: the program goes on waiting.
    one.send(end, fragment(to(1), 0)).unwrap();
    other.arrive(end, one.transmit(end).unwrap());
    assert_eq!(other.deadline(), Some(end + audit));
    assert_eq!(questions(&mut other, &mut one, end + audit.scaled(5, 1)).len(), 3);
}

/// Nodes that pass questions on do not ask each other for ever, however long these are under way.
#[test]
fn questions_that_are_passed_on_come_to_rest() {
    let audit = Some(Span::from_micros(30));
    let settings = CarefulSettings { audit, grid: Some(2), ..CarefulSettings::default() };
    let mut nodes: Vec<Careful> =
        (0..4).map(|me| Careful::new(NodeId(me), &cluster(4, 6), &settings).unwrap()).collect();
    let mut now = AT + Span::from_micros(30);
    nodes[0].wait(AT, Source::Any, EventId(0));
    nodes[0].expire(now);
    let mut asked = 0;
    for _ in 0..1000 {
        let sent = |node: &mut Careful| std::iter::from_fn(|| node.transmit(now)).collect();
        let under_way: Vec<Vec<Frame>> = nodes.iter_mut().map(sent).collect();
        now += Span::from_micros(100);
        for frame in under_way.into_iter().flatten() {
            asked += u32::from(frame.wants_ack);
            let Destination::Node(to) = frame.to else { panic!("{frame:?}") };
            nodes[usize::from(to.0)].arrive(now, frame);
        }
    }
    // In 0.1 s each of eight pairs, both ways, but for the first some twelve times at most.
    assert!((8..100).contains(&asked), "{asked}");
}

#[test]
fn a_peer_that_sends_more_than_it_may_is_reported() {
    let (mut one, mut other) = (node(0, 2, 8), node(1, 2, 8));
    one.send(AT, fragment(to(1), 0)).unwrap();
    let frame = one.transmit(AT).unwrap();
    for counter in 0..5 {
        other.arrive(AT, Frame { counter, event: EventId(counter), ..frame.clone() });
    }
    let (peer, event) = (NodeId(0), EventId(4));
    assert_eq!(other.failure(), Some(&Failure::Overrun { peer, event }));
}

/// A node of a square of four.
fn in_square(me: u16, buffers: u32) -> Careful {
    let settings = CarefulSettings { grid: Some(2), ..CarefulSettings::default() };
    Careful::new(NodeId(me), &cluster(4, buffers), &settings).unwrap()
}

/// What is for the node across goes over one between, which keeps it in its buffer until the next window is open, lets what
/// passes go before its own, and has nothing of it in the end.
#[test]
fn a_node_hands_on_what_is_for_another() {
    let mut nodes: Vec<Careful> = (0..4).map(|me| in_square(me, 6)).collect();
    let mut sent = 0;
    for event in 0..2 {
        nodes[0].send(AT, fragment(to(3), event)).unwrap();
        let frame = nodes[0].transmit(AT).unwrap();
        assert_eq!((frame.to, frame.target()), (to(2), to(3)));
        nodes[2].arrive(AT, frame);
        let frame = nodes[2].transmit(AT).unwrap();
        assert_eq!((frame.from, frame.to, frame.origin()), (NodeId(2), to(3), NodeId(0)));
        nodes[3].arrive(AT, frame);
        sent += 1;
    }
    assert_eq!((sent, nodes[2].memory().receive, nodes[2].peers[NodeId(0)].owed), (2, 0, 2));
    let update = nodes[2].transmit(AT).unwrap();
    nodes[0].arrive(AT, update);
    // The window of node 3 is closed to data: what comes now waits, and so does what node 2 would send.
    nodes[0].send(AT, fragment(to(3), 2)).unwrap();
    let frame = nodes[0].transmit(AT).unwrap();
    nodes[2].arrive(AT, frame);
    assert_eq!((nodes[2].transmit(AT), nodes[2].memory().receive), (None, 1));
    let blocked = nodes[2].send(AT, fragment(to(3), 9)).unwrap_err();
    assert!(matches!(blocked, Blocked::Window(_, NodeId(3))));
    let update = nodes[3].transmit(AT).unwrap();
    nodes[2].arrive(AT, update);
    let frame = nodes[2].transmit(AT).unwrap();
    assert_eq!((frame.event, frame.origin()), (EventId(2), NodeId(0)));
    assert_eq!(nodes[2].memory().receive, 0);
    nodes[3].arrive(AT, frame);
    for event in 0..3 {
        let delivery = nodes[3].receive(AT, Source::Node(NodeId(0)), EventId(event)).unwrap();
        assert_eq!((delivery.from, &delivery.data[..]), (NodeId(0), &b"data"[..]));
    }
}

/// What is lost between two others is found out by who waits for it: its question is passed on.
#[test]
fn a_loss_on_the_way_is_found_by_an_audit() {
    let audit = Some(trunkline_core::Span::from_millis(100));
    let settings = CarefulSettings { grid: Some(2), audit, ..CarefulSettings::default() };
    let new = |me| Careful::new(NodeId(me), &cluster(4, 6), &settings).unwrap();
    let (mut one, mut between, mut other) = (new(0), new(2), new(3));
    one.send(AT, fragment(to(3), 0)).unwrap();
    let _lost = one.transmit(AT).unwrap();
    assert_eq!(other.receive(AT, Source::Node(NodeId(0)), EventId(0)), None);
    let at = other.deadline().unwrap();
    other.expire(at);
    let asks: Vec<Frame> = std::iter::from_fn(|| other.transmit(at)).collect();
    let ask = asks.into_iter().find(|frame| frame.to == to(2)).unwrap();
    between.arrive(at, ask);
    let asks: Vec<Frame> = std::iter::from_fn(|| between.transmit(at)).collect();
    let ask = asks.into_iter().find(|frame| frame.to == to(0)).unwrap();
    one.arrive(at, ask);
    let answers: Vec<Frame> = std::iter::from_fn(|| one.transmit(at)).collect();
    let answer = answers.into_iter().find(|frame| frame.to == to(2) && frame.again).unwrap();
    between.arrive(at, answer);
    assert!(matches!(between.failure(), Some(Failure::Lost { peer: NodeId(0), missing: 1, .. })));
}

#[test]
fn a_grid_that_cannot_be_is_refused() {
    let of = |grid, lease, buffers| {
        let lease = Some(trunkline_core::Span::from_millis(1)).filter(|_| lease);
        let settings = CarefulSettings { grid: Some(grid), lease, ..CarefulSettings::default() };
        Careful::new(NodeId(0), &cluster(12, buffers), &settings).unwrap_err().to_string()
    };
    assert!(of(5, false, 128).contains("12 nodes do not stand in rows of 5"));
    // Of a row of 4: before, behind, and across; of a column of 3: above and below.
    assert!(of(4, false, 14).contains("14 receive buffers are too few: give at least 15"));
    assert!(of(4, true, 128).contains("give 'grid', or 'lease' and 'reserve'"));
}

/// The frames come once and in order: it is no fault of the network.
#[test]
fn a_second_message_under_an_event_is_its_senders_fault() {
    let (mut one, mut other) = (node(0, 2, 32), node(1, 2, 32));
    for _ in 0..2 {
        one.send(AT, fragment(to(1), 3)).unwrap();
    }
    while let Some(frame) = one.transmit(AT) {
        other.arrive(AT, frame);
    }
    let told = other.failure().expect("it is seen").to_string();
    assert!(told.contains("two messages") && !told.contains("reliability"), "{told}");
}

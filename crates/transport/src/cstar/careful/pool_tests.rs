//! Loans and reservations: what a node gets beyond the least window, and that the pool comes back whole.

use super::tests::{AT, cluster, fragment, to};
use super::*;
use crate::cstar::Flags;
use crate::cstar::careful::peer::Peer;
use crate::cstar::careful::reserve::MOST_ASKED;
use trunkline_core::Span;

const LEASE: Span = Span::from_millis(1);

/// Ten nodes of 128 buffers: windows of 3, and a pool of 98.
fn lender(me: u16) -> Careful {
    let settings = CarefulSettings { lease: Some(LEASE), ..CarefulSettings::default() };
    Careful::new(NodeId(me), &cluster(10, 128), &settings).unwrap()
}

/// Frames that a peer may have on the way, here, or in hand.
fn allowance(node: &Careful, peer: u16) -> u32 {
    let peer = node.peers.get(NodeId(peer));
    node.window + peer.map_or(0, |peer| peer.lent + peer.reserved)
}

/// Sends as many fragments as `one` may, from this event on, takes them, and lets `other` answer. How many they were.
fn burst(now: Time, one: &mut Careful, other: &mut Careful, first: u32) -> u32 {
    let may = (0..200).take_while(|it| one.send(now, fragment(to(0), first + it)).is_ok()).count();
    std::iter::from_fn(|| one.transmit(now)).for_each(|frame| other.arrive(now, frame));
    for event in first..first + may as u32 {
        let delivery = other.receive(now, Source::Any, EventId(event)).unwrap();
        if let Some(buffer) = delivery.buffer {
            other.release(now, buffer);
        }
    }
    std::iter::from_fn(|| other.transmit(now)).for_each(|frame| one.arrive(now, frame));
    may as u32
}

/// Who talks alone is lent the whole pool; when it has been silent for two leases all of it is back.
#[test]
fn who_talks_alone_gets_the_pool_and_gives_it_back() {
    let (mut one, mut other) = (lender(1), lender(0));
    let mut event = 0;
    let bursts: Vec<u32> = (0..12)
        .map(|_| {
            let sent = burst(AT, &mut one, &mut other, event);
            event += sent;
            sent
        })
        .collect();
    // The last credit of the window of 3 is kept for an update.
    assert_eq!(bursts[0], 2);
    assert!(bursts.is_sorted() && *bursts.last().unwrap() > 64, "{bursts:?}");
    assert_eq!((allowance(&other, 1), other.loans.unwrap().free), (3 + 98, 0));

    let mut now = AT;
    for _ in 0..12 {
        now += LEASE;
        for node in [&mut one, &mut other] {
            if node.deadline().is_some_and(|at| at <= now) {
                node.expire(now);
            }
        }
        std::iter::from_fn(|| one.transmit(now)).for_each(|frame| other.arrive(now, frame));
        std::iter::from_fn(|| other.transmit(now)).for_each(|frame| one.arrive(now, frame));
    }
    assert_eq!((allowance(&other, 1), other.loans.unwrap().free), (3, 98));
    // Nothing is due any more: who is idle says nothing.
    assert_eq!((one.deadline(), other.deadline()), (None, None));
    // A window of 3 again, of which one may be owed still: that alone is no reason for an update.
    assert!((1..3).contains(&burst(now, &mut one, &mut other, event)));
    assert_eq!((one.failure(), other.failure()), (None, None));
}

/// Two that talk by turns come to share the pool; a third that says nothing has its window of 3, and no more.
#[test]
fn the_pool_is_shared_by_those_who_talk() {
    let (mut one, mut two, mut other) = (lender(1), lender(2), lender(0));
    let mut events = 0;
    for _ in 0..40 {
        for talker in [&mut one, &mut two] {
            events += burst(AT, talker, &mut other, events);
        }
    }
    let [first, second, silent] = [1, 2, 3].map(|node| allowance(&other, node));
    assert!(first.min(second) > 3 + 98 / 4, "{first} {second}");
    assert_eq!((silent, first + second - 6 + other.loans.unwrap().free), (3, 98));
}

/// Ten nodes of 128 buffers, which reserve for messages of four fragments or more.
fn reserver(me: u16) -> Careful {
    let settings = CarefulSettings { reserve: Some(4), ..CarefulSettings::default() };
    Careful::new(NodeId(me), &cluster(10, 128), &settings).unwrap()
}

/// The fragments of an event that `one` may send to node 0 of `count`, from this one on. How many they were.
fn send(one: &mut Careful, event: u32, from: u32, count: u32) -> u32 {
    let part = |number: u32| Fragment {
        flags: Flags { last: number + 1 == count, ..Flags::default() },
        following: count - number - 1,
        ..fragment(to(0), event)
    };
    (from..count).take_while(|&number| one.send(AT, part(number)).is_ok()).count() as u32
}

/// Carries what each says to the other. The frames of the first.
fn carry(one: &mut Careful, other: &mut Careful) -> Vec<Frame> {
    let said: Vec<Frame> = std::iter::from_fn(|| one.transmit(AT)).collect();
    said.iter().for_each(|frame| other.arrive(AT, frame.clone()));
    std::iter::from_fn(|| other.transmit(AT)).for_each(|frame| one.arrive(AT, frame));
    said
}

/// The application receives all that has come of an event.
fn receive(node: &mut Careful, event: u32) -> usize {
    let taken = std::iter::from_fn(|| node.receive(AT, Source::Any, EventId(event)));
    let buffers: Vec<Option<BufferId>> = taken.map(|delivery| delivery.buffer).collect();
    buffers.iter().flatten().for_each(|&buffer| node.release(AT, buffer));
    buffers.len()
}

/// One question, and then all goes at once; a message below the limit asks nothing.
#[test]
fn a_large_message_asks_once_and_then_has_room() {
    let (mut one, mut other) = (reserver(1), reserver(0));
    assert_eq!(send(&mut one, 0, 0, 3), 2);
    assert_eq!(carry(&mut one, &mut other).iter().map(|frame| frame.asks).max(), Some(0));
    let (mut one, mut other) = (reserver(1), reserver(0));
    // The question and one fragment: of three credits the last is kept.
    assert_eq!(send(&mut one, 0, 0, 20), 1);
    let asks: Vec<u32> = carry(&mut one, &mut other).iter().map(|frame| frame.asks).collect();
    assert_eq!(asks, [20 + 2 - 3, 0]);
    assert_eq!(other.peers[NodeId(1)].reserved, 19 - 1, "the question itself is done with");
    assert_eq!(send(&mut one, 0, 1, 20), 19);
    assert!(carry(&mut one, &mut other).iter().all(|frame| frame.asks == 0));
    assert_eq!(receive(&mut other, 0), 20);
    carry(&mut other, &mut one);
    assert_eq!((allowance(&other, 1), other.loans.unwrap().free), (3, 98));
    assert_eq!((one.failure(), other.failure()), (None, None));
}

/// Carries what the nodes say until none says anything. They are numbered by their places.
fn settle(nodes: &mut [Careful]) {
    while let Some(frame) = nodes.iter_mut().find_map(|node| node.transmit(AT)) {
        let Destination::Node(NodeId(to)) = frame.to else { panic!("nothing is for all") };
        nodes[usize::from(to)].arrive(AT, frame);
    }
}

/// Who asks first is served first, and the next one when the pool has room again.
#[test]
fn large_messages_are_served_in_the_order_of_asking() {
    let mut nodes = [reserver(0), reserver(1), reserver(2)];
    assert_eq!((send(&mut nodes[1], 0, 0, 98), send(&mut nodes[2], 1, 0, 50)), (1, 1));
    for asker in [1, 2] {
        let frame = nodes[asker].transmit(AT).unwrap();
        nodes[0].arrive(AT, frame);
    }
    let reserved = |nodes: &[Careful], node| nodes[0].peers[NodeId(node)].reserved;
    // The question itself is done with.
    assert_eq!((reserved(&nodes, 1), reserved(&nodes, 2)), (97 - 1, 0));
    settle(&mut nodes);
    // An update of its own may have taken one credit more.
    let sent = 1 + send(&mut nodes[1], 0, 1, 98);
    assert!(sent >= 97 && reserved(&nodes, 2) == 0, "{sent}");
    // What comes and is not received would close the window: it is copied to memory, and its buffers serve the other.
    settle(&mut nodes);
    assert!(reserved(&nodes, 2) > 24, "{}", reserved(&nodes, 2));
    assert_eq!(sent + send(&mut nodes[1], 0, sent, 98), 98);
    settle(&mut nodes);
    assert_eq!(receive(&mut nodes[0], 0), 98);
    settle(&mut nodes);
    assert_eq!(send(&mut nodes[2], 1, 1, 50), 49);
    settle(&mut nodes);
    assert_eq!(receive(&mut nodes[0], 1), 50);
    settle(&mut nodes);
    assert_eq!(nodes[0].loans.unwrap().free, 98);
}

/// Room that comes when the message has gone within the window is given back at once.
#[test]
fn room_that_is_not_needed_is_given_back() {
    let (mut one, mut other) = (reserver(1), reserver(0));
    assert_eq!(send(&mut one, 0, 0, 8), 1);
    // The program gives up its message: another one ends.
    assert_eq!(send(&mut one, 1, 0, 1), 0);
    let said = carry(&mut one, &mut other);
    assert_eq!(said[0].asks, 8 + 2 - 3);
    assert_eq!(send(&mut one, 1, 0, 1), 1);
    let back: u32 = carry(&mut one, &mut other).iter().map(|frame| u32::from(frame.back)).sum();
    assert!(back > 0);
    assert_eq!((receive(&mut other, 0), receive(&mut other, 1)), (1, 1));
    carry(&mut other, &mut one);
    assert_eq!(other.loans.unwrap().free, 98);
    assert_eq!((one.failure(), other.failure()), (None, None));
}

/// A peer that asks where nothing is reserved, or for more than any message has, breaks the protocol.
#[test]
fn who_asks_beyond_reason_is_reported() {
    let mut asker = reserver(1);
    send(&mut asker, 0, 0, 20);
    let frame = asker.transmit(AT).unwrap();
    let mut fixed =
        Careful::new(NodeId(0), &cluster(10, 128), &CarefulSettings::default()).unwrap();
    fixed.arrive(AT, frame.clone());
    assert!(matches!(fixed.failure(), Some(Failure::Protocol { peer: NodeId(1), .. })));
    let mut other = reserver(0);
    other.arrive(AT, Frame { asks: MOST_ASKED + 1, ..frame });
    assert!(matches!(other.failure(), Some(Failure::Protocol { peer: NodeId(1), .. })));
}

/// However much room a message had, a peer that may send no more data gets an update, although nothing is received: frames
/// are copied out until its window opens again. What goes back to the pool opens none.
#[test]
fn a_window_opens_again_behind_what_was_reserved() {
    let mut one = reserver(1);
    one.send(AT, fragment(to(0), 1)).unwrap();
    let frame = one.transmit(AT).unwrap();
    for (reserved, owed) in (0..40).flat_map(|reserved| [(reserved, 0), (reserved, 1)]) {
        // It has two credits; what it does not have and is not owed is held.
        let held = 3 + reserved - 2 - owed;
        let mut node = reserver(0);
        *node.peer(NodeId(1)) = Peer { theirs: 2, reserved, owed, expected: held, ..Peer::new(3) };
        for fragment in 0..held {
            let buffer = Some(node.take_buffer(NodeId(1), 1));
            let data = Bytes::from_static(b"kept");
            let stored = Stored { from: NodeId(1), fragment, data, buffer };
            node.inbox.put(EventId(0), Flags::default(), stored);
        }
        node.arrive(AT, Frame { counter: held, ..frame.clone() });
        assert_eq!(node.failure(), None);
        let update = node.transmit(AT);
        assert!(update.is_some_and(|it| it.grant > 1), "{reserved} reserved, {owed} owed");
    }
}

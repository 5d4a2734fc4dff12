//! Carriers on loopback, between devices, and over groups.

use super::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use trunkline_netns::{End, IpNet, Namespace, create_veth};
use trunkline_skip::skipped;
use trunkline_transport::cstar::{Entry, EventId, Flags, Kind};

fn on_loopback(buffers: u32, payload: u32) -> Result<Carrier, NodesError> {
    Carrier::bind(&Place::Udp(([127, 0, 0, 1], 0).into()), buffers, payload)
}

/// Two carriers that know each other as nodes 0 and 1.
fn met(mut one: Carrier, mut other: Carrier) -> (Carrier, Carrier) {
    let peers = vec![one.address().unwrap(), other.address().unwrap()];
    one.meet(NodeId(0), peers.clone()).unwrap();
    other.meet(NodeId(1), peers).unwrap();
    (one, other)
}

/// Two carriers on the ends of a pair of devices of 9000 bytes.
fn on_ethernet(buffers: u32, payload: u32) -> Option<(Carrier, Carrier)> {
    let spaces = [Namespace::create(), Namespace::create()];
    let [Ok(here), Ok(there)] = spaces else {
        skipped("cannot make network namespaces: run as root");
        return None;
    };
    create_veth(&End::new(&here, "tla"), &End::new(&there, "tlb"), 9000).unwrap();
    let open = |space: &Namespace, device: &str| {
        let place = Place::Device(device.into());
        space.run(|| Carrier::bind(&place, buffers, payload)).unwrap().unwrap()
    };
    Some(met(open(&here, "tla"), open(&there, "tlb")))
}

/// Two carriers of datagrams on the ends of a pair of devices with this MTU.
fn over_ip(mtu: u32, buffers: u32, payload: u32) -> (Carrier, Carrier) {
    let [here, there] = [(); 2].map(|()| Namespace::create().unwrap());
    create_veth(&End::new(&here, "tla"), &End::new(&there, "tlb"), mtu).unwrap();
    let open = |space: &Namespace, device: &str, last: u8| {
        let address = Ipv4Addr::new(10, 77, 0, last);
        space.add_address(device, IpNet::new(address, 24).unwrap()).unwrap();
        let place = Place::Udp((address, 0).into());
        space.run(|| Carrier::bind(&place, buffers, payload)).unwrap().unwrap()
    };
    met(open(&here, "tla", 1), open(&there, "tlb", 2))
}

/// A frame for all nodes.
fn for_all() -> Frame {
    Frame {
        kind: Kind::Careful,
        flags: Flags::default(),
        wants_ack: false,
        again: false,
        from: NodeId(0),
        to: Destination::All,
        event: EventId(7),
        fragment: 0,
        grant: 0,
        back: 0,
        complete: EventId(0),
        asks: 0,
        route: None,
        counter: 0,
        data: Bytes::from_static(b"for all"),
        list: Vec::new(),
    }
}

fn holds(one: &mut Carrier, other: &mut Carrier, payload: u32) {
    let octets = vec![1; (payload + Frame::HEADER) as usize];
    (0..128).for_each(|_| one.send_to(NodeId(1), &octets).unwrap());
    let first = other.receive(Duration::from_secs(5)).unwrap().expect("a frame");
    assert_eq!(first, octets);
    let rest = std::iter::from_fn(|| other.receive(Duration::ZERO).unwrap()).count();
    assert_eq!((rest, other.dropped()), (127, Some(0)), "{payload}");
}

/// As many frames as were asked for wait before one is dropped, whatever their size.
#[test]
fn a_carrier_holds_the_frames_that_it_promises() {
    for payload in [4, 800, 1460, 4000, 7600, 8000] {
        let both = on_loopback(128, payload).and_then(|one| Ok((one, on_loopback(128, payload)?)));
        let Ok((one, other)) = both else {
            return skipped("the kernel gives this user a smaller receive buffer");
        };
        let (mut one, mut other) = met(one, other);
        holds(&mut one, &mut other, payload);
        let Some((mut one, mut other)) = on_ethernet(128, payload) else { return };
        holds(&mut one, &mut other, payload);
    }
}

/// Sends as many frames as a carrier holds, those that fit as one, the last of them shorter and each with other octets;
/// they come one by one. Returns how often something was sent.
fn trains(one: &mut Carrier, other: &mut Carrier, payload: usize) -> usize {
    let frame = |number: u32| Frame {
        to: Destination::Node(NodeId(1)),
        fragment: number,
        data: Bytes::from(vec![number as u8; if number == 127 { payload / 2 } else { payload }]),
        ..for_all()
    };
    let (mut train, mut sent) = (Vec::new(), 0);
    for number in 0..128 {
        if !Carrier::fits(&train, &frame(number)) {
            one.send_train(&train).unwrap();
            (train, sent) = (Vec::new(), sent + 1);
        }
        train.push(frame(number));
    }
    one.send_train(&train).unwrap();
    for number in 0..128 {
        let came = other.receive(Duration::from_secs(5)).unwrap().expect("a frame");
        assert_eq!(Frame::decode(came), Ok(frame(number)));
    }
    assert_eq!(other.receive(Duration::ZERO).unwrap(), None);
    let dropped = other.dropped().unwrap_or(0);
    assert_eq!((one.sent, other.received, dropped), (128, 128, 0), "{payload}");
    sent + 1
}

/// Whether or not what is sent as one can go so: in fragments of IP it cannot.
#[test]
fn frames_that_are_sent_as_one_come_one_by_one() {
    for (payload, times) in [(4, 2), (800, 2), (8000, 16)] {
        let both = on_loopback(128, payload as u32)
            .and_then(|one| Ok((one, on_loopback(128, payload as u32)?)));
        let Ok((one, other)) = both else {
            return skipped("the kernel gives this user a smaller receive buffer");
        };
        let (mut one, mut other) = met(one, other);
        assert_eq!(trains(&mut one, &mut other, payload), times);
        let Some((mut one, mut other)) = on_ethernet(128, payload as u32) else { return };
        trains(&mut one, &mut other, payload);
        for mtu in [1500, 9000] {
            let (mut one, mut other) = over_ip(mtu, 128, payload as u32);
            trains(&mut one, &mut other, payload);
        }
    }
}

/// A frame with a list, one to another node, and one behind a shorter one begin a train of their own.
#[test]
fn what_does_not_fit_is_told() {
    let frame = Frame { to: Destination::Node(NodeId(1)), ..for_all() };
    let entry = Entry { event: EventId(1), first: 0, following: 0 };
    let listed = Frame { kind: Kind::Request, list: vec![entry], ..frame.clone() };
    let shorter = Frame { data: Bytes::new(), ..frame.clone() };
    let longer = Frame { data: Bytes::from_static(&[1; 100]), ..frame.clone() };
    let elsewhere = Frame { to: Destination::Node(NodeId(2)), ..frame.clone() };
    for first in [&frame, &listed, &for_all()] {
        assert!(Carrier::fits(&[], first));
    }
    let fits = |first: &Frame, next: &Frame| Carrier::fits(std::slice::from_ref(first), next);
    assert!(fits(&frame, &frame) && fits(&frame, &shorter));
    assert!(!Carrier::fits(&[frame.clone(), shorter.clone()], &shorter));
    let not = [(&frame, &longer), (&frame, &elsewhere), (&frame, &listed), (&listed, &shorter)];
    assert!(not.iter().all(|(first, next)| !fits(first, next)));
    assert!(!fits(&for_all(), &for_all()));
}

#[test]
fn frames_come_and_a_full_buffer_is_counted() {
    let (one, other) = (on_loopback(4, 4000).unwrap(), on_loopback(4, 4000).unwrap());
    let datagrams = Some(met(one, other));
    for (mut one, mut other) in [datagrams, on_ethernet(4, 4000)].into_iter().flatten() {
        for octet in 1..5 {
            one.send_to(NodeId(1), &vec![octet; 4032]).unwrap();
        }
        for octet in 1..5 {
            let came = other.receive(Duration::from_secs(5)).unwrap().unwrap();
            assert_eq!((came.len(), came[0]), (4032, octet));
        }
        assert_eq!(other.receive(Duration::ZERO).unwrap(), None);
        assert_eq!(other.dropped(), Some(0));
        for _ in 0..100 {
            one.send_to(NodeId(1), &[0; 4032]).unwrap();
        }
        assert!(other.dropped().unwrap() > 50);
    }
}

/// Ethernet carries a frame for all nodes once for all of them, and datagrams go to each.
#[test]
fn a_frame_for_all_is_sent_once_where_the_medium_can() {
    let frame = for_all();
    let [mut one, mut second, mut third] = [(); 3].map(|()| on_loopback(4, 100).unwrap());
    let all = [&one, &second, &third].map(|it| it.address().unwrap()).to_vec();
    one.meet(NodeId(0), all).unwrap();
    one.send(&frame).unwrap();
    assert_eq!(one.sent, 2);
    for other in [&mut second, &mut third] {
        let came = other.receive(Duration::from_secs(5)).unwrap().unwrap();
        assert_eq!(Frame::decode(came).unwrap(), frame);
    }
    let Some((mut one, mut other)) = on_ethernet(4, 100) else { return };
    // A third node, which is not there, is one more to whom it would be sent.
    let absent: Address = "02:74:00:00:00:01".parse().unwrap();
    let all = [one.peers(), &[absent]].concat();
    one.meet(NodeId(0), all).unwrap();
    one.send(&frame).unwrap();
    assert_eq!(one.sent, 1);
    let came = other.receive(Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!(Frame::decode(came).unwrap(), frame);
}

/// With a group that all hear a datagram for all is sent once; with one that not all hear it goes to each.
#[test]
fn a_group_carries_a_frame_for_all() {
    let spaces = [Namespace::create(), Namespace::create()];
    let [Ok(here), Ok(there)] = spaces else {
        return skipped("cannot make network namespaces: run as root");
    };
    create_veth(&End::new(&here, "tla"), &End::new(&there, "tlb"), 1500).unwrap();
    let open = |space: &Namespace, device: &str, last: u8| {
        let address = Ipv4Addr::new(10, 77, 0, last);
        let net = IpNet::new(address, 24).unwrap();
        space.add_address(device, net).unwrap();
        let place = Place::Group(SocketAddrV4::new(address, 7714), Ipv4Addr::new(239, 77, 14, 1));
        space.run(|| Carrier::bind(&place, 4, 100)).unwrap().unwrap()
    };
    let (mut one, mut other) = met(open(&here, "tla", 1), open(&there, "tlb", 2));
    // A third node, which is not there, is one more to whom it would be sent.
    let absent: Address = "10.77.0.3:7714".parse().unwrap();
    let all = [one.peers(), &[absent]].concat();
    one.meet(NodeId(0), all).unwrap();
    assert!(one.has_group());
    for (heard, sent) in [(true, 1), (false, 3)] {
        one.settle_group(heard);
        one.send(&for_all()).unwrap();
        assert_eq!(one.sent, sent);
        let came = other.receive(Duration::from_secs(5)).unwrap().unwrap();
        assert_eq!(Frame::decode(came).unwrap(), for_all());
    }
    assert_eq!(one.receive(Duration::ZERO).unwrap(), None, "its own comes back to it");
}

/// Addresses of the other kind, a device that is not there, and one whose MTU is too small are told.
#[test]
fn what_cannot_carry_is_told() {
    let mut one = on_loopback(4, 100).unwrap();
    let ethernet: Address = "02:74:00:00:00:01".parse().unwrap();
    let error = one.meet(NodeId(0), vec![ethernet]).unwrap_err().to_string();
    assert!(error.contains("02:74:00:00:00:01") && error.contains("ADDRESS:PORT"), "{error}");
    let Ok(space) = Namespace::create() else {
        return skipped("cannot make network namespaces: run as root");
    };
    let open = |device: &str, payload: u32| {
        let place = Place::Device(device.into());
        space.run(|| Carrier::bind(&place, 4, payload)).unwrap().unwrap_err().to_string()
    };
    assert!(open("none", 100).contains("no device 'none'"));
    let there = Namespace::create().unwrap();
    create_veth(&End::new(&space, "tla"), &End::new(&there, "tlb"), 1500).unwrap();
    let error = open("tla", 8000);
    assert!(error.contains("8034") && error.contains("--frame 1466"), "{error}");
}

/// What came before a node knew its peers is theirs or nobody's: nothing could be refused till then. What a stranger sends
/// afterwards is refused.
#[test]
fn of_what_waits_when_nodes_meet_a_strangers_is_dropped() {
    let [mut one, mut other] = [(); 2].map(|()| on_loopback(4, 100).unwrap());
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let Address::Udp(at) = other.address().unwrap() else { panic!("it is a socket's") };
    let peers = vec![one.address().unwrap(), other.address().unwrap()];
    one.meet(NodeId(0), peers.clone()).unwrap();
    let frame = |fragment: u32| Frame { to: Destination::Node(NodeId(1)), fragment, ..for_all() };
    for number in 0..2 {
        stranger.send_to(b"\0\0\x00\x02it cannot go on", at).unwrap();
        one.send(&frame(number)).unwrap();
    }
    other.meet(NodeId(1), peers).unwrap();
    stranger.send_to(b"\0\0\x00\x02it cannot go on", at).unwrap();
    one.send(&frame(2)).unwrap();
    for number in 0..3 {
        let came = other.receive(Duration::from_secs(5)).unwrap().expect("a frame");
        assert_eq!(Frame::decode(came), Ok(frame(number)));
    }
    assert_eq!(other.receive(Duration::ZERO).unwrap(), None);
}

//! Sessions between real hosts: two paths in one thread, counted, booked, changed, and ended.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;
use trunkline_core::{Cause, Span};
use trunkline_dataplane::hosts::{Hosts, addresses, inner_devices};
use trunkline_dataplane::{
    ChangeError, DataplaneError, LaneSnapshot, Plan, Session, SessionOptions, SessionThread,
    Snapshot, monotonic,
};
use trunkline_scenario::{PathSpec, Settings};

const PORT: u16 = 7000;
const DATAGRAMS: usize = 20;

fn settings(pairs: &[&str]) -> Settings {
    let mut settings = Settings::default();
    pairs.iter().for_each(|pair| settings.add_pair(pair).unwrap());
    settings
}

fn path(pairs: &[&str]) -> PathSpec {
    settings(pairs).resolve().unwrap()
}

/// Hosts with a far end for each path, or nothing and a note if this user may not make them. Their MTU is too small
/// for IPv6, whose own frames would be counted, too.
fn hosts(paths: usize) -> Option<Hosts> {
    match Hosts::build(&vec![1000; paths]) {
        Err(DataplaneError::Lab(error)) if error.errno() == Some(libc::EPERM) => {
            trunkline_skip::skipped(error);
            None
        }
        built => Some(built.unwrap()),
    }
}

fn start(hosts: &Hosts, paths: &[(&str, PathSpec)]) -> (Session, SessionThread) {
    let plan = |(index, (name, path)): (usize, &(&str, PathSpec))| {
        let (near, far) = inner_devices(index);
        Plan { name: (*name).into(), path: path.clone(), namespace: hosts.middle(), near, far }
    };
    Session::start(paths.iter().enumerate().map(plan).collect(), SessionOptions::default()).unwrap()
}

/// Sends datagrams from the near host over a path; returns how long each took to come, in order.
fn exchange(hosts: &Hosts, index: usize) -> Vec<Duration> {
    let ours = addresses(index);
    let bind = |host: &trunkline_netns::Namespace, address: IpAddr| {
        host.run(|| UdpSocket::bind((address, PORT + index as u16)).unwrap()).unwrap()
    };
    let (near, far) =
        (bind(hosts.near(), ours.near.into()), bind(hosts.far(index), ours.far.into()));
    far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut took = Vec::new();
    for number in 0..DATAGRAMS {
        let begun = std::time::Instant::now();
        near.send_to(&[number as u8; 72], far.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 100];
        assert_eq!(far.recv(&mut buffer).unwrap(), 72);
        assert_eq!(buffer[..72], [number as u8; 72]);
        took.push(begun.elapsed());
    }
    took
}

fn lane<'a>(snapshot: &'a Snapshot, name: &str) -> &'a LaneSnapshot {
    snapshot.lanes.iter().find(|lane| lane.name == name).unwrap()
}

fn booked(lane: &LaneSnapshot, wanted: Cause) -> Option<Span> {
    lane.mean_delay.iter().find(|(cause, _)| *cause == wanted).map(|(_, span)| *span)
}

#[test]
fn two_paths_carry_count_and_book_each_for_itself() {
    let Some(hosts) = hosts(2) else { return };
    let before = monotonic();
    let paths = [("a", path(&["delay=5ms", "rate=8mbit"])), ("b", path(&["up-delay=20ms"]))];
    let (session, thread) = start(&hosts, &paths);
    assert!(session.origin() >= before && session.origin() <= monotonic());
    assert_eq!(session.backends(), ["packet"; 4]);
    let least = |took: &[Duration]| took.iter().min().unwrap().as_secs_f64() * 1e3;
    let (first, second) = (exchange(&hosts, 0), exchange(&hosts, 1));
    // 100 bytes at 8 Mbit/s take 100 us.
    assert!((5.1..15.0).contains(&least(&first)), "{first:?}");
    assert!((20.0..30.0).contains(&least(&second)), "{second:?}");
    let now = session.snapshot();
    assert_eq!(lane(&now, "a/up").entered, DATAGRAMS as u64);
    session.stop();
    let ended = thread.join();
    ended.result.unwrap();
    let last = ended.snapshot;
    let names: Vec<&str> = last.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["a/up", "a/down", "b/up", "b/down"]);
    for lane in [lane(&last, "a/up"), lane(&last, "b/up")] {
        assert_eq!((lane.entered, lane.delivered), (DATAGRAMS as u64, DATAGRAMS as u64));
        assert_eq!(lane.entered_bytes, 100 * DATAGRAMS as u64);
        assert_eq!((lane.in_flight, lane.lateness.count), (0, DATAGRAMS as u64));
        assert_eq!(lane.spacing_error.count, DATAGRAMS as u64 - 1);
        assert!(booked(lane, Cause::Emulator) > Some(Span::ZERO), "{lane:?}");
        assert!(
            lane.lateness.max > Span::ZERO && lane.lateness.max < Span::from_secs(1),
            "{lane:?}"
        );
    }
    assert_eq!(booked(lane(&last, "a/up"), Cause::Propagate), Some(Span::from_millis(5)));
    assert_eq!(booked(lane(&last, "a/up"), Cause::Transmit), Some(Span::from_micros(100)));
    assert_eq!(booked(lane(&last, "b/up"), Cause::Propagate), Some(Span::from_millis(20)));
    assert_eq!(booked(lane(&last, "b/up"), Cause::Transmit), None);
    assert!(last.uptime >= now.uptime && last.uptime >= Span::from_millis(25 * DATAGRAMS as u64));
}

#[test]
fn a_change_meets_the_path_that_is_named_or_none() {
    let Some(hosts) = hosts(2) else { return };
    let paths = [("a", path(&["delay=1ms"])), ("b", path(&["delay=1ms"]))];
    let (session, thread) = start(&hosts, &paths);
    let change = |name, pairs: &[&str]| session.change(name, &settings(pairs), Span::ZERO);
    let told = change(None, &["delay=2ms"]).unwrap_err();
    assert!(matches!(&told, ChangeError::Several(names) if names == "a, b"), "{told}");
    let told = change(Some("c"), &["delay=2ms"]).unwrap_err();
    assert!(matches!(&told, ChangeError::NoPath { name, .. } if name == "c"), "{told}");
    let told = change(Some("a"), &["rate=1000gbit", "delay=10s"]).unwrap_err();
    assert!(matches!(told, ChangeError::Emulator(DataplaneError::Memory { .. })), "{told}");
    assert!(matches!(change(Some("a"), &["framing=t1-lapd"]), Err(ChangeError::Setting(_))));
    let same: Vec<PathSpec> = session.paths().into_iter().map(|(_, path)| path).collect();
    assert_eq!(same, paths.clone().map(|(_, path)| path), "what is refused changes nothing");

    assert_eq!(change(Some("b"), &["up-delay=30ms"]).unwrap().up.delay, Span::from_millis(30));
    let [(first, a), (second, b)] = &session.paths()[..] else { panic!("two paths") };
    assert_eq!((first.as_str(), second.as_str()), ("a", "b"));
    assert_eq!((a.up.delay, b.up.delay), (Span::from_millis(1), Span::from_millis(30)));
    // A change is taken up in the next quiet moment.
    let shortest = |index| exchange(&hosts, index).into_iter().skip(DATAGRAMS / 2).min().unwrap();
    assert!(shortest(1) >= Duration::from_millis(30));
    assert!(shortest(0) < Duration::from_millis(20));
    session.stop();
    thread.join().result.unwrap();
    let told = change(Some("b"), &["delay=3ms"]).unwrap_err();
    assert!(matches!(told, ChangeError::Ending), "{told}");
}

#[test]
fn the_only_path_needs_no_name_and_its_directions_none_either() {
    let Some(hosts) = hosts(1) else { return };
    let (session, thread) = start(&hosts, &[("", path(&["delay=1ms"]))]);
    assert_eq!(
        session.change(None, &settings(&["down-delay=2ms"]), Span::ZERO).unwrap().down.delay,
        Span::from_millis(2)
    );
    assert!(exchange(&hosts, 0).len() == DATAGRAMS);
    session.stop();
    let ended = thread.join();
    ended.result.unwrap();
    let last = ended.snapshot;
    assert_eq!([&last.lanes[0].name, &last.lanes[1].name], ["up", "down"]);
}

#[test]
fn what_is_under_way_at_the_end_is_in_flight() {
    let Some(hosts) = hosts(1) else { return };
    let (session, thread) = start(&hosts, &[("", path(&["delay=60s", "up-loss=50%"]))]);
    let ours = addresses(0);
    let near = hosts.near().run(|| UdpSocket::bind((ours.near, PORT)).unwrap()).unwrap();
    (0..100).for_each(|_| assert_eq!(near.send_to(b"long", (ours.far, PORT)).unwrap(), 4));
    let entered = || session.snapshot().lanes[0].entered;
    assert!((0..250).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        entered() == 100
    }));
    session.stop();
    let ended = thread.join();
    ended.result.unwrap();
    let last = ended.snapshot;
    let up = &last.lanes[0];
    assert_eq!((up.entered, up.delivered, up.lateness.count), (100, 0, 0));
    assert_eq!(up.in_flight + up.dropped["loss"], 100);
    assert!((20..80).contains(&up.in_flight), "{up:?}");
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let Some(hosts) = hosts(1) else { return };
    let plan = Plan {
        name: String::new(),
        path: path(&["delay=1ms"]),
        namespace: hosts.middle(),
        near: "tlnone".into(),
        far: "tlnone".into(),
    };
    let told = Session::start(vec![plan], SessionOptions::default()).map(|_| ()).unwrap_err();
    assert!(told.to_string().contains("tlnone"), "{told}");
}

//! A network between ports that exist in memory only.

use super::*;
use crate::clock::Clock;
use crate::testing::{Frames, Memory, one_way};
use trunkline_capsule::{Capsule, HEADER, Header, PORT, find};
use trunkline_core::{Cause, Rate, Seed};
use trunkline_netns::Mac;
use trunkline_path::medium::{AccessSpec, StationId};
use trunkline_path::{LinkSpec, MediumSpec};

/// The address of the device behind port `index`.
fn device(index: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, index])
}

/// A capsule on way `way` that counts `size` bytes.
fn capsule(way: usize, size: u32) -> Vec<u8> {
    let header = Header { path_size: size, channel: 7, ..Header::default() };
    let mut payload = vec![0; HEADER];
    header.write(&mut payload);
    let mut frame = [&way_mac(way).0[..], &[9; 6], &[8, 0, 0x45, 0]].concat();
    frame.extend((28 + HEADER as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    frame.extend([PORT, 9].map(u16::to_be_bytes).as_flattened());
    frame.extend((8 + HEADER as u16).to_be_bytes());
    frame.extend([0xbe, 0xef]);
    frame.extend(payload);
    frame
}

/// Two ports, and lanes with these delays between them: one way crosses all, another the last only.
struct Bench {
    plane: Plane,
    clock: Clock,
    near: Frames,
    far: Frames,
}

impl Bench {
    fn new(specs: &[LinkSpec]) -> Bench {
        Bench::edited(specs, |_| ())
    }

    /// The same with another plan.
    fn edited(specs: &[LinkSpec], edit: impl FnOnce(&mut PlaneLayout)) -> Bench {
        let (near, far) = (Frames::default(), Frames::default());
        let port = |inward: &Frames, outward: &Frames| -> Box<dyn Port> {
            Box::new(Memory {
                inward: Arc::clone(inward),
                outward: Arc::clone(outward),
                ..Memory::default()
            })
        };
        let lane = |(index, spec): (usize, &LinkSpec)| LanePlan {
            name: format!("lane{index}"),
            stream: format!("lane{index}"),
            seed: Seed(1),
            spec: spec.clone(),
            observed: true,
            station: None,
        };
        let takes = Takes::Addressed(device(1));
        let way =
            |lanes: Vec<usize>| WayPlan { entry: 0, lanes, heard_by: Vec::new(), exit: 1, takes };
        let mut plan = PlaneLayout {
            ports: vec![port(&near, &Frames::default()), port(&Frames::default(), &far)],
            lanes: specs.iter().enumerate().map(lane).collect(),
            media: Vec::new(),
            ways: vec![way((0..specs.len()).collect()), way(vec![specs.len() - 1])],
            origin: crate::monotonic(),
            bound: Span::from_millis(1),
            arena: 1 << 22,
            sample: Some((Span::from_micros(100), 1000)),
        };
        edit(&mut plan);
        let plane = Plane::new(plan, CaptureTap::default()).unwrap();
        Bench { plane, clock: Clock::default(), near, far }
    }

    /// Works until nothing is under way.
    fn run(&mut self) {
        loop {
            self.plane.receive(&mut self.clock).unwrap();
            self.plane.serve(&mut self.clock).unwrap();
            if self.plane.live().in_flight() == 0 {
                return;
            }
        }
    }
}

fn spec(delay: Span) -> LinkSpec {
    let rate = Some(Rate::from_bits_per_second(8_000_000));
    LinkSpec { rate, delay, ..LinkSpec::default() }
}

#[test]
fn a_capsule_tells_of_every_hop_and_comes_to_its_device() {
    let delays = [Span::from_micros(300), Span::ZERO, Span::from_millis(2)];
    let mut bench = Bench::new(&delays.map(spec));
    bench.near.lock().unwrap().extend([capsule(0, 100), capsule(0, 100)]);
    bench.run();
    let frames = bench.far.lock().unwrap().clone();
    assert_eq!(frames.len(), 2);
    for (index, frame) in frames.iter().enumerate() {
        assert_eq!(frame[..6], device(1).0);
        let place = find(frame).unwrap();
        assert_eq!(frame[place.start - 2..place.start], [0, 0], "no checksum");
        let record = Capsule::parse(&frame[place]).unwrap().record;
        let hops = record.hops();
        let links: Vec<u16> = hops.iter().map(|hop| hop.link).collect();
        assert_eq!(links, [0, 1, 2]);
        assert!(hops.iter().all(|hop| hop.transmit == Span::from_micros(100)));
        assert!(std::iter::zip(hops, delays).all(|(hop, delay)| hop.propagate == delay));
        // They came together: the second waited once for the first, and never again.
        let waited: Vec<Span> = hops.iter().map(|hop| hop.queue).collect();
        let first = Span::from_micros(if index == 0 { 0 } else { 100 });
        assert!(waited[0] <= first && waited[1..] == [Span::ZERO; 2], "{waited:?}");
    }
    assert_eq!((bench.plane.hops(0)[2].frames, bench.plane.hops(1)[0].frames), (2, 0));
    // They are late where they leave, by the time that the test takes to send them, and nowhere else.
    let late: Vec<bool> = bench.plane.hops(0).iter().map(|hop| hop.late > 0).collect();
    assert_eq!(late, [false, false, true]);
    let busy: Vec<Span> = bench.plane.results(Time::NEVER).iter().map(|lane| lane.busy).collect();
    assert_eq!(busy, [Span::from_micros(200); 3]);
}

/// A frame that is lost behind the line has kept it busy like any other.
#[test]
fn a_line_is_busy_with_what_is_lost_behind_it() {
    let mut specs = [spec(Span::ZERO), spec(Span::ZERO)];
    specs[1].impairments.loss = "100%".parse().unwrap();
    let mut bench = Bench::new(&specs);
    bench.near.lock().unwrap().extend([capsule(0, 100), capsule(0, 100)]);
    bench.run();
    let results = bench.plane.results(Time::NEVER);
    let counts: Vec<u64> = results.iter().map(|lane| lane.counts.delivered).collect();
    let busy: Vec<Span> = results.iter().map(|lane| lane.busy).collect();
    assert_eq!((counts, busy), (vec![2, 0], vec![Span::from_micros(200); 2]));
}

#[test]
fn copies_losses_and_strays_are_counted() {
    let mut specs = [spec(Span::from_micros(100)), spec(Span::from_micros(100))];
    specs[0].impairments.duplicate = "100%".parse().unwrap();
    specs[1].discipline = trunkline_path::DisciplineSpec::fifo(trunkline_path::Limit::Packets(1));
    let mut bench = Bench::new(&specs);
    bench.near.lock().unwrap().extend([capsule(0, 1000), vec![0xff; 60], capsule(9, 10)]);
    bench.run();
    bench.near.lock().unwrap().extend((0..3).map(|_| capsule(1, 1000)));
    bench.run();
    let counts = [0, 1].map(|way| bench.plane.live().way(way).conservation());
    assert_eq!((counts[0].sent, counts[0].duplicated, counts[0].delivered), (1, 1, 2));
    assert_eq!((counts[1].sent, counts[1].delivered + counts[1].dropped), (3, 3));
    assert!(counts[1].dropped >= 1 && counts.iter().all(|one| one.holds()));
    assert_eq!((bench.plane.strays(), bench.plane.pool.held()), (2, 0));
    assert_eq!(bench.far.lock().unwrap().len() as u64, 2 + counts[1].delivered);
}

#[test]
fn a_network_that_begins_anew_has_forgotten_everything() {
    let mut bench = Bench::new(&[spec(Span::from_micros(50)), spec(Span::from_secs(100))]);
    bench.near.lock().unwrap().extend([capsule(0, 100), capsule(0, 100)]);
    bench.plane.receive(&mut bench.clock).unwrap();
    bench.plane.serve(&mut bench.clock).unwrap();
    assert_eq!(bench.plane.live().in_flight(), 2);
    bench.plane.live().restart(crate::monotonic());
    assert!(!bench.plane.live().has_restarted());
    bench.run();
    assert!(bench.plane.live().has_restarted());
    assert_eq!(bench.plane.live().way(0).conservation(), Default::default());
    assert!(bench.plane.results(Time::NEVER).iter().all(|lane| lane.counts.entered == 0));
    assert_eq!(bench.plane.pool.held(), 0);
}

#[test]
fn nothing_happens_before_its_time() {
    let mut bench = Bench::new(&[spec(Span::from_secs(100))]);
    bench.near.lock().unwrap().push(capsule(0, 100));
    bench.plane.receive(&mut bench.clock).unwrap();
    for _ in 0..3 {
        bench.plane.serve(&mut bench.clock).unwrap();
    }
    assert_eq!((bench.plane.live().in_flight(), bench.far.lock().unwrap().len()), (1, 0));
}

#[test]
fn a_copy_is_like_its_packet() {
    let mut pool = FramePool::new(1 << 20);
    let mut taken = || {
        transit::packet(
            &capsule(0, 100),
            (0, Takes::Addressed(device(1))),
            Time::from_nanos(9),
            &mut pool,
        )
        .unwrap()
    };
    let (mut packet, other) = (taken(), taken());
    (packet.band, packet.controls, packet.ecn) = (2, 4, trunkline_core::Ecn::Ect0);
    assert!(packet.hosts.is_some(), "a capsule is a packet between hosts");
    let copy = like(&packet, other.body);
    assert_eq!(copy.hosts, packet.hosts);
    assert_eq!((copy.channel, copy.size, copy.entered), (packet.channel, 100, packet.entered));
    assert_eq!((copy.band, copy.controls, copy.ecn), (2, 4, trunkline_core::Ecn::Ect0));
}

/// A UDP packet of 20 + 8 + 92 bytes with ECT(0) behind a VLAN tag, its header's checksum right.
fn ect0_frame() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0, 7, 8, 0]);
    frame.extend([0x45, 2, 0, 120, 0, 0, 0x40, 0, 0x40, 17, 0xb8, 0x5a]);
    frame.extend([0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7]);
    frame.extend([0; 100]);
    frame
}

/// A path between two devices, whose near port is read and whose far port is written.
struct Path {
    plane: Plane,
    clock: Clock,
    near: Frames,
    far: Frames,
}

impl Path {
    fn new(spec: &LinkSpec) -> Path {
        Path::between(Memory::default(), Memory::default(), spec)
    }

    fn between(near: Memory, far: Memory, spec: &LinkSpec) -> Path {
        let (inward, outward) = (Arc::clone(&near.inward), Arc::clone(&far.outward));
        let plane = one_way(near, far, spec.clone());
        Path { plane, clock: Clock::default(), near: inward, far: outward }
    }

    /// Reads what `frames` bring, works and sends.
    fn turn(&mut self, frames: &[Vec<u8>]) -> usize {
        self.near.lock().unwrap().extend(frames.iter().cloned());
        self.plane.receive(&mut self.clock).unwrap();
        self.plane.serve(&mut self.clock).unwrap()
    }

    fn up(&self) -> crate::LaneSnapshot {
        self.plane.snapshots().swap_remove(0)
    }
}

#[test]
fn a_mark_of_the_path_is_written_into_the_frame() {
    let discipline = "codel:ce_threshold=0s".parse().unwrap();
    let rate = Some("10mbit".parse().unwrap());
    let spec = LinkSpec { rate, discipline, ..LinkSpec::default() };
    let stamp = Clock::default().realtime(crate::monotonic().before(Span::from_secs(50)));
    let near = Memory { stamp: Some(stamp), ..Memory::default() };
    let mut path = Path::between(near, Memory::default(), &spec);
    let plain = ect0_frame();
    let mut not_capable = plain.clone();
    (not_capable[19], not_capable[29]) = (0, 0x5c);
    // The first goes onto the line at once; the others wait for it.
    assert_eq!(path.turn(&[plain.clone(), plain.clone(), not_capable.clone()]), 3);
    let mut marked = plain.clone();
    (marked[19], marked[29]) = (3, 0x59);
    assert_eq!(*path.far.lock().unwrap(), [plain, marked, not_capable]);
    assert_eq!((path.up().marked, path.up().delivered, path.plane.pool.held()), (1, 3, 0));
}

#[test]
fn a_path_carries_every_frame_as_it_is() {
    let mut path = Path::new(&LinkSpec::default());
    // Also what a laboratory addresses to a way of its own, and its capsules.
    let frames = [capsule(9, 700), vec![0xff; 60], way_mac(1).0.repeat(12), ect0_frame()];
    while path.up().delivered < 4 {
        let coming = if path.up().entered == 0 { &frames[..] } else { &[] };
        path.turn(coming);
    }
    assert_eq!(*path.far.lock().unwrap(), frames);
    assert_eq!((path.plane.strays(), path.plane.pool.held()), (0, 0));
    let bytes: usize = frames.iter().map(|frame| frame.len() - 14).sum();
    assert_eq!(path.up().delivered_bytes, bytes as u64, "capsules count as they are");
}

#[test]
fn frames_without_memory_are_counted_and_the_others_go_on() {
    const OFFERED: u64 = 20_000;
    let mut path = Path::new(&spec(Span::from_secs(100)));
    path.plane.pool = FramePool::new(0);
    path.turn(&vec![ect0_frame(); OFFERED as usize]);
    let full = path.up();
    let room = path.plane.pool.held();
    assert!((1..OFFERED).contains(&room), "room for {room}");
    assert_eq!((full.entered, full.dropped["no-buffer"]), (OFFERED, OFFERED - room));
    assert_eq!(full.dropped_by_emulator, OFFERED - room);
    let way = path.plane.live().way(0).conservation();
    assert_eq!((way.sent, way.dropped + way.in_flight), (OFFERED, OFFERED));
}

#[test]
fn frames_left_in_the_ring_keep_their_arrival() {
    let delay = Span::from_secs(600);
    let mut path = Path::new(&LinkSpec { delay, ..LinkSpec::default() });
    // The batch read last ended with a frame of 500 ms ago, and there are more behind it.
    let latest = crate::monotonic().before(Span::from_millis(500));
    path.plane.lanes[0].settled = latest;
    path.plane.serve(&mut path.clock).unwrap();
    let next = latest + Span::from_micros(1);
    let way = (0, path.plane.ways[0].takes);
    let packet = transit::packet(&[0; 60], way, next, &mut path.plane.pool).unwrap();
    path.plane.lanes[0].link.offer(next, packet);
    assert_eq!(path.plane.next_wake(), Some(next + delay));
    assert!(path.far.lock().unwrap().is_empty(), "nothing was due");
}

#[test]
fn what_the_port_loses_is_counted_once_and_by_its_cause() {
    let refusals = trunkline_port::Refusals { unsegmentable: 3, ..Default::default() };
    let near = Memory { drops: 7, refusals, ..Memory::default() };
    for (fate, cause) in [
        (trunkline_port::SendOutcome::TooBig, "too-big"),
        (trunkline_port::SendOutcome::Refused(105), "send-failed"),
    ] {
        let far = Memory { fails: Some((100, fate)), ..Memory::default() };
        let near = Memory { drops: near.drops, refusals: near.refusals, ..Memory::default() };
        let mut path = Path::between(near, far, &LinkSpec::default());
        (0..3).for_each(|_| path.plane.account());
        let counted = path.up();
        assert_eq!((counted.dropped["ring-full"], counted.dropped["unsegmentable"]), (7, 3));
        assert_eq!((counted.entered, counted.dropped_by_emulator), (10, 10));
        // What the port does not take has no lateness, and is given back all the same.
        path.turn(&[vec![0; 60], vec![0; 100]]);
        while path.up().in_flight > 0 {
            path.turn(&[]);
        }
        let end = path.up();
        assert_eq!((end.delivered, end.dropped[cause], path.plane.pool.held()), (1, 1, 0));
        assert_eq!((end.lateness.count, end.dropped_by_emulator), (1, 11));
    }
}

/// Bit 1 is the second port's.
#[test]
fn a_device_that_is_down_is_told_by_its_bit() {
    for (near, far, bits) in
        [(false, false, 0), (true, false, 1), (false, true, 2), (true, true, 3)]
    {
        let memory = |down| Memory { down, ..Memory::default() };
        let mut path = Path::between(memory(near), memory(far), &LinkSpec::default());
        path.plane.pulse().unwrap();
        assert_eq!(path.plane.down(), bits);
    }
}

#[test]
fn frames_may_lie_unread_for_the_shortest_delay_if_their_stamps_tell_when_they_came() {
    let millis = Span::from_millis;
    let mut bench = Bench::new(&[spec(millis(5)), spec(millis(3))]);
    assert_eq!(bench.plane.patience(), millis(3), "one way crosses the last lane only");
    // A change counts from the instant at which it takes hold.
    let later = crate::monotonic() + Span::from_secs(1);
    bench.plane.change(1, later, trunkline_path::Change::Delay(millis(1)));
    assert_eq!(bench.plane.patience(), millis(3));
    bench.plane.lanes[1].link.advance(later);
    assert_eq!(bench.plane.patience(), millis(1));
    bench.plane.unstamped = true;
    assert_eq!(bench.plane.patience(), Span::ZERO);
}

#[test]
fn a_single_frame_without_a_stamp_ends_the_patience() {
    let delay = Span::from_millis(3);
    let stamp = Clock::default().realtime(crate::monotonic().before(Span::from_secs(50)));
    let stamped = || {
        let memory = Memory { stamp: Some(stamp), ..Memory::default() };
        memory.inward.lock().unwrap().push(vec![0; 60]);
        memory
    };
    let patience = |near| {
        let mut path = Path::between(near, stamped(), &spec(delay));
        assert_eq!(path.plane.patience(), delay);
        path.plane.receive(&mut path.clock).unwrap();
        path.plane.patience()
    };
    assert_eq!(patience(stamped()), delay);
    let unstamped = Memory::default();
    unstamped.inward.lock().unwrap().push(vec![0; 60]);
    assert_eq!(patience(unstamped), Span::ZERO, "the stamp of the other port does not restore it");
}

#[test]
fn backlogs_are_sampled_as_long_as_there_is_room_for_samples() {
    let every = Span::from_secs(1000);
    let mut bench =
        Bench::edited(&[spec(Span::from_secs(100))], |plan| plan.sample = Some((every, 2)));
    let lane = &mut bench.plane.lanes[0];
    let at = crate::monotonic();
    for _ in 0..3 {
        let way = (0, Takes::Addressed(device(1)));
        let packet = transit::packet(&capsule(0, 1000), way, at, &mut bench.plane.pool).unwrap();
        lane.link.offer(at, packet);
    }
    // Each takes a millisecond. The 5 bytes wait at a station of a medium.
    for micros in [500, 1500, 2500] {
        lane.sample(at + Span::from_micros(micros), 5);
    }
    let wanted = [(500, 3005), (1500, 2005)];
    let wanted = wanted.map(|(micros, bytes)| (at + Span::from_micros(micros), bytes));
    assert_eq!(bench.plane.results(Time::NEVER)[0].backlog, wanted);
}

#[test]
fn mean_delays_are_of_the_frames_that_passed_each_lane() {
    let mut specs = [spec(Span::from_micros(300)), spec(Span::from_micros(100))];
    specs[1].impairments.duplicate = "100%".parse().unwrap();
    let mut bench = Bench::new(&specs);
    bench.near.lock().unwrap().extend((0..4).map(|_| capsule(0, 100)));
    bench.run();
    for (lane, micros) in bench.plane.snapshots().iter().zip([300, 100]) {
        let propagate = lane.mean_delay.iter().find(|(cause, _)| *cause == Cause::Propagate);
        assert_eq!(propagate.unwrap().1, Span::from_micros(micros), "{}", lane.name);
    }
    assert_eq!(bench.plane.snapshots()[1].delivered, 8);
}

#[test]
fn only_lanes_with_nothing_to_be_put_in_order_are_alone() {
    let way = |entry, lanes: &[usize]| WayPlan {
        entry,
        lanes: lanes.to_vec(),
        heard_by: Vec::new(),
        exit: 9,
        takes: Takes::Addressed(device(0)),
    };
    let ways = [way(0, &[0]), way(0, &[0]), way(0, &[1, 2]), way(0, &[3]), way(1, &[3])];
    let alone = |in_order| [0, 1, 2, 3, 4].map(|lane| place(lane, &ways, in_order).alone);
    assert_eq!(alone(false), [true, false, false, false, false]);
    assert_eq!(alone(true), [false; 5], "stations and samples are served in order of time");
    assert_eq!([0, 1, 2, 3].map(|lane| place(lane, &ways, false).exit), [true, false, true, true]);
}

/// Three stations of a medium of 8 Mbit/s, 300 us apart, and a link behind the third. One way ends on the medium, the other
/// goes on over the link; both start at the first station, which sends one frame after the other.
#[test]
fn frames_cross_a_medium_and_leave_or_go_on() {
    let access = AccessSpec::read("half-duplex", "turnaround=50us").unwrap();
    let LinkSpec { rate, framing, discipline, .. } = spec(Span::ZERO);
    let delay = Span::from_micros(300);
    let medium = MediumSpec { rate, framing, delay, discipline, access };
    let stations = ["a", "b", "c"].map(String::from).to_vec();
    let medium = MediumPlan { name: "lan".into(), stations, seed: Seed(1), spec: medium };
    let link = spec(Span::from_micros(100));
    let lanes = [spec(Span::ZERO), spec(Span::ZERO), spec(Span::ZERO), link];
    let mut bench = Bench::edited(&lanes, |plan| {
        plan.media.push(medium);
        for station in 0..3 {
            plan.lanes[station].station = Some((0, StationId(station)));
        }
        (plan.ways[0].lanes, plan.ways[1].lanes) = (vec![0], vec![0, 3]);
        plan.ways[0].heard_by = vec![Some(StationId(1))];
        plan.ways[1].heard_by = vec![Some(StationId(2)), None];
    });
    let frames = [capsule(0, 100), capsule(1, 100), capsule(0, 100)];
    bench.near.lock().unwrap().extend(frames);
    bench.run();
    assert_eq!(bench.far.lock().unwrap().len(), 3);
    let lanes = bench.plane.snapshots();
    let delivered =
        |lane: usize| (lanes[lane].entered, lanes[lane].delivered, lanes[lane].in_flight);
    assert_eq!([0, 1, 2, 3].map(delivered), [(3, 3, 0), (0, 0, 0), (0, 0, 0), (1, 1, 0)]);
    let propagate = |lane: usize| {
        let found = lanes[lane].mean_delay.iter().find(|(cause, _)| *cause == Cause::Propagate);
        found.unwrap().1
    };
    assert_eq!((propagate(0), propagate(3)), (delay, Span::from_micros(100)));
    // What each frame waited for on the medium is in its hop: the second behind the first, the third behind both.
    let sums = |way: usize, hop: usize| bench.plane.hops(way)[hop];
    let own = sums(1, 0).transmit;
    assert!(own > 0 && sums(0, 0).transmit == 2 * own && sums(1, 0).queue <= own);
    assert_eq!((sums(0, 0).frames, sums(1, 0).frames, sums(1, 1).frames), (2, 1, 1));
    // And again from the beginning.
    bench.plane.restart(crate::monotonic());
    bench.near.lock().unwrap().push(capsule(0, 100));
    bench.run();
    assert_eq!((bench.plane.snapshots()[0].entered, bench.plane.snapshots()[0].delivered), (1, 1));
}

//! A network between ports that exist in memory only.

use super::*;
use crate::testing::{Frames, Memory};
use trunkline_capsule::{Capsule, HEADER, Header, PORT, find};
use trunkline_core::{Rate, Seed};
use trunkline_lab::Mac;
use trunkline_path::LinkSpec;

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
    web: Web,
    clock: Clock,
    near: Frames,
    far: Frames,
}

impl Bench {
    fn new(specs: &[LinkSpec]) -> Bench {
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
            spec: spec.clone(),
            observed: true,
        };
        let way = |lanes: Vec<usize>| WayPlan { entry: 0, lanes, exit: 1, mac: device(1) };
        let web = Web::new(WebPlan {
            ports: vec![port(&near, &Frames::default()), port(&Frames::default(), &far)],
            lanes: specs.iter().enumerate().map(lane).collect(),
            ways: vec![way((0..specs.len()).collect()), way(vec![specs.len() - 1])],
            seed: Seed(1),
            origin: crate::monotonic(),
            bound: Span::from_millis(1),
            arena: 1 << 22,
            sample: Some((Span::from_micros(100), 1000)),
        })
        .unwrap();
        Bench { web, clock: Clock::default(), near, far }
    }

    /// Works until nothing is under way.
    fn run(&mut self) {
        loop {
            self.web.receive(&mut self.clock).unwrap();
            self.web.serve(&mut self.clock).unwrap();
            if self.web.live().in_flight() == 0 {
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
    assert_eq!((bench.web.hops(0)[2].frames, bench.web.hops(1)[0].frames), (2, 0));
    let busy: Vec<Span> = bench.web.legs().iter().map(|leg| leg.busy).collect();
    assert_eq!(busy, [Span::from_micros(200); 3]);
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
    let counts = [0, 1].map(|way| bench.web.live().way(way).conservation());
    assert_eq!((counts[0].sent, counts[0].duplicated, counts[0].delivered), (1, 1, 2));
    assert_eq!((counts[1].sent, counts[1].delivered + counts[1].dropped), (3, 3));
    assert!(counts[1].dropped >= 1 && counts.iter().all(|one| one.holds()));
    assert_eq!((bench.web.strays(), bench.web.pool.held()), (2, 0));
    assert_eq!(bench.far.lock().unwrap().len() as u64, 2 + counts[1].delivered);
}

#[test]
fn a_network_that_begins_anew_has_forgotten_everything() {
    let mut bench = Bench::new(&[spec(Span::from_micros(50)), spec(Span::from_secs(100))]);
    bench.near.lock().unwrap().extend([capsule(0, 100), capsule(0, 100)]);
    bench.web.receive(&mut bench.clock).unwrap();
    bench.web.serve(&mut bench.clock).unwrap();
    assert_eq!(bench.web.live().in_flight(), 2);
    bench.web.live().restart(crate::monotonic());
    assert!(!bench.web.live().has_restarted());
    bench.run();
    assert!(bench.web.live().has_restarted());
    assert_eq!(bench.web.live().way(0).conservation(), Default::default());
    assert!(bench.web.legs().iter().all(|leg| leg.counts.entered == 0));
    assert_eq!(bench.web.pool.held(), 0);
}

#[test]
fn nothing_happens_before_its_time() {
    let mut bench = Bench::new(&[spec(Span::from_secs(100))]);
    bench.near.lock().unwrap().push(capsule(0, 100));
    bench.web.receive(&mut bench.clock).unwrap();
    for _ in 0..3 {
        bench.web.serve(&mut bench.clock).unwrap();
    }
    assert_eq!((bench.web.live().in_flight(), bench.far.lock().unwrap().len()), (1, 0));
}

#[test]
fn a_copy_is_like_its_packet() {
    let mut pool = FramePool::new(1 << 20);
    let mut taken =
        || transit::packet(&capsule(0, 100), 0, Time::from_nanos(9), &mut pool).unwrap();
    let (mut packet, other) = (taken(), taken());
    (packet.band, packet.controls, packet.ecn) = (2, 4, trunkline_core::Ecn::Ect0);
    let copy = like(&packet, other.body);
    assert_eq!((copy.channel, copy.size, copy.entered), (packet.channel, 100, packet.entered));
    assert_eq!((copy.band, copy.controls, copy.ecn), (2, 4, trunkline_core::Ecn::Ect0));
}

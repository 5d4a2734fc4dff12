//! Frames of one protocol on real devices, in namespaces of our own.

use crate::common::Space;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_port::OwnFrames;

/// An EtherType for experiments (IEEE 802: local experimental 1).
const OURS: u16 = 0x88b5;
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03];

/// A veth pair, and the socket of each end, with `memory` bytes for what waits.
fn pair(memory: usize) -> Option<(OwnFrames, OwnFrames, Space)> {
    let space = Space::new()?;
    space.veth("tla", &space, "tlb", 1500);
    let open = |device| space.run(|| OwnFrames::open(device, OURS, memory)).expect(device);
    Some((open("tla"), open("tlb"), space))
}

fn frame(to: [u8; 6], from: [u8; 6], protocol: u16, length: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &protocol.to_be_bytes()].concat();
    frame.resize(length, 7);
    frame
}

/// The length of the frame that is sent last.
const LAST: usize = 61;

/// The frames that came before the last one.
fn all(socket: &OwnFrames) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    let mut buffer = [0; 2000];
    while Instant::now() < until {
        match socket.receive(&mut buffer).unwrap() {
            Some(LAST) => return found,
            Some(length) => found.push(buffer[..length].to_vec()),
            None => sleep(Duration::from_millis(1)),
        }
    }
    panic!("the last frame did not come: {} before it", found.len());
}

#[test]
fn only_frames_of_the_protocol_for_this_device_or_a_joined_group_come() {
    let Some((a, mut b, _space)) = pair(1 << 20) else { return };
    let (from, to) = (a.mac(), b.mac());
    assert_ne!(from, to);
    let mut stranger = to;
    stranger[5] ^= 1;
    let sent = [
        frame(to, from, OURS, 100),
        frame(stranger, from, OURS, 101),
        frame(to, from, OURS + 1, 102),
        frame(GROUP, from, OURS, 103),
        frame(to, from, OURS, 1514),
    ];
    let send = |frames: &[Vec<u8>]| {
        frames.iter().for_each(|frame| a.send(frame).unwrap());
        a.send(&frame(to, from, OURS, LAST)).unwrap();
    };
    send(&sent);
    assert_eq!(all(&b), [sent[0].clone(), sent[4].clone()]);
    b.join(GROUP).unwrap();
    send(&sent);
    assert_eq!(all(&b), [sent[0].clone(), sent[3].clone(), sent[4].clone()]);
}

#[test]
fn a_frame_that_is_longer_than_the_buffer_comes_cut() {
    let Some((a, b, _space)) = pair(1 << 20) else { return };
    let sent = frame(b.mac(), a.mac(), OURS, 300);
    a.send(&sent).unwrap();
    let mut buffer = [0; 200];
    let until = Instant::now() + Duration::from_secs(10);
    let length = loop {
        if let Some(length) = b.receive(&mut buffer).unwrap() {
            break length;
        }
        assert!(Instant::now() < until, "the frame did not come");
        sleep(Duration::from_millis(1));
    };
    assert_eq!((length, &buffer[..]), (200, &sent[..200]));
}

/// Sends 200 frames and reads those that come, until all that did not are counted beside the `dropped` of before.
fn flood(a: &OwnFrames, b: &mut OwnFrames, dropped: u64) -> u64 {
    (0..200).for_each(|_| a.send(&frame(b.mac(), a.mac(), OURS, 1000)).unwrap());
    let (mut came, mut buffer) = (0, [0; 2000]);
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        while b.receive(&mut buffer).unwrap().is_some() {
            came += 1;
        }
        let all = b.drops();
        if came + all == 200 + dropped {
            return all;
        }
        assert!(Instant::now() < until, "{came} came, {all} dropped, {dropped} of them before");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_finds_no_memory_is_counted_over_all_readings() {
    let Some((a, mut b, _space)) = pair(8_000) else { return };
    assert!((1..200_000).contains(&b.memory()), "{}", b.memory());
    let first = flood(&a, &mut b, 0);
    assert!(first > 0, "nothing was dropped");
    let second = flood(&a, &mut b, first);
    assert!(second > first, "nothing was dropped the second time");
}

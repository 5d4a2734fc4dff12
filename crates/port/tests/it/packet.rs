//! The packet backend on real devices, in namespaces of our own.

use crate::common::{Space, frame, receive, send};
use trunkline_port::{Backend, Port, PortError, SendOutcome, open};

/// Namespace with a veth pair tla–tlb.
fn pair(mtu: u32) -> Option<Space> {
    let space = Space::new()?;
    space.veth("tla", &space, "tlb", mtu);
    Some(space)
}

fn port(space: &Space, device: &str) -> Box<dyn Port> {
    space.run(|| open(device, Backend::Packet)).expect(device)
}

#[test]
fn frames_pass_unchanged() {
    let Some(space) = pair(9000) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    assert_eq!((a.mtu(), a.device(), a.backend_name()), (9000, "tla", "packet"));
    let customer = [0x81, 0x00, 0x20, 0x05];
    let service = [0x88, 0xa8, 0xe0, 0x64];
    let mut frames = Vec::new();
    for (seed, length) in [60, 61, 64, 1514, 2000, 2048, 9013, 9014].into_iter().enumerate() {
        frames.push(frame(length, &[], seed as u8));
        frames.push(frame(length, &[customer], seed as u8));
        frames.push(frame(length, &[service], seed as u8));
        frames.push(frame(length, &[service, customer], seed as u8));
    }
    frames.push(frame(9018, &[customer], 77));
    for round in 0..4 {
        let (from, to) = if round % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        assert!(send(&mut **from, &frames).iter().all(|&outcome| outcome == SendOutcome::Sent));
        let got = receive(&mut **to, frames.len());
        assert_eq!(got.len(), frames.len());
        for ((got, stamp), sent) in got.iter().zip(&frames) {
            assert!(got == sent, "{} bytes came as {}", sent.len(), got.len());
            assert!(stamp.is_some());
        }
        assert!(got.is_sorted_by_key(|(_, stamp)| *stamp));
    }
    assert_eq!((b.kernel_drops(), b.refusals().total()), (0, 0));
}

#[test]
fn many_rounds_of_the_ring_keep_order() {
    let Some(space) = pair(1500) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    for round in 0..100u32 {
        let frames: Vec<_> = (0..200u32)
            .map(|i| {
                let mut frame = frame(100, &[], 0);
                frame[20..24].copy_from_slice(&(round * 200 + i).to_be_bytes());
                frame
            })
            .collect();
        assert!(send(&mut *a, &frames).iter().all(|&outcome| outcome == SendOutcome::Sent));
        let got = receive(&mut *b, frames.len());
        assert!(got.iter().map(|(bytes, _)| bytes).eq(&frames), "round {round}");
    }
}

#[test]
fn no_more_than_the_budget_is_received() {
    let Some(space) = pair(1500) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    send(&mut *a, &vec![frame(100, &[], 1); 20]);
    let mut all = 0;
    for _ in 0..100 {
        let count = b.receive(3, &mut |_| {}).expect("receive");
        assert!(count <= 3, "{count} frames for a budget of 3");
        all += count;
    }
    // Neighbour discovery of the kernel may be among them.
    assert!(all >= 20, "{all}");
}

#[test]
fn what_cannot_be_sent_is_named() {
    let Some(space) = pair(1500) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    let frames = [frame(100, &[], 1), frame(1600, &[], 2), vec![0; 5], frame(100, &[], 3)];
    let outcomes = send(&mut *a, &frames);
    let wanted = [
        SendOutcome::Sent,
        SendOutcome::TooBig,
        SendOutcome::Refused(libc::EINVAL),
        SendOutcome::Sent,
    ];
    assert_eq!(outcomes, wanted);
    assert_eq!(receive(&mut *b, 2).len(), 2);
}

#[test]
fn an_overrun_ring_is_counted() {
    let Some(space) = pair(9000) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    let frames = vec![frame(5000, &[], 1); 16_000];
    send(&mut *a, &frames);
    let got = receive(&mut *b, frames.len());
    assert!(got.len() < frames.len());
    // Neighbour discovery of the kernel may be among the dropped.
    let dropped = b.kernel_drops() as usize;
    assert!((frames.len() - got.len()..frames.len() + 50).contains(&dropped), "{dropped}");
    assert_eq!(b.kernel_drops() as usize, dropped);
}

#[test]
fn device_states_are_told_apart() {
    let Some(space) = pair(1500) else { return };
    let missing = space.run(|| open("tlnone", Backend::Packet)).err().expect("no such device");
    assert!(matches!(missing, PortError::NoSuchDevice { .. }), "{missing}");
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    a.check().expect("up");
    space.set_up("tla", false);
    assert!(matches!(a.check(), Err(PortError::Down { .. })));
    let frames = vec![frame(100, &[], 1); 70];
    assert_eq!(send(&mut *a, &frames), vec![SendOutcome::Refused(libc::ENETDOWN); 70]);
    space.set_up("tla", true);
    a.check().expect("up again");
    assert_eq!(send(&mut *a, &frames[..1]), [SendOutcome::Sent]);
    assert_eq!(receive(&mut *b, 1).len(), 1);
    assert_eq!(send(&mut *b, &frames[..1]), [SendOutcome::Sent]);
    assert_eq!(receive(&mut *a, 1).len(), 1);
    space.remove("tlb");
    assert!(matches!(a.check(), Err(PortError::Gone { .. })));
    assert!(matches!(b.check(), Err(PortError::Gone { .. })));
    assert_eq!(send(&mut *a, &frames[..2]), [SendOutcome::Refused(libc::ENXIO); 2]);
}

#[test]
fn without_a_carrier_frames_are_refused() {
    let Some(space) = pair(1500) else { return };
    let mut a = port(&space, "tla");
    space.set_up("tlb", false);
    a.check().expect("up, if without a carrier");
    assert_eq!(send(&mut *a, &[frame(100, &[], 1)]), [SendOutcome::Refused(libc::ENOBUFS)]);
}

#[test]
fn a_port_survives_its_threads_namespace() {
    let (Some(space), Some(elsewhere)) = (pair(1500), Space::new()) else { return };
    let (mut a, mut b) = (port(&space, "tla"), port(&space, "tlb"));
    elsewhere.run(|| {
        a.check().expect("still there");
        assert_eq!(send(&mut *a, &[frame(100, &[], 1)]), [SendOutcome::Sent]);
        assert_eq!(receive(&mut *b, 1).len(), 1);
    });
}

//! The AF_XDP backend on real devices, in namespaces of our own.

use crate::common::{Space, frame, receive, send};
use trunkline_port::{Backend, Port, PortError, SendOutcome, open};

/// Namespace with a veth pair tla–tlb.
fn pair(mtu: u32) -> Option<Space> {
    let space = Space::new()?;
    space.veth("tla", &space, "tlb", mtu);
    Some(space)
}

/// A port, or `None` with a message if we may not create BPF maps.
fn port(space: &Space, device: &str) -> Option<Box<dyn Port>> {
    match space.run(|| open(device, Backend::Xdp)) {
        Ok(port) => Some(port),
        Err(error @ PortError::Permission { .. }) => {
            trunkline_skip::skipped(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

type Pair = (Space, Box<dyn Port>, Box<dyn Port>);

fn ports(mtu: u32) -> Option<Pair> {
    let space = pair(mtu)?;
    let (a, b) = (port(&space, "tla")?, port(&space, "tlb")?);
    Some((space, a, b))
}

#[test]
fn frames_pass_unchanged() {
    let Some((_space, mut a, mut b)) = ports(1500) else { return };
    assert_eq!(a.backend_name(), "xdp (native)");
    let mut frames: Vec<_> = (60..1515).step_by(7).map(|n| frame(n, &[], n as u8)).collect();
    frames.push(frame(1518, &[[0x81, 0, 0x60, 5]], 1));
    frames.push(frame(1518, &[[0x88, 0xa8, 0, 5], [0x81, 0, 0, 6]], 2));
    for round in 0..100 {
        let (from, to) = if round % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let outcomes = send(&mut **from, &frames);
        assert_eq!(outcomes, vec![SendOutcome::Sent; frames.len()], "round {round}");
        let got = receive(&mut **to, frames.len());
        assert!(got.iter().map(|(bytes, _)| bytes).eq(&frames), "round {round}: {}", got.len());
        assert!(got.iter().all(|(_, stamp)| stamp.is_none()));
    }
    assert_eq!((a.kernel_drops(), a.refusals().total()), (0, 0));
}

#[test]
fn larger_frames_fall_back_to_generic_mode() {
    let Some((_space, mut a, mut b)) = ports(3800) else { return };
    assert_eq!(a.backend_name(), "xdp (generic)");
    let frames = [frame(3814, &[], 1), frame(3818, &[[0x81, 0, 0, 9]], 2), frame(3819, &[], 3)];
    let wanted = [SendOutcome::Sent, SendOutcome::Sent, SendOutcome::TooBig];
    assert_eq!(send(&mut *a, &frames), wanted);
    let got = receive(&mut *b, 2);
    assert!(got.iter().map(|(bytes, _)| bytes).eq(&frames[..2]));
}

#[test]
fn devices_that_would_lose_frames_are_refused() {
    let Some(space) = pair(9000) else { return };
    let error = space.run(|| open("tla", Backend::Xdp)).err().expect("too large");
    assert!(matches!(error, PortError::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("lower the MTU"), "{error}");
    let error = space.run(|| open("tlnone", Backend::Xdp)).err().expect("no such device");
    assert!(matches!(error, PortError::NoSuchDevice { .. }), "{error}");
}

#[test]
fn a_second_user_is_refused_and_a_successor_served() {
    let Some((space, a, _b)) = ports(1500) else { return };
    let error = space.run(|| open("tla", Backend::Xdp)).err().expect("in use");
    assert!(error.to_string().contains("another XDP program"), "{error}");
    drop(a);
    for _ in 0..5 {
        drop(port(&space, "tla"));
    }
}

#[test]
fn outcomes_are_exact_when_the_device_fails() {
    let Some((space, mut a, mut b)) = ports(1500) else { return };
    let frames: Vec<_> = (0..150).map(|i| frame(100, &[], i)).collect();
    space.set_up("tla", false);
    assert!(matches!(a.check(), Err(PortError::Down { .. })));
    assert_eq!(send(&mut *a, &frames), vec![SendOutcome::Refused(libc::ENETDOWN); 150]);
    space.set_up("tla", true);
    a.check().expect("up again");
    // What was refused must not come after all.
    assert_eq!(send(&mut *a, &frames[7..8]), [SendOutcome::Sent]);
    let got = receive(&mut *b, 2);
    assert!(got.iter().map(|(bytes, _)| bytes).eq(&frames[7..8]));
    space.set_up("tlb", false);
    assert_eq!(send(&mut *a, &frames), vec![SendOutcome::Refused(libc::ENOBUFS); 150]);
    space.set_up("tlb", true);
    let mixed = [frames[1].clone(), vec![1; 9], frame(1600, &[], 2), frames[2].clone()];
    let wanted = [
        SendOutcome::Sent,
        SendOutcome::Refused(libc::EINVAL),
        SendOutcome::TooBig,
        SendOutcome::Sent,
    ];
    assert_eq!(send(&mut *a, &mixed), wanted);
    let got = receive(&mut *b, 3);
    assert!(got.iter().map(|(bytes, _)| bytes).eq(&frames[1..3]));
    space.remove("tla");
    assert!(matches!(a.check(), Err(PortError::Gone { .. })));
    assert_eq!(send(&mut *a, &frames[..2]), [SendOutcome::Refused(libc::ENXIO); 2]);
}

#[test]
fn nothing_is_lost_between_sent_and_received_or_dropped() {
    let Some((_space, mut a, mut b)) = ports(1500) else { return };
    // More than the receiver's ring holds, and more than the sender has frames for.
    let frames: Vec<_> =
        (0..20_000u32).map(|i| frame(60 + (i % 50) as usize, &[], i as u8)).collect();
    let sent = send(&mut *a, &frames).iter().filter(|&&o| o == SendOutcome::Sent).count();
    let got = receive(&mut *b, frames.len()).len();
    let dropped = b.kernel_drops() as usize;
    println!("sent {sent}, received {got}, dropped {dropped}");
    assert!(got > 0 && dropped > 0 && got < frames.len());
    assert!(sent <= got + dropped, "sent {sent}, received {got}, dropped {dropped}");
}

//! `trunkline bridge`: every frame passes, and both ends of a broken one are told.

use crate::support::{Host, LIMIT, Running, installed};
use std::time::Instant;
use trunkline_netns::{End, IpNet, Namespace, create_veth};
use trunkline_port::{Backend, Port, SendOutcome};

const MTU: u32 = 9000;

/// Two namespaces, each joined to the host by a device pair; the bridge goes between.
///
/// ```text
///  left tltl ─── tlta  host  tltb ─── tltr right
/// ```
struct Sides {
    left: Namespace,
    right: Namespace,
}

impl Sides {
    fn build(host: &Namespace) -> Sides {
        let sides =
            Sides { left: Namespace::create().unwrap(), right: Namespace::create().unwrap() };
        for (side, outer, inner, address) in
            [(&sides.left, "tltl", "tlta", 1), (&sides.right, "tltr", "tltb", 2)]
        {
            create_veth(&End::new(side, outer), &End::new(host, inner), MTU).unwrap();
            for net in [format!("192.0.2.{address}/24"), format!("2001:db8::{address}/64")] {
                side.add_address(outer, net.parse::<IpNet>().unwrap()).unwrap();
            }
        }
        sides
    }
}

fn start(host: &Host, more: &[&str]) -> Running {
    let arguments = ["bridge", "tlta", "tltb", "--delay", "5ms", "--best-effort", "--json"];
    let mut running = host.start(&[&arguments, more].concat());
    running.await_line("tlta <-> tltb");
    running
}

/// Ends the run as its user would.
fn stop(host: &Host, running: Running) -> crate::support::Outcome {
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    host.assert_nothing_left(outcome.pid);
    outcome
}

#[test]
fn address_resolution_ping_and_jumbo_pass() {
    let host = Host::beside();
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let sides = Sides::build(namespace);
    let running = start(&host, &[]);
    // IPv4 needs ARP first, IPv6 neighbour discovery; 8972 and 28 bytes of headers are the whole MTU.
    for words in [
        &["-c", "2", "192.0.2.2"][..],
        &["-6", "-c", "2", "2001:db8::2"],
        &["-M", "do", "-s", "8972", "-c", "2", "192.0.2.2"],
    ] {
        let mut command = std::process::Command::new("ping");
        command.args(["-n", "-W", "5", "-i", "0.2"]).args(words);
        command.stdout(std::process::Stdio::piped());
        let child = trunkline_netns::spawn(&sides.left, command, Default::default()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(" 0% packet loss"), "{words:?}: {text}");
    }
    let outcome = stop(&host, running);
    for direction in ["up", "down"] {
        let lane = outcome.lane(direction);
        assert!(lane.count("delivered_bytes") > 2 * 9000, "{lane:?}");
        assert_eq!(lane.count("dropped_by_emulator"), 0);
        assert_eq!(lane.mean_delay("propagate").as_deref(), Some("5ms"));
    }
}

/// A frame of `kind` to `to`, filled up to `size` bytes with a pattern that tells it from all others.
fn frame(to: [u8; 6], kind: &[u8], size: usize) -> Vec<u8> {
    let mut frame = [&to, &[0x02, b't', b'l', b't', 0, 9], kind].concat();
    let start = frame.len();
    frame.extend((start..size).map(|index| (index * 31 % 253) as u8));
    frame
}

/// Waits until the port has received each of `expected`, byte for byte and in this order.
fn await_frames(port: &mut dyn Port, expected: &[Vec<u8>]) {
    let until = Instant::now() + LIMIT;
    let mut found = 0;
    while found < expected.len() {
        assert!(Instant::now() < until, "frame {found} did not come through unharmed");
        let mut sink = |frame: trunkline_port::Received<'_>| {
            found += usize::from(found < expected.len() && frame.bytes == expected[found]);
        };
        port.receive(32, &mut sink).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn frames_of_every_kind_pass_unchanged_both_ways() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let sides = Sides::build(namespace);
    let open = |side: &Namespace, device| {
        side.run(|| trunkline_port::open(device, Backend::Packet)).unwrap().unwrap()
    };
    let (mut left, mut right) = (open(&sides.left, "tltl"), open(&sides.right, "tltr"));
    let running = start(&host, &[]);
    let frames = [
        // LLDP, which no switch hands on (IEEE 802.1AB).
        frame([0x01, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xcc], 60),
        // A spanning-tree message: a length in place of a type (IEEE 802.1D).
        frame([0x01, 0x80, 0xc2, 0, 0, 0], &[0, 38, 0x42, 0x42, 3], 60),
        // VLAN 77 with priority 5, and a VLAN in a service VLAN (IEEE 802.1Q, 802.1ad).
        frame([0xff; 6], &[0x81, 0, 0xa0, 77, 0x12, 0x34], 300),
        frame([0xff; 6], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x12, 0x34], 300),
        // A type that nobody knows, the smallest and the largest frame.
        frame([2, 0, 0, 0, 0, 1], &[0x12, 0x34], 60),
        frame([2, 0, 0, 0, 0, 1], &[0x12, 0x34], 14 + MTU as usize),
    ];
    for _direction in ["up", "down"] {
        let mut all = frames.iter().map(Vec::as_slice);
        let mut outcome = |index, told| assert_eq!(told, SendOutcome::Sent, "frame {index}");
        left.send(&mut all, &mut outcome).unwrap();
        await_frames(right.as_mut(), &frames);
        std::mem::swap(&mut left, &mut right);
    }
    let outcome = stop(&host, running);
    assert!(
        outcome.lane("up").count("delivered") >= 6 && outcome.lane("down").count("delivered") >= 6
    );
}

#[test]
fn a_device_that_disappears_ends_the_run_with_one_line() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let _sides = Sides::build(namespace);
    let running = start(&host, &["--duration", "30s"]);
    namespace.delete_link("tltb").unwrap();
    let outcome = running.finish();
    host.assert_nothing_left(outcome.pid);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let complaint = outcome.complaint();
    assert!(["tltb", "gone"].iter().all(|word| complaint.contains(word)), "{complaint}");
}

/// Pings the right side from the left one; tells whether an answer came.
fn ping(sides: &Sides) -> bool {
    let mut command = std::process::Command::new("ping");
    command.args(["-n", "-c", "1", "-W", "2", "192.0.2.2"]).stdout(std::process::Stdio::null());
    let mut child = trunkline_netns::spawn(&sides.left, command, Default::default()).unwrap();
    child.wait().unwrap().success()
}

#[test]
fn a_device_that_is_switched_off_and_on_again_goes_on() {
    let host = Host::beside();
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let sides = Sides::build(namespace);
    let mut running = start(&host, &[]);
    assert!(ping(&sides));
    for device in ["tltb", "tlta"] {
        namespace.set_down(device).unwrap();
        running.await_line(&format!("device '{device}' is down"));
        assert!(!ping(&sides), "over a device that is down");
        namespace.set_up(device).unwrap();
        running.await_line(&format!("device '{device}' is up again"));
        let until = Instant::now() + LIMIT;
        while !ping(&sides) {
            assert!(Instant::now() < until, "nothing passes after '{device}' is up again");
        }
    }
    let outcome = stop(&host, running);
    // What could not leave is counted: lane() sees that the counts add up.
    assert!(outcome.lane("up").count("delivered") >= 3, "{outcome:#?}");
    outcome.lane("down");
}

/// The rights that a container has by default (Docker's documentation, "Linux capabilities"), and NET_ADMIN.
const CONTAINER: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap,+net_admin";

#[test]
fn the_rights_of_a_container_suffice() {
    let host = Host::beside();
    let Some(namespace) = host.separate().filter(|_| installed(&["setpriv", "ping"])) else {
        return;
    };
    let sides = Sides::build(namespace);
    let bridge = |rights: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--bounding-set", rights, "--inh-caps", "-all", "--"]);
        command.arg(env!("CARGO_BIN_EXE_trunkline"));
        command.args(["bridge", "tlta", "tltb", "--delay", "5ms", "--best-effort", "--json"]);
        host.start_command(command)
    };
    let mut running = bridge(CONTAINER);
    running.await_line("tlta <-> tltb");
    assert!(ping(&sides));
    stop(&host, running);
    // Without the right to open packet sockets it says which is missing.
    let outcome = bridge("-all,+net_admin,+dac_override").finish();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.complaint().contains("CAP_NET_RAW"), "{outcome:#?}");
    host.assert_nothing_left(outcome.pid);
}

#[test]
fn a_duration_ends_it_and_a_device_that_is_down_is_refused() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let _sides = Sides::build(namespace);
    let outcome = host.run(&["bridge", "tlta", "tltb", "--duration", "200ms", "--best-effort"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    namespace.set_down("tlta").unwrap();
    let outcome = host.run(&["bridge", "tlta", "tltb"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.complaint().contains("ip link set tlta up"), "{outcome:#?}");
}

/// Two runs between the same devices would pass each frame twice.
#[test]
fn devices_of_another_run_are_refused() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let _sides = Sides::build(namespace);
    let running = start(&host, &[]);
    let outcome = host.run(&["bridge", "tltb", "tlta", "--duration", "200ms"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.complaint().contains("end that run first"), "{outcome:#?}");
    stop(&host, running);
    let outcome = host.run(&["bridge", "tltb", "tlta", "--duration", "200ms", "--best-effort"]);
    assert!(outcome.status.success(), "{outcome:#?}");
}

/// What goes out at the loopback comes in there; and a bridge of the kernel passes on what its ports take in.
#[test]
fn devices_that_frames_would_come_back_from_are_refused() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let _sides = Sides::build(namespace);
    let refused = |devices: [&str; 2], why: &str| {
        let [a, b] = devices;
        let outcome = host.run(&["bridge", a, b, "--duration", "200ms", "--best-effort"]);
        assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
        assert!(outcome.complaint().contains(why), "{outcome:#?}");
    };
    namespace.set_up("lo").unwrap();
    refused(["tlta", "lo"], "interface 'lo' is no Ethernet interface");
    namespace.create_bridge("tltbr", MTU).unwrap();
    namespace.add_port("tltbr", "tlta").unwrap();
    refused(["tltbr", "tlta"], "'tlta' is a part of 'tltbr'");
    namespace.add_port("tltbr", "tltb").unwrap();
    refused(["tlta", "tltb"], "'tlta' and 'tltb' are parts of one device");
    namespace.delete_link("tltbr").unwrap();
    refused(["tltb", "lo"], "interface 'lo'");
}

//! Laboratories on the real kernel, each in namespaces of its own. Without the rights for them (run as
//! root) each test says so and ends.
#![allow(unsafe_code)]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trunkline_netns::{
    End, LabError, Mac, Namespace, Outside, RunState, SavedOffloads, SpawnOptions, create_veth,
    kill_processes_in, processes_in, spawn, sweep,
};
use trunkline_skip::skipped;

/// Longer than any step takes, so that a fault ends the test.
const PATIENCE: Duration = Duration::from_secs(5);

/// A namespace, or nothing and a message if there is no permission to make one.
fn namespace() -> Option<Namespace> {
    match Namespace::create() {
        Err(error) if error.errno() == Some(libc::EPERM) => {
            skipped(error);
            None
        }
        made => Some(made.expect("a namespace")),
    }
}

fn pair() -> Option<(Namespace, Namespace)> {
    Some((namespace()?, namespace()?))
}

/// Two namespaces joined by a pair with addresses of both families.
fn joined() -> Option<(Namespace, Namespace)> {
    let (a, b) = pair()?;
    let ends = (End::new(&a, "tla"), End::new(&b, "tlb"));
    create_veth(&ends.0.with_mac(Mac::local(1)), &ends.1.with_mac(Mac::local(2)), 1400).unwrap();
    for (side, name, number) in [(&a, "tla", 1), (&b, "tlb", 2)] {
        side.add_address(name, format!("10.77.0.{number}/24").parse().unwrap()).unwrap();
        side.add_address(name, format!("fd77::{number}/64").parse().unwrap()).unwrap();
    }
    Some((a, b))
}

fn bind(namespace: &Namespace, address: &str) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((address, 0))).unwrap().expect("a bound socket");
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends from one socket to the other and tells the sender that the receiver saw.
fn exchange(from: &UdpSocket, to: &UdpSocket, at: impl Into<IpAddr>) -> SocketAddr {
    let port = to.local_addr().unwrap().port();
    from.send_to(b"over the trunk", (at.into(), port)).unwrap();
    let mut buffer = [0; 64];
    let (length, sender) = to.recv_from(&mut buffer).expect("the datagram");
    assert_eq!(&buffer[..length], b"over the trunk");
    sender
}

/// A directory for records, removed whatever becomes of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("tl-lab-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn datagrams_of_both_families_cross_at_once() {
    let Some((a, b)) = joined() else { return };
    for (near, far) in [("10.77.0.1", "10.77.0.2"), ("fd77::1", "fd77::2")] {
        let (near_socket, far_socket) = (bind(&a, near), bind(&b, far));
        let sender = exchange(&near_socket, &far_socket, far.parse::<IpAddr>().unwrap());
        assert_eq!(sender.ip().to_string(), near);
        exchange(&far_socket, &near_socket, sender.ip());
    }
    let info = b.link("tlb").unwrap();
    assert_eq!((info.mtu, info.up, info.mac), (1400, true, Some(Mac::local(2))));
}

#[test]
fn devices_can_be_changed_and_removed() {
    let Some((a, b)) = joined() else { return };
    a.set_mtu("tla", 9000).unwrap();
    a.set_down("tla").unwrap();
    let info = a.link("tla").unwrap();
    assert_eq!((info.mtu, info.up, info.operating), (9000, false, false));
    let told = a.set_mtu("tla", 70_000).unwrap_err().to_string();
    assert!(told.contains("set the MTU of tla to 70000"), "{told}");
    a.delete_link("tla").unwrap();
    assert!(matches!(b.link("tlb"), Err(LabError::NoDevice(_))));
}

#[test]
fn a_namespace_holds_nothing_but_loopback_and_its_own_settings() {
    let Some((a, b)) = pair() else { return };
    assert!(a.link("lo").unwrap().up);
    assert_ne!(a.id(), b.id());
    a.set_sysctl("net/ipv4/ip_forward", "1").unwrap();
    assert_eq!(a.sysctl("net/ipv4/ip_forward").unwrap(), "1");
    assert_eq!(b.sysctl("net/ipv4/ip_forward").unwrap(), "0");
    assert_eq!(a.run(|| Namespace::current().unwrap().id()).unwrap(), a.id());
}

/// With every neighbour noted, not even the first datagram needs a question on the wire: it arrives
/// although neither side answers one.
#[test]
fn noted_neighbours_are_not_asked_for() {
    let Some((a, b)) = joined() else { return };
    for (side, device) in [(&a, "tla"), (&b, "tlb")] {
        side.set_sysctl(&format!("net/ipv4/conf/{device}/arp_ignore"), "8").unwrap();
    }
    let (near, far) = (bind(&a, "10.77.0.1"), bind(&b, "10.77.0.2"));
    far.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    near.send_to(b"lost", far.local_addr().unwrap()).unwrap();
    assert_eq!(far.recv_from(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let address = Ipv4Addr::new(10, 77, 0, 2);
    a.add_neighbour("tla", address.into(), Mac::local(2)).unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 64];
    near.send_to(b"found", far.local_addr().unwrap()).unwrap();
    // The kernel may still deliver the first one, which waited for an answer.
    let first = far.recv_from(&mut buffer).unwrap().0;
    assert!([&b"found"[..], b"lost"].contains(&&buffer[..first]));
}

/// Packets that have come to a device of a namespace.
fn came(space: &Namespace, device: &str) -> u64 {
    let table = space.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let table = table.unwrap();
    let line = table.lines().find_map(|it| it.trim().strip_prefix(&format!("{device}:")));
    line.and_then(|it| it.split_whitespace().nth(1)?.parse().ok()).expect("its packets")
}

/// A bridge that knows behind which port an address is asks no other: not even the first packet goes to all.
#[test]
fn a_bridge_sends_nothing_to_all_ports_if_it_is_told_who_is_behind_which() {
    let spaces = [(); 4].map(|()| namespace());
    let [Some(middle), Some(a), Some(b), Some(c)] = spaces else {
        return skipped("four namespaces could not be made");
    };
    middle.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    middle.create_bridge("tlbridge", 1500).unwrap();
    for (number, host) in (1..).zip([&a, &b, &c]) {
        host.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        let inner = format!("tl{number}");
        let ends = [End::new(host, "tl").with_mac(Mac::local(number)), End::new(&middle, &inner)];
        create_veth(&ends[0], &ends[1], 1500).unwrap();
        middle.add_port("tlbridge", &inner).unwrap();
        host.add_address("tl", format!("10.77.0.{number}/24").parse().unwrap()).unwrap();
    }
    // Nobody asks on the wire, and b has said nothing.
    let [near, far] = [1, 2].map(|last| Ipv4Addr::new(10, 77, 0, last));
    a.add_neighbour("tl", far.into(), Mac::local(2)).unwrap();
    b.add_neighbour("tl", near.into(), Mac::local(1)).unwrap();
    middle.add_behind_port("tl2", Mac::local(2)).unwrap();
    let before = [came(&b, "tl"), came(&c, "tl")];
    bind(&a, "10.77.0.1").send_to(b"b", (far, 9)).unwrap();
    let arrived = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        came(&b, "tl") > before[0]
    });
    assert!(arrived);
    assert_eq!(came(&c, "tl"), before[1]);
}

#[test]
fn routes_lead_through_a_router_in_both_families() {
    let (Some((a, b)), Some(c)) = (joined(), namespace()) else { return };
    create_veth(&End::new(&b, "tlc"), &End::new(&c, "tlb"), 1400).unwrap();
    for (forward, near, far) in [
        ("net/ipv4/ip_forward", "10.78.0.1/24", "10.78.0.2/24"),
        ("net/ipv6/conf/all/forwarding", "fd78::1/64", "fd78::2/64"),
    ] {
        b.add_address("tlc", near.parse().unwrap()).unwrap();
        c.add_address("tlb", far.parse().unwrap()).unwrap();
        b.set_sysctl(forward, "1").unwrap();
    }
    a.add_default_route("10.77.0.2".parse().unwrap()).unwrap();
    a.add_route("fd78::/64".parse().unwrap(), "fd77::2".parse().unwrap()).unwrap();
    c.add_route("10.77.0.0/24".parse().unwrap(), "10.78.0.1".parse().unwrap()).unwrap();
    c.add_default_route("fd78::1".parse().unwrap()).unwrap();
    for (near, far) in [("10.77.0.1", "10.78.0.2"), ("fd77::1", "fd78::2")] {
        let sender = exchange(&bind(&a, near), &bind(&c, far), far.parse::<IpAddr>().unwrap());
        assert_eq!(sender.ip().to_string(), near);
    }
}

#[test]
fn a_group_is_reached_by_the_device_with_the_least_metric() {
    let (Some((a, b)), Some(c)) = (joined(), namespace()) else { return };
    create_veth(&End::new(&a, "tlc"), &End::new(&c, "tla"), 1400).unwrap();
    a.add_address("tlc", "10.78.0.1/24".parse().unwrap()).unwrap();
    c.add_address("tla", "10.78.0.2/24".parse().unwrap()).unwrap();
    let groups = "224.0.0.0/4".parse().unwrap();
    let group: IpAddr = "239.1.2.3".parse().unwrap();
    let hear = |namespace: &Namespace, own: &str| {
        let socket = bind(namespace, "0.0.0.0");
        let IpAddr::V4(group) = group else { unreachable!() };
        socket.join_multicast_v4(&group, &own.parse().unwrap()).unwrap();
        socket
    };
    for (metric, device, far, heard) in [(7, "tlc", &c, "10.78.0.2"), (3, "tla", &b, "10.77.0.2")] {
        a.add_device_route(device, groups, metric).unwrap();
        let told = a.add_device_route(device, groups, metric);
        assert!(told.is_err(), "{told:?}");
        exchange(&bind(&a, "0.0.0.0"), &hear(far, heard), group);
    }
    assert!(matches!(a.add_device_route("tl-none", groups, 1), Err(LabError::NoDevice(_))));
}

#[test]
fn offloads_are_off_and_come_back_exactly() {
    let Some((a, _b)) = joined() else { return };
    let before = a.offloads("tla").unwrap();
    assert!(before.iter().any(|name| name == "tx-tcp-segmentation"), "{before:?}");
    assert!(before.iter().any(|name| name == "tx-checksum-ip-generic"), "{before:?}");
    let saved = a.set_offloads_off("tla").unwrap();
    assert_eq!(a.offloads("tla").unwrap(), Vec::<String>::new());
    assert_eq!(a.super_packet_offloads("tla").unwrap(), Vec::<String>::new());
    a.restore_offloads(&saved).unwrap();
    assert_eq!(a.offloads("tla").unwrap(), before);
    assert_eq!(a.save_offloads("tla").unwrap(), saved);
    assert!(matches!(a.offloads("tl-none"), Err(LabError::NoDevice(_))));
}

#[test]
fn offloads_of_the_host_are_written_down_while_they_are_off() {
    let Some((a, _b)) = joined() else { return };
    let directory = Scratch::new("offloads");
    let state = RunState::create(&directory.0, &a).unwrap();
    let before = a.offloads("tla").unwrap();
    let saved = state.set_offloads_off(&a, "tla").unwrap();
    assert_eq!(a.offloads("tla").unwrap(), Vec::<String>::new());
    assert_eq!(state.record().saved_offloads, std::slice::from_ref(&saved));
    state.restore_offloads(&a, &saved).unwrap();
    assert_eq!(a.offloads("tla").unwrap(), before);
    assert!(state.record().saved_offloads.is_empty());
}

/// Datagrams that a sender hands over joined (UDP segmentation) travel one by one: the reader of
/// the frames sees nothing above the MTU, and every sum is finished.
#[test]
fn only_frames_of_wire_size_with_finished_sums_are_seen() {
    let Some((a, b)) = joined() else { return };
    a.set_offloads_off("tla").unwrap();
    b.set_offloads_off("tlb").unwrap();
    let reader = b.run(frames::open).unwrap();
    let (from, to) = (bind(&a, "10.77.0.1"), bind(&b, "10.77.0.2"));
    frames::segment(&from, 1000);
    from.send_to(&[7; 4000], to.local_addr().unwrap()).unwrap();
    let seen: Vec<_> = (0..4).map(|_| frames::next_udp(&reader)).collect();
    for (length, finished) in seen {
        assert_eq!((length, finished), (14 + 20 + 8 + 1000, true));
    }
}

#[test]
fn programs_run_inside_are_found_and_killed() {
    let Some(a) = namespace() else { return };
    let mut sleep = Command::new("sleep");
    sleep.arg("30");
    let options = SpawnOptions { own_group: true, ..SpawnOptions::default() };
    let mut child = spawn(&a, sleep, options.clone()).unwrap();
    assert_eq!(processes_in(a.inode()), [child.id()]);
    assert_eq!(kill_processes_in(a.inode(), libc::SIGKILL).unwrap(), 1);
    assert!(!child.wait().unwrap().success());
    assert_eq!(processes_in(a.inode()), Vec::<u32>::new());
    let told = spawn(&a, Command::new("/tl-none"), options).unwrap_err().to_string();
    assert!(told.contains("/tl-none"), "{told}");
}

/// A world of three namespaces: laboratory `near`–`far`, a stand-in for the host, and one for the world
/// behind it, which has no route back into the laboratory or to the host's inside.
#[test]
fn the_outside_is_reached_from_behind_the_far_namespace() {
    let (Some((near, far)), Some((host, world))) = (joined(), pair()) else { return };
    create_veth(&End::new(&host, "tlup"), &End::new(&world, "tldown"), 1500).unwrap();
    host.add_address("tlup", "192.0.2.1/24".parse().unwrap()).unwrap();
    world.add_address("tldown", "192.0.2.2/24".parse().unwrap()).unwrap();
    near.add_default_route("10.77.0.2".parse().unwrap()).unwrap();
    let directory = Scratch::new("outside");
    let state = RunState::create(&directory.0, &host).unwrap();
    let outside = Outside::connect(&host, &far, &state).unwrap();
    let device = outside.devices().0.to_owned();

    let (inside, server) = (bind(&near, "10.77.0.1"), bind(&world, "192.0.2.2"));
    let sender = exchange(&inside, &server, Ipv4Addr::new(192, 0, 2, 2));
    assert_eq!(sender.ip().to_string(), "192.0.2.1", "masqueraded as the host");
    server.send_to(b"back", sender).unwrap();
    let mut buffer = [0; 9];
    let (length, from) = inside.recv_from(&mut buffer).expect("the answer");
    assert_eq!((&buffer[..length], from.ip().to_string().as_str()), (&b"back"[..], "192.0.2.2"));

    let record = state.record();
    assert_eq!(
        (record.host_devices, record.nft_tables),
        (vec![device.clone()], vec![device.clone(), format!("{device}g")])
    );
    let [saved] = &record.saved_forwarding[..] else { panic!("{:?}", record.saved_forwarding) };
    assert_eq!((saved.device.as_str(), saved.before.as_str()), ("tlup", "0"));
    drop(outside);
    assert!(matches!(host.link(&device), Err(LabError::NoDevice(_))));
    for side in [&host, &far] {
        assert_eq!(side.sysctl("net/ipv4/ip_forward").unwrap(), "0");
        assert_eq!(side.nft_tables().unwrap(), Vec::<String>::new());
    }
    drop(state);
    let lines = sweep(&host, &directory.0).unwrap();
    assert_eq!(lines, Vec::<String>::new());
}

/// A host with a device towards the world, and the setting by which it forwards.
fn host_with_a_way(host: &Namespace, world: &Namespace) -> &'static str {
    create_veth(&End::new(host, "tlup"), &End::new(world, "tldown"), 1500).unwrap();
    host.add_address("tlup", "192.0.2.1/24".parse().unwrap()).unwrap();
    "net/ipv4/conf/tlup/forwarding"
}

#[test]
fn two_connections_share_forwarding() {
    let (Some((one, two)), Some((host, world))) = (pair(), pair()) else { return };
    let setting = host_with_a_way(&host, &world);
    let directory = Scratch::new("two");
    let state = RunState::create(&directory.0, &host).unwrap();
    let first = Outside::connect(&host, &one, &state).unwrap();
    let second = Outside::connect(&host, &two, &state).unwrap();
    assert_ne!(first.far_address(), second.far_address());
    drop(first);
    assert_eq!(host.sysctl(setting).unwrap(), "1");
    drop(second);
    assert_eq!(host.sysctl(setting).unwrap(), "0");
    assert_eq!(state.record().saved_forwarding, []);
    drop(state);
}

/// Whoever makes the host a router while a run lends its devices shall find it one afterwards.
#[test]
fn forwarding_that_somebody_else_has_switched_stays() {
    let (Some((host, world)), Some(far)) = (pair(), namespace()) else { return };
    let setting = host_with_a_way(&host, &world);
    let directory = Scratch::new("switched");
    let state = RunState::create(&directory.0, &host).unwrap();
    let outside = Outside::connect(&host, &far, &state).unwrap();
    host.set_sysctl("net/ipv4/ip_forward", "1").unwrap();
    drop(outside);
    assert_eq!(host.sysctl(setting).unwrap(), "1");
}

/// The kernel stops a device from merging what it receives, for good, when it begins to forward.
#[test]
fn merging_of_what_is_received_is_asked_for_again() {
    let (Some((host, world)), Some(far)) = (pair(), namespace()) else { return };
    if !trunkline_skip::installed(&["ip"]) {
        return;
    }
    host_with_a_way(&host, &world);
    let mut command = Command::new("ip");
    command.args(["link", "add", "link", "tlup", "name", "tlmac", "type", "macvlan"]);
    let made = spawn(&host, command, SpawnOptions::default()).unwrap().wait().unwrap();
    if !made.success() {
        return skipped("this kernel has no macvlan devices");
    }
    host.set_up("tlmac").unwrap();
    host.add_address("tlmac", "198.51.100.1/24".parse().unwrap()).unwrap();
    let merging = || {
        let saved = host.save_offloads("tlmac").unwrap();
        saved.wanted.into_iter().find(|(name, _)| name == "rx-lro").map(|(_, wanted)| wanted)
    };
    let wanted = vec![("rx-lro".to_owned(), true)];
    host.restore_offloads(&SavedOffloads { device: "tlmac".into(), wanted }).unwrap();
    assert_eq!(merging(), Some(true));
    let directory = Scratch::new("merging");
    let state = RunState::create(&directory.0, &host).unwrap();
    let outside = Outside::connect(&host, &far, &state).unwrap();
    assert_eq!(merging(), Some(false), "the kernel leaves it on: there is nothing to put back");
    drop(outside);
    assert_eq!(merging(), Some(true));
}

#[test]
fn a_program_dies_with_the_thread_that_started_it() {
    let Some(a) = namespace() else { return };
    let mut sleep = Command::new("sleep");
    sleep.arg("30").stdout(Stdio::null());
    let mut child = std::thread::scope(|scope| {
        scope.spawn(|| spawn(&a, sleep, SpawnOptions::default()).unwrap()).join().unwrap()
    });
    let end = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A packet socket, to look at frames.
mod frames {
    use std::net::UdpSocket;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// `UDP_SEGMENT` of `linux/udp.h`.
    const UDP_SEGMENT: libc::c_int = 103;
    /// `ETH_P_IP` in network byte order.
    const IPV4: u16 = (libc::ETH_P_IP as u16).to_be();

    fn option<T>(socket: i32, level: i32, name: i32, value: &T) {
        let size = size_of::<T>() as libc::socklen_t;
        let value: *const T = value;
        // SAFETY: the kernel reads `size` bytes of a live value.
        let result = unsafe { libc::setsockopt(socket, level, name, value.cast(), size) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    /// Has the kernel cut what is sent into datagrams of `bytes`.
    pub fn segment(socket: &UdpSocket, bytes: i32) {
        option(socket.as_raw_fd(), libc::SOL_UDP, UDP_SEGMENT, &bytes);
    }

    /// A socket that sees the IPv4 frames of the namespace.
    pub fn open() -> OwnedFd {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(IPV4)) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        let limit = libc::timeval { tv_sec: 5, tv_usec: 0 };
        option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit);
        // SAFETY: the descriptor was just opened and is used nowhere else.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// The length in bytes of the next UDP frame, and whether its sum is right.
    pub fn next_udp(socket: &OwnedFd) -> (usize, bool) {
        let mut frame = vec![0u8; 70_000];
        loop {
            let (place, room) = (frame.as_mut_ptr(), frame.len());
            // SAFETY: the kernel writes within the vector.
            let length = unsafe { libc::recv(socket.as_raw_fd(), place.cast(), room, 0) };
            let length = usize::try_from(length).expect("a frame in time");
            if frame[23] == 17 {
                return (length, sum(&frame[14..length]) == 0xffff);
            }
        }
    }

    /// The sum of RFC 768 over pseudo-header and datagram: all ones if the stored one is right.
    fn sum(packet: &[u8]) -> u32 {
        let words = |bytes: &[u8]| -> u32 {
            bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum()
        };
        let datagram = &packet[20..];
        let total = words(&packet[12..20]) + 17 + datagram.len() as u32 + words(datagram);
        let once = (total & 0xffff) + (total >> 16);
        (once & 0xffff) + (once >> 16)
    }
}

/// As root, programs of other users run inside too, and the most common of them is ping.
#[test]
fn ping_works_for_an_ordinary_user() {
    let Some((a, _b)) = joined() else { return };
    // One mapped user is what an ordinary user's namespace has.
    if std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().nth(2) == Some("1"))
    {
        return skipped("only root can become another user");
    }
    for far in ["10.77.0.2", "fd77::2"] {
        let mut su = Command::new("su");
        su.args(["nobody", "-s", "/bin/sh", "-c", &format!("ping -n -c 1 -W 5 {far}")]);
        su.stdout(Stdio::piped()).stderr(Stdio::piped());
        match spawn(&a, su, SpawnOptions::default()) {
            Err(error) => skipped(error),
            Ok(child) => {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "ping {far}: {output:?}");
            }
        }
    }
}

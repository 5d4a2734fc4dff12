//! A real path between real hosts: captured, watched and changed through the API while traffic flows.

use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trunkline_control::{Client, ControlError, Server, SessionController, SetRequest};
use trunkline_core::Span;
use trunkline_dataplane::capture::CaptureFilter;
use trunkline_dataplane::hosts::{Hosts, addresses, inner_devices};
use trunkline_dataplane::{
    CaptureRequest, Console, DataplaneError, Plan, Session, SessionOptions, SessionThread, Snapshot,
};
use trunkline_scenario::{PathSpec, Settings};

const DATAGRAMS: usize = 50;

fn path() -> PathSpec {
    let mut settings = Settings::default();
    [("delay", "20ms"), ("up-loss", "30%")].iter().for_each(|(n, v)| settings.add(n, v));
    settings.resolve().unwrap()
}

/// The hosts, or `None` and a note if this user may not make them.
fn hosts() -> Option<Hosts> {
    match Hosts::build(&[1500]) {
        Ok(hosts) => Some(hosts),
        Err(DataplaneError::Lab(error))
            if error.errno() == Some(rustix::io::Errno::PERM.raw_os_error()) =>
        {
            trunkline_skip::skipped(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn start(hosts: &Hosts, options: SessionOptions) -> (Arc<Session>, SessionThread) {
    let (near, far) = inner_devices(0);
    let plan = Plan { name: String::new(), path: path(), namespace: hosts.middle(), near, far };
    let (session, thread) = Session::start(vec![plan], options).unwrap();
    (Arc::new(session), thread)
}

/// Sends datagrams from near to far and says how many came.
fn exchange(hosts: &Hosts) -> usize {
    let ours = addresses(0);
    let far = hosts.far(0).run(|| UdpSocket::bind((ours.far, 7000)).unwrap()).unwrap();
    let near = hosts.near().run(|| UdpSocket::bind((ours.near, 7001)).unwrap()).unwrap();
    for number in 0..DATAGRAMS {
        near.send_to(&number.to_be_bytes(), (ours.far, 7000)).unwrap();
    }
    far.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut buffer = [0; 64];
    std::iter::from_fn(|| far.recv_from(&mut buffer).ok()).take(DATAGRAMS).count()
}

/// Counts the packets in the file on each interface, inbound and outbound (or without direction).
fn tally(path: &Path) -> [[u64; 3]; 3] {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags;
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut tally = [[0; 3]; 3];
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let flags = packet.options.iter().find_map(|option| match option {
                Flags(flags) => Some(*flags as usize),
                _ => None,
            });
            tally[packet.interface_id as usize][flags.unwrap_or(0)] += 1;
        }
    }
    tally
}

/// The file shows what the counts say: every frame that entered, left and was dropped.
fn check_capture(path: &Path, last: &Snapshot) {
    let [up, down] = &last.lanes[..] else { panic!("two lanes") };
    let dropped: u64 = up.dropped.values().chain(down.dropped.values()).sum();
    let [near, far, drops] = tally(path);
    assert_eq!(near, [0, up.entered, down.delivered]);
    assert_eq!(far, [0, down.entered, up.delivered]);
    assert_eq!(drops, [dropped, 0, 0]);
}

#[test]
fn a_path_is_captured_watched_and_changed_while_it_runs() {
    let Some(hosts) = hosts() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.pcapng");
    let command = "trunkline test".to_string();
    let capture = CaptureRequest { file: file.clone(), command, filter: CaptureFilter::Both };
    let options = SessionOptions { capture: Some(capture), ..SessionOptions::default() };
    let (session, thread) = start(&hosts, options);
    let console = Arc::new(Console::default());
    let controller = Arc::new(SessionController::new(Arc::clone(&console), "trunkline test"));
    let server = Server::start(&directory.path().join("1.sock"), controller).unwrap();
    let client = Client::connect(server.path()).unwrap();
    let absent = client.get("/v1/state").unwrap_err();
    assert!(matches!(absent, ControlError::Refused { status: 503, .. }), "{absent}");
    let presence = console.enter(Arc::clone(&session));

    let came = exchange(&hosts);
    assert!(came < DATAGRAMS && came > 0, "{came}");
    // The published state is up to a pulse old, and other frames (IPv6's own) pass, too.
    let up = |field: &str| -> u64 {
        let state: Value = client.get("/v1/state").unwrap();
        state["lanes"][0][field].as_u64().unwrap()
    };
    let counted = (0..250).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        up("entered") >= DATAGRAMS as u64
    });
    assert!(counted, "the state does not show what entered");
    let delay = |value: &Value| value["paths"][0]["up"]["delay"].clone();
    assert_eq!(delay(&client.get("/v1/path").unwrap()), "20ms");
    let set = |name: &str, value: &str| {
        let settings = vec![(name.to_string(), value.to_string())];
        client.patch("/v1/path", &SetRequest { settings, ..SetRequest::default() })
    };
    assert_eq!(delay(&set("delay", "5ms").unwrap()), "5ms");
    set("up-loss", "0%").unwrap();
    let refused = set("framing", "t1-lapd").unwrap_err();
    assert!(matches!(refused, ControlError::Refused { status: 400, .. }), "{refused}");
    // Changes are taken up at the next pulse, which waits for a quiet moment. Without the change, all
    // datagrams would come through once in ten million times.
    assert!((0..5).any(|_| exchange(&hosts) == DATAGRAMS), "loss goes on");

    let changes: Vec<String> = session.changes().into_iter().map(|it| it.settings).collect();
    assert_eq!(changes, ["delay=5ms", "up-loss=0%"], "what was refused has changed nothing");

    // What is to come is told apart from what holds.
    let settings = vec![("delay".to_string(), "90ms".to_string())];
    let later = SetRequest { settings, after: Some(Span::from_secs(3600)), link: None };
    assert_eq!(delay(&client.patch("/v1/path", &later).unwrap()), "90ms");
    let now: Value = client.get("/v1/path").unwrap();
    assert_eq!((delay(&now), &now["pending"][0]["settings"]), ("5ms".into(), &"delay=90ms".into()));

    drop(presence);
    session.stop();
    let ended = thread.join();
    ended.result.unwrap();
    let summary = ended.capture.unwrap().unwrap();
    assert_eq!(summary.missed, 0);
    check_capture(&file, &ended.snapshot);
}

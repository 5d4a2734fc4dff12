//! The bounds on what a client may ask of a server, and on the time that an end waits for the other.

use crate::support::{connect, options};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use trunkline_handshake::{Channel, Hello};
use trunkline_probe::client::{Connection, Target, TcpEnd};
use trunkline_probe::server::{Options, Server};
use trunkline_probe::wire::datagram::{DatagramKind, HEAD, Head};
use trunkline_probe::wire::frame;
use trunkline_probe::wire::keys::Way;
use trunkline_probe::wire::message::{Answer, FlowSpec, Limits, Role, Transport};
use trunkline_probe::wire::record::Record;

fn spec() -> FlowSpec {
    FlowSpec {
        transport: Transport::Udp,
        role: Role::Down,
        streams: 1,
        size: 100,
        rate: None,
        duration_ns: 300_000_000,
        interval_ns: 100_000_000,
        congestion: None,
        urp: None,
    }
}

/// A socket from which a stream was asked for.
fn asked(server: &Server, connection: &Connection, flow: u16) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut ask = vec![0; HEAD];
    Head { kind: DatagramKind::Request, flow, number: 0, stamp: 0, span: 0, order: 0 }.write(
        connection.cookie(),
        &connection.keys().datagrams(Way::Up),
        &mut ask,
    );
    socket.send(&ask).unwrap();
    socket
}

/// The time after the request at which the last datagram of a stream of 0.3 s comes.
fn last_of_stream(rate: Option<u64>) -> Duration {
    let server = Server::start(options()).unwrap();
    let connection = connect(&server);
    let flow = connection.flow(FlowSpec { rate, ..spec() }).unwrap();
    let socket = asked(&server, &connection, flow);
    let began = Instant::now();
    let mut last = began;
    while socket.recv(&mut [0; 200]).is_ok() && began.elapsed() < Duration::from_secs(4) {
        last = Instant::now();
    }
    last - began
}

#[test]
fn a_stream_of_datagrams_ends_with_its_time() {
    // Without a rate, with one that nobody can keep, with one that is kept.
    let lasted = [None, Some(1_000_000_000_000), Some(1_000_000)].map(last_of_stream);
    let early = Duration::from_millis(200);
    assert!(lasted.iter().all(|one| (early..Duration::from_secs(2)).contains(one)), "{lasted:?}");
}

#[test]
fn a_session_has_so_many_connections() {
    let server = Server::start(Options { max_sessions: 500, ..options() }).unwrap();
    let connection = connect(&server);
    let most = connection.limits().connections;
    let streams = connection.limits().streams;
    let tcp = FlowSpec { transport: Transport::Tcp, streams, role: Role::Echo, ..spec() };
    let granted: u32 =
        (0..32).filter(|_| connection.flow(tcp.clone()).is_ok()).map(|_| u32::from(streams)).sum();
    assert!(granted <= most && granted + u32::from(streams) > most.min(32 * u32::from(streams)));
    // All sessions together get less than the process may have.
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap();
    assert!(u64::from(most) * 500 < files, "{most} of {files}");
}

#[test]
fn a_congestion_control_comes_from_the_list() {
    let server = Server::start(Options { congestion: vec!["reno".into()], ..options() }).unwrap();
    let connection = connect(&server);
    let asking = |name: &str| {
        let congestion = Some(name.to_string());
        connection.flow(FlowSpec { transport: Transport::Tcp, congestion, ..spec() })
    };
    assert!(asking("reno").is_ok());
    for name in ["cubic", "carrier-pigeon", ""] {
        let complaint = asking(name).unwrap_err().to_string();
        assert!(complaint.contains("--congestion"), "{complaint}");
    }
    let unknown = Options { congestion: vec!["carrier-pigeon".into()], ..options() };
    assert!(Server::start(unknown).unwrap_err().to_string().contains("carrier-pigeon"));
    let by_default = Server::start(options()).unwrap();
    let connection = connect(&by_default);
    let congestion = Some("carrier-pigeon".to_string());
    assert!(connection.flow(FlowSpec { congestion, ..spec() }).is_err());
}

/// A server that shakes hands, and then tears each answer after so many octets.
fn tearing(cuts: usize) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut channel = greeted(&mut stream);
        hear(&mut stream, &mut channel);
        let limits =
            Limits { rate: None, duration_ns: 1 << 40, flows: 9, streams: 9, connections: 9 };
        let welcome = Answer::Welcome { secret: [1; 32], cookie: 1, limits };
        stream.write_all(&channel.seal(&frame::encode(&welcome).unwrap())).unwrap();
        hear(&mut stream, &mut channel);
        // Of two pieces.
        let reason = "x".repeat(6000);
        let torn = channel.seal(&frame::encode(&Answer::Refused { reason }).unwrap());
        stream.write_all(&torn[..cuts]).unwrap();
        thread::sleep(Duration::from_secs(300));
    });
    Target { host: "127.0.0.1".into(), port, key: None }
}

fn greeted(stream: &mut TcpStream) -> Channel {
    let mut words = Vec::new();
    loop {
        let mut octets = [0; 100];
        let count = stream.read(&mut octets).unwrap();
        words.extend(&octets[..count]);
        if let Some((hello, _)) = Hello::read(&words).unwrap() {
            let (channel, answer) = hello.accept(None).unwrap();
            stream.write_all(&answer).unwrap();
            return channel;
        }
    }
}

fn hear(stream: &mut TcpStream, channel: &mut Channel) {
    while channel.open().unwrap().is_none() {
        let mut octets = [0; 1000];
        let count = stream.read(&mut octets).unwrap();
        channel.take(&octets[..count]);
    }
}

#[test]
fn a_torn_answer_ends_the_waiting() {
    let (sender, ended) = channel();
    let cuts = [1, 2, 3, 100, 4114, 4115, 4116, 6030];
    for cuts in cuts {
        let (aim, sender) = (tearing(cuts), sender.clone());
        thread::spawn(move || {
            let connection = Connection::open(&aim, &Arc::new(AtomicBool::new(false))).unwrap();
            sender.send((cuts, connection.host().map(drop).map_err(|error| error.to_string())))
        });
    }
    for _ in cuts {
        let (cuts, told) = ended.recv_timeout(Duration::from_secs(40)).unwrap();
        assert!(
            told.as_ref().is_err_and(|told| told.contains("does not answer")),
            "{cuts}: {told:?}"
        );
    }
}

/// A request that stops in the middle ends its session, not the server.
#[test]
fn a_torn_request_ends_its_session() {
    let server = Server::start(options()).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let key = trunkline_probe::Key::new([7; 32]);
    let (initiator, words) = trunkline_handshake::Initiator::begin(
        Some(&key),
        trunkline_probe::wire::keys::CONTROL,
        &[],
    )
    .unwrap();
    stream.write_all(&words).unwrap();
    let mut answer = [0; trunkline_handshake::hello::ANSWER];
    stream.read_exact(&mut answer).unwrap();
    let mut channel = initiator.finish(&answer).unwrap();
    let open = trunkline_probe::wire::message::Request::Open;
    stream.write_all(&channel.seal(&frame::encode(&open).unwrap())).unwrap();
    hear_welcome(&mut stream, &mut channel);
    assert_eq!(server.sessions(), 1);
    stream.write_all(&channel.seal(b"torn")[..9]).unwrap();
    let began = Instant::now();
    while server.sessions() > 0 {
        assert!(began.elapsed() < Duration::from_secs(40));
        thread::sleep(Duration::from_millis(50));
    }
}

fn hear_welcome(stream: &mut TcpStream, channel: &mut Channel) {
    channel.allow(1 << 20);
    hear(stream, channel);
}

/// A data connection whose octets are changed on the way tells so; its first words open nothing twice.
#[test]
fn a_data_connection_is_the_clients_alone() {
    let server = Server::start(options()).unwrap();
    let connection = connect(&server);
    let tcp = FlowSpec { transport: Transport::Tcp, role: Role::Up, streams: 2, ..spec() };
    let flow = connection.flow(tcp).unwrap();
    let mut joined = connection.join(flow, 0, &TcpEnd::default()).unwrap();
    let again = connection.join(flow, 0, &TcpEnd::default()).unwrap_err().to_string();
    assert!(again.contains("is there already"), "{again}");
    let beyond = connection.join(flow, 2, &TcpEnd::default()).unwrap_err().to_string();
    assert!(beyond.contains("no such"), "{beyond}");
    let mut record = joined.writer.filled(Record::default(), 1000);
    joined.stream.write_all(&record).unwrap();
    joined.writer.write(Record::default(), &mut record);
    record[HEAD + 500] ^= 1;
    joined.stream.write_all(&record).unwrap();
    // The server closes it.
    assert!(matches!(joined.stream.read(&mut [0]), Ok(0) | Err(_)));
    let report = connection.collect(flow).unwrap();
    assert!(report.forged == 1 && (1000..2000).contains(&report.octets), "{report:?}");
}

/// A copy of a datagram that opens a stream is not answered, nor one of another flow or direction.
#[test]
fn datagrams_that_come_again_are_refused() {
    let server = Server::start(options()).unwrap();
    let connection = connect(&server);
    let echo = FlowSpec { role: Role::Echo, ..spec() };
    let flow = connection.flow(echo.clone()).unwrap();
    let up = connection.keys().datagrams(Way::Up);
    let ask = |flow: u16, way: Way, number: u32| {
        let mut ask = vec![3; HEAD + 10];
        let head = Head { kind: DatagramKind::Request, flow, number, stamp: 0, span: 0, order: 0 };
        head.write(connection.cookie(), &connection.keys().datagrams(way), &mut ask);
        ask
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let answered = |datagram: &[u8]| {
        socket.send(datagram).unwrap();
        let mut reply = [0; 100];
        socket.recv(&mut reply).map(|count| reply[..count].to_vec()).ok()
    };
    let first = ask(flow, Way::Up, 0);
    let reply = answered(&first).unwrap();
    assert!(Head::read(&reply, &connection.keys().datagrams(Way::Down)).is_some());
    assert!(Head::read(&reply, &up).is_none());
    assert_eq!(answered(&first), None, "a copy");
    assert_eq!(answered(&reply), None, "the server's own reply");
    assert_eq!(answered(&ask(flow, Way::Down, 1)), None, "the other direction's key");
    let mut changed = ask(flow, Way::Up, 2);
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(answered(&changed), None, "changed user octets");
    assert!(answered(&ask(flow, Way::Up, 3)).is_some());
    connection.collect(flow).unwrap();
    let next = connection.flow(echo).unwrap();
    assert_eq!(answered(&ask(flow, Way::Up, 4)), None, "of a flow that has ended");
    assert!(next > flow);
}

//! Server and client together, and the server against clients that mean no good.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use trunkline_control::{
    Client, ControlError, Controller, Server, SetRequest, find_in, sockets_in,
};
use trunkline_core::Span;

/// A path that remembers what was asked of it.
#[derive(Default)]
struct Fake {
    requests: Mutex<Vec<SetRequest>>,
}

impl Controller for Fake {
    fn describe(&self) -> Option<Value> {
        Some(json!({ "delay": "300ms" }))
    }
    fn state(&self) -> Option<Value> {
        Some(
            json!({ "requests": self.requests.lock().unwrap().len(), "long": "x".repeat(300_000) }),
        )
    }
    fn set(&self, request: SetRequest) -> Result<Value, String> {
        if request.settings[0].0 == "panic" {
            panic!("as the test wants");
        }
        if request.settings[0].0 == "colour" {
            return Err("there is no setting 'colour':\n  use delay or rate".into());
        }
        self.requests.lock().unwrap().push(request);
        Ok(json!({ "changed": true }))
    }
}

struct Running {
    directory: TempDir,
    socket: PathBuf,
    fake: Arc<Fake>,
    server: Server,
}

fn running() -> Running {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("1.sock");
    let fake = Arc::new(Fake::default());
    let server = Server::start(&socket, Arc::clone(&fake) as Arc<dyn Controller>).unwrap();
    Running { directory, socket, fake, server }
}

impl Running {
    fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// Returns what comes back for `bytes`, until the server closes.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A server that closes early resets the connection; what it said before counts.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn setting(name: &str, value: &str) -> SetRequest {
    SetRequest { settings: vec![(name.into(), value.into())], ..SetRequest::default() }
}

fn status(error: ControlError) -> (u16, String) {
    match error {
        ControlError::Refused { status, message } => (status, message),
        other => panic!("{other}"),
    }
}

#[test]
fn a_round_trip_by_every_route() {
    let run = running();
    let client = run.client();
    let index = client.get("/").unwrap();
    assert_eq!(index["trunkline"], env!("CARGO_PKG_VERSION"));
    assert_eq!(index["routes"].as_array().unwrap().len(), 4);
    assert_eq!(client.get("/v1/path").unwrap(), json!({ "delay": "300ms" }));
    let request = SetRequest {
        settings: vec![("up-loss".into(), "1%".into()), ("delay".into(), "80ms".into())],
        link: Some("trunk".into()),
        after: Some(Span::from_secs(2)),
    };
    assert_eq!(client.patch("/v1/path", &request).unwrap(), json!({ "changed": true }));
    assert_eq!(*run.fake.requests.lock().unwrap(), [request]);
    let state = client.get("/v1/state").unwrap();
    assert_eq!((&state["requests"], state["long"].as_str().unwrap().len()), (&json!(1), 300_000));
}

#[test]
fn refusals_have_a_status_and_one_line() {
    let run = running();
    let client = run.client();
    let refused = |request| status(client.patch("/v1/path", &request).unwrap_err());
    let colour = (400, "there is no setting 'colour': use delay or rate".to_string());
    assert_eq!(refused(setting("colour", "red")), colour);
    assert_eq!(refused(SetRequest::default()).0, 400);
    assert_eq!(refused(setting("panic", "")).0, 500);
    let (code, message) = status(client.get("/v2/path").unwrap_err());
    assert_eq!((code, message.contains("GET / lists")), (404, true), "{message}");
    let (code, message) = status(client.patch("/v1/state", &setting("a", "b")).unwrap_err());
    assert_eq!((code, message.contains("use GET")), (405, true), "{message}");
    let put = run.raw(b"PUT /v1/path HTTP/1.1\r\nHost: x\r\n\r\n").to_lowercase();
    assert!(put.starts_with("http/1.1 405") && put.contains("allow: get, patch"), "{put}");
    assert_eq!(run.fake.requests.lock().unwrap().len(), 0);
}

#[test]
fn bodies_are_limited() {
    let run = running();
    let client = run.client();
    let (code, message) =
        status(client.patch("/v1/path", &setting("delay", &"0".repeat(70_000))).unwrap_err());
    assert_eq!((code, message.contains("65536")), (413, true), "{message}");
    assert!(client.patch("/v1/path", &setting("delay", &"0".repeat(60_000))).is_ok());
    let promised = b"PATCH /v1/path HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\nx";
    assert!(run.raw(promised).starts_with("HTTP/1.1 413"));
    let mut chunked =
        b"PATCH /v1/path HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..9 {
        chunked.extend(b"2000\r\n");
        chunked.extend([b' '; 0x2000]);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    assert!(run.raw(&chunked).starts_with("HTTP/1.1 413"));
    assert_eq!(run.fake.requests.lock().unwrap().len(), 1);
}

#[test]
fn garbage_harms_nobody() {
    let run = running();
    let not_json = "PATCH /v1/path HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\0\u{1}{[";
    let answer = run.raw(not_json.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"error\":"), "{answer}");
    assert!(run.raw(b"\x16\x03\x01 what is this\r\n\r\n").starts_with("HTTP/1.1 400"));
    // What is no request that can be read is refused by the library, without a body.
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(65_534));
    assert!(run.raw(long.as_bytes()).starts_with("HTTP/1.1 414"));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(101));
    let refused = run.raw(many.as_bytes());
    assert!(refused.starts_with("HTTP/1.1 431") && refused.ends_with("\r\n\r\n"), "{refused}");
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 150_000]].concat();
    let mut stream = UnixStream::connect(&run.socket).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    // Refused while it is still writing, or right after.
    let _ = stream.write_all(&endless);
    let (mut answer, _) = (Vec::new(), stream.set_read_timeout(Some(Duration::from_secs(20))));
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"));
    let broken = b"PATCH /v1/path HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n{";
    UnixStream::connect(&run.socket).unwrap().write_all(broken).unwrap();
    assert!(run.client().get("/v1/path").is_ok());
    assert_eq!(run.fake.requests.lock().unwrap().len(), 0);
}

/// More silent clients than there are places, and one that reads nothing: the server gets rid of them.
#[test]
fn silent_clients_do_not_keep_others_out() {
    let run = running();
    let mut silent: Vec<UnixStream> =
        (0..40).map(|_| UnixStream::connect(&run.socket).unwrap()).collect();
    silent[0].write_all(b"GET /v1/state HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    silent[1].write_all(b"GET /v1/st").unwrap();
    let patient = || {
        let until = std::time::Instant::now() + Duration::from_secs(40);
        while std::time::Instant::now() < until {
            match run.client().get("/v1/path") {
                Err(ControlError::Silent { .. }) => {}
                other => return other.map(|value| value["delay"].clone()).unwrap(),
            }
        }
        panic!("never answered");
    };
    assert_eq!(patient(), "300ms");
    drop(silent);
}

#[test]
fn many_clients_at_once_are_all_served() {
    let run = running();
    let start = Barrier::new(24);
    std::thread::scope(|scope| {
        for number in 0..24 {
            let (run, start) = (&run, &start);
            scope.spawn(move || {
                let client = run.client();
                start.wait();
                client.patch("/v1/path", &setting("delay", &format!("{number}ms"))).unwrap();
                client.get("/v1/state").unwrap();
            });
        }
    });
    assert_eq!(run.fake.requests.lock().unwrap().len(), 24);
}

#[test]
fn only_the_owner_can_open_the_socket_and_it_goes_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("new/2.sock");
    let server = Server::start(&socket, Arc::new(Fake::default())).unwrap();
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    assert_eq!(server.path(), socket);
    drop(server);
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_another_has_taken_over_is_left_alone() {
    let run = running();
    std::fs::remove_file(&run.socket).unwrap();
    let other = UnixListener::bind(&run.socket).unwrap();
    drop(run.server);
    assert!(run.socket.exists());
    drop(other);
}

#[test]
fn stale_sockets_are_replaced_and_live_ones_are_not() {
    let run = running();
    let again = || Server::start(&run.socket, Arc::new(Fake::default()));
    assert!(matches!(again().unwrap_err(), ControlError::InUse(_)));
    assert!(run.client().get("/v1/path").is_ok(), "the first is as it was");
    let stale = run.directory.path().join("2.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(matches!(Client::connect(&stale).unwrap_err(), ControlError::Gone(_)));
    let server = Server::start(&stale, Arc::new(Fake::default())).unwrap();
    assert!(Client::connect(&stale).unwrap().get("/").is_ok());
    drop(server);
}

/// A killed run cannot remove its socket; whoever starts next does, and leaves alone what is alive or is no run's.
#[test]
fn what_killed_runs_left_is_removed_by_the_next_start() {
    let run = running();
    let beside = |name: &str| run.directory.path().join(name);
    for name in ["2.sock", "other.sock"] {
        drop(UnixListener::bind(beside(name)).unwrap());
    }
    let next = Server::start(&beside("3.sock"), Arc::new(Fake::default())).unwrap();
    assert!(!beside("2.sock").exists());
    assert!(beside("other.sock").exists());
    assert!(run.client().get("/v1/path").is_ok(), "the first is as it was");
    assert!(Client::connect(next.path()).unwrap().get("/").is_ok());
}

#[test]
fn what_is_no_socket_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("1.sock");
    std::fs::write(&file, "precious").unwrap();
    let start = |path: &Path| Server::start(path, Arc::new(Fake::default())).unwrap_err();
    assert!(matches!(start(&file), ControlError::NotASocket(_)));
    assert!(matches!(Client::connect(&file).unwrap_err(), ControlError::NotASocket(_)));
    assert_eq!(sockets_in(directory.path()).unwrap(), []);
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let long = directory.path().join("x".repeat(120));
    assert!(matches!(start(&long), ControlError::TooLong { limit: 107, .. }));
    let nobody = Client::connect(&directory.path().join("3.sock")).unwrap_err();
    assert!(matches!(nobody, ControlError::NotRunning(_)));
}

#[test]
fn a_client_of_a_run_that_ended_is_told_so() {
    let run = running();
    let client = run.client();
    drop(run.server);
    assert!(matches!(client.get("/").unwrap_err(), ControlError::NotRunning(_)));
    let deaf = UnixListener::bind(&run.socket).unwrap();
    let waiting = std::thread::spawn(move || client.get("/"));
    drop(deaf.accept().unwrap());
    let error = waiting.join().unwrap().unwrap_err();
    // The probe and the request are one connection; it closed without an answer, and somebody still listens.
    assert!(matches!(error, ControlError::BrokenOff { .. }), "{error}");
}

#[test]
fn runs_are_found_by_number() {
    let run = running();
    let directory = run.directory.path();
    let found = |which| find_in(directory, which);
    assert_eq!(found(None).unwrap(), run.socket);
    assert_eq!(found(Some("1")).unwrap(), run.socket);
    let missing = found(Some("77")).unwrap_err().to_string();
    assert!(missing.starts_with("no trunkline runs as process 77; running: 1 ("), "{missing}");
    let second = Server::start(&directory.join("23.sock"), Arc::new(Fake::default())).unwrap();
    let several = found(None).unwrap_err().to_string();
    assert!(several.contains("1 (") && several.contains(", 23 ("), "{several}");
    assert!(several.ends_with("choose one with --pid"), "{several}");
    assert_eq!(found(Some("23")).unwrap(), second.path());
    std::fs::write(directory.join("notes.sock"), "").unwrap();
    let stale = directory.join("4.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let pids: Vec<u32> = sockets_in(directory).unwrap().iter().map(|run| run.pid).collect();
    assert_eq!(pids, [1, 23]);
    assert!(!stale.exists());
    drop((run.server, second));
    assert!(matches!(find_in(directory, None).unwrap_err(), ControlError::NoneRunning));
}

#[test]
fn a_socket_of_another_user_is_a_matter_of_permission() {
    let run = running();
    if !rustix::process::geteuid().is_root() {
        return trunkline_skip::skipped("only root can become another user");
    }
    // Even if the directory lets them in, the socket does not.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(run.directory.path(), open).unwrap();
    let socket = run.socket.clone();
    // The system call is about the calling thread only, and that thread ends here.
    let stranger = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        Client::connect(&socket).map(|_| ()).unwrap_err()
    });
    let error = stranger.join().unwrap();
    assert!(matches!(error, ControlError::Permission { .. }), "{error}");
    assert!(run.client().get("/").is_ok());
}

/// A run that takes a connection and ends: `answer` is what it still says.
fn ending(answer: &'static [u8], accepts: bool, goes_on: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("1.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let run = std::thread::spawn(move || {
        // The client's first connection only looks whether somebody is there.
        drop(listener.accept().unwrap());
        if accepts {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 16]).unwrap();
            stream.write_all(answer).unwrap();
        } else {
            std::thread::sleep(Duration::from_millis(100));
        }
        goes_on.then_some(listener)
    });
    let client = Client::connect(&socket).unwrap();
    let told = client.patch("/v1/path", &setting("delay", "1ms")).unwrap_err().to_string();
    drop(run.join().unwrap());
    told
}

#[test]
fn a_run_that_ends_before_it_answers_is_told_from_one_that_cannot_be_understood() {
    for (answer, accepts) in
        [(&b""[..], true), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", true), (b"", false)]
    {
        let told = ending(answer, accepts, false);
        assert!(told.contains("ended before it answered"), "{told}");
    }
    let told = ending(b"", true, true);
    assert!(told.contains("broke the connection off"), "{told}");
    let told = ending(b"SSH-2.0-none\r\n\r\n", true, false);
    assert!(told.contains("another version"), "{told}");
}

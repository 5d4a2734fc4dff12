//! `trunkline send` and `trunkline receive`: over a path that loses packets, killed and taken up, and what they say.

use crate::between::Between;
use crate::support::{Host, LIMIT, Outcome, Running, installed};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use trunkline_transfer::journal::{self, Listed};

const KEY: &str = "a key for these tests";

/// Somewhere to send from and to receive in, and a file of so many octets.
struct Places {
    _dir: tempfile::TempDir,
    file: PathBuf,
    inbox: PathBuf,
}

fn places(octets: usize) -> Places {
    let dir = tempfile::tempdir().unwrap();
    let (file, inbox) = (dir.path().join("file"), dir.path().join("inbox"));
    let mut state = 1u64;
    let data: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(octets)
    .collect();
    fs::write(&file, data).unwrap();
    fs::create_dir(&inbox).unwrap();
    Places { _dir: dir, file, inbox }
}

impl Places {
    fn assert_same(&self) {
        assert!(fs::read(&self.file).unwrap() == fs::read(self.inbox.join("file")).unwrap());
        assert_eq!(fs::read_dir(&self.inbox).unwrap().count(), 1, "nothing else is left");
    }

    /// The part of the transfer that is in the receiver's journal.
    fn there(&self) -> f64 {
        let found = journal::list(&self.inbox).unwrap();
        match found.first() {
            Some(Listed::Unfinished(it)) => it.done as f64 / it.all.max(1) as f64,
            _ => 0.0,
        }
    }

    /// Waits until so much is there.
    fn await_share(&self, share: f64) -> f64 {
        let until = Instant::now() + LIMIT;
        loop {
            let there = self.there();
            if there >= share {
                return there;
            }
            assert!(Instant::now() < until, "{there} of {share}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The last line of JSON.
fn result(outcome: &Outcome) -> Value {
    assert!(outcome.status.success(), "{outcome:#?}");
    serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap()
}

fn receive(between: &Between, places: &Places) -> Running {
    let arguments = ["receive", text(&places.inbox), "--bind", "10.77.0.1", "--json"];
    between.start_in(between.hosts.far(0), &arguments, KEY)
}

fn send(between: &Between, places: &Places) -> Running {
    let arguments = ["send", text(&places.file), "10.77.0.1", "--json"];
    between.start_in(between.hosts.near(), &arguments, KEY)
}

/// Killed at either end, without a word, and started again: what is in the journal is not sent again.
#[test]
fn killed_ends_go_on_from_where_they_were() {
    let Some(between) = Between::among_few("delay=25ms rate=50mbit loss=1% limit=300kB") else {
        return;
    };
    let places = places(20_000_000);
    let mut receiver = receive(&between, &places);
    let sender = send(&between, &places);
    let first = places.await_share(0.3);
    sender.kill();
    let sender = send(&between, &places);
    let second = places.await_share(0.7);
    receiver.kill();
    let kept = places.there();
    let listed = between.host.run(&["receive", text(&places.inbox), "--list"]);
    assert!(
        listed.stdout.starts_with("file: ") && listed.stdout.contains(" of 20.0 MB, "),
        "{listed:#?}"
    );
    let json = between.host.run(&["receive", text(&places.inbox), "--list", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&json["event"], &json["bytes"]),
        (&"unfinished".into(), &20_000_000.into()),
        "{json}"
    );
    assert!(second >= first && kept >= second);
    receiver = receive(&between, &places);
    let sent = result(&sender.finish());
    let got = result(&receiver.finish());
    places.assert_same();
    let listed = between.host.run(&["receive", text(&places.inbox), "--list"]);
    assert!(listed.stdout.is_empty() && listed.stderr.contains("no unfinished"), "{listed:#?}");
    // Of what was there when the sender was killed nothing was sent again, nor by the receiver's second run.
    let share = |value: &Value| value.as_f64().unwrap() / 20e6;
    assert!(share(&sent["had"]) >= first - 0.01, "{sent}");
    assert!(share(&got["moved"]) <= 1.0 - kept + 0.01, "{got}");
    assert_eq!(sent["bytes"], 20_000_000);
    assert!(sent["again"].as_u64() > Some(0), "1 % was lost: {sent}");
}

/// An outage of some seconds in the middle ends nothing.
#[test]
fn an_outage_is_sat_out() {
    let Some(between) = Between::among_few("delay=5ms rate=20mbit") else { return };
    let places = places(5_000_000);
    let receiver = receive(&between, &places);
    let sender = send(&between, &places);
    places.await_share(0.3);
    between.cut(true);
    std::thread::sleep(Duration::from_secs(4));
    between.cut(false);
    assert_eq!(result(&sender.finish())["had"], 0, "one session");
    result(&receiver.finish());
    places.assert_same();
}

/// An interface that takes no packets of 1500 octets gets shorter ones.
#[test]
fn an_interface_of_a_small_mtu_is_sent_what_it_takes() {
    let Some(between) = Between::among_few("mtu=900 delay=20ms rate=20mbit") else { return };
    let places = places(1_000_000);
    let receiver = receive(&between, &places);
    let sent = result(&send(&between, &places).finish());
    result(&receiver.finish());
    places.assert_same();
    // A packet of 576 octets has 467 of them.
    let packets = sent["packets"].as_u64().unwrap();
    assert!((1_000_000 / 467..2_400).contains(&packets), "{sent}");
}

/// Directly on IP, sealed and in the clear: no datagram of UDP, and a sender that wants UDP finds nobody.
#[test]
fn protocol_30_carries_files_without_udp() {
    let Some(between) = Between::among_few("delay=20ms rate=20mbit loss=2%") else { return };
    for more in [&["--raw"][..], &["--raw", "--plaintext"]] {
        let places = places(2_000_000);
        let at_receiver = ["receive", text(&places.inbox), "--bind", "10.77.0.1"];
        let at_sender = ["send", text(&places.file), "10.77.0.1", "--json"];
        let far = between.hosts.far(0);
        let mut receiver = between.start_in(far, &[&at_receiver[..], more].concat(), KEY);
        receiver.await_line("10.77.0.1 (IP protocol 30)");
        let udp = far.run(|| fs::read_to_string("/proc/thread-self/net/udp")).unwrap().unwrap();
        assert_eq!(udp.lines().count(), 1, "{udp}");
        for address in ["10.77.0.1", "0.0.0.0"] {
            let second = ["receive", text(&places.inbox), "--raw", "--bind", address];
            let second = between.start_in(far, &second, KEY).finish();
            assert_eq!(second.status.code(), Some(1), "{second:#?}");
            assert!(second.complaint().contains("another receiver"), "{second:#?}");
        }
        let near = between.hosts.near();
        let sent = result(&between.start_in(near, &[&at_sender[..], more].concat(), KEY).finish());
        assert!(receiver.finish().status.success());
        places.assert_same();
        assert!(sent["again"].as_u64() > Some(0), "2 % was lost: {sent}");
    }
}

/// A short code is enough on one machine; a wrong one is told; the rate can be changed from outside.
#[test]
fn a_code_lets_one_in_and_the_rate_can_be_set() {
    let host = Host::beside();
    let places = places(3_000_000);
    let port = "18180";
    let mut receiver = host.start(&["receive", text(&places.inbox), "--port", port]);
    receiver.await_line("the code is");
    let line = receiver.told().iter().find(|line| line.contains("the code is")).unwrap();
    let code = line.split("the code is ").nth(1).unwrap().split(':').next().unwrap().to_string();
    let to = |code: &str| format!("{code}@127.0.0.1:{port}");
    let wrong = host.start(&["send", text(&places.file), &to("aaa-aaa")]).finish();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(wrong.complaint().contains("wrong code"), "{wrong:#?}");
    let target = to(&code);
    let sender = host.start(&["send", text(&places.file), &target, "--rate", "200kbit", "--json"]);
    places.await_share(0.01);
    let pid = sender.pid().to_string();
    let shown = host.start(&["show", "--pid", &pid]).finish();
    if !shown.status.success() {
        let there = places.there();
        sender.signal(Signal::INT);
        panic!("{shown:#?}, with {there} there: {:#?}", sender.finish());
    }
    assert!(shown.stdout.contains("transfer: rate=200kbit/s\nsend: "), "{shown:#?}");
    assert!(shown.stdout.contains(" of 3.0 MB ("), "{shown:#?}");
    let set = host.start(&["set", "rate=none", "--pid", &pid]).finish();
    assert!(set.status.success() && set.stdout.contains("transfer: rate=unlimited"), "{set:#?}");
    let refused = host.start(&["set", "delay=5ms", "--pid", &pid]).finish();
    assert!(refused.complaint().contains("only the rate"), "{refused:#?}");
    let sent = result(&sender.finish());
    // At 200 kbit/s it would take two minutes.
    assert!(sent["seconds"].as_f64() < Some(60.0), "{sent}");
    let got = receiver.finish();
    assert!(
        got.status.success() && got.stdout.starts_with("received file: 1 file, 3.0 MB"),
        "{got:#?}"
    );
    places.assert_same();
}

/// A receiver whose words go into a file says there that its sender has gone, and a sender that it has lost its receiver.
#[test]
fn who_waits_says_so_in_a_file_too() {
    let host = Host::beside();
    let places = places(3_000_000);
    let receive = ["receive", text(&places.inbox), "--port", "18182", "--no-key"];
    let send = ["send", text(&places.file), "127.0.0.1:18182", "--no-key", "--rate"];
    let mut receiver = host.start(&receive);
    receiver.await_line("listening at");
    let sender = host.start(&[&send[..], &["1mbit"]].concat());
    places.await_share(0.05);
    sender.signal(Signal::INT);
    sender.finish();
    receiver.await_line("the sender has gone; what has come is kept");
    let mut sender = host.start(&[&send[..], &["4mbit"]].concat());
    places.await_share(places.there() + 0.1);
    receiver.kill();
    let receiver = host.start(&receive);
    sender.await_line("the session with 127.0.0.1:18182 is lost");
    assert!(sender.finish().status.success() && receiver.finish().status.success());
    places.assert_same();
}

/// A sender that has no place for its socket goes on, and says that nothing reaches it.
#[test]
fn a_sender_without_a_socket_says_so() {
    let host = Host::beside();
    if host.separate().is_none() || !installed(&["unshare"]) {
        return;
    }
    let places = places(100_000);
    let receive = ["receive", text(&places.inbox), "--port", "18184", "--no-key"];
    let mut receiver = host.start(&receive);
    receiver.await_line("listening at");
    let mut send = Command::new("unshare");
    let line = r#"mount -t tmpfs -o ro none /run && exec "$0" send "$1" 127.0.0.1:18184 --no-key"#;
    send.args(["--mount", "sh", "-c", line, env!("CARGO_BIN_EXE_trunkline"), text(&places.file)]);
    let sent = host.start_command(send).finish();
    let told = "show and set do not reach this transfer: cannot make /run/trunkline";
    assert!(sent.status.success() && sent.stderr.contains(told), "{sent:#?}");
    assert!(receiver.finish().status.success());
    places.assert_same();
}

/// A receiver that may write no file so large says so to both ends, and nobody waits. (SIGXFSZ ended it without a word.)
#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let host = Host::beside();
    let places = places(3_000_000);
    let mut receive = Command::new("sh");
    let line = r#"ulimit -f 1000; exec "$0" receive "$1" --port 18183 --no-key"#;
    receive.args(["-c", line, env!("CARGO_BIN_EXE_trunkline"), text(&places.inbox)]);
    let mut receiver = host.start_command(receive);
    receiver.await_line("listening at");
    let mut sender = host.start(&["send", text(&places.file), "127.0.0.1:18183", "--no-key"]);
    let got = receiver.finish();
    assert_eq!(got.status.code(), Some(1), "{got:#?}");
    assert!(got.complaint().contains("ulimit -f"), "{got:#?}");
    sender.await_line("ulimit -f");
    assert_eq!(sender.finish().status.code(), Some(1));
}

/// Each end says in one line what is wrong, with the status that goes with it.
#[test]
fn what_is_wrong_is_told_in_a_line() {
    let host = Host::beside();
    let places = places(10);
    let file = text(&places.file);
    for (arguments, status, said) in [
        (&["send", file, "127.0.0.1"][..], 2, "no code and no key"),
        (&["send", file, "abc@127.0.0.1"], 2, "is no code"),
        (&["send", file], 2, "write trunkline send FILE CODE@HOST"),
        (&["send", "/nowhere", "abc-234@127.0.0.1"], 1, "/nowhere"),
        (&["receive", "/nowhere/deep", "--no-key"], 1, "/nowhere/deep"),
        (&["receive", ".", "--port", "99999"], 2, "--port"),
        (&["send", file, "abc-234@127.0.0.1", "--rate", "100bit"], 2, "at least 167bit/s"),
        (&["receive", ".", "--raw", "--port", "99"], 2, "--raw"),
        (&["send", file, "abc-234@127.0.0.1:99", "--raw"], 2, "no ports"),
        (&["send", file, "--raw", "abc-234@127.0.0.1:99"], 2, "no ports"),
    ] {
        let outcome = host.start(arguments).finish();
        assert_eq!(outcome.status.code(), Some(status), "{arguments:?}: {outcome:#?}");
        assert!(outcome.complaint().contains(said), "{arguments:?}: {outcome:#?}");
    }
    // A sender without a receiver waits, and ends when it is told to.
    let mut waiting = host.start(&["send", file, "abc-234@127.0.0.1:18181", "--json"]);
    waiting.await_printed(2);
    assert!(waiting.goes_on());
    waiting.signal(Signal::INT);
    let outcome = waiting.finish();
    assert_eq!(outcome.status.code(), Some(130));
    assert!(outcome.complaint().contains("SIGINT; stopped"), "{outcome:#?}");
}

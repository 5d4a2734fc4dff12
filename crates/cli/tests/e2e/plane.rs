//! One dataplane: every verb in real time can be looked at, changed and captured.

use crate::support::{Host, LIMIT, Outcome, Running, installed};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption::IfName;
use pcap_file::pcapng::{Block, PcapNgReader};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_netns::{End, IpNet, Namespace, create_veth};

/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(100);

/// Datagrams over two links, for four seconds.
const SCENARIO: &str = "
name = 'Two links'
[[host]]
name = 'a'
[[host]]
name = 'b'
[[node]]
name = 'n'
[[link]]
name = 'access'
between = ['a', 'n']
rate = '8Mbit/s'
delay = '2ms'
[[link]]
name = 'trunk'
between = ['n', 'b']
delay = '3ms'
[[traffic]]
name = 'tick'
kind = 'paced'
from = 'a'
to = 'b'
size = 100
rate = '80kbit/s'
duration = '4s'
transport = { kind = 'udp' }
";

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn path(home: &tempfile::TempDir, name: &str) -> String {
    home.path().join(name).to_str().unwrap().to_string()
}

fn scenario(home: &tempfile::TempDir) -> String {
    let file = path(home, "scenario.toml");
    fs::write(&file, SCENARIO).unwrap();
    file
}

/// Whether this user may have a laboratory.
fn may_build(host: &Host) -> bool {
    host.run_well(&["shell", "--best-effort", "--", "true"]).is_some()
}

fn ask(host: &Host, arguments: &[&str], run: &Running) -> Outcome {
    host.start(&[arguments, &["--pid", &run.pid().to_string()]].concat()).finish()
}

/// The answer of `show` for a run once frames have entered: at an instant at which something is emulated.
pub fn shown(host: &Host, run: &Running) -> Value {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        let outcome = ask(host, &["show", "--json"], run);
        if outcome.status.success() {
            let shown = outcome.statement_of_all();
            if shown["state"]["lanes"][0]["entered"].as_u64() > Some(0) {
                return shown;
            }
        }
        sleep(LOOK);
    }
    panic!("nothing was shown of run {}", run.pid());
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

/// Sets a run again and again until it has ended, since a spoilt measurement is made anew; tells what was answered
/// when it took hold.
fn set_until_the_end(host: &Host, settings: &[&str], mut run: Running) -> (Vec<Outcome>, Outcome) {
    let mut good = Vec::new();
    while run.goes_on() {
        let told = ask(host, &[&["set"], settings].concat(), &run);
        let known = [
            "between two measurements",
            "ended",
            "no trunkline runs",
            "nothing runs",
            "ending",
            "is gone",
        ];
        let expected = known.iter().any(|part| told.stderr.contains(part));
        assert!(told.status.success() || expected, "{told:#?}");
        good.extend(told.status.success().then_some(told));
        sleep(2 * LOOK);
    }
    (good, run.finish())
}

/// A frame in a capture: when, whether it came out, and what it was.
struct Record {
    nanos: u128,
    out: Option<bool>,
    data: Vec<u8>,
}

/// The records of each interface of a capture, by its name.
fn captured(file: &Path) -> BTreeMap<String, Vec<Record>> {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let (mut names, mut records) = (Vec::new(), BTreeMap::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => {
                let name = block.options.iter().find_map(|option| match option {
                    IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                names.push(name.unwrap());
                records.insert(names.last().unwrap().clone(), Vec::new());
            }
            Block::EnhancedPacket(block) => {
                let out = block.options.iter().find_map(|option| match option {
                    Flags(flags) => Some(*flags == 2),
                    _ => None,
                });
                let (nanos, data) = (block.timestamp.as_nanos(), block.data.to_vec());
                let name = &names[block.interface_id as usize];
                records.get_mut(name).unwrap().push(Record { nanos, out, data });
            }
            _ => {}
        }
    }
    records
}

fn count(records: &[Record], out: bool) -> usize {
    records.iter().filter(|record| record.out == Some(out)).count()
}

/// The milliseconds that frames took over a lane, in the order in which they entered.
fn times_over(records: &[Record]) -> Vec<f64> {
    let of = |out| records.iter().filter(move |record| record.out == Some(out));
    let took = |(entered, left): (&Record, &Record)| {
        // Addresses change where a frame leaves the laboratory; what follows them does not.
        assert_eq!(entered.data[12..34], left.data[12..34], "frames keep their order");
        // As fractions, instants of today would be rounded to 256 ns.
        (left.nanos as i128 - entered.nanos as i128) as f64 / 1e6
    };
    of(false).zip(of(true)).map(took).collect()
}

/// The capture of the last measurement.
fn last_capture(file: &str) -> PathBuf {
    let (stem, extension) = file.rsplit_once('.').unwrap();
    let numbered = |number: usize| PathBuf::from(format!("{stem}-{number}.{extension}"));
    let later = (2..).map(numbered).take_while(|file| file.exists()).last();
    later.unwrap_or_else(|| file.into())
}

/// Checks that a capture of the scenario shows the trunk after it was set to 50 ms.
fn check_scenario_capture(file: &Path) {
    let records = captured(file);
    let names: Vec<&str> = records.keys().map(String::as_str).collect();
    assert_eq!(names, ["a>n", "b>n", "dropped", "n>a", "n>b"]);
    let (access, trunk) = (&records["a>n"], &records["n>b"]);
    assert!(count(access, false) >= 300, "{}", count(access, false));
    assert_eq!(count(access, true), count(trunk, false), "what leaves one link enters the next");
    // 100 bytes of payload and 28 of headers take 128 us at 8 Mbit/s. A frame that the machine shows to the emulator
    // more than 100 us after its stamp, by when the line's clock may have passed it, takes longer, never less; a
    // machine that stands still for a moment does that to all frames of the moment.
    let mut first = times_over(access);
    first.sort_unstable_by(f64::total_cmp);
    let middle = first[first.len() / 2];
    assert!(first[0] >= 2.1 && middle < 2.2, "at least {}, middle {middle}", first[0]);
    let second = times_over(trunk);
    assert!(second.iter().all(|&took| took >= 3.0));
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = least(&second[second.len() - 50..]);
    assert!((50.0..70.0).contains(&last), "{last} ms of 50");
    // The first measurement was looked at before it was set; those that repeat it are set as they begin.
    let repeated = file.file_stem().unwrap().to_string_lossy().contains('-');
    assert!(repeated || least(&second) < 23.0, "{} ms of 3", least(&second));
    assert_eq!(records["dropped"].len(), 0);
}

#[test]
fn a_scenario_is_shown_set_and_captured() {
    let (host, home) = (Host::among_few(), place());
    if !may_build(&host) {
        return;
    }
    let (file, capture) = (scenario(&home), path(&home, "run.pcapng"));
    let run = host.start(&[
        "run",
        &file,
        "--engine",
        "emu",
        "--attempts",
        "1",
        "--best-effort",
        "--json",
        "--pcap",
        &capture,
    ]);
    let shown = shown(&host, &run);
    assert_eq!(names(&shown["state"]["lanes"]), ["a>n", "n>a", "n>b", "b>n"]);
    assert_eq!(names(&shown["path"]["paths"]), ["access", "trunk"]);
    assert_eq!(shown["path"]["paths"][1]["lanes"], serde_json::json!(["n>b", "b>n"]));
    assert_eq!(shown["path"]["paths"][1]["up"]["delay"], "3ms");
    let text = ask(&host, &["show"], &run).stdout;
    assert!(text.contains("n>b (trunk, up): ") && text.contains("b>n (trunk, down): "), "{text}");
    let (pid, refused) = (run.pid(), ask(&host, &["set", "delay=1ms"], &run));
    assert!(refused.complaint().contains("access, trunk"), "{refused:#?}");
    let (told, outcome) = set_until_the_end(&host, &["--link", "trunk", "up-delay=50ms"], run);
    assert!(told.first().unwrap().stdout.contains("delay=50ms"), "{told:#?}");
    assert!(outcome.status.success(), "{outcome:#?}");
    let report = outcome.statement_of_all();
    let notes = report["runs"][0]["notes"].to_string();
    assert!(
        notes.contains(r#"{"about":{"link":"trunk"},"kind":"changed","text":"set by hand"#),
        "{notes}"
    );
    assert!(notes.contains("(up-delay=50ms): the result is of a changed path"), "{notes}");
    check_scenario_capture(&last_capture(&capture));
    host.assert_nothing_left(pid);
}

#[test]
fn a_scenario_that_nobody_sets_says_nothing_of_it() {
    let (host, home) = (Host::beside(), place());
    if !may_build(&host) {
        return;
    }
    let file = scenario(&home);
    let once = ["--attempts", "1", "--best-effort", "--json"];
    let outcome = host.run(&[&["run", &file, "--engine", "emu"], &once[..]].concat());
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(!outcome.stdout.contains("set by hand"), "{outcome:#?}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no capture was asked for");
}

#[test]
fn an_interrupted_scenario_leaves_a_whole_capture_and_nothing_else() {
    let (host, home) = (Host::beside(), place());
    if !may_build(&host) {
        return;
    }
    let capture = path(&home, "cut.pcapng");
    let run = host.start(&["run", &scenario(&home), "--engine", "emu", "--pcap", &capture]);
    shown(&host, &run);
    let pid = run.pid();
    run.signal(Signal::INT);
    let outcome = run.finish();
    assert_eq!(outcome.status.code(), Some(130), "{outcome:#?}");
    host.assert_nothing_left(pid);
    assert!(!captured(&last_capture(&capture))["a>n"].is_empty());
}

#[test]
fn a_ladder_is_shown_set_and_captured() {
    let (host, home) = (Host::among_few(), place());
    if !may_build(&host) {
        return;
    }
    let (file, capture) = (scenario(&home), path(&home, "ladder.pcapng"));
    let run = host.start(&[
        "ladder",
        &file,
        "--engine",
        "sim,emu",
        "--attempts",
        "1",
        "--best-effort",
        "--notes",
        "--pcap",
        &capture,
    ]);
    let shown = shown(&host, &run);
    assert_eq!(names(&shown["state"]["lanes"]), ["a>n", "n>a", "n>b", "b>n"]);
    let pid = run.pid();
    let (told, outcome) = set_until_the_end(&host, &["--link", "trunk", "up-delay=50ms"], run);
    assert!(!told.is_empty() && outcome.stdout.contains("trunk: set by hand"), "{outcome:#?}");
    check_scenario_capture(&last_capture(&capture));
    host.assert_nothing_left(pid);
}

#[test]
fn a_verification_is_shown_and_captured_and_fails_if_it_was_set() {
    let (host, home) = (Host::beside(), place());
    if !may_build(&host) {
        return;
    }
    let capture = path(&home, "verify.pcapng");
    let probes = ["--sizes", "100", "--loads", "500", "--duration", "4s"];
    let verify = ["verify", "--delay", "5ms", "--json", "--pcap", &capture];
    let run = host.start(&[&verify, &probes[..]].concat());
    let shown = shown(&host, &run);
    assert_eq!(names(&shown["state"]["lanes"]), ["up", "down"]);
    let pid = run.pid();
    let told = ask(&host, &["set", "up-delay=9ms"], &run);
    assert!(told.status.success() && told.stdout.contains("9ms"), "{told:#?}");
    let outcome = run.finish();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let problems = outcome.statement_of_all()["runs"][0]["problems"].to_string();
    assert!(
        problems.contains("changed by hand while it was measured (up-delay=9ms)"),
        "{problems}"
    );
    let records = captured(&last_capture(&capture));
    for end in ["near", "far"] {
        let (entered, left) = (count(&records[end], false), count(&records[end], true));
        assert!(entered >= 1000 && left >= 1000, "{end}: {entered} in, {left} out");
    }
    host.assert_nothing_left(pid);
}

/// Two namespaces joined to the host by a device pair each, between which a bridge goes.
fn sides(host: &Namespace) -> [Namespace; 2] {
    let [left, right] = [(1, "tltl", "tlta"), (2, "tltr", "tltb")].map(|(number, outer, inner)| {
        let side = Namespace::create().unwrap();
        create_veth(&End::new(&side, outer), &End::new(host, inner), 1500).unwrap();
        let net: IpNet = format!("192.0.2.{number}/24").parse().unwrap();
        side.add_address(outer, net).unwrap();
        side
    });
    [left, right]
}

fn ping(from: &Namespace) -> f64 {
    let mut command = std::process::Command::new("ping");
    command.args(["-n", "-c", "3", "-i", "0.2", "192.0.2.2"]);
    command.stdout(std::process::Stdio::piped());
    let child = trunkline_netns::spawn(from, command, Default::default()).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let times = text.lines().filter_map(|line| line.split_once(" time="));
    let times = times.map(|(_, rest)| rest.trim_end_matches(" ms").parse::<f64>().unwrap());
    times.fold(f64::INFINITY, f64::min)
}

#[test]
fn a_bridge_is_shown_set_and_captured() {
    let (host, home) = (Host::among_few(), place());
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let [left, _right] = sides(namespace);
    let capture = path(&home, "bridge.pcapng");
    let mut run = host.start(&[
        "bridge",
        "tlta",
        "tltb",
        "--delay",
        "5ms",
        "--best-effort",
        "--pcap",
        &capture,
        "--pcap-at",
        "far",
    ]);
    run.await_line("tlta <-> tltb");
    let before = ping(&left);
    assert!((10.0..30.0).contains(&before), "{before} ms of 10");
    assert_eq!(names(&shown(&host, &run)["state"]["lanes"]), ["up", "down"]);
    let told = ask(&host, &["set", "delay=40ms"], &run);
    assert!(told.status.success(), "{told:#?}");
    let after = ping(&left);
    assert!((80.0..100.0).contains(&after), "{after} ms of 80");
    let pid = run.pid();
    run.signal(Signal::INT);
    let outcome = run.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    host.assert_nothing_left(pid);
    let records = captured(Path::new(&capture));
    assert_eq!(records["near"].len(), 0, "the far end was asked for");
    assert!(count(&records["far"], true) >= 6 && count(&records["far"], false) >= 6);
}

#[test]
fn a_capture_without_the_emulator_is_wrong_use() {
    let (host, home) = (Host::beside(), place());
    let outcome = host.run(&["run", &scenario(&home), "--pcap", &path(&home, "x.pcapng")]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.complaint().contains("--engine"), "{outcome:#?}");
}

//! A run that is killed leaves no namespace, and the next run's sweep removes the rest.
//!
//! The test starts itself twice, inside a namespace that stands for the host's: one run is killed while
//! it holds a laboratory with the outside connected and a program in it, the other lives on and needs
//! the host's forwarding.

use std::env;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_netns::{
    End, LabError, Namespace, Outside, RunState, SpawnOptions, create_veth, processes_in, spawn,
    sweep,
};

const DIRECTORY: &str = "TRUNKLINE_TEST_DIRECTORY";
const PATIENCE: Duration = Duration::from_secs(5);

fn main() {
    match env::var_os(DIRECTORY) {
        Some(directory) => hold(Path::new(&directory)),
        None => examine(),
    }
}

/// The run: builds all, tells what, and waits for its end.
fn hold(directory: &Path) {
    let host = Namespace::current().unwrap();
    let state = RunState::create(directory, &host).unwrap();
    let (near, far) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    for namespace in [&near, &far] {
        state.note_namespace(namespace).unwrap();
    }
    create_veth(&End::new(&near, "tl0"), &End::new(&far, "tl0"), 1500).unwrap();
    let outside = Outside::connect(&host, &far, &state).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
    let options = SpawnOptions { die_with_parent: false, ..SpawnOptions::default() };
    let mut program = spawn(&far, sleep, options).unwrap();
    println!("{} {} {}", near.inode(), far.inode(), outside.devices().0);
    // The other side closes the pipe for an orderly end.
    let _ = stdin().read_line(&mut String::new());
    program.kill().unwrap();
    program.wait().unwrap();
}

/// A run that has been started, and what it told.
struct Run {
    child: Child,
    near: u64,
    far: u64,
    device: String,
}

impl Run {
    /// The table that guards what the host passes on for it.
    fn guard(&self) -> String {
        format!("{}g", self.device)
    }
}

fn tables(host: &Namespace) -> Vec<String> {
    let mut tables = host.nft_tables().unwrap();
    tables.sort();
    tables
}

fn start(host: &Namespace, directory: &Path) -> Run {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(DIRECTORY, directory).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = spawn(host, command, SpawnOptions::default()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let [near, far, device] = words[..] else { panic!("the run told `{line}`") };
    Run { child, near: near.parse().unwrap(), far: far.parse().unwrap(), device: device.into() }
}

fn examine() {
    let host = match Namespace::create() {
        Err(error) if error.errno() == Some(libc::EPERM) => return trunkline_skip::skipped(error),
        made => made.unwrap(),
    };
    let directory: PathBuf = env::temp_dir().join(format!("tl-crash-{}", std::process::id()));
    let world = Namespace::create().unwrap();
    create_veth(&End::new(&host, "tlup"), &End::new(&world, "tldown"), 1500).unwrap();
    host.add_address("tlup", "192.0.2.1/24".parse().unwrap()).unwrap();
    let forwarding = || host.sysctl("net/ipv4/conf/tlup/forwarding").unwrap();
    let mut killed = start(&host, &directory);
    assert_eq!(tables(&host), [killed.device.clone(), killed.guard()]);
    let mut living = start(&host, &directory);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();

    assert_eq!(processes_in(killed.near), [0u32; 0], "nobody holds the near namespace");
    assert_eq!(processes_in(killed.far).len(), 1, "the program lives on");
    assert!(tables(&host).contains(&killed.guard()), "what the kill left on is guarded");
    assert!(host.link(&killed.device).is_ok(), "and holds the pair");

    let told = sweep(&host, &directory).unwrap();
    assert!(told.iter().any(|line| line.starts_with("killed 1 processes")), "{told:#?}");
    assert!(
        told.iter().any(|line| *line == format!("removed device {}", killed.device)),
        "{told:#?}"
    );
    assert!(matches!(host.link(&killed.device), Err(LabError::NoDevice(_))));
    assert_eq!(tables(&host), [living.device.clone(), living.guard()]);
    assert_eq!(forwarding(), "1", "the living run needs it");
    await_empty(killed.far);
    assert_eq!(sweep(&host, &directory).unwrap(), [""; 0], "the living run is not touched");
    assert_eq!(processes_in(living.far).len(), 1);

    living.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(living.child.wait().unwrap().success());
    assert!(host.link(&living.device).is_err() && host.nft_tables().unwrap().is_empty());
    assert_eq!(forwarding(), "0", "the value before the first run");
    assert_eq!(processes_in(living.near).len() + processes_in(living.far).len(), 0);
    assert_eq!(sweep(&host, &directory).unwrap(), [""; 0]);
    std::fs::remove_dir_all(&directory).unwrap();
    println!("a killed run leaves nothing after the sweep: ok");
}

/// A killed process is gone once whoever inherited it has taken note.
fn await_empty(inode: u64) {
    let end = Instant::now() + PATIENCE;
    while !processes_in(inode).is_empty() {
        assert!(Instant::now() < end, "processes are left in {inode}");
        thread::sleep(Duration::from_millis(2));
    }
}

//! Runs of the command, what they said, and what they left behind.

use crate::turn::{self, Turn};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_core::Span;
use trunkline_netns::{Namespace, SpawnOptions, spawn};
pub use trunkline_skip::{installed, skipped};

/// No run takes longer than this, or it is killed and the test fails. One that measures waits until others have measured, and does
/// so again if the machine was disturbed.
pub const LIMIT: Duration = Duration::from_secs(240);

/// Whether the command says that this user may have no laboratory.
pub fn is_forbidden(said: &str) -> bool {
    said.contains("no permission to make a user namespace")
}

/// The machine's network as the runs of one test see it.
pub struct Host {
    namespace: Option<Namespace>,
    _turn: Turn,
}

impl Host {
    /// A namespace in place of the machine's network, if that is permitted, for a test that needs the machine for
    /// itself: see [`turn`].
    pub fn alone() -> Host {
        Host::of(turn::alone())
    }

    /// The same for a test that mostly waits, and bears a few others of that sort.
    pub fn among_few() -> Host {
        Host::of(turn::among_few())
    }

    /// The same for a test that bears others beside it.
    pub fn beside() -> Host {
        Host::of(turn::beside())
    }

    fn of(turn: Turn) -> Host {
        Host { namespace: Namespace::create().ok(), _turn: turn }
    }

    /// The namespace that stands for the machine's, or a message and nothing.
    pub fn separate(&self) -> Option<&Namespace> {
        if self.namespace.is_none() {
            skipped("this user may not make network namespaces outside of a user namespace");
        }
        self.namespace.as_ref()
    }

    /// The same, if there is one: without it the machine's own network is used.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Starts the command.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(arguments);
        self.start_command(command)
    }

    /// Starts `command` in a namespace of the test's.
    pub fn start_command_in(&self, namespace: &Namespace, mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(spawn(namespace, command, SpawnOptions::default()).unwrap())
    }

    /// Starts `command` as the command itself is started.
    pub fn start_command(&self, mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(self.spawn(command))
    }

    /// The same with the streams that `command` has.
    pub fn spawn(&self, mut command: Command) -> Child {
        match &self.namespace {
            Some(namespace) => spawn(namespace, command, SpawnOptions::default()).unwrap(),
            None => command.spawn().unwrap(),
        }
    }

    /// Runs the command to its end. Whatever the outcome, nothing may be left of it.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_within(LIMIT, arguments)
    }

    /// The same for a command that takes no longer than `limit`.
    pub fn run_within(&self, limit: Duration, arguments: &[&str]) -> Outcome {
        let outcome = self.start(arguments).finish_within(limit);
        self.assert_nothing_left(outcome.pid);
        outcome
    }

    /// Runs a laboratory that has to succeed; nothing if this user may have none.
    pub fn run_well(&self, arguments: &[&str]) -> Option<Outcome> {
        let outcome = self.run(arguments);
        if outcome.status.code() == Some(1) && is_forbidden(&outcome.stderr) {
            skipped(&outcome.stderr);
            return None;
        }
        assert!(outcome.status.success(), "{arguments:?}: {outcome:#?}");
        Some(outcome)
    }

    /// Runs a laboratory with pings in it until a run is VALID, three times at most, and checks their round trips:
    /// `expected` gives, in the order of the pings, how many there are and the least milliseconds of each.
    ///
    /// No ping is faster than its path. In a VALID run the shortest is at most a millisecond slower and the middle
    /// one three: what the ends need. What an INVALID run admits to be late by is allowed besides. The shortest of
    /// all runs is always held to 20 ms: no machine at work explains more.
    pub fn ping_well(&self, arguments: &[&str], expected: &[(usize, f64)]) -> Option<Outcome> {
        let mut shortest = vec![f64::INFINITY; expected.len()];
        for attempt in 1.. {
            let outcome = self.run_well(arguments)?;
            let valid = outcome.statement()["valid"] == true;
            let mut times = outcome.ping_times();
            let wanted: usize = expected.iter().map(|(count, _)| count).sum();
            assert_eq!(times.len(), wanted, "{outcome:#?}");
            let late = if valid { 0.0 } else { outcome.lateness() };
            for ((count, least), shortest) in expected.iter().zip(&mut shortest) {
                let mut own: Vec<f64> = times.drain(..count).collect();
                own.sort_by(f64::total_cmp);
                *shortest = shortest.min(own[0]);
                let middle = own[own.len() / 2];
                assert!(own[0] >= *least, "{} ms of {least}: {outcome:#?}", own[0]);
                assert!(own[0] < least + 1.0 + late, "{} ms of {least}: {outcome:#?}", own[0]);
                assert!(middle < least + 3.0 + late, "{middle} ms of {least}: {outcome:#?}");
            }
            if valid || attempt == 3 {
                let slow = |((_, least), time): (&(usize, f64), &f64)| *time > least + 20.0;
                assert!(!expected.iter().zip(&shortest).any(slow), "{shortest:?}: {outcome:#?}");
                return Some(outcome);
            }
        }
        None
    }

    /// No program, state file, device or masquerading table of the run with this process number.
    pub fn assert_nothing_left(&self, pid: u32) {
        let deadline = Instant::now() + Duration::from_secs(5);
        // A killed program is gone once whoever inherited it has taken note.
        while !programs_of(pid).is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(programs_of(pid), [0u32; 0], "programs of run {pid} are left");
        assert_eq!(files_of(pid), [""; 0], "files of run {pid} are left");
        if let Some(host) = &self.namespace {
            assert_eq!(own_devices(host), [""; 0], "devices are left");
            assert_eq!(host.nft_tables().unwrap_or_default(), [""; 0], "masquerading is left");
        }
    }
}

/// Processes started by the run with this number, by the environment that it gives to all of them.
pub fn programs_of(run: u32) -> Vec<u32> {
    let mark = format!("TRUNKLINE_PID={run}");
    let marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(marked).collect()
}

/// State files and sockets of the run with this number, wherever a run of this user may have put them.
pub fn files_of(run: u32) -> Vec<String> {
    let directories = trunkline_netns::runtime_dirs().into_iter();
    let entries = directories.flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.split('.').any(|part| part == run.to_string())).collect()
}

/// Devices of the laboratory's prefix, as the namespace lists them.
pub fn own_devices(namespace: &Namespace) -> Vec<String> {
    let text = namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let names = text.lines().skip(2).filter_map(|line| line.split(':').next());
    // The tests' own devices are called tlt….
    let ours = |name: &&str| name.starts_with("tl") && !name.starts_with("tlt");
    names.map(str::trim).filter(ours).map(str::to_string).collect()
}

/// A run under way.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    printed: String,
    lines: Receiver<String>,
    told: Vec<String>,
}

impl Running {
    fn new(mut child: Child) -> Running {
        let stdout = child.stdout.take().map(read_lines).unwrap();
        let lines = child.stderr.take().map(read_lines).unwrap();
        Running { child, stdout, printed: String::new(), lines, told: Vec::new() }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line on standard error that contains `part`.
    pub fn await_line(&mut self, part: &str) {
        let until = Instant::now() + LIMIT;
        while !self.told.last().is_some_and(|line| line.contains(part)) {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.told.push(without_end(line)),
                Err(error) => panic!("no line with '{part}' ({error}): {:#?}", self.told),
            }
        }
    }

    /// The same, or its end, whichever comes first; tells whether it was the line.
    pub fn await_line_or_end(&mut self, part: &str) -> bool {
        let until = Instant::now() + LIMIT;
        while let Ok(line) =
            self.lines.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.told.push(without_end(line));
            if self.has_told(part) {
                return true;
            }
        }
        false
    }

    /// Waits until there are so many lines on standard output.
    pub fn await_printed(&mut self, lines: usize) {
        let until = Instant::now() + LIMIT;
        while self.printed.lines().count() < lines {
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.printed.push_str(&line),
                Err(error) => panic!("no {lines} lines ({error}): {}", self.printed),
            }
        }
    }

    /// Lines that it has told so far on standard error, as far as they were waited for.
    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Whether one of them contains `part`.
    pub fn has_told(&self, part: &str) -> bool {
        self.told.iter().any(|line| line.contains(part))
    }

    /// Whether it has not ended.
    pub fn goes_on(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it, as `kill -9` does, and waits until it is no more than its number.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn finish(self) -> Outcome {
        self.finish_within(LIMIT)
    }

    /// Waits for its end, which takes no longer than `limit`.
    pub fn finish_within(mut self, limit: Duration) -> Outcome {
        let until = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.told.push(without_end(line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("still running after {limit:?}: {:#?}", self.told);
                }
            }
        }
        let (pid, status) = (self.child.id(), self.child.wait().unwrap());
        self.printed.extend(self.stdout.iter());
        // What another, killed run left is none of this run's own words.
        self.told.retain(|line| !line.starts_with("trunkline: from a killed run:"));
        Outcome { pid, status, stdout: self.printed, stderr: self.told.join("\n") }
    }
}

/// The lines of a stream as they come, each with its end.
fn read_lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let (mut stream, mut line) = (BufReader::new(stream), Vec::new());
        while stream.read_until(b'\n', &mut line).unwrap() > 0 {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

fn without_end(mut line: String) -> String {
    line.truncate(line.trim_end_matches('\n').len());
    line
}

/// The outcome of a run and its output.
#[derive(Debug)]
pub struct Outcome {
    pub pid: u32,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The closing statement of a run with `--json`: the last line on standard output.
    pub fn statement(&self) -> serde_json::Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// All of standard output as one JSON value.
    pub fn statement_of_all(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The state of the direction called `name` (`up`, `satellite/down` …), whose counts must add up.
    pub fn lane(&self, name: &str) -> Lane {
        let statement = self.statement();
        let lanes = statement["state"]["lanes"].as_array().unwrap();
        let lane = lanes.iter().find(|lane| lane["name"] == name).unwrap();
        let lane = Lane(lane.clone());
        let drops = lane.0["dropped"].as_object().unwrap().values();
        let dropped: u64 = drops.map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(
            lane.count("entered") + lane.count("duplicated"),
            lane.count("delivered") + dropped + lane.count("in_flight"),
            "the counts do not add up: {lane:?}"
        );
        lane
    }

    /// The milliseconds that the statement admits for a frame there and a frame back: the latest of each direction.
    pub fn lateness(&self) -> f64 {
        let statement = self.statement();
        let lanes = statement["state"]["lanes"].as_array().unwrap().iter();
        let latest = |lane: &serde_json::Value| -> Span {
            lane["lateness"]["max"].as_str().unwrap().parse().unwrap()
        };
        lanes.map(latest).map(|span| span.as_secs_f64() * 1e3).sum()
    }

    /// The line that says what went wrong: the last one, and the only one of its kind.
    pub fn complaint(&self) -> &str {
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(line.starts_with("trunkline: "), "no readable last line: {self:#?}");
        line
    }

    /// The round-trip times that ping printed, in milliseconds.
    pub fn ping_times(&self) -> Vec<f64> {
        let values = self.stdout.lines().filter_map(|line| line.split_once(" time="));
        let number = |text: &str| text.trim_end_matches(" ms").parse().ok();
        values.filter_map(|(_, rest)| number(rest)).collect()
    }
}

/// One direction in a closing statement.
#[derive(Debug)]
pub struct Lane(serde_json::Value);

impl Lane {
    /// A count by its name.
    pub fn count(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    /// The number of packets dropped by `cause`, in the words of the statement.
    pub fn dropped(&self, cause: &str) -> u64 {
        self.0["dropped"][cause].as_u64().unwrap_or(0)
    }

    /// The mean time that packets spent on `cause`, in the words of the statement.
    pub fn mean_delay(&self, cause: &str) -> Option<String> {
        let entries = self.0["mean_delay"].as_array().unwrap().iter();
        let mut named = entries.filter(|entry| entry[0] == cause);
        named.next().and_then(|entry| entry[1].as_str()).map(str::to_string)
    }
}

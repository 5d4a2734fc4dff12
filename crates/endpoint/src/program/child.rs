//! A program under way: its process group, and what it prints.

use crate::EndpointError;
use crate::clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use rustix::time::Timespec;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_netns::{Namespace, SpawnOptions, group_lives, spawn};

/// The most that is kept of each output, in bytes.
const MOST_OUTPUT: usize = 16 << 20;
/// The time in which a group that was asked to end may do so.
const GRACE: Span = Span::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// The reason why a program's run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended by itself.
    Natural,
    /// It is ended.
    Stopped,
}

/// A program under way.
#[derive(Debug)]
pub(crate) struct Child {
    child: std::process::Child,
    started: Time,
    ended: Option<Time>,
    outputs: Option<[Output; 2]>,
    /// Readable when it has ended.
    handle: Option<OwnedFd>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub started: Time,
    pub ended: Time,
    pub status: Option<ExitStatus>,
    pub ending: Ending,
    pub output: String,
    pub errors: String,
}

impl Child {
    /// Starts `command` by the shell inside `namespace`, as a process group of its own. It is killed when the
    /// calling thread ends.
    pub fn start(namespace: &Namespace, command: &str) -> Result<Child, EndpointError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        // As `shell` does: whose program it is.
        shell.env("TRUNKLINE_PID", std::process::id().to_string());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        let options = SpawnOptions { own_group: true, ..SpawnOptions::default() };
        let started = clock::now();
        let mut child = spawn(namespace, shell, options).map_err(|error| {
            EndpointError::Program { command: command.into(), reason: error.to_string() }
        })?;
        let outputs = [Output::of(child.stdout.take()), Output::of(child.stderr.take())];
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(Child { child, started, ended: None, outputs: Some(outputs), handle })
    }

    /// Whether it has ended. It is not reaped, so that its group's number stays its own.
    pub fn ended(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let over =
            self.ended.is_some() || !matches!(waitid(WaitId::Pid(self.pid()), options), Ok(None));
        if over {
            self.ended.get_or_insert_with(clock::now);
        }
        over
    }

    /// Whether it has ended with status 0.
    pub fn gone_well(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()), options);
        status.is_ok_and(|status| status.and_then(|status| status.exit_status()) == Some(0))
    }

    /// Waits for its end, for at most `span`.
    pub fn wait(&mut self, span: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: span.subsec_nanos().into() };
        match &self.handle {
            // Whatever ends the sleep, `ended` looks.
            Some(handle) => drop(poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout))),
            None => std::thread::sleep(span),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Ends it and what it has started, waits for it, and gives what it said.
    pub fn finish(mut self, ending: Ending) -> Finished {
        if ending == Ending::Stopped {
            self.ask();
        }
        self.ended();
        let ended = self.ended.unwrap_or_else(clock::now);
        let status = self.reap();
        let [output, errors] = self.outputs.take().unwrap_or_default().map(Output::text);
        Finished { started: self.started, ended, status, ending, output, errors }
    }

    /// Asks the group to end, and gives it the time: as from a keyboard first, for programs that measure say then what they
    /// have measured, and some of them then only.
    fn ask(&mut self) {
        for signal in [Signal::INT, Signal::TERM] {
            self.signal(signal);
            let limit = clock::now() + GRACE.scaled(1, 2);
            while self.lives() && clock::now() < limit {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Whether the shell or what it has started is alive. A shell may end before what it has started, which may still have
    /// something to say.
    fn lives(&mut self) -> bool {
        !self.ended() || group_lives(self.child.id())
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(self.pid(), signal);
    }

    /// Kills what is left of the group before its number is given back.
    fn reap(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::KILL);
        self.child.wait().ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.outputs.is_some() {
            self.reap();
        }
    }
}

impl Finished {
    /// Whether it ended as it should.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Stopped || self.status.is_some_and(|status| status.success())
    }

    /// The reason why it did not, in one line: its last words.
    pub fn complaint(&self) -> String {
        let last =
            |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let words = last(&self.errors).or_else(|| last(&self.output));
        let words = words.unwrap_or_else(|| "it said nothing".into());
        match self.status {
            Some(status) => format!("{status}: {}", words.trim()),
            None => words,
        }
    }
}

/// The output of a program, read to its end by a thread of its own, which keeps the beginning.
#[derive(Debug, Default)]
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    fn of<R: Read + Send + 'static>(source: Option<R>) -> Output {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let place = Arc::clone(&kept);
        let body = move |source| read_all(source, &place);
        let thread = source.and_then(|source| {
            trunkline_netns::thread("tl-output").ok()?.spawn(move || body(source)).ok()
        });
        Output { kept, thread }
    }

    /// The output so far. Something that has left the group may keep it open: it is not waited for.
    fn text(self) -> String {
        let limit = clock::now() + GRACE;
        let open = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while open() && clock::now() < limit {
            std::thread::sleep(LOOK);
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// An output that breaks off ends there.
fn read_all(mut source: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (MOST_OUTPUT - kept.len()).min(count);
        kept.extend_from_slice(&buffer[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in the present namespace, which is entered all the same: nothing and a note without the right.
    fn here(command: &str) -> Option<Child> {
        match Child::start(&Namespace::current().unwrap(), command) {
            Err(error) if error.to_string().contains("Operation not permitted") => {
                trunkline_skip::skipped(error);
                None
            }
            child => Some(child.unwrap()),
        }
    }

    /// The same when it has said a line.
    fn ready(command: &str) -> Option<Child> {
        let mut child = here(command)?;
        let said = |child: &Child| {
            let [output, _] = child.outputs.as_ref().unwrap();
            output.kept.lock().unwrap().ends_with(b"\n")
        };
        while !said(&child) && !child.ended() {
            std::thread::sleep(LOOK);
        }
        Some(child)
    }

    fn wait(child: &mut Child) {
        while !child.ended() {
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn outputs_and_status_are_kept_apart() {
        let Some(mut child) = here("echo out; echo 'the reason' >&2; exit 3") else { return };
        wait(&mut child);
        let finished = child.finish(Ending::Natural);
        assert_eq!((finished.output.as_str(), finished.succeeded()), ("out\n", false));
        assert_eq!(finished.complaint(), "exit status: 3: the reason");
        assert!(finished.started <= finished.ended);
    }

    #[test]
    fn a_stopped_program_ends_with_all_that_it_started() {
        // The shell waits for a child that does not heed the request.
        let Some(child) = ready("trap '' TERM; sleep 1000 & echo $!; wait; wait") else { return };
        let finished = child.finish(Ending::Stopped);
        assert!(finished.succeeded());
        let sleeper: u32 = finished.output.trim().parse().unwrap();
        let gone = || match std::fs::read_to_string(format!("/proc/{sleeper}/stat")) {
            Ok(stat) => stat.contains(") Z"),
            Err(_) => true,
        };
        let limit = clock::now() + Span::from_secs(5);
        while !gone() && clock::now() < limit {
            std::thread::sleep(LOOK);
        }
        assert!(gone());
    }

    #[test]
    fn a_program_is_stopped_as_from_a_keyboard_first() {
        let measuring =
            "trap 'echo the result; exit' INT; echo ready; while :; do sleep 0.05; done";
        let Some(child) = ready(measuring) else { return };
        assert_eq!(child.finish(Ending::Stopped).output, "ready\nthe result\n");
    }

    /// A shell does not wait when it is told to end.
    #[test]
    fn a_stopped_program_may_finish_what_it_says() {
        let slow = "(trap 'sleep 0.3; echo the result; exit' TERM; echo ready; while :; do sleep 0.05; done) & wait";
        let Some(child) = ready(slow) else { return };
        assert_eq!(child.finish(Ending::Stopped).output, "ready\nthe result\n");
    }

    #[test]
    fn who_leaves_the_group_and_keeps_the_output_is_not_waited_for() {
        let Some(mut child) = here("setsid sleep 30 & echo $!") else { return };
        wait(&mut child);
        let began = clock::now();
        let finished = child.finish(Ending::Natural);
        assert!(clock::now().since(began) < Span::from_secs(20));
        let sleeper: i32 = finished.output.trim().parse().unwrap();
        let pid = Pid::from_raw(sleeper).unwrap();
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }

    #[test]
    fn much_output_is_cut_and_does_not_block() {
        let Some(mut child) = here("head -c 20000000 /dev/zero") else { return };
        wait(&mut child);
        assert_eq!(child.finish(Ending::Natural).output.len(), MOST_OUTPUT);
    }
}

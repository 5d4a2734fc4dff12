//! The measurements of a program, read from what it printed.

mod curl;
mod iperf3;
mod irtt;
mod ping;

use super::child::{Ending, Finished};
use super::command::{Commands, Kind, kind_of};
use crate::plan::FlowPlan;
use crate::run::FlowRun;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{Note, NoteKind};
use trunkline_measure::{Sample, Step};
use trunkline_scenario::Workload;

/// A program's run.
pub(super) struct Outcome<'a> {
    pub client: Finished,
    pub server: Option<Finished>,
    pub commands: &'a Commands,
    pub plan: &'a FlowPlan,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds: programs stamp by the one, samples by the other.
    pub offset: i64,
}

/// The output of an outside program and its server, wherever they ran.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// The client's command.
    pub command: &'a str,
    /// The output of the client.
    pub output: &'a str,
    /// The output of the server, if there was one.
    pub server: Option<&'a str>,
    /// From when to when they ran.
    pub ran: [Time; 2],
}

/// Reads what was `printed` as the measurements of the flow of a `plan`, whose client and server ended well.
pub fn read_printed(plan: &FlowPlan, printed: &Printed<'_>) -> FlowRun {
    read_ended(plan, printed, Ending::Natural)
}

fn read_ended(plan: &FlowPlan, printed: &Printed<'_>, ending: Ending) -> FlowRun {
    let [started, ended] = printed.ran;
    let finished = |text: &str| Finished {
        started,
        ended,
        status: Some(ExitStatus::from_raw(0)),
        ending,
        output: text.into(),
        errors: String::new(),
    };
    let commands = Commands {
        kind: kind_of(printed.command),
        client: printed.command.into(),
        server: None,
        port: 0,
        names_port: false,
        notes: Vec::new(),
    };
    let (client, server) = (finished(printed.output), printed.server.map(finished));
    read(&Outcome { client, server, commands: &commands, plan, offset: 0 })
}

/// The state of a reader of results.
struct Reading<'a> {
    outcome: &'a Outcome<'a>,
    run: FlowRun,
}

/// Reads the measurements of the program.
pub(super) fn read(outcome: &Outcome<'_>) -> FlowRun {
    let ended = (outcome.client.ending == Ending::Natural).then_some(outcome.client.ended);
    let run = FlowRun { ended, samples: outcome.plan.samples(), ..FlowRun::default() };
    let mut reading = Reading { outcome, run };
    let understood = match outcome.commands.kind {
        Kind::Iperf3 => iperf3::read(&mut reading),
        Kind::Ping => ping::read(&mut reading),
        Kind::Irtt => irtt::read(&mut reading),
        Kind::Curl => curl::read(&mut reading),
        Kind::Other => None,
    };
    let stopped = outcome.client.ending == Ending::Stopped;
    match understood {
        None if stopped => reading.untold(),
        None if outcome.client.succeeded() => reading.run_time(),
        _ => {}
    }
    reading.judge();
    // What went wrong comes first.
    let told = outcome.commands.notes.iter();
    reading.run.notes.extend(told.map(|text| Note::new(NoteKind::Program, text)));
    reading.run
}

impl Reading<'_> {
    /// The output of the client.
    fn output(&self) -> &str {
        &self.outcome.client.output
    }

    /// Adds what the program told, or what is to be known of it.
    fn note(&mut self, text: String) {
        self.run.notes.push(Note::new(NoteKind::Program, text));
    }

    /// Adds a measurement whose time went by on the path, in these stretches; they are its whole.
    fn sample(&mut self, size: u64, start: Time, spans: &[Span]) {
        let index = self.run.samples.count() as u32;
        self.numbered(index, size, start, spans);
    }

    /// The instant of CLOCK_MONOTONIC at a time since 1970 by CLOCK_REALTIME, in nanoseconds.
    fn monotonic(&self, realtime: u64) -> Time {
        Time::from_nanos(realtime.saturating_add_signed(self.outcome.offset.saturating_neg()))
    }

    fn numbered(&mut self, index: u32, size: u64, start: Time, spans: &[Span]) {
        let (flow, place) = (self.outcome.plan.flow, self.outcome.plan.places.path);
        let steps = spans.iter().map(|&span| Step { place, cause: Cause::Host, span }).collect();
        let spent = spans.iter().copied().sum();
        let end = start + spent;
        // What goes on beyond the last instant that can be told would not sum to its steps.
        if end.since(start) != spent {
            return self.leave_out();
        }
        self.run.samples.push(Sample { flow, index, size, intended: start, start, end, steps });
    }

    /// Says, once, that a measurement has a time that cannot be.
    fn leave_out(&mut self) {
        let text = "a measurement beyond the last instant that can be told was left out";
        let left_out = Note::new(NoteKind::LeftOut, text);
        if !self.run.notes.contains(&left_out) {
            self.run.notes.push(left_out);
        }
    }

    /// The one thing that is known of a program whose results are not: how long it ran. Of a traffic whose
    /// figure is a rate that is no measurement, for what was carried in that time is not known.
    fn run_time(&mut self) {
        let Finished { started, ended, .. } = self.outcome.client;
        let ran = ended.since(started);
        if !is_rate(&self.outcome.plan.workload) {
            self.sample(0, started, &[ran]);
        }
        self.note(format!(
            "of this program only its run time is known, {}: iperf3, ping, irtt and curl are read",
            ran.rounded()
        ));
    }

    /// A program that was stopped before it said anything: how long it would have run is not known either.
    fn untold(&mut self) {
        let text =
            "stopped before it told what it measured: let it end before the run does (stop_after)";
        self.run.notes.push(Note::new(NoteKind::Unfinished, text));
    }

    /// Says what went wrong.
    fn judge(&mut self) {
        let Outcome { client, commands, .. } = self.outcome;
        if !client.succeeded() {
            let text = format!("'{}': {}", commands.client, client.complaint());
            self.run.notes.push(Note::failed(&text));
        } else if client.ending == Ending::Stopped {
            self.note(format!("'{}' was still running and was stopped", commands.client));
        }
    }
}

/// Whether the figure of such a traffic is bytes over time.
fn is_rate(workload: &Workload) -> bool {
    matches!(workload, Workload::Bulk { .. } | Workload::Push { .. } | Workload::Greedy { .. })
}

/// A number of seconds as a span. Programs print it with as many digits as they have.
fn seconds(value: f64) -> Span {
    Span::from_nanos((value * 1e9).round().max(0.0) as u64)
}

#[cfg(test)]
mod testing {
    use super::*;
    use trunkline_core::Size;

    /// Reads recorded outputs of a client and perhaps a server that ran from 10 s to 12 s.
    pub fn read_recorded(command: &str, output: &str, server: Option<&str>) -> FlowRun {
        read_recorded_of(&crate::plan::tests::plan(), command, output, server)
    }

    /// A flow whose figure is a rate.
    pub fn rate_plan() -> FlowPlan {
        let workload =
            Workload::Push { bytes: Size::from_bytes(9), write: 9, repeat: 1, store: Span::ZERO };
        FlowPlan { workload, ..crate::plan::tests::plan() }
    }

    /// The same as the results of the flow of a plan.
    pub fn read_recorded_of(
        plan: &FlowPlan,
        command: &str,
        output: &str,
        server: Option<&str>,
    ) -> FlowRun {
        let run = read_printed(plan, &printed(command, output, server));
        for sample in &run.samples {
            let sum: Span = sample.steps.iter().map(|step| step.span).sum();
            assert_eq!(sum, sample.delay());
        }
        run
    }

    /// The same of programs that were stopped.
    pub fn read_stopped_of(
        plan: &FlowPlan,
        command: &str,
        output: &str,
        server: Option<&str>,
    ) -> FlowRun {
        read_ended(plan, &printed(command, output, server), Ending::Stopped)
    }

    fn printed<'a>(command: &'a str, output: &'a str, server: Option<&'a str>) -> Printed<'a> {
        let ran = [10_000_000_000, 12_000_000_000].map(Time::from_nanos);
        Printed { command, output, server, ran }
    }

    /// How long it would have run is not known either, whatever it is.
    #[test]
    fn of_a_program_that_was_stopped_and_said_nothing_nothing_is_known() {
        for command in ["make coffee", "ping x", "irtt client x", "curl x"] {
            let run = read_stopped_of(&crate::plan::tests::plan(), command, "", None);
            assert_eq!(
                (run.samples.len(), run.notes[0].kind),
                (0, NoteKind::Unfinished),
                "{command}"
            );
        }
    }

    #[test]
    fn of_an_unknown_program_the_run_time_is_known() {
        let run = read_recorded("make coffee", "coffee\n", None);
        assert_eq!((run.samples.len(), run.samples[0].delay()), (1, Span::from_secs(2)));
        assert!(run.notes[0].text.contains("run time"));
    }

    /// The measurements read from `false`, or from `true`, in a traffic with this workload.
    fn known(status: i32, workload: Workload) -> FlowRun {
        let client = Finished {
            started: Time::from_nanos(10),
            ended: Time::from_nanos(30),
            status: Some(std::os::unix::process::ExitStatusExt::from_raw(status << 8)),
            ending: Ending::Natural,
            output: String::new(),
            errors: String::new(),
        };
        let commands = Commands {
            kind: Kind::Other,
            client: "false".into(),
            server: None,
            port: 1,
            names_port: false,
            notes: Vec::new(),
        };
        let plan = FlowPlan { workload, ..crate::plan::tests::plan() };
        read(&Outcome { client, server: None, commands: &commands, plan: &plan, offset: 0 })
    }

    #[test]
    fn neither_a_failure_nor_a_time_without_bytes_is_a_measurement() {
        let delay = crate::plan::tests::plan().workload;
        let rate = rate_plan().workload;
        assert_eq!(known(0, delay.clone()).samples.len(), 1);
        let failed = known(1, delay);
        assert_eq!((failed.samples.len(), failed.notes.len()), (0, 1));
        assert!(
            failed.notes[0].to_string().starts_with("error: 'false': exit status: 1"),
            "{failed:?}"
        );
        let unknown = known(0, rate);
        assert!(
            unknown.samples.is_empty() && unknown.notes[0].text.contains("run time"),
            "{unknown:?}"
        );
    }

    #[test]
    fn an_unreadable_result_is_as_good_as_none() {
        for command in ["iperf3 -c x", "ping x", "irtt client x", "curl x"] {
            for output in ["", "{", "{\"end\": 3}", "nonsense\n", "[]"] {
                let run = read_recorded(command, output, Some(output));
                assert_eq!(run.samples.len(), 1, "{command} {output}");
            }
        }
    }
}

//! One end of a flow, whatever its workload.

use crate::bulk::{Confirm, Source};
use crate::echo::{Answerer, Asker};
use crate::greedy::{Meter, Spender};
use crate::paced::{Listener, Pacer};
use crate::sink::Sink;
use crate::transfer::Streamer;
use crate::{Action, Draft, Outcome, Stamp};
use trunkline_core::Time;
use trunkline_scenario::{Reply, Workload};

/// One end of a flow: the process that sends, or its peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    process: Process,
    ended: bool,
}

/// The processes there are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Process {
    Asker(Box<Asker>),
    Answerer(Answerer),
    Source(Source),
    Streamer(Box<Streamer>),
    Sink(Sink),
    Pacer(Pacer),
    Listener(Listener),
    Spender(Spender),
    Meter(Box<Meter>),
}

impl Application {
    /// The process at a traffic's `from`: it starts each measurement, and except with `paced` and `greedy`
    /// makes the samples. A transfer's confirmation is asked for by an `empty` message, or the transfer itself is answered.
    pub fn sender(workload: &Workload, empty: bool) -> Application {
        let asked = if empty { Confirm::Empty } else { Confirm::Last };
        Application::new(match workload {
            Workload::Interactive { sizes, repeat, every, .. } => {
                Process::Asker(Box::new(Asker::counted(sizes, *repeat, *every)))
            }
            Workload::TimedEcho { sizes, duration } => {
                Process::Asker(Box::new(Asker::timed(sizes, *duration)))
            }
            Workload::Bulk { bytes, repeat, write, confirm } => {
                let confirm = if *confirm { asked } else { Confirm::Not };
                Process::Source(Source::new(bytes.bytes(), *repeat, *write, confirm))
            }
            Workload::Push { bytes, repeat, write, .. } => {
                Process::Source(Source::new(bytes.bytes(), *repeat, *write, asked))
            }
            Workload::TimedTransfer { sizes, duration } => {
                Process::Streamer(Box::new(Streamer::new(sizes, *duration)))
            }
            Workload::Greedy { duration, write, .. } => {
                Process::Spender(Spender::new(*write, *duration))
            }
            Workload::Paced { size, rate, duration } => {
                Process::Pacer(Pacer::new(*size, *rate, *duration))
            }
        })
    }

    /// The process at a traffic's `to`. It never ends by itself.
    pub fn receiver(workload: &Workload, empty: bool) -> Application {
        let sink = |sink: Sink, confirm: bool| {
            Process::Sink(if confirm && !empty { sink.answering() } else { sink })
        };
        Application::new(match workload {
            Workload::Interactive { reply, .. } => Process::Answerer(Answerer::new(*reply)),
            Workload::TimedEcho { .. } => Process::Answerer(Answerer::new(Reply::Echo)),
            Workload::Bulk { confirm, .. } => sink(Sink::discarding(), *confirm),
            Workload::TimedTransfer { .. } => sink(Sink::discarding(), false),
            Workload::Push { write, store, .. } => sink(Sink::storing(*write, *store), true),
            Workload::Greedy { duration, warm_up, interval, .. } => {
                Process::Meter(Box::new(Meter::new(*duration, *warm_up, *interval)))
            }
            Workload::Paced { size, .. } => Process::Listener(Listener::new(*size)),
        })
    }

    /// Both: the sender and its receiver.
    pub fn pair(workload: &Workload, empty: bool) -> (Application, Application) {
        (Application::sender(workload, empty), Application::receiver(workload, empty))
    }

    fn new(process: Process) -> Application {
        Application { process, ended: false }
    }

    /// Takes the outcome of the last action, which came about at `now`, and says what to do next. Once it
    /// has answered [`Action::Done`] it answers nothing else.
    pub fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        let action = match &mut self.process {
            Process::Asker(process) => process.step(now, outcome),
            Process::Answerer(process) => process.step(outcome),
            Process::Source(process) => process.step(now, outcome),
            Process::Streamer(process) => process.step(now, outcome),
            Process::Sink(process) => process.step(outcome),
            Process::Pacer(process) => process.step(now, outcome),
            Process::Listener(process) => process.step(now, outcome),
            Process::Spender(process) => process.step(now, outcome),
            Process::Meter(process) => process.step(now, outcome),
        };
        if self.ended || action == Action::Done {
            self.ended = true;
            return Action::Done;
        }
        action
    }

    /// A measurement that the last step has completed, oldest first, until there is none. To be asked after
    /// each step, also the one that answered [`Action::Done`].
    pub fn take_sample(&mut self) -> Option<Draft> {
        match &mut self.process {
            Process::Asker(process) => process.sample.take(),
            Process::Source(process) => process.sample.take(),
            Process::Streamer(process) => process.sample.take(),
            Process::Listener(process) => process.sample.take(),
            Process::Meter(process) => process.samples.pop_front(),
            Process::Answerer(_) | Process::Sink(_) | Process::Pacer(_) | Process::Spender(_) => {
                None
            }
        }
    }

    /// So many user bytes have come to the receiver's host at an even rate between two instants, which may be one,
    /// whether or not the process can read them yet. A `greedy` receiver counts these.
    pub fn arrived(&mut self, from: Time, to: Time, bytes: u64) {
        if let Process::Meter(process) = &mut self.process {
            process.arrived(from, to, bytes);
        }
    }

    /// Whether it leaves behind what it has written when it ends, as what sends for a stated time does.
    pub fn leaves_the_rest(&self) -> bool {
        self.until().is_some()
    }

    /// The time at which it ends, in the middle of a write too; `None` if nothing but its work ends it.
    pub fn until(&self) -> Option<Time> {
        match &self.process {
            Process::Spender(process) => Some(process.until()),
            _ => None,
        }
    }

    /// It has become `now` with nothing done: what that alone completes can be taken as samples. To be called
    /// before the process is stopped.
    pub fn flush(&mut self, now: Time) {
        if let Process::Meter(process) = &mut self.process {
            process.flush(now);
        }
    }

    /// Ends the process with its next step: what that step completes is still measured, what is then
    /// unfinished is not.
    pub fn stop(&mut self) {
        self.ended = true;
    }

    /// Whether it has ended, or been told to.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The one of the workload's message sizes that is being measured, from 0, each of which has a connection
    /// of its own; always 0 if there is only one size.
    pub fn connection(&self) -> usize {
        match &self.process {
            Process::Asker(process) => process.connection(),
            Process::Streamer(process) => process.connection(),
            _ => 0,
        }
    }

    /// With `paced`: the stamp of the datagram that the last step asked to write. The host carries it
    /// with the datagram.
    pub fn stamp(&self) -> Option<Stamp> {
        match &self.process {
            Process::Pacer(process) => process.stamp(),
            _ => None,
        }
    }

    /// With `paced`: the stamp of the datagram of which the next [`Outcome::Read`] tells. The sample's
    /// delay is one way, from the stamp's `start` to that read; without a stamp there is no sample.
    pub fn stamped(&mut self, stamp: Stamp) {
        if let Process::Listener(process) = &mut self.process {
            process.stamped(stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Pair;
    use trunkline_core::{Size, Span};

    fn bulk(confirm: bool) -> Workload {
        Workload::Bulk { bytes: Size::from_bytes(5000), repeat: 3, write: 1000, confirm }
    }

    #[test]
    fn a_stopped_process_ends_with_its_next_step_and_stays_ended() {
        let mut sender = Application::sender(&bulk(false), false);
        assert_eq!(
            sender.step(Time::ZERO, Outcome::Start),
            Action::Write { bytes: 1000, end: false, fresh: true }
        );
        sender.stop();
        assert_eq!(sender.step(Time::ZERO, Outcome::Written), Action::Done);
        assert_eq!(sender.step(Time::ZERO, Outcome::Written), Action::Done);
        assert_eq!((sender.take_sample(), sender.ended()), (None, true));
    }

    #[test]
    fn what_the_last_step_completes_is_measured() {
        let workload = Workload::Interactive {
            sizes: vec![1],
            repeat: 9,
            reply: Reply::Echo,
            every: Span::ZERO,
        };
        let mut asker = Application::sender(&workload, false);
        asker.step(Time::ZERO, Outcome::Start);
        asker.step(Time::ZERO, Outcome::Written);
        asker.stop();
        let read = Outcome::Read { bytes: 1, end: true };
        assert_eq!(asker.step(Time::from_nanos(7), read), Action::Done);
        assert_eq!(asker.take_sample().map(|draft| draft.end), Some(Time::from_nanos(7)));
        assert_eq!(asker.take_sample(), None);
    }

    #[test]
    fn every_workload_runs_to_its_end() {
        let (sizes, duration) = (vec![1, 700], Span::from_millis(20));
        let size = Size::from_bytes(3000);
        let all = [
            Workload::Interactive {
                sizes: sizes.clone(),
                repeat: 3,
                reply: Reply::Bytes(4),
                every: Span::from_millis(1),
            },
            bulk(true),
            bulk(false),
            Workload::TimedEcho { sizes: sizes.clone(), duration },
            Workload::TimedTransfer { sizes, duration },
            Workload::Push { bytes: size, repeat: 2, write: 1024, store: Span::from_millis(1) },
            Workload::Paced {
                size: 100,
                rate: trunkline_core::Rate::from_bits_per_second(800_000),
                duration,
            },
        ];
        for workload in all {
            let samples = Pair::new(&workload).run();
            assert!(samples.len() > 1, "{workload:?}");
            for draft in samples {
                assert!(draft.intended <= draft.start && draft.start < draft.end, "{workload:?}");
            }
        }
    }
}

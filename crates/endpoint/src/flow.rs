//! A flow from its preparation to its result.

use crate::context::{Context, Side};
use crate::end::End;
use crate::plan::FlowPlan;
use crate::program::ProgramFlow;
use crate::protocol::ProtocolEnd;
use crate::run::FlowRun;
use crate::shared::{Shared, Way};
use crate::threads::{HostThreads, Waker};
use crate::{EndpointError, clock};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_engine::{Note, NoteKind};
use trunkline_workload::Application;

/// The time that the threads have to report when a flow is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// A flow whose sockets are open, or whose server listens. It waits for [`start`](Flow::start).
#[derive(Debug)]
pub struct Flow(Kind);

#[derive(Debug)]
enum Kind {
    Ends(Ends),
    Program(ProgramFlow),
}

impl Flow {
    /// Opens and connects the flow's sockets and gives its ends to their hosts' threads. A TCP connection
    /// is made here, so that its path has to carry packets by then. If an outside program makes the flow,
    /// its server is started and awaited.
    ///
    /// # Errors
    /// If the transport cannot be had, the system refuses a socket, TCP's other end does not answer, or
    /// the program's server ends at once.
    pub fn prepare(threads: &HostThreads, plan: &FlowPlan) -> Result<Flow, EndpointError> {
        let flow = Flow::prepare_all(threads, std::slice::from_ref(plan))?.pop();
        flow.ok_or_else(|| EndpointError::Transport("a plan has made no flow".into()))
    }

    /// The same for many flows, in the order of the plans: what has to wait for a long path waits once.
    ///
    /// # Errors
    /// As [`Flow::prepare`].
    pub fn prepare_all(
        threads: &HostThreads,
        plans: &[FlowPlan],
    ) -> Result<Vec<Flow>, EndpointError> {
        let own: Vec<&FlowPlan> = plans.iter().filter(|plan| plan.program.is_none()).collect();
        let mut protocols = ProtocolEnd::pairs(&own)?.into_iter();
        let mut flows = Vec::new();
        for plan in plans {
            match &plan.program {
                Some(program) => {
                    flows.push(Flow(Kind::Program(ProgramFlow::prepare(plan, program)?)));
                }
                None => {
                    let ends = protocols.next().map(|pair| Ends::prepare(threads, plan, pair));
                    flows.extend(ends.transpose()?.map(|ends| Flow(Kind::Ends(ends))));
                }
            }
        }
        Ok(flows)
    }

    /// Lets the flow start at `at`, an instant of CLOCK_MONOTONIC; at once if that has passed.
    pub fn start(&self, at: Time) {
        match &self.0 {
            Kind::Ends(ends) => ends.start(at),
            Kind::Program(program) => program.start(at),
        }
    }

    /// User bytes that the destination's application has read so far. Of an outside program that is known
    /// when it has ended.
    pub fn delivered(&self) -> u64 {
        match &self.0 {
            Kind::Ends(ends) => ends.shared.delivered.load(Ordering::Acquire),
            Kind::Program(program) => program.delivered(),
        }
    }

    /// Whether the sender has ended, and what it sent has been read, or been waited for as long as the plan says.
    pub fn ended(&self) -> bool {
        match &self.0 {
            Kind::Ends(ends) => ends.shared.ended(clock::now(), ends.linger),
            Kind::Program(program) => program.ended(),
        }
    }

    /// Ends both applications, or the programs, whatever they are doing.
    pub fn stop(&self) {
        match &self.0 {
            Kind::Ends(ends) => ends.stop(),
            Kind::Program(program) => program.stop(),
        }
    }

    /// Stops the flow, if it has not ended, and gives what it has measured.
    pub fn join(self) -> FlowRun {
        match self.0 {
            Kind::Ends(ends) => ends.join(),
            Kind::Program(program) => program.join(),
        }
    }
}

/// A flow of our own applications.
#[derive(Debug)]
struct Ends {
    shared: Arc<Shared>,
    wakers: [Waker; 2],
    linger: Span,
}

impl Ends {
    fn prepare(
        threads: &HostThreads,
        plan: &FlowPlan,
        [near, far]: [ProtocolEnd; 2],
    ) -> Result<Ends, EndpointError> {
        let (sender, receiver) =
            Application::pair(&plan.workload, plan.source.transport.asks_by_empty_message());
        let shared = Arc::new(Shared::new(plan.linger));
        let places = Arc::new(plan.places.clone());
        let (ours, theirs) = (&plan.source, &plan.destination);
        let context = |side, own, peer| {
            let (shared, places) = (Arc::clone(&shared), Arc::clone(&places));
            Context { side, shared, places, own, peer }
        };
        let source = context(Side::Source, ours.places, theirs.places);
        let destination = context(Side::Destination, theirs.places, ours.places);
        // The peer first, so that it reads before anything comes.
        let far = End::new(plan, destination, receiver, far);
        let far = threads.drive(&theirs.namespace, far)?;
        let near = End::new(plan, source, sender, near);
        let near = threads.drive(&ours.namespace, near)?;
        Ok(Ends { shared, wakers: [far, near], linger: plan.linger })
    }

    fn start(&self, at: Time) {
        self.shared.set_start(at.max(clock::now()));
        self.wakers.iter().for_each(Waker::wake);
    }

    fn stop(&self) {
        self.shared.stop();
        self.wakers.iter().for_each(Waker::wake);
    }

    fn join(&self) -> FlowRun {
        self.stop();
        match self.shared.reports(PATIENCE) {
            Some(reports) => {
                let mut run = FlowRun::of(reports);
                let unrecorded = self.shared.ways.iter().map(Way::unrecorded).sum();
                run.notes.extend(unrecorded_note(unrecorded));
                run
            }
            None => FlowRun {
                notes: vec![Note::failed("a flow's host has not reported: its thread has ended")],
                ..FlowRun::default()
            },
        }
    }
}

/// That some packets came too late for their records.
fn unrecorded_note(packets: u64) -> Option<Note> {
    (packets > 0).then(|| {
        let text = format!(
            "{packets} packets came after their records had been given up: they count as delivered, their delays are in no figure"
        );
        Note::new(NoteKind::LeftOut, text)
    })
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.stop();
    }
}

//! A flow from its preparation to its result.

use crate::context::{Context, Side};
use crate::crew::{Crew, Waker};
use crate::end::End;
use crate::plan::FlowPlan;
use crate::run::FlowRun;
use crate::shared::Shared;
use crate::voice::Voice;
use crate::{EndpointError, clock};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_workload::Application;

/// How long the threads have to report when a flow is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// A flow whose sockets are open. It waits for [`start`](Flow::start).
#[derive(Debug)]
pub struct Flow {
    shared: Arc<Shared>,
    wakers: [Waker; 2],
    linger: Span,
}

impl Flow {
    /// Opens and connects the flow's sockets and gives its ends to their hosts' threads. A TCP connection
    /// is made here, so that its path has to carry packets by then.
    ///
    /// # Errors
    /// Where the transport cannot be had, the system refuses a socket, or TCP's other end does not answer.
    pub fn prepare(crew: &Crew, plan: &FlowPlan) -> Result<Flow, EndpointError> {
        let [near, far] = Voice::pair(plan)?;
        let (sender, receiver) = Application::pair(&plan.workload);
        let shared = Arc::new(Shared::new());
        let places = Arc::new(plan.places.clone());
        let (ours, theirs) = (&plan.source, &plan.destination);
        let context = |side, own, peer| {
            let (shared, places) = (Arc::clone(&shared), Arc::clone(&places));
            Context { side, shared, places, own, peer }
        };
        let source = context(Side::Source, ours.places, theirs.places);
        let destination = context(Side::Destination, theirs.places, ours.places);
        // The peer first, so that it reads before anything comes.
        let far = End::new(plan.flow, destination, receiver, far);
        let far = crew.employ(&theirs.namespace, far)?;
        let near = End::new(plan.flow, source, sender, near);
        let near = crew.employ(&ours.namespace, near)?;
        Ok(Flow { shared, wakers: [far, near], linger: plan.linger })
    }

    /// Lets both ends start at `at`, an instant of CLOCK_MONOTONIC; at once where that has passed.
    pub fn start(&self, at: Time) {
        self.shared.set_start(at.max(clock::now()));
        self.wakers.iter().for_each(Waker::wake);
    }

    /// User bytes that the destination's application has read so far.
    pub fn delivered(&self) -> u64 {
        self.shared.delivered.load(Ordering::Acquire)
    }

    /// Has the sender ended, and has what it sent been read, or been waited for as long as the plan says?
    pub fn ended(&self) -> bool {
        self.shared.ended(clock::now(), self.linger)
    }

    /// Ends both applications, whatever they are doing.
    pub fn stop(&self) {
        self.shared.stop();
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Stops the flow, if it has not been stopped, and gives what it has measured.
    pub fn join(self) -> FlowRun {
        self.stop();
        match self.shared.reports(PATIENCE) {
            Some(reports) => FlowRun::of(reports),
            None => FlowRun {
                notes: vec!["error: a flow's host has not reported: its thread has ended".into()],
                ..FlowRun::default()
            },
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop();
    }
}

//! Programs as scripts: a phase of operations at a time.

use crate::{Op, Outcome, Program, Work};
use std::collections::VecDeque;
use std::fmt;
use trunkline_transport::cstar::{Delivery, EventId, NodeId, Source};

/// A program that knows its operations a phase ahead.
pub(crate) trait Script: fmt::Debug + Send {
    /// Adds the operations of the next phase; none if there is none. What was received before has been told.
    fn phase(&mut self, ops: &mut VecDeque<Op>);

    /// Takes what was received.
    ///
    /// # Errors
    /// What is wrong with it.
    fn received(&mut self, delivery: &Delivery) -> Result<(), String>;

    /// Whether what was computed is right.
    ///
    /// # Errors
    /// What is wrong.
    fn result(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A script at work.
#[derive(Debug)]
pub(crate) struct Scripted<S> {
    script: S,
    ops: VecDeque<Op>,
    wrong: Option<String>,
}

impl<S: Script + 'static> Scripted<S> {
    pub fn boxed(script: S) -> Box<dyn Program> {
        Box::new(Scripted { script, ops: VecDeque::new(), wrong: None })
    }
}

impl<S: Script> Program for Scripted<S> {
    fn next(&mut self, outcome: Outcome) -> Op {
        if let Outcome::Received(delivery) = outcome
            && let Err(wrong) = self.script.received(&delivery)
        {
            self.wrong.get_or_insert(wrong);
        }
        if self.ops.is_empty() {
            self.script.phase(&mut self.ops);
        }
        self.ops.pop_front().unwrap_or(Op::Done)
    }

    fn verdict(&self) -> Result<(), String> {
        match &self.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => self.script.result(),
        }
    }
}

/// The operation that reads so many bytes, if `processing`.
pub(crate) fn read(processing: bool, bytes: u32) -> Option<Op> {
    let read = u64::from(bytes.div_ceil(4));
    processing.then_some(Op::Work(Work { read, ..Work::default() }))
}

/// The operation that writes so many bytes, if `processing`.
pub(crate) fn write(processing: bool, bytes: u32) -> Option<Op> {
    let written = u64::from(bytes.div_ceil(4));
    processing.then_some(Op::Work(Work { written, ..Work::default() }))
}

/// The operations that receive a message of so many fragments.
pub(crate) fn receive(from: NodeId, event: EventId, fragments: u32) -> impl Iterator<Item = Op> {
    (0..fragments).map(move |_| Op::Receive(Source::Node(from), event))
}

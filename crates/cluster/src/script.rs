//! Programs as scripts: a phase of operations at a time.

use crate::{Op, Outcome, Program, Work};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use trunkline_transport::cstar::{
    Delivery, Destination, EventId, Flags, Fragment, NodeId, Source, Status,
};

/// A program that knows its operations a phase ahead.
pub(crate) trait Script: fmt::Debug + Send {
    /// Adds the operations of the next phase; none if there is none. What was received before has been told.
    fn phase(&mut self, ops: &mut VecDeque<Op>);

    /// Takes what was received.
    ///
    /// # Errors
    /// What is wrong with it.
    fn received(&mut self, delivery: &Delivery) -> Result<(), String>;

    /// The first event behind all of its own, the same on every node; asked for at its end.
    fn end(&self) -> EventId;

    /// Whether what was computed is right.
    ///
    /// # Errors
    /// What is wrong.
    fn result(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A script at work. Behind its end it adds two events of empty messages: a word of node 0, for which all others wait, since
/// what is measured are node 0's laps and nothing else may go on while the last of them lasts; and a crowd. Whoever has
/// received the crowd's messages knows that all other nodes have come to their end, and a traditional layer's last fragments
/// are acknowledged by them. Of more than [`MOST_CLOSING`] nodes it adds none: the crowd would be more messages than the test.
#[derive(Debug)]
pub(crate) struct Scripted<S> {
    script: S,
    me: NodeId,
    nodes: u16,
    ops: VecDeque<Op>,
    state: State,
    ledger: Ledger,
    wrong: Option<String>,
}

/// Most nodes that end with a crowd (a choice).
const MOST_CLOSING: u16 = 64;

/// The events at the end: node 0's word, and the crowd.
pub(crate) const CLOSING_EVENTS: u32 = 2;

/// The node that takes the laps.
const MEASURES: NodeId = NodeId(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The script goes on.
    Runs,
    /// It has ended; this is the first closing event.
    Closes(EventId),
    Ended,
}

/// The program of node `me` by a script, in a cluster of so many nodes.
pub(crate) fn scripted(script: impl Script + 'static, me: NodeId, nodes: u16) -> Box<dyn Program> {
    Box::new(Scripted::new(script, me, nodes))
}

impl<S: Script> Scripted<S> {
    pub fn new(script: S, me: NodeId, nodes: u16) -> Scripted<S> {
        let (ops, ledger) = (VecDeque::new(), Ledger::default());
        Scripted { script, me, nodes, ops, state: State::Runs, ledger, wrong: None }
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.ledger.note(delivery)?;
        match self.state {
            State::Closes(first) if first <= delivery.event => match delivery.data.len() {
                0 => Ok(()),
                bytes => Err(format!("the closing message of {} has {bytes} bytes", delivery.from)),
            },
            _ => self.script.received(delivery),
        }
    }

    /// Adds the next operations; none at the end.
    fn refill(&mut self) {
        if self.state == State::Runs {
            self.script.phase(&mut self.ops);
            if self.ops.is_empty() {
                self.close();
            }
        } else {
            self.state = State::Ended;
        }
    }

    fn close(&mut self) {
        let word = self.script.end();
        self.state = State::Closes(word);
        if !(2..=MOST_CLOSING).contains(&self.nodes) {
            return;
        }
        let empty = |event, crowd| {
            let flags = Flags { last: true, crowd, large: false };
            let (to, data) = (Destination::All, Bytes::new());
            Op::Send(Fragment { to, event, flags, following: 0, data })
        };
        self.ops.push_back(match self.me {
            MEASURES => empty(word, false),
            _ => Op::Receive(Source::Node(MEASURES), word),
        });
        let crowd = EventId(word.0 + 1);
        self.ops.push_back(empty(crowd, true));
        self.ops.extend((1..self.nodes).map(|_| Op::Receive(Source::Any, crowd)));
    }
}

impl<S: Script> Program for Scripted<S> {
    fn next(&mut self, outcome: Outcome) -> Op {
        if let Outcome::Received(delivery) = outcome
            && let Err(wrong) = self.received(&delivery)
        {
            self.wrong.get_or_insert(wrong);
        }
        while self.ops.is_empty() && self.state != State::Ended {
            self.refill();
        }
        self.ops.pop_front().unwrap_or(Op::Done)
    }

    fn verdict(&self) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        if self.state != State::Ended {
            return Err("the program has not come to its end".into());
        }
        self.ledger.is_closed()?;
        self.script.result()
    }
}

/// The fragments received of messages that are not whole.
#[derive(Debug, Default)]
struct Ledger(BTreeMap<(EventId, NodeId), BTreeSet<u32>>);

impl Ledger {
    /// Takes a fragment. It is an error if it comes twice, or if its message ends with holes.
    fn note(&mut self, delivery: &Delivery) -> Result<(), String> {
        let &Delivery { from, event, fragment, status, .. } = delivery;
        // Most messages are one fragment.
        if self.0.is_empty() && fragment == 0 && status != Status::More {
            return Ok(());
        }
        let known = self.0.entry((event, from)).or_default();
        if !known.insert(fragment) {
            return Err(format!("fragment {fragment} of {from} for {event} was delivered twice"));
        }
        if status == Status::More {
            return Ok(());
        }
        let (count, last) = (known.len() as u64, known.last().map_or(0, |&it| u64::from(it)));
        self.0.remove(&(event, from));
        if count != last + 1 {
            return Err(format!(
                "{} fragments of {from} for {event} are missing",
                last + 1 - count
            ));
        }
        Ok(())
    }

    fn is_closed(&self) -> Result<(), String> {
        match self.0.first_key_value() {
            None => Ok(()),
            Some(((event, from), _)) => {
                Err(format!("the message of {from} for {event} was not received whole"))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(fragment: u32, status: Status) -> Delivery {
        let (from, event, data) = (NodeId(1), EventId(2), Bytes::new());
        Delivery { from, event, fragment, status, data, buffer: None }
    }

    #[test]
    fn a_fragment_twice_a_hole_and_a_rest_are_found() {
        let mut good = Ledger::default();
        assert_eq!(good.note(&delivery(1, Status::More)), Ok(()));
        assert!(good.is_closed().unwrap_err().contains("not received whole"));
        assert!(good.note(&delivery(1, Status::More)).unwrap_err().contains("twice"));
        assert_eq!(good.note(&delivery(0, Status::NodeDone)), Ok(()));
        assert_eq!(good.is_closed(), Ok(()));
        let hole = Ledger::default().note(&delivery(3, Status::EventDone)).unwrap_err();
        assert_eq!(hole, "3 fragments of node 1 for event 2 are missing");
    }

    /// Finds each message wrong, and says which it was.
    #[derive(Debug)]
    struct Picky(u32);

    impl Script for Picky {
        fn phase(&mut self, _: &mut VecDeque<Op>) {}

        fn received(&mut self, _: &Delivery) -> Result<(), String> {
            self.0 += 1;
            Err(format!("message {} is wrong", self.0))
        }

        fn end(&self) -> EventId {
            EventId(9)
        }
    }

    #[test]
    fn the_verdict_is_the_first_error() {
        let mut program = Scripted::new(Picky(0), NodeId(0), 1);
        for _ in 0..2 {
            program.next(Outcome::Received(delivery(0, Status::NodeDone)));
        }
        assert_eq!(program.verdict(), Err("message 1 is wrong".into()));
    }
}

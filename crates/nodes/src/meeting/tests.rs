//! Nodes that meet in virtual time, on a machine whose processors they share, by a way that loses words.

use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use trunkline_core::{Probability, Seed, Stream};

/// A word that waits for a node: from whom, and what it says; nothing if it comes by the group.
type Waiting = (NodeId, Option<(Said, bool)>);

/// A node's process.
struct Process {
    meeting: Meeting,
    waiting: VecDeque<Waiting>,
    by_group: Vec<bool>,
    /// Until when it sleeps if no word comes; it works if it does not sleep.
    sleeps: Option<Time>,
    /// Whether it has met the others.
    over: bool,
}

/// A machine whose processes have their turns one after the other.
struct Machine {
    processes: Vec<Process>,
    /// Until when each processor is busy.
    processors: Vec<Reverse<Time>>,
    /// Those that wait for their turn.
    ready: VecDeque<usize>,
    /// A process that has not been started.
    absent: Option<NodeId>,
    /// Whether nobody hears the group.
    deaf: bool,
    loss: Probability,
    chance: Stream,
    /// Words that were said to one node, and those that found no room.
    said: usize,
    overflown: usize,
}

/// What it takes to say a word and to take one in, and the longest turn (some of those of a usual machine).
const SAYS: Span = Span::from_micros(6);
const TAKES: Span = Span::from_micros(8);
const TURN: Span = Span::from_millis(3);
/// Words for which a socket has room.
const ROOM: usize = 2000;

impl Machine {
    fn new(nodes: u16, processors: usize, has_group: bool) -> Machine {
        let process = |me| Process {
            meeting: Meeting::new(NodeId(me), nodes.into(), has_group),
            waiting: VecDeque::new(),
            by_group: vec![false; nodes.into()],
            sleeps: None,
            over: false,
        };
        Machine {
            processes: (0..nodes).map(process).collect(),
            processors: vec![Reverse(Time::ZERO); processors],
            ready: (0..usize::from(nodes)).collect(),
            absent: None,
            deaf: false,
            loss: Probability::NEVER,
            chance: Seed(1).stream("words"),
            said: 0,
            overflown: 0,
        }
    }

    fn without(mut self, node: u16) -> Machine {
        self.absent = Some(NodeId(node));
        self.ready.retain(|&it| it != usize::from(node));
        self
    }

    fn losing(mut self, loss: f64, seed: u64) -> Machine {
        (self.loss, self.chance) = (Probability::new(loss).unwrap(), Seed(seed).stream("words"));
        self
    }

    /// Lets them work until all have met or this time is over. Whether they have met.
    fn runs(&mut self, end: Time) -> bool {
        while !self.processes.iter().all(|it| it.over) {
            self.processors.sort_unstable();
            let Some(Reverse(now)) = self.processors.pop().filter(|it| it.0 < end) else {
                self.processors = vec![Reverse(end); self.processors.len() + 1];
                return false;
            };
            self.wakes(now);
            let until = match self.ready.pop_front() {
                Some(index) => self.turn(index, now),
                // It has nothing to do until a process wakes up.
                None => now + Span::from_micros(100),
            };
            self.processors.push(Reverse(until));
        }
        true
    }

    /// Those whose sleep is over wait for their turn.
    fn wakes(&mut self, now: Time) {
        for (index, it) in self.processes.iter_mut().enumerate() {
            if it.sleeps.is_some_and(|until| until <= now) {
                it.sleeps = None;
                self.ready.push_back(index);
            }
        }
    }

    /// A process works till it sleeps or its turn is over. Returns when that is.
    fn turn(&mut self, index: usize, begin: Time) -> Time {
        let mut now = begin;
        while now.since(begin) < TURN {
            let it = &mut self.processes[index];
            if it.over {
                let Some((from, said)) = it.waiting.pop_front() else {
                    it.sleeps = Some(at(1_000_000));
                    return now;
                };
                now += TAKES;
                if let Some((Said::Asks, _)) = said {
                    now += self.says(index, from, Said::Begun);
                }
                continue;
            }
            match it.meeting.next(now) {
                Next::Group => now += self.says_to_all(index),
                Next::Say(to, said) => now += self.says(index, to, said),
                Next::Over => it.over = true,
                Next::Hear(until) => match it.waiting.pop_front() {
                    Some((from, said)) => {
                        now += TAKES;
                        it.meeting.takes_in();
                        match said {
                            Some((said, hears)) => it.meeting.hears(now, from, said, hears),
                            None => it.by_group[usize::from(from.0)] = true,
                        }
                    }
                    None if until <= now => it.meeting.hears_nothing(),
                    None => {
                        it.sleeps = Some(until);
                        return now;
                    }
                },
            }
        }
        self.ready.push_back(index);
        now
    }

    fn says(&mut self, from: usize, to: NodeId, said: Said) -> Span {
        let hears = self.processes[from].by_group[usize::from(to.0)];
        self.said += 1;
        self.arrives(from, to, Some((said, hears)));
        SAYS
    }

    fn says_to_all(&mut self, from: usize) -> Span {
        let others = (0..self.processes.len()).filter(|&it| it != from);
        others.for_each(|to| self.arrives(from, NodeId(to as u16), None));
        SAYS
    }

    fn arrives(&mut self, from: usize, to: NodeId, said: Option<(Said, bool)>) {
        if Some(to) == self.absent || said.is_none() && self.deaf || self.chance.happens(self.loss)
        {
            return;
        }
        let it = &mut self.processes[usize::from(to.0)];
        if it.waiting.len() == ROOM {
            self.overflown += 1;
            return;
        }
        it.waiting.push_back((NodeId(from as u16), said));
        if it.sleeps.take().is_some() {
            self.ready.push_back(to.0.into());
        }
    }

    /// Whether every node hears all others by the group, as they take it.
    fn hears_group(&self) -> bool {
        self.processes.iter().all(|it| it.meeting.is_heard_by_group())
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// Every node needs two words of each other one: that it is there, and that it has heard everybody.
const NEEDED: usize = 2;

/// As many nodes as there may be share two processors: what they say grows neither with the time that it takes, nor fills
/// their sockets.
#[test]
fn many_nodes_meet_on_few_processors() {
    for (nodes, has_group) in [(2, false), (20, true), (250, false), (250, true)] {
        let mut machine = Machine::new(nodes, 2, has_group);
        assert!(machine.runs(at(10)), "{nodes} nodes have not met");
        let pairs = usize::from(nodes) * usize::from(nodes - 1);
        assert!(machine.said <= 2 * NEEDED * pairs, "{nodes}: {} words", machine.said);
        assert_eq!(machine.overflown, 0, "{nodes}");
        assert!(!has_group || machine.hears_group(), "{nodes} do not all hear the group");
    }
}

/// While one is not there the others need nothing of each other: each asks only for the one, and more and more seldom.
#[test]
fn nodes_that_wait_for_one_ask_only_for_it() {
    let mut machine = Machine::new(100, 2, true).without(7);
    assert!(!machine.runs(at(2)));
    let said = machine.said;
    assert!(!machine.runs(at(12)));
    assert!(machine.said - said <= 99 * 11, "{} words in ten seconds", machine.said - said);
    // It comes.
    machine.absent = None;
    machine.ready.push_back(7);
    assert!(machine.runs(at(14)));
}

/// Who has missed another's last word asks for it, and is answered although the other has begun.
#[test]
fn a_lost_last_word_is_said_again() {
    for lost in 0..12 {
        let mut machine = Machine::new(2, 1, false).losing(0.5, lost);
        assert!(machine.runs(at(30)), "{lost}");
    }
}

/// Where nobody hears the group, the nodes meet all the same, and know it.
#[test]
fn a_group_that_nobody_hears_is_none() {
    let mut machine = Machine::new(3, 1, true);
    machine.deaf = true;
    assert!(machine.runs(at(2)));
    assert!(!machine.hears_group());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever share of words is lost, all meet.
    #[test]
    fn all_meet_whatever_is_lost(
        nodes in 2..8u16,
        processors in 1..3usize,
        has_group: bool,
        loss in 0.0..0.6,
        seed: u64,
    ) {
        let mut machine = Machine::new(nodes, processors, has_group).losing(loss, seed);
        prop_assert!(machine.runs(at(300)));
    }
}

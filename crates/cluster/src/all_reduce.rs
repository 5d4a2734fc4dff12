//! The values of all nodes are added up, and each node gets the sums.

use crate::test::{Description, ROUNDS};
use crate::{Message, Plan, Program, Rounds, Work, in_rounds};
use bytes::Bytes;
use std::ops::Range;
use trunkline_transport::cstar::NodeId;
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Each node has as many values; all get the sums over all nodes. Round a ring the values go in P parts: each part gathers
/// the values of all nodes on its way (*reduce-scatter*), and its sums go round once more (*all-gather*). In a binomial tree
/// all values go up to node 0, and the sums down again. A lap of node 0 is a round, its bytes those of one node's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllReduce {
    /// Values of 8 bytes.
    pub values: u32,
    /// Up and down a tree, not round a ring.
    pub tree: bool,
    /// Rounds.
    pub rounds: u32,
}

impl Description for AllReduce {
    const NAME: &'static str = "all-reduce";
    const HELP: &'static str = "The values of all nodes are added up, and each gets the sums; the figure is the time of a round.";
    const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            name: "values",
            takes: Takes::Count(1, 1 << 22),
            default: Some("1000"),
            help: "Values of 8 bytes on each node",
        },
        ProtocolKey {
            name: "tree",
            takes: Takes::Flag,
            default: Some("false"),
            help: "Whether values go up and down a binomial tree instead of round a ring in parts",
        },
        ROUNDS,
    ];

    fn read(values: &Values) -> AllReduce {
        AllReduce {
            values: values.number("values") as u32,
            tree: values.flag("tree"),
            rounds: values.number("rounds") as u32,
        }
    }

    fn events(&self, nodes: u16) -> u64 {
        u64::from(self.rounds) * u64::from(self.steps(nodes))
    }

    fn laps(&self) -> u32 {
        self.rounds
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        in_rounds(Reduction::new(*self, me, nodes), me, nodes, frame)
    }
}

impl AllReduce {
    /// The steps of a round, each with an event.
    pub(crate) fn steps(&self, nodes: u16) -> u32 {
        if self.tree { 2 * levels(nodes) } else { 2 * (u32::from(nodes) - 1) }
    }
}

/// The levels of the tree: the logarithm of the nodes to base 2, rounded up.
fn levels(nodes: u16) -> u32 {
    u32::from(nodes).next_power_of_two().ilog2()
}

/// Does with values that come what the step wants.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Incoming {
    Add(Range<usize>),
    Set(Range<usize>),
}

#[derive(Debug)]
pub(crate) struct Reduction {
    test: AllReduce,
    me: NodeId,
    nodes: u16,
    values: Vec<f64>,
    round: u32,
    step: u32,
    incoming: Incoming,
    wrong: Option<String>,
}

/// A node's value at a place in a round, over the node's number from 1: a whole number, so that sums are exact.
fn weight(place: usize, round: u32) -> f64 {
    ((place * 7 + round as usize * 13) % 1000 + 1) as f64
}

impl Reduction {
    pub fn new(test: AllReduce, me: NodeId, nodes: u16) -> Reduction {
        let values = vec![0.0; test.values as usize];
        let incoming = Incoming::Set(0..0);
        Reduction { test, me, nodes, values, round: 0, step: 0, incoming, wrong: None }
    }

    fn fill(&mut self) {
        let (number, round) = (f64::from(self.me.0) + 1.0, self.round);
        for (place, value) in self.values.iter_mut().enumerate() {
            *value = number * weight(place, round);
        }
    }

    /// Compares the sums with what they must be: the sum of 1 to P, times the weight.
    fn compare(&mut self) {
        let (nodes, round) = (f64::from(self.nodes), self.round);
        let sum = |place: usize| nodes * (nodes + 1.0) / 2.0 * weight(place, round);
        let wrong = |(place, &value): (usize, &f64)| value != sum(place);
        if let Some((place, value)) = self.values.iter().enumerate().find(|&it| wrong(it)) {
            let text = format!("sum {place} of round {round} is {value} instead of {}", sum(place));
            self.wrong.get_or_insert(text);
        }
    }

    fn octets(&self, range: Range<usize>) -> Bytes {
        self.values[range].iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// A part of the values, of as many as there are nodes; `back` parts before this node's own.
    fn part(&self, back: u32) -> Range<usize> {
        let nodes = u64::from(self.nodes);
        let part = (u64::from(self.me.0) + nodes - u64::from(back) % nodes) % nodes;
        let start = |part: u64| (self.values.len() as u64 * part / nodes) as usize;
        start(part)..start(part + 1)
    }

    fn ring(&mut self, plan: &mut Plan) {
        let event = plan.event();
        let (first_half, others) =
            (self.step < u32::from(self.nodes) - 1, u32::from(self.nodes) - 1);
        // Behind the first half a node has the sums of the part after its own.
        let back =
            if first_half { self.step } else { self.step - others + u32::from(self.nodes) - 1 };
        let (sent, received) = (self.part(back), self.part(back + 1));
        plan.send(NodeId((self.me.0 + 1) % self.nodes), event, self.octets(sent));
        plan.receive(NodeId((self.me.0 + self.nodes - 1) % self.nodes), event);
        if first_half {
            plan.work(Work { added: received.len() as u64, ..Work::default() });
            self.incoming = Incoming::Add(received);
        } else {
            self.incoming = Incoming::Set(received);
        }
    }

    fn tree(&mut self, plan: &mut Plan) {
        let (event, levels, all) = (plan.event(), levels(self.nodes), 0..self.values.len());
        let up = self.step < levels;
        let level = if up { self.step } else { 2 * levels - 1 - self.step };
        let (bit, me) = (1_u32 << level, u32::from(self.me.0));
        if me % bit != 0 {
            return;
        }
        let lower = me & bit != 0;
        let peer = if lower { me - bit } else { me + bit };
        if peer >= u32::from(self.nodes) {
            return;
        }
        let peer = NodeId(peer as u16);
        if lower == up {
            plan.send(peer, event, self.octets(all));
        } else if up {
            plan.receive(peer, event);
            plan.work(Work { added: all.len() as u64, ..Work::default() });
            self.incoming = Incoming::Add(all);
        } else {
            plan.receive(peer, event);
            self.incoming = Incoming::Set(all);
        }
    }
}

impl Rounds for Reduction {
    fn round(&mut self, plan: &mut Plan) {
        while plan.is_empty() {
            if self.step == self.test.steps(self.nodes) {
                self.compare();
                if self.me == NodeId(0) {
                    plan.lap(8 * u64::from(self.test.values));
                }
                (self.round, self.step) = (self.round + 1, 0);
            }
            if self.round == self.test.rounds {
                return;
            }
            if self.step == 0 {
                self.fill();
                if self.round == 0 && self.me == NodeId(0) {
                    plan.begin();
                }
            }
            if self.test.tree {
                self.tree(plan)
            } else {
                self.ring(plan)
            }
            self.step += 1;
        }
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        let (Incoming::Add(range) | Incoming::Set(range)) = &self.incoming;
        let Message { from, event, data } = message;
        if data.len() != 8 * range.len() {
            let want = 8 * range.len();
            return Err(format!("{} bytes of {from} for {event} instead of {want}", data.len()));
        }
        let came = data.chunks_exact(8).map(|it| it.try_into().map_or(0.0, f64::from_le_bytes));
        let adds = matches!(self.incoming, Incoming::Add(_));
        for (value, came) in self.values[range.clone()].iter_mut().zip(came) {
            *value = if adds { *value + came } else { came };
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), String> {
        if self.round != self.test.rounds {
            return Err(format!("{} rounds instead of {}", self.round, self.test.rounds));
        }
        self.wrong.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_found() {
        let test = AllReduce { values: 3, tree: false, rounds: 1 };
        let mut one = Reduction::new(test, NodeId(0), 2);
        one.fill();
        one.values.iter_mut().for_each(|value| *value *= 3.0);
        one.compare();
        assert_eq!(one.wrong, None);
        one.values[1] += 1.0;
        one.compare();
        assert!(one.wrong.unwrap().starts_with("sum 1 of round 0 is 25 instead of 24"));
    }
}

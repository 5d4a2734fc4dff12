//! Slow start of connections that begin together, block by block.
//!
//! In each round a connection sends a block, its window; the next one follows as the ACKs of this one come back. One
//! line carries the blocks in the order in which they come, each as soon as it is there and the line is free
//! (D. V. Lindley, *The theory of queues with a single server*, 1952). So the queue that a block meets is what the
//! connections have sent by then less what the line has carried, and what exceeds the buffer is lost. Sizes are in
//! segments, times in seconds.

/// The line that the connections share, and how they begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Connections.
    pub flows: u32,
    /// From the beginning of one to that of the next.
    pub apart: f64,
    /// The time of a segment on the line.
    pub segment: f64,
    /// Segments for which there is room while one is sent.
    pub buffer: f64,
    /// From the beginning of a segment to its ACK, without queue.
    pub round: f64,
    /// By how much that of the first block's segments is less, if they are short.
    pub sooner: f64,
    /// By how much their headers make that block longer.
    pub longer: f64,
    /// Segments that an ACK stands for: twice as many come at once.
    pub acked: f64,
    /// Whether the line serves the connections in turn, a segment of each, and not block by block.
    pub in_turn: bool,
}

/// A round of blocks, in the mean over the connections.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Round {
    /// From the connection's beginning until its block has left.
    pub end: f64,
    /// The share of the blocks for which there is no room.
    pub hit: f64,
    /// Segments that each of these loses.
    pub lost: f64,
    /// Of the block that loses segments, whether the last ones are all lost.
    pub tail: bool,
}

/// The connections in slow start.
#[derive(Debug, Clone)]
pub struct Opening {
    line: Line,
    /// When each connection's next block comes.
    next: Vec<f64>,
    /// When the line is free.
    free: f64,
    first: bool,
}

impl Opening {
    /// Before the first round. Connections that begin more than a round trip apart in all are taken to begin within
    /// one.
    pub fn new(line: Line) -> Opening {
        let apart = line.apart.min(line.round / f64::from(line.flows.max(1)));
        let line = Line { apart, ..line };
        let next = (0..line.flows.max(1)).map(|k| f64::from(k) * apart).collect();
        Opening { line, next, free: 0.0, first: true }
    }

    /// Each connection sends a block, which comes in `growth` + 1 times as fast as the line carries it; the first at
    /// once.
    pub fn send(&mut self, block: f64, growth: f64) -> Round {
        let Line { apart, segment, buffer, round, acked, .. } = self.line;
        // A block that comes at 1 + g lets g of its 1 + g parts wait.
        let clocked = block * growth / (1.0 + growth) + acked - 1.0;
        let waiting = if self.first { block - 1.0 } else { clocked };
        let (sooner, longer) =
            if self.first { (self.line.sooner, self.line.longer) } else { (0.0, 0.0) };
        let free = self.free;
        let mut sum = Round { tail: self.first, ..Round::default() };
        for (number, next) in self.next.iter_mut().enumerate() {
            let begin = next.max(self.free);
            // In turn its first segment is not behind all of the others' blocks, and nor is the first ACK.
            let turn = if self.line.in_turn { next.max(free) } else { begin };
            let excess = (begin - *next) / segment + waiting - buffer;
            let lost = if excess > 1e-6 { excess.min(block) } else { 0.0 };
            if lost > 0.0 {
                sum.hit += 1.0;
                sum.lost += lost;
            }
            self.free = begin + (block - lost) * segment + longer;
            sum.end += self.free - number as f64 * apart;
            *next = turn + round - sooner;
        }
        self.first = false;
        let flows = self.next.len() as f64;
        // Blocks that are served in turn end together.
        if self.line.in_turn && apart == 0.0 {
            sum.end = flows * self.free;
        }
        let lost = sum.lost / sum.hit.max(1.0);
        Round { end: sum.end / flows, hit: sum.hit / flows, lost, ..sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1 ms on the line, a round trip of 100 ms.
    fn opening(flows: u32, apart: f64, buffer: f64) -> Opening {
        Opening::new(Line {
            flows,
            apart,
            segment: 0.001,
            buffer,
            round: 0.1,
            sooner: 0.0,
            longer: 0.0,
            acked: 1.0,
            in_turn: false,
        })
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn blocks_wait_for_each_other() {
        // 10, 20, 30 and 40 ms.
        close(opening(4, 0.0, 1e3).send(10.0, 1.0).end, 0.025);
        // Each comes when the one before has left.
        close(opening(4, 0.010, 1e3).send(10.0, 1.0).end, 0.010);
        close(opening(4, 0.004, 1e3).send(10.0, 1.0).end, 0.019);
    }

    /// Four blocks of ten that the line serves in turn end together.
    #[test]
    fn blocks_in_turn_end_together() {
        let line = Line { in_turn: true, ..opening(4, 0.0, 1e3).line };
        close(Opening::new(line).send(10.0, 1.0).end, 0.040);
    }

    /// Twelve blocks of ten fill the line for longer than a round trip; from then on work alone counts.
    #[test]
    fn a_full_line_is_never_idle() {
        let mut opening = opening(12, 0.0, 1e3);
        close(opening.send(10.0, 1.0).end, 0.065);
        // 120 segments before, and 6.5 blocks of twenty in the mean.
        close(opening.send(20.0, 1.0).end, 0.120 + 0.130);
    }

    #[test]
    fn what_finds_no_room_is_lost() {
        // One in service and four that wait.
        let burst = opening(1, 0.0, 4.0).send(10.0, 1.0);
        assert_eq!((burst.hit, burst.lost, burst.tail), (1.0, 5.0, true));
        // Behind another's burst there is none.
        let two = opening(2, 0.0, 12.0).send(10.0, 1.0);
        assert_eq!((two.hit, two.lost), (0.5, 7.0));
        // Half of a block that comes twice as fast as it leaves has to wait.
        let mut alone = opening(1, 0.0, 9.0);
        assert_eq!(alone.send(10.0, 1.0).hit, 0.0);
        let second = alone.send(20.0, 1.0);
        assert_eq!((second.hit, second.lost, second.tail), (1.0, 1.0, false));
    }
}

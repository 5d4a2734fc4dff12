//! Whether an end that waits is in a livelock, as far as it can tell by itself.

use crate::NodesError;
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{Counters, Layer};

/// Nothing has passed for as many times as a node may be silent at most (a choice: a program that merely is slow makes
/// some call within one).
const SILENCES: u64 = 10;

/// So many fragments were refused and sent again meanwhile at least (a choice: layers repeat more often, and a single one
/// may be left from before).
const BUSY: u64 = 10;

/// What a layer had when something last passed while its program waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Still {
    /// When that was.
    at: Time,
    /// When the program began to wait.
    since: Time,
    /// How often something had passed.
    passed: u64,
    counters: Counters,
}

impl Still {
    fn of<L: Layer>(layer: &L, now: Time, since: Time) -> Still {
        Still { at: now, since, passed: layer.passed(), counters: layer.counters() }
    }

    /// Notes what there is now, `last` being what was noted before.
    ///
    /// # Errors
    /// If nothing has passed for long while fragments were refused or sent again.
    pub fn note<L: Layer>(
        last: Option<Still>,
        layer: &L,
        now: Time,
        since: Time,
        silence: Span,
    ) -> Result<Still, NodesError> {
        let new = Still::of(layer, now, since);
        let Some(last) = last.filter(|it| (it.since, it.passed) == (since, new.passed)) else {
            return Ok(new);
        };
        let stood = now.since(last.at);
        let refused = new.counters.refused - last.counters.refused;
        let again = new.counters.again - last.counters.again;
        if stood < silence.scaled(SILENCES, 1) || refused + again < BUSY {
            return Ok(last);
        }
        Err(NodesError::Livelock { stood, refused, again })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use trunkline_transport::cstar::{
        Cluster, Destination, EventId, Flags, Fragment, NodeId, Source, Traditional,
        TraditionalSettings,
    };

    const CLUSTER: Cluster = Cluster { nodes: 2, receive_buffers: 4, send_buffers: 8, frame: 1000 };
    const SILENCE: Span = Span::from_secs(30);

    /// A node that has sent all that it has buffers for, and waits for more of them.
    fn full(me: u16) -> Traditional {
        let mut layer =
            Traditional::new(NodeId(me), &CLUSTER, &TraditionalSettings::default()).unwrap();
        let flags = Flags { last: true, ..Flags::default() };
        let to = Destination::Node(NodeId(1 - me));
        let fragment = |round: u32| Fragment {
            to,
            event: EventId(2 * round + u32::from(me)),
            flags,
            following: 0,
            data: Bytes::from_static(b"much"),
        };
        (0..8).for_each(|round| layer.send(Time::ZERO, fragment(round)).unwrap());
        assert!(layer.send(Time::ZERO, fragment(8)).is_err());
        layer
    }

    /// Lets two full nodes refuse and repeat until `end`; the program of the second receives a message each `rests`. Returns
    /// when the first is found to be in a livelock, and what is said of it.
    fn ends(end: Span, rests: Option<Span>) -> Option<(Time, String)> {
        let (mut one, mut other) = (full(0), full(1));
        let (mut last, mut now, mut received) = (None, Time::ZERO, 0);
        while now.since(Time::ZERO) < end {
            for _ in 0..8 {
                while let Some(frame) = one.transmit(now) {
                    other.arrive(now, frame);
                }
                while let Some(frame) = other.transmit(now) {
                    one.arrive(now, frame);
                }
            }
            match Still::note(last, &one, now, Time::ZERO, SILENCE) {
                Ok(noted) => last = Some(noted),
                Err(livelock) => return Some((now, livelock.to_string())),
            }
            if rests.is_some_and(|it| now.since(Time::ZERO) >= it.scaled(received + 1, 1)) {
                let event = EventId(2 * received as u32);
                let came = other.receive(now, Source::Any, event).expect("the next message");
                other.release(now, came.buffer.expect("a buffer"));
                received += 1;
            }
            now += Span::from_millis(100);
            one.expire(now);
            other.expire(now);
        }
        None
    }

    #[test]
    fn who_refuses_and_repeats_for_ten_silences_is_in_a_livelock() {
        let (at, told) = ends(Span::from_secs(1000), None).expect("it is told");
        assert!(at > Time::ZERO + SILENCE.scaled(10, 1), "{at}");
        assert!(at < Time::ZERO + SILENCE.scaled(11, 1), "{at}");
        assert!(told.contains("livelock: for 300s nothing has passed"), "{told}");
    }

    /// Each message that the other end receives after four minutes lets the next one pass.
    #[test]
    fn who_merely_is_slow_is_in_none() {
        assert_eq!(ends(Span::from_secs(900), Some(Span::from_secs(240))), None);
    }
}

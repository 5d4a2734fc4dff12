//! Every protocol of the list, over whatever a path may do.

use proptest::prelude::*;
use std::collections::BTreeMap;
use trunkline_core::{Seed, Span, Stream, Time};
use trunkline_transport::protocol::{
    Frame, Header, PROTOCOLS, ProtocolEntry, Takes, Value, Values,
};
use trunkline_transport::restraint::Bounds;
use trunkline_transport::{Extent, Protocol};

/// The fate of a frame on a path: the lateness of each of its copies, in microseconds.
type Fate = Vec<u64>;

/// Two ends and the frames on their way, by the time of their coming.
struct Talk {
    ends: [Box<dyn Protocol>; 2],
    way: BTreeMap<(Time, u64), (usize, Frame)>,
    fates: Vec<Fate>,
    /// Draws one of them for each frame: in an order, a frame might meet the same each time that it is sent again.
    chance: Stream,
    sent: u64,
    now: Time,
}

impl Talk {
    fn new(entry: &ProtocolEntry, values: &Values, fates: Vec<Fate>) -> Talk {
        let end = || (entry.build)(values).expect("settings within their ranges");
        let chance = Seed(0).stream("fates");
        Talk { ends: [end(), end()], way: BTreeMap::new(), fates, chance, sent: 0, now: Time::ZERO }
    }

    /// Lets both ends say what they can.
    fn say(&mut self) {
        for end in 0..2 {
            while let Some(out) = self.ends[end].transmit(self.now) {
                let fate = &self.fates[self.chance.below(self.fates.len() as u64) as usize];
                for (copy, late) in fate.iter().enumerate() {
                    let at = self.now + Span::from_micros(1000 + late);
                    self.way
                        .insert((at, self.sent * 4 + copy as u64), (1 - end, out.frame.clone()));
                }
                self.sent += 1;
            }
        }
    }

    /// The next thing that happens. Answers whether anything does.
    fn step(&mut self) -> bool {
        self.say();
        let comes = self.way.keys().next().map(|key| key.0);
        let due = self.ends.iter().filter_map(|end| end.deadline()).min();
        let Some(next) = comes.into_iter().chain(due).min() else { return false };
        self.now = next.max(self.now);
        if comes == Some(next) {
            let (_, (end, frame)) = self.way.pop_first().expect("one comes");
            // A wire does not tell the place of the data in the stream; here it is kept to be checked.
            self.ends[end].receive(self.now, &frame);
        } else {
            self.ends.iter_mut().for_each(|end| end.expire(self.now));
        }
        true
    }
}

/// Settings of a protocol within the ranges of its keys, by chance.
fn settings() -> impl Strategy<Value = (&'static ProtocolEntry, Values)> {
    let chosen = (0..PROTOCOLS.len(), prop::collection::vec((any::<bool>(), any::<u64>()), 8));
    let all = chosen.prop_map(|(index, chances)| {
        let entry = PROTOCOLS[index];
        let mut values = entry.defaults();
        for (key, (given, chance)) in entry.keys.iter().zip(chances) {
            if given {
                values.set(key.name, value(key.takes, chance));
            }
        }
        (entry, values)
    });
    all.prop_filter("settings that go together", |(entry, values)| (entry.build)(values).is_ok())
}

/// A value near the lower end of a key's range: there most is at stake.
fn value(takes: Takes, chance: u64) -> Value {
    match takes {
        Takes::Bytes(least, most) => Value::Number((least + chance % 300).min(most)),
        Takes::Count(least, most) => Value::Number((least + chance % 20).min(most)),
        // Whole milliseconds: NETBLT's packets say no others.
        Takes::Time(least, most) => {
            Value::Time(Span::from_millis(3 + chance % 9).clamp(least, most))
        }
        Takes::Flag => Value::Flag(chance % 2 == 1),
        Takes::Rate => {
            Value::Rate(trunkline_core::Rate::from_bits_per_second(100_000 + chance % 10_000_000))
        }
    }
}

/// Losses, delays that reorder, and copies; at least two frames in three come as they should: with half of them lost an end
/// may by chance hear nothing for so long that it gives up.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        3 => Just(vec![0]),
        2 => Just(vec![]),
        2 => (0u64..4000).prop_map(|late| vec![late]),
        1 => (0u64..3000, 0u64..9000).prop_map(|(one, other)| vec![one, other]),
    ];
    prop::collection::vec(fate, 0..40).prop_map(|mut fates| {
        let well = 2 * fates.len() + 1;
        fates.extend(std::iter::repeat_n(vec![0], well));
        fates
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn exactly_what_was_sent_arrives_whatever_the_path_does(
        (entry, values) in settings(), fates in fates(),
        writes in prop::collection::vec((0u32..1500, any::<bool>()), 1..12),
    ) {
        let mut talk = Talk::new(entry, &values, fates);
        let (mut offset, mut units) = (0, 0);
        let mut ends = Vec::new();
        for (index, &(bytes, end)) in writes.iter().enumerate() {
            // What neither has bytes nor ends a message is nothing, and what ends none may wait for more.
            let end = end || bytes == 0 || index + 1 == writes.len();
            units += talk.ends[0].units_of(bytes, end);
            talk.ends[0].offer(Time::ZERO, Extent::new(offset, bytes), end);
            offset += u64::from(bytes);
            if end {
                ends.push(offset);
            }
        }
        let (mut got, mut number, mut ended) = (0, 0, Vec::new());
        for _ in 0..200_000 {
            if !talk.step() {
                break;
            }
            while let Some(unit) = talk.ends[1].take() {
                prop_assert_eq!(unit.number, number, "{}", entry.name);
                prop_assert!(unit.data.len == 0 || unit.data.offset == got);
                number += 1;
                got += u64::from(unit.data.len);
                let now = talk.now;
                talk.ends[1].consumed(now, unit.data.len.into());
                if unit.end {
                    ended.push(got);
                }
            }
            prop_assert!(!talk.ends[0].dead(), "{}: an end that answers is not dead", entry.name);
        }
        let name = entry.name;
        prop_assert_eq!((got, number, ended), (offset, units, ends), "{}", name);
        prop_assert_eq!(talk.ends[0].unanswered() + talk.ends[0].unsent(), 0, "{}", name);
        prop_assert_eq!(talk.ends[0].counters().answered, units, "{}", name);
        prop_assert!(talk.ends[0].deadline().is_none() && talk.ends[0].held(Time::NEVER).is_none(), "{}", name);
    }

    #[test]
    fn what_holds_a_sender_back_is_eased_by_settings_that_fit(
        (entry, values) in settings(), enough in 1u64..1 << 30,
    ) {
        let restraints = (entry.restraints)(&values, enough);
        for bounds in [Bounds::Window, Bounds::Rate] {
            prop_assert!(restraints.iter().filter(|it| it.bounds == bounds).count() <= 1);
        }
        for restraint in restraints {
            prop_assert!(!restraint.now.is_empty());
            let mut before = (entry, values.clone());
            for step in &restraint.steps {
                prop_assert!((step.entry.build)(&step.values).is_ok(), "{}: {step:?}", entry.name);
                let keys: Vec<&str> = step.entry.keys.iter().map(|key| key.name).collect();
                for (key, _) in step.values.pairs() {
                    prop_assert!(keys.contains(&key), "{} has no {key}", step.entry.name);
                }
                prop_assert_ne!((step.entry, &step.values), (before.0, &before.1));
                before = (step.entry, step.values.clone());
            }
            // Nothing is left of a rate in the end; of windows there is a most.
            if let (Bounds::Rate, Some(last)) = (restraint.bounds, restraint.steps.last()) {
                prop_assert!(!(last.entry.restraints)(&last.values, enough).iter().any(|it| it.bounds == Bounds::Rate));
            }
        }
    }

    #[test]
    fn a_peer_that_says_anything_costs_neither_time_nor_memory(
        (entry, values) in settings(), words in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..12), 0u32..3000), 1..200),
    ) {
        let mut end = (entry.build)(&values).expect("settings within their ranges");
        end.offer(Time::ZERO, Extent::new(0, 5000), true);
        for (index, (octets, len)) in words.into_iter().enumerate() {
            let now = Time::from_nanos(index as u64 * 100_000);
            let frame = Frame { header: Header::new(&octets), data: Extent::new(0, len) };
            end.receive(now, &frame);
            let said = std::iter::from_fn(|| end.transmit(now)).take(100_000).count();
            prop_assert!(said < 100_000, "{} goes on for ever", entry.name);
            while end.take().is_some() {}
            end.expire(now);
        }
    }
}

/// An end that nobody answers gives up, after minutes and not before, and is then silent.
#[test]
fn an_end_that_nobody_answers_gives_up() {
    for entry in PROTOCOLS {
        let mut end = (entry.build)(&entry.defaults()).expect("defaults");
        end.offer(Time::ZERO, Extent::new(0, 5000), true);
        let mut now = Time::ZERO;
        for _ in 0..100_000 {
            while end.transmit(now).is_some() {}
            let Some(due) = end.deadline() else { break };
            now = due;
            end.expire(now);
        }
        assert!(end.dead(), "{}", entry.name);
        assert!(end.deadline().is_none() && end.transmit(now).is_none(), "{}", entry.name);
        let minutes = now.as_nanos() / 60_000_000_000;
        assert!((5..60).contains(&minutes), "{}: {minutes} min", entry.name);
    }
}

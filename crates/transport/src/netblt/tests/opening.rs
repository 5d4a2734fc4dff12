//! What an end answers to an OPEN that is said again.

use super::*;

/// Whose answer was lost says its OPEN again after a second, after two and after four, and just then the other end repeats its GOs. It
/// gets an answer all the same; copies that come at once get one together.
#[test]
fn an_open_that_comes_with_a_timer_is_answered() {
    let habits = habits(Dialect::V5, RateLaw::Adaptive);
    let limits = Limits::default();
    let ports = PORTS.turned();
    let accepted = Connection::accept(Time::ZERO, &terms(true), ports, habits, &limits);
    let mut passive = accepted.unwrap();
    passive.provide(2);
    let said = |passive: &mut Connection, now| {
        let all = std::iter::from_fn(|| passive.transmit(now));
        all.filter(|it| matches!(it, Out::Packet(Packet::Response(_)))).count()
    };
    assert_eq!(said(&mut passive, Time::ZERO), 1);
    let mut now = Time::ZERO;
    for _ in 0..5 {
        while passive.deadline().is_some_and(|due| due <= now + Span::from_secs(1)) {
            now = passive.deadline().unwrap();
            passive.expire(now);
            assert_eq!(said(&mut passive, now), 0);
        }
        let copies = (0..16).map(|_| {
            passive.receive(now, &Packet::Open(terms(true)), true);
            said(&mut passive, now)
        });
        assert_eq!(copies.sum::<usize>(), 1);
        now += Span::from_secs(1);
    }
}

/// Who asks often is not answered more often than packets leave.
#[test]
fn many_opens_of_others_are_refused_once() {
    let habits = habits(Dialect::V5, RateLaw::Adaptive);
    let accepted =
        Connection::accept(Time::ZERO, &terms(true), PORTS.turned(), habits, &Limits::default());
    let mut passive = accepted.unwrap();
    let all = |passive: &mut Connection| {
        std::iter::from_fn(|| passive.transmit(Time::ZERO)).collect::<Vec<_>>()
    };
    assert_eq!(all(&mut passive).len(), 1);
    let other = Terms { uid: terms(true).uid + 1, ..terms(true) };
    (0..9).for_each(|_| _ = passive.receive(Time::ZERO, &Packet::Open(other.clone()), true));
    let said = all(&mut passive);
    assert!(matches!(said[..], [Out::Packet(Packet::Refused(_))]), "{said:?}");
}

/// Which end says a packet, of which the passive one is 1.
type Loses<'a> = &'a dyn Fn(usize, &Packet, Time) -> bool;

/// When the first data leave, over a path of 50 ms each way that loses chosen packets, and how many CONTROL packets were said until
/// they had come.
fn begins(dialect: Dialect, way: Span, loses: Loses<'_>) -> (Span, usize) {
    let habits = habits(dialect, RateLaw::Adaptive);
    let limits = Limits::default();
    let proposed = Terms { outstanding: 512, ..terms(true) };
    let active = Connection::open(Time::ZERO, proposed, PORTS, habits);
    let mut ends = [End::new(Some(active), &stream(3_000_000)), End::new(None, &[])];
    let (mut now, mut on_way, mut said) = (Time::ZERO, BTreeMap::new(), 0);
    for number in 0..100_000u64 {
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(octets) = end.transmit(now) {
                let packet = decode(&octets).expect("a packet").packet;
                if matches!(packet, Packet::Data(_)) {
                    return (now.since(Time::ZERO), said);
                }
                said += usize::from(matches!(packet, Packet::Control(_)));
                if !loses(from, &packet, now) {
                    on_way.insert((now + way, number, on_way.len()), (1 - from, octets));
                }
            }
        }
        let comes = on_way.keys().next().map(|key| key.0);
        let due = ends.iter().filter_map(|end| end.connection.as_ref()?.deadline()).min();
        now = now.max(comes.into_iter().chain(due).min().expect("something happens"));
        while let Some(first) = on_way.first_entry().filter(|it| it.key().0 <= now) {
            let (end, octets) = first.remove();
            ends[end].receive(now, &octets, &limits, habits);
        }
        ends.iter_mut().filter_map(|it| it.connection.as_mut()).for_each(|it| it.expire(now));
    }
    panic!("no data in {now:?}");
}

/// Of an answer and the GOs behind it either may be lost, or both, and what a timer of a second says again too. The other shows how long a
/// round trip takes, so that none of it costs another second.
#[test]
fn what_is_lost_of_an_answer_is_asked_for_after_a_round_trip() {
    let is_go = |it: &Packet| matches!(it, Packet::Control(_));
    let is_answer = |it: &Packet| matches!(it, Packet::Response(_));
    let before = |now, millis| now < Time::ZERO + Span::from_millis(millis);
    let way = Span::from_millis(50);
    for dialect in Dialect::ALL {
        let found = |millis: u64, loses: Loses<'_>| {
            let (begun, _) = begins(dialect, way, loses);
            assert!(begun <= Span::from_millis(millis), "{dialect:?}: {begun:?} for {millis} ms");
        };
        found(100, &|_, _, _| false);
        found(200, &|_, it, now| is_answer(it) && before(now, 60));
        found(400, &|_, it, now| is_go(it) && before(now, 60));
        found(1100, &|from, _, now| from == 1 && before(now, 900));
        found(1200, &|from, it, now| {
            from == 1 && (before(now, 900) || is_answer(it) && before(now, 1100))
        });
        found(1300, &|from, it, now| {
            from == 1 && (before(now, 900) || is_go(it) && before(now, 1100))
        });
        let first = |it: &Packet| matches!(it, Packet::Control(all) if all[0].sequence == 1);
        found(400, &|_, it, now| first(it) && before(now, 60));
    }
}

/// A round trip that is longer than the timers of a second makes nobody say more than those do.
#[test]
fn a_long_path_is_not_asked_twice() {
    let said = [100, 900, 1500, 2500].map(|millis| {
        let (begun, said) = begins(Dialect::V5, Span::from_millis(millis / 2), &|_, _, _| false);
        assert_eq!(begun, Span::from_millis(millis));
        said
    });
    assert_eq!(said, [5, 5, 5, 10]);
}

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

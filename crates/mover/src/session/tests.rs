use super::*;
use crate::MoverError;
use proptest::prelude::*;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::Terms;

const PORTS: Ports = Ports { local: 1, foreign: 2 };

fn code(text: &str) -> Secret {
    Secret::Code(text.parse().unwrap())
}

fn begin(near: &Secret, is_clear: bool) -> Caller {
    Caller::begin(near, is_clear, None, Time::ZERO).unwrap()
}

/// What a caller says next.
fn said(caller: &mut Caller) -> Vec<u8> {
    caller.say(Time::NEVER.before(Span::from_secs(60))).unwrap().0.to_vec()
}

/// Both ends' sessions, or why there are none. No answer is longer than what was asked.
pub(crate) fn meet(near: &Secret, door: &mut Door) -> Result<(Session, Session), MoverError> {
    meet_as(near, false, door)
}

fn meet_as(
    near: &Secret,
    is_clear: bool,
    door: &mut Door,
) -> Result<(Session, Session), MoverError> {
    let mut caller = begin(near, is_clear);
    let mut there = None;
    for _ in 0..4 {
        let words = said(&mut caller);
        let answer = match door.knock(&words)? {
            Knock::Nothing => panic!("no answer"),
            Knock::Answer(answer) => answer,
            Knock::Session(answer, session) => {
                there = Some(*session);
                answer
            }
            Knock::Early(_) => panic!("an OPEN that was not said"),
        };
        assert!(answer.len() <= words.len());
        if let Some(met) = caller.hear(Time::ZERO, &answer)? {
            return Ok((met.session, there.unwrap()));
        }
    }
    panic!("no end")
}

#[test]
fn who_knows_the_same_meets() {
    let key = || Secret::Key(Key::new([7; 32]));
    let secrets = [Secret::None, key(), code("abc-234")];
    let cases = secrets.map(|secret| [(secret.clone(), false), (secret, true)]);
    for (secret, is_clear) in cases.as_flattened() {
        let door = &mut Door::new(secret.clone(), true);
        let (mut near, mut there) = meet_as(secret, *is_clear, door).unwrap();
        let mut link = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
        let mut other = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
        near.say(&mut link, other.address().unwrap(), PORTS, &Packet::Done, b"");
        link.flush();
        other.wait(other.now() + Span::from_secs(1));
        let mut heard = 0;
        other
            .receive(|_, _, datagram| {
                assert!(there.is_meant(datagram));
                assert_eq!(there.hear(datagram).unwrap().0.packet, Packet::Done);
                assert!(there.hear(datagram).is_none(), "a copy");
                assert!(near.is_unknown(&unknown(datagram).unwrap()));
                heard += 1;
            })
            .unwrap();
        assert_eq!(heard, 1);
    }
}

#[test]
fn who_does_not_is_told() {
    let wrong = |near: &Secret, there: Secret| {
        meet(near, &mut Door::new(there, false)).unwrap_err().to_string()
    };
    let key = |octet| Secret::Key(Key::new([octet; 32]));
    assert!(wrong(&key(1), key(2)).contains("wrong code or key"));
    assert!(wrong(&Secret::None, key(2)).contains("asks for a code or a key"));
    assert!(wrong(&key(1), Secret::None).contains("--no-key"));
    assert!(wrong(&key(1), code("abc-234")).contains("asks for a code"));
    assert!(wrong(&code("abc-234"), key(2)).contains("wrong code or key"));
    assert!(wrong(&code("abc-234"), Secret::None).contains("--no-key"));
}

/// In the clear only if both ends want it.
#[test]
fn one_end_alone_gets_nothing_in_the_clear() {
    let door = &mut Door::new(Secret::None, false);
    let refused = meet_as(&Secret::None, true, door).unwrap_err().to_string();
    assert!(refused.contains("--plaintext"), "{refused}");
    let (mut near, _) = meet(&Secret::None, &mut Door::new(Secret::None, true)).unwrap();
    let mut link = Link::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
    let to = link.address().unwrap();
    near.say(&mut link, to, PORTS, &Packet::Text(b"nobody reads this".into()), b"");
    link.flush();
    link.wait(link.now() + Span::from_secs(1));
    let is_there = |all: &[u8]| all.windows(6).any(|it| it == b"nobody");
    link.receive(|_, _, datagram| assert!(!is_there(datagram))).unwrap();
}

/// A code dies after three wrong tries, and right ones before do not count.
#[test]
fn a_code_dies() {
    let mut door = Door::new(code("abc-234"), false);
    for wrong in ["abc-235", "abc-236"] {
        assert!(meet(&code(wrong), &mut door).unwrap_err().to_string().contains("wrong code"));
        meet(&code("abc-234"), &mut door).unwrap();
    }
    assert!(door.is_guessed().is_ok());
    // Whoever gave the last of them is told too.
    assert!(meet(&code("abc-237"), &mut door).unwrap_err().to_string().contains("wrong code"));
    assert!(matches!(door.is_guessed(), Err(MoverError::Guessed(3))));
    assert!(matches!(door.knock(&said(&mut begin(&code("abc-234"), false))), Ok(Knock::Nothing)));
}

/// Words said again are answered with the same key's words: an answer may be lost.
#[test]
fn words_may_be_said_twice() {
    let mut door = Door::new(code("abc-234"), false);
    let mut caller = begin(&code("abc-234"), false);
    let words = said(&mut caller);
    let Knock::Answer(first) = door.knock(&words).unwrap() else { panic!("no answer") };
    let Knock::Answer(second) = door.knock(&words).unwrap() else { panic!("no answer") };
    assert_eq!(first, second);
    caller.hear(Time::ZERO, &first).unwrap();
    let words = said(&mut caller);
    let Knock::Session(..) = door.knock(&words).unwrap() else { panic!("no session") };
    let Knock::Session(answer, _) = door.knock(&words).unwrap() else { panic!("no session") };
    assert!(caller.hear(Time::ZERO, &answer).unwrap().is_some());
}

/// A caller with an OPEN for its first words, and the OPEN's terms.
fn early(near: &Secret) -> (Caller, Terms) {
    let terms = Terms { uid: 7, packet: 1000, text: b"an offer".into(), ..Terms::default() };
    let mut packet = Vec::new();
    encode(Dialect::V5, PORTS, &Packet::Open(terms.clone()), &mut packet);
    let early = Early { packet, length: 1100, copies: 3 };
    (Caller::begin(near, false, Some(early), Time::ZERO).unwrap(), terms)
}

/// An OPEN comes with the words of who has a key, once, and words without it after that: either may be answered.
#[test]
fn an_open_comes_with_first_words() {
    let key = Secret::Key(Key::new([7; 32]));
    for (is_taken, is_answered_early) in [(false, true), (true, true), (false, false)] {
        let (mut caller, terms) = early(&key);
        let (words, copies) = caller.say(Time::ZERO).map(|(it, n)| (it.to_vec(), n)).unwrap();
        assert_eq!((words.len(), copies), (1100, 3));
        assert!(!words.windows(8).any(|it| it == b"an offer"));
        let mut door = Door::new(key.clone(), false);
        let Knock::Early(arrived) = door.knock(&words).unwrap() else { panic!("no OPEN") };
        assert_eq!((&arrived.terms, arrived.ports), (&terms, PORTS.turned()));
        let plain = said(&mut caller);
        let Knock::Session(answer, _) = door.knock(&plain).unwrap() else { panic!("no session") };
        let answer = if is_answered_early { arrived.answer(is_taken) } else { answer };
        let met = caller.hear(Time::ZERO, &answer).unwrap().unwrap();
        assert_eq!(met.opened, is_taken.then_some(Time::ZERO));
        assert!(caller.hear(Time::ZERO, &answer).unwrap().is_none(), "once more");
        let same = arrived.session.id == met.session.id;
        assert_eq!(same, is_answered_early);
    }
}

/// A pause after words with an OPEN is one and a half of the round trip that the code's exchange has shown, be it not known exactly because
/// its words were repeated.
#[test]
fn words_are_said_again_as_soon_as_their_answer_is_late() {
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    for (again, pause) in [(false, 150), (true, 225)] {
        let (mut caller, _) = early(&code("abc-234"));
        let mut door = Door::new(code("abc-234"), false);
        let words = caller.say(at(0)).unwrap().0.to_vec();
        if again {
            caller.say(at(500)).unwrap();
        }
        let Knock::Answer(answer) = door.knock(&words).unwrap() else { panic!("no answer") };
        let now = if again { 600 } else { 100 };
        assert!(caller.hear(at(now), &answer).unwrap().is_none());
        let words = caller.say(at(now)).unwrap().0.to_vec();
        assert_eq!(caller.due(), at(now + pause));
        let Knock::Early(arrived) = door.knock(&words).unwrap() else { panic!("no OPEN") };
        let plain = caller.say(at(now + pause)).unwrap().0.to_vec();
        let later = at(now + pause + 20);
        let (answer, round, opened) = match again {
            true => (arrived.answer(true), pause + 20, Some(at(now))),
            false => {
                let Knock::Session(answer, _) = door.knock(&plain).unwrap() else { panic!() };
                (answer, 20, None)
            }
        };
        let met = caller.hear(later, &answer).unwrap().unwrap();
        assert_eq!((met.opened, met.round), (opened, Span::from_millis(round)));
    }
}

/// Whichever of repeated words is answered, over any path: what is said again by the round trip that this shows is said once too often at
/// most, and no later than a second if the last were answered at once.
#[test]
fn a_round_trip_is_shown_by_repeated_words_too() {
    for words in 1..6 {
        for after in [1, 5, 20, 100, 300, 499] {
            let mut caller = begin(&Secret::None, false);
            let (mut first, mut last) = (None, Time::ZERO);
            let hello = (0..words).map(|_| {
                last = caller.due();
                first.get_or_insert(last);
                caller.say(last).unwrap().0.to_vec()
            });
            let hello = hello.last().unwrap();
            let knocked = Door::new(Secret::None, false).knock(&hello).unwrap();
            let Knock::Session(answer, _) = knocked else { panic!("no session") };
            let now = last + Span::from_millis(after);
            let round = caller.hear(now, &answer).unwrap().unwrap().round;
            let longest = now.since(first.unwrap());
            if words == 1 {
                assert_eq!(round, longest);
            }
            // An OPEN goes again after one and a half of it, and then three.
            let pause = round.scaled(3, 2);
            assert!(pause <= Span::from_millis(1001), "{words} words, {after} ms: {pause:?}");
            let is_once = pause + pause.scaled(2, 1) >= longest;
            assert!(
                is_once || round.scaled(3, 2) >= Span::from_secs(1),
                "{words} words, {after} ms"
            );
        }
    }
}

/// Without a key an OPEN would be in the clear, so it waits. With another key it is refused in one octet more than other words.
#[test]
fn an_open_is_said_to_nobody_else() {
    let (mut caller, _) = early(&Secret::None);
    assert_eq!(said(&mut caller).len(), PADDED);
    let (mut caller, _) = early(&Secret::Key(Key::new([1; 32])));
    let words = said(&mut caller);
    let mut door = Door::new(Secret::Key(Key::new([2; 32])), false);
    let Knock::Answer(answer) = door.knock(&words).unwrap() else { panic!("let in") };
    assert_eq!(answer.len(), 3);
    let refused = caller.hear(Time::ZERO, &answer).unwrap_err().to_string();
    assert!(refused.contains("wrong code or key"), "{refused}");
}

/// A wrong code counts once, however often the words come, as long as its exchange is not made again.
#[test]
fn copies_of_a_wrong_codes_words_count_once() {
    let (mut caller, _) = early(&code("abc-235"));
    let mut door = Door::new(code("abc-234"), false);
    let Knock::Answer(answer) = door.knock(&said(&mut caller)).unwrap() else { panic!() };
    caller.hear(Time::ZERO, &answer).unwrap();
    let words = said(&mut caller);
    for _ in 0..16 {
        assert!(matches!(door.knock(&words).unwrap(), Knock::Answer(_)));
    }
    meet(&code("abc-234"), &mut door).unwrap();
}

proptest! {
    #[test]
    fn whatever_knocks_is_answered_with_less(words in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10) {
        let mut door = Door::new(code("abc-234"), false);
        let words = [&[kind], &words[..]].concat();
        if let Knock::Answer(answer) = door.knock(&words).unwrap() {
            prop_assert!(answer.len() <= words.len());
        }
        let mut caller = begin(&code("abc-234"), false);
        let _ = caller.hear(Time::ZERO, &words);
    }
}

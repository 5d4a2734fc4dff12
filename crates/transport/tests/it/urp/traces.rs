//! The exchanges that the sources describe, character for character.

use crate::urp::talk::*;
use trunkline_transport::Extent;
use trunkline_transport::urp::{Check, Control, Echo, Part, Segment, Seq, Settings};

#[test]
fn a_normal_exchange() {
    let mut sender = End::new(settings()).unwrap();
    let mut receiver = End::new(settings()).unwrap();
    sender.offer(at(0), Extent::new(0, 84), true);
    sender.offer(at(0), Extent::new(84, 28), true);
    let said = say(&mut sender, at(0));
    assert_eq!(words(&said), "INIT1");
    assert!(sender.blocked());
    hear(&mut receiver, at(5), &said);
    let said = say(&mut receiver, at(5));
    assert_eq!(words(&said), "AINIT");
    hear(&mut sender, at(10), &said);
    let said = say(&mut sender, at(10));
    assert_eq!(words(&said), "1m 2m 3.");
    assert!(sender.blocked() && (sender.unsent(), sender.unechoed()) == (28, 84));
    hear(&mut receiver, at(15), &said);
    let echoes = say(&mut receiver, at(15));
    assert_eq!(words(&echoes), "ECHO1 ECHO2 ECHO3");
    hear(&mut sender, at(20), &echoes[..1]);
    let said = say(&mut sender, at(20));
    assert_eq!(words(&said), "4.");
    let Segment::Block(block) = &said[0] else { unreachable!() };
    assert_eq!((block.eligible, block.first_sent), (at(20), None));
    hear(&mut sender, at(20), &echoes[1..]);
    hear(&mut receiver, at(25), &said);
    hear(&mut sender, at(30), &say(&mut receiver, at(25)));
    assert!(sender.idle() && !sender.recovering() && sender.deadline().is_none());
    let got = all(&mut receiver);
    assert_eq!(got.iter().map(|piece| piece.end).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!((got[0].data, got[3].data), (Extent::new(0, 28), Extent::new(84, 28)));
}

#[test]
fn a_lost_octet_in_the_second_block() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    hear(&mut receiver, at(15), &said[..1]);
    short(&said[1]).into_iter().for_each(|part| receiver.receive(at(15), part));
    hear(&mut receiver, at(15), &said[2..]);
    let answer = say(&mut receiver, at(15));
    assert_eq!(words(&answer), "ECHO1 REJ1");
    let bad = receiver.counters().receiving;
    assert_eq!((bad.bad_count, bad.bad_sequence, bad.rejects), (1, 1, 1));
    hear(&mut sender, at(20), &answer);
    assert!(sender.recovering());
    let again = say(&mut sender, at(20));
    assert_eq!(words(&again), "2m 3.");
    let Segment::Block(block) = &again[0] else { unreachable!() };
    assert_eq!((block.eligible, block.first_sent), (at(10), Some(at(10))));
    hear(&mut receiver, at(25), &again);
    let echoes = say(&mut receiver, at(25));
    assert_eq!(words(&echoes), "ECHO2 ECHO3");
    hear(&mut sender, at(30), &echoes);
    assert!(sender.idle() && !sender.recovering());
    assert_eq!(received(&mut receiver), whole());
    let sent = sender.counters().sending;
    assert_eq!((sent.blocks, sent.resent, sent.went_back, sent.timeouts), (3, 2, 1, 0));
}

#[test]
fn the_lost_number_of_the_last_block() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    hear(&mut receiver, at(15), &said[..2]);
    receiver.receive(at(15), said[2].clone().parts(16).next().unwrap());
    hear(&mut sender, at(20), &say(&mut receiver, at(15)));
    assert_eq!(
        (words(&say(&mut sender, at(20))).as_str(), sender.deadline()),
        ("", Some(at(1020)))
    );
    sender.expire(at(1019));
    assert_eq!(words(&say(&mut sender, at(1019))), "");
    sender.expire(at(1020));
    let enquiry = say(&mut sender, at(1020));
    assert_eq!(words(&enquiry), "ENQ");
    hear(&mut receiver, at(1025), &enquiry);
    let answer = say(&mut receiver, at(1025));
    assert_eq!(words(&answer), "ECHO2 ACK2");
    hear(&mut sender, at(1030), &answer);
    let again = say(&mut sender, at(1030));
    assert_eq!(words(&again), "3.");
    hear(&mut receiver, at(1035), &again);
    assert_eq!(received(&mut receiver), whole());
}

#[test]
fn a_slow_consumer() {
    let slow = Settings { echo: Echo::Consumption, ..settings() };
    let (mut sender, mut receiver, said) = three_sent(slow);
    sender.offer(at(10), Extent::new(84, 28), true);
    hear(&mut receiver, at(15), &said);
    assert_eq!(words(&say(&mut receiver, at(15))), "");
    receiver.consumed(at(16), 28);
    // The echo of the first block is lost.
    assert_eq!(words(&say(&mut receiver, at(16))), "ECHO1");
    sender.expire(at(1010));
    hear(&mut receiver, at(1015), &say(&mut sender, at(1010)));
    let answer = say(&mut receiver, at(1015));
    assert_eq!(words(&answer), "ECHO1 ACK3");
    hear(&mut sender, at(1020), &answer);
    assert_eq!(words(&say(&mut sender, at(1020))), "4.");
    assert!(!sender.idle() && sender.unechoed() == 84);
    receiver.consumed(at(1021), 27);
    assert_eq!(words(&say(&mut receiver, at(1021))), "");
    receiver.consumed(at(1022), 29);
    assert_eq!(words(&say(&mut receiver, at(1022))), "ECHO2 ECHO3");
    assert_eq!(sender.counters().sending.resent, 0);
}

#[test]
fn all_echoes_lost() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    sender.offer(at(10), Extent::new(84, 28), true);
    hear(&mut receiver, at(15), &said);
    say(&mut receiver, at(15));
    sender.expire(at(1010));
    hear(&mut receiver, at(1015), &say(&mut sender, at(1010)));
    let answer = say(&mut receiver, at(1015));
    assert_eq!(words(&answer), "ECHO3 ACK3");
    // One by one, so that the window has moved and the next block is on its way when the ACK comes.
    hear(&mut sender, at(1020), &answer[..1]);
    assert_eq!(words(&say(&mut sender, at(1020))), "4.");
    hear(&mut sender, at(1021), &answer[1..]);
    assert_eq!(words(&say(&mut sender, at(1021))), "");
}

#[test]
fn a_receiver_that_starts_again() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    receiver.restart(at(20));
    hear(&mut receiver, at(20), &said);
    assert_eq!(received(&mut receiver), []);
    // The first request is lost, and repeated.
    assert_eq!(words(&say(&mut receiver, at(20))), "INITREQ");
    assert_eq!(receiver.deadline(), Some(at(1020)));
    receiver.expire(at(1020));
    let request = say(&mut receiver, at(1020));
    assert_eq!(words(&request), "INITREQ");
    hear(&mut sender, at(1025), &request);
    sender.offer(at(1025), Extent::new(84, 28), true);
    let said = say(&mut sender, at(1025));
    assert_eq!(words(&said), "INIT1");
    assert_eq!(sender.counters().sending.abandoned, 84);
    hear(&mut receiver, at(1030), &said);
    assert_eq!(receiver.deadline(), None);
    hear(&mut sender, at(1035), &say(&mut receiver, at(1030)));
    let said = say(&mut sender, at(1035));
    assert_eq!(words(&said), "1.");
    hear(&mut receiver, at(1040), &said);
    assert_eq!(received(&mut receiver), [(Extent::new(84, 28), true)]);
}

#[test]
fn initialisation_is_repeated_and_directions_are_independent() {
    let mut a = End::new(settings()).unwrap();
    let mut b = End::new(settings()).unwrap();
    a.offer(at(0), Extent::new(0, 10), true);
    say(&mut a, at(0));
    a.expire(at(1000));
    let init = say(&mut a, at(1000));
    assert_eq!(words(&init), "INIT1");
    hear(&mut b, at(1000), &init);
    hear(&mut a, at(1000), &say(&mut b, at(1000)));
    let block = say(&mut a, at(1000));
    hear(&mut b, at(1000), &block);
    hear(&mut a, at(1000), &say(&mut b, at(1000)));
    assert!(a.idle());
    a.offer(at(2000), Extent::new(10, 10), true);
    assert_eq!(words(&say(&mut a, at(2000))), "2.");
    // The other direction starts now, and leaves the numbers of this one alone.
    b.offer(at(2000), Extent::new(0, 5), true);
    hear(&mut a, at(2000), &say(&mut b, at(2000)));
    assert_eq!(words(&say(&mut a, at(2000))), "AINIT");
    assert_eq!((a.unechoed(), a.outstanding()), (10, 1));
}

#[test]
fn nobody_answers() {
    let few = Settings { enquiries: 3, ..settings() };
    let (mut sender, mut receiver, _) = three_sent(few);
    for count in 1..=4 {
        let due = sender.deadline().unwrap();
        assert_eq!(due, at(10 + 1000 * count));
        assert!(!sender.dead());
        sender.expire(due);
        assert_eq!(words(&say(&mut sender, due)), if count < 4 { "ENQ" } else { "" });
    }
    assert!(sender.dead() && sender.deadline().is_none());
    // A late answer brings it back, even one that says nothing.
    sender.receive(at(9000), Part::control(Control::Echo(Seq::NONE)));
    assert!(!sender.dead());
    assert_eq!(words(&say(&mut sender, at(9000))), "");
    assert_eq!(sender.deadline(), Some(at(10_000)));
    sender.expire(at(10_000));
    hear(&mut receiver, at(10_000), &say(&mut sender, at(10_000)));
    hear(&mut sender, at(10_000), &say(&mut receiver, at(10_000)));
    assert_eq!(words(&say(&mut sender, at(10_000))), "1m 2m 3.");
}

#[test]
fn closing_waits_and_then_gives_up() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    sender.close(at(20));
    sender.offer(at(20), Extent::new(84, 1), true);
    assert_eq!(sender.unsent(), 0);
    let mut other = sender.clone();
    hear(&mut receiver, at(25), &said);
    hear(&mut sender, at(30), &say(&mut receiver, at(25)));
    assert!(sender.closed() && sender.counters().sending.abandoned == 0);
    while let Some(due) = other.deadline().filter(|_| !other.closed()) {
        other.expire(due);
        say(&mut other, due);
        assert!(due <= at(15_020));
    }
    assert!(other.closed() && other.idle());
    assert_eq!(other.counters().sending.abandoned, 84);
}

/// Loss alone can deceive the count too, though it takes three in the right places: one that has the
/// sender go back, a trailer whose block is half there, and as many octets of the next good block.
#[test]
fn the_count_can_be_deceived_and_the_check_sum_cannot() {
    for check in [Check::Count, Check::Crc] {
        let settings = Settings { block: 64, check, ..settings() };
        let mut sender = End::connected(at(0), settings).unwrap();
        let mut receiver = End::connected(at(0), settings).unwrap();
        sender.offer(at(10), Extent::new(0, 192), true);
        let said = say(&mut sender, at(10));
        short(&said[0]).into_iter().for_each(|part| receiver.receive(at(15), part));
        hear(&mut receiver, at(15), &said[1..2]);
        receiver.receive(at(15), said[2].clone().parts(16).next().unwrap());
        let answer = say(&mut receiver, at(15));
        assert_eq!(words(&answer), "REJ0");
        hear(&mut sender, at(20), &answer);
        let again = say(&mut sender, at(20));
        again[0].clone().parts(16).skip(1).for_each(|part| receiver.receive(at(25), part));
        let deceived = (Extent::new(Extent::PATCHWORK, 64), false);
        let expected = if check == Check::Count { vec![deceived] } else { vec![] };
        assert_eq!(received(&mut receiver), expected);
        assert_eq!(receiver.counters().receiving.bad_crc, u64::from(check == Check::Crc));
    }
}

/// One good block ends a spell of errors, and so does an enquiry; the next error gets a REJ of its own.
#[test]
fn each_spell_of_errors_gets_its_reject() {
    let (mut sender, mut receiver, said) = three_sent(settings());
    let damage = |receiver: &mut End| {
        short(&said[1]).into_iter().for_each(|part| receiver.receive(at(15), part));
        words(&say(receiver, at(15)))
    };
    assert_eq!(damage(&mut receiver), "REJ0");
    assert_eq!(damage(&mut receiver), "");
    hear(&mut receiver, at(16), &said[..1]);
    assert_eq!(words(&say(&mut receiver, at(16))), "ECHO1");
    assert_eq!(damage(&mut receiver), "REJ1");
    assert_eq!(damage(&mut receiver), "");
    sender.expire(at(1010));
    hear(&mut receiver, at(1015), &say(&mut sender, at(1010)));
    assert_eq!(words(&say(&mut receiver, at(1015))), "REJ1 ACK1");
    assert_eq!(damage(&mut receiver), "REJ1");
}

/// A slow driver has sent the first of three blocks again when news of them comes.
#[test]
fn news_in_the_middle_of_going_back() {
    let reject = Part::control(Control::Rej(Seq::NONE));
    for (news, then) in [
        (Control::Echo(Seq::new(1)), "2m 3."),
        (Control::Echo(Seq::new(2)), "3."),
        (Control::Echo(Seq::new(3)), ""),
        (Control::Ack(Seq::new(1)), "2m 3."),
        (Control::Ack(Seq::new(2)), "3."),
        (Control::Ack(Seq::new(3)), ""),
    ] {
        let (mut sender, ..) = three_sent(settings());
        sender.receive(at(20), reject.clone());
        assert_eq!(word(&sender.transmit(at(20)).unwrap()), "1m");
        sender.receive(at(21), Part::control(news));
        assert_eq!(words(&say(&mut sender, at(21))), then, "{news:?}");
    }
}

/// An ECHO for a block of before must not be read as one for a block after.
#[test]
fn initialising_makes_waiting_echoes_void() {
    let slow = Settings { echo: Echo::Consumption, ..settings() };
    let (mut sender, mut receiver, said) = three_sent(slow);
    hear(&mut receiver, at(15), &said);
    sender.initialise(at(20));
    hear(&mut receiver, at(25), &say(&mut sender, at(20)));
    assert_eq!(words(&say(&mut receiver, at(25))), "AINIT");
    receiver.consumed(at(30), 84);
    assert_eq!(words(&say(&mut receiver, at(30))), "");
}

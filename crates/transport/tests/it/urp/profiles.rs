//! The differences between the implementations.

use crate::urp::talk::*;
use trunkline_transport::Extent;
use trunkline_transport::urp::{Control, Echo, Mode, Part, Profile, Seq, Settings};

/// A receiver's answers to a first block in order, a second one octet short, and a third.
fn answers_to_a_short_block(profile: Profile) -> String {
    let (_, mut receiver, said) = three_sent(with(profile));
    hear(&mut receiver, at(15), &said[..1]);
    short(&said[1]).into_iter().for_each(|part| receiver.receive(at(15), part));
    hear(&mut receiver, at(15), &said[2..]);
    words(&say(&mut receiver, at(15)))
}

#[test]
fn a_reject_for_each_bad_block_or_for_each_spell() {
    assert_eq!(answers_to_a_short_block(Profile::Trunkline), "ECHO1 REJ1");
    assert_eq!(answers_to_a_short_block(Profile::Plan9), "ECHO1 REJ1");
    assert_eq!(answers_to_a_short_block(Profile::V10), "ECHO1 REJ1 REJ1");
    assert_eq!(answers_to_a_short_block(Profile::Kmc), "ECHO1 REJ1 REJ1");
}

#[test]
fn plan9_rejects_at_once_and_the_others_behind_the_data() {
    for (profile, at_once) in
        [(Profile::Trunkline, ""), (Profile::V10, ""), (Profile::Kmc, ""), (Profile::Plan9, "REJ1")]
    {
        let slow = Settings { echo: Echo::Consumption, ..with(profile) };
        let (_, mut receiver, said) = three_sent(slow);
        hear(&mut receiver, at(15), &said[..1]);
        hear(&mut receiver, at(15), &said[2..]);
        assert_eq!(words(&say(&mut receiver, at(15))), at_once, "{profile}");
        receiver.consumed(at(16), 28);
        let then = if at_once.is_empty() { "ECHO1 REJ1" } else { "" };
        assert_eq!(words(&say(&mut receiver, at(16))), then, "{profile}");
    }
}

/// The reply of a sender of blocks 1 to 3 after `heard`; each is heard alone.
fn reply(profile: Profile, heard: &[Control]) -> String {
    let (mut sender, _, _) = three_sent(with(profile));
    speak(&mut sender, 20, heard)
}

fn speak(sender: &mut End, millis: u64, heard: &[Control]) -> String {
    heard.iter().for_each(|&control| sender.receive(at(millis), Part::control(control)));
    words(&say(sender, at(millis)))
}

fn echo(seq: u8) -> Control {
    Control::Echo(Seq::new(seq))
}
fn rej(seq: u8) -> Control {
    Control::Rej(Seq::new(seq))
}
fn ack(seq: u8) -> Control {
    Control::Ack(Seq::new(seq))
}

#[test]
fn a_reject_echoes_what_it_names_except_in_the_10th_edition() {
    assert_eq!(reply(Profile::Trunkline, &[rej(1)]), "2m 3.");
    assert_eq!(reply(Profile::Plan9, &[rej(1)]), "2m 3.");
    // The 10th edition has not heard ECHO 1, and waits for it.
    assert_eq!(reply(Profile::V10, &[rej(1)]), "");
    assert_eq!(reply(Profile::V10, &[echo(1), rej(1)]), "2m 3.");
}

#[test]
fn one_spell_of_errors_is_answered_once() {
    for profile in [Profile::Trunkline, Profile::V10, Profile::Plan9] {
        let (mut sender, ..) = three_sent(with(profile));
        assert_eq!(speak(&mut sender, 20, &[echo(1), rej(1), rej(1)]), "2m 3.", "{profile}");
        assert_eq!(speak(&mut sender, 21, &[rej(1)]), "", "{profile}");
        // An echo ends the spell.
        assert_eq!(speak(&mut sender, 22, &[echo(2), rej(2)]), "3.", "{profile}");
    }
}

#[test]
fn stale_numbers_are_passed_over() {
    for profile in Profile::ALL {
        for stale in 4..8 {
            let heard = [echo(stale), rej(stale), ack(stale)];
            assert_eq!(reply(profile, &heard), "", "{profile} {stale}");
        }
    }
}

#[test]
fn the_kmc_heeds_a_reject_only_while_it_asks() {
    let (mut sender, ..) = three_sent(with(Profile::Kmc));
    assert_eq!(speak(&mut sender, 20, &[echo(1), rej(1)]), "");
    assert_eq!(sender.deadline(), Some(at(1000)));
    sender.expire(at(1000));
    assert_eq!(speak(&mut sender, 1000, &[]), "ENQ");
    assert_eq!(speak(&mut sender, 1010, &[rej(1), ack(1)]), "2m 3.");
}

#[test]
fn what_an_acknowledgement_makes_each_resend() {
    // Two of three blocks acknowledged, one echoed, and no enquiry made.
    let unasked = |profile| reply(profile, &[echo(1), ack(2)]);
    assert_eq!(unasked(Profile::Trunkline), "");
    assert_eq!(unasked(Profile::V10), "3.");
    assert_eq!(unasked(Profile::Plan9), "");
    assert_eq!(unasked(Profile::Kmc), "");
    // An enquiry whose answer acknowledges nothing new.
    let asked = |profile: Profile| {
        let (mut sender, ..) = three_sent(with(profile));
        let due = sender.deadline().unwrap();
        sender.expire(due);
        assert_eq!(words(&say(&mut sender, due)), "ENQ");
        sender.receive(due, Part::control(ack(0)));
        words(&say(&mut sender, due))
    };
    for profile in Profile::ALL {
        assert_eq!(asked(profile), "1m 2m 3.", "{profile}");
    }
}

#[test]
fn enquiries_come_when_each_clock_says() {
    let due = |profile| three_sent(with(profile)).0.deadline().unwrap();
    assert_eq!(due(Profile::Trunkline), at(1010));
    assert_eq!(due(Profile::V10), at(2000));
    assert_eq!(due(Profile::Plan9), at(1500));
    assert_eq!(due(Profile::Kmc), at(1000));
}

#[test]
fn an_initialisation_takes_the_window_only_in_the_10th_edition() {
    for profile in Profile::ALL {
        let wide = Settings { outstanding: 7, ..with(profile) };
        let mut sender = End::connected(at(0), wide).unwrap();
        sender.receive(at(0), Part::control(Control::Init1));
        assert_eq!(words(&say(&mut sender, at(0))), "AINIT");
        sender.offer(at(1), Extent::new(0, 28 * 9), true);
        let blocks = if profile == Profile::V10 { 3 } else { 7 };
        assert_eq!(say(&mut sender, at(1)).len(), blocks, "{profile}");
    }
}

/// A second block of detection mode is lost; what the third brings.
#[test]
fn resynchronising_trailers() {
    for (profile, answer, then) in [
        (Profile::Trunkline, "ECHO1 ECHO3", "ECHO4"),
        (Profile::Kmc, "ECHO1 ECHO3", "ECHO4"),
        (Profile::V10, "ECHO1 REJ3", "ECHO4"),
        // Which never comes back: Plan 9 does not know the trailer.
        (Profile::Plan9, "ECHO1 REJ1", ""),
    ] {
        let detection = Settings { mode: Mode::Detection, ..with(profile) };
        let mut sender = End::connected(at(0), detection).unwrap();
        let mut receiver = End::connected(at(0), detection).unwrap();
        sender.offer(at(0), Extent::new(0, 84), true);
        let said = say(&mut sender, at(0));
        assert_eq!(words(&said), "1s 2s 3s");
        hear(&mut receiver, at(5), &[said[0].clone(), said[2].clone()]);
        let answers = say(&mut receiver, at(5));
        assert_eq!(words(&answers), answer, "{profile}");
        hear(&mut sender, at(10), &answers);
        sender.offer(at(10), Extent::new(84, 28), true);
        let said = say(&mut sender, at(10));
        assert_eq!(words(&said), "4s", "{profile}");
        hear(&mut receiver, at(15), &said);
        assert_eq!(words(&say(&mut receiver, at(15))), then, "{profile}");
    }
}

#[test]
fn a_duplicate_is_rejected_except_by_the_default_which_knows_it() {
    for (profile, answer) in [
        (Profile::Trunkline, ""),
        (Profile::V10, "REJ3"),
        (Profile::Plan9, "REJ3"),
        (Profile::Kmc, "REJ3"),
    ] {
        let (_, mut receiver, said) = three_sent(with(profile));
        hear(&mut receiver, at(15), &said);
        assert_eq!(words(&say(&mut receiver, at(15))), "ECHO1 ECHO2 ECHO3");
        hear(&mut receiver, at(16), &said[1..2]);
        assert_eq!(words(&say(&mut receiver, at(16))), answer, "{profile}");
    }
}

#[test]
fn a_check_keeps_the_partial_block_in_plan9_only() {
    for profile in Profile::ALL {
        let (_, mut receiver, said) = three_sent(with(profile));
        let parts: Vec<_> = said[0].clone().parts(16).collect();
        receiver.receive(at(15), parts[0].clone());
        receiver.receive(at(15), Part::control(Control::Check));
        receiver.receive(at(15), parts[1].clone());
        let answer = if profile == Profile::Plan9 { "ACK0 ECHO1" } else { "ACK0 REJ0" };
        assert_eq!(words(&say(&mut receiver, at(15))), answer, "{profile}");
    }
}

/// The last ECHO is lost, and a duplicate makes the receiver's last answer a REJ: the 10th edition asks
/// for ever, for neither that REJ nor the ACK moves its window. Initialising helps, and loses nothing.
#[test]
fn a_lost_echo_and_a_duplicate_leave_the_10th_edition_stuck() {
    for profile in Profile::ALL {
        let (mut sender, mut receiver, said) = three_sent(with(profile));
        hear(&mut receiver, at(15), &said);
        hear(&mut receiver, at(15), &said[2..]);
        let lost = words(&say(&mut receiver, at(15)));
        assert!(lost.starts_with("ECHO1 ECHO2 ECHO3"));
        for _ in 0..4 {
            let Some(due) = sender.deadline() else { break };
            sender.expire(due);
            hear(&mut receiver, due, &say(&mut sender, due));
            hear(&mut sender, due, &say(&mut receiver, due));
        }
        assert_eq!(sender.idle(), profile != Profile::V10, "{profile}");
        assert_eq!(received(&mut receiver), whole());
    }
}

/// Plan 9 rejects at once and reads a REJ as an ECHO, so that its window opens before the consumer has
/// taken what came before.
#[test]
fn in_plan9_a_reject_outruns_the_consumer() {
    let slow = Settings { echo: Echo::Consumption, ..with(Profile::Plan9) };
    let (mut sender, mut receiver, said) = three_sent(slow);
    sender.offer(at(10), Extent::new(84, 84), true);
    hear(&mut receiver, at(15), &said[..2]);
    short(&said[2]).into_iter().for_each(|part| receiver.receive(at(15), part));
    let answer = say(&mut receiver, at(15));
    assert_eq!(words(&answer), "REJ2");
    hear(&mut sender, at(20), &answer);
    assert_eq!(words(&say(&mut sender, at(20))), "3. 4m 5m");
}

#[test]
fn the_kmc_does_not_go_back_once_something_new_was_sent_since_it_asked() {
    let (mut sender, ..) = three_sent(with(Profile::Kmc));
    sender.offer(at(10), Extent::new(84, 28), true);
    sender.expire(at(1000));
    assert_eq!(speak(&mut sender, 1000, &[]), "ENQ");
    assert_eq!(speak(&mut sender, 1010, &[echo(1)]), "4.");
    assert_eq!(speak(&mut sender, 1010, &[ack(1)]), "");
    sender.expire(at(2000));
    assert_eq!(speak(&mut sender, 2000, &[]), "ENQ");
    assert_eq!(speak(&mut sender, 2010, &[echo(1), ack(1)]), "2m 3. 4.");
}

//! The grades of service other than full block mode, and what goes beside the blocks.

use crate::urp::talk::*;
use trunkline_transport::urp::{Control, Echo, Mode, Part, Settings, SettingsError, User};
use trunkline_transport::{Endpoint, Extent};

fn pair(settings: Settings) -> (End, End) {
    (End::connected(at(0), settings).unwrap(), End::connected(at(0), settings).unwrap())
}

#[test]
fn raw_characters_just_go() {
    let raw = Settings { mode: Mode::Raw, ..settings() };
    let mut sender = End::new(raw).unwrap();
    let mut receiver = End::new(raw).unwrap();
    sender.offer(at(0), Extent::new(0, 70), true);
    let said = say(&mut sender, at(0));
    assert_eq!(words(&said), "INIT0 [28] [28] [14]");
    assert!(sender.idle() && sender.deadline().is_none());
    hear(&mut receiver, at(5), &said);
    assert_eq!(words(&say(&mut receiver, at(5))), "AINIT");
    let got: u32 =
        received(&mut receiver).iter().map(|(data, end)| data.len + u32::from(*end)).sum();
    assert_eq!(got, 70);
}

#[test]
fn characters_with_flow_control_wait_for_an_echo() {
    let characters = Settings { mode: Mode::Character, echo: Echo::Consumption, ..settings() };
    let (mut sender, mut receiver) = pair(characters);
    sender.offer(at(0), Extent::new(0, 20), true);
    sender.offer(at(0), Extent::new(20, 20), true);
    let said = say(&mut sender, at(0));
    assert_eq!(words(&said), "[20] [8]SEQ1");
    assert!(sender.blocked() && (sender.unsent(), sender.unechoed()) == (12, 28));
    hear(&mut receiver, at(5), &said);
    assert_eq!(words(&say(&mut receiver, at(5))), "");
    // Ten ticks of a 60 Hz clock later the number is sent again.
    let due = sender.deadline().unwrap();
    assert_eq!(due.as_nanos(), 166_666_666);
    sender.expire(due);
    let again = say(&mut sender, due);
    assert_eq!(words(&again), "SEQ1");
    receiver.consumed(at(170), 28);
    let echo = say(&mut receiver, at(170));
    assert_eq!(words(&echo), "ECHO1");
    hear(&mut sender, at(175), &echo);
    assert_eq!(words(&say(&mut sender, at(175))), "[12]");
    assert!(sender.idle() && sender.deadline().is_none());
    hear(&mut receiver, at(176), &again);
    assert_eq!(words(&say(&mut receiver, at(176))), "ECHO1");
}

/// Ends of messages are an octet of control, which no user octet can be taken for. A request is done when all of
/// it is sent and no number behind it waits for an echo.
#[test]
fn characters_carry_the_ends_of_messages_if_asked() {
    let characters = Settings { mode: Mode::Character, eot: true, ..settings() };
    let (mut sender, mut receiver) = pair(characters);
    for (offset, len, end) in [(0, 20, true), (20, 0, true), (20, 8, false), (28, 6, true)] {
        sender.offer(at(0), Extent::new(offset, len), end);
    }
    let said = say(&mut sender, at(0));
    assert_eq!(words(&said), "[20]USER(USER(121)) [0]USER(USER(121)) [8]SEQ1");
    assert_eq!((sender.unsent(), sender.unechoed(), Endpoint::answered(&sender)), (6, 28, 2));
    // In packets of 16.
    hear(&mut receiver, at(5), &said);
    assert_eq!(
        received(&mut receiver),
        [
            (Extent::new(0, 16), false),
            (Extent::new(16, 4), true),
            (Extent::default(), true),
            (Extent::new(20, 8), false),
        ]
    );
    hear(&mut sender, at(10), &say(&mut receiver, at(5)));
    assert_eq!(words(&say(&mut sender, at(10))), "[6]USER(USER(121))");
    assert!(sender.idle() && Endpoint::answered(&sender) == 4);
    let units = [(0, true), (0, false), (5, false), (500, true)];
    let units = units.map(|(bytes, end)| Endpoint::units_of(&sender, bytes, end));
    assert_eq!(units, [1, 0, 1, 1]);
}

/// Each direction of a channel has a mode of its own.
#[test]
fn an_end_hears_another_mode_than_its_own() {
    let blocks = settings();
    let characters = Settings { mode: Mode::Character, eot: true, ..blocks };
    let mut typist = End::connected(at(0), characters).unwrap().hearing(Mode::Block);
    let mut host =
        End::connected(at(0), Settings { eot: true, ..blocks }).unwrap().hearing(Mode::Character);
    typist.offer(at(0), Extent::new(0, 3), true);
    host.offer(at(0), Extent::new(0, 40), true);
    hear(&mut host, at(5), &say(&mut typist, at(0)));
    hear(&mut typist, at(5), &say(&mut host, at(0)));
    assert_eq!(received(&mut host), [(Extent::new(0, 3), true)]);
    let answer = received(&mut typist);
    assert_eq!(answer, [(Extent::new(0, 28), false), (Extent::new(28, 12), true)]);
}

#[test]
fn detection_gives_up_what_an_enquiry_does_not_find() {
    let detection = Settings { mode: Mode::Detection, ..settings() };
    let (mut sender, mut receiver) = pair(detection);
    sender.offer(at(0), Extent::new(0, 84), true);
    let said = say(&mut sender, at(0));
    hear(&mut receiver, at(5), &said[..1]);
    hear(&mut sender, at(10), &say(&mut receiver, at(5)));
    sender.expire(at(1010));
    hear(&mut receiver, at(1015), &say(&mut sender, at(1010)));
    hear(&mut sender, at(1020), &say(&mut receiver, at(1015)));
    assert!(sender.idle() && words(&say(&mut sender, at(1020))).is_empty());
    assert_eq!(sender.counters().sending.abandoned, 56);
    // The next block finds a gap before it and is left out too; then all is well again.
    sender.offer(at(2000), Extent::new(84, 56), true);
    hear(&mut receiver, at(2005), &say(&mut sender, at(2000)));
    assert_eq!(words(&say(&mut receiver, at(2005))), "ECHO4 ECHO5");
    let got = received(&mut receiver);
    assert_eq!(got, [(Extent::new(0, 28), true), (Extent::new(112, 28), true)]);
}

#[test]
fn express_data_overtake_a_closed_window() {
    let (mut sender, mut receiver, _) = three_sent(settings());
    sender.offer(at(10), Extent::new(84, 28), true);
    sender.send_express([3, 28]);
    let said = say(&mut sender, at(10));
    assert_eq!(said.len(), 1);
    hear(&mut receiver, at(15), &said);
    assert_eq!((receiver.take_express(), receiver.take_express()), (Some([3, 28]), None));
}

#[test]
fn user_controls_go_in_order_and_count() {
    let (mut sender, mut receiver) = pair(settings());
    sender.offer(at(0), Extent::new(0, 5), false);
    sender.offer_user(at(0), User::BREAK);
    sender.offer(at(0), Extent::new(5, 5), true);
    assert_eq!(sender.unsent(), 11);
    let said = say(&mut sender, at(0));
    assert_eq!(words(&said), "1m 2m 3.");
    hear(&mut receiver, at(5), &said);
    let got = all(&mut receiver);
    let users: Vec<_> = got.iter().map(|piece| (piece.data.len, piece.user, piece.end)).collect();
    assert_eq!(users, [(5, None, false), (0, Some(User::BREAK), false), (5, None, true)]);
    assert_eq!(got[1].len(), 1);
    hear(&mut sender, at(10), &say(&mut receiver, at(5)));
    assert!(sender.idle());
}

/// As another implementation may send it: a control between the octets of one block.
#[test]
fn a_user_control_inside_a_block_is_counted_with_it() {
    let (mut sender, mut receiver) = pair(settings());
    sender.offer(at(0), Extent::new(0, 9), true);
    let Some(part) = say(&mut sender, at(0))[0].clone().parts(0).next() else { unreachable!() };
    let mut trailer = part.trailer.unwrap();
    trailer.length = Some(10);
    receiver.receive(at(5), Part::data(Extent::new(0, 4)));
    receiver.receive(at(5), Part::control(Control::User(User::delay(2))));
    receiver.receive(at(5), Part::data(Extent::new(4, 5)));
    receiver.receive(at(5), Part::trailer(trailer));
    let got = all(&mut receiver);
    let pieces: Vec<_> = got.iter().map(|piece| (piece.data.len, piece.user, piece.end)).collect();
    assert_eq!(pieces, [(4, Some(User::delay(2)), false), (5, None, true)]);
}

#[test]
fn empty_messages_arrive_and_nothing_is_nothing() {
    let (mut sender, mut receiver) = pair(Settings { echo: Echo::Consumption, ..settings() });
    sender.offer(at(0), Extent::default(), false);
    assert!(sender.idle());
    sender.offer(at(0), Extent::default(), true);
    hear(&mut receiver, at(5), &say(&mut sender, at(0)));
    let got = all(&mut receiver);
    assert!(got.len() == 1 && got[0].is_empty() && got[0].end);
    assert_eq!(words(&say(&mut receiver, at(5))), "ECHO1");
}

#[test]
fn a_full_block_at_the_end_of_a_message_needs_no_empty_one() {
    let (mut sender, _) = pair(settings());
    sender.offer(at(0), Extent::new(0, 56), true);
    sender.offer(at(0), Extent::new(56, 1), false);
    assert_eq!(words(&say(&mut sender, at(0))), "1m 2. 3m");
}

#[test]
fn bad_settings_make_no_end() {
    let wide = Settings { outstanding: 8, ..settings() };
    assert_eq!(End::new(wide).unwrap_err(), SettingsError::Outstanding(8));
}

//! The exchanges that the sources describe, character for character.

use trunkline_core::{Span, Time};
use trunkline_transport::Extent;
use trunkline_transport::urp::{Control, Delivery, Kind, Part, Segment, Seq, Settings, Urp};

type End = Urp<Extent>;

/// What an end says, in short: `2m` a block that is followed by more, `3.` the last of a message,
/// `ECHO1` a control.
fn word(segment: &Segment<Extent>) -> String {
    match segment {
        Segment::Block(block) => {
            let mark = match block.kind {
                Kind::Bot => '.',
                Kind::Botm => 'm',
                Kind::Bots => 's',
            };
            format!("{}{mark}", block.seq)
        }
        Segment::Characters(characters) => match characters.control {
            Some(control) => format!("[{}]{}", characters.data.len, control_word(control)),
            None => format!("[{}]", characters.data.len),
        },
        Segment::Control(control) => control_word(*control),
    }
}

fn control_word(control: Control) -> String {
    match control {
        Control::Seq(seq) => format!("SEQ{seq}"),
        Control::Echo(seq) => format!("ECHO{seq}"),
        Control::Rej(seq) => format!("REJ{seq}"),
        Control::Ack(seq) => format!("ACK{seq}"),
        Control::InitReq => "INITREQ".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

fn words(segments: &[Segment<Extent>]) -> String {
    segments.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn say(end: &mut End, now: Time) -> Vec<Segment<Extent>> {
    std::iter::from_fn(|| end.transmit(now)).collect()
}

fn hear(end: &mut End, now: Time, segments: &[Segment<Extent>]) {
    for part in segments.iter().flat_map(|segment| segment.clone().parts(16)) {
        end.receive(now, part);
    }
}

fn settings() -> Settings {
    Settings { block: 28, outstanding: 3, ..Settings::default() }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn all(end: &mut End) -> Vec<Delivery<Extent>> {
    std::iter::from_fn(|| end.take()).collect()
}

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

//! Two ends, and what they say to each other in short.

use trunkline_core::{Span, Time};
use trunkline_transport::Extent;
use trunkline_transport::urp::{
    Control, Delivery, Part, Profile, Segment, Settings, TrailerKind, Urp,
};

pub type End = Urp<Extent>;

/// The saying of an end, in short: `2m` a block that is followed by more, `3.` the last of a message,
/// `ECHO1` a control.
pub fn word(segment: &Segment<Extent>) -> String {
    match segment {
        Segment::Block(block) => {
            let mark = match block.kind {
                TrailerKind::Bot => '.',
                TrailerKind::Botm => 'm',
                TrailerKind::Bots => 's',
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

pub fn control_word(control: Control) -> String {
    match control {
        Control::Seq(seq) => format!("SEQ{seq}"),
        Control::Echo(seq) => format!("ECHO{seq}"),
        Control::Rej(seq) => format!("REJ{seq}"),
        Control::Ack(seq) => format!("ACK{seq}"),
        Control::InitReq => "INITREQ".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

pub fn words(segments: &[Segment<Extent>]) -> String {
    segments.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub fn say(end: &mut End, now: Time) -> Vec<Segment<Extent>> {
    std::iter::from_fn(|| end.transmit(now)).collect()
}

pub fn hear(end: &mut End, now: Time, segments: &[Segment<Extent>]) {
    for part in segments.iter().flat_map(|segment| segment.clone().parts(16)) {
        end.receive(now, part);
    }
}

pub fn settings() -> Settings {
    Settings { block: 28, outstanding: 3, ..Settings::default() }
}

pub fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

pub fn all(end: &mut End) -> Vec<Delivery<Extent>> {
    std::iter::from_fn(|| end.take()).collect()
}

/// A sender with three blocks of 28 octets sent at 10 ms, and a receiver that has heard nothing.
pub fn three_sent(settings: Settings) -> (End, End, Vec<Segment<Extent>>) {
    let mut sender = End::connected(at(0), settings).unwrap();
    let receiver = End::connected(at(0), settings).unwrap();
    sender.offer(at(10), Extent::new(0, 84), true);
    let said = say(&mut sender, at(10));
    assert_eq!(words(&said), "1m 2m 3.");
    (sender, receiver, said)
}

/// The block as parts of 16 envelopes, one octet of data missing.
pub fn short(block: &Segment<Extent>) -> Vec<Part<Extent>> {
    let mut parts: Vec<_> = block.clone().parts(16).collect();
    parts[0].data.len -= 1;
    parts
}

pub fn with(profile: Profile) -> Settings {
    Settings { profile, ..settings() }
}

pub fn received(end: &mut End) -> Vec<(Extent, bool)> {
    all(end).into_iter().map(|piece| (piece.data, piece.end)).collect()
}

pub fn whole() -> Vec<(Extent, bool)> {
    vec![(Extent::new(0, 28), false), (Extent::new(28, 28), false), (Extent::new(56, 28), true)]
}

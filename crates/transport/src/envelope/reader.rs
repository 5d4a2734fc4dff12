//! From envelopes to what an end hears.

use super::Envelope;
use crate::urp::{Check, Control, Part, Seq, Trailer, TrailerKind, User, octet};

/// Up to four octets that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Octets {
    held: [u8; 4],
    count: usize,
}

impl Octets {
    /// Takes one more, if fewer than `most` are held.
    fn take(&mut self, octet: u8, most: usize) -> bool {
        let room = self.count < most.min(4);
        if room {
            self.held[self.count] = octet;
            self.count += 1;
        }
        room
    }
}

/// The part that the next octets of data belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The user.
    Plain,
    /// The check sum.
    Crc(Octets),
    /// The length in the trailer.
    Trailer(TrailerKind, Octets, Option<u32>),
}

/// Reads one direction of one channel, envelope by envelope, over packets of any size.
///
/// It keeps to the rules of the receivers in the field. The two octets of data after the begin of a trailer
/// are its length; if a third comes, the trailer is void and the octet is the user's. Controls of
/// the other direction may come anywhere. NULs, envelopes of bad parity and unknown controls are passed
/// over.
#[derive(Debug, Clone)]
pub struct Reader {
    check: Check,
    state: State,
    express: Option<Octets>,
    data: Vec<u8>,
}

impl Reader {
    /// A reader of a channel whose ends use `check`.
    pub fn new(check: Check) -> Reader {
        Reader { check, state: State::Plain, express: None, data: Vec::new() }
    }

    /// Reads what the envelopes say. Data are handed over at the latest with the last envelope.
    pub fn read(&mut self, envelopes: &[Envelope]) -> Vec<Part<Vec<u8>>> {
        let mut parts = Vec::new();
        for envelope in envelopes.iter().filter(|envelope| envelope.is_good()) {
            if envelope.is_data() {
                self.data(envelope.octet());
            } else {
                self.control(envelope.octet(), &mut parts);
            }
        }
        if !self.data.is_empty() {
            parts.push(Part::data(std::mem::take(&mut self.data)));
        }
        parts
    }

    fn data(&mut self, octet: u8) {
        if let Some(express) = &mut self.express {
            if express.take(octet, 2) {
                return;
            }
            // More than two: no express data.
            self.express = None;
        }
        let taken = match &mut self.state {
            State::Plain => false,
            State::Crc(octets) => octets.take(octet, 4),
            State::Trailer(_, octets, _) => octets.take(octet, 2),
        };
        if !taken {
            self.state = State::Plain;
            self.data.push(octet);
        }
    }

    fn control(&mut self, octet: u8, parts: &mut Vec<Part<Vec<u8>>>) {
        match octet {
            octet::BOT => self.begin_trailer(TrailerKind::Bot),
            octet::BOTM => self.begin_trailer(TrailerKind::Botm),
            octet::BOTS => self.begin_trailer(TrailerKind::Bots),
            octet::SOI => self.express = Some(Octets::default()),
            octet::EOI => self.end_express(parts),
            _ => match octet::read(octet) {
                Some(Control::Seq(seq)) => self.number(seq, parts),
                Some(control) => self.other(control, parts),
                None => {}
            },
        }
    }

    fn begin_trailer(&mut self, kind: TrailerKind) {
        let crc = match self.state {
            State::Crc(Octets { held, count: 4 }) => Some(u32::from_le_bytes(held)),
            _ => None,
        };
        self.state = State::Trailer(kind, Octets::default(), crc);
    }

    fn end_express(&mut self, parts: &mut Vec<Part<Vec<u8>>>) {
        if let Some(Octets { held: [first, second, ..], count: 2 }) = self.express.take() {
            self.push(Control::Express([first, second]), parts);
        }
    }

    fn number(&mut self, seq: Seq, parts: &mut Vec<Part<Vec<u8>>>) {
        let State::Trailer(kind, octets, crc) = std::mem::replace(&mut self.state, State::Plain)
        else {
            return self.push(Control::Seq(seq), parts);
        };
        let length =
            (octets.count == 2).then(|| u16::from_le_bytes([octets.held[0], octets.held[1]]));
        let trailer = Some(Trailer { kind, length, seq, crc });
        parts.push(Part { data: std::mem::take(&mut self.data), control: None, trailer });
    }

    fn other(&mut self, control: Control, parts: &mut Vec<Part<Vec<u8>>>) {
        match control {
            Control::User(User::CRC) if self.check == Check::Crc => {
                self.state = State::Crc(Octets::default());
                return;
            }
            // What lies before the barrier goes, a trailer in the making too.
            Control::Enq | Control::Init0 | Control::Init1 => self.state = State::Plain,
            _ => {}
        }
        self.push(control, parts);
    }

    fn push(&mut self, control: Control, parts: &mut Vec<Part<Vec<u8>>>) {
        let data = std::mem::take(&mut self.data);
        parts.push(Part { data, control: Some(control), trailer: None });
    }
}

#[cfg(test)]
mod tests {
    use super::super::write;
    use super::*;
    use proptest::prelude::*;

    fn envelopes(text: &[(u8, bool)]) -> Vec<Envelope> {
        let envelope = |&(octet, data)| match data {
            true => Envelope::data(octet),
            false => Envelope::control(octet),
        };
        text.iter().map(envelope).collect()
    }

    const D: bool = true;
    const C: bool = false;

    fn read(text: &[(u8, bool)]) -> Vec<Part<Vec<u8>>> {
        Reader::new(Check::Count).read(&envelopes(text))
    }

    fn trailer(length: Option<u16>) -> Option<Trailer> {
        Some(Trailer { kind: TrailerKind::Bot, length, seq: Seq::new(1), crc: None })
    }

    #[test]
    fn trailers_whole_torn_and_void() {
        let whole = [(9, D), (0x28, C), (1, D), (0, D), (0x09, C)];
        assert_eq!(
            read(&whole),
            [Part { data: vec![9], control: None, trailer: trailer(Some(1)) }]
        );
        assert_eq!(read(&[(0x28, C), (1, D), (0x09, C)])[0].trailer, trailer(None));
        let no_begin = read(&[(1, D), (0, D), (0x09, C)]);
        let bare = Some(Control::Seq(Seq::new(1)));
        assert_eq!(no_begin, [Part { data: vec![1, 0], control: bare, trailer: None }]);
        let void = read(&[(0x28, C), (1, D), (0, D), (7, D), (0x09, C)]);
        assert_eq!(void, [Part { data: vec![7], control: bare, trailer: None }]);
    }

    #[test]
    fn the_other_direction_and_fill_may_come_anywhere() {
        let parts = read(&[(0x28, C), (0, C), (0, D), (0x13, C), (0, D), (0x81, C), (0x09, C)]);
        assert_eq!(parts[0], Part::control(Control::Echo(Seq::new(3))));
        assert_eq!(parts[1].trailer, trailer(Some(0)));
        let enquired = read(&[(0x28, C), (0, D), (0x2d, C), (0, D), (0x09, C)]);
        assert_eq!(enquired[0], Part::control(Control::Enq));
        assert_eq!(enquired[1].control, Some(Control::Seq(Seq::new(1))));
    }

    #[test]
    fn express_data_are_exactly_two_octets() {
        let express = Part::control(Control::Express([1, 2]));
        assert_eq!(read(&[(0x2b, C), (1, D), (2, D), (0x2c, C)]), [express]);
        assert_eq!(read(&[(0x2b, C), (1, D), (0x2c, C)]), []);
        let long = read(&[(0x2b, C), (1, D), (2, D), (3, D), (0x2c, C)]);
        assert_eq!(long, [Part::data(vec![3])]);
    }

    #[test]
    fn a_check_sum_is_read_where_both_ends_have_it() {
        let text =
            [(9, D), (0x78, C), (1, D), (2, D), (3, D), (4, D), (0x28, C), (6, D), (0, D), (9, C)];
        let parts = Reader::new(Check::Crc).read(&envelopes(&text));
        assert_eq!(parts[0].trailer.unwrap().crc, Some(0x0403_0201));
        assert_eq!((parts.len(), parts[0].data.clone()), (1, vec![9]));
        assert_eq!(read(&text)[0].control, Some(Control::User(User::CRC)));
        let torn = Reader::new(Check::Crc).read(&envelopes(&[&text[..4], &text[5..]].concat()));
        assert_eq!(torn[0].trailer.unwrap().crc, None);
    }

    #[test]
    fn the_state_outlives_a_packet() {
        let mut reader = Reader::new(Check::Count);
        assert_eq!(reader.read(&envelopes(&[(5, D), (0x28, C), (1, D)])), [Part::data(vec![5])]);
        let rest = reader.read(&envelopes(&[(0, D), (9, C)]));
        assert_eq!(rest[0].trailer, trailer(Some(1)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_and_what_was_read_is_written_the_same(
            // Mostly octets that mean something.
            words in prop::collection::vec((prop_oneof![0x08..0x34u8, any::<u8>()], any::<bool>()), 0..200),
            crc in any::<bool>(),
        ) {
            let check = if crc { Check::Crc } else { Check::Count };
            let parts = Reader::new(check).read(&envelopes(&words));
            let mut written = Vec::new();
            parts.iter().for_each(|part| write(part, &mut written));
            prop_assert!(written.len() <= words.len());
            prop_assert_eq!(Reader::new(check).read(&written), parts);
        }
    }
}

//! Backplane packets, as 16-bit words and packed into octets.

use super::{DATA, Envelope, PARITY_GOOD};

/// Envelopes after the channel's number (Hawley 1989 §2.3, Vande Water 1988).
const CAPACITY: usize = 16;
/// Marks the words of a channel's number.
const CHANNEL_MARK: u16 = 0x0200;

/// Words of a packet.
pub const WORDS: usize = 2 + CAPACITY;
/// Octets of a packed packet: the channel, sixteen octets, and a bit for each that is a control.
pub const PACKED: usize = 2 + CAPACITY + CAPACITY / 8;
/// The highest channel: host drivers keep nine bits.
pub const MOST_CHANNEL: u16 = 511;

/// A packet of Datakit's backplane: the envelopes without the NULs that fill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    channel: u16,
    envelopes: Vec<Envelope>,
}

/// The reason for refusing a packet. As in the 8th edition's driver, all of it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many envelopes to go in.
    #[error("{0} envelopes do not fit into one packet: cut them into runs of at most 16")]
    TooMany(usize),
    /// No such channel.
    #[error("there is no channel {0} for data: use 1 to 511")]
    Channel(u16),
    /// Not as long as a packet.
    #[error("a packet has {expected} units, not {found}: fill it with NULs")]
    Length {
        /// Units that came.
        found: usize,
        /// 18 words or 20 octets.
        expected: usize,
    },
    /// A word with a bad parity.
    #[error("word {0} of the packet has a bad parity: drop the packet, URP asks for it again")]
    Parity(usize),
    /// A channel mark stands in the wrong word, or is missing from the right one.
    #[error(
        "word {0} of the packet has its channel mark wrong: begin at the next two marked words"
    )]
    Mark(usize),
    /// A word with bits that mean nothing.
    #[error(
        "word {0} of the packet has unknown bits: send 0x8000, 0x0200, 0x0100 and an octet only"
    )]
    Bits(usize),
}

impl Packet {
    /// A packet of at most 16 envelopes for `channel`. NULs and damaged envelopes are left out.
    pub fn new(channel: u16, envelopes: &[Envelope]) -> Result<Packet, Refused> {
        if channel == 0 || channel > MOST_CHANNEL {
            return Err(Refused::Channel(channel));
        }
        if envelopes.len() > CAPACITY {
            return Err(Refused::TooMany(envelopes.len()));
        }
        let worth = |envelope: &&Envelope| envelope.is_good() && **envelope != Envelope::NUL;
        Ok(Packet { channel, envelopes: envelopes.iter().filter(worth).copied().collect() })
    }

    /// The channel.
    pub fn channel(&self) -> u16 {
        self.channel
    }
    /// The envelopes, at most 16, no NUL among them.
    pub fn envelopes(&self) -> &[Envelope] {
        &self.envelopes
    }

    /// As words of the host interface, low octet of the channel first.
    pub fn words(&self) -> [u16; WORDS] {
        let mut words = [Envelope::NUL.word(); WORDS];
        for (word, octet) in words.iter_mut().zip(self.channel.to_le_bytes()) {
            *word = u16::from(octet) | CHANNEL_MARK | PARITY_GOOD;
        }
        for (word, envelope) in words[2..].iter_mut().zip(&self.envelopes) {
            *word = envelope.word();
        }
        words
    }

    /// A packet from words of the host interface.
    pub fn from_words(words: &[u16]) -> Result<Packet, Refused> {
        let length = Refused::Length { found: words.len(), expected: WORDS };
        let words: &[u16; WORDS] = words.try_into().map_err(|_| length)?;
        for (index, &word) in words.iter().enumerate() {
            check(index, word)?;
        }
        let channel = u16::from_le_bytes([words[0] as u8, words[1] as u8]);
        let envelopes: Vec<Envelope> =
            words[2..].iter().filter_map(|&word| Envelope::from_word(word)).collect();
        Packet::new(channel, &envelopes)
    }

    /// Packed: the channel, the octets, then bit `i` of 16 set if envelope `i` is a control, all low
    /// octet first. The carrier is trusted for the parity.
    pub fn pack(&self) -> [u8; PACKED] {
        let mut packed = [0; PACKED];
        packed[..2].copy_from_slice(&self.channel.to_le_bytes());
        let mut controls = u16::MAX;
        for (index, envelope) in self.envelopes.iter().enumerate() {
            packed[2 + index] = envelope.octet();
            controls &= !(u16::from(envelope.is_data()) << index);
        }
        packed[2 + CAPACITY..].copy_from_slice(&controls.to_le_bytes());
        packed
    }

    /// A packet that was [packed](Packet::pack).
    pub fn unpack(packed: &[u8]) -> Result<Packet, Refused> {
        let length = Refused::Length { found: packed.len(), expected: PACKED };
        let packed: &[u8; PACKED] = packed.try_into().map_err(|_| length)?;
        let channel = u16::from_le_bytes([packed[0], packed[1]]);
        let controls = u16::from_le_bytes([packed[PACKED - 2], packed[PACKED - 1]]);
        let envelope = |index: usize| match controls >> index & 1 {
            0 => Envelope::data(packed[2 + index]),
            _ => Envelope::control(packed[2 + index]),
        };
        let envelopes: Vec<Envelope> = (0..CAPACITY).map(envelope).collect();
        Packet::new(channel, &envelopes)
    }
}

fn check(index: usize, word: u16) -> Result<(), Refused> {
    if word & PARITY_GOOD == 0 {
        return Err(Refused::Parity(index));
    }
    if (word & CHANNEL_MARK != 0) != (index < 2) {
        return Err(Refused::Mark(index));
    }
    let known = if index < 2 { CHANNEL_MARK } else { DATA };
    if word & !(0xff | PARITY_GOOD | known) != 0 {
        return Err(Refused::Bits(index));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> Packet {
        Packet::new(0x102, &[Envelope::data(0), Envelope::control(0x2d)]).unwrap()
    }

    #[test]
    fn a_packet_is_filled_with_nuls() {
        let words = some().words();
        assert_eq!(words[..4], [0x8202, 0x8201, 0x8100, 0x802d]);
        assert!(words[4..].iter().all(|&word| word == 0x8000));
        let packed = some().pack();
        assert_eq!(
            (packed[..4].to_vec(), packed[18..].to_vec()),
            (vec![2, 1, 0, 0x2d], vec![0xfe, 0xff])
        );
    }

    #[test]
    fn a_torn_or_damaged_packet_is_refused_whole() {
        let good = some().words();
        let change = |index: usize, word: u16| {
            let mut words = good;
            words[index] = word;
            Packet::from_words(&words).unwrap_err()
        };
        assert_eq!(change(5, 0x0000), Refused::Parity(5));
        assert_eq!(change(9, 0x8201), Refused::Mark(9));
        assert_eq!(change(1, 0x8001), Refused::Mark(1));
        assert_eq!(change(2, 0x8500), Refused::Bits(2));
        assert_eq!(change(1, 0x8202), Refused::Channel(0x202));
        assert_eq!(
            Packet::from_words(&good[..17]).unwrap_err(),
            Refused::Length { found: 17, expected: 18 }
        );
        assert_eq!(Packet::unpack(&[]).unwrap_err(), Refused::Length { found: 0, expected: 20 });
        assert_eq!(Packet::new(0, &[]).unwrap_err(), Refused::Channel(0));
        assert_eq!(Packet::new(1, &[Envelope::NUL; 17]).unwrap_err(), Refused::TooMany(17));
    }

    proptest! {
        #[test]
        fn both_codings_carry_every_packet(
            channel in 1..=MOST_CHANNEL,
            content in prop::collection::vec((any::<u8>(), any::<bool>()), 0..=CAPACITY),
        ) {
            let envelope = |(octet, data)| match data {
                true => Envelope::data(octet),
                false => Envelope::control(octet),
            };
            let envelopes: Vec<Envelope> = content.into_iter().map(envelope).collect();
            let packet = Packet::new(channel, &envelopes).unwrap();
            prop_assert_eq!(&Packet::from_words(&packet.words()).unwrap(), &packet);
            prop_assert_eq!(&Packet::unpack(&packet.pack()).unwrap(), &packet);
        }
    }
}

//! The check sum of the optional extension: CRC-32 (IEEE 802.3) over a block's octets and user controls,
//! its kind and its number.

use super::control::TrailerKind;
use super::seq::Seq;
use crate::Payload;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// A check sum in the making.
#[derive(Debug, Clone)]
pub(crate) struct Crc(u32);

impl Crc {
    pub fn new() -> Crc {
        Crc(u32::MAX)
    }

    fn octet(&mut self, octet: u8) {
        self.0 = self.0 >> 8 ^ TABLE[((self.0 ^ u32::from(octet)) & 0xff) as usize];
    }

    pub fn payload<P: Payload>(&mut self, data: &P) {
        (0..data.len()).for_each(|index| self.octet(data.octet(index)));
    }

    /// A user control; a step of its own tells it from the same octet of data.
    pub fn control(&mut self, octet: u8) {
        self.octet(octet);
        self.0 = !self.0;
    }

    pub fn finish(mut self, kind: TrailerKind, seq: Seq) -> u32 {
        self.octet(kind.octet());
        self.octet(seq.get());
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crc_that_everybody_computes() {
        let mut crc = Crc::new();
        crc.payload(&b"123456789".to_vec());
        assert_eq!(!crc.0, 0xcbf4_3926);
    }

    #[test]
    fn a_control_is_not_the_octet_and_numbers_count() {
        let sum = |feed: fn(&mut Crc), seq| {
            let mut crc = Crc::new();
            feed(&mut crc);
            crc.finish(TrailerKind::Bot, Seq::new(seq))
        };
        let data = sum(|crc| crc.payload(&vec![0o110u8]), 1);
        assert_ne!(data, sum(|crc| crc.control(0o110), 1));
        assert_ne!(data, sum(|crc| crc.payload(&vec![0o110u8]), 2));
    }
}

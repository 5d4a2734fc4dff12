//! The control characters of URP (8th and 10th edition, Plan 9 and the KMC microcode agree on them).

use super::seq::Seq;

/// A control that the users exchange inside the stream of data, octal 0100 to 0177. It counts one octet
/// in the length of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct User(u8);

impl User {
    /// The break condition of a line.
    pub const BREAK: User = User(0o110);
    /// The mark before the check sum of [`Check::Crc`](super::Check::Crc).
    pub const CRC: User = User(0o170);
    /// The end of a message where there are no trailers, as [`Settings::eot`](super::Settings::eot) asks.
    pub const EOT: User = User(0o171);

    /// The user control `octet`, or `None` outside octal 0100 to 0177.
    pub const fn new(octet: u8) -> Option<User> {
        if octet >= 0o100 && octet <= 0o177 { Some(User(octet)) } else { None }
    }
    /// A printing delay whose count has `bits` significant bits, 0 to 7 (beyond lies BREAK).
    pub const fn delay(bits: u8) -> User {
        User(0o100 + if bits > 7 { 7 } else { bits })
    }
    /// As it is sent.
    pub const fn octet(self) -> u8 {
        self.0
    }
}

/// The control that begins a trailer, and what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrailerKind {
    /// The last block of a message.
    Bot,
    /// More blocks of the message follow.
    Botm,
    /// The receiver takes over the number even if the block is bad.
    Bots,
}

/// A control of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// A sequence number without a trailer: asks for an echo in character mode, an error in block mode.
    Seq(Seq),
    /// Everything up to this block has been passed on: the window opens.
    Echo(Seq),
    /// Something was damaged; this is the last good block.
    Rej(Seq),
    /// The last block received correctly, in answer to an enquiry.
    Ack(Seq),
    /// The sender asks for the last ECHO or REJ, and for the last good block.
    Enq,
    /// The sender asks for the last good block.
    Check,
    /// The other end is asked to initialise its transmitter.
    InitReq,
    /// The transmitter starts afresh, without trailers.
    Init0,
    /// The transmitter starts afresh, with trailers.
    Init1,
    /// The receiver has started afresh.
    Ainit,
    /// Two octets outside sequence, window and error control.
    Express([u8; 2]),
    /// A control of the users, in the stream.
    User(User),
}

/// Octets with meaning to the trailer and to express data.
pub(crate) mod octet {
    pub const NUL: u8 = 0;
    pub const BOT: u8 = 0o50;
    pub const BOTM: u8 = 0o51;
    pub const BOTS: u8 = 0o52;
    pub const SOI: u8 = 0o53;
    pub const EOI: u8 = 0o54;
    pub const SEQ: u8 = 0o10;
    const ECHO: u8 = 0o20;
    const REJ: u8 = 0o30;
    const ACK: u8 = 0o40;
    const ENQ: u8 = 0o55;
    const CHECK: u8 = 0o56;
    const INITREQ: u8 = 0o57;
    const INIT0: u8 = 0o60;
    const INIT1: u8 = 0o61;
    const AINIT: u8 = 0o62;

    use super::{Control, Seq, User};

    /// The control of one octet; `None` if the octet is none by itself.
    pub fn read(octet: u8) -> Option<Control> {
        let seq = Seq::new(octet);
        Some(match octet {
            0o10..=0o17 => Control::Seq(seq),
            0o20..=0o27 => Control::Echo(seq),
            0o30..=0o37 => Control::Rej(seq),
            0o40..=0o47 => Control::Ack(seq),
            ENQ => Control::Enq,
            CHECK => Control::Check,
            INITREQ => Control::InitReq,
            INIT0 => Control::Init0,
            INIT1 => Control::Init1,
            AINIT => Control::Ainit,
            _ => Control::User(User::new(octet)?),
        })
    }

    /// The control octet of a control, the first of express data.
    pub fn write(control: Control) -> u8 {
        match control {
            Control::Seq(seq) => SEQ | seq.get(),
            Control::Echo(seq) => ECHO | seq.get(),
            Control::Rej(seq) => REJ | seq.get(),
            Control::Ack(seq) => ACK | seq.get(),
            Control::Enq => ENQ,
            Control::Check => CHECK,
            Control::InitReq => INITREQ,
            Control::Init0 => INIT0,
            Control::Init1 => INIT1,
            Control::Ainit => AINIT,
            Control::Express(_) => SOI,
            Control::User(user) => user.octet(),
        }
    }
}

impl TrailerKind {
    /// As it is sent.
    pub const fn octet(self) -> u8 {
        match self {
            TrailerKind::Bot => octet::BOT,
            TrailerKind::Botm => octet::BOTM,
            TrailerKind::Bots => octet::BOTS,
        }
    }
    /// Whether the end of a message follows the block.
    pub const fn ends_message(self) -> bool {
        !matches!(self, TrailerKind::Botm)
    }
}

impl Control {
    /// Envelopes on the wire.
    pub const fn envelopes(self) -> u32 {
        if let Control::Express(_) = self { 4 } else { 1 }
    }
    /// The number of control envelopes among them.
    pub const fn controls(self) -> u32 {
        if let Control::Express(_) = self { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_have_the_octets_of_the_sources() {
        let two = Seq::new(2);
        for (control, code) in [
            (Control::Seq(two), 0x0a),
            (Control::Echo(two), 0x12),
            (Control::Rej(two), 0x1a),
            (Control::Ack(two), 0x22),
            (Control::Enq, 0x2d),
            (Control::Check, 0x2e),
            (Control::InitReq, 0x2f),
            (Control::Init0, 0x30),
            (Control::Init1, 0x31),
            (Control::Ainit, 0x32),
            (Control::User(User::BREAK), 0x48),
            (Control::User(User::delay(3)), 0x43),
        ] {
            assert_eq!(octet::write(control), code, "{control:?}");
            assert_eq!(octet::read(code), Some(control));
        }
        assert_eq!(
            [TrailerKind::Bot, TrailerKind::Botm, TrailerKind::Bots].map(TrailerKind::octet),
            [0x28, 0x29, 0x2a]
        );
    }

    #[test]
    fn what_is_no_control_by_itself_is_not_read_as_one() {
        for code in (0..8).chain([0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x33, 0x3f]).chain(0x80..=0xff) {
            assert_eq!(octet::read(code), None, "{code:#o}");
        }
        assert_eq!((User::new(0o77), User::new(0o200)), (None, None));
        assert_eq!(User::delay(9), User::delay(7));
    }
}

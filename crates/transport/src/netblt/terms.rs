//! Terms that two ends agree on (RFC 998 §5.1): the active end proposes, the passive end may only narrow them.

use super::wire::{Burst, Terms};

/// Terms that a passive end accepts at most, and the bytes that it gives a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a buffer.
    pub buffer: u32,
    /// User bytes of a data packet.
    pub packet: u16,
    /// Data packets of a burst.
    pub burst: u16,
    /// Milliseconds from burst to burst at least.
    pub interval: u16,
    /// Buffers under way at once.
    pub outstanding: u16,
    /// Bytes of all buffers under way at once.
    pub memory: u64,
    /// Seconds of silence after which the active end is held for dead; 0 is never.
    pub death: u16,
    /// Whether the data are to have a checksum, even if nobody else asks for it.
    pub checksum: bool,
    /// Whether parity may follow the data: its client keeps them while they come.
    pub parity: bool,
}

/// Bytes that the buffers of a transfer may take if nothing else is said (a choice).
pub const MEMORY: u64 = 256 << 20;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            buffer: u32::MAX,
            packet: u16::MAX,
            burst: u16::MAX,
            interval: 0,
            outstanding: u16::MAX,
            memory: MEMORY,
            death: 60,
            checksum: false,
            parity: false,
        }
    }
}

/// How far the buffers that are outstanding may lie apart, in their number (a choice): one that needs long to recover does
/// not stop the others (RFC 1030 §3 counts those in transmission or recovery), and both ends know how many to keep.
pub const SPREAD: u64 = 2;

/// Reasons why terms are refused.
const IMPOSSIBLE: &str = "buffer, packet, burst and outstanding buffers must not be 0";
const NO_MEMORY: &str = "one buffer is more than the memory that a transfer may take";
const TOO_MANY: &str = "more than 65536 packets to a buffer";

impl Terms {
    /// Packets of a full buffer.
    pub fn packets(&self) -> u32 {
        self.buffer.div_ceil(u32::from(self.packet.max(1)))
    }

    /// Whether a connection can have these terms.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), &'static str> {
        let zero =
            self.buffer == 0 || self.packet == 0 || self.burst.size == 0 || self.outstanding == 0;
        match (zero, self.packets() > 1 << 16) {
            (true, _) => Err(IMPOSSIBLE),
            (_, true) => Err(TOO_MANY),
            _ => Ok(()),
        }
    }

    /// What a passive end with `limits` answers to a proposal.
    ///
    /// # Errors
    /// The reason why it refuses.
    pub fn narrowed(&self, limits: &Limits) -> Result<Terms, &'static str> {
        self.check()?;
        let packet = self.packet.min(limits.packet);
        let buffer = self.buffer.min(limits.buffer);
        let most = u64::from(u16::MAX).min(limits.memory / u64::from(buffer.max(1))) as u16;
        let outstanding = self.outstanding.min(limits.outstanding).min(most);
        if outstanding == 0 {
            return Err(NO_MEMORY);
        }
        let burst = Burst {
            size: self.burst.size.min(limits.burst),
            interval: self.burst.interval.max(limits.interval),
        };
        let narrowed = Terms {
            buffer,
            packet,
            burst,
            outstanding,
            death: limits.death,
            checksum: self.checksum || limits.checksum,
            parity: self.parity && limits.parity,
            text: Vec::new(),
            ..self.clone()
        };
        narrowed.check().map(|()| narrowed)
    }

    /// Whether an answer narrows these terms and widens none.
    pub fn allows(&self, answer: &Terms) -> bool {
        answer.check().is_ok()
            && answer.buffer <= self.buffer
            && answer.packet <= self.packet
            && answer.burst.size <= self.burst.size
            && answer.burst.interval >= self.burst.interval
            && answer.outstanding <= self.outstanding
            && answer.checksum >= self.checksum
            && answer.parity <= self.parity
            && answer.write == self.write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            buffer: 14_320,
            packet: 1432,
            burst: Burst { size: 5, interval: 55 },
            outstanding: 22,
            death: 60,
            write: true,
            ..Terms::default()
        }
    }

    #[test]
    fn an_answer_narrows() {
        let limits = Limits { burst: 3, interval: 60, memory: 50_000, ..Limits::default() };
        let answer = terms().narrowed(&limits).unwrap();
        assert_eq!((answer.burst, answer.outstanding), (Burst { size: 3, interval: 60 }, 3));
        assert!(terms().allows(&answer));
        assert!(!answer.allows(&terms()));
        assert!(!terms().allows(&Terms { write: false, ..answer.clone() }));
        assert!(!terms().allows(&Terms { packet: 0, ..answer }));
    }

    #[test]
    fn impossible_terms_are_refused() {
        let limits = Limits::default();
        for wrong in [
            Terms { buffer: 0, ..terms() },
            Terms { packet: 0, ..terms() },
            Terms { outstanding: 0, ..terms() },
            Terms { burst: Burst::default(), ..terms() },
            Terms { buffer: u32::MAX, packet: 1, ..terms() },
        ] {
            assert!(wrong.narrowed(&limits).is_err(), "{wrong:?}");
        }
        let small = Limits { memory: 14_319, ..limits };
        assert_eq!(terms().narrowed(&small), Err(NO_MEMORY));
    }
}

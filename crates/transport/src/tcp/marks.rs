//! A receiver's record of congestion marks, and what it tells of them.

use super::congestion::Marks;
use super::segment::Flags;
use trunkline_core::Ecn;

/// Marked packets since the last acknowledgement after which one is sent at once: n of RFC 9768 §3.2.2.5.1.
const MOST_UNTOLD: u8 = 2;
/// Set beside the counter if the next acknowledgement without data greets with the three bits above it.
const GREETS: u8 = 0x80;

/// The marks that have come.
#[derive(Debug, Clone, Copy)]
pub struct Marked {
    /// By RFC 3168 §6.1.3: a mark has come, and the other end has not said that it knows. Else the last packet with
    /// data was marked (DCTCP.CE of RFC 8257 §3.2).
    echo: bool,
    /// r.cep of RFC 9768 §3.2, modulo 8, and perhaps a greeting ([`GREETS`]).
    count: u8,
    /// Of them, those since the last acknowledgement.
    untold: u8,
}

/// The answer that a mark, or its absence, asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// Nothing out of the ordinary.
    Later,
    /// An acknowledgement at once.
    Now,
    /// One of what came before it, as long as any is held back; then one of itself, at once.
    Apart,
}

impl Marked {
    /// Before anything has come, with marks counted from `count` on.
    pub fn from(count: u8) -> Marked {
        Marked { echo: false, count: count & 7, untold: 0 }
    }

    /// The next acknowledgement without data greets with `ace` (RFC 9768 §3.2.2.1).
    pub fn greet(&mut self, ace: u8) {
        self.count |= GREETS | ace << 3;
    }

    /// Takes note of a packet, with data or bare.
    pub fn see(&mut self, marks: Marks, ecn: Ecn, flags: Flags, bare: bool) -> Tell {
        let ce = ecn == Ecn::Ce;
        match marks {
            // A CWR ends the echo; a mark on the same segment begins it anew.
            Marks::Once => {
                self.echo = ce || (self.echo && !flags.has(Flags::CWR));
                Tell::Later
            }
            Marks::Each => self.see_change(ce, bare),
            Marks::Counted => self.count(ce, bare),
        }
    }

    /// RFC 8257 §3.2. Segments without data are not acknowledged and tell nothing.
    fn see_change(&mut self, ce: bool, bare: bool) -> Tell {
        if bare || ce == self.echo {
            return Tell::Later;
        }
        self.echo = ce;
        Tell::Apart
    }

    /// RFC 9768 §3.2.2.5.1: the first mark after a packet without is told of at once, and every second one. Marks of
    /// segments without data are counted, and told of when something is.
    fn count(&mut self, ce: bool, bare: bool) -> Tell {
        self.count = self.count & !7 | (self.count + u8::from(ce)) & 7;
        if bare {
            return Tell::Later;
        }
        self.untold = self.untold.saturating_add(u8::from(ce));
        let first = ce && !self.echo;
        self.echo = ce;
        if first || self.untold >= MOST_UNTOLD { Tell::Now } else { Tell::Later }
    }

    /// The flags of a segment that tells of them; `before` tells of what came before the last change.
    pub fn tell(&mut self, marks: Marks, flags: Flags, bare: bool, before: bool) -> Flags {
        match marks {
            Marks::Once | Marks::Each => flags.with(Flags::ECE, self.echo != before),
            Marks::Counted => {
                let ace =
                    if bare && self.count & GREETS != 0 { self.count >> 3 } else { self.count };
                self.count &= 7;
                self.untold = 0;
                flags.with_ace(ace & 7)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(marked: &mut Marked, marks: Marks, ecn: Ecn) -> Tell {
        marked.see(marks, ecn, Flags::NONE, false)
    }

    /// RFC 8257 figure 1.
    #[test]
    fn each_change_is_told_apart() {
        let mut marked = Marked::from(0);
        let told: Vec<Tell> = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0]
            .map(|ecn| seen(&mut marked, Marks::Each, ecn))
            .into();
        assert_eq!(told, [Tell::Later, Tell::Apart, Tell::Later, Tell::Apart, Tell::Later]);
        assert_eq!(marked.see(Marks::Each, Ecn::Ce, Flags::NONE, true), Tell::Later);
        let mut tell = |before| marked.tell(Marks::Each, Flags::ACK, true, before).has(Flags::ECE);
        assert_eq!([tell(true), tell(false)], [true, false]);
    }

    #[test]
    fn an_echo_lasts_until_the_sender_says_that_it_knows() {
        let mut marked = Marked::from(0);
        seen(&mut marked, Marks::Once, Ecn::Ce);
        seen(&mut marked, Marks::Once, Ecn::Ect0);
        assert!(marked.tell(Marks::Once, Flags::ACK, true, false).has(Flags::ECE));
        marked.see(Marks::Once, Ecn::Ce, Flags::CWR, false);
        assert!(marked.tell(Marks::Once, Flags::ACK, true, false).has(Flags::ECE));
        marked.see(Marks::Once, Ecn::Ect0, Flags::CWR, false);
        assert!(!marked.tell(Marks::Once, Flags::ACK, true, false).has(Flags::ECE));
    }

    #[test]
    fn marks_are_counted_modulo_eight_and_told_of_in_time() {
        let mut marked = Marked::from(5);
        marked.greet(0b100);
        assert_eq!(marked.tell(Marks::Counted, Flags::ACK, true, false).ace(), 0b100);
        assert_eq!(marked.tell(Marks::Counted, Flags::ACK, true, false).ace(), 5);
        let told: Vec<Tell> = [Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ce]
            .map(|ecn| {
                let tell = seen(&mut marked, Marks::Counted, ecn);
                if tell == Tell::Now {
                    marked.tell(Marks::Counted, Flags::ACK, true, false);
                }
                tell
            })
            .into();
        assert_eq!(told, [Tell::Now, Tell::Later, Tell::Later, Tell::Now]);
        assert_eq!(marked.tell(Marks::Counted, Flags::ACK, false, false).ace(), 0);
    }
}

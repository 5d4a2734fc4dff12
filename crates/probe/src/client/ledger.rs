//! The messages of a measurement and what became of each.

use super::carrier::Reply;
use crate::pacer::MOST_BEHIND;
use crate::tracker::covers;
use trunkline_core::Time;
use trunkline_fit::{Exchange, Lost, Observations, Way};

/// One message.
#[derive(Debug, Clone, Copy)]
struct Slot {
    size: u32,
    intended: Time,
    sent: Time,
    answer: Option<Reply>,
}

/// All messages and what became of them.
#[derive(Debug, Default)]
pub struct Ledger {
    slots: Vec<Slot>,
    /// Numbers in the order in which their answers came.
    arrivals: Vec<u32>,
    duplicates: u64,
    foreign: u64,
    /// Messages that the system did not take.
    pub unsent: u64,
}

impl Ledger {
    /// Notes an answer, and gives the exchange if it is the first.
    pub(super) fn note(&mut self, reply: Reply) -> Option<Exchange> {
        let Some(slot) = self.slots.get_mut(reply.number as usize) else {
            self.foreign += 1;
            return None;
        };
        if slot.answer.is_some() {
            self.duplicates += 1;
            return None;
        }
        slot.answer = Some(reply);
        self.arrivals.push(reply.number);
        exchange_of(reply.number, slot)
    }

    /// Enters a message that was sent; its number is that of those before it.
    pub(super) fn enter(&mut self, size: u32, intended: Time, sent: Time) {
        self.slots.push(Slot { size, intended, sent, answer: None });
    }

    /// Whether this message is not answered.
    pub(super) fn is_outstanding(&self, number: u32) -> bool {
        self.slots.get(number as usize).is_some_and(|slot| slot.answer.is_none())
    }

    /// Messages so far.
    pub fn sent(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Answers so far.
    pub fn answered(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// The warning that this host did not send at the pace asked for, if it was far behind.
    pub fn late(&self) -> Option<String> {
        let lateness = self.slots.iter().map(|slot| slot.sent.since(slot.intended));
        let most = lateness.max().filter(|&most| most > MOST_BEHIND)?;
        Some(format!(
            "this host could not keep the pace: messages went up to {} late, and losses may be its own; choose a slower one",
            most.rounded()
        ))
    }

    /// The observations. `received` are the numbers that the server saw; without, nobody can tell which
    /// way something was lost. Over a reliable carrier nothing is: what is not answered at the end is left
    /// out.
    pub fn observations(
        &self,
        received: Option<&[(u32, u32)]>,
        duplicates_out: u64,
        reliable: bool,
    ) -> Observations {
        let exchanges = self.arrivals.iter();
        let exchanges =
            exchanges.filter_map(|&number| exchange_of(number, self.slots.get(number as usize)?));
        let way = |number: u32| {
            received.map(|ranges| if covers(ranges, number) { Way::Back } else { Way::Out })
        };
        let unanswered =
            (0..).zip(&self.slots).filter(|(_, slot)| slot.answer.is_none() && !reliable);
        let lost = unanswered.map(|(number, slot)| Lost {
            sequence: u64::from(number),
            size: slot.size,
            sent: slot.sent.as_nanos() as i64,
            way: way(number),
        });
        Observations {
            exchanges: exchanges.collect(),
            lost: lost.collect(),
            duplicates_out,
            duplicates_back: self.duplicates,
        }
    }
}

fn exchange_of(number: u32, slot: &Slot) -> Option<Exchange> {
    let reply = slot.answer?;
    Some(Exchange {
        sequence: u64::from(number),
        size: slot.size,
        reply: reply.size,
        intended: slot.intended.as_nanos() as i64,
        sent: slot.sent.as_nanos() as i64,
        far: reply.far,
        received: reply.at.as_nanos() as i64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    #[test]
    fn a_sender_far_behind_is_warned_of() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut ledger = Ledger::default();
        ledger.enter(1, at(20), at(120));
        assert_eq!(ledger.late(), None);
        ledger.enter(1, at(30), at(180));
        ledger.enter(1, at(40), at(41));
        let warning = ledger.late().unwrap();
        assert!(warning.contains("150ms") && warning.contains("pace"), "{warning}");
    }

    #[test]
    fn copies_and_strange_numbers_are_counted() {
        let mut ledger = Ledger::default();
        ledger.enter(1, Time::ZERO, Time::ZERO);
        let reply = |number| Reply { number, at: Time::from_nanos(9), far: None, size: 1 };
        assert!(ledger.note(reply(0)).is_some() && ledger.note(reply(0)).is_none());
        assert!(ledger.note(reply(7)).is_none());
        let seen = ledger.observations(None, 3, false);
        assert_eq!((seen.duplicates_out, seen.duplicates_back, ledger.foreign), (3, 1, 1));
    }
}

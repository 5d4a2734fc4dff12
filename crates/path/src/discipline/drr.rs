//! Deficit round robin: whole packets, fair in bytes.

use super::channels::{Channels, End, Turns};
use super::settings::settings;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, PACKET_QUANTUM, QUANTA, Service, Settings,
};
use crate::Limit;
use trunkline_core::{Metered, Time};

settings! {
    /// Deficit round robin, whole packets, fair in bytes (Shreedhar and Varghese 1995).
    pub struct DrrSettings {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit;
        /// Bytes of credit for each turn.
        quantum: u32 as Bytes = PACKET_QUANTUM, "the quantum in bytes" in QUANTA;
    }
}

impl Settings for DrrSettings {
    type Queue<P: Metered> = Drr<P>;

    const TRIALS: &'static [&'static str] = &["quantum=1514,limit=3kB", "quantum=90,limit=60c"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Drr<P> {
        Drr::new(self.limit, self.quantum)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions::turns(self.quantum)
    }
}

/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995, §3): each turn adds a quantum to the
/// channel's deficit, and the channel sends whole packets while the deficit covers them. What is left
/// is kept for its next turn, and lost when the channel runs empty.
///
/// Two channels that both always hold data differ by at most a quantum and two maximal packets. A
/// packet of L bytes costs its channel L/quantum turns, so that the cost of a packet does not depend on the
/// number of channels (§3.2); with a quantum of at least the largest packet it is one turn.
///
/// When the whole is over its limit the last packet of the longest channel is dropped (§3.3, "packet
/// stealing"). "Longest" is within 5.9 % of the longest in bytes.
#[derive(Debug)]
pub struct Drr<P> {
    channels: Channels<P, Account>,
    quantum: u32,
}

/// What a channel may still send.
#[derive(Debug, Default)]
struct Account {
    deficit: u64,
    /// Whether this turn's quantum has been added.
    in_turn: bool,
}

impl<P: Metered> Drr<P> {
    /// An empty round robin that holds at most `limit` in all. A quantum of 0 bytes counts as 1.
    pub fn new(limit: Limit, quantum: u32) -> Drr<P> {
        Drr { channels: Channels::new(limit, false), quantum: quantum.max(1) }
    }

    /// Whether channel `id`, whose turn it is, may send a packet of `size` bytes.
    fn affords(&mut self, id: u32, size: u32) -> bool {
        let account = self.channels.state(id);
        if !account.in_turn {
            account.deficit += u64::from(self.quantum);
        }
        account.in_turn = account.deficit >= u64::from(size);
        account.in_turn
    }
}

impl<P: Metered> Discipline<P> for Drr<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let key = packet.channel();
        self.channels.enqueue(now, key, packet, End::Tail, drops, |_| ());
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        loop {
            let id = self.channels.first(Turns::First)?;
            let size = self.channels.front_size(id)?;
            if !self.affords(id, size) {
                self.channels.list(id, Turns::First);
                continue;
            }
            let (_, packet) = self.channels.pop(id)?;
            self.channels.state(id).deficit -= u64::from(size);
            if self.channels.is_idle(id) {
                self.channels.forget(id);
            }
            return Some(Service::whole(packet));
        }
    }

    fn backlog(&self) -> Backlog {
        self.channels.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.channels.set_limit(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Channel, Packet};

    #[test]
    fn the_example_of_figure_2() {
        // Shreedhar and Varghese, figures 2 and 3: quantum 500. Channel 1 sends 200, keeps 300, and in the
        // next round can send 750; channel 2 must wait a round for its 500 and 300 more.
        let mut drr = Drr::new(Limit::Bytes(1 << 20), 500);
        for (channel, size) in [(1, 200), (1, 750), (1, 20), (2, 500), (2, 500), (3, 200), (3, 600)]
        {
            let packet = Packet::new(Channel(channel), size, Time::ZERO, ());
            drr.enqueue(Time::ZERO, packet, &mut Drops::default());
        }
        let served: Vec<(u64, u32)> = std::iter::from_fn(|| {
            drr.dequeue(Time::ZERO, &mut Drops::default()).map(|s| (s.channel.0, s.bytes))
        })
        .collect();
        let expected = [(1, 200), (2, 500), (3, 200), (1, 750), (1, 20), (2, 500), (3, 600)];
        assert_eq!(served, expected);
    }
}

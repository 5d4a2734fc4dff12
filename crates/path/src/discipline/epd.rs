//! ATM early packet discard.

use super::settings::settings;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings, Standing};
use crate::{Limit, aal5_cells};
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Channel, DropCause, Metered, Rate, Span, Time};

/// User bytes of one cell.
const CELL_PAYLOAD: u64 = 48;
/// A cell's bits in units of a rate in bits a second and a time in nanoseconds.
const CELL_NANOS: u128 = 53 * 8 * 1_000_000_000;
const RATES: std::ops::RangeInclusive<Rate> =
    Rate::from_bits_per_second(1000)..=Rate::from_bits_per_second(10_000_000_000_000);

settings! {
    /// ATM early packet discard: whole packets are refused above a threshold (Romanow and Floyd 1995; numbers of the
    /// LDS report §3.10).
    pub struct EpdSettings {
        /// Cells in the queue above which an arriving packet is refused whole.
        threshold: u64 as Cells = 1000, "the discard threshold in cells" in 0..=limit;
        /// Rate at which the cells of each circuit come in, one by one among those of others. All of a packet at once if not given.
        input: Option<Rate> = None, "the input rate" in RATES;
        /// Cells that the buffer holds; what does not fit in the middle of a packet is lost.
        limit: u64 as Cells = 1200, "the cell limit" in 1..=1 << 40;
    }
}

impl Settings for EpdSettings {
    type Queue<P: Metered> = Epd<P>;

    const TRIALS: &'static [&'static str] = &["threshold=40,limit=60"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Epd<P> {
        Epd { input: self.input, ..Epd::new(self.threshold, self.limit) }
    }

    fn assumptions(&self) -> Assumptions {
        let standing = Standing::Bytes(self.threshold * CELL_PAYLOAD);
        Assumptions::managed("early packet discard", standing)
    }
}

/// Early packet discard in a cell queue (Romanow and Floyd 1995): a packet that comes while more than
/// `threshold` cells wait is refused whole.
///
/// A packet below the threshold that does not fit loses its last cells. Those that fit stay and use the
/// line although nobody can use them: they are served as a piece without a packet, of 48 bytes for
/// each cell, which an `atm-aal5` line sends as just so many cells. An empty queue takes any one packet.
///
/// With an input rate a packet comes when its first cell does. That cell decides over the packet; the others follow at
/// that rate, so that cells of several circuits lie among one another in the queue and leave in the order in which they
/// came, cell by cell. A packet of which a cell finds no room loses that one and all behind it, also the last.
#[derive(Debug)]
pub struct Epd<P> {
    waiting: VecDeque<Cells<P>>,
    threshold: u64,
    limit: u64,
    cells: u64,
    backlog: Backlog,
    input: Option<Rate>,
    /// Circuits on which a packet is coming in, by when its next cell does and in the order of beginning.
    coming: BTreeMap<(Time, u64), Coming<P>>,
    /// What comes behind it on the same circuit.
    behind: BTreeMap<Channel, VecDeque<(Time, P)>>,
    begun: u64,
}

/// Cells of one packet behind one another.
#[derive(Debug)]
struct Cells<P> {
    channel: Channel,
    cells: u64,
    /// User bytes of these cells.
    bytes: u32,
    /// The packet whose last cell is the last of these. `None` if others follow, or were lost.
    packet: Option<P>,
}

/// A packet that comes in cell by cell.
#[derive(Debug)]
struct Coming<P> {
    channel: Channel,
    began: Time,
    /// Cells that have come, of `cells`.
    come: u64,
    cells: u64,
    bytes: u32,
    /// The packet. `None` once it is refused or cut.
    packet: Option<P>,
}

impl<P> Coming<P> {
    /// When a cell comes, the first at once.
    fn instant(&self, cell: u64, input: Rate) -> Time {
        let nanos = u128::from(cell) * CELL_NANOS / u128::from(input.bits_per_second().max(1));
        self.began + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// User bytes of the cell that comes next: the trailer of AAL5 may fill one by itself.
    fn payload(&self) -> u32 {
        let before = u64::from(self.bytes).min(self.come * CELL_PAYLOAD);
        (u64::from(self.bytes) - before).min(CELL_PAYLOAD) as u32
    }
}

impl<P: Metered> Epd<P> {
    /// An empty queue of at most `limit` cells that refuses packets while more than `threshold` wait.
    pub fn new(threshold: u64, limit: u64) -> Epd<P> {
        Epd {
            waiting: VecDeque::new(),
            threshold,
            limit,
            cells: 0,
            backlog: Backlog::default(),
            input: None,
            coming: BTreeMap::new(),
            behind: BTreeMap::new(),
            begun: 0,
        }
    }

    fn push(&mut self, item: Cells<P>) {
        self.cells += item.cells;
        self.waiting.push_back(item);
    }

    /// Whether a packet that begins now is refused.
    fn refuses(&self) -> bool {
        self.cells > self.threshold.min(self.limit)
    }

    /// Takes a packet whose cells all come at once.
    fn take_whole(&mut self, packet: P, drops: &mut Drops<P>) {
        if self.refuses() {
            return drops.push(packet, DropCause::EarlyDiscard);
        }
        let (room, cells) = (self.limit - self.cells, aal5_cells(packet.size()));
        let (channel, bytes) = (packet.channel(), packet.size());
        if cells <= room || self.waiting.is_empty() {
            self.backlog.packets += 1;
            self.backlog.bytes += u64::from(bytes);
            return self.push(Cells { channel, cells, bytes, packet: Some(packet) });
        }
        if room > 0 {
            // Fewer cells than the packet has, so that their bytes fit the type of its size.
            let bytes = u32::try_from(room * CELL_PAYLOAD).unwrap_or(u32::MAX);
            self.backlog.bytes += u64::from(bytes);
            self.push(Cells { channel, cells: room, bytes, packet: None });
        }
        drops.push(packet, DropCause::PartialPacket);
    }

    /// A packet begins to come in on a circuit that is free.
    fn begin(&mut self, at: Time, packet: P) {
        let (channel, bytes) = (packet.channel(), packet.size());
        let cells = aal5_cells(bytes);
        let coming = Coming { channel, began: at, come: 0, cells, bytes, packet: Some(packet) };
        self.coming.insert((at, self.begun), coming);
        self.begun += 1;
    }

    /// Lets all cells come that do by `now`.
    fn settle(&mut self, now: Time, drops: &mut Drops<P>) {
        let Some(input) = self.input else { return };
        while let Some(first) = self.coming.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, order), mut coming) = first.remove_entry();
            self.cell(&mut coming, drops);
            coming.come += 1;
            let next = coming.instant(coming.come, input);
            if coming.come < coming.cells {
                self.coming.insert((next, order), coming);
            } else {
                self.follow(coming.channel, next);
            }
        }
    }

    /// The circuit is free from `at` on: what waits for it begins.
    fn follow(&mut self, channel: Channel, at: Time) {
        let Some(queue) = self.behind.get_mut(&channel) else { return };
        match queue.pop_front() {
            Some((came, packet)) => self.begin(at.max(came), packet),
            None => drop(self.behind.remove(&channel)),
        }
    }

    /// A cell comes: into the queue, or with it the packet is lost.
    fn cell(&mut self, coming: &mut Coming<P>, drops: &mut Drops<P>) {
        let cause = match coming.come {
            0 if self.refuses() => DropCause::EarlyDiscard,
            _ if self.cells >= self.limit => DropCause::PartialPacket,
            _ => return self.accept(coming),
        };
        if let Some(packet) = coming.packet.take() {
            let come = u64::from(coming.bytes).min(coming.come * CELL_PAYLOAD);
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(coming.bytes) - come;
            drops.push(packet, cause);
        }
    }

    fn accept(&mut self, coming: &mut Coming<P>) {
        if coming.packet.is_none() {
            return;
        }
        let (channel, bytes) = (coming.channel, coming.payload());
        let packet = if coming.come + 1 == coming.cells { coming.packet.take() } else { None };
        self.push(Cells { channel, cells: 1, bytes, packet });
    }
}

impl<P: Metered> Discipline<P> for Epd<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.input.is_none() {
            return self.take_whole(packet, drops);
        }
        self.settle(now, drops);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.size());
        let channel = packet.channel();
        if let Some(queue) = self.behind.get_mut(&channel) {
            return queue.push_back((now, packet));
        }
        self.behind.insert(channel, VecDeque::new());
        self.begin(now, packet);
        self.settle(now, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        self.settle(now, drops);
        let Cells { channel, cells, bytes, packet } = self.waiting.pop_front()?;
        self.cells -= cells;
        self.backlog.bytes -= u64::from(bytes);
        self.backlog.packets -= u64::from(packet.is_some());
        let controls = packet.as_ref().map_or(0, Metered::controls);
        Some(Service { channel, bytes, controls, packet })
    }

    fn holds(&self) -> bool {
        self.input.is_some()
    }

    fn next_ready(&self) -> Option<Time> {
        let waits = self.backlog != Backlog::default();
        self.coming.first_key_value().filter(|_| waits).map(|(&(next, _), _)| next)
    }

    fn quantum(&self) -> Option<u32> {
        self.input.map(|_| CELL_PAYLOAD as u32)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue counts cells: bytes are taken at 48 for each cell, packets at their least, one cell.
    fn set_limit(&mut self, limit: Limit) {
        self.limit = match limit {
            Limit::Cells(cells) | Limit::Packets(cells) => cells,
            Limit::Bytes(bytes) => bytes / CELL_PAYLOAD,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framer, Framing, Piece};
    use proptest::prelude::*;
    use trunkline_core::Packet;

    /// Offers packets of 192 cells each (9180 bytes, the LDS report's MTU).
    fn offered(epd: &mut Epd<Packet<()>>, count: u64) -> Vec<(u64, DropCause)> {
        let mut drops = Drops::default();
        for channel in 0..count {
            let packet = Packet::new(Channel(channel), 9180, Time::ZERO, ());
            epd.enqueue(Time::ZERO, packet, &mut drops);
        }
        drops.drain().map(|(packet, cause)| (packet.channel.0, cause)).collect()
    }

    #[test]
    fn whole_packets_are_refused_above_the_threshold() {
        let mut epd = Epd::new(1000, 1200);
        // Five packets are 960 cells, the sixth makes 1152, the seventh finds more than 1000.
        assert_eq!(offered(&mut epd, 7), [(6, DropCause::EarlyDiscard)]);
        assert_eq!((epd.cells, epd.backlog().packets), (1152, 6));
    }

    #[test]
    fn the_cells_that_fit_are_sent_in_vain() {
        let mut epd = Epd::new(1100, 1100);
        let causes = [(5, DropCause::PartialPacket), (6, DropCause::PartialPacket)];
        assert_eq!(offered(&mut epd, 7), causes, "140 cells fit of the first, none of the second");
        assert_eq!(epd.backlog(), Backlog { packets: 5, bytes: 5 * 9180 + 140 * 48 });
        let mut framer = Framer::new(Framing::AtmAal5);
        let mut cells = 0;
        while let Some(piece) = epd.dequeue(Time::ZERO, &mut Drops::default()) {
            let Service { channel, bytes, controls, packet } = piece;
            let piece = Piece { channel, bytes, controls, last: packet.is_some() };
            cells += framer.line_bits(piece, true) / (53 * 8);
        }
        assert_eq!((cells, epd.cells, epd.backlog()), (1100, 0, Backlog::default()));
    }

    #[test]
    fn a_lowered_limit_takes_the_threshold_with_it() {
        let mut epd = Epd::new(1000, 1200);
        assert!(offered(&mut epd, 3).is_empty());
        epd.set_limit(Limit::Cells(500));
        assert_eq!(offered(&mut epd, 1), [(0, DropCause::EarlyDiscard)]);
        assert_eq!(epd.backlog().packets, 3);
    }

    /// A link of 149.76 Mbit/s of cells, with cells that come at that rate on each circuit.
    fn run(queue: &str, offered: &[(u64, u64)]) -> Vec<(u64, Option<DropCause>, u64)> {
        use crate::{Link, LinkSpec};
        use trunkline_core::Seed;
        let spec = LinkSpec {
            rate: Some(Rate::from_bits_per_second(155_520_000)),
            framing: Framing::AtmAal5,
            discipline: queue.parse().unwrap(),
            ..LinkSpec::default()
        };
        let mut link: Link<Packet<u64>> = Link::new(&spec, Seed(1), "trunk", Time::ZERO);
        let (mut came, mut offered) = (Vec::new(), offered.iter().peekable());
        let slots = |time: Time| time.as_nanos() * 117 / 331_250;
        loop {
            let next = offered.peek().map(|&&(at, _)| Time::from_nanos(at));
            let Some(now) = next.into_iter().chain(link.next_event()).min() else { return came };
            if let Some(&(at, channel)) = offered.next_if(|&&(at, _)| at == now.as_nanos()) {
                let packet = Packet::new(Channel(channel), 9180, Time::from_nanos(at), channel);
                link.offer(now, packet);
            }
            link.advance(now);
            while let Some(it) = link.take(now) {
                came.push((it.packet.body, None, slots(it.release)));
            }
            came.extend(link.dropped().map(|(it, cause)| (it.body, Some(cause), slots(now))));
        }
    }

    const CELLS: &str = "epd:threshold=1000,limit=1200,input=149.76Mbit/s";

    #[test]
    fn cells_pass_while_their_packet_comes_in() {
        // Two packets of one circuit, of 192 cells each, at the line's rate: no queue, where whole packets wait for
        // one another.
        let offered = [(0, 1), (0, 1)];
        let slots: Vec<u64> = run(CELLS, &offered).iter().map(|it| it.2).collect();
        assert!(slots[0].abs_diff(192) <= 2 && slots[1].abs_diff(384) <= 2, "{slots:?}");
    }

    #[test]
    fn cells_of_two_circuits_lie_among_one_another() {
        // Both end together: the second is not behind the first, as it is if packets come whole.
        let slots =
            |queue| -> Vec<u64> { run(queue, &[(0, 1), (0, 2)]).iter().map(|it| it.2).collect() };
        let (among, whole) = (slots(CELLS), slots("epd"));
        assert!(among[0] >= 382 && among[1] <= 386, "{among:?}");
        assert!(whole[0] <= 194 && whole[1] >= 382, "{whole:?}");
    }

    #[test]
    fn room_above_the_threshold_is_for_packets_that_are_coming_in() {
        // Seven circuits at once: with 192 cells in for each one out, six of them fill 6/7 of 7 x 192 = 1152 cells.
        // All begin below the threshold, so each cell above it belongs to a packet that was let in.
        let seven: Vec<(u64, u64)> = (0..7).map(|circuit| (0, circuit)).collect();
        assert!(
            run("epd:threshold=10,limit=1200,input=149.76Mbit/s", &seven)
                .iter()
                .all(|it| it.1.is_none())
        );
        let cut = run("epd:threshold=10,limit=900,input=149.76Mbit/s", &seven);
        assert!(cut.iter().any(|it| it.1 == Some(DropCause::PartialPacket)));
        // One that begins later finds more than the threshold, and is refused whole.
        let late: Vec<_> = seven.iter().copied().chain([(300_000, 9)]).collect();
        let refused = run("epd:threshold=10,limit=1200,input=149.76Mbit/s", &late);
        let early: Vec<_> =
            refused.iter().filter(|it| it.1.is_some()).map(|it| (it.0, it.1)).collect();
        assert_eq!(early, [(9, Some(DropCause::EarlyDiscard))]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_in_silence(
            offered in prop::collection::vec((0u64..400_000, 0u64..5, 1u32..9000), 1..60),
            (threshold, room) in (0u64..300, 1u64..300), serve in 1u64..9_000,
        ) {
            let settings = EpdSettings {
                threshold, limit: threshold + room, input: Some(Rate::from_bits_per_second(149_760_000)),
            };
            let seed = trunkline_core::Seed(1);
            let mut epd = settings.build(&Chance { seed, link: "trunk" });
            let (mut drops, mut now, mut served) = (Drops::default(), 0, 0);
            let (mut out, mut lost) = (0, 0);
            for (number, &(gap, channel, size)) in offered.iter().enumerate() {
                now += gap;
                let at = Time::from_nanos(now);
                epd.enqueue(at, Packet::new(Channel(channel), size, at, ()), &mut drops);
                while served < now && let Some(piece) = epd.dequeue(Time::from_nanos(served), &mut drops) {
                    served += serve;
                    out += usize::from(piece.packet.is_some());
                }
                served = served.max(now);
                lost += drops.drain().count();
                prop_assert!(epd.cells <= settings.limit);
                prop_assert_eq!(epd.backlog().packets as usize + out + lost, number + 1);
            }
            let mut at = Time::from_nanos(now);
            loop {
                while let Some(piece) = epd.dequeue(at, &mut drops) {
                    out += usize::from(piece.packet.is_some());
                }
                let Some(next) = epd.next_ready() else { break };
                at = at.max(next);
            }
            lost += drops.drain().count();
            prop_assert_eq!(out + lost, offered.len());
            prop_assert_eq!((epd.cells, epd.backlog()), (0, Backlog::default()));
        }
    }
}

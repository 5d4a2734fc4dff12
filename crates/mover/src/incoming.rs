//! What a connection brings to the receiver: octets that belong together in its first buffers, chunks in the others.

use crate::Cut;
use crate::chunks::ROOT;
pub use crate::desk::Task;
use crate::filling::Filling;
use crate::room::Room;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::Packet;
use trunkline_transport::netblt::{Connection, Half, Placed, Whole, parity};

/// The connection at work.
pub struct Current {
    /// The number of the session.
    pub guest: u64,
    /// The number of the connection.
    pub uid: u32,
    /// Its end here.
    pub connection: Connection,
    stream: Stream,
    room: Room,
}

/// What a connection brings.
pub struct Stream {
    cut: Cut,
    /// What the first buffers bring, until all of it has come.
    head: Option<Head>,
    /// Buffers that it takes.
    before: u64,
    /// The numbers of the chunks behind it; all from 0 on if nothing is said.
    list: Option<Vec<u64>>,
    /// Whether the root of all chunks is behind the last one.
    is_tailed: bool,
    /// Buffers behind the head that are whole, how many there are, and the root, once the last one has come.
    whole: u64,
    tail: Option<(u64, [u8; ROOT])>,
    /// Buffers behind the head that are on their way, by their places, and the last one of which something has come.
    inbox: BTreeMap<u64, Filling>,
    newest: u64,
    /// Room of buffers that have been written.
    spare: Vec<Vec<u8>>,
    /// What is whole and waits for the head.
    held: Vec<Task>,
    /// Rows of parity of buffers that are on their way, by their places: never more than packets are missing.
    rows: BTreeMap<u64, Vec<(u16, Vec<u8>)>>,
}

/// Octets that belong together.
struct Head {
    octets: Vec<u8>,
    /// Buffers that have come.
    come: u64,
    /// What becomes of them.
    task: fn(Vec<u8>) -> Task,
}

impl Stream {
    /// Chunks of these numbers, and the root behind them if they are all that is missing.
    pub fn chunks(cut: Cut, list: Vec<u64>, missing: u64) -> Stream {
        Stream {
            cut,
            head: None,
            before: 0,
            is_tailed: list.len() as u64 == missing,
            list: Some(list),
            whole: 0,
            tail: None,
            inbox: BTreeMap::new(),
            newest: 0,
            spare: Vec::new(),
            held: Vec::new(),
            rows: BTreeMap::new(),
        }
    }

    /// A manifest of so many octets, all chunks behind it, and their root.
    pub fn everything(cut: Cut, manifest: u64) -> Stream {
        let stream = Stream::octets(cut, manifest, Task::Manifest);
        Stream { is_tailed: true, list: None, ..stream }
    }

    /// Buffers that so many octets take.
    pub fn head(cut: Cut, octets: u64) -> u64 {
        octets.div_ceil(cut.buffer().into()).max(1)
    }

    /// So many octets.
    pub fn octets(cut: Cut, octets: u64, task: fn(Vec<u8>) -> Task) -> Stream {
        let before = Stream::head(cut, octets);
        let head = Head { octets: vec![0; octets as usize], come: 0, task };
        let stream = Stream::chunks(cut, Vec::new(), 0);
        Stream { head: Some(head), before, is_tailed: false, ..stream }
    }
}

impl Current {
    /// A connection that brings `stream` over a path of this round trip, and lets so many buffers come `already`. There is memory for
    /// `most` buffers.
    pub fn new(
        (guest, uid): (u64, u32),
        connection: Connection,
        stream: Stream,
        already: u64,
        (most, round): (u64, Span),
    ) -> Current {
        let before = already.saturating_sub(stream.before);
        let (first, room) = Room::first(most, stream.cut.buffer().into(), round, before);
        let more = (stream.before + first).saturating_sub(already);
        let mut current = Current { guest, uid, connection, stream, room };
        current.connection.provide(more);
        current
    }

    /// A packet has come. Each thing to do that comes of it goes to `give`.
    pub fn take(&mut self, now: Time, packet: &Packet, data: &[u8], give: &mut dyn FnMut(Task)) {
        let place = match packet {
            Packet::Parity(head) => {
                let place = self.connection.receive_parity(now, head, true);
                place.inspect(|&it| self.keep(it, head.row, data))
            }
            _ => {
                let placed = self.connection.receive(now, packet, true);
                placed.map(|it| {
                    self.stream.place(&it, data);
                    it.buffer
                })
            }
        };
        place.into_iter().for_each(|it| self.recover(it));
        while let Some(whole) = self.connection.receiver().and_then(|half| half.take()) {
            self.stream.complete(whole, give);
        }
        place.into_iter().for_each(|it| self.stream.give_whole(it, give));
    }

    /// Keeps a row of parity if there are not enough yet.
    fn keep(&mut self, buffer: u64, row: u16, data: &[u8]) {
        let Some(half) = self.connection.receiver() else { return };
        let (packet, holes) = (half.packet(), half.holes(buffer));
        let Some(holes) = holes.filter(|_| buffer >= self.stream.before) else { return };
        let rows = self.stream.rows.entry(buffer).or_default();
        let is_new = rows.iter().all(|it| it.0 != row);
        if is_new && rows.len() < holes.missing.len() && data.len() == packet {
            rows.push((row, data.to_vec()));
        }
    }

    /// Puts the missing packets of a buffer in their places, if there is as much parity.
    fn recover(&mut self, buffer: u64) {
        let Stream { rows, inbox, cut, before, .. } = &mut self.stream;
        let Some(rows) = rows.get(&buffer) else { return };
        let Some(half) = self.connection.receiver() else { return };
        let Some(holes) = half.holes(buffer) else { return };
        let (size, count) = (half.packet(), holes.missing.len());
        if rows.len() < count {
            return;
        }
        let filling = inbox.entry(buffer - *before);
        let octets = filling.or_insert_with(|| Filling::new(Vec::new(), *cut)).octets();
        octets.resize(holes.bytes as usize, 0);
        let Some(found) = parity::recover(octets, size, &holes.missing, &rows[..count]) else {
            return;
        };
        for (&packet, data) in holes.missing.iter().zip(&found) {
            let places = octets.chunks_mut(size).nth(packet.into());
            places.into_iter().for_each(|to| to.copy_from_slice(&data[..to.len()]));
        }
        half.fill_in(buffer);
    }

    /// The disk has taken a buffer, in whose place another can come; so many wait for it.
    pub fn emptied(&mut self, mut buffer: Vec<u8>, waiting: u64) {
        buffer.clear();
        self.stream.spare.push(buffer);
        self.connection.provide(self.room.taken(waiting));
    }

    /// Whether nothing is asked for because there is no room.
    pub fn is_starved(&self) -> bool {
        matches!(self.connection.half(), Some(Half::Receiver(half)) if half.is_starved())
    }
}

impl Stream {
    fn place(&mut self, placed: &Placed, data: &[u8]) {
        let offset = placed.offset as usize;
        let Some(number) = placed.buffer.checked_sub(self.before) else {
            let start = placed.buffer as usize * self.cut.buffer() as usize + offset;
            let octets = self.head.as_mut().and_then(|head| head.octets.get_mut(start..));
            // The last buffer of the head is filled up with zeros.
            octets.into_iter().for_each(|octets| {
                let length = octets.len().min(data.len());
                octets[..length].copy_from_slice(&data[..length]);
            });
            return;
        };
        let Stream { inbox, spare, cut, .. } = self;
        let filling = || Filling::new(spare.pop().unwrap_or_default(), *cut);
        inbox.entry(number).or_insert_with(filling).place(offset, data);
    }

    /// Gives the chunks that are whole of buffers that are not, once something of a later buffer has come: something of these is lost,
    /// and a round trip passes until it is here.
    fn give_whole(&mut self, buffer: u64, give: &mut dyn FnMut(Task)) {
        let Some(place) = buffer.checked_sub(self.before) else { return };
        let passed = match place.cmp(&self.newest) {
            Ordering::Less => place..place + 1,
            Ordering::Equal => return,
            Ordering::Greater => std::mem::replace(&mut self.newest, place)..place,
        };
        let each = u64::from(self.cut.each);
        let whole = self.inbox.range_mut(passed).flat_map(|(place, filling)| {
            filling.whole().into_iter().map(move |(at, octets)| (place * each + at, octets))
        });
        let whole: Vec<(u64, Vec<u8>)> = whole.collect();
        for (place, octets) in whole {
            if let Some(number) = self.number(place) {
                self.hand(Task::Chunk(number, octets), give);
            }
        }
    }

    fn complete(&mut self, whole: Whole, give: &mut dyn FnMut(Task)) {
        self.rows.remove(&whole.buffer);
        let Some(number) = whole.buffer.checked_sub(self.before) else {
            return self.complete_head(give);
        };
        let Some(filling) = self.inbox.remove(&number) else { return };
        let (mut data, left) = filling.end();
        self.whole += 1;
        if self.is_tailed && whole.last {
            let Some((_, root)) = data.split_last_chunk::<ROOT>() else { return };
            self.tail = Some((number + 1, *root));
            data.truncate(data.len() - ROOT);
        }
        let each = u64::from(self.cut.each);
        let chunks = left.into_iter().filter_map(|(at, range)| {
            let range = range.start..range.end.min(data.len());
            let number = self.number(number * each + at).filter(|_| !range.is_empty());
            number.map(|number| (number, range))
        });
        let chunks = chunks.collect();
        self.hand(Task::Buffer(chunks, data), give);
        self.check_end(give);
    }

    /// The number of the chunk at this place behind the head. A sender that sends more than was asked for is left alone with it.
    fn number(&self, place: u64) -> Option<u64> {
        match &self.list {
            Some(list) => list.get(place as usize).copied(),
            None => Some(place),
        }
    }

    /// Gives something to do, or keeps it until the head has come.
    fn hand(&mut self, task: Task, give: &mut dyn FnMut(Task)) {
        match &self.head {
            Some(_) => self.held.push(task),
            None => give(task),
        }
    }

    /// The root is worth something once all that goes before it is whole.
    fn check_end(&mut self, give: &mut dyn FnMut(Task)) {
        if self.head.is_none()
            && let Some((_, root)) = self.tail.take_if(|(buffers, _)| *buffers == self.whole)
        {
            give(Task::Finish(root));
        }
    }

    fn complete_head(&mut self, give: &mut dyn FnMut(Task)) {
        let Some(head) = &mut self.head else { return };
        head.come += 1;
        if head.come == self.before {
            give((head.task)(std::mem::take(&mut head.octets)));
            self.head = None;
            self.held.drain(..).for_each(&mut *give);
            self.check_end(give);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_transport::netblt::wire::{Burst, Data, Dialect, Parity, Ports, Terms};
    use trunkline_transport::netblt::{Habits, Limits, RateLaw};

    const PACKET: u16 = 100;

    /// A connection that brings these chunks, and others behind them, in buffers of ten packets.
    fn current(each: u32, list: &[u64]) -> Current {
        let terms = Terms {
            buffer: 10 * u32::from(PACKET),
            packet: PACKET,
            burst: Burst { size: 10, interval: 1 },
            outstanding: 4,
            write: true,
            parity: true,
            ..Terms::default()
        };
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let limits = Limits { parity: true, ..Limits::default() };
        let ports = Ports { local: 1, foreign: 2 };
        let made = Connection::accept(Time::ZERO, &terms, ports, habits, &limits).unwrap();
        let cut = Cut { chunk: 10 * u32::from(PACKET) / each, each };
        let stream = Stream::chunks(cut, list.to_vec(), 9);
        Current::new((1, 1), made, stream, 0, (4, Span::ZERO))
    }

    /// A packet of a buffer, counted from 1.
    fn data(buffer: u32, packet: u16) -> Packet {
        let ends_buffer = packet == 9;
        let head =
            Data { ends_buffer, buffer, touched: buffer, packet, bytes: PACKET, ..Data::default() };
        Packet::Data(head)
    }

    fn row(number: u16, octets: &[u8]) -> (Packet, Vec<u8>) {
        let mut sum = vec![0; PACKET.into()];
        parity::encode(number.into(), octets, PACKET.into(), &mut sum);
        let (packets, tail, bytes) = (10, PACKET, PACKET);
        let head = Parity {
            buffer: 1,
            touched: 1,
            row: number,
            packets,
            tail,
            bytes,
            ..Parity::default()
        };
        (Packet::Parity(head), sum)
    }

    /// Rows give back what is lost, whatever comes besides, and no more rows are kept than packets are missing.
    #[test]
    fn parity_gives_back_what_is_lost_and_takes_no_more_room() {
        let octets: Vec<u8> = (0..1000u32).map(|it| (it * 7 % 251) as u8).collect();
        let (mut current, mut given) = (current(1, &[7]), Vec::new());
        let mut now = Time::ZERO;
        let mut take = |current: &mut Current, packet: &Packet, data: &[u8]| {
            now += Span::from_millis(1);
            current.take(now, packet, data, &mut |task| given.push(task));
            let kept: usize = current.stream.rows.values().map(Vec::len).sum();
            assert!(kept <= 10, "{kept} rows");
            kept
        };
        let (packet, sum) = row(3, &octets);
        (0..500).for_each(|_| _ = take(&mut current, &packet, &sum));
        assert_eq!(
            take(&mut current, &packet, &sum[1..]),
            1,
            "the same row again, and a short one"
        );
        for (index, octets) in octets.chunks(PACKET.into()).enumerate().filter(|it| it.0 % 3 > 0) {
            take(&mut current, &data(1, index as u16), octets);
        }
        for number in [500, 127, 0, 9, 10] {
            let (packet, sum) = row(number % 128, &octets);
            let Packet::Parity(head) = packet else { continue };
            let head = Parity { row: number, ..head };
            take(&mut current, &Packet::Parity(head), &sum);
        }
        assert_eq!(take(&mut current, &packet, &sum), 0, "the chunk is whole");
        let [Task::Buffer(chunks, data)] = &given[..] else { panic!("{} tasks", given.len()) };
        assert!(*chunks == [(7, 0..1000)] && *data == octets);
    }
    /// What is whole of a buffer that lacks something goes to the disk when a later one has begun, and the rest when it is whole.
    #[test]
    fn whole_chunks_do_not_wait_for_their_buffer() {
        let (mut current, mut given) = (current(2, &[7, 9, 10, 11]), Vec::new());
        let mut take = |buffer, packet: u16| {
            let octets = [buffer as u8 * 10 + packet as u8; PACKET as usize];
            current.take(Time::ZERO, &data(buffer, packet), &octets, &mut |task| given.push(task));
            std::mem::take(&mut given)
        };
        let before: Vec<Task> =
            [0, 1, 2, 3, 4, 5, 6, 8, 9].into_iter().flat_map(|it| take(1, it)).collect();
        assert!(before.is_empty(), "it may be whole soon: {before:?}");
        let passed = take(2, 0);
        let [Task::Chunk(7, octets)] = &passed[..] else { panic!("{passed:?}") };
        assert!(octets.chunks(PACKET.into()).zip(10..15).all(|it| it.0 == [it.1; PACKET as usize]));
        assert!(take(2, 1).is_empty(), "nothing is given twice");
        let whole = take(1, 7);
        let [Task::Buffer(left, octets)] = &whole[..] else { panic!("{whole:?}") };
        assert_eq!((&left[..], octets.len()), (&[(9, 500..1000)][..], 1000));
    }
}

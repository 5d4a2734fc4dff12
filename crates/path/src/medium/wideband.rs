//! A satellite channel in frames: a station asks for room in one frame and sends in a later one.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::{Access, AccessSettings, Ground, MediumSpec, StationId, Stations};
use crate::discipline::settings::keys;
use crate::{Framing, SpecError};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use trunkline_core::{Carried, Rate, Span, Time};

keys! {
    /// A TDMA satellite channel with reservations, the Wideband network (RFC 1030 §7 and Appendix I).
    pub struct WidebandSettings {
        /// From the start of a frame to the start of the next.
        frame: Span = Span::from_micros(21_220), "frame" in FRAMES;
        /// The control subframe in front of the data: 14630 of 32768 symbols.
        control: Span = Span::from_micros(9_474), "control" in CONTROLS;
        /// Bytes of datagrams in a data subframe.
        usable: u32 = 3006, "usable" in SIZES;
        /// Datagrams in a data subframe, whatever their size.
        datagrams: u32 = 2, "datagrams" in COUNTS;
        /// From asking for room to having it; what finds none for as long is asked for again.
        reservation: Span = Span::from_millis(600), "reservation" in RESERVATIONS;
        /// Bytes of the largest packet that is one datagram; a larger one is cut into fragments.
        whole: u32 = 1476, "whole" in SIZES;
        /// Bytes of header that each fragment behind the first has of its own.
        fragment_header: u32 = 20, "fragment_header" in HEADERS;
    }
}

const FRAMES: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(10);
const CONTROLS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(10);
const RESERVATIONS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(10);
const SIZES: RangeInclusive<u32> = 1..=1 << 24;
const COUNTS: RangeInclusive<u32> = 1..=1 << 16;
const HEADERS: RangeInclusive<u32> = 0..=1 << 10;

/// How long `bytes` take on the channel; no time without a rate.
fn time(rate: Option<Rate>, bytes: u32) -> Span {
    const SECOND: u128 = 1_000_000_000;
    let Some(rate) = rate else { return Span::ZERO };
    let nanos = (u128::from(bytes) * 8 * SECOND).div_ceil(u128::from(rate.bits_per_second()));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl AccessSettings for WidebandSettings {
    type Access = Wideband;

    const TRIALS: &'static [&'static str] = &[
        "usable=2900",
        "frame=1ms,control=100us,usable=220,whole=200,reservation=5ms",
        "frame=2ms,control=0s,usable=500,datagrams=5,whole=90,reservation=0s",
        "frame=700us,control=50us,usable=150,datagrams=3,whole=120,fragment_header=8,reservation=1ms",
        "frame=1ms,control=100us,usable=400,whole=200,reservation=200us",
    ];

    fn check(&self, medium: &MediumSpec) -> Result<(), SpecError> {
        if self.whole > self.usable {
            return Err(SpecError::Conflict(format!(
                "a datagram of {} bytes is larger than the {} usable bytes of a frame: give a smaller whole or more usable bytes",
                self.whole, self.usable
            )));
        }
        if self.fragment_header >= self.whole {
            return Err(SpecError::Conflict(format!(
                "a fragment of {} bytes has no room behind its header of {}: give a larger whole or a smaller fragment_header",
                self.whole, self.fragment_header
            )));
        }
        let (data, frame) = (time(medium.rate, self.usable), self.frame);
        if self.control + data > frame {
            return Err(SpecError::Conflict(format!(
                "a control subframe of {} and {} bytes, which take {data}, are longer than a frame of {frame}: give a higher rate, a longer frame or fewer usable bytes",
                self.control, self.usable
            )));
        }
        Ok(())
    }

    fn idle(&self, medium: &MediumSpec) -> Option<&'static str> {
        (medium.framing != Framing::None).then_some(
            "framing has no effect: datagrams go as they are, and what comes with them is in control and usable; leave it out",
        )
    }

    fn faster(self, times: u32) -> WidebandSettings {
        let [usable, datagrams] = [self.usable, self.datagrams].map(|it| it.saturating_mul(times));
        WidebandSettings { usable, datagrams, ..self }
    }

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    fn build(self, ground: &Ground<'_>) -> Wideband {
        Wideband {
            settings: self,
            rate: ground.medium.rate,
            delay: ground.medium.delay,
            asked: ground.stations.iter().map(|_| Asked::default()).collect(),
            frame: Time::ZERO,
            line: Time::ZERO,
        }
    }
}

impl WidebandSettings {
    /// The time from the frame in which room is asked for to the one in which it is there.
    fn ahead(&self) -> Span {
        let frames = self.reservation.as_nanos().div_ceil(self.frame.as_nanos());
        self.frame.scaled(frames, 1)
    }

    /// How long a packet takes that is one datagram.
    fn whole(&self, alone: &Alone, ask: &Ask) -> Result<Span, String> {
        match ask.bytes > self.whole {
            true => Err(format!("packets of {} bytes in fragments", ask.bytes)),
            false => Ok(time(alone.rate, ask.bytes)),
        }
    }
}

impl ByFormula for WidebandSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "for room in a frame",
            formula: "next frame + reservation, in whole frames, + control − ready; half a frame to the next one is the mean over all phases",
            source: "RFC 1030 §7 and Appendix I",
        }
    }

    fn phase(&self, _: &Alone) -> Span {
        self.frame
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let own = self.whole(alone, &ask)?;
        let grid = before.map_or(ask.ready, |last| last.since);
        // Room may be asked for before the frame came in which the last packet went.
        let frame = self.frame.as_nanos();
        let later = ask.ready.since(grid).as_nanos().div_ceil(frame);
        let sooner = grid.since(ask.ready).as_nanos() / frame;
        let asked = grid.before(self.frame.scaled(sooner, 1)) + self.frame.scaled(later, 1);
        let since = asked + self.ahead();
        let mut sent = Turn { since, ..Turn::at(since + self.control, ask, own) };
        if let Some(last) = before.filter(|last| last.since == since) {
            // A frame has room for datagrams of any size together only if for two of the largest.
            let third = last.start > since + self.control;
            if third || self.datagrams < 2 || self.usable / 2 < self.whole {
                return Err("several datagrams that may share a frame".into());
            }
            (sent.start, sent.end) = (last.end, last.end + own);
        }
        Ok(sent)
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        let lengths =
            asks.iter().map(|ask| self.whole(alone, ask)).collect::<Result<Vec<_>, _>>()?;
        let largest = asks.iter().map(|ask| ask.bytes).max().unwrap_or(1);
        let each = u64::from(self.datagrams.min(self.usable / largest.max(1)).max(1));
        let all = self.frame.scaled((asks.len() as u64).div_ceil(each), 1);
        if all > self.reservation + self.frame {
            return Err("reservations that may lapse".into());
        }
        // Behind those of the same frame.
        let ahead = (asks.len() as u64).min(each) - 1;
        let longest = lengths.into_iter().max().unwrap_or_default();
        Ok(all + longest.scaled(ahead, 1))
    }

    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        let sizes: Vec<u32> = asks.iter().map(|ask| ask.bytes).collect();
        asks.iter().try_for_each(|ask| self.whole(alone, ask).map(|_| ()))?;
        if sizes.iter().any(|&size| size != sizes[0]) {
            return Err("packets of several sizes that fill frames".into());
        }
        let each = self.datagrams.min(self.usable / sizes[0].max(1));
        Ok(Saturated {
            cycle: self.frame,
            frames: vec![f64::from(each) / asks.len() as f64; asks.len()],
            formula: "frame, in which min(datagrams, ⌊usable / packet⌋) go",
            source: "RFC 1030 §7 and Appendix I",
            estimate: (asks.len() > 1).then(|| {
                "an equal part of what all get; more or less comes to each by the order of asking and by whose reservations lapse".into()
            }),
        })
    }
}

/// Stations that share the data subframes of a satellite channel.
///
/// A station asks for room for each packet in the control subframe after it has come. From `reservation` later on it has a
/// place among all that was asked for, in the order of asking; of those that asked in one frame another is the first in each
/// frame. A data subframe carries the first of them, whole datagrams only. What has had its place for `reservation` and found no room is
/// asked for again, so that an overload delays packets by multiples of that. A packet larger than `whole` is cut into
/// fragments, each a datagram of its own; it has come with the last one.
#[derive(Debug)]
pub(super) struct Wideband {
    settings: WidebandSettings,
    rate: Option<Rate>,
    delay: Span,
    asked: Vec<Asked>,
    /// The start of the first frame that is not filled.
    frame: Time,
    /// When the last bit of what has been sent leaves.
    line: Time,
}

/// What a station has asked for.
#[derive(Debug, Default)]
struct Asked {
    /// From when on each of its packets has a place, in their order.
    places: VecDeque<Time>,
    /// What has been sent of the packet in hand.
    sent: Sent,
}

/// What has been sent of a packet.
#[derive(Debug, Default, Clone, Copy)]
struct Sent {
    bytes: u32,
    time: Span,
}

/// What a data subframe has room for.
#[derive(Debug, Clone, Copy)]
struct Room {
    datagrams: u32,
    bytes: u32,
}

/// A datagram: a packet, or a fragment of one.
#[derive(Debug, Clone, Copy)]
struct Datagram {
    /// Bytes of the packet that it carries.
    carries: u32,
    /// Bytes of the channel that it takes.
    takes: u32,
    /// Whether nothing of its packet is left behind it.
    is_last: bool,
}

impl Room {
    /// Takes a datagram in. Whether there was room.
    fn take(&mut self, datagram: Datagram) -> bool {
        if self.datagrams == 0 || self.bytes < datagram.takes {
            return false;
        }
        self.datagrams -= 1;
        self.bytes -= datagram.takes;
        true
    }
}

impl Wideband {
    /// The start of the first frame at `at` or later that is not filled.
    fn frame_from(&self, at: Time) -> Time {
        let frame = self.settings.frame;
        let frames = at.as_nanos().div_ceil(frame.as_nanos());
        (Time::ZERO + frame.scaled(frames, 1)).max(self.frame)
    }

    /// Asks for room for each packet for which the station has not, and for no more.
    fn ask<P: Carried>(&mut self, from: Time, station: StationId, stations: &Stations<P>) {
        let packets = stations.backlog(station).packets as usize;
        let place = self.frame_from(from) + self.settings.reservation;
        let places = &mut self.asked[station.0].places;
        places.resize(packets, place);
    }

    /// Asks again for what has had its place for as long as asking takes, and a frame in which to use it.
    fn ask_again(&mut self, now: Time) {
        let WidebandSettings { reservation, frame, .. } = self.settings;
        let is_over = |place: Time| place + reservation < now && place + frame <= now;
        for Asked { places, .. } in self.asked.iter_mut().filter(|it| it.sent.bytes == 0) {
            let lapsed = places.iter().take_while(|&&place| is_over(place)).count();
            places.rotate_left(lapsed);
            let rest = places.len() - lapsed;
            places.range_mut(rest..).for_each(|place| *place = now + reservation);
        }
    }

    /// The station whose turn it is at `now`: the fragments of a packet follow each other, and of those that asked in one
    /// frame another is the first in each frame.
    fn turn<P: Carried>(&self, now: Time, stations: &Stations<P>) -> Option<StationId> {
        let frames = (now.as_nanos() / self.settings.frame.as_nanos()) as usize;
        let count = self.asked.len();
        let first = self.asked.iter().enumerate().filter_map(|(index, asked)| {
            let place = *asked.places.front()?;
            let station = StationId(index);
            let rank = (stations.rank(station) + frames) % count;
            let begun = asked.sent.bytes > 0;
            (place <= now).then_some((!begun, place, rank, station))
        });
        first.min().map(|(.., station)| station)
    }

    /// The next datagram of the packet in hand.
    fn datagram(&self, size: u32, sent: u32) -> Datagram {
        let WidebandSettings { whole, fragment_header, .. } = self.settings;
        let header = if sent > 0 { fragment_header } else { 0 };
        let (left, room) = (size - sent, whole - header);
        let carries = left.min(room);
        Datagram { carries, takes: carries + header, is_last: left <= room }
    }

    /// The station had no packet in hand at its turn: its queue has given up or holds back what it had asked for.
    fn pass<P: Carried>(&mut self, now: Time, station: StationId, stations: &Stations<P>) {
        let later = stations.wants_later(station, now);
        self.asked[station.0].places.clear();
        if let Some(later) = later {
            self.ask(later, station, stations);
        }
    }

    /// Sends the next datagram of a station's packet in hand, if there is room. Whether there was.
    fn send<P: Carried>(
        &mut self,
        station: StationId,
        room: &mut Room,
        stations: &mut Stations<P>,
    ) -> bool {
        let (size, sent) = (stations.size(station), self.asked[station.0].sent);
        let datagram = self.datagram(size, sent.bytes);
        if !room.take(datagram) {
            return false;
        }
        let length = time(self.rate, datagram.takes);
        self.line += length;
        let sent = Sent { bytes: sent.bytes + datagram.carries, time: sent.time + length };
        let asked = &mut self.asked[station.0];
        if datagram.is_last {
            asked.places.pop_front();
            asked.sent = Sent::default();
            stations.deliver(station, self.line, sent.time, |_| self.delay);
        } else {
            asked.sent = sent;
        }
        true
    }
}

impl Access for Wideband {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let ready = stations.wants(station, now).unwrap_or(now);
        let place = self.frame_from(ready) + self.settings.reservation;
        let places = &mut self.asked[station.0].places;
        // What the queue was to hold back for longer is ready sooner with this packet.
        let is_sooner = places.front().is_some_and(|&first| first > place);
        if is_sooner {
            places.clear();
        }
        self.ask(if is_sooner { ready } else { now }, station, stations);
    }

    fn next(&self) -> Option<Time> {
        let first = self.asked.iter().filter_map(|asked| asked.places.front()).min()?;
        Some(self.frame_from(*first))
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        let WidebandSettings { datagrams, usable, control, frame, .. } = self.settings;
        self.ask_again(now);
        let mut room = Room { datagrams, bytes: usable };
        self.line = self.line.max(now + control);
        while let Some(station) = self.turn(now, stations) {
            if !stations.fetch(now, station) {
                self.pass(now, station, stations);
            } else if !self.send(station, &mut room, stations) {
                break;
            }
        }
        self.frame = now + frame;
    }
}

//! Sender, reflector and receiver of both directions, in one thread that never sleeps.
//!
//! One call sends one probe: at high rates batches would be cheaper, but then the departure of each
//! probe would not be known.

use crate::VerifyError;
use crate::compare::Reflection;
use crate::probe::{Content, ProbeKind, SMALLEST, Template, read};
use crate::trace::{Arrival, Sent};
use rustix::time::{ClockId, clock_gettime};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use trunkline_core::{Span, Time};
use trunkline_measure::Times;
use trunkline_port::{Port, PortError, SendOutcome};

/// Frames read from one port before the next probe may be sent.
const BUDGET: usize = 16;
/// Two turns of the loop further apart than this are a stall of the machine.
const STALL: u64 = 1_000_000;
/// More probes per second than this no single core sends one by one.
const MOST_PER_SECOND: f64 = 1_500_000.0;
/// Probes sent each way to warm caches.
const WARM: u32 = 20;
/// A shift between the two clocks beyond this within a run is a step of CLOCK_REALTIME.
const STEP: i64 = 20_000;

/// The addresses in the probes, those of the laboratory's ends.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The probes to send.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// Bytes of a probe, as an IPv4 packet.
    pub size: u32,
    /// Probes per second from near to far and from far to near; infinite for as fast as possible.
    pub per_second: [f64; 2],
    /// The most of those from the near end that are reflected, per second.
    pub pings_per_second: f64,
    /// When the first probe is to be sent: nanoseconds of CLOCK_REALTIME.
    pub start: u64,
    /// For how long probes are sent.
    pub duration: Span,
    /// The time to wait for the last ones.
    pub tail: Span,
}

/// One direction of a recording.
#[derive(Debug, Default)]
pub struct Half {
    /// The probes sent.
    pub sent: Sent,
    /// The arrivals at the other end, in the order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Probes that the sending device refused.
    pub refused: u64,
    /// Frames that the receiving socket lost because the receiver did not read in time.
    pub ring_drops: u64,
}

/// The recording of a course.
#[derive(Debug, Default)]
pub struct Recording {
    /// From near to far.
    pub up: Half,
    /// From far to near.
    pub down: Half,
    /// The pairs of probe up and the probe down that answered it.
    pub reflections: Vec<Reflection>,
    /// The lateness of probes sent, against their intended time.
    pub lateness: Times,
    /// The number of times that the generator did not run for more than a millisecond.
    pub stalls: u64,
    /// The longest of these stalls.
    pub longest_stall: Span,
    /// Whether everything was sent in time that was to be sent.
    pub complete: bool,
    /// For how long probes were sent.
    pub sending: Span,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds.
    pub offset: i64,
    /// Whether CLOCK_REALTIME was stepped during the course.
    pub stepped: bool,
}

/// CLOCK_REALTIME, the clock of kernel stamps.
pub fn realtime() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC: of several comparisons the one that took least.
pub fn clock_offset() -> i64 {
    let compare = |_| {
        let before = trunkline_dataplane::monotonic().as_nanos() as i64;
        let real = realtime() as i64;
        let after = trunkline_dataplane::monotonic().as_nanos() as i64;
        (after - before, real - (before + after) / 2)
    };
    (0..16).map(compare).min().unwrap_or_default().1
}

/// An instant of CLOCK_MONOTONIC from one of CLOCK_REALTIME.
pub fn to_monotonic(realtime: u64, offset: i64) -> Time {
    Time::from_nanos((realtime as i64 - offset).max(0) as u64)
}

/// A frame as [`Template`] makes it, for asking what a path sees in it: up and down.
pub fn sample(size: u32) -> [Vec<u8>; 2] {
    templates(size).map(|mut template| template.fill(warm_content()).to_vec())
}

fn templates(size: u32) -> [Template; 2] {
    [Template::new(NEAR, FAR, size), Template::new(FAR, NEAR, size)]
}

fn warm_content() -> Content {
    Content { kind: ProbeKind::Warm, number: 0, stamp: 0 }
}

/// Sends some probes that are not counted, so that caches and rings are warm.
///
/// # Errors
/// If a device is down or gone.
pub fn warm(near: &mut dyn Port, far: &mut dyn Port, size: u32) -> Result<(), PortError> {
    let [mut up, mut down] = templates(size);
    for _ in 0..WARM {
        near.send(&mut std::iter::once(up.fill(warm_content())), &mut |_, _| {})?;
        far.send(&mut std::iter::once(down.fill(warm_content())), &mut |_, _| {})?;
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    Ok(())
}

/// Probes of one direction in the making.
struct Stream {
    template: Template,
    start: u64,
    /// Nanoseconds from one probe to the next; zero for as fast as possible.
    interval: f64,
    planned: usize,
    begun: usize,
    /// Every so many probes one is to be reflected; none if zero.
    ping_every: usize,
    half: Half,
}

impl Stream {
    fn new(template: Template, course: &Course, way: usize) -> Stream {
        let rate = course.per_second[way];
        let seconds = course.duration.as_secs_f64();
        let interval = if rate.is_finite() && rate > 0.0 { 1e9 / rate } else { 0.0 };
        // The opposite direction is half an interval behind, so that the two do not always meet.
        let behind = (interval / 2.0) as u64 * way as u64;
        let start = course.start + behind;
        let left = (seconds - behind as f64 / 1e9).max(0.0);
        let planned = (rate.min(MOST_PER_SECOND) * left).ceil() as usize;
        let ping_every = match way {
            0 if course.pings_per_second > 0.0 => {
                (rate.min(MOST_PER_SECOND) / course.pings_per_second).round().max(1.0) as usize
            }
            _ => 0,
        };
        let room = planned + (course.pings_per_second * seconds) as usize + 16;
        let half = Half {
            sent: Sent { before: touched(room), took: touched(room) },
            arrivals: touched(room),
            ..Half::default()
        };
        Stream { template, start, interval, planned, begun: 0, ping_every, half }
    }

    /// The time at which the next probe is to be sent; nothing if all were.
    fn next(&self) -> Option<u64> {
        let at = self.start + (self.begun as f64 * self.interval) as u64;
        (self.begun < self.planned).then_some(at)
    }

    /// Sends the next probe if its time has come.
    fn send_due(
        &mut self,
        now: u64,
        port: &mut dyn Port,
        lateness: &mut Times,
    ) -> Result<(), PortError> {
        let Some(due) = self.next().filter(|&due| due <= now) else { return Ok(()) };
        let is_ping = self.ping_every > 0 && self.begun.is_multiple_of(self.ping_every);
        self.begun += 1;
        if self.interval > 0.0 {
            lateness.record(Span::from_nanos(now - due));
        }
        let kind = if is_ping { ProbeKind::Ping } else { ProbeKind::Plain };
        self.send(kind, None, port).map(drop)
    }

    /// Sends one probe, with the stamp given or that of now; returns its number if the device took it.
    fn send(
        &mut self,
        kind: ProbeKind,
        stamp: Option<u32>,
        port: &mut dyn Port,
    ) -> Result<Option<u32>, PortError> {
        let number = self.half.sent.len() as u32;
        // The content is written before the clock is read, but its stamp is a few ns older.
        let stamp = stamp.unwrap_or_else(|| realtime() as u32);
        let frame = self.template.fill(Content { kind, number, stamp });
        let mut taken = false;
        let before = realtime();
        port.send(&mut std::iter::once(frame), &mut |_, outcome| {
            taken = outcome == SendOutcome::Sent;
        })?;
        let after = realtime();
        if !taken {
            self.half.refused += 1;
            return Ok(None);
        }
        self.half.sent.push(before, after);
        Ok(Some(number))
    }
}

/// An empty list with `room`, whose memory is in place: no page faults while probes fly.
fn touched<T: Clone + Touch>(room: usize) -> Vec<T> {
    let mut list = vec![T::TOUCH; room];
    list.clear();
    list
}

/// A value that is not all zero bits, which the allocator could answer with untouched memory.
trait Touch {
    const TOUCH: Self;
}
impl Touch for u64 {
    const TOUCH: u64 = 1;
}
impl Touch for u32 {
    const TOUCH: u32 = 1;
}
impl Touch for Arrival {
    const TOUCH: Arrival = Arrival { number: 1, stamp: 1 };
}

/// A course under way.
struct Generator<'a> {
    near: &'a mut dyn Port,
    far: &'a mut dyn Port,
    up: Stream,
    down: Stream,
    echoes: Vec<Content>,
    recording: Recording,
    last_turn: u64,
}

/// Runs a course to its end.
///
/// # Errors
/// If a device fails, or `stop` was set.
pub fn run(
    near: &mut dyn Port,
    far: &mut dyn Port,
    course: &Course,
    stop: &AtomicBool,
) -> Result<Recording, VerifyError> {
    debug_assert!(course.size >= SMALLEST);
    let [up, down] = templates(course.size);
    discard(near)?;
    discard(far)?;
    let drops = [far.kernel_drops(), near.kernel_drops()];
    let mut generator = Generator {
        near,
        far,
        up: Stream::new(up, course, 0),
        down: Stream::new(down, course, 1),
        echoes: Vec::with_capacity(BUDGET),
        recording: Recording::default(),
        last_turn: realtime(),
    };
    let offset = clock_offset();
    generator.all_turns(course, stop)?;
    let moved = (clock_offset() - offset).abs();
    let Generator { near, far, up, down, mut recording, .. } = generator;
    (recording.up, recording.down) = (up.half, down.half);
    recording.up.ring_drops = far.kernel_drops() - drops[0];
    recording.down.ring_drops = near.kernel_drops() - drops[1];
    (recording.offset, recording.stepped) = (offset, moved > STEP);
    Ok(recording)
}

/// Forgets what lies in the ring from before.
fn discard(port: &mut dyn Port) -> Result<(), PortError> {
    while port.receive(1024, &mut |_| {})? > 0 {}
    Ok(())
}

impl Generator<'_> {
    fn all_turns(&mut self, course: &Course, stop: &AtomicBool) -> Result<(), VerifyError> {
        let planned_end = course.start + course.duration.as_nanos();
        // A generator that has fallen this far behind does not hold the rate; it gives up.
        let give_up = planned_end + course.duration.as_nanos() / 8 + 20_000_000;
        let unpaced = course.per_second.iter().any(|rate| rate.is_infinite());
        let mut sent_at = None;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(VerifyError::Interrupted);
            }
            let now = self.turn(sent_at.is_none())?;
            let all = self.up.next().is_none() && self.down.next().is_none();
            let over = all || now > give_up || (unpaced && now > planned_end);
            if over && sent_at.is_none() {
                sent_at = Some(now);
                self.recording.complete = all || unpaced;
                self.recording.sending = Span::from_nanos(now.saturating_sub(course.start));
            }
            let waited = sent_at.is_some_and(|at| now > at + course.tail.as_nanos());
            if waited || (sent_at.is_some() && self.all_arrived()) {
                return Ok(());
            }
        }
    }

    fn turn(&mut self, sending: bool) -> Result<u64, PortError> {
        let now = realtime();
        self.notice_stall(now);
        if sending {
            self.up.send_due(now, self.near, &mut self.recording.lateness)?;
            self.down.send_due(now, self.far, &mut self.recording.lateness)?;
        }
        receive(self.far, &mut self.up.half, &mut self.echoes)?;
        receive(self.near, &mut self.down.half, &mut Vec::new())?;
        for ping in self.echoes.drain(..) {
            if let Some(pong) = self.down.send(ProbeKind::Pong, Some(ping.stamp), self.far)? {
                self.recording.reflections.push(Reflection { ping: ping.number, pong });
            }
        }
        Ok(now)
    }

    fn notice_stall(&mut self, now: u64) {
        let apart = now.saturating_sub(self.last_turn);
        self.last_turn = now;
        if apart > STALL {
            self.recording.stalls += 1;
            self.recording.longest_stall =
                self.recording.longest_stall.max(Span::from_nanos(apart));
        }
    }

    fn all_arrived(&self) -> bool {
        [&self.up.half, &self.down.half].iter().all(|half| half.arrivals.len() >= half.sent.len())
    }
}

fn receive(
    port: &mut dyn Port,
    half: &mut Half,
    echoes: &mut Vec<Content>,
) -> Result<(), PortError> {
    port.receive(BUDGET, &mut |frame| {
        let Some(content) = read(frame.bytes).filter(|content| content.kind != ProbeKind::Warm)
        else {
            return;
        };
        let stamp = frame.stamp.unwrap_or_else(realtime);
        half.arrivals.push(Arrival { number: content.number, stamp });
        if content.kind == ProbeKind::Ping {
            echoes.push(content);
        }
    })?;
    Ok(())
}

//! A link as the network drives it.

use super::parcel::{Laden, Leg};
use super::routes::Shares;
use super::wheel::Handle;
use trunkline_core::{Counts, DropCause, Metered, Rate, Seed, Span, Time};
use trunkline_measure::Times;
use trunkline_path::impairment::ImpairmentSpec;
use trunkline_path::{Framing, Line, Link, LinkSpec, Schedule};

/// A link, with its one event in the event queue.
#[derive(Debug)]
pub(super) struct Station {
    carrier: Carrier,
    /// Its event and when that is due; [`Time::NEVER`] while there is none.
    pub(super) armed: Option<Handle>,
    pub(super) due: Time,
    busy: Span,
    watch: Option<Box<Watch>>,
}

/// The two kinds of links.
#[derive(Debug)]
enum Carrier {
    /// Delay and rate never change, and nothing is impaired: what a packet waited for follows from its
    /// times, and it carries nothing but itself.
    Whole { link: Link<Leg>, delay: Span, gauge: u32 },
    /// Any other.
    Laden(Link<Laden>),
}

macro_rules! each {
    ($carrier:expr, $link:ident => $body:expr) => {
        match $carrier {
            Carrier::Whole { link: $link, .. } => $body,
            Carrier::Laden($link) => $body,
        }
    };
}

/// A packet that has come out of a link, and what it waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    pub(super) leg: Leg,
    pub(super) shares: Shares,
    pub(super) copies: u8,
}

/// What is recorded of a link beyond its counts.
#[derive(Debug, Default)]
struct Watch {
    queueing: Option<Times>,
    samples: Option<Samples>,
}

/// Bytes waiting at regular instants.
#[derive(Debug)]
struct Samples {
    every: Span,
    next: Time,
    taken: Vec<(Time, u64)>,
}

impl Station {
    /// A link as `spec` says, from the origin of time.
    pub(super) fn new(spec: &LinkSpec, seed: Seed, name: &str, gauges: &mut Gauges) -> Station {
        let never_changes = spec.schedule == Schedule::default();
        let carrier = if never_changes && spec.impairments == ImpairmentSpec::default() {
            let link = Link::new(spec, seed, name, Time::ZERO);
            Carrier::Whole { link, delay: spec.delay, gauge: gauges.find(spec) }
        } else {
            Carrier::Laden(Link::new(spec, seed, name, Time::ZERO))
        };
        Station { carrier, armed: None, due: Time::NEVER, busy: Span::ZERO, watch: None }
    }

    /// A packet arrives.
    #[inline]
    pub(super) fn offer(&mut self, now: Time, leg: Leg) {
        if self.watch.is_some() {
            self.sample(now);
        }
        match &mut self.carrier {
            Carrier::Whole { link, .. } => link.offer(now, leg),
            Carrier::Laden(link) => link.offer(now, Laden::new(leg)),
        }
    }

    /// Lets the line work up to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if self.watch.is_some() {
            self.sample(now);
        }
        each!(&mut self.carrier, link => link.advance(now));
    }

    /// Takes the next packet that is due.
    #[inline]
    pub(super) fn take(&mut self, now: Time, gauges: &mut Gauges) -> Option<Passed> {
        let passed = match &mut self.carrier {
            Carrier::Whole { link, delay, gauge } => {
                let delivered = link.take(now)?;
                whole(delivered.packet, delivered.release, *delay, gauges.get(*gauge))
            }
            Carrier::Laden(link) => {
                let delivered = link.take(now)?;
                laden(delivered.packet, delivered.release)
            }
        };
        self.busy += Span::from_nanos(passed.shares.transmit);
        if let Some(watch) = &mut self.watch
            && let Some(times) = &mut watch.queueing
        {
            times.record(Span::from_nanos(passed.shares.queue));
        }
        Some(passed)
    }

    /// Hands each packet that was given up since the last call to `sink`.
    pub(super) fn dropped(&mut self, mut sink: impl FnMut(Leg, DropCause)) {
        match &mut self.carrier {
            Carrier::Whole { link, .. } => link.dropped().for_each(|(leg, cause)| sink(leg, cause)),
            Carrier::Laden(link) => {
                link.dropped().for_each(|(laden, cause)| sink(laden.leg, cause))
            }
        }
    }

    /// Was anything given up?
    #[inline]
    pub(super) fn has_dropped(&self) -> bool {
        each!(&self.carrier, link => link.has_dropped())
    }

    /// When it next needs attention.
    #[inline]
    pub(super) fn next_event(&self) -> Time {
        each!(&self.carrier, link => link.next_event()).unwrap_or(Time::NEVER)
    }

    /// What became of its packets.
    pub(super) fn counts(&self) -> Counts {
        each!(&self.carrier, link => link.counts())
    }

    /// Bytes waiting.
    pub(super) fn backlog(&self) -> u64 {
        each!(&self.carrier, link => link.backlog().bytes)
    }

    /// Time that packets' own bits were on its line.
    pub(super) fn busy(&self) -> Span {
        self.busy
    }

    fn watch(&mut self) -> &mut Watch {
        self.watch.get_or_insert_default()
    }

    /// From now on records each packet's time in queue.
    pub(super) fn record_queueing(&mut self) {
        self.watch().queueing.get_or_insert_default();
    }

    /// Times in queue.
    pub(super) fn queueing(&self) -> Option<&Times> {
        self.watch.as_ref()?.queueing.as_ref()
    }

    /// Samples the backlog at `from` and then regularly.
    pub(super) fn sample_backlog(&mut self, from: Time, every: Span) {
        let every = every.max(Span::from_nanos(1));
        self.watch().samples = Some(Samples { every, next: from, taken: Vec::new() });
    }

    /// Takes the samples due before `now`. Between two events nothing enters and the line does what it
    /// would have done anyway, so that they can be taken afterwards.
    #[cold]
    fn sample(&mut self, now: Time) {
        let Some(samples) = self.watch.as_mut().and_then(|watch| watch.samples.as_mut()) else {
            return;
        };
        while samples.next < now {
            let bytes = each!(&mut self.carrier, link => {
                link.advance(samples.next);
                link.backlog().bytes
            });
            samples.taken.push((samples.next, bytes));
            samples.next += samples.every;
        }
    }

    /// The samples before `now`.
    pub(super) fn samples(&mut self, now: Time) -> &[(Time, u64)] {
        self.sample(now);
        let samples = self.watch.as_ref().and_then(|watch| watch.samples.as_ref());
        samples.map_or(&[], |samples| &samples.taken)
    }
}

/// Splits the time of a packet on a link that never changes: distance is the delay, its own bits take what
/// they take on an idle line, and the rest was queueing. The link itself books the same.
#[inline]
fn whole(leg: Leg, release: Time, delay: Span, gauge: &mut Gauge) -> Passed {
    let sojourn = release.since(leg.entered).saturating_sub(delay);
    let transmit = gauge.nominal(&leg).min(sojourn);
    let shares = Shares {
        queue: (sojourn - transmit).as_nanos(),
        transmit: transmit.as_nanos(),
        propagate: delay.as_nanos(),
    };
    Passed { leg, shares, copies: 1 }
}

/// Takes the load off a packet; distance is what remains of its time.
fn laden(packet: Laden, release: Time) -> Passed {
    let Laden { leg, queue, transmit, copies } = packet;
    let propagate = release.since(leg.entered).saturating_sub(queue + transmit);
    let shares = Shares {
        queue: queue.as_nanos(),
        transmit: transmit.as_nanos(),
        propagate: propagate.as_nanos(),
    };
    Passed { leg, shares, copies }
}

/// What tells how long packets' own bits take: one for each kind of line, shared by all links that have it.
#[derive(Debug, Default)]
pub(super) struct Gauges(Vec<Gauge>);

/// Sizes that a gauge remembers.
const SIZES: usize = 16;

#[derive(Debug)]
struct Gauge {
    kind: (Framing, Option<Rate>),
    line: Line<Leg>,
    known: [(u32, u16, Span); SIZES],
}

impl Gauges {
    /// The gauge for the line of `spec`. A delivery trace has no rate: all of its time is queueing.
    fn find(&mut self, spec: &LinkSpec) -> u32 {
        let rate = spec.rate.filter(|_| spec.trace.is_none());
        let kind = (spec.framing, rate);
        let known = self.0.iter().position(|gauge| gauge.kind == kind);
        known.unwrap_or_else(|| {
            let line = Line::new(spec.framing, rate, None, Time::ZERO);
            self.0.push(Gauge { kind, line, known: [(0, 0, Span::ZERO); SIZES] });
            let last = self.0.len() - 1;
            // What stands in an unused place has to be true too.
            let gauge = &mut self.0[last];
            let empty = gauge.line.nominal(0, 0);
            gauge.known = [(0, 0, empty); SIZES];
            last
        }) as u32
    }

    fn get(&mut self, gauge: u32) -> &mut Gauge {
        &mut self.0[gauge as usize]
    }
}

impl Gauge {
    /// The time that the packet's own bits take on an idle line.
    #[inline]
    fn nominal(&mut self, leg: &Leg) -> Span {
        let place = leg.size.wrapping_mul(0x9e37_79b1) >> 28;
        let (size, controls, span) = self.known[place as usize % SIZES];
        if size == leg.size && controls == leg.controls() {
            return span;
        }
        self.learn(place as usize % SIZES, leg)
    }

    #[cold]
    fn learn(&mut self, place: usize, leg: &Leg) -> Span {
        let span = self.line.nominal(leg.size, Metered::controls(leg));
        self.known[place] = (leg.size, leg.controls(), span);
        span
    }
}

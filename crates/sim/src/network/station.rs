//! A link as the network drives it.

use super::Due;
use super::parcel::{Laden, Leg};
use super::routes::Shares;
use super::watch::{Queueing, Samples};
use super::wheel::{Handle, Wheel};
use trunkline_core::{Channel, Counts, DropCause, Hosts, Seed, Span, Time};
use trunkline_measure::Times;
use trunkline_path::impairment::ImpairmentSpec;
use trunkline_path::{Delivered, Link, LinkSpec, Schedule, Served};

/// A link, with its one event in the event queue.
#[derive(Debug)]
pub(super) struct Station {
    carrier: Carrier,
    /// Its entry in the event queue, and when that is due; [`Time::NEVER`] while it does not wait there.
    entry: Handle,
    pub(super) due: Time,
    /// Nanoseconds.
    busy: u64,
    queueing: Queueing,
    samples: Option<Box<Samples>>,
}

/// The two kinds of links.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the common kind lies where the network looks")]
enum Carrier {
    /// Delay and rate never change, and nothing is impaired: what a packet waited for follows from its
    /// times, and it carries nothing but itself.
    Whole { link: Link<Leg>, delay: Span },
    /// Any other.
    Laden(Box<Link<Laden>>),
}

/// What the network has to do about a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// When it next needs attention; [`Time::NEVER`] if nothing is in it.
    pub(super) due: Time,
    /// Something was given up.
    pub(super) lost: bool,
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

impl Station {
    /// A link as `spec` says, from the origin of time.
    pub(super) fn new(spec: &LinkSpec, seed: Seed, name: &str, entry: Handle) -> Station {
        let never_changes = spec.schedule == Schedule::default();
        let carrier = if never_changes && spec.impairments == ImpairmentSpec::default() {
            let link = Link::new(spec, seed, name, Time::ZERO);
            Carrier::Whole { link, delay: spec.delay }
        } else {
            Carrier::Laden(Box::new(Link::new(spec, seed, name, Time::ZERO)))
        };
        let queueing = Queueing::default();
        Station { carrier, entry, due: Time::NEVER, busy: 0, queueing, samples: None }
    }

    /// Tells which hosts the packets of `channel` go between.
    pub(super) fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        each!(&mut self.carrier, link => link.introduce(channel, hosts));
    }

    /// A packet arrives.
    #[inline(always)]
    pub(super) fn offer(&mut self, now: Time, leg: Leg) -> Needs {
        if self.is_sampled() {
            self.sample(now);
        }
        match &mut self.carrier {
            Carrier::Whole { link, .. } if link.foresees() => {
                link.offer(now, leg);
                if self.due != Time::NEVER {
                    return Needs { due: self.due, lost: link.has_dropped() };
                }
            }
            // Field by field, so that only here the packet has to lie in memory.
            Carrier::Whole { link, .. } => link.offer(now, Leg { ..leg }),
            Carrier::Laden(link) => link.offer(now, Laden::new(leg)),
        }
        self.needs()
    }

    /// Lets the line of a link that never changes work up to `now`, takes the next packet that is due, and
    /// tells what the link needs then; `None` if the link is of the other kind.
    #[inline(always)]
    pub(super) fn serve_whole(&mut self, now: Time) -> Option<(Option<(Leg, Shares)>, Needs)> {
        let Carrier::Whole { link, delay } = &mut self.carrier else { return None };
        let Served { delivered, nominal, next, lost } = link.serve(now);
        let needs = Needs { due: next.unwrap_or(Time::NEVER), lost };
        let Some(Delivered { packet, release }) = delivered else { return Some((None, needs)) };
        let shares = whole(&packet, release, *delay, nominal);
        self.note_share(&shares);
        Some((Some((packet, shares)), needs))
    }

    /// The same for any other link, with the number of copies.
    pub(super) fn serve_laden(&mut self, now: Time) -> (Option<Passed>, Needs) {
        let Carrier::Laden(link) = &mut self.carrier else { return (None, self.needs()) };
        let Served { delivered, next, lost, .. } = link.serve(now);
        let passed = delivered.map(|it| laden(it.packet, it.release));
        if let Some(passed) = &passed {
            self.note_share(&passed.shares);
        }
        (passed, Needs { due: next.unwrap_or(Time::NEVER), lost })
    }

    /// Goes back into the event queue, if it is not there, until `due`.
    #[inline(always)]
    pub(super) fn wait(&mut self, due: Time, events: &mut Wheel<Due>) {
        self.due = due;
        if due != Time::NEVER {
            events.insert(self.entry, due);
        }
    }

    /// Sees to it that its one event is at the instant at which it next needs attention.
    #[inline(always)]
    pub(super) fn arm(&mut self, due: Time, events: &mut Wheel<Due>) {
        if self.due != Time::NEVER {
            events.remove(self.entry);
        }
        self.wait(due, events);
    }

    #[inline(always)]
    fn note_share(&mut self, shares: &Shares) {
        self.busy += shares.transmit;
        if self.queueing.is_recorded() {
            self.queueing.record(shares.queue);
        }
    }

    /// What has to be done about it.
    #[inline(always)]
    pub(super) fn needs(&self) -> Needs {
        each!(&self.carrier, link => Needs {
            due: link.next_event().unwrap_or(Time::NEVER),
            lost: link.has_dropped(),
        })
    }

    /// Hands each packet that was given up since the last call to `sink`.
    pub(super) fn dropped(&mut self, mut sink: impl FnMut(Leg, DropCause)) {
        match &mut self.carrier {
            Carrier::Whole { link, .. } => link.dropped().for_each(|(leg, cause)| sink(leg, cause)),
            Carrier::Laden(link) => link.dropped().for_each(|(laden, cause)| {
                // What was lost behind the line has kept it busy.
                self.busy += laden.transmit.as_nanos();
                sink(laden.leg, cause);
            }),
        }
    }

    /// What became of its packets.
    pub(super) fn counts(&self) -> Counts {
        each!(&self.carrier, link => link.counts())
    }

    /// Bytes waiting.
    pub(super) fn backlog(&self) -> u64 {
        each!(&self.carrier, link => link.backlog().bytes)
    }

    /// Time up to `now` that packets' own bits were on its line.
    pub(super) fn busy(&self, now: Time) -> Span {
        let shared = each!(&self.carrier, link => link.shared(now));
        shared.unwrap_or(Span::from_nanos(self.busy))
    }

    /// Whether its backlog is sampled.
    #[inline(always)]
    pub(super) fn is_sampled(&self) -> bool {
        self.samples.is_some()
    }

    /// From now on records each packet's time in queue.
    pub(super) fn record_queueing(&mut self) {
        self.queueing.begin();
    }

    /// Times in queue, if they are recorded.
    pub(super) fn queueing(&self) -> Option<Times> {
        self.queueing.clone().times()
    }

    /// The times in queue, given away: nothing is recorded any more.
    pub(super) fn take_queueing(&mut self) -> Option<Times> {
        std::mem::take(&mut self.queueing).times()
    }

    /// Samples the backlog at `from` and then regularly.
    pub(super) fn sample_backlog(&mut self, from: Time, every: Span) {
        self.samples = Some(Box::new(Samples::new(from, every)));
    }

    /// Takes the samples due before `now`. Between two events nothing enters and the line does what it
    /// would have done anyway, so that they can be taken afterwards.
    #[cold]
    #[inline(never)]
    pub(super) fn sample(&mut self, now: Time) {
        let Station { carrier, samples, .. } = self;
        if let Some(samples) = samples {
            samples.take(now, |at| {
                each!(&mut *carrier, link => {
                    link.advance(at);
                    link.backlog().bytes
                })
            });
        }
    }

    /// The samples before `now`.
    pub(super) fn samples(&mut self, now: Time) -> &[(Time, u64)] {
        self.sample(now);
        self.samples.as_ref().map_or(&[], |samples| samples.taken())
    }
}

/// Splits the time of a packet on a link that never changes: distance is the delay, its own bits take what
/// they take on an idle line, and the rest was queueing. The link itself books the same.
#[inline(always)]
fn whole(leg: &Leg, release: Time, delay: Span, nominal: Span) -> Shares {
    let propagate = delay.as_nanos();
    let sojourn = release.since(leg.entered).as_nanos().saturating_sub(propagate);
    let transmit = nominal.as_nanos().min(sojourn);
    Shares { queue: sojourn - transmit, transmit, propagate }
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

//! One direction of a path: discipline, line, impairments, delay line.

mod eager;
mod rides;
mod staged;

use crate::impairment::{Achieved, ImpairmentSpec, Setting};
use crate::{Backlog, CatchUp, Limit, LinkSpec};
use eager::Eager;
use staged::Staged;
use trunkline_core::{Carried, Cause, Channel, Counts, DropCause, Hosts, Rate, Seed, Span, Time};

/// One direction of a path, at work, and the packets `P` that it carries.
///
/// The engine calls [`offer`](Link::offer) for each arrival in order of time, [`advance`](Link::advance)
/// so that the line works up to an instant, [`take`](Link::take) until it answers `None`, and
/// [`dropped`](Link::dropped) to get back what was given up.
///
/// A plain link (first in first out, nothing that impairs or changes it) knows when a packet departs as soon
/// as it comes, and works so until a change is asked for; what comes out is the same.
#[derive(Debug)]
pub struct Link<P> {
    way: Way<P>,
}

/// The way in which a link works.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a simulator has many plain links and few others")]
enum Way<P> {
    /// The departure is known at arrival.
    Eager(Eager<P>),
    /// Stage by stage.
    Staged(Box<Staged<P>>),
}

/// A setting that changes while traffic flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The delay; packets under way keep theirs, and what follows catches up with them.
    Delay(Span),
    /// The way in which it catches up.
    CatchUp(CatchUp),
    /// The line's rate; what is on the line goes on at the new rate.
    Rate(Option<Rate>),
    /// The discipline's limit; what waits stays.
    Limit(Limit),
    /// All impairments.
    Impairments(ImpairmentSpec),
    /// One impairment; the others stay.
    Setting(Setting),
}

/// A packet that has come out at the far end.
#[derive(Debug)]
pub struct Delivered<P> {
    /// When it is due there.
    pub release: Time,
    /// The packet, its ledger complete.
    pub packet: P,
}

/// The result of [`Link::serve`].
#[derive(Debug)]
pub struct Served<P> {
    /// The packet that was taken.
    pub delivered: Option<Delivered<P>>,
    /// The time that its own bits take on the idle line, without waiting for a slot; no time if a delivery
    /// trace takes the place of the rate.
    pub nominal: Span,
    /// When the link next needs anything at all.
    pub next: Option<Time>,
    /// Whether there is anything to be had from [`Link::dropped`].
    pub lost: bool,
}

macro_rules! either {
    ($way:expr, $it:ident => $body:expr) => {
        match $way {
            Way::Eager($it) => $body,
            Way::Staged($it) => $body,
        }
    };
}

impl<P: Carried> Link<P> {
    /// A link as `spec` says, whose slot clock, trace and schedule start at `origin`. Its randomness
    /// comes from the streams of `seed` under `name`.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Link<P> {
        let way = match Eager::new(spec, seed, name, origin) {
            Some(eager) => Way::Eager(eager),
            None => Way::Staged(Box::new(Staged::new(spec, seed, name, origin))),
        };
        Link { way }
    }

    /// Tells which hosts the packets of `channel` go between, for packets that do not say it themselves
    /// ([`Metered::hosts`](trunkline_core::Metered::hosts)).
    pub fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        if let Way::Staged(staged) = &mut self.way {
            staged.introduce(channel, hosts);
        }
    }

    /// A packet arrives at `at`, or with the last thing that has happened if that was later.
    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: P) {
        either!(&mut self.way, it => it.offer(at, packet));
    }

    /// Lets the line work up to `to`. A schedule that repeats never ends: with one, `to` has to be an
    /// instant that the run can reach, not [`Time::NEVER`].
    #[inline(always)]
    pub fn advance(&mut self, to: Time) {
        either!(&mut self.way, it => it.advance(to));
    }

    /// Takes the next packet that is due by `now`, of those that have left the line. The line itself need
    /// not have been told to work so far if its departures are known beforehand.
    #[inline(always)]
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        either!(&mut self.way, it => it.take(now))
    }

    /// Lets the line work up to `now`, takes the next packet that is due by then, and looks ahead: all that an
    /// engine does at one event, for one look at what kind of link it is.
    #[inline(always)]
    pub fn serve(&mut self, now: Time) -> Served<P> {
        either!(&mut self.way, it => {
            let delivered = it.pull(now);
            let nominal = match &delivered {
                Some(Delivered { packet, .. }) => it.nominal(packet.size(), packet.controls()),
                None => Span::ZERO,
            };
            Served { delivered, nominal, next: it.next_event(), lost: it.has_dropped() }
        })
    }

    /// Whether all departures are known at arrival. Then an arrival never changes when the link next needs anything,
    /// unless nothing was in it.
    #[inline(always)]
    pub fn foresees(&self) -> bool {
        matches!(self.way, Way::Eager(_))
    }

    /// Counts `packets` that entered but were lost by the engine before they could be offered.
    pub fn turned_away(&mut self, packets: u64, cause: DropCause) {
        if packets == 0 {
            return;
        }
        let told = self.told();
        told.entered += packets;
        told.drop_many(cause, packets);
    }

    /// Counts one copy of `packet`, which was taken, as lost by the engine after all.
    pub fn undelivered(&mut self, packet: &P, cause: DropCause) {
        let told = self.told();
        told.delivered = told.delivered.wrapping_sub(1);
        told.delivered_bytes = told.delivered_bytes.wrapping_sub(u64::from(packet.size()));
        told.drop(cause);
    }

    /// The counts of the engine's own losses.
    fn told(&mut self) -> &mut Counts {
        either!(&mut self.way, it => it.told())
    }

    /// Takes out what was given up since the last call, with its causes.
    pub fn dropped(&mut self) -> impl Iterator<Item = (P, DropCause)> + '_ {
        let (mut counts, given_up) = match &mut self.way {
            Way::Eager(eager) => (None, eager.given_up()),
            Way::Staged(staged) => staged.given_up(),
        };
        given_up.drain(..).inspect(move |&(_, cause)| {
            if let Some(counts) = &mut counts {
                counts.drop(cause);
            }
        })
    }

    /// Whether anything has been given up since the last call of [`dropped`](Link::dropped).
    #[inline(always)]
    pub fn has_dropped(&self) -> bool {
        either!(&self.way, it => it.has_dropped())
    }

    /// When the link next needs anything at all: [`advance`](Link::advance) for its line or a scheduled
    /// change, or [`take`](Link::take) for what is due at the far end.
    #[inline(always)]
    pub fn next_event(&self) -> Option<Time> {
        either!(&self.way, it => it.next_event())
    }

    /// When the line or a scheduled change next needs [`advance`](Link::advance). Never, if all departures
    /// are known beforehand.
    pub fn next_work(&self) -> Option<Time> {
        match &self.way {
            Way::Eager(_) => None,
            Way::Staged(staged) => staged.next_work(),
        }
    }

    /// When the next packet is due at the far end, of those whose departure is known.
    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        either!(&self.way, it => it.next_release())
    }

    /// Changes a setting at `at`, or now if that has passed. Changes at one instant happen in the
    /// order in which they were asked for.
    pub fn schedule(&mut self, at: Time, change: Change) {
        if let Way::Eager(eager) = &mut self.way {
            self.way = Way::Staged(Box::new(eager.go_staged()));
        }
        if let Way::Staged(staged) = &mut self.way {
            staged.schedule(at, change);
        }
    }

    /// The delay in force.
    pub fn delay(&self) -> Span {
        either!(&self.way, it => it.delay())
    }

    /// The packets that wait: in the discipline, in the output buffer and on the line.
    pub fn backlog(&self) -> Backlog {
        either!(&self.way, it => it.backlog())
    }

    /// The number of packets that have left the line and not been taken.
    pub fn in_flight(&self) -> usize {
        either!(&self.way, it => it.in_flight())
    }

    /// Counts of the packets so far. What was given up counts when [`dropped`](Link::dropped)
    /// hands it out.
    pub fn counts(&self) -> Counts {
        either!(&self.way, it => it.counts())
    }

    /// The time up to `now` in which packets were on the line, if they share frames; `None` if the times that their own
    /// bits take sum to it.
    pub fn shared(&self, now: Time) -> Option<Span> {
        either!(&self.way, it => it.wire().shared(now))
    }

    /// The achievements of the impairments so far.
    pub fn achieved(&self) -> Achieved {
        either!(&self.way, it => it.achieved())
    }
}

/// Books what a packet waited for up to its departure, of which its own bits took `nominal` at most.
#[inline]
pub(crate) fn book_departure(packet: &mut impl Carried, departed: Time, nominal: Span) {
    let sojourn = departed.since(packet.entered());
    let transmit = nominal.min(sojourn);
    packet.book(Cause::Transmit, transmit);
    packet.book(Cause::Queue, sojourn.saturating_sub(transmit));
}

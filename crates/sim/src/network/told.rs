//! What a network tells of packets and links: records of hops, counts, ledgers, samples.

use super::record::Recorder;
use super::routes::HopSums;
use super::station::Station;
use super::traces::Traces;
use super::watch::Samples;
use super::{HopShare, LinkId, Network, RouteId, TraceId};
use std::io::{self, Write};
use trunkline_core::{Counts, Span, Time};
use trunkline_measure::{Conservation, Times};

/// Records of single packets, and of everything.
impl Network {
    /// Starts a record of hops for a packet to be injected.
    ///
    /// # Panics
    /// If 2^24 - 1 records are kept already: packets have room for no larger number.
    pub fn trace(&mut self) -> TraceId {
        self.traces.start()
    }

    /// The hops of a packet so far, in order. Their spans sum to the time since it was injected.
    pub fn hops(&self, trace: TraceId) -> impl Iterator<Item = HopShare> {
        self.traces.hops(trace)
    }

    /// Gives a record back.
    pub fn release(&mut self, trace: TraceId) {
        self.traces.release(trace);
    }

    /// Forgets all records of hops.
    pub(crate) fn forget_hops(&mut self) {
        self.traces = Traces::default();
    }

    /// From now on writes a record of everything that happens to a packet to `sink`, in batches; their form is
    /// told at [`RecordKind`](super::RecordKind). A trace that was being written is ended first.
    ///
    /// # Errors
    /// What the trace before it failed with.
    pub fn record_to(&mut self, sink: Box<dyn Write + Send>) -> io::Result<()> {
        let before = self.end_record();
        self.recorder = Some(Box::new(Recorder::new(sink)));
        before.map(drop)
    }

    /// Writes what is left of the full trace and ends it. Returns the number of records.
    ///
    /// # Errors
    /// The first failure of its sink; nothing was written after it.
    pub fn end_record(&mut self) -> io::Result<u64> {
        self.recorder.take().map_or(Ok(0), |recorder| recorder.finish())
    }
}

/// What became of the packets, and what they waited for.
impl Network {
    /// What became of the packets of a link.
    pub fn counts(&self, link: LinkId) -> Counts {
        self.station(link).map_or_else(|| self.media.counts(link), Station::counts)
    }

    /// Bytes that wait at a link.
    pub fn backlog(&self, link: LinkId) -> u64 {
        self.station(link).map_or_else(|| self.media.backlog(link), Station::backlog)
    }

    /// Packets in a link: waiting, on its line, and on their way to its far end.
    pub fn in_flight(&self, link: LinkId) -> u64 {
        self.counts(link).in_flight()
    }

    /// How long the bits of packets were on a link's line, of those packets that have come out of it; if packets share
    /// frames, how long anything was on it.
    pub fn busy(&self, link: LinkId) -> Span {
        self.station(link).map_or_else(|| self.media.busy(link), |station| station.busy(self.now))
    }

    /// What the packets of a route waited for on each of its hops, summed over those that have passed it.
    /// Empty sums if [`keep_ledger`](Network::keep_ledger) was told not to.
    pub fn route_ledger(&self, route: RouteId) -> Vec<HopSums> {
        let mut sums = self.routes.ledger(route);
        if !self.ledger {
            // Packets are counted all the same: what a route has delivered follows from it.
            let nothing = |link| HopSums { link, packets: 0, queue: 0, transmit: 0, propagate: 0 };
            sums.iter_mut().for_each(|hop| *hop = nothing(hop.link));
        }
        sums
    }

    /// What became of the packets of a route.
    pub fn route_counts(&self, route: RouteId) -> Conservation {
        self.routes.counts(route)
    }

    /// Whether the shares of every packet are added to its route's sums; they are unless told otherwise.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.ledger = keep;
    }

    /// From now on records how long each packet waits in queues at a link.
    pub fn record_queueing(&mut self, link: LinkId) {
        match self.stations.get_mut(link.0 as usize) {
            Some(station) => station.record_queueing(),
            None => self.media.observed_mut(link).queueing.begin(),
        }
    }

    /// The recorded times in queue of a link, if they are recorded.
    pub fn queueing(&self, link: LinkId) -> Option<Times> {
        match self.station(link) {
            Some(station) => station.queueing(),
            None => self.media.observed(link).queueing.clone().times(),
        }
    }

    /// The same, given away: from then on nothing is recorded.
    pub fn take_queueing(&mut self, link: LinkId) -> Option<Times> {
        match self.stations.get_mut(link.0 as usize) {
            Some(station) => station.take_queueing(),
            None => std::mem::take(&mut self.media.observed_mut(link).queueing).times(),
        }
    }

    /// From now on samples how many bytes wait at a link, `every` so often, at least 1 ns apart.
    pub fn sample_backlog(&mut self, link: LinkId, every: Span) {
        match self.stations.get_mut(link.0 as usize) {
            Some(station) => station.sample_backlog(self.now, every),
            None => self.media.observed_mut(link).samples = Some(Samples::new(self.now, every)),
        }
    }

    /// The samples of a link's backlog up to, and without, the present instant. Each shows what waited
    /// before anything else happened at its instant.
    pub fn backlog_samples(&mut self, link: LinkId) -> &[(Time, u64)] {
        match self.stations.get_mut(link.0 as usize) {
            Some(station) => station.samples(self.now),
            None => {
                self.media.sample(link, self.now);
                self.media.observed(link).samples.as_ref().map_or(&[], Samples::taken)
            }
        }
    }

    /// Entries in the event queue: links at work, and timers.
    pub fn pending(&self) -> usize {
        self.events.len()
    }

    /// Bytes of memory held by the event queue and by the routes with their sums; links are not in it.
    pub fn memory(&self) -> usize {
        self.events.memory() + self.routes.memory()
    }

    /// A link, unless it is a lane over a medium.
    fn station(&self, link: LinkId) -> Option<&Station> {
        self.stations.get(link.0 as usize)
    }
}

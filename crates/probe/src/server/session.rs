//! The state that a server keeps of a client that has proved who it is. All of it is bounded.

use crate::bins::{Bins, MOST_BINS};
use crate::bucket::Bucket;
use crate::channel::Channel;
use crate::clock;
use crate::error::too_long;
use crate::tcp::TcpReading;
use crate::tracker::Tracker;
use crate::wire::datagram;
use crate::wire::keys::{SessionKeys, Way};
use crate::wire::message::{FlowReport, FlowSpec, Limits, Role, Transport};
use crate::wire::record;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trunkline_core::{Rate, Span, Time};
use trunkline_handshake::{CodeKey, SECRET};

/// Flows that a session may have open at once.
pub const MOST_FLOWS: u16 = 32;
/// Streams of a flow.
pub const MOST_STREAMS: u16 = 64;
/// Readings of `TCP_INFO` that are kept of a stream.
pub const MOST_READINGS: usize = 4096;

/// Locks, whatever became of whoever held the lock before: a count may then be one short.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client's session.
#[derive(Debug)]
pub struct Session {
    /// By which its datagrams are known.
    pub cookie: u64,
    /// The keys derived from its secret.
    pub keys: SessionKeys,
    /// The key of datagrams from the client, and of those to it.
    pub datagrams: [CodeKey; 2],
    /// The address of the client: nothing is sent elsewhere.
    pub peer: IpAddr,
    /// The limits that it has to keep.
    pub limits: Limits,
    /// When its time is over.
    pub until: Time,
    /// All traffic of the session.
    pub bucket: Mutex<Bucket>,
    /// Set when it is over.
    pub closed: AtomicBool,
    /// The congestion controls that may be asked for.
    congestion: Arc<[String]>,
    flows: Mutex<Flows>,
}

/// The open flows by number. A number is used once, for what was sent under it could be sent again.
#[derive(Debug, Default)]
struct Flows {
    open: BTreeMap<u16, Arc<Flow>>,
    next: u32,
}

impl Session {
    /// A session from now on.
    pub fn new(
        cookie: u64,
        secret: [u8; SECRET],
        peer: IpAddr,
        limits: Limits,
        congestion: Arc<[String]>,
    ) -> Session {
        let keys = SessionKeys::new(secret);
        Session {
            cookie,
            datagrams: [keys.datagrams(Way::Up), keys.datagrams(Way::Down)],
            keys,
            peer,
            limits,
            until: clock::now() + Span::from_nanos(limits.duration_ns),
            bucket: Mutex::new(Bucket::new(limits.rate.map(Rate::from_bits_per_second))),
            closed: AtomicBool::new(false),
            congestion,
            flows: Mutex::default(),
        }
    }

    /// Whether it is over, or its time is.
    pub fn is_over(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || clock::now() >= self.until
    }

    /// The flow of this number.
    pub fn flow(&self, number: u16) -> Option<Arc<Flow>> {
        lock(&self.flows).open.get(&number).cloned()
    }

    /// The flows that have datagrams.
    pub fn flows(&self) -> Vec<(u16, Arc<Flow>)> {
        lock(&self.flows).open.iter().map(|(&number, flow)| (number, Arc::clone(flow))).collect()
    }

    /// Opens a flow.
    ///
    /// # Errors
    /// One line if it is not possible or not allowed.
    pub fn open(&self, number: u16, spec: FlowSpec) -> Result<(), String> {
        self.check(&spec)?;
        let mut flows = lock(&self.flows);
        if u32::from(number) < flows.next {
            return Err(format!("flow {number} is or was open already; numbers ascend"));
        }
        if flows.open.len() >= usize::from(self.limits.flows) {
            return Err(format!("no more than {} flows at once", self.limits.flows));
        }
        let joined = flows.open.values().map(|flow| u32::from(flow.spec.streams)).sum::<u32>();
        if joined + u32::from(spec.streams) > self.limits.connections {
            return Err(format!(
                "no more than {} streams in all flows of a session; ask for fewer, or start the server \
                 with a higher limit of open files (`ulimit -n`)",
                self.limits.connections
            ));
        }
        let flow = Arc::new(Flow::new(spec)?);
        flows.next = u32::from(number) + 1;
        flows.open.insert(number, flow);
        Ok(())
    }

    fn check(&self, spec: &FlowSpec) -> Result<(), String> {
        let left = self.until.since(clock::now());
        let asked = Span::from_nanos(spec.duration_ns);
        if asked > left {
            return Err(too_long(left, &format!("{asked} in all")));
        }
        if let (Some(wanted), Some(most)) = (spec.rate, self.limits.rate)
            && wanted > most
        {
            let most = Rate::from_bits_per_second(most);
            return Err(format!(
                "a rate above {most}; ask for less, or start the server with a higher --max-rate"
            ));
        }
        if let Some(name) = &spec.congestion
            && !self.congestion.contains(name)
        {
            let list = self.congestion.join(" ");
            return Err(format!(
                "'{name}' is not on its list of congestion controls: {list} (--congestion)"
            ));
        }
        if spec.streams == 0 || spec.streams > self.limits.streams {
            return Err(format!("a flow has 1 to {} streams", self.limits.streams));
        }
        let most = match spec.transport {
            Transport::Udp => datagram::MOST_USER,
            Transport::Tcp | Transport::Urp => record::MOST_USER,
        };
        if spec.size > most {
            return Err(format!("a message by {} has at most {most} octets", spec.transport));
        }
        if spec.duration_ns / spec.interval_ns.max(1) > MOST_BINS as u64 {
            return Err(format!("a flow has at most {MOST_BINS} intervals; make them longer"));
        }
        Ok(())
    }

    /// Ends a flow and says what was seen of it.
    pub fn collect(&self, number: u16) -> Option<FlowReport> {
        let flow = lock(&self.flows).open.remove(&number)?;
        flow.done.store(true, Ordering::Relaxed);
        Some(flow.report())
    }

    /// Ends all.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        for (_, flow) in std::mem::take(&mut lock(&self.flows).open) {
            flow.done.store(true, Ordering::Relaxed);
        }
    }
}

/// One flow of a session.
#[derive(Debug)]
pub struct Flow {
    /// The work of the flow.
    pub spec: FlowSpec,
    /// Set when it has ended.
    pub done: AtomicBool,
    /// Its datagrams.
    pub datagrams: Mutex<Datagrams>,
    /// Its connections, by number.
    pub streams: Mutex<BTreeMap<u16, Stream>>,
    /// When the first octets came on a connection, from which all count.
    pub began: Mutex<Option<Time>>,
    /// Connections that have not ended.
    pub running: AtomicUsize,
    /// Connections on which octets were changed on the way.
    pub forged: AtomicU64,
}

/// The state of a flow's datagrams.
#[derive(Debug)]
pub struct Datagrams {
    /// The address that the client's come from; fixed by its first.
    pub peer: Option<SocketAddr>,
    /// The numbers that came.
    pub tracker: Tracker,
    /// User octets that came.
    pub bins: Bins,
    /// Dropped over the rate.
    pub over_rate: u64,
    /// Sent.
    pub sent: u64,
    /// Whether the sender has been started.
    pub started: bool,
    /// When a URP sender began.
    pub began: Option<Time>,
    /// Until when it waits for the session's rate.
    pub held: Option<Time>,
    /// URP only.
    pub channel: Option<Channel>,
}

/// The state of a connection.
#[derive(Debug, Default)]
pub struct Stream {
    /// User octets that came, if any did.
    pub bins: Option<Bins>,
    /// The kernel's readings of it.
    pub readings: Vec<TcpReading>,
    /// Messages that came.
    pub received: u64,
    /// Messages that went.
    pub sent: u64,
    /// The congestion control in force.
    pub congestion: Option<String>,
}

impl Stream {
    fn octets(&self) -> Vec<u64> {
        self.bins.as_ref().map_or(Vec::new(), |bins| bins.octets().to_vec())
    }
}

impl Flow {
    fn new(spec: FlowSpec) -> Result<Flow, String> {
        let channel = match (spec.transport, spec.urp) {
            (Transport::Urp, Some(urp)) => {
                Some(Channel::open(clock::now(), &urp).map_err(|error| error.to_string())?)
            }
            (Transport::Urp, None) => return Err("a flow by urp needs URP's settings".into()),
            _ => None,
        };
        let datagrams = Datagrams {
            peer: None,
            tracker: Tracker::default(),
            bins: Bins::new(Span::from_nanos(spec.interval_ns)),
            over_rate: 0,
            sent: 0,
            started: false,
            began: None,
            held: None,
            channel,
        };
        Ok(Flow {
            spec,
            done: AtomicBool::new(false),
            datagrams: Mutex::new(datagrams),
            streams: Mutex::default(),
            began: Mutex::default(),
            running: AtomicUsize::new(0),
            forged: AtomicU64::new(0),
        })
    }

    /// Whether it is to end.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Takes connection `number` in, once.
    pub fn join(&self, number: u16) -> bool {
        let mut streams = lock(&self.streams);
        let fresh = number < self.spec.streams && !streams.contains_key(&number);
        if fresh {
            streams.insert(number, Stream::default());
            self.running.fetch_add(1, Ordering::Relaxed);
        }
        fresh
    }

    /// One connection has ended.
    pub fn leave(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts octets that came on connection `number`; all connections' intervals begin with the first
    /// octets on any.
    pub fn count(&self, number: u16, now: Time, octets: u64) {
        let began = *lock(&self.began).get_or_insert(now);
        let interval = Span::from_nanos(self.spec.interval_ns);
        self.with_stream(number, |stream| {
            stream.bins.get_or_insert_with(|| Bins::from(began, interval)).add(now, octets);
        });
    }

    /// Changes what is known of connection `number`.
    pub fn with_stream(&self, number: u16, change: impl FnOnce(&mut Stream)) {
        if let Some(stream) = lock(&self.streams).get_mut(&number) {
            change(stream);
        }
    }

    fn report(&self) -> FlowReport {
        match self.spec.transport {
            Transport::Tcp => self.report_streams(),
            Transport::Udp | Transport::Urp => self.report_datagrams(),
        }
    }

    fn report_datagrams(&self) -> FlowReport {
        let flow = lock(&self.datagrams);
        FlowReport {
            ranges: flow.tracker.ranges(),
            truncated: flow.tracker.truncated(),
            received: flow.tracker.received(),
            duplicates: flow.tracker.duplicates(),
            reordered: flow.tracker.reordered(),
            over_rate: flow.over_rate,
            sent: flow.sent,
            octets: flow.bins.total(),
            jitter_ns: flow.tracker.jitter().filter(|_| self.spec.role == Role::Up),
            bins: vec![flow.bins.octets().to_vec()],
            urp: flow.channel.as_ref().map(Channel::reading),
            ..FlowReport::default()
        }
    }

    fn report_streams(&self) -> FlowReport {
        let streams = std::mem::take(&mut *lock(&self.streams));
        let sum = |count: fn(&Stream) -> u64| streams.values().map(count).sum();
        FlowReport {
            received: sum(|stream| stream.received),
            sent: sum(|stream| stream.sent),
            octets: sum(|stream| stream.bins.as_ref().map_or(0, Bins::total)),
            bins: streams.values().map(Stream::octets).collect(),
            congestion: streams.values().find_map(|stream| stream.congestion.clone()),
            tcp: streams.into_values().map(|stream| stream.readings).collect(),
            forged: self.forged.load(Ordering::Relaxed),
            ..FlowReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(rate: Option<u64>) -> Session {
        let limits =
            Limits { rate, duration_ns: 10_000_000_000, flows: 2, streams: 4, connections: 6 };
        let congestion = ["reno".to_string()].into();
        Session::new(7, [1; SECRET], [127, 0, 0, 1].into(), limits, congestion)
    }

    fn spec() -> FlowSpec {
        FlowSpec {
            transport: Transport::Udp,
            role: Role::Echo,
            streams: 1,
            size: 100,
            rate: None,
            duration_ns: 1_000_000_000,
            interval_ns: 100_000_000,
            congestion: None,
            urp: None,
        }
    }

    #[test]
    fn what_is_not_allowed_is_refused_in_a_line() {
        let session = session(Some(1_000_000));
        let refusal = |spec: FlowSpec| session.open(9, spec).unwrap_err();
        let long = refusal(FlowSpec { duration_ns: 11_000_000_000, ..spec() });
        assert!(long.contains("--max-duration") && long.contains("11s in all"), "{long}");
        assert!(refusal(FlowSpec { rate: Some(2_000_000), ..spec() }).contains("--max-rate"));
        assert!(refusal(FlowSpec { streams: 5, ..spec() }).contains("streams"));
        assert!(refusal(FlowSpec { streams: 0, ..spec() }).contains("streams"));
        assert!(refusal(FlowSpec { size: 70_000, ..spec() }).contains("octets"));
        assert!(refusal(FlowSpec { interval_ns: 1, ..spec() }).contains("intervals"));
        assert!(refusal(FlowSpec { transport: Transport::Urp, ..spec() }).contains("settings"));
        let congestion = |name: &str| FlowSpec { congestion: Some(name.into()), ..spec() };
        assert!(refusal(congestion("vegas")).contains("reno (--congestion)"));
        assert_eq!(session.open(1, congestion("reno")), Ok(()));
    }

    #[test]
    fn streams_of_all_flows_together_are_bounded() {
        let session = session(None);
        session.open(0, FlowSpec { streams: 4, ..spec() }).unwrap();
        let complaint = session.open(1, FlowSpec { streams: 3, ..spec() }).unwrap_err();
        assert!(complaint.contains("no more than 6 streams"), "{complaint}");
        session.open(1, FlowSpec { streams: 2, ..spec() }).unwrap();
    }

    #[test]
    fn flows_are_few_and_known_by_number() {
        let session = session(None);
        session.open(1, spec()).unwrap();
        assert!(session.open(1, spec()).unwrap_err().contains("already"));
        session.open(2, spec()).unwrap();
        assert!(session.open(3, spec()).unwrap_err().contains("more than 2"));
        let flow = session.flow(1).unwrap();
        assert!(session.collect(1).is_some() && flow.is_done() && session.collect(1).is_none());
        assert!(session.open(1, spec()).unwrap_err().contains("was open"));
        session.open(3, spec()).unwrap();
        session.close();
        assert!(session.is_over() && session.flow(3).is_none());
    }

    #[test]
    fn a_connection_joins_once() {
        let flow = Flow::new(FlowSpec { streams: 2, ..spec() }).unwrap();
        assert_eq!([0, 0, 1, 2].map(|number| flow.join(number)), [true, false, true, false]);
    }
}

//! Two coupled queues for low-latency and classic traffic (RFC 9332).

use super::pi::{CONTROLLED, GAINS, Gain, Odds, Ticker, UPDATES, change};
use super::settings::{choice, settings};
use super::tally::Tally;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings, Sharing, Standing, TARGETS,
    TEN_SECONDS,
};
use crate::Limit;
use std::collections::VecDeque;
use trunkline_core::{DropCause, Ecn, Metered, Span, Stream, Time};

settings! {
    /// A low-latency queue coupled with a classic one (RFC 9332; appendix A.1 with the update and the gains that it
    /// gives for Linux, whose step and share these are).
    pub struct DualPi2Settings {
        /// How much may wait in both queues.
        limit: Limit;
        /// The classic queue's delay aimed at.
        target: Span = Span::from_millis(15), "the target" in TARGETS;
        /// How often the probability is worked out anew (Tupdate).
        update: Span = Span::from_millis(16), "the time between updates" in UPDATES;
        /// What each second of delay above the target adds to the base probability at an update.
        alpha: Gain = Gain::from_micros(160_000), "the gain alpha" in GAINS;
        /// What each second by which the delay has grown adds to it.
        beta: Gain = Gain::from_micros(3_200_000), "the gain beta" in GAINS;
        /// How many times the base probability a low-latency packet is marked with (k).
        coupling: u32 = 2, "the coupling" in 1..=100;
        /// The delay above which every low-latency packet is marked.
        step: Span = Span::from_millis(1), "the step" in Span::ZERO..=TEN_SECONDS;
        /// Which queue is served next.
        scheduler: DualScheduler = DualScheduler::Wrr;
        /// The share of the line that the classic queue keeps beside the other (wrr only).
        classic: u8 as Percent = 10, "the classic share in percent" in 1..=99;
        /// How much longer than a low-latency packet a classic one waits (ts-fifo only; appendix A.2, public Internet).
        shift: Span = Span::from_millis(50), "the shift" in Span::ZERO..=TEN_SECONDS;
    }
}

choice! {
    /// Which of the two queues is served next if both hold packets (RFC 9332 §4.2.2 and appendix A.2).
    pub enum DualScheduler {
        /// Weighted round robin: the classic queue has its share of the bytes, the low-latency queue the rest.
        Wrr = "wrr",
        /// Time-shifted first in first out: the packet that has waited longer, as though each low-latency packet had
        /// come earlier by the shift.
        TsFifo = "ts-fifo",
    }
}

impl Settings for DualPi2Settings {
    type Queue<P: Metered> = DualPi2<P>;

    const ALIASES: &'static [&'static str] = &["dual-pi2"];

    const TRIALS: &'static [&'static str] = &[
        "target=1ms,update=1ms,alpha=10,step=1ms,limit=4kB",
        "target=5ms,coupling=1,scheduler=ts-fifo,shift=9ms,classic=50%,limit=80c",
    ];

    fn build<P: Metered>(self, chance: &Chance<'_>) -> DualPi2<P> {
        DualPi2::new(self, chance.stream())
    }

    fn assumptions(&self) -> Assumptions {
        let managed = Assumptions::managed(CONTROLLED, Standing::Unknown);
        Assumptions { sharing: Sharing::Unknown, idle: self.idle(), ..managed }
    }
}

impl DualPi2Settings {
    /// The key of the other scheduler, if it is given.
    fn idle(&self) -> Option<&'static str> {
        let plain = <DualPi2Settings as super::Keys>::with_limit(self.limit);
        match self.scheduler {
            DualScheduler::Wrr if self.shift != plain.shift => Some(
                "shift has no effect with scheduler = wrr; give scheduler = ts-fifo, or leave it out",
            ),
            DualScheduler::TsFifo if self.classic != plain.classic => Some(
                "classic has no effect with scheduler = ts-fifo; give scheduler = wrr, or leave it out",
            ),
            _ => None,
        }
    }
}

/// Two coupled queues (RFC 9332 with the AQMs of its appendix A): packets with ECT(1) or CE wait in the
/// low-latency queue, the others in the classic one.
///
/// A controller looks at the longer of the two delays and works out a base probability p'. A classic packet is
/// dropped, or marked if it can be, with probability p_C = p'²; a low-latency packet is marked with
/// p_CL = k·p', and whenever it has itself waited for longer than the step. So p_C = (p_CL/k)², which lets
/// one flow of each kind have the same rate. From p_CL = 1 on, both queues drop with p_C whatever the
/// packet's bits say, and the rest of the low-latency packets are marked.
///
/// The choices that the RFC leaves:
/// * Chances are drawn, and p_C by drawing p' twice; the RFC's own code counts instead.
/// * The low-latency queue marks from one delay on, as in Linux; the RFC recommends a ramp from 0.8 to 1.2 ms.
/// * The step looks at the time that a packet has waited when it leaves, and only while another one waits
///   behind it: on a slow line one packet alone may take longer than the step.
/// * The last packet of both queues is never dropped, so that the line is not idle for it.
/// * Weighted round robin as in Linux: the classic queue goes first only once the other has had its share.
#[derive(Debug)]
pub struct DualPi2<P> {
    low: Waiting<P>,
    classic: Waiting<P>,
    tally: Tally,
    settings: DualPi2Settings,
    control: Control,
    /// What the low-latency queue has sent beyond its share while both had packets: bytes times percent.
    credit: i64,
    ticker: Ticker,
    stream: Stream,
}

/// The controller's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Control {
    /// The base probability p'.
    base: Odds,
    /// What the delay was at the last update.
    before: Span,
}

/// One of the queues, with the time at which each packet came.
#[derive(Debug)]
struct Waiting<P>(VecDeque<(Time, P)>);

impl<P> Waiting<P> {
    /// How long the first packet has waited.
    fn delay(&self, now: Time) -> Span {
        self.0.front().map_or(Span::ZERO, |&(came, _)| now.since(came))
    }
}

/// What becomes of a packet that is about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl Control {
    /// An update (appendix A.2, `dualpi2_update`).
    fn update(&mut self, settings: &DualPi2Settings, delay: Span) {
        let DualPi2Settings { alpha, beta, target, .. } = *settings;
        self.base = self.base.plus(change(alpha, beta, target, delay, self.before));
        self.before = delay;
    }

    /// The coupled probability p_CL.
    fn coupled(&self, settings: &DualPi2Settings) -> Odds {
        self.base.times(settings.coupling)
    }

    /// Whether the classic probability p_C hits: the square of p', by two draws.
    fn hits_classic(&self, stream: &mut Stream) -> bool {
        self.base.happens(stream) && self.base.happens(stream)
    }

    /// Of a classic packet. Under overload marks are no longer taken for drops.
    fn classic(&self, settings: &DualPi2Settings, ecn: Ecn, stream: &mut Stream) -> Verdict {
        let overloaded = self.coupled(settings) == Odds::CERTAIN;
        match self.hits_classic(stream) {
            false => Verdict::Pass,
            true if ecn.is_capable() && !overloaded => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    /// The verdict on a low-latency packet; `stepped` says whether it has waited beyond the step.
    fn low(&self, settings: &DualPi2Settings, stepped: bool, stream: &mut Stream) -> Verdict {
        let coupled = self.coupled(settings);
        if coupled == Odds::CERTAIN && self.hits_classic(stream) {
            return Verdict::Drop;
        }
        let marks = coupled.happens(stream) || (stepped && coupled < Odds::CERTAIN);
        if marks { Verdict::Mark } else { Verdict::Pass }
    }
}

impl<P: Metered> DualPi2<P> {
    /// Empty queues as `settings` say, whose chances come from `stream`.
    pub fn new(settings: DualPi2Settings, stream: Stream) -> DualPi2<P> {
        DualPi2 {
            low: Waiting(VecDeque::new()),
            classic: Waiting(VecDeque::new()),
            tally: Tally::default(),
            settings,
            control: Control::default(),
            credit: 0,
            ticker: Ticker::new(settings.update),
            stream,
        }
    }

    /// Makes up for the updates until `now`. Nothing has come or gone meanwhile, so that a probability at its
    /// bound stays there: zero while nothing waits, one while something waits for ever longer.
    fn catch_up(&mut self, now: Time) {
        while let Some(at) = self.ticker.pass(now) {
            let (old, bound) = (self.control.base, self.bound());
            self.control.update(&self.settings, self.delay(at));
            if old == bound && self.control.base == bound {
                let last = self.ticker.skip(now);
                self.control.before = self.delay(last);
            }
        }
    }

    fn bound(&self) -> Odds {
        let waits = self.tally.backlog() != Backlog::default();
        if waits { Odds::CERTAIN } else { Odds::NEVER }
    }

    /// The longer of the two delays.
    fn delay(&self, now: Time) -> Span {
        self.low.delay(now).max(self.classic.delay(now))
    }

    /// Whether the low-latency queue is served next. `None` if neither holds anything.
    fn low_is_next(&self, now: Time) -> Option<bool> {
        match (self.low.0.is_empty(), self.classic.0.is_empty()) {
            (true, true) => None,
            (low, classic) if low || classic => Some(classic),
            _ => Some(match self.settings.scheduler {
                DualScheduler::Wrr => self.credit <= 0,
                DualScheduler::TsFifo => {
                    self.low.delay(now) + self.settings.shift >= self.classic.delay(now)
                }
            }),
        }
    }

    /// Books a service of `size` bytes against the shares; with one queue alone there is nothing to share.
    fn charge(&mut self, low: bool, size: u32) {
        let (size, share) = (i64::from(size), i64::from(self.settings.classic));
        self.credit += if low { size * share } else { -size * (100 - share) };
        if self.low.0.is_empty() || self.classic.0.is_empty() {
            self.credit = 0;
        }
    }

    /// Takes the next packet out of its queue, with what becomes of it.
    fn pop(&mut self, now: Time) -> Option<(P, Verdict)> {
        let low = self.low_is_next(now)?;
        let queue = if low { &mut self.low } else { &mut self.classic };
        let (came, packet) = queue.0.pop_front()?;
        let more = !queue.0.is_empty();
        self.tally.remove(packet.size());
        let (settings, stream) = (&self.settings, &mut self.stream);
        let verdict = match low {
            true => self.control.low(settings, more && now.since(came) > settings.step, stream),
            false => self.control.classic(settings, packet.ecn(), stream),
        };
        let last = self.tally.backlog() == Backlog::default();
        let verdict = if last && verdict == Verdict::Drop { Verdict::Mark } else { verdict };
        if verdict != Verdict::Drop {
            self.charge(low, packet.size());
        }
        Some((packet, verdict))
    }
}

impl<P: Metered> Discipline<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        if !self.tally.takes(packet.size(), self.settings.limit) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.tally.add(packet.size());
        let low = packet.ecn().is_low_latency();
        let queue = if low { &mut self.low } else { &mut self.classic };
        queue.0.push_back((now, packet));
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        self.catch_up(now);
        loop {
            let (mut packet, verdict) = self.pop(now)?;
            match verdict {
                Verdict::Pass => {}
                Verdict::Mark => {
                    drops.mark(&mut packet);
                }
                Verdict::Drop => {
                    drops.push(packet, DropCause::DualPi2);
                    continue;
                }
            }
            return Some(Service::whole(packet));
        }
    }

    fn backlog(&self) -> Backlog {
        self.tally.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.settings.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Keys;
    use trunkline_core::{Channel, Packet, Probability, Seed};

    const MS: Span = Span::from_millis(1);

    fn settings() -> DualPi2Settings {
        DualPi2Settings::with_limit(Limit::Packets(1000))
    }

    fn base(p: f64) -> Control {
        let base = Odds::from(Probability::new(p).unwrap());
        Control { base, ..Control::default() }
    }

    fn as_f64(odds: Odds) -> f64 {
        odds.units() as f64 / Odds::CERTAIN.units() as f64
    }

    #[test]
    fn updates_worked_by_hand() {
        // 5 ms above the target after 18 ms: 0.16 · 0.005 + 3.2 · 0.002 = 0.0008 + 0.0064 = 0.72 %.
        let mut control = Control { before: MS.scaled(18, 1), ..base(0.1) };
        control.update(&settings(), MS.scaled(20, 1));
        assert!((as_f64(control.base) - 0.1072).abs() < 1e-15);
        // Then no queue: −0.16 · 0.015 − 3.2 · 0.020 = −0.0024 − 0.064.
        control.update(&settings(), Span::ZERO);
        assert!((as_f64(control.base) - 0.0408).abs() < 1e-15);
        assert!((as_f64(control.coupled(&settings())) - 0.0816).abs() < 1e-15);
        control.update(&settings(), MS.scaled(10_000, 1));
        assert_eq!((control.base, control.coupled(&settings())), (Odds::CERTAIN, Odds::CERTAIN));
    }

    /// The shares of passed, marked and dropped of 100 000 packets.
    fn shares(mut judge: impl FnMut(&mut Stream) -> Verdict) -> [f64; 3] {
        let mut stream = Seed(5).stream("dualpi2");
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            counts[judge(&mut stream) as usize] += 1;
        }
        counts.map(|count| f64::from(count) / 100_000.0)
    }

    fn near(found: [f64; 3], expected: [f64; 3]) -> bool {
        // Three deviations of a share of one half among 100 000.
        found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.005)
    }

    #[test]
    fn the_classic_probability_is_the_square_of_the_coupled_one_over_k() {
        for p in [0.01, 0.1, 0.3, 0.49] {
            let control = base(p);
            let coupled = shares(|stream| control.low(&settings(), false, stream));
            assert!(near(coupled, [1.0 - 2.0 * p, 2.0 * p, 0.0]), "{p}: {coupled:?}");
            let dropped = shares(|stream| control.classic(&settings(), Ecn::NotEct, stream));
            let square = (coupled[1] / 2.0).powi(2);
            assert!(near(dropped, [1.0 - square, 0.0, square]), "{p}: {dropped:?}");
            let marked = shares(|stream| control.classic(&settings(), Ecn::Ect0, stream));
            assert!(near(marked, [1.0 - square, square, 0.0]), "{p}: {marked:?}");
        }
    }

    #[test]
    fn overload_drops_whatever_the_bits_say() {
        let control = base(0.6);
        let classic = shares(|stream| control.classic(&settings(), Ecn::Ect0, stream));
        assert!(near(classic, [0.64, 0.0, 0.36]), "{classic:?}");
        let low = shares(|stream| control.low(&settings(), true, stream));
        assert!(near(low, [0.0, 0.64, 0.36]), "{low:?}");
    }

    fn queue(text: &str, packets: &[(Ecn, u32)]) -> DualPi2<Packet<()>> {
        let Ok(crate::DisciplineSpec::DualPi2(settings)) = text.parse() else { panic!("{text}") };
        let mut queue = DualPi2::new(settings, Seed(1).stream("queue"));
        for &(ecn, size) in packets {
            let packet = Packet { ecn, ..Packet::new(Channel(0), size, Time::ZERO, ()) };
            queue.enqueue(Time::ZERO, packet, &mut Drops::default());
        }
        queue
    }

    fn served(queue: &mut DualPi2<Packet<()>>, now: Span) -> Option<Ecn> {
        let service = queue.dequeue(Time::ZERO + now, &mut Drops::default())?;
        service.packet.map(|packet| packet.ecn)
    }

    #[test]
    fn the_step_spares_the_last_packet_of_its_queue() {
        let mut queue = queue("dualpi2", &[(Ecn::Ect1, 1500); 4]);
        assert_eq!(served(&mut queue, MS), Some(Ecn::Ect1), "1 ms is not above 1 ms");
        assert_eq!(served(&mut queue, MS.scaled(3, 2)), Some(Ecn::Ce));
        assert_eq!(served(&mut queue, MS.scaled(3, 2)), Some(Ecn::Ce));
        assert_eq!(served(&mut queue, MS.scaled(3, 2)), Some(Ecn::Ect1));
    }

    #[test]
    fn weighted_round_robin_leaves_the_classic_queue_its_share() {
        let packets: Vec<(Ecn, u32)> =
            (0..400u32).map(|it| (Ecn::from_bits((it % 2) as u8), 1000)).collect();
        let mut queue = queue("dualpi2:classic=10%,step=1s", &packets);
        let order: Vec<Ecn> = std::iter::from_fn(|| served(&mut queue, Span::ZERO)).collect();
        let classic = order[..200].iter().filter(|&&ecn| ecn == Ecn::NotEct).count();
        assert!((19..=21).contains(&classic), "{classic} of 200 packets");
        assert_eq!(order.len(), 400, "the rest has the line to itself");
    }

    #[test]
    fn the_time_shifted_fifo_lets_low_latency_packets_come_earlier() {
        let mut queue =
            queue("dualpi2:scheduler=ts-fifo,shift=5ms", &[(Ecn::NotEct, 9), (Ecn::NotEct, 9)]);
        let late = |queue: &mut DualPi2<_>, ms| {
            let now = Time::ZERO + MS.scaled(ms, 1);
            let packet = Packet { ecn: Ecn::Ect1, ..Packet::new(Channel(1), 9, now, ()) };
            queue.enqueue(now, packet, &mut Drops::default());
        };
        late(&mut queue, 4);
        assert_eq!(served(&mut queue, MS.scaled(4, 1)), Some(Ecn::Ect1));
        late(&mut queue, 6);
        assert_eq!(served(&mut queue, MS.scaled(6, 1)), Some(Ecn::NotEct));
    }
}

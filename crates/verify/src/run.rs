//! One run: the path under test at one size and load, against its reference and the baseline.

use crate::compare::{Comparison, Direction as Compared, mean_error, round_trips};
use crate::generator::{self, Course, Half, Recording, realtime, to_monotonic};
use crate::laboratory::{Arrangement, Laboratory};
use crate::limits::Bound;
use crate::probe::SMALLEST;
use crate::reference::{Prescribed, Reference};
use crate::report::{Lost, Row, Stalls};
use crate::spread::{Spread, ranked};
use crate::trace::Matched;
use crate::{VerifyError, report};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trunkline_core::{Span, Time};
use trunkline_dataplane::{DataplaneError, Session, Snapshot};
use trunkline_measure::{Percentiles, Times};
use trunkline_path::{Change, LinkSpec, classify};
use trunkline_port::Backend;
use trunkline_scenario::{Direction, PathSpec, Settings};

/// From the start of the emulator to the first probe: it must have read the requests to change the
/// delay, which it does every 100 ms.
const LEAD_IN: Span = Span::from_millis(160);
/// Longer than any probe may take beyond the path's own time.
const TAIL: Span = Span::from_millis(200);
/// Reflected probes per second.
const PINGS: f64 = 100.0;
/// The time for which the baseline of one size and load is measured, and the least number of probes per second.
const BASELINE: Span = Span::from_millis(400);
const BASELINE_LEAST: f64 = 500.0;

/// The settings of the emulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Emulator {
    /// The way in which it exchanges frames with the kernel.
    pub backend: Backend,
    /// Whether it never sleeps.
    pub busy: bool,
}

/// A run to be made.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The path under test.
    pub path: PathSpec,
    /// Bytes of a probe, as an IPv4 packet.
    pub size: u32,
    /// Probes per second each way.
    pub per_second: f64,
    /// The bound that set that rate.
    pub bound: Bound,
    /// For how long.
    pub duration: Span,
    /// By how much the delay is lengthened after a third of the run, and shortened after two thirds.
    pub change: Option<Span>,
    /// The settings of the emulator.
    pub emulator: Emulator,
    /// The thresholds.
    pub thresholds: report::Thresholds,
}

/// The time that the measurement itself takes: direct veth, same size and load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Baseline {
    /// From the sender's clock to the arrival stamp: the median, taken off every one-way time.
    pub lead: Span,
    /// The 99th percentile of that less the median: the error of one measured time.
    pub own_p99: Span,
    /// The 95th percentile less the median: what the stamps leave open about a slot.
    pub open: Span,
    /// Round trips.
    pub rtt: Spread,
    /// Probes lost even here.
    pub lost: u64,
}

impl Baseline {
    /// Measures it.
    ///
    /// # Errors
    /// If a device fails or `stop` was set.
    pub fn measure(
        laboratory: &mut Laboratory,
        size: u32,
        per_second: f64,
        stop: &AtomicBool,
    ) -> Result<Baseline, VerifyError> {
        let course = Course {
            size,
            per_second: [per_second.max(BASELINE_LEAST); 2],
            pings_per_second: PINGS,
            start: realtime() + Span::from_millis(30).as_nanos(),
            duration: BASELINE,
            tail: TAIL,
        };
        let recording = laboratory.run(Arrangement::Direct, &course, stop)?;
        Ok(Baseline::of(&recording))
    }

    fn of(recording: &Recording) -> Baseline {
        let up = Matched::of(recording.up.sent.len(), &recording.up.arrivals);
        let down = Matched::of(recording.down.sent.len(), &recording.down.arrivals);
        let mut ways = one_ways(&recording.up, &up);
        ways.extend(one_ways(&recording.down, &down));
        ways.sort_unstable();
        let at = |share| Span::from_nanos(ranked(&ways, share).max(0) as u64);
        let lead = at(0.5);
        let mut trips = direct_trips(recording, &down);
        Baseline {
            lead,
            own_p99: at(0.99).saturating_sub(lead),
            open: at(0.95).saturating_sub(lead),
            rtt: Spread::of(&mut trips),
            lost: up.lost() + down.lost(),
        }
    }
}

fn one_ways(half: &Half, matched: &Matched) -> Vec<i64> {
    let pairs = half.sent.before.iter().zip(&matched.arrived);
    pairs.filter_map(|(&before, arrived)| Some((*arrived)? as i64 - before as i64)).collect()
}

fn direct_trips(recording: &Recording, down: &Matched) -> Vec<i64> {
    let trip = |reflection: &crate::compare::Reflection| {
        let left = *recording.up.sent.before.get(reflection.ping as usize)?;
        let back = (*down.arrived.get(reflection.pong as usize)?)?;
        Some(back as i64 - left as i64)
    };
    recording.reflections.iter().filter_map(trip).collect()
}

/// Refuses what the reference cannot predict packet by packet, and sizes that cannot be sent.
///
/// # Errors
/// [`VerifyError::Random`] and [`VerifyError::Size`].
pub fn check(path: &PathSpec, sizes: &[u32]) -> Result<(), VerifyError> {
    for direction in Direction::BOTH {
        check_link(path.link(direction), direction)?;
    }
    match sizes.iter().find(|size| !(SMALLEST..=path.mtu).contains(*size)) {
        Some(&size) => Err(VerifyError::Size { size, smallest: SMALLEST, mtu: path.mtu }),
        None => Ok(()),
    }
}

fn check_link(link: &LinkSpec, direction: Direction) -> Result<(), VerifyError> {
    let random = |what: String| VerifyError::Random { direction: direction.to_string(), what };
    let without = trunkline_path::impairment::ImpairmentSpec::default().settings();
    let given = link.impairments.settings();
    let active = given.iter().zip(&without).find(|(setting, off)| setting != off);
    if let Some((setting, _)) = active {
        return Err(random(setting.to_string()));
    }
    let scheduled = link
        .schedule
        .steps
        .iter()
        .any(|(_, change)| matches!(change, Change::Impairments(_) | Change::Setting(_)));
    if scheduled { Err(random("a schedule of impairments".into())) } else { Ok(()) }
}

impl Trial {
    /// Makes the run.
    ///
    /// # Errors
    /// If the emulator or a device fails, or `stop` was set.
    pub fn run(
        &self,
        laboratory: &mut Laboratory,
        baseline: &Baseline,
        stop: &AtomicBool,
    ) -> Result<Row, VerifyError> {
        let console = laboratory.console();
        let capture = console.next_capture();
        let (session, thread) = laboratory.start(&self.path, &self.emulator, capture)?;
        let session = Arc::new(session);
        let presence = console.enter(Arc::clone(&session));
        let recorded = self.record(laboratory, &session, stop);
        let origin = session.origin();
        drop(presence);
        session.stop();
        let ended = thread.join();
        let (recording, changes) = recorded?;
        ended.result?;
        ended.capture.transpose().map_err(DataplaneError::from)?;
        let mut row = self.evaluate(&recording, &changes, origin, &ended.snapshot, baseline);
        row.problems.extend(by_hand(&session));
        Ok(row)
    }

    fn record(
        &self,
        laboratory: &mut Laboratory,
        session: &Session,
        stop: &AtomicBool,
    ) -> Result<(Recording, Vec<(Time, Span)>), VerifyError> {
        let first = trunkline_dataplane::monotonic() + LEAD_IN;
        let changes = self.ask_for_changes(session, first)?;
        let start = (first.as_nanos() as i64 + generator::clock_offset()) as u64;
        let course = Course {
            size: self.size,
            per_second: [self.per_second; 2],
            pings_per_second: PINGS,
            start,
            duration: self.duration,
            tail: self.tail(),
        };
        let recording = laboratory.run(Arrangement::Emulated, &course, stop)?;
        Ok((recording, changes))
    }

    /// Asks the emulator to change the delay at a third and at two thirds of the run.
    fn ask_for_changes(
        &self,
        session: &Session,
        first: Time,
    ) -> Result<Vec<(Time, Span)>, VerifyError> {
        let Some(step) = self.change else { return Ok(Vec::new()) };
        for (third, delays) in [(1, self.delays(step)), (2, self.delays(Span::ZERO))] {
            let mut settings = Settings::default();
            settings.add("up-delay", &delays[0].to_string());
            settings.add("down-delay", &delays[1].to_string());
            session.change_at(None, &settings, first + self.duration.scaled(third, 3))?;
        }
        let at = |third| first + self.duration.scaled(third, 3);
        Ok(vec![(at(1), step), (at(2), Span::ZERO)])
    }

    fn delays(&self, more: Span) -> [Span; 2] {
        Direction::BOTH.map(|direction| self.path.link(direction).delay + more)
    }

    /// The longest that a probe may take: delay, a full queue, and some.
    fn tail(&self) -> Span {
        let longest = |direction: Direction| {
            let link = self.path.link(direction);
            let queue = link.discipline.limit().most_bytes(self.path.mtu);
            let drain = link.rate.map_or(Span::ZERO, |rate| {
                let nanos = u128::from(queue) * 9_000_000_000 / u128::from(rate.bits_per_second());
                Span::from_nanos(nanos.min(2_000_000_000) as u64)
            });
            link.delay + drain
        };
        let path = Direction::BOTH.map(longest);
        // A reflected probe takes both ways, the second after the last one was sent.
        path[0] + path[1] + self.change.unwrap_or_default() + TAIL
    }

    fn evaluate(
        &self,
        recording: &Recording,
        changes: &[(Time, Span)],
        origin: Time,
        snapshot: &Snapshot,
        baseline: &Baseline,
    ) -> Row {
        let halves = [&recording.up, &recording.down];
        let matched = halves.map(|half| Matched::of(half.sent.len(), &half.arrivals));
        let compared = [0, 1].map(|way| {
            let context = Context { trial: self, recording, changes, origin, baseline };
            context.compare(way, &matched[way])
        });
        let ring_drops = halves.iter().map(|half| half.ring_drops).sum();
        let lost = Lost::of(matched.iter().map(Matched::lost).sum(), ring_drops, snapshot);
        let count = |field: fn(&Comparison) -> u64| compared.iter().map(field).sum();
        let [delay, spacing] = errors(&compared);
        let rtt_with = round_trips(
            &recording.reflections,
            (&matched[0], &compared[0]),
            (&recording.down.sent, &compared[1]),
            baseline.lead.as_nanos() as i64,
        );
        let sent: u64 = halves.iter().map(|half| half.sent.len() as u64).sum();
        let row = Row {
            delay_up: self.path.up.delay,
            delay_down: self.path.down.delay,
            size: self.size,
            offered_per_second: self.per_second,
            sent_per_second: sent as f64 / 2.0 / recording.sending.as_secs_f64().max(1e-9),
            complete: recording.complete,
            bound: self.bound,
            delay_changes: changes.len() as u64,
            sent,
            refused: halves.iter().map(|half| half.refused).sum(),
            lost,
            reordered: matched.iter().map(|matched| matched.reordered).sum(),
            duplicated: matched.iter().map(|matched| matched.duplicated).sum(),
            late: delay.longer_than(self.thresholds.delay),
            uneven: spacing.longer_than(self.thresholds.spacing),
            delay_error: delay.percentiles(),
            mean_error_ns: mean_error(&compared),
            spacing_error: spacing.percentiles(),
            interrupted: count(|c| c.interrupted),
            near_change: count(|c| c.near_change),
            other_fate: count(|c| c.other_fate),
            slot_open: count(|c| c.slot_open),
            rtt_with,
            rtt_without: baseline.rtt,
            baseline_lead: baseline.lead,
            baseline_p99: baseline.own_p99,
            sender_late: recording.lateness.percentiles(),
            own_statement: worse(snapshot),
            stalls: Stalls::of(recording, snapshot),
            clock_stepped: recording.stepped || snapshot.clock_steps > 0,
            problems: Vec::new(),
        };
        row.judged(&self.thresholds)
    }
}

/// The errors of delay and of spacing, both ways together.
fn errors(compared: &[Comparison]) -> [Times; 2] {
    let mut sums = [Times::default(), Times::default()];
    for comparison in compared {
        sums[0].add(&comparison.delay);
        sums[1].add(&comparison.spacing);
    }
    sums
}

/// Says that the path was set by somebody while it was measured: it is not what its arrivals are held against.
fn by_hand(session: &Session) -> Option<String> {
    let now = trunkline_dataplane::monotonic();
    let made = session.changes().into_iter().filter(|change| change.at <= now);
    let changes: Vec<String> = made.map(|change| change.settings).collect();
    (!changes.is_empty()).then(|| {
        format!("the path was changed by hand while it was measured ({})", changes.join("; "))
    })
}

/// The emulator's own statement on the direction with the larger 99th percentile.
fn worse(snapshot: &Snapshot) -> Percentiles {
    let own = snapshot.lanes.iter().map(|lane| lane.lateness);
    own.max_by_key(|lateness| lateness.p99).unwrap_or_default()
}

/// The inputs of the comparison of one direction.
struct Context<'a> {
    trial: &'a Trial,
    recording: &'a Recording,
    changes: &'a [(Time, Span)],
    origin: Time,
    baseline: &'a Baseline,
}

impl Context<'_> {
    fn compare(&self, way: usize, matched: &Matched) -> Comparison {
        let half = if way == 0 { &self.recording.up } else { &self.recording.down };
        let instants: Vec<Time> = self.changes.iter().map(|&(at, _)| at).collect();
        let prescribed = self.prescribe(way, half);
        let direction = Compared {
            sent: &half.sent,
            matched,
            prescribed: &prescribed,
            offset: self.recording.offset,
            changes: &instants,
        };
        direction.compare()
    }

    /// The prescriptions; on a slotted line also for what the stamps leave open.
    fn prescribe(&self, way: usize, half: &Half) -> Vec<Vec<Option<Prescribed>>> {
        let direction = Direction::BOTH[way];
        let spec = self.trial.path.link(direction);
        let changes: Vec<(Time, Span)> =
            self.changes.iter().map(|&(at, more)| (at, spec.delay + more)).collect();
        let frame = &generator::sample(self.trial.size)[way];
        let reference = Reference {
            spec,
            seed: self.trial.path.seed,
            name: direction.name(),
            origin: self.origin,
            class: classify(frame, self.trial.path.key),
            changes: &changes,
        };
        let shifted = |shift: i64| {
            let lead = self.baseline.lead.as_nanos() as i64 + shift;
            let entry = |&at: &u64| to_monotonic(at, self.recording.offset - lead);
            let entries: Vec<Time> = half.sent.before.iter().map(entry).collect();
            reference.prescribe(&entries)
        };
        let shifts = match slot(spec) {
            Some(slot) => {
                let open = self.baseline.open.min(slot.scaled(1, 4)).as_nanos() as i64;
                vec![0, -open, open]
            }
            None => vec![0],
        };
        shifts.into_iter().map(shifted).collect()
    }
}

/// The time of one slot of the line, if it has slots.
fn slot(spec: &LinkSpec) -> Option<Span> {
    let (bits, rate) = (spec.framing.slot_bits()?, spec.rate?.bits_per_second());
    let (carrying, whole) = spec.framing.line_share();
    Some(Span::from_secs(1).scaled(bits * whole, rate * carrying))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pairs: &[&str]) -> PathSpec {
        let mut settings = Settings::default();
        pairs.iter().for_each(|pair| settings.add_pair(pair).unwrap());
        settings.resolve().unwrap()
    }

    #[test]
    fn what_is_drawn_at_random_is_refused_with_its_name() {
        assert!(check(&path(&["delay=10ms", "rate=10mbit", "queue=drr"]), &[40, 1500]).is_ok());
        for (setting, named) in [("loss=1%", "loss"), ("down-jitter=1ms", "jitter")] {
            let told = check(&path(&["delay=10ms", setting]), &[40]).unwrap_err().to_string();
            assert!(told.contains(named), "{told}");
        }
        let scheduled = path(&["delay=10ms", "schedule=1s loss=1%"]);
        assert!(check(&scheduled, &[40]).unwrap_err().to_string().contains("schedule"));
    }

    #[test]
    fn sizes_lie_between_the_headers_and_the_mtu() {
        let lds = path(&["mtu=9180"]);
        assert!(check(&lds, &[40, 9180]).is_ok());
        assert!(check(&lds, &[39]).unwrap_err().to_string().contains("40 bytes"));
        assert!(check(&lds, &[9181]).unwrap_err().to_string().contains("9180"));
    }

    #[test]
    fn a_slot_of_oc3_is_a_cell_time() {
        let lds = path(&["rate=155.52mbit", "framing=atm-aal5"]);
        assert_eq!(slot(&lds.up), Some(Span::from_nanos(2_831)), "LDS report, 2.83 us");
        assert_eq!(slot(&path(&["rate=10mbit"]).up), None);
    }

    #[test]
    fn the_baseline_is_taken_from_both_directions() {
        let mut recording = Recording::default();
        for (half, lead) in [(&mut recording.up, 700), (&mut recording.down, 900)] {
            for number in 0..100u32 {
                let before = 1_000_000 + u64::from(number) * 10_000;
                half.sent.push(before, before + 1_500);
                if number != 50 {
                    let late = if number == 99 { 5_000 } else { 0 };
                    let stamp = before + lead + late;
                    half.arrivals.push(crate::trace::Arrival { number, stamp });
                }
            }
        }
        recording.reflections.push(crate::compare::Reflection { ping: 1, pong: 3 });
        let baseline = Baseline::of(&recording);
        assert_eq!((baseline.lead.as_nanos(), baseline.lost), (900, 2));
        // 98 times 700, 98 times 900, then 5700 and 5900.
        assert_eq!(baseline.open.as_nanos(), 0);
        assert_eq!(baseline.own_p99.as_nanos(), 4_800);
        assert_eq!((baseline.rtt.count, baseline.rtt.mean_ns), (1, 20_900));
    }
}

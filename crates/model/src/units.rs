//! The units of a listed protocol on their way: the path's figures for its formula, and what the hosts make of that.

use crate::flow::Flow;
use crate::group::writes;
use crate::listed::{answer, behind_controls, demands, loss, openings, until};
use crate::serial;
use crate::slots::to_slots;
use crate::talk::{TOGETHER, Talk};
use crate::throughput::Throughput;
use crate::way::Resource;
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_engine::Note;
use trunkline_scenario::{Listed, Network, Traffic, Workload};
use trunkline_transport::protocol::{Circumstances, Formula, Shape};

/// The units of writes of one size on their way.
pub(crate) struct Course {
    pub path: Circumstances,
    /// The same but for what answers wait for the reader.
    unread: Circumstances,
    pub formula: Formula,
    /// What [`TOGETHER`] units ask of each stage.
    demands: BTreeMap<Resource, Span>,
    /// Units of a write.
    units: u64,
    /// What it takes to open a connection, if each write does so.
    opening: Option<Span>,
}

impl Course {
    /// The course of units in writes of `write` bytes.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn new(
        network: &Network<'_>,
        listed: &Listed,
        flow: &Flow<'_>,
        (workload, write): (&Workload, u32),
    ) -> Result<Course, String> {
        let (talk, shape) = (&flow.there, (listed.entry.shape)(&listed.values));
        let unit = u64::from(shape.unit);
        let units = (u64::from(write) / unit).max(1);
        let mut demands = demands(flow, shape, TOGETHER);
        let each = |cost: Span| cost.scaled(unit * TOGETHER, u64::from(write.max(1)));
        *demands.entry(Resource::Processor(talk.from.1)).or_default() += each(talk.writing(write));
        *demands.entry(Resource::Processor(talk.to.1)).or_default() += each(writes(workload).1);
        let path = Circumstances {
            spacing: each_of(serial::longest(&demands, &[])),
            answered: answered(flow, shape),
            loss: loss(network, &flow.route.there),
            answer_loss: loss(network, &flow.route.back),
            units: match workload {
                Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => {
                    bytes.bytes().div_ceil(unit)
                }
                Workload::TimedTransfer { .. } if listed.entry.connects_for_each => units,
                _ => u64::MAX,
            },
        };
        let message =
            if matches!(workload, Workload::TimedTransfer { .. }) { units } else { u64::MAX };
        let unread = path;
        let path = read_together(listed, flow, path, message)?;
        let formula = (listed.entry.formula)(&listed.values, &path)?;
        let opens =
            listed.entry.connects_for_each && matches!(workload, Workload::TimedTransfer { .. });
        let mut course = Course { path, unread, formula, demands, units, opening: None };
        course.held_up(listed, talk, (write, shape.unit));
        if opens {
            course.open_each(flow, shape);
        }
        Ok(course)
    }

    /// The interval if the slowest stage took so many nanoseconds for a unit.
    fn interval(&self, listed: &Listed, spacing: f64) -> Option<f64> {
        interval(listed, &Circumstances { spacing: spacing.max(1.0), ..self.path })
    }

    /// The interval if nothing is lost.
    pub fn without_loss(&self, listed: &Listed) -> Option<f64> {
        interval(listed, &Circumstances { loss: 0.0, answer_loss: 0.0, ..self.path })
    }

    /// Counts what a sender of one unit at a time waits for its own processor.
    fn held_up(&mut self, listed: &Listed, talk: &Talk<'_>, (write, unit): (u32, u32)) {
        let answered = self.path.answered.as_nanos() as f64;
        if self.interval(listed, 1.0).is_none_or(|window| window < 0.999 * answered) {
            return;
        }
        let wait = serial::held_up(talk, write, unit, self.path.answered);
        let wait = wait.as_nanos() as f64 / self.units as f64;
        let behind = if self.path.spacing > answered { answered } else { self.formula.interval };
        self.formula.interval = self.formula.interval.max(behind + wait);
    }

    /// Each write is a transfer that opens a connection, and the next one begins when it is confirmed.
    fn open_each(&mut self, flow: &Flow<'_>, shape: Shape) {
        let (forth, back) = openings((&flow.there, None), &flow.back, shape);
        let sending = until(self.units - 1, &self.formula) + self.path.answered;
        let controls = behind_controls(&flow.there, (2, [0; 2]));
        let whole = (forth + back + controls + sending).as_nanos() as f64;
        let own = self.path.spacing * self.units as f64;
        self.opening = Some(forth + back);
        let interval = whole.max(own) / self.units as f64;
        let numbers =
            format!("max({forth} + {back} + {controls} + {sending}, {own} ns) / {}", self.units);
        let text = "(OPEN + RESPONSE + controls + data + OK) / packets of a write";
        let found = Formula { interval, within: interval, burst: 1, text, numbers, ..self.formula };
        self.formula = found;
    }

    /// The note on what processors hold up, of a figure of `total`.
    pub fn range(
        &self,
        network: &Network<'_>,
        traffic: &Traffic,
        (listed, flow): (&Listed, &Flow<'_>),
        total: Span,
    ) -> Option<Note> {
        let (talk, ends) = (&flow.there, serial::ends(&flow.there));
        let known = self.known(listed, talk, &ends)?;
        let count = match traffic.workload {
            Workload::Greedy { .. } => {
                let range = known.of(traffic, talk, known.figure, 1)?;
                let bytes = self.units * u64::from((listed.entry.shape)(&listed.values).unit);
                let [most, least] = range.map(|span| Throughput::over(bytes, span));
                return Some(serial::told(network, traffic, talk, [least, most]));
            }
            Workload::TimedTransfer { .. } => 1,
            _ => self.path.units.div_ceil(self.units),
        };
        let range = known.of(traffic, talk, total, count)?;
        Some(serial::told(network, traffic, talk, range))
    }

    /// What is known of a write.
    fn known(
        &self,
        listed: &Listed,
        talk: &Talk<'_>,
        ends: &[Resource; 2],
    ) -> Option<serial::Known> {
        let found = self.formula.interval;
        let opening = self.opening.map(|span| span.as_nanos() as f64 / self.units as f64);
        // Some of the opening may pass while the next write is made.
        let (shortest, least) = opening.map_or((0.0, 0.0), |opening| (found, found - opening));
        let without = |leave: &[Resource]| {
            let spacing = each_of(serial::longest(&self.demands, leave)).max(1.0);
            interval(listed, &Circumstances { spacing, ..self.unread })
        };
        let window = self.interval(listed, 1.0)?;
        let work = ends.iter().filter_map(|end| self.demands.get(end).copied()).map(each_of);
        let work = work.sum::<f64>() + talk.to.0.processor.read.fixed.as_nanos() as f64;
        let spare = self.path.answered.as_nanos() as f64 * (found / window - 1.0).max(0.0);
        let span = |nanos: f64| Span::from_nanos((nanos * self.units as f64) as u64);
        Some(serial::Known {
            figure: span(found),
            base: span(without(ends)?.max(shortest)),
            least: span(without(&[])?.max(least)),
            unread: span(without(&ends[..1])?.max(least)),
            work: span(work),
            spare: if opening.is_some() { Span::ZERO } else { Span::from_nanos(spare as u64) },
        })
    }
}

/// The interval of units in such circumstances.
fn interval(listed: &Listed, path: &Circumstances) -> Option<f64> {
    (listed.entry.formula)(&listed.values, path).ok().map(|formula| formula.interval)
}

/// The nanoseconds of one of [`TOGETHER`] units.
fn each_of(span: Span) -> f64 {
    span.as_nanos() as f64 / TOGETHER as f64
}

/// From the sending of a unit to the coming of its answer.
pub(crate) fn answered(flow: &Flow<'_>, shape: Shape) -> Span {
    let (talk, unit) = (&flow.there, shape.unit);
    talk.host_send(unit)
        + talk.board_send(unit)
        + talk.way.latency(&talk.speech.packets(unit))
        + talk.host_receive(unit)
        + talk.acknowledging()
        + flow.back.way.latency(&[answer(shape)])
        + to_slots(flow)
}

/// `path` with the system calls of a reader that takes together what may be under way, as many units as the formula
/// without them has at once, and no more than a `message`.
///
/// # Errors
/// Why no formula covers it.
fn read_together(
    listed: &Listed,
    flow: &Flow<'_>,
    path: Circumstances,
    message: u64,
) -> Result<Circumstances, String> {
    let talk = &flow.there;
    if talk.to.0.processor.read.fixed.is_zero() {
        return Ok(path);
    }
    let unit = (listed.entry.shape)(&listed.values).unit;
    let together = (listed.entry.formula)(&listed.values, &path)?.together;
    let answered = path.answered + talk.behind_reads(unit, together, path.answered);
    let busy = talk.taking(unit) - talk.to.0.processor.read.fixed + talk.calls(together, message);
    let spacing = path.spacing.max(busy.as_nanos() as f64);
    Ok(Circumstances { answered, spacing, ..path })
}

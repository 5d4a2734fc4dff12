//! The times of transfers over TCP: from the first byte to the confirmation, or from write to write.

use super::beginning::{Beginning, Joins};
use super::bulk::{BALANCE, WINDOW};
use super::first::{Segments, held_back};
use super::flow::{Greedy, acknowledgement};
use super::growing::Growing;
use super::meter::Meter;
use super::share::{Flows, Regime, Share};
use crate::formula::transfer::Latency;
use crate::group::writes;
use crate::message::{Terms, behind_answers, one_way, slowest};
use crate::prediction::What;
use crate::talk::{processor_place, window_place};
use crate::transfer::CONFIRMATION;
use crate::way::Resource;
use trunkline_core::{Cause, Span};
use trunkline_scenario::{Network, Workload};

pub(super) const SLOW_START: &str = "RFC 5681 §3.1; Cardwell, Savage, Anderson 2000 §2.2";

/// What was on the way before a transfer.
pub(super) enum Before {
    /// Nothing: the connection is new.
    New(Beginning),
    /// Its connection's transfers before it; others go on sending. If there are none, the first of its own are longer.
    Grown(Option<Growing>),
    /// The same, and the others' transfers begin again like its own.
    Again,
}

impl Before {
    /// Before a transfer of flow number `index`.
    pub fn of(
        network: &Network<'_>,
        flows: &Flows<'_>,
        shares: &[Share],
        (index, joins): (usize, Joins),
    ) -> Before {
        let transfers = |flow: &Greedy<'_>| {
            let workload = &network.scenario().traffic[flow.flow.traffic].workload;
            match *workload {
                Workload::Bulk { repeat, .. } | Workload::Push { repeat, .. } => repeat,
                _ => 1,
            }
        };
        let repeats = |flow: &Greedy<'_>| transfers(flow) > 1;
        let share = &shares[index];
        let mut users = flows.iter().zip(shares).filter(|(_, other)| other.regime == share.regime);
        match repeats(&flows[index]) {
            false => {
                let together = Beginning::of(network, flows, shares, index);
                Before::New(match joins {
                    Joins::Together => together,
                    Joins::Behind => together.behind(&flows[index], share),
                })
            }
            true if share.users > 1 && users.all(|(flow, _)| repeats(flow)) => Before::Again,
            true => {
                Before::Grown((share.users < 2 && share.regime != Regime::Loss).then(|| Growing {
                    new: Beginning::of(network, flows, shares, index),
                    transfers: transfers(&flows[index]),
                }))
            }
        }
    }
}

/// The times that the workload would measure.
pub(super) fn times(
    workload: &Workload,
    flow: &Greedy<'_>,
    share: &Share,
    before: &Before,
) -> Vec<(u64, What, Terms)> {
    match workload {
        Workload::Bulk { bytes, confirm, .. } => {
            let terms = transfer(flow, share, bytes.bytes(), before, *confirm, Terms::default());
            vec![(bytes.bytes(), What::Transfer, terms)]
        }
        Workload::Push { bytes, .. } => {
            let mut stored = Terms::default();
            if share.regime != Regime::Stage(Resource::Processor(flow.flow.there.to.1)) {
                storing(&mut stored, workload, flow);
            }
            let terms = transfer(flow, share, bytes.bytes(), before, true, stored);
            vec![(bytes.bytes(), What::Transfer, terms)]
        }
        Workload::TimedTransfer { duration, .. } => {
            vec![(flow.write, What::Interval, interval(flow, share, *duration, before))]
        }
        _ => {
            let meter = Meter::of(workload, flow, share, before);
            meter.iter().map(|meter| meter.amount(flow, share)).collect()
        }
    }
}

/// The mean time of a write in a test of `duration`. At its end the host still holds a part of what was written.
fn interval(flow: &Greedy<'_>, share: &Share, duration: Span, before: &Before) -> Terms {
    let test = Test::of(flow, share, duration, before);
    let mut terms = waiting(flow, share, test.interval(flow.write, test.held));
    if let Some(term) = terms.0.first_mut().filter(|_| test.held > 0.0) {
        term.formula = "bytes × time of the last write / (bytes carried since the beginning + bytes held at the end)";
        term.numbers = format!(
            "{:.0} bytes carried in {duration}, at {} in the end, {:.0} held; the last write at {}",
            test.carried,
            share.rate,
            test.held,
            seconds(test.last(test.held))
        );
    }
    terms
}

/// What a test of a stated time comes to, in user bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    seconds: f64,
    carried: f64,
    /// What the host holds at the end: the mean, and the most.
    held: f64,
    most: f64,
    /// Seconds for which a writer sleeps in the mean, for each byte held.
    sleep: f64,
}

impl Test {
    pub fn of(flow: &Greedy<'_>, share: &Share, duration: Span, before: &Before) -> Test {
        let seconds = duration.as_secs_f64();
        let carried = match before {
            Before::New(new) => {
                let [_, alone, _] = held_back(flow, u64::MAX).unwrap_or_default();
                new.carried(flow, duration.saturating_sub(alone), bytes_per_second(share))
            }
            Before::Grown(_) | Before::Again => seconds * bytes_per_second(share),
        };
        let held = held_at_the_end(flow, share);
        let most = most_held(flow, share, carried).max(held);
        // A third of the buffer is two fifths of what is held of it.
        let third = 2.0 / 5.0 / bytes_per_second(share).max(1.0);
        let sleep = if flow.tcp.grows.is_some() { third } else { 0.0 };
        Test { seconds, carried, held, most, sleep }
    }

    /// When the last write returns, in seconds, if the host holds `held` at the end: half a sleep before it in the mean.
    fn last(&self, held: f64) -> f64 {
        (self.seconds - held * self.sleep / 2.0).max(0.0)
    }

    /// The mean time of a write of so many bytes if the host holds `held` at the end.
    fn interval(&self, write: u64, held: f64) -> Span {
        seconds(write as f64 * self.last(held) / (self.carried + held).max(1.0))
    }

    /// The least and the most that the mean time of a write may be, if the host may hold up to the most at the end.
    pub fn range(&self, write: u64) -> [Span; 2] {
        [self.most, 0.0].map(|held| self.interval(write, held))
    }
}

/// Bytes that a saturated sender holds: what its buffer takes with its congestion window. If that grows, the writer sleeps until a
/// third is free (Linux, `sk_stream_write_space`), and a sixth is so in the mean. One that the application keeps waiting holds
/// nothing.
fn held_at_the_end(flow: &Greedy<'_>, share: &Share) -> f64 {
    if share.regime == Regime::Stage(Resource::Processor(flow.flow.there.from.1)) {
        return 0.0;
    }
    let buffer = flow.tcp.buffer_with(window(flow, share) * beyond_the_receivers(flow, share));
    if flow.tcp.grows.is_some() { buffer * 5.0 / 6.0 } else { buffer }
}

/// How much larger than the receiver's a window has become that counts segments, if a queue stands. In slow start it grows to twice
/// what is outstanding (`tcp_is_cwnd_limited`). HyStart ends that sooner, but a window counts as full for a round trip after the
/// receiver's is, in which CUBIC adds a segment for two that are acknowledged (`tcp_cwnd_validate`, `bictcp_update`).
fn beyond_the_receivers(flow: &Greedy<'_>, share: &Share) -> f64 {
    match share.regime {
        Regime::Standing(_) if flow.tcp.has_hystart() => 1.5,
        Regime::Standing(_) if flow.tcp.whole => 2.0,
        _ => 1.0,
    }
}

/// The most that it may hold: a buffer that has grown with the window stays so. In slow start a window grows by what has been
/// acknowledged; when it overflows path and buffer it may be twice as large as they, and grows once more until that is known.
fn most_held(flow: &Greedy<'_>, share: &Share, carried: f64) -> f64 {
    let payload = f64::from(flow.tcp.payload);
    let grown = f64::from(flow.tcp.first) * payload + carried;
    let window = match share.saw {
        Some(saw) => 3.0 * (saw.pipe + saw.buffer) * payload,
        None => flow.tcp.window as f64,
    };
    flow.tcp.buffer_with(grown.min(window))
}

/// The mean window in user bytes.
fn window(flow: &Greedy<'_>, share: &Share) -> f64 {
    bytes_per_second(share) * (flow.round_trip + share.queue).as_secs_f64()
}

pub(super) fn bytes_per_second(share: &Share) -> f64 {
    share.rate.millibytes_per_second() as f64 / 1e3
}

/// A transfer: slow start on a fresh connection and what follows, the rest at the connection's rate, the way of
/// the last segment, the confirmation, and what is `stored` of it.
fn transfer(
    flow: &Greedy<'_>,
    share: &Share,
    bytes: u64,
    before: &Before,
    confirm: bool,
    stored: Terms,
) -> Terms {
    let talk = &flow.flow.there;
    let grown = match before {
        Before::New(_) => 0,
        Before::Grown(_) | Before::Again => window(flow, share) as u64,
    };
    let segments = Segments::of(flow, bytes, grown);
    let beyond = segments.beyond(bytes, flow.tcp.payload) * flow.segment.as_secs_f64();
    let last = segments.last;
    let mut around = Terms::default();
    one_way(&mut around, talk, last);
    if confirm {
        if segments.last_is_acknowledged(&flow.tcp) {
            let ahead = (acknowledgement(&flow.tcp), &[Span::ZERO][..]);
            behind_answers(&mut around, (talk, &flow.flow.back), ahead, (last, CONFIRMATION));
        }
        one_way(&mut around, &flow.flow.back, CONFIRMATION);
    }
    around.0.extend(stored.0);
    let mut terms = Terms::default();
    let sending = match before {
        Before::Grown(growing) => {
            behind_others(&mut terms, flow, share);
            growing.iter().for_each(|growing| while_growing(&mut terms, flow, growing, bytes));
            let in_windows = growing.as_ref().filter(|_| share.regime == Regime::Window);
            let by_rate = || {
                share.rate.time_for(bytes.saturating_sub(u64::from(last)))
                    + seconds(beyond * share.users as f64)
            };
            in_windows.map_or_else(by_rate, |growing| {
                seconds(growing.grown(flow, bytes) - f64::from(last) / growing.new.whole())
            })
        }
        Before::Again => in_turn(flow, share, (bytes, last), (beyond, around.total())),
        Before::New(new) => {
            let found = new.latency(flow, bytes);
            slow_start(&mut terms, flow, &found);
            // The last segment's own time is in its way.
            first_alone(&mut terms, flow, bytes);
            // What the first window is longer for short segments is in slow start if more is to come.
            let small = if segments.at_once { beyond * f64::from(new.flows) } else { 0.0 };
            seconds(small + found.rest - f64::from(last) / new.whole())
        }
    };
    terms.0.extend(waiting(flow, share, sending).0);
    terms.0.extend(around.0);
    terms
}

/// What a connection's first transfers take longer.
fn while_growing(terms: &mut Terms, flow: &Greedy<'_>, growing: &Growing, bytes: u64) {
    let longer = growing.longer(flow, bytes);
    if longer.transfers == 0 {
        return;
    }
    let name = (
        "the first transfers, while the window grows",
        "Σ over the transfers of what they take longer than with a window that holds one / transfers",
        SLOW_START,
    );
    let numbers = format!("{} of {}", longer.transfers, growing.transfers);
    let place = window_place(flow.flow.there.from.0);
    terms.add(name, &place, Cause::Window, seconds(longer.mean), numbers);
}

/// The rounds in which a new connection waits for acknowledgements.
fn slow_start(terms: &mut Terms, flow: &Greedy<'_>, found: &Latency) {
    let name = (
        "slow start",
        "Σ over the rounds in which it may end: chance × rounds × round trip",
        SLOW_START,
    );
    let numbers = format!(
        "{:.2} rounds of {}; a loss or an overflow ends it with a chance of {:.0} %",
        found.rounds,
        flow.round_trip,
        100.0 * found.lost
    );
    let place = window_place(flow.flow.there.from.0);
    terms.add(name, &place, Cause::Window, seconds(found.slow), numbers);
}

/// Acknowledgements that the receiver holds back while the sender waits for them.
fn first_alone(terms: &mut Terms, flow: &Greedy<'_>, bytes: u64) {
    let Some([least, mean, most]) = held_back(flow, bytes) else { return };
    let numbers = if least < most { format!("{least} to {most}") } else { mean.to_string() };
    let name = (
        "acknowledgements of segments that are alone in the first windows",
        "Σ what a receiver waits for a second one; of a clock that ticks, half for the first",
        "RFC 5681 §4.2",
    );
    terms.add(name, &window_place(flow.flow.there.from.0), Cause::Window, mean, numbers);
}

/// What is left for sending if as many transfers as there are connections are always under way: by Little's law each
/// takes its bytes over its share of the rate, with the time `around` in which its connection sends nothing, and at
/// least what it would take alone. Small segments take so many seconds `beyond` that of full ones.
fn in_turn(
    flow: &Greedy<'_>,
    share: &Share,
    (bytes, last): (u64, u32),
    (beyond, around): (f64, Span),
) -> Span {
    let whole = match share.regime {
        Regime::Stage(resource) | Regime::Standing(resource) | Regime::Overflow(resource, _) => {
            flow.capacity(resource)
        }
        Regime::Window | Regime::Loss => share.rate,
    };
    let alone = whole.max(share.rate).time_for(bytes.saturating_sub(u64::from(last)));
    let all = share.rate.time_for(bytes) + seconds(beyond * share.users as f64);
    all.saturating_sub(around).max(alone + seconds(beyond))
}

fn seconds(seconds: f64) -> Span {
    Span::from_nanos((seconds.max(0.0) * 1e9) as u64)
}

/// On a connection that has grown the last segment finds the queue of the line's other users; its own connection's
/// is in the rate.
fn behind_others(terms: &mut Terms, flow: &Greedy<'_>, share: &Share) {
    if share.users < 2 {
        return;
    }
    let (place, _) = limiting_place(flow, share);
    terms.add(
        ("the queue before the last segment", "mean queue of the line", WINDOW),
        &place,
        Cause::Queue,
        share.queue,
        share.queue.to_string(),
    );
}

/// Of all writes but the last the storing overlaps the sending, and the slower of the two limits.
fn storing(terms: &mut Terms, workload: &Workload, flow: &Greedy<'_>) {
    let (_, store) = writes(workload);
    terms.add(
        ("storing the last write", "store", "Vande Water 1988 §3.7.1"),
        &processor_place(flow.flow.there.to.0),
        Cause::Host,
        store,
        store.to_string(),
    );
}

/// So long at the connection's rate, booked where it is held back.
pub(super) fn waiting(flow: &Greedy<'_>, share: &Share, span: Span) -> Terms {
    let mut terms = Terms::default();
    let (place, cause) = limiting_place(flow, share);
    terms.add(
        ("sending at the connection's rate", "bytes / throughput", BALANCE),
        &place,
        cause,
        span,
        format!("at {}", share.rate),
    );
    terms
}

fn limiting_place(flow: &Greedy<'_>, share: &Share) -> (String, Cause) {
    let talk = &flow.flow.there;
    match share.regime {
        Regime::Window => (window_place(talk.from.0), Cause::Window),
        Regime::Loss => (window_place(talk.from.0), Cause::Recover),
        Regime::Stage(resource) | Regime::Standing(resource) | Regime::Overflow(resource, _) => {
            slowest(talk, resource)
        }
    }
}

//! What the textbook protocols' own settings hold back: the window, and the rate of the sender's line.

use super::{SELECTIVE_REPEAT, Settings};
use crate::protocol::{ProtocolEntry, Value, Values};
use crate::restraint::{Bounds, Restraint, Step, TIMES, fourfold};
use trunkline_core::Rate;

/// Most frames that may be without an answer.
pub(super) const MOST_FRAMES: u64 = 65_536;

/// Those of a protocol with a window.
pub(super) fn of(entry: &'static ProtocolEntry, values: &Values, enough: u64) -> Vec<Restraint> {
    let restraints = [Some(window(entry, values, enough)), line(entry, values)];
    restraints.into_iter().flatten().collect()
}

/// Those of stop-and-wait: its window is one frame, so a larger one is another protocol's. A time-out that suits one frame is too short for
/// many that queue, so that protocol measures its own.
pub(super) fn of_one_frame(values: &Values, enough: u64) -> Vec<Restraint> {
    let mut repeat = SELECTIVE_REPEAT.defaults();
    repeat.set("frame", Value::Number(values.number("frame")));
    repeat.set("frames", Value::Number(1));
    let mut window = window(&SELECTIVE_REPEAT, &repeat, enough);
    for step in &mut window.steps {
        step.to = format!("{} of {}", step.entry.name, step.values.number("frames"));
    }
    vec![window]
}

fn window(entry: &'static ProtocolEntry, values: &Values, enough: u64) -> Restraint {
    let now = Settings::of(values);
    let with = |frames: u64| {
        let mut wider = values.clone();
        wider.set("frames", Value::Number(frames));
        // A receiver holds a window at least.
        if (1..frames).contains(&values.number("buffer")) {
            wider.set("buffer", Value::Number(frames));
        }
        Step::new(format!("{frames} frames"), entry, wider)
    };
    let enough = enough.div_ceil(u64::from(now.frame));
    let steps = fourfold(now.frames as u64, enough, MOST_FRAMES).into_iter().filter_map(with);
    let plural = if now.frames == 1 { "" } else { "s" };
    Restraint {
        bounds: Bounds::Window,
        now: format!("{} frame{plural} of {} B", now.frames, now.frame),
        steps: steps.collect(),
    }
}

fn line(entry: &'static ProtocolEntry, values: &Values) -> Option<Restraint> {
    let now = Settings::of(values).rate?;
    let faster = |times: u64| {
        let rate = Rate::from_bits_per_second(now.bits_per_second().checked_mul(times)?);
        let mut faster = values.clone();
        faster.set("rate", Value::Rate(rate));
        Some((format!("{times} times"), faster))
    };
    let mut free = values.clone();
    free.clear("rate");
    let faster = TIMES.into_iter().filter_map(faster);
    let all = faster.chain([("none".to_string(), free)]);
    let steps = all.filter_map(|(to, values)| Step::new(to, entry, values)).collect();
    Some(Restraint { bounds: Bounds::Rate, now: format!("line of {now}"), steps })
}

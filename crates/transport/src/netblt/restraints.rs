//! What NETBLT's own settings hold back: the buffers under way, and the pace.

use super::entry::{NETBLT, burst};
use super::terms::MEMORY;
use crate::protocol::{Value, Values};
use crate::restraint::{Bounds, Restraint, Step, TIMES, fourfold};
use trunkline_core::Rate;

/// Both, if so many bytes under way are enough.
pub(super) fn of(values: &Values, enough: u64) -> Vec<Restraint> {
    [Some(window(values, enough)), pace(values)].into_iter().flatten().collect()
}

fn window(values: &Values, enough: u64) -> Restraint {
    let buffer = values.number("packets").max(1) * values.number("frame").max(1);
    let now = values.number("outstanding").max(1);
    let with = |buffers: u64| {
        let mut wider = values.clone();
        wider.set("outstanding", Value::Number(buffers));
        Step::new(format!("{buffers} buffers"), &NETBLT, wider)
    };
    let most = (MEMORY / buffer).min(u64::from(u16::MAX));
    let steps = fourfold(now, enough.div_ceil(buffer), most).into_iter().filter_map(with);
    let plural = if now == 1 { "" } else { "s" };
    Restraint {
        bounds: Bounds::Window,
        now: format!("{now} buffer{plural} of {buffer} B"),
        steps: steps.collect(),
    }
}

/// The bursts, and the cap. Without them the receiver finds the rate.
fn pace(values: &Values) -> Option<Restraint> {
    let (bursts, cap) = (burst(values), values.rate("rate"));
    let bursts_now = bursts.map(|it| format!("{} packets in {}ms", it.size, it.interval));
    let cap_now = cap.map(|rate| format!("at most {rate}"));
    let now: Vec<String> = bursts_now.into_iter().chain(cap_now).collect();
    if now.is_empty() {
        return None;
    }
    let faster = |times: u64| {
        let mut faster = values.clone();
        if let Some(burst) = bursts {
            let size = u16::try_from(u64::from(burst.size) * times).ok()?;
            faster.set("burst", Value::Number(size.into()));
        }
        if let Some(rate) = cap {
            let rate = rate.bits_per_second().checked_mul(times)?;
            faster.set("rate", Value::Rate(Rate::from_bits_per_second(rate)));
        }
        Some((format!("{times} times"), faster))
    };
    let mut free = values.clone();
    ["interval", "rate"].into_iter().for_each(|key| free.clear(key));
    if bursts.is_some() {
        free.clear("burst");
    }
    let faster = TIMES.into_iter().filter_map(faster);
    let all = faster.chain([("found by the receiver".to_string(), free)]);
    let steps = all.filter_map(|(to, values)| Step::new(to, &NETBLT, values)).collect();
    Some(Restraint { bounds: Bounds::Rate, now: now.join(", "), steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the steps of the pace are called.
    fn steps(pairs: &str) -> Vec<String> {
        let values = Values::parse("netblt", NETBLT.keys, pairs).unwrap();
        let pace = pace(&values).expect("it has a pace of its own");
        pace.steps.into_iter().map(|step| step.to).collect()
    }

    #[test]
    fn a_burst_is_never_larger_than_its_field() {
        let all = ["2 times", "10 times", "found by the receiver"];
        assert_eq!(steps("interval=20ms"), all);
        assert_eq!(steps("interval=20ms,burst=6553"), all);
        assert_eq!(steps("interval=20ms,burst=6554"), [all[0], all[2]]);
        assert_eq!(steps("interval=20ms,burst=40000"), [all[2]]);
    }

    #[test]
    fn what_the_receiver_finds_is_no_pace_of_its_own() {
        let values = |pairs| Values::parse("netblt", NETBLT.keys, pairs).unwrap();
        assert_eq!(pace(&values("burst=20")), None);
        assert_eq!(pace(&values("rate=1Mbit/s")).unwrap().now, "at most 1Mbit/s");
    }
}

//! A path in words.

use trunkline_path::impairment::ImpairmentSpec;
use trunkline_path::{CatchUp, Framing, LinkSpec};
use trunkline_scenario::{PathSpec, Settings};

/// Both directions in one line.
pub fn path(path: &PathSpec) -> String {
    let (up, down) = (link(&path.up), link(&path.down));
    if up == down { format!("both ways {up}") } else { format!("up {up} | down {down}") }
}

/// The rate and the delay, for a prompt.
pub fn short(path: &PathSpec) -> String {
    let both = |up: String, down: String| if up == down { up } else { format!("{up}/{down}") };
    both(glance(&path.up), glance(&path.down))
}

fn glance(link: &LinkSpec) -> String {
    format!("{} {}", rate(link), link.delay)
}

fn rate(link: &LinkSpec) -> String {
    match (&link.trace, link.rate) {
        (Some(_), _) => "trace".into(),
        (None, Some(rate)) => rate.to_string(),
        (None, None) => "unlimited".into(),
    }
}

/// What of the queues of a path changes nothing: one without a line before which anything could wait, and keys that
/// count only beside others.
pub fn idle(path: &PathSpec) -> Vec<String> {
    if let Some(queue) = idle_queue(path) {
        return vec![queue];
    }
    let key = |link: &LinkSpec| {
        let text = link.discipline.assumptions().idle?;
        Some(format!("--queue {}: {text}", link.discipline.kind()))
    };
    let mut keys: Vec<String> = [&path.up, &path.down].into_iter().filter_map(key).collect();
    keys.dedup();
    keys
}

/// The queue of a path that has no line before which anything could wait.
fn idle_queue(path: &PathSpec) -> Option<String> {
    let plain = Settings::default().resolve().ok()?.up.discipline;
    let idle = |link: &&LinkSpec| {
        let scheduled = !link.schedule.steps.is_empty();
        let holds_back = link.discipline.assumptions().holds_back().is_some();
        let lined = link.rate.is_some() || link.trace.is_some() || scheduled || holds_back;
        !lined && link.discipline != plain
    };
    let link = [&path.up, &path.down].into_iter().find(idle)?;
    Some(format!(
        "nothing waits in the queue {} before a rate is given: --rate 10mbit",
        link.discipline
    ))
}

/// One direction in words.
pub fn link(link: &LinkSpec) -> String {
    let mut parts = vec![rate(link)];
    if link.framing != Framing::None {
        parts.push(link.framing.to_string());
    }
    parts.push(format!("{} one way", link.delay));
    if link.catch_up != CatchUp::default() {
        parts.push(format!("catch-up {}", link.catch_up));
    }
    let holds_back = link.discipline.assumptions().holds_back().is_some();
    if link.rate.is_some() || link.trace.is_some() || holds_back {
        parts.push(link.discipline.to_string());
    }
    if link.output_buffer.bytes() > 0 {
        parts.push(format!("output buffer {}", link.output_buffer));
    }
    let without = ImpairmentSpec::default().settings();
    let impairments = link.impairments.settings();
    let active = impairments.iter().zip(&without).filter(|(setting, off)| setting != off);
    parts.extend(active.map(|(setting, _)| setting.to_string()));
    if !link.schedule.steps.is_empty() {
        parts.push(format!("schedule {}", link.schedule));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a path with these settings.
    fn told(settings: &[(&str, &str)]) -> Vec<String> {
        let mut path = Settings::default();
        settings.iter().for_each(|(name, value)| path.add(name, value));
        idle(&path.resolve().unwrap())
    }

    /// As in scenario files.
    #[test]
    fn keys_that_change_nothing_are_told() {
        let bucket = ("queue", "token-bucket:rate=1mbit,mtu=3kB");
        let text =
            "--queue token-bucket: mtu has no effect without a peak; give a peak, or leave it out";
        assert_eq!(told(&[("rate", "10mbit"), bucket]), [text]);
        assert_eq!(told(&[("down-rate", "10mbit"), ("down-queue", bucket.1)]), [text]);
        assert_eq!(told(&[("rate", "10mbit"), ("queue", "token-bucket:rate=1mbit")]), [""; 0]);
    }

    /// A token bucket holds packets back by a rate of its own, and batches wait for their time.
    #[test]
    fn what_holds_packets_back_by_itself_is_no_idle_queue() {
        for queue in ["token-bucket:rate=1mbit", "gather"] {
            assert_eq!(told(&[("queue", queue)]), [""; 0]);
        }
        assert_eq!(told(&[("queue", "red")]).len(), 1);
    }
}

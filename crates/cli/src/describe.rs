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

/// The queue of a path that has no line before which anything could wait.
pub fn idle_queue(path: &PathSpec) -> Option<String> {
    let plain = Settings::default().resolve().ok()?.up.discipline;
    let idle = |link: &&LinkSpec| {
        let scheduled = !link.schedule.steps.is_empty();
        link.rate.is_none() && link.trace.is_none() && !scheduled && link.discipline != plain
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
    if link.rate.is_some() || link.trace.is_some() {
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

//! An explanation for the terminal.

use crate::constraint::Constraint;
use crate::explanation::{Binding, Bought, Explanation, Group, Relaxed, TrafficExplanation};
use crate::figure::{ALL_OF_IT, Measure};
use crate::waterfall::{Bar, StateShare};
use crate::words::{self, Unit, WORTH_A_WORD, span, telling};
use std::fmt::Write;

/// Columns of a bar of the whole time.
const WIDTH: f64 = 32.0;
/// Columns of a constraint's name.
const TITLE: usize = 44;
/// Shares below this are summed in one line.
const SMALL: f64 = 0.005;

/// The whole explanation, for a terminal of a hundred columns.
pub fn text(explanation: &Explanation) -> String {
    let mut out = String::new();
    let cell: Vec<String> =
        explanation.cell.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let cell = if cell.is_empty() { String::new() } else { format!(", {}", cell.join(", ")) };
    let _ = writeln!(
        out,
        "{}{cell} (seed {}): explained by {} run{}",
        explanation.scenario,
        explanation.seed,
        explanation.runs,
        if explanation.runs == 1 { "" } else { "s" }
    );
    for traffic in &explanation.traffic {
        traffic_text(&mut out, traffic);
    }
    for note in &explanation.notes {
        let _ = writeln!(out, "\nnote: {note}");
    }
    out
}

fn traffic_text(out: &mut String, traffic: &TrafficExplanation) {
    let unit = Unit { measure: traffic.measure };
    if !traffic.sender.is_empty() {
        let _ = writeln!(out, "\n{}: what the sender waited for", traffic.name);
        traffic.sender.iter().for_each(|state| sender_line(out, state));
    }
    if !traffic.blocks.is_empty() {
        out.push_str("  where the time of a block goes\n");
        waterfall(out, &traffic.blocks, false);
    }
    for group in &traffic.groups {
        group_text(out, &traffic.name, unit, group);
    }
    if !traffic.jumps.is_empty() {
        let _ = writeln!(out, "\n{}: where a little more makes a difference", traffic.name);
    }
    for jump in &traffic.jumps {
        wrapped(out, &jump.words);
    }
}

fn group_text(out: &mut String, name: &str, unit: Unit, group: &Group) {
    let size = |&(size, figure): &(u64, crate::Figure)| match size {
        _ if unit.measure == Measure::Lap => format!("a lap {}", unit.figure(&figure)),
        ALL_OF_IT => format!("all of it {}", unit.figure(&figure)),
        size => format!("{size} B {}", unit.figure(&figure)),
    };
    let sizes: Vec<String> = group.sizes.iter().map(size).collect();
    let _ = writeln!(out, "\n{name}: {}", sizes.join(", "));
    if !group.waterfall.is_empty() {
        let what = match group.size {
            _ if unit.measure == Measure::Lap => "a lap".to_string(),
            ALL_OF_IT => "an interval".to_string(),
            size => words::bytes(size),
        };
        let _ = writeln!(out, "  where the time of {what} goes");
        waterfall(out, &group.waterfall, true);
    }
    for sentence in &group.words {
        wrapped(out, sentence);
    }
    ladder(out, unit, group);
}

fn sender_line(out: &mut String, it: &StateShare) {
    let name = format!("{:?}", it.state);
    bar_line(out, &name, "", &span(it.span), it.share, 0.0);
}

/// Each bar begins at the end of the one before it, if they follow each other.
fn waterfall(out: &mut String, bars: &[Bar], in_order: bool) {
    let (mut before, mut small) = (0.0, 0.0);
    for bar in bars {
        if bar.share < SMALL {
            small += bar.share;
        } else {
            let from = if in_order { before } else { 0.0 };
            bar_line(
                out,
                &bar.place,
                &format!("{:?}", bar.cause),
                &span(bar.span),
                bar.share,
                from,
            );
        }
        before += bar.share;
    }
    if small >= SMALL / 5.0 {
        bar_line(out, "everything else", "", "", small, 0.0);
    }
}

fn bar_line(out: &mut String, place: &str, cause: &str, span: &str, share: f64, from: f64) {
    let start = (from * WIDTH).round() as usize;
    let end = ((from + share) * WIDTH).round() as usize;
    let bar = format!("{}{}", " ".repeat(start), "█".repeat(end.max(start + 1) - start));
    let line = format!("    {place:<35} {cause:<9} {span:>9} {:>5.1} %  {bar}", 100.0 * share);
    let _ = writeln!(out, "{}", line.trim_end());
}

/// What relaxing each constraint buys, with a line for what chance may have saved, and one for all that buys nothing.
fn ladder(out: &mut String, unit: Unit, group: &Group) {
    let (some, none): (Vec<&Relaxed>, Vec<&Relaxed>) = group.relaxed.iter().partition(|it| {
        let binds = matches!(group.binds, Binding::One(one) if one == it.constraint);
        it.saved > WORTH_A_WORD && (it.certain || binds)
    });
    if !some.is_empty() {
        out.push_str("  what relaxing one constraint buys\n");
    }
    for relaxed in some {
        let binds = matches!(group.binds, Binding::One(it) if it == relaxed.constraint);
        let mark = if binds { '*' } else { ' ' };
        let mut name = title(relaxed);
        if name.chars().count() > TITLE {
            let _ = writeln!(out, "  {mark} {name}");
            name.clear();
        }
        for step in telling(relaxed) {
            let _ =
                writeln!(out, "  {mark} {name:<TITLE$} {:<26} {}", step.to, outcome(unit, step));
            name.clear();
        }
    }
    let (uncertain, none): (Vec<_>, Vec<_>) =
        none.into_iter().partition(|it| it.saved > WORTH_A_WORD);
    if !uncertain.is_empty() {
        let of = |it: &&Relaxed| format!("{} ({:.0} %)", names(&[*it]), 100.0 * it.saved);
        let list: Vec<String> = uncertain.iter().map(of).collect();
        wrapped(
            out,
            &format!(
                "Uncertain, for the measurements vary by as much as these save: {}.",
                list.join("; ")
            ),
        );
    }
    if !none.is_empty() {
        wrapped(out, &format!("Nothing to be gained from: {}.", names(&none)));
    }
}

/// Constraints by name; with their place if there are several of a kind.
fn names(list: &[&Relaxed]) -> String {
    let name = |it: &&Relaxed| match it.constraint {
        Constraint::Processor | Constraint::Board => {
            format!("{} of {}", it.constraint.name(), it.place)
        }
        other => other.name().to_string(),
    };
    let names: Vec<String> = list.iter().map(name).collect();
    names.join("; ")
}

fn title(it: &Relaxed) -> String {
    let place = if it.place.is_empty() { String::new() } else { format!(" of {}", it.place) };
    let now = if it.now.is_empty() { String::new() } else { format!(" ({})", it.now) };
    format!("{}{place}{now}", it.constraint.name())
}

fn outcome(unit: Unit, step: &Bought) -> String {
    let figure = unit.figure(&step.figure);
    if step.saved == 1.0 {
        return format!("{figure:>10}  instead of nothing");
    }
    let change = match unit.is_delay() {
        true => -step.saved,
        false => 1.0 / (1.0 - step.saved) - 1.0,
    };
    format!("{figure:>10}  {:+.0} %", 100.0 * change)
}

/// A sentence in lines of at most a hundred columns.
fn wrapped(out: &mut String, sentence: &str) {
    let mut line = String::from(" ");
    for word in sentence.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            let _ = writeln!(out, "{line}");
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

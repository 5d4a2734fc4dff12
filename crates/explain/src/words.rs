//! An explanation in sentences.

use crate::constraint::Constraint;
use crate::explanation::{Binding, Bought, Group, Jump, PairRelaxed, Relaxed};
use crate::figure::{Figure, Measure};
use crate::rounds::Rounds;
use trunkline_core::{Cause, Span};

/// Savings below this share are not worth a word.
pub(crate) const WORTH_A_WORD: f64 = 0.03;
/// Rounds up to so many are listed one by one.
const LISTED: usize = 4;

/// What there is to say of sizes that behave alike; `paces` if the application may itself set the pace.
pub(crate) fn group(measure: Measure, paces: bool, group: &Group) -> Vec<String> {
    let unit = Unit { measure };
    let mut words: Vec<String> = group.rounds.iter().map(rounds).collect();
    words.push(binding(unit, paces, group));
    words.extend(group.pairs.first().map(|it| pair(unit, group.figure(), it)));
    words
}

/// How figures of a traffic are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub measure: Measure,
}

impl Unit {
    /// The figure with its unit.
    pub fn figure(self, figure: &Figure) -> String {
        match self.is_delay() {
            _ if figure.is_nothing() => "nothing".into(),
            true => seconds(figure.seconds),
            false => rate(figure.bytes_per_second),
        }
    }

    /// Whether the figure is a delay, and not a rate.
    pub fn is_delay(self) -> bool {
        self.measure != Measure::Throughput
    }

    /// From one figure to another.
    fn change(self, from: &Figure, to: &Figure) -> String {
        if from.is_nothing() {
            return format!("would bring {}, where nothing arrives now", self.figure(to));
        }
        let verb = match (self.is_delay(), to.seconds <= from.seconds) {
            (true, true) => "cut",
            (true, false) => "stretch",
            (false, true) => "raise",
            (false, false) => "lower",
        };
        format!("would {verb} {} to {}", self.figure(from), self.figure(to))
    }
}

/// `85 bytes go as 84, wait, 1, wait: two round trips`.
pub(crate) fn rounds(it: &Rounds) -> String {
    let queued = match &it.queue {
        Some(queue) if it.rounds.len() > 1 => format!(
            ", so it waits {} times in the queue of {}: {} x {}",
            it.rounds.len(),
            queue.place,
            it.rounds.len(),
            span(queue.span),
        ),
        _ => String::new(),
    };
    format!("{}{}{queued}.", how(it), why(it))
}

fn how(it: &Rounds) -> String {
    let bytes = format!("{} {}", bytes(it.bytes.into()), if it.bytes == 1 { "goes" } else { "go" });
    match it.rounds.as_slice() {
        [_] => format!("{bytes} in one round"),
        list if it.by_requests() && !it.by_window() => {
            let outstanding = it
                .outstanding
                .map_or(String::new(), |most| format!(", {} outstanding", number(most as usize)));
            format!(
                "{bytes} as {} requests of {}{outstanding}: {} round trips",
                number(it.requests.len()),
                sizes(&it.requests),
                number(list.len())
            )
        }
        list if list.len() <= LISTED => {
            let waits: Vec<String> = list.iter().map(|bytes| format!("{bytes}, wait")).collect();
            format!("{bytes} as {}: {} round trips", waits.join(", "), number(list.len()))
        }
        list => {
            let most = list.iter().max().copied().unwrap_or_default();
            format!(
                "A {}-byte message goes in {} rounds of at most {}",
                it.bytes,
                list.len(),
                self::bytes(most.into())
            )
        }
    }
}

fn why(it: &Rounds) -> String {
    if it.rounds.len() < 2 {
        return String::new();
    }
    let window = it
        .window
        .filter(|_| it.by_window())
        .map(|window| format!("the window is {}", bytes(window.into())));
    // To a single request it makes no difference, unless another write follows at once.
    let counts = it.by_requests() || it.transfer;
    let requests = it.outstanding.filter(|_| it.by_window() && counts);
    let requests = requests.map(|most| {
        let next = if most == 1 {
            "the interface takes one request at a time".into()
        } else {
            format!("the interface takes {most} requests at a time")
        };
        match it.requests.len() {
            1 => next,
            several => format!("{next}, here {} of {}", number(several), sizes(&it.requests)),
        }
    });
    let reasons: Vec<String> = window.into_iter().chain(requests).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(" and ")) }
}

/// `64 and 1`; equal ones are counted: `7 x 64 and 63`.
fn sizes(list: &[u32]) -> String {
    let runs = list.chunk_by(|a, b| a == b);
    let run = |run: &[u32]| match run.len() {
        1 => run[0].to_string(),
        several => format!("{several} x {}", run[0]),
    };
    let texts: Vec<String> = runs.map(run).collect();
    texts.join(" and ")
}

fn binding(unit: Unit, paces: bool, group: &Group) -> String {
    match &group.binds {
        Binding::One(constraint) => match group.relaxing(*constraint) {
            Some(relaxed) => one(unit, group, relaxed),
            None => String::new(),
        },
        Binding::Two(first, second) => format!(
            "The {} and the {} bind together: neither alone is worth {:.0} %.",
            first.name(),
            second.name(),
            100.0 * crate::decide::ENOUGH,
        ),
        Binding::Nothing if group.figure().is_nothing() => {
            "Nothing arrives, and nothing that can be relaxed, by itself or with one other, changes that.".into()
        }
        Binding::Nothing => nothing(paces),
    }
}

fn nothing(paces: bool) -> String {
    let most = 100.0 * crate::decide::ENOUGH;
    let pace = if paces { ": the application itself sets the pace" } else { "" };
    format!("Nothing that can be relaxed is worth {most:.0} %{pace}.")
}

fn one(unit: Unit, group: &Group, it: &Relaxed) -> String {
    let place = if it.place.is_empty() { String::new() } else { format!(" of {}", it.place) };
    let booked = booked(group, it.constraint);
    let chance = if it.certain { "" } else { "though chance may have made as much" };
    let chance = chance.to_string();
    let steps = steps(unit, group.figure(), it);
    let name = it.constraint.name();
    let facts: Vec<String> =
        [it.now.clone(), booked, chance].into_iter().filter(|fact| !fact.is_empty()).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    match it.constraint {
        Constraint::Distance => {
            format!("Distance binds{facts}: nothing can be bought but a shorter path; {steps}.")
        }
        _ => format!("The {name}{place} binds{facts}: {steps}."),
    }
}

/// How much of a message's time is booked under a constraint's cause.
fn booked(group: &Group, constraint: Constraint) -> String {
    let cause = match constraint {
        Constraint::Window | Constraint::Requests => Cause::Window,
        Constraint::Queue => Cause::Queue,
        Constraint::Distance => Cause::Propagate,
        Constraint::Loss => Cause::Recover,
        _ => return String::new(),
    };
    let queued = group.rounds.as_ref().filter(|it| it.rounds.len() > 1);
    if constraint == Constraint::Queue && queued.is_some_and(|it| it.queue.is_some()) {
        // Waiting for earlier rounds is booked as Window, and they wait in the queue.
        return String::new();
    }
    let share: f64 =
        group.waterfall.iter().filter(|bar| bar.cause == cause).map(|bar| bar.share).sum();
    if share < WORTH_A_WORD {
        return String::new();
    }
    format!("{:.0} % of the time is {cause:?}", 100.0 * share)
}

/// What each step of a constraint's ladder buys.
fn steps(unit: Unit, base: &Figure, it: &Relaxed) -> String {
    let bought = |(at, step): (usize, &Bought)| match at {
        0 => format!("{} {}", step.to, unit.change(base, &step.figure)),
        _ => format!("{} to {}", step.to, unit.figure(&step.figure)),
    };
    let texts: Vec<String> = telling(it).into_iter().enumerate().map(bought).collect();
    texts.join(", ")
}

/// The steps of a ladder that do something which the one told before them does not.
pub(crate) fn telling(it: &Relaxed) -> Vec<&Bought> {
    let mut told: Vec<&Bought> = Vec::new();
    for step in &it.steps {
        let left = match told.last() {
            Some(before) => step.figure.seconds / before.figure.seconds,
            None => 1.0 - step.saved,
        };
        if (left - 1.0).abs() > WORTH_A_WORD {
            told.push(step);
        }
    }
    told
}

fn pair(unit: Unit, base: &Figure, it: &PairRelaxed) -> String {
    let of = |(constraint, place): &(Constraint, String)| match place.as_str() {
        "" => constraint.name().to_string(),
        place => format!("{} of {place}", constraint.name()),
    };
    format!(
        "Relaxed together, {} and {} {}: far more than either alone.",
        of(&it.first),
        of(&it.second),
        unit.change(base, &it.figure)
    )
}

/// Why a byte more makes a difference.
pub(crate) fn jump(it: &Jump) -> String {
    let [from, to] = &it.figures;
    let rise = 100.0 * (to.seconds / from.seconds - 1.0);
    let cause = match it.cause {
        Some((constraint, share)) => format!(
            " The {} makes it{}: without that {:.0} % of the step is gone.",
            constraint.name(),
            ways(constraint, it.rounds[1].as_ref()),
            100.0 * share
        ),
        None => " No single constraint makes it.".into(),
    };
    let rounds: Vec<String> = it.rounds.iter().flatten().map(rounds).collect();
    let rounds = if rounds.len() == 2 { format!(" {}", rounds.join(" ")) } else { String::new() };
    format!(
        "From {} to {} the time goes from {} to {} ({rise:+.0} %).{rounds}{cause}",
        it.from,
        bytes(it.to),
        seconds(from.seconds),
        seconds(to.seconds)
    )
}

/// Splitting does harm if each piece has to be answered for before the next.
fn ways(constraint: Constraint, rounds: Option<&Rounds>) -> String {
    match (constraint, rounds.and_then(|it| it.outstanding)) {
        (Constraint::Split, Some(most)) => {
            format!(
                ", since only {} of the requests is outstanding at a time",
                number(most as usize)
            )
        }
        _ => String::new(),
    }
}

/// `1 byte`, `2 bytes`.
pub(crate) fn bytes(bytes: u64) -> String {
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

/// Small numbers as words.
fn number(number: usize) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| word.to_string())
}

/// A span to three digits.
pub(crate) fn span(span: Span) -> String {
    seconds(span.as_secs_f64())
}

/// Seconds to three digits, in the unit that suits them.
pub(crate) fn seconds(seconds: f64) -> String {
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])
}

/// Bytes each second to three digits.
pub(crate) fn rate(bytes: f64) -> String {
    scaled(bytes, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")])
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // Three digits of 999.6 are 1000: the next unit's.
    let fits = units.iter().find(|(unit, _)| value >= 0.9995 * unit).or(units.last());
    let &(unit, name) = fits.unwrap_or(&(1.0, ""));
    let value = value / unit;
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in
            [(0.155, "155 ms"), (0.0574, "57.4 ms"), (1.0919, "1.09 s"), (0.9999, "1.00 s")]
        {
            assert_eq!(seconds(value), text);
        }
        assert_eq!(rate(9680.0), "9.68 kB/s");
    }

    #[test]
    fn rounds_are_told_as_people_tell_them() {
        let it = |bytes, rounds: &[u32], requests: &[u32], window| Rounds {
            bytes,
            rounds: rounds.to_vec(),
            requests: requests.to_vec(),
            outstanding: Some(1),
            window: Some(window),
            queue: None,
            transfer: false,
        };
        let told = rounds(&it(1024, &[756, 268], &[1024], 756));
        assert!(
            told.starts_with("1024 bytes go as 756, wait, 268, wait: two round trips"),
            "{told}"
        );
        let told = rounds(&it(65, &[64, 1], &[64, 1], 84));
        assert_eq!(
            told,
            "65 bytes go as two requests of 64 and 1, one outstanding: two round trips."
        );
        assert_eq!(rounds(&it(1, &[1], &[1], 84)), "1 byte goes in one round.");
        let queue = Some(crate::Queued { place: "n3>n6".into(), span: Span::from_millis(152) });
        let told = rounds(&Rounds { queue, ..it(512, &[84, 84, 84, 84, 84, 84, 8], &[512], 84) });
        assert!(told.contains("7 rounds of at most 84 bytes"), "{told}");
        assert!(told.contains("so it waits 7 times in the queue of n3>n6: 7 x 152 ms"), "{told}");
    }
}

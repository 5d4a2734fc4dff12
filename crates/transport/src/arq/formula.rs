//! The textbook formulas: how often a frame is accepted, with errors and without.
//!
//! With t what a frame keeps the line busy for, C from its sending to its answer, T the time-out, N the window and
//! p the probability that a frame or its answer is lost (q = 1 − p). In the textbooks' units t = 1, C = 1 + 2a and
//! T = C, and the utilisation t / interval of stop-and-wait is then (1 − p) / (1 + 2a), of a window
//! min(1, N / (1 + 2a)) without errors, of selective repeat (1 − p) min(1, N / (1 + 2a)), and of go-back-n whose window
//! fills the line (1 − p) / (1 + 2ap) (Stallings, *Data and Computer Communications*, appendix on the performance of
//! flow control and error control; Bertsekas and Gallager, *Data Networks*, §2.4). Headers and answers take
//! their time here too.

use super::header::HEADER;
use super::timeout::FIRST;
use super::{Rule, Settings};
use crate::protocol::{Circumstances, Formula};
use trunkline_core::{Rate, Span};

const SOURCE: &str =
    "Bertsekas and Gallager, Data Networks, §2.4; Stallings, Data and Computer Communications";
/// The part of a receiver's buffer that a window may take and almost never stop the sender: less than one frame in a
/// million has to be sent so many times.
const RARE: f64 = 1e-6;
/// The part of transfers whose last frames may be sent again more often than is told.
const SELDOM: f64 = 0.02;
/// The line's limit over the window's between which both act: there the formula is up to 6 % above the simulator, beyond
/// them 1.5 %.
const ALIKE: std::ops::RangeInclusive<f64> = 0.65..=1.25;

/// The mean time between two accepted frames.
pub(super) fn interval(
    rule: Rule,
    settings: &Settings,
    path: &Circumstances,
) -> Result<Formula, String> {
    let pace = pace(settings);
    // Frames that are sent no faster than the slowest stage takes them wait at the sender; else they wait there, up to a
    // window of them, and that is a part of the round trip.
    let keeps = pace.is_some_and(|pace| pace + 1.0 >= path.spacing);
    let path = &Circumstances { spacing: path.spacing.max(pace.unwrap_or_default()), ..*path };
    let together = if keeps { 1 } else { path.units.min(settings.frames as u64) };
    // The first window goes at once; later ones find less before them.
    let trip = nanos(path.answered) + together.saturating_sub(1) as f64 * path.spacing;
    if both(path) >= 1.0 {
        return Err("a way on which everything is lost".into());
    }
    let found = if both(path) == 0.0 {
        in_time(settings, trip).map(|()| without_losses(settings, path))
    } else {
        with_losses(rule, settings, path, (keeps, trip))
    };
    let ahead = ahead(rule, settings, path).max(together);
    found.map(|formula| Formula { together, ahead, ..formula })
}

/// Frames that have been sent before as many have come as the interval says: a window that is waited for; behind a loss what
/// goes in vain until the time-out, or of what comes the share that goes again.
fn ahead(rule: Rule, settings: &Settings, path: &Circumstances) -> u64 {
    let waits = (settings.frames as f64) * path.spacing < nanos(path.answered);
    let until = settings.timeout.map_or(0.0, nanos) / path.spacing.max(1.0);
    let sent = match rule {
        _ if waits => f64::INFINITY,
        Rule::GoBack if path.loss > 0.0 => until,
        Rule::GoBack => 0.0,
        Rule::Selective => both(path) * until,
    };
    (sent as u64).min(settings.frames as u64)
}

/// The time from frame to frame of a sender that keeps to a rate.
fn pace(settings: &Settings) -> Option<f64> {
    let bits = f64::from(settings.frame + HEADER) * 8.0;
    settings.rate.map(|rate| (bits * 1e9 / rate.bits_per_second().max(1) as f64).ceil())
}

/// A time-out below the round trip sends again what is not lost.
fn in_time(settings: &Settings, trip: f64) -> Result<(), String> {
    let trip = Span::from_nanos(trip as u64);
    match settings.timeout {
        Some(timeout) if timeout < trip => Err(format!(
            "a time-out that is shorter than the round trip, {trip} with what waits for the line: give a longer timeout"
        )),
        None if FIRST < trip => Err(format!(
            "a time-out that is measured and begins at {FIRST}, below the round trip of {trip}: give timeout"
        )),
        _ => Ok(()),
    }
}

fn without_losses(settings: &Settings, path: &Circumstances) -> Formula {
    let (t, c, window) = (path.spacing, nanos(path.answered), settings.frames as f64);
    let numbers = format!("max({c} / {window}, {t}) ns");
    let found = formula((c / window).max(t), "max(C / N, t)", numbers);
    let burst = if window * t < c { settings.frames as u64 } else { 1 };
    Formula { burst, within: t, ..found }
}

/// The same with losses, of a sender that keeps to the pace of its line or not.
fn with_losses(
    rule: Rule,
    settings: &Settings,
    path: &Circumstances,
    (keeps, trip): (bool, f64),
) -> Result<Formula, String> {
    let (c, window, loss) = (nanos(path.answered), settings.frames as f64, both(path));
    let Some(timeout) = settings.timeout.map(nanos) else {
        return Err("losses with a time-out that is measured: give timeout".into());
    };
    if settings.frames == 1 {
        in_time(settings, trip)?;
        // Nothing goes sooner behind a frame than the sender's rate says, a repetition neither.
        let (c, timeout) = (c.max(path.spacing), timeout.max(pace(settings).unwrap_or_default()));
        let interval = c + loss / (1.0 - loss) * timeout;
        let numbers = format!("{c} + {loss} / (1 − {loss}) × {timeout} ns");
        return Ok(formula(interval, "C + p / (1 − p) × T", numbers));
    }
    if settings.rate.is_none() {
        return Err("losses of a window whose sender does not know its line: give rate".into());
    }
    if !keeps {
        let bits = f64::from(settings.frame + HEADER) * 8e9 / path.spacing;
        let most = Rate::from_bits_per_second(bits as u64);
        return Err(format!(
            "losses of a window whose sender is faster than its line: give rate = {most} or less"
        ));
    }
    in_time(settings, trip)?;
    match rule {
        Rule::GoBack => go_back(window, path, timeout),
        Rule::Selective => selective(settings, path, timeout),
    }
}

/// Go-back-n renews itself with each loss: the lost frame is the first of the next window. If the window fills the
/// line a loss costs T, and if the line is then still busy with what is sent in vain, the rest of that frame too.
/// If it does not, the window goes in bursts, one in each C: with its first loss in place j (from 0) a burst brings
/// j frames in j t + T, without any it brings N in C.
fn go_back(window: f64, path: &Circumstances, timeout: f64) -> Result<Formula, String> {
    if path.answer_loss > 0.0 {
        return Err("lost answers that later ones make good".into());
    }
    let (t, c, p) = (path.spacing, nanos(path.answered), path.loss);
    let q = 1.0 - p;
    if window * t >= c {
        let busy = window * t > timeout;
        let timeout = if busy { (timeout / t).ceil() * t } else { timeout };
        let interval = t + p / q * timeout;
        let numbers = format!("{t} + {p} / (1 − {p}) × {timeout} ns");
        return Ok(formula(interval, "t + p / (1 − p) × T", numbers));
    }
    let whole = q.powf(window);
    let frames = q * (1.0 - whole) / p;
    let time = t * (frames - window * whole) + timeout * (1.0 - whole) + c * whole;
    let text = "(t (F − N qᴺ) + T (1 − qᴺ) + C qᴺ) / F, F = q (1 − qᴺ) / p";
    let numbers = format!("t {t}, C {c}, T {timeout} ns, N {window}, p {p}: F = {frames:.6}");
    Ok(formula(time / frames, text, numbers))
}

/// Each place of the window is a stop-and-wait of its own, as long as the receiver can hold what comes
/// behind a gap. While some places wait for their time-outs, k are left, which send a frame in each C / k, and no faster
/// than the line. How many are left is a birth and death process: of the frames sent p go to wait for T − C.
fn selective(settings: &Settings, path: &Circumstances, timeout: f64) -> Result<Formula, String> {
    let (t, c, p) = (path.spacing, nanos(path.answered), both(path));
    let window = settings.frames as f64;
    let repeats = (RARE.ln() / p.ln()).ceil().max(1.0);
    // While a frame is waited for the other places go on.
    let ahead = timeout * (window / c).min(1.0 / t);
    let least = (window + repeats * ahead).ceil() as u64;
    if (settings.buffer as u64) < least {
        return Err(format!(
            "a receiver whose buffer stops the sender behind a gap: give buffer = {least} or more"
        ));
    }
    let own = (c + p / (1.0 - p) * timeout) / window;
    let line = t / (1.0 - p);
    let assumes = ALIKE.contains(&(line / own)).then_some(
        "a window that about fills the line: frames that are sent again wait for a turn there, which is left out; the rate is up to 6 % lower",
    );
    let numbers = format!("t {t}, C {c}, T {timeout} ns, N {window}, p {p}");
    let interval = 1.0 / ((1.0 - p) * sent(settings.frames, (t, c), p * (timeout - c).max(0.0)));
    let text = "1 / ((1 − p) Σ π(k) min(k / C, 1 / t)), π(k − 1) / π(k) = p (T − C) min(k / C, 1 / t) / (N − k + 1)";
    let last = window.min(path.units as f64);
    let late = ((SELDOM / last).ln() / p.ln()).ceil().max(1.0) * timeout;
    Ok(Formula { late, assumes, ..formula(interval, text, numbers) })
}

/// The frames that so many places send in a nanosecond, of which each goes to wait for `waits` in the mean.
fn sent(places: usize, (t, c): (f64, f64), waits: f64) -> f64 {
    /// Weights count relative to one another; no sum may leave the range of numbers.
    const LARGE: f64 = 1e200;
    let (mut weight, mut all, mut sum) = (1.0, 0.0, 0.0);
    for left in (0..=places).rev() {
        let rate = if left == 0 { 0.0 } else { (left as f64 / c).min(1.0 / t) };
        all += weight;
        sum += weight * rate;
        weight *= rate * waits / (places - left + 1) as f64;
        if weight > LARGE {
            [weight, all, sum] = [weight, all, sum].map(|it| it / LARGE);
        }
    }
    sum / all
}

/// The probability that a frame or its answer is lost.
fn both(path: &Circumstances) -> f64 {
    1.0 - (1.0 - path.loss) * (1.0 - path.answer_loss)
}

fn nanos(span: Span) -> f64 {
    span.as_nanos() as f64
}

fn formula(interval: f64, text: &'static str, numbers: String) -> Formula {
    Formula {
        interval,
        together: 1,
        burst: 1,
        within: interval,
        ahead: 1,
        late: 0.0,
        assumes: None,
        text,
        numbers,
        source: SOURCE,
    }
}

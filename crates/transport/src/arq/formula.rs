//! The textbook formulas: how often a frame is accepted, with errors and without.
//!
//! With t what a frame keeps the line busy for, C from its sending to its answer, T the time-out, N the window and
//! p the probability that a frame or its answer is lost (q = 1 − p). In the textbooks' units t = 1, C = 1 + 2a and
//! T = C, and the utilisation t / interval of stop-and-wait is then (1 − p) / (1 + 2a), of a window
//! min(1, N / (1 + 2a)) without errors, of selective repeat (1 − p) min(1, N / (1 + 2a)), and of go-back-n whose window
//! fills the line (1 − p) / (1 + 2ap) (Stallings, *Data and Computer Communications*, appendix on the performance of
//! flow control and error control; Bertsekas and Gallager, *Data Networks*, §2.4). Headers and answers take
//! their time here too.

use super::{Rule, Settings};
use crate::protocol::{Circumstances, Formula};

const SOURCE: &str =
    "Bertsekas and Gallager, Data Networks, §2.4; Stallings, Data and Computer Communications";
/// The part of a receiver's buffer that a window may take and almost never stop the sender: less than one frame in a
/// million has to be sent so many times.
const RARE: f64 = 1e-6;

/// The mean time between two accepted frames.
pub(super) fn interval(
    rule: Rule,
    settings: &Settings,
    path: &Circumstances,
) -> Result<Formula, String> {
    let (t, c) = (path.spacing, nanos(path.answered));
    let (window, loss) = (settings.frames as f64, both(path));
    if loss == 0.0 {
        let interval = (c / window).max(t);
        return Ok(formula(interval, "max(C / N, t)", format!("max({c} / {window}, {t}) ns")));
    }
    let Some(timeout) = settings.timeout.map(nanos) else {
        return Err("losses with a time-out that is measured: give timeout".into());
    };
    if timeout < c {
        return Err("a time-out that is shorter than the round trip".into());
    }
    if settings.frames == 1 {
        let interval = c + loss / (1.0 - loss) * timeout;
        let numbers = format!("{c} + {loss} / (1 − {loss}) × {timeout} ns");
        return Ok(formula(interval, "C + p / (1 − p) × T", numbers));
    }
    if settings.rate.is_none() {
        return Err("losses of a window whose sender does not know its line: give rate".into());
    }
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
/// behind a gap; the line carries each frame as often as it is lost.
fn selective(settings: &Settings, path: &Circumstances, timeout: f64) -> Result<Formula, String> {
    let (t, c, p) = (path.spacing, nanos(path.answered), both(path));
    let window = settings.frames as f64;
    let repeats = (RARE.ln() / p.ln()).ceil().max(1.0);
    if (settings.buffer as f64) < window * (1.0 + repeats) {
        let least = (window * (1.0 + repeats)) as u64;
        return Err(format!(
            "a receiver whose buffer stops the sender behind a gap: give buffer = {least} or more"
        ));
    }
    let own = (c + p / (1.0 - p) * timeout) / window;
    let line = t / (1.0 - p);
    let numbers =
        format!("max(({c} + {p} / (1 − {p}) × {timeout}) / {window}, {t} / (1 − {p})) ns");
    Ok(formula(own.max(line), "max((C + p / (1 − p) × T) / N, t / (1 − p))", numbers))
}

/// The probability that a frame or its answer is lost.
fn both(path: &Circumstances) -> f64 {
    1.0 - (1.0 - path.loss) * (1.0 - path.answer_loss)
}

fn nanos(span: trunkline_core::Span) -> f64 {
    span.as_nanos() as f64
}

fn formula(interval: f64, text: &'static str, numbers: String) -> Formula {
    Formula { interval, text, numbers, source: SOURCE }
}

//! Progress on standard error, in one line that is written over.

use crate::harmless::harmless;
use crate::output;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two lines if nobody watches a terminal.
const SELDOM: Duration = Duration::from_secs(20);

/// A progress line. It disappears when dropped.
pub struct Progress {
    steps: usize,
    done: usize,
    terminal: bool,
    last: Instant,
}

impl Progress {
    /// Progress through `steps`; 0 if they cannot be counted.
    pub fn new(steps: usize) -> Progress {
        Progress { steps, done: 0, terminal: stderr().is_terminal(), last: Instant::now() }
    }

    /// Says what is being done now.
    pub fn tell(&mut self, what: &str) {
        let count = match self.steps {
            0 => String::new(),
            steps => format!("[{}/{steps}] ", self.done),
        };
        if self.terminal {
            let text = fitted(&format!("trunkline: {count}{}", harmless(what)));
            output::aside(&format!("\r\x1b[K{text}"));
        } else if self.last.elapsed() > SELDOM {
            self.last = Instant::now();
            output::tell(format_args!("{count}{what}"));
        }
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&self) {
        if self.terminal {
            output::aside("\r\x1b[K");
        }
    }

    /// Says how many steps are done.
    pub fn done(&mut self, done: usize) {
        self.done = done;
    }
}

/// `text` as far as one line of the terminal holds it.
fn fitted(text: &str) -> String {
    let columns = tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
    match columns {
        0 => text.into(),
        columns => text.chars().take(usize::from(columns) - 1).collect(),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The progress of work on other threads, on a terminal only. Steps may be many and short.
#[derive(Clone)]
pub struct Steps(Arc<Mutex<Option<Shown>>>);

struct Shown {
    progress: Progress,
    began: Instant,
    drawn: Option<Instant>,
}

/// The time between two looks of a line that changes often.
const OFTEN: Duration = Duration::from_millis(200);

impl Steps {
    /// Nothing is done yet.
    pub fn new() -> Steps {
        let shown = stderr().is_terminal().then(|| Shown {
            progress: Progress::new(0),
            began: Instant::now(),
            drawn: None,
        });
        Steps(Arc::new(Mutex::new(shown)))
    }

    /// Says that `done` of `total` steps are done, and what is being done.
    pub fn tell(&self, done: usize, total: usize, what: &str) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shown) = shown.as_mut() else { return };
        let fresh = |drawn: Instant| drawn.elapsed() < OFTEN;
        if shown.drawn.is_some_and(fresh) && done < total {
            return;
        }
        shown.drawn = Some(Instant::now());
        (shown.progress.steps, shown.progress.done) = (total, done);
        shown.progress.tell(&format!("{}{what}", left(done, total, shown.began.elapsed())));
    }

    /// Takes the line away for good: work that was broken off may still tell of itself.
    pub fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The time that the rest takes at the pace so far, once that can be told.
fn left(done: usize, total: usize, elapsed: Duration) -> String {
    if done == 0 || done >= total || elapsed < Duration::from_secs(2) {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / done as f64 * (total - done) as f64;
    match seconds {
        s if s < 90.0 => format!("{s:.0} s left, "),
        s => format!("{:.0} min left, ", s / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_told_once_it_is_known() {
        let left = |done, seconds| left(done, 10, Duration::from_secs(seconds));
        assert_eq!((left(0, 9), left(10, 9), left(5, 1)), Default::default());
        assert_eq!(left(2, 8), "32 s left, ");
        assert_eq!(left(1, 60), "9 min left, ");
    }
}

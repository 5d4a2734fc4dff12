//! Progress on standard error: a line, or a bar if the steps are many and short.

use crate::harmless::harmless;
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// A bar of `steps`, on a terminal only. It is to be cleared before anything else is printed.
pub fn bar(steps: usize) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(5);
    let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
    // Without a style of ours, which cannot be wrong, the bar has the library's own.
    if let Ok(style) = ProgressStyle::with_template(BAR) {
        bar.set_style(style);
    }
    bar
}

/// Steps done, the time that the rest may take, and what has just been done.
const BAR: &str = "trunkline: [{bar:30}] {pos}/{len} {eta} {wide_msg}";

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
            output::aside(&format!("\r\x1b[Ktrunkline: {count}{}", harmless(what)));
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

//! One line on standard error that says what is being done, where somebody watches.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Where nobody watches a terminal, a line now and then.
const SELDOM: Duration = Duration::from_secs(20);

/// A progress line. It disappears when dropped.
pub struct Progress {
    steps: usize,
    done: usize,
    terminal: bool,
    last: Instant,
}

impl Progress {
    /// Progress through `steps`; 0 where they cannot be counted.
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
            eprint!("\r\x1b[Ktrunkline: {count}{what}");
            // Nothing is lost with a progress line.
            let _ = stderr().flush();
        } else if self.last.elapsed() > SELDOM {
            self.last = Instant::now();
            eprintln!("trunkline: {count}{what}");
        }
    }

    /// Says how many steps are done.
    pub fn done(&mut self, done: usize) {
        self.done = done;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

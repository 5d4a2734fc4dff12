//! Progress on standard error: a line, or a bar if the steps are many and short.

use crate::harmless::harmless;
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;
use std::ffi::OsStr;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The time between two lines if nobody watches a terminal.
const SELDOM: Duration = Duration::from_secs(20);

/// Whether a stream leads to a terminal that obeys escape sequences.
pub fn obeys(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && knows_escapes(std::env::var_os("TERM").as_deref())
}

/// Whether a terminal of this kind obeys escape sequences.
fn knows_escapes(kind: Option<&OsStr>) -> bool {
    kind.is_none_or(|kind| kind != "dumb")
}

/// A progress line. It disappears when dropped.
pub struct Progress {
    steps: usize,
    done: usize,
    terminal: bool,
    last: Instant,
    /// What happened last, and when that was said.
    event: Option<(String, Instant)>,
}

impl Progress {
    /// Progress through `steps`; 0 if they cannot be counted.
    pub fn new(steps: usize) -> Progress {
        let (done, terminal, event) = (0, obeys(&stderr()), None);
        Progress { steps, done, terminal, last: Instant::now(), event }
    }

    /// Says what is being done now.
    pub fn tell(&mut self, what: &str) {
        let count = match self.steps {
            0 => String::new(),
            steps => format!("[{}/{steps}] ", self.done),
        };
        if self.terminal {
            let columns = tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
            let text = fitted(&format!("{count}{}", harmless(what)), columns);
            output::aside(&format!("\r\x1b[K{text}"));
        } else if self.last.elapsed() > SELDOM {
            self.last = Instant::now();
            output::tell(format_args!("{count}{what}"));
        }
    }

    /// Says what has happened, on a line that stays. What happens again and again is said now and then.
    pub fn event(&mut self, what: &str) {
        if self.is_news(what, Instant::now()) {
            self.clear();
            output::tell(what);
        }
    }

    fn is_news(&mut self, what: &str, now: Instant) -> bool {
        let is_same = |(last, at): &(String, Instant)| last == what && now < *at + SELDOM;
        let is_news = !self.event.as_ref().is_some_and(is_same);
        if is_news {
            self.event = Some((what.into(), now));
        }
        is_news
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

/// `text` behind the program's name, on one line of a terminal of so many columns, 0 if that is not known. The name gives way first,
/// then the end.
fn fitted(text: &str, columns: u16) -> String {
    let named = format!("trunkline: {text}");
    let room = if columns == 0 { usize::MAX } else { usize::from(columns) - 1 };
    if named.width() <= room {
        return named;
    }
    let mut used = 0;
    let fits = |c: &char| {
        // Characters of East Asia take two columns, marks above others none.
        used += c.width().unwrap_or(0);
        used <= room
    };
    text.chars().take_while(fits).collect()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A bar for work on other threads; a line now and then if nobody watches a terminal. Steps may be many and short.
#[derive(Clone)]
pub struct Steps {
    bar: ProgressBar,
    /// When the last line was due, and whether there are no more.
    last: Arc<Mutex<(Instant, bool)>>,
}

/// Steps done, the time that the rest may take, and what is being done.
const BAR: &str = "trunkline: [{bar:30}] {pos}/{len} {eta} {wide_msg}";

impl Steps {
    /// Nothing is done yet.
    pub fn new() -> Steps {
        let target = match obeys(&stderr()) {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        // Without a style of ours, which cannot be wrong, the bar has the library's own.
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style);
        }
        Steps { bar, last: Arc::new(Mutex::new((Instant::now(), false))) }
    }

    /// Says that `done` of `total` steps are done, and what is being done.
    pub fn tell(&self, done: usize, total: usize, what: &str) {
        if self.bar.is_hidden() {
            return self.tell_seldom(done, total, what);
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(harmless(what).to_string());
    }

    fn tell_seldom(&self, done: usize, total: usize, what: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let (at, false) = *last
            && at.elapsed() > SELDOM
        {
            *last = (Instant::now(), false);
            output::tell(format_args!("[{done}/{total}] {}", harmless(what)));
        }
    }

    /// Takes the bar away for good: work that was broken off may still tell of itself.
    pub fn end(&self) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_and_again_is_said_now_and_then() {
        let (mut progress, now) = (Progress::new(0), Instant::now());
        let said = [("lost", 0), ("lost", 1), ("away", 2), ("lost", 3), ("lost", 22), ("lost", 23)];
        let said = said.map(|(what, at)| progress.is_news(what, now + Duration::from_secs(at)));
        assert_eq!(said, [true, false, true, true, false, true]);
    }

    /// A dumb terminal prints escape sequences, and is told a line now and then.
    #[test]
    fn a_dumb_terminal_gets_no_escapes() {
        let known = ["xterm-256color", "linux", "dumb"].map(|it| knows_escapes(Some(it.as_ref())));
        assert_eq!(known, [true, true, false]);
        assert!(knows_escapes(None));
    }

    /// A line that wrapped could not be taken away.
    #[test]
    fn a_line_is_no_wider_than_the_terminal() {
        let text = "send: 1.0 MB of 4.0 MB (25 %)";
        assert_eq!(fitted(text, 0), format!("trunkline: {text}"));
        assert_eq!(fitted(text, 80), format!("trunkline: {text}"));
        assert_eq!(fitted(text, 41), format!("trunkline: {text}"));
        assert_eq!(fitted(text, 40), text);
        assert_eq!(fitted(text, 20), "send: 1.0 MB of 4.0");
        assert_eq!(fitted(text, 1), "");
        let wide = "sends 名前名前.bin: e\u{301}tude";
        assert_eq!(fitted(wide, 12), "sends 名前");
        assert_eq!(fitted(wide, 13), "sends 名前名");
        assert_eq!(fitted(wide, 200), format!("trunkline: {wide}"));
        for columns in 1..60 {
            assert!(fitted(wide, columns).width() < usize::from(columns));
        }
    }
}

//! Signals as events.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::thread;

/// Calls `act` for each SIGINT, SIGTERM or SIGHUP, on a thread of its own, for as long as it says to go on.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn watch(mut act: impl FnMut(i32) -> bool + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in &mut signals {
            if !act(signal) {
                return;
            }
        }
    })?;
    Ok(())
}

//! The server to measure against, and the end of a probe.

use crate::failure::Failure;
use crate::serve::failure;
use crate::signals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use trunkline_probe::Key;
use trunkline_probe::client::{Connection, Target};
use trunkline_probe::wire::PORT;

/// The server to measure against.
#[derive(clap::Args)]
pub struct TargetArgs {
    /// Name or address of the host that runs `trunkline serve`
    host: String,
    /// The server's port of TCP and UDP
    #[arg(long, value_name = "NUMBER", default_value_t = PORT)]
    port: u16,
    /// The key in FILE, which only its owner may read [default: TRUNKLINE_KEY]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// A signal that ends the measurement, and not the process: what was measured is printed.
#[derive(Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
}

impl Stop {
    /// From now on.
    pub fn on_signals() -> Result<Stop, Failure> {
        let stop = Stop { flag: Arc::default(), signal: Arc::default() };
        let ours = stop.clone();
        signals::watch(move |signal| {
            ours.signal.store(signal, Ordering::Relaxed);
            // A second one ends the process at once.
            if ours.flag.swap(true, Ordering::Relaxed) {
                std::process::exit(signals::status(signal));
            }
            true
        })?;
        Ok(stop)
    }

    /// Ends the measurement if nobody listens any more (`| head`), which is no failure.
    pub fn unless(&self, heard: bool) {
        if !heard {
            self.flag.store(true, Ordering::Relaxed);
        }
    }

    /// Fails if a signal has come.
    pub fn check(&self) -> Result<(), Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::interrupted(signal)),
        }
    }
}

impl TargetArgs {
    /// Opens a session.
    pub fn connect(&self, stop: &Stop) -> Result<Connection, Failure> {
        if let Some((host, port)) = named_port(&self.host) {
            return Err(Failure::wrong_use(format!(
                "'{}' is no host: write {host} --port {port}",
                self.host
            )));
        }
        let key = Key::find(self.key_file.as_deref()).map_err(Failure::failed)?;
        let target = Target { host: self.host.clone(), port: self.port, key };
        let connection = Connection::open(&target, &stop.flag).map_err(failure);
        stop.check()?;
        connection
    }
}

/// The port that a host's name ends with, as other programs have it.
fn named_port(host: &str) -> Option<(&str, u16)> {
    let (name, port) = host.rsplit_once(':')?;
    let name = match name.strip_prefix('[') {
        Some(v6) => v6.strip_suffix(']')?,
        None if name.contains(':') => return None,
        None => name,
    };
    Some((name, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_behind_a_host_is_seen_and_an_address_is_not_cut() {
        assert_eq!(named_port("example.org:5201"), Some(("example.org", 5201)));
        assert_eq!(named_port("[::1]:5201"), Some(("::1", 5201)));
        for host in ["::1", "fe80::1:2", "example.org", "192.0.2.1", "example.org:x"] {
            assert_eq!(named_port(host), None, "{host}");
        }
    }
}

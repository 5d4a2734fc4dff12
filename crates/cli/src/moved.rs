//! What `send` and `receive` have in common: keys, signals, the control socket, amounts and rates in words.

use crate::failure::Failure;
use crate::{output, signals};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trunkline_control::{ControlError, Controller, Server, SetRequest, socket_path};
use trunkline_core::{ParseError, Rate, Size};
use trunkline_handshake::Key;
use trunkline_mover::{Control, Manner, MoverError, Secret, Sending};

/// Who is at the other end.
#[derive(clap::Args)]
pub struct KeyArgs {
    /// Both ends have the key in FILE, which only its owner may read [default: TRUNKLINE_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Trust", conflicts_with = "no_key")]
    key_file: Option<PathBuf>,
    /// Neither end proves who it is. Data are still encrypted, but for whoever answers
    #[arg(long, help_heading = "Trust")]
    no_key: bool,
}

impl KeyArgs {
    /// What was given, if anything was.
    pub fn secret(&self) -> Result<Option<Secret>, Failure> {
        if self.no_key {
            return Ok(Some(Secret::None));
        }
        let key = Key::find(self.key_file.as_deref()).map_err(Failure::failed)?;
        Ok(key.map(Secret::Key))
    }
}

/// How the data travel.
#[derive(clap::Args)]
pub struct MannerArgs {
    /// Send data in the clear, if both ends say so: cheaper, and anybody on the way can read and change them. Files are still
    /// held against their hashes
    #[arg(long)]
    plaintext: bool,
    /// Use packets of IP protocol 30, NETBLT's own, and not UDP. Both ends need root, and most firewalls drop these packets
    #[arg(long)]
    raw: bool,
}

impl MannerArgs {
    /// What was given.
    pub fn manner(&self) -> Manner {
        Manner { clear: self.plaintext, raw: self.raw }
    }
}

/// The signal that has come, once one has.
pub type Signal = Arc<AtomicI32>;

/// Lets a signal stop the transfer; a second one ends the process.
pub fn stop_on_signals(control: &Arc<Control>) -> Result<Signal, Failure> {
    let (control, signal) = (Arc::clone(control), Signal::default());
    let ours = Arc::clone(&signal);
    signals::watch(move |number| {
        if ours.swap(number, Ordering::Relaxed) != 0 {
            std::process::exit(signals::status(number));
        }
        control.stop();
        true
    })?;
    Ok(signal)
}

/// The failure, named after the signal if that was the cause.
pub fn failure(error: MoverError, signal: &Signal) -> Failure {
    match (error, signal.load(Ordering::Relaxed)) {
        (MoverError::Stopped, number) if number != 0 => {
            Failure::interrupted(number).with_hint(&MoverError::Stopped.to_string())
        }
        (error, _) => Failure::failed(error),
    }
}

/// Lets `trunkline show` and `set` reach a transfer. Without a socket the transfer goes on, and says so.
pub fn serve(transfer: &Arc<Transfer>) -> Option<Server> {
    let started = socket_path().and_then(|path| Server::start(&path, Arc::clone(transfer) as _));
    let tell = |error: &ControlError| {
        output::tell(format_args!("trunkline show and set do not reach this transfer: {error}"));
    };
    started.inspect_err(tell).ok()
}

/// A transfer as others may see and change it.
pub struct Transfer {
    control: Arc<Control>,
    command: String,
    /// The receiver's addresses.
    to: String,
    progress: Mutex<Option<Sending>>,
}

impl Transfer {
    /// A transfer of this process to these addresses.
    pub fn new(control: Arc<Control>, to: &str) -> Transfer {
        let command: Vec<String> = output::words().into_iter().take(12).collect();
        Transfer { control, command: command.join(" "), to: to.into(), progress: Mutex::default() }
    }

    /// It is so far now.
    pub fn is_at(&self, what: &Sending) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.clone());
    }

    fn description(&self) -> Value {
        let cap = self.control.cap().map(|rate| rate.to_string());
        let transfer = json!({ "rate": cap, "to": self.to });
        let (pid, command) = (std::process::id(), &self.command);
        json!({ "pid": pid, "command": command, "paths": [], "transfer": transfer })
    }
}

impl Controller for Transfer {
    fn describe(&self) -> Option<Value> {
        Some(self.description())
    }

    fn state(&self) -> Option<Value> {
        let mut state = self.description();
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        state["progress"] = json!(*progress);
        Some(state)
    }

    fn set(&self, request: SetRequest) -> Result<Value, String> {
        if request.link.is_some() || request.after.is_some() {
            return Err("a transfer has no links, and changes at once".into());
        }
        let [(name, value)] = &request.settings[..] else {
            return Err("of a transfer only the rate can be set".into());
        };
        let cap: Option<Rate> = match (name.as_str(), value.as_str()) {
            ("rate", "none" | "unlimited") => None,
            ("rate", value) => Some(cap(value).map_err(|error| format!("rate: {error}"))?),
            _ => return Err(format!("of a transfer only the rate can be set, not {name}")),
        };
        self.control.set_cap(cap).map_err(|error| error.to_string())?;
        Ok(self.description())
    }
}

/// An address of the other end; directly on IP it has no port.
pub fn place(address: &SocketAddr) -> String {
    match address.port() {
        0 => address.ip().to_string(),
        _ => address.to_string(),
    }
}

/// Reads a rate cap. What lies out of all range is held against what a transfer can keep to.
pub fn cap(text: &str) -> Result<Rate, ParseError> {
    text.parse().map_err(|error| match error {
        ParseError::Range { what, found, highest, .. } => {
            let lowest = Control::slowest().to_string();
            ParseError::Range { what, found, lowest, highest }
        }
        other => other,
    })
}

/// An amount of data in words.
pub fn amount(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => Size::from_bytes(bytes).to_string(),
    }
}

/// A rate of user data in words.
pub fn rate(bytes: u64, seconds: f64) -> String {
    let bits = bytes as f64 * 8.0 / seconds.max(1e-9);
    match bits {
        bits if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.1} kbit/s", bits / 1e3),
    }
}

/// How far a transfer is: the amount confirmed, its share, the rate of this session, the time left.
pub fn told(confirmed: u64, bytes: u64, moved: u64, seconds: f64) -> String {
    let share = confirmed as f64 / bytes.max(1) as f64 * 100.0;
    let left = (bytes - confirmed.min(bytes)) as f64 * seconds / moved.max(1) as f64;
    let left = match moved {
        0 => String::new(),
        _ => format!(", {} left", duration(left)),
    };
    format!(
        "{} of {} ({share:.0} %), {}{left}",
        amount(confirmed),
        amount(bytes),
        rate(moved, seconds)
    )
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Prints a line of JSON: the object's own fields under `event`.
pub fn json_line(event: &str, what: &impl Serialize) -> Result<(), Failure> {
    let mut value = serde_json::to_value(what)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("event".into(), event.into());
    }
    output::line(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_rates_and_times_in_words() {
        assert_eq!((amount(17), amount(1500)), ("17B".into(), "1.5 kB".into()));
        assert_eq!(amount(1_000_000_000), "1.0 GB");
        assert_eq!(rate(125_000, 1.0), "1.0 Mbit/s");
        assert_eq!(told(50, 200, 50, 10.0), "50B of 200B (25 %), 0.0 kbit/s, 30 s left");
        assert_eq!(duration(3_725.0), "1 h 2 min");
    }

    #[test]
    fn only_the_rate_can_be_set() {
        let control = Arc::new(Control::default());
        let transfer = Transfer::new(Arc::clone(&control), "lab7");
        let set = |name: &str, value: &str| {
            let settings = vec![(name.to_string(), value.to_string())];
            transfer.set(SetRequest { settings, ..SetRequest::default() })
        };
        assert_eq!(set("rate", "5mbit").unwrap()["transfer"]["rate"], "5Mbit/s");
        assert_eq!(control.cap(), Some(Rate::from_bits_per_second(5_000_000)));
        for off in ["none", "unlimited"] {
            set("rate", "5mbit").unwrap();
            set("rate", off).unwrap();
            assert_eq!(control.cap(), None);
        }
        assert!(set("delay", "5ms").is_err() && set("rate", "fast").is_err());
        for slow in ["0", "0bit", "100bit"] {
            let told = set("rate", slow).unwrap_err();
            assert!(told.contains("167bit/s"), "{told}");
        }
    }
}

//! The engines that the command knows: the one place that names them all.

use crate::failure::Failure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::sync::Arc;
use trunkline_batch::Kept;
use trunkline_dataplane::Console;
use trunkline_emu::Emulator;
use trunkline_engine::{EngineName, Pace, SharedEngine};
use trunkline_model::Formulas;
use trunkline_sim::Simulator;

/// An engine, and how it is set up.
struct Known {
    name: EngineName,
    /// The description shown by the help.
    about: &'static str,
    make: fn(&Setup) -> SharedEngine,
}

/// A line for each engine.
const KNOWN: [Known; 3] = [
    Known { name: EngineName::MODEL, about: "closed formulas", make: |_| Arc::new(Formulas) },
    Known { name: EngineName::SIM, about: "virtual time", make: |_| Arc::new(Simulator) },
    Known { name: EngineName::EMU, about: "real time", make: |setup| Arc::new(setup.emulator()) },
];

/// The settings with which engines are made.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The largest number of attempts at a valid run in real time; `None` for the engine's own.
    pub attempts: Option<u32>,
    /// The console at which runs in real time are shown, set and captured.
    pub console: Option<Arc<Console>>,
    /// The store of finished runs, if they are kept.
    pub kept: Option<Arc<Kept>>,
}

impl Setup {
    fn emulator(&self) -> Emulator {
        let own = Emulator::default();
        Emulator { attempts: self.attempts.unwrap_or(own.attempts), console: self.console.clone() }
    }

    /// The engines of these names.
    pub fn engines(&self, names: &[EngineName]) -> Vec<SharedEngine> {
        let wanted = KNOWN.iter().filter(|known| names.contains(&known.name));
        wanted.map(|known| self.kept_by((known.make)(self))).collect()
    }

    fn kept_by(&self, engine: SharedEngine) -> SharedEngine {
        match &self.kept {
            Some(kept) => kept.around(engine),
            None => engine,
        }
    }
}

/// The simulator, for whoever needs it whatever was asked for.
pub fn simulator() -> SharedEngine {
    Arc::new(Simulator)
}

/// All names.
pub fn names() -> Vec<EngineName> {
    KNOWN.iter().map(|known| known.name).collect()
}

/// Names as `--engine` takes them.
pub fn joined(names: &[EngineName]) -> String {
    names.iter().map(EngineName::as_str).collect::<Vec<&str>>().join(",")
}

/// The names that `--engine` takes.
pub fn parser() -> impl TypedValueParser<Value = EngineName> {
    let value = |known: &Known| PossibleValue::new(known.name.to_string()).help(known.about);
    PossibleValuesParser::new(KNOWN.iter().map(value)).try_map(|name| name.parse::<EngineName>())
}

/// The help of `--engine`: `what`, and all names with what they are.
pub fn help(what: &str) -> String {
    let all = KNOWN.iter().map(|known| format!("{} ({})", known.name, known.about));
    format!("{what}: {}", all.collect::<Vec<String>>().join(", "))
}

/// Whether any of them runs in real time.
pub fn any_real(names: &[EngineName]) -> bool {
    Setup::default().engines(names).iter().any(|engine| engine.pace() == Pace::Real)
}

/// Gets the rights that real time needs, which has to be done before any thread starts. If they are not to be had, the
/// engine's column says so.
pub fn get_rights(names: &[EngineName]) {
    if any_real(names)
        && let Err(error) = trunkline_emu::get_rights()
    {
        tracing::debug!(%error, "no rights for the emulator");
    }
}

/// Refuses a file that asks for an engine that is not known.
pub fn all_known(file: &str, asked: impl IntoIterator<Item = EngineName>) -> Result<(), Failure> {
    let known = names();
    match asked.into_iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Failure::wrong_use(format!(
            "{file}: there is no engine '{name}': the engines are {}",
            joined(&known)
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_has_the_name_under_which_it_is_listed() {
        let engines = Setup::default().engines(&names());
        let own: Vec<EngineName> = engines.iter().map(|engine| engine.name()).collect();
        assert_eq!(own, names());
        assert!(any_real(&names()) && !any_real(&[EngineName::MODEL, EngineName::SIM]));
    }

    #[test]
    fn an_engine_that_is_not_there_is_refused_with_those_that_are() {
        let asked = |name: &str| all_known("my-study", [EngineName::SIM, name.parse().unwrap()]);
        assert!(asked("emu").is_ok());
        let told = asked("simm").unwrap_err().message().to_string();
        assert_eq!(told, "my-study: there is no engine 'simm': the engines are model,sim,emu");
    }
}

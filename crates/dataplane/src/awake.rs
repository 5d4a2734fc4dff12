//! Keeping processors out of deep sleep while something is being emulated.
//!
//! A processor that sleeps takes time to wake: a microsecond from the lightest state, tens from deeper ones, and
//! more if the machine is a virtual one and its host has to be asked. Frames and the programs that wait for them
//! are later by that, after each silence.

use std::fs::{File, OpenOptions, read_to_string};
use std::io::Write;

/// The kernel's register of who can wait how long, in microseconds
/// (`Documentation/power/pm_qos_interface.rst`). A wish holds as long as the file is open.
const REGISTER: &str = "/dev/cpu_dma_latency";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
/// The governor of virtual machines: any wish but zero lets it hand the processor back to the host.
const VIRTUAL: &str = "haltpoll";
/// The time that the lightest state of real processors takes.
const LIGHTEST: i32 = 2;

/// Processors wake at once while this is held. Without the right to ask for that, nothing changes.
#[derive(Debug)]
pub struct Awake {
    _wish: Option<File>,
}

impl Awake {
    /// Asks for it.
    pub fn hold() -> Awake {
        let ask = || {
            let mut register = OpenOptions::new().write(true).open(REGISTER)?;
            register.write_all(&longest(governor().as_deref()).to_ne_bytes())?;
            std::io::Result::Ok(register)
        };
        let asked = ask();
        if let Err(error) = &asked {
            tracing::debug!(%error, "processors may sleep deeply between frames");
        }
        Awake { _wish: asked.ok() }
    }
}

fn governor() -> Option<String> {
    read_to_string(GOVERNOR).ok()
}

/// The longest time that waking may take, in microseconds.
fn longest(governor: Option<&str>) -> i32 {
    if governor.map(str::trim) == Some(VIRTUAL) { 0 } else { LIGHTEST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_machine_never_hands_its_processor_back() {
        assert_eq!([Some("haltpoll\n"), Some("menu\n"), None].map(longest), [0, 2, 2]);
    }

    /// The register tells the least of all wishes, of other processes too.
    #[test]
    fn what_may_be_asked_for_stands_in_the_register() {
        let _awake = Awake::hold();
        match (OpenOptions::new().write(true).open(REGISTER), std::fs::read(REGISTER)) {
            (Ok(_), Ok(bytes)) => {
                let least = i32::from_ne_bytes(bytes.try_into().unwrap());
                assert!(least <= longest(governor().as_deref()), "{least} us");
            }
            (Err(error), _) | (_, Err(error)) => {
                trunkline_skip::skipped(format_args!("{REGISTER}: {error}"));
            }
        }
    }
}

//! Devices of the host between which a run carries frames: no two runs may have the same.

use crate::state::{load, lock};
use crate::{LabError, RunState};

impl RunState {
    /// Notes devices between which this run carries frames, so that no other takes them meanwhile.
    ///
    /// # Errors
    /// If a living run has one of them, or the record cannot be written.
    pub fn claim(&self, devices: &[&str]) -> Result<(), LabError> {
        let _lock = lock(self.directory())?;
        let own = self.record();
        let others = load(self.directory()).into_iter();
        let living = others
            .filter(|other| other.pid != own.pid && other.host == own.host && other.is_alive());
        for other in living {
            if let Some(device) = other.bridged.iter().find(|it| devices.contains(&it.as_str())) {
                return Err(LabError::Bridged { device: device.clone(), pid: other.pid });
            }
        }
        self.update(|record| record.bridged = devices.iter().map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::state::file_of;
    use crate::{Namespace, Record, RunState};
    use std::process::Command;

    /// A program that waits stands for another run.
    #[test]
    fn a_device_is_claimed_once() {
        let directory = std::env::temp_dir().join(format!("tl-claim-{}", std::process::id()));
        let state = RunState::create(&directory, &Namespace::current().unwrap()).unwrap();
        state.claim(&["tlp", "tlq"]).unwrap();
        state.claim(&["tlp", "tlr"]).unwrap();
        let mut program = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = program.id();
        let other = |started| Record { pid, started, ..state.record() };
        let write = |record: &Record| {
            std::fs::write(file_of(&directory, pid), record.text().unwrap()).unwrap();
        };
        let started = crate::state::start_time(pid).unwrap();
        write(&other(started));
        let taken = state.claim(&["tls", "tlr"]);
        let free = state.claim(&["tlq"]);
        // Whoever has the number now is another process.
        write(&other(started + 500));
        let later = state.claim(&["tls", "tlr"]);
        std::fs::remove_dir_all(&directory).unwrap();
        program.kill().and_then(|()| program.wait()).unwrap();
        let told = taken.unwrap_err().to_string();
        assert!(told.contains("`tlr`") && told.contains(&pid.to_string()), "{told}");
        assert!(free.is_ok() && later.is_ok(), "{free:?} {later:?}");
    }
}

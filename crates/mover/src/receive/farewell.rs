//! What the receiver says if it goes before the end.

use super::End;
use crate::MoverError;
use crate::incoming::Current;
use crate::story::Got;
use crate::words::{Answer, STOPPED, reason};
use trunkline_transport::netblt::wire::Packet;

/// How often a sender that waits for the end is told that there is none now: this end goes and cannot say it again (a choice).
const FAREWELLS: usize = 3;

impl End {
    /// What becomes of the transfer when the user stops it and the disk has stopped.
    pub(super) fn stopped(&mut self) -> Result<Got, MoverError> {
        // All is in its place, whether the sender has heard it or not.
        if let Some((got, _)) = self.finished.take() {
            return Ok(got);
        }
        if let Some(failed) = self.failed.take() {
            return Err(failed.why);
        }
        // A sender that waits for the end asks only now and then.
        if self.pending.is_none() {
            (0..FAREWELLS).for_each(|_| self.tell_end(&Answer::Stopped));
        }
        self.give_up(STOPPED);
        Err(MoverError::Stopped)
    }

    /// Tells whoever is there that this end goes, and why.
    pub(super) fn give_up(&mut self, why: &str) {
        let why = reason(why);
        let now = self.link.now();
        if let Some(Current { guest, connection, .. }) = &mut self.current {
            let (guest, ports) = (*guest, connection.ports());
            connection.quit(now, &why);
            self.tell_guest(guest, ports, &Packet::Quit(why.clone()), &[]);
        }
        if let Some(pending) = self.pending.take() {
            self.tell_guest(pending.guest, pending.ports, &Packet::Refused(why), &[]);
        }
    }
}

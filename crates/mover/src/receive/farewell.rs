//! What the receiver says if it goes before the end.

use super::End;
use crate::MoverError;
use crate::incoming::Current;
use crate::story::Got;
use crate::words::{Answer, STOPPED};
use trunkline_transport::netblt::wire::{MOST_TEXT, Packet};

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
        let mut why = why.as_bytes().to_vec();
        why.truncate(MOST_TEXT);
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

#[cfg(test)]
mod tests {
    use super::super::{ReceiveOptions, Secret};
    use super::*;
    use crate::desk::Done;
    use crate::incoming::Stream;
    use crate::receive::asked::connection;
    use crate::{CHUNK, Cut, Manner, PACKET};
    use trunkline_core::{Span, Time};
    use trunkline_transfer::TransferError;
    use trunkline_transport::netblt::wire::{Burst, Ports, Terms};

    /// A receiver whose disk has failed goes as soon as its sender says that it knows, and waits for that until then.
    #[test]
    fn who_has_failed_goes_when_its_sender_knows() {
        let dir = tempfile::tempdir().unwrap();
        let options = ReceiveOptions {
            directory: dir.path().into(),
            listen: ([127, 0, 0, 1], 0).into(),
            secret: Secret::None,
            manner: Manner::default(),
            memory: 1 << 20,
            replace: false,
        };
        let mut end = End::start(options, &mut |_| {}).unwrap();
        let ports = Ports { local: 1, foreign: 2 };
        let burst = Burst { size: 10, interval: 1 };
        let (buffer, packet) = (CHUNK, PACKET);
        let terms =
            Terms { buffer, packet, burst, outstanding: 4, write: true, ..Terms::default() };
        let made = connection(Time::ZERO, &terms, ports, &Answer::All).unwrap();
        let cut = Cut { chunk: terms.buffer, each: 1 };
        let (stream, room) = (Stream::chunks(cut, vec![0], 1), (4, Span::ZERO));
        end.current = Some(Current::new((0, 1), made, stream, 0, room));
        let session = crate::session::tests::met().1;
        let from = ([127, 0, 0, 1], 9).into();
        assert_eq!(end.admit(from, session, None), 0);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        end.did(at(1), Done::Failed(TransferError::NoManifest), &mut |_| {});
        end.say(at(2), &mut |_| {});
        let until = |end: &End| end.failed.as_ref().map(|it| it.until);
        assert!(until(&end) > Some(at(1000)), "its sender may not have heard");
        let connection = end.current.as_mut().map(|it| &mut it.connection);
        connection.unwrap().receive(at(50), &Packet::QuitAck, true);
        end.say(at(51), &mut |_| {});
        assert_eq!(until(&end), Some(at(51)));
    }
}

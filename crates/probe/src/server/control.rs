//! The control connection of a session, to its end.

use super::dialogue::{Dialogue, Event};
use super::session::Session;
use super::{Shared, one_more};
use crate::limited::{FRAME, Limited, is_silence};
use crate::{clock, stamp};
use rustix::event::PollFlags;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use trunkline_core::Span;

/// The time between looks at the stop sign.
const LOOK: Span = Span::from_millis(100);
/// The time that an answer may take to be taken.
const PATIENCE: Span = Span::from_secs(60);
/// The time that a last word may take to be taken.
const MOMENT: Span = Span::from_secs(1);
/// Octets that are read at once.
const CHUNK: usize = 8 * 1024;

/// Serves a session to its end.
pub fn serve(shared: &Shared, stream: &TcpStream, mut dialogue: Dialogue, session: &Arc<Session>) {
    let served = stream
        .set_nonblocking(false)
        .and_then(|()| answer_all(shared, stream, &mut dialogue, session));
    shared.registry.close(session);
    if served.is_err_and(|error| is_silence(&error)) {
        one_more(&shared.registry.counts.silent);
    }
    // Whoever is gone needs no farewell.
    let _ = stream.shutdown(Shutdown::Both);
}

fn answer_all(
    shared: &Shared,
    stream: &TcpStream,
    dialogue: &mut Dialogue,
    session: &Session,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    // When something whole came last, and when what is not whole yet began.
    let (mut heard, mut begun, mut pieces) = (clock::now(), None, dialogue.pieces());
    while !shared.stopped() {
        if session.is_over() {
            return dismiss(shared, stream, dialogue);
        }
        if begun.is_some_and(|begun| clock::now().since(begun) > FRAME)
            || clock::now().since(heard) > shared.registry.options.idle
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !stamp::wait(stream, PollFlags::IN, clock::now() + LOOK)? {
            continue;
        }
        let count = (&mut &*stream).read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let step = dialogue.receive(&shared.registry, &buffer[..count]);
        Limited::new(stream, PATIENCE).write_all(&step.answer)?;
        if let Event::Over = step.event {
            return Ok(());
        }
        if dialogue.pieces() > pieces {
            (heard, begun, pieces) = (clock::now(), None, dialogue.pieces());
        }
        begun = dialogue.is_torn().then(|| begun.unwrap_or_else(clock::now));
    }
    Ok(())
}

fn dismiss(shared: &Shared, stream: &TcpStream, dialogue: &mut Dialogue) -> io::Result<()> {
    let most = shared.registry.options.max_duration;
    let reason = format!("the session has lasted the {most} that it may (--max-duration)");
    let mut limited = Limited::new(stream, MOMENT);
    limited.write_all(&dialogue.dismiss(reason))?;
    stream.shutdown(Shutdown::Write)?;
    // What came unread would turn the last word into a reset.
    io::copy(&mut Read::take(&mut limited, 64 * 1024), &mut io::sink()).map(drop)
}

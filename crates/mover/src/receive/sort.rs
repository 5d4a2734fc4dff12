//! Whom a datagram is for.

use super::{Guest, News};
use crate::desk::Task;
use crate::incoming::Current;
use std::collections::VecDeque;
use std::net::SocketAddr;
use trunkline_core::Time;
use trunkline_transport::netblt::wire::{Packet, Ports};

/// Takes in a datagram: what is of the connection at work goes there, anything else comes back. With the connection at work comes
/// whether another may take its place if there is none.
pub(super) fn sort(
    (from, now, datagram): (SocketAddr, Time, &[u8]),
    sessions: &mut VecDeque<Guest>,
    (current, is_free): (&mut Option<Current>, bool),
    give: &mut dyn FnMut(Task, (u64, Ports)),
) -> Option<News> {
    let guest = sessions.iter_mut().find(|it| it.session.is_meant(datagram));
    let Some(guest) = guest else { return Some(News::Words(from, now, datagram.to_vec())) };
    let (read, data) = guest.session.hear(datagram)?;
    // Whoever sealed it is there: an address may change under a session.
    (guest.at, guest.is_proved) = (from, true);
    guest.round.get_or_insert(now.since(guest.met));
    let known = (guest.number, guest.round.unwrap_or_default());
    let by = (guest.number, read.ports.turned());
    let begun =
        guest.early.take().and_then(|it| it.begin(now, known, &read, (&mut *current, is_free)));
    match &begun {
        Some(News::Begun(_, _, offer)) => give(Task::Offer(*offer), by),
        Some(_) => return begun,
        None => {}
    }
    let at_work = current.as_mut().filter(|current| {
        let is_other = matches!(&read.packet, Packet::Open(terms) if terms.uid != current.uid);
        let ports = current.connection.ports().turned();
        // It is the sender who says that it knows the end.
        let is_end = read.packet == Packet::Done;
        current.guest == guest.number && read.ports == ports && !is_other && !is_end
    });
    match at_work {
        Some(current) => {
            current.take(now, &read.packet, data, &mut |task| give(task, by));
            begun
        }
        None => begun.or(Some(News::Packet(guest.number, now, read))),
    }
}

//! Taking connections in, and holding few that have not said who they are.

use super::session::lock;
use super::{Shared, control, one_more};
use crate::{clock, stamp};
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use trunkline_core::Span;

/// Connections that have not said who they are; when one more comes, the oldest goes.
const MOST_PENDING: usize = 64;
/// How often the stop sign is looked at.
const LOOK: Span = Span::from_millis(100);

/// The connections that have not said who they are, the oldest first.
#[derive(Debug, Default)]
pub struct Pending {
    list: Mutex<VecDeque<(u64, TcpStream)>>,
    next: AtomicU64,
}

impl Pending {
    /// Adds one, and closes the oldest where there are too many.
    fn enter(&self, stream: &TcpStream) -> std::io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut list = lock(&self.list);
        list.push_back((number, stream.try_clone()?));
        if list.len() > MOST_PENDING
            && let Some((_, oldest)) = list.pop_front()
        {
            // Its thread notices.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(number)
    }

    /// It has said who it is, or is gone.
    pub fn leave(&self, number: u64) {
        lock(&self.list).retain(|(other, _)| *other != number);
    }
}

/// Takes connections in until the server stops.
pub fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    while !shared.stopped() {
        // Whatever the waiting says, a look does no harm.
        let _ = stamp::wait(listener, PollFlags::IN, clock::now() + LOOK);
        match listener.accept() {
            Ok((stream, from)) => enter(shared, stream, from),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!("a connection could not be taken in: {error}");
                thread::sleep(LOOK.to_duration());
            }
        }
    }
}

fn enter(shared: &Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    one_more(&shared.counts.connections);
    let peer = plain(from.ip());
    if !shared.options.admits(peer) {
        one_more(&shared.counts.refused_addresses);
        return control::refuse_address(&stream, peer);
    }
    // An accepted connection does not wait like its listener, nor hold small messages back.
    if stream.set_nonblocking(false).and(stream.set_nodelay(true)).is_err() {
        return;
    }
    let Ok(number) = shared.pending.enter(&stream) else { return };
    let ours = Arc::clone(shared);
    let thread = thread::Builder::new().name("probe-client".into());
    let work = move || {
        control::serve(&ours, &stream, peer, &|| ours.pending.leave(number));
        ours.pending.leave(number);
        // Whoever is gone needs no farewell.
        let _ = stream.shutdown(Shutdown::Both);
    };
    if let Err(error) = thread.spawn(work) {
        tracing::warn!("no thread for a connection: {error}");
        shared.pending.leave(number);
    }
}

/// An IPv4 address that came through a socket of both families, as IPv4.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => Ipv6Addr::to_ipv4_mapped(&v6).map_or(ip, IpAddr::V4),
        v4 => v4,
    }
}

//! The server's datagrams: one thread takes all of them and answers at once.

use super::session::{Datagrams, Flow, Session, lock};
use super::{Shared, one_more};
use crate::channel::{Channel, MOST_WAITING};
use crate::clock;
use crate::pacer::Pacer;
use crate::stamp::{self, Arrival, mapped};
use crate::wire::datagram::{self, DatagramKind, HEAD, Head};
use crate::wire::message::Role;
use rustix::event::PollFlags;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use std::thread;
use trunkline_core::{Rate, Span, Time};

/// The time between looks at the stop sign.
const LOOK: Span = Span::from_millis(100);
/// Datagrams that are taken before something else has its turn.
const BATCH: usize = 256;
/// User octets that a URP sender keeps ready.
const READY: u64 = 64 * 1024;
/// Octets of a UDP payload, and a little more.
const LARGEST: usize = 65_536;

/// Serves until the server stops.
pub fn serve(shared: &Arc<Shared>) {
    clock::wake_exactly();
    let mut buffer = vec![0; LARGEST];
    let mut due = Time::NEVER;
    while !shared.stopped() {
        let until = due.min(clock::now() + LOOK);
        // Whatever the waiting says, a look does no harm.
        let _ = stamp::wait(&shared.udp, PollFlags::IN, until);
        for _ in 0..BATCH {
            match stamp::receive(&shared.udp, &mut buffer) {
                Ok(Some(arrival)) => take(shared, &mut buffer, arrival),
                Ok(None) => break,
                // What the network says of an earlier datagram of ours.
                Err(_) => continue,
            }
        }
        due = work_on_channels(shared);
    }
}

fn take(shared: &Arc<Shared>, buffer: &mut [u8], arrival: Arrival) {
    let length = arrival.length.min(buffer.len());
    match find(shared, &buffer[..length], arrival.from) {
        Ok((session, flow, head, from)) => {
            one_more(&shared.registry.counts.good_datagrams);
            let place = Place { shared, session: &session, flow: &flow, number: head.flow, from };
            place.take(head, &mut buffer[..length], arrival.at);
        }
        Err(Stray::Late) => one_more(&shared.registry.counts.late_datagrams),
        Err(Stray::Garbage) => one_more(&shared.registry.counts.garbage_datagrams),
    }
}

/// A datagram that belongs nowhere.
enum Stray {
    /// Its flow or session has ended.
    Late,
    /// Nobody here knows it.
    Garbage,
}

type Found = (Arc<Session>, Arc<Flow>, Head, SocketAddr);

/// The flow that a datagram belongs to: of a session, with its tag, from its client.
fn find(shared: &Shared, datagram: &[u8], from: Option<SocketAddr>) -> Result<Found, Stray> {
    let (session, head, from) = authentic(shared, datagram, from).ok_or(Stray::Garbage)?;
    let flow = session.flow(head.flow).filter(|_| !session.is_over()).ok_or(Stray::Late)?;
    let same = *lock(&flow.datagrams).peer.get_or_insert(from) == from;
    if same { Ok((session, flow, head, from)) } else { Err(Stray::Garbage) }
}

/// The session, open or just ended, whose client sent this with its tag.
fn authentic(
    shared: &Shared,
    datagram: &[u8],
    from: Option<SocketAddr>,
) -> Option<(Arc<Session>, Head, SocketAddr)> {
    let (from, cookie) = (from?, datagram::cookie(datagram)?);
    let session =
        shared.registry.session(cookie).or_else(|| shared.registry.ended_session(cookie))?;
    let head =
        (session.peer == from.ip()).then(|| Head::read(datagram, &session.datagrams[0]))??;
    Some((session, head, from))
}

/// The session and the flow that a datagram belongs to.
struct Place<'a> {
    shared: &'a Arc<Shared>,
    session: &'a Arc<Session>,
    flow: &'a Arc<Flow>,
    number: u16,
    from: SocketAddr,
}

impl Place<'_> {
    fn take(&self, head: Head, datagram: &mut [u8], at: Time) {
        let mut flow = lock(&self.flow.datagrams);
        if !self.admits(&head, datagram.len() as u64) {
            flow.over_rate += 1;
            return;
        }
        match (head.kind, self.flow.spec.role) {
            (DatagramKind::Request, Role::Echo) => self.echo(&mut flow, head, datagram, at),
            // The client opens its filters for what is to come. A copy is not answered, and the answer is no part of
            // the stream.
            (DatagramKind::Request, Role::Down) if flow.tracker.note(head.number) => {
                self.reply(&flow, head, datagram, at);
                self.start(&mut flow);
            }
            (DatagramKind::Data, Role::Up) => count(&mut flow, head, datagram.len(), at),
            (DatagramKind::Urp, role) => {
                if let Some(channel) = &mut flow.channel {
                    channel.arrive(at, head.number, &datagram[HEAD..]);
                    serve_channel(&mut flow, role, at);
                    self.flush(&mut flow);
                }
            }
            _ => {}
        }
    }

    /// Whether a datagram is within the session's rate. What answers a URP stream down is taken in any case, and that stream waits
    /// for it: if it were lost, its sender would time out.
    fn admits(&self, head: &Head, octets: u64) -> bool {
        let mut bucket = lock(&self.session.bucket);
        if (head.kind, self.flow.spec.role) == (DatagramKind::Urp, Role::Down) {
            bucket.take(clock::now(), octets);
            return true;
        }
        bucket.admit(clock::now(), octets)
    }

    /// Answers a request, but not its copies.
    fn echo(&self, flow: &mut Datagrams, request: Head, datagram: &mut [u8], at: Time) {
        if flow.tracker.note(request.number) {
            flow.bins.add(at, (datagram.len() - HEAD) as u64);
            flow.sent += u64::from(self.reply(flow, request, datagram, at));
        }
    }

    /// Answers with the same octets under another head: a reply is never longer than its request. Tells whether it was
    /// sent.
    fn reply(&self, flow: &Datagrams, request: Head, datagram: &mut [u8], at: Time) -> bool {
        let order = u32::try_from(flow.tracker.received().saturating_sub(1)).unwrap_or(u32::MAX);
        let head = Head {
            kind: DatagramKind::Reply,
            stamp: at.as_nanos(),
            span: u32::try_from(clock::now().since(at).as_nanos()).unwrap_or(u32::MAX),
            order,
            ..request
        };
        head.write(self.session.cookie, &self.session.datagrams[1], datagram);
        send(&self.shared.udp, datagram, self.from)
    }

    fn start(&self, flow: &mut Datagrams) {
        if self.flow.spec.role != Role::Down || std::mem::replace(&mut flow.started, true) {
            return;
        }
        if let Some(channel) = &mut flow.channel {
            flow.began = Some(clock::now());
            fill(channel, self.flow.spec.size);
            return self.flush(flow);
        }
        let (shared, session) = (Arc::clone(self.shared), Arc::clone(self.session));
        let (flow, number, to) = (Arc::clone(self.flow), self.number, self.from);
        let thread = thread::Builder::new().name("probe-sender".into());
        if let Err(error) = thread.spawn(move || stream_down(&shared, &session, &flow, number, to))
        {
            tracing::warn!("no thread for a sender: {error}");
        }
    }

    /// Sends what a channel has to send. Of a stream down as much as the session's rate allows: the rest waits in the channel.
    fn flush(&self, flow: &mut Datagrams) {
        let Some(channel) = &mut flow.channel else { return };
        loop {
            let mut bucket = lock(&self.session.bucket);
            flow.held = flow.began.and_then(|_| bucket.full_until(clock::now()));
            let next = if flow.held.is_none() { channel.depart(clock::now()) } else { None };
            let Some((number, octets)) = next else { return };
            bucket.take(clock::now(), (HEAD + octets.len()) as u64);
            drop(bucket);
            let mut datagram = vec![0; HEAD + octets.len()];
            datagram[HEAD..].copy_from_slice(&octets);
            let head = Head {
                kind: DatagramKind::Urp,
                flow: self.number,
                number,
                stamp: clock::now().as_nanos(),
                span: 0,
                order: 0,
            };
            head.write(self.session.cookie, &self.session.datagrams[1], &mut datagram);
            flow.sent += u64::from(send(&self.shared.udp, &datagram, self.from));
        }
    }
}

/// Counts one of a stream, but not its copies.
fn count(flow: &mut Datagrams, head: Head, length: usize, at: Time) {
    if flow.tracker.note(head.number) {
        flow.bins.add(at, (length - HEAD) as u64);
        flow.tracker.note_transit(head.stamp, at);
    }
}

fn send(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> bool {
    let v6 = socket.local_addr().is_ok_and(|own| own.is_ipv6());
    let to = if v6 { mapped(to) } else { to };
    // A datagram that the system does not take is one lost.
    socket.send_to(datagram, to).is_ok()
}

/// Takes what a channel delivers and answers it, as far as there is room.
fn serve_channel(flow: &mut Datagrams, role: Role, at: Time) {
    let Datagrams { channel: Some(channel), tracker, bins, .. } = flow else { return };
    while channel.waiting() < MOST_WAITING {
        let Some((octets, whole)) = channel.take(at) else { return };
        bins.add(at, u64::from(octets));
        if let Some(length) = whole {
            tracker.note(tracker.highest().map_or(0, |highest| highest.wrapping_add(1)));
            if role == Role::Echo {
                channel.offer(at, length);
            }
        }
    }
}

fn fill(channel: &mut Channel, size: u32) {
    while channel.waiting() < READY {
        channel.offer(clock::now(), size.max(1));
    }
}

/// Does what is due on URP flows, and tells when the next is.
fn work_on_channels(shared: &Arc<Shared>) -> Time {
    let mut next = Time::NEVER;
    for session in shared.registry.sessions() {
        for (number, flow) in session.flows() {
            let mut state = lock(&flow.datagrams);
            let Some(from) = state.peer.filter(|_| state.channel.is_some()) else { continue };
            let place = Place { shared, session: &session, flow: &flow, number, from };
            next = next.min(place.work(&mut state));
        }
    }
    next
}

impl Place<'_> {
    fn work(&self, state: &mut Datagrams) -> Time {
        let now = clock::now();
        let duration = Span::from_nanos(self.flow.spec.duration_ns);
        let sending = state.began.is_some_and(|began| now.since(began) < duration);
        serve_channel(state, self.flow.spec.role, now);
        let Some(channel) = &mut state.channel else { return Time::NEVER };
        if channel.deadline().is_some_and(|due| due <= now) {
            channel.expire(now);
        }
        if sending {
            fill(channel, self.flow.spec.size);
        }
        let due = channel.deadline().unwrap_or(Time::NEVER);
        self.flush(state);
        due.min(state.held.unwrap_or(Time::NEVER))
    }
}

/// Sends a stream of datagrams at its rate until its time is over.
fn stream_down(shared: &Shared, session: &Session, flow: &Flow, number: u16, to: SocketAddr) {
    clock::wake_exactly();
    let mut datagram = vec![0x55; HEAD + flow.spec.size as usize];
    let began = clock::now();
    let until = began + Span::from_nanos(flow.spec.duration_ns);
    let rate = flow.spec.rate.map(Rate::from_bits_per_second);
    let mut pacer = Pacer::at_rate(began, rate, datagram.len());
    let mut count = 0;
    while !flow.is_done() && !session.is_over() && !shared.stopped() {
        let due = pacer.next();
        // Without a rate, or behind a rate that nobody keeps, what is due lags behind the clock.
        if due.max(clock::now()) >= until {
            return;
        }
        thread::sleep(due.since(clock::now()).to_duration());
        if !lock(&session.bucket).admit(clock::now(), datagram.len() as u64) {
            lock(&flow.datagrams).over_rate += 1;
            continue;
        }
        let stamp = clock::now().as_nanos();
        let head = Head {
            kind: DatagramKind::Data,
            flow: number,
            number: count,
            stamp,
            span: 0,
            order: 0,
        };
        head.write(session.cookie, &session.datagrams[1], &mut datagram);
        count += 1;
        let sent = send(&shared.udp, &datagram, to);
        lock(&flow.datagrams).sent += u64::from(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::registry::REMEMBERED;
    use crate::server::{Options, Server};
    use crate::wire::message::Limits;

    /// A datagram that a session of this cookie sends.
    fn datagram(session: &Session) -> Vec<u8> {
        let head =
            Head { kind: DatagramKind::Urp, flow: 3, number: 1, stamp: 0, span: 0, order: 0 };
        let mut octets = vec![0; HEAD + 20];
        head.write(session.cookie, &session.datagrams[0], &mut octets);
        octets
    }

    fn counted(server: &Server, octets: &[u8]) -> (u64, u64) {
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        let arrival =
            Arrival { length: octets.len(), from: Some(from), at: clock::now(), stamped: true };
        let before = server.statistics();
        take(&server.shared, &mut octets.to_vec(), arrival);
        let after = server.statistics();
        let more = |of: fn(&super::super::Statistics) -> u64| of(&after) - of(&before);
        (more(|seen| seen.late_datagrams), more(|seen| seen.garbage_datagrams))
    }

    #[test]
    fn what_a_session_sent_before_its_end_is_late_and_no_garbage() {
        let server = Server::start(Options::at(([127, 0, 0, 1], 0).into())).unwrap();
        let limits = Limits {
            rate: None,
            duration_ns: 1_000_000_000_000,
            flows: 1,
            streams: 1,
            connections: 1,
        };
        let session = |cookie: u64| {
            let (secret, peer) = ([cookie as u8; 32], [127, 0, 0, 1].into());
            Arc::new(Session::new(cookie, secret, peer, limits, [].into()))
        };
        let first = session(1);
        let octets = datagram(&first);
        assert_eq!(counted(&server, &octets), (0, 1), "of a session that never was");
        server.shared.registry.enter(&first);
        assert_eq!(counted(&server, &octets), (1, 0), "its flow has ended");
        server.shared.registry.close(&first);
        assert_eq!(counted(&server, &octets), (1, 0), "it has ended");
        let mut wrong = octets.clone();
        wrong[20] ^= 1;
        assert_eq!(counted(&server, &wrong), (0, 1), "with a wrong tag");
        (2..REMEMBERED as u64 + 1)
            .for_each(|cookie| server.shared.registry.close(&session(cookie)));
        assert_eq!(counted(&server, &octets), (1, 0), "the oldest that is remembered");
        server.shared.registry.close(&session(1000));
        assert_eq!(counted(&server, &octets), (0, 1), "it is forgotten");
    }
}

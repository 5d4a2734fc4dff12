//! A control connection: who is there, and what is asked.

use super::session::{MOST_FLOWS, MOST_STREAMS, Session, lock};
use super::{Shared, one_more, streams};
use crate::key::{self, Key, from_hex, same, to_hex};
use crate::limited::{Limited, is_silence};
use crate::wire::VERSION;
use crate::wire::frame::{self, REQUEST, SHORT};
use crate::wire::message::{Answer, Limits, Request};
use crate::{clock, counters, stamp};
use rustix::event::PollFlags;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trunkline_core::{Rate, Span};

/// How often the stop sign is looked at.
const LOOK: Span = Span::from_millis(100);
/// How long one request may take to arrive, or an answer to be taken.
const PATIENCE: Span = Span::from_secs(60);
/// How long a connection is waited for that is being closed.
const MOMENT: Span = Span::from_secs(1);

/// Says that clients from there are not allowed.
pub fn refuse_address(stream: &TcpStream, peer: IpAddr) {
    let reason = format!("clients at {peer} are not on its list of addresses (--allow)");
    refuse(stream, reason);
}

fn refuse(stream: &TcpStream, reason: String) {
    let mut limited = Limited::new(stream, MOMENT);
    // Who does not listen is refused all the same. What came unread would turn the farewell into a reset.
    let _ = frame::send(&mut limited, &Answer::Refused { reason });
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = io::copy(&mut io::Read::take(&mut limited, 64 * 1024), &mut io::sink());
}

/// Serves a connection to its end; `known` is called when it has said who it is.
pub fn serve(shared: &Arc<Shared>, stream: &TcpStream, peer: IpAddr, known: &dyn Fn()) {
    let result = match introduce(shared, stream, peer) {
        Ok(Introduced::Session(session)) => {
            known();
            let served = answer_all(shared, stream, &session);
            shared.end(&session);
            served
        }
        Ok(Introduced::Stream(session, flow, number)) => {
            known();
            streams::serve(shared, stream, &session, &flow, number)
        }
        Ok(Introduced::Nobody) => Ok(()),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if is_silence(&error) => one_more(&shared.counts.silent),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            one_more(&shared.counts.foreign);
        }
        _ => {}
    }
}

/// What a connection turned out to be.
enum Introduced {
    Session(Arc<Session>),
    Stream(Arc<Session>, Arc<super::session::Flow>, u16),
    Nobody,
}

fn introduce(shared: &Arc<Shared>, stream: &TcpStream, peer: IpAddr) -> io::Result<Introduced> {
    let mut limited = Limited::new(stream, shared.options.handshake);
    match frame::receive(&mut limited, SHORT)? {
        Request::Hello { version, nonce } => greet(shared, stream, limited, peer, version, &nonce),
        Request::Join { cookie, flow, stream: number, code } => {
            let found = join(shared, peer, cookie, flow, number, &code);
            let Some((session, flow)) = found else {
                refuse(stream, "no such flow, or its connection is there already".into());
                return Ok(Introduced::Nobody);
            };
            Ok(Introduced::Stream(session, flow, number))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn join(
    shared: &Shared,
    peer: IpAddr,
    cookie: u64,
    flow: u16,
    number: u16,
    code: &str,
) -> Option<(Arc<Session>, Arc<super::session::Flow>)> {
    let session = shared.session(cookie).filter(|session| session.peer == peer)?;
    let right = session.key.join_code(cookie, flow, number);
    if !same(&right, &from_hex(code)?) {
        one_more(&shared.counts.refused_keys);
        return None;
    }
    let flow = session.flow(flow).filter(|flow| flow.join(number))?;
    Some((session, flow))
}

fn greet(
    shared: &Arc<Shared>,
    stream: &TcpStream,
    mut limited: Limited<'_>,
    peer: IpAddr,
    version: u16,
    nonce: &str,
) -> io::Result<Introduced> {
    let theirs = from_hex(nonce).ok_or(io::ErrorKind::InvalidData)?;
    if version != VERSION {
        refuse(stream, format!("it speaks version {VERSION} of the protocol, you {version}"));
        return Ok(Introduced::Nobody);
    }
    let ours: key::Code = key::random().map_err(io::Error::other)?;
    let key = shared.options.key.as_ref();
    frame::send(&mut limited, &Answer::Challenge { nonce: to_hex(&ours), key: key.is_some() })?;
    let Request::Proof { code } = frame::receive(&mut limited, SHORT)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let nonces: [&[u8]; 2] = [&theirs, &ours];
    if let Some(key) = key {
        let right = key.code("client", &nonces);
        if !code.and_then(|code| from_hex(&code)).is_some_and(|code| same(&code, &right)) {
            one_more(&shared.counts.refused_keys);
            refuse(stream, key::WRONG.into());
            return Ok(Introduced::Nobody);
        }
    }
    let Some((session, secret)) = open(shared, peer, key, &nonces)? else {
        one_more(&shared.counts.refused_full);
        refuse(
            stream,
            "it has as many sessions as it may (--max-sessions); try again later".into(),
        );
        return Ok(Introduced::Nobody);
    };
    let code = key.map(|key| to_hex(&key.code("server", &nonces)));
    let welcome = Answer::Welcome { code, secret, cookie: session.cookie, limits: session.limits };
    if let Err(error) = frame::send(&mut limited, &welcome) {
        lock(&shared.sessions).remove(&session.cookie);
        return Err(error);
    }
    Ok(Introduced::Session(session))
}

type Opened = (Arc<Session>, Option<String>);

fn open(
    shared: &Shared,
    peer: IpAddr,
    key: Option<&Key>,
    nonces: &[&[u8]; 2],
) -> io::Result<Option<Opened>> {
    let mut sessions = lock(&shared.sessions);
    if sessions.len() >= shared.options.max_sessions {
        return Ok(None);
    }
    let cookie = u64::from_be_bytes(key::random().map_err(io::Error::other)?);
    let secret: Option<key::Code> = match key {
        Some(_) => None,
        None => Some(key::random().map_err(io::Error::other)?),
    };
    let base = match (key, &secret) {
        (Some(key), _) => key.clone(),
        (None, secret) => Key::new(secret.as_ref().map_or(&[], |secret| &secret[..])),
    };
    let limits = Limits {
        rate: shared.options.max_rate.map(Rate::bits_per_second),
        duration_ns: shared.options.max_duration.as_nanos(),
        flows: MOST_FLOWS,
        streams: MOST_STREAMS,
    };
    let session = Session::new(cookie, base.session(nonces), peer, limits);
    let session = Arc::new(session);
    sessions.insert(cookie, Arc::clone(&session));
    one_more(&shared.counts.sessions);
    Ok(Some((session, secret.map(|secret| to_hex(&secret)))))
}

fn answer_all(shared: &Arc<Shared>, stream: &TcpStream, session: &Arc<Session>) -> io::Result<()> {
    let mut heard = clock::now();
    while !shared.stopped() {
        if session.is_over() {
            let most = shared.options.max_duration;
            refuse(
                stream,
                format!("the session has lasted the {most} that it may (--max-duration)"),
            );
            return Ok(());
        }
        if !stamp::wait(stream, PollFlags::IN, clock::now() + LOOK)? {
            if clock::now().since(heard) > shared.options.idle {
                return Err(io::ErrorKind::TimedOut.into());
            }
            continue;
        }
        heard = clock::now();
        let mut limited = Limited::new(stream, PATIENCE);
        let answer = match frame::receive(&mut limited, REQUEST)? {
            Request::Bye => return Ok(()),
            request => answer(shared, session, request)?,
        };
        frame::send(&mut Limited::new(stream, PATIENCE), &answer)?;
    }
    Ok(())
}

fn answer(shared: &Shared, session: &Session, request: Request) -> io::Result<Answer> {
    Ok(match request {
        Request::Alive => Answer::Alive,
        Request::Host => Answer::Host(Box::new(counters::read())),
        Request::Flow { flow, mut spec } => {
            spec.urp = spec.urp.map(|asked| shared.options.decide(asked));
            let urp = spec.urp;
            match session.open(flow, spec) {
                Ok(()) => Answer::Ready { urp },
                Err(reason) => Answer::Refused { reason },
            }
        }
        Request::Collect { flow } => match collect(session, flow) {
            Some(report) => Answer::Report(Box::new(report)),
            None => Answer::Refused { reason: format!("there is no flow {flow}") },
        },
        _ => return Err(io::ErrorKind::InvalidData.into()),
    })
}

/// Ends a flow, once its connections have noticed that it ends.
fn collect(session: &Session, number: u16) -> Option<crate::wire::message::FlowReport> {
    let flow = session.flow(number)?;
    flow.done.store(true, Ordering::Relaxed);
    let until = clock::now() + MOMENT;
    while flow.running.load(Ordering::Relaxed) > 0 && clock::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    session.collect(number)
}

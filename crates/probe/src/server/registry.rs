//! The state and the counts of a server, without its sockets.

use super::admission::Options;
use super::session::{MOST_FLOWS, MOST_STREAMS, Session, lock};
use super::{Counts, one_more};
use crate::tcp;
use crate::wire::keys::Place;
use crate::wire::message::Limits;
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use trunkline_core::Rate;
use trunkline_handshake::{Hello, Refusal, Unfit, random};

/// Descriptors that are kept for the program itself.
const OWN: usize = 32;
/// Sessions that are remembered after their end.
pub(super) const REMEMBERED: usize = 64;
/// Most connections of a session, and of those that have not opened one.
const MOST: usize = 2048;

/// The number of descriptors for each use. Together they are never more than the process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Connections that have not said their first words.
    pub silent: usize,
    /// Connections that have, and have not gone on: they need a round trip of the path.
    pub greeted: usize,
    /// Connections to which a last word was sent.
    pub leaving: usize,
    /// Data connections of a session.
    pub each: usize,
}

impl Places {
    /// Shares `all` descriptors out: less than half to strangers, what remains to so many sessions.
    ///
    /// # Errors
    /// If a session would get none.
    pub fn of(all: usize, sessions: usize) -> Result<Places, String> {
        let free = all.saturating_sub(OWN + sessions);
        let (silent, greeted) = ((free / 8).min(MOST), (free / 4).min(MOST));
        let leaving = (free / 16).min(64);
        let each = (free - silent - greeted - leaving) / sessions.max(1);
        if silent < 4 || leaving == 0 || each == 0 {
            return Err(format!(
                "{all} open files are too few for {sessions} sessions: raise the limit (`ulimit -n`) or \
                 lower --max-sessions"
            ));
        }
        Ok(Places { silent, greeted, leaving, each: each.min(MOST) })
    }
}

/// The state of a server.
#[derive(Debug)]
pub struct Registry {
    pub(super) options: Options,
    pub(super) places: Places,
    pub(super) counts: Counts,
    sessions: Mutex<BTreeMap<u64, Arc<Session>>>,
    /// Sessions that ended, the latest last: what was under way for them still comes.
    ended: Mutex<VecDeque<Arc<Session>>>,
    /// The congestion controls that clients may ask for.
    congestion: Arc<[String]>,
}

/// A data connection that has shown which flow it belongs to.
#[derive(Debug)]
pub struct Joined {
    pub(super) session: Arc<Session>,
    pub(super) flow: Arc<super::session::Flow>,
    pub(super) place: Place,
    pub(super) transcript: [u8; 32],
}

impl Registry {
    /// A registry with nobody in it.
    ///
    /// # Errors
    /// If the process may have too few files.
    pub fn new(options: Options) -> Result<Registry, String> {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let places = Places::of(files, options.max_sessions)?;
        let congestion = tcp::settable(&options.congestion)?.into();
        let (sessions, ended) = (Mutex::default(), Mutex::default());
        Ok(Registry { options, places, congestion, counts: Counts::default(), sessions, ended })
    }

    /// The session with this cookie.
    pub(super) fn session(&self, cookie: u64) -> Option<Arc<Session>> {
        lock(&self.sessions).get(&cookie).cloned()
    }

    /// All sessions.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).values().cloned().collect()
    }

    /// Opens a session; `None` if there are as many as may be.
    pub(super) fn open(&self, peer: IpAddr) -> io::Result<Option<Arc<Session>>> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= self.options.max_sessions {
            one_more(&self.counts.refused_full);
            return Ok(None);
        }
        let limits = Limits {
            rate: self.options.max_rate.map(Rate::bits_per_second),
            duration_ns: self.options.max_duration.as_nanos(),
            flows: MOST_FLOWS,
            streams: MOST_STREAMS.min(u16::try_from(self.places.each).unwrap_or(u16::MAX)),
            connections: u32::try_from(self.places.each).unwrap_or(u32::MAX),
        };
        let cookie = u64::from_be_bytes(random()?);
        let session = Session::new(cookie, random()?, peer, limits, Arc::clone(&self.congestion));
        let session = Arc::new(session);
        sessions.insert(cookie, Arc::clone(&session));
        one_more(&self.counts.sessions);
        Ok(Some(session))
    }

    /// The one of this cookie among those that ended a short time ago.
    pub(super) fn ended_session(&self, cookie: u64) -> Option<Arc<Session>> {
        lock(&self.ended).iter().find(|session| session.cookie == cookie).cloned()
    }

    /// Takes a session from the open ones and ends it.
    pub(super) fn close(&self, session: &Arc<Session>) {
        session.close();
        let mut ended = lock(&self.ended);
        ended.push_back(Arc::clone(session));
        if ended.len() > REMEMBERED {
            ended.pop_front();
        }
        // Last, so that it is found in one of both at any time.
        lock(&self.sessions).remove(&session.cookie);
    }

    /// Puts a session among the open ones.
    #[cfg(test)]
    pub(super) fn enter(&self, session: &Arc<Session>) {
        lock(&self.sessions).insert(session.cookie, Arc::clone(session));
    }

    /// Takes a data connection in: each place once, with its own key, from its session's client.
    pub(super) fn join(&self, peer: IpAddr, hello: &Hello) -> Result<(Joined, Vec<u8>), Unfit> {
        let place = Place::read(hello.context()).ok_or(Unfit::Foreign)?;
        let unknown = Unfit::Refused(Refusal::Unknown);
        let session = self.session(place.cookie).filter(|session| session.peer == peer);
        let session = session.filter(|session| !session.is_over()).ok_or(unknown)?;
        let flow = session.flow(place.flow).ok_or(unknown)?;
        let (channel, answer) = hello.accept(Some(&session.keys.join(place)))?;
        if !flow.join(place.stream) {
            return Err(unknown);
        }
        let transcript = *channel.transcript();
        Ok((Joined { session, flow, place, transcript }, answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_shared_out_and_never_more_than_there_are() {
        for all in [64, 100, 256, 1024, 20_000, usize::MAX >> 8] {
            for sessions in [1, 2, 8, 30, 1000] {
                let Ok(places) = Places::of(all, sessions) else { continue };
                let Places { silent, greeted, leaving, each } = places;
                assert!(
                    OWN + sessions + silent + greeted + leaving + sessions * each <= all,
                    "{places:?}"
                );
                assert!(silent >= 4 && leaving > 0 && each > 0, "{places:?}");
            }
        }
        assert!(Places::of(1024, 8).is_ok_and(|places| places.greeted > 200 && places.each > 64));
        assert!(Places::of(64, 8).unwrap_err().contains("ulimit"));
    }
}
